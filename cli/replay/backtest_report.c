// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/backtest_report.h"

#include "base/csv_text.h"
#include "cli/term/cli.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/backtest_history.h"
#include "replay/engine.h"

#define P95         0.95
#define NOTES_BYTES (16 * 1024)

double backtest_gpu_hours(const struct backtest_report *r, const struct backtest_row *row)
{
	return row->score.replica_s / 3600 * r->gpus_per_replica;
}

double backtest_cost(const struct backtest_report *r, const struct backtest_row *row)
{
	return backtest_gpu_hours(r, row) * r->price;
}

static const char *mode_name(const struct backtest_report *r)
{
	return r->backtest->config.open_loop ? "open-loop" : "closed-loop";
}

struct table_text backtest_report_duration(int64_t ms)
{
	struct table_text t;
	num_format_about_ms(t.text, ms);
	return t;
}

static struct table_text show_time(int64_t ms)
{
	struct table_text t;
	num_format_rfc3339_ms(t.text, ms);
	return t;
}

void backtest_report_startups(const struct backtest_report *r, struct buf *out)
{
	const struct world_config *w = &r->backtest->config.world;
	buf_puts(out, backtest_report_duration(llround(w->startups_s[0] * 1000)).text);
	if (w->n_startups > 1)
		print_to(out, " and %zu more, drawn with seed %llu", w->n_startups - 1, (unsigned long long)w->seed);
}

// ---- verdict ----

static const struct backtest_row *cheapest(const struct backtest *b, enum backtest_kind kind, double late)
{
	const struct backtest_row *best = NULL;
	for (size_t i = 0; i < b->n_rows; i++) {
		const struct backtest_row *row = &b->rows[i];
		if (row->kind == kind && score_keeps(&row->score, late) &&
		    (!best || row->score.replica_s < best->score.replica_s))
			best = row;
	}
	return best;
}

bool backtest_report_beside(const struct backtest_report *r, enum backtest_kind kind, struct buf *out)
{
	const struct backtest *b = r->backtest;
	const struct score *policy = &backtest_policy_row(b)->score;
	double late = score_late_percent(policy);
	const struct backtest_row *row = cheapest(b, kind, late);
	if (!row || row->score.replica_s >= policy->replica_s)
		row = cheapest(b, kind, fmax(late, 100 * b->config.late_ratio));
	if (!row || isnan(late))
		return false;
	double more = row->score.replica_s - policy->replica_s;
	double unit = (isnan(r->price) ? 1 : r->price) * r->gpus_per_replica / 3600;
	print_to(out, "%s would have %s %.2f%s %s (%.1f%%), with %.2f%% of the requests late", row->name,
	         isnan(r->price) ? "used" : "cost", fabs(more) * unit, isnan(r->price) ? " GPU-hours" : "",
	         more < 0 ? "less" : "more", 100 * fabs(more) / policy->replica_s, score_late_percent(&row->score));
	return more < 0;
}

static void put_verdict(const struct backtest_report *r, struct buf *out)
{
	for (enum backtest_kind kind = BACKTEST_PEER; kind <= BACKTEST_FIXED; kind++) {
		size_t before = out->len;
		backtest_report_beside(r, kind, out);
		if (out->len > before)
			buf_putc(out, '\n');
	}
}

// ---- variants ----

static void put_variants(const struct backtest_report *r, struct buf *out)
{
	const struct variant_cost *c = r->variants;
	struct table t;
	if (!c)
		return;
	if (out->len < 2 || buf_str(out)[out->len - 2] != '\n') // no verdict precedes it
		buf_putc(out, '\n');
	table_init(&t, "VARIANT\tREPLICA-HOURS\tCOST");
	for (size_t i = 0; i < c->variants->n; i++) {
		double hours = c->replica_s[i] / 3600;
		table_put(&t, "%s\t%.2f\t%.2f", table_or_none(c->variants->items[i].name), hours,
		          hours * c->now[i].price);
	}
	table_finish(&t, out, 0, true);
	print_to(out, "\nthe variants would have cost %.2f %s, with %.0f replicas started\n", c->cost, r->currency,
	         c->switches);
	print_to(out,
	         "cheapest first, all alike, would have cost %.2f %s more (%.1f%%): each replica counts as the weakest "
	         "one, so that none is later\n",
	         c->alike_cost - c->cost, r->currency, 100 * (c->alike_cost / c->cost - 1));
	if (c->short_s > 0)
		print_to(out, "for %.2f hours, the variants together had fewer units than the policy requested\n",
		         c->short_s / 3600);
}

static void put_json_variants(const struct backtest_report *r, struct json_writer *w)
{
	const struct variant_cost *c = r->variants;
	if (!c)
		return;
	json_write_format(w, "variants:{currency:%s,cost:%g,alikeCost:%g,startedReplicas:%g,shortSeconds:%g,items:[",
	                  r->currency, c->cost, c->alike_cost, c->switches, c->short_s);
	for (size_t i = 0; i < c->variants->n; i++)
		json_write_format(w, "{name:%s,replicaHours:%g,cost:%g}", c->variants->items[i].name,
		                  c->replica_s[i] / 3600, c->replica_s[i] / 3600 * c->now[i].price);
	json_write_format(w, "]}");
}

// ---- notes ----

static void put_gaps(struct buf *out, const struct demand *d)
{
	size_t shown = d->n_gaps < DEMAND_GAPS_MAX ? d->n_gaps : DEMAND_GAPS_MAX;
	if (d->n_gaps == 0)
		return;
	print_to(out, "%zu gap%s without data, %s in all: not counted\n", d->n_gaps, d->n_gaps == 1 ? "" : "s",
	         backtest_report_duration((int64_t)d->n * d->step_ms - d->known_ms).text);
	for (size_t i = 0; i < shown; i++)
		print_to(out, "gap: %s to %s\n", show_time(d->gaps[i].from_ms).text, show_time(d->gaps[i].to_ms).text);
	if (shown < d->n_gaps)
		print_to(out, "gap: %zu more\n", d->n_gaps - shown);
}

// Open loop has no demand whose gaps could be listed.
static void put_row_gaps(const struct recording *r, struct buf *out)
{
	size_t n = 0;
	int64_t missing_ms = 0;
	for (size_t row = 0; row + 1 < r->n_rows; row++) {
		int64_t left = r->time_ms[row + 1] - r->time_ms[row] - recording_hold_ms(r, row);
		n += left > 0;
		missing_ms += left;
	}
	if (n > 0)
		print_to(out, "%zu gap%s between rows, %s in all: not counted\n", n, n == 1 ? "" : "s",
		         backtest_report_duration(missing_ms).text);
}

static void put_replicas(const struct backtest *b, struct buf *out)
{
	const struct world_config *w = &b->config.world;
	bool is_given = w->capacity_ratio > 0 && !b->ratio_is_learnt;
	if (b->ratio_is_learnt)
		print_to(out, "replicas as learnt: %.2f of the figure%s", w->capacity_ratio,
		         b->startup_is_learnt ? ", " : "\n");
	else if (b->startup_is_learnt)
		buf_puts(out, "replicas as learnt: ");
	if (b->startup_is_learnt)
		print_to(out, "%g s to start\n", w->startups_s[0]);
	if (is_given)
		print_to(out, "replicas as given: %g of the figure\n", w->capacity_ratio);
}

static void put_start(const struct backtest *b, struct buf *out)
{
	put_replicas(b, out);
	if (b->start == BACKTEST_START_NOT_ZERO)
		print_to(out,
		         "the recorded replicas start at 0, where the policy would hold until the target is scaled "
		         "up by hand: the simulation starts with %d, the mean demand rounded up (--replicas sets "
		         "another count)\n",
		         b->first);
	else if (b->start == BACKTEST_START_MEAN && b->has_replicas_column)
		print_to(out,
		         "no replicas are recorded at the start: the simulation starts with %d, the mean demand "
		         "rounded up (--replicas sets another count)\n",
		         b->first);
}

void backtest_report_print_start(const struct backtest *b)
{
	struct buf note = BUF(NOTES_BYTES);
	put_start(b, &note);
	print_notes(&note);
	buf_done(&note);
}

static void put_recorded(const struct backtest *b, struct buf *out)
{
	if (!b->has_replicas_column)
		buf_puts(out, "no column replicas: the replicas that ran are unknown\n");
	else if (b->recorded_share <= 0)
		buf_puts(out,
		         "column replicas has no value while there is demand: the replicas that ran are unknown\n");
	else
		buf_puts(out, "recorded replicas: their lateness is simulated, not recorded\n");
	if (b->recorded_share > 0 && b->recorded_share < 1)
		print_to(out,
		         "replicas are recorded for %s of %s: the row of the recorded replicas counts only this time, "
		         "all other rows count all of it\n",
		         backtest_report_duration(llround((double)b->demand.known_ms * b->recorded_share)).text,
		         backtest_report_duration(b->demand.known_ms).text);
	put_start(b, out);
}

static void put_engine_notes(const struct backtest *b, struct buf *out)
{
	const struct engine_model *m = b->config.engine;
	if (!m)
		return;
	print_to(out,
	         "engines: a wait lasts until the first token; a full replica does %.4g tokens a second, and the "
	         "policy divides by %.4g\n",
	         m->max_tokens_s, m->figure);
	for (size_t i = 0; i < b->n_rows; i++)
		if (b->rows[i].score.waits[SCORE_WAIT_BUCKETS - 1] > 0)
			print_to(out, "%s: %.0f requests are refused and late, since %d wait\n", b->rows[i].name,
			         b->rows[i].score.waits[SCORE_WAIT_BUCKETS - 1], ENGINE_WAITING_MAX);
}

static void put_closed_notes(const struct backtest *b, struct buf *out)
{
	put_engine_notes(b, out);
	put_recorded(b, out);
	if (b->demand.interpolated)
		print_to(out, "demand follows straight lines between rows that are %s apart\n",
		         backtest_report_duration(b->recording->step_ms).text);
	put_gaps(out, &b->demand);
	if (b->demand.total <= 0)
		buf_puts(out, "the demand is 0 all the time: nothing can be late\n");
	if (b->n_recorded_signals > 0)
		print_to(out, "%zu %s as recorded and %s not react to the replicas\n", b->n_recorded_signals,
		         b->n_recorded_signals == 1 ? "signal of the policy is replayed"
		                                    : "signals of the policy are replayed",
		         b->n_recorded_signals == 1 ? "does" : "do");
	if (b->config.sweep_threads > 0)
		return;
	bool fixed_keeps = b->config.n_fixed > 0 || b->config.policy_only;
	for (size_t i = 0; i < b->n_rows; i++)
		if (b->rows[i].kind == BACKTEST_FIXED &&
		    !(score_late_percent(&b->rows[i].score) > 100 * b->config.late_ratio))
			fixed_keeps = true;
	if (!fixed_keeps)
		buf_puts(out, "no fixed count up to the policy's maxReplicas keeps the objective\n");
	if (b->rows[b->n_rows - 1].kind != BACKTEST_BOUND)
		return;
	if (b->bound_name)
		print_to(out, "the clairvoyant row repeats \"%s\": the search found no better schedule\n",
		         b->bound_name);
	if (!b->bound_reached)
		buf_puts(out, "the objective cannot be kept: the clairvoyant row is the cheapest of the least late "
		              "schedules\n");
}

void backtest_report_notes(const struct backtest_report *r, struct buf *out)
{
	const struct backtest *b = r->backtest;
	buf_puts(out, r->input_notes);
	if (!b->config.open_loop) {
		put_closed_notes(b, out);
		return;
	}
	buf_puts(out, "open loop: the decisions on recorded data; what would have followed is unknown\n");
	put_row_gaps(b->recording, out);
	if (b->n_held > 0)
		print_to(out, "%zu of %zu rows have no replicas: not counted\n", b->n_held, b->recording->n_rows);
}

// ---- table ----

struct table_text backtest_report_figure(double v, const char *unit)
{
	if (isinf(v))
		return (struct table_text){"never served"};
	return table_amount(v, unit);
}

const char *backtest_report_mode(const struct backtest *b)
{
	return b->config.open_loop ? "Open loop (decisions on recorded data)"
	       : b->config.engine  ? "Closed loop (simulated engines)"
	                           : "Closed loop (simulated)";
}

static void put_title(const struct backtest_report *r, struct buf *out)
{
	const struct backtest *b = r->backtest;
	const struct recording *rec = b->recording;
	print_to(out, "%s: %s, %s", backtest_report_mode(b), show_time(rec->time_ms[0]).text,
	         backtest_report_duration(rec->time_ms[rec->n_rows - 1] - rec->time_ms[0]).text);
	if (!b->config.open_loop) {
		print_to(out, ", mean demand %.2f, start-up ", b->demand.mean);
		backtest_report_startups(r, out);
		print_to(out, ", objective: at most %g%% wait longer than %s", 100 * b->config.late_ratio,
		         backtest_report_duration(llround(b->config.wait_s * 1000)).text);
	}
	buf_puts(out, "\n\n");
}

void backtest_report_table(const struct backtest_report *r, bool wide, struct buf *out)
{
	const struct backtest *b = r->backtest;
	struct table t;
	size_t before;
	wide = wide || b->config.sweep_threads > 0;
	put_title(r, out);
	table_init_wide(&t, "NAME\tKIND\tGPU-HOURS\tCOST\tLATE\tP95-WAIT\tCHANGES\tAT-MAX\t+P95-ITL\t+CAPACITY",
	                b->config.engine, NULL);
	t.columns = print_columns(); // the figures of engines are no reason not to wrap
	for (size_t i = 0; i < b->n_rows; i++) {
		const struct backtest_row *row = &b->rows[i];
		const struct score *s = &row->score;
		if (!wide && row->kind == BACKTEST_PEER && !row->is_best)
			continue;
		table_put(&t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s", row->name, backtest_kind_names[row->kind],
		          backtest_report_figure(backtest_gpu_hours(r, row), "").text,
		          backtest_report_figure(backtest_cost(r, row), "").text,
		          backtest_report_figure(score_late_percent(s), "%").text,
		          backtest_report_figure(score_wait_quantile_s(s, P95), "s").text, s->changes,
		          backtest_report_figure(score_at_max_percent(s), "%").text,
		          backtest_report_figure(1000 * score_token_gap_quantile_s(s, P95), "ms").text,
		          backtest_report_figure(score_capacity(s), "").text);
	}
	table_finish(&t, out, 0, true);
	buf_putc(out, '\n');
	before = out->len;
	put_verdict(r, out);
	put_variants(r, out);
	backtest_report_notes(r, out);
	if (!b->config.open_loop && !b->config.policy_only && !wide)
		buf_puts(out, "peers: each at the setting that was best in hindsight; -o wide shows all settings\n");
	if (out->len == before)
		buf_puts(out, "no gaps\n");
}

// ---- JSON and CSV ----

// Four decimals are more than the model is worth.
static double figure(double v)
{
	return isfinite(v) ? round(v * 1e4) / 1e4 : v;
}

static void put_json_row(const struct backtest_report *r, const struct backtest_row *row, struct json_writer *w)
{
	const struct score *s = &row->score;
	json_write_format(w, "{name:%s,kind:%s", row->name, backtest_kind_names[row->kind]);
	if (row->kind == BACKTEST_PEER && r->backtest->config.sweep_threads == 0)
		json_write_member_bool(w, "best", row->is_best);
	json_write_format(w, "gpuHours:%g,cost:%g,latePercent:%g", figure(backtest_gpu_hours(r, row)),
	                  figure(backtest_cost(r, row)), figure(score_late_percent(s)));
	json_write_format(w, "p95WaitSeconds:%g,directionChanges:%d,atMaxPercent:%g",
	                  figure(score_wait_quantile_s(s, P95)), s->changes, figure(score_at_max_percent(s)));
	if (r->backtest->config.engine)
		json_write_format(w, "itlP50Seconds:%g,itlP95Seconds:%g,itlP99Seconds:%g,capacity:%g",
		                  figure(score_token_gap_quantile_s(s, 0.5)),
		                  figure(score_token_gap_quantile_s(s, P95)),
		                  figure(score_token_gap_quantile_s(s, 0.99)), figure(score_capacity(s)));
	json_write_object_end(w);
}

static void put_json_lines(const struct backtest_report *r, const char *key,
                           void (*put)(const struct backtest_report *r, struct buf *out), struct json_writer *w)
{
	struct buf notes = BUF(NOTES_BYTES);
	put(r, &notes);
	json_write_member_array(w, key);
	for (const char *p = buf_str(&notes); *p;) {
		size_t len = strcspn(p, "\n");
		json_write_strn(w, p, len);
		p += len + (p[len] == '\n');
	}
	json_write_array_end(w);
	buf_done(&notes);
}

static void put_json_loop(const struct backtest *b, struct json_writer *w)
{
	const struct world_config *c = &b->config.world;
	json_write_format(w, "meanDemand:%g,startupSeconds:[", figure(b->demand.mean));
	for (size_t i = 0; i < c->n_startups; i++)
		json_write_f64(w, c->startups_s[i]);
	json_write_array_end(w);
	if (c->capacity_ratio > 0)
		json_write_member_f64(w, "capacityRatio", figure(c->capacity_ratio));
	if (b->startup_is_learnt || b->ratio_is_learnt)
		json_write_member_bool(w, "learnt", true);
	json_write_format(w, "objective:{latePercent:%g,waitSeconds:%g}", figure(100 * b->config.late_ratio),
	                  figure(b->config.wait_s));
	if (b->config.engine)
		json_write_format(w, "engine:{tokensPerSecond:%g,maxTokensPerSecond:%g,maxRequestsPerSecond:%g}",
		                  figure(b->config.engine->figure), figure(b->config.engine->max_tokens_s),
		                  figure(b->config.engine->max_requests_s));
	json_write_member_array(w, "gaps");
	for (size_t i = 0; i < b->demand.n_gaps && i < DEMAND_GAPS_MAX; i++)
		json_write_format(w, "{from:%jd,to:%jd}", b->demand.gaps[i].from_ms, b->demand.gaps[i].to_ms);
	json_write_array_end(w);
}

void backtest_report_json(const struct backtest_report *r, struct buf *out)
{
	const struct backtest *b = r->backtest;
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{mode:%s,file:%s,namespace:%s,policy:%s,from:%jd,to:%jd", mode_name(r), b->file,
	                  r->policy->namespace_name, r->policy->name, b->recording->time_ms[0],
	                  b->recording->time_ms[b->recording->n_rows - 1]);
	if (!b->config.open_loop)
		put_json_loop(b, &w);
	put_json_lines(r, "verdict", put_verdict, &w);
	put_json_lines(r, "notes", backtest_report_notes, &w);
	json_write_member_array(&w, "rows");
	for (size_t i = 0; i < b->n_rows; i++)
		put_json_row(r, &b->rows[i], &w);
	json_write_array_end(&w);
	put_json_variants(r, &w);
	json_write_object_end(&w);
}

void backtest_report_csv(const struct backtest_report *r, struct buf *out)
{
	const struct backtest *b = r->backtest;
	buf_puts(out, "mode,kind,name,best,gpu_hours,cost,late_percent,p95_wait_s,direction_changes,at_max_percent");
	buf_puts(out, b->config.engine ? ",itl_p50_s,itl_p95_s,itl_p99_s,capacity\n" : "\n");
	for (size_t i = 0; i < b->n_rows; i++) {
		const struct backtest_row *row = &b->rows[i];
		print_to(out, "%s,%s,", mode_name(r), backtest_kind_names[row->kind]);
		csv_put_text(out, row->name);
		print_to(out, ",%d", row->is_best);
		csv_put_number(out, backtest_gpu_hours(r, row));
		csv_put_number(out, backtest_cost(r, row));
		csv_put_number(out, score_late_percent(&row->score));
		csv_put_number(out, score_wait_quantile_s(&row->score, P95));
		print_to(out, ",%d", row->score.changes);
		csv_put_number(out, score_at_max_percent(&row->score));
		if (b->config.engine) {
			csv_put_number(out, score_token_gap_quantile_s(&row->score, 0.5));
			csv_put_number(out, score_token_gap_quantile_s(&row->score, P95));
			csv_put_number(out, score_token_gap_quantile_s(&row->score, 0.99));
			csv_put_number(out, score_capacity(&row->score));
		}
		buf_putc(out, '\n');
	}
}
