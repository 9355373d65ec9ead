// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD: the wall clock of one process, shifted by the milliseconds that the file $SET_CLOCK_FILE holds, as if
// a client set it. All other clocks are left alone.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long shift_ms(void)
{
	char text[32];
	const char *path = getenv("SET_CLOCK_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	long long ms = 0, sign = 1;
	for (ssize_t i = 0; i < n; i++) {
		if (text[i] == '-')
			sign = -1;
		else if (text[i] >= '0' && text[i] <= '9')
			ms = ms * 10 + (text[i] - '0');
	}
	return sign * ms;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int rc = real(id, ts);
	if (rc == 0 && id == CLOCK_REALTIME) {
		long long ns = (long long)ts->tv_sec * 1000000000 + ts->tv_nsec + shift_ms() * 1000000;
		ts->tv_sec = ns / 1000000000;
		ts->tv_nsec = ns % 1000000000;
	}
	return rc;
}

time_t time(time_t *out)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}
