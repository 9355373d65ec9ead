// SPDX-License-Identifier: Apache-2.0
#include "insight/detect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "insight/leak.h"
#include "insight/straggler.h"

#define LOCKSTEP_RATIO 1.01 // step times this close on all ranks are the time of the slowest one
#define LOCKSTEP_SHARE 0.9  // least share of such times
#define NO_INPUT       DETECT_INPUT__COUNT

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

struct detect {
	struct buf *out;
	struct detect_job **jobs;
	size_t n_jobs, n_series;
};

static const char *const input_names[] = {"step", "compute", "clock", "power", "activity", "memory", "workingSet"};
_Static_assert(sizeof input_names / sizeof input_names[0] == DETECT_INPUT__COUNT, "one name per input");

const char *detect_input_name(enum detect_input input)
{
	return input_names[input];
}

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
	json_write_object_begin(w);
	json_write_member_f64(w, "time", (double)time_ms / 1000);
	json_write_member_str(w, "job", j->name);
	json_write_member_str(w, "event", event);
	json_write_member_str(w, "rank", rank);
	json_write_member_str(w, "input", input_names[input]);
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
	event_begin(&w, in->job, event->time_ms, rank_event_name(event->kind), event->rank, in->input);
	json_write_member_f64(&w, "ratio", rounded(event->ratio));
	json_write_member_f64(&w, "since", (double)event->since_ms / 1000);
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
		json_write_member_f64(&w, "bytesPerHour", round(r->bytes_per_hour));
		json_write_member_f64(&w, "observedHours", rounded(r->observed_hours));
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
	struct detect_job **jobs =
	        (struct detect_job **)realloc((void *)d->jobs, (d->n_jobs + 1) * sizeof(struct detect_job *));
	if (jobs)
		d->jobs = jobs;
	struct detect_job *j = calloc(1, sizeof *j);
	char *copy = strdup(name);
	if (!jobs || !j || !copy) {
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

int detect_add(struct detect_job *job, enum detect_input input, const char *rank, double value, struct err *e)
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

int detect_add_memory(struct detect_job *job, enum detect_input input, const char *rank, double bytes,
                      double limit_bytes, int64_t epoch, struct err *e)
{
	struct leak_report report = {0};
	struct series *s = series_of(job, input, rank, e);
	if (!s)
		return -1;
	enum leak_change change = leak_add(&s->leak, job->time_ms, bytes, limit_bytes, epoch, &report);
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
