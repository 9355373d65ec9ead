// SPDX-License-Identifier: Apache-2.0
// gpuscale convert FILE..
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/schema.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/convert.h"
#include "controller/options.h"
#include "policies/policy_schema.h"

#define CONVERT_ARENA_MAX (64 * 1024 * 1024)

struct convert_args {
	struct path_options files;
};

struct totals {
	size_t converted, skipped, notes, faults;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct convert_args *a = state->input;
	switch (key) {
	case ARGP_KEY_ARG:
		path_options_add(&a->files, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "name at least one file, or - for standard input");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// What was written must be a policy; what is missing (a query, maxReplicas) is said by the same messages as check's.
static void check_text(struct arena *a, const char *name, const struct buf *text, struct totals *totals)
{
	struct doc_file file;
	struct err e;
	struct schema_errors errors;
	struct buf report;
	if (doc_parse_yaml(a, name, buf_str(text), text->len, &file, &e) < 0) {
		fprintf(stderr, "gpuscale convert: %s\n", e.msg);
		totals->faults++;
		return;
	}
	buf_init(&report, CONVERT_TEXT_MAX);
	for (size_t i = 0; i < file.n_roots; i++) {
		struct policy policy = {0};
		schema_errors_init(&errors, name);
		if (policy_decode(file.roots[i], &policy, a, &errors) < 0) {
			schema_errors_print(&errors, &report);
			totals->faults++;
		}
	}
	fputs(buf_str(&report), stderr);
	buf_done(&report);
}

// "HorizontalPodAutoscaler" of a HorizontalPodAutoscalerList, "" when nothing can be learnt from it.
static const char *list_kind(struct conversion *c, const struct doc_node *list)
{
	const char *kind = convert_get(list, "kind", "");
	size_t n = strlen(kind);
	return n > 4 && strcmp(kind + n - 4, "List") == 0 ? convert_text(c, "%.*s", (int)(n - 4), kind) : "";
}

// list: what root is an item of, or NULL. The items of `kubectl get -o yaml` say what they are; those of a typed list
// (HorizontalPodAutoscalerList) leave it to the list.
static void convert_object(struct arena *a, const char *file, const struct doc_node *root, const struct doc_node *list,
                           struct buf *out, struct totals *totals)
{
	struct conversion *c = arena_calloc(a, 1, sizeof *c);
	const struct doc_node *items = doc_get(root, "items"), *metadata = doc_get(root, "metadata");
	if (items) { // kubectl get -o yaml
		for (const struct doc_node *item = items->child; item; item = item->next)
			convert_object(a, file, item, root, out, totals);
		return;
	}
	if (!c) {
		fputs("gpuscale convert: out of memory\n", stderr);
		totals->faults++;
		return;
	}
	c->arena = a;
	c->kind = convert_get(root, "kind", list_kind(c, list));
	c->api_version = convert_get(root, "apiVersion", convert_get(list, "apiVersion", "no apiVersion"));
	c->name = convert_get(metadata, "name", NULL);
	c->namespace_name = convert_get(metadata, "namespace", NULL);
	if (!convert_hpa(c, root) && !convert_keda(c, root) && !convert_wpa(c, root)) {
		fprintf(stderr,
		        "%s:%d: %s is not converted: only HorizontalPodAutoscaler, ScaledObject and "
		        "WatermarkPodAutoscaler are\n",
		        file, root->line, c->kind[0] ? c->kind : "an object without kind");
		totals->skipped++;
		return;
	}
	convert_note_templates(c, root);
	convert_write(out, c);
	totals->converted++;
	totals->notes += c->n_notes;
	for (size_t i = 0; i < c->n_signals; i++)
		totals->notes += c->signals[i].note != NULL;
}

int cmd_convert(int argc, char **argv)
{
	const struct argp argp = {
	        NULL,
	        parse,
	        "FILE..",
	        "Turn HorizontalPodAutoscalers, ScaledObjects (KEDA) and WatermarkPodAutoscalers into GPUAutoscalers: "
	        "YAML on standard output, with comments on what could not be carried over. FILE - is standard input; "
	        "lists, as `kubectl get hpa -A -o yaml` prints them, are fine. Nothing is applied."
	        "\vExit status: 0 converted, 1 when a result still needs something (it is printed all the same, and "
	        "what "
	        "it lacks is said as `gpuscale check` says it) or nothing could be converted, 2 wrong usage."
	        "\n\nExamples:\n"
	        "  kubectl get hpa llama -o yaml | gpuscale convert - > llama.yaml\n"
	        "  gpuscale check llama.yaml && gpuscale plan -f llama.yaml --prometheus URL",
	        NULL,
	        NULL,
	        NULL};
	struct convert_args args = {0};
	args_parse(&argp, argc, argv, &args);
	struct arena a;
	struct buf out;
	struct totals totals = {0};
	arena_init(&a, CONVERT_ARENA_MAX);
	buf_init(&out, CONVERT_ARENA_MAX);
	for (size_t i = 0; i < args.files.n; i++) {
		struct doc_file file;
		struct err e;
		if (doc_read_yaml(&a, args.files.paths[i], &file, &e) < 0) {
			fprintf(stderr, "gpuscale convert: %s\n", e.msg);
			totals.faults++;
			continue;
		}
		for (size_t k = 0; k < file.n_roots; k++)
			convert_object(&a, file.name, file.roots[k], NULL, &out, &totals);
		if (file.n_roots == 0)
			fprintf(stderr, "gpuscale convert: %s: there is nothing in it\n", file.name);
	}
	fputs(buf_str(&out), stdout);
	fflush(stdout);
	check_text(&a, "<result>", &out, &totals);
	fprintf(stderr, "%zu converted, %zu skipped, %zu %s to look at\n", totals.converted, totals.skipped,
	        totals.notes, totals.notes == 1 ? "note" : "notes");
	buf_done(&out);
	arena_done(&a);
	return totals.faults || totals.converted == 0 ? EXIT_FAILED : EXIT_OK;
}
