// SPDX-License-Identifier: Apache-2.0
// What `gpuscale advise` knows of the workloads of a cluster: found by advise_find.c, replayed by advise_replay.c,
// printed by cmd_advise.c; advise_engine.c knows the engines.
#ifndef GPUSCALE_CLI_GPU_ADVISE_H
#define GPUSCALE_CLI_GPU_ADVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "policies/schema/binding.h"

struct err;
struct kube_options;
struct policy_ref;
struct price_book;
struct prometheus_options;

#define ADVISE_WORKLOADS_MAX 5000
#define ADVISE_LATE_RATIO    0.01 // the objective that every candidate is judged by
#define ADVISE_WAIT_S        10.0
#define ADVISE_LEAST_SAVING  0.02 // of the cost of what ran; less is not worth a change

// ---- engines ----

// The inference engines that are recognised by their series, and the policies that are written for them. The queries
// name the labels that the series of a workload have on the server that was read.
enum advise_engine { ADVISE_VLLM, ADVISE_SGLANG, ADVISE_TRITON, ADVISE_TGI, ADVISE_GPU, ADVISE_ENGINE__COUNT };

struct advise_engine_info {
	const char *name;
	const char *probe;   // a metric that exists while a pod of the engine runs
	const char *unit;    // of the work
	bool has_queue;      // the probe is the metric of its queue, so that an objective has a backlog
	const char *library; // name of the policy of the library that fits it
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
// Appends the policy of the library that fits the engine, for this workload: YAML, without the comment at its top.
void advise_put_library(struct buf *out, const struct advise_subject *s);
// Appends a policy with an objective: at most 1 % of the work waits longer than 10 s. `capacity` is the work of a busy
// replica a second, in the unit of the engine. The engine has a queue.
void advise_put_objective(struct buf *out, const struct advise_subject *s, double capacity);

// ---- workloads ----

enum advise_candidate { ADVISE_RAN, ADVISE_PRESENT, ADVISE_LIBRARY, ADVISE_OBJECTIVE, ADVISE_CANDIDATE__COUNT };
extern const char *const advise_candidate_names[ADVISE_CANDIDATE__COUNT]; // "ran", "present rules", ..

// The replay of a candidate.
struct advise_outcome {
	bool is_known;
	double replicas; // mean
	double late_percent;
	int32_t changes;  // of direction
	const char *note; // why it is unknown, or what limits it; NULL: nothing
};

struct advise_workload {
	const char *namespace_name;
	struct scale_target target;
	const char *autoscaler;     // "ScaledObject llama"; NULL: none
	struct policy_ref *present; // the rules of the autoscaler; NULL: none, or unknown
	const char *present_fault;  // why they are unknown
	double gpus;                // of a replica, by the pod template; 0: unknown

	bool has_engine, is_exported;
	enum advise_engine engine;
	double capacity; // of a replica, in the unit of the engine a second

	bool has_use;     // GPUs of its pods were measured
	double gpu_hours; // that ran
	double cost, idle_cost, fake_cost;

	double measured_late_percent; // of the requests, by the histogram of the engine; NaN: unknown

	const char *fault; // why nothing was replayed
	struct advise_outcome outcomes[ADVISE_CANDIDATE__COUNT];
	const char *policies[ADVISE_CANDIDATE__COUNT]; // YAML of the library's and of the objective; NULL: none
	enum advise_candidate best;                    // cheapest that keeps the objective; ADVISE_RAN: nothing to gain
	double saved_ratio;                            // of the cost of what ran
	double saved_hours, saved_cost; // GPU-hours and money over the period; 0: nothing to gain, or unknown
};

struct advice {
	struct arena arena; // texts of the workloads
	struct advise_workload *workloads;
	size_t n;
	int64_t start_s, end_s;
	int64_t covered_s;      // of the period, with a record of a workload
	struct buf notes;       // what limits the whole, one line each
	double other_gpu_hours; // of pods that belong to none of the workloads
	double other_cost;      // of these
	size_t n_without_gpus;  // autoscaled workloads that are left out
	const char *currency;   // of the price book
	const char *server;     // URL that commands name
};

struct advise_request {
	const struct prometheus_options *prometheus;
	const struct kube_options *kube;
	const char *namespace_name; // NULL: all
	const char *kind, *name;    // the only workload; NULL: all
	const struct price_book *book;
	int64_t since_ms; // up to now
};

// Fills *ret with the workloads: those that an autoscaler of the cluster scales, those whose pods request GPUs, and
// those whose pods used GPUs in the period. Without a cluster, a note says so and Prometheus alone is read. Returns 0,
// or -1 and *e. The caller calls advice_done() in both cases.
int advise_find(const struct advise_request *r, struct advice *ret, struct err *e);
// Replays every workload: what ran, its present rules, the policy of the library, and an objective. What is missing is
// in the workload. Sorts them, the largest saving first. Returns 0, or -1 and *e when memory is exhausted or the server
// cannot be reached.
int advise_replay(const struct advise_request *r, struct advice *a, struct err *e);
void advice_done(struct advice *a);
// Decodes one policy from YAML. Returns it with one reference, or NULL and *e: ERR_INPUT with the first fault.
struct policy_ref *advise_policy(const char *text, struct err *e);

#endif
