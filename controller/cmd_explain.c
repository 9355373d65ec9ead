// SPDX-License-Identifier: Apache-2.0
// gpuscale explain FIELD
#include <argp.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema_explain.h"
#include "controller/commands.h"
#include "policies/policy_schema.h"

#define EXPLAIN_TEXT_MAX (256 * 1024)

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **field = state->input;
	switch (key) {
	case ARGP_KEY_ARG:
		if (*field)
			argp_error(state, "one field at a time");
		*field = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_explain(int argc, char **argv)
{
	const struct argp argp = {
	        NULL,
	        parse,
	        "[FIELD]",
	        "Describe a policy field: type, default, range, what it does. Without FIELD: the top level."
	        "\vExample: gpuscale explain spec.signals.window",
	        NULL,
	        NULL,
	        NULL};
	const char *field = NULL;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &field);
	struct buf out;
	buf_init(&out, EXPLAIN_TEXT_MAX);
	struct err e;
	int code = EXIT_OK;
	if (schema_explain(policy_schema(), field ? field : "", &out, &e) < 0) {
		fprintf(stderr, "gpuscale explain: %s\n", e.msg);
		code = EXIT_FAILED;
	} else {
		fputs(buf_str(&out), stdout);
	}
	buf_done(&out);
	return code;
}
