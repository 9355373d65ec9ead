// SPDX-License-Identifier: Apache-2.0
// Strict text <-> number conversion. Nothing here looks at the locale, accepts blanks, or stops early at garbage.
// This is the one place where the strtol family may be used.
#ifndef GPUSCALE_BASE_NUM_H
#define GPUSCALE_BASE_NUM_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define NUM_TEXT_BYTES 40 // enough for every num_format_* result with its terminator

// Decimal integer with an optional '-', in [min, max]. The error says the range.
int num_parse_i64(const char *s, size_t len, int64_t min, int64_t max, int64_t *ret_value, struct err *e);
// A finite decimal number ("0.7", "-1e3"); no hex, no NaN, no Inf.
int num_parse_f64(const char *s, size_t len, double *ret_value, struct err *e);
// A Prometheus sample value: as num_parse_f64, or NaN, +Inf, -Inf, Inf. Prometheus: web API v1, "sample values".
int num_parse_sample(const char *s, size_t len, double *ret_value, struct err *e);
// A Kubernetes quantity: decimal number with an optional suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or exponent.
// Kubernetes: apimachinery resource.Quantity.
int num_parse_quantity(const char *s, size_t len, double *ret_value, struct err *e);
// A Prometheus duration: units y w d h m s ms, each at most once, largest first ("1h30m", "90s", "0"). Result in ms.
// Prometheus: model.ParseDuration.
int num_parse_duration_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e);
// RFC 3339 with offset or Z and optional fraction; years 1970..9999. Result in ms since the epoch, UTC.
int num_parse_rfc3339_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e);

// Shortest decimal text that reads back as the same double ("0.7", "1e+21", "NaN", "+Inf", "-Inf").
// out has NUM_TEXT_BYTES; returns the length.
size_t num_format_f64(char *out, double value);
// Prometheus duration, "0s" for 0; negative values get a '-'.
size_t num_format_duration_ms(char *out, int64_t ms);
// "2026-01-05T09:00:00Z", with ".mmm" only when the milliseconds are not 0.
size_t num_format_rfc3339_ms(char *out, int64_t epoch_ms);

// The closest of names[0..n) to `word` (Damerau-Levenshtein, at most 1/3 of its length, at least 1), or NULL:
// feeds every "did you mean".
const char *num_closest_name(const char *word, const char *const *names, size_t n);

#endif
