// SPDX-License-Identifier: Apache-2.0
// gpuscale-exporter: parse, wire, run until a signal.
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/process_trim.h"
#include "exporter/backend.h"
#include "exporter/cmd.h"
#include "exporter/cmd_view.h"
#include "exporter/csv_counters.h"
#include "exporter/options.h"
#include "exporter/pods.h"
#include "exporter/sampler.h"
#include "exporter/self_metrics.h"
#include "exporter/server.h"
#include "exporter/xid.h"

#define HOSTNAME_BYTES         256
#define FILE_ERRORS_MAX        (64 * 1024)
#define COUNTERS_REMARKS_BYTES (512 * 1024)
#define SETTLE_MS              5000 // --once waits this long for the mock's replicas
#define COMMAND_INTERVAL_MS    500  // of a command that reads the driver itself
#define URL_BYTES              320
#define STOP_MS                800 // a sampler that hangs in a driver is left behind after this

struct exporter {
	struct exporter_options options;
	struct clock clock;
	struct log *log;
	struct counters counters;
	struct xid_store *xids;
	struct event_base *loop;
	struct backend *backend;
	struct pods *pods; // NULL: not asked for
	struct sampler *sampler;
	char hostname[HOSTNAME_BYTES];
};

// As dcgm-exporter: the node's name where Kubernetes gives it, else the host's.
static void find_hostname(char *out, size_t size)
{
	const char *node = getenv("NODE_NAME");
	if (node && node[0])
		snprintf(out, size, "%s", node);
	else if (gethostname(out, size) < 0)
		out[0] = '\0';
	out[size - 1] = '\0';
}

static struct backend *make_nvml(struct exporter *x, struct err *e)
{
	struct backend *b = backend_nvml_new(x->options.nvml_library, x->xids, x->log, e);
	if (b && x->options.processes)
		backend_nvml_show_processes(b, "/proc");
	return b;
}

// nvml, then what the kernel shows by itself.
static struct backend *make_auto(struct exporter *x, struct err *e)
{
	const struct exporter_options *o = &x->options;
	struct backend *candidates[] = {make_nvml(x, e), backend_amdgpu_new(o->sysfs_root, x->log, e),
	                                backend_intel_new(o->sysfs_root, x->log, e)};
	size_t n = sizeof candidates / sizeof candidates[0];
	struct backend *b = NULL;
	if (candidates[0] && candidates[1] && candidates[2])
		b = backend_auto_new(candidates, n, o->sysfs_root, e);
	for (size_t i = 0; !b && i < n; i++)
		if (candidates[i])
			candidates[i]->ops->destroy(candidates[i]);
	return b;
}

static struct backend *make_backend(struct exporter *x, struct buf *file_errors, struct err *e)
{
	switch (x->options.backend) {
	case BACKEND_AUTO:
		return make_auto(x, e);
	case BACKEND_NVML:
		return make_nvml(x, e);
	case BACKEND_MOCK:
		return backend_mock_new(x->options.mock_script, x->xids, x->log, file_errors, e);
	case BACKEND_DCGM:
		return backend_dcgm_new(x->options.dcgm_library, x->options.dcgm_hostengine, x->options.interval_ms,
		                        x->xids, x->log, e);
	case BACKEND_AMDGPU:
		return backend_amdgpu_new(x->options.sysfs_root, x->log, e);
	case BACKEND_INTEL:
		return backend_intel_new(x->options.sysfs_root, x->log, e);
	case BACKEND__COUNT:
		break;
	}
	abort(); // the command line knows no other
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	event_base_loopbreak(arg);
}

static int serve(struct exporter *x, struct buf *errors, struct err *e)
{
	struct exporter_server_options options = {.loop = x->loop,
	                                          .listen = x->options.listen,
	                                          .sampler = x->sampler,
	                                          .xids = x->xids,
	                                          .pods = x->pods,
	                                          .clock = &x->clock,
	                                          .log = x->log,
	                                          .web_config = x->options.web_config,
	                                          .ret_errors = errors,
	                                          .counter_rows_skipped = x->counters.skipped};
	struct exporter_server *server = exporter_server_new(&options, e);
	if (!server)
		return -1;
	struct event *on_term = evsignal_new(x->loop, SIGTERM, on_signal, x->loop);
	struct event *on_int = evsignal_new(x->loop, SIGINT, on_signal, x->loop);
	int rc = 0;
	if (!on_term || !on_int || event_add(on_term, NULL) < 0 || event_add(on_int, NULL) < 0)
		rc = err_set(e, ERR_INTERNAL, "cannot watch for signals");
	if (rc == 0)
		rc = sampler_start(x->sampler, e);
	if (rc == 0) {
		LOG(x->log, LOG_INFO, "Serving metrics", LOG_S("listen", x->options.listen),
		    LOG_I("port", exporter_server_port(server)), LOG_S("backend", backend_name(x->backend)),
		    LOG_S("version", GPUSCALE_VERSION));
		process_trim();
		event_base_dispatch(x->loop);
		LOG(x->log, LOG_INFO, "Ending", LOG_S("reason", "signal"));
	}
	if (on_term)
		event_free(on_term);
	if (on_int)
		event_free(on_int);
	exporter_server_free(server);
	return rc;
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg; // only lets event_base_loop come back
}

static bool is_settled(struct exporter *x)
{
	struct backend *b = x->backend;
	struct pods_status pods = {.polls = 1};
	if (x->pods)
		pods_get_status(x->pods, &pods);
	return pods.polls > 0 && (!b->ops->is_settled || b->ops->is_settled(b));
}

// Gives what the loop asks others (the mock's replicas, the kubelet's pods) time to answer.
static int settle(struct exporter *x, struct err *e)
{
	struct event *tick = event_new(x->loop, -1, EV_PERSIST, on_tick, NULL);
	const struct timeval every = {.tv_usec = 10000};
	if (!tick || event_add(tick, &every) < 0) {
		if (tick)
			event_free(tick);
		return err_set(e, ERR_INTERNAL, "cannot make a timer");
	}
	int64_t until_ms = clock_mono_ms(&x->clock) + SETTLE_MS;
	while (!is_settled(x) && clock_mono_ms(&x->clock) < until_ms)
		event_base_loop(x->loop, EVLOOP_ONCE);
	event_free(tick);
	return 0;
}

static int print_once(struct exporter *x, struct err *e)
{
	if (settle(x, e) < 0)
		return -1;
	int rc = sampler_run_once(x->sampler, x->options.at_ms, e);
	struct buf page;
	struct sampler_status status;
	buf_init(&page, RENDER_BYTES_MAX);
	sampler_read(x->sampler, &page, &status);
	self_metrics_render_state(&page, &status);
	if (page.failed)
		rc = err_set(e, ERR_LIMIT, "the page passes the ceiling of %d bytes", RENDER_BYTES_MAX);
	else if ((fwrite(page.data, 1, page.len, stdout) != page.len || fflush(stdout) != 0) && rc == 0)
		rc = err_set(e, ERR_IO, "cannot write to standard output");
	buf_done(&page);
	return rc;
}

// What cannot be served is said, a line each; what can is served.
static void log_remarks(struct exporter *x, struct buf *remarks)
{
	for (char *line = remarks->data, *end; line && *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return; // the ceiling cut it
		*end = '\0';
		LOG(x->log, LOG_WARNING, "A row of the counters file is skipped", LOG_S("row", line));
	}
}

static int read_counters(struct exporter *x, struct err *e)
{
	if (!x->options.collectors) {
		counters_init_builtin(&x->counters);
		return 0;
	}
	struct buf remarks;
	buf_init(&remarks, COUNTERS_REMARKS_BYTES);
	int rc = counters_read(&x->counters, x->options.collectors, &remarks, e);
	log_remarks(x, &remarks);
	buf_done(&remarks);
	return rc;
}

// Everything that reads the GPUs, up to a sampler that has not begun.
static int make_sampler(struct exporter *x, struct buf *file_errors, struct err *e)
{
	if (read_counters(x, e) < 0)
		return -1;
	x->xids = xid_store_new(e);
	if (!x->xids)
		return -1;
	x->backend = make_backend(x, file_errors, e);
	if (!x->backend)
		return -1;
	if (x->options.kubernetes) {
		const struct pods_options pods = {.loop = x->loop,
		                                  .clock = &x->clock,
		                                  .log = x->log,
		                                  .socket = x->options.pods_socket,
		                                  .interval_ms = x->options.pods_interval_ms,
		                                  .extra = x->options.pod_resources};
		x->pods = pods_new(&pods, e);
		if (!x->pods)
			return -1;
	}
	struct sampler_options options = {.backend = x->backend,
	                                  .xids = x->xids,
	                                  .clock = &x->clock,
	                                  .log = x->log,
	                                  .interval_ms = x->options.interval_ms,
	                                  .window_ms = x->options.window_ms,
	                                  .render = {.hostname_label = x->options.hostname_label,
	                                             .hostname = x->hostname,
	                                             .driver_version = "",
	                                             .counters = &x->counters,
	                                             .pods = x->pods}};
	x->sampler = sampler_new(&options, e);
	if (!x->sampler)
		return -1;
	return x->backend->ops->attach ? x->backend->ops->attach(x->backend, x->loop, e) : 0;
}

// check, top and list: from the page that was asked for, from the exporter of this node, or from the driver.
static int command(struct exporter *x, struct buf *file_errors, int *ret_code, struct err *e)
{
	char url[URL_BYTES];
	struct cmd c = {.options = &x->options, .loop = x->loop, .clock = &x->clock, .ret_errors = file_errors};
	struct view *first = NULL;
	*ret_code = CMD_CHECK_UNKNOWN;
	c.from = x->options.from;
	if (!c.from && !x->options.backend_given) {
		struct buf page;
		cmd_default_url(url, sizeof url, x->options.listen);
		c.from = url;
		buf_init(&page, CMD_PAGE_BYTES_MAX);
		first = cmd_read(&c, &page, e);
		buf_done(&page);
		if (!first && e->kind == ERR_UNREACHABLE)
			c.from = NULL; // nobody serves here
		err_clear(e);
	}
	if (!c.from) {
		// What the driver says once is not news for a log.
		log_free(x->log);
		x->log = NULL;
		x->options.interval_ms = COMMAND_INTERVAL_MS;
		if (make_sampler(x, file_errors, e) < 0 || settle(x, e) < 0 || sampler_start(x->sampler, e) < 0)
			return -1;
		c.sampler = x->sampler;
	}
	*ret_code = cmd_run(&c, first, e);
	return e->kind == ERR_NONE ? 0 : -1;
}

static int run(struct exporter *x, struct buf *file_errors, int *ret_code, struct err *e)
{
	x->loop = event_base_new();
	if (!x->loop)
		return err_set(e, ERR_INTERNAL, "cannot make an event loop");
	if (x->options.command != COMMAND_SERVE)
		return command(x, file_errors, ret_code, e);
	if (make_sampler(x, file_errors, e) < 0)
		return -1;
	return x->options.once ? print_once(x, e) : serve(x, file_errors, e);
}

int main(int argc, char **argv)
{
	struct exporter x = {.log = NULL};
	struct err e = {.kind = ERR_NONE};
	exporter_options_parse(&x.options, argc, argv);
	if (x.options.version) {
		puts("gpuscale-exporter " GPUSCALE_VERSION);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	clock_init_real(&x.clock);
	find_hostname(x.hostname, sizeof x.hostname);
	x.log = log_new(STDERR_FILENO, x.options.log_format, x.options.log_level, &x.clock);

	struct buf file_errors;
	buf_init(&file_errors, FILE_ERRORS_MAX);
	int code = 0;
	int rc = run(&x, &file_errors, &code, &e);
	if (rc < 0) {
		fputs(buf_str(&file_errors), stderr);
		fprintf(stderr, "gpuscale-exporter: %s\n", e.msg);
	}
	buf_done(&file_errors);
	int exit_code = rc < 0 && x.options.command != COMMAND_CHECK ? err_kind_info(e.kind)->exit_code : code;

	// The thread may sit in a driver call that never returns: then its memory is left to the kernel.
	if (x.sampler && !sampler_stop(x.sampler, STOP_MS)) {
		LOG(x.log, LOG_WARNING, "The driver does not answer, ending without it", LOG_I("waitedMs", STOP_MS));
		_exit(exit_code);
	}
	sampler_free(x.sampler);
	if (x.backend)
		x.backend->ops->destroy(x.backend);
	pods_free(x.pods);
	if (x.loop)
		event_base_free(x.loop);
	xid_store_free(x.xids);
	counters_done(&x.counters);
	log_free(x.log);
	return exit_code;
}
