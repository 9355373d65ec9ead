// SPDX-License-Identifier: Apache-2.0
// The algorithm behind `spec.objective`: at most the share `late` of the work may wait longer than `wait_s`.
//
// Demand does not depend on our decisions, so any sizing rule can be simulated exactly against the demand that came.
// 72 rules (objective_rule.h) each run a virtual queue (objective_memory.h); the real scale follows the cheapest rule
// whose record, extended by a prior while it is short, keeps the objective. One step stands for OBJECTIVE_STEP_S
// seconds:
//   1. learn the load: requirement, forecasts, deviations, peaks, seasons (objective_load.h)
//   2. every rule: a level from the load; the virtual queue is served and scaled; its lateness is estimated
//   3. choose: the least cost among the rules that keep the aim; between two rungs of a ladder, interpolate
//   4. apply the rule to the real queue and its pending orders
// The rules and their records are full information, so following the best record is follow-the-leader without weights
// (Cesa-Bianchi and Lugosi, Prediction, Learning, and Games, chapter 3). The prior takes the place of a conformal
// margin (Gibbs and Candes 2021) before there is evidence. A margin in deviations is the newsvendor's (Arrow, Harris
// and Marschak 1951). Waiting a start-up time before a leaner rule, and charging a start-up for every removal, is
// ski rental (Karlin, Manasse, Rudolph and Sleator 1988).
//
// No allocation, no clock, no randomness. Equal state, goal and input give an equal result and state.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/objective_memory.h"
#include "policies/engine/objective_rule.h"

// Ceilings. Larger goals and inputs are limited to them.
#define OBJECTIVE_REPLICAS_MAX  65535
#define OBJECTIVE_DEMAND_MAX    1e6 // replicas
#define OBJECTIVE_BACKLOG_MAX   1e9 // replica-seconds
#define OBJECTIVE_STARTUP_MAX_S 3600
#define OBJECTIVE_WAIT_MAX_S    86400
#define OBJECTIVE_LATE_MIN      1e-6

struct objective_goal {
	double late;      // share of the work that may wait longer than wait_s, above 0 up to 1
	double wait_s;    // 0 or more
	double startup_s; // from the order of a replica until it is ready
	int32_t min_replicas, max_replicas;
};

struct objective_input {
	double demand;   // arriving work, in replicas that would just serve it
	double backlog;  // work that waits, in replica-seconds
	double capacity; // what a replica serves of the work that demand takes for one; 0: all of it
	int32_t replicas, ready;
	int64_t time_s; // since the epoch; only the minute and the quarter of the day are used
	double late;    // share of the requests that was late, where that is measured
	bool is_measured;
	bool is_history;  // demand of an earlier time, for which backlog, replicas and ready are not known
	bool is_doubtful; // the backlog counts for this step, but nothing is learnt from it
};

// A rule and its record.
struct objective_record {
	enum objective_family family;
	float rung;     // 0 .. OBJECTIVE_RUNGS - 1; a fraction lies between two rungs
	float level;    // replicas that it wants before the backlog
	float late;     // estimated share of late work
	float replicas; // mean cost in replicas, over the memory of a day
};

// Part of the flat state of the stage; has no padding.
struct objective_result {
	int32_t replicas;   // min_replicas .. max_replicas
	int32_t wanted;     // by the rule, before the start-up window kept more
	float backlog_adds; // replicas for the backlog expected when an order is ready
	float aim; // share of late work aimed for: the goal, less after real lateness, or up to 30 % more without
	struct objective_record rule;              // in use
	struct objective_record leaner;            // the next rung down; equal to `rule` on the lowest rung
	struct objective_record proposed;          // the best rule: leaner than `rule` while it waits
	int32_t leaner_steps, leaner_steps_needed; // progress of `proposed`; 0 when it is in use
	int32_t kept;         // boolean: more was wanted within a start-up time, so the scale is not reduced yet
	int32_t starting;     // boolean: the scale is not reduced below that of the first step yet
	int32_t reachable_at; // replicas that would keep the goal, when max_replicas is too few; 0: it is enough
};

void objective_init(struct objective *s);
// Simulates one step and computes the replicas to run. Returns false, with a result that holds in->replicas, and
// leaves the state alone when demand or backlog is not finite. Call it every OBJECTIVE_STEP_S seconds while there is
// data, and not at all while there is none: a step without data would be learnt as idle.
bool objective_step(struct objective *s, const struct objective_goal *g, const struct objective_input *in,
                    struct objective_result *ret_result);

// Records that the maximum was asked for in place of what the rules ask for: the `replicas` of the target are kept
// afterwards for as long as any others that were ordered, instead of being removed and ordered again at each tick.
void objective_asked_for_all(struct objective *s, const struct objective_goal *g, int32_t replicas);

#endif
