// SPDX-License-Identifier: Apache-2.0
#include "insight/span_set.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"

#define FIRST_CAP 1024

void span_set_done(struct span_set *s)
{
	free(s->spans);
	*s = (struct span_set){0};
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

void span_set_join(struct span_set *s)
{
	bool sorted = true;
	for (size_t i = 1; i < s->n && sorted; i++)
		sorted = s->spans[i - 1].start_ns <= s->spans[i].start_ns;
	if (!sorted)
		qsort(s->spans, s->n, sizeof *s->spans, by_start);
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct span *x = &s->spans[i];
		if (n > 0 && x->start_ns <= s->spans[n - 1].end_ns) {
			if (x->end_ns > s->spans[n - 1].end_ns)
				s->spans[n - 1].end_ns = x->end_ns;
		} else {
			s->spans[n++] = *x;
		}
	}
	s->n = n;
}

// Joins first; grows only when that freed less than half.
static int make_room(struct span_set *s, struct err *e)
{
	span_set_join(s);
	if (s->cap > 0 && s->n < s->cap / 2)
		return 0;
	if (s->n >= SPAN_SET_MAX)
		return err_set(e, ERR_LIMIT,
		               "a GPU of this trace has more than %zu separate busy spans: record fewer "
		               "steps",
		               SPAN_SET_MAX);
	if (alloc_reserve(&s->spans, s->cap, &s->cap, sizeof *s->spans, FIRST_CAP) < 0)
		return err_no_memory(e);
	return 0;
}

int span_set_add(struct span_set *s, int64_t start_ns, int64_t end_ns, struct err *e)
{
	struct span *last = s->n > 0 ? &s->spans[s->n - 1] : NULL;
	if (last && start_ns >= last->start_ns && start_ns <= last->end_ns) { // the usual order of a trace
		last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
		return 0;
	}
	if (s->n == s->cap && make_room(s, e) < 0)
		return -1;
	s->spans[s->n++] = (struct span){start_ns, end_ns};
	return 0;
}

int span_set_add_all(struct span_set *s, const struct span_set *from, struct err *e)
{
	for (size_t i = 0; i < from->n; i++)
		if (span_set_add(s, from->spans[i].start_ns, from->spans[i].end_ns, e) < 0)
			return -1;
	return 0;
}

int64_t span_set_length_ns(const struct span_set *s)
{
	int64_t sum = 0;
	for (size_t i = 0; i < s->n; i++)
		sum += s->spans[i].end_ns - s->spans[i].start_ns;
	return sum;
}
