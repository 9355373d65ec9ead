// SPDX-License-Identifier: Apache-2.0
// gpuscale step -f FILE: the engine as a line filter, so that a program can close a loop around it.
#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "controller/options.h"
#include "controller/policy_pick.h"
#include "controller/policy_set.h"
#include "scenario/step.h"
#include "scenario/step_line.h"

#define READ_BYTES      (64 * 1024)
#define INPUT_BYTES     (STEP_LINE_BYTES_MAX + 1 + READ_BYTES)
#define OUTPUT_MAX      (64 * 1024 * 1024)
#define OUTPUT_HELD_MAX (64 * 1024) // answers wait for each other up to here, while more lines are already there
#define REPORT_MAX      (16 * 1024 * 1024)

struct step_args {
	struct path_options files;
	const char *policy;
};

// Standard input, cut into lines. data[start..end) is read and not yet answered; no line end before `searched`.
struct filter {
	struct step *step;
	char *data;
	size_t start, searched, end;
	bool skipping; // inside a line that was too long: its answer is given
	struct buf out;
	unsigned long long n_lines, n_bad, first_bad;
	struct err first_error;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct step_args *a = state->input;
	switch (key) {
	case 'f':
		if (strcmp(arg, "-") == 0)
			argp_error(state, "-f -: standard input carries the observations");
		path_options_add(&a->files, arg, state);
		return 0;
	case 'p':
		a->policy = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"; the policy is named by -f", arg);
		return 0;
	case ARGP_KEY_END:
		if (a->files.n == 0)
			argp_error(state, "name the policy: -f FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int flush(struct filter *f)
{
	const char *p = buf_str(&f->out), *end = p + f->out.len;
	while (p < end) {
		ssize_t n = write(STDOUT_FILENO, p, (size_t)(end - p));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fprintf(stderr, "gpuscale step: standard output: %s\n", strerror(errno));
			return -1;
		}
		p += n;
	}
	buf_reset(&f->out);
	return 0;
}

static void count_bad(struct filter *f, const struct err *e)
{
	if (f->n_bad++ > 0)
		return;
	f->first_bad = f->n_lines;
	f->first_error = *e;
}

static int answer(struct filter *f, const char *line, size_t len)
{
	struct err e;
	f->n_lines++;
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (step_answer(f->step, line, len, &f->out, &e) < 0)
		count_bad(f, &e);
	if (f->out.failed) {
		fputs("gpuscale step: out of memory\n", stderr);
		return -1;
	}
	return f->out.len > OUTPUT_HELD_MAX ? flush(f) : 0;
}

// Answers every whole line that was read.
static int answer_lines(struct filter *f)
{
	for (;;) {
		char *nl = memchr(f->data + f->searched, '\n', f->end - f->searched);
		if (!nl)
			break;
		size_t from = f->start;
		f->start = f->searched = (size_t)(nl - f->data) + 1;
		if (f->skipping)
			f->skipping = false;
		else if (answer(f, f->data + from, (size_t)(nl - f->data) - from) < 0)
			return -1;
	}
	f->searched = f->end;
	if (!f->skipping && f->end - f->start > STEP_LINE_BYTES_MAX) {
		if (answer(f, f->data + f->start, f->end - f->start) < 0) // says that it is too long
			return -1;
		f->skipping = true;
	}
	if (f->skipping)
		f->start = f->end;
	return 0;
}

static int run(struct filter *f)
{
	for (;;) {
		memmove(f->data, f->data + f->start, f->end - f->start);
		f->searched -= f->start;
		f->end -= f->start;
		f->start = 0;
		ssize_t n = read(STDIN_FILENO, f->data + f->end, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fprintf(stderr, "gpuscale step: standard input: %s\n", strerror(errno));
			return -1;
		}
		if (n == 0)
			break;
		f->end += (size_t)n;
		if (answer_lines(f) < 0 || flush(f) < 0)
			return -1;
	}
	if (!f->skipping && f->end > 0 && answer(f, f->data, f->end) < 0) // a last line without its end
		return -1;
	return flush(f);
}

static int filter_all(const struct policy *policy)
{
	struct filter f = {.step = step_new(policy), .data = malloc(INPUT_BYTES)};
	buf_init(&f.out, OUTPUT_MAX);
	int code = EXIT_FAILED;
	if (!f.step || !f.data)
		fputs("gpuscale step: out of memory\n", stderr);
	else if (run(&f) == 0)
		code = f.n_bad ? EXIT_FAILED : EXIT_OK;
	if (f.n_bad)
		fprintf(stderr, "gpuscale step: %llu of %llu lines could not be used; the first, line %llu: %s\n",
		        f.n_bad, f.n_lines, f.first_bad, f.first_error.msg);
	buf_done(&f.out);
	free(f.data);
	step_free(f.step);
	return code;
}

int cmd_step(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"filename", 'f', "FILE", 0, "policy file or folder (repeatable)", 0},
	        {"policy", 'p', "NAMESPACE/NAME", 0, "which policy, when there are several", 0},
	        {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "",
	        "The decision engine as a filter: one observation per line of standard input, one decision per line of "
	        "standard "
	        "output, both JSON. Nothing is written anywhere else."
	        "\vAn observation: {\"time\": SECONDS, \"replicas\": N, \"ready\": N, \"pending\": N, \"signals\": "
	        "{\"NAME\": VALUE | {\"POD\": VALUE} | null | {\"error\": \"TEXT\"}}}. Replicas that differ from the "
	        "line before "
	        "tell the engine that its decision was carried out. A line that cannot be used is answered by "
	        "{\"error\": "
	        "\"...\"}.\n\nExit status: 0 when every line was used, 1 when not, 2 for wrong usage.",
	        NULL,
	        NULL,
	        NULL};
	struct step_args args = {0};
	args_parse(&argp, argc, argv, &args);

	struct err e;
	struct buf report;
	struct policy_set set;
	buf_init(&report, REPORT_MAX);
	int code = EXIT_FAILED;
	if (policy_set_load(&set, args.files.paths, args.files.n, NULL, &report, &e) < 0) {
		fprintf(stderr, "gpuscale step: %s\n", e.msg);
		buf_done(&report);
		return EXIT_FAILED;
	}
	fputs(buf_str(&report), stderr);
	if (set.n_errors == 0) {
		const struct policy *policy = policy_pick(&set, args.policy, &e);
		if (policy)
			code = filter_all(policy);
		else
			fprintf(stderr, "gpuscale step: %s\n", e.msg);
	}
	policy_set_done(&set);
	buf_done(&report);
	return code;
}
