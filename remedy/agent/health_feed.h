// SPDX-License-Identifier: Apache-2.0
// The health of all GPUs, from the series of gpuscale-exporter in a Prometheus: one round of queries per tick. A round
// counts as a whole: when one query fails or its response is partial, nothing of it is used, because a GPU whose faults
// are unknown must not be treated as healthy. Of several servers of a source, the first one that reports GPUs counts.
//
// A series is believed only of the one exporter (labels job and instance) whose gpuscale_gpu_up lists the GPU. Where
// two exporters report the same node or the same GPU, or one reports too many series, the nodes concerned have no data.
#ifndef GPUSCALE_REMEDY_AGENT_HEALTH_FEED_H
#define GPUSCALE_REMEDY_AGENT_HEALTH_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct health_feed;
struct promql_source;
struct remedy;

// The result of one round.
struct health_feed_result {
	size_t n_gpus;           // with telemetry
	size_t n_faults;         // XIDs and conditions
	size_t n_contradictions; // nodes without data, because no exporter is believed
	size_t n_unknown;        // names of nodes that the planner does not know
	const char *unknown;     // one of them, valid until the next round
};

struct health_feed_options {
	struct promql_source *source; // its first server; not owned
	const char *node_label;       // label of the series: the name of the node; not copied
	const char *matchers; // added to every selector (promql/confine.h); NULL: every series is read; not copied
	int64_t heat_ms;      // slowed down by heat for so long, a GPU has a fault; 0: never
	void (*done)(void *arg, const struct err *error); // a round is complete; error: why it has no data
	void *arg;
};

struct health_feed *health_feed_new(const struct health_feed_options *options, struct err *e);
// Call after the source was canceled. NULL is fine.
void health_feed_free(struct health_feed *f);

// Starts a round. Then `done` runs exactly once, from the loop or, when no query can be sent, from this call.
void health_feed_start(struct health_feed *f);
// Folds a complete round into the planner: telemetry, XIDs, conditions. Call once per round without an error, at any
// time before the next round. Nodes that the planner does not know are skipped.
void health_feed_fold(struct health_feed *f, struct remedy *r, struct health_feed_result *ret_result);
// Returns whether exporters report the node and none is believed; writes the exporters and the reason to out[0..size).
bool health_feed_contradiction(const struct health_feed *f, const char *node, char *out, size_t size);
// Writes the UUIDs of the GPUs of the node that a working exporter names to `ret_uuids`, lost ones included; with a
// pod, of those that the pod uses. Returns their number, at most `max`; 0: the round has no telemetry of the node. The
// texts live until the next round.
size_t health_feed_gpus(const struct health_feed *f, const char *node, const char *pod, const char **ret_uuids,
                        size_t max);

#endif
