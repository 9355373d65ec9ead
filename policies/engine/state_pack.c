// SPDX-License-Identifier: Apache-2.0
// Packing of the state: the unused room of windows and histories is most of a block, and a policy that waits for its
// next tick does not need it. The parts in use are stored one after the other, in the order of the block.
#include <assert.h>
#include <string.h>

#include "policies/engine/decide_state.h"
#include "policies/engine/marginal_gain.h"
#include "policies/engine/objective_state.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"

// One walk serves packing and unpacking, so that they cannot differ.
enum direction { COUNT, PACK, UNPACK };

struct walk {
	enum direction direction;
	unsigned char *packed;
	size_t n; // bytes so far
};

static void copy(struct walk *w, void *in_block, size_t n)
{
	if (n > 0 && w->direction == PACK)
		memcpy(w->packed + w->n, in_block, n);
	if (n > 0 && w->direction == UNPACK)
		memcpy(in_block, w->packed + w->n, n);
	w->n += n;
}

static void walk_window(struct walk *w, struct window_sample *samples, const struct window *window)
{
	uint32_t to_end = window->cap - window->head, n = window->len;
	uint32_t first = n < to_end ? n : to_end;
	copy(w, samples + window->head, first * sizeof *samples);
	copy(w, samples, (n - first) * sizeof *samples);
}

static void walk_history(struct walk *w, struct history_mark *marks, const struct history *history)
{
	copy(w, marks + history->start, history->len * sizeof *marks);
}

// Copies the header and the signals first: they contain the places of everything else.
static void walk(struct walk *w, const struct policy *policy, struct state_header *s)
{
	copy(w, s, sizeof *s + policy->n_signals * sizeof(struct state_signal));
	assert(state_of(policy, s) == s);
	if (s->forecast.n_slots > 0) {
		copy(w, state_skill(s, &s->forecast), sizeof(struct skill));
		copy(w, state_slots(s, &s->forecast),
		     forecast_doubles_needed(&policy->forecast, policy->interval_ms) * sizeof(double));
	}
	if (s->objective_offset > 0)
		copy(w, state_objective(s), sizeof(struct objective_state));
	if (s->gain_offset > 0)
		copy(w, state_gain(s), sizeof(struct marginal_gain));
	for (size_t i = 0; i < policy->n_signals; i++) {
		const struct window *window = &state_signal(s, i)->window;
		if (window->len > 0)
			walk_window(w, state_samples(s, window), window);
	}
	if (s->recommendations.len > 0)
		walk_history(w, state_marks(s, &s->recommendations), &s->recommendations);
	if (s->events.len > 0)
		walk_history(w, state_marks(s, &s->events), &s->events);
}

size_t decide_state_packed_bytes(const struct policy *policy, void *state)
{
	struct walk w = {.direction = COUNT};
	walk(&w, policy, state);
	return w.n;
}

void decide_state_pack(const struct policy *policy, void *state, void *ret_packed)
{
	struct walk w = {.direction = PACK, .packed = ret_packed};
	walk(&w, policy, state);
}

void decide_state_unpack(const struct policy *policy, void *packed, void *ret_state)
{
	struct walk w = {.direction = UNPACK, .packed = packed};
	walk(&w, policy, ret_state);
}
