// SPDX-License-Identifier: Apache-2.0
// When a status is written: the one schedule of policies, pools and fleets. Pure: the caller passes the time, the
// fingerprints of the contents and the room in the queue. test_status_schedule lists the cases.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_SCHEDULE_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

// Time that must have passed since the last write, by what calls for the next one; 0: none.
struct status_pace {
	int64_t change_ms, retry_ms, minor_ms, refresh_ms;
};

// The last write of one status. Zero it before the first; `failed` is set by the caller when the write has ended.
struct status_past {
	int64_t written_ms;    // when it was queued; 0: there was none
	uint64_t major, minor; // fingerprints of its contents
	bool failed;
	bool is_deferred; // a write was deferred since
};

// What calls for a write although the contents have the same fingerprints.
enum status_extra {
	STATUS_EXTRA_NONE,
	STATUS_EXTRA_REFRESH,  // numbers outside the fingerprints have changed
	STATUS_EXTRA_CATCH_UP, // the last write reported a scale with the signals that led to it; these are newer
};

// What follows when the contents are not written now.
enum status_next {
	STATUS_NEXT_UNKNOWN, // nothing is certain to follow
	STATUS_NEXT_TICK,    // the next tick offers the status again
	STATUS_NEXT_SCALED,  // the contents report a scale, and the next tick has the signals at the new one
	STATUS_NEXT_SOON,    // the same, and that tick is near
	STATUS_NEXT__COUNT
};

enum status_room {
	STATUS_ROOM_NONE,
	STATUS_ROOM_QUEUE,   // a patch would be queued
	STATUS_ROOM_AT_ONCE, // and sent at once
};

struct status_offer {
	const struct status_pace *pace;
	const struct status_past *past;
	// Fingerprints of the contents: of what is written as soon as it changes, and of what may wait for minor_ms.
	uint64_t major, minor;
	enum status_extra extra;
	enum status_next next;
	enum status_room room; // without effect for STATUS_NEXT_UNKNOWN
};

enum status_action {
	STATUS_SKIP,  // no write is due
	STATUS_LATER, // a write is due and deferred: set past->is_deferred
	STATUS_WRITE, // write, and call status_past_write() first
};

enum status_reason {
	STATUS_UNCHANGED,
	STATUS_TOO_EARLY,
	STATUS_NEWER_SOON, // the next tick replaces the contents
	STATUS_NO_ROOM,
	STATUS_CHANGED,
	STATUS_CAUGHT_UP,
	STATUS_RETRIED,
	STATUS_MINOR_CHANGED,
	STATUS_REFRESHED,
	STATUS_REASON__COUNT
};
// The action of each reason.
extern const struct status_reason_info {
	const char *name;
	enum status_action action;
} status_reasons[STATUS_REASON__COUNT];

// Returns why the offered contents are written, deferred or skipped as of now_ms, a time of the clock of
// past->written_ms.
enum status_reason status_schedule(const struct status_offer *offer, int64_t now_ms);
// Notes that contents with these fingerprints are written now.
void status_past_write(struct status_past *past, uint64_t major, uint64_t minor, int64_t now_ms);

#endif
