// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/idle.h"

#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

void idle_init(struct idle *s)
{
	*s = (struct idle){TIME_NONE, TIME_NONE};
}

const struct policy_activation *idle_activations(const struct policy_idle *idle, size_t *ret_n)
{
	*ret_n = idle->n_any_of > 0 ? idle->n_any_of : 1;
	return idle->n_any_of > 0 ? idle->any_of : &idle->activation;
}

const struct policy_activation *idle_activation_of(const struct policy_idle *idle, size_t i)
{
	size_t n;
	const struct policy_activation *a = idle_activations(idle, &n);
	for (; n > 0; a++, n--)
		if (a->index == i)
			return a;
	return NULL;
}

bool idle_is_same(const struct policy_idle *a, const struct policy_idle *b)
{
	size_t n, m;
	const struct policy_activation *x = idle_activations(a, &n), *y = idle_activations(b, &m);
	bool same = a->set && b->set && n == m;
	for (size_t i = 0; i < n && same; i++) // written so that NaN differs from NaN
		same = strcmp(x[i].signal, y[i].signal) == 0 && x[i].above <= y[i].above && x[i].above >= y[i].above;
	return same;
}
