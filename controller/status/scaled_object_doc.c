// SPDX-License-Identifier: Apache-2.0
// The status of a ScaledObject as JSON: the fields that KEDA writes, and a condition of type GPUScaleState whose
// message contains the status of the policy (controller/status/status_doc.h), for the next process. KEDA's schema drops
// fields that it does not know, but keeps further conditions (docs/decisions/0052-scaled-objects.md). KEDA:
// apis/keda/v1alpha1/scaledobject_types.go, condition_types.go.
#include "controller/status/status_doc.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "controller/status/status_conditions.h"
#include "policies/engine/idle.h"
#include "policies/engine/policy.h"
#include "policies/load/policy_ref.h"

bool scaled_object_is_active(const struct status_facts *facts)
{
	const struct decided *decided = facts->decided;
	if (!decided)
		return false;
	const struct decision *d = decided->decision;
	if (decision_find(d, REASON_SCHEDULE_ACTIVE))
		return true;
	for (size_t i = 0; i < d->n_signals; i++) {
		const struct policy_activation *a =
		        decided->policy->idle.set ? idle_activation_of(&decided->policy->idle, i) : NULL;
		bool counts = a || (!decided->policy->idle.set && decided->policy->signals[i].query);
		if (counts && d->signals[i].value > (a ? a->above : 0)) // false for NaN
			return true;
	}
	return false;
}

bool scaled_object_is_in_fallback(const struct status_facts *facts)
{
	return facts->decided && (decision_find(facts->decided->decision, REASON_FALLBACK_ACTIVE) ||
	                          decision_find(facts->decided->decision, REASON_FALLBACK_LIFTING));
}

// ---- writing ----

static void write_condition(struct json_writer *w, const char *type, enum condition_status status, const char *reason,
                            const char *message)
{
	json_write_format(w, "{type:%s,status:%s,reason:%s", type, condition_status_names[status], reason);
	json_write_member_text(w, "message", message);
	json_write_object_end(w);
}

static void write_conditions(struct json_writer *w, const struct scaled_object_doc *doc)
{
	const struct policy_origin *origin = doc->binding ? policy_ref_of(doc->binding->policy)->origin : NULL;
	bool is_paused = (doc->facts && doc->facts->paused) || (origin && origin->is_paused);
	bool decided = doc->facts && doc->facts->decided;
	enum condition_status active = CONDITION_UNKNOWN, fallback = CONDITION_UNKNOWN;
	if (decided) {
		active = scaled_object_is_active(doc->facts) ? CONDITION_TRUE : CONDITION_FALSE;
		fallback = scaled_object_is_in_fallback(doc->facts) ? CONDITION_TRUE : CONDITION_FALSE;
	}
	const struct condition *ready = doc->facts ? &doc->conditions[CONDITION_READY] : NULL;
	json_write_member_array(w, "conditions");
	if (ready)
		write_condition(w, "Ready", ready->status,
		                ready->status == CONDITION_TRUE ? "ScaledObjectReady" : ready->reason, ready->message);
	else
		write_condition(w, "Ready", CONDITION_UNKNOWN, "NotDecided", "gpuscale has not decided yet");
	write_condition(w, "Active", active, active == CONDITION_TRUE ? "ScalerActive" : "ScalerNotActive",
	                active == CONDITION_TRUE ? "a trigger is active" : "no trigger is known to be active");
	write_condition(w, "Fallback", fallback, fallback == CONDITION_TRUE ? "FallbackExists" : "NoFallbackFound",
	                fallback == CONDITION_TRUE ? "the fallback decides" : "no fallback is active");
	write_condition(w, "Paused", is_paused ? CONDITION_TRUE : CONDITION_FALSE,
	                is_paused ? "ScaledObjectPaused" : "ScaledObjectUnpaused",
	                is_paused ? "an annotation pauses the object" : "the object is not paused");
	if (doc->state) {
		json_write_format(w, "{type:%s,status:%s,reason:%s", SCALED_OBJECT_STATE, "True", "Recorded");
		json_write_member_str(w, "message", doc->state); // exactly, because it is read again
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_origin(struct json_writer *w, const struct policy *policy, const struct policy_origin *origin)
{
	json_write_format(w, "scaleTargetKind:%s,triggersTypes:%s,externalMetricNames:[", origin->target_kind,
	                  origin->trigger_types);
	for (size_t i = 0; i < policy->n_signals; i++)
		if (origin->metric_names[i])
			json_write_str(w, origin->metric_names[i]);
	json_write_array_end(w);
}

static void write_health(struct json_writer *w, const struct decided *decided, const struct policy_origin *origin)
{
	const struct decision *d = decided->decision;
	json_write_member_object(w, "health");
	for (size_t i = 0; i < d->n_signals; i++) {
		bool fails = d->signals[i].state == SIGNAL_MISSING;
		if (!origin->metric_names[i])
			continue;
		json_write_member_object(w, origin->metric_names[i]);
		json_write_format(w, "numberOfFailures:%d,status:%s}", fails ? 1 : 0, fails ? "Failing" : "Happy");
	}
	json_write_object_end(w);
}

void scaled_object_doc_write(struct buf *out, const struct scaled_object_doc *doc)
{
	const struct policy_origin *origin = doc->binding ? policy_ref_of(doc->binding->policy)->origin : NULL;
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{status:{");
	write_conditions(&w, doc);
	json_write_member_null(&w, "hpaName");
	if (origin)
		write_origin(&w, doc->binding->policy, origin);
	if (origin && doc->facts && doc->facts->decided) {
		write_health(&w, doc->facts->decided, origin);
		int64_t time_ms = doc->facts->decided->decision->time_ms;
		if (scaled_object_is_active(doc->facts))
			json_write_member_time(&w, "lastActiveTime", time_ms - time_ms % 1000);
	}
	json_write_format(&w, "}}");
}

// ---- reading ----

// Returns the state, which the caller frees; NULL: none.
static char *find_state(struct json_span object)
{
	struct json_span conditions = json_span_path(object, (const char *const[]){"status", "conditions", NULL});
	struct json_span state = json_span_find(conditions, "type", SCALED_OBJECT_STATE);
	char *text = must_alloc(malloc(STATUS_BYTES_MAX));
	if (json_span_text(json_span_get(state, "message"), text, STATUS_BYTES_MAX) > 0 && text[0] == '{')
		return text;
	free(text);
	return NULL;
}

bool scaled_object_doc_read(struct buf *out, const char *json, size_t len)
{
	const struct json_span object = {json, len};
	int64_t generation = 0;
	json_span_i64(json_span_path(object, (const char *const[]){"metadata", "generation", NULL}), 0, INT64_MAX,
	              &generation);
	char *state = find_state(object);
	buf_printf(out, "{\"metadata\":{\"generation\":%lld},%s", (long long)generation,
	           state ? state + 1 : "\"status\":{}}");
	bool found = state != NULL;
	free(state);
	return found;
}
