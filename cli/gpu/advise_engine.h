// SPDX-License-Identifier: Apache-2.0
// The inference engines that `gpuscale advise` recognises by their series, and the policies that it writes for them.
// The queries name the labels that the series of a workload have on the server that was read.
#ifndef GPUSCALE_CLI_GPU_ADVISE_ENGINE_H
#define GPUSCALE_CLI_GPU_ADVISE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct scale_target;

enum advise_engine { ADVISE_VLLM, ADVISE_SGLANG, ADVISE_TRITON, ADVISE_TGI, ADVISE_GPU, ADVISE_ENGINE__COUNT };

// A metric of each engine, which exists while a pod of it runs.
struct advise_engine_info {
	const char *name, *probe;
	const char *unit; // of the work
};
extern const struct advise_engine_info advise_engines[ADVISE_ENGINE__COUNT];

// A workload, as far as its policies and queries name it.
struct advise_subject {
	const char *namespace_name;
	const struct scale_target *target;
	enum advise_engine engine;
	bool is_exported;   // its series have exported_namespace and exported_pod
	const char *window; // of rates: contains several scrapes, "1m"
	int32_t min_replicas, max_replicas;
};

// Returns whether the engine reports a queue, so that an objective has a backlog.
bool advise_engine_has_queue(enum advise_engine engine);
// Appends the expression of the most scrapes within ADVISE_SCRAPES_S, over the last day.
#define ADVISE_SCRAPES_S 600
void advise_put_scrapes(struct buf *out, const struct advise_subject *s);
// Returns the window of rates for this number of scrapes; 0: unknown.
const char *advise_window(double scrapes);
// Appends the expression of the arriving work, in the unit of the engine a second.
void advise_put_demand(struct buf *out, const struct advise_subject *s);
// Appends the expression of the queued work, in the unit of the engine; of the work of one request. The engine has a
// queue.
void advise_put_backlog(struct buf *out, const struct advise_subject *s);
void advise_put_request_work(struct buf *out, const struct advise_subject *s);
// Appends the expression of the share of the requests that waited longer than 10 s in the last `window_s` seconds.
// Returns false when the engine has no histogram of its queue.
bool advise_put_late(struct buf *out, const struct advise_subject *s, int64_t window_s);
// Returns the metric of the queue; NULL: none.
const char *advise_queue_metric(enum advise_engine engine);
// Appends the policy of the library that fits the engine, for this workload: YAML, without the comment at its top.
void advise_put_library(struct buf *out, const struct advise_subject *s);
// Returns the name of that policy in the library.
const char *advise_library_name(enum advise_engine engine);
// Appends a policy with an objective: at most 1 % of the work waits longer than 10 s. `capacity` is the work of a busy
// replica a second, in the unit of the engine. The engine has a queue.
void advise_put_objective(struct buf *out, const struct advise_subject *s, double capacity);

#endif
