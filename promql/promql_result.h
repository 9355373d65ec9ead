// SPDX-License-Identifier: Apache-2.0
// Responses of the query API, decoded into plain arrays. promql_decode.c implements the functions.
#ifndef GPUSCALE_PROMQL_PROMQL_RESULT_H
#define GPUSCALE_PROMQL_PROMQL_RESULT_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

#define PROMQL_SERIES_MAX      5000 // per answer
#define PROMQL_LABELS_MAX      64
#define PROMQL_LABEL_BYTES_MAX 4096
#define PROMQL_SAMPLES_MAX     500000 // per answer
#define PROMQL_WARNINGS_MAX    64     // further ones are dropped; one is enough to know that data is missing

// Memory limits. docs/evidence/performance.md adds them up to the limit in the manifests: change both together.
#define PROMQL_ANSWER_BYTES_MAX     ((size_t)4 * 1024 * 1024)  // for one decoded instant answer
#define PROMQL_RANGE_BYTES_MAX      ((size_t)12 * 1024 * 1024) // for one decoded range
#define PROMQL_ANSWERS_BYTES_MAX    ((size_t)24 * 1024 * 1024) // for all answers being decoded at the same time
#define PROMQL_ERROR_BODY_BYTES_MAX ((size_t)128 * 1024)       // size of a reply whose status is not 2xx

enum promql_type { PROMQL_VECTOR, PROMQL_SCALAR, PROMQL_MATRIX, PROMQL_STRING, PROMQL_TYPE__COUNT };
const char *promql_type_name(enum promql_type t); // "vector", ...

struct promql_label {
	const char *name, *value;
};
struct promql_sample {
	int64_t time_ms;
	double value; // may be NaN or Inf
};
struct promql_series {
	const struct promql_label *labels;
	size_t n_labels;
	const struct promql_sample *samples; // one for vector and scalar
	size_t n_samples;
};
// Samples of a series are in order of time. Times are rounded to ms.
struct promql_result {
	enum promql_type type;
	const struct promql_series *series; // none for a string
	size_t n_series;
	const char *string;          // text of PROMQL_STRING, else NULL
	const char *const *warnings; // a partial response is treated as missing data: see obs_state
	size_t n_warnings;
	int64_t clock_offset_ms; // subtracted from the times of samples; not from values that are times
};

// Returns the value of a label, or "".
const char *promql_label(const struct promql_series *s, const char *name);
// For responses from which nothing may be missing. Leaves *ret_error alone when `result` is whole, and else stores
// `error`
// (`result` is not read then), or ERR_PROTOCOL for a response with warnings.
void promql_result_check(const struct promql_result *result, const struct err *error, struct err *ret_error);

#endif
