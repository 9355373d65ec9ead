// SPDX-License-Identifier: Apache-2.0
// gpuscale test FILE|DIR..: runs policy unit tests.
#include <dirent.h>
#include <limits.h>
#include <regex.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "cli/term/cli.h"
#include "policies/load/file_set.h"
#include "policies/test/scenario.h"
#include "policies/test/test_report.h"

#define TEST_ARENA_MAX  (256 * 1024 * 1024)
#define TEST_REPORT_MAX (64 * 1024 * 1024)
#define PROGRESS_PARTS  1000

struct test_args {
	struct path_options files;
	const char *run, *junit;
	bool verbose, diff, coverage;
};

struct session {
	const struct test_args *args;
	struct test_style style;
	const regex_t *only; // NULL = all
	struct clock clock;
	size_t passed, failed, skipped;
	struct progress progress;
	double from, width; // of the files and the tests that run: the part of all work, 0 to 1
	struct junit junit;
	struct coverage_list coverage;
	struct schema_errors errors; // of the file, then of the current test
};

// A file while its tests run.
struct file {
	const char *path;
	struct arena arena; // the tree and the tests of the file
	struct arena test;  // of the current test
	struct file_set policies;
};

// clang-format off
#define FLAGS_OF struct test_args
static const struct flag_set command = {
	.args = "FILE|DIR..",
	.about = "Run policy unit tests (kind: PolicyTest): each plays series of values through the decision engine, with a "
	         "clock of its own, and compares what is decided with what the test expects. Of a folder all tests are run."
	         "\vExit status: 0 when all pass, 1 when one fails, 2 for wrong usage.",
	.missing = "name at least one test file or folder",
	.flags = (const struct flag[]){
		FLAG_TEXT(0, 'r', "run", "REGEX", run, "only tests whose name matches (POSIX extended regular expression)"),
		FLAG_SWITCH(0, 0, "diff", diff, "show a broken expectation as a diff of expected and decided"),
		FLAG_SWITCH(0, 0, "coverage", coverage, "show which stages and reasons of each policy were reached"),
		FLAG_TEXT(0, 0, "junit", "FILE", junit, "also write the results as JUnit XML"),
		FLAG_SWITCH(0, 'v', "verbose", verbose, "also print the tests that pass or are skipped"),
		FLAG_ARGUMENTS(files, path_options_add),
		FLAG_END}};
// clang-format on

// ---- one test's end ----

static void say(const struct session *s, const char *colour, const char *word, const char *path, int line,
                const char *name)
{
	struct buf out = BUF(TEST_REPORT_MAX);
	test_report_coloured(&out, &s->style, colour, word);
	if (line > 0)
		print_to(&out, " %s:%d: %s\n", path, line, name);
	else
		print_to(&out, " %s: %s\n", path, name);
	print_out(&out);
	buf_done(&out);
}

// `plain` is `shown` without colors, for the XML report; both are "" unless the test failed.
static void complete(struct session *s, const char *path, int line, const char *name, enum junit_outcome outcome,
                     int64_t started_ms, const char *shown, const char *plain)
{
	static const struct {
		const char *word, *colour;
	} words[] = {[JUNIT_PASSED] = {"PASS", TEST_GREEN},
	             [JUNIT_FAILED] = {"FAIL", TEST_RED},
	             [JUNIT_SKIPPED] = {"SKIP", TEST_YELLOW}};
	s->passed += outcome == JUNIT_PASSED;
	s->failed += outcome == JUNIT_FAILED;
	s->skipped += outcome == JUNIT_SKIPPED;
	if (outcome == JUNIT_FAILED || s->args->verbose) {
		progress_clear(&s->progress);
		say(s, words[outcome].colour, words[outcome].word, path, line, name);
	}
	print_outn(shown, strlen(shown));
	if (s->args->junit)
		junit_add(&s->junit,
		          &(struct junit_case){.name = name,
		                               .file = path,
		                               .line = line,
		                               .seconds = (double)(clock_mono_ms(&s->clock) - started_ms) / 1000,
		                               .outcome = outcome,
		                               .detail = plain});
}

// A file that cannot be read or decoded counts as one failed test.
static void fail_file(struct session *s, const char *path, const char *why)
{
	complete(s, path, 0, "cannot be run", JUNIT_FAILED, clock_mono_ms(&s->clock), why, why);
}

static void record_result(struct session *s, const struct file *f, const struct scenario *t, int64_t started_ms,
                          const struct scenario_result *result)
{
	const struct test_style plain_style = {.diff = s->style.diff};
	struct buf shown = BUF(TEST_REPORT_MAX), plain = BUF(TEST_REPORT_MAX);
	test_report_findings(&shown, &s->style, f->path, result);
	test_report_findings(&plain, &plain_style, f->path, result);
	complete(s, f->path, t->line, t->name, result->n ? JUNIT_FAILED : JUNIT_PASSED, started_ms, buf_str(&shown),
	         buf_str(&plain));
	buf_done(&shown);
	buf_done(&plain);
}

// ---- running ----

static void run_one(struct session *s, struct file *f, struct scenario *t, const struct doc_node *node, size_t index,
                    int64_t interval_ms)
{
	int64_t started_ms = clock_mono_ms(&s->clock);
	struct scenario_result result;
	struct err e;
	if (s->only && regexec(s->only, t->name, 0, NULL, 0) != 0) {
		complete(s, f->path, node->line, t->name, JUNIT_SKIPPED, started_ms, "", "");
		return;
	}
	arena_reset(&f->test);
	schema_errors_init(&s->errors, f->path);
	struct buf why = BUF(TEST_REPORT_MAX);
	if (scenario_bind(t, node, index, interval_ms, &f->policies, &f->test, &s->errors) < 0) {
		schema_errors_print(&s->errors, &why);
	} else {
		struct coverage *c = s->args->coverage ? coverage_of(&s->coverage, t->policy) : NULL;
		if (scenario_run(t, c, &f->test, &result, &e) < 0)
			print_to(&why, "  %s\n", e.msg);
	}
	if (why.len > 0)
		complete(s, f->path, node->line, t->name, JUNIT_FAILED, started_ms, buf_str(&why), buf_str(&why));
	else
		record_result(s, f, t, started_ms, &result);
	buf_done(&why);
}

static void run_document(struct session *s, struct file *f, const struct doc_node *root)
{
	struct scenario_file doc = {0};
	struct err e;
	struct buf why = BUF(TEST_REPORT_MAX);
	schema_errors_init(&s->errors, f->path);
	if (schema_decode(&scenario_schema, root, &doc, &f->arena, &s->errors, "") < 0) {
		schema_errors_print(&s->errors, &why);
		fail_file(s, f->path, buf_str(&why));
	} else if (scenario_load_policies(&doc, f->path, &f->arena, &f->policies, &why, &e) < 0) {
		print_to(&why, "%s\n", e.msg);
		fail_file(s, f->path, buf_str(&why));
	} else if (f->policies.n_errors > 0) {
		fail_file(s, f->path, buf_str(&why));
		file_set_done(&f->policies);
	} else {
		const struct doc_node *node = doc_get(root, "tests")->child;
		for (size_t i = 0; i < doc.n_tests; i++, node = node->next) {
			double done = s->from + s->width * (double)i / (double)doc.n_tests;
			progress_show(&s->progress, (size_t)(PROGRESS_PARTS * done), PROGRESS_PARTS, doc.tests[i].name);
			run_one(s, f, &doc.tests[i], node, i, doc.interval_ms);
		}
		file_set_done(&f->policies);
	}
	buf_done(&why);
}

static void run_file(struct session *s, const char *path)
{
	struct file f = {.path = path, .arena = ARENA(TEST_ARENA_MAX), .test = ARENA(TEST_ARENA_MAX)};
	struct doc_file doc;
	struct err e;
	size_t n = 0;
	if (s->args->junit)
		junit_begin_suite(&s->junit, path);
	if (doc_read_yaml(&f.arena, path, false, &doc, &e) < 0) {
		char line[sizeof e.msg + 1];
		snprintf(line, sizeof line, "%s\n", e.msg);
		fail_file(s, path, line);
		n = 1;
	}
	for (size_t i = 0; i < doc.n_roots; i++) {
		if (strcmp(doc_get_text(doc.roots[i], "kind", ""), "GPUAutoscaler") == 0)
			continue; // a file may contain policies beside tests
		run_document(s, &f, doc.roots[i]);
		n++;
	}
	if (n == 0)
		fail_file(s, path, "  there is no document of kind PolicyTest in it\n");
	junit_end_suite(&s->junit);
	arena_done(&f.arena);
	arena_done(&f.test);
}

static int is_test_name(const struct dirent *d)
{
	static const char *const endings[] = {"_test.yaml", "_test.yml"};
	size_t n = strlen(d->d_name);
	for (size_t i = 0; d->d_name[0] != '.' && i < sizeof endings / sizeof endings[0]; i++)
		if (n > strlen(endings[i]) && strcmp(d->d_name + n - strlen(endings[i]), endings[i]) == 0)
			return 1;
	return 0;
}

static void run_folder(struct session *s, const char *path)
{
	struct dirent **names = NULL;
	char file[PATH_MAX];
	int n = scandir(path, &names, is_test_name, alphasort);
	if (n < 0) {
		snprintf(file, sizeof file, "  cannot read the folder: %s\n", strerror(errno));
		fail_file(s, path, file);
	} else if (n == 0) {
		fail_file(s, path, "  there is no file *_test.yaml in it\n");
	}
	const double from = s->from, width = s->width;
	for (int i = 0; i < n; i++) {
		s->width = width / n;
		s->from = from + i * s->width;
		if (snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name) < (int)sizeof file)
			run_file(s, file);
		else
			fail_file(s, path, "  the name of a file in it is too long\n");
		free(names[i]);
	}
	free(names);
}

// ---- the command ----

static int write_junit(const struct session *s)
{
	struct buf out = BUF(2 * TEST_REPORT_MAX);
	FILE *f = NULL;
	int rc = junit_print(&s->junit, &out);
	if (rc < 0) {
		print_error("gpuscale test: %s: the report is too large\n", s->args->junit);
	} else {
		f = fopen(s->args->junit, "w");
		bool written = f && fwrite(buf_str(&out), 1, out.len, f) == out.len;
		if ((f && fclose(f) != 0) || !written) {
			print_error("gpuscale test: %s: %s\n", s->args->junit, strerror(errno));
			rc = -1;
		}
	}
	buf_done(&out);
	return rc;
}

static int run_all(struct session *s)
{
	struct stat st;
	for (size_t i = 0; i < s->args->files.n; i++) {
		s->width = 1 / (double)s->args->files.n;
		s->from = (double)i * s->width;
		const char *path = s->args->files.paths[i];
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			run_folder(s, path);
		else
			run_file(s, path);
	}
	progress_clear(&s->progress);
	bool ok = s->failed == 0;
	if (s->args->junit && write_junit(s) < 0)
		ok = false;
	if (s->args->coverage) {
		struct buf out = BUF(TEST_REPORT_MAX);
		coverage_print(&s->coverage, &out);
		print_out(&out);
		buf_done(&out);
	}
	if (s->passed + s->failed == 0) {
		print_error("gpuscale test: no test has a name that matches \"%s\"\n", s->args->run);
		ok = false;
	}
	print_line("%zu passed, %zu failed, %zu skipped\n", s->passed, s->failed, s->skipped);
	return fflush(stdout) == 0 && ok ? EXIT_OK : EXIT_FAILED;
}

int cmd_test(int argc, char **argv)
{
	struct test_args args = {0};
	args_parse(&command, argc, argv, &args);
	regex_t only;
	int rc = args.run ? regcomp(&only, args.run, REG_EXTENDED | REG_NOSUB) : 0;
	if (rc != 0) {
		char why[128];
		regerror(rc, &only, why, sizeof why);
		print_error("gpuscale test: --run \"%s\": %s\n", args.run, why);
		return EXIT_USAGE;
	}
	struct session *s = calloc(1, sizeof *s);
	if (!s) {
		print_error("gpuscale test: out of memory\n");
		return EXIT_FAILED;
	}
	s->args = &args;
	s->style = (struct test_style){.colour = print_has_colour(), .diff = args.diff};
	s->only = args.run ? &only : NULL;
	clock_init_real(&s->clock);
	s->progress = (struct progress){.what = "testing", .delay_ms = PROGRESS_DELAY_MS};
	junit_init(&s->junit, TEST_REPORT_MAX);
	int code = run_all(s);
	junit_done(&s->junit);
	coverage_done(&s->coverage);
	free(s);
	if (args.run)
		regfree(&only);
	return code;
}
