// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the conflict watch. Include it only from those files.
//   conflict_watch.c    watches per namespace, and which kinds the cluster serves
//   conflict_objects.c  the reported autoscalers, and reports of changes
#ifndef GPUSCALE_K8S_CACHE_CONFLICT_WATCH_PRIVATE_H
#define GPUSCALE_K8S_CACHE_CONFLICT_WATCH_PRIVATE_H

#include <event2/event_struct.h>

#include "base/hash_table.h"
#include "k8s/cache/autoscaler_object.h"
#include "k8s/cache/conflict_watch.h"
#include "k8s/cache/informer.h"

struct target;

// A conflicting autoscaler; text: how messages name it.
struct conflict {
	struct informer_item item;
	struct conflict *target_prev, *target_next; // conflicts of its target
	struct target *target;
	int rank; // the lowest is named
	char *group, *text;
	char key[]; // "NAMESPACE/NAME"
};

// A target, its autoscalers, and the callers that want to know them.
struct target {
	UT_hash_handle hh;
	struct conflict *conflicts;
	struct conflict_interest *wants;
	char key[]; // "NAMESPACE/KIND/NAME"
};

struct conflict_interest {
	struct conflict_interest *prev, *next;         // list of its target
	struct conflict_interest *all_prev, *all_next; // list of all
	struct conflict_watch *s;
	struct target *target;
	struct namespace_watch *watched;
	void *user;
	char *reported; // the conflict that on_change was last called for; NULL: none
	char *error_reported;
	bool was_known;
	char group[]; // API group of the target
};

// A namespace in which targets are wanted.
struct namespace_watch {
	UT_hash_handle hh;
	size_t n_wants;
	struct informer_item *of[AUTOSCALER_KIND__COUNT]; // all objects of the namespace; NULL: not watched
	char namespace_name[AUTOSCALER_NAME_BYTES];
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

// Returns whether objects of the kind are not watched, because the caller acts on them.
static inline bool conflict_watch_skips(const struct conflict_watch *s, enum autoscaler_kind kind)
{
	return kind == AUTOSCALER_SCALED_OBJECT && s->options.skip_scaled_objects;
}

// conflict_objects.c
char *conflict_watch_copy(const char *text); // never NULL
struct target *conflict_watch_target_get(struct conflict_watch *s, const char *namespace_name, const char *kind,
                                         const char *name);
// Frees the target when it has neither autoscalers nor callers.
void conflict_watch_target_release(struct conflict_watch *s, struct target *t);
void conflict_watch_report_all(struct conflict_watch *s);
// Callbacks of the informer of a resource.
void conflict_watch_on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                              const char *json, size_t len);
void conflict_watch_on_absent(void *arg, struct informer_item *item);

#endif
