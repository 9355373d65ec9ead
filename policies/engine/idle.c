// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/idle.h"

#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

void idle_init(struct idle *s)
{
	*s = (struct idle){TIME_NONE, TIME_NONE, TIME_NONE};
}

bool idle_is_same(const struct policy_idle *a, const struct policy_idle *b)
{
	// Written so that NaN differs from NaN.
	return a->set && b->set && strcmp(a->activation.signal, b->activation.signal) == 0 &&
	       a->activation.above <= b->activation.above && a->activation.above >= b->activation.above;
}
