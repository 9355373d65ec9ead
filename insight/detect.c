// SPDX-License-Identifier: Apache-2.0
#include "insight/detect.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "insight/leak.h"
#include "insight/straggler.h"

#define LOCKSTEP_RATIO 1.01 // step times this close on all ranks are the time of the slowest one
#define LOCKSTEP_SHARE 0.9  // least share of such times
#define NO_INPUT       DETECT_INPUT__COUNT
#define SHOWN_BYTES    80
#define EPOCH_MAX      1e15

struct series {
	char *name;
	enum detect_input input;
	struct leak leak;
};

struct detect_job {
	struct detect *detect;
	char *name;
	int64_t time_ms;
	struct straggler *ranks[DETECT_RANK_INPUTS]; // NULL: no value yet
	struct input_of_job {
		struct detect_job *job;
		enum detect_input input;
	} inputs[DETECT_RANK_INPUTS];        // arguments of on_rank
	bool has_values[DETECT_RANK_INPUTS]; // at this time or the one before
	enum detect_input chosen;
	double least_step, most_step; // at this time
	double n_steps, n_lockstep;
	struct series *series;
	size_t n_series, cap_series, next_series;
};

enum format { FORMAT_UNKNOWN, FORMAT_JSON, FORMAT_CSV };

struct detect {
	struct buf *out;
	struct detect_job **jobs;
	size_t n_jobs, cap_jobs, n_series;
	enum format format;              // of the lines that are read
	int columns[DETECT_COLUMNS_MAX]; // enum field; FIELD__COUNT: not used
	size_t n_columns;
};

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

// The first name of a field is that of its JSON member. The rows of the inputs come first, in the order of their enum:
// field_names[input].
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

struct detect *detect_new(struct buf *out)
{
	struct detect *d = calloc(1, sizeof *d);
	if (d)
		d->out = out;
	return d;
}

static void job_free(struct detect_job *j)
{
	for (size_t i = 0; i < DETECT_RANK_INPUTS; i++)
		straggler_free(j->ranks[i]);
	for (size_t i = 0; i < j->n_series; i++)
		free(j->series[i].name);
	free(j->series);
	free(j->name);
	free(j);
}

void detect_free(struct detect *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_jobs; i++)
		job_free(d->jobs[i]);
	free((void *)d->jobs);
	free(d);
}

// ---- events ----

static double rounded(double v)
{
	return round(v * 1000) / 1000;
}

static void event_begin(struct json_writer *w, const struct detect_job *j, int64_t time_ms, const char *event,
                        const char *rank, enum detect_input input)
{
	json_write_init(w, j->detect->out, 0);
	json_write_format(w, "{time:%g,job:%s,event:%s,rank:%s,input:%s", (double)time_ms / 1000, j->name, event, rank,
	                  field_names[input].name);
}

static void event_end(struct json_writer *w, struct detect_job *j)
{
	json_write_object_end(w);
	buf_putc(j->detect->out, '\n');
}

static void on_rank(void *arg, const struct rank_event *event)
{
	const struct input_of_job *in = arg;
	struct json_writer w;
	if (in->input != in->job->chosen)
		return;
	event_begin(&w, in->job, event->time_ms, rank_event_names[event->kind], event->rank, in->input);
	json_write_format(&w, "ratio:%g,since:%g", rounded(event->ratio), (double)event->since_ms / 1000);
	if (event->n_alike > 0) {
		json_write_member_array(&w, "with");
		for (size_t i = 0; i < event->n_alike; i++)
			json_write_str(&w, event->alike[i]);
		json_write_array_end(&w);
	}
	event_end(&w, in->job);
}

static void put_leak(struct detect_job *j, const struct series *s, enum leak_change change, const struct leak_report *r)
{
	struct json_writer w;
	event_begin(&w, j, j->time_ms, change == LEAK_FOUND ? "Leak" : "LeakEnded", s->name, s->input);
	if (change == LEAK_FOUND && r->bytes_per_epoch > 0) {
		json_write_member_f64(&w, "bytesPerEpoch", round(r->bytes_per_epoch));
	} else if (change == LEAK_FOUND) {
		json_write_format(&w, "bytesPerHour:%g,observedHours:%g", round(r->bytes_per_hour),
		                  rounded(r->observed_hours));
		if (r->hours_to_limit >= 0)
			json_write_member_f64(&w, "hoursToLimit", rounded(r->hours_to_limit));
	}
	event_end(&w, j);
}

// ---- jobs ----

static struct detect_job *job_new(struct detect *d, const char *name, struct err *e)
{
	if (d->n_jobs == DETECT_JOBS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d jobs", DETECT_JOBS_MAX), NULL;
	if (strlen(name) >= DETECT_NAME_BYTES)
		return err_set(e, ERR_LIMIT, "the name of a job has more than %d bytes", DETECT_NAME_BYTES - 1), NULL;
	bool has_room = alloc_reserve(&d->jobs, d->n_jobs, &d->cap_jobs, sizeof(struct detect_job *), 8) == 0;
	struct detect_job *j = calloc(1, sizeof *j);
	char *copy = strdup(name);
	if (!has_room || !j || !copy) {
		free(j);
		free(copy);
		return err_no_memory(e), NULL;
	}
	j->detect = d;
	j->name = copy;
	j->time_ms = INT64_MIN;
	j->chosen = NO_INPUT;
	for (size_t i = 0; i < DETECT_RANK_INPUTS; i++)
		j->inputs[i] = (struct input_of_job){j, (enum detect_input)i};
	d->jobs[d->n_jobs++] = j;
	return j;
}

// Step times that are equal on all ranks show how fast the slowest rank is, and not which one it is.
static bool is_lockstep(const struct detect_job *j)
{
	return j->n_steps > 0 && j->n_lockstep >= LOCKSTEP_SHARE * j->n_steps;
}

// Chooses the input and closes the books of the last time.
static void close_time(struct detect_job *j)
{
	if (j->most_step > 0) {
		j->n_steps++;
		j->n_lockstep += j->most_step <= LOCKSTEP_RATIO * j->least_step;
	}
	enum detect_input chosen = NO_INPUT;
	for (size_t i = DETECT_RANK_INPUTS; i-- > 0;)
		if (j->has_values[i] && !(i == DETECT_STEP && chosen != NO_INPUT && is_lockstep(j)))
			chosen = (enum detect_input)i;
	if (chosen != NO_INPUT)
		j->chosen = chosen;
	j->least_step = HUGE_VAL;
	j->most_step = 0;
	memset(j->has_values, 0, sizeof j->has_values);
}

struct detect_job *detect_at(struct detect *d, const char *job, int64_t time_ms, struct err *e)
{
	struct detect_job *j = NULL;
	for (size_t i = 0; i < d->n_jobs && !j; i++)
		if (strcmp(d->jobs[i]->name, job) == 0)
			j = d->jobs[i];
	if (!j)
		j = job_new(d, job, e);
	if (!j)
		return NULL;
	if (time_ms < j->time_ms)
		return err_set(e, ERR_INPUT, "the time goes back by %.3f s: sort the lines by time",
		               (double)(j->time_ms - time_ms) / 1000),
		       NULL;
	if (time_ms == j->time_ms)
		return j;
	if (j->time_ms != INT64_MIN)
		close_time(j);
	else
		j->least_step = HUGE_VAL;
	j->time_ms = time_ms;
	for (size_t i = 0; i < DETECT_RANK_INPUTS; i++)
		if (j->ranks[i])
			straggler_at(j->ranks[i], time_ms);
	return j;
}

static int add_rank(struct detect_job *job, enum detect_input input, const char *rank, double value, struct err *e)
{
	if (!job->ranks[input]) {
		job->ranks[input] = straggler_new(input <= DETECT_COMPUTE, on_rank, &job->inputs[input]);
		if (!job->ranks[input])
			return err_no_memory(e);
		straggler_at(job->ranks[input], job->time_ms);
	}
	if (!straggler_add(job->ranks[input], rank, value))
		return err_set(e, ERR_LIMIT,
		               "more than %d ranks, a name of a rank with more than %d bytes, or out of memory",
		               STRAGGLER_RANKS_MAX, STRAGGLER_RANK_BYTES - 1);
	if (!isfinite(value) || value <= 0)
		return 0;
	job->has_values[input] = true;
	if (input == DETECT_STEP) {
		job->least_step = fmin(job->least_step, value);
		job->most_step = fmax(job->most_step, value);
	}
	return 0;
}

// Values mostly come in the same order at every time, so the search starts behind the series found before.
static struct series *series_of(struct detect_job *j, enum detect_input input, const char *rank, struct err *e)
{
	for (size_t i = 0; i < j->n_series; i++) {
		size_t at = (j->next_series + i) % j->n_series;
		if (j->series[at].input == input && strcmp(j->series[at].name, rank) == 0) {
			j->next_series = at + 1;
			return &j->series[at];
		}
	}
	if (j->detect->n_series == DETECT_SERIES_MAX)
		return err_set(e, ERR_LIMIT, "memory of more than %d ranks", DETECT_SERIES_MAX), NULL;
	if (strlen(rank) >= DETECT_NAME_BYTES)
		return err_set(e, ERR_LIMIT, "the name of a rank has more than %d bytes", DETECT_NAME_BYTES - 1), NULL;
	bool has_room = alloc_reserve(&j->series, j->n_series, &j->cap_series, sizeof *j->series, 8) == 0;
	char *name = has_room ? strdup(rank) : NULL;
	if (!name)
		return err_no_memory(e), NULL;
	j->detect->n_series++;
	j->series[j->n_series] = (struct series){.name = name, .input = input};
	return &j->series[j->n_series++];
}

int detect_add(struct detect_job *job, enum detect_input input, const char *rank, double value, double limit,
               double epoch, struct err *e)
{
	struct leak_report report = {0};
	if (input < DETECT_RANK_INPUTS)
		return add_rank(job, input, rank, value, e);
	struct series *s = series_of(job, input, rank, e);
	if (!s)
		return -1;
	enum leak_change change = leak_add(&s->leak, job->time_ms, value, isfinite(limit) && limit > 0 ? limit : 0,
	                                   epoch >= 0 && epoch <= EPOCH_MAX ? (int64_t)epoch : -1, &report);
	if (change != LEAK_NONE)
		put_leak(job, s, change, &report);
	return 0;
}

void detect_tick(struct detect_job *job)
{
	if (job->chosen == NO_INPUT)
		for (size_t i = DETECT_RANK_INPUTS; i-- > 0;)
			if (job->has_values[i])
				job->chosen = (enum detect_input)i;
	for (size_t i = 0; i < DETECT_RANK_INPUTS; i++)
		if (job->ranks[i])
			straggler_tick(job->ranks[i]);
}

void detect_finish(struct detect *d)
{
	for (size_t i = 0; i < d->n_jobs; i++)
		detect_tick(d->jobs[i]);
}

// ---- lines ----

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

// The field with the limit of a memory; of another input, any.
static int limit_of(int input)
{
	return input == DETECT_WORKING_SET ? FIELD_WORKING_SET_LIMIT : FIELD_MEMORY_LIMIT;
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
		               field_names[input].name);
	for (const cJSON *c = ranks->child; c; c = c->next) {
		if (cJSON_IsNull(c))
			continue;
		if (!cJSON_IsNumber(c) || !c->string[0]) {
			char shown[SHOWN_BYTES];
			text_show(shown, sizeof shown, c->string, strlen(c->string));
			return err_set(e, ERR_INPUT, "%s: rank \"%s\": expected a name and a number, or null",
			               field_names[input].name, shown);
		}
		if (detect_add(job, (enum detect_input)input, c->string, c->valuedouble,
		               number_of(fields[limit_of(input)], c->string), number_of(fields[FIELD_EPOCH], c->string),
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

static int read_tree(struct detect *d, const cJSON *root, struct err *e)
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
	struct detect_job *job = detect_at(d, name ? name->valuestring : "", time_ms, e);
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

static int read_header(struct detect *d, const char *text, size_t len, struct err *e)
{
	bool has[FIELD__COUNT + 1] = {false};
	const char *at = text, *cell;
	bool has_input = false;
	for (size_t n; next_cell(&at, text + len, &cell, &n);) {
		if (d->n_columns == DETECT_COLUMNS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d columns", DETECT_COLUMNS_MAX);
		int field = field_of(cell, n);
		if (has[field] && field != FIELD__COUNT)
			return err_set(e, ERR_INPUT, "two columns are for the same: %s", field_names[field].name);
		has[field] = true;
		has_input = has_input || field < DETECT_INPUT__COUNT;
		d->columns[d->n_columns++] = field;
	}
	if (!has[FIELD_TIME] || !has[FIELD_RANK] || !has_input)
		return err_set(e, ERR_INPUT,
		               "expected a header with time, rank and one of step, compute, clock, power, activity, "
		               "memory, workingSet");
	d->format = FORMAT_CSV;
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

static int read_cells(const struct detect *d, const char *text, size_t len, struct row *row, struct err *e)
{
	const char *at = text, *cell;
	size_t i = 0;
	for (size_t n; next_cell(&at, text + len, &cell, &n); i++) {
		int field = i < d->n_columns ? d->columns[i] : FIELD__COUNT;
		if (field == FIELD_JOB || field == FIELD_RANK) {
			if (copy_name(field == FIELD_JOB ? row->job : row->rank, cell, n, e) < 0)
				return -1;
		} else if (field != FIELD__COUNT && n > 0 && num_parse_sample(cell, n, &row->values[field], e) < 0) {
			return err_wrap(e, "%s", field_names[field].name);
		}
	}
	if (i != d->n_columns)
		return err_set(e, ERR_INPUT, "%zu cells, the header has %zu columns", i, d->n_columns);
	return row->rank[0] ? 0 : err_set(e, ERR_INPUT, "rank: expected a name or number");
}

static int read_row(struct detect *d, const char *text, size_t len, struct err *e)
{
	struct row row = {.job = "", .rank = ""};
	int64_t time_ms = 0;
	for (size_t i = 0; i < FIELD__COUNT; i++)
		row.values[i] = (double)NAN;
	if (read_cells(d, text, len, &row, e) < 0 || time_of(row.values[FIELD_TIME], &time_ms, e) < 0)
		return -1;
	struct detect_job *job = detect_at(d, row.job, time_ms, e);
	if (!job)
		return -1;
	for (int i = 0; i < DETECT_INPUT__COUNT; i++)
		if (!isnan(row.values[i]) && detect_add(job, (enum detect_input)i, row.rank, row.values[i],
		                                        row.values[limit_of(i)], row.values[FIELD_EPOCH], e) < 0)
			return -1;
	return 0;
}

int detect_read(struct detect *d, const char *text, size_t len, struct err *e)
{
	if (len > DETECT_LINE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the line has more than %d bytes", DETECT_LINE_BYTES_MAX);
	if (d->format == FORMAT_CSV)
		return read_row(d, text, len, e);
	if (d->format == FORMAT_UNKNOWN && !(len > 0 && text[0] == '{')) {
		d->n_columns = 0;
		return read_header(d, text, len, e);
	}
	d->format = FORMAT_JSON;
	cJSON *root = json_read(text, len, e);
	int rc = root ? read_tree(d, root, e) : -1;
	cJSON_Delete(root);
	return rc;
}
