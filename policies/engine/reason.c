// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/reason.h"

#include <assert.h>
#include <stddef.h>

// What a reason explains: a status condition, or nothing.
#define NOTE    NULL
#define ABLE    "AbleToScale"
#define HOLDS   "AbleToScale", .holds = true // nothing may change for a while
#define ACTIVE  "ScalingActive"
#define LIMITED "ScalingLimited"
#define PAUSED  "Paused"
#define DRY_RUN "DryRun"

#define NORMAL  "Normal"
#define WARNING "Warning"

#define ROW(id, reason_name, explains, event, text)                                                                    \
	[REASON_##id] = {.name = reason_name, .sentence = text, .event_type = event, .condition = explains},
static const struct reason_info reasons[] = {REASONS(ROW)};
#undef ROW

const struct reason_info *reason_info(enum reason r)
{
	assert(r >= 0 && r < REASON__COUNT);
	return &reasons[r];
}
