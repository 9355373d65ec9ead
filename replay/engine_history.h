// SPDX-License-Identifier: Apache-2.0
// The data of simulated engines for a query: samples of their counters and gauges, one each step, read as rates over a
// window, some seconds old, and off by a little.
#ifndef GPUSCALE_REPLAY_ENGINE_HISTORY_H
#define GPUSCALE_REPLAY_ENGINE_HISTORY_H

#include <stdint.h>

#include "replay/engine_model.h"

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

static inline void engine_history_add(struct engine_history *h, const struct engine_sample *s)
{
	h->samples[h->n++ % ENGINE_HISTORY] = *s;
}

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
