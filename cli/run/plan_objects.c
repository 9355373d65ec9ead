// SPDX-License-Identifier: Apache-2.0
#include "cli/run/plan_objects.h"

#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "controller/pool/pools.h"
#include "controller/source/policy_object.h"
#include "policies/engine/policy.h"
#include "policies/load/policy_ref.h"

#define COMMAND   "gpuscale plan"
#define POOL_PATH "/apis/" CRD_GROUP "/" CRD_VERSION "/gpupools"

// ---- policies ----

static int add_policy(struct plan_objects *o, const struct policy_view *view, const struct policy_scope *shown,
                      struct err *e)
{
	struct policy_object object;
	struct policy_document document;
	if (view->deleted_ms)
		return 0;
	struct policy_ref *ref = policy_ref_new();
	if (!ref)
		return err_no_memory(e);
	schema_errors_init(o->errors, "");
	schema_errors_init(o->unknown, "");
	if (policy_object_decode(view->json, strlen(view->json), &ref->arena, &object, &document, o->errors,
	                         o->unknown) == 0) {
		policy_ref_set(ref, &document);
		o->policies[o->n_policies++] = &ref->policy;
		return 0;
	}
	if (!shown->namespace_name || strcmp(shown->namespace_name, view->namespace_name) == 0) {
		char line[ERR_MSG_BYTES];
		pool_object_put_errors(o->errors, line, sizeof line);
		print_error(COMMAND ": %s/%s: %s\n", view->namespace_name, view->name, line);
		o->n_errors++;
	}
	policy_ref_release(ref);
	return 0;
}

static int read_policies(struct plan_objects *o, struct connections *session, const struct policy_scope *scope,
                         const struct policy_scope *shown)
{
	struct policy_views views;
	struct err e = {0};
	int code = policy_fetch_named(session, scope, COMMAND, &views);
	o->policies = calloc(views.n ? views.n : 1, sizeof(const struct policy *));
	int rc = o->policies ? 0 : err_no_memory(&e);
	for (size_t i = 0; rc == 0 && i < views.n; i++)
		rc = add_policy(o, &views.items[i], shown, &e);
	policy_views_done(&views);
	if (rc == 0)
		return code;
	print_error(COMMAND ": %s\n", e.msg);
	return EXIT_FAILED;
}

// ---- pools ----

static int add_pool(void *objects, struct json_span object, struct err *e)
{
	struct plan_objects *o = objects;
	static const char *const path[] = {"metadata", "name", NULL};
	static const char *const deletion[] = {"metadata", "deletionTimestamp", NULL};
	char name[POLICY_OBJECT_NAME_MAX + 1];
	if (json_span_text(json_span_path(object, path), name, sizeof name) <= 0 || !k8s_name_is_valid(name))
		return err_set(e, ERR_PROTOCOL, "the server replied with a GPUPool without a valid name");
	if (json_span_kind(json_span_path(object, deletion)) == '"')
		return 0;
	if (o->n_pools == POOL_SET_MAX)
		return err_set(e, ERR_LIMIT, "more than %d GPUPools", POOL_SET_MAX);
	struct pool_object *pool = pool_object_read(name, object.text, object.len, o->errors, o->unknown);
	o->pools[o->n_pools++] = pool;
	if (pool->fault[0]) {
		print_error(COMMAND ": pool %s: %s\n", name, pool->fault);
		o->n_errors++;
	}
	return 0;
}

static void drop_pools(void *arg)
{
	struct plan_objects *o = arg;
	for (size_t i = 0; i < o->n_pools; i++)
		pool_object_free(o->pools[i]);
	o->n_pools = 0;
}

static int read_pools(struct plan_objects *o, struct connections *session)
{
	static const struct kube_pages pools = {"GPUPools", POOL_SET_MAX / KUBE_PAGES_OBJECTS + 1, add_pool,
	                                        drop_pools};
	struct err e = {0};
	if (kube_pages_fetch(session, &pools, POOL_PATH, "", o, &e) == 0 ||
	    e.code == 404) // 404: the cluster has no pools
		return EXIT_OK;
	return command_failed(COMMAND, &e);
}

// ---- both ----

int plan_objects_read(struct plan_objects *o, const struct policy_scope *shown)
{
	struct policy_scope scope = {.kube = shown->kube, .all_namespaces = true};
	struct connections session;
	*o = (struct plan_objects){.errors = malloc(sizeof *o->errors), .unknown = malloc(sizeof *o->unknown)};
	if (!o->errors || !o->unknown) {
		print_error(COMMAND ": out of memory\n");
		return EXIT_FAILED;
	}
	int code = policy_fetch_open(&session, &scope, COMMAND);
	if (code != EXIT_OK) {
		print_error("Without a cluster, name the policies: -f FILE|DIR\n");
		return code;
	}
	code = read_policies(o, &session, &scope, shown);
	if (code == EXIT_OK)
		code = read_pools(o, &session);
	connections_close(&session);
	return code;
}

void plan_objects_done(struct plan_objects *o)
{
	for (size_t i = 0; i < o->n_policies; i++)
		policy_ref_release(policy_ref_of(o->policies[i]));
	drop_pools(o);
	free(o->policies);
	free(o->errors);
	free(o->unknown);
	*o = (struct plan_objects){0};
}

// ---- shares ----

static int read_pool_files(struct pools *pools, const struct path_options *files, struct err *e)
{
	struct pool_set set;
	struct buf report = BUF(REPORT_MAX);
	int rc = pool_set_load(&set, files->paths, files->n, false, &report, e);
	if (rc == 0 && set.n_errors + pool_set_check(&set, NULL, 0, &report) > 0)
		rc = err_set(e, ERR_INPUT, "a pool is invalid; the decisions are those without pools");
	print_notes(&report);
	if (rc == 0)
		rc = pools_put_files(pools, &set, e);
	else
		pool_set_done(&set);
	buf_done(&report);
	return rc;
}

struct pools *plan_pools_new(struct plan_objects *objects, const struct path_options *files, struct err *e)
{
	struct pools *pools = pools_new(&(struct pools_options){0});
	int rc = pools ? 0 : err_no_memory(e);
	if (rc == 0 && !objects)
		rc = read_pool_files(pools, files, e);
	for (size_t i = 0; rc == 0 && objects && i < objects->n_pools; i++) {
		rc = pools_put_object(pools, objects->pools[i], e);
		objects->pools[i] = NULL;
	}
	if (rc == 0)
		return pools;
	pools_free(pools);
	return NULL;
}
