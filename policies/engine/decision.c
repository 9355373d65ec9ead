// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/decision.h"

#include <assert.h>
#include <string.h>

static const char *const actions[] = {
        [ACTION_NONE] = "None",
        [ACTION_HOLD] = "Hold",
        [ACTION_SCALE_UP] = "ScaleUp",
        [ACTION_SCALE_DOWN] = "ScaleDown",
};
_Static_assert(sizeof actions / sizeof actions[0] == ACTION__COUNT, "one name per action");

const char *action_name(enum action a)
{
	assert(a >= 0 && a < ACTION__COUNT);
	return actions[a];
}

static const char *const signal_states[] = {
        [SIGNAL_OK] = "OK",
        [SIGNAL_MISSING] = "Missing",
        [SIGNAL_IGNORED] = "Ignored",
        [SIGNAL_FILLING] = "Filling",
};
_Static_assert(sizeof signal_states / sizeof signal_states[0] == SIGNAL_STATE__COUNT, "one name per signal state");

const char *signal_state_name(enum signal_state s)
{
	assert(s >= 0 && s < SIGNAL_STATE__COUNT);
	return signal_states[s];
}

// Bytes of the parts of a kept decision.
static size_t head_bytes(const struct decision *d)
{
	return offsetof(struct decision, signals) + d->n_signals * sizeof d->signals[0];
}

static size_t trace_bytes(const struct decision *d)
{
	return d->n_trace * sizeof d->entries[0];
}

size_t decision_kept_bytes(const struct decision *d)
{
	assert(d->n_signals <= POLICY_SIGNALS_MAX && d->n_trace <= DECISION_TRACE_MAX);
	return head_bytes(d) + trace_bytes(d);
}

void decision_keep(const struct decision *d, struct decision *ret_kept)
{
	assert(!d->is_kept);
	size_t head = head_bytes(d);
	memcpy(ret_kept, d, head);
	memcpy((unsigned char *)ret_kept + head, d->entries, trace_bytes(d));
	ret_kept->is_kept = true;
}

const struct trace_entry *decision_find(const struct decision *d, enum reason reason)
{
	for (size_t i = 0; i < d->n_trace; i++)
		if (decision_entry(d, i)->reason == reason)
			return decision_entry(d, i);
	return NULL;
}
