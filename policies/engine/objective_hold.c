// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_hold.h"

#include "policies/engine/number.h"

// With both at 0 there are a tenth more direction changes; at 1 there are a tenth fewer, and bursty loads cost 1 %
// more.
#define EACH_STARTS 0.25f // start-up times that each replica of the surplus is kept
#define ONCE_STARTS 0.35f // and that one replica is kept: a small surplus waits longer than a large one

int32_t objective_hold_step(struct objective_hold *h, int32_t replicas, int32_t wanted, int startup_steps)
{
	int32_t surplus = wanted < replicas ? replicas - wanted : 0;
	h->surplus = surplus > 0 ? (uint16_t)i32_min(h->surplus + surplus, UINT16_MAX) : 0;
	float price = (float)startup_steps * (EACH_STARTS * (float)surplus + ONCE_STARTS);
	if (surplus > 0 && h->grew && (float)h->surplus < f32_min(price, UINT16_MAX))
		return replicas;
	if (wanted != replicas)
		h->grew = wanted > replicas;
	return wanted;
}
