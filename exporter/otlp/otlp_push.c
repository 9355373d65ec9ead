// SPDX-License-Identifier: Apache-2.0
#include "exporter/otlp/otlp_push.h"

#include <event2/event_struct.h>
#include <inttypes.h>
#include <pthread.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/process/log.h"
#include "base/process/process.h"
#include "base/timer.h"
#include "exporter/families.h"
#include "exporter/health_policy.h"
#include "exporter/http_call.h"
#include "exporter/kubelet/pod_resources.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"

// ---- one round as a request ----

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
	json_write_format(w, "{key:%s,value:{stringValue:%s}}", key, value);
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
	json_write_format(&x->w, "{timeUnixNano:%s,attributes:[", x->time);
	put_component(x, i, m);
	for (size_t a = 0; m && a < OTEL_ATTRIBUTES_MAX && m->attributes[a].key; a++)
		put_text(&x->w, m->attributes[a].key, m->attributes[a].value);
}

static void end_point_i64(struct encoder *x, int64_t value)
{
	char text[NANOS_BYTES]; // the JSON encoding of Protobuf writes a 64-bit integer in quotes
	snprintf(text, sizeof text, "%" PRId64, value);
	json_write_format(&x->w, "],asInt:%s}", text);
}

static void begin_metric(struct encoder *x, const char *name, const char *unit, const char *help, bool sum,
                         bool monotonic)
{
	json_write_format(&x->w, "{name:%s", name);
	if (unit[0])
		json_write_format(&x->w, "unit:%s", unit);
	json_write_format(&x->w, "description:%s", help);
	if (sum)
		json_write_format(&x->w, "sum:{aggregationTemporality:%d,isMonotonic:%i,dataPoints:[", CUMULATIVE,
		                  monotonic);
	else
		json_write_format(&x->w, "gauge:{dataPoints:[");
}

static void end_metric(struct encoder *x)
{
	json_write_format(&x->w, "]}}");
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
			json_write_format(&x->w, "],asDouble:%g}", sample_get(s, f) * nf->factor);
	}
}

static void put_metrics(struct encoder *x)
{
	bool done[FIELD__COUNT] = {false};
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		char help[NAMING_HELP_BYTES];
		if (done[f] || !samples_have(x->round->samples, x->round->n, f))
			continue;
		struct naming_family nf = naming_family_of(NAMING_OTEL, f);
		naming_write_help(help, sizeof help, &nf, f, family_of(f)->help);
		bool counter = nf.type == METRIC_COUNTER;
		begin_metric(x, nf.otel ? nf.otel->name : nf.name, nf.otel ? nf.otel->unit : "", help,
		             nf.otel ? nf.otel->instrument != OTEL_GAUGE : counter, counter);
		for (enum field g = f; g < FIELD__COUNT; g++) {
			struct naming_family other = naming_family_of(NAMING_OTEL, g);
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
		size_t n = xid_store_read(x->options->xids, x->round->devices[i].uuid, counts);
		health_verdict_of(x->options->health, &x->round->samples[i], counts, n, x->round->wall_ms, &v);
		int state = v.action >= HEALTH_PROBLEM ? 2 : v.action != HEALTH_IGNORE;
		for (int k = 0; k < STATE_COUNT; k++) {
			const struct otel_metric m = {.name = "hw.status",
			                              .attributes = {{.key = "hw.state", .value = states[k]},
			                                             {.key = "hw.type", .value = "gpu"}}};
			begin_point(x, i, &m);
			end_point_i64(x, state == k);
		}
	}
	end_metric(x);
}

static void put_resource(struct encoder *x)
{
	const struct pod_share *pod = x->options->sidecar_of;
	json_write_format(&x->w, "resource:{attributes:[");
	put_text(&x->w, "service.name", SERVICE);
	put_text(&x->w, "service.version", GPUSCALE_VERSION);
	put_text(&x->w, "service.instance.id", x->options->hostname);
	put_text(&x->w, "host.name", x->options->hostname);
	put_text(&x->w, "k8s.namespace.name", pod ? pod->namespace_ : "");
	put_text(&x->w, "k8s.pod.name", pod ? pod->pod : "");
	put_text(&x->w, "k8s.container.name", pod ? pod->container : "");
	json_write_format(&x->w, "]}");
}

void otlp_encode(const struct otlp_encode_options *o, const struct sampler_round *round, struct buf *out)
{
	struct encoder x = {.options = o, .round = round};
	snprintf(x.time, sizeof x.time, "%" PRId64 "000000", round->wall_ms);
	json_write_init(&x.w, out, 0);
	json_write_format(&x.w, "{resourceMetrics:[{");
	put_resource(&x);
	json_write_format(&x.w, "scopeMetrics:[{scope:{name:%s,version:%s},schemaUrl:%s,metrics:[", SERVICE,
	                  GPUSCALE_VERSION, NAMING_SCHEMA_URL);
	put_metrics(&x);
	put_status(&x);
	json_write_format(&x.w, "]}],schemaUrl:%s}]}", NAMING_SCHEMA_URL);
}

// ---- the rules of delivery ----

#define SHOWN_BYTES 200 // longest text of the endpoint in a message

int otlp_url(const char *endpoint, char url[OTLP_URL_BYTES], struct err *e)
{
	static const char path[] = "/v1/metrics";
	size_t len = strlen(endpoint), path_len = sizeof path - 1;
	while (len > 0 && endpoint[len - 1] == '/')
		len--;
	bool has_path = len >= path_len && memcmp(endpoint + len - path_len, path, path_len) == 0;
	int n = snprintf(url, OTLP_URL_BYTES, "%.*s%s", (int)len, endpoint, has_path ? "" : path);
	if (n < 0 || n >= OTLP_URL_BYTES)
		return err_set(e, ERR_LIMIT, "the URL has %zu bytes, the ceiling is %d", len, OTLP_URL_BYTES - 16);
	return 0;
}

// In JSON, an int64 is a string or a number.
static int64_t read_count(const cJSON *item)
{
	int64_t n = 0;
	if (cJSON_IsString(item) &&
	    num_parse_i64(item->valuestring, strlen(item->valuestring), 0, INT64_MAX, &n, NULL) < 0)
		return 0;
	if (cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble < 9e15)
		n = (int64_t)item->valuedouble;
	return n;
}

// Returns the number of items that a reply of status 2xx with this body rejects: rejectedSpans, rejectedDataPoints or
// rejectedLogRecords of its partialSuccess. Writes its errorMessage to `message`, made safe for a log. A body that is
// not a readable partialSuccess rejects nothing, because the status alone reports that the request was accepted.
static int64_t read_rejected(const char *body, size_t len, char message[OTLP_WHY_BYTES])
{
	static const char *const names[] = {"rejectedSpans", "rejectedDataPoints", "rejectedLogRecords"};
	int64_t rejected = 0;
	struct err e;
	message[0] = '\0';
	cJSON *root = len > 0 && len <= OTLP_REPLY_BYTES ? json_read(body, len, &e) : NULL;
	const cJSON *partial = json_get(root, "partialSuccess");
	for (size_t i = 0; i < sizeof names / sizeof names[0] && rejected == 0; i++)
		rejected = read_count(json_get(partial, names[i]));
	const char *text = json_get_str(partial, "errorMessage", "");
	if (rejected > 0)
		text_show(message, SHOWN_BYTES, text, strlen(text));
	cJSON_Delete(root);
	return rejected;
}

// OTLP/HTTP: 429, 502, 503 and 504 are worth another attempt, other errors are not.
static bool is_transient(int status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

enum otlp_outcome otlp_delivery_take(struct otlp_delivery *d, int status, const char *body, size_t len,
                                     const struct err *error, char why[OTLP_WHY_BYTES])
{
	static const struct backoff pauses = {.first_ms = OTLP_PAUSE_MS, .max_ms = OTLP_PAUSE_MS * 8};
	char message[OTLP_WHY_BYTES], shown[SHOWN_BYTES];
	bool is_accepted = !error && status >= 200 && status <= 299;
	why[0] = '\0';
	d->attempts++;
	if (error) {
		text_show(why, OTLP_WHY_BYTES, error->msg, strlen(error->msg));
	} else if (!is_accepted) {
		text_show(shown, sizeof shown, body, len);
		snprintf(why, OTLP_WHY_BYTES, "status %d%s%s", status, shown[0] ? ": " : "", shown);
	}
	if (!is_accepted && d->attempts < OTLP_ATTEMPTS_MAX && (error || is_transient(status))) {
		d->wait_ms = backoff_ms(&pauses, d->attempts, 0);
		return OTLP_AGAIN;
	}
	d->attempts = 0;
	if (!is_accepted)
		return OTLP_GIVEN_UP;
	d->rejected = read_rejected(body, len, message);
	if (d->rejected == 0)
		return OTLP_ACCEPTED;
	snprintf(why, OTLP_WHY_BYTES, "the endpoint rejected %" PRId64 " items%s%s", d->rejected,
	         message[0] ? ": " : "", message);
	return OTLP_PARTIAL;
}

// ---- the pushes ----

#define TICK_MS 250

struct otlp_push {
	struct otlp_push_options options;

	// Used only by the thread of the loop.
	struct event tick;
	struct http_call *call;
	bool has_body;
	struct otlp_delivery delivery; // delivery of `body`
	bool failing;                  // the last attempt failed, and was logged
	struct otlp_push_status status;

	int64_t next_ms;    // wall time; used only by the sampler thread, like encoded_len
	size_t encoded_len; // encoded size of the last round

	pthread_mutex_t lock; // protects what follows
	struct buf fresh;     // encoded and not taken yet; empty: none
	struct buf body;      // the round that is being sent, or waits for an attempt; empty: a newer one replaces it
	bool is_sending;      // `body` is in use, and no round is encoded: it would need memory for two
};

// Leaves the encoded round in `fresh`; one that was not taken yet is replaced. Buffers are released after use: a push
// is rare, and its memory would otherwise count for ever.
void otlp_push_round(struct otlp_push *p, const struct sampler_round *round)
{
	int64_t interval_ms = p->options.interval_ms;
	int64_t late_ms = round->wall_ms - p->next_ms;
	// A clock that was set back by more than an interval starts a new grid, and so does a late round.
	if (late_ms < 0 && late_ms >= -interval_ms)
		return;
	pthread_mutex_lock(&p->lock);
	bool is_sending = p->is_sending;
	if (!is_sending)
		buf_done(&p->body); // a newer round replaces it
	pthread_mutex_unlock(&p->lock);
	if (is_sending) // the first round after the attempt is encoded instead
		return;
	p->next_ms = late_ms >= 0 && late_ms < interval_ms ? p->next_ms + interval_ms : round->wall_ms + interval_ms;
	struct buf encoded;
	buf_init(&encoded, OTLP_BYTES_MAX);
	buf_reserve(&encoded, p->encoded_len + p->encoded_len / 16);
	otlp_encode(&p->options.encode, round, &encoded);
	if (encoded.failed) // above the limit: nothing is better than a part
		buf_reset(&encoded);
	p->encoded_len = encoded.len;
	pthread_mutex_lock(&p->lock);
	struct buf old = p->fresh;
	p->fresh = encoded;
	pthread_mutex_unlock(&p->lock);
	buf_done(&old);
}

// Returns false if a newer round replaces this one.
static bool begin_sending(struct otlp_push *p)
{
	pthread_mutex_lock(&p->lock);
	bool is_sending = p->is_sending = p->body.len > 0;
	pthread_mutex_unlock(&p->lock);
	return is_sending;
}

static bool take_fresh(struct otlp_push *p)
{
	pthread_mutex_lock(&p->lock);
	bool has = p->fresh.len > 0;
	if (has) {
		buf_done(&p->body);
		p->body = p->fresh;
		buf_init(&p->fresh, OTLP_BYTES_MAX);
	}
	pthread_mutex_unlock(&p->lock);
	return has;
}

// Ends an attempt, after which the round in `body` is kept for the next one if `is_again`.
static void end_sending(struct otlp_push *p, bool is_again)
{
	p->has_body = is_again;
	pthread_mutex_lock(&p->lock);
	p->is_sending = false;
	if (!is_again)
		buf_done(&p->body);
	pthread_mutex_unlock(&p->lock);
}

static void log_failure(struct otlp_push *p, const char *why)
{
	if (why[0] && !p->failing)
		LOG(p->options.log, LOG_WARNING, "OTLP export failed", LOG_S("endpoint", p->options.endpoint),
		    LOG_S("err", why));
	if (!why[0] && p->failing)
		LOG(p->options.log, LOG_INFO, "OTLP export recovered", LOG_S("endpoint", p->options.endpoint));
	p->failing = why[0] != '\0';
}

static void on_done(void *arg, int status, const char *body, size_t len, const struct err *error)
{
	struct otlp_push *p = arg;
	char why[OTLP_WHY_BYTES];
	enum otlp_outcome outcome = otlp_delivery_take(&p->delivery, status, body, len, error, why);
	p->status.failed += outcome != OTLP_ACCEPTED;
	p->status.sent += outcome == OTLP_ACCEPTED || outcome == OTLP_PARTIAL;
	p->status.dropped += outcome == OTLP_GIVEN_UP;
	end_sending(p, outcome == OTLP_AGAIN);
	log_failure(p, why);
	process_trim(); // a push is rare; its connection, and the code that sends and encodes, take 0.2 MiB meanwhile
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct otlp_push *p = arg;
	if (http_call_is_busy(p->call))
		return;
	int64_t wait_ms = p->delivery.wait_ms;
	p->delivery.wait_ms -= wait_ms < TICK_MS ? wait_ms : TICK_MS;
	if (take_fresh(p)) { // the older round is not worth another attempt
		p->status.dropped += p->has_body;
		p->has_body = true;
		p->delivery = (struct otlp_delivery){0};
	} else if (!p->has_body || p->delivery.wait_ms > 0) {
		return;
	}
	struct err e = {.kind = ERR_NONE};
	if (!begin_sending(p))
		return; // a newer one is being encoded
	if (http_call_post(p->call, "application/json", buf_str(&p->body), p->body.len, &e) < 0)
		on_done(p, 0, NULL, 0, &e);
}

struct otlp_push *otlp_push_new(const struct otlp_push_options *options, struct err *e)
{
	char url[OTLP_URL_BYTES];
	if (otlp_url(options->endpoint, url, e) < 0) {
		err_wrap(e, "--otlp-endpoint");
		return NULL;
	}
	struct otlp_push *p = err_calloc(sizeof *p, e);
	if (!p)
		return NULL;
	p->options = *options;
	pthread_mutex_init(&p->lock, NULL);
	buf_init(&p->body, OTLP_BYTES_MAX);
	buf_init(&p->fresh, OTLP_BYTES_MAX);
	p->call = http_call_new(options->loop, url, options->ca_file, OTLP_TIMEOUT_MS, on_done, p, e);
	event_assign(&p->tick, options->loop, -1, EV_PERSIST, on_tick, p);
	if (!p->call)
		err_wrap(e, "--otlp-endpoint");
	else if (timer_start(&p->tick, TICK_MS) == 0)
		return p;
	else
		err_set(e, ERR_INTERNAL, "cannot create a timer");
	otlp_push_free(p);
	return NULL;
}

void otlp_push_free(struct otlp_push *p)
{
	if (!p)
		return;
	event_del(&p->tick);
	http_call_free(p->call);
	buf_done(&p->body);
	buf_done(&p->fresh);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct otlp_push_status otlp_push_get_status(const struct otlp_push *p)
{
	return p->status;
}
