// SPDX-License-Identifier: Apache-2.0
#include "cli/lint_file.h"

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
#include "cli/lint_source.h"
#include "controller/connections.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/schema/policy_decode.h"
#include "policies/schema/policy_schema.h"

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

// Converts "file:1:2: path: text" to "file:1:2: warning: path: text". Lines of excerpts start with a blank and are
// kept.
static void append_marked(struct buf *out, const char *file, const char *mark, const char *report)
{
	size_t prefix = strlen(file);
	while (*report) {
		size_t len = strcspn(report, "\n"), place = 0;
		if (strncmp(report, file, prefix) == 0) {
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

// False when a signal names a source that does not exist or that does not permit the query.
static bool check_sources(const struct connections *source, const struct policy *policy, const struct doc_node *root,
                          const char *text, struct schema_errors *errors)
{
	const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
	bool ok = true;
	for (size_t i = 0; i < policy->n_signals; i++) {
		const struct policy_signal *signal = &policy->signals[i];
		struct err e;
		char path[64];
		size_t offset;
		if (lint_source_admits(source, policy->namespace_name, signal, &offset, &e))
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
		ok = false;
	}
	return ok;
}

static int ask(struct connections *source, const struct policy *policy, const struct doc_node *root, const char *text,
               struct lists *lists, struct err *e)
{
	const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
	for (size_t i = 0; i < policy->n_signals; i++) {
		char path[64];
		snprintf(path, sizeof path, "spec.signals[%zu].query", i);
		struct lint_query q = {.namespace_name = policy->namespace_name,
		                       .signal = &policy->signals[i],
		                       .node = lint_nearest(lint_element(signals, i), "query", NULL),
		                       .text = text,
		                       .path = path,
		                       .warnings = &lists->warnings};
		if (lint_source_ask(source, &q, &lists->errors, &lists->warnings, &lists->notes, e) < 0)
			return -1;
	}
	return ask_history(source, policy, root, &lists->warnings, e);
}

static void show_list(struct schema_errors *list, const char *path, const char *mark, struct buf *out)
{
	struct buf report;
	buf_init(&report, LINT_REPORT_MAX);
	schema_errors_print(list, &report);
	append_marked(out, path, mark, buf_str(&report));
	buf_done(&report);
}

int lint_file(const char *path, struct connections *source, bool ask_source, struct buf *out,
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
	for (size_t i = 0; i < doc.n_roots && rc == 0; i++) {
		struct policy policy = {0};
		if (strcmp(doc_get_text(doc.roots[i], "kind", ""), POLICY_KIND) != 0)
			continue;
		schema_errors_init(&lists->decode, path);
		if (policy_decode(doc.roots[i], &policy, &a, &lists->decode) < 0 || lists->decode.n > 0)
			continue;
		size_t n_notes = lists->notes.n;
		lint_policy(&policy, doc.roots[i], buf_str(&text), &lists->warnings,
		            totals->has_note ? NULL : &lists->notes);
		totals->has_note |= lists->notes.n > n_notes;
		lint_target(&policy, doc.roots[i], &lists->errors);
		if (source && check_sources(source, &policy, doc.roots[i], buf_str(&text), &lists->errors) &&
		    ask_source)
			rc = ask(source, &policy, doc.roots[i], buf_str(&text), lists, e);
	}
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
