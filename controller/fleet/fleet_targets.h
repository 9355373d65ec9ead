// SPDX-License-Identifier: Apache-2.0
// The targets of a fleet: the objects of its kind and selector, from one informer, and what the fleet keeps about each.
#ifndef GPUSCALE_CONTROLLER_FLEET_FLEET_TARGETS_H
#define GPUSCALE_CONTROLLER_FLEET_FLEET_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/tick/unacked_write.h"
#include "k8s/cache/informer.h"
#include "k8s/client/scale.h"
#include "policies/engine/observation.h"

struct conflict_interest;
struct decision;
struct fleet_selection;
struct query_answer;
struct policy;

#define FLEET_TARGETS_MAX    5000 // further objects are not scaled; the status has their number
#define FLEET_SERIES_MAX     10000
#define FLEET_SPACE_BYTES    64 // a namespace, with its NUL
#define FLEET_VERSION_BYTES  32 // etcd uses up to 20 digits; an object with a longer version is not scaled
#define FLEET_UID_BYTES      40 // a UUID
#define FLEET_ANNOTATION_MIN "gpuscale.dev/min-replicas"
#define FLEET_ANNOTATION_MAX "gpuscale.dev/max-replicas"

// Why the fleet does not scale a target, or that it does.
enum fleet_role {
	FLEET_SCALES,
	FLEET_UNDECIDED, // there was no tick yet
	FLEET_HAS_POLICY,
	FLEET_HAS_OLDER_FLEET,
	FLEET_HAS_AUTOSCALER,
	FLEET_CONFLICTS_UNKNOWN, // whether another autoscaler controls it is not known yet
	FLEET_BAD_BOUNDS,        // its annotations are not numbers of replicas
	FLEET_ROLE__COUNT
};
extern const char *const fleet_role_names[FLEET_ROLE__COUNT]; // "Scales", ..

// Kept small: there may be FLEET_TARGETS_MAX of them.
struct fleet_target {
	struct informer_item item; // first, so that an item is its target
	struct fleet_targets *all;
	struct fleet_target *previous_write, *next_write;       // in the queue of the fleet
	int32_t spec_replicas, status_replicas, ready_replicas; // ready: -1: unknown
	int32_t min_replicas, max_replicas;                     // of the annotations; -1: none
	uint32_t index;                                         // in the dealt series of this tick
	int32_t write_to;
	bool is_writing, is_queued, is_gone; // gone: freed when its write has ended
	bool has_bad_bounds, overlaps;       // overlaps: another fleet selects it, too
	bool has_failed;                     // the last write; an Event reports the first failure
	enum fleet_role role, reported;      // reported: the last one that an Event reports; FLEET_SCALES: none
	char *detail;                        // who has it, or why the last write failed; NULL: nothing
	struct unacked_write unacked;
	struct conflict_interest *interest; // NULL: conflicts are not watched yet
	int64_t last_scale_ms;              // of the packed state; -1: none
	void *packed;                       // the engine's state; NULL: fresh
	struct decision *decision;          // the last one, kept by decision_keep(); NULL: none
	uint32_t packed_bytes, decision_bytes;
	char resource_version[FLEET_VERSION_BYTES], uid[FLEET_UID_BYTES];
	const char *key, *name; // "NAMESPACE/NAME"; name: in key
};

struct fleet_targets {
	struct informer *informer;
	struct informer_item scope; // the namespace, or all
	char *scope_key;            // its key
	// Of a fleet that spans namespaces; NULL: it does not.
	struct informer *spaces;
	struct informer_item spaces_scope;
	const char *own_namespace; // of the controller; NULL: not known
	size_t n, n_beyond;        // beyond: objects above FLEET_TARGETS_MAX, as of the last list
	uint32_t list;             // number of the last complete list; 0: none
	char *error;               // why the watch fails; NULL: it does not
	// A list is complete, or the first attempt failed. May be NULL.
	void (*on_listed)(void *arg);
	// A target is no longer selected; its write has not ended when t->is_writing.
	void (*on_gone)(void *arg, struct fleet_target *t);
	void *arg;
};

// Starts to watch the objects of `selection` in a namespace, or in those that it selects. `t` must be zero but for its
// callbacks and own_namespace, whose objects are left out in the second case, as those of kube-system are. Returns 0,
// or -1 and *e: ERR_INTERNAL, and for a selector that cannot be parsed its error.
int fleet_targets_open(struct fleet_targets *t, struct k8s_client *client, const struct fleet_selection *selection,
                       const char *namespace_name, struct err *e);
// Stops the watch and reports every target as gone. What was never opened is fine.
void fleet_targets_close(struct fleet_targets *t);
// Frees a target that is gone and whose write has ended.
void fleet_target_free(struct fleet_target *t);
// Returns the target after `t` (NULL: the first), in no particular order; NULL at the end.
struct fleet_target *fleet_targets_next(const struct fleet_targets *all, const struct fleet_target *t);
// Returns the target of that name; NULL: the fleet does not select it.
struct fleet_target *fleet_targets_find(const struct fleet_targets *all, const char *namespace_name, const char *name);
// Records the response to a write of the scale, which arrives before the event.
void fleet_target_scaled(struct fleet_target *t, const struct scale *scale);

// The series of one answer, target by target.
struct fleet_deal {
	struct obs_series *series; // those of target i: series[first[i]] up to series[first[i + 1]]
	uint32_t *first;
	size_t n_unmatched;    // series without the label, or with the name of no target
	const char *unmatched; // one of those; NULL: none. Borrowed from the answer
};
// Deals out the series of an answer, whose `pod` is "NAMESPACE/NAME", to n targets, whose `index` must be set. Where
// NAMESPACE is empty, it is namespace_name; NULL: such a series has no target. Ends the process without memory.
void fleet_deal(struct fleet_deal *ret_deal, const struct fleet_targets *all, size_t n, const char *namespace_name,
                const struct query_answer *answer);
void fleet_deal_done(struct fleet_deal *deal);

// ---- fleet_record.c ----

#define FLEET_RECORD_BYTES_MAX ((size_t)512 * 1024)

struct fleet_record; // what an earlier process wrote

// Appends the entry of a target, with a space before it unless it is the first. state: the engine's, unpacked; NULL:
// fresh.
void fleet_record_put(struct buf *out, const struct fleet_target *t, const struct policy *policy, const void *state,
                      int64_t now_ms);
// Reads a record, which may come from anywhere: entries that cannot be read are left out. Ends the process without
// memory.
struct fleet_record *fleet_record_read(const char *text, size_t len);
void fleet_record_free(struct fleet_record *r); // NULL is fine
// Restores a target, whose state must be fresh, as of now_ms. A scale that the record does not have is treated as one
// of this moment.
void fleet_record_restore(const struct fleet_record *r, struct fleet_target *t, const struct policy *policy,
                          void *state, int64_t now_ms);

#endif
