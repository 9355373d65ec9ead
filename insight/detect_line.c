// SPDX-License-Identifier: Apache-2.0
#include "insight/detect_line.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json/json_read.h"
#include "base/num.h"
#include "base/text.h"
#include "insight/detect.h"

#define SHOWN_BYTES 80
#define EPOCH_MAX   1e15

// Content of a column of CSV, or of a member of a JSON line; the first DETECT_INPUT__COUNT are inputs.
enum field {
	FIELD_MEMORY_LIMIT = DETECT_INPUT__COUNT,
	FIELD_WORKING_SET_LIMIT,
	FIELD_EPOCH,
	FIELD_TIME,
	FIELD_JOB,
	FIELD_RANK,
	FIELD__COUNT
};

// The first name of a field is that of its JSON member.
static const struct {
	const char *name;
	int field;
} field_names[] = {
        // clang-format off
        {"step",            DETECT_STEP},
        {"compute",         DETECT_COMPUTE},
        {"clock",           DETECT_CLOCK},
        {"power",           DETECT_POWER},
        {"activity",        DETECT_ACTIVITY},
        {"memory",          DETECT_MEMORY},
        {"workingSet",      DETECT_WORKING_SET},
        {"memoryLimit",     FIELD_MEMORY_LIMIT},
        {"workingSetLimit", FIELD_WORKING_SET_LIMIT},
        {"epoch",           FIELD_EPOCH},
        {"time",            FIELD_TIME},
        {"job",             FIELD_JOB},
        {"rank",            FIELD_RANK},
        // other names of columns
        {"worker",          FIELD_RANK},
        {"pod",             FIELD_RANK},
        {"t_s",             FIELD_TIME},
        {"step_time",       DETECT_STEP},
        {"batch_time_norm", DETECT_STEP},
        // clang-format on
};

enum format { FORMAT_UNKNOWN, FORMAT_JSON, FORMAT_CSV };

struct detect_lines {
	struct detect *detect;
	enum format format;
	int columns[DETECT_COLUMNS_MAX]; // enum field; FIELD__COUNT: not used
	size_t n_columns;
};

struct detect_lines *detect_lines_new(struct buf *out)
{
	struct detect_lines *l = calloc(1, sizeof *l);
	struct detect *d = detect_new(out);
	if (!l || !d) {
		free(l);
		detect_free(d);
		return NULL;
	}
	l->detect = d;
	return l;
}

void detect_lines_free(struct detect_lines *l)
{
	if (!l)
		return;
	detect_free(l->detect);
	free(l);
}

void detect_lines_finish(struct detect_lines *l)
{
	detect_finish(l->detect);
}

static int field_of(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof field_names / sizeof field_names[0]; i++)
		if (strlen(field_names[i].name) == len && memcmp(field_names[i].name, name, len) == 0)
			return field_names[i].field;
	return FIELD__COUNT;
}

static int time_of(double s, int64_t *ret_ms, struct err *e)
{
	if (!(s >= 0 && s <= DETECT_TIME_MAX_S))
		return err_set(e, ERR_INPUT, "time: expected seconds from 0 to %.0f", DETECT_TIME_MAX_S);
	*ret_ms = llround(s * 1000);
	return 0;
}

static int64_t epoch_of(double epoch)
{
	return epoch >= 0 && epoch <= EPOCH_MAX ? (int64_t)epoch : -1;
}

static int add_value(struct detect_job *job, int input, const char *rank, double value, const double *limits,
                     double epoch, struct err *e)
{
	if (input < (int)DETECT_RANK_INPUTS)
		return detect_add(job, (enum detect_input)input, rank, value, e);
	double limit = limits[input - DETECT_MEMORY];
	return detect_add_memory(job, (enum detect_input)input, rank, value, isfinite(limit) && limit > 0 ? limit : 0,
	                         epoch_of(epoch), e);
}

// ---- JSON ----

// A number for every rank, or an object with the number of each.
static double number_of(const cJSON *item, const char *rank)
{
	const cJSON *v = cJSON_IsObject(item) ? json_get(item, rank) : item;
	return v && cJSON_IsNumber(v) ? v->valuedouble : (double)NAN;
}

static int add_member(struct detect_job *job, int input, const cJSON *ranks, const cJSON *const *fields, struct err *e)
{
	if (!cJSON_IsObject(ranks))
		return err_set(e, ERR_INPUT, "%s: expected an object with the value of each rank: {\"0\": 0.47}",
		               detect_input_name((enum detect_input)input));
	for (const cJSON *c = ranks->child; c; c = c->next) {
		if (cJSON_IsNull(c))
			continue;
		if (!cJSON_IsNumber(c) || !c->string[0]) {
			char shown[SHOWN_BYTES];
			text_show(shown, sizeof shown, c->string, strlen(c->string));
			return err_set(e, ERR_INPUT, "%s: rank \"%s\": expected a name and a number, or null",
			               detect_input_name((enum detect_input)input), shown);
		}
		const double limits[] = {number_of(fields[FIELD_MEMORY_LIMIT], c->string),
		                         number_of(fields[FIELD_WORKING_SET_LIMIT], c->string)};
		if (add_value(job, input, c->string, c->valuedouble, limits, number_of(fields[FIELD_EPOCH], c->string),
		              e) < 0)
			return -1;
	}
	return 0;
}

static int unknown_field(const char *name, struct err *e)
{
	const char *names[sizeof field_names / sizeof field_names[0]];
	char shown[SHOWN_BYTES];
	for (size_t i = 0; i < FIELD__COUNT; i++)
		names[i] = field_names[i].name;
	const char *close = num_closest_name(name, names, FIELD__COUNT);
	text_show(shown, sizeof shown, name, strlen(name));
	return close ? err_set(e, ERR_INPUT, "unknown field \"%s\", did you mean \"%s\"?", shown, close)
	             : err_set(e, ERR_INPUT, "unknown field \"%s\"", shown);
}

static int read_fields(const cJSON *root, const cJSON **fields, struct err *e)
{
	if (!cJSON_IsObject(root))
		return err_set(e, ERR_INPUT, "expected an object: {\"time\": 0, \"step\": {\"0\": 0.47}}");
	for (const cJSON *c = root->child; c; c = c->next) {
		int field = field_of(c->string, strlen(c->string));
		if (field >= FIELD_RANK || strcmp(field_names[field].name, c->string) != 0)
			return unknown_field(c->string, e);
		if (fields[field])
			return err_set(e, ERR_INPUT, "%s is given twice", c->string);
		fields[field] = cJSON_IsNull(c) ? NULL : c;
	}
	return 0;
}

static int read_tree(struct detect_lines *l, const cJSON *root, struct err *e)
{
	const cJSON *fields[FIELD__COUNT] = {NULL};
	int64_t time_ms = 0;
	if (read_fields(root, fields, e) < 0)
		return -1;
	const cJSON *time = fields[FIELD_TIME], *name = fields[FIELD_JOB];
	if (time_of(time && cJSON_IsNumber(time) ? time->valuedouble : (double)NAN, &time_ms, e) < 0)
		return -1;
	if (name && !cJSON_IsString(name))
		return err_set(e, ERR_INPUT, "job: expected the name of the job");
	struct detect_job *job = detect_at(l->detect, name ? name->valuestring : "", time_ms, e);
	if (!job)
		return -1;
	for (int i = 0; i < DETECT_INPUT__COUNT; i++)
		if (fields[i] && add_member(job, i, fields[i], fields, e) < 0)
			return -1;
	detect_tick(job);
	return 0;
}

// ---- CSV ----

// The next cell of [*at, end) without spaces around it; false after the last one.
static bool next_cell(const char **at, const char *end, const char **ret_cell, size_t *ret_len)
{
	if (!*at)
		return false;
	const char *comma = memchr(*at, ',', (size_t)(end - *at));
	const char *from = *at, *to = comma ? comma : end;
	*at = comma ? comma + 1 : NULL;
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	*ret_cell = from;
	*ret_len = (size_t)(to - from);
	return true;
}

static int read_header(struct detect_lines *l, const char *text, size_t len, struct err *e)
{
	bool has[FIELD__COUNT + 1] = {false};
	const char *at = text, *cell;
	bool has_input = false;
	for (size_t n; next_cell(&at, text + len, &cell, &n);) {
		if (l->n_columns == DETECT_COLUMNS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d columns", DETECT_COLUMNS_MAX);
		int field = field_of(cell, n);
		if (has[field] && field != FIELD__COUNT)
			return err_set(e, ERR_INPUT, "two columns are for the same: %s", field_names[field].name);
		has[field] = true;
		has_input = has_input || field < DETECT_INPUT__COUNT;
		l->columns[l->n_columns++] = field;
	}
	if (!has[FIELD_TIME] || !has[FIELD_RANK] || !has_input)
		return err_set(e, ERR_INPUT,
		               "expected a header with time, rank and one of step, compute, clock, power, activity, "
		               "memory, workingSet");
	l->format = FORMAT_CSV;
	return 0;
}

static int copy_name(char *out, const char *cell, size_t len, struct err *e)
{
	if (len >= DETECT_NAME_BYTES || memchr(cell, '\0', len))
		return err_set(e, ERR_LIMIT, "expected a name of at most %d bytes, got %zu", DETECT_NAME_BYTES - 1,
		               len);
	memcpy(out, cell, len);
	out[len] = '\0';
	return 0;
}

struct row {
	double values[FIELD__COUNT]; // NaN: missing
	char job[DETECT_NAME_BYTES], rank[DETECT_NAME_BYTES];
};

static int read_cells(const struct detect_lines *l, const char *text, size_t len, struct row *row, struct err *e)
{
	const char *at = text, *cell;
	size_t i = 0;
	for (size_t n; next_cell(&at, text + len, &cell, &n); i++) {
		int field = i < l->n_columns ? l->columns[i] : FIELD__COUNT;
		if (field == FIELD_JOB || field == FIELD_RANK) {
			if (copy_name(field == FIELD_JOB ? row->job : row->rank, cell, n, e) < 0)
				return -1;
		} else if (field != FIELD__COUNT && n > 0 && num_parse_sample(cell, n, &row->values[field], e) < 0) {
			return err_wrap(e, "%s", field_names[field].name);
		}
	}
	if (i != l->n_columns)
		return err_set(e, ERR_INPUT, "%zu cells, the header has %zu columns", i, l->n_columns);
	return row->rank[0] ? 0 : err_set(e, ERR_INPUT, "rank: expected a name or number");
}

static int read_row(struct detect_lines *l, const char *text, size_t len, struct err *e)
{
	struct row row = {.job = "", .rank = ""};
	int64_t time_ms = 0;
	for (size_t i = 0; i < FIELD__COUNT; i++)
		row.values[i] = (double)NAN;
	if (read_cells(l, text, len, &row, e) < 0 || time_of(row.values[FIELD_TIME], &time_ms, e) < 0)
		return -1;
	struct detect_job *job = detect_at(l->detect, row.job, time_ms, e);
	if (!job)
		return -1;
	for (int i = 0; i < DETECT_INPUT__COUNT; i++)
		if (!isnan(row.values[i]) && add_value(job, i, row.rank, row.values[i], &row.values[FIELD_MEMORY_LIMIT],
		                                       row.values[FIELD_EPOCH], e) < 0)
			return -1;
	return 0;
}

int detect_lines_read(struct detect_lines *l, const char *text, size_t len, struct err *e)
{
	if (len > DETECT_LINE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the line has more than %d bytes", DETECT_LINE_BYTES_MAX);
	if (l->format == FORMAT_CSV)
		return read_row(l, text, len, e);
	if (l->format == FORMAT_UNKNOWN && !(len > 0 && text[0] == '{')) {
		l->n_columns = 0;
		return read_header(l, text, len, e);
	}
	l->format = FORMAT_JSON;
	cJSON *root = json_read(text, len, e);
	int rc = root ? read_tree(l, root, e) : -1;
	cJSON_Delete(root);
	return rc;
}
