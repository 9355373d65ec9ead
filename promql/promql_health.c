// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_health.h"

#include <string.h>

#define OUTCOMES_MASK ((1u << PROMQL_HEALTH_OUTCOMES) - 1)

static const char *const names[] = {[PROMQL_UP] = "up", [PROMQL_DEGRADED] = "degraded", [PROMQL_DOWN] = "down"};
_Static_assert(sizeof names / sizeof names[0] == PROMQL_HEALTH__COUNT, "one name per state");

const char *promql_health_name(enum promql_health_state s)
{
	return names[s];
}

static void remember(struct promql_health *h, uint64_t query, unsigned failed)
{
	h->failed = (uint8_t)(((unsigned)h->failed << 1 | failed) & OUTCOMES_MASK);
	memmove(h->query + 1, h->query, sizeof h->query - sizeof h->query[0]);
	h->query[0] = query;
}

// Did it fail before, and was another one answered since?
static bool is_known_to_fail(const struct promql_health *h, uint64_t query)
{
	bool answered = false;
	for (int i = 0; i < PROMQL_HEALTH_OUTCOMES; i++) {
		bool failed = h->failed >> i & 1;
		if (failed && h->query[i] == query)
			return answered;
		answered |= !failed && h->query[i] && h->query[i] != query;
	}
	return false;
}

void promql_health_answered(struct promql_health *h, uint64_t query)
{
	remember(h, query, 0);
	if (h->state != PROMQL_DOWN) {
		h->state = h->failed ? PROMQL_DEGRADED : PROMQL_UP;
	} else if (++h->n_answered >= PROMQL_HEALTH_PROBES) {
		*h = (struct promql_health){.state = PROMQL_UP}; // a new life: old failures do not count again
	}
}

void promql_health_failed(struct promql_health *h, uint64_t query, bool others_answered, bool timed_out)
{
	if (h->state != PROMQL_DOWN && is_known_to_fail(h, query))
		return;
	remember(h, query, 1);
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
