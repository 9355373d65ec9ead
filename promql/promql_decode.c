// SPDX-License-Identifier: Apache-2.0
// Reply bodies of the Prometheus HTTP API v1 -> plain arrays. Prometheus: docs/querying/api.md, "Expression query
// result formats".
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json_read.h"
#include "base/num.h"
#include "promql/promql.h"
#include "promql/promql_text.h"

static const char *const type_names[] = {
        [PROMQL_VECTOR] = "vector",
        [PROMQL_SCALAR] = "scalar",
        [PROMQL_MATRIX] = "matrix",
        [PROMQL_STRING] = "string",
};
_Static_assert(sizeof type_names / sizeof type_names[0] == PROMQL_TYPE__COUNT, "one name per result type");

// errorType of an error body -> kind. A type that is not here is a refusal.
static const struct {
	const char *type;
	enum err_kind kind;
} error_kinds[] = {
        {"bad_data", ERR_REJECTED},   {"execution", ERR_REJECTED},
        {"timeout", ERR_TIMEOUT},     {"canceled", ERR_SERVER}, // the server gave up, not we
        {"internal", ERR_SERVER},     {"unavailable", ERR_SERVER},
        {"not_found", ERR_NOT_FOUND}, {"too_many_requests", ERR_THROTTLED}, // Mimir
};

struct decoder {
	struct arena *a;
	struct err *e;
	size_t n_samples; // over all series
};

#define PLACE_BYTES 64

// "data.result[3].values[2]": where in the reply something is wrong. sample < 0: the one "value" of a vector series;
// series < 0: a scalar or string, whose result is the sample itself.
static const char *place(char out[static PLACE_BYTES], int64_t series, int64_t sample)
{
	if (series < 0)
		snprintf(out, PLACE_BYTES, "data.result");
	else if (sample < 0)
		snprintf(out, PLACE_BYTES, "data.result[%lld].value", (long long)series);
	else
		snprintf(out, PLACE_BYTES, "data.result[%lld].values[%lld]", (long long)series, (long long)sample);
	return out;
}

static int no_memory(const struct decoder *d)
{
	return err_set(d->e, ERR_LIMIT, "the decoded result needs more than the ceiling of %zu bytes", d->a->max_bytes);
}

static size_t count_children(const cJSON *parent)
{
	size_t n = 0;
	for (const cJSON *c = parent->child; c; c = c->next)
		n++;
	return n;
}

static int decode_error_body(const cJSON *root, struct err *e)
{
	const char *type = json_get_str(root, "errorType", "");
	const char *text = json_get_str(root, "error", "");
	enum err_kind kind = ERR_REJECTED;
	for (size_t i = 0; i < sizeof error_kinds / sizeof error_kinds[0]; i++)
		if (strcmp(error_kinds[i].type, type) == 0)
			kind = error_kinds[i].kind;
	char type_line[PROMQL_NAME_BYTES], text_line[PROMQL_TEXT_BYTES];
	promql_text_show(type_line, sizeof type_line, type, strlen(type));
	promql_text_show(text_line, sizeof text_line, text, strlen(text));
	return err_set(e, kind, "query failed (%s): %s", type_line[0] ? type_line : "no errorType",
	               text_line[0] ? text_line : "the server gave no reason");
}

// A pair [seconds, text]; *ret_text is the second half.
static int decode_pair(const cJSON *pair, int64_t series, int64_t sample, int64_t *ret_time_ms, const char **ret_text,
                       struct err *e)
{
	char at[PLACE_BYTES];
	const cJSON *time = cJSON_IsArray(pair) ? pair->child : NULL;
	const cJSON *text = time ? time->next : NULL;
	if (!text || text->next)
		return err_set(e, ERR_PROTOCOL, "%s: not a pair [time, \"value\"]", place(at, series, sample));
	// 2^53 ms is past the year 285000; beyond it a double no longer holds whole milliseconds.
	if (!cJSON_IsNumber(time) || !isfinite(time->valuedouble) || fabs(time->valuedouble) > 9007199254740.0)
		return err_set(e, ERR_PROTOCOL, "%s[0]: the time is not a number of seconds since the epoch",
		               place(at, series, sample));
	if (!cJSON_IsString(text))
		return err_set(e, ERR_PROTOCOL, "%s[1]: the value is not a string", place(at, series, sample));
	*ret_time_ms = llround(time->valuedouble * 1000.0);
	*ret_text = text->valuestring;
	return 0;
}

static int decode_sample(const cJSON *pair, int64_t series, int64_t sample, struct promql_sample *ret, struct err *e)
{
	const char *text = "";
	if (decode_pair(pair, series, sample, &ret->time_ms, &text, e) < 0)
		return -1;
	if (num_parse_sample(text, strlen(text), &ret->value, NULL) < 0) {
		char at[PLACE_BYTES], line[PROMQL_NAME_BYTES];
		return err_set(e, ERR_PROTOCOL, "%s[1]: \"%s\" is not a sample value", place(at, series, sample),
		               promql_text_show(line, sizeof line, text, strlen(text)));
	}
	return 0;
}

static int decode_labels(struct decoder *d, const cJSON *item, int64_t index, struct promql_series *ret)
{
	const cJSON *metric = json_get(item, "metric");
	if (!cJSON_IsObject(metric))
		return err_set(d->e, ERR_PROTOCOL, "data.result[%lld].metric: not an object of labels",
		               (long long)index);
	size_t n = count_children(metric);
	if (n > PROMQL_LABELS_MAX)
		return err_set(d->e, ERR_LIMIT, "data.result[%lld] has %zu labels; the ceiling is %d", (long long)index,
		               n, PROMQL_LABELS_MAX);
	struct promql_label *labels = arena_calloc(d->a, n, sizeof *labels);
	if (n && !labels)
		return no_memory(d);
	size_t i = 0;
	for (const cJSON *c = metric->child; c; c = c->next, i++) {
		char line[PROMQL_NAME_BYTES];
		promql_text_show(line, sizeof line, c->string, strlen(c->string));
		if (!cJSON_IsString(c))
			return err_set(d->e, ERR_PROTOCOL, "data.result[%lld].metric.%s: not a string",
			               (long long)index, line);
		size_t name_len = strlen(c->string), value_len = strlen(c->valuestring);
		size_t longest = name_len > value_len ? name_len : value_len;
		if (longest > PROMQL_LABEL_BYTES_MAX)
			return err_set(d->e, ERR_LIMIT, "data.result[%lld].metric.%s has %zu bytes; the ceiling is %d",
			               (long long)index, line, longest, PROMQL_LABEL_BYTES_MAX);
		labels[i].name = arena_strndup(d->a, c->string, name_len);
		labels[i].value = arena_strndup(d->a, c->valuestring, value_len);
		if (!labels[i].name || !labels[i].value)
			return no_memory(d);
	}
	ret->labels = labels;
	ret->n_labels = n;
	return 0;
}

// "{__name__="up", job="node"}", cut: enough to find the series again.
static const char *series_name(char out[static PROMQL_TEXT_BYTES], const struct promql_series *s)
{
	char raw[PROMQL_TEXT_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < s->n_labels && used < sizeof raw; i++) {
		int n = snprintf(raw + used, sizeof raw - used, "%s%.60s=\"%.60s\"", i ? ", " : "{", s->labels[i].name,
		                 s->labels[i].value);
		used += n > 0 ? (size_t)n : 0;
	}
	if (used + 1 < sizeof raw)
		snprintf(raw + used, sizeof raw - used, s->n_labels ? "}" : "{}");
	return promql_text_show(out, PROMQL_TEXT_BYTES, raw, strlen(raw));
}

static int refuse_histogram(struct decoder *d, const struct promql_series *s)
{
	char name[PROMQL_TEXT_BYTES];
	return err_set(d->e, ERR_UNSUPPORTED,
	               "not supported: series %s is a native histogram; query one number of it, as with "
	               "histogram_quantile(0.95, ...)",
	               series_name(name, s));
}

static int take_samples(struct decoder *d, size_t n, struct promql_sample **ret)
{
	if (n > PROMQL_SAMPLES_MAX - d->n_samples)
		return err_set(d->e, ERR_LIMIT, "the result has %zu samples or more; the ceiling is %d",
		               d->n_samples + n, PROMQL_SAMPLES_MAX);
	d->n_samples += n;
	*ret = arena_calloc(d->a, n, sizeof **ret);
	return n && !*ret ? no_memory(d) : 0;
}

static int decode_vector_item(struct decoder *d, const cJSON *item, int64_t index, struct promql_series *ret)
{
	if (decode_labels(d, item, index, ret) < 0)
		return -1;
	if (json_get(item, "histogram"))
		return refuse_histogram(d, ret);
	struct promql_sample *sample;
	if (take_samples(d, 1, &sample) < 0 || decode_sample(json_get(item, "value"), index, -1, sample, d->e) < 0)
		return -1;
	ret->samples = sample;
	ret->n_samples = 1;
	return 0;
}

static int decode_matrix_item(struct decoder *d, const cJSON *item, int64_t index, struct promql_series *ret)
{
	if (decode_labels(d, item, index, ret) < 0)
		return -1;
	if (json_get(item, "histograms"))
		return refuse_histogram(d, ret);
	const cJSON *values = json_get(item, "values");
	if (!cJSON_IsArray(values))
		return err_set(d->e, ERR_PROTOCOL, "data.result[%lld].values: not a list of samples", (long long)index);
	struct promql_sample *samples;
	size_t n = count_children(values), i = 0;
	if (take_samples(d, n, &samples) < 0)
		return -1;
	for (const cJSON *c = values->child; c; c = c->next, i++) {
		if (decode_sample(c, index, (int64_t)i, &samples[i], d->e) < 0)
			return -1;
		if (i && samples[i].time_ms < samples[i - 1].time_ms)
			return err_set(d->e, ERR_PROTOCOL, "data.result[%lld].values[%zu]: the time goes back",
			               (long long)index, i);
	}
	ret->samples = samples;
	ret->n_samples = n;
	return 0;
}

static int decode_series(struct decoder *d, const cJSON *result, struct promql_result *ret)
{
	if (!cJSON_IsArray(result))
		return err_set(d->e, ERR_PROTOCOL, "data.result: not a list of series");
	size_t n = count_children(result), i = 0;
	if (n > PROMQL_SERIES_MAX)
		return err_set(d->e, ERR_LIMIT, "the result has %zu series; the ceiling is %d: aggregate in the query",
		               n, PROMQL_SERIES_MAX);
	struct promql_series *series = arena_calloc(d->a, n, sizeof *series);
	if (n && !series)
		return no_memory(d);
	for (const cJSON *c = result->child; c; c = c->next, i++) {
		int rc = ret->type == PROMQL_VECTOR ? decode_vector_item(d, c, (int64_t)i, &series[i])
		                                    : decode_matrix_item(d, c, (int64_t)i, &series[i]);
		if (rc < 0)
			return -1;
	}
	ret->series = series;
	ret->n_series = n;
	return 0;
}

static int decode_scalar(struct decoder *d, const cJSON *result, struct promql_result *ret)
{
	struct promql_series *series = arena_calloc(d->a, 1, sizeof *series);
	struct promql_sample *sample;
	if (!series)
		return no_memory(d);
	if (take_samples(d, 1, &sample) < 0 || decode_sample(result, -1, -1, sample, d->e) < 0)
		return -1;
	series->samples = sample;
	series->n_samples = 1;
	ret->series = series;
	ret->n_series = 1;
	return 0;
}

static int decode_string(struct decoder *d, const cJSON *result, struct promql_result *ret)
{
	int64_t time_ms;
	const char *text = "";
	if (decode_pair(result, -1, -1, &time_ms, &text, d->e) < 0)
		return -1;
	ret->string = arena_strdup(d->a, text);
	return ret->string ? 0 : no_memory(d);
}

// Prometheus 2.48 to 2.55 put remarks on the query ("metric might not be a counter") beside the warnings; 3.0 has
// `infos` for them. They say nothing about missing data.
static bool is_remark(const char *warning)
{
	return strncmp(warning, "PromQL info:", 12) == 0;
}

static int add_warning(struct decoder *d, const char **warnings, size_t *n, const char *text)
{
	char line[PROMQL_TEXT_BYTES];
	warnings[*n] = arena_strdup(d->a, promql_text_show(line, sizeof line, text, strlen(text)));
	return warnings[(*n)++] ? 0 : no_memory(d);
}

static int decode_warnings(struct decoder *d, const cJSON *root, struct promql_result *ret)
{
	const cJSON *list = json_get(root, "warnings"), *partial = json_get(root, "isPartial");
	bool is_partial = cJSON_IsTrue(partial); // VictoriaMetrics, cluster version
	if (cJSON_IsNull(list))
		list = NULL;
	if (!json_may_be(partial, cJSON_IsBool))
		return err_set(d->e, ERR_PROTOCOL, "isPartial: neither true nor false");
	if (list && !cJSON_IsArray(list))
		return err_set(d->e, ERR_PROTOCOL, "warnings: not a list of strings");
	if (!list && !is_partial)
		return 0;
	size_t room = list ? count_children(list) : 0, n = 0, i = 0;
	if (room > PROMQL_WARNINGS_MAX)
		room = PROMQL_WARNINGS_MAX;
	const char **warnings = arena_calloc(d->a, room + 1, sizeof *warnings);
	if (!warnings)
		return no_memory(d);
	if (is_partial &&
	    add_warning(d, warnings, &n, "the server marked the answer as partial: some of its storage is away") < 0)
		return -1;
	for (const cJSON *c = list ? list->child : NULL; c; c = c->next, i++) {
		if (!cJSON_IsString(c))
			return err_set(d->e, ERR_PROTOCOL, "warnings[%zu]: not a string", i);
		if (is_remark(c->valuestring) || n == room + is_partial)
			continue; // one warning makes the data partial, wherever it stands: of a flood the rest may go
		if (add_warning(d, warnings, &n, c->valuestring) < 0)
			return -1;
	}
	ret->warnings = warnings;
	ret->n_warnings = n;
	return 0;
}

static int decode_type(const cJSON *data, enum promql_type *ret, struct err *e)
{
	const char *name = json_get_str(data, "resultType", "");
	for (int t = 0; t < PROMQL_TYPE__COUNT; t++)
		if (strcmp(type_names[t], name) == 0) {
			*ret = (enum promql_type)t;
			return 0;
		}
	char line[PROMQL_NAME_BYTES];
	return err_set(e, ERR_PROTOCOL, "data.resultType: \"%s\" is not vector, scalar, matrix or string",
	               promql_text_show(line, sizeof line, name, strlen(name)));
}

static int decode_success(struct decoder *d, const cJSON *root, struct promql_result *ret)
{
	const cJSON *data = json_get(root, "data");
	if (!cJSON_IsObject(data))
		return err_set(d->e, ERR_PROTOCOL, "data: not an object");
	if (decode_type(data, &ret->type, d->e) < 0 || decode_warnings(d, root, ret) < 0)
		return -1;
	const cJSON *result = json_get(data, "result");
	switch (ret->type) {
	case PROMQL_SCALAR:
		return decode_scalar(d, result, ret);
	case PROMQL_STRING:
		return decode_string(d, result, ret);
	default:
		return decode_series(d, result, ret);
	}
}

int promql_decode(struct arena *a, const char *body, size_t len, struct promql_result *ret_result, struct err *e)
{
	*ret_result = (struct promql_result){.type = PROMQL_VECTOR};
	cJSON *root = json_read(body, len, e);
	if (!root)
		return -1;
	struct decoder d = {.a = a, .e = e};
	const char *status = json_get_str(root, "status", "");
	int rc;
	if (strcmp(status, "success") == 0)
		rc = decode_success(&d, root, ret_result);
	else if (strcmp(status, "error") == 0)
		rc = decode_error_body(root, e);
	else
		rc = err_set(e, ERR_PROTOCOL,
		             "status: neither \"success\" nor \"error\": not a reply of the query API");
	cJSON_Delete(root);
	if (rc < 0)
		*ret_result = (struct promql_result){.type = PROMQL_VECTOR};
	return rc;
}

const char *promql_type_name(enum promql_type t)
{
	return type_names[t];
}

const char *promql_label(const struct promql_series *s, const char *name)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return s->labels[i].value;
	return "";
}
