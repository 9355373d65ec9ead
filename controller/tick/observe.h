// SPDX-License-Identifier: Apache-2.0
// Collects one observation for one policy: its signals from the sources, and its target's scale and pods from the API
// server, in parallel. Ready and pending count replicas: as the target itself reports them; else the complete groups of
// its pods (k8s/targets/workload_kind.h); else its pods, of which decide() counts no more than there are replicas.
#ifndef GPUSCALE_CONTROLLER_TICK_OBSERVE_H
#define GPUSCALE_CONTROLLER_TICK_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "k8s/cache/target_store.h"
#include "k8s/client/replica_groups.h"
#include "k8s/client/scale.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "runtime/query/query_hub.h"

struct buf;
struct fit_store;
struct fit_target;
struct k8s_client;

// The fields of a log line about what has a namespace and a name, such as a policy; and about a binding.
#define LOG_POLICY(p)  LOG_S("namespace", (p)->namespace_name), LOG_S("policy", (p)->name)
#define LOG_BINDING(b) LOG_POLICY((b)->policy), LOG_S((b)->key ? "target" : NULL, (b)->key)

struct observe_sources {
	struct query_hub *queries;
	struct k8s_client *k8s; // NULL: given_replicas is used
	int32_t given_replicas;
	struct target_store *targets; // watches the targets; NULL: each is read by a request
	struct fit_store *fits;       // what fits into the cluster; NULL: unknown
};

// A query of a policy: name of its source (NULL: the default one), text, and as in struct query_question.
struct observe_query {
	const char *source, *query;
	int64_t stale_after_ms;
	size_t max_series;
};
// Sends a query of the policy as of now_ms, as query_hub_ask() does, within the access rules of its source. scratch: an
// initialized buffer for the query.
void observe_ask_query(struct query_hub *hub, const struct policy *p, const struct observe_query *query, int64_t now_ms,
                       struct buf *scratch, query_answer_fn *fn, void *arg);
// Compares two struct pod_info by name, for qsort() and bsearch().
int observe_compare_pods(const void *a, const void *b);
// Returns the state of a pod as the engine names it.
enum pod_state observe_pod_state(enum pod_kind kind);
// Returns whether a signal uses one series, so that more are ambiguous.
bool observe_takes_one_series(const struct policy_signal *s);
// Sends the query of signal i of the policy with observe_ask_query().
void observe_ask(struct query_hub *hub, const struct policy *p, size_t i, int64_t now_ms, struct buf *scratch,
                 query_answer_fn *fn, void *arg);

// Asks for the present value of that query, as query_hub_check_early() does. Returns false when the query has to be
// sent in full.
bool observe_check_early(struct query_hub *hub, const struct policy *p, size_t i, int64_t now_ms, struct buf *scratch,
                         early_query_fn *fn, void *arg);

#define OBSERVE_DETAIL_BYTES 160

struct observation_call;
// Called when the observation is complete. c->error.kind != ERR_NONE: the target could not be read, so no decision is
// possible. Failed queries are not errors but signals without data. c->observation is valid until observe_release().
typedef void observe_done_fn(void *arg, struct observation_call *c);

// The argument of one signal's query: the hub's callback carries a single pointer.
struct observe_slot {
	struct observation_call *call;
	size_t signal;
};

// Owned by the caller, reused tick after tick; zero it once.
struct observation_call {
	struct observe_sources sources;
	bool bypass_cache;      // set by the caller: read the target from the API server, not from the watch
	struct fit_target *fit; // set by the caller: the target, for a policy with capacity; NULL: unknown
	const struct binding *binding;
	const struct policy *policy; // that of the binding
	int64_t now_ms;
	observe_done_fn *done;
	void *arg;
	int pending; // outstanding answers; 0 = idle
	struct observe_slot slots[POLICY_SIGNALS_MAX];
	struct query_answer *answers[POLICY_SIGNALS_MAX];
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	// For rendering, as in struct decided; points into answers, and for the capacity into this struct.
	const char *details[POLICY_SIGNALS_MAX + 1];
	struct target_waiter waiter;
	struct scale scale;
	struct pod_counts pods;
	struct pod_list pod_list; // asked for only when a signal is of type Pods, or a replica is a group of pods
	struct obs_pod *observed_pods;
	bool pods_known;
	const struct workload_kind *workload;
	bool is_wide; // the pods are those of the whole groups; the selector of the scale matches only their leaders
	bool has_groups;
	struct replica_groups groups;
	int32_t target_ready; // ready replicas as the target reports them; -1: unknown
	bool is_ready_stale;  // counted before the last change of its spec
	char shape_detail[OBSERVE_DETAIL_BYTES];
	struct err pods_error; // why not, when !pods_known
	struct err error;
	struct observation observation;
};

// Starts an observation as of now_ms; calls done exactly once, maybe before this returns. c must be idle. binding must
// outlive the call.
void observe_start(struct observation_call *c, const struct observe_sources *sources, const struct binding *binding,
                   int64_t now_ms, observe_done_fn *done, void *arg);
// Sets observation.capacity to what fits at this moment. Call immediately before decide(): another policy may have
// ordered since the observation. Does nothing for a policy without capacity.
void observe_capacity(struct observation_call *c);
// Returns the target of a policy with capacity for observation_call.fit; NULL: the policy has none, or *e.
struct fit_target *observe_acquire_fit(const struct observe_sources *sources, const struct binding *binding,
                                       struct err *e);
// Passes the answer to a write of the scale to the target store, which knows the new scale from now on. scale NULL: the
// answer was 404, so that the next observation requests the target.
void observe_written(const struct observe_sources *sources, const struct binding *binding, const struct scale *scale);
// Releases the answers and pods of the last observation.
void observe_release(struct observation_call *c);
// Returns whether the policy needs each pod of its target by name.
bool observe_needs_pods(const struct policy *p);
// Returns the replicas that a signal is compared with: the ready ones, or the requested ones when that is unknown.
int32_t observation_ready(const struct observation *o);
// Returns the target as the k8s layer names it.
struct scale_ref binding_scale_ref(const struct binding *b);

#endif
