// SPDX-License-Identifier: Apache-2.0
// gpuscale tune -f POLICY --prometheus URL|--data FILE: better numbers for a policy.
#include <limits.h>

#include "cli/replay/backtest_report.h"
#include "cli/replay/replay_input.h"
#include "cli/term/cli.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/parallel.h"
#include "replay/tune.h"
#include "replay/tune_space.h"

#define CANDIDATES_DEFAULT 500
#define FRONT_SHOWN        12 // points of the front in the narrow table

enum { FAIL_CHANGES, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {{"changes", FAIL_COUNT}};

struct tune_args {
	struct replay_args replay;
	struct tune_config config;
	const char *patch;
	const char *tests; // NULL: FILE_test.yaml beside the policy FILE.yaml
	struct fail_options fail_on;
	double price, gpus_per_replica;
	enum output_format output;
};

// clang-format off
#define FLAGS_OF struct tune_args
static const struct flag_set command = {
	.args = "",
	.about = "Find better numbers for a policy: random candidates are simulated on recorded demand, chosen on its first half, "
	         "and measured on its second half. The cheapest candidate that keeps the objective in the first half is "
	         "recommended, unless its gain is smaller than the gap between the halves, it is later than the objective in the "
	         "second half, a peer costs no more and is no later there, it fails a unit test that the present policy passes, "
	         "or the recording is too short."
	         "\vThe recording has the same format as for gpuscale backtest. --objective defaults to that of the policy, or "
	         "to 1%,10s. --seed also determines the candidates; equal seeds give equal results.\n\nExit status: 0, 1 on "
	         "failure, 2 for wrong usage, 3 when --fail-on is met.",
	.surplus = "; the policy is named by -f, the recording by --data",
	.flags = (const struct flag[]){
		FLAG_HEADING(2, "Search and simulation:"),
		FLAG_I64(2, 0, "candidates", "N", config.candidates, 2, TUNE_CANDIDATES_MAX, "number of policies to try (500)"),
		FLAG_I32(2, 0, "threads", "N", config.threads, 1, PARALLEL_THREADS_MAX, "threads (one per core); the result does not depend on it"),
		FLAG_TEXT(2, 0, "tests", "FILE", tests, "unit tests that the recommended numbers must pass (POLICY_test.yaml beside the policy file)"),
		FLAG_HEADING(3, "Output:"),
		FLAG_OUTPUT(3, output, OUTPUTS_REPORT, OUTPUTS_REPORT_HELP),
		FLAG_TEXT(3, 0, "patch", "FILE", patch, "write the policy file with the recommended numbers to FILE"),
		FLAG_FAIL_ON(3, fail_on, "changes, when a change is recommended"),
		FLAG_PRICE(3, price),
		FLAG_GPUS(3, gpus_per_replica),
		FLAG_INCLUDE(&replay_input_flags, replay, 0),
		FLAG_INCLUDE(&replay_world_flags, replay, 0),
		FLAG_END}};
// clang-format on

// ---- the report ----

struct tune_report {
	const struct tune *tune;
	const struct tune_space *space;
	const struct backtest *scene;
	double price;                   // of one GPU-hour; NaN: unknown
	double gpus_per_replica;        // > 0
	const struct tune_tests *tests; // of the policy; NULL: none
};

static double gpu_hours(const struct tune_report *r, const struct tune_score *s)
{
	return s->replica_s / 3600 * r->gpus_per_replica;
}

// ---- table ----

static void put_title(const struct tune_report *r, struct buf *out)
{
	const struct backtest *b = r->scene;
	const int64_t *times = b->recording->time_ms;
	char time[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(time, times[0]);
	print_to(out,
	         "Closed loop (simulated): %s, %s, mean demand %.2f, objective: at most %g%% wait longer than %s\n",
	         time, backtest_report_duration(times[b->recording->n_rows - 1] - times[0]).text, b->demand.mean,
	         100 * b->config.late_ratio, backtest_report_duration(llround(b->config.wait_s * 1000)).text);
	print_to(out, "%zu candidates vary %zu numbers; in sample is the first half, out of sample the second\n\n",
	         r->tune->n_played, r->space->n);
}

static void put_scores(const struct tune_report *r, struct table *t, const struct tune_score *in,
                       const struct tune_score *out)
{
	table_put(t, "%.2f\t%s\t%.2f%%\t%d\t%.2f\t%.2f%%", gpu_hours(r, out),
	          table_amount(gpu_hours(r, out) * r->price, "").text, tune_late_percent(out), out->changes,
	          gpu_hours(r, in), tune_late_percent(in));
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
			table_put(t, "%s", r->space->policy->name);
		else
			table_put(t, "candidate %zu", p->index);
		table_put(t, "%s", i == u->present ? "present" : i == u->chosen ? "chosen" : "front");
		put_scores(r, t, &p->in, &p->out);
	}
}

static void put_peers(const struct tune_report *r, bool wide, struct table *t)
{
	for (size_t i = 0; i < r->tune->n_peers; i++) {
		const struct tune_peer *p = &r->tune->peers[i];
		if (!wide && !p->is_best)
			continue;
		table_put(t, "%s\tpeer", p->name);
		put_scores(r, t, &p->in, &p->out);
	}
}

static void put_folds(const struct tune_report *r, struct buf *out)
{
	struct table t;
	table_init(&t, "PART\tIN-SAMPLE-GPU-HOURS\tLATE\tGPU-HOURS\tLATE\tOF-PRESENT\tLATE\tGAIN-IN-SAMPLE\tGAIN");
	for (size_t k = 0; k < TUNE_FOLDS; k++) {
		const struct tune_fold *f = &r->tune->folds[k];
		table_put(&t, "%zu of %d\t%.2f\t%.2f%%\t%.2f\t%.2f%%\t%.2f\t%.2f%%\t%.1f%%\t%.1f%%",
		          TUNE_IN_PARTS + k + 1, TUNE_PARTS, gpu_hours(r, &f->in), tune_late_percent(&f->in),
		          gpu_hours(r, &f->out), tune_late_percent(&f->out), gpu_hours(r, &f->present_out),
		          tune_late_percent(&f->present_out), 100 * f->gain_in, 100 * f->gain_out);
	}
	buf_puts(out, "\nWalk-forward: each part with the choice that was best on all parts before it\n\n");
	table_finish(&t, out, 0, true);
}

static void put_too_short(const struct tune *t, struct buf *out)
{
	print_to(out,
	         "Nothing recommended: the recording is too short. A part, one of %d, has %s of data and needs %s, %d "
	         "times the start-up and the longest window of the policy: record at least %s\n",
	         TUNE_PARTS, backtest_report_duration(t->part_ms).text, backtest_report_duration(t->needed_ms).text,
	         TUNE_SPANS, backtest_report_duration(TUNE_PARTS * t->needed_ms).text);
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
	print_to(out, "%.2f GPU-hours, %.2f%% late", gpu_hours(r, &t->library_out), tune_late_percent(&t->library_out));
	buf_puts(out, t->library_does ? " (policies/library/llm-demand.yaml; it needs the signals demand and backlog)\n"
	                              : "\n");
}

static void put_broken_tests(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	const char *path = r->tests->path;
	print_to(out, "Candidates that were better in sample and fail a test of %s: %zu. The best one fails:\n", path,
	         t->n_failing);
	for (size_t i = 0; i < t->broken.n; i++)
		print_to(out, "  %s:%d: %s\n", path, t->broken.tests[i].line, t->broken.tests[i].name);
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

static void put_table(const struct tune_report *r, bool wide, struct buf *out)
{
	struct table t;
	put_title(r, out);
	table_init(&t, "NAME\tKIND\tGPU-HOURS\tCOST\tLATE\tCHANGES\tIN-SAMPLE-GPU-HOURS\tIN-SAMPLE-LATE");
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
	json_write_key(w, key);
	json_write_format(w, "{gpuHours:%g,cost:%g,latePercent:%g,directionChanges:%d}", gpu_hours(r, s),
	                  gpu_hours(r, s) * r->price, tune_late_percent(s), s->changes);
}

static void put_json_scores(const struct tune_report *r, struct json_writer *w, const struct tune_score *in,
                            const struct tune_score *out)
{
	put_json_score(r, w, "outOfSample", out);
	put_json_score(r, w, "inSample", in);
}

static void put_json_numbers(const struct tune_report *r, struct json_writer *w, const struct tune_point *p)
{
	json_write_member_array(w, "changes");
	for (size_t i = 0; i < r->space->n; i++) {
		const struct tune_number *n = &r->space->numbers[i];
		char from[TUNE_TEXT_BYTES], to[TUNE_TEXT_BYTES];
		if (p->values[i] == n->present)
			continue;
		tune_number_text(n, n->present, from);
		tune_number_text(n, p->values[i], to);
		json_write_format(w, "{path:%s,from:%s,to:%s}", n->path, from, to);
	}
	json_write_array_end(w);
}

static void put_json_rows(const struct tune_report *r, struct json_writer *w)
{
	const struct tune *t = r->tune;
	json_write_member_array(w, "folds");
	for (size_t k = 0; k < TUNE_FOLDS; k++) {
		const struct tune_fold *f = &t->folds[k];
		json_write_object_begin(w);
		put_json_score(r, w, "inSample", &f->in);
		put_json_score(r, w, "outOfSample", &f->out);
		put_json_score(r, w, "presentInSample", &f->present_in);
		put_json_score(r, w, "presentOutOfSample", &f->present_out);
		json_write_format(w, "gainInSample:%g,gainOutOfSample:%g}", f->gain_in, f->gain_out);
	}
	json_write_format(w, "],points:[");
	for (size_t i = 0; i < t->n_points; i++) {
		const struct tune_point *p = &t->points[i];
		json_write_format(w, "{candidate:%zu,present:%i,chosen:%i,front:%i", p->index, i == t->present,
		                  i == t->chosen, p->is_front);
		put_json_scores(r, w, &p->in, &p->out);
		put_json_numbers(r, w, p);
		json_write_object_end(w);
	}
	json_write_format(w, "],peers:[");
	for (size_t i = 0; i < t->n_peers; i++) {
		const struct tune_peer *p = &t->peers[i];
		json_write_format(w, "{name:%s,best:%i", p->name, p->is_best);
		put_json_scores(r, w, &p->in, &p->out);
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
	json_write_format(w, "library:{name:%s,notDominated:%i", "llm-demand", t->library_does);
	put_json_scores(r, w, &t->library_in, &t->library_out);
	json_write_object_end(w);
}

static void put_json_tests(const struct tune_report *r, struct json_writer *w)
{
	const struct tune *t = r->tune;
	if (!r->tests) {
		json_write_member_null(w, "tests");
		return;
	}
	json_write_format(w, "tests:{file:%s,count:%zu,failingCandidates:%zu,broken:[", r->tests->path, r->tests->n,
	                  t->n_failing);
	for (size_t i = 0; i < t->broken.n; i++)
		json_write_format(w, "{name:%s,line:%d}", t->broken.tests[i].name, t->broken.tests[i].line);
	json_write_format(w, "]}");
}

static void put_json(const struct tune_report *r, struct buf *out)
{
	const struct tune *t = r->tune;
	const struct backtest *b = r->scene;
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{mode:%s,file:%s,namespace:%s,policy:%s,from:%jd,to:%jd", "closed-loop", b->file,
	                  r->space->policy->namespace_name, r->space->policy->name, b->recording->time_ms[0],
	                  b->recording->time_ms[b->recording->n_rows - 1]);
	json_write_format(&w, "meanDemand:%g,objective:{latePercent:%g,waitSeconds:%g}", b->demand.mean,
	                  100 * b->config.late_ratio, b->config.wait_s);
	json_write_format(&w, "candidates:%zu,numbers:%zu,verdict:%s,keepsObjective:%i,dominatedBy:%s", t->n_played,
	                  r->space->n, tune_verdict_names[t->verdict], t->keeps_objective, t->dominated_by);
	json_write_format(&w, "lateBoundPercent:%g,lateStressedPercent:%g", t->late_bound, t->late_stressed);
	put_json_library(r, &w);
	put_json_tests(r, &w);
	json_write_format(&w, "partSeconds:%g,neededPartSeconds:%g", (double)t->part_ms / 1000,
	                  (double)t->needed_ms / 1000);
	json_write_format(&w, "gainInSample:%g,gainOutOfSample:%g,gainOfChosen:%g,gap:%g", t->gain_in, t->gain_out,
	                  t->gain_chosen, t->gap);
	put_json_numbers(r, &w, &t->points[t->chosen]);
	put_json_rows(r, &w);
	json_write_object_end(&w);
}

// ---- running ----

static void show_progress(void *context, double share)
{
	progress_show(context, (size_t)(1000 * share), 1000, "");
}

static int write_file(const char *path, const struct buf *text, struct err *e)
{
	FILE *f = fopen(path, "we");
	if (!f)
		return err_set(e, ERR_IO, "%s: cannot be opened for writing: %s", path, strerror(errno));
	bool failed = fwrite(buf_str(text), 1, text->len, f) != text->len;
	if (fclose(f) != 0 || failed)
		return err_set(e, ERR_IO, "%s: cannot be written", path);
	return 0;
}

static int write_patch(const struct tune_args *a, const struct tune_report *r, const struct buf *policy_text,
                       struct err *e)
{
	const struct tune *t = r->tune;
	struct buf out = BUF(2 * DOC_BYTES_MAX);
	if (!a->patch)
		return 0;
	if (t->verdict != TUNE_RECOMMENDED) {
		print_error("gpuscale tune: nothing is recommended: %s is not written\n", a->patch);
		return 0;
	}
	int rc = tune_patch_write(r->space, t->points[t->chosen].values, buf_str(policy_text), policy_text->len, &out,
	                          e);
	if (rc == 0)
		rc = write_file(a->patch, &out, e);
	buf_done(&out);
	return rc;
}

static int report(const struct tune_args *a, const struct tune_report *r)
{
	struct buf out = BUF(OUTPUT_MAX);
	if (output_is_document(a->output))
		put_json(r, &out);
	else
		put_table(r, a->output == OUTPUT_WIDE, &out);
	return output_print("gpuscale tune", &out, a->output);
}

// Finds FILE_test.yaml for FILE.yaml.
static bool find_tests(const char *policy_file, char out[PATH_MAX])
{
	const char *dot = strrchr(policy_file, '.'), *slash = strrchr(policy_file, '/');
	if (!dot || (slash && dot < slash) ||
	    snprintf(out, PATH_MAX, "%.*s_test%s", (int)(dot - policy_file), policy_file, dot) >= PATH_MAX)
		return false;
	return access(out, R_OK) == 0;
}

// A file that was named must be readable. One that lies beside the policy is left out when it is not, with a note.
static int load_tests(const struct tune_args *a, const struct policy *policy, char path[PATH_MAX],
                      struct tune_tests **ret, struct err *e)
{
	*ret = NULL;
	if (a->tests)
		return tune_tests_load(a->tests, policy, ret, e);
	if (find_tests(policy->file, path) && tune_tests_load(path, policy, ret, e) < 0)
		print_error("gpuscale tune: the tests of %s are not run: %s\n", path, e->msg);
	return 0;
}

static int search(const struct tune_args *a, const struct backtest *scene, const struct policy *policy, struct err *e)
{
	struct tune_config config = a->config;
	struct tune_space space = {.n = 0};
	struct tune t = {0};
	struct buf text = BUF(DOC_BYTES_MAX);
	char tests_path[PATH_MAX];
	struct progress progress = {.what = "searching"};
	int code = -1;
	config.seed = scene->config.world.seed;
	config.on_progress = show_progress;
	config.context = &progress;
	if (!policy->file || strcmp(policy->file, "-") == 0)
		err_set(e, ERR_UNSUPPORTED, "policy %s: tune needs a file with -f, not standard input", policy->name);
	else if (buf_read_file(&text, policy->file, e) == 0 &&
	         tune_space_init(&space, policy, buf_str(&text), text.len, e) == 0 &&
	         load_tests(a, policy, tests_path, &config.tests, e) == 0) {
		int rc = tune_run(&config, scene, &space, &t, e);
		progress_clear(&progress);
		const struct tune_report r = {&t, &space, scene, a->price, a->gpus_per_replica, config.tests};
		const double changes[FAIL_METRIC__COUNT] = {t.verdict == TUNE_RECOMMENDED};
		if (rc == 0 && report(a, &r) < 0)
			code = EXIT_FAILED;
		else if (rc == 0 && write_patch(a, &r, &text, e) == 0)
			code = fail_on_check(&a->fail_on, "gpuscale tune", changes);
	}
	tune_done(&t);
	tune_tests_free(config.tests);
	tune_space_done(&space);
	buf_done(&text);
	return code;
}

static int tune(const struct tune_args *a, const struct replay_input *in, struct err *e)
{
	struct backtest_config config = a->replay.config;
	struct backtest *scene = malloc(sizeof *scene);
	if (!scene)
		return err_no_memory(e);
	config.policy_only = true;
	int rc = backtest_run(&config, in->policy, &in->recording, in->file, scene, e);
	if (rc == 0) {
		backtest_report_print_start(scene);
		rc = search(a, scene, in->policy, e);
	}
	backtest_done(scene);
	free(scene);
	return rc;
}

int cmd_tune(int argc, char **argv)
{
	struct tune_args args = {.price = NAN, .gpus_per_replica = 1, .fail_on = FAIL_OPTIONS(fail_metrics)};
	args.config.candidates = CANDIDATES_DEFAULT;
	args.config.threads = parallel_cores();
	replay_args_init(&args.replay);
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct replay_input in;
	int code = replay_input_read(&args.replay, "tune", &in);
	print_notes(&in.notes);
	if (code == EXIT_OK && (code = tune(&args, &in, &e)) < 0) {
		print_error("gpuscale tune: %s\n", e.msg);
		code = EXIT_FAILED;
	}
	replay_input_done(&in);
	return code;
}
