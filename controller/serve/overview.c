// SPDX-License-Identifier: Apache-2.0
#include "controller/serve/endpoints.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_write.h"
#include "controller/fleet/fleet.h"
#include "controller/status/decision_history.h"
#include "controller/status/sparkline.h"
#include "controller/status/status_conditions.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/price/price_book.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define KEY_BYTES 512 // namespace and name have at most 253 each

static void write_kind(struct json_writer *w, const char *kind)
{
	json_write_member_str(w, "apiVersion", POLICY_API_VERSION);
	json_write_member_str(w, "kind", kind);
}

// ---- the head ----

static void write_controller(struct json_writer *w, const struct overview_head *h)
{
	json_write_member_object(w, "controller");
	if (h->identity)
		json_write_member_str(w, "identity", h->identity);
	json_write_member_bool(w, "dryRun", h->dry_run);
	if (h->identity && h->shards_total == 1)
		json_write_member_bool(w, "leader", h->shards_owned == 1);
	if (h->leader && h->leader[0])
		json_write_member_str(w, "leaderIdentity", h->leader);
	if (h->identity) {
		json_write_member_i64(w, "shardsOwned", h->shards_owned);
		json_write_member_i64(w, "shardsTotal", h->shards_total);
	}
	json_write_member_time(w, "startTime", h->start_ms);
	json_write_object_end(w);
}

static void write_source(struct json_writer *w, const struct overview_source *s)
{
	static const char *const states[PROMQL_HEALTH__COUNT] = {"Up", "Degraded", "Down"};
	json_write_object_begin(w);
	json_write_member_str(w, "name", s->name);
	json_write_member_str(w, "url", s->url);
	json_write_member_str(w, "state", states[s->state]);
	json_write_member_str(w, "error", s->error);
	if (s->last_answer_ms > 0) {
		json_write_member_time(w, "lastSuccessTime", s->last_answer_ms);
		json_write_member_f64(w, "latencySeconds", s->last_seconds);
	}
	json_write_object_end(w);
}

static void write_problems(struct json_writer *w, const char *lines)
{
	json_write_member_array(w, "problems");
	while (*lines) {
		size_t n = strcspn(lines, "\n");
		if (n > 0)
			json_write_strn(w, lines, n);
		lines += n + (lines[n] == '\n');
	}
	json_write_array_end(w);
}

void overview_begin(struct json_writer *w, const struct overview_head *h)
{
	json_write_object_begin(w);
	write_kind(w, "Overview");
	json_write_member_time(w, "time", h->time_ms);
	json_write_member_str(w, "version", GPUSCALE_VERSION);
	write_controller(w, h);
	json_write_member_array(w, "sources");
	for (size_t i = 0; i < h->n_sources; i++)
		write_source(w, &h->sources[i]);
	json_write_array_end(w);
	json_write_member_object(w, "counts");
	json_write_member_i64(w, "policies", (int64_t)h->n_policies);
	json_write_member_i64(w, "invalid", (int64_t)h->n_invalid);
	json_write_member_i64(w, "waiting", (int64_t)h->n_waiting);
	json_write_object_end(w);
	write_problems(w, h->problems);
	json_write_member_array(w, "policies");
}

void overview_end(struct json_writer *w)
{
	json_write_array_end(w);
	json_write_object_end(w);
}

// ---- one policy ----

static void write_target(struct json_writer *w, const struct scale_target *t)
{
	json_write_member_object(w, "target");
	json_write_member_str(w, "kind", t->kind);
	json_write_member_str(w, "name", t->name);
	json_write_object_end(w);
}

static void write_decision(struct json_writer *w, const struct decided *d)
{
	const struct decision *dec = d->decision;
	char message[RENDER_SENTENCE_BYTES];
	json_write_member_time(w, "time", dec->time_ms);
	json_write_member_i64(w, "currentReplicas", dec->current);
	if (dec->ready >= 0)
		json_write_member_i64(w, "readyReplicas", dec->ready);
	json_write_member_i64(w, "desiredReplicas", dec->desired);
	json_write_member_str(w, "action", action_name(dec->action));
	json_write_member_str(w, "reason", reason_info(dec->reason)->name);
	explain_message(d, message);
	json_write_member_str(w, "message", message);
	json_write_member_bool(w, "held", dec->action == ACTION_HOLD);
}

// What the signal is compared with; while its data is missing, what it would be compared with.
static double target_of(const struct policy_signal *p, const struct decision_signal *s)
{
	if (s->state != SIGNAL_MISSING)
		return s->target;
	if (p->watermarks.set)
		return p->watermarks.high;
	return p->target.type == TARGET_REPLICAS ? NAN : p->target.value;
}

static bool is_per_replica(const struct policy_signal *p)
{
	return p->watermarks.set ? p->watermarks.algorithm == WATERMARK_AVERAGE
	                         : p->target.type == TARGET_AVERAGE_VALUE;
}

// Returns the value that was compared with the target; NaN: none was. Notes of the same stage have other reasons.
static double compared_of(const struct decision *d, size_t i)
{
	for (size_t k = 0; k < d->n_trace; k++) {
		const struct trace_entry *t = decision_entry(d, k);
		if (t->stage == STAGE_SIGNALS && t->signal == (int32_t)i && t->reason == d->signals[i].reason)
			return t->value;
	}
	return NAN;
}

static void write_signal(struct json_writer *w, const struct decided *d, size_t i)
{
	const struct decision_signal *s = &d->decision->signals[i];
	char error[RENDER_SENTENCE_BYTES] = "";
	if (s->state == SIGNAL_MISSING && !explain_signal(d, i, error))
		snprintf(error, sizeof error, "%s", reason_info(s->reason)->name);
	json_write_object_begin(w);
	json_write_member_str(w, "name", d->policy->signals[i].name);
	json_write_member_f64(w, "value", s->value);
	json_write_member_f64(w, "target", target_of(&d->policy->signals[i], s));
	if (is_per_replica(&d->policy->signals[i])) { // the target is one replica's; the value is that of all
		json_write_member_bool(w, "perReplica", true);
		json_write_member_f64(w, "compared", s->state == SIGNAL_MISSING ? NAN : compared_of(d->decision, i));
	}
	json_write_member_str(w, "state", signal_state_name(s->state));
	if (s->age_ms >= 0)
		json_write_member_f64(w, "ageSeconds", (double)s->age_ms / 1000);
	json_write_member_str(w, "error", error);
	json_write_object_end(w);
}

static void write_signals(struct json_writer *w, const struct decided *d)
{
	json_write_member_array(w, "signals");
	for (size_t i = 0; d->decision && i < d->decision->n_signals; i++)
		write_signal(w, d, i);
	json_write_array_end(w);
}

static void write_conditions(struct json_writer *w, const struct status_facts *facts)
{
	struct condition conditions[CONDITION_TYPE__COUNT];
	json_write_member_array(w, "conditions");
	if (facts)
		status_conditions(facts, conditions);
	for (int i = 0; facts && i < CONDITION_TYPE__COUNT; i++) {
		if (!conditions[i].reason[0])
			continue;
		json_write_object_begin(w);
		json_write_member_str(w, "type", condition_type_names[i]);
		json_write_member_str(w, "status", condition_status_names[conditions[i].status]);
		json_write_member_str(w, "reason", conditions[i].reason);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

// ---- sparklines ----

// Writes about four digits, which are enough to draw. One document may contain 200,000 values, so the common range
// avoids printf's exact arithmetic.
static void write_short(struct json_writer *w, double v)
{
	static const struct {
		double from, scale;
		int decimals;
	} ranges[] = {{1000, 1, 0}, {100, 10, 1}, {10, 100, 2}, {1, 1e3, 3}, {0.1, 1e4, 4}, {0.01, 1e5, 5}};
	double size = fabs(v);
	size_t r = 0;
	if (v == 0 || size >= 1e15 || size < ranges[sizeof ranges / sizeof ranges[0] - 1].from) {
		char text[32];
		snprintf(text, sizeof text, "%.4g", v);
		json_write_raw(w, text);
		return;
	}
	while (size < ranges[r].from)
		r++;
	int64_t n = (int64_t)(size * ranges[r].scale + 0.5);
	int decimals = ranges[r].decimals;
	for (; decimals > 0 && n % 10 == 0; decimals--)
		n /= 10;
	char text[32], *at = text + sizeof text; // written from its end
	*--at = '\0';
	for (int i = 0; n > 0 || i <= decimals; i++, n /= 10) {
		if (i > 0 && i == decimals)
			*--at = '.';
		*--at = (char)('0' + n % 10);
	}
	if (v < 0)
		*--at = '-';
	json_write_raw(w, at);
}

static void write_column(struct json_writer *w, const struct sparkline *t, size_t column)
{
	json_write_array_begin(w);
	for (size_t i = 0; i < sparkline_count(t); i++) {
		double value = sparkline_at(t, i, column);
		if (isnan(value))
			json_write_null(w);
		else
			write_short(w, value);
	}
	json_write_array_end(w);
}

static void write_history(struct json_writer *w, const struct overview_policy *p)
{
	json_write_member_object(w, "history");
	json_write_member_f64(w, "stepSeconds", (double)sparkline_step_ms(p->trend) / 1000);
	json_write_member_time(w, "endTime", sparkline_end_ms(p->trend));
	json_write_key(w, "current");
	write_column(w, p->trend, SPARKLINE_CURRENT);
	json_write_key(w, "desired");
	write_column(w, p->trend, SPARKLINE_DESIRED);
	json_write_member_array(w, "signals");
	for (size_t i = 0; i < p->policy->n_signals; i++) {
		json_write_object_begin(w);
		json_write_member_str(w, "name", p->policy->signals[i].name);
		json_write_key(w, "values");
		write_column(w, p->trend, SPARKLINE_SIGNALS + i);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
}

// What a replica uses, and with it what these replicas cost per hour; -1: their number is unknown.
static void write_gpus(struct json_writer *w, const struct overview_policy *p, int64_t replicas)
{
	const struct policy_gpus *gpus = &p->gpus;
	enum price_basis basis;
	int64_t micro = policy_gpu_micro(p->prices, gpus->model, &basis);
	json_write_member_object(w, "gpus");
	json_write_member_i64(w, "perReplica", gpus->per_replica);
	json_write_member_str(w, "model", gpus->model);
	json_write_member_str(w, "price", price_basis_names[basis]);
	if (replicas >= 0)
		json_write_member_i64(w, "count", replicas * gpus->per_replica);
	if (replicas >= 0 && basis != PRICE_NONE) {
		json_write_member_f64(w, "costPerHour", (double)(replicas * gpus->per_replica) * (double)micro / 1e6);
		json_write_member_str(w, "currency", p->prices->currency);
	}
	json_write_object_end(w);
}

// Each target has its own bounds, decision and signals, so a row of a fleet has none.
static void write_fleet(struct json_writer *w, const struct overview_policy *p)
{
	json_write_member_object(w, "target");
	json_write_member_str(w, "kind", p->target->kind);
	json_write_object_end(w);
	json_write_member_bool(w, "paused", p->policy->paused);
	json_write_member_bool(w, "dryRun", p->policy->dry_run || p->dry_run);
	int64_t replicas = fleet_write_overview(p->fleet, w);
	if (p->gpus.set)
		write_gpus(w, p, replicas);
	write_signals(w, &p->decided);
}

void overview_add(struct json_writer *w, const struct overview_policy *p, bool with_history)
{
	const struct decision *d = p->decided.decision;
	json_write_object_begin(w);
	json_write_member_str(w, "namespace", p->namespace_name);
	json_write_member_str(w, "name", p->name);
	if (p->fleet) {
		write_fleet(w, p);
		json_write_object_end(w);
		return;
	}
	if (p->key)
		json_write_member_str(w, "key", p->key);
	if (p->policy) {
		write_target(w, p->target);
		json_write_member_i64(w, "minReplicas", d ? d->min_replicas : p->policy->min_replicas);
		json_write_member_i64(w, "maxReplicas", d ? d->max_replicas : p->policy->max_replicas);
		json_write_member_bool(w, "paused", p->policy->paused);
		json_write_member_bool(w, "dryRun", p->policy->dry_run || p->dry_run);
	}
	if (d)
		write_decision(w, &p->decided);
	if (p->policy && p->gpus.set)
		write_gpus(w, p, d ? d->current : -1);
	if (p->last_scale_ms >= 0)
		json_write_member_time(w, "lastScaleTime", p->last_scale_ms);
	json_write_member_str(w, "error", p->error);
	write_conditions(w, p->facts);
	write_signals(w, &p->decided);
	if (with_history && p->trend)
		write_history(w, p);
	json_write_object_end(w);
}

void overview_write_detail(struct json_writer *w, const struct overview_policy *p,
                           const struct decision_history *decisions)
{
	char key[KEY_BYTES];
	int name_at = snprintf(key, sizeof key, "%s/", p->namespace_name);
	binding_format(key + name_at, sizeof key - (size_t)name_at, p->name, p->key);
	json_write_object_begin(w);
	write_kind(w, "PolicyDetail");
	json_write_key(w, "policy");
	overview_add(w, p, true);
	json_write_key(w, "decision");
	if (p->decided.decision)
		explain_decision_json(w, &p->decided);
	else
		json_write_null(w);
	json_write_member_array(w, "decisions");
	decision_history_write(decisions, w, key);
	json_write_array_end(w);
	json_write_object_end(w);
}
