// SPDX-License-Identifier: Apache-2.0
// The last decisions that differed from the one before, rendered once, for /debug/decisions. A ring with a limit on
// entries and bytes.
#ifndef GPUSCALE_CONTROLLER_STATUS_DECISION_HISTORY_H
#define GPUSCALE_CONTROLLER_STATUS_DECISION_HISTORY_H

struct decided;
struct decision_history;
struct json_writer;

#define HISTORY_MAX       256
#define HISTORY_BYTES_MAX (64 * 1024) // of one rendered decision

struct decision_history *decision_history_new(void); // NULL when memory is exhausted
void decision_history_free(struct decision_history *h);
// Adds the decision of a binding of that key, which may be NULL.
void decision_history_add(struct decision_history *h, const char *key, const struct decided *d);
// Writes the entries as JSON values, oldest first, into an open array. policy: "namespace/name" to keep only those of
// that policy, with "/" and a key behind it of one of its bindings; NULL = all.
void decision_history_write(const struct decision_history *h, struct json_writer *w, const char *policy);

#endif
