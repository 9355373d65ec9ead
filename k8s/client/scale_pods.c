// SPDX-License-Identifier: Apache-2.0
// Counts and lists the pods of a selector, page by page, decodes the pages, and marks pods.
#include "base/base.h"
#include "k8s/client/scale.h"

#include "base/http/http_client.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "k8s/client/k8s_client.h"

#define PODS_PAGES_MAX 400
#define MARK_BYTES_MAX 512
// 253 bytes and a NUL each, as the arena counts them, and a struct pod_removal with its version.
#define POD_LIST_NAMES_BYTES_MAX ((size_t)PODS_MAX * 384)

static bool is_ready(const cJSON *status)
{
	const cJSON *condition;
	cJSON_ArrayForEach(condition, json_get(status, "conditions"))
	{
		if (strcmp(json_get_str(condition, "type", ""), "Ready") == 0)
			return strcmp(json_get_str(condition, "status", ""), "True") == 0;
	}
	return false;
}

void pod_list_init(struct pod_list *l)
{
	*l = (struct pod_list){0};
	arena_init(&l->names, POD_LIST_NAMES_BYTES_MAX);
}

void pod_list_done(struct pod_list *l)
{
	free(l->items);
	arena_done(&l->names);
	*l = (struct pod_list){0};
}

int pod_list_add(struct pod_list *l, const char *name, enum pod_kind kind, struct err *e)
{
	if (alloc_reserve(&l->items, l->n, &l->cap, sizeof *l->items, 64) < 0)
		return err_no_memory(e);
	char *copy = arena_strdup(&l->names, name);
	if (!copy)
		return err_set(e, ERR_LIMIT, "the names of the pods exceed %zu bytes", POD_LIST_NAMES_BYTES_MAX);
	l->items[l->n++] = (struct pod_info){.name = copy, .kind = kind, .member.is_leader = true};
	return 0;
}

enum pod_kind pod_kind_of(bool is_deleted, const char *phase, bool is_ready)
{
	if (is_deleted)
		return POD_KIND_DELETED;
	if (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0)
		return POD_KIND_ENDED;
	if (strcmp(phase, "Pending") == 0)
		return POD_KIND_PENDING;
	return is_ready ? POD_KIND_READY : POD_KIND_UNREADY;
}

static bool is_pod(const cJSON *pod)
{
	const cJSON *metadata = json_get(pod, "metadata"), *status = json_get(pod, "status");
	return cJSON_IsObject(pod) && json_may_be(metadata, cJSON_IsObject) && json_may_be(status, cJSON_IsObject) &&
	       json_may_be(json_get(metadata, "name"), cJSON_IsString) &&
	       json_may_be(json_get(metadata, "deletionTimestamp"), cJSON_IsString) &&
	       json_may_be(json_get(status, "phase"), cJSON_IsString) &&
	       json_may_be(json_get(status, "conditions"), cJSON_IsArray);
}

static const char *find_text(const cJSON *o, const char *key)
{
	return key ? json_get_str(o, key, NULL) : NULL;
}

static struct group_member read_member(const struct workload_kind *k, const cJSON *metadata)
{
	const cJSON *labels = json_get(metadata, "labels");
	return group_member_read(k, find_text(labels, k->group_label),
	                         find_text(json_get(metadata, "annotations"), k->size), find_text(labels, k->size),
	                         find_text(labels, k->leader_label));
}

// Kubernetes: pkg/controller/replicaset, which also runs ReplicationControllers. OpenKruise: CloneSet.
static bool is_by_cost(const cJSON *owners)
{
	static const char *const kinds[] = {"ReplicaSet", "ReplicationController", "CloneSet"};
	const cJSON *owner;
	cJSON_ArrayForEach(owner, owners)
	{
		for (size_t i = 0; cJSON_IsTrue(json_get(owner, "controller")) && i < sizeof kinds / sizeof kinds[0];
		     i++)
			if (strcmp(json_get_str(owner, "kind", ""), kinds[i]) == 0)
				return true;
	}
	return false;
}

// An invalid cost is treated as 0, as by the controllers.
static const struct pod_removal *read_removal(struct arena *a, const cJSON *metadata)
{
	struct pod_removal *r = arena_calloc(a, 1, sizeof *r);
	const cJSON *annotations = json_get(metadata, "annotations");
	const char *cost = find_text(annotations, POD_COST_ANNOTATION);
	const char *marked = find_text(annotations, POD_VICTIM_ANNOTATION);
	int64_t n = 0;
	if (!r)
		return NULL;
	r->resource_version = arena_strdup(a, json_get_str(metadata, "resourceVersion", ""));
	r->is_by_cost = is_by_cost(json_get(metadata, "ownerReferences"));
	if (marked && num_parse_rfc3339_ms(marked, strlen(marked), &r->marked_ms, NULL) < 0)
		r->marked_ms = 1; // someone changed it: long ago
	if (cost && num_parse_i64(cost, strlen(cost), INT32_MIN, INT32_MAX, &n, NULL) < 0)
		n = 0;
	r->cost = (int32_t)n;
	r->has_cost = cost && !(marked && n == POD_MARK_COST);
	return r->resource_version ? r : NULL;
}

static int decode_pods(const cJSON *root, struct pod_counts *counts, struct pod_list *list, char *ret_continue,
                       struct err *e)
{
	if (strcmp(json_get_str(root, "kind", ""), "PodList") != 0)
		return err_set(e, ERR_PROTOCOL, "expected a PodList, got kind \"%.60s\"",
		               json_get_str(root, "kind", ""));
	const cJSON *metadata = json_get(root, "metadata"), *items = json_get(root, "items"), *pod;
	if (!cJSON_IsNull(items) && !cJSON_IsArray(items))
		return err_set(e, ERR_PROTOCOL, "items is not a list");
	if (!cJSON_IsObject(metadata))
		return err_set(e, ERR_PROTOCOL, "metadata does not say whether the list is complete");
	cJSON_ArrayForEach(pod, items)
	{
		if (!is_pod(pod))
			return err_set(e, ERR_PROTOCOL, "item %d is not a pod", (int)counts->total);
		const cJSON *status = json_get(pod, "status"),
		            *deleted = json_get(json_get(pod, "metadata"), "deletionTimestamp");
		const char *phase = json_get_str(status, "phase", "");
		bool is_deleted = deleted && !cJSON_IsNull(deleted), ready = is_ready(status);
		if (counts->total == PODS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d pods match the selector", PODS_MAX);
		counts->total++;
		counts->terminating += is_deleted;
		counts->failed += strcmp(phase, "Failed") == 0;
		counts->pending += !is_deleted && strcmp(phase, "Pending") == 0;
		counts->ready += !is_deleted && ready;
		const char *name = json_get_str(json_get(pod, "metadata"), "name", "");
		if (!list)
			continue;
		if (pod_list_add(list, name, pod_kind_of(is_deleted, phase, ready), e) < 0)
			return -1;
		if (list->workload)
			list->items[list->n - 1].member = read_member(list->workload, json_get(pod, "metadata"));
		if (!list->reads_removal)
			continue;
		list->items[list->n - 1].removal = read_removal(&list->names, json_get(pod, "metadata"));
		if (!list->items[list->n - 1].removal)
			return err_set(e, ERR_LIMIT, "the names of the pods exceed %zu bytes",
			               POD_LIST_NAMES_BYTES_MAX);
	}
	return json_get_text(metadata, "continue", ret_continue, PODS_CONTINUE_BYTES_MAX, e);
}

int pods_decode_page(const char *text, size_t len, struct pod_counts *counts, struct pod_list *list,
                     char ret_continue[PODS_CONTINUE_BYTES_MAX], struct err *e)
{
	ret_continue[0] = '\0';
	cJSON *root = json_read(text, len, e);
	int rc = root ? decode_pods(root, counts, list, ret_continue, e) : -1;
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "list of pods") : 0;
}

// ---- requests ----

struct count {
	struct k8s_client *client;
	struct pod_counts counts;
	struct pod_list *list; // NULL: counts only
	char next_page[PODS_CONTINUE_BYTES_MAX];
	bool has_restarted;
	int pages;
	pod_counts_done_fn *done;
	void *arg;
	const char *namespace_name, *selector; // in the same allocation
};

static void finish(struct count *n, const struct err *error)
{
	pod_counts_done_fn *done = n->done;
	void *arg = n->arg;
	struct pod_counts counts = n->counts;
	free(n);
	done(arg, error ? NULL : &counts, error);
}

static int ask_page(struct count *n, struct err *e);

static void on_page(void *arg, const struct http_response *response, const struct err *error)
{
	struct count *n = arg;
	struct err e = {0};
	// 410: the continue token has expired. Starts again, once.
	if (error && error->code == 410 && n->next_page[0] && !n->has_restarted) {
		n->has_restarted = true;
		n->next_page[0] = '\0';
		n->counts = (struct pod_counts){0};
		if (n->list) {
			const struct workload_kind *workload = n->list->workload;
			bool reads_removal = n->list->reads_removal;
			pod_list_done(n->list);
			pod_list_init(n->list);
			n->list->workload = workload;
			n->list->reads_removal = reads_removal;
		}
	} else if (error) {
		finish(n, error);
		return;
	} else if (pods_decode_page(response->body, response->body_len, &n->counts, n->list, n->next_page, &e) < 0) {
		finish(n, &e);
		return;
	} else if (!n->next_page[0]) {
		finish(n, NULL);
		return;
	}
	if (ask_page(n, &e) < 0)
		finish(n, &e);
}

static int ask_page(struct count *n, struct err *e)
{
	if (n->pages++ == PODS_PAGES_MAX) // pages may be short, but a list must end
		return err_set(e, ERR_LIMIT, "the list of pods has more than %d pages", PODS_PAGES_MAX);
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "/api/v1/namespaces/%s/pods?limit=%d&labelSelector=", n->namespace_name, PODS_PAGE);
	http_append_urlencoded(&path, n->selector);
	if (n->next_page[0]) {
		buf_puts(&path, "&continue=");
		http_append_urlencoded(&path, n->next_page);
	}
	int rc = path.failed ? err_set(e, ERR_LIMIT, "the path of a pod list exceeds %d bytes", K8S_PATH_BYTES_MAX)
	                     : k8s_request(n->client, "GET", buf_str(&path), NULL, NULL, 0, on_page, n, e);
	buf_done(&path);
	return rc;
}

int pods_list(struct k8s_client *c, const char *namespace_name, const char *selector, struct pod_list *list,
              pod_counts_done_fn *done, void *arg, struct err *e)
{
	if (!k8s_name_is_valid(namespace_name))
		return err_set(e, ERR_INPUT, "invalid namespace \"%.80s\"", namespace_name);
	if (!selector[0])
		return err_set(e, ERR_INPUT, "cannot count pods: the scale subresource has no selector");
	const char **const texts[] = {&namespace_name, &selector};
	struct count *n = alloc_with_texts(sizeof *n, texts, 2, e);
	if (!n)
		return -1;
	n->client = c;
	n->list = list;
	n->done = done;
	n->arg = arg;
	n->selector = selector;
	n->namespace_name = namespace_name;
	if (ask_page(n, e) < 0) {
		free(n);
		return -1;
	}
	return 0;
}

int pod_mark(struct k8s_client *c, const char *namespace_name, const struct pod_info *pod, int64_t marked_ms,
             k8s_done_fn *done, void *arg, struct err *e)
{
	char stamp[NUM_TEXT_BYTES], cost[NUM_TEXT_BYTES];
	struct buf path, body;
	struct json_writer w;
	assert(pod->removal && !(pod->removal->has_cost && marked_ms > 0));
	if (!k8s_name_is_valid(namespace_name) || !k8s_name_is_valid(pod->name))
		return err_set(e, ERR_INPUT, "invalid namespace and name of a pod: \"%.80s/%.80s\"", namespace_name,
		               pod->name);
	num_format_rfc3339_ms(stamp, marked_ms);
	snprintf(cost, sizeof cost, "%d", POD_MARK_COST);
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_init(&body, MARK_BYTES_MAX);
	buf_printf(&path, "/api/v1/namespaces/%s/pods/%s", namespace_name, pod->name);
	json_write_init(&w, &body, 0);
	json_write_format(&w, "{metadata:{resourceVersion:%s,annotations:{", pod->removal->resource_version);
	json_write_member_str(&w, POD_VICTIM_ANNOTATION, marked_ms > 0 ? stamp : NULL);
	if (!pod->removal->has_cost)
		json_write_member_str(&w, POD_COST_ANNOTATION, marked_ms > 0 ? cost : NULL);
	json_write_format(&w, "}}}");
	int rc = path.failed || body.failed ? err_set(e, ERR_LIMIT, "the path or body of a pod's mark is too long")
	                                    : k8s_request(c, "PATCH", buf_str(&path), "application/merge-patch+json",
	                                                  buf_str(&body), body.len, done, arg, e);
	buf_done(&path);
	buf_done(&body);
	return rc;
}
