// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/policy_fetch.h"

#include <cjson/cJSON.h>

#include "cli/objects/kube_pages.h"
#include "cli/term/cli.h"
#include "controller/status/status_doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

// ---- objects ----

#define NAME_BYTES 254

void policy_views_init(struct policy_views *v, enum object_kind kind)
{
	*v = (struct policy_views){.kind = kind, .arena = ARENA(POLICY_VIEWS_ARENA_BYTES_MAX)};
}

void policy_views_done(struct policy_views *v)
{
	free(v->items);
	free(v->faults);
	arena_done(&v->arena);
	*v = (struct policy_views){0};
}

static int64_t time_of(const struct doc_node *metadata, const char *key)
{
	const char *text = doc_get_text(metadata, key, "");
	int64_t ms = 0;
	return num_parse_rfc3339_ms(text, strlen(text), &ms, NULL) < 0 ? 0 : ms;
}

static bool is_true(const struct doc_node *map, const char *key)
{
	return strcmp(doc_get_text(map, key, ""), "true") == 0;
}

static int read_status(struct policy_views *v, struct policy_view *p, const struct doc_node *status, struct err *e)
{
	if (!status || status->kind == DOC_NULL)
		return 0;
	struct schema_errors *errors = malloc(2 * sizeof *errors);
	if (!errors)
		return err_no_memory(e);
	struct schema_errors *unknown = errors + 1;
	schema_errors_init(errors, NULL);
	schema_errors_init(unknown, NULL);
	schema_decode_tolerant(&status_schema, status, &p->status, &v->arena, errors, unknown, "status");
	if (errors->n > 0) { // no number is better than a wrong one
		p->status.current_set = p->status.desired_set = p->status.ready_set = false;
		p->status_fault = arena_printf(&v->arena, "%s: %s", errors->items[0].path, errors->items[0].message);
	}
	free(errors);
	return 0;
}

static int compare_targets(const void *a, const void *b)
{
	const struct policy_view *x = a, *y = b;
	int c = strcmp(x->target_kind, y->target_kind);
	return c ? c : strcmp(x->target_name, y->target_name);
}

static int read_targets(struct policy_views *v, struct policy_view *p, struct err *e)
{
	const struct doc_node *map = p->status.targets;
	if (!map || map->kind != DOC_MAP || map->n_children == 0)
		return 0;
	struct policy_view *targets = arena_alloc(&v->arena, map->n_children * sizeof *targets);
	for (const struct doc_node *c = map->child; targets && c; c = c->next) {
		struct policy_view *t = &targets[p->n_targets];
		const char *slash = strchr(c->key, '/');
		*t = *p;
		t->status = (struct status_view){0};
		t->status_fault = NULL;
		t->n_targets = 0;
		if (read_status(v, t, c, e) < 0)
			return -1;
		t->key = c->key;
		t->target_kind = slash ? arena_strndup(&v->arena, c->key, (size_t)(slash - c->key)) : "<invalid>";
		t->target_name = slash ? slash + 1 : c->key;
		if (!t->target_kind)
			break;
		p->n_targets++;
	}
	p->targets = targets;
	if (p->n_targets)
		qsort(targets, p->n_targets, sizeof *targets, compare_targets);
	return p->n_targets == map->n_children
	               ? 0
	               : err_set(e, ERR_LIMIT, "the objects need more than %zu bytes", v->arena.max_bytes);
}

// The text as written; `fallback` if the field is absent, "<invalid>" if it is not a text.
static const char *text_of(const struct doc_node *map, const char *key, const char *fallback)
{
	const struct doc_node *node = doc_get(map, key);
	if (!node || node->kind == DOC_NULL)
		return fallback;
	return node->kind == DOC_SCALAR ? node->text : "<invalid>";
}

static void read_gpus(struct policy_view *p, const struct doc_node *gpus)
{
	const char *text = text_of(gpus, "perReplica", "1");
	p->gpu_model = text_of(gpus, "model", "");
	p->gpus_per_replica = 0;
	if (gpus && gpus->kind == DOC_MAP &&
	    num_parse_i64(text, strlen(text), 1, POLICY_GPUS_PER_REPLICA_MAX, &p->gpus_per_replica, NULL) < 0)
		p->gpus_per_replica = 0;
}

// A ScaledObject has the status of its policy in a condition (controller/status/status_doc.h). Without one,
// Ready has the cause.
static int read_scaled_object(struct policy_views *v, struct policy_view *p, const struct doc_node *spec,
                              const struct doc_node *status, struct err *e)
{
	const struct doc_node *conditions = doc_get(status, "conditions"), *ready = NULL;
	struct doc_node *state = NULL;
	p->min = text_of(spec, "minReplicaCount", "0");
	p->max = text_of(spec, "maxReplicaCount", "100");
	for (const struct doc_node *c = conditions ? conditions->child : NULL; c; c = c->next) {
		const char *type = doc_get_text(c, "type", ""), *message = doc_get_text(c, "message", "");
		if (strcmp(type, "Ready") == 0)
			ready = c;
		else if (strcmp(type, "Paused") == 0)
			p->paused_annotation = strcmp(doc_get_text(c, "status", ""), "True") == 0;
		else if (strcmp(type, SCALED_OBJECT_STATE) == 0 &&
		         doc_from_json(&v->arena, message, strlen(message), &state, NULL) < 0)
			p->status_fault = "the condition " SCALED_OBJECT_STATE " is not JSON";
	}
	if (read_status(v, p, doc_get(state, "status"), e) < 0)
		return -1;
	p->status.reason = p->status.reason ? p->status.reason : doc_get_text(ready, "reason", NULL);
	p->status.message = p->status.message ? p->status.message : doc_get_text(ready, "message", NULL);
	return 0;
}

static int read_object(struct policy_views *v, struct policy_view *p, const struct doc_node *root, struct err *e)
{
	const struct doc_node *metadata = doc_get(root, "metadata"), *spec = doc_get(root, "spec");
	const struct doc_node *variants = doc_get(spec, "variants"), *target = doc_get(spec, "scaleTargetRef");
	const struct doc_node *fleet = doc_get(spec, "scaleTargets");
	if (!target && variants && variants->kind == DOC_SEQ) // the first one stands for all
		target = doc_get(variants->child, "scaleTargetRef");
	const char *generation = doc_get_text(metadata, "generation", "0");
	p->root = root;
	p->namespace_name = doc_get_text(metadata, "namespace", "");
	p->name = doc_get_text(metadata, "name", "");
	p->created_ms = time_of(metadata, "creationTimestamp");
	p->deleted_ms = time_of(metadata, "deletionTimestamp");
	if (v->kind == OBJECT_POOL)
		return 0;
	if (num_parse_i64(generation, strlen(generation), 0, INT64_MAX, &p->generation, NULL) < 0)
		p->generation = 0;
	p->labels = doc_get(metadata, "labels");
	p->annotations = doc_get(metadata, "annotations");
	p->is_fleet = fleet && fleet->kind == DOC_MAP;
	p->target_kind = text_of(p->is_fleet ? fleet : target, "kind", "Deployment");
	p->target_name = p->is_fleet ? FLEET_TARGET_NAME : text_of(target, "name", "");
	p->min = text_of(spec, "minReplicas", "1");
	p->max = text_of(spec, "maxReplicas", "");
	read_gpus(p, doc_get(spec, "gpus"));
	if (v->kind == OBJECT_SCALED_OBJECT)
		return read_scaled_object(v, p, spec, doc_get(root, "status"), e);
	p->paused_spec = is_true(spec, "paused");
	p->dry_run_spec = is_true(spec, "dryRun");
	p->paused_annotation = is_true(p->annotations, POLICY_ANNOTATION_PAUSED);
	p->dry_run_annotation = is_true(p->annotations, POLICY_ANNOTATION_DRY_RUN);
	p->paused_reason = doc_get_text(p->annotations, POLICY_ANNOTATION_REASON, NULL);
	return read_status(v, p, doc_get(root, "status"), e) < 0 ? -1 : read_targets(v, p, e);
}

static int make_room(struct policy_views *v, struct err *e)
{
	if (v->n < v->room)
		return 0;
	if (v->n == (v->kind == OBJECT_POOL ? POOL_VIEWS_MAX : POLICY_VIEWS_MAX))
		return err_set(e, ERR_LIMIT, "more than %zu %s: %s", v->n, object_kind_info(v->kind)->kinds,
		               v->kind == OBJECT_POOL ? "name them, or use -l" : "name a namespace (-n)");
	return alloc_reserve(&v->items, v->n, &v->room, sizeof *v->items, 64) < 0 ? err_no_memory(e) : 0;
}

// Another object at this path (a Status, the error of a proxy) would look like a policy without fields. Names are
// used in URLs and on terminals.
static int check_object(const struct object_kind_info *k, const cJSON *object, struct err *e)
{
	const cJSON *metadata = json_get(object, "metadata");
	const char *kind = json_get_str(object, "kind", json_get(object, "kind") ? "" : k->kind);
	if (strcmp(kind, k->kind) == 0 && k8s_name_is_valid(json_get_str(metadata, "name", "")) &&
	    (!k->is_namespaced || k8s_name_is_valid(json_get_str(metadata, "namespace", ""))))
		return 0;
	return err_set(e, ERR_PROTOCOL, "the server replied with an object that is not a %s with a name%s", k->kind,
	               k->is_namespaced ? " and a namespace" : "");
}

int policy_views_add(struct policy_views *v, struct cJSON *object, struct err *e)
{
	if (check_object(object_kind_info(v->kind), object, e) < 0 || make_room(v, e) < 0)
		return -1;
	cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "metadata"), "managedFields");
	char *text = cJSON_PrintUnformatted(object);
	if (!text)
		return err_no_memory(e);
	struct policy_view *p = &v->items[v->n];
	struct doc_node *root;
	*p = (struct policy_view){.json = arena_strdup(&v->arena, text)};
	int rc = p->json ? doc_from_json(&v->arena, text, strlen(text), &root, e)
	                 : err_set(e, ERR_LIMIT, "the objects need more than %zu bytes", v->arena.max_bytes);
	cJSON_free(text);
	if (rc == 0)
		rc = read_object(v, p, root, e);
	v->n += rc == 0;
	return rc;
}

// Reports an object under the name in its metadata, as far as that is readable.
static int add_fault(struct policy_views *v, struct json_span object, const struct err *why, struct err *e)
{
	struct json_span metadata = json_span_get(object, "metadata");
	char namespace_name[NAME_BYTES], name[NAME_BYTES], shown[2 * NAME_BYTES];
	json_span_text(json_span_get(metadata, "namespace"), namespace_name, sizeof namespace_name);
	json_span_text(json_span_get(metadata, "name"), name, sizeof name);
	bool is_namespaced = object_kind_info(v->kind)->is_namespaced;
	snprintf(shown, sizeof shown, "%s%s%s", namespace_name, is_namespaced ? "/" : "", name);
	if ((is_namespaced && !k8s_name_is_valid(namespace_name)) || !k8s_name_is_valid(name))
		snprintf(shown, sizeof shown, "an object without a valid name");
	if (alloc_reserve(&v->faults, v->n_faults, &v->faults_room, sizeof *v->faults, 16) < 0)
		return err_no_memory(e);
	const char *text = arena_printf(&v->arena, "%s: %s", shown, why->msg);
	if (!text)
		return err_set(e, ERR_LIMIT, "the objects need more than %zu bytes", v->arena.max_bytes);
	v->faults[v->n_faults++] = text;
	return 0;
}

int policy_views_add_item(void *views, struct json_span object, struct err *e)
{
	struct policy_views *v = views;
	struct err why;
	err_clear(&why);
	if (make_room(v, e) < 0)
		return -1;
	cJSON *tree = json_read(object.text, object.len, &why);
	int rc = tree ? policy_views_add(v, tree, &why) : -1;
	cJSON_Delete(tree);
	if (rc == 0)
		return 0;
	if (why.kind == ERR_INTERNAL)
		return err_set(e, why.kind, "%s", why.msg);
	return add_fault(v, object, &why, e);
}

static int compare(const void *a, const void *b)
{
	const struct policy_view *x = a, *y = b;
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

void policy_views_sort(struct policy_views *v)
{
	if (v->n)
		qsort(v->items, v->n, sizeof *v->items, compare);
}

const struct policy_view *policy_view_targets(const struct policy_view *p, size_t *ret_n)
{
	*ret_n = p->n_targets ? p->n_targets : 1;
	return p->n_targets ? p->targets : p;
}

const char *policy_view_mode(const struct policy_view *p)
{
	if (p->paused_spec || p->paused_annotation)
		return "Paused";
	return p->dry_run_spec || p->dry_run_annotation ? "DryRun" : "Active";
}

// ---- what the command line selects ----

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
		                    "the cluster has no CRD for %s; install it: gpuscale crd%s%s | kubectl apply -f -",
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
	struct buf body = BUF(JSON_BYTES_MAX);
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
	struct err e = {0};
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
	struct buf out = BUF(OUTPUT_MAX);
	int code = policy_fetch_open(&session, s, command);
	if (code != EXIT_OK)
		return code;
	code = policy_fetch_named(&session, s, command, &v);
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
