// SPDX-License-Identifier: Apache-2.0
// gpuscale crd [--cel] [-o yaml|json]
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "base/yaml_out.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/crd.h"
#include "controller/options.h"

#define CRD_TEXT_MAX (512 * 1024)

enum { CRD_YAML, CRD_JSON };
static const char *const formats[] = {"yaml", "json", NULL};

struct crd_args {
	int format;
	bool cel;
};

enum { KEY_CEL = 0x720 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct crd_args *a = state->input;
	switch (key) {
	case 'o':
		a->format = option_choice("-o", arg, formats, state);
		return 0;
	case KEY_CEL:
		a->cel = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_crd(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"output", 'o', "FORMAT", 0, "yaml (default) or json", 0},
	        {"cel", KEY_CEL, 0, 0, "with rules between fields that Kubernetes 1.25 and later checks itself", 0},
	        {0}};
	const struct argp argp = {options,
	                          parse,
	                          "",
	                          "Print the CustomResourceDefinition of GPUAutoscalers. It comes from the same table "
	                          "that decodes and checks "
	                          "policy files, so that the API server admits what `gpuscale check` admits, but for "
	                          "rules between fields."
	                          "\vExample: gpuscale crd | kubectl apply -f -",
	                          NULL,
	                          NULL,
	                          NULL};
	struct crd_args args = {.format = CRD_YAML};
	args_parse(&argp, argc, argv, &args);
	struct buf json, yaml;
	struct json_writer w;
	buf_init(&json, CRD_TEXT_MAX);
	buf_init(&yaml, CRD_TEXT_MAX);
	json_write_init(&w, &json, args.format == CRD_JSON ? 2 : 0);
	crd_write(&w, args.cel);
	buf_putc(&json, '\n');
	int code = EXIT_OK;
	if (json.failed || (args.format == CRD_YAML && yaml_from_json(&yaml, buf_str(&json), json.len) < 0)) {
		fprintf(stderr, "gpuscale crd: the definition is longer than the ceiling of %d bytes\n", CRD_TEXT_MAX);
		code = EXIT_FAILED;
	} else if (fputs(buf_str(args.format == CRD_JSON ? &json : &yaml), stdout) < 0 || fflush(stdout) != 0) {
		code = EXIT_FAILED;
	}
	buf_done(&json);
	buf_done(&yaml);
	return code;
}
