// SPDX-License-Identifier: Apache-2.0
#include "test/support/prometheus.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

#define PATH_BYTES    256
#define FLAGS_MAX     32
#define START_TRIES   3
#define READY_WAIT_MS 60000
#define TOOL_WAIT_MS  60000
#define STOP_WAIT_MS  60000
#define POLL_MS       20
#define PORT_FIRST    20000
#define PORT_COUNT    12000u
#define PORT_TRIES    100
#define LOG_BYTES_MAX (4 * 1024 * 1024)

struct prometheus {
	char dir[PATH_BYTES];
	char url[64];
	uint16_t port;
	pid_t pid; // 0: not running
	char *flags[FLAGS_MAX + 1];
};

static void sleep_ms(int64_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
	nanosleep(&t, NULL);
}

static bool is_in_path(const char *program)
{
	const char *path = getenv("PATH");
	while (path && *path) {
		size_t len = strcspn(path, ":");
		char file[PATH_BYTES];
		snprintf(file, sizeof file, "%.*s/%s", (int)len, path, program);
		if (access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

bool prometheus_is_installed(void)
{
	return is_in_path("prometheus") && is_in_path("promtool");
}

// Runs argv with its output in dir/log.
static pid_t spawn(const char *dir, char *const argv[], struct err *e)
{
	char log[PATH_BYTES + 8];
	snprintf(log, sizeof log, "%s/log", dir);
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		err_set_code(e, ERR_IO, errno, "cannot fork: %s", strerror(errno));
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		_exit(127);
	execvp(argv[0], argv);
	dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

// Waits for the process at most wait_ms: its wait status, or -1 while it still runs.
static int wait_exit(pid_t pid, int64_t wait_ms)
{
	for (int64_t waited = 0;; waited += POLL_MS) {
		int status;
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			return status;
		if (got < 0 && errno != EINTR)
			return 0;
		if (waited >= wait_ms)
			return -1;
		sleep_ms(POLL_MS);
	}
}

static void end_process(pid_t pid, int sig, int64_t wait_ms)
{
	kill(pid, sig);
	if (wait_exit(pid, wait_ms) != -1)
		return;
	kill(pid, SIGKILL);
	wait_exit(pid, STOP_WAIT_MS);
}

// The end of dir/log, for a message.
static void add_log(const char *dir, struct err *e)
{
	char path[PATH_BYTES + 8];
	struct buf b;
	buf_init(&b, LOG_BYTES_MAX);
	snprintf(path, sizeof path, "%s/log", dir);
	buf_read_file(&b, path, NULL);
	size_t keep = b.len < 300 ? b.len : 300;
	if (keep)
		err_set_code(e, e->kind, e->code, "%.150s; its log ends: %s", e->msg, b.data + b.len - keep);
	buf_done(&b);
}

static int write_file(const char *dir, const char *name, const char *text, struct err *e)
{
	char path[PATH_BYTES + 32];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "we");
	bool ok = f && fputs(text, f) >= 0;
	if (f && fclose(f) != 0)
		ok = false;
	return ok ? 0 : err_set_code(e, ERR_IO, errno, "cannot write %s: %s", path, strerror(errno));
}

static int write_config(const struct prometheus *p, const struct prometheus_options *o, struct err *e)
{
	struct buf b;
	buf_init(&b, 64 * 1024);
	buf_puts(&b, "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n");
	if (o->scrape_configs)
		buf_printf(&b, "scrape_configs:\n%s", o->scrape_configs);
	else if (o->scrape_target)
		buf_printf(&b, "scrape_configs:\n- job_name: test\n  static_configs: [{targets: [\"%s\"]}]\n",
		           o->scrape_target);
	int rc = b.failed ? err_set(e, ERR_LIMIT, "the scrape configuration is larger than the ceiling of %zu bytes",
	                            b.max)
	                  : write_file(p->dir, "prometheus.yml", buf_str(&b), e);
	buf_done(&b);
	return rc;
}

static int make_blocks(const struct prometheus *p, const char *openmetrics, struct err *e)
{
	if (write_file(p->dir, "history.om", openmetrics, e) < 0)
		return -1;
	char input[PATH_BYTES + 32], output[PATH_BYTES + 32];
	snprintf(input, sizeof input, "%s/history.om", p->dir);
	snprintf(output, sizeof output, "%s/data", p->dir);
	char tool[] = "promtool", tsdb[] = "tsdb", create[] = "create-blocks-from", format[] = "openmetrics";
	char *const argv[] = {tool, tsdb, create, format, input, output, NULL};
	pid_t pid = spawn(p->dir, argv, e);
	if (pid < 0)
		return -1;
	int status = wait_exit(pid, TOOL_WAIT_MS);
	if (status == 0)
		return 0;
	if (status == -1)
		end_process(pid, SIGKILL, STOP_WAIT_MS);
	err_set_code(e, ERR_INPUT, status, "promtool could not make blocks");
	add_log(p->dir, e);
	return -1;
}

static bool is_port_free(uint16_t port)
{
	struct sockaddr_in a = {
	        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

// Below the range that the kernel hands out by itself (from 32768): else another test may be given the port between our
// look and Prometheus's bind, or while it is interrupted.
static int find_free_port(uint16_t *ret_port, struct err *e)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint32_t seed = (uint32_t)now.tv_nsec ^ (uint32_t)getpid() * 2654435761u;
	for (uint32_t i = 0; i < PORT_TRIES; i++) {
		*ret_port = (uint16_t)(PORT_FIRST + (seed + i * 7919) % PORT_COUNT);
		if (is_port_free(*ret_port))
			return 0;
	}
	return err_set(e, ERR_IO, "no free port found in %d tries from %d on", PORT_TRIES, PORT_FIRST);
}

// One GET of /-/ready; true for a 200.
static bool is_ready(uint16_t port)
{
	static const char request[] = "GET /-/ready HTTP/1.0\r\n\r\n";
	struct sockaddr_in a = {
	        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval wait = {.tv_sec = 1};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	char head[16] = "";
	bool ok = connect(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
	          send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)sizeof request - 1 &&
	          recv(fd, head, sizeof head - 1, MSG_WAITALL) > 0;
	close(fd);
	return ok && strncmp(head + 8, " 200", 4) == 0;
}

// Starts the process on p->port and waits. -1 with p->pid 0 when it ended or did not become ready.
static int launch(struct prometheus *p, struct err *e)
{
	char program[] = "prometheus", config[PATH_BYTES + 64], data[PATH_BYTES + 64], listen[64];
	char retention[] = "--storage.tsdb.retention.time=100y";
	snprintf(config, sizeof config, "--config.file=%s/prometheus.yml", p->dir);
	snprintf(data, sizeof data, "--storage.tsdb.path=%s/data", p->dir);
	snprintf(listen, sizeof listen, "--web.listen-address=127.0.0.1:%u", p->port);
	char *argv[FLAGS_MAX + 6] = {program, config, data, listen, retention};
	for (size_t i = 0; p->flags[i]; i++)
		argv[5 + i] = p->flags[i];
	pid_t pid = spawn(p->dir, argv, e);
	if (pid < 0)
		return -1;
	for (int64_t waited = 0; waited < READY_WAIT_MS; waited += POLL_MS) {
		int status = wait_exit(pid, 0);
		if (status != -1) {
			err_set_code(e, ERR_IO, status, "prometheus ended before it was ready");
			add_log(p->dir, e);
			return -1;
		}
		if (is_ready(p->port)) {
			p->pid = pid;
			return 0;
		}
		sleep_ms(POLL_MS);
	}
	end_process(pid, SIGKILL, STOP_WAIT_MS);
	err_set(e, ERR_TIMEOUT, "prometheus was not ready within %d ms", READY_WAIT_MS);
	add_log(p->dir, e);
	return -1;
}

static int copy_flags(struct prometheus *p, const char *const *flags, struct err *e)
{
	for (size_t i = 0; flags && flags[i]; i++) {
		if (i >= FLAGS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d flags for prometheus", FLAGS_MAX);
		p->flags[i] = strdup(flags[i]);
		if (!p->flags[i])
			return err_set(e, ERR_INTERNAL, "out of memory");
	}
	return 0;
}

static int prepare(struct prometheus *p, const struct prometheus_options *o, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(p->dir, sizeof p->dir, "%.200s/gpuscale-prometheus-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(p->dir)) {
		err_set_code(e, ERR_IO, errno, "cannot make %s: %s", p->dir, strerror(errno));
		p->dir[0] = '\0';
		return -1;
	}
	if (copy_flags(p, o->flags, e) < 0 || write_config(p, o, e) < 0)
		return -1;
	return o->openmetrics ? make_blocks(p, o->openmetrics, e) : 0;
}

struct prometheus *prometheus_start(const struct prometheus_options *options, struct err *e)
{
	struct prometheus *p = calloc(1, sizeof *p);
	if (!p) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	int rc = prepare(p, options, e);
	// Another process may take the port between the search and the start: then try another port.
	for (int i = 0; rc == 0 && i < START_TRIES && !p->pid; i++) {
		if (find_free_port(&p->port, e) < 0)
			break;
		snprintf(p->url, sizeof p->url, "http://127.0.0.1:%u", p->port);
		launch(p, e);
	}
	if (!p->pid) {
		prometheus_stop(p);
		return NULL;
	}
	return p;
}

const char *prometheus_url(const struct prometheus *p)
{
	return p->url;
}

pid_t prometheus_pid(const struct prometheus *p)
{
	return p->pid;
}

void prometheus_interrupt(struct prometheus *p)
{
	if (p->pid)
		end_process(p->pid, SIGKILL, STOP_WAIT_MS);
	p->pid = 0;
}

int prometheus_continue(struct prometheus *p, struct err *e)
{
	return p->pid ? 0 : launch(p, e);
}

bool prometheus_freeze(struct prometheus *p)
{
	if (!p->pid || kill(p->pid, SIGSTOP) < 0)
		return false;
	// The signal is on its way when kill returns: a thread may still answer until the last one stands.
	for (int64_t waited = 0; waited < STOP_WAIT_MS; waited += POLL_MS) {
		int status;
		if (waitpid(p->pid, &status, WUNTRACED | WNOHANG) == p->pid)
			return WIFSTOPPED(status);
		sleep_ms(POLL_MS);
	}
	return false;
}

void prometheus_thaw(struct prometheus *p)
{
	if (p->pid)
		kill(p->pid, SIGCONT);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void prometheus_stop(struct prometheus *p)
{
	if (!p)
		return;
	if (p->pid)
		end_process(p->pid, SIGTERM, STOP_WAIT_MS);
	if (p->dir[0])
		nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	for (size_t i = 0; p->flags[i]; i++)
		free(p->flags[i]);
	free(p);
}
