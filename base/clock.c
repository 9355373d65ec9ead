// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t clock_real_mono_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t real_wall_ms(const struct clock *c)
{
	return read_ms(CLOCK_REALTIME);
}

static int64_t real_mono_ms(const struct clock *c)
{
	return read_ms(CLOCK_MONOTONIC);
}

static int64_t real_boot_ms(const struct clock *c)
{
	return read_ms(CLOCK_BOOTTIME);
}

void clock_init_real(struct clock *c)
{
	*c = (struct clock){.wall_ms = real_wall_ms, .mono_ms = real_mono_ms, .boot_ms = real_boot_ms};
}

void clock_pause_ms(int64_t ms)
{
	const struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};
	nanosleep(&t, NULL);
}
