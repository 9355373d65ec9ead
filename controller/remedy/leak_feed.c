// SPDX-License-Identifier: Apache-2.0
#include "controller/remedy/leak_feed.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "insight/leak.h"
#include "promql/promql_failover.h"

#define KEY_BYTES       512
#define ARENA_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define NAME_LETTERS    "abcdefghijklmnopqrstuvwxyz0123456789-."

// Selects the series of `m` that grew in the last two hours: most memory does not grow, and its history is not read.
// The threshold is lower than the growth of any leak that is reported (LEAK_SLOPE_MIN). The floor of each step is that
// of all samples.
#define GREW(m, mib) "(min_over_time(" m "[10m] @ end()) - min_over_time(" m "[10m] @ end() offset 2h) > " mib " * 64)"
#define SET_ASIDE    "{container!=\"\",container!=\"POD\"}"
#define CONTAINER    "container_memory_working_set_bytes" SET_ASIDE
// The kernel kills the container that reaches its own limit, whatever others in the pod use. kube-state-metrics names
// the pod in labels of its own, which Prometheus may have renamed.
#define BY "(namespace, pod, container, exported_namespace, exported_pod, exported_container) "

// The limits come first. GPU memory is in MiB.
static const struct {
	const char *limit, *used, *memory;
	double factor;
} inputs[] = {
        {"DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE",
         "min_over_time(DCGM_FI_DEV_FB_USED[2m]) and " GREW("DCGM_FI_DEV_FB_USED", "1"), "GPU", 1048576},
        {"max by " BY "(kube_pod_container_resource_limits{resource=\"memory\"})",
         "max by " BY "(min_over_time(" CONTAINER "[2m]) and " GREW(CONTAINER, "1048576") ")", "container", 1},
};
#define INPUTS (sizeof inputs / sizeof inputs[0])

static const char *const limit_labels[] = {
        "namespace", "pod",      "container", "exported_namespace", "exported_pod", "exported_container",
        "UUID",      "GPU_I_ID", NULL};

struct limit {
	const char *key;
	double bytes;
};

struct leak_feed {
	struct leak_feed_options options;
	size_t input; // in progress
	int64_t now_ms;
	struct err error;
	struct arena arena; // of keys
	struct limit *limits;
	size_t n_limits;
	struct leak_finding found[LEAK_FEED_MAX];
	size_t n_found;
};

struct leak_feed *leak_feed_new(const struct leak_feed_options *options, struct err *e)
{
	struct leak_feed *f = calloc(1, sizeof *f);
	if (!f) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	f->options = *options;
	arena_init(&f->arena, ARENA_BYTES_MAX);
	return f;
}

void leak_feed_free(struct leak_feed *f)
{
	if (!f)
		return;
	arena_done(&f->arena);
	free(f);
}

const struct leak_finding *leak_feed_findings(const struct leak_feed *f, size_t *ret_n)
{
	*ret_n = f->n_found;
	return f->found;
}

static int by_time_to_limit(const void *a, const void *b)
{
	const struct leak_finding *x = a, *y = b;
	if (x->hours_to_limit != y->hours_to_limit)
		return x->hours_to_limit < y->hours_to_limit ? -1 : 1;
	return strcmp(x->pod, y->pod);
}

static void finish(struct leak_feed *f)
{
	if (f->error.kind != ERR_NONE)
		f->n_found = 0;
	qsort(f->found, f->n_found, sizeof *f->found, by_time_to_limit);
	f->options.done(f->options.arg, f->error.kind == ERR_NONE ? NULL : &f->error);
}

// A label that the exporter set. Prometheus renames it when the target has one of that name.
static const char *own_label(const struct promql_series *s, const char *renamed, const char *name)
{
	const char *value = promql_label(s, renamed);
	return value[0] ? value : promql_label(s, name);
}

static bool is_name(const char *s)
{
	return s[0] && strspn(s, NAME_LETTERS) == strlen(s);
}

// Writes "namespace/name", which becomes part of a URL. Returns false for a series without a pod.
static bool read_pod(const struct promql_series *s, char out[LEAK_POD_BYTES])
{
	const char *space = own_label(s, "exported_namespace", "namespace"), *pod = own_label(s, "exported_pod", "pod");
	int n = snprintf(out, LEAK_POD_BYTES, "%s/%s", space, pod);
	return is_name(space) && is_name(pod) && n > 0 && n < LEAK_POD_BYTES;
}

static bool read_key(const struct promql_series *s, char out[KEY_BYTES])
{
	char pod[LEAK_POD_BYTES];
	int n = read_pod(s, pod)
	                ? snprintf(out, KEY_BYTES, "%s %s %s %s", pod, own_label(s, "exported_container", "container"),
	                           promql_label(s, "UUID"), promql_label(s, "GPU_I_ID"))
	                : -1;
	return n > 0 && n < KEY_BYTES;
}

// ---- the history of one series ----

static double find_limit(const struct leak_feed *f, const struct promql_series *s)
{
	char key[KEY_BYTES];
	if (!read_key(s, key))
		return 0;
	for (size_t i = 0; i < f->n_limits; i++)
		if (strcmp(f->limits[i].key, key) == 0)
			return f->limits[i].bytes;
	return 0;
}

// Keeps the nearest limit of a pod, and of all pods the nearest ones.
static void add(struct leak_feed *f, const struct leak_finding *one)
{
	size_t at = 0, last = 0;
	while (at < f->n_found && strcmp(f->found[at].pod, one->pod) != 0)
		at++;
	if (at == f->n_found && f->n_found == LEAK_FEED_MAX) {
		for (size_t i = 1; i < f->n_found; i++)
			last = by_time_to_limit(&f->found[i], &f->found[last]) > 0 ? i : last;
		at = last;
	}
	if (at == f->n_found)
		f->found[f->n_found++] = *one;
	else if (one->hours_to_limit < f->found[at].hours_to_limit)
		f->found[at] = *one;
}

static void take_past(struct leak_feed *f, const struct promql_series *s)
{
	struct leak leak = {0};
	struct leak_report report = {0};
	bool leaks = false;
	double limit = find_limit(f, s), factor = inputs[f->input].factor;
	if (limit <= 0 || s->n_samples == 0)
		return;
	for (size_t i = 0; i < s->n_samples; i++) {
		struct leak_report r = {0};
		enum leak_change change =
		        leak_add(&leak, s->samples[i].time_ms, s->samples[i].value * factor, limit, -1, &r);
		if (change == LEAK_FOUND)
			report = r;
		leaks = change == LEAK_NONE ? leaks : change == LEAK_FOUND;
	}
	struct leak_finding one = {.memory = inputs[f->input].memory, .bytes_per_hour = report.bytes_per_hour};
	if (!leaks || f->now_ms - leak.last_ms > LEAK_FEED_FRESH_MS || !read_pod(s, one.pod))
		return;
	one.hours_to_limit = fmax(0, limit - leak.last_bytes) / report.bytes_per_hour;
	if (one.hours_to_limit <= f->options.within_hours)
		add(f, &one);
}

// ---- the queries, one after the other ----

static void ask_limits(struct leak_feed *f);

static bool is_whole(struct leak_feed *f, const struct promql_result *result, const struct err *error)
{
	promql_result_check(result, error, &f->error);
	return f->error.kind == ERR_NONE;
}

static void on_past(void *arg, const struct promql_result *result, const struct err *error)
{
	struct leak_feed *f = arg;
	if (is_whole(f, result, error))
		for (size_t i = 0; i < result->n_series; i++)
			take_past(f, &result->series[i]);
	f->input++;
	ask_limits(f);
}

static void take_limits(struct leak_feed *f, const struct promql_result *result)
{
	arena_reset(&f->arena);
	f->n_limits = 0;
	f->limits = arena_calloc(&f->arena, result->n_series + 1, sizeof *f->limits);
	for (size_t i = 0; f->limits && i < result->n_series; i++) {
		const struct promql_series *s = &result->series[i];
		double bytes = s->n_samples ? s->samples[0].value * inputs[f->input].factor : 0;
		char key[KEY_BYTES];
		if (!isfinite(bytes) || bytes <= 0 || !read_key(s, key))
			continue;
		f->limits[f->n_limits] = (struct limit){arena_strdup(&f->arena, key), bytes};
		if (!f->limits[f->n_limits++].key)
			f->limits = NULL;
	}
	if (!f->limits)
		err_set(&f->error, ERR_LIMIT, "the memory limits of the pods take more memory than allowed");
}

static void on_limits(void *arg, const struct promql_result *result, const struct err *error)
{
	struct leak_feed *f = arg;
	const struct promql_ticket ticket = {.is_slow = true};
	int64_t end_ms = f->now_ms / LEAK_FEED_STEP_MS * LEAK_FEED_STEP_MS;
	if (is_whole(f, result, error))
		take_limits(f, result);
	if (f->error.kind != ERR_NONE ||
	    promql_failover_ask_range(f->options.source, inputs[f->input].used, end_ms - LEAK_FEED_SINCE_MS, end_ms,
	                              LEAK_FEED_STEP_MS, &ticket, on_past, f, &f->error) < 0)
		finish(f);
}

static void ask_limits(struct leak_feed *f)
{
	const struct promql_ticket ticket = {.wait_ms = 0};
	if (f->error.kind != ERR_NONE || f->input == INPUTS) {
		finish(f);
		return;
	}
	const struct promql_question question = {.query = inputs[f->input].limit, .labels = limit_labels};
	if (promql_failover_ask(f->options.source, &question, &ticket, on_limits, f, &f->error) < 0)
		finish(f);
}

void leak_feed_start(struct leak_feed *f, int64_t now_ms)
{
	f->now_ms = now_ms;
	f->input = f->n_found = 0;
	err_clear(&f->error);
	ask_limits(f);
}
