// SPDX-License-Identifier: Apache-2.0
// Election on one Lease: take it when it is free, renew it, give it up. The rules are those of k8s/lease_rules.h.
#ifndef GPUSCALE_K8S_LEASE_H
#define GPUSCALE_K8S_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "k8s/lease_rules.h"

struct clock;
struct err;
struct event_base;
struct k8s_client;
struct lease;

// All are called from the loop, never from a function below. None may free the lease.
struct lease_callbacks {
	void (*on_gained)(void *arg);
	// It is not ours any more, from now on: taken, deleted, or not renewed in time. It is still wanted.
	void (*on_lost)(void *arg, const char *why);
	// lease_release() has ended, well or not.
	void (*on_released)(void *arg);
	// It can be neither read nor written now, and goes on trying; NULL: it works again. Called when this begins,
	// changes its message or ends, not at every try. Kinds and texts are k8s_request's.
	void (*on_error)(void *arg, const struct err *error);
};

struct lease_options {
	// A client of its own: max_attempts 1, timeout lease_request_timeout_ms(), connections that nothing else queues
	// on. Not owned.
	struct k8s_client *client;
	struct event_base *loop;
	const struct clock *clock;
	const char *namespace_name, *name, *identity; // copied
	struct lease_timing timing;                   // checked before (lease_timing_check)
	const char *group, *role;                     // labels; not copied; NULL: none
	int32_t n_shards;                             // annotation; 0: none
	// Somebody else lists the leases and calls lease_saw(); without it, this asks every retry period while it
	// waits.
	bool is_shown;
	// lease_release() deletes the object instead of emptying it.
	bool is_deleted_at_end;
	struct lease_callbacks callbacks;
	void *arg;
};

// Idle until it is wanted. NULL and *e for unusable arguments.
struct lease *lease_new(const struct lease_options *options, struct err *e);
// Does not release it; no callback runs any more. A request under way ends on its own. NULL is fine.
void lease_free(struct lease *l);

// Tries to get it and keeps it, or stops trying. One that is held is given up by lease_release() only.
void lease_want(struct lease *l, bool is_wanted);
// What a list said: NULL, it is not there. Ignored while we hold it.
void lease_saw(struct lease *l, const struct lease_record *record);
// Not ours from this call on, nor wanted: tells the server so that the next one need not wait, then on_released.
// Nothing that was done under the lease may be under way any more.
void lease_release(struct lease *l);

// How long it is certainly ours still; 0: it is not.
int64_t lease_valid_for_ms(const struct lease *l);
bool lease_is_wanted(const struct lease *l);
// The holder's identity as seen last; "" when nobody, or nothing is known yet.
const char *lease_holder(const struct lease *l);

#endif
