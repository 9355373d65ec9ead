// SPDX-License-Identifier: Apache-2.0
// What the files of the controller share; nobody else includes this.
#ifndef GPUSCALE_CONTROLLER_CONTROLLER_PRIVATE_H
#define GPUSCALE_CONTROLLER_CONTROLLER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/controller.h"
#include "controller/policy_store.h"
#include "controller/reconcile.h"
#include "controller/restore_replicas.h"
#include "controller/shards.h"
#include "controller/status.h"
#include "controller/ticks.h"

struct event;
struct rivals;
struct scalers_want;
struct policy_body;

// What the controller knows of one policy of the store. Outlives its entry for as long as a tick is under way.
struct member {
	struct controller *controller;
	char *namespace_name, *name;
	struct policy_entry *entry;    // NULL: gone from the store
	struct policy_body *body;      // what the reconciler works with, one reference
	struct reconciler *reconciler; // NULL: there is nothing to work on: no valid policy, or the target is another's
	struct policy_status *status;  // NULL: a policy from a file, or one that another process reports on
	struct ticker ticker;
	size_t index;                                 // in controller.members
	uint32_t term;                                // of ownership that the reconciler was made in
	struct scalers_want *rivals_want;             // who else drives the target; NULL: not asked
	struct policy_body *rivals_of;                // the policy whose target that is, one reference
	bool waits_for_rivals;                        // too little is known about them yet
	bool is_dirty;                                // waits in controller.dirty
	bool restores;                                // the policy was deleted: its restoreReplicas are to be set
	bool said_waiting, said_shadowed, said_rival; // logged already
	struct member *previous_dirty, *next_dirty;
};

struct controller_shard {
	bool is_owned, is_leaving; // leaving: lost, and not settled yet
	uint32_t term;             // how often it was gained
};

struct controller {
	struct connections *connections;
	struct controller_options options;
	struct policy_store *store;
	struct policy_folder *folder; // NULL: no policies from files
	struct policy_watch *watch;   // NULL: none from the API server
	struct reconcile_env env;
	struct status_env status_env;
	struct restore_env restore_env;
	struct rivals *rivals; // NULL: the connections are being closed
	struct shards *shards; // NULL: all policies are ours
	struct controller_shard *shard;
	int32_t n_shards;
	struct event *leaving;
	struct ticks *ticks;
	struct member **members; // all that have a reconciler
	size_t n_members, members_room;
	struct member *dirty; // about which something is new; settled together, soon
	struct event *soon;
	size_t n_added, n_changed, n_removed; // since the last line of the log that said so
	struct reconciler **view;             // for the endpoints, in order of name; made when asked for
	bool said_events_error;               // in the log
	bool view_is_stale, was_crowded, was_ready, stopping;
	size_t n_trimmed; // members when memory was given back last
	struct history *history;
	int64_t start_ms, changed_ms;
	uint64_t revision;
	struct serving *serving; // NULL with --once
	struct event *on_term, *on_int, *on_hup;
};

// ---- controller_members.c ----

extern const struct policy_listener member_listener; // arg: the controller
// Settles what is new, as of now: reconcilers come, go and change their policy.
void members_settle(struct controller *c);
// Something outside of the store is new for this one.
void member_mark(struct member *m);
// What reconcile_env calls, with the member as owner.
bool member_is_current(void *owner);
const char *member_fault(void *owner);
void member_on_idle(void *owner);
// What ticks_options calls, with the member's ticker.
void member_start_tick(void *arg, struct ticker *t, int64_t now_ms);
// Frees them all; no tick may be under way.
void members_free(struct controller *c);

// ---- controller_ownership.c ----

int ownership_open(struct controller *c, struct err *e);
void ownership_close(struct controller *c);
// Grows with each time that the policy becomes ours; 0: it is not.
uint32_t member_term(const struct member *m);
// Is it certain to be ours for as long as a write may take?
bool member_may_write(void *owner, struct err *e);
bool controller_may_write(void *arg, const struct policy_body *body, struct err *e);

// ---- controller_rivals.c ----

int rivals_open(struct controller *c, struct err *e);
void rivals_close(struct controller *c);
// Of some policies it is not known yet whether their target is to be had.
bool rivals_are_waited_for(const struct controller *c);
// The policy that the member would work with if nobody else drives its target; NULL: none.
void rivals_settle(struct member *m, struct policy_body *body);
// Nobody else drives the target, as far as can be seen, or this policy writes nothing to it.
bool rivals_allow(const struct member *m, const struct policy_body *body);
// "HorizontalPodAutoscaler ns/name"; NULL: nobody, or not known yet. Valid until the loop runs.
const char *rivals_owner(const struct member *m);
// What reconcile_env calls: rivals_owner; why somebody may be overlooked, NULL: nobody is.
const char *member_rival(void *owner);
const char *member_unseen(void *owner);

// ---- controller_view.c ----

// Something that the endpoints show is new.
void controller_touch(struct controller *c);

// ---- controller.c ----

// Nothing is under way any more, and nothing waits to be settled.
void controller_on_quiet(struct controller *c);
// Every source has said what it has, or why it cannot.
bool controller_is_settled(const struct controller *c);

#endif
