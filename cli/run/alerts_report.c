// SPDX-License-Identifier: Apache-2.0
#include "cli/run/alerts_report.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/term/table.h"
#include "replay/alert_replay.h"
#include "replay/alert_rules.h"

static void put_table(struct table *t, struct buf *out)
{
	table_print(t, out, 0, true);
	out->failed |= t->cells.failed;
	table_done(t);
}

// ---- tables ----

static void cell_seconds(struct table *t, double s)
{
	char text[NUM_TEXT_BYTES];
	if (isnan(s)) {
		table_cell(t, "-");
		return;
	}
	num_format_duration_ms(text, llround(s * 1000));
	table_cell(t, "%s", text);
}

// The time since the start of the recording.
static void cell_time(struct table *t, const struct alert_replay *r, int64_t ms, const char *otherwise)
{
	char text[NUM_TEXT_BYTES];
	if (ms == ALERT_NEVER) {
		table_cell(t, "%s", otherwise);
		return;
	}
	num_format_duration_ms(text, ms - r->start_ms);
	table_cell(t, "+%s", text);
}

static bool is_idle(const struct alert_summary *s)
{
	return s->n_pending == 0 && s->n_firing == 0 && s->n_breaches == 0;
}

void alerts_report_table(const struct alerts_report *r, struct buf *out)
{
	static const char *const head[] = {"ALERT", "SEVERITY", "PENDING",     "FIRING",     "FOR",
	                                   "FALSE", "FOUND",    "MEAN-DETECT", "MAX-DETECT", NULL};
	struct table table;
	char time[NUM_TEXT_BYTES], step[NUM_TEXT_BYTES];
	size_t n_idle = 0;
	num_format_duration_ms(time, r->replay->end_ms - r->replay->start_ms);
	num_format_duration_ms(step, r->replay->interval_ms);
	print_to(out, "%s of recording, rules evaluated every %s\n\n", time, step);
	table_init(&table, head);
	for (size_t i = 0; i < r->rules->n_alerts; i++) {
		const struct alert_rule *rule = &r->rules->alerts[i];
		struct alert_summary s;
		alert_replay_summarize(r->replay, rule->name, &s);
		if (is_idle(&s)) {
			n_idle++;
			continue;
		}
		table_cell(&table, "%s", rule->name);
		table_cell(&table, "%s", rule->severity[0] ? rule->severity : "-");
		table_cell(&table, "%zu", s.n_pending);
		table_cell(&table, "%zu", s.n_firing);
		cell_seconds(&table, (double)s.firing_ms / 1000);
		if (s.n_breaches > 0 || s.n_false > 0) { // marked
			table_cell(&table, "%zu", s.n_false);
			table_cell(&table, "%zu/%zu", s.n_breaches - s.n_missed, s.n_breaches);
		} else {
			table_cell(&table, "-");
			table_cell(&table, "-");
		}
		cell_seconds(&table, s.mean_detect_s);
		cell_seconds(&table, s.max_detect_s);
	}
	put_table(&table, out);
	if (n_idle > 0)
		print_to(out, "\n%zu other alert%s never active\n", n_idle, n_idle == 1 ? " was" : "s were");
}

static const char *verdict_of(const struct alert_interval *x)
{
	if (!x->is_judged || x->firing_ms == ALERT_NEVER)
		return "-";
	return x->is_genuine ? "genuine" : "false";
}

void alerts_report_wide(const struct alerts_report *r, struct buf *out)
{
	static const char *const head[] = {"ALERT", "PENDING", "FIRING", "RESOLVED", "VERDICT", "LABELS", NULL};
	const struct alert_replay *x = r->replay;
	struct table table;
	alerts_report_table(r, out);
	buf_puts(out, "\nIntervals\n");
	table_init(&table, head);
	for (size_t i = 0; i < x->n_intervals; i++) {
		const struct alert_interval *one = &x->intervals[i];
		table_cell(&table, "%s", one->alert);
		cell_time(&table, x, one->pending_ms, "-");
		cell_time(&table, x, one->firing_ms, "-");
		cell_time(&table, x, one->resolved_ms, "active");
		table_cell(&table, "%s", verdict_of(one));
		table_cell(&table, "%s", one->labels[0] ? one->labels : "-");
	}
	for (size_t i = 0; i < x->n_breaches; i++) {
		const struct alert_breach *b = &x->breaches[i];
		if (b->detected_ms != ALERT_NEVER)
			continue;
		table_cell(&table, "%s", b->alert);
		table_cell(&table, "-");
		cell_time(&table, x, b->onset_ms, "-");
		cell_time(&table, x, b->end_ms, "-");
		table_cell(&table, "missed");
		table_cell(&table, "%s", b->mark);
	}
	put_table(&table, out);
}

// ---- JSON ----

static void put_time(struct json_writer *w, const char *key, int64_t ms)
{
	if (ms == ALERT_NEVER)
		json_write_member_null(w, key);
	else
		json_write_member_time(w, key, ms);
}

static void put_f64(struct json_writer *w, const char *key, double v)
{
	json_write_key(w, key);
	json_write_f64(w, v);
}

static void put_interval(struct json_writer *w, const struct alert_interval *x)
{
	json_write_object_begin(w);
	json_write_member_str(w, "labels", x->labels);
	put_time(w, "pending", x->pending_ms);
	put_time(w, "firing", x->firing_ms);
	put_time(w, "resolved", x->resolved_ms);
	if (x->is_judged && x->firing_ms != ALERT_NEVER)
		json_write_member_bool(w, "genuine", x->is_genuine);
	json_write_object_end(w);
}

static void put_breach(struct json_writer *w, const struct alert_breach *b)
{
	json_write_object_begin(w);
	json_write_member_str(w, "mark", b->mark);
	put_time(w, "onset", b->onset_ms);
	put_time(w, "end", b->end_ms);
	put_time(w, "detected", b->detected_ms);
	json_write_object_end(w);
}

static void put_summary(struct json_writer *w, const struct alert_summary *s)
{
	json_write_member_i64(w, "pendingCount", (int64_t)s->n_pending);
	json_write_member_i64(w, "firingCount", (int64_t)s->n_firing);
	put_f64(w, "firingSeconds", (double)s->firing_ms / 1000);
	json_write_member_i64(w, "falseCount", (int64_t)s->n_false);
	json_write_member_i64(w, "breachCount", (int64_t)s->n_breaches);
	json_write_member_i64(w, "missedCount", (int64_t)s->n_missed);
	put_f64(w, "meanDetectSeconds", s->mean_detect_s);
	put_f64(w, "maxDetectSeconds", s->max_detect_s);
}

static void put_alert(struct json_writer *w, const struct alert_replay *r, const struct alert_rule *rule)
{
	struct alert_summary s;
	alert_replay_summarize(r, rule->name, &s);
	json_write_object_begin(w);
	json_write_member_str(w, "alert", rule->name);
	json_write_member_str(w, "severity", rule->severity);
	put_summary(w, &s);
	json_write_key(w, "intervals");
	json_write_array_begin(w);
	for (size_t i = 0; i < r->n_intervals; i++)
		if (strcmp(r->intervals[i].alert, rule->name) == 0)
			put_interval(w, &r->intervals[i]);
	json_write_array_end(w);
	json_write_key(w, "breaches");
	json_write_array_begin(w);
	for (size_t i = 0; i < r->n_breaches; i++)
		if (strcmp(r->breaches[i].alert, rule->name) == 0)
			put_breach(w, &r->breaches[i]);
	json_write_array_end(w);
	json_write_object_end(w);
}

void alerts_report_json(const struct alerts_report *r, struct buf *out)
{
	struct json_writer w;
	struct alert_summary all;
	json_write_init(&w, out, 2);
	alert_replay_summarize(r->replay, NULL, &all);
	json_write_object_begin(&w);
	json_write_member_str(&w, "apiVersion", "gpuscale.dev/v1alpha1");
	json_write_member_str(&w, "kind", "AlertReplay");
	put_time(&w, "start", r->replay->start_ms);
	put_time(&w, "end", r->replay->end_ms);
	put_f64(&w, "intervalSeconds", (double)r->replay->interval_ms / 1000);
	put_summary(&w, &all);
	json_write_key(&w, "alerts");
	json_write_array_begin(&w);
	for (size_t i = 0; i < r->rules->n_alerts; i++)
		put_alert(&w, r->replay, &r->rules->alerts[i]);
	json_write_array_end(&w);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}
