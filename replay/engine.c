// SPDX-License-Identifier: Apache-2.0
#include "replay/engine.h"

#include <math.h>

#include "base/base.h"
#include "base/hash.h"
#include "replay/score.h"

#define NONE        UINT32_MAX
#define FULL_WAIT_S 2 // a replica with a request that has waited for so long cannot do more

struct waiting {
	double arrival_s;
	struct engine_request request;
	uint32_t next; // index; NONE: the last one
};

struct queue {
	uint32_t head, tail; // NONE: empty
	int32_t n;
};

struct running {
	uint64_t end;   // decode step of the replica that gives the last token
	int32_t tokens; // that it keeps then
};

struct replica {
	double now_s;      // end of the last step
	double quiet_to_s; // until then, no sequence ends
	struct queue queue;
	int32_t head_left;    // tokens of the first prompt that are to be computed; 0: it has no place yet
	int32_t n;            // running sequences
	uint64_t steps;       // decode steps so far
	int64_t kv, reserved; // tokens
	struct running *heap; // the first to end on top; n of max_sequences
};

struct engine {
	const struct engine_setup *setup;
	double step_s, now_s;
	uint64_t random;
	double gap; // requests that are expected before the next one
	struct waiting *pool;
	uint32_t n_pool, unused; // unused: list of free elements
	size_t cap_pool, cap_replicas;
	struct queue held;        // at the gateway, while no replica is ready
	struct replica *replicas; // the ready ones, then those that drain
	int32_t n_ready, n_replicas;
	struct engine_sample totals; // its counters
	struct score *score;
	struct engine_history history;
};

static uint64_t draw(struct engine *e)
{
	return hash_mix(e->random += UINT64_C(0x9e3779b97f4a7c15));
}

// How many requests are expected between two: 1 where they are recorded, otherwise exponential.
static double next_gap(struct engine *e)
{
	return e->setup->model->arrivals == ENGINE_ARRIVALS_REQUESTS ? 1 : -log(hash_unit(draw(e)));
}

struct engine *engine_new(const struct engine_setup *setup, uint64_t seed, int64_t step_ms)
{
	struct engine *e = calloc(1, sizeof *e);
	if (!e)
		return NULL;
	e->setup = setup;
	e->step_s = (double)step_ms / 1000;
	e->random = seed;
	e->history.model = setup->model;
	e->history.step_s = e->step_s;
	e->history.seed = seed;
	e->unused = e->held.head = e->held.tail = NONE;
	e->gap = setup->model->arrivals == ENGINE_ARRIVALS_REQUESTS ? 0.5 : next_gap(e);
	return e;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	for (int32_t i = 0; i < e->n_replicas; i++)
		free(e->replicas[i].heap);
	free(e->replicas);
	free(e->pool);
	free(e);
}

// ---- queues ----

static void append(struct engine *e, struct queue *q, uint32_t i)
{
	e->pool[i].next = NONE;
	if (q->head == NONE)
		q->head = i;
	else
		e->pool[q->tail].next = i;
	q->tail = i;
	q->n++;
}

static uint32_t take(struct engine *e, struct queue *q)
{
	uint32_t i = q->head;
	q->head = e->pool[i].next;
	if (q->head == NONE)
		q->tail = NONE;
	q->n--;
	return i;
}

// Returns NONE when memory is exhausted, or ENGINE_WAITING_MAX requests wait.
static uint32_t new_waiting(struct engine *e)
{
	uint32_t i = e->unused;
	if (i != NONE) {
		e->unused = e->pool[i].next;
		return i;
	}
	if (alloc_reserve(&e->pool, e->n_pool, &e->cap_pool, sizeof *e->pool, 1024) < 0)
		return NONE;
	return e->n_pool++;
}

// ---- one replica ----

static void heap_push(struct replica *r, struct running x)
{
	int32_t i = r->n++;
	for (; i > 0 && r->heap[(i - 1) / 2].end > x.end; i = (i - 1) / 2)
		r->heap[i] = r->heap[(i - 1) / 2];
	r->heap[i] = x;
}

static struct running heap_pop(struct replica *r)
{
	struct running top = r->heap[0], x = r->heap[--r->n];
	int32_t i = 0;
	for (int32_t k = 1; k < r->n; k = 2 * i + 1) {
		k += k + 1 < r->n && r->heap[k + 1].end < r->heap[k].end;
		if (r->heap[k].end >= x.end)
			break;
		r->heap[i] = r->heap[k];
		i = k;
	}
	r->heap[i] = x;
	return top;
}

static int32_t tokens_of(struct engine_request q)
{
	return q.prompt + q.output;
}

// Gives the first request of the queue a place, if there is one next to `n` sequences.
static bool admit(const struct engine *e, struct replica *r, int32_t n)
{
	const struct engine_model *m = e->setup->model;
	if (r->head_left > 0)
		return true;
	if (r->queue.head == NONE || n >= m->max_sequences)
		return false;
	struct engine_request q = e->pool[r->queue.head].request;
	if (r->reserved + tokens_of(q) > m->kv_tokens)
		return false;
	r->reserved += tokens_of(q);
	r->head_left = q.prompt;
	return true;
}

static void finish(struct engine *e, struct replica *r, int32_t tokens)
{
	r->reserved -= tokens;
	e->totals.finished++;
}

// The prompts of `done` are computed: their first tokens are there.
static void start_decode(struct engine *e, struct replica *r, struct queue *done)
{
	while (done->head != NONE) {
		uint32_t i = take(e, done);
		const struct waiting *w = &e->pool[i];
		double wait_s = r->now_s - w->arrival_s;
		e->totals.first_tokens++;
		e->totals.late += wait_s > e->setup->late_s;
		e->totals.prompt_tokens += w->request.prompt;
		e->totals.generation_tokens++;
		if (e->score)
			score_add_requests(e->score, 1, wait_s, e->setup->late_s);
		if (w->request.output > 1) {
			r->kv += w->request.prompt + 1;
			heap_push(r,
			          (struct running){r->steps + (uint64_t)w->request.output - 1, tokens_of(w->request)});
		} else {
			finish(e, r, tokens_of(w->request));
		}
		e->pool[i].next = e->unused;
		e->unused = i;
	}
}

// The next `count` steps of step_s each have computed `prefill` tokens of prompts and a token of each sequence.
static void count_steps(struct engine *e, struct replica *r, int32_t count, double step_s, int32_t prefill)
{
	double tokens = (double)count * r->n;
	r->now_s += count * step_s;
	if (e->score && r->queue.head != NONE && r->now_s - e->pool[r->queue.head].arrival_s > FULL_WAIT_S) {
		e->score->full_s += count * step_s;
		e->score->full_work += (prefill + tokens) / e->setup->model->figure;
	}
	if (r->n == 0)
		return;
	if (e->score)
		score_add_token_gap(e->score, tokens, step_s);
	e->totals.generation_tokens += tokens;
	r->steps += (uint64_t)count;
	r->kv += (int64_t)count * r->n;
	while (r->n > 0 && r->heap[0].end == r->steps) {
		struct running x = heap_pop(r);
		r->kv -= x.tokens;
		finish(e, r, x.tokens);
	}
}

// One step that computes prompts.
static void mixed_step(struct engine *e, struct replica *r)
{
	const struct engine_model *m = e->setup->model;
	struct queue done = {NONE, NONE, 0};
	int32_t room = m->max_batched - r->n, prefill = 0;
	while (room > 0 && admit(e, r, r->n + done.n)) {
		int32_t part = r->head_left < room ? r->head_left : room;
		prefill += part;
		room -= part;
		r->head_left -= part;
		if (r->head_left == 0)
			append(e, &done, take(e, &r->queue));
	}
	count_steps(e, r, 1, engine_model_step_s(m, r->n, (double)r->kv, prefill), prefill);
	start_decode(e, r, &done);
}

// Steps without prompts until the first sequence ends: step k takes first_s + (k - 1/2) growth_s.
struct quiet {
	double first_s, growth_s;
	int32_t n;
};

static struct quiet quiet_of(const struct engine *e, const struct replica *r)
{
	const struct engine_model *m = e->setup->model;
	double growth_s = m->per_ktoken_us * r->n / 1e9;
	return (struct quiet){engine_model_step_s(m, r->n, (double)r->kv, 0) - growth_s / 2, growth_s,
	                      (int32_t)(r->heap[0].end - r->steps)};
}

static double quiet_s(const struct quiet *q, double n)
{
	return n * (q->first_s + q->growth_s * n / 2);
}

// As many steps without prompts as reach to_s, or end a sequence.
static void quiet_steps(struct engine *e, struct replica *r, double to_s)
{
	struct quiet q = quiet_of(e, r);
	double left_s = to_s - r->now_s;
	double n = ceil(2 * left_s / (q.first_s + sqrt(q.first_s * q.first_s + 2 * q.growth_s * left_s)));
	int32_t count = n < 1 ? 1 : n < q.n ? (int32_t)n : q.n;
	count_steps(e, r, count, quiet_s(&q, count) / count, 0);
}

// Simulates the steps that start before to_s, and sets the time before which no sequence ends.
static void advance(struct engine *e, struct replica *r, double to_s)
{
	bool mixed = admit(e, r, r->n);
	while (r->now_s < to_s) {
		if (mixed)
			mixed_step(e, r);
		else if (r->n > 0)
			quiet_steps(e, r, to_s);
		else
			r->now_s = to_s;
		mixed = admit(e, r, r->n);
	}
	r->quiet_to_s = r->now_s;
	if (!mixed && r->n > 0) {
		struct quiet q = quiet_of(e, r);
		r->quiet_to_s += quiet_s(&q, q.n);
	} else if (!mixed) {
		r->quiet_to_s = INFINITY;
	}
}

static int32_t in_flight(const struct replica *r)
{
	return r->n + r->queue.n;
}

// ---- the gateway ----

// Sends request `i` to a replica at at_s, or keeps it.
static void route(struct engine *e, uint32_t i, double at_s)
{
	struct replica *best = NULL;
	for (int32_t k = 0; k < e->n_ready; k++) {
		struct replica *r = &e->replicas[k];
		if (r->quiet_to_s <= at_s)
			advance(e, r, at_s);
		if (!best || in_flight(r) < in_flight(best))
			best = r;
	}
	if (best)
		advance(e, best, at_s);
	append(e, best ? &best->queue : &e->held, i);
	if (best)
		best->quiet_to_s = at_s;
}

static struct engine_factors factors_now(const struct engine *e, double at_s)
{
	return engine_model_factors(e->setup->model, (double)e->setup->start_ms / 1000 + at_s);
}

static int32_t scaled(int32_t tokens, double factor, int32_t most)
{
	return (int32_t)fmax(1, fmin(round(tokens * factor), most));
}

static int arrive(struct engine *e, double at_s)
{
	const struct engine_model *m = e->setup->model;
	struct engine_request q = m->samples[draw(e) % m->n_samples];
	struct engine_factors f = factors_now(e, at_s);
	q.output = scaled(q.output, f.output, m->kv_tokens - 1);
	q.prompt = scaled(q.prompt, f.prompt, m->kv_tokens - q.output);
	e->totals.arrived++;
	e->totals.arrived_tokens += tokens_of(q);
	if (e->n_pool == ENGINE_WAITING_MAX && e->unused == NONE) {
		e->totals.refused++;
		if (e->score)
			score_add_requests(e->score, 1, INFINITY, e->setup->late_s);
		return 0;
	}
	uint32_t i = new_waiting(e);
	if (i == NONE)
		return -1;
	e->pool[i] = (struct waiting){.arrival_s = at_s, .request = q};
	route(e, i, at_s);
	return 0;
}

static void route_all(struct engine *e, struct queue *from)
{
	struct queue q = *from;
	*from = (struct queue){NONE, NONE, 0};
	while (q.head != NONE)
		route(e, take(e, &q), e->now_s);
}

// The newest replica drains.
static void drain(struct engine *e)
{
	struct replica *r = &e->replicas[--e->n_ready];
	struct queue rest = r->queue;
	r->queue = (struct queue){NONE, NONE, 0};
	if (r->head_left > 0)
		append(e, &r->queue, take(e, &rest));
	route_all(e, &rest);
}

static int add_replica(struct engine *e)
{
	if (alloc_reserve(&e->replicas, (size_t)e->n_replicas, &e->cap_replicas, sizeof *e->replicas, 16) < 0)
		return -1;
	struct replica r = {.now_s = e->now_s, .queue = {NONE, NONE, 0}};
	r.heap = malloc((size_t)e->setup->model->max_sequences * sizeof *r.heap);
	if (!r.heap)
		return -1;
	if (e->n_ready < e->n_replicas)
		e->replicas[e->n_replicas] = e->replicas[e->n_ready];
	e->n_replicas++;
	e->replicas[e->n_ready++] = r;
	return 0;
}

static void remove_idle(struct engine *e)
{
	for (int32_t k = e->n_replicas - 1; k >= e->n_ready; k--) {
		if (in_flight(&e->replicas[k]) > 0)
			continue;
		free(e->replicas[k].heap);
		e->replicas[k] = e->replicas[--e->n_replicas];
	}
}

// ---- steps and metrics ----

// The wait of its first request.
static double wait_of(const struct engine *e, const struct queue *q)
{
	return q->head == NONE ? 0 : e->now_s - e->pool[q->head].arrival_s;
}

static void add_sample(struct engine *e)
{
	struct engine_sample s = e->totals;
	const struct engine_model *m = e->setup->model;
	s.waiting = e->held.n;
	s.oldest_s = wait_of(e, &e->held);
	for (int32_t k = 0; k < e->n_replicas; k++) {
		const struct replica *r = &e->replicas[k];
		s.waiting += r->queue.n - (r->head_left > 0);
		s.running += r->n + (r->head_left > 0);
		s.oldest_s = fmax(s.oldest_s, wait_of(e, &r->queue));
	}
	for (int32_t k = 0; k < e->n_ready; k++) {
		const struct replica *r = &e->replicas[k];
		s.occupancy += (double)(r->n + (r->head_left > 0)) / m->max_sequences / e->n_ready;
		s.kv += (double)r->kv / m->kv_tokens / e->n_ready;
	}
	e->history.samples[e->history.n++ % ENGINE_HISTORY] = s;
}

int engine_step(struct engine *e, int32_t ready, double work, struct score *score)
{
	const struct engine_model *m = e->setup->model;
	e->score = score;
	while (e->n_ready > ready)
		drain(e);
	while (e->n_ready < ready)
		if (add_replica(e) < 0)
			return -1;
	if (e->n_ready > 0)
		route_all(e, &e->held);
	double at = 0, requests = work * m->max_requests_s;
	if (m->arrivals == ENGINE_ARRIVALS_DEMAND && m->n_hours > 0)
		requests = work * engine_model_requests_s(m, factors_now(e, e->now_s));
	for (; at + e->gap <= requests;) {
		at += e->gap;
		if (arrive(e, e->now_s + e->step_s * at / requests) < 0)
			return -1;
		e->gap = next_gap(e);
	}
	e->gap -= requests - at;
	e->now_s += e->step_s;
	for (int32_t k = 0; k < e->n_replicas; k++)
		advance(e, &e->replicas[k], e->now_s);
	remove_idle(e);
	add_sample(e);
	return 0;
}

static void score_queue(const struct engine *e, const struct queue *q, struct score *score)
{
	for (uint32_t i = q->head; i != NONE; i = e->pool[i].next) {
		double wait_s = e->now_s - e->pool[i].arrival_s;
		if (wait_s > e->setup->late_s)
			score_add_requests(score, 1, wait_s, e->setup->late_s);
	}
}

void engine_score_waiting(const struct engine *e, struct score *score)
{
	score_queue(e, &e->held, score);
	for (int32_t k = 0; k < e->n_replicas; k++)
		score_queue(e, &e->replicas[k].queue, score);
}

int32_t engine_draining(const struct engine *e)
{
	return e->n_replicas - e->n_ready;
}

const struct engine_history *engine_history(const struct engine *e)
{
	return &e->history;
}

// ---- the history ----

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
