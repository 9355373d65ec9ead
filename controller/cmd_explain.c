// SPDX-License-Identifier: Apache-2.0
// gpuscale explain FIELD
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema_explain.h"
#include "base/schema_page.h"
#include "controller/commands.h"
#include "policies/policy_schema.h"

#define EXPLAIN_TEXT_MAX (256 * 1024)

struct explain_args {
	const char *field; // NULL: the top level
	bool page;
};

enum { KEY_PAGE = 0x600 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct explain_args *a = state->input;
	switch (key) {
	case KEY_PAGE:
		a->page = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->field)
			argp_error(state, "one field at a time");
		a->field = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_explain(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"page", KEY_PAGE, 0, 0, "print the whole reference page in Markdown (docs/policy.md)", 0}, {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "[FIELD]",
	        "Describe a policy field: type, default, range, what it does. Without FIELD: the top level."
	        "\vExample: gpuscale explain spec.signals.window",
	        NULL,
	        NULL,
	        NULL};
	struct explain_args args = {0};
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &args);
	struct buf out;
	buf_init(&out, EXPLAIN_TEXT_MAX);
	struct err e;
	int code = EXIT_OK;
	if (args.page)
		schema_page(policy_schema(), &out);
	if (!args.page && schema_explain(policy_schema(), args.field ? args.field : "", &out, &e) < 0) {
		fprintf(stderr, "gpuscale explain: %s\n", e.msg);
		code = EXIT_FAILED;
	} else {
		fputs(buf_str(&out), stdout);
	}
	buf_done(&out);
	return code;
}
