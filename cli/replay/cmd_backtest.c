// SPDX-License-Identifier: Apache-2.0
// gpuscale backtest -f POLICY --data FILE: what a policy would have decided, cost and kept waiting.
#include "base/alloc.h"
#include "cli/replay/backtest_page.h"
#include "cli/replay/backtest_report.h"
#include "cli/replay/replay_input.h"
#include "cli/term/cli.h"
#include "policies/engine/policy.h"
#include "policies/load/policy_ref.h"
#include "replay/backtest_history.h"
#include "replay/engine_model.h"
#include "replay/parallel.h"

#define DECISION_LINE_MAX (1024 * 1024)
#define STARTUP_S         120 // as struct backtest_config assumes
#define ENGINE_ARENA_MAX  ((size_t)64 * 1024 * 1024)

struct backtest_args {
	struct replay_args replay;
	const char *decisions, *html, *engine;
	bool closed_loop, sweep;
	double price, gpus_per_replica;
	struct price_option price_option;
	enum output_format output;
	struct fail_options fail_on;
};

// ---- flags ----

static void set_fixed(void *config, char *arg, struct argp_state *state)
{
	struct backtest_config *c = config;
	const char *list = arg;
	char item[OPTION_ITEM_BYTES];
	c->n_fixed = 0;
	while (option_next_item("--fixed", &list, item, state)) {
		if (c->n_fixed == BACKTEST_FIXED_MAX)
			print_usage(state, "--fixed: more than %d counts", BACKTEST_FIXED_MAX);
		c->fixed[c->n_fixed++] = (int32_t)option_i64("--fixed", item, 0, WORLD_REPLICAS_MAX, state);
	}
}

enum { FAIL_LATE, FAIL_P95_WAIT, FAIL_GPU_HOURS, FAIL_COST, FAIL_CHANGES, FAIL_AT_MAX, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {
        {"late", FAIL_PERCENT}, {"p95-wait", FAIL_SECONDS}, {"gpu-hours", FAIL_NUMBER},
        {"cost", FAIL_NUMBER},  {"changes", FAIL_NUMBER},   {"at-max", FAIL_PERCENT},
};
_Static_assert(sizeof fail_metrics / sizeof *fail_metrics == FAIL_METRIC__COUNT, "one row per metric");

static void check_args(void *options, struct argp_state *state)
{
	struct backtest_args *a = options;
	struct backtest_config *c = &a->replay.config;
	bool open_loop = c->open_loop;
	c->sweep_threads = a->sweep ? parallel_cores() : 0;
	a->price = price_option_get(&a->price_option, a->price, state);
	if (a->engine && open_loop)
		print_usage(state, "--engine and --open-loop cannot be used together");
	if (c->world.capacity_ratio > 0 && (a->engine || open_loop))
		print_usage(state, "--capacity-ratio cannot be used with --engine or --open-loop");
	if (a->closed_loop && open_loop)
		print_usage(state, "--closed-loop and --open-loop cannot be used together");
	if (a->sweep &&
	    (open_loop || a->engine || c->n_fixed || c->policy_only || a->decisions || a->html || a->fail_on.n))
		print_usage(state, "--sweep cannot be used with --open-loop, --engine, --fixed, --policy-only, "
		                   "--decisions, --html or --fail-on");
	if (open_loop && a->output == OUTPUT_SVG)
		print_usage(state, "-o svg: lateness is unknown in open loop");
	for (size_t i = 0; i < a->fail_on.n; i++) {
		const struct fail_on *f = &a->fail_on.items[i];
		if (f->metric == FAIL_COST && isnan(a->price))
			print_usage(state, "--fail-on '%s' needs --price or --gpu-model", f->text);
		if (open_loop && (f->metric == FAIL_LATE || f->metric == FAIL_P95_WAIT))
			print_usage(state, "--fail-on '%s': waits are unknown in open loop", f->text);
	}
}

// clang-format off
#define FLAGS_OF struct backtest_args
static const struct flag_set command = {
	.args = "",
	.about = "Show what a policy would have decided on past demand, what it would have cost, and how long requests would have "
	         "waited, beside the recorded replicas, other autoscalers, fixed counts, and the best schedule that knows the "
	         "future."
	         "\vThe past comes from Prometheus, or from a file with a column time (seconds, or 2026-01-05T09:00:00Z), a "
	         "column demand (arriving work, in replicas), and if possible columns replicas and requests. In closed loop, the "
	         "signals of the policy named demand, backlog and utilization, and those of its objective, are simulated; every "
	         "other signal is the column with its name.\n\nExit status: 0, 1 on failure, 2 for wrong usage, 3 when --fail-on "
	         "is met.",
	.surplus = "; the policy is named by -f, the recording by --data",
	.check = check_args,
	.flags = (const struct flag[]){
		FLAG_HEADING(2, "Simulation:"),
		FLAG_SWITCH(2, 0, "closed-loop", closed_loop, "simulate the effects of the decisions on recorded demand (default)"),
		FLAG_SWITCH(2, 0, "open-loop", replay.config.open_loop, "decide on the recorded signals and replicas; the decisions have no effect"),
		FLAG_TEXT(2, 0, "engine", "FILE", engine, "simulate replicas as inference engines with continuous batching (EngineModel)"),
		FLAG_CALL(2, 0, "fixed", "N[,N..]", replay.config, set_fixed, "fixed counts to compare with (the smallest that keeps the objective, and the smallest that is no later than the policy)"),
		FLAG_SWITCH(2, 0, "policy-only", replay.config.policy_only, "omit peers, fixed counts and the clairvoyant bound"),
		FLAG_SWITCH(2, 0, "sweep", sweep, "show what each lateness costs: the policy at objectives from 0.1 % to 20 %, or with its targets scaled when it has no objective"),
		FLAG_HEADING(3, "Output:"),
		FLAG_OUTPUT(3, output, OUTPUTS_REPORT | OUTPUT_SET(CSV) | OUTPUT_SET(SVG), "table, wide, json, yaml, csv or svg (default table)"),
		FLAG_TEXT(3, 0, "decisions", "FILE", decisions, "write every decision of the policy to FILE, one line of JSON each, as step prints them"),
		FLAG_TEXT(3, 0, "html", "FILE", html, "write a page with charts to FILE; - is standard output, instead of the table"),
		FLAG_PRICE(3, price),
		FLAG_GPU_MODEL(3, price_option.model),
		FLAG_PRICES(3, price_option.prices),
		FLAG_GPUS(3, gpus_per_replica),
		FLAG_FAIL_ON(3, fail_on, "'late > 5%'; the metrics are late, p95-wait, gpu-hours, cost, changes, at-max"),
		FLAG_INCLUDE(&replay_input_flags, replay, 0),
		FLAG_INCLUDE(&replay_world_flags, replay, 0),
		FLAG_END}};
// clang-format on

// ---- running ----

static int check_limits(const struct backtest_args *a, const struct backtest_report *r)
{
	const struct backtest_row *row = backtest_policy_row(r->backtest);
	const double values[FAIL_METRIC__COUNT] = {[FAIL_LATE] = score_late_percent(&row->score),
	                                           [FAIL_P95_WAIT] = score_wait_quantile_s(&row->score, 0.95),
	                                           [FAIL_GPU_HOURS] = backtest_gpu_hours(r, row),
	                                           [FAIL_COST] = backtest_cost(r, row),
	                                           [FAIL_CHANGES] = row->score.changes,
	                                           [FAIL_AT_MAX] = score_at_max_percent(&row->score)};
	char who[128];
	snprintf(who, sizeof who, "gpuscale backtest: %s", row->name);
	return fail_on_check(&a->fail_on, who, values);
}

static int print(const struct backtest_args *a, const struct backtest_report *r)
{
	struct buf out = BUF(OUTPUT_MAX);
	if (a->html && strcmp(a->html, "-") == 0) // standard output has the page
		return 0;
	if (a->output == OUTPUT_CSV || a->output == OUTPUT_SVG) { // which has no place for them
		backtest_report_notes(r, &out);
		print_notes(&out);
		buf_reset(&out);
	}
	if (output_is_document(a->output))
		backtest_report_json(r, &out);
	else if (a->output == OUTPUT_CSV)
		backtest_report_csv(r, &out);
	else if (a->output == OUTPUT_SVG)
		backtest_page_frontier(&out, r);
	else
		backtest_report_table(r, a->output == OUTPUT_WIDE, &out);
	return output_print("gpuscale backtest", &out, a->output);
}

// What is written and added up while the backtest runs.
struct collector {
	FILE *decisions; // one line of JSON per decision, as `gpuscale step` prints them; NULL: not written
	const struct policy *policy;
	struct scale_target target;
	struct buf line;
	bool failed;                      // to write the decisions
	struct backtest_history *history; // NULL: without a page
	struct variant_cost *variants;    // NULL: the policy has none
};

static void log_decision(void *context, const struct decision *decision)
{
	struct collector *c = context;
	static const char *const no_details[POLICY_SIGNALS_MAX + 1];
	const struct decided decided = {
	        .policy = c->policy, .target = &c->target, .decision = decision, .details = no_details};
	buf_reset(&c->line);
	struct json_writer w = JSON_WRITER(&c->line, 0);
	explain_decision_json(&w, &decided);
	buf_putc(&c->line, '\n');
	if (c->line.failed || fwrite(buf_str(&c->line), 1, c->line.len, c->decisions) != c->line.len)
		c->failed = true;
}

static void on_step(void *context, size_t row, enum backtest_kind kind, const struct loop_step *step)
{
	const struct collector *c = context;
	if (c->history)
		backtest_history_add(c->history, row, kind, step);
	if (c->variants && kind == BACKTEST_POLICY)
		variant_cost_add(c->variants, step);
}

static void show_progress(void *progress, size_t done, size_t total, const char *name)
{
	progress_show(progress, done, total, name);
}

// Prepares the cost of the variants of the policy, with the prices of `book`.
static struct variant_cost *variants_new(const struct backtest_args *a, const struct policy *policy,
                                         const struct price_book *book)
{
	const struct binding *b = policy_ref_of(policy)->bindings;
	const struct world_config *w = &a->replay.config.world;
	double prices[VARIANTS_MAX];
	if (!b->variants)
		return NULL;
	struct variant_cost *c = must_alloc(malloc(sizeof *c));
	double startup_s = w->n_startups > 0 ? w->startups_s[0] : STARTUP_S;
	if (w->n_startups == 0 && policy->startup.given)
		startup_s = (double)policy->startup.start_ms / 1000;
	variant_prices(b->variants, book, prices);
	variant_cost_init(c, b->variants, prices, (int64_t)(startup_s * 1000));
	return c;
}

static int backtest(const struct backtest_args *a, const struct replay_input *in, const struct engine_model *engine,
                    const struct price_book *book, struct err *e)
{
	struct collector c = {.policy = in->policy, .target = policy_ref_of(in->policy)->target};
	struct backtest_config config = a->replay.config;
	struct progress progress = {.what = "running"};
	config.engine = engine;
	config.on_progress = show_progress;
	config.progress = &progress;
	config.context = config.step_context = &c;
	if (a->replay.target) // of a fleet
		c.target.name = a->replay.target;
	c.decisions = a->decisions ? fopen(a->decisions, "we") : NULL;
	if (a->decisions && !c.decisions)
		return err_set(e, ERR_IO, "%s: cannot be opened for writing: %s", a->decisions, strerror(errno));
	buf_init(&c.line, DECISION_LINE_MAX);
	struct backtest *b = malloc(sizeof *b);
	c.history = a->html ? malloc(sizeof *c.history) : NULL;
	c.variants = variants_new(a, in->policy, book);
	if (c.history)
		backtest_history_init(c.history, &in->recording);
	config.on_decision = c.decisions ? log_decision : NULL;
	config.on_step = c.history || c.variants ? on_step : NULL;
	int rc = b && (c.history || !a->html) ? backtest_run(&config, in->policy, &in->recording, in->file, b, e)
	                                      : err_no_memory(e);
	int code = -1;
	progress_clear(&progress);
	buf_done(&c.line);
	if (c.decisions && (fclose(c.decisions) != 0 || c.failed) && rc == 0)
		rc = err_set(e, ERR_IO, "%s: cannot be written", a->decisions);
	if (rc == 0) {
		const struct backtest_report r = {
		        b, in->policy, a->price, a->gpus_per_replica, buf_str(&in->notes), c.variants, book->currency};
		if (!c.history || backtest_page_write(a->html, &r, c.history, e) == 0)
			code = print(a, &r) < 0 ? EXIT_FAILED : check_limits(a, &r);
	}
	free(c.history);
	free(c.variants);
	if (b)
		backtest_done(b);
	free(b);
	return code;
}

// The same with the engines of --engine. Returns the exit code, or -1 and *e.
static int backtest_engine(const struct backtest_args *a, const struct replay_input *in, const struct price_book *book,
                           struct err *e)
{
	struct engine_model model;
	struct arena arena = ARENA(ENGINE_ARENA_MAX);
	struct buf report = BUF(OUTPUT_MAX);
	if (!a->engine)
		return backtest(a, in, NULL, book, e);
	int code = engine_model_read(a->engine, &arena, &model, &report, e);
	print_notes(&report);
	buf_done(&report);
	if (code == 0)
		code = backtest(a, in, &model, book, e);
	arena_done(&arena);
	return code;
}

int cmd_backtest(int argc, char **argv)
{
	struct backtest_args args = {.price = NAN, .gpus_per_replica = 1, .fail_on = FAIL_OPTIONS(fail_metrics)};
	replay_args_init(&args.replay);
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct replay_input in;
	int code = replay_input_read(&args.replay, "backtest", &in);
	struct price_book book = {0}; // of the variants
	struct arena arena = ARENA(PRICE_OPTION_ARENA_MAX);
	if (code == EXIT_OK && policy_ref_of(in.policy)->variants.n > 0 &&
	    price_option_read(args.price_option.prices, &arena, &book, "gpuscale backtest") < 0)
		code = EXIT_FAILED;
	if (code == EXIT_OK && (code = backtest_engine(&args, &in, &book, &e)) < 0) {
		print_notes(&in.notes);
		print_error("gpuscale backtest: %s\n", e.msg);
		code = EXIT_FAILED;
	}
	replay_input_done(&in);
	arena_done(&arena);
	return code;
}
