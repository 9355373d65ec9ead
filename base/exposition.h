// SPDX-License-Identifier: Apache-2.0
// Prometheus text exposition (0.0.4) onto a struct buf: families with HELP/TYPE, samples with escaped labels.
// Errors are the buffer's: look at b->failed once at the end. An invalid name sets it as well, because one bad
// line makes Prometheus drop the whole scrape; check names from outside with exposition_is_*_name.
#ifndef GPUSCALE_BASE_EXPOSITION_H
#define GPUSCALE_BASE_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_UNTYPED, METRIC_TYPE__COUNT };
const char *metric_type_name(enum metric_type t);

struct exposition_label {
	const char *name, *value;
};

// [a-zA-Z_:][a-zA-Z0-9_:]*, and the same without ':'. Prometheus: "Metric names and labels".
bool exposition_is_metric_name(const char *name);
bool exposition_is_label_name(const char *name);

// "# HELP name help\n# TYPE name type\n", help escaped as label values, but for quotes.
void exposition_family(struct buf *b, const char *name, const char *help, enum metric_type type);
// "name{a="b",c="d"} value\n" with no space after commas; labels may be empty (n = 0). Doubles as num_format_f64.
void exposition_sample_f64(struct buf *b, const char *name, const struct exposition_label *labels, size_t n, double v);
void exposition_sample_i64(struct buf *b, const char *name, const struct exposition_label *labels, size_t n, int64_t v);
// Just the escaped label value, for pre-rendered label blocks: backslash, quote and newline are escaped; a byte that is
// not valid UTF-8 becomes U+FFFD; other control characters (not tabs), invisible characters and direction overrides
// become visible (base/text.h), as the four characters \x1b.
void exposition_label_value(struct buf *b, const char *value);

// A cumulative histogram with fixed upper bounds (seconds, bytes, ...), rising, set by the caller; the rest starts 0.
#define EXPOSITION_BUCKETS_MAX 16
struct exposition_histogram {
	size_t n;
	double upper[EXPOSITION_BUCKETS_MAX];
	uint64_t count[EXPOSITION_BUCKETS_MAX + 1]; // observations per bucket, not yet cumulative; last one: +Inf
	double sum;
};
// Counts value in the first bucket with value <= upper. NaN is ignored: it would make the sum NaN permanently.
void exposition_histogram_observe(struct exposition_histogram *h, double value);
// name_bucket (with le last) for each bound and +Inf, name_sum, name_count.
void exposition_sample_histogram(struct buf *b, const char *name, const struct exposition_label *labels, size_t n,
                                 const struct exposition_histogram *h);

#endif
