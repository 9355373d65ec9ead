// SPDX-License-Identifier: Apache-2.0
// The answers of the query hub keep one text per series, the pod. Here this text holds all labels, joined with '/',
// which names of Kubernetes do not contain.
#include "controller/idle/idle_query.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "insight/gpu_use_query.h"
#include "policies/price/price_book.h"
#include "policies/schema/idle_rule_schema.h"

#define ARENA_MAX    ((size_t)64 * 1024 * 1024)
#define DAY_MS       INT64_C(86400000)
#define STALE_MS     INT64_C(300000)
#define PARTS        5
#define HASH_LETTERS "0123456789abcdefghijklmnopqrstuvwxyz"

// Each pod's owner, in the labels of gpu_idle_query(). Any pod may expose these series: a pod with several owners has
// none, and idle_target.c asks the API server for the pods of a workload before it is scaled.
#define OWNERS "(" NAMED " unless on (wl_namespace, wl_pod) (count by (wl_namespace, wl_pod) (" NAMED ") > 1))"
#define NAMED                                                                                                          \
	"group by (wl_namespace, wl_pod, wl_kind, wl_owner) (label_replace(label_replace(label_replace(label_replace(" \
	"kube_pod_owner{owner_is_controller=\"true\"}, \"wl_namespace\", \"$1\", \"namespace\", \"(.+)\"), "           \
	"\"wl_pod\", \"$1\", \"pod\", \"(.+)\"), \"wl_kind\", \"$1\", \"owner_kind\", \"(.+)\"), \"wl_owner\", "       \
	"\"$1\", "                                                                                                     \
	"\"owner_name\", \"(.+)\"))"
#define JOIN(labels) ", \"pod\", \"/\", " labels ")"

int64_t idle_lookback_ms(const struct idle_rule *rule)
{
	return 2 * rule->after_ms > DAY_MS ? 2 * rule->after_ms : DAY_MS;
}

int idle_query(struct buf *out, enum idle_ask what, const struct idle_rule *rule, const char *matchers, struct err *e)
{
	static const enum gpu_idle parts[IDLE_ASK__COUNT] = {[IDLE_ASK_COUNT] = GPU_IDLE_COUNT,
	                                                     [IDLE_ASK_BUSY] = GPU_IDLE_LAST_BUSY,
	                                                     [IDLE_ASK_SEEN] = GPU_IDLE_FIRST_SEEN};
	int64_t for_s = rule->after_ms / 1000, lookback_s = idle_lookback_ms(rule) / 1000;
	if (what == IDLE_ASK_ALIVE) {
		buf_printf(out, "count(DCGM_FI_DEV_FB_USED{%s})", matchers ? matchers : "");
		return 0;
	}
	buf_puts(out, "label_join(");
	if (gpu_idle_query(out, parts[what], for_s, lookback_s, matchers, e) < 0)
		return -1;
	if (what == IDLE_ASK_COUNT) {
		buf_puts(out, " * on (wl_namespace, wl_pod) group_left (wl_kind, wl_owner) " OWNERS " or ");
		if (gpu_idle_query(out, parts[what], for_s, lookback_s, matchers, e) < 0)
			return -1;
		buf_puts(out, " unless on (wl_namespace, wl_pod) " OWNERS);
	}
	buf_puts(out, JOIN("\"wl_namespace\", \"wl_pod\", \"wl_kind\", \"wl_owner\", \"modelName\""));
	return out->failed ? err_set(e, ERR_LIMIT, "the query is longer than %zu bytes", out->max) : 0;
}

// ---- the answers ----

struct row {
	const char *part[PARTS]; // namespace, pod, kind, owner, model
	double gpus;
};

// Divides the text at its first slashes; the last part keeps the others.
static int split(struct arena *a, const char *text, struct row *row, struct err *e)
{
	char *at = arena_strdup(a, text);
	if (!at)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (int i = 0; i < PARTS; i++) {
		char *slash = strchr(at, '/');
		row->part[i] = at;
		if (i == PARTS - 1)
			break;
		if (!slash)
			return err_set(e, ERR_PROTOCOL, "expected five labels joined with '/', got \"%.80s\"", text);
		*slash = '\0';
		at = slash + 1;
	}
	return 0;
}

// The name of a Deployment's ReplicaSet is that of the Deployment and a hash. The API server confirms the Deployment
// before the rule scales it.
static const char *deployment_of(struct arena *a, const char *replica_set)
{
	const char *dash = strrchr(replica_set, '-');
	if (!dash || dash == replica_set || !dash[1] || strspn(dash + 1, HASH_LETTERS) != strlen(dash + 1))
		return NULL;
	return arena_strndup(a, replica_set, (size_t)(dash - replica_set));
}

static void name_workload(struct arena *a, const struct row *row, struct idle_workload *w)
{
	w->namespace_name = row->part[0];
	w->kind = row->part[2];
	w->name = row->part[3];
	if (!w->kind[0] || !w->name[0]) {
		w->kind = "Pod";
		w->name = row->part[1];
	}
	const char *deployment = strcmp(w->kind, "ReplicaSet") == 0 ? deployment_of(a, w->name) : NULL;
	if (deployment) {
		w->kind = "Deployment";
		w->name = deployment;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct idle_workload *x = a, *y = b;
	int order = strcmp(x->namespace_name, y->namespace_name);
	order = order ? order : strcmp(x->kind, y->kind);
	return order ? order : strcmp(x->name, y->name);
}

static int add_pod(struct idle_workload *w, const char *pod, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < w->n_pods; i++)
		if (strcmp(w->pods[i], pod) == 0)
			return 0;
	if (w->n_pods == IDLE_PODS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d pods of %s/%s are idle", IDLE_PODS_MAX, w->namespace_name,
		               w->name);
	if (w->n_pods == w->room) {
		size_t room = w->room ? 2 * w->room : 4;
		const char **pods = arena_calloc(a, room, sizeof *pods);
		if (!pods)
			return err_set(e, ERR_INTERNAL, "out of memory");
		if (w->n_pods)
			memcpy(pods, w->pods, w->n_pods * sizeof *pods);
		w->pods = pods;
		w->room = room;
	}
	w->pods[w->n_pods++] = pod;
	return 0;
}

static struct idle_workload *find(struct idle_workloads *all, const struct idle_workload *like)
{
	for (size_t i = 0; i < all->n; i++)
		if (by_name(&all->items[i], like) == 0)
			return &all->items[i];
	return NULL;
}

static int add_row(struct idle_workloads *all, const struct row *row, const struct price_book *book, int64_t since_ms,
                   struct err *e)
{
	struct idle_workload one = {0};
	bool is_priced;
	name_workload(&all->arena, row, &one);
	if (!one.name)
		return err_set(e, ERR_INTERNAL, "out of memory");
	struct idle_workload *w = find(all, &one);
	if (!w && all->n == IDLE_WORKLOADS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d workloads are idle: set spec.namespaces",
		               IDLE_WORKLOADS_MAX);
	if (!w) {
		w = &all->items[all->n++];
		*w = one;
	}
	w->gpus += row->gpus;
	if (book)
		w->per_hour += row->gpus * (double)price_book_micro(book, row->part[4], NULL, &is_priced) / 1e6;
	w->since_ms = since_ms > w->since_ms ? since_ms : w->since_ms;
	return add_pod(w, row->part[1], &all->arena, e);
}

// The number for the same pod and model in another answer, whose texts lack the owner; 0: none.
static double value_of(const struct idle_answer *a, const struct row *row)
{
	char key[1024];
	struct buf text;
	double most = 0;
	buf_init(&text, sizeof key);
	buf_printf(&text, "%s/%s///%s", row->part[0], row->part[1], row->part[4]);
	for (size_t i = 0; !text.failed && i < a->n_series; i++)
		if (strcmp(a->series[i].pod, buf_str(&text)) == 0 && isfinite(a->series[i].value))
			most = fmax(most, a->series[i].value);
	buf_done(&text);
	return most;
}

static int read_row(struct idle_workloads *all, const struct idle_answer *answers, size_t i,
                    const struct idle_rule *rule, const struct price_book *book, int64_t now_ms, struct err *e)
{
	const struct obs_series *s = &answers[IDLE_ASK_COUNT].series[i];
	struct row row = {.gpus = s->value};
	if (!isfinite(s->value) || s->value <= 0)
		return 0;
	if (split(&all->arena, s->pod, &row, e) < 0)
		return -1;
	if (!row.part[0][0]) {
		all->unallocated += row.gpus;
		return 0;
	}
	if (!idle_rule_covers(rule, row.part[0]))
		return 0;
	double since_s = fmax(value_of(&answers[IDLE_ASK_BUSY], &row), value_of(&answers[IDLE_ASK_SEEN], &row));
	int64_t oldest_ms = now_ms - idle_lookback_ms(rule);
	int64_t since_ms = since_s * 1000 < (double)now_ms ? (int64_t)(since_s * 1000) : now_ms;
	return add_row(all, &row, book, since_ms > oldest_ms ? since_ms : oldest_ms, e);
}

int idle_workloads_read(struct idle_workloads *ret, const struct idle_answer *answers, const struct idle_rule *rule,
                        const struct price_book *book, int64_t now_ms, struct err *e)
{
	const struct idle_answer *alive = &answers[IDLE_ASK_ALIVE];
	int rc = 0;
	*ret = (struct idle_workloads){0};
	arena_init(&ret->arena, ARENA_MAX);
	if (alive->n_series == 0 || now_ms - alive->series[0].time_ms > STALE_MS)
		return err_set(e, ERR_NOT_FOUND, "no GPU reports (DCGM_FI_DEV_FB_USED): nothing is known");
	ret->items = arena_calloc(&ret->arena, IDLE_WORKLOADS_MAX, sizeof *ret->items);
	if (!ret->items)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; rc == 0 && i < answers[IDLE_ASK_COUNT].n_series; i++)
		rc = read_row(ret, answers, i, rule, book, now_ms, e);
	qsort(ret->items, ret->n, sizeof *ret->items, by_name);
	return rc;
}

void idle_workloads_done(struct idle_workloads *w)
{
	arena_done(&w->arena);
	*w = (struct idle_workloads){0};
}
