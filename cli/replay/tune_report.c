// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/tune_report.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/replay/backtest_report.h"
#include "cli/term/table.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/tune.h"

#define FRONT_SHOWN 12 // points of the front in the narrow table

static double gpu_hours(const struct tune_report *r, const struct tune_score *s)
{
	return s->replica_s / 3600 * r->gpus_per_replica;
}

// ---- table ----

static void put_title(const struct tune_report *r, struct buf *out)
{
	const struct backtest *b = r->scene;
	char time[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(time, b->recording->time_ms[0]);
	print_to(out, "Closed loop (simulated): %s, ", time);
	backtest_report_duration(out, b->recording->time_ms[b->recording->n_rows - 1] - b->recording->time_ms[0]);
	print_to(out, ", mean demand %.2f, objective: at most %g%% wait longer than ", b->demand.mean,
	         100 * b->config.late_ratio);
	backtest_report_duration(out, llround(b->config.wait_s * 1000));
	print_to(out, "\n%zu candidates vary %zu numbers; in sample is the first half, out of sample the second\n\n",
	         r->tune->n_played, r->space->n);
}

static void put_scores(const struct tune_report *r, struct table *t, const struct tune_score *in,
                       const struct tune_score *out)
{
	table_cell(t, "%.2f", gpu_hours(r, out));
	if (isnan(r->price))
		table_cell(t, "-");
	else
		table_cell(t, "%.2f", gpu_hours(r, out) * r->price);
	table_cell(t, "%.2f%%", tune_late_percent(out));
	table_cell(t, "%d", out->changes);
	table_cell(t, "%.2f", gpu_hours(r, in));
	table_cell(t, "%.2f%%", tune_late_percent(in));
}

static const char *point_kind(const struct tune *t, size_t i)
{
	return i == t->chosen && i != t->present ? "chosen" : i == t->present ? "present" : "front";
}

static void put_points(const struct tune_report *r, bool wide, struct table *t)
{
	const struct tune *u = r->tune;
	size_t n_front = 0, shown = 0;
	for (size_t i = 0; i < u->n_points; i++)
		n_front += u->points[i].is_front;
	for (size_t i = 0, k = 0; i < u->n_points; i++) {
		const struct tune_point *p = &u->points[i];
		bool is_due = p->is_front && (wide || k * FRONT_SHOWN >= shown * n_front);
		k += p->is_front;
		shown += is_due;
		if (!is_due && i != u->present && i != u->chosen)
			continue;
		if (p->index == 0)
			table_cell(t, "%s", r->space->policy->name);
		else
			table_cell(t, "candidate %zu", p->index);
		table_cell(t, "%s", point_kind(u, i));
		put_scores(r, t, &p->in, &p->out);
	}
}

static void put_peers(const struct tune_report *r, bool wide, struct table *t)
{
	for (size_t i = 0; i < r->tune->n_peers; i++) {
		const struct tune_peer *p = &r->tune->peers[i];
		if (!wide && !p->is_best)
			continue;
		table_cell(t, "%s", p->name);
		table_cell(t, "peer");
		put_scores(r, t, &p->in, &p->out);
	}
}

static void put_folds(const struct tune_report *r, struct buf *out)
{
	static const char *const head[] = {"PART", "IN-SAMPLE-GPU-HOURS", "LATE", "GPU-HOURS", "LATE", "OF-PRESENT",
	                                   "LATE", "GAIN-IN-SAMPLE",      "GAIN", NULL};
	struct table t;
	table_init(&t, head);
	for (size_t k = 0; k < TUNE_FOLDS; k++) {
		const struct tune_fold *f = &r->tune->folds[k];
		table_cell(&t, "%zu of %d", TUNE_IN_PARTS + k + 1, TUNE_PARTS);
		table_cell(&t, "%.2f", gpu_hours(r, &f->in));
		table_cell(&t, "%.2f%%", tune_late_percent(&f->in));
		table_cell(&t, "%.2f", gpu_hours(r, &f->out));
		table_cell(&t, "%.2f%%", tune_late_percent(&f->out));
		table_cell(&t, "%.2f", gpu_hours(r, &f->present_out));
		table_cell(&t, "%.2f%%", tune_late_percent(&f->present_out));
		table_cell(&t, "%.1f%%", 100 * f->gain_in);
		table_cell(&t, "%.1f%%", 100 * f->gain_out);
	}
	buf_puts(out, "\nWalk-forward: each part with the choice that was best on all parts before it\n\n");
	table_finish(&t, out, 0, true);
}

static void put_share(struct buf *out, const struct tune_report *r, const struct tune_score *s)
{
	print_to(out, "%.2f GPU-hours, %.2f%% late", gpu_hours(r, s), tune_late_percent(s));
}

static void put_too_short(const struct tune *t, struct buf *out)
{
	print_to(out, "Nothing recommended: the recording is too short. A part, one of %d, has ", TUNE_PARTS);
	backtest_report_duration(out, t->part_ms);
	buf_puts(out, " of data and needs ");
	backtest_report_duration(out, t->needed_ms);
	print_to(out, ", %d times the start-up and the longest window of the policy: record at least ", TUNE_SPANS);
	backtest_report_duration(out, TUNE_PARTS * t->needed_ms);
	buf_putc(out, '\n');
}

static void put_too_late(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	double limit = 100 * r->scene->config.late_ratio, late = tune_late_percent(&t->points[t->chosen].out);
	buf_puts(out, "Nothing recommended: ");
	if (!t->keeps_objective)
		print_to(out, "the chosen point is %.2f%% late out of sample", late);
	else if (t->late_stressed > limit)
		print_to(out,
		         "with a tenth more demand and replicas that take a quarter longer to start, the chosen "
		         "point is %.2f%% late",
		         t->late_stressed);
	else
		print_to(out, "within two standard errors, the chosen point may be %.2f%% late", t->late_bound);
	print_to(out, ", more than the %g%% of the objective\n", limit);
}

static void put_dominated(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	print_to(out, "Nothing recommended: dominated by %s, which costs no more out of sample and is no later\n",
	         t->dominated_by);
	if (!t->has_library)
		return;
	buf_puts(out, t->library_does ? "No candidate matches it. No peer dominates the library policy llm-demand: "
	                              : "llm-demand from the policy library does not meet the objective either: ");
	put_share(out, r, &t->library_out);
	buf_puts(out, t->library_does ? " (policies/library/llm-demand.yaml; it needs the signals demand and backlog)\n"
	                              : "\n");
}

static void put_broken_tests(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	const char *path = tune_tests_path(r->tests);
	print_to(out, "Candidates that were better in sample and fail a test of %s: %zu. The best one fails:\n", path,
	         t->n_failing);
	for (size_t i = 0; i < t->broken.n; i++) {
		print_to(out, "  %s:%d: %s\n", path, t->broken.tests[i].line, t->broken.tests[i].name);
	}
}

static void put_verdict(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	double in = 100 * t->gain_in, gain = 100 * fmin(t->gain_out, t->gain_chosen), gap = 100 * t->gap;
	buf_putc(out, '\n');
	switch (t->verdict) {
	case TUNE_RECOMMENDED:
		print_to(out,
		         "Recommended: gains %.1f%% out of sample (%.1f%% in sample, which differs by at most %.1f "
		         "points)\n",
		         gain, in, gap);
		break;
	case TUNE_NONE_BETTER:
		buf_puts(out, "Nothing recommended: no candidate is better than the present policy\n");
		break;
	case TUNE_TOO_SMALL:
		print_to(out, "Nothing recommended: a gain of %.1f%% is not worth a change\n", gain);
		break;
	case TUNE_UNCERTAIN:
		print_to(out,
		         "Nothing recommended: the gain of %.1f%% is not larger than the gap of %.1f points between "
		         "in sample and out of sample\n",
		         gain, gap);
		break;
	case TUNE_TOO_SHORT:
		put_too_short(t, out);
		break;
	case TUNE_TOO_LATE:
		put_too_late(r, out);
		break;
	case TUNE_DOMINATED:
		put_dominated(r, out);
		break;
	case TUNE_BREAKS_TESTS:
		buf_puts(out,
		         "Nothing recommended: no better candidate passes the tests that the present policy passes\n");
		break;
	case TUNE_VERDICT__COUNT:
		break;
	}
	if (t->broken.n > 0)
		put_broken_tests(r, out);
}

static void put_changes(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	if (t->chosen == t->present)
		return;
	buf_puts(out, t->verdict == TUNE_RECOMMENDED ? "\n" : "\nThe chosen point, not recommended:\n");
	for (size_t i = 0; i < r->space->n; i++) {
		const struct tune_number *n = &r->space->numbers[i];
		char from[TUNE_TEXT_BYTES], to[TUNE_TEXT_BYTES];
		double value = t->points[t->chosen].values[i];
		if (value == n->present)
			continue;
		tune_number_text(n, n->present, from);
		tune_number_text(n, value, to);
		print_to(out, "%s: %s -> %s\n", n->path, from, to);
	}
}

void tune_report_table(const struct tune_report *r, bool wide, struct buf *out)
{
	static const char *const head[] = {
	        "NAME", "KIND", "GPU-HOURS", "COST", "LATE", "CHANGES", "IN-SAMPLE-GPU-HOURS", "IN-SAMPLE-LATE", NULL};
	struct table t;
	put_title(r, out);
	table_init(&t, head);
	put_points(r, wide, &t);
	put_peers(r, wide, &t);
	table_finish(&t, out, 0, true);
	put_folds(r, out);
	put_verdict(r, out);
	put_changes(r, out);
}

// ---- JSON ----

static void put_json_score(const struct tune_report *r, struct json_writer *w, const char *key,
                           const struct tune_score *s)
{
	json_write_member_object(w, key);
	json_write_member_f64(w, "gpuHours", gpu_hours(r, s));
	json_write_member_f64(w, "cost", gpu_hours(r, s) * r->price);
	json_write_member_f64(w, "latePercent", tune_late_percent(s));
	json_write_member_i64(w, "directionChanges", s->changes);
	json_write_object_end(w);
}

static void put_json_numbers(const struct tune_report *r, struct json_writer *w, const struct tune_point *p)
{
	json_write_member_array(w, "changes");
	for (size_t i = 0; i < r->space->n; i++) {
		const struct tune_number *n = &r->space->numbers[i];
		char text[TUNE_TEXT_BYTES];
		if (p->values[i] == n->present)
			continue;
		json_write_object_begin(w);
		json_write_member_str(w, "path", n->path);
		tune_number_text(n, n->present, text);
		json_write_member_str(w, "from", text);
		tune_number_text(n, p->values[i], text);
		json_write_member_str(w, "to", text);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_json_points(const struct tune_report *r, struct json_writer *w)
{
	const struct tune *t = r->tune;
	json_write_member_array(w, "points");
	for (size_t i = 0; i < t->n_points; i++) {
		json_write_object_begin(w);
		json_write_member_i64(w, "candidate", (int64_t)t->points[i].index);
		json_write_member_bool(w, "present", i == t->present);
		json_write_member_bool(w, "chosen", i == t->chosen);
		json_write_member_bool(w, "front", t->points[i].is_front);
		put_json_score(r, w, "outOfSample", &t->points[i].out);
		put_json_score(r, w, "inSample", &t->points[i].in);
		put_json_numbers(r, w, &t->points[i]);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_json_peers(const struct tune_report *r, struct json_writer *w)
{
	json_write_member_array(w, "peers");
	for (size_t i = 0; i < r->tune->n_peers; i++) {
		json_write_object_begin(w);
		json_write_member_str(w, "name", r->tune->peers[i].name);
		json_write_member_bool(w, "best", r->tune->peers[i].is_best);
		put_json_score(r, w, "outOfSample", &r->tune->peers[i].out);
		put_json_score(r, w, "inSample", &r->tune->peers[i].in);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_json_folds(const struct tune_report *r, struct json_writer *w)
{
	json_write_member_array(w, "folds");
	for (size_t k = 0; k < TUNE_FOLDS; k++) {
		const struct tune_fold *f = &r->tune->folds[k];
		json_write_object_begin(w);
		put_json_score(r, w, "inSample", &f->in);
		put_json_score(r, w, "outOfSample", &f->out);
		put_json_score(r, w, "presentInSample", &f->present_in);
		put_json_score(r, w, "presentOutOfSample", &f->present_out);
		json_write_member_f64(w, "gainInSample", f->gain_in);
		json_write_member_f64(w, "gainOutOfSample", f->gain_out);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_json_library(const struct tune_report *r, struct json_writer *w)
{
	const struct tune *t = r->tune;
	if (!t->has_library) {
		json_write_member_null(w, "library");
		return;
	}
	json_write_member_object(w, "library");
	json_write_member_str(w, "name", "llm-demand");
	json_write_member_bool(w, "notDominated", t->library_does);
	put_json_score(r, w, "outOfSample", &t->library_out);
	put_json_score(r, w, "inSample", &t->library_in);
	json_write_object_end(w);
}

static void put_json_tests(const struct tune_report *r, struct json_writer *w)
{
	const struct tune *t = r->tune;
	if (!r->tests) {
		json_write_member_null(w, "tests");
		return;
	}
	json_write_member_object(w, "tests");
	json_write_member_str(w, "file", tune_tests_path(r->tests));
	json_write_member_i64(w, "count", (int64_t)tune_tests_count(r->tests));
	json_write_member_i64(w, "failingCandidates", (int64_t)t->n_failing);
	json_write_member_array(w, "broken");
	for (size_t i = 0; i < t->broken.n; i++) {
		json_write_object_begin(w);
		json_write_member_str(w, "name", t->broken.tests[i].name);
		json_write_member_i64(w, "line", t->broken.tests[i].line);
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
}

void tune_report_json(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	const struct backtest *b = r->scene;
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_str(&w, "mode", "closed-loop");
	json_write_member_str(&w, "file", b->file);
	json_write_member_str(&w, "namespace", r->space->policy->namespace_name);
	json_write_member_str(&w, "policy", r->space->policy->name);
	json_write_member_time(&w, "from", b->recording->time_ms[0]);
	json_write_member_time(&w, "to", b->recording->time_ms[b->recording->n_rows - 1]);
	json_write_member_f64(&w, "meanDemand", b->demand.mean);
	json_write_member_object(&w, "objective");
	json_write_member_f64(&w, "latePercent", 100 * b->config.late_ratio);
	json_write_member_f64(&w, "waitSeconds", b->config.wait_s);
	json_write_object_end(&w);
	json_write_member_i64(&w, "candidates", (int64_t)t->n_played);
	json_write_member_i64(&w, "numbers", (int64_t)r->space->n);
	json_write_member_str(&w, "verdict", tune_verdict_name(t->verdict));
	json_write_member_bool(&w, "keepsObjective", t->keeps_objective);
	json_write_member_str(&w, "dominatedBy", t->dominated_by);
	json_write_member_f64(&w, "lateBoundPercent", t->late_bound);
	json_write_member_f64(&w, "lateStressedPercent", t->late_stressed);
	put_json_library(r, &w);
	put_json_tests(r, &w);
	json_write_member_f64(&w, "partSeconds", (double)t->part_ms / 1000);
	json_write_member_f64(&w, "neededPartSeconds", (double)t->needed_ms / 1000);
	json_write_member_f64(&w, "gainInSample", t->gain_in);
	json_write_member_f64(&w, "gainOutOfSample", t->gain_out);
	json_write_member_f64(&w, "gainOfChosen", t->gain_chosen);
	json_write_member_f64(&w, "gap", t->gap);
	put_json_numbers(r, &w, &t->points[t->chosen]);
	put_json_folds(r, &w);
	put_json_points(r, &w);
	put_json_peers(r, &w);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}
