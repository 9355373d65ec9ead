// SPDX-License-Identifier: Apache-2.0
// Leader election on one Lease: acquires the lease when it is free, renews it and releases it, according to the rules
// of k8s/lease/lease_rules.h.
#ifndef GPUSCALE_K8S_LEASE_LEASE_H
#define GPUSCALE_K8S_LEASE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "k8s/lease/lease_rules.h"

struct clock;
struct err;
struct event_base;
struct k8s_client;
struct lease;

// All callbacks run from the loop, never from a function below. They must not free the lease.
struct lease_callbacks {
	// The lease was acquired.
	void (*on_gained)(void *arg);
	// The lease is lost: taken over, deleted, or not renewed in time; `why` says which. Acquisition is retried.
	void (*on_lost)(void *arg, const char *why);
	// lease_release has completed, successfully or not.
	void (*on_released)(void *arg);
	// Requests for the lease fail and are retried; NULL: they succeed again. Called when the first request fails,
	// when the message changes and when requests succeed again. The errors are those of k8s_request.
	void (*on_error)(void *arg, const struct err *error);
};

struct lease_options {
	// A separate client with max_attempts 1, timeout lease_request_timeout_ms(), and connections for which no other
	// requests queue. Not owned.
	struct k8s_client *client;
	struct event_base *loop;
	const struct clock *clock;
	const char *namespace_name, *name, *identity; // copied
	struct lease_timing timing;                   // checked by the caller with lease_timing_check
	const char *group, *role;                     // labels; not copied; NULL: none
	int32_t n_shards;                             // annotation; 0: none
	// The caller watches the leases and calls lease_observe. Otherwise the lease is read in every retry period
	// while it is not held.
	bool fed_by_watch;
	// lease_release deletes the object instead of clearing its holder.
	bool is_deleted_at_end;
	struct lease_callbacks callbacks;
	void *arg;
};

// Creates an idle lease; see lease_set_candidate. Returns NULL and *e: ERR_USAGE for an invalid name or identity,
// ERR_INTERNAL.
struct lease *lease_new(const struct lease_options *options, struct err *e);
// Frees the lease without releasing it; no callback runs afterwards. A request in flight completes by itself. NULL is
// fine.
void lease_free(struct lease *l);

// Starts to acquire and renew the lease, or stops trying to acquire it. Only lease_release releases a lease that is
// held.
void lease_set_candidate(struct lease *l, bool is_wanted);
// Reports the lease as a list or watch returned it; NULL: it does not exist. Ignored while this process holds it.
void lease_observe(struct lease *l, const struct lease_record *record);
// Releases the lease: it is neither held nor wanted from this call on. The server is notified so that the next holder
// need not wait; then on_released is called. Call it when no work under the lease is in progress any more.
void lease_release(struct lease *l);

// Returns for how many ms this process certainly still holds the lease; 0: it does not.
int64_t lease_valid_for_ms(const struct lease *l);

#endif
