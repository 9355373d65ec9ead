// SPDX-License-Identifier: Apache-2.0
// The status of a fleet: sums and counts, the worst targets, and the record for the next process. It does not grow with
// the changes, only the record does with the targets.
#include <stdarg.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "controller/fleet/fleet.h"
#include "controller/fleet/fleet_targets.h"
#include "controller/status/status_conditions.h"
#include "k8s/client/k8s_client.h"
#include "k8s/events/event_recorder.h"
#include "policies/explain/explain.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/policy_schema.h"

#define BODY_BYTES_MAX (FLEET_RECORD_BYTES_MAX + 64 * 1024)
#define PATH_BYTES     700

// From the least to the worst.
enum trouble { TROUBLE_NONE, TROUBLE_IDLE, TROUBLE_AT_MAX, TROUBLE_HOLD, TROUBLE_CONFLICT, TROUBLE_FAILED };

struct worst {
	enum trouble trouble;
	const struct fleet_target *target;
};

struct counts {
	struct fleet_numbers sum;
	size_t overlaps;
	struct worst worst[FLEET_WORST_SHOWN]; // the worst first
};

static bool is_dry_run(const struct fleet *f)
{
	return f->policy->dry_run || f->env->tick->dry_run;
}

// Returns whether the target is idle, or would be without the dry run.
static bool is_idle(const struct fleet *f, const struct fleet_target *t)
{
	return f->policy->idle.set && t->role == FLEET_SCALES && t->decision->desired == f->policy->idle.replicas;
}

static enum trouble trouble_of(const struct fleet *f, const struct fleet_target *t)
{
	const struct decision *d = t->decision;
	if (t->role == FLEET_BAD_BOUNDS)
		return TROUBLE_FAILED;
	if (t->role != FLEET_SCALES)
		return t->role == FLEET_UNDECIDED || t->role == FLEET_CONFLICTS_UNKNOWN ? TROUBLE_HOLD
		                                                                        : TROUBLE_CONFLICT;
	if (t->detail)
		return TROUBLE_FAILED; // of its last write
	if (d->action == ACTION_HOLD)
		return TROUBLE_HOLD;
	if (d->desired >= d->max_replicas && d->min_replicas < d->max_replicas)
		return TROUBLE_AT_MAX;
	// A dry run reports the targets to scale down.
	return is_dry_run(f) && is_idle(f, t) && d->desired < t->spec_replicas ? TROUBLE_IDLE : TROUBLE_NONE;
}

static void note_worst(struct counts *c, const struct worst *w)
{
	size_t i = FLEET_WORST_SHOWN;
	for (; i > 0; i--) {
		const struct worst *other = &c->worst[i - 1];
		if (other->trouble > w->trouble ||
		    (other->trouble == w->trouble && strcmp(other->target->key, w->target->key) < 0))
			break;
		if (i < FLEET_WORST_SHOWN)
			c->worst[i] = *other;
	}
	if (i < FLEET_WORST_SHOWN)
		c->worst[i] = *w;
}

static struct counts count(const struct fleet *f)
{
	struct counts c = {.sum = {.policy = f->policy}};
	for (struct fleet_target *t = NULL; (t = fleet_targets_next(&f->targets, t));) {
		const struct worst w = {trouble_of(f, t), t};
		bool is_ours = t->role == FLEET_SCALES;
		c.sum.targets++;
		c.sum.replicas += t->spec_replicas;
		c.sum.desired += is_ours ? t->decision->desired : t->spec_replicas;
		c.sum.ready_replicas += t->ready_replicas > 0 ? t->ready_replicas : 0;
		c.sum.ready += t->ready_replicas >= t->spec_replicas;
		c.sum.idle += is_idle(f, t);
		c.overlaps += t->overlaps;
		c.sum.at_max += w.trouble == TROUBLE_AT_MAX;
		c.sum.holding += w.trouble == TROUBLE_HOLD;
		c.sum.conflicts += w.trouble == TROUBLE_CONFLICT;
		c.sum.failed += w.trouble == TROUBLE_FAILED;
		if (w.trouble != TROUBLE_NONE)
			note_worst(&c, &w);
	}
	return c;
}

// ---- Events ----

static void record_event(const struct fleet *f, const struct fleet_target *t, const char *type, const char *reason,
                         const char *message)
{
	char space[FLEET_SPACE_BYTES], text[RENDER_SENTENCE_BYTES + FLEET_ERROR_BYTES];
	if (!f->env->events)
		return;
	snprintf(space, sizeof space, "%.*s", (int)(t->name - t->key - 1), t->key);
	snprintf(text, sizeof text, "GPUAutoscaler %s/%s: %s", f->policy->namespace_name, f->policy->name, message);
	const struct event_object object = {f->body->fleet.api_version, f->body->fleet.kind, space, t->name, t->uid};
	event_recorder_record(f->env->events, &object, type, reason, text);
}

void fleet_report_scaled(const struct fleet *f, const struct fleet_target *t)
{
	const struct decided decided = fleet_decided(f, t);
	char why[RENDER_SENTENCE_BYTES], message[RENDER_SENTENCE_BYTES + 64];
	explain_message(&decided, why);
	snprintf(message, sizeof message, "scaled from %d to %d replicas: %s", t->decision->current, t->write_to, why);
	record_event(f, t, "Normal", "SuccessfulRescale", message);
}

void fleet_report_failed(const struct fleet *f, struct fleet_target *t)
{
	if (!t->has_failed)
		record_event(f, t, "Warning", "FailedRescale", t->detail);
	t->has_failed = true;
}

void fleet_report_role(const struct fleet *f, struct fleet_target *t)
{
	static const struct {
		const char *reason, *text, *resolved;
	} rows[FLEET_ROLE__COUNT] = {
	        [FLEET_HAS_OLDER_FLEET] = {"Conflict", "left to the older fleet ", "ConflictResolved"},
	        [FLEET_HAS_AUTOSCALER] = {"Conflict", "left to ", "ConflictResolved"},
	        [FLEET_BAD_BOUNDS] = {"InvalidBounds", "not scaled: ", "BoundsValid"},
	};
	char message[FLEET_ERROR_BYTES];
	if (t->role == t->reported)
		return;
	if (rows[t->role].reason) {
		snprintf(message, sizeof message, "%s%s", rows[t->role].text, t->detail);
		record_event(f, t, "Warning", rows[t->role].reason, message);
		t->reported = t->role;
	} else if (t->role == FLEET_SCALES) { // also after ticks in which conflicts were not known yet
		record_event(f, t, "Normal", rows[t->reported].resolved, "the fleet scales the target again");
		t->reported = FLEET_SCALES;
	}
}

// ---- the document ----

static void put_worst(const struct fleet *f, struct json_writer *w, const struct worst *one)
{
	const struct fleet_target *t = one->target;
	char text[RENDER_SENTENCE_BYTES] = "";
	json_write_format(w, "{target:%s,state:%s", t->key,
	                  t->role != FLEET_SCALES ? fleet_role_names[t->role]
	                  : t->detail             ? "WriteFailed"
	                                          : reason_info(t->decision->reason)->name);
	if (t->detail) {
		snprintf(text, sizeof text, "%s", t->detail);
	} else if (t->role == FLEET_SCALES) {
		const struct decided d = fleet_decided(f, t);
		explain_message(&d, text);
	}
	if (text[0])
		json_write_member_text(w, "message", text);
	json_write_object_end(w);
}

static void put_record(struct fleet *f, struct json_writer *w)
{
	struct buf text;
	buf_init(&text, FLEET_RECORD_BYTES_MAX);
	for (struct fleet_target *t = NULL; (t = fleet_targets_next(&f->targets, t));)
		fleet_record_put(&text, t, f->policy, t->packed && t->last_scale_ms >= 0 ? fleet_unpack(f, t) : NULL,
		                 f->now_ms);
	json_write_member_str(w, "record", buf_str(&text));
	buf_done(&text);
}

static void put_numbers(const struct fleet *f, struct json_writer *w, const struct counts *c)
{
	json_write_format(w,
	                  "targets:%zu,ready:%zu,idle:%zu,atMax:%zu,holding:%zu,conflicts:%zu,failed:%zu,"
	                  "unmatchedSeries:%zu,worst:[",
	                  c->sum.targets, c->sum.ready, c->sum.idle, c->sum.at_max, c->sum.holding, c->sum.conflicts,
	                  c->sum.failed, f->n_unmatched);
	for (size_t i = 0; i < FLEET_WORST_SHOWN && c->worst[i].target; i++)
		put_worst(f, w, &c->worst[i]);
	json_write_array_end(w);
}

// The replicas of all targets together.
static void put_sums(struct json_writer *w, const struct counts *c)
{
	char text[RENDER_SENTENCE_BYTES];
	snprintf(text, sizeof text,
	         "%zu targets: %zu ready, %zu idle, %zu at max, %zu hold, %zu left to others, %zu failed",
	         c->sum.targets, c->sum.ready, c->sum.idle, c->sum.at_max, c->sum.holding, c->sum.conflicts,
	         c->sum.failed);
	json_write_format(w, "currentReplicas:%ld,desiredReplicas:%ld,readyReplicas:%ld,action:%s,reason:%s,message:%s",
	                  c->sum.replicas, c->sum.desired, c->sum.ready_replicas,
	                  c->sum.desired > c->sum.replicas   ? "ScaleUp"
	                  : c->sum.desired < c->sum.replicas ? "ScaleDown"
	                  : c->sum.holding                   ? "Hold"
	                                                     : "None",
	                  "Fleet", text);
}

struct condition_row {
	bool is_true;
	const char *reason;
	char message[FLEET_ERROR_BYTES];
};

static const char *const condition_types[FLEET_CONDITION__COUNT] = {[FLEET_READY] = "Ready",
                                                                    [FLEET_SCALING_ACTIVE] = "ScalingActive",
                                                                    [FLEET_CONFLICT] = "Conflict",
                                                                    [FLEET_DRY_RUN] = "DryRun"};

static struct condition_row condition(bool is_true, const char *reason, const char *message, ...)
        __attribute__((format(printf, 3, 4)));
static struct condition_row condition(bool is_true, const char *reason, const char *message, ...)
{
	struct condition_row row = {.is_true = is_true, .reason = reason};
	va_list ap;
	va_start(ap, message);
	vsnprintf(row.message, sizeof row.message, message, ap);
	va_end(ap);
	return row;
}

static struct condition_row ready(const struct fleet *f, const struct counts *c)
{
	if (f->error[0])
		return condition(false, "FailedGetScale", "%s", f->error);
	if (f->targets.n_beyond > 0)
		return condition(false, "TooManyTargets",
		                 "more than %d objects are selected: the others are not scaled", FLEET_TARGETS_MAX);
	if (c->sum.failed > 0)
		return condition(false, "FailedUpdateScale", "%zu targets cannot be scaled", c->sum.failed);
	return (struct condition_row){true, "Ready", ""};
}

static struct condition_row scaling_active(const struct fleet *f, const struct counts *c)
{
	bool is_empty = c->sum.targets == 0 && !f->error[0], holds = c->sum.holding == c->sum.targets;
	const char *fault = f->error[0] ? f->error : is_empty ? "" : f->query_error;
	if (fault[0])
		return condition(false, "FailedGetMetrics", "%s", fault);
	if (is_empty)
		return condition(false, "NoTargets", "the selector matches no object");
	const char *reason = holds ? "AllTargetsHold" : f->n_unmatched ? "UnmatchedSeries" : "ValidMetricFound";
	if (f->n_unmatched)
		return condition(!holds, reason, "%zu series have no target, such as \"%s\"", f->n_unmatched,
		                 f->unmatched);
	return (struct condition_row){!holds, reason, ""};
}

static struct condition_row condition_of(const struct fleet *f, const struct counts *c, int which)
{
	switch (which) {
	case FLEET_READY:
		return ready(f, c);
	case FLEET_SCALING_ACTIVE:
		return scaling_active(f, c);
	case FLEET_CONFLICT:
		if (c->sum.conflicts + c->overlaps == 0)
			return (struct condition_row){false, "NoConflict", ""};
		return condition(true, "TargetsShared", "%zu targets are left to others; another fleet selects %zu",
		                 c->sum.conflicts, c->overlaps);
	default:
		return (struct condition_row){is_dry_run(f), is_dry_run(f) ? "DryRun" : "Writing", ""};
	}
}

// Writes the members that the status and the status page have in common; returns enum condition_status.
static int put_condition(const struct fleet *f, struct json_writer *w, const struct counts *c, int which)
{
	const struct condition_row row = condition_of(f, c, which);
	int status = row.is_true ? CONDITION_TRUE : CONDITION_FALSE;
	json_write_format(w, "type:%s,status:%s,reason:%s", condition_types[which], condition_status_names[status],
	                  row.reason);
	if (row.message[0])
		json_write_member_text(w, "message", row.message);
	return status;
}

static void put_conditions(struct fleet *f, struct json_writer *w, const struct counts *c)
{
	json_write_member_array(w, "conditions");
	for (int i = 0; i < FLEET_CONDITION__COUNT; i++) {
		json_write_object_begin(w);
		int status = put_condition(f, w, c, i);
		if (f->conditions[i] != status || f->since_ms[i] == 0)
			f->since_ms[i] = f->now_ms - f->now_ms % 1000;
		f->conditions[i] = status;
		json_write_format(w, "lastTransitionTime:%jd,observedGeneration:%ld}", f->since_ms[i],
		                  f->identity.generation);
	}
	json_write_array_end(w);
}

// Without lastUpdateTime, whose change alone causes no write.
static void put_body(struct fleet *f, struct json_writer *w)
{
	static const char *const single[] = {"signals",   "signalsSummary",  "scaleEvents", "recommendations",
	                                     "decisions", "objectiveRecord", "targets"};
	const struct counts c = count(f);
	json_write_member_i64(w, "observedGeneration", f->identity.generation);
	put_sums(w, &c);
	put_conditions(f, w, &c);
	json_write_member_object(w, "fleet");
	put_numbers(f, w, &c);
	put_record(f, w);
	json_write_object_end(w);
	for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) // a status of the time before it was a fleet
		json_write_member_null(w, single[i]);
}

struct fleet_numbers fleet_get_numbers(const struct fleet *f)
{
	return count(f).sum;
}

int64_t fleet_write_overview(const struct fleet *f, struct json_writer *w)
{
	const struct counts c = count(f);
	const struct condition_row fault = ready(f, &c);
	if (f->now_ms > 0)
		json_write_member_time(w, "time", f->now_ms);
	put_sums(w, &c);
	json_write_format(w, "held:%i,error:%s,conditions:[", c.sum.holding > 0 && c.sum.desired == c.sum.replicas,
	                  fault.message);
	for (int i = 0; i < FLEET_CONDITION__COUNT; i++) {
		json_write_object_begin(w);
		(void)put_condition(f, w, &c, i);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_member_object(w, "fleet");
	put_numbers(f, w, &c);
	json_write_object_end(w);
	return c.sum.replicas;
}

// Writes the merge patch to `body`; returns the fingerprint of its contents.
static uint64_t put_patch(struct fleet *f, struct buf *body)
{
	struct json_writer w;
	json_write_init(&w, body, 0);
	json_write_format(&w, "{status:{");
	put_body(f, &w);
	uint64_t print = hash_bytes(HASH_START, body->data, body->len);
	json_write_format(&w, "lastUpdateTime:%jd}}", f->now_ms);
	return print;
}

static void format_path(const struct fleet *f, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "/apis/" POLICY_API_VERSION "/namespaces/%s/gpuautoscalers/%s/status",
	         f->policy->namespace_name, f->policy->name);
}

static void on_written(void *arg, const struct err *error)
{
	struct fleet *f = arg;
	f->written.failed = error != NULL;
	f->is_recorded = f->is_recorded || !error;
}

void fleet_status_offer(struct fleet *f)
{
	static const struct status_pace pace = {FLEET_STATUS_MS, FLEET_STATUS_MS, FLEET_STATUS_MS, 0};
	char path[PATH_BYTES];
	struct buf body;
	int64_t age_ms = f->now_ms - f->written.written_ms;
	if (!f->env->writer || f->identity.generation == 0 || (f->written.written_ms > 0 && age_ms < FLEET_STATUS_MS))
		return;
	buf_init(&body, BODY_BYTES_MAX);
	struct status_offer offer = {.pace = &pace, .past = &f->written, .major = put_patch(f, &body)};
	if (!body.failed && status_reasons[status_schedule(&offer, f->now_ms)].action == STATUS_WRITE) {
		format_path(f, path);
		status_past_write(&f->written, offer.major, 0, f->now_ms);
		status_writer_put(f->env->writer, &f->slot, path, buf_str(&body), on_written, f);
	}
	buf_done(&body);
}

static void on_sent(void *arg, const struct http_response *response, const struct err *error)
{
	struct fleet *f = arg;
	on_written(f, error);
	f->sent(f);
}

int fleet_status_send(struct fleet *f, void (*done)(struct fleet *f), struct err *e)
{
	char path[PATH_BYTES];
	struct buf body;
	buf_init(&body, BODY_BYTES_MAX);
	status_past_write(&f->written, put_patch(f, &body), 0, f->now_ms);
	format_path(f, path);
	f->sent = done;
	int rc = k8s_request(f->env->tick->sources.k8s, "PATCH", path, "application/merge-patch+json", buf_str(&body),
	                     body.len, on_sent, f, e);
	buf_done(&body);
	return rc;
}

void fleet_status_read(struct fleet *f, const char *json, size_t len)
{
	struct err ignored; // what cannot be read is not there
	cJSON *object = json_read(json, len, &ignored);
	const cJSON *status = json_get(object, "status");
	const char *record = json_get_str(json_get(status, "fleet"), "record", NULL);
	f->is_recorded = record != NULL;
	fleet_record_free(f->past);
	f->past = record ? fleet_record_read(record, strlen(record)) : NULL;
	cJSON_Delete(object);
}
