// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/reason.h"

#include <assert.h>
#include <stddef.h>

// What a reason explains: a status condition, or nothing.
#define EXPLAINS_NOTE    .condition = NULL
#define EXPLAINS_ABLE    .condition = "AbleToScale"
#define EXPLAINS_HOLDS   .condition = "AbleToScale", .holds = true // nothing may change for a while
#define EXPLAINS_ACTIVE  .condition = "ScalingActive"
#define EXPLAINS_LIMITED .condition = "ScalingLimited"
#define EXPLAINS_PAUSED  .condition = "Paused"
#define EXPLAINS_DRY_RUN .condition = "DryRun"

#define EVENT_NORMAL  "Normal"
#define EVENT_WARNING "Warning"

#define ROW(id, reason_name, explains, event, text)                                                                    \
	[REASON_##id] = {.name = reason_name, .sentence = text, .event_type = EVENT_##event, EXPLAINS_##explains},
static const struct reason_info reasons[] = {REASONS(ROW)};
#undef ROW

const struct reason_info *reason_info(enum reason r)
{
	assert(r >= 0 && r < REASON__COUNT);
	return &reasons[r];
}
