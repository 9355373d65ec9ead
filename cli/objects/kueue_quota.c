// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/kueue_quota.h"

#include "cli/objects/kube_pages.h"
#include "cli/term/cli.h"
#include "k8s/client/accelerators.h"
#include "promql/promql.h"

#define COHORT        "cohort"
#define CLUSTER_QUEUE "cluster_queue"
#define FLAVOR        "flavor"
#define RESOURCE      "resource"
#define OBJECT_BYTES  ((size_t)1024 * 1024)

// Every replica of Kueue reports the same quota, with its role as a label. Kueue: pkg/metrics/metrics.go.
#define QUERY_OF(metric) "max by (" COHORT ", " CLUSTER_QUEUE ", " FLAVOR ", " RESOURCE ") (" metric ")"

enum kueue_metric { KUEUE_NOMINAL, KUEUE_RESERVED, KUEUE_METRIC__COUNT };
static const char *const queries[] = {
        [KUEUE_NOMINAL] = QUERY_OF("kueue_cluster_queue_nominal_quota"),
        [KUEUE_RESERVED] = QUERY_OF("kueue_cluster_queue_resource_reservation"),
};
_Static_assert(sizeof queries / sizeof *queries == KUEUE_METRIC__COUNT, "one query per metric");

struct question {
	struct kueue_quotas *quotas;
	enum kueue_metric metric;
};

// ---- the metrics ----

static int read_labels(const struct promql_series *s, struct kueue_quota *q, struct err *e)
{
	const struct {
		const char *label;
		char *to;
		size_t size;
	} rows[] = {{COHORT, q->cohort, sizeof q->cohort},
	            {CLUSTER_QUEUE, q->cluster_queue, sizeof q->cluster_queue},
	            {FLAVOR, q->flavor, sizeof q->flavor},
	            {RESOURCE, q->resource, sizeof q->resource}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (snprintf(rows[i].to, rows[i].size, "%s", promql_label(s, rows[i].label)) >= (int)rows[i].size)
			return err_set(e, ERR_LIMIT, "the label %s has more than %zu bytes", rows[i].label,
			               rows[i].size - 1);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct kueue_quota *x = a, *y = b;
	int by_queue = strcmp(x->cluster_queue, y->cluster_queue), by_flavor = strcmp(x->flavor, y->flavor);
	return by_queue ? by_queue : by_flavor ? by_flavor : strcmp(x->resource, y->resource);
}

static int add_series(void *arg, const struct promql_series *s, struct err *e)
{
	const struct question *q = arg;
	struct kueue_quotas *all = q->quotas;
	struct kueue_quota quota = {.reserved = KUEUE_UNKNOWN};
	if (read_labels(s, &quota, e) < 0)
		return -1;
	if (!resource_is_accelerator(quota.resource) || s->n_samples == 0)
		return 0;
	double value = s->samples[0].value;
	if (isnan(value) || value < 0)
		return err_set(e, ERR_PROTOCOL, "expected an amount of quota, got %g", value);
	// An accelerator is counted in whole pieces. A quota without a limit is infinite.
	int64_t amount = value > RESOURCE_DEVICES_MAX ? KUEUE_UNLIMITED : (int64_t)floor(value);
	if (q->metric == KUEUE_RESERVED) {
		for (size_t i = 0; i < all->n; i++)
			if (compare(&all->items[i], &quota) == 0)
				all->items[i].reserved = amount;
		return 0;
	}
	if (all->n == KUEUE_QUOTAS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d quotas of ClusterQueues", KUEUE_QUOTAS_MAX);
	quota.nominal = amount;
	all->items[all->n++] = quota;
	return 0;
}

int kueue_quotas_fetch(struct prometheus_session *session, struct kueue_quotas *ret, struct err *e)
{
	*ret = (struct kueue_quotas){.items = calloc(KUEUE_QUOTAS_MAX, sizeof *ret->items)};
	if (!ret->items)
		return err_set(e, ERR_INTERNAL, "out of memory");
	int rc = 0;
	for (int m = 0; rc == 0 && m < KUEUE_METRIC__COUNT; m++) {
		struct question q = {.quotas = ret, .metric = (enum kueue_metric)m};
		const struct promql_question question = {.query = queries[m], .max_series = 16 * KUEUE_QUOTAS_MAX};
		rc = prometheus_session_ask(session, &question, add_series, &q, e);
	}
	if (rc < 0) {
		ret->n = 0; // a quota is wrong without the amount that is in use
		return err_wrap(e, "quota of Kueue");
	}
	qsort(ret->items, ret->n, sizeof *ret->items, compare);
	return 0;
}

void kueue_quotas_done(struct kueue_quotas *q)
{
	free(q->items);
	*q = (struct kueue_quotas){0};
}

int64_t kueue_quota_free(const struct kueue_quota *q)
{
	if (q->nominal == KUEUE_UNLIMITED || q->reserved == KUEUE_UNKNOWN)
		return q->nominal == KUEUE_UNLIMITED ? KUEUE_UNLIMITED : KUEUE_UNKNOWN;
	return q->nominal > q->reserved ? q->nominal - q->reserved : 0;
}

// ---- the limit of a queue ----

int kueue_read_cluster_queue(struct connections *session, const char *namespace_name, const char *local_queue,
                             char out[KUEUE_NAME_BYTES], struct err *e)
{
	static const char *const versions[] = {"v1beta2", "v1beta1"};
	static const char *const path[] = {"spec", "clusterQueue", NULL};
	struct buf body;
	if (!k8s_name_is_valid(local_queue))
		return err_set(e, ERR_INPUT, "invalid name of a LocalQueue: %s", local_queue);
	buf_init(&body, OBJECT_BYTES);
	int rc = -1;
	for (size_t i = 0; rc < 0 && i < 2 && (i == 0 || e->code == 404); i++) {
		char url[K8S_PATH_BYTES_MAX];
		snprintf(url, sizeof url, "/apis/kueue.x-k8s.io/%s/namespaces/%s/localqueues/%s", versions[i],
		         namespace_name, local_queue);
		buf_reset(&body);
		rc = kube_request(session, "GET", url, NULL, NULL, &body, e);
	}
	const struct json_span object = {buf_str(&body), body.len};
	if (rc == 0 && json_span_text(json_span_path(object, path), out, KUEUE_NAME_BYTES) <= 0)
		rc = err_set(e, ERR_PROTOCOL, "the object has no spec.clusterQueue");
	buf_done(&body);
	return rc < 0 ? err_wrap(e, "LocalQueue %s", local_queue) : 0;
}

int64_t kueue_quotas_admit(const struct kueue_quotas *q, const char *cluster_queue, const char *resource, int64_t each,
                           int64_t *ret_free)
{
	int64_t replicas = -1;
	bool is_unknown = false;
	*ret_free = 0;
	for (size_t i = 0; i < q->n; i++) {
		const struct kueue_quota *row = &q->items[i];
		if (strcmp(row->cluster_queue, cluster_queue) != 0 || strcmp(row->resource, resource) != 0)
			continue;
		int64_t left = kueue_quota_free(row);
		if (row->cohort[0] || left == KUEUE_UNLIMITED)
			return -1;
		is_unknown |= left == KUEUE_UNKNOWN;
		// Every pod is a workload of its own, which takes a resource from one flavor.
		replicas = (replicas < 0 ? 0 : replicas) + left / each;
		*ret_free += left;
	}
	if (!is_unknown)
		return replicas;
	*ret_free = KUEUE_UNKNOWN;
	return 0;
}
