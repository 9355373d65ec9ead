// SPDX-License-Identifier: Apache-2.0
// gpuscale convert FILE..
#include "cli/term/cli.h"
#include "policies/convert/convert.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql.h"

#define CONVERT_ARENA_MAX (64 * 1024 * 1024)

struct convert_args {
	struct path_options files;
};

struct totals {
	size_t converted, skipped, notes, faults;
	struct progress progress; // by files, which have at most DOC_BYTES_MAX each
};

// clang-format off
#define FLAGS_OF struct convert_args
static const struct flag_set command = {
	.args = "FILE..",
	.about = "Turn HorizontalPodAutoscalers, ScaledObjects (KEDA), WatermarkPodAutoscalers, PodAutoscalers (AIBrix) "
	         "and DatadogPodAutoscalers into GPUAutoscalers: YAML on standard output, with comments on what was not "
	         "converted. FILE - is standard input; lists, as `kubectl get hpa -A -o yaml` prints them, are fine. Nothing "
	         "is applied."
	         "\vExit status: 0 converted, 1 when a result still needs something (it is printed all the same, and "
	         "`gpuscale check` reports what it lacks) or nothing could be converted, 2 wrong usage."
	         "\n\nExamples:\n"
	         "  kubectl get hpa llama -o yaml | gpuscale convert - > llama.yaml\n"
	         "  gpuscale check llama.yaml && gpuscale plan -f llama.yaml --prometheus URL",
	.missing = "name at least one file, or - for standard input",
	.flags = (const struct flag[]){FLAG_ARGUMENTS(files, path_options_add), FLAG_END}};
// clang-format on

static int any_kind(void *arg, const char *source)
{
	return PROMQL_KIND_AUTO;
}

// The output must be a policy that `gpuscale check` accepts; what is missing or invalid (a query, maxReplicas) is
// reported with its messages.
static void check_text(struct arena *a, const char *name, const struct buf *text, struct totals *totals)
{
	struct doc_file file;
	struct err e;
	struct schema_errors errors, warnings;
	struct buf report = BUF(CONVERT_TEXT_MAX);
	if (doc_parse_yaml(a, name, buf_str(text), text->len, &file, &e) < 0) {
		print_error("gpuscale convert: %s\n", e.msg);
		totals->faults++;
		return;
	}
	for (size_t i = 0; i < file.n_roots; i++) {
		struct policy_document document = {0};
		bool bad[POLICY_SIGNALS_MAX] = {false};
		schema_errors_init(&errors, name);
		schema_errors_init(&warnings, name);
		if (policy_decode(file.roots[i], &document, a, &errors) == 0) {
			policy_zones_load(&document.policy, file.roots[i], a, &errors);
			lint_target(&document, file.roots[i], &errors);
			lint_queries(file.roots[i], buf_str(text), any_kind, NULL, &errors, &warnings, bad);
		}
		schema_errors_print(&errors, &report);
		totals->faults += errors.n > 0;
	}
	print_notes(&report);
	buf_done(&report);
}

// `list` is the list that contains `root`, or NULL.
static void convert_one(struct arena *a, const char *file, const struct doc_node *root, const struct doc_node *list,
                        struct buf *out, struct totals *totals)
{
	const struct doc_node *items = doc_get(root, "items");
	if (items) { // kubectl get -o yaml
		for (const struct doc_node *item = items->child; item; item = item->next)
			convert_one(a, file, item, root, out, totals);
		return;
	}
	struct conversion *c = arena_alloc(a, sizeof *c);
	struct err e;
	int rc = c ? convert_object(c, a, root, list, NULL, &e)
	           : err_set(&e, ERR_INTERNAL, "%d: out of memory", root->line);
	if (rc < 0) {
		struct err shown;
		err_set(&shown, e.kind, "%s:%s", file, e.msg);
		progress_clear(&totals->progress);
		print_error("%s\n", shown.msg);
		totals->skipped += e.kind == ERR_UNSUPPORTED;
		totals->faults += e.kind != ERR_UNSUPPORTED;
		return;
	}
	convert_write(out, c);
	totals->converted++;
	totals->notes += convert_count_notes(c);
	totals->faults += c->is_incomplete;
}

int cmd_convert(int argc, char **argv)
{
	struct convert_args args = {0};
	args_parse(&command, argc, argv, &args);
	struct arena a = ARENA(CONVERT_ARENA_MAX);
	struct buf out = BUF(CONVERT_ARENA_MAX);
	struct totals totals = {.progress = {.what = "converting", .delay_ms = PROGRESS_DELAY_MS}};
	for (size_t i = 0; i < args.files.n; i++) {
		struct doc_file file;
		struct err e;
		progress_show(&totals.progress, i, args.files.n, args.files.paths[i]);
		if (doc_read_yaml(&a, args.files.paths[i], true, &file, &e) < 0) {
			progress_clear(&totals.progress);
			print_error("gpuscale convert: %s\n", e.msg);
			totals.faults++;
			continue;
		}
		for (size_t k = 0; k < file.n_roots; k++)
			convert_one(&a, file.name, file.roots[k], NULL, &out, &totals);
		if (file.n_roots == 0) {
			progress_clear(&totals.progress);
			err_set(&e, ERR_INPUT, "%s: the file is empty", file.name);
			print_error("gpuscale convert: %s\n", e.msg);
		}
	}
	progress_clear(&totals.progress);
	if (out.failed) { // the output is truncated
		print_error("gpuscale convert: the result needs more than %d bytes: convert less at once\n",
		            CONVERT_ARENA_MAX);
		totals.faults++;
	} else {
		print_out(&out);
		check_text(&a, "<result>", &out, &totals);
	}
	print_error("%zu converted, %zu skipped, %zu %s to look at\n", totals.converted, totals.skipped, totals.notes,
	            totals.notes == 1 ? "note" : "notes");
	buf_done(&out);
	arena_done(&a);
	return totals.faults || totals.converted == 0 ? EXIT_FAILED : EXIT_OK;
}
