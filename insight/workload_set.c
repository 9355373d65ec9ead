// SPDX-License-Identifier: Apache-2.0
#include "insight/workload_set.h"

#include <math.h>

#include "base/base.h"
#include "promql/promql.h"

void workload_set_init(struct workload_set *s)
{
	memset(s, 0, sizeof *s);
	arena_init(&s->names, WORKLOAD_BYTES_MAX);
}

void workload_set_done(struct workload_set *s)
{
	free(s->gpus);
	free(s->workloads);
	arena_done(&s->names);
}

static void clear(double *values)
{
	for (size_t i = 0; i < MEASURE__COUNT; i++)
		values[i] = NAN;
}

// ---- owners ----

struct holder {
	const char *namespace_name, *name;
};

static const char *first_of(const char *a, const char *b)
{
	return a[0] ? a : b;
}

// As gpu:owner:info of the rules.
static struct holder holder_of(const struct promql_series *s, struct arena *names)
{
	const char *exported = promql_label(s, "exported_pod"), *pod = promql_label(s, "pod");
	const char *host = first_of(promql_label(s, "Hostname"), promql_label(s, "hostname"));
	if (exported[0])
		return (struct holder){arena_strdup(names, promql_label(s, "exported_namespace")),
		                       arena_strdup(names, exported)};
	if (pod[0] && !promql_label(s, "is")[0])
		return (struct holder){arena_strdup(names, promql_label(s, "namespace")), arena_strdup(names, pod)};
	const char *instance = promql_label(s, "GPU_I_ID");
	return (struct holder){"", arena_printf(names, "%s/gpu%s%s%s", host, promql_label(s, "gpu"),
	                                        instance[0] ? "/" : "", instance)};
}

int workload_set_add_owner(void *set, const struct promql_series *series, struct err *e)
{
	struct workload_set *s = set;
	if (s->n_gpus == WORKLOADS_MAX)
		return err_set(e, ERR_LIMIT,
		               "more than %d GPUs with their pods: restrict the Prometheus to one cluster",
		               WORKLOADS_MAX);
	if (alloc_reserve(&s->gpus, s->n_gpus, &s->cap_gpus, sizeof *s->gpus, 256) < 0)
		return err_no_memory(e);
	if (alloc_reserve(&s->workloads, s->n, &s->cap, sizeof *s->workloads, 256) < 0)
		return err_no_memory(e);
	struct holder h = holder_of(series, &s->names);
	const char *host = first_of(promql_label(series, "Hostname"), promql_label(series, "hostname"));
	struct workload_gpu g = {.uuid = arena_strdup(&s->names, promql_label(series, "UUID")),
	                         .instance = arena_strdup(&s->names, promql_label(series, "GPU_I_ID")),
	                         .model = arena_strdup(&s->names, promql_label(series, "modelName")),
	                         .host = arena_strdup(&s->names, host),
	                         .workload = s->n};
	if (!h.namespace_name || !h.name || !g.uuid || !g.instance || !g.model || !g.host)
		return err_no_memory(e);
	clear(g.values);
	s->gpus[s->n_gpus++] = g;
	s->workloads[s->n] =
	        (struct workload){.namespace_name = h.namespace_name, .name = h.name, .job = "", .rank = ""};
	clear(s->workloads[s->n].values);
	s->n++;
	return 0;
}

// ---- index ----

static int compare_workloads(const void *a, const void *b)
{
	const struct workload *x = a, *y = b;
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

static int compare_devices(const struct workload_gpu *a, const struct workload_gpu *b)
{
	int c = strcmp(a->uuid, b->uuid);
	return c ? c : strcmp(a->instance, b->instance);
}

static int compare_gpus(const void *a, const void *b)
{
	const struct workload_gpu *x = a, *y = b;
	int c = compare_devices(x, y);
	return c ? c : (x->workload > y->workload) - (x->workload < y->workload);
}

static struct workload *find_workload(struct workload_set *s, const char *namespace_name, const char *name)
{
	const struct workload key = {.namespace_name = namespace_name, .name = name};
	return s->n ? bsearch(&key, s->workloads, s->n, sizeof key, compare_workloads) : NULL;
}

// While a set is added to, gpus[i] and workloads[i] belong together.
int workload_set_index(struct workload_set *s, struct err *e)
{
	struct workload *all = s->n ? malloc(s->n * sizeof *all) : NULL;
	if (s->n == 0)
		return 0;
	if (!all)
		return err_no_memory(e);
	memcpy(all, s->workloads, s->n * sizeof *all);
	qsort(s->workloads, s->n, sizeof *s->workloads, compare_workloads);
	size_t kept = 0;
	for (size_t i = 0; i < s->n; i++)
		if (kept == 0 || compare_workloads(&s->workloads[kept - 1], &s->workloads[i]) != 0)
			s->workloads[kept++] = s->workloads[i];
	s->n = kept;
	for (size_t i = 0; i < s->n_gpus; i++) {
		const struct workload *w = find_workload(s, all[i].namespace_name, all[i].name);
		s->gpus[i].workload = (size_t)(w - s->workloads);
	}
	free(all);
	qsort(s->gpus, s->n_gpus, sizeof *s->gpus, compare_gpus);
	// The same device and holder, of two exporters or with two labels that changed, counts once.
	kept = 0;
	for (size_t i = 0; i < s->n_gpus; i++)
		if (kept == 0 || compare_gpus(&s->gpus[kept - 1], &s->gpus[i]) != 0)
			s->gpus[kept++] = s->gpus[i];
	s->n_gpus = kept;
	for (size_t i = 0, end; i < s->n_gpus; i = end) {
		for (end = i; end < s->n_gpus && compare_devices(&s->gpus[i], &s->gpus[end]) == 0; end++)
			;
		for (size_t k = i; k < end; k++) {
			s->gpus[k].holders = (int)(end - i);
			s->workloads[s->gpus[k].workload].n_gpus++;
		}
	}
	return 0;
}

// ---- labels ----

static int identify(struct workload_set *s, struct workload *w, const struct promql_series *labels, struct err *e)
{
	struct training_pod pod = {.pod = w->name, .labels = labels};
	struct training_rank rank;
	training_rank_identify(&pod, &rank);
	w->job = arena_strdup(&s->names, rank.job);
	w->rank = arena_strdup(&s->names, rank.rank);
	return w->job && w->rank ? 0 : err_no_memory(e);
}

int workload_set_add_labels(void *set, const struct promql_series *series, struct err *e)
{
	struct workload_set *s = set;
	struct workload *w = find_workload(s, promql_label(series, "namespace"), promql_label(series, "pod"));
	return w && w->namespace_name[0] ? identify(s, w, series, e) : 0;
}

// ---- measures ----

// The first entry of a GPU, or of one instance of it; n_gpus when there is none. instance NULL: any.
static size_t find_gpu(const struct workload_set *s, const char *uuid, const char *instance)
{
	size_t low = 0, high = s->n_gpus;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = strcmp(s->gpus[mid].uuid, uuid);
		if (c == 0 && instance)
			c = strcmp(s->gpus[mid].instance, instance);
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void add_device_value(struct workload_set *s, enum verdict_measure m, const struct promql_series *series)
{
	const char *uuid = promql_label(series, "UUID");
	const char *instance = verdict_measures[m].scope == SCOPE_GPU ? NULL : promql_label(series, "GPU_I_ID");
	for (size_t i = find_gpu(s, uuid, instance); i < s->n_gpus && strcmp(s->gpus[i].uuid, uuid) == 0 &&
	                                             (!instance || strcmp(s->gpus[i].instance, instance) == 0);
	     i++)
		s->gpus[i].values[m] = series->samples[0].value;
}

static void add_node_value(struct workload_set *s, enum verdict_measure m, const struct promql_series *series)
{
	const char *node = promql_label(series, "nodename");
	for (size_t i = 0; i < s->n_gpus; i++)
		if (strcmp(s->gpus[i].host, node) == 0)
			s->gpus[i].values[m] = series->samples[0].value;
}

void workload_set_add_value(struct workload_set *s, enum verdict_measure m, const struct promql_series *series)
{
	if (series->n_samples == 0 || !isfinite(series->samples[0].value))
		return;
	enum measure_scope scope = verdict_measures[m].scope;
	if (scope == SCOPE_NODE) {
		add_node_value(s, m, series);
	} else if (scope != SCOPE_POD) {
		add_device_value(s, m, series);
	} else {
		struct workload *w = find_workload(s, promql_label(series, "namespace"), promql_label(series, "pod"));
		if (w)
			w->values[m] = series->samples[0].value;
	}
}

// Adds the value of one more GPU; `n` counts those with a value.
static void fold(double *sum, enum measure_fold how, double value, size_t *n)
{
	if (isnan(value))
		return;
	if ((*n)++ == 0)
		*sum = value;
	else if (how == FOLD_AVG)
		*sum += value;
	else if (how == FOLD_MAX ? value > *sum : value < *sum)
		*sum = value;
}

static void fold_measure(struct workload_set *s, enum verdict_measure m, size_t *counts)
{
	enum measure_fold how = verdict_measures[m].fold;
	memset(counts, 0, s->n * sizeof *counts);
	for (size_t i = 0; i < s->n_gpus; i++) {
		size_t w = s->gpus[i].workload;
		fold(&s->workloads[w].values[m], how, s->gpus[i].values[m], &counts[w]);
	}
	for (size_t w = 0; how == FOLD_AVG && w < s->n; w++)
		if (counts[w] > 0)
			s->workloads[w].values[m] /= (double)counts[w];
}

int workload_set_decide(struct workload_set *s, struct err *e)
{
	size_t *counts = s->n ? calloc(s->n, sizeof *counts) : NULL;
	if (s->n && !counts)
		return err_no_memory(e);
	for (int m = 0; m < MEASURE__COUNT; m++)
		if (verdict_measures[m].scope != SCOPE_POD)
			fold_measure(s, (enum verdict_measure)m, counts);
	free(counts);
	for (size_t i = 0; i < s->n; i++) {
		struct workload *w = &s->workloads[i];
		w->row = verdict_decide(w->values);
		if (w->namespace_name[0] && !w->job[0] && identify(s, w, NULL, e) < 0)
			return -1;
	}
	return 0;
}
