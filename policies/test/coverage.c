// SPDX-License-Identifier: Apache-2.0
// Which stages and reasons of each policy the tests have reached, and which they have not.
#include "base/base.h"
#include "base/print.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/test/test_report.h"

struct coverage {
	char *namespace_name, *name;
	bool expected[STAGE__COUNT][REASON__COUNT]; // the policy can reach the reason
	uint64_t ticks[STAGE__COUNT][REASON__COUNT];
	uint64_t n_ticks, n_free; // n_free: ticks whose decision nothing limited
};

// ---- what a policy can reach ----

// What the signals of a policy have.
struct traits {
	size_t n_asking; // signals that ask for replicas
	bool ratio, count, watermarks, holds, ignores, zero;
};

static struct traits traits_of(const struct policy *p)
{
	struct traits h = {0};
	for (size_t i = 0; i < p->n_signals; i++) {
		const struct policy_signal *s = &p->signals[i];
		h.n_asking += !(p->inputs >> i & 1) || s->target.set || s->watermarks.set;
		h.ratio |= s->target.set && s->target.type != TARGET_REPLICAS;
		h.count |= s->target.set && s->target.type == TARGET_REPLICAS;
		h.watermarks |= s->watermarks.set;
		h.holds |= s->on_missing == ON_MISSING_HOLD;
		h.ignores |= s->on_missing == ON_MISSING_IGNORE;
		h.zero |= s->on_missing == ON_MISSING_ZERO;
	}
	return h;
}

// Marks the reasons that tests are expected to reach: those whose condition applies to the policy, in enabled stages.
// Reasons without a row are listed when a test reaches them.
static void set_expected(struct coverage *c, const struct policy *p)
{
	const struct traits has = traits_of(p);
	const struct {
		enum stage stage;
		enum reason reason;
		bool applies;
	} rows[] = {
	        // clang-format off
		{STAGE_SOURCES,   REASON_NO_DATA,               true},
		{STAGE_SOURCES,   REASON_QUERY_FAILED,          true},
		{STAGE_SOURCES,   REASON_STALE_DATA,            true},
		{STAGE_SOURCES,   REASON_MISSING_AS_ZERO,       has.zero},
		{STAGE_SOURCES,   REASON_SIGNAL_IGNORED,        has.ignores},
		{STAGE_SOURCES,   REASON_THROTTLED,             p->guards.throttled.set},
		{STAGE_WINDOWS,   REASON_WINDOW_FILLING,        true},
		{STAGE_WINDOWS,   REASON_WINDOW_AGGREGATE,      true},
		{STAGE_SIGNALS,   REASON_ABOVE_TARGET,          has.ratio},
		{STAGE_SIGNALS,   REASON_BELOW_TARGET,          has.ratio},
		{STAGE_SIGNALS,   REASON_WITHIN_TOLERANCE,      has.ratio},
		{STAGE_SIGNALS,   REASON_REPLICAS_REQUESTED,    has.count},
		{STAGE_SIGNALS,   REASON_ABOVE_HIGH_WATERMARK,  has.watermarks},
		{STAGE_SIGNALS,   REASON_BELOW_LOW_WATERMARK,   has.watermarks},
		{STAGE_SIGNALS,   REASON_INSIDE_WATERMARKS,     has.watermarks},
		{STAGE_SIGNALS,   REASON_REPLICAS_STARTING,     p->startup.set && (!p->objective.set || p->n_signals > 2)}, // signals of an objective count what starts themselves
		{STAGE_SUSTAIN,   REASON_SUSTAIN_PENDING,       true},
		{STAGE_OBJECTIVE, REASON_OBJECTIVE,             true},
		{STAGE_OBJECTIVE, REASON_OBJECTIVE_KEPT,        true},
		{STAGE_OBJECTIVE, REASON_OBJECTIVE_STARTING,    true},
		{STAGE_OBJECTIVE, REASON_OBJECTIVE_PAUSED,      true},
		{STAGE_SOURCES,   REASON_FORMULA_MISSING,       p->formulas != 0},
		{STAGE_COMBINE,   REASON_COMBINED,              has.n_asking > 1},
		{STAGE_COMBINE,   REASON_PARTIAL_SIGNALS,       has.n_asking > 1 && has.holds},
		{STAGE_COMBINE,   REASON_ALL_SIGNALS_MISSING,   has.holds},
		{STAGE_COMBINE,   REASON_FALLBACK_ACTIVE,       p->fallback.set},
		{STAGE_COMBINE,   REASON_FALLBACK_LIFTING,      p->fallback.set},
		{STAGE_STABILIZE, REASON_SCALE_UP_STABILIZED,   p->scale_up.stabilization_window_ms > 0},
		{STAGE_STABILIZE, REASON_SCALE_DOWN_STABILIZED, p->scale_down.stabilization_window_ms > 0},
		{STAGE_RATE,      REASON_SCALE_UP_LIMIT,        p->scale_up.select != SELECT_DISABLED},
		{STAGE_RATE,      REASON_SCALE_DOWN_LIMIT,      p->scale_down.select != SELECT_DISABLED && p->scale_down.rates_set}, // the default of the HPA, all pods at once, never has an effect
		{STAGE_RATE,      REASON_SCALE_UP_DISABLED,     p->scale_up.select == SELECT_DISABLED},
		{STAGE_RATE,      REASON_SCALE_DOWN_DISABLED,   p->scale_down.select == SELECT_DISABLED},
		{STAGE_COOLDOWN,  REASON_COOLDOWN_ACTIVE,       true},
		{STAGE_IDLE,      REASON_IDLE_REACHED,          true},
		{STAGE_IDLE,      REASON_IDLE,                  true},
		{STAGE_IDLE,      REASON_ACTIVATED,             true},
		{STAGE_BOUNDS,    REASON_SCHEDULE_ACTIVE,       p->n_schedules > 0},
		{STAGE_BOUNDS,    REASON_TOO_FEW_REPLICAS,      p->min_replicas > 0},
		{STAGE_BOUNDS,    REASON_TOO_MANY_REPLICAS,     true},
		{STAGE_MULTIPLE,  REASON_REPLICA_MULTIPLE,      true},
		{STAGE_GUARDS,    REASON_PENDING_REPLICAS,      p->guards.max_pending_set},
		{STAGE_GUARDS,    REASON_TOO_FEW_AVAILABLE,     p->guards.min_available_percent > 0},
		{STAGE_GUARDS,    REASON_UNHEALTHY_REPLACED,    p->guards.unhealthy == UNHEALTHY_REPLACE},
		{STAGE_GUARDS,    REASON_UNHEALTHY_REPLICAS,    p->guards.unhealthy != UNHEALTHY_IGNORE},
		{STAGE_GUARDS,    REASON_UNHEALTHY_UNKNOWN,     p->guards.unhealthy != UNHEALTHY_IGNORE},
		{STAGE_GUARDS,    REASON_MARGINAL_GAIN,         p->guards.gain.set},
		{STAGE_GUARDS,    REASON_MAX_STEP,              p->guards.max_step > 0},
		{STAGE_CAPACITY,  REASON_CAPACITY_LIMITED,      p->capacity.mode == CAPACITY_FIXED},
		{STAGE_CAPACITY,  REASON_CAPACITY_WITHDRAWN,    p->capacity.mode == CAPACITY_ELASTIC},
		{STAGE_CAPACITY,  REASON_CAPACITY_RETRY,        p->capacity.mode == CAPACITY_ELASTIC},
		{STAGE_CAPACITY,  REASON_PENDING_REMOVED,       true},
		{STAGE_CAPACITY,  REASON_CAPACITY_UNKNOWN,      true},
		{STAGE_MODE,      REASON_PAUSED,                p->paused},
		{STAGE_MODE,      REASON_DRY_RUN,               p->dry_run},
	        // clang-format on
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		c->expected[rows[i].stage][rows[i].reason] = rows[i].applies && stage_is_enabled(rows[i].stage, p);
}

// ---- the list ----

static void coverage_free(struct coverage *c)
{
	free(c->namespace_name);
	free(c->name);
	free(c);
}

static struct coverage *coverage_new(const struct policy *p)
{
	struct coverage *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->namespace_name = strdup(p->namespace_name);
	c->name = strdup(p->name);
	set_expected(c, p);
	if (c->namespace_name && c->name)
		return c;
	coverage_free(c);
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
	for (size_t i = 0; i < list->n; i++)
		coverage_free(list->items[i]);
	free(list->items);
	*list = (struct coverage_list){0};
}
