// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/capacity_target.h"

#include <stdio.h>
#include <string.h>

#include "cli/objects/kueue_quota.h"
#include "cli/objects/shape_read.h"
#include "k8s/client/label_selector.h"
#include "k8s/client/scale.h"
#include "k8s/targets/workload_kind.h"
#include "runtime/connections.h"

static void count_pending(struct capacity_target *t, const struct capacity *capacity,
                          const struct label_selector *selector)
{
	const struct capacity_waiting *w;
	for (w = capacity_first_waiting(capacity); w && selector; w = w->next) {
		if (strcmp(w->namespace_name, t->namespace_name) != 0 ||
		    !label_selector_matches(selector, w->labels, w->n_labels))
			continue;
		t->pending++;
		if (!t->message[0])
			memcpy(t->message, w->message, sizeof t->message);
	}
}

static int read_fit(struct capacity_target *t, struct capacity *capacity, struct err *e)
{
	if (capacity_fit(capacity, &t->target.shape, &t->fit, e) < 0)
		return -1;
	fit_explain(capacity, &t->fit, t->why);
	t->fit.replicas /= t->target.pods;
	return 0;
}

// Lowers what fits to what the quota of the target's queue admits.
static int limit_by_quota(struct capacity_target *t, struct connections *session, struct capacity *capacity,
                          const struct kueue_quotas *quotas, struct err *e)
{
	if (!t->target.queue[0] || quotas->n == 0)
		return 0;
	if (kueue_read_cluster_queue(session, t->namespace_name, t->target.queue, t->cluster_queue, e) < 0)
		return -1;
	for (size_t i = 0; i < t->target.shape.requests.n; i++) {
		const struct resource_amount *a = &t->target.shape.requests.items[i];
		const char *name = capacity_names(capacity)->names[a->id];
		int64_t left = 0, n = -1, pending = (int64_t)t->pending;
		if (a->amount > 0)
			n = kueue_quotas_admit(quotas, t->cluster_queue, name, a->amount, &left);
		// Pods that wait for quota get it first, like pods that wait for a node.
		if (n > 0)
			n = n > pending ? (n - pending) / t->target.pods : 0;
		if (n < 0 || n >= t->fit.replicas)
			continue;
		if (left == KUEUE_UNKNOWN)
			return err_set(e, ERR_PROTOCOL, "ClusterQueue %s: Prometheus has no reservation of %s",
			               t->cluster_queue, name);
		t->fit.replicas = n;
		t->is_quota_limited = true;
		snprintf(t->why, sizeof t->why, "ClusterQueue %s has quota for %lld more %s%s", t->cluster_queue,
		         (long long)left, name, pending ? ", and pending pods get theirs first" : "");
	}
	return 0;
}

void capacity_target_read(struct capacity_target *t, struct connections *session, struct capacity *capacity,
                          const struct kueue_quotas *quotas)
{
	const struct scale_ref ref = {t->api_version, t->kind, t->namespace_name, t->target_name,
	                              workload_kind_path(t->api_version, t->kind, t->path)};
	int rc = shape_read(session, &ref, capacity_names(capacity), &t->target, &t->error);
	if (t->target.has_shape)
		count_pending(t, capacity, t->target.selector);
	if (rc == 0)
		rc = read_fit(t, capacity, &t->error);
	if (rc == 0)
		rc = limit_by_quota(t, session, capacity, quotas, &t->error);
	if (rc == 0)
		t->error = (struct err){0};
}

void capacity_target_done(struct capacity_target *t)
{
	target_shape_done(&t->target);
}

void capacity_target_needs(const struct capacity_target *t, const struct resource_names *names,
                           char out[CAPACITY_NEEDS_BYTES])
{
	size_t at = 0;
	out[0] = '\0';
	for (size_t i = 0; i < t->target.shape.requests.n && at < CAPACITY_NEEDS_BYTES; i++) {
		const struct resource_amount *a = &t->target.shape.requests.items[i];
		char name[RESOURCE_SHOWN_BYTES];
		resource_show_name(names->names[a->id], name);
		if (a->amount > 0 && resource_is_extended(names->names[a->id]))
			at += (size_t)snprintf(out + at, CAPACITY_NEEDS_BYTES - at, "%s%lld %s", at ? ", " : "",
			                       (long long)a->amount * t->target.pods, name);
	}
	if (!out[0])
		snprintf(out, CAPACITY_NEEDS_BYTES, "no GPU");
}
