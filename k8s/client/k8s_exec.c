// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_exec.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "base/timer.h"
#include "k8s/client/k8s_config.h"

#define STDERR_BYTES_MAX 4096
#define REAP_POLL_MS     10

struct k8s_exec_run {
	const struct k8s_config *config;
	k8s_exec_done_fn *done;
	void *arg;
	pid_t pid; // also its process group; 0 once reaped
	int status;
	int out_fd, err_fd;
	struct event *out_event, *err_event, *deadline_event, *reap_event;
	struct buf out, err;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void run_free(struct k8s_exec_run *run)
{
	struct event *const events[] = {run->out_event, run->err_event, run->deadline_event, run->reap_event};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		if (events[i])
			event_free(events[i]);
	if (run->pid > 0) {
		kill(-run->pid, SIGKILL);
		while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close_fd(&run->out_fd);
	close_fd(&run->err_fd);
	if (run->out.data)
		OPENSSL_cleanse(run->out.data, run->out.cap);
	buf_done(&run->out);
	buf_done(&run->err);
	free(run);
}

void k8s_exec_cancel(struct k8s_exec_run *run)
{
	if (run)
		run_free(run);
}

// Ends the run; result is NULL exactly when error is not.
static void run_finish(struct k8s_exec_run *run, struct k8s_exec_result *result, const struct err *error)
{
	k8s_exec_done_fn *done = run->done;
	void *arg = run->arg;
	run_free(run);
	done(arg, result, error);
}

// Keeps the first STDERR_BYTES_MAX and drops the rest: a plugin must never block on a full pipe. Returns false at the
// end of the output, with errno 0, and when reading fails.
static bool read_stderr(struct k8s_exec_run *run)
{
	char chunk[1024];
	errno = 0;
	ssize_t n = read(run->err_fd, chunk, sizeof chunk);
	size_t room = run->err.max - run->err.len;
	if (n > 0)
		buf_put(&run->err, chunk, (size_t)n < room ? (size_t)n : room);
	return n > 0;
}

static void on_stderr(evutil_socket_t fd, short events, void *arg)
{
	struct k8s_exec_run *run = arg;
	if (!read_stderr(run) && errno != EAGAIN && errno != EINTR)
		event_del(run->err_event);
}

static void run_fail(struct k8s_exec_run *run, enum err_kind kind, const char *what)
{
	const struct k8s_exec *x = run->config->exec;
	struct err error = {0};
	for (int i = 0; i < 64 && read_stderr(run); i++)
		;
	// Its first line usually names the cause ("session expired, log in again").
	const char *text = buf_str(&run->err);
	text += strspn(text, " \t\r\n");
	char shown[208]; // without control characters
	size_t line = text_show(shown, sizeof shown, text, strcspn(text, "\r\n"));
	err_set(&error, kind, "credential plugin \"%s\" (%s) %s%s%s", x->command, x->source, what, line ? ": " : "",
	        shown);
	run_finish(run, NULL, &error);
}

static void classify(struct k8s_exec_run *run)
{
	char what[64];
	struct err ignored; // only its text is used
	if (WIFSIGNALED(run->status)) {
		err_set(&ignored, ERR_AUTH, "was killed by signal %d", WTERMSIG(run->status));
	} else if (WEXITSTATUS(run->status) != 0) {
		err_set(&ignored, ERR_AUTH, "exited with status %d", WEXITSTATUS(run->status));
	} else {
		struct k8s_exec_result result;
		struct err error = {0};
		const struct k8s_exec *x = run->config->exec;
		if (k8s_exec_decode(x->api_version, buf_str(&run->out), run->out.len, &result, &error) == 0) {
			run_finish(run, &result, NULL);
			return;
		}
		err_wrap(&error, "credential plugin \"%s\" (%s)", x->command, x->source);
		run_finish(run, NULL, &error);
		return;
	}
	memcpy(what, ignored.msg, sizeof what);
	what[sizeof what - 1] = '\0';
	run_fail(run, ERR_AUTH, what);
}

static void on_reap(evutil_socket_t fd, short events, void *arg)
{
	struct k8s_exec_run *run = arg;
	int status = 0;
	pid_t pid = waitpid(run->pid, &status, WNOHANG);
	if (pid == 0 || (pid < 0 && errno == EINTR)) {
		timer_start(run->reap_event, REAP_POLL_MS);
		return;
	}
	// ECHILD: this process ignores SIGCHLD, so the status is lost; the output decides.
	run->status = pid > 0 ? status : 0;
	run->pid = 0;
	classify(run);
}

static void on_output(evutil_socket_t fd, short events, void *arg)
{
	struct k8s_exec_run *run = arg;
	char chunk[16384];
	ssize_t n = read((int)fd, chunk, sizeof chunk);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		run_fail(run, ERR_IO, "cannot be read from");
		return;
	}
	int rc = n > 0 ? buf_put(&run->out, chunk, (size_t)n) : 0;
	OPENSSL_cleanse(chunk, sizeof chunk);
	if (rc < 0) {
		run_fail(run, ERR_LIMIT, "printed more than the ceiling of 1 MiB");
		return;
	}
	if (n == 0) {
		event_del(run->out_event);
		on_reap(-1, 0, run);
	}
}

static void on_deadline(evutil_socket_t fd, short events, void *arg)
{
	run_fail(arg, ERR_TIMEOUT, "did not end in time and was killed");
}

// ---- starting ----

static const char **make_environment(const struct k8s_exec *x, const char *info)
{
	size_t n = 0, n_extra = 0, k = 0;
	while (environ[n])
		n++;
	while (x->env && x->env[n_extra])
		n_extra++;
	const char **env = calloc(n + n_extra + 2, sizeof *env);
	if (!env)
		return NULL;
	// Variables of the config come first, because getenv returns the first match; inherited ones of the same name
	// are left out.
	env[k++] = info;
	for (size_t i = 0; i < n_extra; i++)
		env[k++] = x->env[i];
	size_t n_own = k;
	for (size_t i = 0; i < n; i++) {
		size_t name_len = strcspn(environ[i], "=");
		bool is_replaced = false;
		for (size_t j = 0; j < n_own && !is_replaced; j++)
			is_replaced = strncmp(env[j], environ[i], name_len) == 0 && env[j][name_len] == '=';
		if (!is_replaced)
			env[k++] = environ[i];
	}
	return env;
}

// posix_spawn wants char *const[]; it does not write to the strings.
static char *const *as_argv(const char *const *list)
{
	char *const *argv;
	memcpy(&argv, &list, sizeof argv);
	return argv;
}

// Spawns with stdout and stderr on the given pipe ends. Returns an errno value.
static int spawn(const struct k8s_exec *x, const char *const *env, int out_fd, int err_fd, pid_t *ret_pid)
{
	const char *argv[K8S_EXEC_ARGS_MAX + 2] = {x->command};
	for (size_t i = 0; i < K8S_EXEC_ARGS_MAX && x->args && x->args[i]; i++)
		argv[i + 1] = x->args[i];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc)
		return rc;
	rc = posix_spawnattr_init(&attr);
	if (rc) {
		posix_spawn_file_actions_destroy(&actions);
		return rc;
	}
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	if (!(rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) &&
	    !(rc = posix_spawn_file_actions_adddup2(&actions, out_fd, 1)) &&
	    !(rc = posix_spawn_file_actions_adddup2(&actions, err_fd, 2)) &&
	    !(rc = posix_spawnattr_setpgroup(&attr, 0)) && !(rc = posix_spawnattr_setsigmask(&attr, &none)) &&
	    !(rc = posix_spawnattr_setsigdefault(&attr, &all)) &&
	    !(rc = posix_spawnattr_setflags(&attr,
	                                    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)))
		rc = posix_spawnp(ret_pid, x->command, &actions, &attr, as_argv(argv), as_argv(env));
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static int start_process(struct k8s_exec_run *run, struct err *e)
{
	const struct k8s_exec *x = run->config->exec;
	int out[2] = {-1, -1}, err[2] = {-1, -1}, why = 0;
	char *info = k8s_exec_info(run->config, e);
	if (!info)
		return -1;
	const char **env = make_environment(x, info);
	if (!env)
		why = ENOMEM;
	else if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		why = errno;
	else if (evutil_make_socket_nonblocking(out[0]) < 0 || evutil_make_socket_nonblocking(err[0]) < 0)
		why = EIO;
	else
		why = spawn(x, env, out[1], err[1], &run->pid);
	free(env);
	free(info);
	close_fd(&out[1]);
	close_fd(&err[1]);
	run->out_fd = out[0];
	run->err_fd = err[0];
	if (why == 0)
		return 0;
	run->pid = 0;
	const char *hint = why == ENOENT && x->install_hint ? x->install_hint : "";
	return err_set_code(e, why == ENOENT ? ERR_NOT_FOUND : ERR_IO, why,
	                    "cannot start the credential plugin \"%s\" (%s): %s%s%.200s", x->command, x->source,
	                    strerror(why), hint[0] ? ". " : "", hint);
}

struct k8s_exec_run *k8s_exec_start(struct event_base *loop, const struct k8s_config *config, int64_t deadline_ms,
                                    k8s_exec_done_fn *done, void *arg, struct err *e)
{
	struct k8s_exec_run *run = alloc_zeroed(sizeof *run, e);
	if (!run)
		return NULL;
	run->config = config;
	run->done = done;
	run->arg = arg;
	run->out_fd = run->err_fd = -1;
	buf_init(&run->out, K8S_EXEC_OUTPUT_BYTES_MAX);
	buf_init(&run->err, STDERR_BYTES_MAX);
	if (start_process(run, e) < 0) {
		run_free(run);
		return NULL;
	}
	struct timeval deadline = {.tv_sec = deadline_ms / 1000, .tv_usec = deadline_ms % 1000 * 1000};
	run->out_event = event_new(loop, run->out_fd, EV_READ | EV_PERSIST, on_output, run);
	run->err_event = event_new(loop, run->err_fd, EV_READ | EV_PERSIST, on_stderr, run);
	run->deadline_event = evtimer_new(loop, on_deadline, run);
	run->reap_event = evtimer_new(loop, on_reap, run);
	if (!run->out_event || !run->err_event || !run->deadline_event || !run->reap_event ||
	    event_add(run->out_event, NULL) < 0 || event_add(run->err_event, NULL) < 0 ||
	    event_add(run->deadline_event, &deadline) < 0) {
		run_free(run);
		err_set(e, ERR_INTERNAL, "cannot watch the credential plugin's output");
		return NULL;
	}
	return run;
}
