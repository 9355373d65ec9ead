// SPDX-License-Identifier: Apache-2.0
// One evaluation: ask -> match the answer with the records -> read, warn or scale one workload after the other -> write
// the status. Without an answer, nothing changes: the rule holds.
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/process/log.h"
#include "controller/idle/idle_rules_private.h"
#include "k8s/cache/conflict_watch.h"
#include "k8s/events/event_recorder.h"
#include "policies/price/price_book.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql.h"

#define TEXT_BYTES     1024
#define MONTH_HOURS    730
#define SINCE_SLACK_MS INT64_C(120000)

static void proceed(struct idle_rules *all);

static const char *currency_of(const struct idle_rules *all)
{
	const struct price_book *book = all->options.prices(all->options.arg);
	return book ? book->currency : "";
}

static bool may_write(const struct idle_rules *all, const struct idle_entry *e)
{
	return e->is_object && all->options.writer && all->options.may_act(all->options.arg);
}

static void finish(struct idle_rules *all)
{
	struct idle_evaluation *v = &all->evaluation;
	struct idle_entry *e = v->entry;
	for (int i = 0; i < IDLE_ASK__COUNT; i++) {
		if (v->answers[i].kept)
			all->options.release(v->answers[i].kept);
		v->answers[i] = (struct idle_answer){0};
	}
	for (size_t i = 0; i < e->n; i++)
		e->records[i].found = NULL;
	idle_workloads_done(&v->found);
	v->entry = NULL;
	if (!all->is_closing && !e->is_gone && may_write(all, e))
		idle_status_write(e, currency_of(all), v->now_ms);
	idle_entry_finished(e);
}

// ---- Events ----

static void record_event(const struct idle_rules *all, const struct event_object *object, const char *type,
                         const char *reason, struct buf *text)
{
	if (all->options.events && all->options.may_act(all->options.arg))
		event_recorder_record(all->options.events, object, type, reason, buf_str(text));
	buf_done(text);
}

// One Event for all workloads that are newly idle, because Events of one reason are counted as one.
static void report(const struct idle_rules *all, const struct idle_record *first, size_t n_new)
{
	const struct idle_entry *e = all->evaluation.entry;
	const struct event_object object = {POLICY_API_VERSION, IDLE_RULE_KIND, "", e->key + 1, e->uid};
	struct buf text;
	if (n_new == 0)
		return;
	buf_init(&text, TEXT_BYTES);
	buf_printf(&text, "%zu workloads hold %.6g idle GPUs: %.2f %s per month. New: ", e->n_found, e->gpus,
	           e->per_hour * MONTH_HOURS, currency_of(all));
	idle_put_id(&text, first);
	if (n_new > 1)
		buf_printf(&text, " and %zu more", n_new - 1);
	LOG(all->options.log, LOG_INFO, "Workloads are idle", LOG_S("rule", e->key + 1),
	    LOG_I("workloads", (int64_t)e->n_found), LOG_I("new", (int64_t)n_new), LOG_S("summary", buf_str(&text)));
	if (e->is_object)
		record_event(all, &object, "Normal", "GPUsIdle", &text);
	else
		buf_done(&text);
}

// About the workload, so that its owner sees it.
static void notify(const struct idle_rules *all, const struct idle_record *r, const char *uid, const char *type,
                   const char *reason, struct buf *text)
{
	const struct event_object object = {"apps/v1", r->kind, r->namespace_name, r->name, uid};
	record_event(all, &object, type, reason, text);
}

static void set_state(struct idle_record *r, enum idle_state state, int64_t now_ms, const char *message)
{
	if (r->state != state)
		r->changed_ms = now_ms;
	if (state != IDLE_WARNED && state != IDLE_SCALING)
		r->warned_ms = 0;
	r->is_announced = r->is_recorded = false;
	r->state = state;
	snprintf(r->message, sizeof r->message, "%s", message);
}

static void warn(struct idle_rules *all, struct idle_record *r, const struct idle_object *o)
{
	const struct idle_entry *e = all->evaluation.entry;
	struct buf text;
	buf_init(&text, TEXT_BYTES);
	buf_printf(&text,
	           "All pods hold idle GPUs: %.6g GPUs, %.2f %s per month. Rule %s will scale it from %d to %d "
	           "replicas in "
	           "%lld minutes, unless it works or is annotated " IDLE_ANNOTATION "=exempt",
	           r->gpus, r->per_hour * MONTH_HOURS, currency_of(all), e->key + 1, o->facts.replicas,
	           e->rule.replicas, (long long)((e->rule.grace_ms + 59999) / 60000));
	set_state(r, IDLE_WARNED, all->evaluation.now_ms, "");
	r->warned_ms = all->evaluation.now_ms;
	r->replicas = o->facts.replicas;
	LOG(all->options.log, LOG_WARNING, "Idle workload will be scaled", LOG_S("rule", e->key + 1),
	    LOG_S("namespace", r->namespace_name), LOG_S("kind", r->kind), LOG_S("name", r->name),
	    LOG_I("graceSeconds", e->rule.grace_ms / 1000));
	notify(all, r, o->uid, "Warning", "IdleScaleDown", &text);
}

static void note_scaled(struct idle_rules *all, struct idle_record *r, const char *uid)
{
	const struct idle_entry *e = all->evaluation.entry;
	struct buf text;
	buf_init(&text, TEXT_BYTES);
	buf_printf(&text,
	           "Rule %s scaled it from %d to %d replicas, because its GPUs were idle. To bring them back: annotate "
	           "it " IDLE_ANNOTATION "=restore, or scale it",
	           e->key + 1, r->replicas, e->rule.replicas);
	set_state(r, IDLE_SCALED, all->evaluation.now_ms, "");
	LOG(all->options.log, LOG_INFO, "Idle workload scaled", LOG_S("rule", e->key + 1),
	    LOG_S("namespace", r->namespace_name), LOG_S("kind", r->kind), LOG_S("name", r->name),
	    LOG_I("from", r->replicas), LOG_I("to", e->rule.replicas));
	notify(all, r, uid, "Normal", "IdleScaledDown", &text);
}

static void note_restored(struct idle_rules *all, struct idle_record *r, const char *uid)
{
	const struct idle_entry *e = all->evaluation.entry;
	struct buf text;
	buf_init(&text, TEXT_BYTES);
	buf_printf(&text, "Rule %s restored %d replicas", e->key + 1, r->replicas);
	LOG(all->options.log, LOG_INFO, "Workload restored", LOG_S("rule", e->key + 1),
	    LOG_S("namespace", r->namespace_name), LOG_S("kind", r->kind), LOG_S("name", r->name),
	    LOG_I("to", r->replicas));
	notify(all, r, uid, "Normal", "IdleRestored", &text);
}

// ---- one workload ----

// Writes to `text` why the workload must not be scaled. Returns NULL when it may be scaled.
static const char *find_reason(const struct idle_rules *all, const struct idle_record *r, char *text, size_t size)
{
	struct scale_ref ref;
	char policy[IDLE_MESSAGE_BYTES / 2];
	idle_target_ref(r, &ref);
	const char *name = all->options.find_policy(all->options.arg, &ref, policy, sizeof policy);
	const char *other = r->interest ? conflict_watch_find(r->interest) : NULL;
	const char *error = r->interest ? conflict_watch_error(r->interest) : NULL;
	bool is_named = all->evaluation.entry->rule.n_namespaces > 0; // and covers the workload
	const char *own = all->options.own_namespace;
	if (!all->options.matchers)
		snprintf(text, size, "any pod may expose these series: start the controller with --series-matcher");
	else if (!is_named &&
	         (strcmp(r->namespace_name, "kube-system") == 0 || (own && strcmp(r->namespace_name, own) == 0)))
		snprintf(text, size, "its namespace is protected: name it in spec.namespaces");
	else if (name)
		snprintf(text, size, "%s", name);
	else if (other)
		snprintf(text, size, "%s controls it", other);
	else if (!r->interest || !conflict_watch_is_known(r->interest))
		snprintf(text, size, "it is not known yet whether another autoscaler controls it");
	else if (error)
		snprintf(text, size, "other autoscalers may go undetected: %s", error);
	else
		return NULL;
	return text;
}

static void drop(struct idle_rules *all)
{
	idle_entry_remove(all->evaluation.entry, all->evaluation.at);
}

// Returns whether a request is in flight, whose answer comes to on_target().
static bool apply(struct idle_rules *all, struct idle_record *r, const struct idle_object *o)
{
	struct idle_evaluation *v = &all->evaluation;
	struct idle_entry *e = v->entry;
	char why[IDLE_MESSAGE_BYTES] = "";
	struct idle_facts f = o->facts;
	f.is_recorded = r->is_recorded;
	f.held_why = find_reason(all, r, why, sizeof why);
	f.last_scale_ms = e->last_scale_ms;
	switch (idle_record_next(&e->rule, r, &f, v->now_ms)) {
	case IDLE_STEP_NONE:
		if (r->state == IDLE_WARNED)
			set_state(r, IDLE_WARNED, v->now_ms, "");
		break;
	case IDLE_STEP_DROP:
		drop(all);
		return false;
	case IDLE_STEP_HOLD:
		if (!why[0])
			snprintf(why, sizeof why, "it has %d replicas, and the rule wants %d", f.replicas,
			         e->rule.replicas);
		set_state(r, IDLE_HELD, v->now_ms, why);
		break;
	case IDLE_STEP_EXEMPT:
		set_state(r, IDLE_EXEMPT, v->now_ms, "");
		break;
	case IDLE_STEP_WARN:
		warn(all, r, o);
		break;
	case IDLE_STEP_LIMIT:
		set_state(r, IDLE_WARNED, v->now_ms, "waits for its turn: maxPerHour");
		break;
	case IDLE_STEP_RECORD:
		r->replicas = f.replicas;
		set_state(r, IDLE_SCALING, v->now_ms, "");
		break;
	case IDLE_STEP_SCALE:
		e->last_scale_ms = v->now_ms;
		v->doing = IDLE_SCALES;
		idle_target_scale(v->target, r, r->found->pods, r->found->n_pods, r->replicas, e->rule.replicas);
		return true;
	case IDLE_STEP_DONE:
		note_scaled(all, r, o->uid);
		break;
	case IDLE_STEP_RESTORE:
		v->doing = IDLE_RESTORES;
		idle_target_restore(v->target, r, f.replicas > r->replicas ? f.replicas : r->replicas);
		return true;
	}
	v->at++;
	return false;
}

static void note_error(struct idle_rules *all, struct idle_record *r, const struct err *error)
{
	if (strcmp(r->message, error->msg) != 0 && error->kind != ERR_CANCELED)
		LOG(all->options.log, LOG_ERROR, "Cannot apply idle rule",
		    LOG_S("rule", all->evaluation.entry->key + 1), LOG_S("namespace", r->namespace_name),
		    LOG_S("kind", r->kind), LOG_S("name", r->name), LOG_S("err", error->msg));
	snprintf(r->message, sizeof r->message, "%.*s", IDLE_MESSAGE_BYTES - 1, error->msg);
}

static void on_target(void *arg, const struct idle_object *o, const struct err *error)
{
	struct idle_rules *all = arg;
	struct idle_evaluation *v = &all->evaluation;
	if (v->is_void) {
		finish(all);
		return;
	}
	struct idle_record *r = &v->entry->records[v->at];
	if (all->is_closing || error) { // a write without an answer is looked at in the next evaluation
		if (error)
			note_error(all, r, error);
		if (error && o->is_refused)
			set_state(r, IDLE_HELD, v->now_ms, error->msg);
		v->at++;
	} else if (v->doing == IDLE_READS) {
		if (apply(all, r, o))
			return;
	} else if (v->doing == IDLE_SCALES) {
		note_scaled(all, r, o->uid);
		v->at++;
	} else {
		note_restored(all, r, o->uid);
		drop(all);
	}
	proceed(all);
}

static bool needs_target(const struct idle_rules *all, struct idle_record *r)
{
	const struct idle_evaluation *v = &all->evaluation;
	const struct idle_entry *e = v->entry;
	struct scale_ref ref;
	struct err ignored;
	if (!may_write(all, e) || !v->target)
		return false;
	if (idle_target_ref(r, &ref) < 0) {
		if (e->rule.action == IDLE_SCALE)
			set_state(r, IDLE_HELD, v->now_ms, "not supported: only a Deployment or StatefulSet is scaled");
		return false;
	}
	if (e->rule.action != IDLE_SCALE && !idle_record_is_scaled(r)) {
		set_state(r, IDLE_REPORTED, v->now_ms, "");
		return false;
	}
	if (!r->interest && all->options.conflicts && r->found)
		r->interest = conflict_watch_acquire(all->options.conflicts, &ref, NULL, &ignored);
	return true;
}

// Handles the records from v->at on, until one needs a request.
static void proceed(struct idle_rules *all)
{
	struct idle_evaluation *v = &all->evaluation;
	while (!all->is_closing && !v->entry->is_gone && v->at < v->entry->n) {
		struct idle_record *r = &v->entry->records[v->at];
		if (needs_target(all, r)) {
			v->doing = IDLE_READS;
			idle_target_read(v->target, r);
			return;
		}
		v->at++;
	}
	finish(all);
}

// ---- the answer ----

static bool is_of(const struct idle_record *r, const struct idle_workload *w)
{
	return strcmp(r->namespace_name, w->namespace_name) == 0 && strcmp(r->kind, w->kind) == 0 &&
	       strcmp(r->name, w->name) == 0;
}

static struct idle_record *add_record(struct idle_entry *e, const struct idle_workload *w)
{
	struct idle_record *r = idle_entry_add(e);
	if (!r)
		return NULL;
	snprintf(r->namespace_name, sizeof r->namespace_name, "%s", w->namespace_name);
	snprintf(r->kind, sizeof r->kind, "%s", w->kind);
	snprintf(r->name, sizeof r->name, "%s", w->name);
	return r;
}

// Returns the record when it is new; else NULL.
static struct idle_record *match(struct idle_rules *all, const struct idle_workload *w)
{
	struct idle_entry *e = all->evaluation.entry;
	struct idle_record *r = NULL;
	for (size_t i = 0; i < e->n && !r; i++)
		r = is_of(&e->records[i], w) ? &e->records[i] : NULL;
	bool is_new = !r;
	if (!r)
		r = add_record(e, w);
	if (!r)
		return NULL; // counted only
	r->found = w;
	r->gpus = w->gpus;
	r->per_hour = w->per_hour;
	// One that is older than the lookback would move with it.
	if (is_new || w->since_ms > all->evaluation.now_ms - idle_lookback_ms(&e->rule) + SINCE_SLACK_MS)
		r->since_ms = w->since_ms;
	if (is_new)
		r->changed_ms = all->evaluation.now_ms;
	return is_new ? r : NULL;
}

static void read_found(struct idle_rules *all)
{
	struct idle_evaluation *v = &all->evaluation;
	struct idle_entry *e = v->entry;
	e->n_found = v->found.n;
	e->gpus = e->per_hour = 0;
	e->unallocated = v->found.unallocated;
	e->is_evaluated = true;
	e->message[0] = '\0';
	const struct idle_record *first = NULL;
	size_t n_new = 0;
	for (size_t i = 0; i < v->found.n; i++) {
		e->gpus += v->found.items[i].gpus;
		e->per_hour += v->found.items[i].per_hour;
		const struct idle_record *added = match(all, &v->found.items[i]);
		n_new += added != NULL;
		first = first ? first : added;
	}
	report(all, first, n_new);
	for (size_t i = e->n; i > 0; i--)
		if (!e->records[i - 1].found && !idle_record_is_scaled(&e->records[i - 1]))
			idle_entry_remove(e, i - 1);
}

static void hold(struct idle_entry *e, const struct idle_rules *all, const char *why)
{
	if (strcmp(e->message, why) != 0)
		LOG(all->options.log, LOG_WARNING, "Idle rule holds", LOG_S("rule", e->key + 1), LOG_S("err", why));
	snprintf(e->message, sizeof e->message, "%.*s", IDLE_MESSAGE_BYTES - 1, why);
}

static void digest(struct idle_rules *all)
{
	struct idle_evaluation *v = &all->evaluation;
	struct idle_entry *e = v->entry;
	const char *fault = NULL;
	struct err error;
	for (int i = 0; i < IDLE_ASK__COUNT && !fault; i++)
		if (v->answers[i].state != OBS_OK && v->answers[i].state != OBS_EMPTY)
			fault = v->answers[i].detail && v->answers[i].detail[0] ? v->answers[i].detail
			                                                        : "a query failed";
	if (all->is_closing || e->is_gone) {
		finish(all);
	} else if (fault) {
		hold(e, all, fault);
		finish(all);
	} else if (idle_workloads_read(&v->found, v->answers, &e->rule, all->options.prices(all->options.arg),
	                               v->now_ms, &error) < 0) {
		hold(e, all, error.msg);
		finish(all);
	} else {
		read_found(all); // also of records that were replaced meanwhile
		v->is_void = false;
		v->at = 0;
		proceed(all);
	}
}

void idle_rules_answer(struct idle_slot *slot, const struct idle_answer *answer)
{
	struct idle_evaluation *v = &slot->all->evaluation;
	v->answers[slot->what] = *answer;
	if (--v->n_pending == 0)
		digest(slot->all);
}

void idle_evaluate(struct idle_rules *all, struct idle_entry *e)
{
	static const struct idle_answer unasked = {.state = OBS_FAILED, .detail = "--series-matcher is too long"};
	struct idle_evaluation *v = &all->evaluation;
	struct buf query;
	v->entry = e;
	v->now_ms = all->options.now_ms(all->options.arg);
	v->n_pending = IDLE_ASK__COUNT;
	v->is_void = false;
	if (!v->target && all->options.k8s)
		v->target = idle_target_new(all->options.k8s, on_target, all);
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	for (int i = 0; i < IDLE_ASK__COUNT; i++) {
		buf_reset(&query);
		struct err why;
		v->slots[i] = (struct idle_slot){all, (enum idle_ask)i};
		if (idle_query(&query, (enum idle_ask)i, &e->rule, all->options.matchers, &why) == 0)
			all->options.ask(all->options.arg, e->rule.source, buf_str(&query), v->now_ms, &v->slots[i]);
		else
			idle_rules_answer(&v->slots[i], &unasked);
	}
	buf_done(&query);
}
