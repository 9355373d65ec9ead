// SPDX-License-Identifier: Apache-2.0
// A union of time spans: spans that overlap or touch count once.
#ifndef GPUSCALE_INSIGHT_SPAN_SET_H
#define GPUSCALE_INSIGHT_SPAN_SET_H

#include <stddef.h>
#include <stdint.h>

struct err;

struct span {
	int64_t start_ns, end_ns;
};

#define SPAN_SET_MAX ((size_t)4 * 1024 * 1024) // spans that do not overlap; 64 MiB

struct span_set { // zeroed: empty
	struct span *spans;
	size_t n, cap;
};

void span_set_done(struct span_set *s);
// Adds a span, in any order. Returns 0, or -1 and *e: ERR_LIMIT with SPAN_SET_MAX, ERR_INTERNAL (out of memory).
int span_set_add(struct span_set *s, int64_t start_ns, int64_t end_ns, struct err *e);
// Sorts the spans and joins those that overlap or touch.
void span_set_join(struct span_set *s);
// Adds the spans of `from`. Errors as span_set_add.
int span_set_add_all(struct span_set *s, const struct span_set *from, struct err *e);
// Returns the length of the union; call span_set_join() before.
int64_t span_set_length_ns(const struct span_set *s);

#endif
