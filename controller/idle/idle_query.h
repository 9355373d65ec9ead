// SPDX-License-Identifier: Apache-2.0
// Which workloads hold idle GPUs, from the series of the exporter and the owners of pods (kube_pod_owner).
#ifndef GPUSCALE_CONTROLLER_IDLE_IDLE_QUERY_H
#define GPUSCALE_CONTROLLER_IDLE_IDLE_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "policies/engine/observation.h"

struct buf;
struct err;
struct idle_rule;
struct price_book;

#define IDLE_WORKLOADS_MAX 4096
#define IDLE_PODS_MAX      4096 // with idle GPUs, of one workload

// The queries of one evaluation. IDLE_ASK_ALIVE asks for all GPUs that report, so that missing series do not count as
// busy GPUs.
enum idle_ask { IDLE_ASK_ALIVE, IDLE_ASK_COUNT, IDLE_ASK_BUSY, IDLE_ASK_SEEN, IDLE_ASK__COUNT };

struct idle_answer {
	enum obs_state state;
	const char *detail; // what went wrong; may be NULL
	const struct obs_series *series;
	size_t n_series;
	void *kept; // what keeps the series, for idle_rules_options.release
};

struct idle_workload {
	const char *namespace_name, *kind, *name; // kind "Pod": its owner is not known
	const char **pods;                        // those with idle GPUs
	size_t n_pods, room;
	double gpus, per_hour; // of the idle GPUs; per_hour in the currency of the prices
	int64_t since_ms;      // the latest start of idleness of a pod, at least this long ago
};

struct idle_workloads {
	struct arena arena;
	struct idle_workload *items; // in the order of namespace, kind, name
	size_t n;
	double unallocated; // idle GPUs that no pod holds
};

// How far the start of idleness is traced back.
int64_t idle_lookback_ms(const struct idle_rule *rule);
// Appends the query; matchers as in gpu_idle_query(), for all series of the exporter. Returns 0, or -1 and *e.
int idle_query(struct buf *out, enum idle_ask what, const struct idle_rule *rule, const char *matchers, struct err *e);
// Adds up the answers, all without errors. Returns -1 and *e: ERR_LIMIT, ERR_INTERNAL, ERR_PROTOCOL; ERR_NOT_FOUND when
// no GPU reports, so that nothing is known. The caller releases the result in every case.
int idle_workloads_read(struct idle_workloads *ret, const struct idle_answer *answers, const struct idle_rule *rule,
                        const struct price_book *book, int64_t now_ms, struct err *e);
void idle_workloads_done(struct idle_workloads *w);

#endif
