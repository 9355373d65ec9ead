// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/backtest_closeup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/xml_text.h"
#include "cli/replay/backtest_charts.h"
#include "cli/replay/backtest_report.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/engine/reason.h"
#include "policies/explain/explain.h"
#include "replay/backtest.h"
#include "replay/backtest_history.h"
#include "replay/closed_loop.h"

#define DECISIONS_MAX  1200
#define HEIGHT         220
#define WAIT_HEIGHT    120
#define DECISIONS_SIZE ((size_t)8 * 1024 * 1024)

enum curve { CURVE_DEMAND, CURVE_ACTUAL, CURVE_ORDERED, CURVE_READY, CURVE_WAIT, CURVE_LIMIT, CURVE__COUNT };

struct closeup {
	const struct policy *policy;
	int64_t from_ms, to_ms;
	struct track tracks[CURVE__COUNT];
	struct buf decisions; // as list items
	size_t n_decisions;
};

// ---- collecting ----

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

static const char *action_class(const struct decision *d)
{
	switch (d->action) {
	case ACTION_SCALE_UP:
		return "up";
	case ACTION_SCALE_DOWN:
		return "down";
	case ACTION_HOLD:
		return "held";
	case ACTION_NONE:
	case ACTION__COUNT:
		break;
	}
	return "soft";
}

static void put_decision(struct buf *out, const struct decided *decided)
{
	const struct decision *d = decided->decision;
	char sentence[RENDER_SENTENCE_BYTES];
	buf_printf(out, "<li><details%s><summary>", d->desired != d->current ? " open=\"\"" : "");
	put_clock(out, d->time_ms);
	put_move(out, d->current, d->desired);
	explain_message(decided, sentence);
	buf_printf(out, "<span><span class=\"%s\">%s</span> ", action_class(d), reason_info(d->reason)->name);
	xml_put_text(out, sentence);
	buf_puts(out, "</span></summary>\n<ol class=\"steps\">\n");
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *t = decision_entry(d, i);
		explain_sentence(decided, t, sentence);
		buf_printf(out, "<li><span class=\"soft\">%s</span> ", stage_name(t->stage));
		put_move(out, t->before, t->after);
		buf_puts(out, "<span>");
		xml_put_text(out, sentence);
		buf_puts(out, "</span></li>\n");
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

// ---- charts ----

static void put_charts(struct buf *out, const struct closeup *c, const struct backtest_report *r,
                       struct chart_tracks *d)
{
	bool open_loop = r->backtest->config.open_loop;
	struct chart chart = {.id = "worst-replicas",
	                      .title = "Demand and replicas in the worst ten minutes",
	                      .description = "The figures are in the decisions below.",
	                      .x = {"UTC", CHART_TIME, false},
	                      .y = {"replicas", CHART_LINEAR, true},
	                      .series = d->series,
	                      .height = HEIGHT};
	d->n = 0;
	backtest_charts_add(d, &c->tracks[CURVE_DEMAND], "demand", CHART_DEMAND, CHART_AREA);
	backtest_charts_add(d, &c->tracks[CURVE_ACTUAL], "recorded replicas", CHART_ACTUAL, CHART_STEPS);
	backtest_charts_add(d, &c->tracks[CURVE_READY], open_loop ? "ready replicas, recorded" : "ready replicas",
	                    CHART_WPA, CHART_STEPS);
	backtest_charts_add(d, &c->tracks[CURVE_ORDERED], open_loop ? "wanted replicas" : "ordered replicas",
	                    CHART_POLICY, CHART_STEPS);
	chart.n_series = d->n;
	backtest_charts_put_figure(out, &chart, false);
	if (open_loop)
		return;
	chart.id = "worst-wait";
	chart.title = "Wait in the worst ten minutes";
	chart.y.title = "wait, s";
	chart.height = WAIT_HEIGHT;
	d->n = 0;
	backtest_charts_add(d, &c->tracks[CURVE_LIMIT], "the objective allows", CHART_OTHER, CHART_STEPS);
	backtest_charts_add(d, &c->tracks[CURVE_WAIT], "wait of work that arrives", CHART_POLICY, CHART_AREA);
	chart.n_series = d->n;
	backtest_charts_put_figure(out, &chart, false);
}

// ---- the section ----

static void put_section(struct buf *out, const struct closeup *c, const struct backtest_report *r,
                        enum history_worst why, struct chart_tracks *d)
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
	put_charts(out, c, r, d);
	buf_printf(out, "<p>%zu decision%s; each opens to its trace.</p>\n<ol class=\"decisions\" id=\"decisions\">\n",
	           c->n_decisions, c->n_decisions == 1 ? "" : "s");
	buf_put(out, buf_str(&c->decisions), c->decisions.len);
	buf_puts(out, "</ol>\n");
	if (c->n_decisions > DECISIONS_MAX)
		buf_printf(out, "<p>The first %d of %zu decisions are shown; --decisions FILE writes all.</p>\n",
		           DECISIONS_MAX, c->n_decisions);
	buf_puts(out, "</section>\n");
}

int backtest_closeup_put(struct buf *out, const struct backtest_report *r, const struct backtest_history *h,
                         struct err *e)
{
	struct closeup *c = calloc(1, sizeof *c);
	struct backtest *again = calloc(1, sizeof *again);
	struct chart_tracks *d = calloc(1, sizeof *d);
	int rc = c && again && d ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
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
			put_section(out, c, r, why, d);
		out->failed = out->failed || c->decisions.failed;
		buf_done(&c->decisions);
	}
	free(d);
	free(again);
	free(c);
	return rc;
}
