// SPDX-License-Identifier: Apache-2.0
// gpuscale get [KIND] [NAME..]: lists the GPUAutoscalers of a cluster, or its GPUPools, with their status, or failing
// GPUs.
#include <cjson/cJSON.h>
#include <event2/event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/json/json_read.h"
#include "base/print.h"
#include "cli/objects/fleet_get.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/objects/pool_get.h"
#include "cli/objects/remediation_list.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/price_option.h"
#include "cli/term/table.h"
#include "k8s/cache/watch.h"
#include "policies/explain/explain.h"
#include "policies/price/price_book.h"
#include "runtime/connections.h"

#define KINDS          (1U << OBJECT_POLICY | 1U << OBJECT_POOL | 1U << OBJECT_REMEDIATION | 1U << OBJECT_SCALED_OBJECT)
#define GET_OUTPUT_MAX ((size_t)512 * 1024 * 1024)

struct get_args {
	struct policy_scope scope;
	enum output_format output;
	bool watch, targets;
	const char *prices;
	struct price_book book; // of -o wide
};

static void check(void *options, struct argp_state *state)
{
	const struct get_args *a = options;
	if (a->watch && a->scope.n_names > 1)
		print_usage(state, "-w takes one name, or none for all");
	if (a->watch && a->scope.kind != OBJECT_POLICY)
		print_usage(state, "not supported: -w of %s%s", object_kind_info(a->scope.kind)->plural,
		            a->scope.kind == OBJECT_POOL ? "; use kubectl get gpupools -w" : "");
	if (a->scope.kind == OBJECT_REMEDIATION && a->scope.n_names)
		print_usage(state, "remediations takes no name");
	if (a->targets && (a->scope.kind != OBJECT_POLICY || a->scope.n_names != 1 || a->watch))
		print_usage(state, "--targets takes the name of one policy, without -w");
	if (a->targets && a->output != OUTPUT_TABLE && a->output != OUTPUT_WIDE)
		print_usage(state, "not supported: --targets with -o %s", output_format_names[a->output]);
	if (a->prices && a->output != OUTPUT_WIDE)
		print_usage(state, "--prices is for -o wide");
}

// clang-format off
#define FLAGS_OF struct get_args
static const struct flag_set command = {
	.args = "[KIND] [NAME..]\nKIND/NAME..",
	.about = "List objects of a cluster. KIND is gpuautoscalers (the default), gpupools, remediations or scaledobjects (of KEDA, on which the controller acts), or its singular "
	         "or short name, as in `gpua` and `pool`. Policies: bounds, present and desired replicas, and why; -o wide "
	         "also shows what the present replicas cost per hour, for policies with spec.gpus; ~ marks an assumed price. "
	         "Pools: what each may use and uses, and what each member asked for and got. Remediations: the GPUs that the "
	         "agent of remediation took out of service, and its Events."
	         "\vExit status: 0 done, 1 failed or not found, 2 wrong usage.",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_OUTPUT(1, output, OUTPUTS_LIST, OUTPUTS_LIST_HELP),
		FLAG_PRICES(1, prices),
		FLAG_WATCH(1, watch, "then print every change, until interrupted"),
		FLAG_SWITCH(1, 0, "targets", targets, "list the targets of a policy with scaleTargets: their replicas, and who scales them"),
		FLAG_ARGUMENTS(scope, policy_scope_add),
		FLAG_INCLUDE(&policy_scope_flags, scope, 0),
		FLAG_END}};
// clang-format on

// ---- watch ----

#define WATCH_OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define SELECTOR_BYTES   300

// The version of each object printed last: a list after a broken stream does not repeat unchanged objects.
struct seen {
	uint64_t object, version;
};

struct watcher {
	struct connections *session;
	const struct policy_scope *scope;
	const struct price_book *prices;
	enum output_format output;
	struct policy_views listed; // until the first list is complete
	struct seen *seen;
	size_t n_seen, room;
	struct table table; // keeps the column widths of the list
	bool is_synced, is_troubled;
	int code;
};

static void end(struct watcher *w, int code)
{
	w->code = code;
	event_base_loopbreak(w->session->loop);
}

// True if this version of the object was not printed yet.
static bool note(struct watcher *w, const cJSON *object)
{
	const cJSON *metadata = json_get(object, "metadata");
	uint64_t id = hash_text(HASH_START, json_get_str(metadata, "uid", ""));
	uint64_t version = hash_text(HASH_START, json_get_str(metadata, "resourceVersion", ""));
	size_t i = 0;
	while (i < w->n_seen && w->seen[i].object != id)
		i++;
	if (i < w->n_seen) {
		bool is_new = w->seen[i].version != version;
		w->seen[i].version = version;
		return is_new;
	}
	if (w->n_seen == w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		struct seen *more = realloc(w->seen, room * sizeof *more);
		if (!more)
			return true; // print it, possibly twice
		w->seen = more;
		w->room = room;
	}
	w->seen[w->n_seen++] = (struct seen){id, version};
	return true;
}

static void print_changes(struct watcher *w, const struct policy_views *v, bool with_head)
{
	bool all = w->scope->all_namespaces;
	int64_t now_ms = clock_wall_ms(&w->session->clock);
	struct buf out;
	buf_init(&out, WATCH_OUTPUT_MAX);
	bool is_table = w->output == OUTPUT_TABLE || w->output == OUTPUT_WIDE;
	if (is_table) {
		for (size_t i = 0; i < v->n; i++)
			policy_render_rows(&w->table, &v->items[i], w->prices, all, now_ms);
		if (v->n > 0)
			table_print(&w->table, &out, 0, with_head);
		out.failed = out.failed || w->table.cells.failed;
		if (print_out(&out) < 0)
			end(w, EXIT_FAILED);
	}
	for (size_t i = 0; i < v->n && !is_table; i++) { // each a document of its own
		struct policy_views one = {.items = &v->items[i], .n = 1};
		buf_reset(&out);
		policy_render_list(&out, &one, w->prices, w->output, true, all, now_ms);
		if (w->output == OUTPUT_YAML)
			print_line("---\n");
		if (output_print("gpuscale get", &out, w->output) < 0)
			end(w, EXIT_FAILED);
	}
	buf_done(&out);
}

static void show(struct watcher *w, const char *json, size_t len, bool is_deleted)
{
	struct err e;
	cJSON *object = json_read(json, len, &e);
	bool is_news = object && (note(w, object) || is_deleted);
	struct policy_views one;
	policy_views_init(&one, OBJECT_POLICY);
	struct policy_views *to = w->is_synced ? &one : &w->listed;
	if (!object || (is_news && policy_views_add(to, object, &e) < 0))
		print_error("gpuscale get: an object that cannot be read: %s\n", e.msg);
	else if (w->is_synced)
		print_changes(w, &one, false);
	policy_views_done(&one);
	cJSON_Delete(object);
}

static void on_object(void *arg, const char *json, size_t len)
{
	show(arg, json, len, false);
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	show(arg, json, len, true);
}

// Deleted policies are reported by on_deleted().
static void on_list(void *arg) {}

static void on_synced(void *arg)
{
	struct watcher *w = arg;
	if (w->is_synced)
		return;
	w->is_synced = true;
	policy_views_sort(&w->listed);
	print_changes(w, &w->listed, true);
	policy_views_done(&w->listed);
}

static void on_error(void *arg, const struct err *error)
{
	struct watcher *w = arg;
	struct err e;
	err_clear(&e);
	if (!error) {
		if (w->is_troubled)
			print_error("gpuscale get: watching again\n");
		w->is_troubled = false;
		return;
	}
	e = *error;
	policy_fetch_explain(&e, OBJECT_POLICY, w->scope->n_names ? w->scope->names[0] : NULL);
	print_error("gpuscale get: %s%s\n", e.msg, w->is_synced ? "; trying again" : "");
	w->is_troubled = true;
	if (!w->is_synced)
		end(w, err_kind_info(e.kind)->exit_code);
}

// `scope` holds at most one name; `prices` is for OUTPUT_WIDE. An error before the first list ends the watch; later
// errors are reported on stderr and retried. Returns the exit code, which happens only on a failure or when stdout is
// closed.
static int get_watch(struct connections *session, const struct policy_scope *scope, const struct price_book *prices,
                     enum output_format output)
{
	char path[POLICY_PATH_BYTES_MAX], selector[SELECTOR_BYTES];
	struct err e;
	struct watcher w = {
	        .session = session, .scope = scope, .prices = prices, .output = output, .code = EXIT_FAILED};
	struct k8s_watch_options options = {.client = session->k8s,
	                                    .path = path,
	                                    .field_selector = scope->n_names ? selector : NULL,
	                                    .callbacks = {.on_list = on_list,
	                                                  .on_object = on_object,
	                                                  .on_deleted = on_deleted,
	                                                  .on_synced = on_synced,
	                                                  .on_error = on_error},
	                                    .arg = &w};
	snprintf(selector, sizeof selector, "metadata.name=%s", scope->n_names ? scope->names[0] : "");
	policy_views_init(&w.listed, OBJECT_POLICY);
	policy_render_table(&w.table, output == OUTPUT_WIDE, scope->all_namespaces);
	const char *name = scope->n_names ? scope->names[0] : NULL; // an invalid name is reported instead of awaited
	struct k8s_watch *watch = policy_path(scope, name, path, &e) < 0 || policy_path(scope, NULL, path, &e) < 0
	                                  ? NULL
	                                  : k8s_watch_new(&options, &e);
	if (!watch) {
		w.code = command_failed("gpuscale get", &e);
	} else if (event_base_dispatch(session->loop) < 0) {
		print_error("gpuscale get: the event loop failed\n");
	}
	k8s_watch_free(watch);
	policy_views_done(&w.listed);
	table_done(&w.table);
	free(w.seen);
	return w.code;
}

static int print(const struct get_args *a, const struct policy_views *v, int64_t now_ms)
{
	struct buf out;
	buf_init(&out, GET_OUTPUT_MAX);
	policy_render_list(&out, v, &a->book, a->output, a->scope.n_names == 1, a->scope.all_namespaces, now_ms);
	int rc = output_print("gpuscale get", &out, a->output);
	buf_done(&out);
	return rc;
}

static int get(struct get_args *a, struct connections *session)
{
	struct policy_views v;
	int code = policy_fetch_named(session, &a->scope, "gpuscale get", &v);
	bool is_empty_table = v.n == 0 && (a->output == OUTPUT_TABLE || a->output == OUTPUT_WIDE);
	// A missing policy was reported; a document without it would look complete.
	if (code == EXIT_OK || v.n > 0) {
		if (is_empty_table || (v.n == 0 && a->output == OUTPUT_NAME))
			policy_fetch_say_none(&a->scope);
		else if (a->targets)
			code = fleet_get(session, &v.items[0]);
		else if (print(a, &v, clock_wall_ms(&session->clock)) < 0)
			code = EXIT_FAILED;
	}
	policy_views_done(&v);
	return code;
}

static int get_all(struct get_args *a)
{
	struct connections session;
	int code = policy_fetch_open(&session, &a->scope, "gpuscale get");
	if (code != EXIT_OK)
		return code;
	if (a->scope.kind == OBJECT_POOL)
		code = pool_get(&session, &a->scope, a->output);
	else
		code = a->watch ? get_watch(&session, &a->scope, &a->book, a->output) : get(a, &session);
	connections_close(&session);
	return code;
}

int cmd_get(int argc, char **argv)
{
	struct get_args args = {.output = OUTPUT_TABLE, .scope.kinds = KINDS};
	args_parse(&command, argc, argv, &args);
	if (args.scope.kind == OBJECT_REMEDIATION)
		return remediation_list_print(&args.scope.kube, args.output);
	struct arena prices;
	arena_init(&prices, PRICE_OPTION_ARENA_MAX);
	int code = EXIT_FAILED;
	if (args.output != OUTPUT_WIDE || price_option_read(args.prices, &prices, &args.book, "gpuscale get") == 0)
		code = get_all(&args);
	arena_done(&prices);
	return code;
}
