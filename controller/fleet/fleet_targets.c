// SPDX-License-Identifier: Apache-2.0
#include "controller/fleet/fleet_targets.h"

#include "base/base.h"
#include "base/json/json_span.h"
#include "k8s/cache/target_decode.h"
#include "k8s/client/label_selector.h"
#include "k8s/targets/workload_kind.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "runtime/query/query_answer.h"

const char *const fleet_role_names[FLEET_ROLE__COUNT] = {
        [FLEET_SCALES] = "Scales",
        [FLEET_UNDECIDED] = "Undecided",
        [FLEET_HAS_POLICY] = "HasPolicy",
        [FLEET_HAS_OLDER_FLEET] = "HasOlderFleet",
        [FLEET_HAS_AUTOSCALER] = "HasAutoscaler",
        [FLEET_CONFLICTS_UNKNOWN] = "ConflictsUnknown",
        [FLEET_BAD_BOUNDS] = "BadBounds",
};

// ---- objects ----

// Returns the replicas of an annotation, -1 when there is none, -2 when it is not a number of replicas.
static int32_t read_bound(struct json_span annotations, const char *key)
{
	struct json_span value = json_span_get(annotations, key);
	char text[NUM_TEXT_BYTES];
	int64_t n;
	struct err e;
	if (!value.text)
		return -1;
	if (json_span_text(value, text, sizeof text) < 0 ||
	    num_parse_i64(text, strlen(text), 0, POLICY_REPLICAS_MAX, &n, &e) < 0)
		return -2;
	return (int32_t)n;
}

static struct fleet_target *new_target(struct fleet_targets *all, const char *namespace_name, const char *name)
{
	struct fleet_target *t = informer_keep(all->informer, sizeof *t, namespace_name, name);
	t->key = t->item.hh.key;
	t->name = t->key + strlen(namespace_name) + 1;
	t->all = all;
	t->role = FLEET_UNDECIDED;
	unacked_write_clear(&t->unacked);
	all->n++;
	return t;
}

static void remove_target(struct fleet_target *t)
{
	informer_remove(&t->item);
	t->all->n--;
	t->is_gone = true;
	t->all->on_gone(t->all->arg, t);
	if (!t->is_writing)
		fleet_target_free(t);
}

static void on_absent(void *arg, struct informer_item *item)
{
	remove_target((void *)item);
}

static void take_object(struct fleet_target *t, const struct target_fields *f, struct json_span annotations)
{
	t->spec_replicas = f->spec_replicas;
	t->status_replicas = f->status_replicas;
	t->ready_replicas = f->ready_replicas;
	snprintf(t->resource_version, sizeof t->resource_version, "%.*s", FLEET_VERSION_BYTES - 1, f->resource_version);
	t->min_replicas = read_bound(annotations, FLEET_ANNOTATION_MIN);
	t->max_replicas = read_bound(annotations, FLEET_ANNOTATION_MAX);
	t->has_bad_bounds = t->min_replicas < -1 || t->max_replicas < -1 ||
	                    (t->max_replicas >= 0 && t->min_replicas > t->max_replicas);
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct fleet_targets *all = arg;
	const struct json_span object = {json, len}, metadata = json_span_get(object, "metadata");
	struct fleet_target *t = (void *)item;
	struct target_fields fields;
	struct err e;
	bool is_deleted = json_span_kind(json_span_get(metadata, "deletionTimestamp")) == '"';
	bool is_in_scope = !all->spaces || informer_get(all->spaces, "", namespace_name);
	if (is_deleted || !is_in_scope || !namespace_name[0] || target_decode(json, len, &fields, &e) < 0 ||
	    strlen(fields.resource_version) >= FLEET_VERSION_BYTES) {
		if (t)
			remove_target(t);
		return;
	}
	if (!t && all->n == FLEET_TARGETS_MAX) {
		all->n_beyond++;
		return;
	}
	t = t ? t : new_target(all, namespace_name, name);
	take_object(t, &fields, json_span_get(metadata, "annotations"));
	(void)json_span_text(json_span_get(metadata, "uid"), t->uid, sizeof t->uid);
}

static void on_change(void *arg)
{
	struct fleet_targets *all = arg;
	uint32_t list = informer_get_state(all->informer, &all->scope).synced_list;
	if (list == all->list)
		return;
	all->list = list;
	if (all->on_listed)
		all->on_listed(all->arg);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct fleet_targets *all = arg;
	bool is_first = error && !all->error && all->list == 0;
	free(all->error);
	all->error = error ? must_alloc(strdup(error->msg)) : NULL;
	if (is_first && all->on_listed)
		all->on_listed(all->arg);
}

// ---- namespaces ----

static void on_space(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                     const char *json, size_t len)
{
	struct fleet_targets *all = arg;
	if (item || strcmp(name, "kube-system") == 0 || (all->own_namespace && strcmp(name, all->own_namespace) == 0))
		return;
	(void)informer_keep(all->spaces, sizeof *item, "", name);
	if (all->scope.space) // objects of this namespace were ignored
		(void)informer_refetch(&all->scope, 0);
}

static void on_space_absent(void *arg, struct informer_item *item)
{
	struct fleet_targets *all = arg;
	const char *name = (const char *)item->hh.key + 1;
	const size_t n = strlen(name);
	informer_remove(item);
	for (struct fleet_target *t = fleet_targets_next(all, NULL), *next; t; t = next) {
		next = fleet_targets_next(all, t);
		if (strncmp(t->key, name, n) == 0 && t->key[n] == '/')
			remove_target(t);
	}
	free(item);
}

// The objects are listed once the namespaces are known.
static void on_spaces_change(void *arg)
{
	struct fleet_targets *all = arg;
	struct err e;
	if (all->scope.space || informer_get_state(all->spaces, &all->spaces_scope).synced_list == 0)
		return;
	if (informer_put(all->informer, &all->scope, all->scope_key, NULL, &e) < 0)
		on_error(all, "", &e);
}

static int open_spaces(struct fleet_targets *t, struct k8s_client *client, const char *selector, struct err *e)
{
	t->spaces = informer_new(&(struct informer_options){.client = client,
	                                                    .group_path = "/api/v1",
	                                                    .plural = "namespaces",
	                                                    .label_selector = selector[0] ? selector : NULL,
	                                                    .is_cluster_scoped = true,
	                                                    .callbacks = {.on_object = on_space,
	                                                                  .on_absent = on_space_absent,
	                                                                  .on_change = on_spaces_change,
	                                                                  .on_error = on_error},
	                                                    .arg = t},
	                         e);
	return t->spaces ? informer_put(t->spaces, &t->spaces_scope, "/", NULL, e) : -1;
}

// ---- life ----

static int check_selector(const char *text, const char *path, struct err *e)
{
	struct label_selector *parsed = label_selector_parse(text, e);
	if (!parsed)
		return err_wrap(e, "%s", path);
	label_selector_free(parsed);
	return 0;
}

int fleet_targets_open(struct fleet_targets *t, struct k8s_client *client, const struct fleet_selection *selection,
                       const char *namespace_name, struct err *e)
{
	const struct workload_kind *kind = workload_kind_find(selection->api_version, selection->kind, NULL);
	if (check_selector(selection->selector.text, "spec.scaleTargets.selector", e) < 0 ||
	    check_selector(selection->namespaces.text, "spec.scaleTargets.namespaceSelector", e) < 0)
		return -1;
	if (!kind->plural)
		return err_set(e, ERR_UNSUPPORTED, "not supported: a fleet of kind %s", selection->kind);
	size_t size = strlen(namespace_name) + 2;
	t->scope_key = must_alloc(malloc(size));
	snprintf(t->scope_key, size, "%s/", selection->spans ? "" : namespace_name);
	t->informer = informer_new(&(struct informer_options){.client = client,
	                                                      .group_path = "/apis/apps/v1",
	                                                      .plural = kind->plural,
	                                                      .label_selector = selection->selector.text[0]
	                                                                                ? selection->selector.text
	                                                                                : NULL,
	                                                      .callbacks = {.on_object = on_object,
	                                                                    .on_absent = on_absent,
	                                                                    .on_change = on_change,
	                                                                    .on_error = on_error},
	                                                      .arg = t},
	                           e);
	if (!t->informer)
		return -1;
	return selection->spans ? open_spaces(t, client, selection->namespaces.text, e)
	                        : informer_put(t->informer, &t->scope, t->scope_key, NULL, e);
}

void fleet_target_free(struct fleet_target *t)
{
	free(t->detail);
	free(t->packed);
	free(t->decision);
	free(t);
}

void fleet_targets_close(struct fleet_targets *t)
{
	while (t->informer && informer_list(t->informer)) // first, so that the informer does not report them absent
		remove_target((void *)informer_list(t->informer));
	if (t->informer)
		informer_remove(&t->scope);
	informer_free(t->informer);
	for (struct informer_item *space; t->spaces && (space = informer_list(t->spaces));) {
		informer_remove(space);
		free(space);
	}
	if (t->spaces)
		informer_remove(&t->spaces_scope);
	informer_free(t->spaces);
	free(t->scope_key);
	free(t->error);
	t->informer = t->spaces = NULL;
	t->scope_key = t->error = NULL;
	t->list = 0;
}

struct fleet_target *fleet_targets_next(const struct fleet_targets *all, const struct fleet_target *t)
{
	if (!all->informer)
		return NULL;
	return t ? t->item.hh.next : (void *)informer_list(all->informer);
}

struct fleet_target *fleet_targets_find(const struct fleet_targets *all, const char *namespace_name, const char *name)
{
	return all->informer ? (void *)informer_get(all->informer, namespace_name, name) : NULL;
}

void fleet_target_scaled(struct fleet_target *t, const struct scale *scale)
{
	if (t->is_gone || strlen(scale->resource_version) >= FLEET_VERSION_BYTES ||
	    informer_put(t->all->informer, &t->item, t->key, scale->resource_version, NULL) < 0)
		return;
	t->spec_replicas = scale->spec_replicas;
	snprintf(t->resource_version, sizeof t->resource_version, "%.*s", FLEET_VERSION_BYTES - 1,
	         scale->resource_version);
}

// ---- series ----

static struct fleet_target *find_text(const struct fleet_targets *all, const char *namespace_name, const char *text)
{
	char space[TARGET_NAME_BYTES];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : sizeof space;
	if (n >= sizeof space || !slash[1])
		return NULL;
	memcpy(space, text, n);
	space[n] = '\0';
	if (n == 0 && !namespace_name)
		return NULL;
	return fleet_targets_find(all, n > 0 ? space : namespace_name, slash + 1);
}

void fleet_deal(struct fleet_deal *ret_deal, const struct fleet_targets *all, size_t n, const char *namespace_name,
                const struct query_answer *answer)
{
	const size_t n_series = answer->series ? answer->n_series : 0;
	uint32_t *at = must_alloc(malloc((n_series + 1) * sizeof *at)); // index of the target of each series
	uint32_t *first = must_alloc(calloc(n + 2, sizeof *first));
	*ret_deal = (struct fleet_deal){.first = first};
	ret_deal->series = must_alloc(malloc((n_series + 1) * sizeof *ret_deal->series));
	for (size_t i = 0; i < n_series; i++) {
		const struct fleet_target *t = find_text(all, namespace_name, answer->series[i].pod);
		at[i] = t && t->index < n ? t->index : UINT32_MAX;
		if (at[i] < n) {
			first[at[i] + 2]++;
			continue;
		}
		ret_deal->n_unmatched++;
		ret_deal->unmatched = answer->series[i].pod;
	}
	for (size_t i = 2; i <= n + 1; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < n_series; i++)
		if (at[i] < n)
			ret_deal->series[first[at[i] + 1]++] = answer->series[i];
	free(at);
}

void fleet_deal_done(struct fleet_deal *deal)
{
	free(deal->series);
	free(deal->first);
	*deal = (struct fleet_deal){0};
}
