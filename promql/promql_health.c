// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_health.h"

#define OUTCOMES_MASK ((1u << PROMQL_HEALTH_OUTCOMES) - 1)

static const char *const names[] = {[PROMQL_UP] = "up", [PROMQL_DEGRADED] = "degraded", [PROMQL_DOWN] = "down"};
_Static_assert(sizeof names / sizeof names[0] == PROMQL_HEALTH__COUNT, "one name per state");

const char *promql_health_name(enum promql_health_state s)
{
	return names[s];
}

static void remember(struct promql_health *h, unsigned failed)
{
	h->failed = (uint8_t)(((unsigned)h->failed << 1 | failed) & OUTCOMES_MASK);
}

void promql_health_answered(struct promql_health *h)
{
	remember(h, 0);
	if (h->state != PROMQL_DOWN) {
		h->state = h->failed ? PROMQL_DEGRADED : PROMQL_UP;
	} else if (++h->n_answered >= PROMQL_HEALTH_PROBES) {
		*h = (struct promql_health){.state = PROMQL_UP}; // a new life: old failures do not count again
	}
}

void promql_health_failed(struct promql_health *h, bool others_answered, bool timed_out)
{
	remember(h, 1);
	if (h->state == PROMQL_DOWN) {
		// One slow query among good ones must not keep a source down for ever: it only does not help.
		if (!timed_out)
			h->n_answered = 0;
		return;
	}
	bool many = __builtin_popcount(h->failed) >= PROMQL_HEALTH_FAILURES;
	h->state = many && !others_answered ? PROMQL_DOWN : PROMQL_DEGRADED;
	h->n_answered = 0;
}
