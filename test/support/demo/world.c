// SPDX-License-Identifier: Apache-2.0
#include "test/support/demo/world.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"

#define WORLD_START_MS     120000 // however busy the machine is
#define WORLD_FILE_MAX     (1024 * 1024)
#define WORLD_REPLICAS     "2" // at the start
#define WORLD_TEMPLATE     "@REPLICAS_FILE@"
#define WORLD_TEMPLATE_CSV "@CONFIG_DIR@"

// path = dir/name
static void join(char *path, const char *dir, const char *name)
{
	snprintf(path, WORLD_PATH_BYTES, "%s/%s", dir, name);
}

static int write_file(const char *path, const char *text, size_t len, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bool ok = fd >= 0 && write(fd, text, len) == (ssize_t)len;
	int saved = errno;
	if (fd >= 0)
		close(fd);
	return ok ? 0 : err_set_code(e, ERR_IO, saved, "cannot write %s: %s", path, strerror(saved));
}

static int write_text(const char *path, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int write_text(const char *path, struct err *e, const char *fmt, ...)
{
	struct buf b;
	buf_init(&b, WORLD_FILE_MAX);
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	int rc = write_file(path, buf_str(&b), b.len, e);
	buf_done(&b);
	return rc;
}

// The mock's script with its two placeholders filled in.
static int write_script(const struct world *w, const char *config_dir, const char *to, struct err *e)
{
	char from[WORLD_PATH_BYTES];
	join(from, config_dir, "mock.yaml");
	struct buf in, out;
	buf_init(&in, WORLD_FILE_MAX);
	buf_init(&out, WORLD_FILE_MAX);
	int rc = buf_read_file(&in, from, e);
	const char *p = buf_str(&in);
	while (rc == 0 && *p) {
		const char *at = strchr(p, '@');
		if (!at)
			at = p + strlen(p);
		buf_put(&out, p, (size_t)(at - p));
		p = at;
		if (strncmp(p, WORLD_TEMPLATE, strlen(WORLD_TEMPLATE)) == 0) {
			buf_puts(&out, w->replicas_path);
			p += strlen(WORLD_TEMPLATE);
		} else if (strncmp(p, WORLD_TEMPLATE_CSV, strlen(WORLD_TEMPLATE_CSV)) == 0) {
			buf_puts(&out, config_dir);
			p += strlen(WORLD_TEMPLATE_CSV);
		} else if (*p) {
			buf_putc(&out, *p++);
		}
	}
	if (rc == 0)
		rc = write_file(to, buf_str(&out), out.len, e);
	buf_done(&in);
	buf_done(&out);
	return rc;
}

// ---- waiting until a server answers ----

struct probe {
	struct event_base *loop;
	const char *want; // text the body must contain
	bool ok;
};

static void on_probe(void *arg, const struct http_response *response, const struct err *error)
{
	(void)error;
	struct probe *p = arg;
	p->ok = response && response->status == 200 && strstr(response->body, p->want);
	event_base_loopbreak(p->loop);
}

static int wait_for(struct world *w, const char *name, const char *base, const char *path, const char *want,
                    struct err *e)
{
	struct event_base *loop = event_base_new();
	struct http_client_options options = {.loop = loop};
	struct http_client *http = loop ? http_client_new(&options, e) : NULL;
	char url[256];
	snprintf(url, sizeof url, "%s%s", base, path);
	int rc = http ? -1 : err_set(e, ERR_INTERNAL, "cannot create the event loop");
	fprintf(stderr, "  %-12s %s\n", name, base);
	for (int waited_ms = 0; http && waited_ms < WORLD_START_MS; waited_ms += 100) {
		struct probe p = {loop, want, false};
		struct http_request r = {.method = "GET", .url = url, .timeout_ms = 1000};
		if (!process_all_alive(&w->processes, e))
			break;
		if (http_client_submit(http, &r, on_probe, &p, NULL, e) < 0)
			break;
		event_base_dispatch(loop);
		if (p.ok) {
			rc = 0;
			break;
		}
		nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
		err_set(e, ERR_TIMEOUT, "%s does not answer %s; see its log in %s", name, url, w->work_dir);
	}
	http_client_free(http);
	if (loop)
		event_base_free(loop);
	return rc;
}

// ---- the cast ----

static int start(struct world *w, const char *name, const char *const argv[], struct err *e)
{
	char log[WORLD_PATH_BYTES], file[64];
	snprintf(file, sizeof file, "%s.log", name);
	join(log, w->work_dir, file);
	return process_start(&w->processes, name, log, argv, e);
}

static int start_fake(struct world *w, const struct world_options *o, struct err *e)
{
	uint16_t port;
	char program[WORLD_PATH_BYTES], listen[32], url[64];
	if (process_free_port(0, &port, e) < 0)
		return -1;
	join(program, o->bin_dir, "fake-apiserver");
	snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
	snprintf(url, sizeof url, "http://%s", listen);
	const char *object = WORLD_NAMESPACE "/Deployment/" WORLD_DEPLOYMENT "=" WORLD_REPLICAS;
	const char *argv[] = {program, "--listen", listen, "--ready-after", o->ready_after, "--object", object, NULL};
	join(w->kubeconfig, w->work_dir, "kubeconfig");
	if (start(w, "apiserver", argv, e) < 0)
		return -1;
	if (write_text(
	            w->kubeconfig, e,
	            "apiVersion: v1\nkind: Config\nclusters: [{name: demo, cluster: {server: \"%s\"}}]\n"
	            "users: [{name: demo, user: {}}]\ncontexts: [{name: demo, context: {cluster: demo, user: demo}}]\n"
	            "current-context: demo\n",
	            url) < 0)
		return -1;
	return wait_for(w, "apiserver", url, "/readyz", "", e);
}

static int start_exporter(struct world *w, const struct world_options *o, uint16_t port, struct err *e)
{
	char program[WORLD_PATH_BYTES], listen[32], script[WORLD_PATH_BYTES];
	join(program, o->bin_dir, "gpuscale-exporter");
	join(script, w->work_dir, "mock.yaml");
	join(w->replicas_path, w->work_dir, "replicas");
	snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
	snprintf(w->exporter_url, sizeof w->exporter_url, "http://%s", listen);
	const char *argv[] = {program,    "--backend", "mock",       "--mock-script", script,
	                      "--listen", listen,      "--interval", "250ms",         NULL};
	if (write_text(w->replicas_path, e, WORLD_REPLICAS "\n") < 0 || write_script(w, o->config_dir, script, e) < 0 ||
	    start(w, "exporter", argv, e) < 0)
		return -1;
	return wait_for(w, "exporter", w->exporter_url, "/-/ready", "", e);
}

static int start_prometheus(struct world *w, uint16_t exporter_port, uint16_t port, struct err *e)
{
	char config[WORLD_PATH_BYTES], config_flag[WORLD_PATH_BYTES + 32], data_flag[WORLD_PATH_BYTES + 32],
	        listen_flag[64];
	join(config, w->work_dir, "prometheus.yml");
	snprintf(config_flag, sizeof config_flag, "--config.file=%s", config);
	snprintf(data_flag, sizeof data_flag, "--storage.tsdb.path=%s/prometheus", w->work_dir);
	snprintf(listen_flag, sizeof listen_flag, "--web.listen-address=127.0.0.1:%u", port);
	snprintf(w->prometheus_url, sizeof w->prometheus_url, "http://127.0.0.1:%u", port);
	if (write_text(config, e,
	               "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
	               "scrape_configs:\n- job_name: gpuscale-exporter\n  honor_labels: true\n"
	               "  static_configs: [{targets: ['127.0.0.1:%u']}]\n",
	               exporter_port) < 0)
		return -1;
	const char *argv[] = {"prometheus", config_flag, data_flag, listen_flag, "--log.level=warn", NULL};
	if (start(w, "prometheus", argv, e) < 0)
		return -1;
	// It looks at its targets only some seconds after it is ready: until then there is nothing to see.
	return wait_for(w, "prometheus", w->prometheus_url, "/api/v1/query?query=up", "\"value\"", e);
}

static int start_controller(struct world *w, const struct world_options *o, uint16_t port, struct err *e)
{
	char program[WORLD_PATH_BYTES], policy[WORLD_PATH_BYTES], listen[32];
	join(program, o->bin_dir, "gpuscale");
	join(policy, o->config_dir, "policy.yaml");
	snprintf(listen, sizeof listen, "127.0.0.1:%u", port);
	snprintf(w->controller_url, sizeof w->controller_url, "http://%s", listen);
	const char *argv[] = {program,
	                      "run",
	                      "--policies",
	                      policy,
	                      "--prometheus",
	                      w->prometheus_url,
	                      "--listen",
	                      listen,
	                      "--kubeconfig",
	                      w->kubeconfig,
	                      o->context ? "--context" : NULL,
	                      o->context,
	                      NULL};
	if (start(w, "controller", argv, e) < 0)
		return -1;
	return wait_for(w, "controller", w->controller_url, "/livez", "", e);
}

int world_start(struct world *w, const struct world_options *o, struct err *e)
{
	memset(w, 0, sizeof *w);
	snprintf(w->work_dir, sizeof w->work_dir, "%s", o->work_dir);
	uint16_t exporter_port, prometheus_port, controller_port;
	if (o->kubeconfig)
		snprintf(w->kubeconfig, sizeof w->kubeconfig, "%s", o->kubeconfig);
	else if (start_fake(w, o, e) < 0) {
		world_stop(w);
		return -1;
	}
	// Prometheus first: the replayed trace begins when the exporter starts, and Prometheus should not miss its
	// first minute.
	if (process_free_port(0, &exporter_port, e) < 0 || process_free_port(exporter_port, &prometheus_port, e) < 0 ||
	    process_free_port(prometheus_port, &controller_port, e) < 0 ||
	    start_prometheus(w, exporter_port, prometheus_port, e) < 0 || start_exporter(w, o, exporter_port, e) < 0 ||
	    start_controller(w, o, controller_port, e) < 0) {
		world_stop(w);
		return -1;
	}
	return 0;
}

void world_stop(struct world *w)
{
	process_stop_all(&w->processes);
}
