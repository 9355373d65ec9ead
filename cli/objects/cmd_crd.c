// SPDX-License-Identifier: Apache-2.0
// gpuscale crd [KIND] [--cel] [-o yaml|json]
#include <assert.h>

#include "base/json/yaml_out.h"
#include "cli/term/cli.h"
#include "cli/term/object_kind.h"
#include "controller/status/status_schema.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"

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

#define CRD_NAME_BYTES 64

// NOLINTNEXTLINE(misc-redundant-expression): they must be equal
_Static_assert(sizeof CRD_GROUP "/" CRD_VERSION == sizeof POLICY_API_VERSION, "the group and version of the policy");

struct column {
	const char *name, *type, *path, *doc;
	int priority; // 1: only with -o wide
};
// kubectl prints the last column last, regardless of its priority.
static const struct column policy_columns[] = {
        {"Target", "string", ".spec.scaleTargetRef.name", "Name of the target.", 0},
        {"Min", "integer", ".spec.minReplicas", "Lower bound.", 0},
        {"Max", "integer", ".spec.maxReplicas", "Upper bound.", 0},
        {"Current", "integer", ".status.currentReplicas", "Replicas of the target.", 0},
        {"Desired", "integer", ".status.desiredReplicas", "Replicas that the last decision requests.", 0},
        {"Reason", "string", ".status.reason", "Why.", 0},
        {"Signals", "string", ".status.signalsSummary", "Signals and their targets.", 1},
        {"Last Scale", "date", ".status.lastScaleTime", "When the target was last scaled.", 1},
        {"Age", "date", ".metadata.creationTimestamp", "Age of the policy.", 0},
};

static const struct column pool_columns[] = {
        {"GPUs", "integer", ".spec.gpus", "The cap.", 0},
        {"Used", "integer", ".status.usedGPUs", "GPUs that the members count for.", 0},
        {"Members", "integer", ".status.memberCount", "Policies that belong to the pool.", 0},
        {"Limited", "integer", ".status.limitedCount", "Members that got less than they asked for.", 0},
        {"Projected", "string", ".status.spending.projected", "What the month will have cost at its end.", 0},
        {"Spent", "string", ".status.spending.spent", "What the month has cost.", 1},
        {"Per Hour", "string", ".spec.budget.perHour", "The budget per hour.", 1},
        {"Per Month", "string", ".spec.budget.perMonth", "The budget per month.", 1},
        {"Age", "date", ".metadata.creationTimestamp", "Age of the pool.", 0},
};

struct definition {
	const char *list_kind;
	const struct schema *schema, *status;
	const struct column *columns;
	size_t n_columns;
};

#define COLUMNS(table) (table), sizeof(table) / sizeof(table)[0]
// clang-format off
static const struct definition definitions[] = {
	[OBJECT_POLICY] = {POLICY_KIND "List", &policy_schema, &status_schema, COLUMNS(policy_columns)},
	[OBJECT_POOL]   = {POOL_KIND "List", &pool_schema, &pool_status_schema, COLUMNS(pool_columns)},
};
// clang-format on

_Static_assert(sizeof definitions / sizeof definitions[0] == CRD_COUNT, "one definition per stored resource");

static void put_columns(struct json_writer *w, const struct definition *d)
{
	json_write_member_array(w, "additionalPrinterColumns");
	for (size_t i = 0; i < d->n_columns; i++) {
		const struct column *c = &d->columns[i];
		json_write_format(w, "{name:%s,type:%s,jsonPath:%s,description:%s", c->name, c->type, c->path, c->doc);
		if (c->priority)
			json_write_member_i64(w, "priority", c->priority);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

// The API server validates metadata itself; a CRD must not constrain it.
static void put_schema(struct json_writer *w, const struct definition *d, bool with_rules)
{
	const struct schema_field *spec = schema_find(d->schema, "spec", NULL, NULL);
	assert(spec && spec->child);
	json_write_format(w, "schema:{openAPIV3Schema:{description:%s,type:%s,required:[%s]", d->schema->doc, "object",
	                  "spec");
	json_write_format(w, "properties:{apiVersion:{type:%s},kind:{type:%s},metadata:{type:%s}", "string", "string",
	                  "object");
	json_write_key(w, "spec");
	schema_openapi(spec->child, with_rules, w);
	json_write_key(w, "status");
	schema_openapi(d->status, false, w);
	json_write_format(w, "}}}");
}

// Writes the definition of a stored resource (apiextensions.k8s.io/v1), identical in each call. `with_rules` adds rules
// for Kubernetes 1.25 and later.
static void crd_write(struct json_writer *w, enum object_kind kind, bool with_rules)
{
	const struct definition *d = &definitions[kind];
	const struct object_kind_info *r = object_kind_info(kind);
	char name[CRD_NAME_BYTES];
	snprintf(name, sizeof name, "%s." CRD_GROUP, r->plural);
	json_write_format(w,
	                  "{apiVersion:%s,kind:%s,metadata:{name:%s,labels:{app.kubernetes.io/name:%s,"
	                  "app.kubernetes.io/part-of:%s}},spec:{group:%s,scope:%s",
	                  "apiextensions.k8s.io/v1", "CustomResourceDefinition", name, "gpuscale", "gpuscale",
	                  CRD_GROUP, r->is_namespaced ? "Namespaced" : "Cluster");
	json_write_format(w, "names:{kind:%s,listKind:%s,plural:%s,singular:%s,shortNames:[%s]", r->kind, d->list_kind,
	                  r->plural, r->singular, r->short_name);
	if (r->is_namespaced)
		json_write_format(w, "categories:[%s]", "all");
	json_write_format(w, "},versions:[{name:%s,served:%i,storage:%i,subresources:{status:{}}", CRD_VERSION, true,
	                  true);
	put_columns(w, d);
	put_schema(w, d, with_rules);
	json_write_format(w, "}]}}");
}

static void put_yaml(struct buf *out, enum object_kind kind, bool with_rules)
{
	struct buf json = BUF(CRD_TEXT_MAX);
	struct json_writer w = JSON_WRITER(&json, 0);
	crd_write(&w, kind, with_rules);
	buf_puts(out, out->len ? "---\n" : "");
	out->failed |= json.failed || yaml_from_json(out, buf_str(&json), json.len) < 0;
	buf_done(&json);
}

// One object, or several: a List in JSON, a document each in YAML, or their names.
static void write_text(const struct crd_args *args, struct buf *out)
{
	bool is_json = args->output == OUTPUT_JSON, is_list = is_json && args->kind == OBJECT_KIND__COUNT;
	struct json_writer w = JSON_WRITER(out, 2);
	if (is_list)
		json_write_format(&w, "{apiVersion:%s,kind:%s,items:[", "v1", "List");
	for (enum object_kind i = 0; i < CRD_COUNT; i++) {
		if (args->kind != OBJECT_KIND__COUNT && args->kind != i)
			continue;
		if (is_json)
			crd_write(&w, i, args->cel);
		else if (args->output == OUTPUT_NAME)
			print_to(out, "customresourcedefinition.apiextensions.k8s.io/%s." CRD_GROUP "\n",
			         object_kind_info(i)->plural);
		else
			put_yaml(out, i, args->cel);
	}
	if (is_list)
		json_write_format(&w, "]}");
	buf_puts(out, is_json ? "\n" : "");
}

int cmd_crd(int argc, char **argv)
{
	struct crd_args args = {.output = OUTPUT_YAML, .kind = OBJECT_KIND__COUNT};
	args_parse(&command, argc, argv, &args);
	struct buf text = BUF(CRD_TEXT_MAX);
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
