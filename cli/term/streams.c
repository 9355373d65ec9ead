// SPDX-License-Identifier: Apache-2.0
#include "cli/term/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/term/commands.h"

// The other end of a pipe or socket is closed: `gpuscale explain --page | head`.
static int reader_is_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

// Runs last on every exit, also when argp exits after --help.
static void at_exit(void)
{
	int failed_before = ferror(stdout);
	errno = 0;
	if (fflush(stdout) == 0 && !failed_before)
		return;
	int why = errno;
	if (why != EPIPE && !reader_is_gone())
		print_error("gpuscale: standard output: %s\n", why ? strerror(why) : "the output is incomplete");
	_exit(EXIT_FAILED);
}

void streams_guard(void)
{
	// Opened in the opposite mode, so that using them is an error.
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(EXIT_FAILED);
	atexit(at_exit);
}
