// SPDX-License-Identifier: Apache-2.0
// Prints what `gpuscale advise` found, as a table, YAML, JSON and a page.
#include <strings.h>

#include "base/html_page.h"
#include "cli/gpu/advise.h"
#include "cli/term/cli.h"

#define MONTH_DAYS     30.0
#define DAY_S          86400.0
#define CELL_BYTES     64
#define COVERED_SHARE  0.95 // of the period: less is reported
#define IDLE_SHARE     0.5  // of the cost: more is reported
#define PAGE_BYTES_MAX ((size_t)48 * 1024 * 1024)
#define TEXT_BYTES     ((size_t)64 * 1024)

double advise_saved_hours(const struct advise_workload *w)
{
	return w->saved_ratio > 0 ? w->saved_ratio * w->gpu_hours : 0;
}

double advise_saved_cost(const struct advise_workload *w)
{
	return w->saved_ratio > 0 ? w->saved_ratio * w->cost : 0;
}

struct advise_totals {
	double days, covered_days, gpu_hours, cost, idle_cost, fake_cost;
	double saved_hours, saved_cost, saved_month; // month: 30 days, by the time that is covered
};
static struct advise_totals sum(const struct advice *a)
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

// Returns the policy to write for a workload: the best one, or else the objective where it keeps its promise.
static enum advise_candidate recommended(const struct advise_workload *w)
{
	if (w->best != ADVISE_RAN)
		return w->best;
	const struct advise_outcome *o = &w->outcomes[ADVISE_OBJECTIVE];
	return w->policies[ADVISE_OBJECTIVE] && o->is_known && o->late_percent <= 100 * ADVISE_LATE_RATIO
	               ? ADVISE_OBJECTIVE
	               : ADVISE_LIBRARY;
}

static void put_verdict(struct buf *out, const struct advice *a, const struct advise_workload *w)
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

static void put_plan_command(struct buf *out, const struct advice *a, const struct advise_workload *w)
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
	const struct advise_totals t = sum(a);
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
		put_verdict(out, a, w);
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
		put_plan_command(out, a, &a->workloads[0]);
		buf_putc(out, '\n');
	}
}

// ---- a policy file ----

void advise_report_policy(const struct advice *a, const struct advise_workload *w, struct buf *out)
{
	enum advise_candidate c = recommended(w);
	const char *text = w->policies[c];
	const struct advise_totals t = sum(a);
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
	put_verdict(out, a, w);
	buf_puts(out, "\n");
	for (const char *line = buf_str(&a->notes), *end; (end = strchr(line, '\n')); line = end + 1)
		print_to(out, "# Note: %.*s\n", (int)(end - line), line);
	if (!text) {
		buf_puts(out, "# No policy: the library has none for the series that exist.\n");
		return;
	}
	print_to(out, "# The policy: %s. Its decisions, which change nothing: ",
	         c == ADVISE_LIBRARY ? advise_library_name(w->engine) : advise_candidate_names[c]);
	put_plan_command(out, a, w);
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
	const struct advise_totals t = sum(a);
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
		put_verdict(&verdict, a, x);
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

// ---- the page ----

// Relative to the folder that make runs in; scripts/embedded_pages.mk has the dependency.
__asm__(".section .rodata\n"
        ".global advise_page_begin\n"
        "advise_page_begin:\n"
        ".incbin \"cli/gpu/advise_page.html\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char advise_page_begin[];

// Appends what `put` writes, as text.
static void put_sentence(struct buf *out, const struct advice *a, const struct advise_workload *w,
                         void (*put)(struct buf *, const struct advice *, const struct advise_workload *))
{
	struct buf text;
	buf_init(&text, TEXT_BYTES);
	put(&text, a, w);
	out->failed = out->failed || text.failed;
	print_xml(out, "%s", buf_str(&text));
	buf_done(&text);
}

static void put_number(struct buf *out, const char *name, double value, const char *unit, const char *class_name)
{
	print_xml(out, "<div class=\"%s\"><dt>%s</dt><dd>%.2f %s</dd></div>", class_name, name, value, unit);
}

static void put_totals(struct buf *out, const struct advice *a)
{
	const struct advise_totals t = sum(a);
	char end[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(end, a->end_s * 1000);
	print_xml(out,
	          "<header><p>gpuscale advise</p><h1>GPU workloads</h1><p>%.3g days up to %s; the record covers %.3g "
	          "of them</p></header>\n<main>\n",
	          t.days, end, t.covered_days);
	buf_puts(out, "<dl class=\"numbers\">");
	put_number(out, "Possible saving a month", t.saved_month, a->currency, "main");
	put_number(out, "Possible saving in the period", t.saved_cost, a->currency, "");
	put_number(out, "Cost", t.cost, a->currency, "");
	put_number(out, "Idle", t.idle_cost, a->currency, "");
	put_number(out, "Fake load", t.fake_cost, a->currency, "");
	put_number(out, "GPU-hours", t.gpu_hours, "", "");
	put_number(out, "GPU-hours that could be saved", t.saved_hours, "", "");
	buf_puts(out, "</dl>\n");
}

static void put_candidate_row(struct buf *out, const struct advise_workload *w, enum advise_candidate c)
{
	const struct advise_outcome *o = &w->outcomes[c];
	double ratio = o->replicas / w->outcomes[ADVISE_RAN].replicas;
	if (!o->is_known && !o->note)
		return;
	buf_puts(out, w->best == c && c != ADVISE_RAN ? "<tr class=\"best\">" : "<tr>");
	print_xml(out, "<th scope=\"row\">%s", advise_candidate_names[c]);
	if (c == ADVISE_LIBRARY)
		print_xml(out, ": %s", advise_library_name(w->engine));
	buf_puts(out, "</th>");
	if (o->is_known && isfinite(ratio))
		buf_printf(out, "<td>%.2f</td><td>%.1f</td><td>%.2f</td><td>%.2f%%</td><td>%d</td><td>", o->replicas,
		           ratio * w->gpu_hours, ratio * w->cost, o->late_percent, (int)o->changes);
	else
		buf_puts(out, "<td>-</td><td>-</td><td>-</td><td>-</td><td>-</td><td>");
	print_xml(out, "%s</td></tr>\n", o->note ? o->note : "");
}

static void put_details(struct buf *out, const struct advice *a, const struct advise_workload *w)
{
	buf_puts(out, "<div class=\"body\"><p>");
	put_sentence(out, a, w, put_verdict);
	if (!isnan(w->measured_late_percent))
		buf_printf(out, " Measured: %.2f%% of the requests waited longer than 10 s.", w->measured_late_percent);
	buf_puts(out, "</p>\n");
	if (!w->fault) {
		buf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		              "aria-label=\"Candidates\"><table><thead><tr>"
		              "<th scope=\"col\">Rules</th><th scope=\"col\">Mean replicas</th><th "
		              "scope=\"col\">GPU-hours</th>"
		              "<th scope=\"col\">Cost</th><th scope=\"col\">Late</th><th scope=\"col\">Changes</th>"
		              "<th scope=\"col\">Limits</th></tr></thead><tbody>\n");
		for (int c = 0; c < ADVISE_CANDIDATE__COUNT; c++)
			put_candidate_row(out, w, (enum advise_candidate)c);
		buf_puts(out, "</tbody></table></div>\n");
	}
	const char *policy = w->policies[recommended(w)];
	if (policy) {
		buf_puts(out, "<p>Its decisions, which change nothing:</p><pre>");
		put_sentence(out, a, w, put_plan_command);
		buf_puts(out, "</pre><details><summary>The policy</summary><pre tabindex=\"0\">");
		print_xml(out, "%s</pre></details>", policy);
	}
	buf_puts(out, "</div>");
}

static void put_workload(struct buf *out, const struct advice *a, const struct advise_workload *w, bool is_open)
{
	const struct advise_outcome *ran = &w->outcomes[ADVISE_RAN];
	buf_puts(out, is_open ? "<details class=\"item\" open=\"open\">" : "<details class=\"item\">");
	print_xml(out,
	          "<summary><span><b>%s</b> <span class=\"soft\">%s</span></span><span class=\"soft\">%s</span><span "
	          "class=\"n\" data-name=\"engine\">%s</span><span class=\"n\" data-name=\"cost\">%.2f</span>",
	          w->target.name, w->namespace_name, w->autoscaler ? w->autoscaler : "no autoscaler",
	          w->has_engine ? advise_engines[w->engine].name : "-", w->cost);
	if (ran->is_known)
		print_xml(out, "<span class=\"n%s\" data-name=\"late\">%.2f%%</span>",
		          ran->late_percent > 100 * ADVISE_LATE_RATIO ? " bad" : "", ran->late_percent);
	else
		buf_puts(out, "<span class=\"n\" data-name=\"late\">-</span>");
	if (w->saved_ratio > 0)
		buf_printf(out, "<span class=\"n good\" data-name=\"saves\">%.2f (%.0f%%)</span>", advise_saved_cost(w),
		           100 * w->saved_ratio);
	else
		buf_puts(out, "<span class=\"n\" data-name=\"saves\">-</span>");
	buf_puts(out, "</summary>\n");
	put_details(out, a, w);
	buf_puts(out, "</details>\n");
}

static void put_notes(struct buf *out, const struct advice *a)
{
	buf_puts(out, "<section><h2>What limits the result</h2><ul class=\"notes\">"
	              "<li>A replay divides the work by what a replica did in its busiest percent of the time; where a "
	              "replica can do more, the saving is larger. Late work waits longer than 10 s.</li>\n");
	if (a->other_gpu_hours > 0)
		buf_printf(out, "<li>%.1f GPU-hours (%.2f) are of pods of no Deployment or StatefulSet.</li>\n",
		           a->other_gpu_hours, a->other_cost);
	if (a->n_without_gpus > 0)
		buf_printf(out, "<li>%zu autoscaled workloads without GPUs are left out.</li>\n", a->n_without_gpus);
	for (const char *line = buf_str(&a->notes), *end; (end = strchr(line, '\n')); line = end + 1)
		print_xml(out, "<li>%.*s</li>\n", (int)(end - line), line);
	buf_puts(out, "</ul></section>\n");
}

int advise_page(const struct advice *a, struct buf *out, struct err *e)
{
	struct buf page;
	buf_init(&page, PAGE_BYTES_MAX);
	const char *rest = html_page_until(&page, advise_page_begin, "title");
	buf_puts(&page, "GPU workloads: cost and savings");
	rest = html_page_until(&page, rest, "content");
	put_totals(&page, a);
	buf_puts(
	        &page,
	        "<section><h2>Workloads</h2><p>The largest saving first.</p>\n<div class=\"head\" aria-hidden=\"true\">"
	        "<span></span><span>Workload</span><span>Autoscaler</span><span>Engine</span><span>Cost</span>"
	        "<span>Late</span><span>Saves</span></div>\n");
	for (size_t i = 0; i < a->n; i++)
		put_workload(&page, a, &a->workloads[i], i == 0);
	buf_puts(&page, "</section>\n");
	put_notes(&page, a);
	buf_puts(&page, "</main>\n<footer>gpuscale " GPUSCALE_VERSION "</footer>");
	buf_puts(&page, rest);
	html_page_finish(out, &page);
	int rc = page.failed || out->failed
	                 ? err_set(e, ERR_LIMIT, "the page is larger than %zu MiB, or memory is exhausted",
	                           PAGE_BYTES_MAX / 1024 / 1024)
	                 : 0;
	buf_done(&page);
	return rc;
}
