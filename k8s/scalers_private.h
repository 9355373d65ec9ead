// SPDX-License-Identifier: Apache-2.0
// What the files of the scalers share; nobody else includes this.
//   scalers.c          what is watched, and whether there is KEDA
//   scalers_objects.c  what was seen, and who is told
#ifndef GPUSCALE_K8S_SCALERS_PRIVATE_H
#define GPUSCALE_K8S_SCALERS_PRIVATE_H

#include <event2/event_struct.h>
#include <uthash.h>

#include "k8s/scaler_object.h"
#include "k8s/scalers.h"

struct collection;
struct scope;
struct target;

// Something that scales; text: how it is named.
struct scaler {
	struct scaler *prev, *next;               // in its collection
	struct scaler *target_prev, *target_next; // of its target
	UT_hash_handle hh;                        // in its collection, by key
	struct collection *of;
	struct target *target;
	uint32_t round;
	int rank; // the lowest is named
	char *group, *text;
	char key[]; // "NAMESPACE/NAME"
};

// "NAMESPACE/KIND/NAME": who drives it, and who wants to know.
struct target {
	UT_hash_handle hh;
	struct scaler *scalers;
	struct scalers_want *wants;
	char key[];
};

struct scalers_want {
	struct scalers_want *prev, *next;         // of its target
	struct scalers_want *all_prev, *all_next; // of all
	struct scalers *s;
	struct target *target;
	struct space *space;
	char group[SCALER_NAME_BYTES];
	void *user;
	char *said; // owner that on_change was last called for; NULL: none
	char *error_said;
	bool was_known;
};

// The objects of one kind in one scope.
struct collection {
	struct scope *scope;
	enum scaler_kind kind;
	struct k8s_watch *watch; // NULL: not watched
	struct scaler *list, *index;
	uint32_t round;
	bool is_synced;
	char *error;
};

// A namespace, or all of them.
struct scope {
	struct scalers *s;
	struct collection of[SCALER_KIND__COUNT];
	char namespace_name[SCALER_NAME_BYTES]; // "": all
};

// A namespace in which something is wanted.
struct space {
	UT_hash_handle hh;
	size_t n_wants;
	struct scope *scope; // NULL: that of all namespaces does
	char namespace_name[SCALER_NAME_BYTES];
};

enum keda { KEDA_UNKNOWN, KEDA_ABSENT, KEDA_PRESENT };

struct scalers {
	struct scalers_options options;
	struct target *targets;
	struct space *spaces;
	struct scope *all; // NULL: not used
	struct scalers_want *wants;
	size_t n_wants, n_objects;
	enum keda keda;
	struct k8s_call *asking;
	struct event ask_timer, later;
	char *keda_error;
	uint64_t keda_asked;
};

// scalers_objects.c
char *scalers_copy(const char *text);
void *scalers_make(size_t size);
struct target *scalers_target_get(struct scalers *s, const char *namespace_name, const char *kind, const char *name);
// Frees it when nobody needs it any more.
void scalers_target_release(struct scalers *s, struct target *t);
bool scalers_scope_is_settled(const struct scalers *s, const struct scope *scope);
void scalers_tell_all(struct scalers *s);
// Callbacks of a collection's watch.
void scalers_on_list(void *arg);
void scalers_on_object(void *arg, const char *json, size_t len);
void scalers_on_deleted(void *arg, const char *json, size_t len);
// The list is complete: what it did not show is gone.
void scalers_sweep(struct collection *c);
// All of it is forgotten; nobody is told.
void scalers_forget(struct collection *c);

#endif
