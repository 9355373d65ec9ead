// SPDX-License-Identifier: Apache-2.0
#include "controller/status/status_doc.h"

#include <math.h>
#include <openssl/evp.h>

#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "base/schema/schema.h"
#include "controller/status/status_schema.h"
#include "policies/engine/behavior.h"
#include "policies/engine/decide.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

#define SUMMARY_BYTES 512

// ---- the record ----

void status_record_done(struct status_record *r)
{
	for (size_t i = 0; i < r->n_decisions; i++)
		free(r->decisions[i].message);
	free(r->decisions);
	*r = (struct status_record){0};
}

void status_record_add(struct status_record *r, int64_t time_ms, enum action action, enum reason reason, int32_t from,
                       int32_t to, const char *message)
{
	if (r->n_decisions == STATUS_DECISIONS_MAX) {
		free(r->decisions[0].message);
		memmove(r->decisions, r->decisions + 1, --r->n_decisions * sizeof *r->decisions);
	}
	if (r->n_decisions == r->decisions_room) { // most policies have few: grown in small steps
		r->decisions_room++;
		r->decisions = must_alloc(realloc(r->decisions, r->decisions_room * sizeof *r->decisions));
	}
	char *copy = must_alloc(strdup(message));
	r->decisions[r->n_decisions++] = (struct status_decision){time_ms, action, reason, from, to, copy};
}

void status_record_clock_was_set(struct status_record *r, int64_t step_ms)
{
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++)
		if (r->since_ms[i] != 0)
			r->since_ms[i] += step_ms;
	for (size_t i = 0; i < r->n_decisions; i++)
		r->decisions[i].time_ms += step_ms;
}

// ---- writing ----

static void write_conditions(struct json_writer *w, const struct status_doc *doc)
{
	json_write_member_array(w, "conditions");
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++) {
		const struct condition *c = &doc->conditions[i];
		int64_t since_ms = doc->record->since_ms[i];
		if (!c->reason[0])
			continue;
		json_write_format(w, "{type:%s,status:%s,reason:%s", condition_type_names[i],
		                  condition_status_names[c->status], c->reason);
		if (c->message[0]) // old API servers take "" inside an array of a merge-PATCH for null, and refuse it
			json_write_member_text(w, "message", c->message);
		json_write_format(w, "lastTransitionTime:%jd,observedGeneration:%ld}", since_ms - since_ms % 1000,
		                  doc->generation);
	}
	json_write_array_end(w);
}

// Three digits are enough for people.
static void format_short(char out[NUM_TEXT_BYTES], double v)
{
	if (isfinite(v))
		snprintf(out, NUM_TEXT_BYTES, "%.3g", v);
	else
		snprintf(out, NUM_TEXT_BYTES, "?");
}

// "queue 12/8, sm_active 0.71/0.7"
static void write_summary(struct json_writer *w, const struct status_doc *doc)
{
	const struct decision *d = doc->facts->decided->decision;
	struct buf text;
	buf_init(&text, SUMMARY_BYTES);
	for (size_t i = 0; i < d->n_signals; i++) {
		char value[NUM_TEXT_BYTES], target[NUM_TEXT_BYTES];
		format_short(value, d->signals[i].value);
		format_short(target, d->signals[i].target);
		buf_printf(&text, "%s%s %s/%s", i ? ", " : "", doc->policy->signals[i].name, value, target);
	}
	json_write_member_str(w, "signalsSummary", buf_str(&text)); // what does not fit is left out
	buf_done(&text);
}

// Writes nothing for what is not finite.
static void write_quantity(struct json_writer *w, const char *key, double value)
{
	char text[NUM_TEXT_BYTES];
	if (!isfinite(value))
		return;
	num_format_f64(text, value);
	json_write_member_str(w, key, text);
}

static void write_signals(struct json_writer *w, const struct status_doc *doc)
{
	const struct decision *d = doc->facts->decided->decision;
	json_write_member_array(w, "signals");
	for (size_t i = 0; i < d->n_signals; i++) {
		const struct decision_signal *s = &d->signals[i];
		json_write_format(w, "{name:%s", doc->policy->signals[i].name);
		write_quantity(w, "value", s->value);
		write_quantity(w, "target", s->target);
		json_write_format(w, "proposal:%d,state:%s,reason:%s", s->proposal, signal_state_names[s->state],
		                  reason_info(s->reason)->name);
		if (s->age_ms >= 0)
			json_write_member_time(w, "sampleTime", d->time_ms - s->age_ms);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

// Writes null for a number below 0: the next process would take over an earlier number that is only left out.
static void write_number(struct json_writer *w, const char *key, int64_t number)
{
	if (number >= 0)
		json_write_member_i64(w, key, number);
	else
		json_write_member_null(w, key);
}

static void write_decision(struct json_writer *w, const struct status_doc *doc)
{
	const struct decided *decided = doc->facts->decided;
	if (!decided) {
		// The numbers are removed for a target that another autoscaler controls, and for a policy without a
		// valid version, because they would be out of date. A target that cannot be read at the moment keeps
		// its last numbers.
		static const char *const fields[] = {"action",          "readyReplicas",  "currentReplicas",
		                                     "desiredReplicas", "signalsSummary", "signals",
		                                     "variants"};
		size_t n = doc->facts->phase == STATUS_READ_FAILED ? 2 : sizeof fields / sizeof fields[0];
		for (size_t i = 0; i < n; i++)
			json_write_member_null(w, fields[i]);
		json_write_member_str(w, "reason", doc->conditions[CONDITION_READY].reason);
		json_write_member_text(w, "message", doc->conditions[CONDITION_READY].message);
		return;
	}
	const struct decision *d = decided->decision;
	char message[RENDER_SENTENCE_BYTES];
	json_write_format(w, "currentReplicas:%d,desiredReplicas:%d",
	                  doc->facts->phase == STATUS_SCALED ? d->desired : d->current, d->desired);
	write_number(w, "readyReplicas", d->ready);
	json_write_format(w, "action:%s,reason:%s", action_names[d->action], reason_info(d->reason)->name);
	explain_message(decided, message);
	json_write_member_text(w, "message", message);
	write_summary(w, doc);
	write_signals(w, doc);
	if (decided->n_variants > 0)
		explain_variants_json(w, decided);
	else if (doc->record->has_variants)
		json_write_member_null(w, "variants");
}

// Writes only recommendations that a window ending now or later can select. Stabilization selects the largest or
// smallest since some moment, so a recommendation is dropped when a later one is as large and a later one is as small.
static size_t thin_out(struct decide_recommendation *r, size_t n)
{
	size_t kept = n;
	int32_t largest = INT32_MIN, smallest = INT32_MAX;
	for (size_t i = n; i-- > 0;) {
		bool matters = r[i].replicas > largest || r[i].replicas < smallest;
		largest = r[i].replicas > largest ? r[i].replicas : largest;
		smallest = r[i].replicas < smallest ? r[i].replicas : smallest;
		if (matters)
			r[--kept] = r[i];
	}
	if (n - kept > STATUS_RECOMMENDATIONS_MAX)
		kept = n - STATUS_RECOMMENDATIONS_MAX;
	memmove(r, r + kept, (n - kept) * sizeof *r);
	return n - kept;
}

// What the rules of the objective have learnt, for the next process. A policy without an objective has no such field,
// so it is cleared only where one was written.
static void write_objective(struct json_writer *w, const struct status_doc *doc)
{
	unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	char text[TEXT_BASE64_BYTES(DECIDE_OBJECTIVE_BYTES_MAX)];
	size_t n = decide_objective_save(doc->policy, doc->state, bytes);
	if (!doc->policy->objective.set && doc->record->has_objective_record)
		json_write_member_null(w, "objectiveRecord");
	if (n == 0)
		return;
	EVP_EncodeBlock((unsigned char *)text, bytes, (int)n);
	json_write_member_str(w, "objectiveRecord", text);
}

static void write_state(struct json_writer *w, const struct status_doc *doc)
{
	struct decide_recommendation recommendations[2 * DECIDE_HISTORY_MAX];
	struct decide_scale_event events[2 * DECIDE_HISTORY_MAX];
	size_t n = thin_out(recommendations,
	                    decide_recommendations(doc->policy, doc->state, recommendations, 2 * DECIDE_HISTORY_MAX));
	json_write_member_array(w, "recommendations");
	for (size_t i = 0; i < n; i++)
		json_write_format(w, "{time:%jd,replicas:%d}", recommendations[i].time_ms, recommendations[i].replicas);
	json_write_array_end(w);
	n = decide_scale_events(doc->policy, doc->state, events, 2 * DECIDE_HISTORY_MAX);
	json_write_member_array(w, "scaleEvents");
	for (size_t i = n > STATUS_EVENTS_MAX ? n - STATUS_EVENTS_MAX : 0; i < n; i++)
		json_write_format(w, "{time:%jd,change:%d}", events[i].time_ms, events[i].change);
	json_write_array_end(w);
	int64_t last_ms = decide_last_scale_ms(doc->policy, doc->state);
	if (last_ms >= 0)
		json_write_member_time(w, "lastScaleTime", last_ms);
	else
		json_write_member_null(w, "lastScaleTime");
	if (decide_withdrawn_ms(doc->policy, doc->state) >= 0)
		json_write_member_time(w, "lastWithdrawTime", decide_withdrawn_ms(doc->policy, doc->state));
	int32_t replacements = decide_replacements(doc->policy, doc->state);
	write_number(w, "replacements", replacements > 0 ? replacements : -1);
	int64_t startup_ms = decide_startup_ms(doc->policy, doc->state);
	write_number(w, "startupSeconds", startup_ms >= 0 ? (startup_ms + 999) / 1000 : -1);
	write_objective(w, doc);
}

static void write_decisions(struct json_writer *w, const struct status_record *r)
{
	json_write_member_array(w, "decisions");
	for (size_t i = 0; i < r->n_decisions; i++) {
		const struct status_decision *d = &r->decisions[i];
		json_write_format(w, "{time:%jd,action:%s,reason:%s,from:%d,to:%d", d->time_ms, action_names[d->action],
		                  reason_info(d->reason)->name, d->from, d->to);
		json_write_member_text(w, "message", d->message);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

// Opens the object of the binding in status.targets. The fields beside it are of a version with one binding.
static void begin_target(struct json_writer *w, const struct status_doc *doc)
{
	const struct schema *schema = &status_schema;
	for (size_t i = 0; i < schema->n_fields; i++) {
		const char *name = schema->fields[i].name;
		if (strcmp(name, "observedGeneration") == 0)
			json_write_member_i64(w, name, doc->generation);
		else if (strcmp(name, "targets") != 0)
			json_write_member_null(w, name);
	}
	json_write_member_object(w, "targets");
	json_write_member_object(w, doc->key);
}

void status_doc_write(struct buf *out, const struct status_doc *doc)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{status:{");
	if (doc->key)
		begin_target(&w, doc);
	json_write_format(&w, "observedGeneration:%ld,lastUpdateTime:%jd", doc->generation, doc->now_ms);
	write_decision(&w, doc);
	if (doc->policy)
		write_state(&w, doc);
	// Without a decision, the fields of earlier decisions stay unchanged.
	if (doc->facts->decided || doc->record->n_decisions > 0)
		write_decisions(&w, doc->record);
	write_conditions(&w, doc);
	json_write_format(&w, doc->key ? "}}}}" : "}}");
}

void status_doc_write_replicas(struct buf *out, const char *key, int32_t replicas, int64_t generation)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, key ? "{status:{targets:{" : "{status:{");
	if (key)
		json_write_member_object(&w, key);
	json_write_format(&w, "currentReplicas:%d,observedGeneration:%ld", replicas, generation);
	json_write_format(&w, key ? "}}}}" : "}}");
}

void status_doc_write_removal(struct buf *out, const char *key)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{status:{targets:{");
	json_write_member_null(&w, key);
	json_write_format(&w, "}}}");
}

// ---- reading ----

// The current time, and how far ahead of it the restored times are when another clock wrote them.
struct present {
	int64_t now_ms, ahead_ms;
};

static bool read_time(const cJSON *object, const char *key, struct present *at, int64_t *ret_ms)
{
	const char *text = json_get_str(object, key, NULL);
	if (!text || num_parse_rfc3339_ms(text, strlen(text), ret_ms, NULL) < 0 || *ret_ms < 0)
		return false;
	if (*ret_ms > at->now_ms) {
		if (*ret_ms - at->now_ms > at->ahead_ms)
			at->ahead_ms = *ret_ms - at->now_ms;
		*ret_ms = at->now_ms;
	}
	return true;
}

static bool read_i64(const cJSON *object, const char *key, int64_t min, int64_t max, int64_t *ret_value)
{
	return json_get_i64(object, key, min, max, ret_value, NULL) == 1;
}

static int index_of(const char *name, const char *const *names, int n)
{
	for (int i = 0; name && i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -1;
}

static void read_decisions(const cJSON *status, struct status_record *record, struct present *at)
{
	const char *reasons[REASON__COUNT];
	const cJSON *item;
	int n = 0;
	for (int i = 0; i < REASON__COUNT; i++)
		reasons[i] = reason_info((enum reason)i)->name;
	cJSON_ArrayForEach(item, json_get(status, "decisions"))
	{
		int64_t time_ms, from, to;
		int action = index_of(json_get_str(item, "action", NULL), action_names, ACTION__COUNT);
		int reason = index_of(json_get_str(item, "reason", NULL), reasons, REASON__COUNT);
		if (++n > STATUS_DECISIONS_MAX)
			break;
		if (action < 0 || reason < 0 || !read_time(item, "time", at, &time_ms) ||
		    !read_i64(item, "from", 0, INT32_MAX, &from) || !read_i64(item, "to", 0, INT32_MAX, &to))
			continue;
		char message[RENDER_SENTENCE_BYTES];
		snprintf(message, sizeof message, "%s", json_get_str(item, "message", ""));
		status_record_add(record, time_ms, (enum action)action, (enum reason)reason, (int32_t)from, (int32_t)to,
		                  message);
	}
}

static void read_conditions(const cJSON *status, struct status_record *record, struct present *at)
{
	const cJSON *item;
	cJSON_ArrayForEach(item, json_get(status, "conditions"))
	{
		int64_t since_ms;
		int type = index_of(json_get_str(item, "type", NULL), condition_type_names, CONDITION_TYPE__COUNT);
		int is = index_of(json_get_str(item, "status", NULL), condition_status_names, CONDITION_STATUS__COUNT);
		if (type < 0 || is < 0 || !read_time(item, "lastTransitionTime", at, &since_ms))
			continue;
		record->condition[type] = (enum condition_status)is;
		record->since_ms[type] = since_ms;
	}
}

// The last recommendation applies until now, because a status is written only when something changed. A tick without
// data recommends nothing.
static void read_recommendations(const cJSON *status, const struct policy *policy, void *state, struct present *at)
{
	const cJSON *item;
	int n = 0;
	int64_t last_ms = 0, last = -1;
	cJSON_ArrayForEach(item, json_get(status, "recommendations"))
	{
		int64_t time_ms, replicas;
		if (++n > STATUS_RECOMMENDATIONS_MAX)
			break;
		if (!read_time(item, "time", at, &time_ms) || time_ms < last_ms ||
		    !read_i64(item, "replicas", 0, POLICY_REPLICAS_MAX, &replicas))
			continue;
		decide_record_recommendation(policy, state, time_ms, (int32_t)replicas);
		last_ms = time_ms;
		last = replicas;
	}
	int64_t written_ms;
	struct present written_at = {.now_ms = at->now_ms};
	if (last >= 0 && at->now_ms > last_ms && read_time(status, "lastUpdateTime", &written_at, &written_ms) &&
	    last_ms >= written_ms)
		decide_record_recommendation(policy, state, at->now_ms, (int32_t)last);
}

static void read_scales(const cJSON *status, const struct policy *policy, void *state, struct present *at)
{
	const cJSON *item;
	int n = 0;
	int64_t last_ms = -1, time_ms, seconds, replacements;
	cJSON_ArrayForEach(item, json_get(status, "scaleEvents"))
	{
		int64_t change;
		if (++n > STATUS_EVENTS_MAX)
			break;
		// Events that have left every period are for people only; the cooldown uses lastScaleTime.
		if (!read_time(item, "time", at, &time_ms) || time_ms < last_ms ||
		    time_ms < at->now_ms - behavior_events_keep_ms(policy) ||
		    !read_i64(item, "change", -POLICY_REPLICAS_MAX, POLICY_REPLICAS_MAX, &change) || change == 0)
			continue;
		decide_record_scale(policy, state, time_ms, change < 0 ? (int32_t)-change : 0,
		                    change > 0 ? (int32_t)change : 0);
		last_ms = time_ms;
	}
	if (read_time(status, "lastScaleTime", at, &time_ms) && time_ms > last_ms)
		decide_record_last_scale(policy, state, time_ms);
	if (read_time(status, "lastWithdrawTime", at, &time_ms))
		decide_record_withdrawal(policy, state, time_ms);
	if (read_i64(status, "replacements", 0, POLICY_REPLICAS_MAX, &replacements))
		decide_record_replacements(policy, state, (int32_t)replacements);
	if (read_i64(status, "startupSeconds", 0, NUM_DURATION_MS_MAX / 1000, &seconds))
		decide_record_start(policy, state, seconds * 1000);
}

static bool is_there(const cJSON *object, const char *key)
{
	const cJSON *item = json_get(object, key);
	return item && !cJSON_IsNull(item);
}

static void read_objective(const cJSON *status, const struct policy *policy, void *state, struct status_record *record,
                           const struct present *at)
{
	unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	const char *text = json_get_str(status, "objectiveRecord", NULL);
	record->has_objective_record = is_there(status, "objectiveRecord");
	record->has_variants = is_there(status, "variants");
	size_t n = text ? text_from_base64(text, bytes, sizeof bytes) : 0;
	if (n > 0)
		decide_objective_restore(policy, state, bytes, n, at->now_ms);
}

// Ignores the replicas of another generation, which may have had another target.
static int32_t read_replicas(const cJSON *root, const cJSON *status)
{
	int64_t replicas = 0, generation = 0, observed = 0;
	if (json_get_i64(status, "currentReplicas", 0, INT32_MAX, &replicas, NULL) != 1 ||
	    json_get_i64(status, "observedGeneration", 0, INT64_MAX, &observed, NULL) != 1 ||
	    json_get_i64(json_get(root, "metadata"), "generation", 0, INT64_MAX, &generation, NULL) != 1 ||
	    observed != generation)
		return -1;
	return (int32_t)replicas;
}

// The time of the last scale is unknown. Assumes now, so that every cooldown runs in full.
static void assume_scaled(const struct policy *policy, void *state, struct status_record *record, int64_t now_ms)
{
	record->is_unsure = true;
	decide_record_last_scale(policy, state, now_ms);
}

// Returns the status of the binding; *ret_is_valid: it is absent or an object.
static const cJSON *status_of(const cJSON *root, const struct binding *binding, bool *ret_is_valid)
{
	const char *const path[] = {"status", "targets", binding->key};
	const cJSON *at = root;
	*ret_is_valid = true;
	for (size_t i = 0; i < (binding->key ? 3 : 1); i++) {
		*ret_is_valid = *ret_is_valid && (!is_there(at, path[i]) || cJSON_IsObject(json_get(at, path[i])));
		at = json_get(at, path[i]);
	}
	return at;
}

static void read_status(const cJSON *root, const struct binding *binding, void *state, struct status_record *record,
                        int64_t now_ms)
{
	bool is_valid;
	const struct policy *policy = binding->policy;
	const cJSON *status = status_of(root, binding, &is_valid);
	struct present at = {.now_ms = now_ms}, shown_at = at; // times that are only displayed do not delay scaling
	int64_t last_ms;
	if (!is_valid) {
		assume_scaled(policy, state, record, now_ms);
		return;
	}
	record->replicas = read_replicas(root, status);
	read_conditions(status, record, &shown_at);
	read_decisions(status, record, &shown_at);
	read_scales(status, policy, state, &at);
	read_recommendations(status, policy, state, &at);
	read_objective(status, policy, state, record, &at);
	if (is_there(status, "lastScaleTime") && !read_time(status, "lastScaleTime", &at, &last_ms))
		assume_scaled(policy, state, record, now_ms);
	if (at.ahead_ms > DECIDE_CLOCK_BACK_MS) // smaller differences are normal between the clocks of two hosts
		decide_note_future_stamp(policy, state, at.ahead_ms);
}

// Another part of the object may be invalid for json_read(), such as an annotation with a \u0000.
static int read_status_alone(const char *json, size_t len, const struct binding *binding, void *state,
                             struct status_record *record, int64_t now_ms)
{
	struct json_span status = json_span_get((struct json_span){json, len}, "status");
	if (!status.text)
		return -1; // possibly truncated
	struct err unused;
	cJSON *root = cJSON_CreateObject(), *tree = json_read(status.text, status.len, &unused);
	if (root && tree && cJSON_AddItemToObject(root, "status", tree)) {
		read_status(root, binding, state, record, now_ms);
	} else {
		cJSON_Delete(tree);
		assume_scaled(binding->policy, state, record, now_ms);
	}
	cJSON_Delete(root);
	return 0;
}

int status_doc_read(const char *json, size_t len, const struct binding *binding, void *state,
                    struct status_record *record, int64_t now_ms, struct err *e)
{
	record->replicas = -1;
	cJSON *root = json_read(json, len, e);
	if (!root)
		return read_status_alone(json, len, binding, state, record, now_ms) < 0 ? err_wrap(e, "status") : 0;
	int rc = cJSON_IsObject(root) ? 0 : err_set(e, ERR_PROTOCOL, "status: expected a JSON object");
	if (rc == 0)
		read_status(root, binding, state, record, now_ms);
	cJSON_Delete(root);
	return rc;
}
