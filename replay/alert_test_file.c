// SPDX-License-Identifier: Apache-2.0
// Writes a recording and rules as a unit test of promtool.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "replay/alert_replay.h"
#include "replay/alert_rules.h"
#include "replay/recording.h"

// The value of the last expectation, which fails: the output is whole when it is there (alert_history.c).
#define LAST_EXPECTATION "vector(42)"

static void put_quoted(struct buf *out, const char *text)
{
	buf_putc(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_putc(out, '\'');
		buf_putc(out, *text);
	}
	buf_putc(out, '\'');
}

static void put_names(struct buf *out, const char *key, const char *const *names, size_t n)
{
	buf_printf(out, "%s:\n", key);
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, "- ");
		put_quoted(out, names[i]);
		buf_putc(out, '\n');
	}
}

// Runs of equal values are written as one word.
struct values {
	struct buf *out;
	double value; // NaN: no sample
	int64_t n;
	bool is_open;
};

static void flush(struct values *v)
{
	char text[NUM_TEXT_BYTES];
	if (v->n == 0)
		return;
	if (isnan(v->value)) {
		buf_printf(v->out, " _x%" PRId64, v->n);
	} else {
		num_format_f64(text, v->value);
		buf_printf(v->out, v->n > 1 ? " %s+0x%" PRId64 : " %s", text, v->n - 1);
	}
	v->n = 0;
}

static void put_value(struct values *v, double value, int64_t n)
{
	if (n <= 0)
		return;
	bool equal = isnan(value) ? isnan(v->value) : value == v->value;
	if (v->n > 0 && !equal)
		flush(v);
	v->value = value;
	v->n += n;
}

// As Prometheus does when a scrape has the series no longer.
static void put_stale(struct values *v)
{
	flush(v);
	buf_puts(v->out, " stale");
}

static void put_series(struct buf *out, const struct recording *r, int column)
{
	struct values v = {.out = out};
	int64_t next = 0; // the step to be written
	bool is_live = false;
	buf_puts(out, "  - series: ");
	put_quoted(out, r->names[column]);
	buf_puts(out, "\n    values: '");
	for (size_t row = 0; row < r->n_rows; row++) {
		double value = recording_value(r, row, column);
		int64_t step = (r->time_ms[row] - r->time_ms[0] + r->step_ms / 2) / r->step_ms;
		if (isnan(value) || step < next)
			continue;
		if (is_live && (step - next) * r->step_ms > ALERT_STALE_MS) {
			put_stale(&v);
			next++;
		}
		put_value(&v, NAN, step - next);
		put_value(&v, value, 1);
		next = step + 1;
		is_live = true;
	}
	flush(&v);
	int64_t last = (r->time_ms[r->n_rows - 1] - r->time_ms[0]) / r->step_ms;
	if (is_live && (last - next) * r->step_ms > ALERT_STALE_MS)
		put_stale(&v);
	buf_puts(out, is_live ? "'\n" : "_'\n");
}

static void put_expectations(struct buf *out, int64_t interval_ms, int64_t n)
{
	char at[NUM_TEXT_BYTES] = "0s", step[NUM_TEXT_BYTES];
	num_format_duration_ms(step, interval_ms);
	buf_puts(out, "  promql_expr_test:\n");
	for (int64_t i = 0; i < n; i++) {
		num_format_duration_ms(at, i * interval_ms);
		if (i == 0)
			buf_printf(
			        out,
			        "  - {expr: &q 'ALERTS unless ALERTS offset %s or -(ALERTS offset %s unless ALERTS)'",
			        step, step);
		else
			buf_puts(out, "  - {expr: *q");
		buf_printf(out, ", eval_time: %s}\n", at);
	}
	buf_printf(out, "  - {expr: '" LAST_EXPECTATION "', eval_time: %s}\n", at);
}

int alert_replay_write(struct alert_replay *r, const struct recording *recording, const struct alert_rules *rules,
                       int64_t interval_ms, struct buf *out, struct err *e)
{
	char text[NUM_TEXT_BYTES];
	r->start_ms = recording->time_ms[0];
	r->end_ms = recording->time_ms[recording->n_rows - 1];
	r->interval_ms = interval_ms;
	int64_t n = (r->end_ms - r->start_ms) / interval_ms + 1;
	if (n > ALERT_STEPS_MAX)
		return err_set(e, ERR_LIMIT,
		               "%" PRId64
		               " evaluations, the ceiling is %d: use a longer --interval or a shorter recording",
		               n, ALERT_STEPS_MAX);
	put_names(out, "rule_files", rules->files, rules->n_files);
	put_names(out, "group_eval_order", rules->groups, rules->n_groups);
	num_format_duration_ms(text, interval_ms);
	buf_printf(out, "evaluation_interval: %s\ntests:\n", text);
	num_format_duration_ms(text, recording->step_ms);
	buf_printf(out, "- interval: %s\n  input_series:\n", text);
	for (size_t i = 0; i < recording->n_columns; i++)
		if (!alert_replay_is_mark(recording->names[i]))
			put_series(out, recording, (int)i);
	put_expectations(out, interval_ms, n);
	return out->failed ? err_set(e, ERR_LIMIT, "the test file for promtool exceeds %zu bytes", out->max) : 0;
}
