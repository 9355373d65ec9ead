// SPDX-License-Identifier: Apache-2.0
#include "exporter/otlp/otlp_encode.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "exporter/health_policy.h"
#include "exporter/kubelet/pod_resources.h"
#include "exporter/naming.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"

#define SERVICE     "gpuscale-exporter" // service.name, and the scope
#define CUMULATIVE  2                   // AGGREGATION_TEMPORALITY_CUMULATIVE
#define HW_ID_BYTES (DEVICE_UUID_BYTES + 64)
#define NANOS_BYTES 32
#define STATE_COUNT 3

struct encoder {
	struct json_writer w;
	const struct otlp_encode_options *options;
	const struct sampler_round *round;
	char time[NANOS_BYTES]; // time of the round, as JSON writes a fixed64
};

// Writes one item of an array of attributes. A text of "" or NULL is left out.
static void put_text(struct json_writer *w, const char *key, const char *value)
{
	if (!value || !value[0])
		return;
	json_write_object_begin(w);
	json_write_member_str(w, "key", key);
	json_write_member_object(w, "value");
	json_write_member_str(w, "stringValue", value);
	json_write_object_end(w);
	json_write_object_end(w);
}

static const char *location_of(const struct otel_metric *m)
{
	for (size_t a = 0; m && a < OTEL_ATTRIBUTES_MAX && m->attributes[a].key; a++)
		if (strcmp(m->attributes[a].key, "hw.sensor_location") == 0)
			return m->attributes[a].value;
	return NULL;
}

// Writes the attributes of device `i`: which component the point is about.
static void put_component(struct encoder *x, size_t i, const struct otel_metric *m)
{
	const struct device *d = &x->round->devices[i];
	bool instance = device_is_instance(x->round->devices, i);
	const char *location = location_of(m);
	char id[HW_ID_BYTES], part[HW_ID_BYTES + 64];
	if (instance && !d->mig_uuid[0])
		snprintf(id, sizeof id, "%s/%s", d->uuid, d->mig_id);
	else if (d->uuid[0])
		snprintf(id, sizeof id, "%s", instance ? d->mig_uuid : d->uuid);
	else
		snprintf(id, sizeof id, "gpu%" PRId32, d->index);
	snprintf(part, sizeof part, "%s/%s", id, location ? location : "");
	put_text(&x->w, "hw.id", location ? part : id);
	if (location || instance)
		put_text(&x->w, "hw.parent", location ? id : d->uuid);
	if (!m)
		return; // short: the conventions do not have it
	put_text(&x->w, "hw.name", d->node);
	put_text(&x->w, "hw.model", d->model);
	put_text(&x->w, "hw.driver_version", x->round->driver_version);
}

static void begin_point(struct encoder *x, size_t i, const struct otel_metric *m)
{
	json_write_object_begin(&x->w);
	json_write_member_str(&x->w, "timeUnixNano", x->time);
	json_write_member_array(&x->w, "attributes");
	put_component(x, i, m);
	for (size_t a = 0; m && a < OTEL_ATTRIBUTES_MAX && m->attributes[a].key; a++)
		put_text(&x->w, m->attributes[a].key, m->attributes[a].value);
}

static void end_point_i64(struct encoder *x, int64_t value)
{
	json_write_array_end(&x->w);
	char text[NANOS_BYTES]; // the JSON encoding of Protobuf writes a 64-bit integer in quotes
	snprintf(text, sizeof text, "%" PRId64, value);
	json_write_member_str(&x->w, "asInt", text);
	json_write_object_end(&x->w);
}

static void end_point_f64(struct encoder *x, double value)
{
	json_write_array_end(&x->w);
	json_write_member_f64(&x->w, "asDouble", value);
	json_write_object_end(&x->w);
}

static void begin_metric(struct encoder *x, const char *name, const char *unit, const char *help, bool sum,
                         bool monotonic)
{
	json_write_object_begin(&x->w);
	json_write_member_str(&x->w, "name", name);
	if (unit[0])
		json_write_member_str(&x->w, "unit", unit);
	json_write_member_str(&x->w, "description", help);
	json_write_member_object(&x->w, sum ? "sum" : "gauge");
	if (sum) {
		json_write_member_i64(&x->w, "aggregationTemporality", CUMULATIVE);
		json_write_member_bool(&x->w, "isMonotonic", monotonic);
	}
	json_write_member_array(&x->w, "dataPoints");
}

static void end_metric(struct encoder *x)
{
	json_write_array_end(&x->w);
	json_write_object_end(&x->w);
	json_write_object_end(&x->w);
}

static void put_field(struct encoder *x, enum field f, const struct naming_family *nf)
{
	for (size_t i = 0; i < x->round->n; i++) {
		const struct device_sample *s = &x->round->samples[i];
		if (!sample_has(s, f))
			continue;
		begin_point(x, i, nf->otel);
		if (family_of(f)->kind == FIELD_INT && nf->factor >= 1)
			end_point_i64(x, s->value[f].i * (int64_t)nf->factor);
		else
			end_point_f64(x, sample_get(s, f) * nf->factor);
	}
}

static bool any_has(const struct sampler_round *round, enum field f)
{
	for (size_t i = 0; i < round->n; i++)
		if (sample_has(&round->samples[i], f))
			return true;
	return false;
}

static void put_metrics(struct encoder *x)
{
	bool done[FIELD__COUNT] = {false};
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		char name[NAMING_NAME_BYTES], help[NAMING_HELP_BYTES];
		if (done[f] || !any_has(x->round, f))
			continue;
		struct naming_family nf = naming_family_of(NAMING_OTEL, f, name);
		naming_write_help(help, sizeof help, &nf, f, family_of(f)->help);
		bool counter = nf.type == METRIC_COUNTER;
		begin_metric(x, nf.otel ? nf.otel->name : nf.name, nf.otel ? nf.otel->unit : "", help,
		             nf.otel ? nf.otel->instrument != OTEL_GAUGE : counter, counter);
		for (enum field g = f; g < FIELD__COUNT; g++) {
			struct naming_family other = naming_family_of(NAMING_OTEL, g, name);
			if (g != f && (!nf.otel || !other.otel || strcmp(nf.otel->name, other.otel->name) != 0))
				continue;
			put_field(x, g, &other);
			done[g] = true;
		}
		end_metric(x);
	}
}

// hw.status: 1 for the state of the GPU, 0 for the others. Instances share the state of their GPU.
static void put_status(struct encoder *x)
{
	static const char *const states[STATE_COUNT] = {"ok", "degraded", "failed"};
	begin_metric(x, "hw.status", "1", "1 for the state of the GPU, 0 for the other states.", true, false);
	for (size_t i = 0; i < x->round->n; i++) {
		struct xid_count counts[XID_CODES_MAX + 1];
		struct health_verdict v;
		if (device_is_instance(x->round->devices, i))
			continue;
		size_t n = xid_store_read(x->options->xids, x->round->devices[i].uuid, counts, XID_CODES_MAX + 1);
		health_verdict_of(x->options->health, &x->round->samples[i], counts, n, x->round->wall_ms, &v);
		int state = v.action >= HEALTH_PROBLEM ? 2 : v.action != HEALTH_IGNORE;
		for (int k = 0; k < STATE_COUNT; k++) {
			const struct otel_metric m = {.name = "hw.status",
			                              .attributes = {{"hw.state", states[k]}, {"hw.type", "gpu"}}};
			begin_point(x, i, &m);
			end_point_i64(x, state == k);
		}
	}
	end_metric(x);
}

static void begin_array(struct json_writer *w, const char *name)
{
	json_write_member_array(w, name);
}

static void put_resource(struct encoder *x)
{
	const struct pod_share *pod = x->options->sidecar_of;
	json_write_member_object(&x->w, "resource");
	begin_array(&x->w, "attributes");
	put_text(&x->w, "service.name", SERVICE);
	put_text(&x->w, "service.version", GPUSCALE_VERSION);
	put_text(&x->w, "service.instance.id", x->options->hostname);
	put_text(&x->w, "host.name", x->options->hostname);
	put_text(&x->w, "k8s.namespace.name", pod ? pod->namespace_ : "");
	put_text(&x->w, "k8s.pod.name", pod ? pod->pod : "");
	put_text(&x->w, "k8s.container.name", pod ? pod->container : "");
	json_write_array_end(&x->w);
	json_write_object_end(&x->w);
}

static void put_scope(struct encoder *x)
{
	json_write_member_object(&x->w, "scope");
	json_write_member_str(&x->w, "name", SERVICE);
	json_write_member_str(&x->w, "version", GPUSCALE_VERSION);
	json_write_object_end(&x->w);
	json_write_member_str(&x->w, "schemaUrl", NAMING_SCHEMA_URL);
}

void otlp_encode(const struct otlp_encode_options *o, const struct sampler_round *round, struct buf *out)
{
	struct encoder x = {.options = o, .round = round};
	snprintf(x.time, sizeof x.time, "%" PRId64 "000000", round->wall_ms);
	json_write_init(&x.w, out, 0);
	json_write_object_begin(&x.w);
	begin_array(&x.w, "resourceMetrics");
	json_write_object_begin(&x.w);
	put_resource(&x);
	begin_array(&x.w, "scopeMetrics");
	json_write_object_begin(&x.w);
	put_scope(&x);
	begin_array(&x.w, "metrics");
	put_metrics(&x);
	put_status(&x);
	json_write_array_end(&x.w);
	json_write_object_end(&x.w);
	json_write_array_end(&x.w);
	json_write_member_str(&x.w, "schemaUrl", NAMING_SCHEMA_URL);
	json_write_object_end(&x.w);
	json_write_array_end(&x.w);
	json_write_object_end(&x.w);
}
