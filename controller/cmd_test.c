// SPDX-License-Identifier: Apache-2.0
// gpuscale test FILE..: runs policy unit tests.
#include <argp.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/schema.h"
#include "controller/commands.h"
#include "controller/options.h"
#include "controller/policy_set.h"
#include "controller/scenario.h"

#define TEST_ARENA_MAX  (256 * 1024 * 1024)
#define TEST_REPORT_MAX (16 * 1024 * 1024)

struct test_args {
	struct path_options files;
	const char *run;
	bool verbose;
};

struct totals {
	size_t passed, failed, skipped;
	bool colour, verbose;
	const regex_t *only; // NULL = all
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct test_args *a = state->input;
	switch (key) {
	case 'r':
		a->run = arg;
		return 0;
	case 'v':
		a->verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		path_options_add(&a->files, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "name at least one test file");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void say(const struct totals *t, const char *colour, const char *word, const char *file, const char *name)
{
	printf("%s%s%s %s: %s\n", t->colour ? colour : "", word, t->colour ? "\033[0m" : "", file, name);
}

static const struct policy *find_policy(const struct policy_set *set, const char *key)
{
	if (!key)
		return set->n_policies == 1 ? set->policies[0] : NULL;
	const char *slash = strchr(key, '/');
	for (size_t i = 0; i < set->n_policies; i++) {
		const struct policy *p = set->policies[i];
		if (slash && strlen(p->namespace_name) == (size_t)(slash - key) &&
		    strncmp(p->namespace_name, key, (size_t)(slash - key)) == 0 && strcmp(p->name, slash + 1) == 0)
			return p;
	}
	return NULL;
}

static void run_one(struct scenario *s, const char *path, int64_t interval_ms, const struct policy_set *set,
                    struct arena *a, struct totals *t)
{
	if (t->only && regexec(t->only, s->name, 0, NULL, 0) != 0) {
		t->skipped++;
		return;
	}
	struct buf report;
	buf_init(&report, TEST_REPORT_MAX);
	struct schema_errors *errors = malloc(sizeof *errors);
	if (!errors)
		abort();
	schema_errors_init(errors, path);
	s->policy = find_policy(set, s->policy_key);
	bool ok = false;
	if (!s->policy)
		buf_printf(&report, "    no policy \"%s\" in policyFiles; name it as namespace/name\n",
		           s->policy_key ? s->policy_key : "");
	else if (scenario_bind(s, a, errors) < 0)
		schema_errors_print(errors, &report);
	else
		ok = scenario_run(s, interval_ms, &report) == 0;
	if (ok) {
		t->passed++;
		if (t->verbose)
			say(t, "\033[32m", "PASS", path, s->name);
	} else {
		t->failed++;
		say(t, "\033[31m", "FAIL", path, s->name);
		fputs(buf_str(&report), stdout);
	}
	free(errors);
	buf_done(&report);
}

// A file that cannot be read or decoded counts as one failed test.
static void fail_file(struct totals *t, const char *path, const char *why)
{
	t->failed++;
	say(t, "\033[31m", "FAIL", path, "cannot be run");
	fputs(why, stdout);
}

static int load_policies(struct policy_set *set, const char *path, const struct scenario_file *f, struct arena *a,
                         struct buf *report)
{
	const char *slash = strrchr(path, '/');
	const char **paths = arena_calloc(a, f->n_policy_files, sizeof *paths);
	struct err e;
	for (size_t i = 0; paths && i < f->n_policy_files; i++) {
		paths[i] = f->policy_files[i][0] == '/' || !slash
		                   ? f->policy_files[i]
		                   : arena_printf(a, "%.*s/%s", (int)(slash - path), path, f->policy_files[i]);
		if (!paths[i])
			return -1;
	}
	if (!paths)
		return -1;
	if (policy_set_load(set, paths, f->n_policy_files, NULL, report, &e) < 0) {
		buf_printf(report, "%s\n", e.msg);
		return -1;
	}
	if (set->n_errors == 0)
		return 0;
	policy_set_done(set);
	return -1;
}

static void run_file(const char *path, struct totals *t)
{
	struct arena a;
	struct err e;
	struct buf report;
	struct doc_file doc;
	struct schema_errors *errors = malloc(sizeof *errors);
	if (!errors)
		abort();
	arena_init(&a, TEST_ARENA_MAX);
	buf_init(&report, TEST_REPORT_MAX);
	schema_errors_init(errors, path);
	if (doc_read_yaml(&a, path, &doc, &e) < 0) {
		buf_printf(&report, "%s\n", e.msg);
		fail_file(t, path, buf_str(&report));
		goto out;
	}
	for (size_t i = 0; i < doc.n_roots; i++) {
		struct scenario_file f = {0};
		struct policy_set set;
		if (schema_decode(scenario_schema(), doc.roots[i], &f, &a, errors, "") < 0) {
			schema_errors_print(errors, &report);
			fail_file(t, path, buf_str(&report));
			goto out;
		}
		if (load_policies(&set, path, &f, &a, &report) < 0) {
			fail_file(t, path, buf_str(&report));
			goto out;
		}
		const struct doc_node *node = doc_get(doc.roots[i], "tests")->child;
		for (size_t k = 0; k < f.n_tests; k++, node = node ? node->next : NULL) {
			f.tests[k].line = node ? node->line : 0;
			run_one(&f.tests[k], path, f.interval_ms, &set, &a, t);
		}
		policy_set_done(&set);
	}
out:
	free(errors);
	buf_done(&report);
	arena_done(&a);
}

int cmd_test(int argc, char **argv)
{
	static const struct argp_option options[] = {{"run", 'r', "REGEX", 0, "only tests whose name matches", 0},
	                                             {"verbose", 'v', 0, 0, "also print the tests that pass", 0},
	                                             {0}};
	const struct argp argp = {options,
	                          parse,
	                          "FILE..",
	                          "Run policy unit tests (kind: PolicyTest): each plays series of values through the "
	                          "decision engine, with a "
	                          "clock of its own, and compares what is decided with what the test expects."
	                          "\vExit status: 0 when all pass, 1 when one fails, 2 for wrong usage.",
	                          NULL,
	                          NULL,
	                          NULL};
	struct test_args args = {0};
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &args);
	struct totals t = {.colour = isatty(STDOUT_FILENO), .verbose = args.verbose};
	regex_t only;
	if (args.run) {
		int rc = regcomp(&only, args.run, REG_EXTENDED | REG_NOSUB);
		if (rc != 0) {
			char why[128];
			regerror(rc, &only, why, sizeof why);
			fprintf(stderr, "gpuscale test: --run \"%s\": %s\n", args.run, why);
			return EXIT_USAGE;
		}
		t.only = &only;
	}
	for (size_t i = 0; i < args.files.n; i++)
		run_file(args.files.paths[i], &t);
	if (t.only)
		regfree(&only);
	printf("%zu passed, %zu failed, %zu skipped\n", t.passed, t.failed, t.skipped);
	return t.failed || fflush(stdout) != 0 ? EXIT_FAILED : EXIT_OK;
}
