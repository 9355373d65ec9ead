// SPDX-License-Identifier: Apache-2.0
// Strict text <-> number conversion. Nothing here looks at the locale, accepts spaces, or stops early at garbage.
// This is the one place where the strtol family may be used.
// Every parser reads exactly s[0..len), returns 0, or -1 with *e saying what was found, what was expected and the fix
// (ERR_INPUT; ERR_LIMIT when the text is longer than NUM_INPUT_BYTES_MAX). On -1 the result is left alone.
#ifndef GPUSCALE_BASE_NUM_H
#define GPUSCALE_BASE_NUM_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define NUM_TEXT_BYTES      40  // enough for every num_format_* result with its terminator
#define NUM_INPUT_BYTES_MAX 128 // limit on the text of one number

// Longest duration: the limit of Prometheus, 2^63-1 ns (292 years).
#define NUM_DURATION_MS_MAX (INT64_MAX / 1000000)

// Decimal integer with an optional '-' and any leading zeros, in [min, max]. The error says the range.
int num_parse_i64(const char *s, size_t len, int64_t min, int64_t max, int64_t *ret_value, struct err *e);
// Returns 0 to 15; -1 when `c` is not a hexadecimal digit.
int num_hex_digit(char c);

// A finite decimal number ("0.7", "-1e3", "+.5", "5."); no hex, no NaN, no Inf. Too small for a double reads as 0.
int num_parse_f64(const char *s, size_t len, double *ret_value, struct err *e);
// A Prometheus sample value: as num_parse_f64, or NaN, +Inf, -Inf, Inf. Prometheus: web API v1, "sample values".
int num_parse_sample(const char *s, size_t len, double *ret_value, struct err *e);
// A Kubernetes quantity: decimal number with an optional suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or a whole
// decimal exponent e/E ("1E" is 10^18, "1E3" is 1000). "700m" is the double nearest to 0.7. Unlike the API server,
// which rounds up to nano and caps at 2^63-1, nothing is rounded or capped.
// Kubernetes: apimachinery resource.Quantity.
int num_parse_quantity(const char *s, size_t len, double *ret_value, struct err *e);
// A Prometheus duration: units y (365 d) w d h m s ms, each at most once, largest first ("1h30m", "90s", "0").
// Result in ms, 0..NUM_DURATION_MS_MAX. Prometheus: model.ParseDuration.
int num_parse_duration_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e);
// A duration of a flag: as num_parse_duration_ms, or one decimal number with a unit ("2.5s", "1.5h"), rounded to ms.
int num_parse_flag_duration_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e);
// RFC 3339 with offset or Z and optional fraction (cut to ms); t and z may be lower case; years 1970..9999.
// A leap second (:60) is refused: the epoch has no place for it. Result in ms since the epoch, UTC.
int num_parse_rfc3339_ms(const char *s, size_t len, int64_t *ret_ms, struct err *e);
// Returns the days between 1970-01-01 and a date of the proleptic Gregorian calendar.
int64_t num_days_of_date(int64_t year, int month, int day);

// Shortest decimal text that reads back as the same double ("0.7", "1e+21", "NaN", "+Inf", "-Inf"). Plain digits for
// magnitudes from 0.0001 to below 1e16 (so every integer up to 2^53 is plain), exponent form with at least two digits
// outside. Valid in JSON and PromQL when finite. out has NUM_TEXT_BYTES; returns the length.
size_t num_format_f64(char *out, double value);
// Prometheus duration, "0s" for 0; years and weeks only when nothing remains ("90d", not "12w6d"); negative values
// get a '-'. Prometheus: model.Duration.String.
size_t num_format_duration_ms(char *out, int64_t ms);
// As num_format_duration_ms, for people: rounded to seconds from one second on ("2s", not "2s4ms").
size_t num_format_about_ms(char *out, int64_t ms);
// "2026-01-05T09:00:00Z", with ".mmm" only when the milliseconds are not 0.
size_t num_format_rfc3339_ms(char *out, int64_t epoch_ms);

// The closest of names[0..n) to `word` (Damerau-Levenshtein without regard to ASCII case, at most 1/3 of its length,
// at least 1), the first of equals, or NULL: feeds every "did you mean". Names past 64 bytes are never suggested.
const char *num_closest_name(const char *word, const char *const *names, size_t n);

#endif
