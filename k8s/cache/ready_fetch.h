// SPDX-License-Identifier: Apache-2.0
// Reads the ready replicas that a scale target itself reports, by one request, for targets that are not watched.
#ifndef GPUSCALE_K8S_CACHE_READY_FETCH_H
#define GPUSCALE_K8S_CACHE_READY_FETCH_H

#include <stdbool.h>
#include <stdint.h>

struct k8s_client;
struct scale_ref;

// Receives the result, once, from the loop. ready: -1 when the target reports none or cannot be read; is_stale: as
// target_decode_ready() sets it.
typedef void ready_fetch_fn(void *arg, int32_t ready, bool is_stale);

// Sends a list of the one object, for which the rights of a watch suffice. Returns 0, or -1 when the resource of the
// kind is unknown (discovery.h) or no request can be sent; then done is not called.
int ready_fetch(struct k8s_client *c, const struct scale_ref *ref, ready_fetch_fn *done, void *arg);

#endif
