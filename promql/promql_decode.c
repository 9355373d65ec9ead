// SPDX-License-Identifier: Apache-2.0
// Replies of the Prometheus HTTP API v1, token by token -> plain arrays. Members may come in any order: a proxy that
// sorts them puts `data` before `status`, `result` before `resultType` and `metric` before `value`. Prometheus:
// docs/querying/api.md, "Expression query result formats".

#include "base/base.h"
#include "base/json/json_scan.h"
#include "promql/promql_decoder.h"

const char *const promql_type_names[] = {
        [PROMQL_VECTOR] = "vector",
        [PROMQL_SCALAR] = "scalar",
        [PROMQL_MATRIX] = "matrix",
        [PROMQL_STRING] = "string",
};
_Static_assert(sizeof promql_type_names / sizeof promql_type_names[0] == PROMQL_TYPE__COUNT,
               "one name per result type");

#define PLACE_BYTES  64
#define TYPE_UNKNOWN PROMQL_TYPE__COUNT

enum status { STATUS_UNKNOWN, STATUS_SUCCESS, STATUS_ERROR, STATUS_OTHER };
// The content of `result`.
enum shape { SHAPE_NONE, SHAPE_LIST, SHAPE_PAIR, SHAPE_OTHER };

// The container that the next token stands in.
enum where { IN_TEXT, IN_REPLY, IN_DATA, IN_RESULT, IN_ITEM, IN_METRIC, IN_VALUES, IN_PAIR, IN_WARNINGS };

enum member {
	MEMBER_OTHER,
	MEMBER_STATUS,
	MEMBER_DATA,
	MEMBER_ERROR_TYPE,
	MEMBER_ERROR,
	MEMBER_WARNINGS,
	MEMBER_IS_PARTIAL,
	MEMBER_RESULT_TYPE,
	MEMBER_RESULT,
	MEMBER_METRIC,
	MEMBER_VALUE,
	MEMBER_VALUES,
	MEMBER_HISTOGRAM,
	MEMBER_HISTOGRAMS,
};
static const struct {
	const char *name;
	enum where where;
	enum member member;
} members[] = {
        {"metric", IN_ITEM, MEMBER_METRIC},
        {"value", IN_ITEM, MEMBER_VALUE},
        {"values", IN_ITEM, MEMBER_VALUES},
        {"histogram", IN_ITEM, MEMBER_HISTOGRAM},
        {"histograms", IN_ITEM, MEMBER_HISTOGRAMS},
        {"status", IN_REPLY, MEMBER_STATUS},
        {"data", IN_REPLY, MEMBER_DATA},
        {"errorType", IN_REPLY, MEMBER_ERROR_TYPE},
        {"error", IN_REPLY, MEMBER_ERROR},
        {"warnings", IN_REPLY, MEMBER_WARNINGS},
        {"isPartial", IN_REPLY, MEMBER_IS_PARTIAL}, // VictoriaMetrics, cluster version
        {"resultType", IN_DATA, MEMBER_RESULT_TYPE},
        {"result", IN_DATA, MEMBER_RESULT},
};

// A pair [seconds, text] that is being read.
struct pair {
	size_t n; // elements so far
	enum where up;
	int64_t time_ms;
};

// The series that is being read.
struct item {
	uint32_t members;                   // bits: seen so far
	char label_name[PROMQL_NAME_BYTES]; // name of the label whose value comes next, cut
	size_t label_name_len;
	size_t n_values; // pairs of `values` so far
};

struct promql_decoder {
	struct json_scan scan;
	struct promql_answer answer;
	struct err *e; // error of the call that is running
	int64_t clock_offset_ms;
	enum where where;
	enum member member; // whose value comes next
	bool is_skipping;
	size_t skip_depth; // until the scan is there again
	uint32_t members;  // bits: of the reply and of data, seen so far
	enum status status;
	// What is wrong with `data` counts only once `status` is known to be success.
	struct err data_error;
	const char *error_type, *error_text;
	bool is_partial;
	size_t n_warnings; // read
	enum promql_type type;
	enum promql_type items_type; // by the content of the items
	enum shape shape;
	struct pair pair;
	const char *pair_text; // text of a scalar or string
	struct item item;
};

static int on_token(void *arg, const struct json_token *t, struct err *e);

// ---- life ----

struct promql_decoder *promql_decoder_new(struct arena *a)
{
	struct promql_decoder *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->answer.arena = a;
	json_scan_init(&d->scan, PROMQL_LABEL_BYTES_MAX, on_token, d);
	return d;
}

void promql_decoder_free(struct promql_decoder *d)
{
	if (!d)
		return;
	json_scan_done(&d->scan);
	promql_answer_done(&d->answer);
	free(d);
}

void promql_decoder_start(struct promql_decoder *d, const struct promql_decoder_options *o)
{
	promql_answer_start(&d->answer, o);
	json_scan_reset(&d->scan);
	d->clock_offset_ms = o->clock_offset_ms;
	d->where = IN_TEXT;
	d->is_skipping = d->is_partial = false;
	d->members = 0;
	d->status = STATUS_UNKNOWN;
	d->data_error.kind = ERR_NONE;
	d->error_type = d->error_text = "";
	d->n_warnings = 0;
	d->type = d->items_type = TYPE_UNKNOWN;
	d->shape = SHAPE_NONE;
	d->pair.n = 0;
	d->pair_text = NULL;
}

// ---- errors ----

// "data.result[3].values[2]": where in the reply something is wrong.
static const char *place(const struct promql_decoder *d, char out[static PLACE_BYTES])
{
	if (d->pair.up == IN_VALUES)
		snprintf(out, PLACE_BYTES, "data.result[%zu].values[%zu]", d->answer.n_series, d->item.n_values);
	else if (d->pair.up == IN_ITEM)
		snprintf(out, PLACE_BYTES, "data.result[%zu].value", d->answer.n_series);
	else
		snprintf(out, PLACE_BYTES, "data.result");
	return out;
}

// Something in `data` is wrong, as *d->e says. What came before the status may belong to an error reply: it is kept
// until the status is known, and the rest of `data` is passed over.
static int wrong_data(struct promql_decoder *d)
{
	if (d->status == STATUS_SUCCESS)
		return -1;
	d->data_error = *d->e;
	d->where = IN_REPLY;
	d->is_skipping = d->scan.depth > 1;
	d->skip_depth = 1;
	return 0;
}

// Reports what is wrong in `data`.
__attribute__((format(printf, 2, 3))) static int wrong(struct promql_decoder *d, const char *fmt, ...)
{
	char why[ERR_MSG_BYTES];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	err_set(d->e, ERR_PROTOCOL, "%s", why);
	return wrong_data(d);
}

// The answer refused what was added, as *d->e says: bad data may belong to an error reply, a passed limit ends the
// decoding at once.
static int refused(struct promql_decoder *d)
{
	return d->e->kind == ERR_INPUT || d->e->kind == ERR_PROTOCOL ? wrong_data(d) : -1;
}

static int not_a_pair(struct promql_decoder *d)
{
	char at[PLACE_BYTES];
	return wrong(d, "%s: not a pair [time, \"value\"]", place(d, at));
}

static int not_labels(struct promql_decoder *d)
{
	return wrong(d, "data.result[%zu].metric: not an object of labels", d->answer.n_series);
}

static bool is_begin(const struct json_token *t)
{
	return t->kind == JSON_OBJECT_BEGIN || t->kind == JSON_ARRAY_BEGIN;
}

static bool is_end(const struct json_token *t)
{
	return t->kind == JSON_OBJECT_END || t->kind == JSON_ARRAY_END;
}

// Passes over a value.
static int skip(struct promql_decoder *d, const struct json_token *t)
{
	if (is_begin(t)) {
		d->is_skipping = true;
		d->skip_depth = d->scan.depth - 1;
	}
	return 0;
}

// ---- pairs ----

static void pair_begins(struct promql_decoder *d, enum where up)
{
	d->pair = (struct pair){.up = up};
	d->where = IN_PAIR;
}

static int take_time(struct promql_decoder *d, const struct json_token *t)
{
	int64_t time_ms;
	if (t->kind != JSON_NUMBER || promql_time_parse(t->text, t->len, &time_ms) < 0) {
		char at[PLACE_BYTES];
		return wrong(d, "%s[0]: the time is not a number of seconds since the epoch", place(d, at));
	}
	d->pair.time_ms = time_ms - d->clock_offset_ms;
	return 0;
}

// Finds *d->e filled when it is not 0.
static int parse_value(struct promql_decoder *d, const char *text, size_t len, struct promql_sample *ret)
{
	ret->time_ms = d->pair.time_ms;
	if (num_parse_sample(text, len, &ret->value, NULL) == 0)
		return 0;
	char at[PLACE_BYTES], line[PROMQL_NAME_BYTES];
	return err_set(d->e, ERR_PROTOCOL, "%s[1]: \"%s\" is not a sample value", place(d, at),
	               promql_text_show(line, sizeof line, text, len));
}

static int put_sample(struct promql_decoder *d, const struct json_token *t)
{
	struct promql_sample sample;
	if (parse_value(d, t->text, t->len, &sample) < 0)
		return wrong_data(d);
	int rc = d->pair.up == IN_ITEM ? promql_answer_set_sample(&d->answer, &sample, d->e)
	                               : promql_answer_append_sample(&d->answer, &sample, d->e);
	return rc < 0 ? refused(d) : 0;
}

static int take_value(struct promql_decoder *d, const struct json_token *t)
{
	char at[PLACE_BYTES];
	if (t->kind != JSON_STRING)
		return wrong(d, "%s[1]: the value is not a string", place(d, at));
	if (d->pair.up != IN_DATA)
		return put_sample(d, t);
	if (t->bytes > t->len)
		return err_set(d->e, ERR_TOO_LARGE, "%s[1] has %zu bytes; the ceiling is %d", place(d, at), t->bytes,
		               PROMQL_LABEL_BYTES_MAX);
	d->pair_text = promql_answer_copy_text(&d->answer, t->text, t->len, d->e);
	return d->pair_text ? 0 : -1;
}

static int in_pair(struct promql_decoder *d, const struct json_token *t)
{
	if (!is_end(t)) {
		size_t i = d->pair.n++;
		return i == 0 ? take_time(d, t) : i == 1 ? take_value(d, t) : not_a_pair(d);
	}
	if (d->pair.n != 2)
		return not_a_pair(d);
	d->where = d->pair.up;
	if (d->where == IN_VALUES)
		d->item.n_values++;
	return 0;
}

static int in_values(struct promql_decoder *d, const struct json_token *t)
{
	if (is_end(t)) {
		d->where = IN_ITEM;
		return 0;
	}
	pair_begins(d, IN_VALUES);
	return t->kind == JSON_ARRAY_BEGIN ? 0 : not_a_pair(d);
}

// ---- labels ----

static int label_too_long(struct promql_decoder *d, size_t bytes)
{
	char line[PROMQL_NAME_BYTES];
	promql_text_show(line, sizeof line, d->item.label_name, d->item.label_name_len);
	return err_set(d->e, ERR_LIMIT, "data.result[%zu].metric.%s has %zu bytes; the ceiling is %d",
	               d->answer.n_series, line, bytes, PROMQL_LABEL_BYTES_MAX);
}

static int label_name(struct promql_decoder *d, const struct json_token *t)
{
	struct item *item = &d->item;
	item->label_name_len = t->len < sizeof item->label_name ? t->len : sizeof item->label_name;
	memcpy(item->label_name, t->text, item->label_name_len);
	if (t->bytes > PROMQL_LABEL_BYTES_MAX)
		return label_too_long(d, t->bytes);
	return promql_answer_add_label_name(&d->answer, t->text, t->len, d->e) < 0 ? refused(d) : 0;
}

static int label_value(struct promql_decoder *d, const struct json_token *t)
{
	if (t->kind != JSON_STRING) {
		char line[PROMQL_NAME_BYTES];
		promql_text_show(line, sizeof line, d->item.label_name, d->item.label_name_len);
		return wrong(d, "data.result[%zu].metric.%s: not a string", d->answer.n_series, line);
	}
	if (t->bytes > PROMQL_LABEL_BYTES_MAX)
		return label_too_long(d, t->bytes);
	return promql_answer_add_label_value(&d->answer, t->text, t->len, d->e) < 0 ? refused(d) : 0;
}

static int in_metric(struct promql_decoder *d, const struct json_token *t)
{
	if (t->kind == JSON_KEY)
		return label_name(d, t);
	if (t->kind != JSON_OBJECT_END)
		return label_value(d, t);
	d->where = IN_ITEM;
	return 0;
}

// ---- series ----

static bool has(uint32_t members_seen, enum member m)
{
	return members_seen >> m & 1;
}

static int item_ended(struct promql_decoder *d)
{
	const struct item *item = &d->item;
	d->where = IN_RESULT;
	if (!has(item->members, MEMBER_METRIC))
		return not_labels(d);
	enum promql_type type = d->type;
	if (type == TYPE_UNKNOWN)
		type = d->items_type;
	if (type == TYPE_UNKNOWN)
		type = has(item->members, MEMBER_VALUES) || has(item->members, MEMBER_HISTOGRAMS) ? PROMQL_MATRIX
		                                                                                  : PROMQL_VECTOR;
	d->items_type = type;
	if (has(item->members, type == PROMQL_VECTOR ? MEMBER_HISTOGRAM : MEMBER_HISTOGRAMS)) {
		char name[PROMQL_TEXT_BYTES];
		err_set(d->e, ERR_UNSUPPORTED,
		        "not supported: series %s is a native histogram; query one number of it, as with "
		        "histogram_quantile(0.95, ...)",
		        promql_answer_series_name(&d->answer, name));
		return wrong_data(d);
	}
	if (!has(item->members, type == PROMQL_VECTOR ? MEMBER_VALUE : MEMBER_VALUES)) {
		d->pair.up = IN_ITEM;
		if (type == PROMQL_VECTOR)
			return not_a_pair(d);
		return wrong(d, "data.result[%zu].values: not a list of samples", d->answer.n_series);
	}
	return promql_answer_end_series(&d->answer, type, d->e) < 0 ? refused(d) : 0;
}

static int item_member(struct promql_decoder *d, const struct json_token *t)
{
	switch (d->member) {
	case MEMBER_METRIC:
		d->where = IN_METRIC;
		return t->kind == JSON_OBJECT_BEGIN ? 0 : not_labels(d);
	case MEMBER_VALUE:
		if (d->type == PROMQL_MATRIX)
			return skip(d, t);
		pair_begins(d, IN_ITEM);
		return t->kind == JSON_ARRAY_BEGIN ? 0 : not_a_pair(d);
	case MEMBER_VALUES:
		if (d->type == PROMQL_VECTOR)
			return skip(d, t);
		d->where = IN_VALUES;
		if (t->kind == JSON_ARRAY_BEGIN)
			return 0;
		return wrong(d, "data.result[%zu].values: not a list of samples", d->answer.n_series);
	default:
		return skip(d, t);
	}
}

// ---- the reply ----

static int note_member(struct promql_decoder *d, const struct json_token *t, uint32_t *seen)
{
	d->member = MEMBER_OTHER;
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
		if (members[i].where == d->where && strncmp(members[i].name, t->text, t->len) == 0 &&
		    members[i].name[t->len] == '\0')
			d->member = members[i].member;
	if (d->member == MEMBER_OTHER)
		return 0;
	if (has(*seen, d->member)) {
		const char *of = d->where == IN_REPLY ? "the reply" : d->where == IN_DATA ? "data" : "a series";
		return err_set(d->e, ERR_PROTOCOL, "%s has the member %.*s twice", of, (int)t->len, t->text);
	}
	*seen |= (uint32_t)1 << d->member;
	return 0;
}

static int in_item(struct promql_decoder *d, const struct json_token *t)
{
	if (t->kind == JSON_KEY)
		return note_member(d, t, &d->item.members);
	return t->kind == JSON_OBJECT_END ? item_ended(d) : item_member(d, t);
}

static int item_begins(struct promql_decoder *d)
{
	if (promql_answer_begin_series(&d->answer, d->e) < 0)
		return -1;
	d->item.members = 0;
	d->item.n_values = 0;
	d->where = IN_ITEM;
	return 0;
}

static int in_result(struct promql_decoder *d, const struct json_token *t)
{
	if (is_end(t)) {
		d->where = IN_DATA;
		return 0;
	}
	bool is_list = d->type == PROMQL_VECTOR || d->type == PROMQL_MATRIX;
	bool is_item = t->kind == JSON_OBJECT_BEGIN;
	if (is_item && (is_list || d->type == TYPE_UNKNOWN))
		return item_begins(d);
	if (is_list || d->answer.n_series > 0)
		return not_labels(d);
	d->shape = SHAPE_PAIR;
	pair_begins(d, IN_DATA);
	return is_item ? not_a_pair(d) : in_pair(d, t);
}

static int take_type(struct promql_decoder *d, const struct json_token *t)
{
	bool is_text = t->kind == JSON_STRING;
	for (int i = 0; i < PROMQL_TYPE__COUNT; i++)
		if (is_text && t->len == strlen(promql_type_names[i]) &&
		    memcmp(promql_type_names[i], t->text, t->len) == 0) {
			d->type = (enum promql_type)i;
			return 0;
		}
	char line[PROMQL_NAME_BYTES];
	promql_text_show(line, sizeof line, is_text ? t->text : "", is_text ? t->len : 0);
	return wrong(d, "data.resultType: \"%s\" is not vector, scalar, matrix or string", line);
}

static int in_data(struct promql_decoder *d, const struct json_token *t)
{
	if (t->kind == JSON_KEY)
		return note_member(d, t, &d->members);
	if (t->kind == JSON_OBJECT_END) {
		d->where = IN_REPLY;
		return 0;
	}
	if (d->member == MEMBER_RESULT_TYPE)
		return is_begin(t) ? take_type(d, &(struct json_token){.kind = JSON_NULL}) : take_type(d, t);
	if (d->member != MEMBER_RESULT)
		return skip(d, t);
	d->shape = t->kind == JSON_ARRAY_BEGIN ? SHAPE_LIST : SHAPE_OTHER;
	if (d->shape == SHAPE_OTHER)
		return skip(d, t);
	d->where = IN_RESULT;
	return 0;
}

// Prometheus 2.48 to 2.55 put remarks on the query ("metric might not be a counter") in addition to the warnings; 3.0
// has `infos` for them. They say nothing about missing data.
static bool is_remark(const struct json_token *t)
{
	static const char start[] = "PromQL info:";
	return t->len >= sizeof start - 1 && memcmp(t->text, start, sizeof start - 1) == 0;
}

static int in_warnings(struct promql_decoder *d, const struct json_token *t)
{
	if (is_end(t)) {
		d->where = IN_REPLY;
		return 0;
	}
	size_t i = d->n_warnings++;
	if (t->kind != JSON_STRING)
		return wrong(d, "warnings[%zu]: not a string", i);
	// One warning makes the data partial, wherever it stands: of a flood the rest may go.
	return is_remark(t) ? 0 : promql_answer_add_warning(&d->answer, t->text, t->len, d->e);
}

static int take_status(struct promql_decoder *d, const struct json_token *t)
{
	d->status = t->kind != JSON_STRING                                   ? STATUS_OTHER
	            : t->len == 7 && memcmp(t->text, "success", t->len) == 0 ? STATUS_SUCCESS
	            : t->len == 5 && memcmp(t->text, "error", t->len) == 0   ? STATUS_ERROR
	                                                                     : STATUS_OTHER;
	if (d->status == STATUS_SUCCESS && d->data_error.kind != ERR_NONE) {
		*d->e = d->data_error;
		return -1;
	}
	return skip(d, t);
}

static int take_error_part(struct promql_decoder *d, const struct json_token *t, const char **ret)
{
	if (t->kind != JSON_STRING)
		return skip(d, t);
	*ret = promql_answer_copy_text(&d->answer, t->text, t->len, d->e);
	return *ret ? 0 : -1;
}

static int reply_member(struct promql_decoder *d, const struct json_token *t)
{
	switch (d->member) {
	case MEMBER_STATUS:
		return take_status(d, t);
	case MEMBER_ERROR_TYPE:
		return take_error_part(d, t, &d->error_type);
	case MEMBER_ERROR:
		return take_error_part(d, t, &d->error_text);
	case MEMBER_IS_PARTIAL:
		d->is_partial = t->kind == JSON_TRUE;
		if (t->kind == JSON_TRUE || t->kind == JSON_FALSE || t->kind == JSON_NULL)
			return 0;
		return wrong(d, "isPartial: neither true nor false");
	case MEMBER_WARNINGS:
		if (t->kind == JSON_NULL)
			return 0;
		d->where = IN_WARNINGS;
		if (t->kind == JSON_ARRAY_BEGIN)
			return 0;
		return wrong(d, "warnings: not a list of strings");
	case MEMBER_DATA:
		if (t->kind != JSON_OBJECT_BEGIN)
			return wrong(d, "data: not an object");
		if (d->status == STATUS_ERROR)
			return skip(d, t);
		d->where = IN_DATA;
		return 0;
	default:
		return skip(d, t);
	}
}

static int in_reply(struct promql_decoder *d, const struct json_token *t)
{
	if (t->kind == JSON_KEY)
		return note_member(d, t, &d->members);
	return t->kind == JSON_OBJECT_END ? 0 : reply_member(d, t);
}

static int on_token(void *arg, const struct json_token *t, struct err *e)
{
	struct promql_decoder *d = arg;
	d->e = e;
	if (d->is_skipping) {
		d->is_skipping = d->scan.depth != d->skip_depth;
		return 0;
	}
	switch (d->where) {
	case IN_REPLY:
		return in_reply(d, t);
	case IN_DATA:
		return in_data(d, t);
	case IN_RESULT:
		return in_result(d, t);
	case IN_ITEM:
		return in_item(d, t);
	case IN_METRIC:
		return in_metric(d, t);
	case IN_VALUES:
		return in_values(d, t);
	case IN_PAIR:
		return in_pair(d, t);
	case IN_WARNINGS:
		return in_warnings(d, t);
	default:
		d->where = IN_REPLY;
		return t->kind == JSON_OBJECT_BEGIN ? 0 : skip(d, t); // no reply at all: the status will be missing
	}
}

int promql_decoder_feed(struct promql_decoder *d, const char *data, size_t len, struct err *e)
{
	d->e = e;
	if (promql_answer_check(&d->answer, e) < 0)
		return -1;
	return json_scan_feed(&d->scan, data, len, e);
}

// ---- the end ----

static int finish_list(struct promql_decoder *d, struct promql_result *ret)
{
	if (d->shape == SHAPE_PAIR)
		return not_labels(d);
	if (d->shape != SHAPE_LIST)
		return err_set(d->e, ERR_PROTOCOL, "data.result: not a list of series");
	if (d->answer.n_series && d->items_type != d->type)
		return err_set(d->e, ERR_PROTOCOL, "data.result: the series of a %s, where data.resultType says %s",
		               promql_type_names[d->items_type], promql_type_names[d->type]);
	return promql_answer_list_series(&d->answer, ret, d->e);
}

static int finish_pair(struct promql_decoder *d, struct promql_result *ret)
{
	d->pair.up = IN_DATA;
	if (d->shape != SHAPE_PAIR || !d->pair_text)
		return not_a_pair(d);
	if (d->type == PROMQL_STRING) {
		ret->string = d->pair_text;
		return 0;
	}
	struct promql_series *series = promql_answer_alloc(&d->answer, sizeof *series, d->e);
	struct promql_sample *sample = series ? promql_answer_alloc(&d->answer, sizeof *sample, d->e) : NULL;
	if (!sample || parse_value(d, d->pair_text, strlen(d->pair_text), sample) < 0)
		return -1;
	*series = (struct promql_series){.samples = sample, .n_samples = 1};
	ret->series = series;
	ret->n_series = 1;
	return 0;
}

static int finish(struct promql_decoder *d, struct promql_result *ret, struct err *e)
{
	if (promql_answer_check(&d->answer, e) < 0)
		return -1;
	if (json_scan_finish(&d->scan, e) < 0)
		return -1;
	if (d->status == STATUS_ERROR)
		return promql_api_error_set(e, d->error_type, d->error_text);
	if (d->status != STATUS_SUCCESS)
		return err_set(e, ERR_PROTOCOL,
		               "status: neither \"success\" nor \"error\": not a reply of the query API");
	if (!has(d->members, MEMBER_DATA))
		return err_set(e, ERR_PROTOCOL, "data: not an object");
	if (d->type == TYPE_UNKNOWN)
		return take_type(d, &(struct json_token){.kind = JSON_NULL});
	struct promql_result result = {.type = d->type, .clock_offset_ms = d->clock_offset_ms};
	bool is_pair = d->type == PROMQL_SCALAR || d->type == PROMQL_STRING;
	if (promql_answer_list_warnings(&d->answer, d->is_partial, &result, e) < 0 ||
	    (is_pair ? finish_pair(d, &result) : finish_list(d, &result)) < 0)
		return -1;
	*ret = result;
	return 0;
}

int promql_decoder_finish(struct promql_decoder *d, struct promql_result *ret, struct err *e)
{
	*ret = (struct promql_result){.type = PROMQL_VECTOR};
	d->e = e;
	int rc = finish(d, ret, e);
	promql_answer_detach(&d->answer);
	return rc;
}

const char *promql_label(const struct promql_series *s, const char *name)
{
	for (size_t i = 0; i < s->n_labels; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return s->labels[i].value;
	return "";
}

void promql_result_check(const struct promql_result *result, const struct err *error, struct err *ret_error)
{
	if (error)
		*ret_error = *error;
	else if (result->n_warnings > 0)
		err_set(ret_error, ERR_PROTOCOL, "the answer is incomplete: %s", result->warnings[0]);
}
