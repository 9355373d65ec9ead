// SPDX-License-Identifier: Apache-2.0
// Writes the page of `gpuscale advise -o html` from its template.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/html_page.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/gpu/advise.h"

#define PAGE_BYTES_MAX ((size_t)48 * 1024 * 1024)
#define TEXT_BYTES     ((size_t)64 * 1024)

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
	const struct advise_totals t = advise_sum(a);
	char end[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(end, a->end_s * 1000);
	buf_printf(out,
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

static void put_candidate(struct buf *out, const struct advise_workload *w, enum advise_candidate c)
{
	const struct advise_outcome *o = &w->outcomes[c];
	double ratio = o->replicas / w->outcomes[ADVISE_RAN].replicas;
	if (!o->is_known && !o->note)
		return;
	buf_printf(out, "<tr%s><th scope=\"row\">%s", w->best == c && c != ADVISE_RAN ? " class=\"best\"" : "",
	           advise_candidate_names[c]);
	if (c == ADVISE_LIBRARY)
		buf_printf(out, ": %s", advise_library_name(w->engine));
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
	put_sentence(out, a, w, advise_put_verdict);
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
			put_candidate(out, w, (enum advise_candidate)c);
		buf_puts(out, "</tbody></table></div>\n");
	}
	const char *policy = w->policies[advise_recommended(w)];
	if (policy) {
		buf_puts(out, "<p>Its decisions, which change nothing:</p><pre>");
		put_sentence(out, a, w, advise_put_command);
		buf_puts(out, "</pre><details><summary>The policy</summary><pre tabindex=\"0\">");
		print_xml(out, "%s</pre></details>", policy);
	}
	buf_puts(out, "</div>");
}

static void put_workload(struct buf *out, const struct advice *a, const struct advise_workload *w, bool is_open)
{
	const struct advise_outcome *ran = &w->outcomes[ADVISE_RAN];
	buf_printf(out, "<details class=\"item\"%s>", is_open ? " open=\"open\"" : "");
	print_xml(out,
	          "<summary><span><b>%s</b> <span class=\"soft\">%s</span></span><span class=\"soft\">%s</span><span "
	          "class=\"n\" data-name=\"engine\">%s</span><span class=\"n\" data-name=\"cost\">%.2f</span>",
	          w->target.name, w->namespace_name, w->autoscaler ? w->autoscaler : "no autoscaler",
	          w->has_engine ? advise_engines[w->engine].name : "-", w->cost);
	if (ran->is_known)
		buf_printf(out, "<span class=\"n%s\" data-name=\"late\">%.2f%%</span>",
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
