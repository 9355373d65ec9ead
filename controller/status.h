// SPDX-License-Identifier: Apache-2.0
// What a GPUAutoscaler says about itself: its status, written only when something changed, and Events on transitions.
#ifndef GPUSCALE_CONTROLLER_STATUS_H
#define GPUSCALE_CONTROLLER_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/status_conditions.h"

struct err;
struct event_recorder;
struct policy;
struct policy_status;
struct status_writer;

#define STATUS_MINOR_MS   60000  // reasons, ready counts and recommendations that come and go: at most this often
#define STATUS_RETRY_MS   15000  // a patch that was not written is made again
#define STATUS_SIGNALS_MS 300000 // signals that moved, with nothing else to say, at most this often
#define STATUS_MOVED      0.1    // and only when one moved by this part of its value

struct status_env {
	struct status_writer *writer;  // not owned
	struct event_recorder *events; // not owned; NULL: no Events
};

// The status of one object. env must outlive it. NULL when memory ends.
struct policy_status *policy_status_new(const struct status_env *env, const char *namespace_name, const char *name,
                                        const char *uid);
void policy_status_free(struct policy_status *s); // NULL is fine
// Goes on where the last process ended: what it wrote (json: the object) is read into the state, which must be fresh.
// -1 and *e when the text is no object (controller/status_doc.h).
int policy_status_restore(struct policy_status *s, const char *json, size_t len, const struct policy *policy,
                          void *state, int64_t now_ms, struct err *e);

// What the target was asked for when the last process wrote its status; -1: it did not say, or of another generation.
int32_t policy_status_replicas(const struct policy_status *s);
// What was restored does not say when the target was scaled last, so that counts as when it was read.
bool policy_status_is_unsure(const struct policy_status *s);
// A status of this object that tells replicas, if any are known, is at the API server: of this process, or of one
// before. Not while another one drives the target.
bool policy_status_is_there(const struct policy_status *s);

struct status_update {
	struct status_facts facts;
	const struct policy *policy; // in force; NULL: none was ever valid
	const void *state;           // the engine's, of `policy`; NULL with it
	int64_t generation;          // of `policy`
	int64_t now_ms;
};
// After every tick, and whenever something kept a tick from happening. A scale is written twice: with the signals that
// led to it, and by the next tick that decides, with those seen at the new scale.
void policy_status_update(struct policy_status *s, const struct status_update *u);
// Why the last patch was not written; "" when it was.
const char *policy_status_error(const struct policy_status *s);

#endif
