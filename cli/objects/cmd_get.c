// SPDX-License-Identifier: Apache-2.0
// gpuscale get [KIND] [NAME..]: lists the GPUAutoscalers of a cluster, or its GPUPools, with their status, or failing
// GPUs.
#include <cjson/cJSON.h>
#include <event2/event.h>

#include "base/hash.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/term/cli.h"
#include "controller/fleet/fleet_targets.h"
#include "controller/source/policy_object.h"
#include "controller/status/status_schema.h"
#include "k8s/cache/target_decode.h"
#include "k8s/cache/watch.h"
#include "k8s/targets/workload_kind.h"
#include "policies/load/policy_ref.h"
#include "remedy/agent/node_view.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"

#define KINDS (1U << OBJECT_POLICY | 1U << OBJECT_POOL | 1U << OBJECT_REMEDIATION | 1U << OBJECT_SCALED_OBJECT)

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

#define SELECTOR_BYTES 300

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
	if (alloc_reserve(&w->seen, w->n_seen, &w->room, sizeof *w->seen, 64) == 0)
		w->seen[w->n_seen++] = (struct seen){id, version};
	return true; // without memory, it may be printed twice
}

static void print_changes(struct watcher *w, const struct policy_views *v, bool with_head)
{
	bool all = w->scope->all_namespaces;
	int64_t now_ms = clock_wall_ms(&w->session->clock);
	struct buf out = BUF(OUTPUT_MAX);
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
	struct err e = {0};
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

// ---- pools ----

struct pool_view {
	struct pool_status status;
	bool has_status;
};

// Returns the statuses of the pools, of which the caller frees the array; NULL when memory is exhausted. One that
// cannot be decoded counts as absent: no number is better than a wrong one.
static struct pool_view *read_statuses(struct policy_views *v)
{
	struct schema_errors *errors = malloc(2 * sizeof *errors);
	struct pool_view *pools = calloc(v->n ? v->n : 1, sizeof *pools);
	for (size_t i = 0; errors && pools && i < v->n; i++) {
		const struct doc_node *status = doc_get(v->items[i].root, "status");
		schema_errors_init(&errors[0], NULL);
		schema_errors_init(&errors[1], NULL);
		pools[i].has_status = status && status->kind == DOC_MAP &&
		                      schema_decode_tolerant(&pool_status_schema, status, &pools[i].status, &v->arena,
		                                             &errors[0], &errors[1], "status") == 0;
	}
	if (!errors) {
		free(pools);
		pools = NULL;
	}
	free(errors);
	return pools;
}

static struct table_text show_money(bool is_known, double money)
{
	return is_known ? table_amount(money, "") : (struct table_text){"<none>"};
}

static void put_pools(struct buf *out, const struct policy_views *v, const struct pool_view *pools, bool wide,
                      int64_t now_ms)
{
	struct table t;
	table_init_wide(
	        &t,
	        "NAME\tGPUS\tUSED\tMEMBERS\tLIMITED\t+COST/H\t+PER-HOUR\t+SPENT\tPROJECTED\t+PER-MONTH\tAGE\t+MESSAGE",
	        wide, NULL);
	for (size_t i = 0; i < v->n; i++) {
		const struct pool_view *p = &pools[i];
		const struct doc_node *spec = doc_get(v->items[i].root, "spec"), *budget = doc_get(spec, "budget");
		const struct pool_status *s = &p->status;
		const struct pool_status_spending *spending = &s->spending;
		bool is_known = spending->since_ms > 0;
		table_put(&t, "%s\t%s\t%s\t%s\t%s", table_or_none(v->items[i].name),
		          table_or_none(doc_get_text(spec, "gpus", NULL)),
		          table_number(p->has_status, s->used_gpus, "<unknown>").text,
		          table_number(p->has_status, s->member_count, "<unknown>").text,
		          table_number(p->has_status, s->limited_count, "<unknown>").text);
		table_put(&t, "%s\t%s\t%s\t%s\t%s\t%s\t%s", show_money(is_known, spending->per_hour).text,
		          table_or_none(doc_get_text(budget, "perHour", NULL)),
		          show_money(is_known, spending->spent).text, show_money(is_known, spending->projected).text,
		          table_or_none(doc_get_text(budget, "perMonth", NULL)),
		          table_age(v->items[i].created_ms, now_ms).text, table_or_none(s->message));
	}
	table_finish(&t, out, 0, true);
}

static void put_members(struct buf *out, const struct policy_views *v, const struct pool_view *pools, bool wide)
{
	struct table t;
	table_init_wide(&t, "POOL\tMEMBER\tREQUESTED\tGRANTED\tGPUS\t!REASON\t+MESSAGE", wide, policy_render_tone);
	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < pools[i].status.n_members; k++) {
			const struct pool_status_member *m = &pools[i].status.members[k];
			table_put(&t, "%s\t%s\t%d\t%d\t%d\t%s\t%s", table_or_none(v->items[i].name),
			          table_or_none(m->name), m->requested, m->granted, m->gpus, table_or_none(m->reason),
			          table_or_none(m->message));
		}
	if (t.n_cells > 0) {
		buf_putc(out, '\n');
		table_print(&t, out, 0, true);
	}
	out->failed |= t.cells.failed;
	table_done(&t);
}

static void render_pools(struct buf *out, struct policy_views *v, bool wide, int64_t now_ms)
{
	struct pool_view *pools = read_statuses(v);
	if (pools) {
		put_pools(out, v, pools, wide, now_ms);
		put_members(out, v, pools, wide);
	}
	out->failed |= !pools;
	free(pools);
}

// ---- the targets of a fleet ----

#define PAGES_MAX        100
#define SPACES_BYTES_MAX ((size_t)64 * 1024 * 1024) // names of namespaces
#define PATH_BYTES       512
#define TEXT_BYTES       256

static const char target_heads[] = "TARGET\tREPLICAS\tREADY\tMIN\tMAX\tSTATE\tMESSAGE";

struct listing {
	const struct policy_view *policy;
	struct table table;
	struct buf spaces; // the namespaces that the fleet spans: " NAME NAME "; empty: it does not
};

static const char *read_annotation(struct json_span annotations, const char *key, char out[TEXT_BYTES],
                                   const char *fallback)
{
	return table_or_none(json_span_text(json_span_get(annotations, key), out, TEXT_BYTES) >= 0 ? out : fallback);
}

static int add_space(void *arg, struct json_span object, struct err *e)
{
	struct listing *l = arg;
	char none[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES];
	if (object_decode_name(object.text, object.len, none, name) && strcmp(name, "kube-system") != 0) {
		buf_puts(&l->spaces, name);
		buf_putc(&l->spaces, ' ');
	}
	return 0;
}

static void restart_spaces(void *arg)
{
	struct listing *l = arg;
	buf_reset(&l->spaces);
	buf_putc(&l->spaces, ' ');
}

static bool is_in_scope(const struct listing *l, const char *space)
{
	char word[TARGET_NAME_BYTES + 2];
	snprintf(word, sizeof word, " %s ", space);
	return l->spaces.len == 0 || strstr(buf_str(&l->spaces), word);
}

static int put_target(void *arg, struct json_span object, struct err *e)
{
	struct listing *l = arg;
	struct json_span annotations = json_span_get(json_span_get(object, "metadata"), "annotations");
	char space[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES], key[2 * TARGET_NAME_BYTES];
	char min[TEXT_BYTES], max[TEXT_BYTES];
	struct target_fields f;
	if (!object_decode_name(object.text, object.len, space, name))
		return err_set(e, ERR_PROTOCOL, "the list has an object without a name");
	if (!is_in_scope(l, space))
		return 0;
	if (target_decode(object.text, object.len, &f, e) < 0)
		return -1;
	snprintf(key, sizeof key, "%s/%s", space, name);
	const struct doc_node *worst = doc_get(l->policy->status.fleet, "worst");
	const struct doc_node *one = worst ? worst->child : NULL;
	while (one && strcmp(doc_get_text(one, "target", ""), key) != 0)
		one = one->next;
	table_put(&l->table, "%s\t%d\t%d\t%s\t%s\t%s\t%s", l->spaces.len ? key : name, f.spec_replicas,
	          f.ready_replicas > 0 ? f.ready_replicas : 0,
	          read_annotation(annotations, FLEET_ANNOTATION_MIN, min, l->policy->min),
	          read_annotation(annotations, FLEET_ANNOTATION_MAX, max, l->policy->max),
	          table_or_none(doc_get_text(one, "state", NULL)), table_or_none(doc_get_text(one, "message", NULL)));
	return 0;
}

// The server dropped its list, and the rows with it.
static void restart_targets(void *arg)
{
	struct listing *l = arg;
	table_done(&l->table);
	table_init(&l->table, target_heads);
}

static const struct kube_pages spaces = {"namespaces", PAGES_MAX, add_space, restart_spaces};

static int list_targets(struct connections *session, struct listing *l, const struct fleet_selection *fleet,
                        struct err *e)
{
	const struct workload_kind *kind = workload_kind_find(fleet->api_version, fleet->kind, NULL);
	const struct kube_pages targets = {kind->plural, PAGES_MAX, put_target, restart_targets};
	char path[PATH_BYTES], selector[FLEET_SELECTOR_BYTES_MAX + 32];
	if (!kind->plural)
		return err_set(e, ERR_UNSUPPORTED, "not supported: a fleet of kind %s", fleet->kind);
	if (fleet->spans) {
		restart_spaces(l);
		snprintf(selector, sizeof selector, "%s%s", fleet->namespaces.text[0] ? "labelSelector=" : "",
		         fleet->namespaces.text);
		if (kube_pages_fetch(session, &spaces, "/api/v1/namespaces", selector, l, e) < 0)
			return -1;
		snprintf(path, sizeof path, "/apis/apps/v1/%s", kind->plural);
	} else {
		snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/%s", l->policy->namespace_name, kind->plural);
	}
	snprintf(selector, sizeof selector, "%s%s", fleet->selector.text[0] ? "labelSelector=" : "",
	         fleet->selector.text);
	return kube_pages_fetch(session, &targets, path, selector, l, e);
}

// Appends the objects that the policy selects, as the API server has them, with what the status says about the worst.
// Prints errors, and returns the exit code.
static int fleet_get(struct connections *session, const struct policy_view *policy, struct buf *out)
{
	struct schema_errors *errors = calloc(2, sizeof *errors);
	struct policy_ref *body = policy_ref_new();
	struct policy_object object;
	struct policy_document document;
	struct listing l = {.policy = policy};
	struct err e = {0};
	int code = EXIT_FAILED;
	if (!errors || !body) {
		print_error("gpuscale get: out of memory\n");
		free(errors);
		policy_ref_release(body);
		return code;
	}
	schema_errors_init(&errors[0], "");
	schema_errors_init(&errors[1], "");
	buf_init(&l.spaces, SPACES_BYTES_MAX);
	table_init(&l.table, target_heads);
	if (policy_object_decode(policy->json, strlen(policy->json), &body->arena, &object, &document, &errors[0],
	                         &errors[1]) < 0)
		print_error("gpuscale get: the policy is invalid: %s: %s\n", errors[0].items[0].path,
		            errors[0].items[0].message);
	else if (!document.fleet.set)
		print_error("gpuscale get: %s has one target: --targets is for a policy with scaleTargets\n",
		            policy->name);
	else if (list_targets(session, &l, &document.fleet, &e) < 0)
		code = command_failed("gpuscale get", &e);
	else
		code = EXIT_OK;
	if (code == EXIT_OK)
		table_finish(&l.table, out, 0, true);
	table_done(&l.table);
	buf_done(&l.spaces);
	policy_ref_release(body);
	free(errors);
	return code;
}

// ---- remediations ----

// The GPUs that are or were out of service, from the annotations of their nodes, and the latest Events of the agent,
// which a dry run writes as well.

#define NODE_PAGES_MAX    200
#define OBJECT_NAME_BYTES 256
#define EVENT_TEXT_BYTES  1100
#define TIME_BYTES        64
#define RECORD_BYTES      (REMEDY_RECORD_BYTES_MAX + 1)

struct remediations {
	enum output_format format;
	struct table nodes, events;
	struct buf names;                  // "node/NAME" per line
	struct buf document;               // both lists as JSON
	struct json_writer w, after_nodes; // of the document
	size_t n_bytes;                    // of the document after the nodes
	int64_t now_ms;
	struct remedy_node record;
	char text[RECORD_BYTES], node[OBJECT_NAME_BYTES]; // node: of the last name
};

static const char *state_of(const struct remedy_node *n, int gpu, const struct remedy_fault *f, int64_t now_ms)
{
	const struct remedy_gpu *g = &n->gpus[gpu];
	if (g->out_ms >= 0)
		return "Out";
	if (f)
		return "Failing";
	return g->was_out_ms >= 0 && now_ms - g->was_out_ms < REMEDY_DAY_MS ? "Returned" : NULL;
}

static void add_name(struct remediations *l, const char *node)
{
	if (strcmp(l->node, node) != 0)
		print_to(&l->names, "node/%s\n", node);
	snprintf(l->node, sizeof l->node, "%s", node);
}

static void add_gpus(struct remediations *l, const char *node)
{
	const struct remedy_node *n = &l->record;
	for (int i = 0; i < n->n_gpus; i++) {
		const struct remedy_gpu *g = &n->gpus[i];
		const struct remedy_fault *f = remedy_evidence_of(n, i, l->now_ms);
		const char *state = state_of(n, i, f, l->now_ms), *name = i > 0 ? g->uuid : "node";
		char fault[REMEDY_FAULT_NAME_BYTES] = "-", need[NUM_TEXT_BYTES] = "-";
		int64_t since_ms = f ? f->first_ms : g->was_out_ms;
		if (!state)
			continue;
		if (f)
			remedy_fault_name(f->id, fault);
		if (g->out_ms >= 0)
			num_format_duration_ms(need, g->need_ms);
		add_name(l, node);
		table_put(&l->nodes, "%s\t%s\t%s\t%s\t%s\t%d\t%s", node, name, state, fault, need, n->n_attempts,
		          table_age(since_ms, l->now_ms).text);
		json_write_format(&l->w, "{node:%s,gpu:%s,state:%s", node, name, state);
		if (f)
			json_write_member_str(&l->w, "fault", fault);
		if (g->out_ms >= 0)
			json_write_member_f64(&l->w, "cleanSeconds", (double)g->need_ms / 1000);
		json_write_format(&l->w, "attempts:%d,since:%jd}", n->n_attempts, since_ms);
	}
}

static int add_node(void *listing, struct json_span node, struct err *e)
{
	struct remediations *l = listing;
	static const char *const annotation[] = {"metadata", "annotations", NODE_ANNOTATION, NULL};
	char name[OBJECT_NAME_BYTES];
	struct err fault;
	struct json_span text = json_span_path(node, annotation);
	if (json_span_text(json_span_get(json_span_get(node, "metadata"), "name"), name, sizeof name) < 0 ||
	    json_span_kind(text) != '"')
		return 0;
	int len = json_span_text(text, l->text, sizeof l->text);
	if (len >= 0 && remedy_record_read(l->text, (size_t)len, l->now_ms, &l->record, &fault) == 0) {
		add_gpus(l, name);
		return 0;
	}
	add_name(l, name);
	table_put(&l->nodes, "%s\t-\tBadRecord\t-\t-\t-\t<unknown>", name);
	json_write_format(&l->w, "{node:%s,state:%s}", name, "BadRecord");
	return 0;
}

static int add_event(void *listing, struct json_span event, struct err *e)
{
	struct remediations *l = listing;
	static const char *const of[] = {"involvedObject", "name", NULL}, *const by[] = {"source", "component", NULL};
	char node[OBJECT_NAME_BYTES], reason[OBJECT_NAME_BYTES], message[EVENT_TEXT_BYTES], time[TIME_BYTES];
	int64_t last_ms = 0, count = 1;
	if (!json_span_is(json_span_path(event, by), "gpuscale-remediate") ||
	    json_span_text(json_span_path(event, of), node, sizeof node) < 0 ||
	    json_span_text(json_span_get(event, "reason"), reason, sizeof reason) < 0 ||
	    json_span_text(json_span_get(event, "message"), message, sizeof message) < 0)
		return 0;
	int len = json_span_text(json_span_get(event, "lastTimestamp"), time, sizeof time);
	if (len > 0)
		(void)num_parse_rfc3339_ms(time, (size_t)len, &last_ms, NULL);
	(void)json_span_i64(json_span_get(event, "count"), 1, INT32_MAX, &count);
	table_put(&l->events, "%s\t%s\t%s\t%lld\t%s", node, reason, message, (long long)count,
	          table_age(last_ms, l->now_ms).text);
	json_write_format(&l->w, "{node:%s,event:%s,message:%s,count:%ld,last:%jd}", node, reason, message, count,
	                  last_ms);
	return 0;
}

static const char node_head[] = "NODE\tGPU\tSTATE\tFAULT\tCLEAN-TIME\tATTEMPTS\tAGE";
static const char event_head[] = "NODE\tEVENT\tMESSAGE\tCOUNT\tLAST";

static void restart_nodes(void *arg)
{
	struct remediations *l = arg;
	table_done(&l->nodes);
	table_init(&l->nodes, node_head);
	buf_reset(&l->names);
	l->node[0] = '\0';
	buf_reset(&l->document);
	json_write_init(&l->w, &l->document, 2);
	json_write_format(&l->w, "{gpus:[");
}

static void restart_events(void *arg)
{
	struct remediations *l = arg;
	table_done(&l->events);
	table_init(&l->events, event_head);
	l->document.len = l->n_bytes;
	l->w = l->after_nodes;
}

static int fetch_remediations(struct connections *session, struct remediations *l, struct err *e)
{
	static const struct kube_pages nodes = {"nodes", NODE_PAGES_MAX, add_node, restart_nodes};
	static const struct kube_pages events = {"Events", NODE_PAGES_MAX, add_event, restart_events};
	restart_nodes(l);
	if (kube_pages_fetch(session, &nodes, "/api/v1/nodes", "", l, e) < 0)
		return -1;
	json_write_format(&l->w, "],events:[");
	l->n_bytes = l->document.len;
	l->after_nodes = l->w;
	restart_events(l);
	int rc = kube_pages_fetch(session, &events, "/api/v1/namespaces/default/events",
	                          "fieldSelector=involvedObject.kind=Node", l, e);
	json_write_format(&l->w, "]}");
	return rc;
}

static int print_remediations(struct remediations *l)
{
	struct buf tables = BUF(OUTPUT_MAX);
	if (l->nodes.n_cells)
		table_print(&l->nodes, &tables, 0, true);
	if (tables.len && l->events.n_cells)
		buf_putc(&tables, '\n');
	if (l->events.n_cells)
		table_print(&l->events, &tables, 0, true);
	tables.failed |= l->nodes.cells.failed || l->events.cells.failed;
	bool is_document = output_is_document(l->format), is_table = !is_document && l->format != OUTPUT_NAME;
	if (is_table && tables.len == 0 && !tables.failed)
		print_error("No remediations found.\n");
	struct buf *report = is_document ? &l->document : is_table ? &tables : &l->names;
	int code = output_print("gpuscale get", report, l->format) < 0 ? EXIT_FAILED : EXIT_OK;
	buf_done(&tables);
	return code;
}

// Fetches and prints both lists in `format`; OUTPUT_NAME: the nodes. Prints errors, and returns the exit code.
static int get_remediations(const struct kube_options *kube, enum output_format format)
{
	struct connections session;
	struct err e;
	struct remediations *l = calloc(1, sizeof *l);
	int code = EXIT_FAILED;
	if (!l) {
		print_error("gpuscale get: out of memory\n");
		return EXIT_FAILED;
	}
	if (connections_open(&session, NULL, kube, NULL, NULL, &e) < 0) {
		free(l);
		return command_failed("gpuscale get", &e);
	}
	l->format = format;
	l->now_ms = clock_wall_ms(&session.clock);
	l->names = l->document = BUF(OUTPUT_MAX);
	if (fetch_remediations(&session, l, &e) == 0)
		code = print_remediations(l);
	else
		print_error("gpuscale get: %s\n", e.msg);
	table_done(&l->nodes);
	table_done(&l->events);
	buf_done(&l->names);
	buf_done(&l->document);
	free(l);
	connections_close(&session);
	return code;
}

// ---- the command ----

static int print(void *arg, struct connections *session, struct policy_views *v, struct buf *out)
{
	const struct get_args *a = arg;
	int64_t now_ms = clock_wall_ms(&session->clock);
	bool is_table = a->output == OUTPUT_TABLE || a->output == OUTPUT_WIDE;
	if (a->targets)
		return fleet_get(session, &v->items[0], out);
	if (is_table && a->scope.kind == OBJECT_POOL)
		render_pools(out, v, a->output == OUTPUT_WIDE, now_ms);
	else
		policy_render_list(out, v, &a->book, a->output, a->scope.n_names == 1, a->scope.all_namespaces, now_ms);
	return EXIT_OK;
}

static int get_all(struct get_args *a)
{
	struct connections session;
	if (!a->watch)
		return policy_fetch_run(&a->scope, "gpuscale get", a->output, print, a);
	int code = policy_fetch_open(&session, &a->scope, "gpuscale get");
	if (code != EXIT_OK)
		return code;
	code = get_watch(&session, &a->scope, &a->book, a->output);
	connections_close(&session);
	return code;
}

int cmd_get(int argc, char **argv)
{
	struct get_args args = {.output = OUTPUT_TABLE, .scope.kinds = KINDS};
	args_parse(&command, argc, argv, &args);
	if (args.scope.kind == OBJECT_REMEDIATION)
		return get_remediations(&args.scope.kube, args.output);
	struct arena prices = ARENA(PRICE_OPTION_ARENA_MAX);
	int code = EXIT_FAILED;
	if (args.output != OUTPUT_WIDE || price_option_read(args.prices, &prices, &args.book, "gpuscale get") == 0)
		code = get_all(&args);
	arena_done(&prices);
	return code;
}
