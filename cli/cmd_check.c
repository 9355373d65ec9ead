// SPDX-License-Identifier: Apache-2.0
// gpuscale check FILE|DIR..
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "controller/connections.h"
#include "controller/options.h"
#include "controller/policy_files.h"
#include "controller/policy_set.h"
#include "policylint/lint.h"

#define CHECK_REPORT_MAX (16 * 1024 * 1024)
#define EXIT_WARNINGS    3

enum { KEY_LINT_FATAL = 0x200, KEY_NO_LINT, KEY_ASK };

struct check_args {
	struct path_options files;
	struct prometheus_options prometheus;
	bool quiet, lint_fatal, no_lint, ask;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct check_args *a = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->prometheus;
		return 0;
	case KEY_LINT_FATAL:
		a->lint_fatal = true;
		return 0;
	case KEY_NO_LINT:
		a->no_lint = true;
		return 0;
	case KEY_ASK:
		a->ask = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		path_options_add(&a->files, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "name at least one policy file or folder");
		return 0;
	case ARGP_KEY_END:
		if (a->ask && !prometheus_options_given(&a->prometheus))
			argp_error(state, "--ask needs somebody to ask: --prometheus or --sources");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// What is wrong with the file itself was said when it was read for the first time.
static bool was_told(const char *path, const struct err *e)
{
	bool is_of_file = (e->kind == ERR_IO || e->kind == ERR_NOT_FOUND) && strncmp(e->msg, path, strlen(path)) == 0;
	return e->kind == ERR_INPUT || e->kind == ERR_LIMIT || is_of_file;
}

// Looks at every file once more for what is valid and probably wrong. Files that do not parse were told before.
static int lint(struct check_args *args, struct connections *source, struct buf *report, struct lint_totals *totals,
                struct err *e)
{
	struct arena a;
	arena_init(&a, CHECK_REPORT_MAX);
	struct path_list list;
	int rc = policy_files_list(&a, args->files.paths, args->files.n, &list, e);
	for (size_t i = 0; rc == 0 && i < list.n; i++)
		if (lint_file(list.paths[i], source, args->ask, report, totals, e) < 0 && !was_told(list.paths[i], e))
			rc = -1;
	arena_done(&a);
	return rc;
}

static int lint_all(struct check_args *args, struct buf *report, struct lint_totals *totals)
{
	struct err e;
	err_clear(&e);
	struct connections c;
	bool named = prometheus_options_given(&args->prometheus);
	args->ask |= args->prometheus.query.url != NULL;
	int rc = named ? connections_open(&c, &args->prometheus, NULL, NULL, &e) : 0;
	if (rc == 0) {
		rc = lint(args, named ? &c : NULL, report, totals, &e);
		if (named)
			connections_close(&c);
	}
	if (rc < 0)
		fprintf(stderr, "gpuscale check: %s\n", e.msg);
	return rc;
}

static void print_summary(const struct policy_set *set, const struct lint_totals *totals)
{
	size_t errors = set->n_errors + totals->errors;
	fprintf(stderr, "%zu %s valid, %zu %s", set->n_policies, set->n_policies == 1 ? "policy" : "policies", errors,
	        errors == 1 ? "error" : "errors");
	if (totals->warnings)
		fprintf(stderr, ", %zu %s", totals->warnings, totals->warnings == 1 ? "warning" : "warnings");
	fputc('\n', stderr);
}

// Standard input is read twice, by the decoder and by the linter: what comes through a pipe is kept. A file of 1 MiB
// and one byte is too long for either of them.
static int keep_stdin(const struct path_options *files, struct err *e)
{
	char chunk[16 * 1024];
	bool named = false;
	for (size_t i = 0; i < files->n; i++)
		named |= strcmp(files->paths[i], "-") == 0;
	if (!named || lseek(STDIN_FILENO, 0, SEEK_SET) == 0)
		return 0;
	int fd = memfd_create("stdin", MFD_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 0;
	for (size_t kept = 0; fd >= 0 && kept <= DOC_BYTES_MAX; kept += (size_t)n) {
		n = read(STDIN_FILENO, chunk, sizeof chunk);
		if (n <= 0 || write(fd, chunk, (size_t)n) != n)
			break;
	}
	if (n < 0 || dup2(fd, STDIN_FILENO) < 0 || lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		n = -1;
	int why = errno;
	if (fd >= 0)
		close(fd);
	return n < 0 ? err_set_code(e, ERR_IO, why, "standard input: %s", strerror(why)) : 0;
}

int cmd_check(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"quiet", 'q', 0, 0, "print errors and warnings only", 1},
	        {"lint-fatal", KEY_LINT_FATAL, 0, 0, "exit with 3 when there are warnings", 1},
	        {"no-lint", KEY_NO_LINT, 0, 0, "no warnings about what is valid and probably wrong", 1},
	        {"ask", KEY_ASK, 0, 0, "ask each query of its source (implied by --prometheus URL)", 1},
	        {0}};
	static const struct argp_child children[] = {{&prometheus_argp, 0, NULL, 2}, {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "FILE|DIR..",
	        "Check policy files. Every error of every file is printed as file:line:col: path: "
	        "message, every warning as file:line:col: warning: path: message; no network is needed. "
	        "FILE - is standard input. "
	        "With --prometheus each query is asked once, too: does it parse, is there data, how many "
	        "series (the environment variable is not looked at here). With --sources the names of sources "
	        "are checked; nothing is asked without --ask."
	        "\vExit status: 0 when all are good, 1 when there are errors, 2 for wrong usage, 3 for "
	        "warnings with --lint-fatal.",
	        children,
	        NULL,
	        NULL};
	struct check_args args = {.prometheus.query.kind = PROMQL_KIND_AUTO};
	args_parse(&argp, argc, argv, &args);
	struct buf report;
	buf_init(&report, CHECK_REPORT_MAX);
	struct policy_set set;
	struct lint_totals totals = {0};
	struct err e;
	int code = EXIT_OK;
	if (keep_stdin(&args.files, &e) < 0 ||
	    policy_set_load(&set, args.files.paths, args.files.n, NULL, &report, &e) < 0) {
		fprintf(stderr, "gpuscale check: %s\n", e.msg);
		buf_done(&report);
		return EXIT_FAILED;
	}
	if (!args.no_lint && lint_all(&args, &report, &totals) < 0)
		code = EXIT_FAILED;
	fputs(buf_str(&report), stdout);
	fflush(stdout); // before the summary, also where both go into one file
	if (set.n_errors || totals.errors) {
		code = EXIT_FAILED;
	} else if (set.n_policies == 0) {
		fprintf(stderr,
		        "gpuscale check: no policies found in %s%s; of a folder, *.yaml, *.yml and *.json are read\n",
		        args.files.paths[0], args.files.n > 1 ? " and the others" : "");
		code = EXIT_FAILED;
	} else if (code == EXIT_OK && totals.warnings && args.lint_fatal) {
		code = EXIT_WARNINGS;
	}
	if (!args.quiet)
		print_summary(&set, &totals);
	policy_set_done(&set);
	buf_done(&report);
	return code;
}
