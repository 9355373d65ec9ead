// SPDX-License-Identifier: Apache-2.0
// Replaces replicas whose memory leaks, before they reach their limit: one at a time, by eviction, and only while every
// replica of the same owner is Ready. Holds no state that a restart could lose: each round reads Prometheus and the
// API server.
#ifndef GPUSCALE_CONTROLLER_REMEDY_LEAK_REPLACE_H
#define GPUSCALE_CONTROLLER_REMEDY_LEAK_REPLACE_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct clock;
struct err;
struct event_base;
struct event_recorder;
struct k8s_client;
struct leak_replacer;
struct log;
struct promql_source;

#define LEAK_PODS_TRIED 32 // in one round, until one is evicted

struct leak_replace_options { // owns nothing
	struct event_base *loop;
	const struct clock *clock;
	struct k8s_client *k8s;
	struct promql_source *source;
	struct event_recorder *recorder;
	struct log *log;
	int64_t within_ms;                // pods that reach a limit of memory within this time
	int64_t every_ms;                 // time between two rounds; one pod at most is evicted in each
	bool acts;                        // false: a dry run, which writes only Events
	bool (*may_act)(const void *arg); // Returns whether this process acts now
	const void *arg;
};

// Starts the first round at once. Returns NULL and *e when memory is exhausted.
struct leak_replacer *leak_replacer_new(const struct leak_replace_options *options, struct err *e);
// Stops further requests. Call before client and source are canceled; NULL is fine.
void leak_replacer_stop(struct leak_replacer *r);
// Call after client and source were canceled. NULL is fine.
void leak_replacer_free(struct leak_replacer *r);
// Appends the metrics gpuscale_remediation_leak_* to `out`.
void leak_replacer_put_metrics(const struct leak_replacer *r, struct buf *out);

#endif
