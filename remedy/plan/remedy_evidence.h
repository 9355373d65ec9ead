// SPDX-License-Identifier: Apache-2.0
// The evidence against the GPUs of one node: one row per GPU and kind of fault.
#ifndef GPUSCALE_REMEDY_PLAN_REMEDY_EVIDENCE_H
#define GPUSCALE_REMEDY_PLAN_REMEDY_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/health_table.h"
#include "remedy/plan/remedy_state.h"

// The action that the table has for a fault, however often it occurred.
enum health_action remedy_evidence_worst(int32_t id);
// The action for a row as it stands: fewer occurrences than the table requires are only watched.
enum health_action remedy_evidence_action(const struct remedy_fault *f);
// The name of a fault, "XID79" or "GPULost": writes at most REMEDY_FAULT_NAME_BYTES bytes and a terminator.
#define REMEDY_FAULT_NAME_BYTES 32
void remedy_evidence_name(int32_t id, char out[REMEDY_FAULT_NAME_BYTES]);

// The row, or NULL.
struct remedy_fault *remedy_evidence_find(struct remedy_node *n, int gpu, int32_t id);
// The same, added when missing, if need be in place of the weakest row: *ret_is_new. Never NULL.
struct remedy_fault *remedy_evidence_row(struct remedy_node *n, int gpu, int32_t id, bool *ret_is_new);
// The row that decides about the GPU at `now_ms`: the strongest action, then the earliest. NULL: no evidence. In
// service, a condition counts while it lasts and an XID for HEALTH_SINCE_MS; out of service, until the GPU returns.
const struct remedy_fault *remedy_evidence_of(const struct remedy_node *n, int gpu, int64_t now_ms);
// Whether a condition of the GPU lasts for which something must be done.
bool remedy_evidence_lasts(const struct remedy_node *n, int gpu);

// Takes the GPU out of service, or returns it. Neither sets a taint; returning clears both.
void remedy_evidence_take(const struct remedy *r, struct remedy_node *n, int gpu);
void remedy_evidence_return(struct remedy_node *n, int gpu);
// Attempts within a day before now; drops older ones.
int remedy_evidence_attempts(const struct remedy *r, struct remedy_node *n);
// Whether taking the GPU out is another attempt: the node is in service, or the GPU was out within a day.
bool remedy_evidence_is_attempt(const struct remedy *r, const struct remedy_node *n, int gpu);

#endif
