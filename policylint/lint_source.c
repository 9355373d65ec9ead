// SPDX-License-Identifier: Apache-2.0
#include "policylint/lint_source.h"

#include <event2/event.h>
#include <math.h>
#include <string.h>

#include "base/doc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema.h"
#include "controller/connections.h"
#include "policies/policy.h"
#include "policylint/lint.h"
#include "promql/promql_source.h"

struct answer {
	bool done, failed;
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

// "..2:13: parse error: .." -> the offset of line 2, column 13 of the query; 0 without such a place.
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

static void judge(struct lint_query *q, const struct answer *a, struct schema_errors *warnings,
                  struct schema_errors *notes)
{
	const struct policy_signal *s = q->signal;
	bool pods = s->target.set && s->target.type == TARGET_PODS;
	char value[NUM_TEXT_BYTES];
	num_format_f64(value, a->first);
	if (a->n_warnings > 0)
		schema_report(warnings, q->node, q->path,
		              "the source answers with warnings, which counts as missing data");
	if (a->type != PROMQL_VECTOR && a->type != PROMQL_SCALAR)
		schema_report(warnings, q->node, q->path, "gives a %s, not a vector: take the range away",
		              promql_type_name(a->type));
	else if (a->n_series == 0)
		schema_report(warnings, q->node, q->path, "parses, but there is no data now: %s",
		              s->on_missing == ON_MISSING_HOLD
		                      ? "the scale would be held; check metric and label names against the source"
		                      : "check metric and label names against the source");
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

static int ask(struct connections *c, const struct policy_signal *signal, const char *query, int64_t time_ms,
               struct answer *a, struct err *e)
{
	*a = (struct answer){0};
	const struct promql_source *source = promql_sources_find(c->promql, signal->source, e);
	if (!source || promql_query(promql_source_client(source), query, time_ms, keep, a, e) < 0)
		return -1;
	while (!a->done) // ends: the source has a timeout
		if (event_base_loop(c->loop, EVLOOP_ONCE) != 0)
			return err_set(e, ERR_INTERNAL, "the event loop ended before the answer");
	if (a->failed && a->error.kind != ERR_REJECTED) {
		*e = a->error;
		return -1;
	}
	return 0;
}

bool lint_source_is_known(const struct connections *c, const struct policy_signal *signal, struct err *e)
{
	return promql_sources_find(c->promql, signal->source, e) != NULL;
}

int lint_source_had_data(struct connections *c, const struct policy_signal *signal, int64_t time_ms, bool *ret_had,
                         struct err *e)
{
	struct answer a;
	if (ask(c, signal, signal->query, time_ms, &a, e) < 0)
		return -1;
	*ret_had = !a.failed && a.n_series > 0;
	return 0;
}

int lint_source_ask(struct connections *c, struct lint_query *q, struct schema_errors *errors,
                    struct schema_errors *warnings, struct schema_errors *notes, struct err *e)
{
	struct answer a;
	if (ask(c, q->signal, q->node->text, 0, &a, e) < 0)
		return -1;
	if (!a.failed) {
		judge(q, &a, warnings, notes);
		return 0;
	}
	struct lint_query refused = *q;
	refused.warnings = errors;
	lint_query_warn(&refused, place_of(a.error.msg, q->node->text), 1, "the source refuses it: %s", a.error.msg);
	return 0;
}
