// SPDX-License-Identifier: Apache-2.0
#include "runtime/query/query_answer.h"

#include <stdarg.h>

#include "base/base.h"
#include "promql/freshness.h"
#include "promql/promql_source.h"

struct query_memory {
	size_t bytes, n_answers;
	bool is_abandoned; // it is freed with its last answer
};

struct query_memory *query_memory_new(void)
{
	return must_alloc(calloc(1, sizeof(struct query_memory)));
}

void query_memory_abandon(struct query_memory *m)
{
	m->is_abandoned = true;
	if (m->n_answers == 0)
		free(m);
}

struct query_answer *query_answer_ref(struct query_answer *a)
{
	a->refs++;
	return a;
}

void query_answer_unref(struct query_answer *a)
{
	if (!a || --a->refs > 0)
		return;
	struct query_memory *m = a->memory;
	if (m) {
		m->bytes -= a->bytes;
		if (--m->n_answers == 0 && m->is_abandoned)
			free(m);
	}
	free(a);
}

static struct query_answer *answer_new(enum obs_state state, size_t n_series, size_t text_bytes)
{
	size_t bytes = sizeof(struct query_answer) + n_series * sizeof(struct obs_series) + text_bytes;
	struct query_answer *a = must_alloc(calloc(1, bytes));
	a->refs = 1;
	a->bytes = bytes;
	a->state = state;
	a->n_series = n_series;
	a->series = (struct obs_series *)(void *)(a + 1);
	a->detail = "";
	return a;
}

struct query_answer *query_answer_failed(enum obs_state state, const char *fmt, ...)
{
	struct query_answer *a = answer_new(state, 0, QUERY_DETAIL_BYTES);
	char *text = (char *)(a + 1);
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, QUERY_DETAIL_BYTES, fmt, args);
	va_end(args);
	a->detail = text;
	return a;
}

struct query_answer *query_answer_too_many(size_t max_series)
{
	struct query_answer *a = query_answer_failed(
	        OBS_TOO_MANY, "the answer has more than %zu series, which is the ceiling: aggregate in the query",
	        max_series);
	a->series = NULL;
	a->n_series = max_series;
	return a;
}

// Counts a new answer, unless it is small. When the memory is full, returns a failed answer in its place.
static struct query_answer *answer_count(struct query_memory *m, struct query_answer *a)
{
	if (a->bytes <= QUERY_ANSWER_SMALL_BYTES)
		return a;
	size_t max = a->bytes > QUERY_ANSWER_LARGE_BYTES ? QUERY_ANSWERS_BYTES_MAX / 2 : QUERY_ANSWERS_BYTES_MAX;
	if (a->bytes > max || m->bytes > max - a->bytes) {
		struct query_answer *failed = query_answer_failed(
		        OBS_FAILED,
		        "the answers that wait for other answers need %zu bytes with this one's %zu; the ceiling is "
		        "%zu: aggregate in the query",
		        m->bytes + a->bytes, a->bytes, max);
		query_answer_unref(a);
		return failed;
	}
	a->memory = m;
	m->bytes += a->bytes;
	m->n_answers++;
	return a;
}

// Returns the pod of a series. Prometheus renames dcgm-exporter's label when the target has a pod label of its own.
static const char *pod_of(const struct promql_series *s)
{
	const char *pod = promql_label(s, "exported_pod");
	return pod[0] ? pod : promql_label(s, "pod");
}

static int compare_pods(const void *a, const void *b)
{
	return strcmp(((const struct obs_series *)a)->pod, ((const struct obs_series *)b)->pod);
}

struct query_answer *query_answer_of(const struct promql_result *r, const int8_t *of, int index, size_t max_series,
                                     const char *recovered, struct query_memory *m)
{
	if (r->type != PROMQL_VECTOR && r->type != PROMQL_SCALAR)
		return query_answer_failed(OBS_FAILED,
		                           "the query returns a range or a string; a number per series is needed");
	if (r->n_warnings)
		return query_answer_failed(OBS_PARTIAL, "%s", r->warnings[0]);
	size_t n = 0, text = 0;
	int64_t newest_ms = INT64_MAX, extra_ms;
	for (size_t i = 0; i < r->n_series; i++) {
		if (of && of[i] != index)
			continue;
		if (freshness_is_series(&r->series[i], &extra_ms)) {
			newest_ms = extra_ms - r->clock_offset_ms;
			continue;
		}
		n++;
		text += strlen(pod_of(&r->series[i])) + 1;
	}
	if (n > max_series) // in a combined request, the limit applied to the sum
		return query_answer_too_many(max_series);
	// No series, and no data behind the query: of a server that has just started, this says nothing.
	if (n == 0 && newest_ms == INT64_MAX && recovered)
		return query_answer_failed(
		        OBS_FAILED, "source %s was down less than %d s ago and may not have scraped yet: no series",
		        recovered, PROMQL_SETTLES_MS / 1000);
	struct query_answer *a = answer_new(n ? OBS_OK : OBS_EMPTY, n, text);
	char *at = (char *)(a->series + n);
	size_t k = 0;
	for (size_t i = 0; i < r->n_series; i++) {
		const struct promql_series *s = &r->series[i];
		if ((of && of[i] != index) || freshness_is_series(s, &extra_ms) || s->n_samples == 0)
			continue;
		const char *pod = pod_of(s);
		size_t len = strlen(pod) + 1;
		memcpy(at, pod, len);
		int64_t t = s->samples[0].time_ms;
		a->series[k++] = (struct obs_series){
		        .pod = at, .value = s->samples[0].value, .time_ms = t < newest_ms ? t : newest_ms};
		at += len;
	}
	a->n_series = k;
	if (k > 1) // sorted, so that matching with pods is linear
		qsort(a->series, k, sizeof *a->series, compare_pods);
	return answer_count(m, a);
}
