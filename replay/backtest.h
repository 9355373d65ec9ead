// SPDX-License-Identifier: Apache-2.0
// A backtest: what ran, this policy, other autoscalers, fixed replica counts and the clairvoyant bound on one
// recording.
#ifndef GPUSCALE_REPLAY_BACKTEST_H
#define GPUSCALE_REPLAY_BACKTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/peers.h"
#include "replay/policy_candidate.h"
#include "replay/recording.h"
#include "replay/score.h"
#include "replay/world.h"

struct decision;
struct err;
struct loop_step;
struct policy;

#define BACKTEST_FIXED_MAX  32
#define BACKTEST_ROWS_MAX   64
#define BACKTEST_NAME_BYTES 96

enum backtest_kind { BACKTEST_ACTUAL, BACKTEST_POLICY, BACKTEST_PEER, BACKTEST_FIXED, BACKTEST_BOUND, BACKTEST__COUNT };
extern const char *const backtest_kind_names[BACKTEST__COUNT]; // "actual"

// Which count of replicas is ready when a closed loop starts.
enum backtest_start {
	BACKTEST_START_GIVEN,    // that of the configuration
	BACKTEST_START_RECORDED, // recorded within a few minutes of the start
	BACKTEST_START_MEAN,     // none is recorded: the mean demand, rounded up
	BACKTEST_START_NOT_ZERO, // the same: 0 is recorded, where the policy would hold until the target is scaled by
	                         // hand
};

struct backtest_config {
	bool open_loop;
	bool policy_only; // neither peers, nor fixed counts, nor the bound
	bool hpa_only;    // closed loop: only what ran and the HPA, both only while replicas are recorded, not even the
	                  // policy
	unsigned sweep_threads;    // closed loop without engines: how many threads play the rows of a sweep, cost
	                           // against lateness, which need an objective, a target or watermarks; 0: none
	const char *demand_column; // NULL: "demand"
	const char *signals[ORIGIN_SIMULATED]; // which signals the simulated metrics are; NULL: those of the same name
	const struct signal_binding *bindings; // closed loop without engines: in place of these names; NULL: none
	const struct engine_model *engine;     // closed loop: the replicas are engines; NULL: a fluid queue
	double per_replica;                    // demand that one replica serves
	double late_ratio, wait_s;             // the objective: at most this share of requests waits longer
	int32_t replicas;                      // at the start; 0: as in enum backtest_start
	int32_t fixed[BACKTEST_FIXED_MAX];
	size_t n_fixed; // 0: the cheapest count within the objective, and the cheapest that is no later than the policy
	const struct policy_learnt *learnt; // closed loop: the policy, and the world where it states nothing else,
	                                    // start with it; NULL: nothing
	// Called with every decision of the policy, in the order of time; may be NULL.
	void (*on_decision)(void *context, const struct decision *decision);
	void *context;
	// Called before each candidate runs: how many ran, how many there are in all, and its name; may be NULL.
	void (*on_progress)(void *progress, size_t done, size_t total, const char *name);
	void *progress;
	// Called with every step of every row but the fixed counts, row by row; may be NULL. `row` is the index of the
	// row. In open loop a step is a row of the recording.
	void (*on_step)(void *step_context, size_t row, enum backtest_kind kind, const struct loop_step *step);
	void *step_context;
	struct world_config world; // step_ms is set by backtest_run(); n_startups 0: the time that
	                           // was learnt, else that in the policy, else 120 s
};

struct backtest_row {
	enum backtest_kind kind;
	char name[BACKTEST_NAME_BYTES];
	enum peer_kind peer; // kind of a BACKTEST_PEER
	double setting; // of a peer; fixed replicas; percent late of a bound; in a sweep, what varies of the policy
	bool is_best;   // best settings of a peer: the cheapest within the objective, else the least late
	struct score score;
};

struct backtest {
	struct backtest_config config;     // with defaults filled in
	const struct recording *recording; // not owned
	const char *file;                  // not owned
	struct demand demand;              // closed loop only
	enum backtest_start start;         // closed loop only
	int32_t first;                     // replicas at the start; the row of what ran starts with the recorded ones
	bool has_replicas_column;
	bool startup_is_learnt, ratio_is_learnt; // whether the world has learnt values, from config.learnt
	double recorded_share;                   // closed loop: of the time with demand, with recorded replicas; 0 .. 1
	size_t n_held;                           // open loop: rows without replicas, which were left out
	size_t n_recorded_signals;               // closed loop: signals that are recorded and do not react
	bool bound_reached;                      // the bound keeps the objective
	const char *bound_name;                  // the row whose schedule the bound repeats; NULL: it has its own
	struct backtest_row rows[BACKTEST_ROWS_MAX];
	size_t n_rows;
};

// Runs the backtest; `recording` and `file` must outlive the result. Returns 0, or -1 and *e: ERR_INPUT, ERR_LIMIT,
// ERR_UNSUPPORTED, ERR_INTERNAL. The caller calls backtest_done() in both cases.
int backtest_run(const struct backtest_config *config, const struct policy *policy, const struct recording *recording,
                 const char *file, struct backtest *ret, struct err *e);
void backtest_done(struct backtest *b);

// The row of the policy; not with hpa_only.
const struct backtest_row *backtest_policy_row(const struct backtest *b);

#endif
