// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/lint_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "cli/policy/lint_source.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_decode.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql_config.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"

#define LINT_ARENA_MAX  (64 * 1024 * 1024)
#define LINT_REPORT_MAX (1024 * 1024)
#define STDIN_SHOWN     "<stdin>"

static int read_text(const char *path, struct buf *text, struct err *e)
{
	bool is_stdin = strcmp(path, STDIN_SHOWN) == 0;
	if (is_stdin && lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		return err_set(e, ERR_IO, "%s: cannot be read a second time", path);
	return buf_read_argument(text, is_stdin ? "-" : path, e);
}

// Converts "file:1:2: path: text" to "file:1:2: warning: path: text". Lines without a place are kept:
// excerpts, which start with a blank, and "file: 36 more warnings".
static void append_marked(struct buf *out, const char *file, const char *mark, const char *report)
{
	size_t prefix = strlen(file);
	while (*report) {
		size_t len = strcspn(report, "\n"), place = 0;
		if (strncmp(report, file, prefix) == 0 && report[prefix] == ':' &&
		    isdigit((unsigned char)report[prefix + 1])) {
			const char *space = strchr(report + prefix, ' ');
			place = space && space < report + len ? (size_t)(space + 1 - report) : 0;
		}
		print_to(out, "%.*s%s%.*s\n", (int)place, report, place ? mark : "", (int)(len - place),
		         report + place);
		report += len + (report[len] == '\n');
	}
}

// The forecast needs two complete seasons.
static int ask_history(struct connections *source, const struct policy *p, const struct doc_node *root,
                       struct schema_errors *warnings, struct err *e)
{
	if (!p->forecast.set || p->forecast.model != FORECAST_HOLT_WINTERS)
		return 0;
	bool had = false;
	char ago[NUM_TEXT_BYTES];
	int64_t then_ms = clock_wall_ms(&source->clock) - 2 * p->forecast.season_ms;
	if (lint_source_had_data(source, p->namespace_name, &p->signals[p->forecast.signal_index], then_ms, &had, e) <
	    0)
		return -1;
	num_format_duration_ms(ago, 2 * p->forecast.season_ms);
	if (!had)
		schema_report(warnings, lint_nearest(doc_get(root, "spec"), "forecast", "season"),
		              "spec.forecast.season",
		              "needs two seasons of history, and the source had no data %s ago: nothing is forecast "
		              "until then",
		              ago);
	return 0;
}

struct lists {
	struct schema_errors decode, errors, warnings, notes;
};

// False when a signal names a source that does not exist or that does not permit the query; then sets bad[i].
static bool check_sources(const struct connections *source, const struct policy *policy, const struct doc_node *root,
                          const char *text, struct schema_errors *errors, bool *bad)
{
	const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
	bool ok = true;
	for (size_t i = 0; i < policy->n_signals; i++) {
		const struct policy_signal *signal = &policy->signals[i];
		struct err e;
		char path[64];
		size_t offset;
		if (!signal->query || lint_source_admits(source, policy->namespace_name, signal, &offset, &e))
			continue;
		bool is_of_query = e.kind == ERR_INPUT || e.kind == ERR_LIMIT;
		const char *field = is_of_query ? "query" : "source";
		const struct doc_node *node = lint_nearest(lint_element(signals, i), field, NULL);
		snprintf(path, sizeof path, "spec.signals[%zu].%s", i, field);
		struct lint_query q = {.signal = signal, .node = node, .text = text, .path = path, .warnings = errors};
		if (is_of_query)
			lint_query_warn(&q, offset, 1, "%s", e.msg);
		else
			schema_report(errors, node, path, "%s", e.msg);
		bad[i] = is_of_query;
		ok = false;
	}
	return ok;
}

static int ask(struct connections *source, const struct policy *policy, const struct doc_node *root, const char *text,
               struct lists *lists, bool *bad, struct err *e)
{
	const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
	for (size_t i = 0; i < policy->n_signals; i++) {
		char path[64];
		if (!policy->signals[i].query)
			continue;
		snprintf(path, sizeof path, "spec.signals[%zu].query", i);
		struct lint_query q = {.namespace_name = policy->namespace_name,
		                       .signal = &policy->signals[i],
		                       .node = lint_nearest(lint_element(signals, i), "query", NULL),
		                       .text = text,
		                       .path = path,
		                       .warnings = &lists->warnings};
		size_t n = lists->errors.n;
		if (lint_source_ask(source, &q, &lists->errors, &lists->warnings, &lists->notes, e) < 0)
			return -1;
		bad[i] = lists->errors.n > n;
	}
	return ask_history(source, policy, root, &lists->warnings, e);
}

struct dialect {
	struct connections *source; // NULL: none
	int kind;                   // enum promql_kind
};

static int kind_of(void *arg, const char *name)
{
	const struct dialect *d = arg;
	struct err e;
	const struct promql_source *source =
	        d->kind == PROMQL_KIND_AUTO && d->source ? promql_sources_find(d->source->promql, name, &e) : NULL;
	return source ? (int)promql_source_kind(source, NULL) : d->kind;
}

// Checks one policy of the file.
static int lint_root(const struct doc_node *root, const char *text, struct connections *source, bool ask_source,
                     int dialect, struct arena *a, struct lists *lists, struct lint_totals *totals, struct err *e)
{
	struct policy_document document = {0};
	const struct policy *policy = &document.policy;
	struct dialect d = {source, dialect};
	bool bad[POLICY_SIGNALS_MAX] = {false};
	size_t n_errors = lists->errors.n + lists->errors.dropped, n_notes = lists->notes.n;
	int rc = 0;
	schema_errors_init(&lists->decode, lists->errors.file);
	bool is_valid = policy_decode(root, &document, a, &lists->decode) == 0 && lists->decode.n == 0;
	if (is_valid) {
		lint_policy(policy, root, text, &lists->warnings, totals->has_note ? NULL : &lists->notes);
		totals->has_note |= lists->notes.n > n_notes;
	}
	if (document.target.kind && document.target.api_version)
		lint_target(&document, root, &lists->errors);
	if (is_valid) {
		lint_victims(policy, &document.target, root, &lists->warnings);
		if (source && check_sources(source, policy, root, text, &lists->errors, bad) && ask_source)
			rc = ask(source, policy, root, text, lists, bad, e);
	}
	lint_queries(root, text, kind_of, &d, &lists->errors, &lists->warnings, bad);
	totals->n_invalid += is_valid && lists->errors.n + lists->errors.dropped > n_errors;
	return rc;
}

static void show_list(struct schema_errors *list, const char *path, const char *mark, struct buf *out)
{
	struct buf report;
	buf_init(&report, LINT_REPORT_MAX);
	schema_errors_print(list, &report);
	append_marked(out, path, mark, buf_str(&report));
	buf_done(&report);
}

int lint_file(const char *path, struct connections *source, bool ask_source, int dialect, struct buf *out,
              struct lint_totals *totals, struct err *e)
{
	struct arena a;
	arena_init(&a, LINT_ARENA_MAX);
	struct lists *lists = malloc(sizeof *lists);
	struct doc_file doc = {0};
	struct buf text;
	buf_init(&text, DOC_BYTES_MAX);
	path = strcmp(path, "-") == 0 ? STDIN_SHOWN : path;
	int rc = lists ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0)
		rc = read_text(path, &text, e);
	if (rc == 0)
		rc = doc_parse_yaml(&a, path, buf_str(&text), text.len, &doc, e);
	if (rc < 0)
		goto out;
	schema_errors_init(&lists->errors, path);
	schema_errors_init(&lists->warnings, path);
	schema_errors_init(&lists->notes, path);
	lists->warnings.noun = "warning";
	lists->notes.noun = "note";
	for (size_t i = 0; i < doc.n_roots && rc == 0; i++)
		if (strcmp(doc_get_text(doc.roots[i], "kind", ""), POLICY_KIND) == 0)
			rc = lint_root(doc.roots[i], buf_str(&text), source, ask_source, dialect, &a, lists, totals, e);
	show_list(&lists->errors, path, "", out);
	show_list(&lists->warnings, path, "warning: ", out);
	show_list(&lists->notes, path, "info: ", out);
	totals->errors += lists->errors.n + lists->errors.dropped;
	totals->warnings += lists->warnings.n + lists->warnings.dropped;
out:
	buf_done(&text);
	free(lists);
	arena_done(&a);
	return rc;
}
