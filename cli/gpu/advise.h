// SPDX-License-Identifier: Apache-2.0
// What `gpuscale advise` knows of the workloads of a cluster: found by advise_find.c, replayed by advise_replay.c,
// printed by advise_report.c and advise_page.c.
#ifndef GPUSCALE_CLI_GPU_ADVISE_H
#define GPUSCALE_CLI_GPU_ADVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/gpu/advise_engine.h"
#include "policies/schema/binding.h"

struct err;
struct kube_options;
struct policy_ref;
struct price_book;
struct prometheus_options;
struct prometheus_session;

#define ADVISE_WORKLOADS_MAX 5000
#define ADVISE_LATE_RATIO    0.01 // the objective that every candidate is judged by
#define ADVISE_WAIT_S        10.0
#define ADVISE_LEAST_SAVING  0.02 // of the cost of what ran; less is not worth a change

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
	int64_t since_ms, until_ms; // until_ms 0: now
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

struct advise_totals {
	double days, covered_days, gpu_hours, cost, idle_cost, fake_cost;
	double saved_hours, saved_cost, saved_month; // month: 30 days, by the time that is covered
	size_t n_not_replayed;
};
struct advise_totals advise_sum(const struct advice *a);

// Returns the policy to write for a workload: the best one, or else the objective where it keeps its promise.
enum advise_candidate advise_recommended(const struct advise_workload *w);
// Returns the saving in GPU-hours and in money over the period; 0: nothing to gain, or unknown.
double advise_saved_hours(const struct advise_workload *w);
double advise_saved_cost(const struct advise_workload *w);
// Appends a sentence on what to do about the workload.
void advise_put_verdict(struct buf *out, const struct advice *a, const struct advise_workload *w);
// Appends the command that shows the decisions of the recommended policy and writes nothing.
void advise_put_command(struct buf *out, const struct advice *a, const struct advise_workload *w);
void advise_report_table(const struct advice *a, struct buf *out);
void advise_report_json(const struct advice *a, struct buf *out);
// One workload as a policy file: the figures as comments, then the recommended policy.
void advise_report_policy(const struct advice *a, const struct advise_workload *w, struct buf *out);
// Appends a self-contained page. Returns 0, or -1 and *e: ERR_LIMIT.
int advise_page(const struct advice *a, struct buf *out, struct err *e);

#endif
