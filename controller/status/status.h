// SPDX-License-Identifier: Apache-2.0
// Writes the status of a GPUAutoscaler, only when something changed, and Events on transitions.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/status/state_dir.h"
#include "controller/status/status_conditions.h"
#include "controller/status/status_doc.h"
#include "controller/status/status_writer.h"

struct buf;
struct clock;
struct err;
struct event_recorder;
struct binding;

#define POLICY_STATUS_PATH_BYTES 700 // namespace and name have at most 253 each

#define STATUS_MINOR_MS   60000  // reasons, ready counts and recommendations that come and go: at most this often
#define STATUS_RETRY_MS   15000  // a patch that failed is written again after this time
#define STATUS_SIGNALS_MS 300000 // at most this often when only signals changed
#define STATUS_SOON_MS    30000  // a scale is written by the next tick if ticks are at most this far apart
#define STATUS_MOVED      0.1    // and only when one changed by this fraction of its value

struct status_env {
	struct status_writer *writer;  // not owned; NULL: write to files
	struct event_recorder *events; // not owned; NULL: no Events
	struct state_dir *dir;         // not owned; used without a writer, for policies that have no object
	const struct clock *clock;     // not owned; used with dir
	bool is_scaled_object;         // the objects are ScaledObjects instead of GPUAutoscalers
	bool is_read_only;             // another program writes the status; Events are recorded all the same
	// The API server answered a request for the object with 404. May be NULL.
	void (*on_missing)(void *arg, const char *namespace_name, const char *name);
	void *arg;
};

// Where the status of a binding is: status of the object of that name, or for one of several bindings,
// status.targets[key] of it. A policy from a file has a file for each binding, and the uid "".
struct status_place {
	const char *namespace_name, *name, *uid;
	const char *key; // of the binding; NULL: it is the only one
};

typedef void policy_status_begun_fn(void *arg);

// Other files read it; status.c alone changes it.
struct policy_status {
	const struct status_env *env; // with a dir: the status is written to a file instead of an object
	const char *name, *uid, *key; // behind namespace_name; key: NULL: the status is the object's
	// record.replicas: those requested for the target when the restored status was written; record.is_unsure: it
	// lacks the time of the last scale, so that the time of reading counts.
	struct status_record record;
	struct status_slot slot;       // of an object
	struct state_slot file;        // of a policy from a file
	policy_status_begun_fn *begun; // NULL: no call is pending
	void *begun_arg;
	uint64_t seen;         // fingerprint of the last update; an equal one changes nothing
	uint64_t major, minor; // fingerprints of the contents at the last update
	struct status_past past;
	enum status_phase written_phase; // of the last write
	double *values;                  // of the signals in the last write; owned
	size_t n_values;
	// The API server holds a status of this object with the known replicas, written by this process or an earlier
	// one. False while another autoscaler controls the target, or the policy has no valid version.
	bool is_recorded;
	char *error; // why the last write failed; owned; NULL: it did not
	// For Events.
	enum status_phase phase;
	bool has_fault;
	char namespace_name[];
};

// Creates the status of one binding; copies the place. env must outlive it.
struct policy_status *policy_status_new(const struct status_env *env, const struct status_place *place);
void policy_status_free(struct policy_status *s); // NULL is fine
// Restores `state`, which must be fresh, from the status that an earlier process wrote. json: the whole object. Returns
// -1 and *e when the text is not a JSON object (controller/status/status_doc.h).
int policy_status_restore(struct policy_status *s, const char *json, size_t len, const struct binding *binding,
                          void *state, int64_t now_ms, struct err *e);

// Notes that the API server answered a request for the object with `error`, as the status itself does for its writes.
void policy_status_failed(const struct policy_status *s, const struct err *error);
// Writes the path of the object to `out`, which has POLICY_STATUS_PATH_BYTES, with `suffix` after it.
void policy_status_path(const struct policy_status *s, const char *suffix, char *out);
// Appends the merge-PATCH that records only the replicas requested for the target, before its first scale. Valid only
// unless the status is written to a file.
void policy_status_write_replicas(const struct policy_status *s, const struct binding *binding, int32_t replicas,
                                  int64_t generation, struct buf *out);
// Like policy_status_restore, from the state file of the policy. Returns 1, 0 when there is no file, or -1 and *e when
// the file cannot be used. After -1 nothing is restored, and the last scale counts as of now_ms, unless the file
// belongs to another policy or target.
int policy_status_recall(struct policy_status *s, const struct binding *binding, void *state, int64_t now_ms,
                         struct err *e);
// Writes a file that records only the replicas requested for the target, before its first scale. done is called exactly
// once: when the file is written or the write failed, at the latest when the status is freed. Valid only when the
// status is written to a file.
void policy_status_begin(struct policy_status *s, const struct binding *binding, int32_t replicas,
                         policy_status_begun_fn *done, void *arg);
// Removes the file of a deleted policy, or the entry of a binding that its object does not have any more.
void policy_status_forget(struct policy_status *s, const struct binding *binding);

// Reports that the wall clock was set by step_ms. All remembered times move with it.
void policy_status_clock_was_set(struct policy_status *s, int64_t step_ms);

// Returns whether the restored status says that the pool of the policy emptied the target: since a decision that the
// pool limited to 0, none was for more.
bool policy_status_is_emptied(const struct policy_status *s);

struct status_update {
	struct status_facts facts;
	const struct binding *binding; // in force; NULL: no version was ever valid
	const void *state;             // the engine's, of its policy; NULL with it
	int64_t generation;            // of its policy
	int64_t now_ms;
};
// Call after every tick, and when the policy has none. The status after a scale is written by the next tick that
// decides, with the signals at the new scale. Where that tick is far away, or another scale precedes it, the status is
// also written at once, with the signals that led to the scale.
void policy_status_update(struct policy_status *s, const struct status_update *u);
// Writes the pending status. Call before the process exits.
void policy_status_flush(struct policy_status *s, const struct status_update *u);

#endif
