// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/self_metrics.h"

#include "base/buf.h"
#include "base/exposition.h"
#include "base/process/process.h"
#include "exporter/apiserver/pod_metadata.h"
#include "exporter/kubelet/kubelet_pods.h"
#include "exporter/nvml/nvml_read.h"
#include "exporter/otlp/otlp_push.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"

static void put_f64(struct buf *out, const char *name, const char *help, enum metric_type type, double value)
{
	exposition_family(out, name, help, type);
	exposition_sample_f64(out, name, NULL, 0, value);
}

static void put_i64(struct buf *out, const char *name, const char *help, enum metric_type type, int64_t value)
{
	exposition_family(out, name, help, type);
	exposition_sample_i64(out, name, NULL, 0, value);
}

void self_metrics_render_state(struct buf *out, const struct sampler_status *status)
{
	const struct exposition_label build[] = {{"backend", status->backend}, {"version", GPUSCALE_VERSION}};
	const struct exposition_label ok[] = {{"state", "ok"}}, lost[] = {{"state", "lost"}},
	                              missing[] = {{"state", "missing"}};
	exposition_family(out, "gpuscale_exporter_build_info", "Version and backend, always 1.", METRIC_GAUGE);
	exposition_sample_i64(out, "gpuscale_exporter_build_info", build, 2, 1);
	put_i64(out, "gpuscale_exporter_up", "1 if GPUs were found and the last round could read them.", METRIC_GAUGE,
	        status->up);
	exposition_family(out, "gpuscale_exporter_devices", "GPUs known, by state.", METRIC_GAUGE);
	exposition_sample_i64(out, "gpuscale_exporter_devices", ok, 1, (int64_t)(status->devices - status->lost));
	exposition_sample_i64(out, "gpuscale_exporter_devices", lost, 1, (int64_t)status->lost);
	exposition_sample_i64(out, "gpuscale_exporter_devices", missing, 1, (int64_t)status->missing);
}

static void render_label_caps(struct buf *out)
{
	static const struct {
		const char *label;
		int64_t most;
	} caps[] = {{"pid", NVML_PROCESSES_MAX}, {"pod", POD_SHARERS_MAX}, {"xid", XID_CODES_MAX}};
	static const char name[] = "gpuscale_exporter_label_cap";
	exposition_family(out, name, "Highest number of values of a label on one GPU.", METRIC_GAUGE);
	for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++)
		exposition_sample_i64(out, name, &(struct exposition_label){"label", caps[i].label}, 1, caps[i].most);
}

static void render_closed(struct buf *out, const struct self_metrics *m)
{
	static const char name[] = "gpuscale_exporter_connections_closed_total";
	exposition_family(
	        out, name,
	        "Connections closed before their client had finished: evicted for another connection (evicted_..), "
	        "timed out (.._late), or refused because every connection had a request in progress.",
	        METRIC_COUNTER);
	for (int cause = 0; cause < HTTP_CLOSE__COUNT; cause++)
		exposition_sample_i64(out, name, &(struct exposition_label){"cause", http_close_cause_names[cause]}, 1,
		                      (int64_t)m->connections_closed[cause]);
}

void self_metrics_render_runtime(struct buf *out, const struct self_metrics *m, const struct sampler_status *status)
{
	static const char collect[] = "gpuscale_exporter_collect_duration_seconds";
	put_i64(out, "gpuscale_exporter_samples_total", "Rounds that read the GPUs successfully.", METRIC_COUNTER,
	        (int64_t)status->samples);
	put_i64(out, "gpuscale_exporter_errors_total", "Failed rounds, and failed attempts to find GPUs.",
	        METRIC_COUNTER, (int64_t)status->errors);
	put_i64(out, "gpuscale_exporter_values_implausible_total",
	        "Values that no GPU can have, such as 150 %, which were left out.", METRIC_COUNTER,
	        (int64_t)status->implausible);
	if (status->age_ms >= 0)
		put_f64(out, "gpuscale_exporter_sample_age_seconds", "Time since the last successful round.",
		        METRIC_GAUGE, (double)status->age_ms / 1000);
	exposition_family(out, collect, "Duration of a round, reading and rendering.", METRIC_HISTOGRAM);
	exposition_sample_histogram(out, collect, NULL, 0, &status->collect_seconds);
	put_i64(out, "gpuscale_exporter_scrapes_total", "Requests for /metrics, including this one.", METRIC_COUNTER,
	        (int64_t)m->scrapes);
	render_closed(out, m);
	put_i64(out, "gpuscale_exporter_requests_unauthorized_total", "Requests rejected with status 401.",
	        METRIC_COUNTER, (int64_t)m->web.unauthorized);
	put_i64(out, "gpuscale_exporter_requests_limited_total", "Requests rejected with status 429.", METRIC_COUNTER,
	        (int64_t)m->web.limited);
	put_i64(out, "gpuscale_exporter_web_config_reloads_total", "Successful reloads of the web configuration.",
	        METRIC_COUNTER, (int64_t)m->web.reloads);
	put_i64(out, "gpuscale_exporter_web_config_errors_total", "Failed reloads of the web configuration.",
	        METRIC_COUNTER, (int64_t)m->web.reload_errors);
	put_i64(out, "gpuscale_exporter_samples_dropped",
	        "1 if the GPU families are omitted because the last sample is too old.", METRIC_GAUGE, status->dropped);
	put_i64(out, "gpuscale_exporter_xid_overflows_total",
	        "XID errors that were counted without their own code or GPU.", METRIC_COUNTER,
	        (int64_t)m->xid_overflows);
	put_i64(out, "gpuscale_exporter_file_rows_skipped", "Rows of the counters file that were skipped.",
	        METRIC_GAUGE, (int64_t)m->counter_rows_skipped);
	render_label_caps(out);
	process_stat_render(out);
}

void self_metrics_render_collectors(struct buf *out, const struct sampler_status *status, struct kubelet_pods *pods,
                                    struct pod_metadata *metadata)
{
	static const char duration[] = "gpuscale_exporter_collector_duration_seconds",
	                  success[] = "gpuscale_exporter_collector_success";
	const struct exposition_label backend = {"collector", status->backend}, kubelet = {"collector", "pods"},
	                              api = {"collector", "pod_metadata"};
	struct kubelet_pods_status st = {.polls = 0};
	struct pod_metadata_status meta = {.polls = 0};
	if (pods)
		kubelet_pods_get_status(pods, &st);
	if (metadata)
		pod_metadata_get_status(metadata, &meta);
	bool has_read = status->read_seconds >= 0;
	if (!has_read && !st.polls)
		return;
	exposition_family(out, duration, "Duration of the last attempt to collect.", METRIC_GAUGE);
	if (has_read)
		exposition_sample_f64(out, duration, &backend, 1, status->read_seconds);
	if (st.polls)
		exposition_sample_f64(out, duration, &kubelet, 1, (double)st.last_ms / 1000);
	if (meta.polls)
		exposition_sample_f64(out, duration, &api, 1, (double)meta.last_ms / 1000);
	exposition_family(out, success, "1 if the last attempt to collect succeeded.", METRIC_GAUGE);
	if (has_read)
		exposition_sample_i64(out, success, &backend, 1, status->read_ok);
	if (st.polls)
		exposition_sample_i64(out, success, &kubelet, 1, st.last_ok);
	if (meta.polls)
		exposition_sample_i64(out, success, &api, 1, meta.last_ok);
}

void self_metrics_render_pods(struct buf *out, struct kubelet_pods *pods)
{
	if (!pods)
		return;
	struct kubelet_pods_status st;
	kubelet_pods_get_status(pods, &st);
	put_i64(out, "gpuscale_exporter_pod_map_up", "1 if the last pod-resources request succeeded.", METRIC_GAUGE,
	        st.last_ok);
	if (st.age_ms >= 0)
		put_f64(out, "gpuscale_exporter_pod_map_age_seconds",
		        "Time since the last successful pod-resources request.", METRIC_GAUGE,
		        (double)st.age_ms / 1000);
	put_i64(out, "gpuscale_exporter_pod_map_stale",
	        "1 if the pod map is too old to be used, so that no GPU carries pod labels.", METRIC_GAUGE, st.stale);
	// Absent before the first reply: 0 would mean that containers use no device.
	if (st.has_map)
		put_i64(out, "gpuscale_exporter_pod_map_devices",
		        "Devices held by containers, as the kubelet counts them.", METRIC_GAUGE, (int64_t)st.entries);
	if (st.polls)
		put_f64(out, "gpuscale_exporter_pod_map_duration_seconds",
		        "Duration of the last pod-resources request.", METRIC_GAUGE, (double)st.last_ms / 1000);
	put_i64(out, "gpuscale_exporter_pod_map_requests_total", "Completed pod-resources requests.", METRIC_COUNTER,
	        (int64_t)st.polls);
	put_i64(out, "gpuscale_exporter_pod_map_errors_total", "Failed pod-resources requests.", METRIC_COUNTER,
	        (int64_t)st.errors);
	put_i64(out, "gpuscale_exporter_pod_series_dropped",
	        "Pods on GPUs that the last round omitted, above the ceiling.", METRIC_GAUGE, (int64_t)st.dropped);
}

void self_metrics_render_pod_metadata(struct buf *out, struct pod_metadata *metadata)
{
	if (!metadata)
		return;
	struct pod_metadata_status st;
	pod_metadata_get_status(metadata, &st);
	// Absent before the first reply, and while no pod uses a device: no request is sent then.
	if (st.polls)
		put_i64(out, "gpuscale_exporter_pod_metadata_up",
		        "1 if the last request for the metadata of pods succeeded.", METRIC_GAUGE, st.last_ok);
	if (st.age_ms >= 0)
		put_f64(out, "gpuscale_exporter_pod_metadata_age_seconds",
		        "Time since the last successful request for the metadata of pods.", METRIC_GAUGE,
		        (double)st.age_ms / 1000);
	put_i64(out, "gpuscale_exporter_pod_metadata_stale",
	        "1 if the metadata of pods is too old to be used, so that no GPU carries it.", METRIC_GAUGE, st.stale);
	put_i64(out, "gpuscale_exporter_pod_metadata_missing", "Pods on GPUs whose metadata is unknown.", METRIC_GAUGE,
	        (int64_t)st.missing);
	put_i64(out, "gpuscale_exporter_pod_metadata_requests_total", "Completed requests for the metadata of pods.",
	        METRIC_COUNTER, (int64_t)st.polls);
	put_i64(out, "gpuscale_exporter_pod_metadata_errors_total", "Failed requests for the metadata of pods.",
	        METRIC_COUNTER, (int64_t)st.errors);
}

void self_metrics_render_otlp(struct buf *out, const struct otlp_push *otlp)
{
	struct otlp_push_status st = otlp_push_get_status(otlp);
	put_i64(out, "gpuscale_exporter_otlp_sent_total", "Rounds that the OTLP endpoint accepted, at least in part.",
	        METRIC_COUNTER, (int64_t)st.sent);
	put_i64(out, "gpuscale_exporter_otlp_errors_total",
	        "Attempts to send a round that failed or were accepted in part.", METRIC_COUNTER, (int64_t)st.failed);
	put_i64(out, "gpuscale_exporter_otlp_dropped_total", "Rounds that the OTLP endpoint did not receive.",
	        METRIC_COUNTER, (int64_t)st.dropped);
}
