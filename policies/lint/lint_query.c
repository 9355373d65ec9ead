// SPDX-License-Identifier: Apache-2.0
// The rules about one query. The query is read as a list of tokens: lint_promql.c reports syntax errors, and a rule
// that cannot be sure does not warn.
#include <ctype.h>
#include <stdarg.h>

#include "base/base.h"
#include "base/dcgm_names.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/lint/lint_names.h"
#include "promql/freshness.h"
#include "promql/lexer.h"
#include "promql/syntax.h"

#define TOKENS_MAX  2048 // tokens that are checked
#define NESTING_MAX 64
#define NAME_BYTES  128
#define SCRAPES_MIN 4

struct frame {
	const struct promql_token *function; // or NULL
	bool is_aggregation;
};

struct metric {
	const struct promql_token *token; // its name, or the brace of a selector without one
	char name[NAME_BYTES];            // "" without
	enum lint_kind kind;              // LINT_KIND__COUNT: not in the table
	bool is_dcgm, is_expected_many;
	size_t matchers, end; // tokens [matchers, end) after the name
	int64_t range_ms;     // -1: an instant vector
	const struct promql_token *range;
	const struct promql_token *function; // it is the argument of, or NULL
	bool is_aggregated;
};

struct walk {
	struct lint_query *q;
	struct promql_token tokens[TOKENS_MAX + 1];
	size_t n;
	struct frame stack[NESTING_MAX];
	size_t depth;
	bool has_percent, has_ratio, has_other; // kinds of metrics named
	bool has_unit;                          // some ratio or percentage, by its kind or by its name
	bool is_scaled, is_summed;              // some * or / ; some sum or count
	const struct promql_token *by_pod;
	const struct promql_token *summed_ratio; // a metric of 0 - 1 inside sum()
	const struct promql_token *unshared;     // the first metric in degrees or watts
	enum lint_kind unshared_kind;
};

// ---- places in the file ----

const struct doc_node *lint_element(const struct doc_node *list, size_t i)
{
	const struct doc_node *n = list ? list->child : NULL;
	for (; n && i > 0; i--)
		n = n->next;
	return n;
}

static const char *to_line(const char *text, int line)
{
	for (; line > 1 && *text; line--) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

// YAML only adds or drops separators (spaces, line ends, quotes, backslashes), so that the file contains every visible
// character of the decoded text in the same order.
bool lint_offset(const char *text, const struct doc_node *node, size_t offset, size_t *ret_offset)
{
	if (!text || node->line < 1 || node->col < 1)
		return false;
	const char *line = to_line(text, node->line);
	const char *p = line;
	for (int col = 1; col < node->col && *p && *p != '\n'; col++)
		for (p++; ((unsigned char)*p & 0xc0) == 0x80;) // columns count characters
			p++;
	if (*p == '|' || *p == '>') // header of a block
		p += strcspn(p, "\n");
	for (size_t i = 0; i <= offset && i < node->text_len; i++) {
		char c = node->text[i];
		if (isspace((unsigned char)c))
			continue;
		while (*p && *p != c)
			p++;
		if (!*p)
			return false;
		if (i < offset)
			p++;
	}
	*ret_offset = (size_t)(p - text);
	return true;
}

// Line and column (from 1) in the file of offset in the scalar `node` as decoded.
static void place_of(const char *text, const struct doc_node *node, size_t offset, int *ret_line, int *ret_col)
{
	size_t at;
	*ret_line = node->line;
	*ret_col = node->col;
	if (!lint_offset(text, node, offset, &at))
		return;
	int l = 1, col = 1;
	for (const char *s = text; s < text + at; s++) {
		if (*s == '\n') {
			l++;
			col = 1;
		} else if (((unsigned char)*s & 0xc0) != 0x80) {
			col++;
		}
	}
	*ret_line = l;
	*ret_col = col;
}

void lint_query_warn(const struct lint_query *q, size_t offset, size_t len, const char *fmt, ...)
{
	char message[SCHEMA_MESSAGE_BYTES];
	va_list ap;
	if (q->warnings->n == SCHEMA_ERRORS_MAX) { // only counted: looking up the place of each would be quadratic
		q->warnings->dropped++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	// The line of the query alone is shown, at its place in the file.
	size_t from = offset;
	while (from > 0 && q->node->text[from - 1] != '\n')
		from--;
	size_t line_len = strcspn(q->node->text + from, "\n");
	struct doc_node at = *q->node;
	place_of(q->text, q->node, offset, &at.line, &at.col);
	at.text = q->node->text + from;
	at.text_len = line_len;
	at.quoted = false;
	at.col -= (int)(offset - from); // schema_report_text adds it again
	if (len > from + line_len - offset)
		len = from + line_len - offset;
	schema_report_text(q->warnings, &at, q->path, offset - from, len, "%s", message);
}

#define WARN(w, token, ...)                                                                                            \
	lint_query_warn((w)->q, (size_t)((token)->start - (w)->q->node->text), (token)->len, __VA_ARGS__)

static bool is_sign(const struct walk *w, size_t i, char sign)
{
	return i < w->n && promql_token_is_sign(&w->tokens[i], sign);
}

static bool is_name(const struct walk *w, size_t i, const char *name)
{
	const char *const words[] = {name, NULL};
	return i < w->n && promql_token_is_word(&w->tokens[i], words);
}

// Returns the token after the bracket that closes the one at i; the end when none does.
static size_t behind(const struct walk *w, size_t i, char open, char close)
{
	int depth = 0;
	for (; i < w->n; i++) {
		if (is_sign(w, i, open))
			depth++;
		if (is_sign(w, i, close) && --depth == 0)
			return i + 1;
	}
	return w->n;
}

static bool is_in(const struct promql_token *function, const char *const *names)
{
	return function && promql_token_is_word(function, names);
}

// ---- rules about a metric ----

static const char *const rate_functions[] = {"rate", "irate", "increase", NULL};
static const char *const slope_functions[] = {"rate",  "irate",  "increase",       "deriv",
                                              "delta", "idelta", "predict_linear", NULL};
static const char *const counter_functions[] = {"rate",
                                                "irate",
                                                "increase",
                                                "changes",
                                                "resets",
                                                "timestamp",
                                                "absent",
                                                "absent_over_time",
                                                "count_over_time",
                                                "present_over_time",
                                                "count",
                                                "group",
                                                NULL};

static bool is_vllm_gauge(const char *name)
{
	return strncmp(name, "vllm:num_requests_", 18) == 0 || lint_name_ends_in(name, "cache_usage_perc");
}

static void rule_kind(struct walk *w, const struct metric *m)
{
	enum lint_kind kind = m->kind;
	int f = m->function ? (int)m->function->len : 0;
	const char *fs = m->function ? m->function->start : "";
	if (is_in(m->function, rate_functions)) {
		if (kind == LINT_CODE)
			WARN(w, m->token,
			     "holds the last error code, not a count: %.*s() of it means nothing; use changes(), or a "
			     "counter of errors by code",
			     f, fs);
		else if (kind == LINT_RATE)
			WARN(w, m->token, "is a rate already, not a counter: use avg_over_time() instead of %.*s()", f,
			     fs);
		else if ((kind != LINT_KIND__COUNT && kind != LINT_COUNTER) || is_vllm_gauge(m->name))
			WARN(w, m->token,
			     "is a gauge, not a counter: use avg_over_time(), max_over_time() or deriv() instead of "
			     "%.*s()",
			     f, fs);
	} else if (kind == LINT_COUNTER && !is_in(m->function, counter_functions)) {
		WARN(w, m->token,
		     "only grows: its value says how old the GPU is, not what it does now; use rate() over it");
	} else if (kind == LINT_KIND__COUNT && !m->is_dcgm && lint_name_ends_in(m->name, "_total") &&
	           !is_in(m->function, counter_functions)) {
		WARN(w, m->token, "looks like a counter, which only grows: use rate() over it");
	}
}

static void rule_range(struct walk *w, const struct metric *m)
{
	if (is_in(m->function, slope_functions) && m->range_ms >= 0 && m->range_ms < SCRAPES_MIN * LINT_SCRAPE_MS)
		WARN(w, m->range,
		     "covers fewer than %d scrapes of 15 s, so that one lost scrape leaves nothing to take a slope of: "
		     "use [1m] or more",
		     SCRAPES_MIN);
}

static void rule_name(struct walk *w, const struct metric *m)
{
	const char *meant = NULL;
	size_t suffix;
	if (lint_rename_find(m->name, strlen(m->name), &suffix)) // rule_rename() says more
		return;
	if (!lint_name_is_unknown(m->name, &meant))
		return;
	if (meant)
		WARN(w, m->token, "DCGM has no such field: did you mean %s?", meant);
	else
		WARN(w, m->token, "dcgm-exporter has no such field: look it up in the exporter's list");
}

static void rule_single(struct walk *w, const struct metric *m)
{
	const struct policy_signal *s = w->q->signal;
	bool pods = s->target.set && s->target.type == TARGET_PODS;
	if (!m->is_expected_many || m->is_aggregated || pods || s->series != SERIES_SINGLE)
		return;
	const char *what = m->is_dcgm ? "GPU" : "pod";
	WARN(w, m->token,
	     "gives one series per %s, and more than one holds the scale: wrap it in avg(), max() or sum(), or set "
	     "`series`",
	     what);
}

// DCGM metrics carry the workload as exported_pod where Prometheus puts the exporter's own pod into `pod`.
static void rule_labels(struct walk *w, const struct metric *m)
{
	static const char *const labels[] = {"pod", "namespace", "container", NULL};
	if (!m->is_dcgm)
		return;
	for (size_t i = m->matchers; i + 2 < m->end; i++) {
		const struct promql_token *t = &w->tokens[i];
		bool first = i == m->matchers || is_sign(w, i - 1, ',') || is_sign(w, i - 1, '{');
		if (!first || !promql_token_is_word(t, labels))
			continue;
		char twin[32];
		snprintf(twin, sizeof twin, "exported_%.*s", (int)t->len, t->start);
		if (strstr(w->q->node->text, twin) || strstr(w->q->node->text, "exporter"))
			continue;
		WARN(w, t,
		     "is the exporter's own %.*s unless Prometheus honours the labels: match %s too, as in \"x{%s=..} "
		     "or x{%.*s=..}\"",
		     (int)t->len, t->start, twin, twin, (int)t->len, t->start);
		return;
	}
}

// FB_USED / FB_FREE
static void rule_memory(struct walk *w, const struct metric *m)
{
	if (strcmp(m->name, "DCGM_FI_DEV_FB_USED") != 0)
		return;
	size_t i = m->end, opened = 0;
	while (is_sign(w, i, ')'))
		i++;
	if (!is_sign(w, i, '/'))
		return;
	for (i++; i < w->n && !is_name(w, i, "DCGM_FI_DEV_FB_FREE"); i++) {
		bool labels = promql_token_is_word(&w->tokens[i], promql_label_list_words) && is_sign(w, i + 1, '(');
		bool opens = is_sign(w, i, '('),
		     function = is_sign(w, i + 1, '(') || is_name(w, i + 1, "by") || is_name(w, i + 1, "without");
		if (labels)
			i = behind(w, i + 1, '(', ')') - 1;
		else if (!opens && !function)
			return;
		opened += opens;
	}
	if (!is_name(w, i, "DCGM_FI_DEV_FB_FREE"))
		return;
	const struct promql_token *free_token = &w->tokens[i++];
	if (is_sign(w, i, '{'))
		i = behind(w, i, '{', '}');
	while (opened > 0 && is_sign(w, i, ')'))
		i++, opened--;
	if (opened > 0 && is_sign(w, i, '+'))
		return;
	WARN(w, free_token, "used / free is not a share and has no upper end: write FB_USED / (FB_USED + FB_FREE)");
}

// ---- rules about the query as a whole ----

// A policy gets one note: after the first renamed metric, the user knows of the new names.
static void note_4_9(struct lint_query *q, size_t offset, size_t len)
{
	const char *name = q->node->text + offset;
	const struct dcgm_name *renamed = q->notes ? lint_rename_of_4_9(q->node->text, name, len) : NULL;
	if (!renamed || q->is_noted)
		return;
	q->is_noted = true;
	struct lint_query note = *q;
	note.warnings = q->notes;
	char factor[80] = "";
	if (renamed->factor != 1)
		snprintf(factor, sizeof factor, ", whose value is %.10g times as large", renamed->factor);
	lint_query_warn(
	        &note, offset, len,
	        "dcgm-exporter 4.9 renames it to %s%s: to read both, repeat the expression with that name after \"or\"",
	        renamed->name_4_9, factor);
}

// The name of what the equivalent is: `start`, and the text from `rest` to `end`.
static void note_equivalent(struct lint_query *q, size_t offset, size_t len, const char *who, const char *start,
                            const char *rest, const char *end)
{
	if (!q->notes)
		return;
	struct lint_query note = *q;
	note.warnings = q->notes;
	lint_query_warn(&note, offset, len, "is the name of %s for %s%.*s", who, start, (int)(end - rest), rest);
}

static bool is_by_ray(const char *name, size_t len)
{
	return len > 9 && memcmp(name, "ray_vllm", 8) == 0 && (name[8] == ':' || name[8] == '_');
}

static void rule_renames(struct lint_query *q)
{
	const char *query = q->node->text, *name;
	struct lint_metric_names names = {.next = query};
	size_t len, suffix;
	while (lint_metric_names_next(&names, &name, &len)) {
		const struct lint_rename *r = lint_rename_wanted(query, name, len, &suffix);
		const char *tail = name + len - suffix;
		size_t offset = (size_t)(name - query);
		if (is_by_ray(name, len) && !r)
			note_equivalent(q, offset, len, "Ray", "vllm:", name + sizeof "ray_vllm:" - 1, tail);
		else if (r && r->is_equivalent)
			note_equivalent(q, offset, len, r->release, r->new_name, tail, name + len);
		else if (r && r->has_same_meaning && strncmp(name, r->old_name, len - suffix) == 0)
			lint_query_warn(q, offset, len,
			                "is %s%.*s since %s: write that, or \"%s%.*s or %.*s\" to read both (check "
			                "--fix renames it)",
			                r->new_name, (int)suffix, tail, r->release, r->new_name, (int)suffix, tail,
			                (int)len, name);
		else if (r)
			lint_query_warn(q, offset, len, "is gone since %s: use %s", r->release, r->new_name);
		else
			note_4_9(q, offset, len);
	}
}

// sum() over GPUs grows with the replicas, but Value compares it with the target of one replica.
static void rule_sum(struct walk *w)
{
	const struct policy_target *t = &w->q->signal->target;
	if (w->summed_ratio && !w->is_scaled && t->set && t->type == TARGET_VALUE && t->value <= 1)
		WARN(w, w->summed_ratio,
		     "is a ratio, and its sum grows with every GPU, so that more replicas ask for more: use avg(), or "
		     "type AverageValue");
}

// v: what is known of the values, or NULL.
static void rule_units(struct walk *w, const struct promql_value *v)
{
	const struct policy_signal *s = w->q->signal;
	double goal = 0;
	if (s->target.set && (s->target.type == TARGET_VALUE || s->target.type == TARGET_PODS))
		goal = s->target.value;
	else if (s->watermarks.set)
		goal = s->watermarks.high;
	// Where the range of the query is not known, the metrics alone decide.
	bool is_plain = !w->is_scaled && !w->is_summed && !w->has_other && w->has_ratio != w->has_percent;
	bool is_ratio = is_plain && w->has_ratio && (!v || v->high <= 1);
	bool is_percent = v ? w->has_unit && v->low >= 0 && v->high == 100 : is_plain && w->has_percent;
	if (goal <= 0)
		return;
	w->q->has_wrong_unit = (is_ratio && goal > 1.5) || (is_percent && goal <= 1);
	if (is_ratio && goal > 1.5)
		lint_query_warn(w->q, 0, strlen(w->q->node->text),
		                "is a ratio from 0 to 1, and never reaches %g: write the target as 0.%02d", goal,
		                goal < 100 ? (int)goal : 99);
	if (is_percent && goal <= 1)
		lint_query_warn(w->q, 0, strlen(w->q->node->text),
		                "is percent, 0 to 100, and nearly always above %g: write the target as %g, or divide "
		                "the query by 100",
		                goal, goal * 100);
}

// A proportional target assumes that twice the replicas halve the value of the metric.
static void rule_unshared(struct walk *w)
{
	const struct policy_signal *s = w->q->signal;
	bool proportional = s->watermarks.set || (s->target.set && s->target.type != TARGET_REPLICAS);
	if (!w->unshared || !proportional)
		return;
	if (w->unshared_kind == LINT_DEGREES)
		WARN(w, w->unshared,
		     "is a temperature, which replicas do not share: twice the replicas do not halve it; scale by a "
		     "load such as DCGM_FI_PROF_SM_ACTIVE, and alert on heat");
	else
		WARN(w, w->unshared,
		     "is in watts, which replicas do not share: an idle GPU draws power too; scale by a load such as "
		     "DCGM_FI_PROF_SM_ACTIVE, or turn a power budget into replicas (type Replicas)");
}

static void rule_by_pod(struct walk *w)
{
	if (w->by_pod && strstr(w->q->node->text, "DCGM_FI_") && !strstr(w->q->node->text, "exported_pod"))
		WARN(w, w->by_pod,
		     "is the exporter's own pod unless Prometheus honours the labels: group by exported_pod, or copy "
		     "it into pod with label_replace()");
}

// ---- the walk ----

// Reads the selector at i (a name, or a brace); returns the token after it.
static size_t read_metric(struct walk *w, size_t i, struct metric *m)
{
	const struct frame *top = w->depth ? &w->stack[w->depth - 1] : NULL;
	*m = (struct metric){.token = &w->tokens[i], .range_ms = -1, .function = top ? top->function : NULL};
	for (size_t k = 0; k < w->depth; k++)
		m->is_aggregated |= w->stack[k].is_aggregation;
	if (m->token->kind == PROMQL_TOKEN_NAME) {
		snprintf(m->name, sizeof m->name, "%.*s", (int)m->token->len, m->token->start);
		i++;
	}
	m->kind = lint_name_kind(m->name);
	m->is_dcgm = strncmp(m->name, "DCGM_", 5) == 0;
	m->is_expected_many = m->is_dcgm || strncmp(m->name, "vllm:", 5) == 0;
	m->matchers = m->end = i;
	if (is_sign(w, i, '{'))
		m->end = i = behind(w, i, '{', '}');
	if (is_sign(w, i, '[') && i + 2 < w->n) {
		m->range = &w->tokens[i + 1];
		if (!is_sign(w, i + 2, ']') ||
		    num_parse_duration_ms(m->range->start, m->range->len, &m->range_ms, NULL) < 0)
			m->range_ms = -1;
		m->end = i = behind(w, i, '[', ']');
	}
	return i;
}

static void check_metric(struct walk *w, const struct metric *m)
{
	static const char *const busy[] = {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO",
	                                   "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", NULL};
	w->q->n_metrics++;
	w->q->n_busy += is_in(m->token, busy);
	enum lint_kind kind = m->kind;
	w->has_percent |= kind == LINT_PERCENT;
	w->has_ratio |= kind == LINT_RATIO;
	if ((kind == LINT_DEGREES || kind == LINT_WATTS) && !w->unshared) {
		w->unshared = m->token;
		w->unshared_kind = kind;
	}
	static const char *const sum[] = {"sum", NULL};
	bool compared = is_sign(w, m->end, '>') || is_sign(w, m->end, '<'); // sum(x > bool y) counts
	if (kind == LINT_RATIO && is_in(m->function, sum) && promql_token_is_sign(m->function + 1, '(') && !compared)
		w->summed_ratio = m->token;
	w->has_other |= kind != LINT_PERCENT && kind != LINT_RATIO;
	w->has_unit |= kind == LINT_PERCENT || kind == LINT_RATIO || lint_name_ends_in(m->name, "ratio") ||
	               lint_name_ends_in(m->name, "_percent") || lint_name_ends_in(m->name, "_perc");
	rule_name(w, m);
	rule_kind(w, m);
	rule_range(w, m);
	rule_memory(w, m);
	rule_labels(w, m);
	rule_single(w, m);
}

// sum(GPU_UTIL > 0) adds percentages where the number of GPUs was meant.
static void rule_counted(struct walk *w, const struct metric *m)
{
	static const char *const sum[] = {"sum", NULL};
	if (m->kind == LINT_KIND__COUNT || !is_in(m->function, sum) ||
	    !(is_sign(w, m->end, '>') || is_sign(w, m->end, '<')))
		return;
	size_t i = m->end + 1 + is_sign(w, m->end + 1, '=');
	if (!is_name(w, i, "bool"))
		WARN(w, m->token,
		     "the comparison keeps the values and sum() adds them up: to count GPUs write count(x > y), or "
		     "sum(x > bool y)");
}

static void rule_or_zero(struct walk *w, size_t i)
{
	size_t opened = 0, at = i + 1;
	if (!is_name(w, i, "or"))
		return;
	if (is_name(w, at, "on") || is_name(w, at, "ignoring"))
		at = behind(w, at + 1, '(', ')');
	for (; is_sign(w, at, '('); at++)
		opened++;
	if (!is_name(w, at, "vector") || !is_sign(w, at + 1, '(') || !is_sign(w, at + 3, ')') ||
	    !promql_value_of_number(&w->tokens[at + 2]).is_idle_zero)
		return;
	for (at += 3; opened > 0 && is_sign(w, at + 1, ')'); at++)
		opened--;
	if (opened > 0)
		return;
	struct promql_token all = w->tokens[i];
	all.len = (size_t)(w->tokens[at].start + 1 - all.start);
	WARN(w, &all,
	     "reads an outage as no load, and scales down: leave it out; without data the scale is held (see "
	     "onMissing)");
}

static void push(struct walk *w, const struct promql_token *function)
{
	static const char *const sums[] = {"sum", "count", "count_values", "sum_over_time", "count_over_time", NULL};
	bool aggregation = is_in(function, promql_aggregations);
	w->is_summed |= is_in(function, sums);
	if (w->depth < NESTING_MAX)
		w->stack[w->depth++] = (struct frame){.function = function, .is_aggregation = aggregation};
}

static size_t read_labels(struct walk *w, size_t i)
{
	size_t end = behind(w, i + 1, '(', ')');
	for (size_t k = i + 1; k < end; k++)
		if (is_name(w, i, "by") && is_name(w, k, "pod"))
			w->by_pod = &w->tokens[k];
	return end;
}

static void walk(struct walk *w)
{
	const struct promql_token *function = NULL;
	for (size_t i = 0; i < w->n;) {
		const struct promql_token *t = &w->tokens[i];
		struct metric m;
		rule_or_zero(w, i);
		if (promql_token_is_word(t, promql_label_list_words)) {
			i = is_sign(w, i + 1, '(') ? read_labels(w, i) : i + 1;
		} else if (promql_token_is_word(t, promql_aggregations) ||
		           (t->kind == PROMQL_TOKEN_NAME && is_sign(w, i + 1, '('))) {
			function = t;
			i++;
		} else if (is_sign(w, i, '(')) {
			push(w, function);
			function = NULL;
			i++;
		} else if (is_sign(w, i, ')')) {
			w->depth -= w->depth > 0;
			i++;
			if (is_sign(w, i, '['))
				i = behind(w, i, '[', ']');
		} else if (is_sign(w, i, '{') ||
		           (t->kind == PROMQL_TOKEN_NAME && !promql_token_is_word(t, promql_other_words))) {
			i = read_metric(w, i, &m);
			check_metric(w, &m);
			rule_counted(w, &m);
		} else {
			w->is_scaled |= is_sign(w, i, '*') || is_sign(w, i, '/');
			i++;
		}
	}
}

// A value that is not a number holds the scale.
static void rule_nan(struct walk *w, const struct promql_token *at)
{
	if (at->len == 0 || w->q->signal->on_missing != ON_MISSING_HOLD || w->q->has_default)
		return;
	if (*at->start == '/' || *at->start == '%')
		WARN(w, at,
		     "divides 0 by 0 without traffic, which is not a number, and that holds the scale until traffic "
		     "returns: set onMissing: Zero to read it as 0");
	else
		WARN(w, at,
		     "is not a number without traffic, and that holds the scale until traffic returns: set onMissing: "
		     "Zero to read it as 0");
}

static void rule_selectors(const struct lint_query *q)
{
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	const char *beyond;
	freshness_selectors(q->node->text, spans, &beyond);
	if (!beyond)
		return;
	const char *p = beyond;
	struct promql_token token = promql_next(&p);
	lint_query_warn(q, (size_t)(beyond - q->node->text), token.len,
	                "is the query's selector number %d or later; the age of at most %d can be checked, so the "
	                "query is never asked and the scale is held: let recording rules hold parts of it",
	                FRESHNESS_SELECTORS_MAX + 1, FRESHNESS_SELECTORS_MAX);
}

void lint_query_check(struct lint_query *q)
{
	struct walk w = {.q = q};
	const char *p = q->node->text;
	while (w.n < TOKENS_MAX) {
		struct promql_token t = promql_next(&p);
		if (t.kind == PROMQL_TOKEN_END)
			break;
		w.tokens[w.n++] = t;
	}
	walk(&w);
	rule_renames(q);
	rule_selectors(q);
	struct promql_value v;
	bool is_valid = lint_query_value(q->node->text, &v);
	rule_units(&w, is_valid ? &v : NULL);
	rule_sum(&w);
	rule_unshared(&w);
	rule_by_pod(&w);
	if (is_valid)
		rule_nan(&w, &v.nan);
	q->low = v.low;
	q->high = v.high;
}

// ---- renamed metrics ----

size_t lint_rename_edits(const struct policy *policy, const struct doc_node *root, const char *text,
                         struct lint_edit *ret_edits, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < policy->n_signals; i++) {
		const struct doc_node *signals = doc_get(doc_get(root, "spec"), "signals");
		const struct doc_node *query = doc_get(lint_element(signals, i), "query");
		struct lint_metric_names names = {.next = query ? query->text : ""};
		const char *name;
		size_t len, suffix, offset;
		while (n < max && lint_metric_names_next(&names, &name, &len)) {
			const struct lint_rename *row = lint_rename_wanted(query->text, name, len, &suffix);
			if (!row || !row->has_same_meaning ||
			    !lint_offset(text, query, (size_t)(name - query->text), &offset))
				continue;
			// A name that the file splits or escapes, or with another prefix, is left to a person.
			if (strncmp(text + offset, name, len) == 0 && strncmp(name, row->old_name, len - suffix) == 0)
				ret_edits[n++] = (struct lint_edit){offset, len - suffix, row->new_name};
		}
	}
	return n;
}
