// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/backtest_page.h"

#include "base/html_page.h"
#include "cli/replay/backtest_report.h"
#include "cli/replay/svg_chart.h"
#include "cli/term/cli.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/engine/reason.h"
#include "replay/backtest.h"
#include "replay/backtest_history.h"

#define PAGE_BYTES_MAX  ((size_t)32 * 1024 * 1024)
#define NOTES_BYTES     (1024 * 1024)
#define VERDICT_BYTES   1024
#define P95             0.95
#define DECISIONS_MAX   1200 // of the worst ten minutes
#define DECISIONS_SIZE  ((size_t)8 * 1024 * 1024)
#define TRACKS_MAX      (BACKTEST_ROWS_MAX + 1)
#define TIME_HEIGHT     300
#define FRONTIER_HEIGHT 380
#define WORST_HEIGHT    220
#define WAIT_HEIGHT     120

// Relative to the folder that make runs in; scripts/embedded_pages.mk has the dependency.
__asm__(".section .rodata\n"
        ".global backtest_page_begin, backtest_page_end\n"
        "backtest_page_begin:\n"
        ".incbin \"cli/replay/backtest_page.html\"\n"
        "backtest_page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char backtest_page_begin[], backtest_page_end[];

// ---- the look of a row ----

static enum chart_style style_of(const struct backtest_row *row)
{
	static const enum chart_style of_peer[] = {CHART_HPA, CHART_KEDA, CHART_WPA, CHART_KNATIVE, CHART_FIXED};
	_Static_assert(sizeof of_peer / sizeof *of_peer == PEER__COUNT, "one style per peer");
	static const enum chart_style of_kind[] = {CHART_ACTUAL, CHART_POLICY, CHART_OTHER, CHART_FIXED, CHART_BOUND};
	_Static_assert(sizeof of_kind / sizeof *of_kind == BACKTEST__COUNT, "one style per kind");
	return row->kind == BACKTEST_PEER ? of_peer[row->peer] : of_kind[row->kind];
}

// ---- demand and replicas over time ----

// Peers start hidden, because many curves hide each other; a peer that rises far above the demand does not flatten the
// others.
static bool is_peer(enum chart_style style)
{
	return style >= CHART_HPA && style <= CHART_KNATIVE;
}

// Tracks as the series of a chart. Zeroed memory has none.
struct tracks {
	struct chart_series series[TRACKS_MAX];
	double x[TRACKS_MAX][TRACK_POINTS_MAX], y[TRACKS_MAX][TRACK_POINTS_MAX];
	size_t n;
};

// Adds a track, unless it is empty. `name` is not copied.
static void add_track(struct tracks *c, const struct track *t, const char *name, enum chart_style style,
                      enum chart_mark mark)
{
	double *x = c->x[c->n], *y = c->y[c->n];
	size_t n = track_points(t, x, y);
	if (n == 0)
		return;
	c->series[c->n++] = (struct chart_series){.name = name, .style = style, .mark = mark, .x = x, .y = y, .n = n};
}

// Appends a chart over time with its legend, in which each curve has a checkbox when `has_boxes` is set: once per page.
static void put_chart(struct buf *out, const struct chart *c, bool has_boxes)
{
	buf_printf(out, "<figure>\n<div class=\"legend\"%s>", has_boxes ? " role=\"group\" aria-label=\"Curves\"" : "");
	for (size_t i = 0; i < c->n_series; i++) {
		const struct chart_series *s = &c->series[i];
		buf_puts(out, has_boxes ? "<label>" : "<span>");
		if (has_boxes) // the style sheet obeys it
			buf_printf(out, "<input type=\"checkbox\" id=\"t-%s\"%s/>", chart_style_name(s->style),
			           is_peer(s->style) ? "" : " checked=\"\"");
		svg_chart_put_swatch(out, s->style, s->mark);
		print_xml(out, has_boxes ? "%s</label>" : "%s</span>", s->name);
	}
	buf_puts(out, "</div>\n<div class=\"frame\">");
	svg_chart_put(out, c);
	buf_puts(out, "</div><output></output></figure>\n");
}

static int put_over_time(struct buf *out, const struct backtest_report *r, const struct backtest_history *h,
                         struct err *e)
{
	const struct backtest *b = r->backtest;
	struct tracks *o = err_calloc(sizeof *o, e);
	if (!o)
		return -1;
	add_track(o, &h->demand, "demand", CHART_DEMAND, CHART_AREA);
	// The settings of a peer that were not its best are in the table and in the frontier only.
	for (size_t i = 0; i < b->n_rows; i++)
		if (h->has_row[i] && b->rows[i].kind != BACKTEST_POLICY &&
		    (b->rows[i].kind != BACKTEST_PEER || b->rows[i].is_best))
			add_track(o, &h->rows[i], b->rows[i].name, style_of(&b->rows[i]), CHART_STEPS);
	for (size_t i = 0; i < b->n_rows; i++) // on top
		if (b->rows[i].kind == BACKTEST_POLICY && h->has_row[i])
			add_track(o, &h->rows[i], b->rows[i].name, CHART_POLICY, CHART_STEPS);
	for (size_t i = 0; i < o->n; i++)
		o->series[i].is_cut = is_peer(o->series[i].style);
	const struct chart c = {.id = "over-time",
	                        .title = b->config.open_loop ? "Replicas over time" : "Demand and replicas over time",
	                        .description = "The totals of each curve are in the table of results.",
	                        .x = {"UTC", CHART_TIME, false},
	                        .y = {"replicas", CHART_LINEAR, true},
	                        .series = o->series,
	                        .n_series = o->n,
	                        .height = TIME_HEIGHT};
	print_xml(out, "<section id=\"time\" aria-labelledby=\"h-time\"><h2 id=\"h-time\">%s</h2>\n", c.title);
	put_chart(out, &c, true);
	buf_puts(out, "</section>\n");
	free(o);
	return 0;
}

// ---- frontier ----

struct points {
	double x[BACKTEST_ROWS_MAX], y[BACKTEST_ROWS_MAX];
	const char *labels[BACKTEST_ROWS_MAX];
};

static const char *series_name(const struct backtest_report *r, const struct backtest_row *row)
{
	static const char *const names[BACKTEST__COUNT] = {
	        [BACKTEST_FIXED] = "fixed", [BACKTEST_BOUND] = "clairvoyant"};
	if (row->kind == BACKTEST_PEER)
		return peer_names[row->peer];
	if (r->backtest->config.sweep_threads == 0 || row->kind == BACKTEST_ACTUAL)
		return row->name;
	return row->kind == BACKTEST_POLICY ? r->policy->name : names[row->kind];
}

// One series per style; the settings of a peer are joined by a line, in a sweep those of each kind. A sweep has too
// many points for a label at each.
static size_t collect_points(const struct backtest_report *r, struct chart_series series[CHART_STYLE__COUNT],
                             struct points points[CHART_STYLE__COUNT])
{
	size_t n_series = 0;
	bool is_sweep = r->backtest->config.sweep_threads > 0;
	for (int style = CHART_STYLE__COUNT - 1; style >= 0; style--) { // the policy on top
		struct points *p = &points[style];
		const struct backtest_row *first = NULL;
		size_t n = 0;
		for (size_t i = 0; i < r->backtest->n_rows; i++) {
			const struct backtest_row *row = &r->backtest->rows[i];
			if ((int)style_of(row) != style)
				continue;
			first = first ? first : row;
			p->x[n] = isnan(r->price) ? backtest_gpu_hours(r, row) : backtest_cost(r, row);
			p->y[n] = score_late_percent(&row->score);
			p->labels[n++] = is_sweep && row->kind != BACKTEST_POLICY && row->kind != BACKTEST_FIXED
			                         ? NULL
			                         : row->name;
		}
		if (n == 0)
			continue;
		series[n_series++] = (struct chart_series){
		        .name = series_name(r, first),
		        .style = (enum chart_style)style,
		        .mark = is_sweep || first->kind == BACKTEST_PEER ? CHART_LINKED_POINTS : CHART_POINTS,
		        .x = p->x,
		        .y = p->y,
		        .labels = p->labels,
		        .n = n};
	}
	return n_series;
}

static void put_frontier(struct buf *out, const struct backtest_report *r,
                         void (*put)(struct buf *, const struct chart *))
{
	struct chart_series series[CHART_STYLE__COUNT];
	struct points *points = calloc(CHART_STYLE__COUNT, sizeof *points);
	if (!points) {
		out->failed = true;
		return;
	}
	const struct chart c = {.id = "frontier",
	                        .title = "Cost against lateness",
	                        .description = "Each point is a row of the table of results.",
	                        .x = {isnan(r->price) ? "GPU-hours" : "cost", CHART_LINEAR, false},
	                        .y = {"late, %", CHART_LOG, false},
	                        .series = series,
	                        .n_series = collect_points(r, series, points),
	                        .height = FRONTIER_HEIGHT};
	put(out, &c);
	free(points);
}

void backtest_page_frontier(struct buf *out, const struct backtest_report *r)
{
	put_frontier(out, r, svg_chart_put_document);
}

static void put_frontier_section(struct buf *out, const struct backtest_report *r)
{
	buf_puts(out, "<section aria-labelledby=\"h-frontier\"><h2 id=\"h-frontier\">Cost against lateness</h2>\n"
	              "<p>Lower is less late, further left is cheaper. Lines join the settings of one autoscaler.</p>\n"
	              "<figure class=\"wide\"><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	              "aria-labelledby=\"h-frontier\"><div class=\"frame\">");
	put_frontier(out, r, svg_chart_put);
	buf_puts(out, "</div></div></figure></section>\n");
}

// ---- the worst ten minutes: collecting ----

enum curve { CURVE_DEMAND, CURVE_ACTUAL, CURVE_ORDERED, CURVE_READY, CURVE_WAIT, CURVE_LIMIT, CURVE__COUNT };

struct closeup {
	const struct policy *policy;
	int64_t from_ms, to_ms;
	struct track tracks[CURVE__COUNT];
	struct buf decisions; // as list items
	size_t n_decisions;
};

static void collect_step(void *context, size_t row, enum backtest_kind kind, const struct loop_step *s)
{
	struct closeup *c = context;
	if (kind == BACKTEST_ACTUAL)
		track_add(&c->tracks[CURVE_ACTUAL], s->time_ms, s->replicas);
	if (kind != BACKTEST_POLICY)
		return;
	track_add(&c->tracks[CURVE_DEMAND], s->time_ms, s->demand);
	track_add(&c->tracks[CURVE_ORDERED], s->time_ms, s->replicas);
	track_add(&c->tracks[CURVE_READY], s->time_ms, s->ready >= 0 ? (double)s->ready : (double)NAN);
	track_add(&c->tracks[CURVE_WAIT], s->time_ms, isfinite(s->wait_s) ? s->wait_s : (double)NAN);
}

static void put_clock(struct buf *out, int64_t ms)
{
	char text[NUM_TEXT_BYTES]; // 2026-01-05T09:00:00Z
	num_format_rfc3339_ms(text, ms);
	buf_printf(out, "<time datetime=\"%s\">%.8s</time>", text, text + 11);
}

static void put_move(struct buf *out, int32_t before, int32_t after)
{
	if (before == after)
		buf_printf(out, "<span class=\"move\">%d</span>", after);
	else
		buf_printf(out, "<span class=\"move\">%d &#8594; <b>%d</b></span>", before, after);
}

static const char *const action_classes[ACTION__COUNT] = {
        [ACTION_NONE] = "soft", [ACTION_SCALE_UP] = "up", [ACTION_SCALE_DOWN] = "down", [ACTION_HOLD] = "held"};

static void put_decision(struct buf *out, const struct decided *decided)
{
	const struct decision *d = decided->decision;
	char sentence[RENDER_SENTENCE_BYTES];
	buf_printf(out, "<li><details%s><summary>", d->desired != d->current ? " open=\"\"" : "");
	put_clock(out, d->time_ms);
	put_move(out, d->current, d->desired);
	explain_message(decided, sentence);
	print_xml(out, "<span><span class=\"%s\">%s</span> %s</span></summary>\n<ol class=\"steps\">\n",
	          action_classes[d->action], reason_info(d->reason)->name, sentence);
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *t = decision_entry(d, i);
		explain_sentence(decided, t, sentence);
		buf_printf(out, "<li><span class=\"soft\">%s</span> ", stage_name(t->stage));
		put_move(out, t->before, t->after);
		print_xml(out, "<span>%s</span></li>\n", sentence);
	}
	buf_puts(out, "</ol></details></li>\n");
}

static void collect_decision(void *context, const struct decision *d)
{
	struct closeup *c = context;
	const struct decided decided = {.policy = c->policy, .decision = d};
	if (d->time_ms < c->from_ms || d->time_ms > c->to_ms)
		return;
	if (c->n_decisions++ < DECISIONS_MAX)
		put_decision(&c->decisions, &decided);
}

// ---- the worst ten minutes: charts ----

static void put_worst_charts(struct buf *out, const struct closeup *c, const struct backtest_report *r,
                             struct tracks *d)
{
	bool open_loop = r->backtest->config.open_loop;
	struct chart chart = {.id = "worst-replicas",
	                      .title = "Demand and replicas in the worst ten minutes",
	                      .description = "The figures are in the decisions below.",
	                      .x = {"UTC", CHART_TIME, false},
	                      .y = {"replicas", CHART_LINEAR, true},
	                      .series = d->series,
	                      .height = WORST_HEIGHT};
	d->n = 0;
	add_track(d, &c->tracks[CURVE_DEMAND], "demand", CHART_DEMAND, CHART_AREA);
	add_track(d, &c->tracks[CURVE_ACTUAL], "recorded replicas", CHART_ACTUAL, CHART_STEPS);
	add_track(d, &c->tracks[CURVE_READY], open_loop ? "ready replicas, recorded" : "ready replicas", CHART_WPA,
	          CHART_STEPS);
	add_track(d, &c->tracks[CURVE_ORDERED], open_loop ? "wanted replicas" : "ordered replicas", CHART_POLICY,
	          CHART_STEPS);
	chart.n_series = d->n;
	put_chart(out, &chart, false);
	if (open_loop)
		return;
	chart.id = "worst-wait";
	chart.title = "Wait in the worst ten minutes";
	chart.y.title = "wait, s";
	chart.height = WAIT_HEIGHT;
	d->n = 0;
	add_track(d, &c->tracks[CURVE_LIMIT], "the objective allows", CHART_OTHER, CHART_STEPS);
	add_track(d, &c->tracks[CURVE_WAIT], "wait of work that arrives", CHART_POLICY, CHART_AREA);
	chart.n_series = d->n;
	put_chart(out, &chart, false);
}

// ---- the worst ten minutes: the section ----

static void put_worst_section(struct buf *out, const struct closeup *c, const struct backtest_report *r,
                              enum history_worst why, struct tracks *d)
{
	char from[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(from, c->from_ms);
	buf_puts(
	        out,
	        "<section id=\"worst\" aria-labelledby=\"h-worst\"><h2 id=\"h-worst\">The worst ten minutes</h2>\n<p>");
	buf_printf(out, "%.10s, ", from);
	put_clock(out, c->from_ms);
	buf_puts(out, " to ");
	put_clock(out, c->to_ms);
	buf_puts(out, " UTC: ");
	if (why == HISTORY_LATEST)
		buf_puts(out, "no other ten minutes of this policy have as many late requests.");
	else if (r->backtest->config.open_loop)
		buf_puts(out, "no other ten minutes have a larger change of the replicas that this policy wants.");
	else
		buf_puts(out, "no request is late, and no other ten minutes have a larger change of replicas.");
	buf_puts(out, "</p>\n");
	put_worst_charts(out, c, r, d);
	buf_printf(out, "<p>%zu decision%s; each opens to its trace.</p>\n<ol class=\"decisions\" id=\"decisions\">\n",
	           c->n_decisions, c->n_decisions == 1 ? "" : "s");
	buf_put(out, buf_str(&c->decisions), c->decisions.len);
	buf_puts(out, "</ol>\n");
	if (c->n_decisions > DECISIONS_MAX)
		buf_printf(out, "<p>The first %d of %zu decisions are shown; --decisions FILE writes all.</p>\n",
		           DECISIONS_MAX, c->n_decisions);
	buf_puts(out, "</section>\n");
}

// Runs the policy of the backtest once more, which gives the same decisions, and appends the section. Returns 0, or -1
// and *e as backtest_run().
static int put_worst(struct buf *out, const struct backtest_report *r, const struct backtest_history *h, struct err *e)
{
	struct closeup *c = calloc(1, sizeof *c);
	struct backtest *again = calloc(1, sizeof *again);
	struct tracks *d = calloc(1, sizeof *d);
	int rc = c && again && d ? 0 : err_no_memory(e);
	if (rc == 0) {
		enum history_worst why = backtest_history_worst(h, &c->from_ms, &c->to_ms);
		struct backtest_config config = r->backtest->config;
		config.policy_only = true;
		config.on_progress = NULL;
		config.on_step = collect_step;
		config.on_decision = collect_decision;
		config.step_context = config.context = c;
		c->policy = r->policy;
		buf_init(&c->decisions, DECISIONS_SIZE);
		for (int i = 0; i < CURVE__COUNT; i++)
			track_init(&c->tracks[i], c->from_ms, c->to_ms);
		track_add(&c->tracks[CURVE_LIMIT], c->from_ms, config.wait_s);
		rc = backtest_run(&config, r->policy, r->backtest->recording, r->backtest->file, again, e);
		backtest_done(again);
		if (rc == 0)
			put_worst_section(out, c, r, why, d);
		out->failed = out->failed || c->decisions.failed;
		buf_done(&c->decisions);
	}
	free(d);
	free(again);
	free(c);
	return rc;
}

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
static void put_value(struct buf *out, double v, const char *unit)
{
	struct table_text shown = backtest_report_figure(v, unit);
	char exact[NUM_TEXT_BYTES];
	if (isfinite(v)) {
		num_format_f64(exact, round(v * 1e4) / 1e4);
		buf_printf(out, "<data value=\"%s\">%s</data>", exact, shown.text);
	} else {
		buf_puts(out, shown.text);
	}
}

// ---- heading ----

static void put_facts(struct buf *out, const struct backtest_report *r)
{
	const struct backtest *b = r->backtest;
	const struct recording *rec = b->recording;
	print_xml(out, "<dl class=\"facts\"><div><dt>Recording</dt><dd>%s</dd></div><div><dt>Period, UTC</dt><dd>",
	          b->file);
	put_time(out, rec->time_ms[0]);
	buf_puts(out, " to ");
	put_time(out, rec->time_ms[rec->n_rows - 1]);
	buf_printf(out, "</dd></div><div><dt>Length</dt><dd>%s",
	           backtest_report_duration(rec->time_ms[rec->n_rows - 1] - rec->time_ms[0]).text);
	if (!b->config.open_loop) {
		buf_printf(out,
		           "</dd></div><div><dt>Mean demand</dt><dd>%.2f replicas</dd></div><div><dt>Start-up</dt><dd>",
		           b->demand.mean);
		backtest_report_startups(r, out);
		buf_puts(out, "</dd></div><div><dt>Objective</dt><dd>");
		buf_printf(out, "at most %g%% wait longer than %s", 100 * b->config.late_ratio,
		           backtest_report_duration(llround(b->config.wait_s * 1000)).text);
	}
	buf_puts(out, "</dd></div></dl>");
}

static void put_header(struct buf *out, const struct backtest_report *r)
{
	print_xml(out,
	          "<header><p class=\"product\">gpuscale backtest</p><div class=\"line1\"><h1>%s/%s</h1><span "
	          "class=\"tag strong\">%s</span></div>\n",
	          r->policy->namespace_name, r->policy->name, backtest_report_mode(r->backtest));
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
	buf_printf(out,
	           "This policy <strong class=\"%s\">%s the objective</strong>: %.2f%% of the requests wait longer "
	           "than %s, and %g%% may. It uses %.2f GPU-hours.",
	           keeps_objective(b, policy) ? "good" : "bad", keeps_objective(b, policy) ? "keeps" : "misses", late,
	           backtest_report_duration(llround(b->config.wait_s * 1000)).text, 100 * b->config.late_ratio,
	           backtest_gpu_hours(r, policy));
	for (enum backtest_kind kind = BACKTEST_PEER; kind <= BACKTEST_FIXED; kind++) {
		struct buf beside = BUF(VERDICT_BYTES);
		bool cheaper = backtest_report_beside(r, kind, &beside);
		print_xml(out, cheaper ? " <strong class=\"bad\">%s%s</strong>" : " %s%s", buf_str(&beside),
		          beside.len > 0 ? "." : "");
		buf_done(&beside);
	}
}

static void put_number(struct buf *out, const char *name, double v, const char *unit, const double *actual)
{
	buf_printf(out, "<div><dt>%s</dt><dd>", name);
	put_value(out, v, unit);
	if (actual && isfinite(*actual)) {
		buf_puts(out, "<small>what ran: ");
		put_value(out, *actual, unit);
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
	put_value(out, v, unit);
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
	svg_chart_put_swatch(out, style_of(row), CHART_POINTS);
	print_xml(out, "%s</th><td class=\"kind\">%s</td>", row->name, backtest_kind_names[row->kind]);
	put_cell(out, backtest_gpu_hours(r, row), "");
	if (!isnan(r->price))
		put_cell(out, backtest_cost(r, row), "");
	if (!keeps_objective(r->backtest, row)) {
		buf_puts(out, "<td class=\"miss\"><span aria-hidden=\"true\">&#10005; </span>");
		put_value(out, score_late_percent(s), "%");
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
	              "aria-labelledby=\"h-results\"><table>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\" "
	              "class=\"kind\">Kind</th><th scope=\"col\">GPU-hours</th>");
	if (!isnan(r->price))
		buf_puts(out, "<th scope=\"col\">Cost</th>");
	buf_puts(out, "<th scope=\"col\">Late</th><th scope=\"col\">p95 wait</th><th scope=\"col\">Changes</th><th "
	              "scope=\"col\">At max</th>");
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
	struct buf notes = BUF(NOTES_BYTES);
	backtest_report_notes(r, &notes);
	out->failed = out->failed || notes.failed;
	buf_puts(out, "<section aria-labelledby=\"h-notes\"><h2 id=\"h-notes\">What limits the result</h2>\n<ul "
	              "class=\"notes\">");
	if (notes.len == 0)
		buf_puts(out, "<li>no gaps</li>");
	for (const char *line = buf_str(&notes), *end; (end = strchr(line, '\n')); line = end + 1)
		print_xml(out, "<li>%.*s</li>\n", (int)(end - line), line);
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
		buf_printf(out, "This policy asks for %.2f GPU-hours; what ran used %.2f.",
		           backtest_gpu_hours(r, backtest_policy_row(r->backtest)),
		           backtest_gpu_hours(r, &r->backtest->rows[0]));
	else
		put_closed_verdict(out, r);
	buf_puts(out, "</p>\n");
	put_numbers(out, r);
	if (put_over_time(out, r, h, e) < 0)
		return -1;
	put_table(out, r);
	if (!open_loop)
		put_frontier_section(out, r);
	if (put_worst(out, r, h, e) < 0)
		return -1;
	put_notes(out, r);
	buf_puts(out, "</main>\n<footer>gpuscale " GPUSCALE_VERSION "</footer>\n");
	return 0;
}

static int render(struct buf *out, const struct backtest_report *r, const struct backtest_history *h, struct err *e)
{
	struct buf page = BUF(PAGE_BYTES_MAX);
	const char *rest = html_page_until(&page, backtest_page_begin, "title");
	print_xml(&page, "Backtest of %s on %s", r->policy->name, r->backtest->file);
	rest = html_page_until(&page, rest, "toggles");
	for (int i = 0; i < CHART_STYLE__COUNT; i++) { // a checkbox that is not checked hides its curve
		const char *name = chart_style_name((enum chart_style)i);
		buf_printf(&page, "#time:has(#t-%s:not(:checked)) .plot .s-%s{display:none}\n", name, name);
	}
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
	struct buf page = BUF(PAGE_BYTES_MAX);
	bool is_stdout = strcmp(path, "-") == 0;
	int rc = render(&page, r, h, e);
	if (rc < 0) {
		buf_done(&page);
		return -1;
	}
	FILE *f = is_stdout ? stdout : fopen(path, "we");
	if (!f)
		rc = err_set(e, ERR_IO, "%s: cannot be opened for writing: %s", path, strerror(errno));
	else if (fwrite(buf_str(&page), 1, page.len, f) != page.len || fflush(f) != 0)
		rc = err_set(e, ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
	if (f && !is_stdout && fclose(f) != 0 && rc == 0)
		rc = err_set(e, ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
	buf_done(&page);
	return rc;
}
