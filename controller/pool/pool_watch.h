// SPDX-License-Identifier: Apache-2.0
// GPUPool objects as a source of pools. A cluster without the custom resource has none, which is not an error: whether
// it was installed is looked up every POOL_WATCH_ASK_MS.
#ifndef GPUSCALE_CONTROLLER_POOL_POOL_WATCH_H
#define GPUSCALE_CONTROLLER_POOL_POOL_WATCH_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/schema/schema.h"

struct err;
struct k8s_call;
struct k8s_client;
struct log;
struct object_watch;
struct pool_object;
struct pools;

#define POOL_WATCH_PLURAL   "gpupools"
#define POOL_WATCH_ASK_MS   60000
#define POOL_WATCH_RETRY_MS 5000 // after an error of that lookup

struct pool_watch_options { // owns nothing
	struct k8s_client *client;
	struct pools *pools;
	struct log *log;
	// Called when the watch has delivered its first list, or cannot: the pools are as known as they can be.
	void (*on_answer)(void *arg);
	void *arg;
};

// Other files read it; pool_watch.c alone changes it.
struct pool_watch {
	struct pool_watch_options options;
	struct object_watch *objects; // NULL: the cluster does not serve pools
	struct k8s_call *asking;
	struct event timer; // asks, or closes a watch of a resource that is gone
	bool is_gone;
	bool has_answer;                      // on_answer was called
	char *error;                          // logged; NULL: none
	struct schema_errors errors, unknown; // of the current object
};

// Starts to look for pools.
struct pool_watch *pool_watch_new(const struct pool_watch_options *options);
// The pools stay. Call before the client is freed. NULL is fine.
void pool_watch_free(struct pool_watch *w);

// Returns a version of an object for pools_put_object(), which frees it. Its errors are left in `errors`, and its
// unknown fields, which have no effect, in `unknown`; an object with errors has a fault. Aborts when memory is
// exhausted (base/must.h).
struct pool_object *pool_object_read(const char *name, const char *json, size_t len, struct schema_errors *errors,
                                     struct schema_errors *unknown);
// Writes errors as one line, cut to `size` bytes.
void pool_object_put_errors(const struct schema_errors *errors, char *out, size_t size);

#endif
