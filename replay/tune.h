// SPDX-License-Identifier: Apache-2.0
// Searches better numbers for a policy on recorded demand. Random candidates play the recording in six parts; after
// each of the first three parts, candidates near the best ones are added, and the worse ones are dropped (successive
// halving). The choice knows the first half only; the second half measures it. The walk-forward repeats this: a choice
// is made on all parts before a part and measured on the part, three times. Equal inputs give equal results, whatever
// the number of threads.
#ifndef GPUSCALE_REPLAY_TUNE_H
#define GPUSCALE_REPLAY_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/tune_space.h"

struct backtest;
struct err;
struct file_set;
struct policy;
struct scenario;

// ---- the tests of the policy ----

// The unit tests of a policy (kind: PolicyTest), which better numbers must keep: those that the present policy passes
// are run with other numbers in its place.
struct tune_tests {
	const char *path; // not owned
	size_t n;
	// Private.
	struct arena arena;    // memory for the tree and the tests
	struct arena run;      // memory for the current test
	struct file_set *sets; // one for each document with tests; the tests point into them
	size_t n_sets;
	struct scenario **tests;
};

struct tune_test_name {
	const char *name;
	int line;
};
#define TUNE_TESTS_BROKEN_MAX 64 // that tune_tests_run() names
struct tune_broken {
	struct tune_test_name tests[TUNE_TESTS_BROKEN_MAX];
	size_t n; // named ones
};

// Reads the tests of `policy` from the file at `path`, which must outlive the result, and drops those of other policies
// and those that `policy` itself fails. *ret_tests is NULL on failure and when no test is left; otherwise the caller
// frees it. Returns 0, or -1 and *e (ERR_IO, ERR_INPUT, ERR_LIMIT, ERR_INTERNAL) when the file, or a policy file that
// it names, cannot be read or decoded.
int tune_tests_load(const char *path, const struct policy *policy, struct tune_tests **ret_tests, struct err *e);
void tune_tests_free(struct tune_tests *t); // t may be NULL

// ---- the search ----

#define TUNE_CANDIDATES_MAX 5000
#define TUNE_PARTS          6 // parts of the recording, equally long
#define TUNE_IN_PARTS       3 // in sample: the first half; the others are out of sample
#define TUNE_FOLDS          (TUNE_PARTS - TUNE_IN_PARTS)
#define TUNE_BLOCKS         4 // blocks of a part, for the error of its lateness
#define TUNE_SPANS          3 // a part is at least this many times as long as the slowest reaction of the policy
#define TUNE_PEERS_MAX      16
#define TUNE_NAME_BYTES     64
#define TUNE_GAIN_MIN       0.01 // a smaller gain is not worth a change

struct tune_config {
	size_t candidates; // with the present policy
	uint64_t seed;
	unsigned threads;
	struct tune_tests *tests;                         // that the chosen point must pass; NULL: none
	void (*on_progress)(void *context, double share); // 0 .. 1, called by the calling thread; may be NULL
	void *context;
};

struct tune_score {
	double replica_s, requests, late;
	int32_t changes;
	// Sums over blocks of the recording, for the error of the share of late requests.
	int32_t n_blocks;
	double late_late, late_requests, requests_requests;
};
double tune_late_percent(const struct tune_score *s); // 0 without requests
// The same plus two standard errors, which the differences between the blocks yield: what other demand of the same kind
// is to be expected to keep.
double tune_late_bound_percent(const struct tune_score *s);
// The loss to minimize: replica-seconds, times late / objective where more than the objective are late.
double tune_loss(const struct tune_score *s, double late_ratio);

struct tune_point {
	size_t index; // number of the candidate; 0 is the present policy
	double values[TUNE_NUMBERS_MAX];
	struct tune_score in, out; // scores of the first and of the second half
	bool is_front;             // out of sample, no other point has less or equal of cost, lateness and changes
};

struct tune_fold {
	struct tune_score in, out; // scores of the choice: on the parts before, and on the part
	struct tune_score present_in, present_out;
	double gain_in, gain_out; // shares of the present policy's loss
};

struct tune_peer {
	char name[TUNE_NAME_BYTES]; // "HPA utilization 0.5"
	struct tune_score in, out;
	struct tune_score parts[TUNE_PARTS];
	bool is_best; // best of its settings: the least loss out of sample
};

enum tune_verdict {
	TUNE_RECOMMENDED,
	TUNE_NONE_BETTER,  // the present policy is the best one
	TUNE_TOO_SMALL,    // the gain is smaller than TUNE_GAIN_MIN
	TUNE_UNCERTAIN,    // the gain is smaller than the gap between in sample and out of sample
	TUNE_TOO_SHORT,    // the parts of the recording are short for the reactions of the policy
	TUNE_TOO_LATE,     // the chosen point does not keep the objective out of sample, or is close to it
	TUNE_DOMINATED,    // out of sample, a peer costs no more and is no later
	TUNE_BREAKS_TESTS, // each better point fails a test that the present policy passes
	TUNE_VERDICT__COUNT
};
extern const char *const tune_verdict_names[TUNE_VERDICT__COUNT]; // "Recommended"

struct tune {
	struct tune_point *points; // that played everything, cheapest (out of sample) first; heap
	size_t n_points;
	size_t present, chosen; // indexes of points; equal when nothing is better
	size_t n_played;        // candidates that played the first part
	struct tune_fold folds[TUNE_FOLDS];
	struct tune_peer peers[TUNE_PEERS_MAX];
	size_t n_peers;
	bool keeps_objective;      // the chosen point does, out of sample
	double late_bound;         // tune_late_bound_percent() of the chosen point over the whole recording
	double late_stressed;      // percent: over the whole recording with a tenth more demand and a longer start-up
	size_t n_failing;          // candidates that were better in sample and fail a test of the policy
	bool is_failing;           // the chosen point fails a test of the policy
	struct tune_broken broken; // by the best one of n_failing
	int64_t part_ms;           // the shortest part, gaps not counted
	int64_t needed_ms;         // length that a part needs
	bool has_library;          // a peer dominates a policy without an objective, so llm-demand was played, too
	struct tune_score library_in, library_out;
	bool library_does;        // out of sample, it keeps the objective and no peer dominates it
	const char *dominated_by; // the peer that is as cheap and as early as the chosen point, or better; NULL: none
	// Shares of the present policy's loss that the choices save: in sample and out of sample, summed over the
	// folds; the largest difference of the two in a fold; and what the chosen point saves out of sample.
	double gain_in, gain_out, gap, gain_chosen;
	enum tune_verdict verdict;
};

// Searches on `scene`, a backtest of the present policy in closed loop, which has the demand, the world and the
// objective. Returns 0, or -1 and *e (ERR_INPUT for a recording that is too short, ERR_INTERNAL). The caller calls
// tune_done() in both cases.
int tune_run(const struct tune_config *config, const struct backtest *scene, struct tune_space *space, struct tune *ret,
             struct err *e);
void tune_done(struct tune *t);

#endif
