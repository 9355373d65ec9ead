// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/backtest_page.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/html_page.h"
#include "base/num.h"
#include "base/xml_text.h"
#include "cli/replay/backtest_charts.h"
#include "cli/replay/backtest_closeup.h"
#include "cli/replay/backtest_report.h"
#include "cli/replay/svg_chart.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"

#define PAGE_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define NOTES_BYTES    (1024 * 1024)
#define VERDICT_BYTES  1024
#define P95            0.95

// Relative to the folder that make runs in; scripts/embedded_pages.mk has the dependency.
__asm__(".section .rodata\n"
        ".global backtest_page_begin, backtest_page_end\n"
        "backtest_page_begin:\n"
        ".incbin \"cli/replay/backtest_page.html\"\n"
        "backtest_page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char backtest_page_begin[], backtest_page_end[];

// ---- rows ----

static bool keeps_objective(const struct backtest *b, const struct backtest_row *row)
{
	return !(score_late_percent(&row->score) > 100 * b->config.late_ratio);
}

// ---- text ----

static void put_time(struct buf *out, int64_t ms)
{
	char text[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(text, ms);
	buf_printf(out, "<time datetime=\"%s\">%.10s %.8s</time>", text, text, text + 11);
}

// With the four decimals of the JSON in its value.
static void put_figure(struct buf *out, double v, const char *unit)
{
	char text[BACKTEST_FIGURE_BYTES], exact[NUM_TEXT_BYTES];
	backtest_report_figure(text, v, unit);
	if (isfinite(v)) {
		num_format_f64(exact, round(v * 1e4) / 1e4);
		buf_printf(out, "<data value=\"%s\">%s</data>", exact, text);
	} else {
		buf_puts(out, text);
	}
}

static void put_objective(struct buf *out, const struct backtest *b)
{
	buf_printf(out, "at most %g%% wait longer than ", 100 * b->config.late_ratio);
	backtest_report_duration(out, llround(b->config.wait_s * 1000));
}

// ---- heading ----

static void put_facts(struct buf *out, const struct backtest_report *r)
{
	const struct backtest *b = r->backtest;
	const struct recording *rec = b->recording;
	buf_puts(out, "<dl class=\"facts\"><div><dt>Recording</dt><dd>");
	xml_put_text(out, b->file);
	buf_puts(out, "</dd></div><div><dt>Period, UTC</dt><dd>");
	put_time(out, rec->time_ms[0]);
	buf_puts(out, " to ");
	put_time(out, rec->time_ms[rec->n_rows - 1]);
	buf_puts(out, "</dd></div><div><dt>Length</dt><dd>");
	backtest_report_duration(out, rec->time_ms[rec->n_rows - 1] - rec->time_ms[0]);
	if (!b->config.open_loop) {
		buf_printf(out,
		           "</dd></div><div><dt>Mean demand</dt><dd>%.2f replicas</dd></div><div><dt>Start-up</dt><dd>",
		           b->demand.mean);
		backtest_report_startups(r, out);
		buf_puts(out, "</dd></div><div><dt>Objective</dt><dd>");
		put_objective(out, b);
	}
	buf_puts(out, "</dd></div></dl>");
}

static void put_header(struct buf *out, const struct backtest_report *r)
{
	buf_puts(out, "<header><p class=\"product\">gpuscale backtest</p><div class=\"line1\"><h1>");
	xml_put_text(out, r->policy->namespace_name);
	buf_putc(out, '/');
	xml_put_text(out, r->policy->name);
	buf_printf(out, "</h1><span class=\"tag strong\">%s</span></div>\n", backtest_report_mode(r->backtest));
	put_facts(out, r);
	buf_puts(out, "</header>\n");
}

static void put_closed_verdict(struct buf *out, const struct backtest_report *r)
{
	const struct backtest *b = r->backtest;
	const struct backtest_row *policy = backtest_policy_row(b);
	double late = score_late_percent(&policy->score);
	if (isnan(late)) {
		buf_puts(out, "Nothing arrives, so nothing is late.");
		return;
	}
	buf_printf(
	        out,
	        "This policy <strong class=\"%s\">%s the objective</strong>: %.2f%% of the requests wait longer than ",
	        keeps_objective(b, policy) ? "good" : "bad", keeps_objective(b, policy) ? "keeps" : "misses", late);
	backtest_report_duration(out, llround(b->config.wait_s * 1000));
	buf_printf(out, ", and %g%% may. It uses %.2f GPU-hours.", 100 * b->config.late_ratio,
	           backtest_gpu_hours(r, policy));
	for (enum backtest_kind kind = BACKTEST_PEER; kind <= BACKTEST_FIXED; kind++) {
		struct buf beside;
		buf_init(&beside, VERDICT_BYTES);
		bool cheaper = backtest_report_beside(r, kind, &beside);
		buf_puts(out, cheaper ? " <strong class=\"bad\">" : " ");
		xml_put_text(out, buf_str(&beside));
		buf_puts(out, beside.len > 0 ? "." : "");
		buf_puts(out, cheaper ? "</strong>" : "");
		buf_done(&beside);
	}
}

static void put_open_verdict(struct buf *out, const struct backtest_report *r)
{
	const struct backtest *b = r->backtest;
	buf_printf(out, "This policy asks for %.2f GPU-hours; what ran used %.2f.",
	           backtest_gpu_hours(r, backtest_policy_row(b)), backtest_gpu_hours(r, &b->rows[0]));
}

static void put_number(struct buf *out, const char *name, double v, const char *unit, const double *actual)
{
	buf_printf(out, "<div><dt>%s</dt><dd>", name);
	put_figure(out, v, unit);
	if (actual && isfinite(*actual)) {
		buf_puts(out, "<small>what ran: ");
		put_figure(out, *actual, unit);
		buf_puts(out, "</small>");
	}
	buf_puts(out, "</dd></div>");
}

static void put_numbers(struct buf *out, const struct backtest_report *r)
{
	const struct backtest *b = r->backtest;
	const struct backtest_row *p = backtest_policy_row(b), *a = &b->rows[0];
	// What ran for a part of the time cannot be compared with the policy over all of it.
	bool known = a->kind == BACKTEST_ACTUAL && (b->config.open_loop || b->recorded_share >= 1);
	double actual[] = {backtest_gpu_hours(r, a), backtest_cost(r, a), score_late_percent(&a->score),
	                   score_wait_quantile_s(&a->score, P95), score_at_max_percent(&a->score)};
	buf_puts(out, "<dl class=\"numbers\">");
	put_number(out, "GPU-hours", backtest_gpu_hours(r, p), "", known ? &actual[0] : NULL);
	if (!isnan(r->price))
		put_number(out, "Cost", backtest_cost(r, p), "", known ? &actual[1] : NULL);
	if (!b->config.open_loop) {
		put_number(out, "Late", score_late_percent(&p->score), "%", known ? &actual[2] : NULL);
		put_number(out, "Wait, 95th percentile", score_wait_quantile_s(&p->score, P95), "s",
		           known ? &actual[3] : NULL);
	}
	buf_printf(out, "<div><dt>Changes of direction</dt><dd>%d", p->score.changes);
	if (known)
		buf_printf(out, "<small>what ran: %d</small>", a->score.changes);
	buf_puts(out, "</dd></div>");
	put_number(out, "Time at maxReplicas", score_at_max_percent(&p->score), "%", known ? &actual[4] : NULL);
	buf_puts(out, "</dl>\n");
}

// ---- table ----

static void put_cell(struct buf *out, double v, const char *unit)
{
	buf_puts(out, "<td>");
	put_figure(out, v, unit);
	buf_puts(out, "</td>");
}

static void put_row(struct buf *out, const struct backtest_report *r, const struct backtest_row *row)
{
	const struct score *s = &row->score;
	bool other = row->kind == BACKTEST_PEER && !row->is_best;
	buf_printf(out, "<tr%s><th scope=\"row\">",
	           row->kind == BACKTEST_POLICY ? " class=\"policy\""
	           : other                      ? " class=\"other\""
	                                        : "");
	svg_chart_put_swatch(out, backtest_charts_style(row), CHART_POINTS);
	xml_put_text(out, row->name);
	buf_printf(out, "</th><td class=\"kind\">%s</td>", backtest_kind_name(row->kind));
	put_cell(out, backtest_gpu_hours(r, row), "");
	if (!isnan(r->price))
		put_cell(out, backtest_cost(r, row), "");
	if (!keeps_objective(r->backtest, row)) {
		buf_puts(out, "<td class=\"miss\"><span aria-hidden=\"true\">&#10005; </span>");
		put_figure(out, score_late_percent(s), "%");
		buf_puts(out, "<span class=\"sr\"> misses the objective</span></td>");
	} else {
		put_cell(out, score_late_percent(s), "%");
	}
	put_cell(out, score_wait_quantile_s(s, P95), "s");
	buf_printf(out, "<td>%d</td>", s->changes);
	put_cell(out, score_at_max_percent(s), "%");
	if (r->backtest->config.engine) {
		put_cell(out, 1000 * score_token_gap_quantile_s(s, P95), "ms");
		put_cell(out, score_capacity(s), "");
	}
	buf_puts(out, "</tr>\n");
}

static void put_table(struct buf *out, const struct backtest_report *r)
{
	const struct backtest *b = r->backtest;
	buf_puts(out, "<section id=\"results\" aria-labelledby=\"h-results\"><h2 id=\"h-results\">Results</h2>\n");
	if (!b->config.open_loop && !b->config.policy_only) {
		buf_puts(out, "<p>&#10005; misses the objective. Grey settings of a peer are not its best one in "
		              "hindsight; clairvoyant is a schedule that knows the future.</p>\n");
	}
	buf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	              "aria-labelledby=\"h-results\"><table>\n<thead><tr>"
	              "<th scope=\"col\">Name</th><th scope=\"col\" class=\"kind\">Kind</th><th "
	              "scope=\"col\">GPU-hours</th>");
	if (!isnan(r->price))
		buf_puts(out, "<th scope=\"col\">Cost</th>");
	buf_puts(out, "<th scope=\"col\">Late</th><th scope=\"col\">p95 wait</th><th scope=\"col\">Changes</th>"
	              "<th scope=\"col\">At max</th>");
	if (b->config.engine)
		buf_puts(out, "<th scope=\"col\">p95 ITL</th><th scope=\"col\">Capacity</th>");
	buf_puts(out, "</tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < b->n_rows; i++)
		put_row(out, r, &b->rows[i]);
	buf_puts(out, "</tbody></table></div></section>\n");
}

// ---- page ----

static void put_notes(struct buf *out, const struct backtest_report *r)
{
	struct buf notes;
	buf_init(&notes, NOTES_BYTES);
	backtest_report_notes(r, &notes);
	out->failed = out->failed || notes.failed;
	buf_puts(out, "<section aria-labelledby=\"h-notes\"><h2 id=\"h-notes\">What limits the result</h2>\n<ul "
	              "class=\"notes\">");
	if (notes.len == 0)
		buf_puts(out, "<li>no gaps</li>");
	for (const char *p = buf_str(&notes); *p;) {
		size_t len = strcspn(p, "\n");
		buf_puts(out, "<li>");
		xml_put_textn(out, p, len);
		buf_puts(out, "</li>\n");
		p += len + (p[len] == '\n');
	}
	buf_puts(out, "</ul></section>\n");
	buf_done(&notes);
}

static int put_content(struct buf *out, const struct backtest_report *r, const struct backtest_history *h,
                       struct err *e)
{
	bool open_loop = r->backtest->config.open_loop;
	put_header(out, r);
	buf_puts(out, "<main>\n<p class=\"verdict\">");
	if (open_loop)
		put_open_verdict(out, r);
	else
		put_closed_verdict(out, r);
	buf_puts(out, "</p>\n");
	put_numbers(out, r);
	if (backtest_charts_put_over_time(out, r, h, e) < 0)
		return -1;
	put_table(out, r);
	if (!open_loop)
		backtest_charts_put_frontier(out, r);
	if (backtest_closeup_put(out, r, h, e) < 0)
		return -1;
	put_notes(out, r);
	buf_puts(out, "</main>\n<footer>gpuscale " GPUSCALE_VERSION "</footer>\n");
	return 0;
}

static void put_title(struct buf *out, const struct backtest_report *r)
{
	buf_puts(out, "Backtest of ");
	xml_put_text(out, r->policy->name);
	buf_puts(out, " on ");
	xml_put_text(out, r->backtest->file);
}

static int render(struct buf *out, const struct backtest_report *r, const struct backtest_history *h, struct err *e)
{
	struct buf page;
	buf_init(&page, PAGE_BYTES_MAX);
	const char *rest = html_page_until(&page, backtest_page_begin, "title");
	put_title(&page, r);
	rest = html_page_until(&page, rest, "toggles");
	backtest_charts_put_toggle_rules(&page);
	rest = html_page_until(&page, rest, "chart-style");
	svg_chart_put_style(&page);
	rest = html_page_until(&page, rest, "content");
	int rc = put_content(&page, r, h, e);
	buf_puts(&page, rest);
	html_page_finish(out, &page);
	if (rc == 0 && (page.failed || out->failed))
		rc = err_set(e, ERR_LIMIT, "the page is larger than %zu MiB, or memory is exhausted",
		             PAGE_BYTES_MAX / 1024 / 1024);
	buf_done(&page);
	return rc;
}

int backtest_page_write(const char *path, const struct backtest_report *r, const struct backtest_history *h,
                        struct err *e)
{
	struct buf page;
	bool is_stdout = strcmp(path, "-") == 0;
	buf_init(&page, PAGE_BYTES_MAX);
	int rc = render(&page, r, h, e);
	if (rc < 0) {
		buf_done(&page);
		return -1;
	}
	FILE *f = is_stdout ? stdout : fopen(path, "we");
	if (!f) {
		rc = err_set(e, ERR_IO, "%s: cannot be opened for writing: %s", path, strerror(errno));
	} else {
		bool failed = fwrite(buf_str(&page), 1, page.len, f) != page.len || fflush(f) != 0;
		int saved = errno;
		if (!is_stdout && fclose(f) != 0 && !failed) {
			failed = true;
			saved = errno;
		}
		if (failed)
			rc = err_set(e, ERR_IO, "%s: cannot be written: %s", path, strerror(saved));
	}
	buf_done(&page);
	return rc;
}
