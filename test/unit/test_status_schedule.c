// SPDX-License-Identifier: Apache-2.0
// Goal: every reason why a status is written, deferred or skipped is a row of a table.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "controller/status/status_writer.h"

#define NOW_MS 1000000

static const struct status_pace pace = {.change_ms = 0, .retry_ms = 15000, .minor_ms = 60000, .refresh_ms = 300000};
static const struct status_pace slow = {.change_ms = 15000, .retry_ms = 15000, .refresh_ms = 300000};

enum { SAME, MINOR = 1, MAJOR = 2, FAILED = 4, DEFERRED = 8 }; // added up

#define NONE    STATUS_EXTRA_NONE
#define REFRESH STATUS_EXTRA_REFRESH
#define CATCH   STATUS_EXTRA_CATCH_UP
#define UNKNOWN STATUS_NEXT_UNKNOWN
#define TICK    STATUS_NEXT_TICK
#define SCALED  STATUS_NEXT_SCALED
#define SOON    STATUS_NEXT_SOON
#define FULL    STATUS_ROOM_NONE
#define QUEUE   STATUS_ROOM_QUEUE
#define AT_ONCE STATUS_ROOM_AT_ONCE
#define NEVER   (-1)

static const struct schedule_case {
	const char *name;
	const struct status_pace *pace;
	int64_t age_ms; // of the last write
	int what;
	enum status_extra extra;
	enum status_next next;
	enum status_room room;
	enum status_reason reason;
	enum status_action action;
} cases[] = {
        // what calls for a write
        {"first", &pace, NEVER, MINOR + MAJOR, NONE, TICK, QUEUE, STATUS_CHANGED, STATUS_WRITE},
        {"first of slow ones", &slow, NEVER, MAJOR, NONE, UNKNOWN, FULL, STATUS_CHANGED, STATUS_WRITE},
        {"first spending", &slow, NEVER, SAME, REFRESH, UNKNOWN, FULL, STATUS_REFRESHED, STATUS_WRITE},
        {"nothing to write", &slow, NEVER, SAME, NONE, UNKNOWN, FULL, STATUS_UNCHANGED, STATUS_SKIP},
        {"same", &pace, 900000, SAME, NONE, TICK, AT_ONCE, STATUS_UNCHANGED, STATUS_SKIP},
        {"changed", &pace, 1, MAJOR, NONE, TICK, QUEUE, STATUS_CHANGED, STATUS_WRITE},
        {"changed while the clock was set back", &pace, -5000, MAJOR, NONE, TICK, QUEUE, STATUS_CHANGED, STATUS_WRITE},
        {"changed just after a write", &slow, 14999, MAJOR, NONE, UNKNOWN, FULL, STATUS_TOO_EARLY, STATUS_SKIP},
        {"changed in time", &slow, 15000, MAJOR, NONE, UNKNOWN, FULL, STATUS_CHANGED, STATUS_WRITE},
        {"minor within a minute", &pace, 59999, MINOR, NONE, TICK, AT_ONCE, STATUS_TOO_EARLY, STATUS_SKIP},
        {"minor after a minute", &pace, 60000, MINOR, NONE, TICK, QUEUE, STATUS_MINOR_CHANGED, STATUS_WRITE},
        {"failed just now", &pace, 14999, FAILED, NONE, TICK, AT_ONCE, STATUS_TOO_EARLY, STATUS_SKIP},
        {"failed before", &pace, 15000, FAILED, NONE, TICK, QUEUE, STATUS_RETRIED, STATUS_WRITE},
        {"failed, and changed again", &pace, 1, FAILED + MAJOR, NONE, TICK, QUEUE, STATUS_CHANGED, STATUS_WRITE},
        {"minor follows a failure", &pace, 15000, FAILED + MINOR, NONE, TICK, QUEUE, STATUS_RETRIED, STATUS_WRITE},
        {"signals moved lately", &pace, 299999, SAME, REFRESH, TICK, AT_ONCE, STATUS_UNCHANGED, STATUS_SKIP},
        {"signals moved", &pace, 300000, SAME, REFRESH, TICK, QUEUE, STATUS_REFRESHED, STATUS_WRITE},
        {"minor and signals moved", &pace, 59999, MINOR, REFRESH, TICK, QUEUE, STATUS_TOO_EARLY, STATUS_SKIP},
        {"after a scale", &pace, 1, SAME, CATCH, TICK, QUEUE, STATUS_CAUGHT_UP, STATUS_WRITE},
        // what defers it
        {"full queue", &pace, 1, MAJOR, NONE, TICK, FULL, STATUS_NO_ROOM, STATUS_LATER},
        {"full queue after a scale", &pace, 1, SAME, CATCH, TICK, FULL, STATUS_NO_ROOM, STATUS_LATER},
        {"full queue, deferred before", &pace, 1, MAJOR + DEFERRED, NONE, TICK, FULL, STATUS_NO_ROOM, STATUS_LATER},
        {"full queue, nothing changed", &pace, 1, SAME, NONE, TICK, FULL, STATUS_UNCHANGED, STATUS_SKIP},
        {"full queue, without a tick", &pace, 1, MAJOR, NONE, UNKNOWN, FULL, STATUS_CHANGED, STATUS_WRITE},
        {"scaled, and the next tick is near", &pace, 1, MAJOR, NONE, SOON, AT_ONCE, STATUS_NEWER_SOON, STATUS_LATER},
        {"scaled again", &pace, 1, MAJOR + DEFERRED, NONE, SOON, AT_ONCE, STATUS_CHANGED, STATUS_WRITE},
        {"scaled again, many others", &pace, 1, MAJOR + DEFERRED, NONE, SOON, QUEUE, STATUS_NO_ROOM, STATUS_LATER},
        {"scaled, and the next tick is far", &pace, 1, MAJOR, NONE, SCALED, AT_ONCE, STATUS_CHANGED, STATUS_WRITE},
        {"scaled, many others", &pace, 1, MAJOR, NONE, SCALED, QUEUE, STATUS_NO_ROOM, STATUS_LATER},
        {"the change was reverted", &pace, 1, DEFERRED, NONE, TICK, AT_ONCE, STATUS_UNCHANGED, STATUS_SKIP},
};

static void status_is_written_as_the_table_lists(void **state)
{
	int n_of[STATUS_REASON__COUNT] = {0};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct schedule_case *c = &cases[i];
		const struct status_past past = {.written_ms = c->age_ms == NEVER ? 0 : NOW_MS - c->age_ms,
		                                 .major = 7,
		                                 .minor = 8,
		                                 .failed = c->what & FAILED,
		                                 .is_deferred = c->what & DEFERRED};
		const struct status_offer offer = {.pace = c->pace,
		                                   .past = &past,
		                                   .major = c->what & MAJOR ? 9 : 7,
		                                   .minor = c->what & MINOR ? 9 : 8,
		                                   .extra = c->extra,
		                                   .next = c->next,
		                                   .room = c->room};
		enum status_reason reason = status_schedule(&offer, NOW_MS);
		if (reason != c->reason || status_reasons[reason].action != c->action)
			fail_msg("%s: %s (action %d), expected %s (action %d)", c->name, status_reasons[reason].name,
			         (int)status_reasons[reason].action, status_reasons[c->reason].name, (int)c->action);
		n_of[reason]++;
	}
	for (int i = 0; i < STATUS_REASON__COUNT; i++)
		if (n_of[i] == 0)
			fail_msg("no case is %s", status_reasons[i].name);
}

static void written_contents_are_unchanged_until_the_write_fails(void **state)
{
	struct status_past past = {.failed = true, .is_deferred = true};
	const struct status_offer offer = {
	        .pace = &pace, .past = &past, .major = 3, .minor = 4, .next = TICK, .room = QUEUE};
	(void)state;
	assert_int_equal(status_schedule(&offer, NOW_MS), STATUS_CHANGED);
	status_past_write(&past, 3, 4, NOW_MS);
	assert_false(past.is_deferred);
	assert_int_equal(status_schedule(&offer, NOW_MS + 900000), STATUS_UNCHANGED);
	past.failed = true;
	assert_int_equal(status_schedule(&offer, NOW_MS + 1), STATUS_TOO_EARLY);
	assert_int_equal(status_schedule(&offer, NOW_MS + pace.retry_ms), STATUS_RETRIED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(status_is_written_as_the_table_lists),
	        cmocka_unit_test(written_contents_are_unchanged_until_the_write_fails),
	};
	return cmocka_run_group_tests_name("status_schedule", tests, NULL, NULL);
}
