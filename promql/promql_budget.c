// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_budget.h"

static void join(struct promql_share *s, struct promql_budget *budget)
{
	s->budget = budget;
	s->prev = NULL;
	s->next = budget->first;
	if (s->next)
		s->next->prev = s;
	budget->first = s;
}

void promql_share_leave(struct promql_share *s)
{
	struct promql_budget *budget = s->budget;
	if (!budget)
		return;
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		budget->first = s->next;
	budget->used_bytes -= s->bytes;
	s->bytes = 0;
	s->budget = NULL;
}

static struct promql_share *largest(const struct promql_budget *budget)
{
	struct promql_share *most = budget->first;
	for (struct promql_share *s = most; s; s = s->next)
		if (s->bytes > most->bytes)
			most = s;
	return most;
}

bool promql_share_hold(struct promql_share *s, struct promql_budget *budget, size_t bytes)
{
	if (bytes <= PROMQL_SMALL_ANSWER_BYTES)
		return true;
	if (!s->budget)
		join(s, budget);
	budget->used_bytes += bytes - s->bytes; // unsigned arithmetic wraps, so the share may shrink
	s->bytes = bytes;
	while (budget->used_bytes > budget->max_bytes) {
		struct promql_share *most = largest(budget);
		most->lost_bytes = most->bytes;
		promql_share_leave(most);
		if (most == s)
			return false;
		most->evict(most);
	}
	return true;
}
