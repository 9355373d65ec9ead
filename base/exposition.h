// SPDX-License-Identifier: Apache-2.0
// Prometheus text exposition (0.0.4) onto a struct buf: families with HELP/TYPE, samples with escaped labels.
#ifndef GPUSCALE_BASE_EXPOSITION_H
#define GPUSCALE_BASE_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>

struct buf;

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_UNTYPED, METRIC_TYPE__COUNT };
const char *metric_type_name(enum metric_type t);

struct exposition_label {
	const char *name, *value;
};

// "# HELP name help\n# TYPE name type\n", help escaped.
void exposition_family(struct buf *b, const char *name, const char *help, enum metric_type type);
// "name{a="b",c="d"} value\n" with no blank after commas; labels may be empty (n = 0).
void exposition_sample_f64(struct buf *b, const char *name, const struct exposition_label *labels, size_t n, double v);
void exposition_sample_i64(struct buf *b, const char *name, const struct exposition_label *labels, size_t n, int64_t v);
// Just the escaped label value (backslash, quote, newline), for pre-rendered label blocks.
void exposition_label_value(struct buf *b, const char *value);

// A cumulative histogram with fixed upper bounds (seconds, bytes, ...).
#define EXPOSITION_BUCKETS_MAX 16
struct exposition_histogram {
	size_t n;
	double upper[EXPOSITION_BUCKETS_MAX];
	uint64_t count[EXPOSITION_BUCKETS_MAX + 1]; // last one: +Inf
	double sum;
};
void exposition_histogram_observe(struct exposition_histogram *h, double value);
void exposition_sample_histogram(struct buf *b, const char *name, const struct exposition_label *labels, size_t n,
                                 const struct exposition_histogram *h);

#endif
