// SPDX-License-Identifier: Apache-2.0
#include "controller/tick_span.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "base/otlp/otlp_json.h"
#include "controller/tick/reconcile.h"
#include "policies/engine/pipeline.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"

#define KIND_INTERNAL 1 // SPAN_KIND_INTERNAL
#define STATUS_ERROR  2 // STATUS_CODE_ERROR

struct span_writer {
	struct json_writer w;
	const struct tick_span_id *id;
	const struct decided *d;
	int64_t end_ns, end_us;
};

static int64_t wall_ns(const struct span_writer *s, int64_t us)
{
	return s->end_ns - (s->end_us - us) * 1000;
}

static void begin_span(struct span_writer *s, size_t child, const char *name, int64_t start_us, int64_t end_us)
{
	char text[40];
	json_write_object_begin(&s->w);
	snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, s->id->trace_id[0], s->id->trace_id[1]);
	json_write_member_str(&s->w, "traceId", text);
	snprintf(text, sizeof text, "%016" PRIx64, s->id->span_id);
	if (child > 0)
		json_write_member_str(&s->w, "parentSpanId", text);
	snprintf(text, sizeof text, "%016" PRIx64, s->id->span_id + child);
	json_write_member_str(&s->w, "spanId", text);
	json_write_member_str(&s->w, "name", name);
	json_write_member_i64(&s->w, "kind", KIND_INTERNAL);
	otlp_member_i64(&s->w, "startTimeUnixNano", wall_ns(s, start_us));
	otlp_member_i64(&s->w, "endTimeUnixNano", wall_ns(s, end_us));
	json_write_key(&s->w, "attributes");
	json_write_array_begin(&s->w);
}

static void put_stage(struct span_writer *s, size_t i, const struct tick_times *times)
{
	const struct trace_entry *t = decision_entry(s->d->decision, i);
	char sentence[RENDER_SENTENCE_BYTES];
	explain_sentence(s->d, t, sentence);
	begin_span(s, i + 1, stage_name(t->stage), times->entered_us[TICK_PHASE_DECIDE], times->decided_us);
	otlp_put_text(&s->w, "gpuscale.reason", reason_info(t->reason)->name);
	otlp_put_text(&s->w, "gpuscale.signal", t->signal >= 0 ? s->d->policy->signals[t->signal].name : "");
	otlp_put_i64(&s->w, "gpuscale.replicas.before", t->before);
	otlp_put_i64(&s->w, "gpuscale.replicas.after", t->after);
	otlp_put_text(&s->w, "gpuscale.message", sentence);
	json_write_array_end(&s->w);
	json_write_object_end(&s->w);
}

static void put_decision(struct span_writer *s)
{
	const struct decision *d = s->d->decision;
	char sentence[RENDER_SENTENCE_BYTES];
	explain_message(s->d, sentence);
	otlp_put_text(&s->w, "gpuscale.action", action_name(d->action));
	otlp_put_text(&s->w, "gpuscale.reason", reason_info(d->reason)->name);
	otlp_put_i64(&s->w, "gpuscale.replicas.current", d->current);
	if (d->ready >= 0)
		otlp_put_i64(&s->w, "gpuscale.replicas.ready", d->ready);
	otlp_put_i64(&s->w, "gpuscale.replicas.pending", d->pending);
	otlp_put_i64(&s->w, "gpuscale.replicas.desired", d->desired);
	otlp_put_text(&s->w, "gpuscale.message", sentence);
}

static void put_phases(struct span_writer *s, const struct tick_times *times)
{
	json_write_key(&s->w, "events");
	json_write_array_begin(&s->w);
	for (int i = 0; i < TICK_PHASE__COUNT; i++) {
		if (times->entered_us[i] == 0)
			continue;
		json_write_object_begin(&s->w);
		otlp_member_i64(&s->w, "timeUnixNano", wall_ns(s, times->entered_us[i]));
		json_write_member_str(&s->w, "name", tick_phase_names[i]);
		json_write_object_end(&s->w);
	}
	json_write_array_end(&s->w);
}

static void put_tick(struct span_writer *s, const struct tick_result *result, const char *outcome)
{
	const struct policy *policy = s->d->policy;
	begin_span(s, 0, "tick", result->times->started_us, s->end_us);
	otlp_put_text(&s->w, "k8s.namespace.name", policy->namespace_name);
	otlp_put_text(&s->w, "gpuscale.policy", policy->name);
	otlp_put_text(&s->w, "gpuscale.target.kind", s->d->target->kind);
	otlp_put_text(&s->w, "gpuscale.target.name", s->d->target->name);
	otlp_put_text(&s->w, "gpuscale.result", outcome);
	if (result->attempt > 0)
		otlp_put_i64(&s->w, "gpuscale.conflicts", result->attempt);
	if (result->decision)
		put_decision(s);
	json_write_array_end(&s->w);
	put_phases(s, result->times);
	if (result->error) {
		json_write_key(&s->w, "status");
		json_write_object_begin(&s->w);
		json_write_member_i64(&s->w, "code", STATUS_ERROR);
		json_write_member_str(&s->w, "message", result->error->msg);
		json_write_object_end(&s->w);
	}
	json_write_object_end(&s->w);
}

size_t tick_span_count(const struct tick_result *result)
{
	return 1 + (result->decision ? result->decision->n_trace : 0);
}

void tick_span_append(struct buf *out, const struct tick_span_id *id, const struct decided *d,
                      const struct tick_result *result, const char *outcome, int64_t end_ns, int64_t end_us)
{
	struct span_writer s = {.id = id, .d = d, .end_ns = end_ns, .end_us = end_us};
	size_t n = tick_span_count(result);
	for (size_t i = 0; i < n; i++) {
		if (out->len > 0)
			buf_putc(out, ',');
		json_write_init(&s.w, out, 0); // each span is a value of its own
		if (i == 0)
			put_tick(&s, result, outcome);
		else
			put_stage(&s, i - 1, result->times);
	}
}
