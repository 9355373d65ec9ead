// SPDX-License-Identifier: Apache-2.0
// gpuscale tune -f POLICY --prometheus URL|--data FILE: better numbers for a policy.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "cli/replay/backtest_report.h"
#include "cli/replay/replay_input.h"
#include "cli/replay/tune_report.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/fail_on.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/progress.h"
#include "policies/engine/policy.h"
#include "replay/parallel.h"
#include "replay/tune.h"
#include "replay/tune_patch.h"
#include "replay/tune_tests.h"

#define OUTPUT_MAX         (64 * 1024 * 1024)
#define CANDIDATES_DEFAULT 500

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
	struct buf out;
	if (!a->patch)
		return 0;
	if (t->verdict != TUNE_RECOMMENDED) {
		print_error("gpuscale tune: nothing is recommended: %s is not written\n", a->patch);
		return 0;
	}
	buf_init(&out, 2 * DOC_BYTES_MAX);
	int rc = tune_patch_write(r->space, t->points[t->chosen].values, buf_str(policy_text), policy_text->len, &out,
	                          e);
	if (rc == 0)
		rc = write_file(a->patch, &out, e);
	buf_done(&out);
	return rc;
}

static int report(const struct tune_args *a, const struct tune_report *r)
{
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	if (output_is_document(a->output))
		tune_report_json(r, &out);
	else
		tune_report_table(r, a->output == OUTPUT_WIDE, &out);
	int rc = output_print("gpuscale tune", &out, a->output);
	buf_done(&out);
	return rc;
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
	struct tune_space *space = calloc(1, sizeof *space);
	struct tune t = {0};
	struct buf text;
	char tests_path[PATH_MAX];
	struct progress progress = {.what = "searching"};
	int code = -1;
	buf_init(&text, DOC_BYTES_MAX);
	config.seed = scene->config.world.seed;
	config.on_progress = show_progress;
	config.context = &progress;
	if (!space)
		err_set(e, ERR_INTERNAL, "out of memory");
	else if (!policy->file || strcmp(policy->file, "-") == 0)
		err_set(e, ERR_UNSUPPORTED, "policy %s: tune needs a file with -f, not standard input", policy->name);
	else if (buf_read_file(&text, policy->file, e) == 0 &&
	         tune_space_init(space, policy, buf_str(&text), text.len, e) == 0 &&
	         load_tests(a, policy, tests_path, &config.tests, e) == 0) {
		int rc = tune_run(&config, scene, space, &t, e);
		progress_clear(&progress);
		const struct tune_report r = {&t, space, scene, a->price, a->gpus_per_replica, config.tests};
		const double changes[FAIL_METRIC__COUNT] = {t.verdict == TUNE_RECOMMENDED};
		if (rc == 0 && report(a, &r) < 0)
			code = EXIT_FAILED;
		else if (rc == 0 && write_patch(a, &r, &text, e) == 0)
			code = fail_on_check(&a->fail_on, "gpuscale tune", changes);
	}
	tune_done(&t);
	tune_tests_free(config.tests);
	if (space)
		tune_space_done(space);
	free(space);
	buf_done(&text);
	return code;
}

static int tune(const struct tune_args *a, const struct replay_input *in, struct err *e)
{
	struct backtest_config config = a->replay.config;
	struct backtest *scene = malloc(sizeof *scene);
	if (!scene)
		return err_set(e, ERR_INTERNAL, "out of memory");
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
