// SPDX-License-Identifier: Apache-2.0
// Prints what `gpuscale advise` found, as a table, YAML and JSON.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json/json_write.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/gpu/advise.h"
#include "cli/term/table.h"

#define MONTH_DAYS    30.0
#define DAY_S         86400.0
#define CELL_BYTES    64
#define COVERED_SHARE 0.95 // of the period: less is reported
#define IDLE_SHARE    0.5  // of the cost: more is reported

double advise_saved_hours(const struct advise_workload *w)
{
	return w->saved_ratio > 0 ? w->saved_ratio * w->gpu_hours : 0;
}

double advise_saved_cost(const struct advise_workload *w)
{
	return w->saved_ratio > 0 ? w->saved_ratio * w->cost : 0;
}

struct advise_totals advise_sum(const struct advice *a)
{
	struct advise_totals t = {.gpu_hours = a->other_gpu_hours, .cost = a->other_cost};
	for (size_t i = 0; i < a->n; i++) {
		const struct advise_workload *w = &a->workloads[i];
		t.gpu_hours += w->gpu_hours;
		t.cost += w->cost;
		t.idle_cost += w->idle_cost;
		t.fake_cost += w->fake_cost;
		t.saved_hours += advise_saved_hours(w);
		t.saved_cost += advise_saved_cost(w);
	}
	t.days = (double)(a->end_s - a->start_s) / DAY_S;
	t.covered_days = (double)a->covered_s / DAY_S;
	t.saved_month = t.covered_days > 0 ? t.saved_cost * MONTH_DAYS / t.covered_days : 0;
	return t;
}

// ---- what to do ----

enum advise_candidate advise_recommended(const struct advise_workload *w)
{
	if (w->best != ADVISE_RAN)
		return w->best;
	const struct advise_outcome *o = &w->outcomes[ADVISE_OBJECTIVE];
	return w->policies[ADVISE_OBJECTIVE] && o->is_known && o->late_percent <= 100 * ADVISE_LATE_RATIO
	               ? ADVISE_OBJECTIVE
	               : ADVISE_LIBRARY;
}

void advise_put_verdict(struct buf *out, const struct advice *a, const struct advise_workload *w)
{
	const struct advise_outcome *ran = &w->outcomes[ADVISE_RAN], *best = &w->outcomes[w->best];
	const char *name = advise_candidate_names[w->best];
	double change = 100 * fabs(w->saved_ratio);
	if (w->fault && w->idle_cost > IDLE_SHARE * w->cost)
		print_to(out, "Not replayed: %s. Its GPUs were idle for %.0f%% of the time: %.2f %s.", w->fault,
		         100 * w->idle_cost / w->cost, w->idle_cost, a->currency);
	else if (w->fault)
		print_to(out, "Not replayed: %s.", w->fault);
	else if (w->best == ADVISE_RAN && ran->late_percent > 100 * ADVISE_LATE_RATIO)
		print_to(out, "%.2f%% of the work was late, and no policy here would have changed that.",
		         ran->late_percent);
	else if (w->best == ADVISE_RAN)
		print_to(out, "Nothing to gain: no policy here is at least %g%% cheaper and keeps %g%% late.",
		         100 * ADVISE_LEAST_SAVING, 100 * ADVISE_LATE_RATIO);
	else if (w->saved_ratio > 0)
		print_to(out,
		         "The %s policy would have saved %.0f%% (%.1f GPU-hours, %.2f %s), with %.2f%% late instead of "
		         "%.2f%%.",
		         name, change, advise_saved_hours(w), advise_saved_cost(w), a->currency, best->late_percent,
		         ran->late_percent);
	else
		print_to(out,
		         "%.2f%% of the work was late; the %s policy would have kept it at %.2f%% for %.0f%% more.",
		         ran->late_percent, name, best->late_percent, change);
}

static void put_advise_command(struct buf *out, const struct advice *a, const struct advise_workload *w)
{
	char kind[CELL_BYTES];
	size_t i = 0;
	for (; w->target.kind[i] && i + 1 < sizeof kind; i++)
		kind[i] = (char)(w->target.kind[i] >= 'A' && w->target.kind[i] <= 'Z' ? w->target.kind[i] + 32
		                                                                      : w->target.kind[i]);
	kind[i] = '\0';
	print_to(out, "gpuscale advise %s/%s -n %s --prometheus %s > %s.yaml", kind, w->target.name, w->namespace_name,
	         a->server, w->target.name);
}

void advise_put_command(struct buf *out, const struct advice *a, const struct advise_workload *w)
{
	print_to(out, "gpuscale plan -f %s.yaml --prometheus %s", w->target.name, a->server);
}

// ---- table ----

static const char *percent(char out[CELL_BYTES], const struct advise_outcome *o)
{
	if (!o->is_known)
		return "-";
	snprintf(out, CELL_BYTES, "%.2f%%", o->late_percent);
	return out;
}

// The cost of a candidate, by its replicas: money where it is known, else GPU-hours.
static const char *candidate_cost(char out[CELL_BYTES], const struct advise_workload *w, enum advise_candidate c)
{
	double ratio = w->outcomes[c].replicas / w->outcomes[ADVISE_RAN].replicas;
	if (!w->outcomes[c].is_known || !w->outcomes[ADVISE_RAN].is_known || !isfinite(ratio))
		return "-";
	snprintf(out, CELL_BYTES, "%.2f%s", (w->cost > 0 ? w->cost : w->gpu_hours) * ratio, w->cost > 0 ? "" : " h");
	return out;
}

static void put_total(const struct advice *a, struct buf *out)
{
	const struct advise_totals t = advise_sum(a);
	char end[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(end, a->end_s * 1000);
	print_to(out,
	         "%.3g days up to %s: %.1f GPU-hours, %.2f %s, of which %.2f idle and %.2f fake load.\n"
	         "Possible saving: %.1f GPU-hours, %.2f %s (%.0f%%), %.2f %s a month.\n",
	         t.days, end, t.gpu_hours, t.cost, a->currency, t.idle_cost, t.fake_cost, t.saved_hours, t.saved_cost,
	         a->currency, t.gpu_hours > 0 ? 100 * t.saved_hours / t.gpu_hours : 0, t.saved_month, a->currency);
	if (t.covered_days < COVERED_SHARE * t.days)
		print_to(out, "The record covers %.3g of these %.3g days.\n", t.covered_days, t.days);
	buf_putc(out, '\n');
}

void advise_report_table(const struct advice *a, struct buf *out)
{
	static const char *const head[] = {"NAMESPACE", "WORKLOAD",      "AUTOSCALER", "ENGINE", "GPU-HOURS", "COST",
	                                   "IDLE",      "MEASURED-LATE", "LATE",       "RULES",  "POLICY",    "LIBRARY",
	                                   "OBJECTIVE", "BEST-LATE",     "SAVES",      NULL};
	struct table t;
	char cell[CELL_BYTES];
	put_total(a, out);
	table_init(&t, head);
	for (size_t i = 0; i < a->n; i++) {
		const struct advise_workload *w = &a->workloads[i];
		table_cell(&t, "%s", w->namespace_name);
		table_cell(&t, "%s", w->target.name);
		table_text(&t, w->autoscaler);
		table_cell(&t, "%s", w->has_engine ? advise_engines[w->engine].name : "-");
		table_cell(&t, "%.1f", w->gpu_hours);
		table_cell(&t, w->has_use ? "%.2f" : "-", w->cost);
		table_cell(&t, w->has_use ? "%.2f" : "-", w->idle_cost);
		table_cell(&t, isnan(w->measured_late_percent) ? "-" : "%.2f%%", w->measured_late_percent);
		table_cell(&t, "%s", percent(cell, &w->outcomes[ADVISE_RAN]));
		table_cell(&t, "%s", candidate_cost(cell, w, ADVISE_PRESENT));
		table_cell(&t, "%s", w->has_engine ? advise_library_name(w->engine) : "-");
		table_cell(&t, "%s", candidate_cost(cell, w, ADVISE_LIBRARY));
		table_cell(&t, "%s", candidate_cost(cell, w, ADVISE_OBJECTIVE));
		table_cell(&t, "%s", w->best == ADVISE_RAN ? "-" : percent(cell, &w->outcomes[w->best]));
		table_cell(&t, w->saved_ratio > 0 ? "%.0f%%" : "-", 100 * w->saved_ratio);
	}
	table_finish(&t, out, 0, true);
	buf_putc(out, '\n');
	for (size_t i = 0; i < a->n; i++) {
		const struct advise_workload *w = &a->workloads[i];
		print_to(out, "%s/%s: ", w->namespace_name, w->target.name);
		advise_put_verdict(out, a, w);
		for (int c = ADVISE_PRESENT; c < ADVISE_CANDIDATE__COUNT; c++)
			if (w->outcomes[c].note)
				print_to(out, " %s: %s.", advise_candidate_names[c], w->outcomes[c].note);
		buf_putc(out, '\n');
	}
	if (a->other_gpu_hours > 0)
		print_to(out, "%.1f GPU-hours (%.2f %s) are of pods of no Deployment or StatefulSet.\n",
		         a->other_gpu_hours, a->other_cost, a->currency);
	if (a->n_without_gpus > 0)
		print_to(out, "%zu autoscaled workloads without GPUs are left out.\n", a->n_without_gpus);
	buf_put(out, buf_str(&a->notes), a->notes.len);
	if (a->n > 0) {
		buf_puts(out, "\nTo see a policy, and then its decisions, which change nothing:\n  ");
		put_advise_command(out, a, &a->workloads[0]);
		buf_puts(out, "\n  ");
		advise_put_command(out, a, &a->workloads[0]);
		buf_putc(out, '\n');
	}
}

// ---- a policy file ----

void advise_report_policy(const struct advice *a, const struct advise_workload *w, struct buf *out)
{
	enum advise_candidate c = advise_recommended(w);
	const char *text = w->policies[c];
	const struct advise_totals t = advise_sum(a);
	char cost[CELL_BYTES], late[CELL_BYTES];
	print_to(out,
	         "# %s %s/%s, the last %.4g days: %.1f GPU-hours, %.2f %s, of which %.2f idle and %.2f fake load\n",
	         w->target.kind, w->namespace_name, w->target.name, t.days, w->gpu_hours, w->cost, a->currency,
	         w->idle_cost, w->fake_cost);
	print_to(out, "# Autoscaler: %s. Engine: %s. A replica does at least %.4g %s a second.\n",
	         w->autoscaler ? w->autoscaler : "none", w->has_engine ? advise_engines[w->engine].name : "unknown",
	         w->capacity, w->has_engine ? advise_engines[w->engine].unit : "");
	if (!isnan(w->measured_late_percent))
		print_to(out, "# Measured: %.2f%% of the requests waited longer than 10 s.\n",
		         w->measured_late_percent);
	for (int i = 0; i < ADVISE_CANDIDATE__COUNT && !w->fault; i++) {
		const struct advise_outcome *o = &w->outcomes[i];
		if (!o->is_known && !o->note)
			continue;
		print_to(out, "#   %-14s", advise_candidate_names[i]);
		if (o->is_known)
			print_to(out, " %8.2f replicas  cost %10s  late %7s  changes %d", o->replicas,
			         candidate_cost(cost, w, (enum advise_candidate)i), percent(late, o), (int)o->changes);
		print_to(out, "%s%s\n", o->note ? "  " : "", o->note ? o->note : "");
	}
	buf_puts(out, "# ");
	advise_put_verdict(out, a, w);
	buf_puts(out, "\n");
	for (const char *line = buf_str(&a->notes), *end; (end = strchr(line, '\n')); line = end + 1)
		print_to(out, "# Note: %.*s\n", (int)(end - line), line);
	if (!text) {
		buf_puts(out, "# No policy: the library has none for the series that exist.\n");
		return;
	}
	print_to(out, "# The policy: %s. Its decisions, which change nothing: ",
	         c == ADVISE_LIBRARY ? advise_library_name(w->engine) : advise_candidate_names[c]);
	advise_put_command(out, a, w);
	buf_puts(out, "\n");
	buf_puts(out, text);
}

// ---- JSON ----

static void put_candidate(struct json_writer *w, const struct advise_workload *workload, enum advise_candidate c)
{
	const struct advise_outcome *o = &workload->outcomes[c];
	double ratio = o->replicas / workload->outcomes[ADVISE_RAN].replicas;
	json_write_format(w, "{name:%s,replicas:%g,latePercent:%g,gpuHours:%g,cost:%g,changes:%d",
	                  advise_candidate_names[c], o->is_known ? o->replicas : NAN,
	                  o->is_known ? o->late_percent : NAN, o->is_known ? ratio * workload->gpu_hours : NAN,
	                  o->is_known && workload->has_use ? ratio * workload->cost : NAN, o->changes);
	json_write_member_text(w, "note", o->note);
	json_write_format(w, "policy:%s}", workload->policies[c]);
}

static void put_text(struct json_writer *w, const char *key, const struct buf *text)
{
	json_write_member_text(w, key, buf_str(text));
}

void advise_report_json(const struct advice *a, struct buf *out)
{
	const struct advise_totals t = advise_sum(a);
	struct json_writer w;
	struct buf verdict;
	buf_init(&verdict, TABLE_BYTES_MAX);
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_time(&w, "from", a->start_s * 1000);
	json_write_member_time(&w, "to", a->end_s * 1000);
	json_write_format(&w, "currency:%s,gpuHours:%g,cost:%g,idleCost:%g,fakeLoadCost:%g", a->currency, t.gpu_hours,
	                  t.cost, t.idle_cost, t.fake_cost);
	json_write_format(&w, "savedGPUHours:%g,savedCost:%g,savedCostPerMonth:%g", t.saved_hours, t.saved_cost,
	                  t.saved_month);
	json_write_format(&w, "otherGPUHours:%g,withoutGPUs:%zu,workloads:[", a->other_gpu_hours, a->n_without_gpus);
	for (size_t i = 0; i < a->n; i++) {
		const struct advise_workload *x = &a->workloads[i];
		json_write_format(&w, "{namespace:%s,kind:%s,name:%s,autoscaler:%s,engine:%s,library:%s",
		                  x->namespace_name, x->target.kind, x->target.name, x->autoscaler,
		                  x->has_engine ? advise_engines[x->engine].name : NULL,
		                  x->has_engine ? advise_library_name(x->engine) : NULL);
		json_write_format(&w, "capacity:%g,gpuHours:%g,cost:%g,idleCost:%g,fakeLoadCost:%g", x->capacity,
		                  x->gpu_hours, x->has_use ? x->cost : NAN, x->has_use ? x->idle_cost : NAN,
		                  x->has_use ? x->fake_cost : NAN);
		json_write_format(&w, "measuredLatePercent:%g,best:%s,savedRatio:%g,savedGPUHours:%g,savedCost:%g",
		                  x->measured_late_percent, advise_candidate_names[x->best], x->saved_ratio,
		                  advise_saved_hours(x), advise_saved_cost(x));
		buf_reset(&verdict);
		advise_put_verdict(&verdict, a, x);
		put_text(&w, "verdict", &verdict);
		json_write_member_array(&w, "candidates");
		for (int c = 0; c < ADVISE_CANDIDATE__COUNT; c++)
			put_candidate(&w, x, (enum advise_candidate)c);
		json_write_array_end(&w);
		buf_reset(&verdict);
		put_advise_command(&verdict, a, x);
		put_text(&w, "command", &verdict);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	put_text(&w, "notes", &a->notes);
	json_write_object_end(&w);
	buf_putc(out, '\n');
	buf_done(&verdict);
}
