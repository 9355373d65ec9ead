// SPDX-License-Identifier: Apache-2.0
#include "controller/status/status.h"

#include <math.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hash.h"
#include "controller/status/status_doc.h"
#include "k8s/cache/autoscaler_object.h"
#include "k8s/events/event_recorder.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define KEY_BYTES 320 // kind and name of a target have at most 63 and 253

void policy_status_path(const struct policy_status *s, const char *suffix, char *out)
{
	const struct autoscaler_kind_info *kind =
	        s->env->is_scaled_object ? &autoscaler_kinds[AUTOSCALER_SCALED_OBJECT] : NULL;
	snprintf(out, POLICY_STATUS_PATH_BYTES, "/apis/%s/namespaces/%s/%s/%s%s",
	         kind ? kind->group_version : POLICY_API_VERSION, s->namespace_name,
	         kind ? kind->plural : "gpuautoscalers", s->name, suffix);
}

void policy_status_write_replicas(const struct policy_status *s, const struct binding *binding, int32_t replicas,
                                  int64_t generation, struct buf *out)
{
	struct buf state;
	buf_init(&state, STATUS_BYTES_MAX);
	status_doc_write_replicas(&state, binding->key, replicas, generation);
	if (s->env->is_scaled_object)
		scaled_object_doc_write(out, &(struct scaled_object_doc){.binding = binding, .state = buf_str(&state)});
	else
		buf_puts(out, buf_str(&state));
	buf_done(&state);
}

struct policy_status *policy_status_new(const struct status_env *env, const struct status_place *place)
{
	const char *key = place->key && !env->dir ? place->key : NULL; // a file has the status of one binding
	size_t name_at = strlen(place->namespace_name) + 1, uid_at = name_at + strlen(place->name) + 1;
	size_t key_at = uid_at + strlen(place->uid) + 1;
	struct policy_status *s = must_alloc(calloc(1, sizeof *s + key_at + (key ? strlen(key) + 1 : 0)));
	s->env = env;
	memcpy(s->namespace_name, place->namespace_name, name_at);
	s->name = memcpy(s->namespace_name + name_at, place->name, uid_at - name_at);
	s->uid = memcpy(s->namespace_name + uid_at, place->uid, key_at - uid_at);
	if (key)
		s->key = memcpy(s->namespace_name + key_at, key, strlen(key) + 1);
	s->record.replicas = -1;
	return s;
}

void policy_status_free(struct policy_status *s)
{
	if (!s)
		return;
	policy_status_begun_fn *begun = s->begun;
	void *arg = s->begun_arg;
	status_slot_cancel(&s->slot);
	state_slot_cancel(&s->file);
	status_record_done(&s->record);
	free(s->values);
	free(s->error);
	free(s);
	if (begun)
		begun(arg);
}

int policy_status_restore(struct policy_status *s, const char *json, size_t len, const struct binding *binding,
                          void *state, int64_t now_ms, struct err *e)
{
	struct buf text;
	status_record_done(&s->record);
	buf_init(&text, SCALED_OBJECT_BYTES_MAX);
	if (s->env->is_scaled_object) {
		(void)scaled_object_doc_read(&text, json, len);
		json = buf_str(&text);
		len = text.len;
	}
	int rc = status_doc_read(json, len, binding, state, &s->record, now_ms, e);
	buf_done(&text);
	if (rc < 0)
		return -1;
	s->is_recorded = s->record.replicas >= 0;
	return 0;
}

// ---- in a file ----

static void clock_now(const struct status_env *env, struct state_clock *ret_clock)
{
	ret_clock->offset_ms = clock_wall_ms(env->clock) - clock_boot_ms(env->clock);
	snprintf(ret_clock->boot_id, sizeof ret_clock->boot_id, "%s", state_dir_boot_id(env->dir));
}

// Within one boot, the boot clock shows by how much the wall clock was set since the file was written. Times from
// before the last boot are used unchanged.
static int64_t step_since_ms(const struct status_env *env, const struct state_clock *then)
{
	struct state_clock now;
	clock_now(env, &now);
	if (!now.boot_id[0] || strcmp(now.boot_id, then->boot_id) != 0)
		return 0;
	int64_t step_ms = now.offset_ms - then->offset_ms;
	return step_ms > DECIDE_CLOCK_BACK_MS || step_ms < -DECIDE_CLOCK_BACK_MS ? step_ms : 0;
}

static int restore_text(struct policy_status *s, const struct buf *text, const struct binding *binding, void *state,
                        int64_t now_ms, struct err *e)
{
	struct state_file file;
	if (state_file_read(buf_str(text), text->len, binding, &file, e) < 0)
		return -1;
	int64_t step_ms = step_since_ms(s->env, &file.clock);
	const struct binding alone = {.policy = binding->policy}; // the file has the status of one binding
	if (status_doc_read(file.json, file.json_len, &alone, state, &s->record, now_ms - step_ms, e) < 0)
		return -1;
	decide_clock_was_set(binding->policy, state, step_ms);
	status_record_clock_was_set(&s->record, step_ms);
	return 1;
}

int policy_status_recall(struct policy_status *s, const struct binding *binding, void *state, int64_t now_ms,
                         struct err *e)
{
	char name[STATE_FILE_NAME_BYTES];
	struct buf text;
	status_record_done(&s->record);
	s->record.replicas = -1;
	s->is_recorded = false;
	if (state_file_name(name, binding, e) < 0)
		return 0; // the name is too long, so no file exists; the error is reported when the state is saved
	buf_init(&text, STATE_FILE_BYTES_MAX);
	int rc = state_dir_read(s->env->dir, name, &text, e);
	if (rc > 0)
		rc = restore_text(s, &text, binding, state, now_ms, e);
	buf_done(&text);
	s->is_recorded = s->record.replicas >= 0;
	if (rc >= 0)
		return rc;
	if (e->kind != ERR_CONFLICT) // the policy had state before
		decide_record_last_scale(binding->policy, state, now_ms);
	return err_wrap(e, "%.255s", name);
}

// Returns whether a policy in this phase has ticks, and its target is observed.
static bool is_in_force(enum status_phase phase)
{
	return phase != STATUS_CONFLICT && phase != STATUS_INVALID;
}

static void on_written(void *arg, const struct err *error);

// status: {"status":{..}}.
static void put_file(struct policy_status *s, const struct binding *binding, const char *status)
{
	char name[STATE_FILE_NAME_BYTES];
	struct state_clock now;
	struct buf text;
	struct err e;
	clock_now(s->env, &now);
	buf_init(&text, STATE_FILE_BYTES_MAX);
	state_file_write(&text, binding, &now, status);
	int rc = state_file_name(name, binding, &e);
	if (rc == 0 && text.failed)
		rc = err_set(&e, ERR_LIMIT, "the state has more than %d bytes", STATE_FILE_BYTES_MAX);
	if (rc == 0)
		state_dir_put(s->env->dir, &s->file, name, buf_str(&text), text.len, on_written, s);
	buf_done(&text);
	if (rc < 0)
		on_written(s, &e);
}

void policy_status_begin(struct policy_status *s, const struct binding *binding, int32_t replicas,
                         policy_status_begun_fn *done, void *arg)
{
	struct buf status;
	buf_init(&status, STATUS_BYTES_MAX);
	status_doc_write_replicas(&status, NULL, replicas, 0);
	s->begun = done;
	s->begun_arg = arg;
	put_file(s, binding, buf_str(&status));
	buf_done(&status);
}

void policy_status_forget(struct policy_status *s, const struct binding *binding)
{
	if (s->env->dir) {
		char name[STATE_FILE_NAME_BYTES];
		struct err unused;
		state_slot_cancel(&s->file);
		if (state_file_name(name, binding, &unused) == 0)
			state_dir_remove(s->env->dir, name);
	} else if (s->key) {
		char path[POLICY_STATUS_PATH_BYTES];
		struct buf body;
		buf_init(&body, STATUS_BYTES_MAX);
		policy_status_path(s, "/status", path);
		status_doc_write_removal(&body, s->key);
		status_writer_put_last(s->env->writer, &s->slot, path, buf_str(&body));
		buf_done(&body);
	}
}

// ---- what is known ----

void policy_status_clock_was_set(struct policy_status *s, int64_t step_ms)
{
	s->past.written_ms += s->past.written_ms != 0 ? step_ms : 0;
	status_record_clock_was_set(&s->record, step_ms);
}

bool policy_status_is_emptied(const struct policy_status *s)
{
	size_t i = s->record.n_decisions;
	while (i > 0 && s->record.decisions[i - 1].to == 0 &&
	       !decide_reason_is_of_pool(s->record.decisions[i - 1].reason))
		i--;
	return i > 0 && s->record.decisions[i - 1].to == 0;
}

// ---- has something changed? ----
// A collision delays one patch by a tick.

static uint64_t hash_i64(uint64_t h, int64_t v)
{
	return hash_bytes(h, &v, sizeof v);
}

static uint64_t hash_variants(uint64_t h, const struct decided *decided)
{
	for (size_t i = 0; i < decided->n_variants; i++) {
		const struct decided_variant *v = &decided->variants[i];
		const int32_t numbers[] = {v->current, v->ready, v->desired};
		h = hash_text(hash_bytes(h, numbers, sizeof numbers), v->reason);
	}
	return h;
}

// Adds the states of the signals, and what only the message of a condition states: how many replicas have no room or
// are on failing GPUs, and why a pool is held.
static uint64_t hash_details(uint64_t h, const struct decided *decided)
{
	const struct decision *d = decided->decision;
	for (size_t i = 0; i < d->n_signals; i++)
		h = hash_i64(h, (int64_t)d->signals[i].state << 32 | d->signals[i].reason);
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *t = decision_entry(d, i);
		if (t->stage == STAGE_CAPACITY || t->reason == REASON_UNHEALTHY_REPLICAS ||
		    t->reason == REASON_UNHEALTHY_REPLACED)
			h = hash_i64(h, t->count);
		else if (t->reason == REASON_POOL_HELD && decided->pool)
			h = hash_text(h, decided->pool);
	}
	return hash_variants(h, decided);
}

// Returns a fingerprint of everything that determines the status, except the values of the signals. Cheap, because most
// ticks change nothing.
static uint64_t seen_of(const struct status_update *u)
{
	uint64_t h = hash_i64(HASH_START, u->generation);
	h = hash_i64(h, (int64_t)u->facts.phase << 2 | (int64_t)u->facts.dry_run << 1 | u->facts.paused);
	const char *const texts[] = {u->facts.text, u->facts.fault, u->facts.conflict, u->facts.watch_error};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		h = texts[i] ? hash_text(h, texts[i]) : hash_i64(h, 0);
	if (!u->facts.decided)
		return h;
	const struct decision *d = u->facts.decided->decision;
	const int64_t numbers[] = {d->current, d->desired, d->ready, d->action, d->reason};
	h = hash_bytes(h, numbers, sizeof numbers);
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *t = decision_entry(d, i);
		const int32_t step[] = {(int32_t)t->reason, t->signal, t->before, t->after};
		h = hash_bytes(h, step, sizeof step);
	}
	return hash_details(h, u->facts.decided);
}

static uint64_t major_of(const struct policy_status *s, const struct status_update *u,
                         const struct condition *conditions)
{
	uint64_t h = hash_i64(HASH_START, u->generation);
	if (s->env->is_scaled_object)
		h = hash_i64(h, scaled_object_is_active(&u->facts) << 1 | scaled_object_is_in_fallback(&u->facts));
	for (int i = 0; i < CONDITION_OBJECTIVE_NOT_REACHABLE; i++) // that one comes and goes with the demand
		h = hash_i64(h, conditions[i].status);
	if (u->facts.decided) {
		const struct decision *d = u->facts.decided->decision;
		h = hash_i64(hash_i64(h, u->facts.phase == STATUS_SCALED ? d->desired : d->current), d->desired);
		h = hash_variants(h, u->facts.decided);
	}
	h = hash_text(h, u->facts.text ? u->facts.text : "");
	h = hash_text(h, u->facts.fault ? u->facts.fault : "");
	return u->binding ? hash_i64(h, decide_last_scale_ms(u->binding->policy, u->state)) : h;
}

static uint64_t minor_of(const struct status_update *u, const struct condition *conditions)
{
	uint64_t h = HASH_START;
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++)
		h = hash_text(h, conditions[i].reason);
	if (u->facts.decided) {
		const struct decision *d = u->facts.decided->decision;
		h = hash_i64(hash_i64(hash_i64(h, d->action), d->reason), d->ready);
		h = hash_details(h, u->facts.decided);
	}
	if (u->binding) { // the next process needs the recommendations
		struct decide_recommendation all[2 * DECIDE_HISTORY_MAX];
		size_t n = decide_recommendations(u->binding->policy, u->state, all, 2 * DECIDE_HISTORY_MAX);
		if (n > 0)
			h = hash_i64(h, all[n - 1].replicas);
	}
	return h;
}

static bool signals_moved(const struct policy_status *s, const struct status_update *u)
{
	if (!u->facts.decided)
		return false;
	const struct decision *d = u->facts.decided->decision;
	if (d->n_signals != s->n_values)
		return true;
	for (size_t i = 0; i < d->n_signals; i++) {
		double was = s->values[i], is = d->signals[i].value;
		if (isnan(was) != isnan(is) || (!isnan(is) && fabs(is - was) > STATUS_MOVED * fabs(was)))
			return true;
	}
	return false;
}

static void note_signals(struct policy_status *s, const struct status_update *u)
{
	if (!u->facts.decided)
		return;
	const struct decision *d = u->facts.decided->decision;
	if (d->n_signals != s->n_values) {
		s->values = must_alloc(realloc(s->values, (d->n_signals ? d->n_signals : 1) * sizeof *s->values));
		s->n_values = d->n_signals;
	}
	for (size_t i = 0; i < d->n_signals; i++)
		s->values[i] = d->signals[i].value;
}

// ---- writing ----

void policy_status_failed(const struct policy_status *s, const struct err *error)
{
	if (error->kind == ERR_NOT_FOUND && s->env->on_missing)
		s->env->on_missing(s->env->arg, s->namespace_name, s->name);
}

static void on_written(void *arg, const struct err *error)
{
	struct policy_status *s = arg;
	policy_status_begun_fn *begun = s->begun;
	s->begun = NULL;
	free(s->error);
	s->error = error ? strdup(error->msg) : NULL;
	s->past.failed = error != NULL;
	if (!error)
		s->is_recorded = is_in_force(s->written_phase); // else the write removed the numbers
	else
		policy_status_failed(s, error);
	if (begun)
		begun(s->begun_arg);
}

static void put(struct policy_status *s, const struct status_update *u, const struct condition *conditions)
{
	struct buf body, state;
	char path[POLICY_STATUS_PATH_BYTES];
	buf_init(&body, STATUS_BYTES_MAX);
	buf_init(&state, STATUS_BYTES_MAX);
	status_doc_write(&body, &(struct status_doc){.facts = &u->facts,
	                                             .conditions = conditions,
	                                             .record = &s->record,
	                                             .policy = u->binding ? u->binding->policy : NULL,
	                                             .state = u->state,
	                                             .generation = u->generation,
	                                             .now_ms = u->now_ms,
	                                             .key = s->key});
	if (s->env->is_scaled_object) {
		state = body;
		buf_init(&body, SCALED_OBJECT_BYTES_MAX);
		scaled_object_doc_write(&body,
		                        &(struct scaled_object_doc){.facts = &u->facts,
		                                                    .conditions = conditions,
		                                                    .binding = u->binding,
		                                                    .state = u->binding ? buf_str(&state) : NULL});
		body.failed |= state.failed;
	}
	policy_status_path(s, "/status", path);
	status_past_write(&s->past, s->major, s->minor, u->now_ms);
	s->record.has_objective_record |= u->binding && u->binding->policy->objective.set;
	s->record.has_variants |= u->binding && u->binding->variants;
	s->written_phase = u->facts.phase;
	if (!body.failed && s->env->dir) {
		put_file(s, u->binding, buf_str(&body));
	} else if (!body.failed) {
		status_writer_put(s->env->writer, &s->slot, path, buf_str(&body), on_written, s);
	} else {
		struct err e;
		err_set(&e, ERR_LIMIT, "the status has more than %d bytes", STATUS_BYTES_MAX);
		on_written(s, &e);
	}
	buf_done(&body);
	buf_done(&state);
}

// ---- Events ----

static void record_event(const struct policy_status *s, const char *type, const char *reason, const char *message)
{
	if (!s->env->events)
		return;
	struct event_object object = {POLICY_API_VERSION, POLICY_KIND, s->namespace_name, s->name, s->uid};
	if (s->env->is_scaled_object) {
		object.api_version = autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].group_version;
		object.kind = autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].name;
	}
	char text[RENDER_SENTENCE_BYTES + 64 + KEY_BYTES];
	if (s->key) // the Events of all bindings are those of one object
		snprintf(text, sizeof text, "%s: %s", s->key, message);
	event_recorder_record(s->env->events, &object, type, reason, s->key ? text : message);
}

// Records Events about scales, and about what prevents them.
static void record_phase_events(struct policy_status *s, const struct status_update *u)
{
	const char *text = u->facts.text ? u->facts.text : "";
	if (u->facts.phase == STATUS_SCALED) { // one Event per scale
		const struct decision *d = u->facts.decided->decision;
		char message[RENDER_SENTENCE_BYTES + 64], why[RENDER_SENTENCE_BYTES];
		explain_message(u->facts.decided, why);
		snprintf(message, sizeof message, "scaled from %d to %d replicas: %s", d->current, d->desired, why);
		record_event(s, "Normal", "SuccessfulRescale", message);
	}
	if (u->facts.phase != s->phase) {
		static const char *const failures[STATUS_PHASE__COUNT] = {
		        [STATUS_WRITE_FAILED] = "FailedRescale",
		        [STATUS_READ_FAILED] = "FailedGetScale",
		        [STATUS_CONFLICT] = "Conflict",
		        [STATUS_INVALID] = "InvalidPolicy",
		};
		if (failures[u->facts.phase])
			record_event(s, "Warning", failures[u->facts.phase], text);
		else if (s->phase == STATUS_CONFLICT)
			record_event(s, "Normal", "ConflictResolved", "the policy drives the target again");
		else if (s->phase == STATUS_READ_FAILED)
			record_event(s, "Normal", "TargetFound", "the target can be read again");
	}
	s->phase = u->facts.phase;
	if (u->facts.fault && !s->has_fault)
		record_event(s, "Warning", "InvalidPolicy", u->facts.fault);
	s->has_fault = u->facts.fault != NULL;
}

static void record_condition_events(const struct policy_status *s, const struct condition *now)
{
	const enum condition_status *was = s->record.condition;
	const struct condition *objective = &now[CONDITION_OBJECTIVE_NOT_REACHABLE];
	bool is_missed = objective->status == CONDITION_TRUE,
	     was_missed = was[CONDITION_OBJECTIVE_NOT_REACHABLE] == CONDITION_TRUE;
	if (is_missed != was_missed && objective->status != CONDITION_UNKNOWN)
		record_event(s, is_missed ? "Warning" : "Normal", objective->reason, objective->message);
	const struct condition *active = &now[CONDITION_SCALING_ACTIVE];
	bool decided = s->phase == STATUS_DECIDED || s->phase == STATUS_SCALED || s->phase == STATUS_WRITE_FAILED;
	if (decided && active->status == CONDITION_FALSE && was[CONDITION_SCALING_ACTIVE] != CONDITION_FALSE)
		record_event(s, "Warning", active->reason, active->message);
	if (decided && active->status == CONDITION_TRUE && was[CONDITION_SCALING_ACTIVE] == CONDITION_FALSE)
		record_event(s, "Normal", "SignalsRestored", "the signals can be read again");
	if (now[CONDITION_PAUSED].status != was[CONDITION_PAUSED] && was[CONDITION_PAUSED] != CONDITION_UNKNOWN)
		record_event(s, "Normal", now[CONDITION_PAUSED].status == CONDITION_TRUE ? "Paused" : "Resumed",
		             now[CONDITION_PAUSED].status == CONDITION_TRUE ? "the target stays as it is"
		                                                            : "the target follows its signals again");
}

// Records a decision with another reason or result than the last one; as an Event, when it is a warning that no
// condition reports.
static void note_decision(struct policy_status *s, const struct status_update *u, const struct condition *now)
{
	if (!u->facts.decided)
		return;
	const struct decision *d = u->facts.decided->decision;
	size_t n = s->record.n_decisions;
	enum reason reason = n > 0 ? s->record.decisions[n - 1].reason : REASON_NONE; // of the last decision
	int32_t desired = n > 0 ? s->record.decisions[n - 1].to : -1;
	if (d->reason == reason && d->desired == desired)
		return;
	char message[RENDER_SENTENCE_BYTES];
	explain_message(u->facts.decided, message);
	status_record_add(&s->record, d->time_ms, d->action, d->reason, d->current, d->desired, message);
	const struct reason_info *info = reason_info(d->reason);
	bool is_reported = strcmp(info->name, now[CONDITION_SCALING_ACTIVE].reason) == 0 ||
	                   now[CONDITION_SCALING_ACTIVE].status == CONDITION_FALSE;
	if (d->reason != reason && strcmp(info->event_type, "Warning") == 0 && !is_reported)
		record_event(s, info->event_type, info->name, message);
	if (u->facts.dry_run && d->desired != d->current && d->desired != desired)
		record_event(s, "Normal", "DryRun", message);
	bool is_limited_by_others = d->reason >= REASON_POOL_LIMITED && d->reason <= REASON_WAITING_FOR_GPUS;
	if (d->reason != reason && (d->reason == REASON_TOO_MANY_REPLICAS || is_limited_by_others))
		record_event(s, "Normal", info->name, message);
}

// Returns why the contents of the last update are written, deferred or skipped.
static enum status_reason schedule(const struct policy_status *s, const struct status_update *u,
                                   enum status_extra extra)
{
	static const struct status_pace pace = {
	        .retry_ms = STATUS_RETRY_MS, .minor_ms = STATUS_MINOR_MS, .refresh_ms = STATUS_SIGNALS_MS};
	struct status_offer offer = {
	        .pace = &pace, .past = &s->past, .major = s->major, .minor = s->minor, .extra = extra};
	if (!s->env->dir && is_in_force(u->facts.phase)) {
		offer.room = status_writer_room(s->env->writer, &s->slot);
		offer.next = STATUS_NEXT_TICK;
		if (u->facts.phase == STATUS_SCALED && s->is_recorded)
			offer.next = u->binding->policy->interval_ms <= STATUS_SOON_MS ? STATUS_NEXT_SOON
			                                                               : STATUS_NEXT_SCALED;
	}
	return status_schedule(&offer, u->now_ms);
}

static enum status_extra extra_of(const struct policy_status *s, const struct status_update *u)
{
	if (s->written_phase == STATUS_SCALED && u->facts.phase == STATUS_DECIDED)
		return STATUS_EXTRA_CATCH_UP;
	// The next process measures signals itself, so a file does not need them.
	return !s->env->dir && signals_moved(s, u) ? STATUS_EXTRA_REFRESH : STATUS_EXTRA_NONE;
}

void policy_status_update(struct policy_status *s, const struct status_update *u)
{
	struct condition conditions[CONDITION_TYPE__COUNT];
	uint64_t seen = hash_i64(seen_of(u), s->env->is_scaled_object && scaled_object_is_active(&u->facts));
	enum status_extra extra = extra_of(s, u);
	if (s->env->dir && !u->binding)
		return; // nothing to save; the file keeps the earlier state
	if (seen == s->seen && u->facts.phase != STATUS_SCALED && schedule(s, u, extra) == STATUS_UNCHANGED)
		return;
	s->seen = seen;
	status_conditions(&u->facts, conditions);
	record_phase_events(s, u);
	record_condition_events(s, conditions);
	note_decision(s, u, conditions);
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++) {
		if (s->record.since_ms[i] != 0 && s->record.condition[i] == conditions[i].status)
			continue;
		s->record.condition[i] = conditions[i].status;
		s->record.since_ms[i] = u->now_ms;
	}
	s->major = major_of(s, u, conditions);
	s->minor = minor_of(u, conditions);
	enum status_action action = status_reasons[schedule(s, u, extra)].action;
	if (s->env->is_read_only)
		return;
	if (action == STATUS_WRITE) {
		note_signals(s, u);
		put(s, u, conditions);
	} else if (action == STATUS_LATER) {
		s->past.is_deferred = true;
		status_writer_defer(s->env->writer, &s->slot);
	}
}

void policy_status_flush(struct policy_status *s, const struct status_update *u)
{
	struct condition conditions[CONDITION_TYPE__COUNT];
	if (s->env->is_read_only || schedule(s, u, STATUS_EXTRA_NONE) == STATUS_UNCHANGED)
		return;
	status_conditions(&u->facts, conditions);
	put(s, u, conditions);
}
