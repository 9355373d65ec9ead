// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_health.h"

#define OUTCOMES_MASK ((1u << PROMQL_HEALTH_OUTCOMES) - 1)

const char *const promql_health_names[] = {"up", "degraded", "down"};
_Static_assert(sizeof promql_health_names / sizeof promql_health_names[0] == PROMQL_HEALTH__COUNT,
               "one name per state");

// Returns whether a failed probe counts.
static bool trusts_probe(const struct promql_health *h)
{
	return h->probe_answered || !h->query_answered;
}

static void remember(struct promql_health *h, unsigned failed)
{
	h->failed = (uint8_t)(((unsigned)h->failed << 1 | failed) & OUTCOMES_MASK);
	if (h->state != PROMQL_DOWN)
		h->state = h->failed ? PROMQL_DEGRADED : PROMQL_UP;
}

void promql_health_answered(struct promql_health *h, bool is_probe)
{
	h->probe_answered |= is_probe;
	h->query_answered |= !is_probe;
	h->accuser = 0;
	h->accused = 0;
	if (h->state == PROMQL_DOWN) { // failures from before the outage ended do not count
		h->state = PROMQL_UP;
		h->failed = 0;
		return;
	}
	remember(h, 0);
}

void promql_health_failed(struct promql_health *h, uint64_t query, bool is_alone, bool answered_since)
{
	remember(h, 1);
	if (answered_since)
		return;
	if (trusts_probe(h)) {
		h->accuser = query; // the probe decides
	} else if (is_alone) {
		if (h->accused < UINT8_MAX)
			h->accused++;
		if (h->accused >= PROMQL_HEALTH_FAILURES || (h->accuser && h->accuser != query))
			h->state = PROMQL_DOWN;
		h->accuser = query;
	}
}

void promql_health_probe_failed(struct promql_health *h, bool answered_since)
{
	remember(h, 1);
	if (!answered_since && h->accuser && trusts_probe(h))
		h->state = PROMQL_DOWN;
}
