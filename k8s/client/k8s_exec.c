// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_exec.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/timer.h"
#include "k8s/client/k8s_config.h"

#define STDERR_BYTES_MAX 4096
#define REAP_POLL_MS     10
#define CA_BYTES_MAX     (1024 * 1024)

// ---- the two documents: the output, and the input in KUBERNETES_EXEC_INFO ----

void k8s_exec_result_done(struct k8s_exec_result *r)
{
	alloc_wipe(r->token);
	alloc_wipe(r->cert_pem);
	alloc_wipe(r->key_pem);
	*r = (struct k8s_exec_result){0};
}

// Copies a member and overwrites the original.
static int take_text(const cJSON *status, const char *key, char **ret_text, struct err *e)
{
	const cJSON *item = json_get(status, key);
	*ret_text = NULL;
	if (!item || cJSON_IsNull(item))
		return 0;
	if (!cJSON_IsString(item))
		return err_set(e, ERR_AUTH, "printed an ExecCredential whose status.%s is not a string", key);
	if (item->valuestring[0]) {
		*ret_text = strdup(item->valuestring);
		if (!*ret_text)
			return err_no_memory(e);
	}
	OPENSSL_cleanse(item->valuestring, strlen(item->valuestring));
	return 0;
}

static int decode_status(const cJSON *root, const char *api_version, struct k8s_exec_result *r, struct err *e)
{
	const char *kind = json_get_str(root, "kind", ""), *version = json_get_str(root, "apiVersion", "");
	if (strcmp(kind, "ExecCredential") != 0)
		return err_set(e, ERR_AUTH, "printed JSON that is not an ExecCredential");
	if (strcmp(version, api_version) != 0)
		return err_set(e, ERR_AUTH,
		               "printed an ExecCredential of apiVersion \"%.60s\", but the kubeconfig says \"%s\"",
		               version, api_version);
	const cJSON *status = json_get(root, "status");
	if (take_text(status, "token", &r->token, e) < 0 ||
	    take_text(status, "clientCertificateData", &r->cert_pem, e) < 0 ||
	    take_text(status, "clientKeyData", &r->key_pem, e) < 0)
		return -1;
	if (!r->cert_pem != !r->key_pem)
		return err_set(e, ERR_AUTH,
		               "printed an ExecCredential with only one of clientCertificateData and clientKeyData");
	if (!r->token && !r->cert_pem)
		return err_set(e, ERR_AUTH, "printed an ExecCredential with neither a token nor a client certificate");
	if (r->token && (strlen(r->token) > K8S_TOKEN_BYTES_MAX || strpbrk(r->token, "\r\n\t ")))
		return err_set(e, ERR_AUTH, "printed a token that is too long, or has blanks inside");
	const cJSON *expiry = json_get(status, "expirationTimestamp");
	if (!json_may_be(expiry, cJSON_IsString))
		return err_set(e, ERR_AUTH,
		               "printed an ExecCredential whose status.expirationTimestamp is not a string");
	const char *expires = json_get_str(status, "expirationTimestamp", "");
	if (expires[0] && num_parse_rfc3339_ms(expires, strlen(expires), &r->expires_wall_ms, NULL) < 0)
		return err_set(e, ERR_AUTH, "printed an expirationTimestamp that is not an RFC 3339 time: \"%.40s\"",
		               expires);
	return 0;
}

int k8s_exec_decode(const char *api_version, const char *text, size_t len, struct k8s_exec_result *ret_result,
                    struct err *e)
{
	*ret_result = (struct k8s_exec_result){0};
	struct err why;
	cJSON *root = len ? json_read(text, len, &why) : NULL;
	if (!root)
		return err_set(e, ERR_AUTH, len ? "printed something that is not JSON" : "printed nothing");
	int rc = decode_status(root, api_version, ret_result, e);
	cJSON_Delete(root);
	if (rc < 0)
		k8s_exec_result_done(ret_result);
	return rc;
}

// Returns the CA of the cluster in base64, as the protocol requires; "" without one.
static int put_ca(struct json_writer *w, const struct http_tls *tls, struct err *e)
{
	struct buf pem;
	buf_init(&pem, CA_BYTES_MAX);
	int rc = 0;
	if (tls->ca_pem ? buf_puts(&pem, tls->ca_pem) < 0 : tls->ca_file && buf_read_file(&pem, tls->ca_file, e) < 0)
		rc = -1;
	unsigned char *text = rc == 0 && pem.len ? malloc((pem.len + 2) / 3 * 4 + 1) : NULL;
	if (text) {
		EVP_EncodeBlock(text, (const unsigned char *)pem.data, (int)pem.len);
		json_write_member_str(w, "certificate-authority-data", (char *)text);
	} else if (rc == 0 && pem.len) {
		rc = err_no_memory(e);
	}
	free(text);
	buf_done(&pem);
	return rc;
}

char *k8s_exec_info(const struct k8s_config *config, struct err *e)
{
	struct buf out;
	struct json_writer w;
	buf_init(&out, 2 * CA_BYTES_MAX);
	buf_puts(&out, "KUBERNETES_EXEC_INFO=");
	json_write_init(&w, &out, 0);
	json_write_format(&w, "{kind:%s,apiVersion:%s,spec:{interactive:%i", "ExecCredential",
	                  config->exec->api_version, false);
	int rc = 0;
	if (config->exec->provide_cluster_info) {
		json_write_format(&w, "cluster:{server:%s", config->server);
		if (config->tls.server_name)
			json_write_member_str(&w, "tls-server-name", config->tls.server_name);
		if (config->tls.insecure_skip_verify)
			json_write_member_bool(&w, "insecure-skip-tls-verify", true);
		rc = put_ca(&w, &config->tls, e);
		json_write_object_end(&w);
	}
	json_write_format(&w, "}}");
	if (rc == 0 && out.failed)
		rc = err_set(e, ERR_LIMIT, "KUBERNETES_EXEC_INFO would be larger than %d bytes", 2 * CA_BYTES_MAX);
	if (rc == 0)
		return out.data; // the caller owns it; a buf is malloc'ed memory
	buf_done(&out);
	return NULL;
}

// ---- running ----

struct k8s_exec_run {
	const struct k8s_config *config;
	k8s_exec_done_fn *done;
	void *arg;
	pid_t pid; // also its process group; 0 once reaped
	int status;
	int out_fd, err_fd;
	struct event out_event, err_event, deadline_event, reap_event;
	struct buf out, err;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void k8s_exec_cancel(struct k8s_exec_run *run)
{
	if (!run)
		return;
	struct event *const events[] = {&run->out_event, &run->err_event, &run->deadline_event, &run->reap_event};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		if (event_initialized(events[i]))
			event_del(events[i]);
	if (run->pid > 0) {
		kill(-run->pid, SIGKILL);
		while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close_fd(&run->out_fd);
	close_fd(&run->err_fd);
	buf_wipe(&run->out);
	buf_done(&run->err);
	free(run);
}

// Ends the run; result is NULL exactly when error is not.
static void run_finish(struct k8s_exec_run *run, struct k8s_exec_result *result, const struct err *error)
{
	k8s_exec_done_fn *done = run->done;
	void *arg = run->arg;
	k8s_exec_cancel(run);
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
		event_del(&run->err_event);
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
	const struct k8s_exec *x = run->config->exec;
	struct k8s_exec_result result;
	struct err error = {0};
	if (WIFSIGNALED(run->status)) {
		snprintf(what, sizeof what, "was killed by signal %d", WTERMSIG(run->status));
	} else if (WEXITSTATUS(run->status) != 0) {
		snprintf(what, sizeof what, "exited with status %d", WEXITSTATUS(run->status));
	} else if (k8s_exec_decode(x->api_version, buf_str(&run->out), run->out.len, &result, &error) == 0) {
		run_finish(run, &result, NULL);
		return;
	} else {
		err_wrap(&error, "credential plugin \"%s\" (%s)", x->command, x->source);
		run_finish(run, NULL, &error);
		return;
	}
	run_fail(run, ERR_AUTH, what);
}

static void on_reap(evutil_socket_t fd, short events, void *arg)
{
	struct k8s_exec_run *run = arg;
	int status = 0;
	pid_t pid = waitpid(run->pid, &status, WNOHANG);
	if (pid == 0 || (pid < 0 && errno == EINTR)) {
		timer_start(&run->reap_event, REAP_POLL_MS);
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
		event_del(&run->out_event);
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
	struct k8s_exec_run *run = err_calloc(sizeof *run, e);
	if (!run)
		return NULL;
	run->config = config;
	run->done = done;
	run->arg = arg;
	run->out_fd = run->err_fd = -1;
	buf_init(&run->out, K8S_EXEC_OUTPUT_BYTES_MAX);
	buf_init(&run->err, STDERR_BYTES_MAX);
	if (start_process(run, e) < 0) {
		k8s_exec_cancel(run);
		return NULL;
	}
	event_assign(&run->out_event, loop, run->out_fd, EV_READ | EV_PERSIST, on_output, run);
	event_assign(&run->err_event, loop, run->err_fd, EV_READ | EV_PERSIST, on_stderr, run);
	evtimer_assign(&run->deadline_event, loop, on_deadline, run);
	evtimer_assign(&run->reap_event, loop, on_reap, run);
	if (event_add(&run->out_event, NULL) < 0 || event_add(&run->err_event, NULL) < 0 ||
	    timer_start(&run->deadline_event, deadline_ms) < 0) {
		k8s_exec_cancel(run);
		err_set(e, ERR_INTERNAL, "cannot watch the credential plugin's output");
		return NULL;
	}
	return run;
}
