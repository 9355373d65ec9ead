// SPDX-License-Identifier: Apache-2.0
#include "controller/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/status_doc.h"
#include "controller/status_writer.h"
#include "k8s/event_recorder.h"
#include "policies/decide.h"
#include "policies/policy.h"
#include "policies/policy_schema.h"

#define PATH_BYTES 700 // namespace and name have at most 253 each

struct policy_status {
	const struct status_env *env;
	char *namespace_name, *name, *uid;
	struct status_record record;
	struct status_slot slot;
	uint64_t seen; // fingerprint of the last update: an equal one has nothing new to say
	// What the last patch said, as fingerprints; 0 = nothing yet.
	uint64_t major, minor;
	bool is_due;    // something minor waits for its turn
	bool is_ahead;  // the last patch has the replicas of a scale beside the signals that led to it
	double *values; // of the signals, when it was made; owned
	size_t n_values;
	int64_t put_ms;
	bool failed;   // it was not written
	bool is_there; // one was, and says what the target is asked for as far as that is known
	bool is_wiped; // the last one says that it is not
	char *error;   // owned; NULL: none
	// For Events.
	enum status_phase phase;
	enum reason reason; // of the last decision
	int32_t desired;
	bool has_fault;
};

struct policy_status *policy_status_new(const struct status_env *env, const char *namespace_name, const char *name,
                                        const char *uid)
{
	struct policy_status *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->env = env;
	s->namespace_name = strdup(namespace_name);
	s->name = strdup(name);
	s->uid = strdup(uid);
	s->desired = -1;
	s->record.replicas = -1;
	if (s->namespace_name && s->name && s->uid)
		return s;
	policy_status_free(s);
	return NULL;
}

void policy_status_free(struct policy_status *s)
{
	if (!s)
		return;
	status_slot_cancel(&s->slot);
	status_record_done(&s->record);
	free(s->values);
	free(s->error);
	free(s->namespace_name);
	free(s->name);
	free(s->uid);
	free(s);
}

int policy_status_restore(struct policy_status *s, const char *json, size_t len, const struct policy *policy,
                          void *state, int64_t now_ms, struct err *e)
{
	status_record_done(&s->record);
	if (status_doc_read(json, len, policy, state, &s->record, now_ms, e) < 0)
		return -1;
	s->is_there = s->record.replicas >= 0;
	if (s->record.n_decisions > 0) {
		const struct status_decision *last = &s->record.decisions[s->record.n_decisions - 1];
		s->reason = last->reason;
		s->desired = last->to;
	}
	return 0;
}

int32_t policy_status_replicas(const struct policy_status *s)
{
	return s->record.replicas;
}

bool policy_status_is_unsure(const struct policy_status *s)
{
	return s->record.is_unsure;
}

bool policy_status_is_there(const struct policy_status *s)
{
	return s->is_there;
}

const char *policy_status_error(const struct policy_status *s)
{
	return s->error ? s->error : "";
}

// ---- has something changed? ----

// FNV-1a. A collision costs one patch that comes a tick later.
static uint64_t mix(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static uint64_t mix_i64(uint64_t h, int64_t v)
{
	return mix(h, &v, sizeof v);
}

#define MIX_START 14695981039346656037u

// Everything that conditions, reasons and numbers of a status follow from, the values of the signals left out. Cheap:
// most ticks end here.
static uint64_t seen_of(const struct status_update *u)
{
	uint64_t h = mix_i64(MIX_START, u->generation);
	h = mix_i64(h, (int64_t)u->facts.phase << 2 | (int64_t)u->facts.dry_run << 1 | u->facts.paused);
	const char *const texts[] = {u->facts.text, u->facts.fault};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		h = texts[i] ? mix(h, texts[i], strlen(texts[i]) + 1) : mix_i64(h, 0);
	if (!u->facts.decided)
		return h;
	const struct decision *d = u->facts.decided->decision;
	const int64_t numbers[] = {d->current, d->desired, d->ready, d->action, d->reason};
	h = mix(h, numbers, sizeof numbers);
	for (size_t i = 0; i < d->n_signals; i++)
		h = mix_i64(h, (int64_t)d->signals[i].state << 32 | d->signals[i].reason);
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *t = &d->trace[i];
		const int32_t step[] = {(int32_t)t->reason, t->signal, t->before, t->after};
		h = mix(h, step, sizeof step);
	}
	return h;
}

static uint64_t major_of(const struct status_update *u, const struct condition *conditions)
{
	uint64_t h = mix_i64(MIX_START, u->generation);
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++)
		h = mix_i64(h, conditions[i].status);
	if (u->facts.decided) {
		const struct decision *d = u->facts.decided->decision;
		h = mix_i64(mix_i64(h, u->facts.phase == STATUS_SCALED ? d->desired : d->current), d->desired);
	}
	if (u->facts.text)
		h = mix(h, u->facts.text, strlen(u->facts.text));
	if (u->facts.fault)
		h = mix(h, u->facts.fault, strlen(u->facts.fault));
	return u->policy ? mix_i64(h, decide_last_scale_ms(u->policy, u->state)) : h;
}

static uint64_t minor_of(const struct status_update *u, const struct condition *conditions)
{
	uint64_t h = MIX_START;
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++)
		h = mix(h, conditions[i].reason, strlen(conditions[i].reason));
	if (u->facts.decided) {
		const struct decision *d = u->facts.decided->decision;
		h = mix_i64(mix_i64(mix_i64(h, d->action), d->reason), d->ready);
		for (size_t i = 0; i < d->n_signals; i++)
			h = mix_i64(mix_i64(h, d->signals[i].state), d->signals[i].reason);
	}
	if (u->policy) { // the next process must know what was recommended
		struct decide_recommendation all[2 * DECIDE_HISTORY_MAX];
		size_t n = decide_recommendations(u->policy, u->state, all, 2 * DECIDE_HISTORY_MAX);
		if (n > 0)
			h = mix_i64(h, all[n - 1].replicas);
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
		double *values = realloc(s->values, (d->n_signals ? d->n_signals : 1) * sizeof *values);
		if (!values)
			abort();
		s->values = values;
		s->n_values = d->n_signals;
	}
	for (size_t i = 0; i < d->n_signals; i++)
		s->values[i] = d->signals[i].value;
}

// ---- writing ----

static void on_written(void *arg, const struct err *error)
{
	struct policy_status *s = arg;
	free(s->error);
	s->error = error ? strdup(error->msg) : NULL;
	s->failed = error != NULL;
	if (!error)
		s->is_there = !s->is_wiped;
}

static void put(struct policy_status *s, const struct status_update *u, const struct condition *conditions)
{
	struct buf body;
	char path[PATH_BYTES];
	buf_init(&body, STATUS_BYTES_MAX);
	status_doc_write(&body, &(struct status_doc){.facts = &u->facts,
	                                             .conditions = conditions,
	                                             .record = &s->record,
	                                             .policy = u->policy,
	                                             .state = u->state,
	                                             .generation = u->generation,
	                                             .now_ms = u->now_ms});
	snprintf(path, sizeof path, "/apis/" POLICY_API_VERSION "/namespaces/%s/gpuautoscalers/%s/status",
	         s->namespace_name, s->name);
	s->failed = false;
	s->is_ahead = u->facts.phase == STATUS_SCALED;
	s->is_wiped = u->facts.phase == STATUS_CONFLICT;
	if (!body.failed) {
		status_writer_put(s->env->writer, &s->slot, path, buf_str(&body), on_written, s);
	} else {
		struct err e;
		err_set(&e, ERR_LIMIT, "the status has more than %d bytes", STATUS_BYTES_MAX);
		on_written(s, &e);
	}
	buf_done(&body);
	s->put_ms = u->now_ms;
}

// ---- Events ----

static void say(const struct policy_status *s, const char *type, const char *reason, const char *message)
{
	if (!s->env->events)
		return;
	struct event_object object = {POLICY_API_VERSION, POLICY_KIND, s->namespace_name, s->name, s->uid};
	event_recorder_record(s->env->events, &object, type, reason, message);
}

// What happened to the target, and what keeps it from happening.
static void say_phase(struct policy_status *s, const struct status_update *u)
{
	const char *text = u->facts.text ? u->facts.text : "";
	if (u->facts.phase == STATUS_SCALED) { // each one is news
		const struct decision *d = u->facts.decided->decision;
		char message[RENDER_SENTENCE_BYTES + 64], why[RENDER_SENTENCE_BYTES];
		render_message(u->facts.decided, why);
		snprintf(message, sizeof message, "scaled from %d to %d replicas: %s", d->current, d->desired, why);
		say(s, "Normal", "SuccessfulRescale", message);
	}
	if (u->facts.phase != s->phase) {
		static const char *const failures[STATUS_PHASE__COUNT] = {
		        [STATUS_WRITE_FAILED] = "FailedRescale",
		        [STATUS_READ_FAILED] = "FailedGetScale",
		        [STATUS_CONFLICT] = "Conflict",
		        [STATUS_INVALID] = "InvalidPolicy",
		};
		if (failures[u->facts.phase])
			say(s, "Warning", failures[u->facts.phase], text);
		else if (s->phase == STATUS_CONFLICT)
			say(s, "Normal", "ConflictResolved", "nobody else drives the target any more");
		else if (s->phase == STATUS_READ_FAILED)
			say(s, "Normal", "TargetFound", "the target can be read again");
	}
	s->phase = u->facts.phase;
	if (u->facts.fault && !s->has_fault)
		say(s, "Warning", "InvalidPolicy", u->facts.fault);
	s->has_fault = u->facts.fault != NULL;
}

static void say_conditions(const struct policy_status *s, const struct condition *now)
{
	const enum condition_status *was = s->record.condition;
	const struct condition *active = &now[CONDITION_SCALING_ACTIVE];
	bool decided = s->phase == STATUS_DECIDED || s->phase == STATUS_SCALED || s->phase == STATUS_WRITE_FAILED;
	if (decided && active->status == CONDITION_FALSE && was[CONDITION_SCALING_ACTIVE] != CONDITION_FALSE)
		say(s, "Warning", active->reason, active->message);
	if (decided && active->status == CONDITION_TRUE && was[CONDITION_SCALING_ACTIVE] == CONDITION_FALSE)
		say(s, "Normal", "SignalsRestored", "the signals can be read again");
	if (now[CONDITION_PAUSED].status != was[CONDITION_PAUSED] && was[CONDITION_PAUSED] != CONDITION_UNKNOWN)
		say(s, "Normal", now[CONDITION_PAUSED].status == CONDITION_TRUE ? "Paused" : "Resumed",
		    now[CONDITION_PAUSED].status == CONDITION_TRUE ? "the target stays as it is"
		                                                   : "the target follows its signals again");
}

// A decision with another reason or result than the last: kept, and said when it is a warning nobody else speaks of.
static void note_decision(struct policy_status *s, const struct status_update *u, const struct condition *now)
{
	if (!u->facts.decided)
		return;
	const struct decision *d = u->facts.decided->decision;
	if (d->reason == s->reason && d->desired == s->desired && s->record.n_decisions > 0)
		return;
	char message[RENDER_SENTENCE_BYTES];
	render_message(u->facts.decided, message);
	status_record_add(&s->record, d->time_ms, d->action, d->reason, d->current, d->desired, message);
	const struct reason_info *info = reason_info(d->reason);
	bool is_said = strcmp(info->name, now[CONDITION_SCALING_ACTIVE].reason) == 0 ||
	               now[CONDITION_SCALING_ACTIVE].status == CONDITION_FALSE;
	if (d->reason != s->reason && strcmp(info->event_type, "Warning") == 0 && !is_said)
		say(s, info->event_type, info->name, message);
	if (u->facts.dry_run && d->desired != d->current && d->desired != s->desired)
		say(s, "Normal", "DryRun", message);
	if (d->reason != s->reason && d->reason == REASON_TOO_MANY_REPLICAS)
		say(s, "Normal", info->name, message);
	s->reason = d->reason;
	s->desired = d->desired;
}

void policy_status_update(struct policy_status *s, const struct status_update *u)
{
	struct condition conditions[CONDITION_TYPE__COUNT];
	uint64_t seen = seen_of(u);
	int64_t since_put_ms = u->now_ms - s->put_ms;
	bool moved = since_put_ms >= STATUS_SIGNALS_MS && signals_moved(s, u);
	// The first decision after a scale is shown whatever it says: the new replicas, and what was seen with them.
	bool catches_up = s->is_ahead && u->facts.phase == STATUS_DECIDED;
	if (seen == s->seen && u->facts.phase != STATUS_SCALED && !s->is_due && !s->failed && !moved && !catches_up)
		return;
	s->seen = seen;
	status_conditions(&u->facts, conditions);
	say_phase(s, u);
	say_conditions(s, conditions);
	note_decision(s, u, conditions);
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++) {
		if (s->record.since_ms[i] != 0 && s->record.condition[i] == conditions[i].status)
			continue;
		s->record.condition[i] = conditions[i].status;
		s->record.since_ms[i] = u->now_ms;
	}
	uint64_t major = major_of(u, conditions), minor = minor_of(u, conditions);
	s->is_due = minor != s->minor;
	if (major == s->major && !moved && !catches_up && !(s->is_due && since_put_ms >= STATUS_MINOR_MS) &&
	    !(s->failed && since_put_ms >= STATUS_RETRY_MS))
		return;
	s->is_due = false;
	s->major = major;
	s->minor = minor;
	note_signals(s, u);
	put(s, u, conditions);
}
