// SPDX-License-Identifier: Apache-2.0
// gpuscale crd [KIND] [--cel] [-o yaml|json]
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "base/json/yaml_out.h"
#include "base/print.h"
#include "cli/objects/crd.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"
#include "runtime/options/flag_table.h"

#define CRD_TEXT_MAX (512 * 1024)

struct crd_args {
	enum output_format output;
	bool cel;
	enum object_kind kind; // OBJECT_KIND__COUNT: all
};

static void set_kind(void *to, char *arg, struct argp_state *state)
{
	enum object_kind *kind = to;
	if (*kind != OBJECT_KIND__COUNT)
		print_usage(state, "one kind at a time");
	*kind = object_kind_find(arg, strlen(arg));
	if (*kind >= CRD_COUNT)
		print_usage(state, "no kind \"%s\"; there are " POLICY_KIND " and " POOL_KIND, arg);
}

// clang-format off
#define FLAGS_OF struct crd_args
static const struct flag_set command = {
	.args = "[GPUAutoscaler|GPUPool]",
	.about = "Print the CustomResourceDefinitions of GPUAutoscalers and GPUPools, or that of one kind. They "
	         "come from the same tables that decode and check files, so that the API server admits what `gpuscale check` "
	         "admits, except for rules between fields."
	         "\vExample: gpuscale crd | kubectl apply -f -",
	.flags = (const struct flag[]){
		FLAG_OUTPUT(0, output, OUTPUT_SET(YAML) | OUTPUT_SET(JSON) | OUTPUT_SET(NAME), "yaml, json or name (default yaml)"),
		FLAG_SWITCH(0, 0, "cel", cel, "with rules between fields that Kubernetes 1.25 and later checks itself"),
		FLAG_ARGUMENTS(kind, set_kind),
		FLAG_END}};
// clang-format on

static bool is_selected(const struct crd_args *args, enum object_kind r)
{
	return args->kind == OBJECT_KIND__COUNT || args->kind == r;
}

// One object, or a List of several.
static void write_json(const struct crd_args *args, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	if (args->kind == OBJECT_KIND__COUNT) {
		json_write_object_begin(&w);
		json_write_member_str(&w, "apiVersion", "v1");
		json_write_member_str(&w, "kind", "List");
		json_write_member_array(&w, "items");
	}
	for (enum object_kind i = 0; i < CRD_COUNT; i++)
		if (is_selected(args, i))
			crd_write(&w, i, args->cel);
	if (args->kind == OBJECT_KIND__COUNT) {
		json_write_array_end(&w);
		json_write_object_end(&w);
	}
	buf_putc(out, '\n');
}

// One document each.
static void write_yaml(const struct crd_args *args, struct buf *out)
{
	bool is_first = true;
	for (enum object_kind i = 0; i < CRD_COUNT; i++) {
		struct buf json;
		struct json_writer w;
		if (!is_selected(args, i))
			continue;
		buf_init(&json, CRD_TEXT_MAX);
		json_write_init(&w, &json, 0);
		crd_write(&w, i, args->cel);
		buf_puts(out, is_first ? "" : "---\n");
		is_first = false;
		if (json.failed || yaml_from_json(out, buf_str(&json), json.len) < 0)
			out->failed = true;
		buf_done(&json);
	}
}

static void write_names(const struct crd_args *args, struct buf *out)
{
	for (enum object_kind i = 0; i < CRD_COUNT; i++)
		if (is_selected(args, i))
			print_to(out, "customresourcedefinition.apiextensions.k8s.io/%s." CRD_GROUP "\n",
			         object_kind_info(i)->plural);
}

static void write_text(const struct crd_args *args, struct buf *out)
{
	if (args->output == OUTPUT_JSON)
		write_json(args, out);
	else if (args->output == OUTPUT_NAME)
		write_names(args, out);
	else
		write_yaml(args, out);
}

int cmd_crd(int argc, char **argv)
{
	struct crd_args args = {.output = OUTPUT_YAML, .kind = OBJECT_KIND__COUNT};
	args_parse(&command, argc, argv, &args);
	struct buf text;
	buf_init(&text, CRD_TEXT_MAX);
	write_text(&args, &text);
	int code = EXIT_OK;
	if (text.failed) {
		print_error("gpuscale crd: the definition is longer than the ceiling of %d bytes\n", CRD_TEXT_MAX);
		code = EXIT_FAILED;
	} else if (print_out(&text) < 0) {
		code = EXIT_FAILED;
	}
	buf_done(&text);
	return code;
}
