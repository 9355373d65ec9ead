// SPDX-License-Identifier: Apache-2.0
#include "remedy/agent/health_feed.h"

#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/health_table.h"
#include "promql/confine.h"
#include "promql/promql_source.h"
#include "remedy/plan/remedy_state.h"

#define QUERIES_MAX 16
// Of one response: 1,500 nodes with 8 GPUs, and about what fits PROMQL_ANSWER_BYTES_MAX.
#define SERIES_MAX      12000
#define SAMPLES_MAX     ((size_t)QUERIES_MAX * SERIES_MAX)
#define ARENA_BYTES_MAX (SAMPLES_MAX * 160) // names of node, GPU, exporter and pod
#define NODE_BYTES      253                 // length of a node's name
#define POD_BYTES       317
#define EXPORTER_BYTES  512
#define WHOLE_MAX       9007199254740991.0
#define LABELS_MAX      12
#define GPUS_MAX        (REMEDY_GPUS_MAX - 1)

// Largest numbers of series of one exporter, by kind: one that has more loses only its own node's data.
#define XIDS_MAX       (2 * GPUS_MAX) // series of each code
#define CONDITIONS_MAX (2 * GPUS_MAX)
#define SHARES_MAX     1024

// In the order in which one GPU's samples are folded.
enum sample_kind { SAMPLE_UP, SAMPLE_XID, SAMPLE_XID_COUNT, SAMPLE_CONDITION, SAMPLE_POD, SAMPLE_FLOOD };

struct sample {
	const char *node, *uuid;
	const char *exporter; // "INSTANCE of job JOB", by the labels that Prometheus set
	enum sample_kind kind;
	int32_t id;      // XID, or row of the first condition of the family
	double value;    // 1 = up; seconds since the epoch; count; value of the family
	const char *pod; // namespace/name; of SAMPLE_FLOOD: a node that the exporter names, or ""
};

// A node that exporters report. Exactly one of them is believed.
struct claim {
	const char *node;
	size_t from, to; // its samples
	const char *exporter;
	const char *other, *why; // why no exporter is believed; NULL: one is
};

// GPUs of exporters that work; those of an exporter without a driver are unknown, not lost.
#define UP_QUERY     "gpuscale_gpu_up{GPU_I_ID=\"\"} and on (job, instance) (gpuscale_exporter_up == 1)"
#define XID_FAMILIES "gpuscale_gpu_xid_errors_total|gpuscale_gpu_xid_last_timestamp_seconds"
#define TOO_MANY     "reports too many series"
#define NO_ROOM      "the health series do not fit into the memory allowed"
#define XID_TIME     "gpuscale_gpu_xid_last_timestamp_seconds"
#define POD_QUERY    "gpuscale_gpu_pod_share"
#define HEAT_STEP_S  15
// 1: the bit of the hardware's thermal slowdown was set in nine tenths of the time. Missing samples count against it.
#define HEAT_QUERY                                                                                                     \
	"sum_over_time((floor(DCGM_FI_DEV_CLOCKS_EVENT_REASONS{GPU_I_ID=\"\"} / 64) %% 2)[%" PRId64                    \
	"s:15s]) > bool %.1f"

struct query {
	struct health_feed *feed;
	enum sample_kind kind;
	int32_t row; // row of a condition
	char *text;
};

struct health_feed {
	struct health_feed_options options;
	struct query queries[QUERIES_MAX];
	size_t n_queries, n_open;
	struct promql_source *server; // that is being asked
	bool was_empty;               // a response of this round named no GPU
	struct err error;             // error of the round
	const char *labels[LABELS_MAX];
	struct arena arena;
	struct sample *samples;
	size_t n_samples, cap;
	struct claim *claims; // in the order of the names of the nodes
	size_t n_claims;
};

// Adds the query, confined to the series that are believed, and without exporters that have more than `most` series.
static int add_query(struct health_feed *f, enum sample_kind kind, int32_t row, const char *text, size_t most,
                     struct buf *floods, struct err *e)
{
	struct query *q = &f->queries[f->n_queries++];
	struct buf whole, confined;
	buf_init(&whole, PROMQL_QUERY_BYTES_MAX);
	buf_init(&confined, PROMQL_QUERY_BYTES_MAX);
	*q = (struct query){.feed = f, .kind = kind, .row = row};
	buf_printf(&whole, kind == SAMPLE_FLOOD ? "%s" : "%s unless on (job, instance) (", text);
	if (kind != SAMPLE_FLOOD) {
		buf_printf(&whole, "count by (job, instance) (%s) > %zu)", text, most);
		// With one of the nodes that the exporter names: it may name any number.
		buf_printf(floods,
		           "%stopk by (job, instance) (1, max by (job, instance, %s) (%s and on (job, instance) ("
		           "count by (job, instance) (%s) > %zu)))",
		           floods->len ? " or " : "", f->options.node_label, text, text, most);
	}
	int rc = f->options.matchers ? confine_add_matchers(&confined, buf_str(&whole), f->options.matchers, e) : 0;
	q->text = must_alloc(strdup(buf_str(f->options.matchers ? &confined : &whole)));
	buf_done(&whole);
	buf_done(&confined);
	return rc;
}

// Queries only the XIDs that are acted on.
static int add_xid_query(struct health_feed *f, struct buf *floods, struct err *e)
{
	size_t n_codes = 0;
	struct buf text;
	buf_init(&text, PROMQL_QUERY_BYTES_MAX);
	buf_puts(&text, "{__name__=~\"" XID_FAMILIES "\",GPU_I_ID=\"\",xid=~\"");
	for (size_t i = 0; i < health_n_xids; i++)
		if (health_xids[i].action >= HEALTH_RESET_IDLE)
			buf_printf(&text, "%s%" PRId32, n_codes++ ? "|" : "", health_xids[i].code);
	buf_puts(&text, "\"} > 0");
	int rc = add_query(f, SAMPLE_XID, 0, buf_str(&text), XIDS_MAX * n_codes, floods, e);
	buf_done(&text);
	return rc;
}

static void put_condition(struct buf *out, const char *family, int64_t heat_ms)
{
	int64_t heat_s = heat_ms / 1000;
	if (strcmp(family, HEALTH_HEAT) == 0)
		buf_printf(out, HEAT_QUERY, heat_s, 0.9 * (double)heat_s / HEAT_STEP_S);
	else
		buf_printf(out, "%s{GPU_I_ID=\"\"}", family);
}

static int add_queries(struct health_feed *f, struct err *e)
{
	const struct health_condition *rows = health_conditions;
	struct buf floods;
	buf_init(&floods, PROMQL_QUERY_BYTES_MAX);
	int rc = add_query(f, SAMPLE_UP, 0, UP_QUERY, GPUS_MAX, &floods, e);
	if (rc == 0)
		rc = add_xid_query(f, &floods, e);
	if (rc == 0)
		rc = add_query(f, SAMPLE_POD, 0, POD_QUERY, SHARES_MAX, &floods, e);
	for (size_t i = 0; rc == 0 && i < health_n_conditions && f->n_queries < QUERIES_MAX - 1; i++) {
		bool is_first = rows[i].family && rows[i].action >= HEALTH_RESET_IDLE;
		for (size_t k = 0; is_first && k < i; k++)
			is_first = !rows[k].family || strcmp(rows[k].family, rows[i].family) != 0;
		if (!is_first || (f->options.heat_ms == 0 && strcmp(rows[i].family, HEALTH_HEAT) == 0))
			continue;
		struct buf text;
		buf_init(&text, PROMQL_QUERY_BYTES_MAX);
		put_condition(&text, rows[i].family, f->options.heat_ms);
		rc = add_query(f, SAMPLE_CONDITION, (int32_t)i, buf_str(&text), CONDITIONS_MAX, &floods, e);
		buf_done(&text);
	}
	if (rc == 0)
		rc = add_query(f, SAMPLE_FLOOD, 0, buf_str(&floods), 0, NULL, e);
	buf_done(&floods);
	return rc;
}

struct health_feed *health_feed_new(const struct health_feed_options *options, struct err *e)
{
	struct health_feed *f = must_alloc(calloc(1, sizeof *f));
	f->options = *options;
	const char *const labels[LABELS_MAX] = {"__name__",  "UUID",     "GPU_I_ID",           "xid",
	                                        "namespace", "pod",      "exported_namespace", "exported_pod",
	                                        "job",       "instance", options->node_label,  NULL};
	memcpy(f->labels, labels, sizeof labels);
	arena_init(&f->arena, ARENA_BYTES_MAX);
	if (add_queries(f, e) == 0)
		return f;
	health_feed_free(f);
	return NULL;
}

void health_feed_free(struct health_feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_queries; i++)
		free(f->queries[i].text);
	free(f->samples);
	free(f->claims);
	arena_done(&f->arena);
	free(f);
}

// ---- one response ----

static struct sample *new_sample(struct health_feed *f)
{
	if (alloc_reserve(&f->samples, f->n_samples, &f->cap, sizeof *f->samples, 256) < 0) {
		err_set(&f->error, ERR_LIMIT, NO_ROOM);
		return NULL;
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

static bool read_exporter(const struct promql_series *series, char out[EXPORTER_BYTES])
{
	const char *job = promql_label(series, "job"), *instance = promql_label(series, "instance");
	int n = snprintf(out, EXPORTER_BYTES, "%s of job %s", instance, job);
	return n > 0 && n < EXPORTER_BYTES;
}

// Consecutive series often have the same exporter.
static const char *keep_exporter(struct health_feed *f, const char *text)
{
	if (f->n_samples && strcmp(f->samples[f->n_samples - 1].exporter, text) == 0)
		return f->samples[f->n_samples - 1].exporter;
	return arena_strdup(&f->arena, text);
}

static bool is_usable(struct health_feed *f, const struct promql_series *series, struct sample *s)
{
	bool is_mig = promql_label(series, "GPU_I_ID")[0] != '\0' && s->kind != SAMPLE_POD;
	bool has_node = s->node[0] && strlen(s->node) <= NODE_BYTES;
	if (s->kind == SAMPLE_FLOOD)
		return true;
	return has_node && s->uuid[0] && strlen(s->uuid) < REMEDY_UUID_BYTES && !is_mig && isfinite(s->value) &&
	       (s->kind != SAMPLE_XID || read_xid(series, s)) && (s->kind != SAMPLE_POD || read_pod(f, series, s));
}

static void take_series(struct health_feed *f, const struct query *q, const struct promql_series *series,
                        int64_t offset_ms)
{
	char exporter[EXPORTER_BYTES];
	struct sample *s = new_sample(f);
	if (!s)
		return;
	s->kind = q->kind;
	s->id = q->row;
	s->node = promql_label(series, f->options.node_label);
	s->uuid = promql_label(series, "UUID");
	s->value = series->n_samples ? series->samples[0].value : NAN;
	if (!is_usable(f, series, s) || !read_exporter(series, exporter))
		return;
	if (s->kind == SAMPLE_XID)
		s->value -= (double)offset_ms / 1000;
	if (s->kind == SAMPLE_FLOOD)
		s->pod = arena_strdup(&f->arena, strlen(s->node) <= NODE_BYTES ? s->node : "");
	s->node = arena_strdup(&f->arena, s->kind == SAMPLE_FLOOD ? "" : s->node);
	s->uuid = arena_strdup(&f->arena, s->kind == SAMPLE_FLOOD ? "" : s->uuid);
	s->exporter = keep_exporter(f, exporter);
	bool has_pod = s->kind == SAMPLE_POD || s->kind == SAMPLE_FLOOD;
	if (!s->node || !s->uuid || !s->exporter || (has_pod && !s->pod))
		err_set(&f->error, ERR_LIMIT, NO_ROOM);
	else
		f->n_samples++;
}

static int by_gpu(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	int order = strcmp(x->node, y->node);
	order = order ? order : strcmp(x->uuid, y->uuid);
	order = order ? order : strcmp(x->exporter, y->exporter);
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

// ---- who is believed ----

static void contradict(struct claim *c, const char *other, const char *why)
{
	if (c->why)
		return;
	c->other = other;
	c->why = why;
}

static int by_uuid(const void *a, const void *b)
{
	const struct sample *const *x = a, *const *y = b;
	return strcmp((*x)->uuid, (*y)->uuid);
}

static int by_node(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	return strcmp(x->node, y->node);
}

static struct claim *claim_of(const struct health_feed *f, const char *node)
{
	const struct claim key = {.node = node};
	return f->n_claims ? bsearch(&key, f->claims, f->n_claims, sizeof key, by_node) : NULL;
}

// One inventory per node: that of the only exporter that reports the node.
static void find_claims(struct health_feed *f)
{
	size_t at = 0, to;
	while (at < f->n_samples && !f->samples[at].node[0])
		at++; // floods
	for (; at < f->n_samples; at = to) {
		struct claim *c = &f->claims[f->n_claims];
		*c = (struct claim){.node = f->samples[at].node, .from = at};
		for (to = at; to < f->n_samples && strcmp(f->samples[to].node, c->node) == 0; to++) {
			const struct sample *s = &f->samples[to];
			if (s->kind != SAMPLE_UP)
				continue;
			if (c->exporter && strcmp(c->exporter, s->exporter) != 0)
				contradict(c, s->exporter, "also reports this node");
			c->exporter = c->exporter ? c->exporter : s->exporter;
		}
		c->to = to;
		f->n_claims += c->exporter != NULL; // else the exporter does not work: nothing that it reports counts
	}
}

static int by_exporter(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	return strcmp(x->exporter, y->exporter);
}

// The samples without a node name the exporters that report too many series. They are first, by exporter.
static void find_floods(struct health_feed *f)
{
	size_t n = 0;
	while (n < f->n_samples && !f->samples[n].node[0])
		n++;
	for (size_t k = 0; n && k < f->n_claims; k++) {
		const struct sample key = {.exporter = f->claims[k].exporter};
		if (bsearch(&key, f->samples, n, sizeof *f->samples, by_exporter))
			contradict(&f->claims[k], NULL, TOO_MANY);
	}
	// Where the list of GPUs is what is too long, the responses have nothing of the exporter.
	size_t n_claims = f->n_claims;
	for (size_t i = 0; i < n; i++) {
		const struct sample *s = &f->samples[i];
		if (s->pod[0] && !claim_of(f, s->pod))
			f->claims[n_claims++] =
			        (struct claim){.node = s->pod, .exporter = s->exporter, .why = TOO_MANY};
	}
	f->n_claims = n_claims;
	if (n)
		qsort(f->claims, n_claims, sizeof *f->claims, by_node);
}

// A GPU is in one node.
static void find_moved_gpus(struct health_feed *f)
{
	size_t n = 0;
	const struct sample **up = must_alloc(calloc(f->n_samples + 1, sizeof *up));
	for (size_t i = 0; i < f->n_samples; i++)
		if (f->samples[i].kind == SAMPLE_UP)
			up[n++] = &f->samples[i];
	qsort(up, n, sizeof *up, by_uuid);
	for (size_t i = 1; i < n; i++)
		if (strcmp(up[i]->uuid, up[i - 1]->uuid) == 0 && strcmp(up[i]->node, up[i - 1]->node) != 0) {
			contradict(claim_of(f, up[i]->node), up[i - 1]->exporter, "also reports a GPU of this node");
			contradict(claim_of(f, up[i - 1]->node), up[i]->exporter, "also reports a GPU of this node");
		}
	free(up);
}

static void resolve(struct health_feed *f)
{
	f->n_claims = 0;
	free(f->claims);
	f->claims = must_alloc(calloc(f->n_samples + 1, sizeof *f->claims));
	if (f->n_samples > 1)
		qsort(f->samples, f->n_samples, sizeof *f->samples, by_gpu);
	find_claims(f);
	find_floods(f);
	find_moved_gpus(f);
}

static bool lists(const struct health_feed *f, const struct claim *c, const char *uuid)
{
	for (size_t i = c->from; i < c->to; i++) {
		const struct sample *s = &f->samples[i];
		if (s->kind == SAMPLE_UP && strcmp(s->uuid, uuid) == 0 && strcmp(s->exporter, c->exporter) == 0)
			return true;
	}
	return false;
}

// Whether the sample is of the exporter that is believed, and of a GPU of its inventory.
static bool is_believed(const struct health_feed *f, const struct claim *c, const struct sample *s)
{
	return strcmp(s->exporter, c->exporter) == 0 && (s->kind == SAMPLE_UP || lists(f, c, s->uuid));
}

bool health_feed_contradiction(const struct health_feed *f, const char *node, char *out, size_t size)
{
	const struct claim *c = claim_of(f, node);
	if (!c || !c->why)
		return false;
	if (c->other)
		snprintf(out, size, "%s %s, and so does %s", c->other, c->why, c->exporter);
	else
		snprintf(out, size, "%s %s", c->exporter, c->why);
	return true;
}

// ---- a round ----

static void ask(struct health_feed *f, struct promql_source *server);

static bool has_gpus(const struct health_feed *f)
{
	for (size_t i = 0; i < f->n_samples; i++)
		if (f->samples[i].kind == SAMPLE_UP)
			return true;
	return false;
}

// A server that has just started, without its data, names no GPUs: then the next server is queried, too.
static void finish(struct health_feed *f)
{
	if (--f->n_open > 0)
		return;
	bool is_failed = f->error.kind != ERR_NONE, is_empty = !is_failed && !has_gpus(f);
	struct promql_source *next = f->server->next;
	f->was_empty |= is_empty;
	if ((is_empty || is_failed) && f->error.kind != ERR_CANCELED && next) {
		ask(f, next);
		return;
	}
	if (is_failed)
		f->n_samples = 0;
	if (is_failed && f->was_empty && f->error.kind != ERR_CANCELED)
		err_clear(&f->error);
	resolve(f);
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
	f->n_samples = f->n_claims = 0;
	f->n_open = 1;
	arena_reset(&f->arena);
	err_clear(&f->error);
	for (size_t i = 0; i < f->n_queries; i++) {
		const struct promql_question question = {
		        .query = f->queries[i].text, .max_series = SERIES_MAX, .labels = f->labels};
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

static void fold_xid(const struct health_feed *f, struct remedy *r, const struct claim *c, size_t at, size_t *ret_used)
{
	const struct sample *s = &f->samples[at], *next = at + 1 < c->to ? s + 1 : NULL;
	bool has_count = next && next->kind == SAMPLE_XID_COUNT && next->id == s->id &&
	                 strcmp(next->uuid, s->uuid) == 0 && strcmp(next->exporter, s->exporter) == 0;
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

static void fold_claim(struct health_feed *f, struct remedy *r, const struct claim *c,
                       struct health_feed_result *result)
{
	const struct health_condition *rows = health_conditions;
	const char *uuids[GPUS_MAX];
	size_t n_uuids = health_feed_gpus(f, c->node, NULL, uuids, GPUS_MAX);
	remedy_fold_telemetry(r, c->node, uuids, n_uuids, false);
	result->n_gpus += n_uuids;
	for (size_t i = c->from; i < c->to; i++) {
		const struct sample *s = &f->samples[i];
		if (!is_believed(f, c, s))
			continue;
		if (s->kind == SAMPLE_UP)
			fold_condition(r, s, rows[HEALTH_GPU_LOST].reason, s->value == 0, &result->n_faults);
		else if (s->kind == SAMPLE_XID)
			fold_xid(f, r, c, i, &result->n_faults);
		else if (s->kind == SAMPLE_CONDITION)
			fold_condition(r, s, rows[s->id].reason,
			               s->value >= 0 && s->value < WHOLE_MAX ? (int64_t)s->value : 0,
			               &result->n_faults);
	}
}

void health_feed_fold(struct health_feed *f, struct remedy *r, struct health_feed_result *ret_result)
{
	*ret_result = (struct health_feed_result){.n_gpus = 0};
	for (size_t k = 0; k < f->n_claims; k++) {
		const struct claim *c = &f->claims[k];
		const struct remedy_node *n = remedy_fleet_find(r, c->node);
		if (c->why)
			ret_result->n_contradictions++;
		else if (n && !n->is_gone)
			fold_claim(f, r, c, ret_result);
		else if (ret_result->n_unknown++ == 0)
			ret_result->unknown = c->node;
	}
}

size_t health_feed_gpus(const struct health_feed *f, const char *node, const char *pod, const char **ret_uuids,
                        size_t max)
{
	const struct claim *c = claim_of(f, node);
	size_t n = 0;
	for (size_t i = c && !c->why ? c->from : SIZE_MAX; c && i < c->to && n < max; i++) {
		const struct sample *s = &f->samples[i];
		bool is_next = s->kind == SAMPLE_UP && (n == 0 || strcmp(ret_uuids[n - 1], s->uuid) != 0);
		bool is_of_pod = pod && s->kind == SAMPLE_POD && strcmp(s->pod, pod) == 0 && is_believed(f, c, s);
		if (is_of_pod || (!pod && is_next))
			ret_uuids[n++] = s->uuid;
	}
	return n;
}
