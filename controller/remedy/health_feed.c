// SPDX-License-Identifier: Apache-2.0
#include "controller/remedy/health_feed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/health_table.h"
#include "base/num.h"
#include "promql/promql_source.h"
#include "remedy/plan/remedy_evidence.h"
#include "remedy/plan/remedy_fleet.h"
#include "remedy/plan/remedy_fold.h"

#define SAMPLES_MAX     40000
#define ARENA_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define POD_BYTES       317
#define WHOLE_MAX       9007199254740991.0
#define LABELS_MAX      10

// In the order in which one GPU's samples are folded.
enum sample_kind { SAMPLE_UP, SAMPLE_XID, SAMPLE_XID_COUNT, SAMPLE_CONDITION, SAMPLE_POD };

struct sample {
	const char *node, *uuid;
	enum sample_kind kind;
	int32_t id;      // XID, or row of the first condition of the family
	double value;    // 1 = up; seconds since the epoch; count; value of the family
	const char *pod; // namespace/name
};

// GPUs of exporters that work; those of an exporter without a driver are unknown, not lost.
#define UP_QUERY  "gpuscale_gpu_up and on (job, instance) (gpuscale_exporter_up == 1)"
#define XID_QUERY "{__name__=~\"gpuscale_gpu_xid_errors_total|gpuscale_gpu_xid_last_timestamp_seconds\"} > 0"
#define XID_TIME  "gpuscale_gpu_xid_last_timestamp_seconds"
#define POD_QUERY "gpuscale_gpu_pod_share"

struct query {
	struct health_feed *feed;
	enum sample_kind kind;
	int32_t row; // of a condition
	char text[160];
};
#define QUERIES_MAX 16

struct health_feed {
	struct health_feed_options options;
	struct query queries[QUERIES_MAX];
	size_t n_queries, n_open;
	struct promql_source *server; // that is being asked
	bool was_empty;               // a server of this round answered, but named no GPU
	struct err error;             // of the round
	const char *labels[LABELS_MAX];
	struct arena arena;
	struct sample *samples;
	size_t n_samples, cap;
};

static void add_query(struct health_feed *f, enum sample_kind kind, int32_t row, const char *text)
{
	struct query *q = &f->queries[f->n_queries++];
	*q = (struct query){.feed = f, .kind = kind, .row = row};
	snprintf(q->text, sizeof q->text, "%s", text);
}

struct health_feed *health_feed_new(const struct health_feed_options *options, struct err *e)
{
	size_t n;
	const struct health_condition *rows = health_condition_table(&n);
	struct health_feed *f = calloc(1, sizeof *f);
	if (!f) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	f->options = *options;
	const char *const labels[LABELS_MAX] = {"__name__",          "UUID", "GPU_I_ID",           "xid",
	                                        "namespace",         "pod",  "exported_namespace", "exported_pod",
	                                        options->node_label, NULL};
	memcpy(f->labels, labels, sizeof labels);
	arena_init(&f->arena, ARENA_BYTES_MAX);
	add_query(f, SAMPLE_UP, 0, UP_QUERY);
	add_query(f, SAMPLE_XID, 0, XID_QUERY);
	add_query(f, SAMPLE_POD, 0, POD_QUERY);
	for (size_t i = 0; i < n && f->n_queries < QUERIES_MAX; i++) {
		bool is_first = rows[i].family && rows[i].action >= HEALTH_RESET_IDLE;
		for (size_t k = 0; is_first && k < i; k++)
			is_first = !rows[k].family || strcmp(rows[k].family, rows[i].family) != 0;
		if (is_first)
			add_query(f, SAMPLE_CONDITION, (int32_t)i, rows[i].family);
	}
	return f;
}

void health_feed_free(struct health_feed *f)
{
	if (!f)
		return;
	free(f->samples);
	arena_done(&f->arena);
	free(f);
}

// ---- one answer ----

static struct sample *new_sample(struct health_feed *f)
{
	if (f->n_samples == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 256;
		struct sample *more = cap > SAMPLES_MAX ? NULL : realloc(f->samples, cap * sizeof *more);
		if (!more) {
			err_set(&f->error, ERR_LIMIT, "the health series have more than %d samples", SAMPLES_MAX);
			return NULL;
		}
		f->samples = more;
		f->cap = cap;
	}
	struct sample *s = &f->samples[f->n_samples];
	memset(s, 0, sizeof *s);
	return s;
}

// A label that the exporter set. Prometheus renames it when the target has one of that name.
static const char *own_label(const struct promql_series *s, const char *name)
{
	char renamed[64];
	snprintf(renamed, sizeof renamed, "exported_%s", name);
	const char *value = promql_label(s, renamed);
	return value[0] ? value : promql_label(s, name);
}

static bool read_xid(const struct promql_series *series, struct sample *s)
{
	const char *text = promql_label(series, "xid");
	struct err e;
	int64_t code;
	if (num_parse_i64(text, strlen(text), 0, INT32_MAX, &code, &e) < 0)
		return false; // "other": the exporter counts further codes together
	if (strcmp(promql_label(series, "__name__"), XID_TIME) != 0)
		s->kind = SAMPLE_XID_COUNT;
	s->id = (int32_t)code;
	return remedy_evidence_worst(s->id) >= HEALTH_RESET_IDLE;
}

static bool read_pod(struct health_feed *f, const struct promql_series *series, struct sample *s)
{
	char name[POD_BYTES + 1];
	const char *space = own_label(series, "namespace"), *pod = own_label(series, "pod");
	int n = snprintf(name, sizeof name, "%s/%s", space, pod);
	if (!space[0] || !pod[0] || n < 0 || (size_t)n >= sizeof name)
		return false;
	s->pod = arena_strdup(&f->arena, name);
	return true;
}

static void take_series(struct health_feed *f, const struct query *q, const struct promql_series *series,
                        int64_t offset_ms)
{
	const char *node = promql_label(series, f->options.node_label), *uuid = promql_label(series, "UUID");
	double value = series->n_samples ? series->samples[0].value : NAN;
	struct sample *s = new_sample(f);
	if (!s)
		return;
	s->kind = q->kind;
	s->id = q->row;
	bool is_mig = promql_label(series, "GPU_I_ID")[0] != '\0' && q->kind != SAMPLE_POD;
	if (!node[0] || !uuid[0] || strlen(uuid) >= REMEDY_UUID_BYTES || is_mig || !isfinite(value) ||
	    (q->kind == SAMPLE_XID && !read_xid(series, s)) || (q->kind == SAMPLE_POD && !read_pod(f, series, s)))
		return;
	s->value = s->kind == SAMPLE_XID ? value - (double)offset_ms / 1000 : value;
	s->node = arena_strdup(&f->arena, node);
	s->uuid = arena_strdup(&f->arena, uuid);
	if (!s->node || !s->uuid || (s->kind == SAMPLE_POD && !s->pod))
		err_set(&f->error, ERR_LIMIT, "the health series do not fit into the memory allowed");
	else
		f->n_samples++;
}

static int by_gpu(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int order = strcmp(x->node, y->node);
	order = order ? order : strcmp(x->uuid, y->uuid);
	if (order)
		return order;
	// An XID and its count come together.
	bool x_is_xid = x->kind == SAMPLE_XID || x->kind == SAMPLE_XID_COUNT;
	bool y_is_xid = y->kind == SAMPLE_XID || y->kind == SAMPLE_XID_COUNT;
	if (x_is_xid && y_is_xid && x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static void ask(struct health_feed *f, struct promql_source *server);

static bool has_gpus(const struct health_feed *f)
{
	for (size_t i = 0; i < f->n_samples; i++)
		if (f->samples[i].kind == SAMPLE_UP)
			return true;
	return false;
}

// A server that has just started, without its data, names no GPUs: then the next server is asked, too.
static void finish(struct health_feed *f)
{
	if (--f->n_open > 0)
		return;
	bool is_failed = f->error.kind != ERR_NONE, is_empty = !is_failed && !has_gpus(f);
	struct promql_source *next = promql_source_next(f->server);
	f->was_empty |= is_empty;
	if ((is_empty || is_failed) && f->error.kind != ERR_CANCELED && next) {
		ask(f, next);
		return;
	}
	if (is_failed)
		f->n_samples = 0;
	if (is_failed && f->was_empty && f->error.kind != ERR_CANCELED)
		err_clear(&f->error);
	if (f->n_samples > 1)
		qsort(f->samples, f->n_samples, sizeof *f->samples, by_gpu);
	f->options.done(f->options.arg, f->error.kind == ERR_NONE ? NULL : &f->error);
}

static void on_answer(void *arg, const struct promql_result *result, const struct err *error)
{
	const struct query *q = arg;
	struct health_feed *f = q->feed;
	promql_result_check(result, error, &f->error);
	for (size_t i = 0; result && f->error.kind == ERR_NONE && i < result->n_series; i++)
		take_series(f, q, &result->series[i], result->clock_offset_ms);
	finish(f);
}

static void ask(struct health_feed *f, struct promql_source *server)
{
	f->server = server;
	f->n_samples = 0;
	f->n_open = 1;
	arena_reset(&f->arena);
	err_clear(&f->error);
	for (size_t i = 0; i < f->n_queries; i++) {
		const struct promql_question question = {.query = f->queries[i].text, .labels = f->labels};
		const struct promql_ticket ticket = {.wait_ms = 0};
		struct err e;
		if (promql_source_ask(f->server, &question, &ticket, on_answer, &f->queries[i], &e) == 0)
			f->n_open++;
		else
			f->error = e;
	}
	finish(f);
}

void health_feed_start(struct health_feed *f)
{
	f->was_empty = false;
	ask(f, f->options.source);
}

// ---- a complete round ----

static void fold_xid(struct remedy *r, const struct sample *s, const struct sample *next, size_t *ret_used)
{
	bool has_count = next && next->kind == SAMPLE_XID_COUNT && next->id == s->id &&
	                 strcmp(next->uuid, s->uuid) == 0 && strcmp(next->node, s->node) == 0;
	const struct remedy_event event = {.node = s->node,
	                                   .gpu = s->uuid,
	                                   .xid = s->id,
	                                   .value = has_count && next->value < WHOLE_MAX ? (int64_t)next->value : -1,
	                                   .at_ms = s->value < WHOLE_MAX / 1000 ? (int64_t)(s->value * 1000)
	                                                                        : INT64_MAX};
	*ret_used += remedy_fold_event(r, &event) == REMEDY_NO_REASON;
}

static void fold_condition(struct remedy *r, const struct sample *s, const char *reason, int64_t value,
                           size_t *ret_used)
{
	const struct remedy_event event = {
	        .node = s->node, .gpu = s->uuid, .condition = reason, .value = value, .at_ms = r->now_ms};
	*ret_used += remedy_fold_event(r, &event) == REMEDY_NO_REASON && value > 0;
}

// The samples [from, to) of one node.
static void fold_node(struct health_feed *f, struct remedy *r, size_t from, size_t to,
                      struct health_feed_result *result)
{
	size_t n_rows;
	const struct health_condition *rows = health_condition_table(&n_rows);
	const char *uuids[REMEDY_GPUS_MAX];
	size_t n_uuids = 0;
	for (size_t i = from; i < to; i++)
		if (f->samples[i].kind == SAMPLE_UP && n_uuids < REMEDY_GPUS_MAX)
			uuids[n_uuids++] = f->samples[i].uuid;
	if (n_uuids == 0)
		return; // the exporter does not work: nothing else that it reports counts
	remedy_fold_telemetry(r, f->samples[from].node, uuids, n_uuids, false);
	result->n_gpus += n_uuids;
	for (size_t i = from; i < to; i++) {
		const struct sample *s = &f->samples[i];
		if (s->kind == SAMPLE_UP)
			fold_condition(r, s, rows[HEALTH_GPU_LOST].reason, s->value == 0, &result->n_faults);
		else if (s->kind == SAMPLE_XID)
			fold_xid(r, s, i + 1 < to ? s + 1 : NULL, &result->n_faults);
		else if (s->kind == SAMPLE_CONDITION)
			fold_condition(r, s, rows[s->id].reason,
			               s->value >= 0 && s->value < WHOLE_MAX ? (int64_t)s->value : 0,
			               &result->n_faults);
	}
}

// The first sample of the node, or where it would be.
static size_t first_of(const struct health_feed *f, const char *node)
{
	size_t low = 0, high = f->n_samples;
	while (low < high) {
		size_t at = low + (high - low) / 2;
		if (strcmp(f->samples[at].node, node) < 0)
			low = at + 1;
		else
			high = at;
	}
	return low;
}

void health_feed_fold(struct health_feed *f, struct remedy *r, struct health_feed_result *ret_result)
{
	*ret_result = (struct health_feed_result){.n_gpus = 0};
	for (size_t from = 0, to; from < f->n_samples; from = to) {
		const char *name = f->samples[from].node;
		for (to = from + 1; to < f->n_samples && strcmp(f->samples[to].node, name) == 0; to++)
			;
		const struct remedy_node *n = remedy_fleet_find(r, name);
		if (n && !n->is_gone)
			fold_node(f, r, from, to, ret_result);
		else if (ret_result->n_unknown++ == 0)
			ret_result->unknown = name;
	}
}

size_t health_feed_node_gpus(const struct health_feed *f, const char *node, const char **ret_uuids, size_t max)
{
	size_t n = 0;
	for (size_t i = first_of(f, node); i < f->n_samples && n < max && strcmp(f->samples[i].node, node) == 0; i++)
		if (f->samples[i].kind == SAMPLE_UP)
			ret_uuids[n++] = f->samples[i].uuid;
	return n;
}

size_t health_feed_pod_gpus(const struct health_feed *f, const char *node, const char *pod, const char **ret_uuids,
                            size_t max)
{
	size_t n = 0;
	for (size_t i = first_of(f, node); i < f->n_samples && n < max && strcmp(f->samples[i].node, node) == 0; i++) {
		const struct sample *s = &f->samples[i];
		if (s->kind == SAMPLE_POD && strcmp(s->pod, pod) == 0)
			ret_uuids[n++] = s->uuid;
	}
	return n;
}
