// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/state.h"

#include <assert.h>

#include "policies/engine/policy.h"

struct state_header *state_of(const struct policy *policy, void *block)
{
	struct state_header *s = block;
	assert(s->magic == STATE_MAGIC && s->version == STATE_VERSION && s->n_signals == policy->n_signals);
	return s;
}

const struct state_header *state_of_const(const struct policy *policy, const void *block)
{
	const struct state_header *s = block;
	assert(s->magic == STATE_MAGIC && s->version == STATE_VERSION && s->n_signals == policy->n_signals);
	return s;
}
