// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/promtool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

#define READ_BYTES 65536

extern char **environ;

static int io_error(struct err *e, const char *what)
{
	return err_set_code(e, ERR_IO, errno, "%s: %s", what, strerror(errno));
}

// Returns a descriptor of a file in memory, which the child inherits, or -1 and *e.
static int file_of(const struct buf *text, struct err *e)
{
	int fd = memfd_create("gpuscale-alerts", 0);
	if (fd < 0)
		return io_error(e, "cannot create a file in memory");
	for (size_t at = 0; at < text->len;) {
		ssize_t n = write(fd, text->data + at, text->len - at);
		if (n < 0 && errno != EINTR) {
			io_error(e, "cannot write the test file for promtool");
			close(fd);
			return -1;
		}
		at += n > 0 ? (size_t)n : 0;
	}
	return fd;
}

static int spawn(char *path, int out_fd, pid_t *ret_pid)
{
	char program[] = "promtool", test[] = "test", rules[] = "rules";
	char *argv[] = {program, test, rules, path, NULL};
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc)
		return rc;
	if (!(rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) &&
	    !(rc = posix_spawn_file_actions_adddup2(&actions, out_fd, 1)) &&
	    !(rc = posix_spawn_file_actions_adddup2(&actions, out_fd, 2)))
		rc = posix_spawnp(ret_pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static int read_all(int fd, struct buf *out, struct err *e)
{
	char part[READ_BYTES];
	for (;;) {
		ssize_t n = read(fd, part, sizeof part);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return io_error(e, "cannot read the output of promtool");
		if (n > 0 && buf_put(out, part, (size_t)n) < 0)
			return err_set(e, ERR_LIMIT,
			               "the output of promtool exceeds %zu bytes: use a shorter recording", out->max);
	}
}

static int run(int test_fd, struct buf *out, struct err *e)
{
	char path[32];
	int fds[2], status;
	pid_t pid = 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return io_error(e, "cannot start promtool");
	snprintf(path, sizeof path, "/dev/fd/%d", test_fd);
	int why = spawn(path, fds[1], &pid);
	close(fds[1]);
	if (why) {
		close(fds[0]);
		if (why == ENOENT)
			return err_set(e, ERR_UNSUPPORTED,
			               "not supported: promtool is not installed, and gpuscale has no PromQL of its "
			               "own: install "
			               "Prometheus 2.42 or newer (Debian: apt-get install prometheus), or put promtool "
			               "into PATH");
		return err_set_code(e, ERR_IO, why, "cannot start promtool: %s", strerror(why));
	}
	int rc = read_all(fds[0], out, e);
	close(fds[0]);
	if (rc < 0)
		kill(pid, SIGKILL); // it would wait for a reader
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return rc;
}

int promtool_test_rules(const struct buf *test, struct buf *out, struct err *e)
{
	int fd = file_of(test, e);
	if (fd < 0)
		return -1;
	int rc = run(fd, out, e);
	close(fd);
	return rc;
}
