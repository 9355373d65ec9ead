// SPDX-License-Identifier: Apache-2.0
// What an objective has learnt, as bytes that outlive the process. They come back from outside, so that every index and
// every number is checked before the engine uses it. Bytes of another version of the engine, or of other queries, are
// refused: the history of the demand signal replaces them.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "policies/engine/decide.h"
#include "policies/engine/number.h"
#include "policies/engine/objective_state.h"
#include "policies/engine/plausible.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"

#define FLOAT_MAX 1e12f

// A queue as it is saved: each on its own, not as arrays of fields. The saved state has these in the place of the
// queues.
struct saved_queue {
	uint16_t ready, replicas;
	struct objective_hold hold;
	uint8_t starting[OBJECTIVE_START_SLOTS];
	float backlog, late, cost;
};

struct saved {
	uint64_t key;
	struct objective_state state;
};
_Static_assert(sizeof(struct saved_queue[OBJECTIVE_RULES]) == sizeof(struct objective_queues),
               "one replaces the other");
_Static_assert(sizeof(struct saved) <= DECIDE_OBJECTIVE_BYTES_MAX, "the public name of the ceiling");
_Static_assert(sizeof(struct objective) == 3628, "a new field of struct objective needs a check in this file");

static uint64_t hash_signal(uint64_t h, const struct policy_signal *s)
{
	h = hash_text(hash_text(h, s->name ? s->name : ""), s->query ? s->query : "");
	return hash_bytes(h, &s->series, sizeof s->series);
}

static uint64_t key_of(const struct policy *policy)
{
	const uint64_t version[] = {STATE_VERSION, sizeof(struct saved)};
	uint64_t h = hash_bytes(HASH_START, version, sizeof version);
	h = hash_signal(h, &policy->signals[policy->objective.demand_index]);
	return hash_signal(h, &policy->signals[policy->objective.backlog_index]);
}

// ---- queues ----

static void save_queues(const struct objective_queues *q, void *ret_bytes)
{
	struct saved_queue rows[OBJECTIVE_RULES];
	for (int i = 0; i < OBJECTIVE_RULES; i++) {
		rows[i] = (struct saved_queue){.ready = q->ready[i],
		                               .replicas = q->replicas[i],
		                               .hold = q->hold[i],
		                               .backlog = q->backlog[i],
		                               .late = q->late[i],
		                               .cost = q->cost[i]};
		for (int slot = 0; slot < OBJECTIVE_START_SLOTS; slot++)
			rows[i].starting[slot] = q->starting[slot][i];
	}
	memcpy(ret_bytes, rows, sizeof rows);
}

static void restore_queues(const void *bytes, struct objective_queues *ret)
{
	struct saved_queue rows[OBJECTIVE_RULES];
	memcpy(rows, bytes, sizeof rows);
	for (int i = 0; i < OBJECTIVE_RULES; i++) {
		ret->ready[i] = rows[i].ready;
		ret->replicas[i] = rows[i].replicas;
		ret->hold[i] = rows[i].hold;
		ret->backlog[i] = rows[i].backlog;
		ret->late[i] = rows[i].late;
		ret->cost[i] = rows[i].cost;
		for (int slot = 0; slot < OBJECTIVE_START_SLOTS; slot++)
			ret->starting[slot][i] = rows[i].starting[slot];
	}
}

// ---- checks ----

static bool floats_are_sane(const float *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(f[i] >= -FLOAT_MAX && f[i] <= FLOAT_MAX))
			return false;
	return true;
}
#define SANE(array) floats_are_sane((array), sizeof(array) / sizeof(array)[0])

// What a number of the memory may be at most under a policy: no demand was above its limit, and no requirement above
// that of a burst of such demand.
enum limit { ANY, DEMAND, BURST, FORECAST, SQUARE, LATE, LIMIT__COUNT };

// clang-format off
#define ROW(field, limit) {offsetof(struct objective, field), sizeof ((struct objective *)NULL)->field / sizeof(float), limit}
static const struct {
	size_t offset, n;
	enum limit limit;
} floats[] = {
	ROW(work, ANY), ROW(time, ANY), ROW(real_work, ANY), ROW(late, ANY), ROW(correction, ANY), ROW(wanted.blocks, ANY),
	ROW(burst.backlog, ANY), ROW(burst.filled, ANY), ROW(burst.filled_really, ANY),
	ROW(load.recent, DEMAND), ROW(load.mean, DEMAND), ROW(load.trend, DEMAND), ROW(load.level, FORECAST), ROW(load.variance, SQUARE),
	ROW(load.hour, BURST), ROW(load.day, BURST), ROW(load.hour_now, BURST), ROW(load.day_now, BURST),
	ROW(load.peaks[OBJECTIVE_PEAK_BRISK].blocks, FORECAST), ROW(load.peaks[OBJECTIVE_PEAK_CALM].blocks, FORECAST),
	ROW(load.peaks[OBJECTIVE_PEAK_SHORT].blocks, BURST), ROW(load.peaks[OBJECTIVE_PEAK_LONG].blocks, BURST),
	ROW(queues.backlog, ANY), ROW(queues.late, LATE), ROW(queues.cost, ANY),
};
#undef ROW
// clang-format on

static bool floats_are_within(const struct objective *o, const float most[LIMIT__COUNT])
{
	for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
		const void *at = (const unsigned char *)o + floats[i].offset;
		const float *f = at;
		for (size_t k = 0; k < floats[i].n; k++)
			if (!(f[k] >= -FLOAT_MAX && f[k] <= most[floats[i].limit]))
				return false;
	}
	return true;
}

static bool rule_is_sane(int64_t family, float rung)
{
	return family >= 0 && family < OBJECTIVE_FAMILY__COUNT && rung >= 0 && rung <= OBJECTIVE_RUNGS - 1;
}

static bool load_is_sane(const struct objective_load *l)
{
	for (size_t i = 0; i < OBJECTIVE_PEAK__COUNT; i++)
		if (l->peaks[i].at >= BLOCK_MAX_BLOCKS)
			return false;
	return l->variance[0] >= 0 && l->variance[1] >= 0 && l->hour_at >= 0 && l->hour_at < OBJECTIVE_HOUR_SLOTS &&
	       l->day_at >= 0 && l->day_at < OBJECTIVE_DAY_SLOTS;
}

static bool queues_are_sane(const struct objective_queues *q)
{
	for (int i = 0; i < OBJECTIVE_RULES; i++) {
		int32_t replicas = q->ready[i];
		for (int slot = 0; slot < OBJECTIVE_START_SLOTS; slot++)
			replicas += q->starting[slot][i];
		if (replicas != q->replicas[i])
			return false;
	}
	return true;
}

static bool record_is_sane(const struct objective_record *r)
{
	const float numbers[] = {r->level, r->late, r->replicas};
	return SANE(numbers) && rule_is_sane((int64_t)r->family, r->rung);
}

static bool answer_is_sane(const struct objective_result *a)
{
	return record_is_sane(&a->rule) && record_is_sane(&a->leaner) && record_is_sane(&a->proposed) &&
	       floats_are_sane(&a->backlog_adds, 1) && floats_are_sane(&a->aim, 1) && a->replicas >= 0 &&
	       a->replicas <= OBJECTIVE_REPLICAS_MAX && a->wanted >= 0 && a->wanted <= OBJECTIVE_REPLICAS_MAX;
}

static bool objective_is_sane(const struct objective *o)
{
	static const float most[LIMIT__COUNT] = {FLOAT_MAX, FLOAT_MAX, FLOAT_MAX, FLOAT_MAX, FLOAT_MAX, FLOAT_MAX};
	return o->steps > 0 && o->first_replicas >= 0 && o->first_replicas <= OBJECTIVE_REPLICAS_MAX &&
	       o->slot_step >= 0 && o->slot_step < OBJECTIVE_STARTUP_MAX_S && o->leaner_steps >= 0 &&
	       o->leaner_steps < OBJECTIVE_STARTUP_MAX_S && rule_is_sane(o->family, o->rung) &&
	       floats_are_within(o, most) && o->time >= OBJECTIVE_STEP_S && o->work >= 0 && o->real_work >= 0 &&
	       o->wanted.at < BLOCK_MAX_BLOCKS && load_is_sane(&o->load) && queues_are_sane(&o->queues);
}

#define FORECAST_MOST 64.0f // a steep rise, extended over the longest start-up time, in limits of the demand

// Returns whether no more work was late than there was.
static bool bursts_are_plausible(const struct objective *o)
{
	const float all = OBJECTIVE_RULES * 1.001f * o->work;
	return o->late_burst >= 0 && o->late_burst <= all && o->late_squares >= 0 && o->late_squares <= all * all;
}

// Returns whether the load may have been learnt under this policy. What was learnt without the limit is learnt again,
// from the history.
static bool load_is_plausible(const struct objective *o, const struct policy *policy)
{
	const float demand = 1.001f * (float)plausible_replicas(policy), burst = OBJECTIVE_BURST_MOST * demand;
	const float most[LIMIT__COUNT] = {[ANY] = FLOAT_MAX,        [DEMAND] = demand,
	                                  [BURST] = burst,          [FORECAST] = FORECAST_MOST * demand,
	                                  [SQUARE] = burst * burst, [LATE] = 1.001f * o->work};
	return floats_are_within(o, most) && o->work <= demand * OBJECTIVE_MEMORY_S && bursts_are_plausible(o);
}

static bool is_sane(const struct objective_state *s)
{
	return s->simulated_ms >= 0 && isfinite(s->demand_sum) && s->n_demand >= 0 &&
	       s->n_demand <= DECIDE_OBJECTIVE_SAMPLES_MAX && s->demand_doubt.lasted_ms >= 0 &&
	       s->backlog_doubt.lasted_ms >= 0 && objective_capacity_is_sane(&s->capacity) &&
	       answer_is_sane(&s->answer) && objective_is_sane(&s->objective);
}

// ---- saving and restoring ----

double decide_objective_capacity(const struct policy *policy, const void *state)
{
	const struct state_header *s = state_of_const(policy, state);
	const struct objective_state *o = policy->objective.set ? state_at_const(s, s->objective_offset) : NULL;
	return o ? (double)objective_capacity_ratio(&o->capacity) : 1;
}

size_t decide_objective_save(const struct policy *policy, const void *state, void *ret_bytes)
{
	const struct state_header *s = state_of_const(policy, state);
	struct saved saved;
	if (!policy->objective.set)
		return 0;
	memcpy(&saved.state, state_at_const(s, s->objective_offset), sizeof saved.state);
	saved.key = key_of(policy);
	if (saved.state.objective.steps == 0)
		return 0;
	struct objective_queues *queues = &saved.state.objective.queues;
	save_queues(queues, queues);
	memcpy(ret_bytes, &saved, sizeof saved);
	return sizeof saved;
}

bool decide_objective_restore(const struct policy *policy, void *state, const void *bytes, size_t n, int64_t now_ms)
{
	struct objective_state *o = state_objective(state_of(policy, state));
	struct saved saved;
	if (!o || n != sizeof saved)
		return false;
	memcpy(&saved, bytes, sizeof saved);
	struct objective_queues *queues = &saved.state.objective.queues;
	restore_queues(queues, queues);
	if (saved.key != key_of(policy) || !is_sane(&saved.state) || !load_is_plausible(&saved.state.objective, policy))
		return false;
	// A stamp of a clock that was ahead counts as now.
	if (saved.state.simulated_ms > now_ms + OBJECTIVE_STEP_S * 1000)
		saved.state.simulated_ms = now_ms;
	if (saved.state.capacity.observed_ms > now_ms)
		saved.state.capacity.observed_ms = TIME_NONE;
	*o = saved.state;
	return true;
}
