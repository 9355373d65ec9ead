// SPDX-License-Identifier: Apache-2.0
// Compares the server's clock with ours. A query names the time it is evaluated at, and its response contains times:
// both are of the server's clock. When our clock is set by a known step and the server's is not, the times are
// converted by that step, so that a wrong clock of this host neither reads data from another time nor stops scaling.
#include "base/clock.h"
#include "promql/promql_private.h"

// Date has whole seconds, and a clock is set by more than this (CLOCK_STEP_MS).
#define CLOCKS_AGREE_MS 2500

// Returns the difference from `offset_ms` to the nearest skew that explains the last Date.
static int64_t distance_ms(const struct promql *p, int64_t offset_ms)
{
	if (offset_ms < p->skew_min_ms)
		return p->skew_min_ms - offset_ms;
	return offset_ms > p->skew_max_ms ? p->skew_max_ms - offset_ms : 0;
}

static bool explains(const struct promql *p, int64_t offset_ms)
{
	int64_t left_ms = distance_ms(p, offset_ms);
	return left_ms <= CLOCKS_AGREE_MS && left_ms >= -CLOCKS_AGREE_MS;
}

void promql_note_clock(struct promql *p, int64_t date_ms, int64_t elapsed_us)
{
	int64_t expected_ms = p->clock_offset_ms - p->clock_step_ms;
	if (date_ms <= 0)
		return; // usually the reply of a proxy: it says nothing about the clock
	// The server stamped its reply between the request and now, within the second that Date states. A slow reply
	// leaves a wide range: whether a clock was set is decided by what lies outside the range.
	int64_t now_ms = clock_wall_ms(p->clock);
	p->skew_min_ms = date_ms - now_ms;
	p->skew_max_ms = date_ms + 1000 - (now_ms - elapsed_us / 1000 - 1);
	if (p->must_ask_date)
		p->clock_offset_ms = !explains(p, 0) && explains(p, expected_ms) ? expected_ms : 0;
	else if (explains(p, 0) && !explains(p, p->clock_offset_ms))
		p->clock_offset_ms = 0; // the server's clock was set, too, or ours is correct again
	p->clock_step_ms = 0;
	p->must_ask_date = false;
}

void promql_forget_clock_step(struct promql *p)
{
	if (!p->must_ask_date)
		return;
	p->clock_offset_ms = p->clock_step_ms = 0;
	p->must_ask_date = false;
}

void promql_clock_was_set(struct promql *p, int64_t step_ms)
{
	p->clock_step_ms += step_ms;
	p->must_ask_date = true;
}

int64_t promql_skew_ms(const struct promql *p)
{
	return distance_ms(p, 0);
}

int64_t promql_unexplained_skew_ms(const struct promql *p)
{
	return p->clock_offset_ms != 0 && explains(p, p->clock_offset_ms) ? 0 : distance_ms(p, p->clock_offset_ms);
}
