// SPDX-License-Identifier: Apache-2.0
// gpuscale capacity [NAME..]: the GPUs of a cluster by pool and model, and how many more replicas of each policy fit.
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_span.h"
#include "base/print.h"
#include "cli/objects/capacity_render.h"
#include "cli/objects/capacity_target.h"
#include "cli/objects/kueue_quota.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_view.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/progress.h"
#include "cli/term/prometheus_session.h"
#include "k8s/capacity/capacity_groups.h"
#include "k8s/capacity/inventory.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"
#include "runtime/options/flag_table.h"

#define CAPACITY_OUTPUT_MAX ((size_t)256 * 1024 * 1024)
#define CAPACITY_REPORT_MAX (16 * 1024 * 1024)
#define COMMAND             "gpuscale capacity"

struct capacity_args {
	struct policy_scope scope;
	struct prometheus_options prometheus; // of the metrics of Kueue
	struct path_options files;
	const char *pool_label; // NULL: the known ones
	enum output_format format;
};

// The policies, from the cluster or from files, and what capacity_target_read() adds.
struct selection {
	struct policy_views views;
	struct file_set set;
	bool has_views, has_set;
	struct capacity_target *targets;
	size_t n;
};

static void check(void *options, struct argp_state *state)
{
	const struct capacity_args *a = options;
	if (a->files.n && (a->scope.n_names || a->scope.selector || a->scope.all_namespaces))
		print_usage(state,
		            "-f and a selection of the cluster's policies (NAME, -A, -l) cannot be used together");
}

// clang-format off
#define FLAGS_OF struct capacity_args
static const struct flag_set command = {
	.args = "[NAME..]",
	.about = "Show the GPUs of a cluster by pool and model, what one replica of each policy needs, how many more fit, and "
	         "why no more. With --prometheus, also the quota of Kueue. Writes nothing."
	         "\vFREE counts what a new pod can get; TAINTED is the part of it that only pods with a toleration get. Pods "
	         "that wait for a node get their room before FIT is counted.\nExit status: 0 done, 1 failed or incomplete, 2 "
	         "wrong usage.",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_FILES(1, "FILE|DIR", files, "policies from these files, - for standard input, instead of those of the cluster"),
		FLAG_OUTPUT(1, format, OUTPUTS_LIST, OUTPUTS_LIST_HELP),
		FLAG_TEXT(1, 0, "pool-label", "KEY", pool_label, "node label that names the pool; takes precedence over the known labels"),
		FLAG_ARGUMENTS(scope, policy_scope_add),
		FLAG_INCLUDE(&policy_scope_flags, scope, 0),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_END}};
// clang-format on

// ---- policies ----

static int alloc_targets(struct selection *s, size_t n)
{
	s->targets = calloc(n ? n : 1, sizeof *s->targets);
	if (s->targets)
		return EXIT_OK;
	print_error(COMMAND ": out of memory\n");
	return EXIT_FAILED;
}

static size_t count_bindings(const struct file_set *set)
{
	size_t n = 0;
	for (size_t i = 0; i < set->n_policies; i++)
		n += policy_ref_of(set->policies[i])->n_bindings;
	return n;
}

static int select_files(struct selection *s, const struct path_options *files)
{
	struct err e;
	struct buf report;
	buf_init(&report, CAPACITY_REPORT_MAX);
	int code = EXIT_FAILED;
	if (file_set_load(&s->set, files->paths, files->n, NULL, &report, &e) < 0) {
		print_error(COMMAND ": %s\n", e.msg);
	} else {
		s->has_set = true;
		print_notes(&report);
		code = alloc_targets(s, count_bindings(&s->set));
	}
	buf_done(&report);
	for (size_t i = 0; code == EXIT_OK && i < s->set.n_policies; i++) {
		const struct policy *p = s->set.policies[i];
		const struct policy_ref *ref = policy_ref_of(p);
		for (size_t k = 0; k < ref->n_bindings; k++) {
			const struct scale_target *t = ref->bindings[k].target;
			s->targets[s->n++] = (struct capacity_target){.namespace_name = p->namespace_name,
			                                              .name = p->name,
			                                              .api_version = t->api_version,
			                                              .kind = t->kind,
			                                              .target_name = t->name,
			                                              .path = t->path};
		}
	}
	return code == EXIT_OK && s->set.n_errors ? EXIT_FAILED : code;
}

// Returns a text of spec.scaleTargetRef, or `absent`.
static const char *find_of_target(struct policy_views *v, const struct policy_view *p, const char *key,
                                  const char *absent)
{
	const char *const path[] = {"spec", "scaleTargetRef", key, NULL};
	char text[256];
	int len = json_span_text(json_span_path((struct json_span){p->json, strlen(p->json)}, path), text, sizeof text);
	const char *copy = len > 0 ? arena_strdup(&v->arena, text) : NULL;
	return copy ? copy : absent;
}

static int select_objects(struct selection *s, struct connections *session, const struct policy_scope *scope)
{
	int code = policy_fetch_named(session, scope, COMMAND, &s->views);
	s->has_views = true;
	if (alloc_targets(s, s->views.n) != EXIT_OK)
		return EXIT_FAILED;
	for (; s->n < s->views.n; s->n++) {
		const struct policy_view *p = &s->views.items[s->n];
		s->targets[s->n] =
		        (struct capacity_target){.namespace_name = p->namespace_name,
		                                 .name = p->name,
		                                 .api_version = find_of_target(&s->views, p, "apiVersion", "apps/v1"),
		                                 .kind = p->target_kind,
		                                 .target_name = p->target_name,
		                                 .path = find_of_target(&s->views, p, "path", NULL)};
	}
	return code;
}

static void selection_done(struct selection *s)
{
	for (size_t i = 0; i < s->n; i++)
		capacity_target_done(&s->targets[i]);
	free(s->targets);
	if (s->has_views)
		policy_views_done(&s->views);
	if (s->has_set)
		file_set_done(&s->set);
}

// ---- the inventory ----

static int explain(struct err *e)
{
	char message[ERR_MSG_BYTES];
	snprintf(message, sizeof message, "%s", e->msg);
	if (e->code != 403)
		return -1;
	return err_set_code(e, ERR_AUTH, 403,
	                    "%s; the ClusterRole gpuscale-capacity permits it: apply manifests/capacity (chart "
	                    "value capacity.enabled=true) and bind the role to this user",
	                    message);
}

// Returns the inventory once it is complete, or NULL and *e.
static struct inventory *open_inventory(struct connections *session, struct err *e)
{
	struct inventory *i = inventory_new(&(struct inventory_options){.client = session->k8s}, e);
	struct progress progress = {.what = "nodes and pods"};
	bool is_open = true;
	progress_watch(&progress, session->loop);
	while (i && is_open && inventory_get_state(i, NULL) == INVENTORY_UNSYNCED)
		is_open = event_base_loop(session->loop, EVLOOP_ONCE) == 0;
	progress_clear(&progress);
	if (!is_open) {
		err_set(e, ERR_INTERNAL, "the event loop exited before the lists were complete");
		inventory_free(i);
		return NULL;
	}
	if (!i || inventory_get_state(i, e) == INVENTORY_KNOWN)
		return i;
	explain(e);
	inventory_free(i);
	return NULL;
}

// Fills *ret with the quota of Kueue where a Prometheus is named. Prints errors and returns the exit code.
static int read_quotas(const struct capacity_args *a, struct kueue_quotas *ret)
{
	struct prometheus_session session;
	struct err e;
	if (prometheus_session_open(&session, &a->prometheus, &e) < 0)
		return command_failed(COMMAND, &e);
	int rc = kueue_quotas_fetch(&session, ret, &e);
	if (rc < 0)
		print_error(COMMAND ": %s\n", e.msg);
	prometheus_session_close(&session);
	return rc < 0 ? EXIT_FAILED : EXIT_OK;
}

// ---- the command ----

static int print(const struct capacity_args *a, const struct capacity_report *r)
{
	struct buf out;
	buf_init(&out, CAPACITY_OUTPUT_MAX);
	if (output_is_document(a->format))
		capacity_render_json(&out, r);
	else if (a->format == OUTPUT_NAME)
		for (size_t i = 0; i < r->n_targets; i++)
			print_to(&out, "gpuautoscaler." CRD_GROUP "/%s\n", r->targets[i].name);
	else
		capacity_render_table(&out, r, a->format == OUTPUT_WIDE);
	int rc = output_print(COMMAND, &out, a->format);
	buf_done(&out);
	return rc;
}

static int report(const struct capacity_args *a, struct connections *session, struct inventory *inventory)
{
	struct selection s = {.n = 0};
	struct capacity_groups groups;
	struct capacity *c = inventory_capacity(inventory);
	int code = a->files.n ? select_files(&s, &a->files) : select_objects(&s, session, &a->scope);
	bool has_prometheus = prometheus_options_given(&a->prometheus);
	struct kueue_quotas quotas = {.n = 0};
	int quota_code = has_prometheus ? read_quotas(a, &quotas) : EXIT_OK;
	for (size_t i = 0; i < s.n; i++)
		capacity_target_read(&s.targets[i], session, c, &quotas);
	struct inventory_stats stats;
	inventory_get_stats(inventory, &stats);
	struct capacity_report r = {.capacity = c,
	                            .n_nodes = stats.nodes,
	                            .n_pods = stats.pods,
	                            .groups = &groups,
	                            .targets = s.targets,
	                            .n_targets = s.n,
	                            .quotas = has_prometheus && quota_code == EXIT_OK ? &quotas : NULL};
	if (capacity_groups_read(c, a->pool_label, &groups) < 0) {
		print_error(COMMAND ": out of memory\n");
		code = EXIT_FAILED;
	} else if (print(a, &r) < 0) {
		code = EXIT_FAILED;
	}
	for (size_t i = 0; code == EXIT_OK && i < s.n; i++)
		code = s.targets[i].error.kind == ERR_NONE ? EXIT_OK : EXIT_FAILED;
	if (code == EXIT_OK)
		code = quota_code;
	kueue_quotas_done(&quotas);
	capacity_groups_done(&groups);
	selection_done(&s);
	return code;
}

int cmd_capacity(int argc, char **argv)
{
	struct capacity_args args = {.format = OUTPUT_TABLE};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);
	struct connections session;
	struct err e = {0};
	int code = policy_fetch_open(&session, &args.scope, COMMAND);
	if (code != EXIT_OK)
		return code;
	struct inventory *inventory = open_inventory(&session, &e);
	code = inventory ? report(&args, &session, inventory) : command_failed(COMMAND, &e);
	inventory_free(inventory);
	connections_close(&session);
	return code;
}
