// SPDX-License-Identifier: Apache-2.0
// The data shared by the steps of a search for better numbers: the candidates that play the recording part by part.
// Private to replay/tune*.c: tune_search.c plays, draws candidates and drops the worse ones; tune.c validates and
// chooses.
#ifndef GPUSCALE_REPLAY_TUNE_SEARCH_H
#define GPUSCALE_REPLAY_TUNE_SEARCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "policies/engine/policy.h"
#include "replay/peers.h"
#include "replay/policy_candidate.h"
#include "replay/tune.h"
#include "replay/world.h"

struct backtest;
struct err;

// A policy or a peer that plays the recording.
struct tune_trial {
	size_t index; // number of the candidate
	double values[TUNE_NUMBERS_MAX];
	struct arena arena;
	struct policy policy;
	struct policy_candidate *candidate; // NULL: `peer`
	struct peer peer;
	struct closed_loop_play play;
	struct tune_score parts[TUNE_PARTS];
	struct tune_score stressed; // score of the first half, in the harder world of tune_stress_play()
	bool stays;                 // after the present rung
	enum { TUNE_UNTESTED, TUNE_PASSES, TUNE_FAILS } tests;
};

struct tune_search {
	const struct tune_config *config;
	const struct backtest *scene;
	struct tune_space *space;
	struct closed_loop loop;
	struct tune_trial **runs; // that take part, in the order of their candidates
	size_t n_runs, part;      // the next part
	size_t from, to;          // parts that are being played
	double done, all;         // work, in parts
	atomic_bool has_failed;   // no memory
};

// ---- scores ----

// Returns the sum of the parts from `from` to before `to`.
struct tune_score tune_score_sum(const struct tune_score parts[TUNE_PARTS], size_t from, size_t to);
// Returns what a choice on the first n parts minimizes: the sum of their losses, so that a choice which is later than
// the objective in one part pays for it, or the loss of their sum at the bound of its lateness, whichever is larger.
double tune_score_loss(const struct tune_score parts[TUNE_PARTS], size_t n, double late_ratio);

// ---- trials ----

// Returns a trial without a policy, or NULL without memory; tune_trial_free() frees it, and does nothing for NULL.
struct tune_trial *tune_trial_new(struct tune_search *s);
void tune_trial_free(struct tune_trial *r);
// Makes the policy with r->values its policy. Returns 0, or -1 and *e; *ret_refused when the rules between fields do
// not accept them.
int tune_trial_decode(struct tune_search *s, struct tune_trial *r, bool *ret_refused, struct err *e);
// Plays the parts from `from` to before `to`; without memory, sets s->has_failed.
void tune_trial_play(struct tune_search *s, struct tune_trial *r, size_t from, size_t to);

// ---- the steps of a search; each returns 0, or -1 and *e ----

// Draws the candidates, the first of which is the present policy, plays them, drops the worse ones after each part, and
// plays the rest with those that stay.
int tune_halving_play(struct tune_search *s, struct tune *t, struct err *e);
// Plays the first half, or the whole recording, with the policies of `runs` in a harder world: a tenth more demand, and
// replicas that take a quarter longer to start. Sets their `stressed`.
int tune_stress_play(struct tune_search *s, struct tune_trial *const runs[], size_t n, bool whole, struct err *e);
// Plays the peers, into t->peers.
int tune_peers_play(struct tune_search *s, struct tune *t, struct err *e);
// Returns the name of a peer that, summed over the parts from `from` to before `to`, costs no more and is no later than
// `score`, and is better in one of the two, or NULL.
const char *tune_peers_dominating(const struct tune *t, const struct tune_score *score, size_t from, size_t to);
// Plays the objective of the library policy llm-demand with the bounds of the policy, into t->library_in and _out.
int tune_library_play(struct tune_search *s, struct tune *t, struct err *e);

#endif
