// SPDX-License-Identifier: Apache-2.0
// What the next process must know about the targets of a fleet, as one text in its status: for each target the replicas
// that the fleet requested, and the scales that cooldowns and rate limits still count. An entry is
// "HASH=REPLICAS" or "HASH=REPLICAS@SECONDS+ADDED-REMOVED", with the hash of the key of the target.
#ifndef GPUSCALE_CONTROLLER_FLEET_FLEET_RECORD_H
#define GPUSCALE_CONTROLLER_FLEET_FLEET_RECORD_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct fleet_target;
struct policy;

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
