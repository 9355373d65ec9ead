// SPDX-License-Identifier: Apache-2.0
// The state of a conflict watch. Include it only from conflict_watch.c and from tests.
#ifndef GPUSCALE_K8S_CACHE_CONFLICT_WATCH_PRIVATE_H
#define GPUSCALE_K8S_CACHE_CONFLICT_WATCH_PRIVATE_H

#include <event2/event_struct.h>

#include "base/hash_table.h"
#include "k8s/cache/autoscaler_object.h"
#include "k8s/cache/conflict_watch.h"
#include "k8s/cache/informer.h"

struct target;

// A namespace in which targets are wanted.
struct namespace_watch {
	UT_hash_handle hh;
	size_t n_wants;
	struct informer_item of[AUTOSCALER_KIND__COUNT]; // all objects of the namespace; .space NULL: not watched
	char namespace_name[];
};

enum served { SERVED_UNKNOWN, SERVED_NO, SERVED_YES };

// A kind; the argument of its informer's callbacks.
struct resource_watch {
	struct conflict_watch *s;
	enum autoscaler_kind kind;
	enum served served;
	struct informer *informer;
	// Request for the first kind of a group version, which covers all of its kinds.
	struct k8s_call *asking;
	uint64_t n_asked;
	char *error; // why the server did not report whether it serves the kind; NULL: it did, or was not queried
};

struct conflict_watch {
	struct conflict_watch_options options;
	struct target *targets;
	struct namespace_watch *namespaces; // hash
	struct resource_watch of[AUTOSCALER_KIND__COUNT];
	struct conflict_interest *wants;
	size_t n_wants;
	struct event ask_timer, later;
};

#endif
