// SPDX-License-Identifier: Apache-2.0
// A policy out of any bytes, for fuzzing: small numbers and whole intervals take one byte each, and every bit pattern
// can be written; zeros go on where the bytes end.
#ifndef GPUSCALE_TEST_SUPPORT_ANY_POLICY_H
#define GPUSCALE_TEST_SUPPORT_ANY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/policy.h"

#define ANY_INTERVAL_MS 15000

struct any_input {
	const uint8_t *data;
	size_t size;
	bool any; // any number, where a policy of the schema has bounds
};

uint8_t any_u8(struct any_input *in);
int any_choice(struct any_input *in, int n); // 0 .. n - 1
int32_t any_i32(struct any_input *in);
// A duration, ms: so many intervals, odd times, negative ones.
int64_t any_ms(struct any_input *in);
// NaN and infinities among them.
double any_f64(struct any_input *in);
int64_t any_clamp(int64_t v, int64_t lo, int64_t hi);

// The policy and what it points to: not to be copied.
struct any_policy {
	struct policy policy;
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	struct policy_schedule schedules[3];
	struct policy_rate up[POLICY_RATE_POLICIES_MAX], down[POLICY_RATE_POLICIES_MAX];
	struct formula_op ops[FORMULA_OPS_MAX], value_ops[FORMULA_OPS_MAX];
	struct formula values[POLICY_SIGNALS_MAX];
	struct policy_activation any_of[2];
};

// ret_policy is zeroed. Unless in->any, the policy keeps the rules of the schema.
void any_policy_take(struct any_input *in, struct any_policy *ret_policy);

#endif
