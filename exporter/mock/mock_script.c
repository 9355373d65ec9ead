// SPDX-License-Identifier: Apache-2.0
#include "exporter/mock/mock_script.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "exporter/device.h"

// Two GPUs whose load rises and falls slowly; every family has values.
static const char builtin[] =
        "gpus:\n"
        "- series: {DCGM_FI_DEV_GPU_UTIL: {sine: {mean: 55, amplitude: 40, period: 10m}}}\n"
        "- series: {DCGM_FI_DEV_GPU_UTIL: {sine: {mean: 45, amplitude: 35, period: 7m, phase: 2m}}}\n";

struct decoding {
	struct arena *a;
	const char *base_dir;
	struct schema_errors *errors;
};

static void out_of_memory(struct decoding *d, const struct doc_node *node, const char *path)
{
	schema_report(d->errors, node, path, "the script exceeds the ceiling of %d bytes of memory",
	              MOCK_SCRIPT_BYTES_MAX);
}

// A series is a scalar in promtool's notation, or a map {sine: {...}}.
static void decode_series(struct decoding *d, const struct doc_node *node, const char *path, int64_t step_ms, bool loop,
                          struct mock_series *ret_series)
{
	struct err e;
	if (node->kind == DOC_SCALAR) {
		if (mock_series_parse(d->a, node->text, (double)step_ms, loop, 1, ret_series, &e) < 0)
			schema_report(d->errors, node, path, "%s", e.msg);
		return;
	}
	if (node->kind != DOC_MAP) {
		schema_report(
		        d->errors, node, path,
		        "a series is text such as '0+10x9 90x20' or {sine: {mean: 50, amplitude: 40, period: 10m}}");
		return;
	}
	struct mock_series_map map = {0};
	if (schema_decode(&mock_series_schema, node, &map, d->a, d->errors, path) == 0)
		mock_series_init_sine(ret_series, map.sine.mean, map.sine.amplitude, (double)map.sine.period_ms,
		                      (double)map.sine.phase_ms);
}

// A map from a field name to a series.
static void decode_series_map(struct decoding *d, const struct mock_script *s, const struct doc_node *node,
                              const char *path, const struct mock_series **ret_series)
{
	if (!node)
		return;
	if (node->kind != DOC_MAP) {
		schema_report(d->errors, node, path, "must be a map from a field name to a series");
		return;
	}
	for (const struct doc_node *c = node->child; c; c = c->next) {
		enum field f = family_find(c->key);
		char child[224];
		snprintf(child, sizeof child, "%s.%s", path, c->key);
		if (f == FIELD__COUNT) {
			// Errors above the limit are only counted and need no suggestion.
			const char *closest = d->errors->n < SCHEMA_ERRORS_MAX ? family_closest_name(c->key) : NULL;
			schema_report(d->errors, c, path, "no field \"%s\"%s%s%s", c->key,
			              closest ? "; did you mean \"" : "", closest ? closest : "", closest ? "\"?" : "");
			continue;
		}
		struct mock_series *series = arena_alloc(d->a, sizeof *series);
		if (!series) {
			out_of_memory(d, c, child);
			return;
		}
		decode_series(d, c, child, s->step_ms, s->loop, series);
		ret_series[f] = series;
	}
}

static void decode_gpu(struct decoding *d, struct mock_script *s, size_t index)
{
	struct mock_gpu *g = &s->gpus[index];
	char path[128];
	snprintf(path, sizeof path, "gpus[%zu].series", index);
	decode_series_map(d, s, g->series_node, path, g->series);
	for (size_t k = 0; k < g->n_instances; k++) {
		snprintf(path, sizeof path, "gpus[%zu].instances[%zu].series", index, k);
		decode_series_map(d, s, g->instances[k].series_node, path, g->instances[k].series);
	}
}

// Resolves a file name relative to the script.
static const char *resolve(struct decoding *d, const char *path)
{
	if (!path || !path[0] || path[0] == '/' || !d->base_dir[0])
		return path;
	return arena_printf(d->a, "%s/%s", d->base_dir, path);
}

static void decode_demand(struct decoding *d, const struct doc_node *node, struct mock_workload *w)
{
	struct mock_demand *m = &w->demand;
	const struct doc_node *at = doc_get(node, "demand");
	double step_ms = (double)m->step_ms / m->time_scale;
	struct err e;
	int rc = 0;
	if (m->csv) {
		const char *path = resolve(d, m->csv);
		at = doc_get(at, "csv");
		if (!path)
			rc = err_set(&e, ERR_LIMIT, "the script exceeds its memory");
		else
			rc = mock_series_read_csv(d->a, path, m->column, step_ms, m->loop, m->scale, &w->demand_series,
			                          &e);
	} else if (m->series) {
		at = doc_get(at, "series");
		rc = mock_series_parse(d->a, m->series, step_ms, m->loop, m->scale, &w->demand_series, &e);
	} else {
		mock_series_init_sine(&w->demand_series, m->sine.mean * m->scale, m->sine.amplitude * m->scale,
		                      (double)m->sine.period_ms / m->time_scale,
		                      (double)m->sine.phase_ms / m->time_scale);
	}
	if (rc < 0)
		schema_report(d->errors, at, m->csv ? "workload.demand.csv" : "workload.demand.series", "%s", e.msg);
}

static void check_gpu_index(struct decoding *d, const struct doc_node *root, const char *list, size_t i, int32_t gpu,
                            int32_t n_boards)
{
	if (gpu < n_boards)
		return;
	const struct doc_node *item = doc_get(root, list);
	item = item ? item->child : NULL;
	for (size_t k = 0; item && k < i; k++)
		item = item->next;
	char path[64];
	snprintf(path, sizeof path, "%s[%zu].gpu", list, i);
	schema_report(d->errors, doc_get(item, "gpu"), path, "there are %d GPUs, the last one is %d", (int)n_boards,
	              (int)n_boards - 1);
}

struct fault_check {
	struct decoding *d;
	const struct doc_node *root;
	int32_t n_boards;
};

static void check_fault(void *arg, const char *list, size_t i, const struct mock_fault *fault)
{
	const struct fault_check *c = arg;
	check_gpu_index(c->d, c->root, list, i, fault->gpu, c->n_boards);
}

static void decode_rest(struct decoding *d, const struct doc_node *root, struct mock_script *s)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		s->n_boards += s->gpus[i].count;
		s->n_devices += s->gpus[i].count * (1 + (int32_t)s->gpus[i].n_instances);
		decode_gpu(d, s, i);
	}
	if (s->n_devices > DEVICES_MAX)
		schema_report(d->errors, doc_get(root, "gpus"), "gpus", "%d GPUs and MIG instances, the ceiling is %d",
		              (int)s->n_devices, DEVICES_MAX);
	for (size_t i = 0; i < s->n_xids; i++)
		check_gpu_index(d, root, "xids", i, s->xids[i].gpu, s->n_boards);
	for (size_t i = 0; i < s->n_losses; i++)
		check_gpu_index(d, root, "losses", i, s->losses[i].gpu, s->n_boards);
	mock_faults_for_each(&s->faults, check_fault, &(struct fault_check){d, root, s->n_boards});
	if (s->has_workload) {
		struct mock_replicas_source *r = &s->workload.replicas;
		decode_demand(d, doc_get(root, "workload"), &s->workload);
		r->file = resolve(d, r->file);
		r->token_file = resolve(d, r->token_file);
		r->ca_file = resolve(d, r->ca_file);
	}
}

int mock_script_parse(struct arena *a, const char *name, const char *base_dir, const char *text, size_t len,
                      struct mock_script *ret_script, struct buf *ret_errors, struct err *e)
{
	struct doc_file file;
	if (doc_parse_yaml(a, name, text, len, &file, e) < 0)
		return -1;
	if (file.n_roots != 1)
		return err_set(e, ERR_INPUT, "%s: %zu documents, a mock script is one", name, file.n_roots);
	struct schema_errors *errors = arena_alloc(a, sizeof *errors);
	if (!errors)
		return err_no_memory(e);
	schema_errors_init(errors, name);
	struct decoding d = {.a = a, .base_dir = base_dir, .errors = errors};
	*ret_script = (struct mock_script){0};
	if (schema_decode(&mock_script_schema, file.roots[0], ret_script, a, errors, "") == 0)
		decode_rest(&d, file.roots[0], ret_script);
	if (errors->n == 0)
		return 0;
	schema_errors_print(errors, ret_errors);
	return err_set(e, ERR_INPUT, "%s: %zu errors", name, errors->n + errors->dropped);
}

int mock_script_read(struct arena *a, const char *path, struct mock_script *ret_script, struct buf *ret_errors,
                     struct err *e)
{
	if (!path)
		return mock_script_parse(a, "built-in", "", builtin, sizeof builtin - 1, ret_script, ret_errors, e);
	struct buf text;
	buf_init(&text, DOC_BYTES_MAX);
	const char *slash = strrchr(path, '/');
	// "/script.yaml" has the base directory "/".
	char *base_dir = arena_strndup(a, path, !slash ? 0 : slash == path ? 1 : (size_t)(slash - path));
	int rc = base_dir ? 0 : err_no_memory(e);
	if (rc == 0)
		rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = mock_script_parse(a, path, base_dir, buf_str(&text), text.len, ret_script, ret_errors, e);
	buf_done(&text);
	return rc;
}
