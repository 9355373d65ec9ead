// SPDX-License-Identifier: Apache-2.0
// Simulated replicas of an inference engine with continuous batching (engine_model.h). A gateway sends each request to
// the replica with the fewest requests in flight, where it waits in the order of arrival until a place in the batch and
// the space for its keys and values are free: the space of the prompt and of the whole output is reserved, so nothing
// is preempted. A step computes prompts, up to maxBatchedTokens less one for each running sequence, and one token of
// each sequence. The first token of a request comes with the end of its prompt.
#ifndef GPUSCALE_REPLAY_ENGINE_H
#define GPUSCALE_REPLAY_ENGINE_H

#include <stdint.h>

#include "replay/engine_model.h"

struct score;

#define ENGINE_REPLICAS_MAX 1024
#define ENGINE_WAITING_MAX  2000000   // requests that wait; more are refused, and late
#define ENGINE_REQUESTS_MAX 200000000 // requests in a run

struct engine_setup {
	const struct engine_model *model; // not owned; NULL: no engines
	int64_t start_ms;                 // since the epoch, of time 0
	double late_s;                    // first tokens that take longer are late
};

struct engine;

// Returns an engine without replicas, or NULL when memory is exhausted. `setup` must outlive it. Equal seeds draw equal
// requests.
struct engine *engine_new(const struct engine_setup *setup, uint64_t seed, int64_t step_ms);
void engine_free(struct engine *e); // NULL is permitted

// Simulates one step of step_ms with `ready` replicas, in which `work` replica-seconds arrive, as requests. The waits
// for first tokens, times between tokens, and work of full replicas are added to `score` unless it is NULL. Replicas
// that are no longer ready finish their running requests and return the waiting ones to the gateway. Returns 0, or -1
// when memory is exhausted.
int engine_step(struct engine *e, int32_t ready, double work, struct score *score);

// At the end of a run: adds the requests that have waited for their first token for so long that they are late.
void engine_score_waiting(const struct engine *e, struct score *score);

// Replicas that are no longer ready, but still run requests.
int32_t engine_draining(const struct engine *e);
// The history that queries read.
const struct engine_history *engine_history(const struct engine *e);

// ---- what queries and candidates read ----

// The data of simulated engines for a query: samples of their counters and gauges, one each step, read as rates over a
// window, some seconds old, and off by a little.

#define ENGINE_HISTORY 2048 // samples: half an hour, and more at steps above 1 s

struct engine_sample {
	// since the start
	double arrived, arrived_tokens, refused; // requests, but for the tokens
	double first_tokens, late, finished;
	double prompt_tokens, generation_tokens;
	// at this moment
	double waiting, running; // requests
	double oldest_s;         // how long the oldest request without a first token has waited
	double occupancy, kv;    // running / maxSequences, tokens / kvTokens: means of the ready replicas
};

struct engine_history {
	const struct engine_model *model; // not owned
	double step_s;
	uint64_t seed, n;                             // seed of the noise; samples so far
	struct engine_sample samples[ENGINE_HISTORY]; // a ring
};

// The metric as a query returns it, with the age, window and noise of the model; NaN: no data, also until two samples
// are that old. ENGINE_DEMAND and ENGINE_BACKLOG are those of policies/library/llm-demand.yaml. ENGINE_UTILIZATION:
// running requests / maxSequences, and ENGINE_KV_USAGE, 0 .. 1, means of the ready replicas. ENGINE_WAITING,
// ENGINE_RUNNING, ENGINE_IN_FLIGHT: requests of all replicas. ENGINE_..._TOKENS: tokens a second of all replicas.
// ENGINE_LATE_FIRST_TOKENS: share of the first tokens.
double engine_history_read(const struct engine_history *h, enum engine_metric metric);

// As of now, without age and noise: of the last step, running / maxSequences and arriving work in replicas by the
// figure; queued work in replica-seconds by the figure; how long the oldest request without a first token has waited.
struct engine_now {
	double utilization, demand, backlog, wait_s;
};
struct engine_now engine_history_now(const struct engine_history *h);

#endif
