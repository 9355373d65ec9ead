// SPDX-License-Identifier: Apache-2.0
// Detects that another client keeps changing the replicas of a target against its policy, and computes how long the
// policy stops writing. Pure: the caller passes the time.
// A change counts once, when the policy is about to reverse it: after an acknowledged write of the policy, the target
// has other replicas, and the decision goes the opposite way. So a change that the policy keeps or continues, and a
// manual change now and then, is not a fight; nor is a change that two ticks have agreed to before the signals changed.
// After a pause, one such change within the window is enough to start the next.
#ifndef GPUSCALE_CONTROLLER_POLICY_SCALE_FIGHT_H
#define GPUSCALE_CONTROLLER_POLICY_SCALE_FIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALE_FIGHT_CHANGES      3       // changes against the policy that are a fight ..
#define SCALE_FIGHT_AGREED       2       // ticks that agree to a change: it is not against the policy
#define SCALE_FIGHT_WINDOW_MS    600000  // .. within this time ..
#define SCALE_FIGHT_INTERVALS    10      // .. or this number of intervals of the policy, whichever is longer
#define SCALE_FIGHT_PAUSE_MS     300000  // the first pause; each further one is twice as long ..
#define SCALE_FIGHT_PAUSE_MAX_MS 3600000 // .. up to this
#define SCALE_FIGHT_QUIET_MS     3600000 // after a pause: without a fight for this time, the next pause is a first one

// Zeroed: no write and no fight yet.
struct scale_fight {
	int32_t written; // by the last acknowledged write
	// A change of `written` has not been counted yet. Clear it to forget the write: until the next one, another
	// process may write as well.
	bool is_armed;
	int8_t n_changes;                            // in changed_ms
	int8_t n_agreed;                             // ticks since the last write that agreed to other replicas
	int64_t changed_ms[SCALE_FIGHT_CHANGES - 1]; // times of the latest changes, the latest first
	int64_t pause_ms, resumed_ms;                // the last pause and its end; 0: none
	int64_t since_ms;                            // when the last fight started; the target is older
};

// Records an acknowledged write. replicas: as the server stored them, which an admission webhook may have changed.
void scale_fight_written(struct scale_fight *f, int32_t replicas);
// Records that a tick found `replicas` and that the signals ask for no others, within all limits.
void scale_fight_agreed(struct scale_fight *f, int32_t replicas);
// Call before a write from -> to. interval_ms: of the policy; now_ms: monotonic clock. Returns 0 when the policy may
// write, or for how many ms it must not write.
int64_t scale_fight_check(struct scale_fight *f, int32_t from, int32_t to, int64_t interval_ms, int64_t now_ms);

// Writes the field manager that last changed the member of spec in which `path` starts, spec.replicas for NULL, to out:
// of the first object of a list in JSON, by metadata.managedFields. out is "" when the list names none, or one that
// needs more than `size` bytes. Returns when the object was created, in ms since the epoch; -1: not known. A target
// that was created during a fight is not in one. Kubernetes: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1,
// ManagedFieldsEntry.
int64_t scale_fight_manager(const char *json, size_t len, const char *path, char *out, size_t size);

#endif
