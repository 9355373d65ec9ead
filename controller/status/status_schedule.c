// SPDX-License-Identifier: Apache-2.0
// Decides when a status is written.
#include "controller/status/status_writer.h"

// clang-format off
const struct status_reason_info status_reasons[STATUS_REASON__COUNT] = {
	[STATUS_UNCHANGED]     = {"unchanged",     STATUS_SKIP},
	[STATUS_TOO_EARLY]     = {"too early",     STATUS_SKIP},
	[STATUS_NEWER_SOON]    = {"newer soon",    STATUS_LATER},
	[STATUS_NO_ROOM]       = {"no room",       STATUS_LATER},
	[STATUS_CHANGED]       = {"changed",       STATUS_WRITE},
	[STATUS_CAUGHT_UP]     = {"caught up",     STATUS_WRITE},
	[STATUS_RETRIED]       = {"retried",       STATUS_WRITE},
	[STATUS_MINOR_CHANGED] = {"minor changed", STATUS_WRITE},
	[STATUS_REFRESHED]     = {"refreshed",     STATUS_WRITE},
};
// clang-format on

static bool has_passed(const struct status_past *past, int64_t pace_ms, int64_t now_ms)
{
	return past->written_ms == 0 || pace_ms == 0 || now_ms - past->written_ms >= pace_ms;
}

// Returns why a write is due, or why none is.
static enum status_reason find_due(const struct status_offer *o, int64_t now_ms)
{
	const struct status_past *past = o->past;
	bool is_changed = o->major != past->major, is_minor = o->minor != past->minor;
	if (is_changed && has_passed(past, o->pace->change_ms, now_ms))
		return STATUS_CHANGED;
	if (o->extra == STATUS_EXTRA_CATCH_UP)
		return STATUS_CAUGHT_UP;
	if (past->failed && has_passed(past, o->pace->retry_ms, now_ms))
		return STATUS_RETRIED;
	if (is_minor && has_passed(past, o->pace->minor_ms, now_ms))
		return STATUS_MINOR_CHANGED;
	if (o->extra == STATUS_EXTRA_REFRESH && has_passed(past, o->pace->refresh_ms, now_ms))
		return STATUS_REFRESHED;
	return is_changed || past->failed || is_minor ? STATUS_TOO_EARLY : STATUS_UNCHANGED;
}

enum status_reason status_schedule(const struct status_offer *o, int64_t now_ms)
{
	static const enum status_room required[STATUS_NEXT__COUNT] = {
	        [STATUS_NEXT_TICK] = STATUS_ROOM_QUEUE,
	        [STATUS_NEXT_SCALED] = STATUS_ROOM_AT_ONCE,
	        [STATUS_NEXT_SOON] = STATUS_ROOM_AT_ONCE,
	};
	enum status_reason reason = find_due(o, now_ms);
	if (status_reasons[reason].action == STATUS_SKIP)
		return reason;
	// Until the next tick the status has the earlier replicas, from which a process that starts meanwhile sees that
	// there was a scale. A policy that is scaled at every tick is written at every other one.
	if (o->next == STATUS_NEXT_SOON && !o->past->is_deferred)
		return STATUS_NEWER_SOON;
	return o->room < required[o->next] ? STATUS_NO_ROOM : reason;
}

void status_past_write(struct status_past *past, uint64_t major, uint64_t minor, int64_t now_ms)
{
	*past = (struct status_past){.written_ms = now_ms, .major = major, .minor = minor};
}
