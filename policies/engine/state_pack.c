// SPDX-License-Identifier: Apache-2.0
// Packing of the state: the unused room of windows and histories is most of a block, and a policy that waits for its
// next tick does not need it. The parts in use are stored one after the other, in the order of the block. Most of their
// words are 0 or TIME_NONE, because a policy uses few of the features that keep a state; such a word takes two bits.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "policies/engine/decide_state.h"
#include "policies/engine/marginal_gain.h"
#include "policies/engine/number.h"
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

// The kind of a word, in two bits of its group's head.
enum word { WORD_ZERO, WORD_NONE, WORD_STORED };

#define GROUP_WORDS 32 // each group has a head of 64 bits

static enum word kind_of(int64_t word)
{
	return word == 0 ? WORD_ZERO : word == TIME_NONE ? WORD_NONE : WORD_STORED;
}

static void put_group(struct walk *w, const unsigned char *in_block, size_t n)
{
	uint64_t head = 0;
	size_t at = w->n + sizeof head;
	for (size_t i = 0; i < n; i++) {
		int64_t word;
		memcpy(&word, in_block + i * sizeof word, sizeof word);
		head |= (uint64_t)kind_of(word) << (2 * i);
		if (kind_of(word) != WORD_STORED)
			continue;
		if (w->direction == PACK)
			memcpy(w->packed + at, &word, sizeof word);
		at += sizeof word;
	}
	if (w->direction == PACK)
		memcpy(w->packed + w->n, &head, sizeof head);
	w->n = at;
}

static void take_group(struct walk *w, unsigned char *in_block, size_t n)
{
	uint64_t head;
	memcpy(&head, w->packed + w->n, sizeof head);
	w->n += sizeof head;
	for (size_t i = 0; i < n; i++) {
		enum word kind = (enum word)(head >> (2 * i) & 3);
		int64_t word = kind == WORD_NONE ? TIME_NONE : 0;
		if (kind == WORD_STORED) {
			memcpy(&word, w->packed + w->n, sizeof word);
			w->n += sizeof word;
		}
		memcpy(in_block + i * sizeof word, &word, sizeof word);
	}
}

// `bytes` is a multiple of 8.
static void copy(struct walk *w, void *in_block, size_t bytes)
{
	unsigned char *at = in_block;
	assert(bytes % sizeof(int64_t) == 0);
	for (size_t words = bytes / sizeof(int64_t); words > 0;) {
		size_t n = words < GROUP_WORDS ? words : GROUP_WORDS;
		if (w->direction == UNPACK)
			take_group(w, at, n);
		else
			put_group(w, at, n);
		at += n * sizeof(int64_t);
		words -= n;
	}
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
