// SPDX-License-Identifier: Apache-2.0
// gpuscale-exporter: parses the command line, creates the parts, runs until a signal.
#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/http/service_account.h"
#include "base/print.h"
#include "base/process/process.h"
#include "exporter/cmd/exporter_cmd.h"
#include "exporter/hpc_jobs.h"

#define HOSTNAME_BYTES         256
#define FILE_ERRORS_MAX        (64 * 1024)
#define COUNTERS_REMARKS_BYTES (512 * 1024)
#define REPLIES_MS             5000 // longest wait of --once for the replicas of the mock
#define COMMAND_INTERVAL_MS    500  // sampling interval of a command that reads the driver itself
#define URL_BYTES              320
#define SERVER_BYTES           512
#define STOP_MS                800 // a sampler that hangs in a driver call is abandoned after this time

struct exporter {
	struct exporter_options options;
	struct clock clock;
	struct log *log;
	struct csv_counters counters;
	struct health_policy health;
	struct xid_store *xids;
	struct event_base *loop;
	struct backend *backend;
	struct kubelet_pods *pods;     // NULL without --kubernetes
	struct pod_metadata *metadata; // NULL without --pod-uid and --pod-labels
	struct hpc_jobs *jobs;         // NULL without --hpc-job-mapping-dir
	struct render_page renderer;
	struct otlp_push *otlp; // NULL without --otlp-endpoint
	struct sampler *sampler;
	char hostname[HOSTNAME_BYTES];
};

// As in dcgm-exporter: the name of the node if Kubernetes provides it, else the hostname.
static void find_hostname(char *out, size_t size)
{
	const char *node = getenv("NODE_NAME");
	if (node && node[0])
		snprintf(out, size, "%s", node);
	else if (gethostname(out, size) < 0)
		out[0] = '\0';
	out[size - 1] = '\0';
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	event_base_loopbreak(arg);
}

// Runs in the sampler thread.
static void render_round(void *arg, const struct sampler_round *round, struct buf *out)
{
	struct exporter *x = arg;
	render_page_round(&x->renderer, round, out);
	if (x->otlp)
		otlp_push_round(x->otlp, round);
}

static int make_otlp(struct exporter *x, struct err *e)
{
	const struct pod_share *pod = &x->options.sidecar_of;
	struct otlp_push_options *o = &x->options.otlp;
	o->loop = x->loop;
	o->log = x->log;
	o->ca_file = x->options.ca_file;
	o->encode = (struct otlp_encode_options){
	        .hostname = x->hostname, .sidecar_of = pod->pod ? pod : NULL, .health = &x->health, .xids = x->xids};
	process_return_large_blocks(); // an encoded round is large, and rare
	x->otlp = otlp_push_new(o, e);
	return x->otlp ? 0 : -1;
}

static int serve(struct exporter *x, struct buf *errors, struct err *e)
{
	if (x->options.otlp.endpoint && make_otlp(x, e) < 0)
		return -1;
	struct exporter_server_options *o = &x->options.server;
	o->loop = x->loop;
	o->sampler = x->sampler;
	o->xids = x->xids;
	o->pods = x->pods;
	o->metadata = x->metadata;
	o->otlp = x->otlp;
	o->clock = &x->clock;
	o->log = x->log;
	o->ret_errors = errors;
	o->counter_rows_skipped = x->counters.skipped;
	struct exporter_server *server = exporter_server_new(o, e);
	if (!server)
		return -1;
	struct event *on_term = evsignal_new(x->loop, SIGTERM, on_signal, x->loop);
	struct event *on_int = evsignal_new(x->loop, SIGINT, on_signal, x->loop);
	int rc = 0;
	if (!on_term || !on_int || event_add(on_term, NULL) < 0 || event_add(on_int, NULL) < 0)
		rc = err_set(e, ERR_INTERNAL, "cannot handle signals");
	if (rc == 0)
		rc = sampler_start(x->sampler, e);
	if (rc == 0) {
		LOG(x->log, LOG_INFO, "Serving metrics", LOG_S("listen", o->listen),
		    LOG_I("port", exporter_server_port(server)), LOG_S("backend", backend_name(x->backend)),
		    LOG_S("version", GPUSCALE_VERSION));
		process_trim();
		event_base_dispatch(x->loop);
		LOG(x->log, LOG_INFO, "Shutting down", LOG_S("reason", "signal"));
	}
	if (on_term)
		event_free(on_term);
	if (on_int)
		event_free(on_int);
	exporter_server_free(server);
	return rc;
}

static bool has_replies(struct exporter *x)
{
	struct backend *b = x->backend;
	struct kubelet_pods_status pods = {.polls = 1};
	if (x->pods)
		kubelet_pods_get_status(x->pods, &pods);
	// The first map of pods starts the request for their metadata.
	bool has_metadata = !x->metadata || !pod_metadata_is_busy(x->metadata);
	return pods.polls > 0 && has_metadata && (!b->ops->has_replies || b->ops->has_replies(b));
}

// Waits for the replies to the requests of the loop (replicas of the mock, pods of the kubelet).
static int wait_for_replies(struct exporter *x, struct err *e)
{
	static const struct timeval poll = {.tv_usec = 10000};
	int64_t until_ms = clock_mono_ms(&x->clock) + REPLIES_MS;
	while (!has_replies(x) && clock_mono_ms(&x->clock) < until_ms) {
		if (event_base_loopexit(x->loop, &poll) < 0)
			return err_set(e, ERR_INTERNAL, "cannot create a timer");
		event_base_dispatch(x->loop);
	}
	return 0;
}

static int print_once(struct exporter *x, struct err *e)
{
	if (wait_for_replies(x, e) < 0)
		return -1;
	int rc = sampler_run_once(x->sampler, x->options.at_ms, e);
	struct buf page;
	struct sampler_status status;
	buf_init(&page, RENDER_PAGE_BYTES_MAX);
	sampler_read(x->sampler, &page, &status);
	self_metrics_render_state(&page, &status);
	if (page.failed)
		rc = err_set(e, ERR_LIMIT, "the page exceeds the ceiling of %d bytes", RENDER_PAGE_BYTES_MAX);
	else if (print_out(&page) < 0 && rc == 0)
		rc = err_set(e, ERR_IO, "cannot write to standard output");
	buf_done(&page);
	return rc;
}

static void log_remarks(struct exporter *x, struct buf *remarks)
{
	for (char *line = remarks->data, *end; line && *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return; // truncated by the limit
		*end = '\0';
		LOG(x->log, LOG_WARNING, "Row of the counters file skipped", LOG_S("row", line));
	}
}

static int read_counters(struct exporter *x, struct err *e)
{
	if (!x->options.collectors)
		return 0;
	struct buf remarks;
	buf_init(&remarks, COUNTERS_REMARKS_BYTES);
	int rc = csv_counters_read(&x->counters, x->options.collectors, &remarks, e);
	log_remarks(x, &remarks);
	buf_done(&remarks);
	return rc;
}

static void on_map(void *arg, const struct pod_map *map)
{
	struct exporter *x = arg;
	if (x->metadata)
		pod_metadata_take_map(x->metadata, map);
}

// The commands do not show what the API server reports.
static int make_metadata(struct exporter *x, struct err *e)
{
	const char *node = getenv("NODE_NAME");
	char server[SERVER_BYTES];
	if (x->options.command != COMMAND_SERVE || (!x->options.page.pod_uid && !x->options.pod_labels.n))
		return 0;
	if (!node || !node[0])
		return err_set(e, ERR_USAGE,
		               "--pod-uid and --pod-labels need the name of the node in the environment variable "
		               "NODE_NAME");
	if (service_account_server(server, sizeof server, e) < 0)
		return err_wrap(e, "--pod-uid and --pod-labels");
	struct pod_metadata_options o = x->options.metadata;
	o.loop = x->loop;
	o.clock = &x->clock;
	o.log = x->log;
	o.labels = &x->options.pod_labels;
	o.server = server;
	o.node = node;
	o.min_ms = x->options.pods.interval_ms;
	x->metadata = pod_metadata_new(&o, e);
	return x->metadata ? 0 : err_wrap(e, "--pod-uid and --pod-labels");
}

static int make_pods(struct exporter *x, struct err *e)
{
	if (make_metadata(x, e) < 0)
		return -1;
	struct kubelet_pods_options *o = &x->options.pods;
	o->loop = x->loop;
	o->clock = &x->clock;
	o->log = x->log;
	o->on_map = on_map;
	o->arg = x;
	x->pods = kubelet_pods_new(o, e);
	return x->pods ? 0 : -1;
}

// Creates everything that reads the GPUs, except that the sampler is not started.
static int make_sampler(struct exporter *x, struct buf *file_errors, struct err *e)
{
	if (read_counters(x, e) < 0)
		return -1;
	health_policy_init(&x->health);
	x->health.since_ms = x->options.since_ms;
	if (x->options.xid_policy && health_policy_read(&x->health, x->options.xid_policy, file_errors, e) < 0)
		return -1;
	x->xids = xid_store_new(e);
	if (!x->xids)
		return -1;
	struct backend_config *config = &x->options.config;
	config->xids = x->xids;
	config->log = x->log;
	config->interval_ms = x->options.sampler.interval_ms;
	config->proc_root = x->options.processes ? "/proc" : NULL;
	config->ret_errors = file_errors;
	x->backend = x->options.backend->make(config, e);
	if (!x->backend)
		return -1;
	if (x->options.kubernetes && make_pods(x, e) < 0)
		return -1;
	if (x->options.jobs_dir && !(x->jobs = hpc_jobs_new(x->options.jobs_dir, x->log, e)))
		return -1;
	struct render_page_options *page = &x->options.page;
	page->hostname = x->hostname;
	page->counters = x->options.collectors ? &x->counters : NULL;
	page->sidecar_of = x->options.sidecar_of.pod ? &x->options.sidecar_of : NULL;
	page->jobs = x->jobs;
	page->pods = x->pods;
	page->metadata = x->metadata;
	page->labels = &x->options.pod_labels;
	page->xids = x->xids;
	page->health = &x->health;
	render_page_init(&x->renderer, page);
	struct sampler_options *sampler = &x->options.sampler;
	sampler->backend = x->backend;
	sampler->clock = &x->clock;
	sampler->log = x->log;
	sampler->keeps_count = x->options.command != COMMAND_SERVE;
	sampler->render = render_round;
	sampler->render_arg = x;
	sampler->text_bytes_max = RENDER_PAGE_BYTES_MAX;
	x->sampler = sampler_new(sampler, e);
	if (!x->sampler)
		return -1;
	return x->backend->ops->attach ? x->backend->ops->attach(x->backend, x->loop, e) : 0;
}

// Runs check, top or list: on the page that the options name, else on that of the exporter of this node, else on the
// driver.
static int command(struct exporter *x, struct buf *file_errors, int *ret_code, struct err *e)
{
	char url[URL_BYTES];
	struct exporter_cmd c = {
	        .options = &x->options, .loop = x->loop, .clock = &x->clock, .ret_errors = file_errors};
	struct page_view *first = NULL;
	*ret_code = HEALTH_CHECK_UNKNOWN;
	c.from = x->options.from;
	if (!c.from && !x->options.backend_given) {
		struct buf page;
		exporter_cmd_default_url(url, sizeof url, x->options.server.listen);
		c.from = url;
		buf_init(&page, EXPORTER_CMD_PAGE_BYTES_MAX);
		first = exporter_cmd_read(&c, &page, e);
		buf_done(&page);
		if (!first && e->kind == ERR_UNREACHABLE)
			c.from = NULL; // no exporter runs on this node
		err_clear(e);
	}
	if (!c.from) {
		// A single reading of the driver is not logged.
		log_free(x->log);
		x->log = NULL;
		x->options.sampler.interval_ms = COMMAND_INTERVAL_MS;
		if (make_sampler(x, file_errors, e) < 0 || wait_for_replies(x, e) < 0 ||
		    sampler_start(x->sampler, e) < 0)
			return -1;
		c.sampler = x->sampler;
	}
	*ret_code = exporter_cmd_run(&c, first, e);
	return e->kind == ERR_NONE ? 0 : -1;
}

static int run(struct exporter *x, struct buf *file_errors, int *ret_code, struct err *e)
{
	x->loop = event_base_new();
	if (!x->loop)
		return err_set(e, ERR_INTERNAL, "cannot create an event loop");
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
		print_line("gpuscale-exporter " GPUSCALE_VERSION "\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	process_raise_descriptors();
	clock_init_real(&x.clock);
	find_hostname(x.hostname, sizeof x.hostname);
	x.log = log_new(STDERR_FILENO, x.options.log_format, x.options.log_level, &x.clock);

	struct buf file_errors;
	buf_init(&file_errors, FILE_ERRORS_MAX);
	int code = 0;
	int rc = run(&x, &file_errors, &code, &e);
	if (rc < 0) {
		print_notes(&file_errors);
		print_error("gpuscale-exporter: %s\n", e.msg);
	}
	buf_done(&file_errors);
	int exit_code = rc < 0 && x.options.command != COMMAND_CHECK ? err_kind_info(e.kind)->exit_code : code;

	// The thread may hang in a driver call: its memory is then left to the kernel.
	if (x.sampler && !sampler_stop(x.sampler, STOP_MS)) {
		LOG(x.log, LOG_WARNING, "Driver call still hangs, exiting without it", LOG_I("waitedMs", STOP_MS));
		_exit(exit_code);
	}
	sampler_free(x.sampler);
	render_page_done(&x.renderer);
	otlp_push_free(x.otlp);
	if (x.backend)
		x.backend->ops->destroy(x.backend);
	kubelet_pods_free(x.pods);
	pod_metadata_free(x.metadata);
	hpc_jobs_free(x.jobs);
	if (x.loop)
		event_base_free(x.loop);
	xid_store_free(x.xids);
	csv_counters_done(&x.counters);
	log_free(x.log);
	return exit_code;
}
