// SPDX-License-Identifier: Apache-2.0
// gpuscale advise: what the workloads of a cluster cost, and what another policy would have cost.
#include <ctype.h>
#include <strings.h>

#include "base/html_page.h"
#include "cli/gpu/advise.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "insight/gpu_use_query.h"

#define SINCE_MS       (14 * INT64_C(86400000))
#define LONGEST_MS     (90 * INT64_C(86400000))
#define LEAST_MS       INT64_C(3600000)
#define MONTH_DAYS     30.0
#define DAY_S          86400.0
#define COVERED_SHARE  0.95 // of the period: less is reported
#define IDLE_SHARE     0.5  // of the cost: more is reported
#define PAGE_BYTES_MAX ((size_t)48 * 1024 * 1024)
#define TEXT_BYTES     ((size_t)64 * 1024)

struct advise_args {
	struct prometheus_options prometheus;
	struct policy_scope scope;
	const char *workload, *prices;
	int64_t since_ms;
	enum output_format output;
	char kind[64];    // of the workload
	const char *name; // NULL: all workloads
};

// Kinds as on kubectl's command line; any other kind is written as its API writes it.
static const struct {
	const char *word, *kind;
} kinds[] = {{"deployment", "Deployment"},   {"deployments", "Deployment"},   {"deploy", "Deployment"},
             {"statefulset", "StatefulSet"}, {"statefulsets", "StatefulSet"}, {"sts", "StatefulSet"}};

static void check_workload(struct advise_args *a, struct argp_state *state)
{
	const char *slash = a->workload ? strchr(a->workload, '/') : NULL;
	if (!a->workload)
		return;
	size_t len = slash ? (size_t)(slash - a->workload) : 0;
	if (len == 0 || len >= sizeof a->kind || !slash[1])
		print_usage(state, "expected KIND/NAME such as deployment/llama, got \"%s\"", a->workload);
	snprintf(a->kind, sizeof a->kind, "%.*s", (int)len, a->workload);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcasecmp(a->kind, kinds[i].word) == 0)
			snprintf(a->kind, sizeof a->kind, "%s", kinds[i].kind);
	a->name = slash + 1;
	if (strspn(a->name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(a->name) ||
	    strspn(a->kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != strlen(a->kind))
		print_usage(state, "\"%s\" is not a valid name of a workload", a->workload);
	if (a->scope.all_namespaces)
		print_usage(state, "-A cannot be used with the name of a workload");
}

static void check(void *options, struct argp_state *state)
{
	struct advise_args *a = options;
	check_workload(a, state);
	if (!prometheus_options_given(&a->prometheus))
		print_usage(state, "name the server: --prometheus URL");
}

// clang-format off
#define FLAGS_OF struct advise_args
static const struct flag_set command = {
	.args = "[KIND/NAME]",
	.about = "Show what the GPU workloads of a cluster cost, and what other rules would have cost: for each one what ran, "
	         "idle GPUs and fake load, how much of the work was late, its present rules in replay, a policy of the library, "
	         "and an objective (at most 1 % waits longer than 10 s). Workloads are those that an autoscaler of the cluster "
	         "scales, and those whose pods have GPUs; without a cluster, those of Prometheus alone. With KIND/NAME, print "
	         "the policy for this workload: its engine and labels are recognised by their series. Changes nothing."
	         "\vA replay divides the work by what a replica did in its busiest percent of the time. Where a replica can do "
	         "more, the saving is larger.\n\nExit status: 0 done, 1 failed, 2 wrong usage.\n\nExamples:\n"
	         "  gpuscale advise -A --prometheus http://prometheus:9090\n"
	         "  gpuscale advise deployment/llama -n serving --prometheus http://prometheus:9090 > llama.yaml",
	.surplus = "; name one workload",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_SINCE(1, since_ms, LEAST_MS, LONGEST_MS, "14d, at most 90d"),
		FLAG_PRICES(1, prices),
		FLAG_OUTPUT(1, output, OUTPUT_SET(TABLE) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML) | OUTPUT_SET(HTML), "table, json, yaml or html (default table; with KIND/NAME, the policy)"),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&namespace_flags, scope, 0),
		FLAG_ARGUMENT(workload),
		FLAG_END}};
// clang-format on

// ---- the report ----

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
		t.saved_hours += w->saved_hours;
		t.saved_cost += w->saved_cost;
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
		         name, change, w->saved_hours, w->saved_cost, a->currency, best->late_percent,
		         ran->late_percent);
	else
		print_to(out,
		         "%.2f%% of the work was late; the %s policy would have kept it at %.2f%% for %.0f%% more.",
		         ran->late_percent, name, best->late_percent, change);
}

static void put_advise_command(struct buf *out, const struct advice *a, const struct advise_workload *w)
{
	buf_puts(out, "gpuscale advise ");
	for (const char *c = w->target.kind; *c; c++)
		buf_putc(out, (char)tolower((unsigned char)*c));
	print_to(out, "/%s -n %s --prometheus %s > %s.yaml", w->target.name, w->namespace_name, a->server,
	         w->target.name);
}

static void put_plan_command(struct buf *out, const struct advice *a, const struct advise_workload *w)
{
	print_to(out, "gpuscale plan -f %s.yaml --prometheus %s", w->target.name, a->server);
}

// ---- table ----

static double late_of(const struct advise_outcome *o)
{
	return o->is_known ? o->late_percent : NAN;
}

// The cost of a candidate, by its replicas: money where it is known, else GPU-hours.
static struct table_text candidate_cost(const struct advise_workload *w, enum advise_candidate c)
{
	double ratio = w->outcomes[c].replicas / w->outcomes[ADVISE_RAN].replicas;
	bool is_known = w->outcomes[c].is_known && w->outcomes[ADVISE_RAN].is_known && isfinite(ratio);
	return table_amount(is_known ? (w->cost > 0 ? w->cost : w->gpu_hours) * ratio : NAN, w->cost > 0 ? "" : " h");
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

static void put_table(const struct advice *a, struct buf *out)
{
	struct table t;
	put_total(a, out);
	table_init(&t, "NAMESPACE\tWORKLOAD\tAUTOSCALER\tENGINE\tGPU-HOURS\tCOST\tIDLE\t"
	               "MEASURED-LATE\tLATE\tRULES\tPOLICY\tLIBRARY\tOBJECTIVE\tBEST-LATE\tSAVES");
	for (size_t i = 0; i < a->n; i++) {
		const struct advise_workload *w = &a->workloads[i];
		table_put(&t, "%s\t%s\t%s\t%s\t%.1f\t%s\t%s\t%s\t%s\t%s", w->namespace_name, w->target.name,
		          table_or_none(w->autoscaler), w->has_engine ? advise_engines[w->engine].name : "-",
		          w->gpu_hours, table_amount(w->has_use ? w->cost : NAN, "").text,
		          table_amount(w->has_use ? w->idle_cost : NAN, "").text,
		          table_amount(w->measured_late_percent, "%").text,
		          table_amount(late_of(&w->outcomes[ADVISE_RAN]), "%").text,
		          candidate_cost(w, ADVISE_PRESENT).text);
		table_put(&t, "%s\t%s\t%s\t%s", w->has_engine ? advise_engines[w->engine].library : "-",
		          candidate_cost(w, ADVISE_LIBRARY).text, candidate_cost(w, ADVISE_OBJECTIVE).text,
		          table_amount(w->best == ADVISE_RAN ? NAN : late_of(&w->outcomes[w->best]), "%").text);
		table_put(&t, w->saved_ratio > 0 ? "%.0f%%" : "-", 100 * w->saved_ratio);
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

// One workload as a policy file: the figures as comments, then the recommended policy.
static void put_policy(const struct advice *a, const struct advise_workload *w, struct buf *out)
{
	enum advise_candidate c = recommended(w);
	const char *text = w->policies[c];
	const struct advise_totals t = sum(a);
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
			         candidate_cost(w, (enum advise_candidate)i).text, table_amount(late_of(o), "%").text,
			         (int)o->changes);
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
	         c == ADVISE_LIBRARY ? advise_engines[w->engine].library : advise_candidate_names[c]);
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

static void put_json(const struct advice *a, struct buf *out)
{
	const struct advise_totals t = sum(a);
	struct buf verdict = BUF(TABLE_BYTES_MAX);
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{from:%jd,to:%jd,currency:%s,gpuHours:%g,cost:%g,idleCost:%g,fakeLoadCost:%g",
	                  a->start_s * 1000, a->end_s * 1000, a->currency, t.gpu_hours, t.cost, t.idle_cost,
	                  t.fake_cost);
	json_write_format(&w, "savedGPUHours:%g,savedCost:%g,savedCostPerMonth:%g,otherGPUHours:%g,withoutGPUs:%zu",
	                  t.saved_hours, t.saved_cost, t.saved_month, a->other_gpu_hours, a->n_without_gpus);
	json_write_member_array(&w, "workloads");
	for (size_t i = 0; i < a->n; i++) {
		const struct advise_workload *x = &a->workloads[i];
		json_write_format(&w, "{namespace:%s,kind:%s,name:%s,autoscaler:%s,engine:%s,library:%s",
		                  x->namespace_name, x->target.kind, x->target.name, x->autoscaler,
		                  x->has_engine ? advise_engines[x->engine].name : NULL,
		                  x->has_engine ? advise_engines[x->engine].library : NULL);
		json_write_format(&w, "capacity:%g,gpuHours:%g,cost:%g,idleCost:%g,fakeLoadCost:%g", x->capacity,
		                  x->gpu_hours, x->has_use ? x->cost : NAN, x->has_use ? x->idle_cost : NAN,
		                  x->has_use ? x->fake_cost : NAN);
		json_write_format(&w, "measuredLatePercent:%g,best:%s,savedRatio:%g,savedGPUHours:%g,savedCost:%g",
		                  x->measured_late_percent, advise_candidate_names[x->best], x->saved_ratio,
		                  x->saved_hours, x->saved_cost);
		buf_reset(&verdict);
		put_verdict(&verdict, a, x);
		json_write_member_text(&w, "verdict", buf_str(&verdict));
		json_write_member_array(&w, "candidates");
		for (int c = 0; c < ADVISE_CANDIDATE__COUNT; c++)
			put_candidate(&w, x, (enum advise_candidate)c);
		json_write_array_end(&w);
		buf_reset(&verdict);
		put_advise_command(&verdict, a, x);
		json_write_member_text(&w, "command", buf_str(&verdict));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_member_text(&w, "notes", buf_str(&a->notes));
	json_write_object_end(&w);
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
	struct buf text = BUF(TEXT_BYTES);
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
		print_xml(out, ": %s", advise_engines[w->engine].library);
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
		              "aria-label=\"Candidates\"><table><thead><tr><th scope=\"col\">Rules</th><th "
		              "scope=\"col\">Mean replicas</th><th scope=\"col\">GPU-hours</th><th "
		              "scope=\"col\">Cost</th><th scope=\"col\">Late</th><th scope=\"col\">Changes</th><th "
		              "scope=\"col\">Limits</th></tr></thead><tbody>\n");
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
		buf_printf(out, "<span class=\"n good\" data-name=\"saves\">%.2f (%.0f%%)</span>", w->saved_cost,
		           100 * w->saved_ratio);
	else
		buf_puts(out, "<span class=\"n\" data-name=\"saves\">-</span>");
	buf_puts(out, "</summary>\n");
	put_details(out, a, w);
	buf_puts(out, "</details>\n");
}

static void put_notes(struct buf *out, const struct advice *a)
{
	buf_puts(out, "<section><h2>What limits the result</h2><ul class=\"notes\"><li>A replay divides the work by "
	              "what a replica did in its busiest percent of the time; where a replica can do more, the saving "
	              "is larger. Late work waits longer than 10 s.</li>\n");
	if (a->other_gpu_hours > 0)
		buf_printf(out, "<li>%.1f GPU-hours (%.2f) are of pods of no Deployment or StatefulSet.</li>\n",
		           a->other_gpu_hours, a->other_cost);
	if (a->n_without_gpus > 0)
		buf_printf(out, "<li>%zu autoscaled workloads without GPUs are left out.</li>\n", a->n_without_gpus);
	for (const char *line = buf_str(&a->notes), *end; (end = strchr(line, '\n')); line = end + 1)
		print_xml(out, "<li>%.*s</li>\n", (int)(end - line), line);
	buf_puts(out, "</ul></section>\n");
}

// Appends a self-contained page. Returns 0, or -1 and *e: ERR_LIMIT.
static int put_page(const struct advice *a, struct buf *out, struct err *e)
{
	struct buf page = BUF(PAGE_BYTES_MAX);
	const char *rest = html_page_until(&page, advise_page_begin, "title");
	buf_puts(&page, "GPU workloads: cost and savings");
	rest = html_page_until(&page, rest, "content");
	put_totals(&page, a);
	buf_puts(&page,
	         "<section><h2>Workloads</h2><p>The largest saving first.</p>\n"
	         "<div class=\"head\" aria-hidden=\"true\"><span></span><span>Workload</span><span>Autoscaler</span>"
	         "<span>Engine</span><span>Cost</span><span>Late</span><span>Saves</span></div>\n");
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

// ---- the command ----

static int print(const struct advise_args *a, const struct advice *advice, struct err *e)
{
	struct buf out = BUF(OUTPUT_MAX);
	int rc = 0;
	if (a->output == OUTPUT_HTML)
		rc = put_page(advice, &out, e);
	else if (output_is_document(a->output))
		put_json(advice, &out);
	else if (a->name)
		put_policy(advice, &advice->workloads[0], &out);
	else
		put_table(advice, &out);
	if (rc == 0)
		return output_write(&out, a->output, e);
	buf_done(&out);
	return rc;
}

static int run(const struct advise_args *a, const struct price_book *book, struct err *e)
{
	const struct advise_request request = {.prometheus = &a->prometheus,
	                                       .kube = &a->scope.kube,
	                                       .namespace_name = a->scope.namespace_name,
	                                       .kind = a->name ? a->kind : NULL,
	                                       .name = a->name,
	                                       .book = book,
	                                       .since_ms = a->since_ms};
	struct advice advice;
	int rc = advise_find(&request, &advice, e);
	advice.server = a->prometheus.query.url ? a->prometheus.query.url : "URL";
	if (rc == 0)
		rc = advise_replay(&request, &advice, e);
	if (rc == 0)
		rc = print(a, &advice, e);
	advice_done(&advice);
	return rc;
}

int cmd_advise(int argc, char **argv)
{
	struct advise_args args = {.since_ms = SINCE_MS};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct arena arena = ARENA(PRICE_OPTION_ARENA_MAX);
	struct price_book book;
	int code = price_option_read(args.prices, &arena, &book, "gpuscale advise") < 0 ? EXIT_FAILED : EXIT_OK;
	if (code == EXIT_OK && (policy_scope_resolve(&args.scope, &arena, &e) < 0 || run(&args, &book, &e) < 0))
		code = command_failed("gpuscale advise", &e);
	arena_done(&arena);
	return code;
}
