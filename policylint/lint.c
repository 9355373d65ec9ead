// SPDX-License-Identifier: Apache-2.0
// Rules about a policy as a whole, and how warnings are collected and shown.
#include "policylint/lint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema.h"
#include "controller/connections.h"
#include "policies/policy.h"
#include "policies/policy_schema.h"
#include "policylint/lint_source.h"

#define LINT_ARENA_MAX  (64 * 1024 * 1024)
#define LINT_REPORT_MAX (1024 * 1024)
#define START_LEAST_MS  60000 // a GPU pod that is ready sooner is rare
#define FRESH_LEAST     2     // scrapes that may be late

struct place {
	const struct doc_node *spec;
	struct schema_errors *warnings;
};

struct duration_text {
	char s[NUM_TEXT_BYTES];
};

static struct duration_text show(int64_t ms)
{
	struct duration_text t = {""};
	num_format_duration_ms(t.s, ms);
	return t;
}

static const struct doc_node *element(const struct doc_node *list, size_t i)
{
	const struct doc_node *n = list ? list->child : NULL;
	for (; n && i > 0; i--)
		n = n->next;
	return n;
}

// The nearest node that was written: a.b, else a, else the one given.
static const struct doc_node *nearest(const struct doc_node *node, const char *a, const char *b)
{
	const struct doc_node *outer = a ? doc_get(node, a) : NULL, *inner = outer && b ? doc_get(outer, b) : NULL;
	return inner ? inner : outer ? outer : node;
}

// ---- the whole policy ----

static void lint_bounds(const struct policy *p, const struct place *at)
{
	if (p->min_replicas == p->max_replicas)
		schema_report(at->warnings, nearest(at->spec, "minReplicas", NULL), "spec.minReplicas",
		              "is maxReplicas, so that nothing is ever scaled: raise maxReplicas, or set paused");
}

static void lint_interval(const struct policy *p, const struct place *at)
{
	if (p->interval_ms < LINT_SCRAPE_MS * 2 / 3)
		schema_report(
		        at->warnings, nearest(at->spec, "interval", NULL), "spec.interval",
		        "%s is shorter than the usual scrape of 15s: the same samples are looked at again; use 15s, or "
		        "scrape as often",
		        show(p->interval_ms).s);
}

static void lint_scale_down(const struct policy *p, const struct place *at)
{
	if (p->scale_down.select == SELECT_DISABLED)
		return;
	int64_t delay_ms = p->scale_down.stabilization_window_ms;
	if (p->cooldown.down_ms > delay_ms)
		delay_ms = p->cooldown.down_ms;
	int64_t sustain_ms = INT64_MAX; // the quickest signal decides only where all must agree, which Max asks for
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].sustain.down_ms < sustain_ms)
			sustain_ms = p->signals[i].sustain.down_ms;
	if (sustain_ms > delay_ms)
		delay_ms = sustain_ms;
	const struct doc_node *behavior = doc_get(at->spec, "behavior");
	const struct doc_node *node =
	        behavior ? nearest(behavior, "scaleDown", "stabilizationWindowSeconds") : at->spec;
	static const char path[] = "spec.behavior.scaleDown.stabilizationWindowSeconds";
	if (delay_ms == 0)
		schema_report(at->warnings, node, path,
		              "is 0 and nothing else delays a scale-down: one low sample takes replicas away that need "
		              "minutes to "
		              "come back; use 300");
	else if (delay_ms < START_LEAST_MS && !p->startup.given)
		schema_report(at->warnings, node, path,
		              "replicas go after %s, sooner than GPU pods start: use 300, or tell startup.seconds",
		              show(delay_ms).s);
}

static bool is_busy_only(const struct lint_query *queries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (queries[i].n_metrics == 0 || queries[i].n_metrics != queries[i].n_busy)
			return false;
	return n > 0;
}

// ---- one signal ----

static void lint_window(const struct policy *p, const struct policy_signal *s, const struct doc_node *node,
                        const char *path, struct schema_errors *warnings)
{
	char at[96];
	if (s->window.set && s->window.aggregate != WINDOW_LAST && s->window.duration_ms <= p->interval_ms) {
		snprintf(at, sizeof at, "%s.window.duration", path);
		schema_report(
		        warnings, nearest(node, "window", "duration"), at,
		        "never holds more than one sample at an interval of %s: lengthen it, or leave the window out",
		        show(p->interval_ms).s);
	}
	for (int up = 0; up < 2 && s->window.set; up++) {
		int64_t sustain_ms = up ? s->sustain.up_ms : s->sustain.down_ms;
		const char *side = up ? "up" : "down";
		if (sustain_ms <= s->window.duration_ms)
			continue;
		snprintf(at, sizeof at, "%s.sustain.%s", path, side);
		schema_report(warnings, nearest(node, "sustain", side), at,
		              "%s is longer than the window of %s, which has forgotten the beginning by then: lengthen "
		              "the window, or "
		              "let stabilizationWindowSeconds wait",
		              show(sustain_ms).s, show(s->window.duration_ms).s);
	}
	int64_t fresh_ms = FRESH_LEAST * (p->interval_ms < LINT_SCRAPE_MS ? p->interval_ms : LINT_SCRAPE_MS);
	if (s->stale_after_ms > 0 && s->stale_after_ms < fresh_ms) {
		snprintf(at, sizeof at, "%s.staleAfter", path);
		schema_report(warnings, nearest(node, "staleAfter", NULL), at,
		              "%s is less than two scrapes: one that is late holds the scale; use 60s",
		              show(s->stale_after_ms).s);
	}
}

// Where adding one replica makes the signal fall below the low mark, it is taken away again.
static void lint_band(const struct policy *p, const struct policy_signal *s, const struct doc_node *node,
                      const char *path, struct schema_errors *warnings)
{
	const struct policy_watermarks *m = &s->watermarks;
	int32_t n = p->min_replicas > 1 ? p->min_replicas : 1;
	double step = p->replica_multiple;
	if (!m->set || m->low <= 0)
		return;
	double after = m->high * (1 + m->tolerance_ratio) * n / (n + step), least = m->low * (1 - m->tolerance_ratio);
	if (after >= least)
		return;
	char at[96];
	snprintf(at, sizeof at, "%s.watermarks.low", path);
	schema_report(
	        warnings, nearest(node, "watermarks", "low"), at,
	        "is too near to high: at %d replicas one step up brings the load per replica from high to %.3g, below "
	        "low, and down it goes again; lower it to %.3g",
	        n, after, m->high * n / (n + step));
}

static void lint_missing(const struct policy_signal *s, const struct doc_node *node, const char *path,
                         struct schema_errors *warnings)
{
	if (s->on_missing != ON_MISSING_ZERO || !strstr(s->query, "DCGM_"))
		return;
	char at[96];
	snprintf(at, sizeof at, "%s.onMissing", path);
	schema_report(warnings, nearest(node, "onMissing", NULL), at,
	              "a GPU always has a value, so no series means that its exporter is gone, not that it is idle: "
	              "use Hold");
}

static void lint_forecast(const struct policy *p, const struct place *at)
{
	const struct policy_signal *s = p->forecast.set ? &p->signals[p->forecast.signal_index] : NULL;
	bool per_replica = s && ((s->target.set && s->target.type == TARGET_VALUE) ||
	                         (s->watermarks.set && s->watermarks.algorithm == WATERMARK_ABSOLUTE));
	if (per_replica && p->forecast.model == FORECAST_HOLT_WINTERS)
		schema_report(at->warnings, nearest(at->spec, "forecast", "signal"), "spec.forecast.signal",
		              "%s is a value per replica, of which no source knows the past load: after every restart "
		              "two seasons "
		              "are learnt anew; use a total (type AverageValue or Replicas)",
		              s->name);
}

// With a formula, a signal that it does not name decides nothing.
static void lint_unused(const struct policy *p, const struct doc_node *signals, struct schema_errors *warnings)
{
	if (p->combine != COMBINE_FORMULA)
		return;
	for (size_t i = 0; i < p->n_signals; i++) {
		char path[64];
		if ((p->formula.reads >> i & 1) || (p->idle.set && p->idle.signal == i))
			continue;
		snprintf(path, sizeof path, "spec.signals[%zu]", i);
		schema_report(warnings, element(signals, i), path,
		              "%s is asked and never used: name it in combine, or remove it", p->signals[i].name);
	}
}

void lint_policy(const struct policy *policy, const struct doc_node *root, const char *text,
                 struct schema_errors *warnings)
{
	const struct place at = {doc_get(root, "spec"), warnings};
	struct lint_query queries[POLICY_SIGNALS_MAX];
	lint_bounds(policy, &at);
	lint_interval(policy, &at);
	lint_scale_down(policy, &at);
	lint_forecast(policy, &at);
	lint_unused(policy, doc_get(at.spec, "signals"), warnings);
	for (size_t i = 0; i < policy->n_signals; i++) {
		const struct policy_signal *s = &policy->signals[i];
		const struct doc_node *node = element(doc_get(at.spec, "signals"), i);
		char path[64], query_path[64];
		snprintf(path, sizeof path, "spec.signals[%zu]", i);
		snprintf(query_path, sizeof query_path, "spec.signals[%zu].query", i);
		lint_window(policy, s, node, path, warnings);
		lint_band(policy, s, node, path, warnings);
		lint_missing(s, node, path, warnings);
		queries[i] = (struct lint_query){.signal = s,
		                                 .node = nearest(node, "query", NULL),
		                                 .text = text,
		                                 .path = query_path,
		                                 .warnings = warnings};
		lint_query_check(&queries[i]);
		queries[i].path = "spec.signals";
	}
	if (is_busy_only(queries, policy->n_signals))
		schema_report(warnings, queries[0].node, "spec.signals",
		              "nothing but the share of time with some kernel running: one small kernel in a loop "
		              "reads 100; add a "
		              "signal of demand (a queue) or DCGM_FI_PROF_SM_ACTIVE");
}

// ---- a file ----

#define STDIN_SHOWN "<stdin>"

static int read_text(struct arena *a, const char *path, const char **ret_text, struct err *e)
{
	bool is_stdin = strcmp(path, STDIN_SHOWN) == 0;
	int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 || (is_stdin && lseek(fd, 0, SEEK_SET) < 0) ? NULL : fdopen(fd, "rb");
	if (!f && fd >= 0)
		close(fd);
	if (!f)
		return err_set(e, ERR_NOT_FOUND, "%s: cannot be opened", path);
	char *text = arena_calloc(a, DOC_BYTES_MAX + 1, 1);
	bool bad = !text || (fread(text, 1, DOC_BYTES_MAX, f) == 0 && ferror(f));
	fclose(f);
	if (bad)
		return err_set(e, ERR_IO, "%s: cannot be read", path);
	*ret_text = text;
	return 0;
}

// "file:1:2: path: text" -> "file:1:2: warning: path: text"; lines of excerpts begin with a blank and stay.
static void append_marked(struct buf *out, const char *file, const char *mark, const char *report)
{
	size_t prefix = strlen(file);
	while (*report) {
		size_t len = strcspn(report, "\n"), place = 0;
		if (strncmp(report, file, prefix) == 0) {
			const char *space = strchr(report + prefix, ' ');
			place = space && space < report + len ? (size_t)(space + 1 - report) : 0;
		}
		buf_printf(out, "%.*s%s%.*s\n", (int)place, report, place ? mark : "", (int)(len - place),
		           report + place);
		report += len + (report[len] == '\n');
	}
}

// A season must have been seen twice.
static int ask_history(struct connections *source, const struct policy *p, const struct doc_node *root,
                       struct schema_errors *warnings, struct err *e)
{
	if (!p->forecast.set || p->forecast.model != FORECAST_HOLT_WINTERS)
		return 0;
	bool had = false;
	int64_t then_ms = clock_wall_ms(&source->clock) - 2 * p->forecast.season_ms;
	if (lint_source_had_data(source, &p->signals[p->forecast.signal_index], then_ms, &had, e) < 0)
		return -1;
	if (!had)
		schema_report(warnings, nearest(doc_get(root, "spec"), "forecast", "season"), "spec.forecast.season",
		              "needs two seasons of history, and the source had no data %s ago: nothing is forecast "
		              "until then",
		              show(2 * p->forecast.season_ms).s);
	return 0;
}

struct lists {
	struct schema_errors decode, errors, warnings, notes;
};

// False when a signal names a source that there is not.
static bool check_sources(const struct connections *source, const struct policy *policy, const struct doc_node *root,
                          struct schema_errors *errors)
{
	const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
	bool ok = true;
	for (size_t i = 0; i < policy->n_signals; i++) {
		struct err e;
		char path[64];
		if (lint_source_is_known(source, &policy->signals[i], &e))
			continue;
		snprintf(path, sizeof path, "spec.signals[%zu].source", i);
		schema_report(errors, nearest(element(signals, i), "source", NULL), path, "%s", e.msg);
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
		struct lint_query q = {.signal = &policy->signals[i],
		                       .node = nearest(element(signals, i), "query", NULL),
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
	const char *text = NULL;
	path = strcmp(path, "-") == 0 ? STDIN_SHOWN : path;
	int rc = lists ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0)
		rc = read_text(&a, path, &text, e);
	if (rc == 0)
		rc = doc_parse_yaml(&a, path, text, strlen(text), &doc, e);
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
		lint_policy(&policy, doc.roots[i], text, &lists->warnings);
		if (source && check_sources(source, &policy, doc.roots[i], &lists->errors) && ask_source)
			rc = ask(source, &policy, doc.roots[i], text, lists, e);
	}
	show_list(&lists->errors, path, "", out);
	show_list(&lists->warnings, path, "warning: ", out);
	show_list(&lists->notes, path, "info: ", out);
	totals->errors += lists->errors.n + lists->errors.dropped;
	totals->warnings += lists->warnings.n + lists->warnings.dropped;
out:
	free(lists);
	arena_done(&a);
	return rc;
}
