// SPDX-License-Identifier: Apache-2.0
#include "test/support/demo/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

#define LOG_TAIL_BYTES 300
#define LOG_BYTES_MAX  (64 * 1024 * 1024)
// Below those of outgoing connections: none of them takes the port before its server does.
#define PORT_MIN   20000
#define PORT_MAX   32000
#define PORT_TRIES 1000

int process_free_port(uint16_t after, uint16_t *ret_port, struct err *e)
{
	uint16_t first = after ? after : (uint16_t)(PORT_MIN + (unsigned)getpid() * 7 % (PORT_MAX - PORT_MIN));
	for (unsigned i = 1; i <= PORT_TRIES; i++) {
		uint16_t port = (uint16_t)(PORT_MIN + (first - PORT_MIN + i) % (PORT_MAX - PORT_MIN));
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockaddr_in a = {
		        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		int rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&a, sizeof a);
		err_set_code(e, ERR_IO, errno, "no free port: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		if (rc == 0) {
			*ret_port = port;
			return 0;
		}
	}
	return -1;
}

static void child(const char *log_path, const char *const argv[])
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0); // Ctrl-C goes to the demo alone, which stops them in order
	int null = open("/dev/null", O_RDONLY), log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (null < 0 || log < 0)
		_exit(126);
	dup2(null, 0);
	dup2(log, 1);
	dup2(log, 2);
	char *args[PROCESS_ARGS_MAX + 1] = {0}; // execvp wants them writable, and does not write
	for (size_t i = 0; argv[i] && i < PROCESS_ARGS_MAX; i++)
		memcpy(&args[i], &argv[i], sizeof args[i]);
	execvp(args[0], args);
	dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int process_start(struct process_list *list, const char *name, const char *log_path, const char *const argv[],
                  struct err *e)
{
	if (list->n == PROCESS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d processes", PROCESS_MAX);
	pid_t pid = fork();
	if (pid < 0)
		return err_set_code(e, ERR_IO, errno, "cannot start %s: %s", name, strerror(errno));
	if (pid == 0)
		child(log_path, argv);
	struct process *p = &list->items[list->n++];
	p->name = name;
	p->pid = pid;
	snprintf(p->log_path, sizeof p->log_path, "%s", log_path);
	return 0;
}

bool process_all_alive(struct process_list *list, struct err *e)
{
	for (size_t i = 0; i < list->n; i++) {
		struct process *p = &list->items[i];
		int status;
		if (p->pid <= 0 || waitpid(p->pid, &status, WNOHANG) != p->pid)
			continue;
		p->pid = 0;
		struct buf log;
		buf_init(&log, LOG_BYTES_MAX);
		buf_read_file(&log, p->log_path, NULL);
		const char *tail = buf_str(&log) + (log.len > LOG_TAIL_BYTES ? log.len - LOG_TAIL_BYTES : 0);
		err_set(e, ERR_IO, "%s ended by itself; %s ends with: %s", p->name, p->log_path, tail);
		buf_done(&log);
		return false;
	}
	return true;
}

void process_stop_all(struct process_list *list)
{
	while (list->n > 0) {
		struct process *p = &list->items[--list->n];
		if (p->pid <= 0)
			continue;
		kill(p->pid, SIGTERM);
		for (int waited_ms = 0;; waited_ms += 20) {
			if (waitpid(p->pid, NULL, WNOHANG) != 0)
				break;
			if (waited_ms == PROCESS_STOP_MS)
				kill(p->pid, SIGKILL);
			nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
		}
	}
}
