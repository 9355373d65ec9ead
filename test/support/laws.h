// SPDX-License-Identifier: Apache-2.0
// Laws that every decision keeps, whatever was seen: judged from the policy, the observation, the answer and what was
// on record before, never from inside the engine. Shared by the property tests (random policies that make sense) and
// test/fuzz/fuzz_decide.c (any).
#ifndef GPUSCALE_TEST_SUPPORT_LAWS_H
#define GPUSCALE_TEST_SUPPORT_LAWS_H

#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

struct law_tick {
	const struct policy *policy;
	const struct observation *seen;
	const struct decision *decision;
	const void *before; // the state as it was before the tick
};

// The law that is broken, in words; NULL = all hold. The policy keeps the rules of the schema.
const char *laws_broken(const struct law_tick *tick);
// Those that hold for numbers of any kind in the policy, too.
const char *laws_broken_by_any(const struct law_tick *tick);

#endif
