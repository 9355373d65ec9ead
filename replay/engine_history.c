// SPDX-License-Identifier: Apache-2.0
#include "replay/engine_history.h"

#include <math.h>

#include "base/hash.h"

#define MEAN_S     1800 // as in llm-demand
#define NO_REQUEST 1000 // tokens of a request while there was none

// The sample of `ago` steps before the newest one; the oldest when there is none so old.
static const struct engine_sample *at(const struct engine_history *h, uint64_t ago)
{
	uint64_t n = h->n < ENGINE_HISTORY ? h->n : ENGINE_HISTORY;
	return &h->samples[(h->n - 1 - (ago < n ? ago : n - 1)) % ENGINE_HISTORY];
}

static double served(const struct engine_sample *a, const struct engine_sample *b)
{
	return b->prompt_tokens - a->prompt_tokens + b->generation_tokens - a->generation_tokens;
}

// Tokens of a request.
static double mean_request(const struct engine_history *h, uint64_t age)
{
	const struct engine_sample *b = at(h, age), *a = at(h, age + (uint64_t)(MEAN_S / h->step_s));
	double n = b->first_tokens - a->first_tokens;
	return n > 0 ? served(a, b) / n : NO_REQUEST;
}

// deriv(): the slope of the least squares over the samples of the window, per second.
static double waiting_growth(const struct engine_history *h, uint64_t age, uint64_t window)
{
	double n = (double)window + 1, middle = (double)window / 2, sum = 0;
	for (uint64_t i = 0; i <= window; i++)
		sum += (middle - (double)i) * at(h, age + i)->waiting;
	return sum / ((n * n - 1) * n / 12) / h->step_s;
}

static double mean_occupancy(const struct engine_history *h, uint64_t age, uint64_t window)
{
	double sum = 0;
	for (uint64_t i = 0; i < window; i++)
		sum += at(h, age + i)->occupancy;
	return sum / (double)window;
}

static double exact(const struct engine_history *h, enum engine_metric metric)
{
	const struct engine_model *m = h->model;
	uint64_t age = (uint64_t)((double)m->age_ms / 1000 / h->step_s),
	         window = (uint64_t)((double)m->window_ms / 1000 / h->step_s);
	if (h->n < age + 2)
		return NAN;
	window = window < 1 ? 1 : window < h->n - 1 - age ? window : h->n - 1 - age;
	const struct engine_sample *b = at(h, age), *a = at(h, age + window);
	double span_s = (double)window * h->step_s;
	switch (metric) {
	case ENGINE_DEMAND:
		return fmax(0, served(a, b) / span_s + waiting_growth(h, age, window) * mean_request(h, age)) /
		       m->figure;
	case ENGINE_BACKLOG:
		return b->waiting * mean_request(h, age) / m->figure;
	case ENGINE_UTILIZATION:
		return mean_occupancy(h, age, window);
	case ENGINE_WAITING:
		return b->waiting;
	case ENGINE_RUNNING:
		return b->running;
	case ENGINE_IN_FLIGHT:
		return b->waiting + b->running;
	case ENGINE_PROMPT_TOKENS:
		return (b->prompt_tokens - a->prompt_tokens) / span_s;
	case ENGINE_GENERATION_TOKENS:
		return (b->generation_tokens - a->generation_tokens) / span_s;
	case ENGINE_ARRIVING_TOKENS:
		return (b->arrived_tokens - a->arrived_tokens) / span_s;
	case ENGINE_KV_USAGE:
		return b->kv;
	case ENGINE_LATE_FIRST_TOKENS:
	case ENGINE_METRIC__COUNT:
		break;
	}
	return (b->late - a->late) / (b->first_tokens - a->first_tokens);
}

double engine_history_read(const struct engine_history *h, enum engine_metric metric)
{
	// From N(1, noise), not below 0; the same for one metric at one time, whatever reads it.
	uint64_t draw = hash_mix(h->seed ^ hash_mix(h->n * ENGINE_METRIC__COUNT + metric + 1));
	return exact(h, metric) * fmax(0, 1 + h->model->noise * engine_normal(draw));
}

struct engine_now engine_history_now(const struct engine_history *h)
{
	const struct engine_sample *b = at(h, 0), *a = at(h, 1);
	return (struct engine_now){
	        .utilization = b->occupancy,
	        .demand = (b->arrived_tokens - a->arrived_tokens) / h->step_s / h->model->figure,
	        .backlog = b->waiting * mean_request(h, 0) / h->model->figure,
	        .wait_s = b->oldest_s,
	};
}
