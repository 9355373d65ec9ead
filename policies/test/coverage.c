// SPDX-License-Identifier: Apache-2.0
#include "policies/test/coverage.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/print.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"

struct coverage {
	char *namespace_name, *name;
	bool expected[STAGE__COUNT][REASON__COUNT]; // the policy can reach the reason
	uint64_t ticks[STAGE__COUNT][REASON__COUNT];
	uint64_t n_ticks, n_free; // n_free: ticks whose decision nothing limited
};

// ---- what a policy can reach ----

static bool has_type(const struct policy *p, bool replicas)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].target.set && (p->signals[i].target.type == TARGET_REPLICAS) == replicas)
			return true;
	return false;
}

static bool has_target(const struct policy *p)
{
	return has_type(p, false);
}

static bool has_replicas_target(const struct policy *p)
{
	return has_type(p, true);
}

static bool has_watermarks(const struct policy *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].watermarks.set)
			return true;
	return false;
}

static bool has_on_missing(const struct policy *p, int on_missing)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].on_missing == on_missing)
			return true;
	return false;
}

static bool has_ignored(const struct policy *p)
{
	return has_on_missing(p, ON_MISSING_IGNORE);
}

static bool has_zeroed(const struct policy *p)
{
	return has_on_missing(p, ON_MISSING_ZERO);
}

static bool has_held(const struct policy *p)
{
	return has_on_missing(p, ON_MISSING_HOLD);
}

static bool has_formula_signal(const struct policy *p)
{
	return p->formulas != 0;
}

// Several signals that ask for replicas.
static bool has_several_signals(const struct policy *p)
{
	size_t n = p->n_signals;
	for (size_t i = 0; i < p->n_signals; i++)
		n -= (p->inputs >> i & 1) && !p->signals[i].target.set && !p->signals[i].watermarks.set;
	return n > 1;
}

static bool has_several_and_held(const struct policy *p)
{
	return has_several_signals(p) && has_held(p);
}

static bool has_up_stabilization(const struct policy *p)
{
	return p->scale_up.stabilization_window_ms > 0;
}

static bool has_down_stabilization(const struct policy *p)
{
	return p->scale_down.stabilization_window_ms > 0;
}

static bool limits_up(const struct policy *p)
{
	return p->scale_up.select != SELECT_DISABLED;
}

// Only a limit that the policy states: the HPA's default, all pods at once, never has an effect.
static bool limits_down(const struct policy *p)
{
	return p->scale_down.select != SELECT_DISABLED && p->scale_down.rates_set;
}

static bool disables_up(const struct policy *p)
{
	return p->scale_up.select == SELECT_DISABLED;
}

static bool disables_down(const struct policy *p)
{
	return p->scale_down.select == SELECT_DISABLED;
}

static bool has_minimum(const struct policy *p)
{
	return p->min_replicas > 0;
}

static bool has_startup(const struct policy *p) // signals of an objective count what starts themselves
{
	return p->startup.set && (!p->objective.set || p->n_signals > 2);
}

static bool has_fallback(const struct policy *p)
{
	return p->fallback.set;
}

static bool has_schedules(const struct policy *p)
{
	return p->n_schedules > 0;
}

static bool guards_pending(const struct policy *p)
{
	return p->guards.max_pending_set;
}

static bool guards_availability(const struct policy *p)
{
	return p->guards.min_available_percent > 0;
}

static bool guards_step(const struct policy *p)
{
	return p->guards.max_step > 0;
}

static bool guards_gain(const struct policy *p)
{
	return p->guards.gain.set;
}

static bool guards_unhealthy(const struct policy *p)
{
	return p->guards.unhealthy != UNHEALTHY_IGNORE;
}

static bool guards_replaced(const struct policy *p)
{
	return p->guards.unhealthy == UNHEALTHY_REPLACE;
}

static bool guards_throttled(const struct policy *p)
{
	return p->guards.throttled.set;
}

static bool is_fixed(const struct policy *p)
{
	return p->capacity.mode == CAPACITY_FIXED;
}

static bool is_elastic(const struct policy *p)
{
	return p->capacity.mode == CAPACITY_ELASTIC;
}

static bool is_paused(const struct policy *p)
{
	return p->paused;
}

static bool is_dry_run(const struct policy *p)
{
	return p->dry_run;
}

// The reasons that tests are expected to reach, in addition to the condition of their stage (stage_is_enabled()).
// Reasons without a row are listed when a test reaches them.
static const struct {
	enum stage stage;
	enum reason reason;
	bool (*applies)(const struct policy *p); // NULL: whenever the stage is enabled
} rows[] = {
        {STAGE_SOURCES, REASON_NO_DATA, NULL},
        {STAGE_SOURCES, REASON_QUERY_FAILED, NULL},
        {STAGE_SOURCES, REASON_STALE_DATA, NULL},
        {STAGE_SOURCES, REASON_MISSING_AS_ZERO, has_zeroed},
        {STAGE_SOURCES, REASON_SIGNAL_IGNORED, has_ignored},
        {STAGE_SOURCES, REASON_THROTTLED, guards_throttled},
        {STAGE_WINDOWS, REASON_WINDOW_FILLING, NULL},
        {STAGE_WINDOWS, REASON_WINDOW_AGGREGATE, NULL},
        {STAGE_SIGNALS, REASON_ABOVE_TARGET, has_target},
        {STAGE_SIGNALS, REASON_BELOW_TARGET, has_target},
        {STAGE_SIGNALS, REASON_WITHIN_TOLERANCE, has_target},
        {STAGE_SIGNALS, REASON_REPLICAS_REQUESTED, has_replicas_target},
        {STAGE_SIGNALS, REASON_ABOVE_HIGH_WATERMARK, has_watermarks},
        {STAGE_SIGNALS, REASON_BELOW_LOW_WATERMARK, has_watermarks},
        {STAGE_SIGNALS, REASON_INSIDE_WATERMARKS, has_watermarks},
        {STAGE_SIGNALS, REASON_REPLICAS_STARTING, has_startup},
        {STAGE_SUSTAIN, REASON_SUSTAIN_PENDING, NULL},
        {STAGE_OBJECTIVE, REASON_OBJECTIVE, NULL},
        {STAGE_OBJECTIVE, REASON_OBJECTIVE_KEPT, NULL},
        {STAGE_OBJECTIVE, REASON_OBJECTIVE_STARTING, NULL},
        {STAGE_OBJECTIVE, REASON_OBJECTIVE_PAUSED, NULL},
        {STAGE_SOURCES, REASON_FORMULA_MISSING, has_formula_signal},
        {STAGE_COMBINE, REASON_COMBINED, has_several_signals},
        {STAGE_COMBINE, REASON_PARTIAL_SIGNALS, has_several_and_held},
        {STAGE_COMBINE, REASON_ALL_SIGNALS_MISSING, has_held},
        {STAGE_COMBINE, REASON_FALLBACK_ACTIVE, has_fallback},
        {STAGE_COMBINE, REASON_FALLBACK_LIFTING, has_fallback},
        {STAGE_STABILIZE, REASON_SCALE_UP_STABILIZED, has_up_stabilization},
        {STAGE_STABILIZE, REASON_SCALE_DOWN_STABILIZED, has_down_stabilization},
        {STAGE_RATE, REASON_SCALE_UP_LIMIT, limits_up},
        {STAGE_RATE, REASON_SCALE_DOWN_LIMIT, limits_down},
        {STAGE_RATE, REASON_SCALE_UP_DISABLED, disables_up},
        {STAGE_RATE, REASON_SCALE_DOWN_DISABLED, disables_down},
        {STAGE_COOLDOWN, REASON_COOLDOWN_ACTIVE, NULL},
        {STAGE_IDLE, REASON_IDLE_REACHED, NULL},
        {STAGE_IDLE, REASON_IDLE, NULL},
        {STAGE_IDLE, REASON_ACTIVATED, NULL},
        {STAGE_BOUNDS, REASON_SCHEDULE_ACTIVE, has_schedules},
        {STAGE_BOUNDS, REASON_TOO_FEW_REPLICAS, has_minimum},
        {STAGE_BOUNDS, REASON_TOO_MANY_REPLICAS, NULL},
        {STAGE_MULTIPLE, REASON_REPLICA_MULTIPLE, NULL},
        {STAGE_GUARDS, REASON_PENDING_REPLICAS, guards_pending},
        {STAGE_GUARDS, REASON_TOO_FEW_AVAILABLE, guards_availability},
        {STAGE_GUARDS, REASON_UNHEALTHY_REPLACED, guards_replaced},
        {STAGE_GUARDS, REASON_UNHEALTHY_REPLICAS, guards_unhealthy},
        {STAGE_GUARDS, REASON_UNHEALTHY_UNKNOWN, guards_unhealthy},
        {STAGE_GUARDS, REASON_MARGINAL_GAIN, guards_gain},
        {STAGE_GUARDS, REASON_MAX_STEP, guards_step},
        {STAGE_CAPACITY, REASON_CAPACITY_LIMITED, is_fixed},
        {STAGE_CAPACITY, REASON_CAPACITY_WITHDRAWN, is_elastic},
        {STAGE_CAPACITY, REASON_CAPACITY_RETRY, is_elastic},
        {STAGE_CAPACITY, REASON_PENDING_REMOVED, NULL},
        {STAGE_CAPACITY, REASON_CAPACITY_UNKNOWN, NULL},
        {STAGE_MODE, REASON_PAUSED, is_paused},
        {STAGE_MODE, REASON_DRY_RUN, is_dry_run},
};

// ---- the list ----

static struct coverage *coverage_new(const struct policy *p)
{
	struct coverage *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->namespace_name = strdup(p->namespace_name);
	c->name = strdup(p->name);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		c->expected[rows[i].stage][rows[i].reason] =
		        stage_is_enabled(rows[i].stage, p) && (!rows[i].applies || rows[i].applies(p));
	if (c->namespace_name && c->name)
		return c;
	free(c->namespace_name);
	free(c->name);
	free(c);
	return NULL;
}

struct coverage *coverage_of(struct coverage_list *list, const struct policy *policy)
{
	for (size_t i = list->n; i > 0; i--) { // tests of one policy are adjacent: most likely the last entry
		struct coverage *c = list->items[i - 1];
		if (strcmp(c->name, policy->name) == 0 && strcmp(c->namespace_name, policy->namespace_name) == 0)
			return c;
	}
	if (list->n == COVERAGE_POLICIES_MAX)
		return NULL;
	if (alloc_reserve(&list->items, list->n, &list->cap, sizeof(struct coverage *), 16) < 0)
		return NULL;
	struct coverage *c = coverage_new(policy);
	if (c)
		list->items[list->n++] = c;
	return c;
}

void coverage_add(struct coverage *c, const struct decision *d)
{
	c->n_ticks++;
	c->n_free += d->reason == REASON_DESIRED_WITHIN_RANGE;
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *t = decision_entry(d, i);
		c->ticks[t->stage][t->reason]++;
	}
}

static void print_one(const struct coverage *c, struct buf *out)
{
	size_t stages = 0, stages_reached = 0, reasons = 0, reasons_reached = 0;
	for (int s = 0; s < STAGE__COUNT; s++) {
		bool has = false, reached = false;
		for (int r = 0; r < REASON__COUNT; r++) {
			has |= c->expected[s][r];
			reached |= c->ticks[s][r] > 0;
			reasons += c->expected[s][r];
			reasons_reached += c->expected[s][r] && c->ticks[s][r] > 0;
		}
		stages += has;
		stages_reached += has && reached;
	}
	print_to(out, "coverage of %s/%s: %zu of %zu stages, %zu of %zu reasons, in %llu ticks\n", c->namespace_name,
	         c->name, stages_reached, stages, reasons_reached, reasons, (unsigned long long)c->n_ticks);
	print_to(out, "  %-9s  %-21s  %s\n", "STAGE", "REASON", "TIMES");
	for (int s = 0; s < STAGE__COUNT; s++) {
		for (int r = 0; r < REASON__COUNT; r++) {
			const char *stage = stage_name((enum stage)s), *reason = reason_info((enum reason)r)->name;
			if (c->ticks[s][r] > 0)
				print_to(out, "  %-9s  %-21s  %llu\n", stage, reason,
				         (unsigned long long)c->ticks[s][r]);
			else if (c->expected[s][r])
				print_to(out, "  %-9s  %-21s  -\n", stage, reason);
		}
	}
	print_to(out, "  %-9s  %-21s  %llu\n", "(none)", reason_info(REASON_DESIRED_WITHIN_RANGE)->name,
	         (unsigned long long)c->n_free);
}

void coverage_print(const struct coverage_list *list, struct buf *out)
{
	for (size_t i = 0; i < list->n; i++)
		print_one(list->items[i], out);
}

void coverage_done(struct coverage_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i]->namespace_name);
		free(list->items[i]->name);
		free(list->items[i]);
	}
	free(list->items);
	*list = (struct coverage_list){0};
}
