// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/exporter_server.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/http/http_site.h"
#include "base/process/process.h"
#include "exporter/apiserver/pod_metadata.h"
#include "exporter/kubelet/kubelet_pods.h"
#include "exporter/nvml/nvml.h"
#include "exporter/otlp/otlp_push.h"
#include "exporter/page/page.h"
#include "exporter/page/render_page.h"
#include "exporter/xid.h"

// ---- the metrics of the exporter about itself ----

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

// What the metrics are about.
struct view {
	const struct self_metrics *m;
	const struct sampler_status *status;
	bool has_pods, has_metadata, has_otlp;
	struct kubelet_pods_status pods;
	struct pod_metadata_status metadata;
	struct otlp_push_status otlp;
};

static void put_whole(struct buf *out, const char *name, const char *key, const char *value, int64_t v)
{
	exposition_sample_i64(out, name, &(struct exposition_label){key, value}, 1, v);
}

void self_metrics_render_state(struct buf *out, const struct sampler_status *status)
{
	static const char devices[] = "gpuscale_exporter_devices";
	const struct exposition_label build[] = {{"backend", status->backend}, {"version", GPUSCALE_VERSION}};
	exposition_family(out, "gpuscale_exporter_build_info", "Version and backend, always 1.", METRIC_GAUGE);
	exposition_sample_i64(out, "gpuscale_exporter_build_info", build, 2, 1);
	exposition_family(out, "gpuscale_exporter_up", "1 if GPUs were found and the last round could read them.",
	                  METRIC_GAUGE);
	exposition_sample_i64(out, "gpuscale_exporter_up", NULL, 0, status->up);
	exposition_family(out, devices, "GPUs known, by state.", METRIC_GAUGE);
	put_whole(out, devices, "state", "ok", (int64_t)(status->devices - status->lost));
	put_whole(out, devices, "state", "lost", (int64_t)status->lost);
	put_whole(out, devices, "state", "missing", (int64_t)status->missing);
}

static void put_durations(struct buf *out, const struct view *v)
{
	static const char name[] = "gpuscale_exporter_collect_duration_seconds";
	exposition_family(out, name, "Duration of a round, reading and rendering.", METRIC_HISTOGRAM);
	exposition_sample_histogram(out, name, NULL, 0, &v->status->collect_seconds);
}

static void put_label_caps(struct buf *out, const struct view *v)
{
	static const char name[] = "gpuscale_exporter_label_cap";
	exposition_family(out, name, "Highest number of values of a label on one GPU.", METRIC_GAUGE);
	put_whole(out, name, "label", "pid", NVML_PROCESSES_MAX);
	put_whole(out, name, "label", "pod", POD_SHARERS_MAX);
	put_whole(out, name, "label", "xid", XID_CODES_MAX);
}

static void put_closed(struct buf *out, const struct view *v)
{
	static const char name[] = "gpuscale_exporter_connections_closed_total";
	exposition_family(
	        out, name,
	        "Connections closed before their client had finished: evicted for another connection (evicted_..), "
	        "timed out (.._late), or refused because every connection had a request in progress.",
	        METRIC_COUNTER);
	for (int cause = 0; cause < HTTP_CLOSE__COUNT; cause++)
		put_whole(out, name, "cause", http_close_cause_names[cause], (int64_t)v->m->connections_closed[cause]);
}

static void put_process(struct buf *out, const struct view *v)
{
	process_stat_render(out);
}

// The duration and the success of the last attempt to collect, per collector: the backend, the kubelet and the API
// server. A collector without a completed attempt is omitted.
static void put_collectors(struct buf *out, const struct view *v)
{
	static const char duration[] = "gpuscale_exporter_collector_duration_seconds",
	                  success[] = "gpuscale_exporter_collector_success";
	const struct {
		struct exposition_label label;
		bool has_run, ok;
		double seconds;
	} rows[] = {{{"collector", v->status->backend},
	             v->status->read_seconds >= 0,
	             v->status->read_ok,
	             v->status->read_seconds},
	            {{"collector", "pods"}, v->pods.polls > 0, v->pods.last_ok, (double)v->pods.last_ms / 1000},
	            {{"collector", "pod_metadata"},
	             v->metadata.polls > 0,
	             v->metadata.last_ok,
	             (double)v->metadata.last_ms / 1000}};
	if (!rows[0].has_run && !rows[1].has_run)
		return;
	exposition_family(out, duration, "Duration of the last attempt to collect.", METRIC_GAUGE);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].has_run)
			exposition_sample_f64(out, duration, &rows[i].label, 1, rows[i].seconds);
	exposition_family(out, success, "1 if the last attempt to collect succeeded.", METRIC_GAUGE);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].has_run)
			exposition_sample_i64(out, success, &rows[i].label, 1, rows[i].ok);
}

// The families in their order.
static void put_families(struct buf *out, const struct view *v)
{
	const struct sampler_status *st = v->status;
	// clang-format off
	const struct {
		const char *name;
		enum metric_type type;
		bool is_present;
		enum { WHOLE, SECONDS } unit; // SECONDS: `value` is in ms
		int64_t value;
		const char *help;
		void (*put)(struct buf *out, const struct view *v); // families with several samples
	} rows[] = {
		{"gpuscale_exporter_samples_total", METRIC_COUNTER, true, WHOLE, (int64_t)st->samples, "Rounds that read the GPUs successfully.", NULL},
		{"gpuscale_exporter_errors_total", METRIC_COUNTER, true, WHOLE, (int64_t)st->errors, "Failed rounds, and failed attempts to find GPUs.", NULL},
		{"gpuscale_exporter_values_implausible_total", METRIC_COUNTER, true, WHOLE, (int64_t)st->implausible, "Values that no GPU can have, such as 150 %, which were left out.", NULL},
		{"gpuscale_exporter_sample_age_seconds", METRIC_GAUGE, st->age_ms >= 0, SECONDS, st->age_ms, "Time since the last successful round.", NULL},
		{.put = put_durations},
		{"gpuscale_exporter_scrapes_total", METRIC_COUNTER, true, WHOLE, (int64_t)v->m->scrapes, "Requests for /metrics, including this one.", NULL},
		{.put = put_closed},
		{"gpuscale_exporter_requests_unauthorized_total", METRIC_COUNTER, true, WHOLE, (int64_t)v->m->web.unauthorized, "Requests rejected with status 401.", NULL},
		{"gpuscale_exporter_requests_limited_total", METRIC_COUNTER, true, WHOLE, (int64_t)v->m->web.limited, "Requests rejected with status 429.", NULL},
		{"gpuscale_exporter_web_config_reloads_total", METRIC_COUNTER, true, WHOLE, (int64_t)v->m->web.reloads, "Successful reloads of the web configuration.", NULL},
		{"gpuscale_exporter_web_config_errors_total", METRIC_COUNTER, true, WHOLE, (int64_t)v->m->web.reload_errors, "Failed reloads of the web configuration.", NULL},
		{"gpuscale_exporter_samples_dropped", METRIC_GAUGE, true, WHOLE, st->dropped, "1 if the GPU families are omitted because the last sample is too old.", NULL},
		{"gpuscale_exporter_xid_overflows_total", METRIC_COUNTER, true, WHOLE, (int64_t)v->m->xid_overflows, "XID errors that were counted without their own code or GPU.", NULL},
		{"gpuscale_exporter_file_rows_skipped", METRIC_GAUGE, true, WHOLE, (int64_t)v->m->counter_rows_skipped, "Rows of the counters file that were skipped.", NULL},
		{.put = put_label_caps},
		{.put = put_process},
		{.put = put_collectors},
		{"gpuscale_exporter_pod_map_up", METRIC_GAUGE, v->has_pods, WHOLE, v->pods.last_ok, "1 if the last pod-resources request succeeded.", NULL},
		{"gpuscale_exporter_pod_map_age_seconds", METRIC_GAUGE, v->has_pods && v->pods.age_ms >= 0, SECONDS, v->pods.age_ms, "Time since the last successful pod-resources request.", NULL},
		{"gpuscale_exporter_pod_map_stale", METRIC_GAUGE, v->has_pods, WHOLE, v->pods.stale, "1 if the pod map is too old to be used, so that no GPU carries pod labels.", NULL},
		// Absent before the first reply: 0 would mean that containers use no device.
		{"gpuscale_exporter_pod_map_devices", METRIC_GAUGE, v->has_pods && v->pods.has_map, WHOLE, (int64_t)v->pods.entries, "Devices held by containers, as the kubelet counts them.", NULL},
		{"gpuscale_exporter_pod_map_duration_seconds", METRIC_GAUGE, v->has_pods && v->pods.polls > 0, SECONDS, v->pods.last_ms, "Duration of the last pod-resources request.", NULL},
		{"gpuscale_exporter_pod_map_requests_total", METRIC_COUNTER, v->has_pods, WHOLE, (int64_t)v->pods.polls, "Completed pod-resources requests.", NULL},
		{"gpuscale_exporter_pod_map_errors_total", METRIC_COUNTER, v->has_pods, WHOLE, (int64_t)v->pods.errors, "Failed pod-resources requests.", NULL},
		{"gpuscale_exporter_pod_series_dropped", METRIC_GAUGE, v->has_pods, WHOLE, (int64_t)v->pods.dropped, "Pods on GPUs that the last round omitted, above the ceiling.", NULL},
		// Absent before the first reply, and while no pod uses a device: no request is sent then.
		{"gpuscale_exporter_pod_metadata_up", METRIC_GAUGE, v->has_metadata && v->metadata.polls > 0, WHOLE, v->metadata.last_ok, "1 if the last request for the metadata of pods succeeded.", NULL},
		{"gpuscale_exporter_pod_metadata_age_seconds", METRIC_GAUGE, v->has_metadata && v->metadata.age_ms >= 0, SECONDS, v->metadata.age_ms, "Time since the last successful request for the metadata of pods.", NULL},
		{"gpuscale_exporter_pod_metadata_stale", METRIC_GAUGE, v->has_metadata, WHOLE, v->metadata.stale, "1 if the metadata of pods is too old to be used, so that no GPU carries it.", NULL},
		{"gpuscale_exporter_pod_metadata_missing", METRIC_GAUGE, v->has_metadata, WHOLE, (int64_t)v->metadata.missing, "Pods on GPUs whose metadata is unknown.", NULL},
		{"gpuscale_exporter_pod_metadata_requests_total", METRIC_COUNTER, v->has_metadata, WHOLE, (int64_t)v->metadata.polls, "Completed requests for the metadata of pods.", NULL},
		{"gpuscale_exporter_pod_metadata_errors_total", METRIC_COUNTER, v->has_metadata, WHOLE, (int64_t)v->metadata.errors, "Failed requests for the metadata of pods.", NULL},
		{"gpuscale_exporter_otlp_sent_total", METRIC_COUNTER, v->has_otlp, WHOLE, (int64_t)v->otlp.sent, "Rounds that the OTLP endpoint accepted, at least in part.", NULL},
		{"gpuscale_exporter_otlp_errors_total", METRIC_COUNTER, v->has_otlp, WHOLE, (int64_t)v->otlp.failed, "Attempts to send a round that failed or were accepted in part.", NULL},
		{"gpuscale_exporter_otlp_dropped_total", METRIC_COUNTER, v->has_otlp, WHOLE, (int64_t)v->otlp.dropped, "Rounds that the OTLP endpoint did not receive.", NULL},
	};
	// clang-format on
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].put)
			rows[i].put(out, v);
		if (!rows[i].is_present)
			continue;
		exposition_family(out, rows[i].name, rows[i].help, rows[i].type);
		if (rows[i].unit == SECONDS)
			exposition_sample_f64(out, rows[i].name, NULL, 0, (double)rows[i].value / 1000);
		else
			exposition_sample_i64(out, rows[i].name, NULL, 0, rows[i].value);
	}
}

void self_metrics_render(struct buf *out, const struct self_metrics *m, const struct sampler_status *status,
                         struct kubelet_pods *pods, struct pod_metadata *metadata, const struct otlp_push *otlp)
{
	struct view v = {.m = m, .status = status, .has_pods = pods, .has_metadata = metadata, .has_otlp = otlp};
	if (pods)
		kubelet_pods_get_status(pods, &v.pods);
	if (metadata)
		pod_metadata_get_status(metadata, &v.metadata);
	if (otlp)
		v.otlp = otlp_push_get_status(otlp);
	self_metrics_render_state(out, status);
	put_families(out, &v);
}

// ---- the server ----

#define SELF_BYTES_MAX (64 * 1024)
#define RELEASE_MS     60000 // duration without ?for=
#define BODY_BYTES_MAX 4096  // limit on a request body; no endpoint reads bodies

struct exporter_server {
	struct exporter_server_options options;
	struct http_site *site;
	struct http_server *http;
	struct web *web;
	struct self_metrics self;
	struct buf self_text; // kept, as `page` is, so that a scrape does not allocate once they have grown
	struct page page;
};

// True if the request is a permitted GET. Otherwise the function has replied and `x` is gone.
static bool admit_get(struct exporter_server *s, struct http_exchange *x)
{
	const char *method = http_exchange_method(x);
	if (!web_admit(s->web, x))
		return false;
	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		return true;
	http_exchange_set_header(x, "Allow", "GET, HEAD");
	http_exchange_reply_text(x, 405, "only GET and HEAD are allowed\n");
	return false;
}

static void render_self(struct exporter_server *s, const struct sampler_status *status)
{
	struct http_server_stats http;
	http_server_get_stats(s->http, &http);
	web_get_stats(s->web, &s->self.web);
	s->self.scrapes++;
	s->self.xid_overflows = xid_store_overflows(s->options.xids);
	memcpy(s->self.connections_closed, http.closed, sizeof http.closed);
	buf_reset(&s->self_text);
	self_metrics_render(&s->self_text, &s->self, status, s->options.pods, s->options.metadata, s->options.otlp);
}

struct sent_page {
	struct exporter_server *s;
	struct buf text;
};

static void on_page_sent(const void *body, size_t len, void *arg)
{
	struct sent_page *sent = arg;
	page_take_back(&sent->s->page, &sent->text);
	free(sent);
}

// Sends the page without a copy of it. A page that is rendered while a slow client still receives this one gets memory
// of its own.
static void send_page(struct exporter_server *s, struct http_exchange *x, enum page_format format)
{
	struct sent_page *sent = malloc(sizeof *sent);
	if (!sent) {
		http_exchange_reply_text(x, 500, "out of memory\n");
		return;
	}
	sent->s = s;
	page_lend(&s->page, &sent->text);
	http_exchange_reply_lent(x, 200, page_content_type(format), buf_str(&sent->text), sent->text.len, on_page_sent,
	                         sent);
}

static void on_metrics(void *arg, struct http_exchange *x)
{
	struct exporter_server *s = arg;
	if (!admit_get(s, x))
		return;
	struct sampler_status status;
	struct err e;
	// A few families, read every second, are not worth another format or compression.
	const char *families = http_exchange_query(x, "family");
	enum page_format format = families ? PAGE_TEXT : page_format_wanted(http_exchange_header(x, "Accept"));
	bool gzip = !families && page_gzip_wanted(http_exchange_header(x, "Accept-Encoding"));
	sampler_read(s->options.sampler, page_text(&s->page, format), &status);
	render_self(s, &status);
	if (page_make(&s->page, format, gzip, &s->self_text, &e) < 0 ||
	    (families && page_keep_families(&s->page, families, &e) < 0)) {
		http_exchange_reply_text(x, 500, e.msg);
		return;
	}
	if (gzip)
		http_exchange_set_header(x, "Content-Encoding", "gzip");
	http_exchange_set_header(x, "Vary", "Accept, Accept-Encoding");
	send_page(s, x, format);
}

static void on_healthy(void *arg, struct http_exchange *x)
{
	if (admit_get(arg, x))
		http_exchange_reply_text(x, 200, "ok\n");
}

static void on_ready(void *arg, struct http_exchange *x)
{
	struct exporter_server *s = arg;
	if (!admit_get(s, x))
		return;
	struct sampler_status status;
	char text[384];
	sampler_read(s->options.sampler, NULL, &status);
	if (status.up)
		snprintf(text, sizeof text, "not ready: the last sample is %" PRId64 ".%03" PRId64 " s old\n",
		         status.age_ms / 1000, status.age_ms % 1000);
	else
		snprintf(text, sizeof text, "not ready: %s\n", status.message);
	http_exchange_reply_text(x, status.ready ? 200 : 503, status.ready ? "ok\n" : text);
}

// Closes every handle on the devices for a while. Only clients on the node may do this, because it stops the metrics.
static void on_release(void *arg, struct http_exchange *x)
{
	struct exporter_server *s = arg;
	struct err e;
	char text[128], shown[NUM_TEXT_BYTES];
	const char *for_ = http_exchange_query(x, "for"), *peer = http_exchange_peer(x);
	int64_t for_ms = RELEASE_MS;
	if (!web_admit(s->web, x))
		return;
	if (strcmp(http_exchange_method(x), "POST") != 0) {
		http_exchange_set_header(x, "Allow", "POST");
		http_exchange_reply_text(x, 405, "only POST is allowed\n");
	} else if (strncmp(peer, "127.", 4) != 0 && strcmp(peer, "::1") != 0) {
		http_exchange_reply_text(x, 403, "only clients on this node are allowed\n");
	} else if (for_ && num_parse_duration_ms(for_, strlen(for_), &for_ms, &e) < 0) {
		http_exchange_reply_text(x, 400, e.msg);
	} else if (for_ms > SAMPLER_RELEASE_MAX_MS) {
		http_exchange_reply_text(x, 400, "for: at most 10m\n");
	} else {
		sampler_release(s->options.sampler, for_ms);
		num_format_duration_ms(shown, for_ms);
		snprintf(text, sizeof text, "closing the devices, reopening them in %s\n", shown);
		http_exchange_reply_text(x, 202, text);
	}
}

static void on_root(void *arg, struct http_exchange *x)
{
	static const char page[] = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>gpuscale-exporter</title></head>\n"
	                           "<body><h1>gpuscale-exporter " GPUSCALE_VERSION "</h1>\n"
	                           "<ul><li><a href=\"/metrics\">/metrics</a></li>\n"
	                           "<li><a href=\"/-/healthy\">/-/healthy</a></li>\n"
	                           "<li><a href=\"/-/ready\">/-/ready</a></li></ul></body></html>\n";
	if (!admit_get(arg, x))
		return;
	// The route "/" matches every path without a route of its own.
	if (strcmp(http_exchange_path(x), "/") == 0)
		http_exchange_reply(x, 200, "text/html; charset=utf-8", page, sizeof page - 1);
	else
		http_exchange_reply_text(x, 404, "not found\n");
}

struct exporter_server *exporter_server_new(const struct exporter_server_options *options, struct err *e)
{
	struct exporter_server *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->options = *options;
	s->self.counter_rows_skipped = options->counter_rows_skipped;
	buf_init(&s->self_text, SELF_BYTES_MAX);
	page_init(&s->page, RENDER_PAGE_BYTES_MAX + SELF_BYTES_MAX);
	s->site = http_site_new(options->allowed_hosts, e);
	if (!s->site) {
		err_wrap(e, "--allowed-hosts");
		exporter_server_free(s);
		return NULL;
	}
	http_site_add_own_name(s->site);
	s->web = web_new(options->web_config, options->clock, options->log, options->ret_errors, e);
	struct http_server_options http = s->web ? *web_tls(s->web) : (struct http_server_options){0};
	http.loop = options->loop;
	http.listen = options->listen;
	http.max_body_bytes = BODY_BYTES_MAX;
	http.site = s->site;
	if (!s->web || !(s->http = http_server_new(&http, e)) || web_watch(s->web, options->loop, s->http, e) < 0 ||
	    http_server_route(s->http, "/metrics", on_metrics, s, e) < 0 ||
	    http_server_route(s->http, "/-/healthy", on_healthy, s, e) < 0 ||
	    http_server_route(s->http, "/-/ready", on_ready, s, e) < 0 ||
	    http_server_route(s->http, "/-/release", on_release, s, e) < 0 ||
	    http_server_route(s->http, "/", on_root, s, e) < 0) {
		exporter_server_free(s);
		return NULL;
	}
	return s;
}

void exporter_server_free(struct exporter_server *s)
{
	if (!s)
		return;
	web_free(s->web);
	http_server_free(s->http);
	free(s->site);
	buf_done(&s->self_text);
	page_done(&s->page);
	free(s);
}

uint16_t exporter_server_port(const struct exporter_server *s)
{
	return http_server_port(s->http);
}
