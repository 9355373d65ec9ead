// SPDX-License-Identifier: Apache-2.0
// One observation of one policy's world: its signals from Prometheus and its target's scale and pods from the API
// server, asked side by side.
#ifndef GPUSCALE_CONTROLLER_OBSERVE_H
#define GPUSCALE_CONTROLLER_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "controller/query_hub.h"
#include "k8s/scale.h"
#include "k8s/target_store.h"
#include "policies/observation.h"
#include "policies/policy.h"

struct k8s_client;

struct observe_sources {
	struct query_hub *queries;
	struct k8s_client *k8s; // NULL: the replicas below are taken as given
	int32_t given_replicas;
	struct target_store *targets; // knows targets without asking; NULL: each is asked for
};

struct observation_call;
// c->error.kind != ERR_NONE: the target could not be read and nothing can be decided. Failed queries are no error: they
// are signals without data. c->observation is valid until observe_release().
typedef void observe_done_fn(void *arg, struct observation_call *c);

// The argument of one signal's query: the hub's callback carries a single pointer.
struct observe_slot {
	struct observation_call *call;
	size_t signal;
};

// Owned by the caller, reused tick after tick; zero it once.
struct observation_call {
	struct observe_sources sources;
	bool must_ask; // set by the caller: the server is asked, whatever the store of targets knows
	const struct policy *policy;
	int64_t now_ms;
	observe_done_fn *done;
	void *arg;
	int pending; // answers still to come; 0 = idle
	struct observe_slot slots[POLICY_SIGNALS_MAX];
	struct query_answer *answers[POLICY_SIGNALS_MAX];
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	const char *details[POLICY_SIGNALS_MAX]; // for rendering; points into answers
	struct target_waiter waiter;
	struct scale scale;
	struct pod_counts pods;
	struct pod_list pod_list; // asked for only when a signal is of type Pods
	struct obs_pod *observed_pods;
	bool pods_known;
	int32_t target_ready;  // what the target's controller counts, for when the pods are not to be had; -1 = not
	                       // known
	struct err pods_error; // why not, when !pods_known
	struct err error;
	struct observation observation;
};

// Starts one; done is called exactly once, maybe before this returns. c must be idle. policy must outlive it.
void observe_start(struct observation_call *c, const struct observe_sources *sources, const struct policy *policy,
                   int64_t now_ms, observe_done_fn *done, void *arg);
// The server answered a write with *scale: what the store of targets knows from now on.
void observe_scaled(const struct observe_sources *sources, const struct policy *policy, const struct scale *scale);
// Drops the references the answers hold.
void observe_release(struct observation_call *c);
// Must the target's pods be known one by one? Counts come from the target itself.
bool observe_needs_pods(const struct policy *p);
// The replicas a signal is held against: the ready ones, or those asked for when that is not known.
int32_t observation_ready(const struct observation *o);
// The policy's target as the k8s layer names it.
struct scale_ref policy_scale_ref(const struct policy *p);

#endif
