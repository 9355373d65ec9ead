// SPDX-License-Identifier: Apache-2.0
// Simulated replicas of an inference engine with continuous batching (engine_model.h). A gateway sends each request to
// the replica with the fewest requests in flight, where it waits in the order of arrival until a place in the batch and
// the space for its keys and values are free: the space of the prompt and of the whole output is reserved, so nothing
// is preempted. A step computes prompts, up to maxBatchedTokens less one for each running sequence, and one token of
// each sequence. The first token of a request comes with the end of its prompt.
#ifndef GPUSCALE_REPLAY_ENGINE_H
#define GPUSCALE_REPLAY_ENGINE_H

#include <stdint.h>

#include "replay/engine_history.h"

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

#endif
