// SPDX-License-Identifier: Apache-2.0
// A policy as a candidate: its signals are bound to the simulated metrics or to columns of a recording, and decide() is
// called directly.
#ifndef GPUSCALE_REPLAY_POLICY_CANDIDATE_H
#define GPUSCALE_REPLAY_POLICY_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

struct engine_model;
struct err;
struct recording;
struct world;

enum signal_origin {
	ORIGIN_DEMAND,      // simulated: replicas' worth that arrive, mean of 15 s
	ORIGIN_BACKLOG,     // simulated: queued replica-seconds
	ORIGIN_UTILIZATION, // simulated: 0 .. 1 of the ready replicas, mean of 60 s
	                    // With engines, ORIGIN_ENGINE takes the place of these three.
	ORIGIN_COLUMN,      // recorded: does not react to what the candidate does
	ORIGIN_FORMULA,     // computed from the other signals
	ORIGIN_ENGINE,      // simulated: engine_history_read() of the metric
	ORIGIN__COUNT
};
#define ORIGIN_SIMULATED ORIGIN_COLUMN // how many are simulated

// Where a signal of a candidate comes from: a simulated metric, in the unit of the signal, or a column.
struct signal_binding {
	enum signal_origin origin; // bindings of the caller: up to ORIGIN_COLUMN, ignored without a query
	double factor;             // by which a simulated metric is multiplied
	int column;                // ORIGIN_COLUMN: its index in the recording; ORIGIN_ENGINE: enum engine_metric
};

// What a candidate reads. All is not owned.
struct candidate_input {
	const struct recording *recording;
	const char *file;                      // names the recording in errors
	const char *const *names;              // closed loop: of the signals that the simulated metrics are
	const struct engine_model *engine;     // closed loop: the replicas are engines; NULL: a fluid queue
	const struct signal_binding *bindings; // closed loop: one per signal, in place of names; NULL: none
	int64_t start_ms;                      // since the epoch, of simulated time 0
};

struct policy_candidate {
	const struct policy *policy; // not owned
	struct candidate_input input;
	void *state; // state of the engine; heap
	struct signal_binding bindings[POLICY_SIGNALS_MAX];
	int age_columns[POLICY_SIGNALS_MAX]; // open loop: how old each sample was, in seconds; -1: 0
	size_t row;                          // row of the recording at the present time
	bool started;
	int64_t last_ms;
	int32_t last_replicas;
	struct obs_series series[POLICY_SIGNALS_MAX];
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	struct decision decision;                                            // the last one
	void (*on_decision)(void *context, const struct decision *decision); // called after each one; may be NULL
	void *context;
};

// Binds every signal of `policy`: in closed loop, the signals of the simulated metrics are simulated: names[origin], or
// where that is NULL the signal demand, backlog or utilization, and with an `engine` each of its metrics, under the
// name that the model gives it, else under its own. Any other signal, and in open loop (`names` NULL) every signal, is
// the column of its name; there, a column NAME:age says how many seconds old its samples were. Returns 0, or -1 and *e:
// ERR_INPUT without such a column or for a name that the policy does not have, ERR_UNSUPPORTED for a signal of type
// Pods, ERR_INTERNAL. The caller calls policy_candidate_done() in both cases.
int policy_candidate_init(struct policy_candidate *c, const struct policy *policy, const struct candidate_input *input,
                          struct err *e);
void policy_candidate_done(struct policy_candidate *c);

// What a controller has learnt, as its status has it.
struct policy_learnt {
	unsigned char record[DECIDE_OBJECTIVE_BYTES_MAX]; // decide_objective_save()
	size_t n_record;                                  // 0: none that is usable
	double capacity_ratio;                            // ratio in the record; 0: without one
	double startup_s;                                 // below 0: unknown
};
// Continues with what a controller has learnt, at the start of the simulation; `l` may be NULL. A policy whose queries
// are not those of the record learns anew.
void policy_candidate_restore(struct policy_candidate *c, const struct policy_learnt *l);

// The decide function of a struct candidate (world.h); self is a policy_candidate.
int32_t policy_candidate_decide(void *self, const struct world *w, bool has_data);
// What ran at a row of the recording; -1: unknown.
struct recorded_scale {
	int32_t replicas; // requested; must be known
	int32_t ready;
	int32_t pending; // unknown: those that are not ready
};
// Decides on what was recorded at `row`; `scale` is what ran then. As in `gpuscale step`, replicas that differ from the
// last call mean that the target was scaled after it. The decision is in c->decision.
void policy_candidate_decide_recorded(struct policy_candidate *c, size_t row, const struct recorded_scale *scale);

#endif
