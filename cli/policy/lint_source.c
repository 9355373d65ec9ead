// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/lint_source.h"

#include "cli/term/cli.h"
#include "insight/gpu_names.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "promql/promql_source.h"
#include "promql/syntax.h"

// ---- labels under other names ----

#define LABELS_MAX 16 // of a selector; further ones keep their names

static const char prefix[] = "exported_";
#define PREFIX_LEN (sizeof prefix - 1)

struct finder {
	struct promql_token labels[LABELS_MAX]; // of the current selector, then of the one that was found
	size_t n;
	const char *brace;     // the last one that was opened
	const char *from, *to; // the selector that was found; NULL: none
	bool is_exported;      // its labels have the prefix
};

static bool has_prefix(const struct promql_token *t)
{
	return t->len > PREFIX_LEN && strncmp(t->start, prefix, PREFIX_LEN) == 0;
}

// The labels of a target that a scrape keeps apart from those of the series.
static bool is_renamed(const struct promql_token *t, bool is_exported)
{
	static const char *const of_targets[] = {"container", "namespace", "pod", NULL};
	return is_exported ? has_prefix(t) : promql_token_is_word(t, of_targets);
}

static void on_token(void *arg, const struct promql_token *t, bool has_gap)
{
	struct finder *f = arg;
	if (promql_token_is_sign(t, '{') && !f->from) {
		f->brace = t->start;
		f->n = 0;
	}
}

static int on_matcher(void *arg, const struct promql_matcher *m)
{
	struct finder *f = arg;
	if (!f->from && f->n < LABELS_MAX && m->label.kind == PROMQL_TOKEN_NAME)
		f->labels[f->n++] = m->label;
	return 0;
}

static void on_selector(void *arg, const struct promql_token *name, bool has_braces, bool needs_comma,
                        bool may_be_empty, struct promql_value *value)
{
	struct finder *f = arg;
	if (f->from || !has_braces)
		return;
	bool any = false;
	f->is_exported = false;
	for (size_t i = 0; i < f->n; i++)
		f->is_exported |= has_prefix(&f->labels[i]);
	for (size_t i = 0; i < f->n; i++)
		any |= is_renamed(&f->labels[i], f->is_exported);
	f->to = any ? promql_skip_brackets(f->brace, '{', '}') : NULL;
	f->from = !f->to ? NULL : name->kind == PROMQL_TOKEN_END ? f->brace : name->start;
}

bool lint_source_label_query(const char *query, struct buf *out, char ret_written[LINT_LABEL_BYTES],
                             char ret_other[LINT_LABEL_BYTES])
{
	struct finder f = {.n = 0};
	struct promql_syntax s = {
	        .query = query, .arg = &f, .token = on_token, .matcher = on_matcher, .selector = on_selector};
	struct promql_value value;
	struct err e;
	size_t offset, len;
	if (promql_syntax_read(&s, &value, &offset, &len, &e) < 0 || !f.from)
		return false;
	const char *at = f.from;
	bool is_first = true;
	buf_puts(out, "count(");
	for (size_t i = 0; i < f.n; i++) {
		const struct promql_token *label = &f.labels[i];
		if (!is_renamed(label, f.is_exported))
			continue;
		size_t before = out->len + (size_t)(label->start - at);
		buf_put(out, at, (size_t)(label->start - at));
		size_t skipped = f.is_exported ? PREFIX_LEN : 0;
		buf_puts(out, f.is_exported ? "" : prefix);
		buf_put(out, label->start + skipped, label->len - skipped);
		at = label->start + label->len;
		if (is_first && !out->failed) {
			snprintf(ret_written, LINT_LABEL_BYTES, "%.*s", (int)label->len, label->start);
			snprintf(ret_other, LINT_LABEL_BYTES, "%s", buf_str(out) + before);
		}
		is_first = false;
	}
	buf_put(out, at, (size_t)(f.to - at));
	buf_puts(out, ") unless count(");
	buf_put(out, f.from, (size_t)(f.to - f.from));
	buf_putc(out, ')');
	return !out->failed;
}

// ---- queries ----

struct answer {
	bool done, failed;
	bool is_confined; // the query that was sent
	struct err error;
	size_t n_series, n_warnings, n_without_pod;
	enum promql_type type;
	double first;
};

static void keep(void *arg, const struct promql_result *result, const struct err *error)
{
	struct answer *a = arg;
	a->done = true;
	if (error) {
		a->failed = true;
		a->error = *error;
		return;
	}
	a->type = result->type;
	a->n_series = result->n_series;
	a->n_warnings = result->n_warnings;
	for (size_t i = 0; i < result->n_series; i++) {
		const struct promql_series *s = &result->series[i];
		a->n_without_pod += !promql_label(s, "pod")[0] && !promql_label(s, "exported_pod")[0];
		if (i == 0 && s->n_samples > 0)
			a->first = s->samples[0].value;
	}
}

// The offset of line 2, column 13 of the query for "..2:13: parse error: .."; 0 without a position.
static size_t place_of(const char *message, const char *query)
{
	const char *end = strstr(message, ": parse error");
	if (!end)
		return 0;
	const char *col = end, *line;
	while (col > message && col[-1] >= '0' && col[-1] <= '9')
		col--;
	if (col == end || col == message || col[-1] != ':')
		return 0;
	for (line = col - 1; line > message && line[-1] >= '0' && line[-1] <= '9';)
		line--;
	int64_t l = 0, c = 0;
	if (num_parse_i64(line, (size_t)(col - 1 - line), 1, INT32_MAX, &l, NULL) < 0 ||
	    num_parse_i64(col, (size_t)(end - col), 1, INT32_MAX, &c, NULL) < 0)
		return 0;
	const char *p = query;
	for (; l > 1 && *p; l--) {
		p += strcspn(p, "\n");
		p += *p == '\n';
	}
	size_t offset = (size_t)(p - query) + (size_t)(c - 1), len = strlen(query);
	return offset < len ? offset : len ? len - 1 : 0;
}

// hint: why there is no data; "": unknown.
static void classify(struct lint_query *q, const struct answer *a, const char *hint, struct schema_errors *warnings,
                     struct schema_errors *notes)
{
	const struct policy_signal *s = q->signal;
	bool pods = s->target.set && s->target.type == TARGET_PODS;
	char value[NUM_TEXT_BYTES];
	num_format_f64(value, a->first);
	if (a->n_warnings > 0)
		schema_report(warnings, q->node, q->path,
		              "the source replies with warnings, which counts as missing data");
	if (a->type != PROMQL_VECTOR && a->type != PROMQL_SCALAR)
		schema_report(warnings, q->node, q->path, "gives a %s, not a vector: take the range away",
		              promql_type_names[a->type]);
	else if (a->n_series == 0)
		schema_report(warnings, q->node, q->path, "parses, but there is no data now: %s%s",
		              s->on_missing == ON_MISSING_HOLD ? "the scale would be held; " : "",
		              hint[0] ? hint : "check metric and label names against the source");
	else if (pods && a->n_without_pod > 0)
		schema_report(warnings, q->node, q->path,
		              "%zu of %zu series have neither the label pod nor exported_pod: group by one of them",
		              a->n_without_pod, a->n_series);
	else if (a->n_series > 1 && !pods && s->series == SERIES_SINGLE)
		schema_report(
		        warnings, q->node, q->path,
		        "gives %zu series, and more than one holds the scale: aggregate in the query, or set `series`",
		        a->n_series);
	else if (a->n_series == 1 && !isfinite(a->first))
		schema_report(warnings, q->node, q->path, "is %s now, which counts as missing data", value);
	else if (a->n_series == 1)
		schema_report(notes, q->node, q->path, "1 series, %s now", value);
	else
		schema_report(notes, q->node, q->path, "%zu series", a->n_series);
}

// Returns whether the error is about this query or its result, not about the source.
static bool is_about_the_query(enum err_kind kind)
{
	return kind == ERR_REJECTED || kind == ERR_TOO_LARGE || kind == ERR_LIMIT || kind == ERR_INPUT ||
	       kind == ERR_UNSUPPORTED;
}

static int ask(struct connections *c, const char *namespace_name, const struct policy_signal *signal, int64_t time_ms,
               struct answer *a, struct err *e)
{
	static const char *const labels[] = {"pod", "exported_pod", NULL};
	struct buf confined = BUF(PROMQL_QUERY_BYTES_MAX);
	*a = (struct answer){0};
	struct promql_source *source = promql_sources_find(c->promql, signal->source, e);
	const char *query =
	        promql_sources_admit(c->promql, signal->source, namespace_name, signal->query, &confined, NULL, e);
	struct promql_question question = {.query = query, .time_ms = time_ms, .labels = labels};
	const struct promql_ticket ticket = {.namespace_name = namespace_name};
	int rc = source && query ? promql_failover_ask(source, &question, &ticket, keep, a, e) : -1;
	a->is_confined = query && query != signal->query;
	buf_done(&confined);
	if (rc == 0 && connections_wait(c, &a->done, &a->error, e) < 0 && !is_about_the_query(a->error.kind))
		return -1;
	return rc;
}

bool lint_source_admits(const struct connections *c, const char *namespace_name, const struct policy_signal *signal,
                        size_t *ret_offset, struct err *e)
{
	struct buf confined = BUF(PROMQL_QUERY_BYTES_MAX);
	bool ok = promql_sources_admit(c->promql, signal->source, namespace_name, signal->query, &confined, ret_offset,
	                               e) != NULL;
	buf_done(&confined);
	return ok;
}

int lint_source_had_data(struct connections *c, const char *namespace_name, const struct policy_signal *signal,
                         int64_t time_ms, struct err *e)
{
	struct answer a;
	if (ask(c, namespace_name, signal, time_ms, &a, e) < 0)
		return -1;
	return a.failed ? a.error.kind != ERR_REJECTED : a.n_series > 0;
}

static bool has_series(struct connections *c, const char *namespace_name, const struct policy_signal *signal,
                       const char *query, struct answer *ret)
{
	struct policy_signal other = *signal;
	struct err e;
	other.query = query;
	return ask(c, namespace_name, &other, 0, ret, &e) == 0 && !ret->failed && ret->n_series > 0;
}

const char *lint_source_hint(struct connections *c, const char *namespace_name, const struct policy_signal *signal,
                             char out[LINT_HINT_BYTES])
{
	char written[LINT_LABEL_BYTES], other[LINT_LABEL_BYTES];
	struct answer a;
	struct err e;
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	out[0] = '\0';
	if (lint_source_label_query(signal->query, &query, written, other) &&
	    has_series(c, namespace_name, signal, buf_str(&query), &a))
		snprintf(out, LINT_HINT_BYTES, "no series with %s; %.0f with %s", written, a.first, other);
	buf_reset(&query);
	if (!out[0] && gpu_names_complete(&query, signal->query, GPU_NAMES_ALL, &e) == 0 &&
	    strcmp(buf_str(&query), signal->query) != 0 && has_series(c, namespace_name, signal, buf_str(&query), &a))
		snprintf(out, LINT_HINT_BYTES,
		         "the exporter serves these metrics under other names: load "
		         "manifests/monitoring/rules/gpu-names.yaml into Prometheus");
	buf_done(&query);
	return out;
}

int lint_source_ask(struct connections *c, struct lint_query *q, struct schema_errors *errors,
                    struct schema_errors *warnings, struct schema_errors *notes, struct err *e)
{
	struct answer a;
	if (ask(c, q->namespace_name, q->signal, 0, &a, e) < 0)
		return -1;
	if (!a.failed) {
		char hint[LINT_HINT_BYTES] = "";
		if (a.n_series == 0 && a.type == PROMQL_VECTOR)
			lint_source_hint(c, q->namespace_name, q->signal, hint);
		classify(q, &a, hint, warnings, notes);
		return 0;
	}
	struct lint_query refused = *q;
	refused.warnings = errors;
	// The position in a confined query is not the position in the file.
	size_t place = a.is_confined || a.error.kind != ERR_REJECTED ? 0 : place_of(a.error.msg, q->node->text);
	if (a.error.kind == ERR_REJECTED)
		lint_query_warn(&refused, place, 1, "the source rejects the query: %s", a.error.msg);
	else
		lint_query_warn(&refused, 0, 1, "its reply is unusable, so the scale is held: %s", a.error.msg);
	return 0;
}
