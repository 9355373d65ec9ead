// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/policy_fetch.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/print.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_view.h"
#include "cli/term/commands.h"
#include "cli/term/output.h"
#include "k8s/client/object_name.h"
#include "runtime/connections.h"

#define SELECTOR_BYTES_MAX 1024
#define FAULTS_SHOWN_MAX   10 // objects that cannot be read
#define PAGES_MAX          (POLICY_VIEWS_MAX / KUBE_PAGES_OBJECTS + 1)

static void check_scope(void *scope, struct argp_state *state)
{
	const struct policy_scope *s = scope;
	unsigned kinds = s->kinds ? s->kinds : 1U << OBJECT_POLICY;
	const struct object_kind_info *k = object_kind_info(s->kind);
	if (!(kinds & 1U << s->kind))
		print_usage(state, "not supported for %s", k->plural);
	if (s->all_namespaces && s->n_names && k->is_namespaced)
		print_usage(state, "a name needs its namespace: -n instead of -A");
	if (s->selector && s->n_names)
		print_usage(state, "names and -l cannot be used together");
}

// clang-format off
#define FLAGS_OF struct policy_scope
const struct flag_set namespace_flags = {.flags = (const struct flag[]){
	FLAG_TEXT(3, 'n', "namespace", "NAME", namespace_name, "namespace to use (default: that of the context)"),
	FLAG_SWITCH(3, 'A', "all-namespaces", all_namespaces, "use all namespaces"),
	FLAG_INCLUDE(&kube_flags, kube, 3),
	FLAG_END}};
const struct flag_set policy_scope_flags = {.check = check_scope, .flags = (const struct flag[]){
	FLAG_TEXT_MAX(3, 'l', "selector", "LABELS", selector, SELECTOR_BYTES_MAX, "only objects with these labels, such as team=ml,tier!=test"),
	FLAG_INCLUDE(&namespace_flags, kube, 3),
	FLAG_END}};
_Static_assert(offsetof(struct policy_scope, kube) == 0, "the options of both sets are the same");
// clang-format on

static _Noreturn void refuse_kind(const char *word, size_t len, struct argp_state *state)
{
	const char *close = object_kind_closest(word, len);
	print_usage(state, "no resource \"%.*s\"%s%s%s", (int)len, word, close ? "; did you mean " : "",
	            close ? close : ": expected gpuautoscalers, gpupools or remediations",
	            close ? "?" : "; a namespace is named by -n");
	exit(EXIT_USAGE);
}

void policy_scope_add(void *scope, char *arg, struct argp_state *state)
{
	struct policy_scope *s = scope;
	const char *slash = strchr(arg, '/');
	size_t len = slash ? (size_t)(slash - arg) : strlen(arg);
	bool may_be_kind = slash || (s->n_names == 0 && !s->has_kind);
	enum object_kind kind = may_be_kind ? object_kind_find(arg, len) : OBJECT_KIND__COUNT;
	if (slash && kind == OBJECT_KIND__COUNT)
		refuse_kind(arg, len, state);
	if (kind != OBJECT_KIND__COUNT) {
		if ((s->has_kind || s->n_names) && kind != s->kind)
			print_usage(state, "one kind of resource at a time: %s or %s",
			            object_kind_info(s->kind)->plural, object_kind_info(kind)->plural);
		s->kind = kind;
		s->has_kind = true;
		if (!slash)
			return;
	}
	if (s->n_names == POLICY_FETCH_NAMES_MAX)
		print_usage(state, "more than %d names", POLICY_FETCH_NAMES_MAX);
	s->names[s->n_names++] = slash ? slash + 1 : arg;
}

int policy_scope_resolve(struct policy_scope *s, struct arena *a, struct err *e)
{
	struct k8s_config config = {0};
	struct err why = {0};
	if (s->all_namespaces)
		s->namespace_name = NULL;
	if (s->all_namespaces || s->namespace_name)
		return 0;
	int rc = k8s_config_load(a, &s->kube.config, &config, &why);
	s->namespace_name = rc == 0 ? arena_strdup(a, config.namespace_name) : "default";
	k8s_config_wipe(&config);
	if (rc == 0 && s->namespace_name)
		return 0;
	if (rc < 0 && why.kind == ERR_NOT_FOUND && !s->kube.config.kubeconfig && !s->kube.config.context)
		return 0; // there is no kubeconfig
	return err_set(e, why.kind, "the namespace of the context is unknown: %s; use -n or -A", why.msg);
}

int policy_path(const struct policy_scope *s, const char *name, char out[POLICY_PATH_BYTES_MAX], struct err *e)
{
	const struct object_kind_info *k = object_kind_info(s->kind);
	bool is_everywhere = s->all_namespaces || !k->is_namespaced;
	if (!is_everywhere && !k8s_name_is_valid(s->namespace_name))
		return err_set(e, ERR_USAGE, "\"%s\" cannot be the name of a namespace", s->namespace_name);
	if (name && !k8s_name_is_valid(name))
		return err_set(e, ERR_USAGE, "\"%s\" cannot be the name of a %s", name, k->kind);
	snprintf(out, POLICY_PATH_BYTES_MAX, "/apis/%s/%s%s%s/%s%s%s", k->group, k->version,
	         is_everywhere ? "" : "/namespaces/", is_everywhere ? "" : s->namespace_name, k->plural,
	         name ? "/" : "", name ? name : "");
	return 0;
}

int policy_fetch_explain(struct err *e, enum object_kind kind, const char *name)
{
	char message[ERR_MSG_BYTES];
	snprintf(message, sizeof message, "%s", e->msg);
	bool is_about_name = name && strstr(message, name) && strstr(message, "not found");
	if (e->code == 404 && !is_about_name && kind == OBJECT_SCALED_OBJECT)
		return err_set_code(e, ERR_NOT_FOUND, e->code, "the cluster has no CRD for ScaledObjects");
	if (e->code == 404 && !is_about_name)
		return err_set_code(e, ERR_NOT_FOUND, e->code,
		                    "the cluster has no CRD for %s; install it: "
		                    "gpuscale crd%s%s | kubectl apply -f -",
		                    object_kind_info(kind)->kinds, kind == OBJECT_POLICY ? "" : " ",
		                    kind == OBJECT_POLICY ? "" : object_kind_info(kind)->kind);
	if (e->code == 403 && kind == OBJECT_POLICY)
		return err_set_code(e, ERR_AUTH, 403,
		                    "%s; the built-in roles view (to read) and edit (to pause) allow it once "
		                    "manifests/base/crd-roles.yaml is applied",
		                    message);
	return -1;
}

static void start_over(void *arg)
{
	struct policy_views *v = arg;
	enum object_kind kind = v->kind;
	policy_views_done(v);
	policy_views_init(v, kind);
}

// Lists the objects of the scope. Returns -1 and fills `e`, which says how to fix
// it: a cluster without this kind, or missing permissions.
static int fetch_all(struct connections *session, const struct policy_scope *s, struct policy_views *v, struct err *e)
{
	const struct kube_pages pages = {object_kind_info(s->kind)->kinds, PAGES_MAX, policy_views_add_item,
	                                 start_over};
	char path[POLICY_PATH_BYTES_MAX], selector[SELECTOR_BYTES_MAX + 32];
	if (policy_path(s, NULL, path, e) < 0)
		return -1;
	snprintf(selector, sizeof selector, "%s%s", s->selector ? "labelSelector=" : "",
	         s->selector ? s->selector : "");
	int rc = kube_pages_fetch(session, &pages, path, selector, v, e);
	if (rc < 0)
		policy_fetch_explain(e, s->kind, NULL);
	policy_views_sort(v);
	return rc;
}

static int fetch_one(struct connections *session, const struct policy_scope *s, const char *name,
                     struct policy_views *v, struct err *e)
{
	char path[POLICY_PATH_BYTES_MAX];
	if (policy_path(s, name, path, e) < 0)
		return -1;
	struct buf body;
	buf_init(&body, JSON_BYTES_MAX);
	int rc = kube_request(session, "GET", path, NULL, NULL, &body, e);
	if (rc < 0) {
		policy_fetch_explain(e, s->kind, name);
		const char *close = s->has_kind || e->code != 404 ? NULL : object_kind_closest(name, strlen(name));
		if (close)
			err_set_code(e, ERR_NOT_FOUND, 404, "no policy \"%s\"; did you mean the resource %s?", name,
			             close);
	} else {
		cJSON *object = json_read(buf_str(&body), body.len, e);
		rc = object ? policy_views_add(v, object, e) : err_wrap(e, "%s", name);
		cJSON_Delete(object);
	}
	buf_done(&body);
	return rc;
}

int policy_fetch_open(struct connections *session, struct policy_scope *s, const char *command)
{
	struct err e;
	err_clear(&e);
	if (connections_open(session, NULL, &s->kube, NULL, NULL, &e) < 0)
		return command_failed(command, &e);
	if (!s->namespace_name)
		s->namespace_name = session->k8s_config.namespace_name ? session->k8s_config.namespace_name : "default";
	return EXIT_OK;
}

int policy_fetch_named(struct connections *session, const struct policy_scope *s, const char *command,
                       struct policy_views *ret_views)
{
	struct err e;
	int code = EXIT_OK;
	policy_views_init(ret_views, s->kind);
	for (size_t i = 0; i < (s->n_names ? s->n_names : 1); i++) {
		err_clear(&e);
		int rc = s->n_names ? fetch_one(session, s, s->names[i], ret_views, &e)
		                    : fetch_all(session, s, ret_views, &e);
		if (rc == 0)
			continue;
		code = command_failed(command, &e);
		if (e.kind != ERR_NOT_FOUND || e.code != 404)
			break; // the other names would fail, too
	}
	size_t n_said = 0;
	for (; n_said < ret_views->n_faults && n_said < FAULTS_SHOWN_MAX; n_said++)
		print_error("%s: left out: %s\n", command, ret_views->faults[n_said]);
	if (ret_views->n_faults > n_said)
		print_error("%s: left out: %zu more\n", command, ret_views->n_faults - n_said);
	return ret_views->n_faults > 0 && code == EXIT_OK ? EXIT_FAILED : code;
}

void policy_fetch_say_none(const struct policy_scope *s)
{
	if (s->all_namespaces || !object_kind_info(s->kind)->is_namespaced)
		print_error("No resources found\n");
	else
		print_error("No resources found in %s namespace.\n", s->namespace_name);
}

int policy_fetch_run(struct policy_scope *s, const char *command, enum output_format format,
                     policy_fetch_print_fn *print, void *arg)
{
	struct connections session;
	struct policy_views v;
	struct buf out;
	int code = policy_fetch_open(&session, s, command);
	if (code != EXIT_OK)
		return code;
	code = policy_fetch_named(&session, s, command, &v);
	buf_init(&out, POLICY_OUTPUT_MAX);
	// A missing object was reported; a document without it would look complete.
	if (v.n > 0 || (code == EXIT_OK && output_is_document(format))) {
		int print_code = print(arg, &session, &v, &out);
		code = print_code == EXIT_OK ? code : print_code;
	} else if (code == EXIT_OK) {
		policy_fetch_say_none(s);
	}
	if (out.len || out.failed ? output_print(command, &out, format) < 0 : fflush(stdout) != 0)
		code = EXIT_FAILED;
	buf_done(&out);
	policy_views_done(&v);
	connections_close(&session);
	return code;
}
