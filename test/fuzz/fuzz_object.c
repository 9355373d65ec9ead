// SPDX-License-Identifier: Apache-2.0
// Objects of the API server read by spans, on any bytes: nothing outside of them is touched, what comes out is in
// range, and of valid JSON every member is what a tree says it is.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "k8s/cache/pod_decode.h"
#include "k8s/cache/target_decode.h"
#include "k8s/client/scale.h"

#define TEXT_BYTES 4096

// A patch of what was read can be read itself.
static void read_paths(struct json_span object)
{
	static const struct scale_ref refs[] = {
	        {"ray.io/v1", "RayCluster", "ns", "a", "spec.workerGroupSpecs[groupName=gpu].replicas"},
	        {"batch/v1", "Job", "ns", "a", "spec.parallelism"},
	        {"example.com/v1", "Other", "ns", "a", "spec.size"},
	        {"disaggregatedset.x-k8s.io/v1", "DisaggregatedSetRoleScaler", "ns", "a", "spec.replicas"}};
	for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++) {
		struct scale s;
		struct buf body;
		struct err e = {0};
		bool is_stale;
		assert(scale_path_ready(&refs[i], object, &is_stale) >= -1);
		if (scale_path_read(&refs[i], object, &s, &e) < 0) {
			assert((e.kind == ERR_PROTOCOL || e.kind == ERR_INPUT) && e.msg[0]);
			continue;
		}
		assert(s.resource_version[0] && s.spec_replicas >= 0 && s.status_replicas >= -1);
		buf_init(&body, 4096);
		if (scale_path_write_patch(&refs[i], object, s.resource_version, 3, &body, &e) == 0)
			assert(json_span_is_whole((struct json_span){body.data, body.len}) &&
			       strchr(buf_str(&body), '3'));
		else
			assert(e.msg[0]);
		buf_done(&body);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const cJSON *tree, struct json_span s)
{
	static char text[TEXT_BYTES];
	assert(s.text);
	if (cJSON_IsString(tree)) {
		int len = json_span_text(s, text, sizeof text);
		assert(len < 0 ? strlen(tree->valuestring) >= TEXT_BYTES : strcmp(text, tree->valuestring) == 0);
	}
	int64_t number;
	if (json_span_i64(s, INT32_MIN, INT32_MAX, &number))
		assert(cJSON_IsNumber(tree) && tree->valuedouble == (double)number);
	struct json_span_iter it = {.rest = s};
	if (!cJSON_IsObject(tree) && !cJSON_IsArray(tree)) {
		assert(!json_span_next(&it));
		return;
	}
	const cJSON *child;
	cJSON_ArrayForEach(child, tree)
	{
		assert(json_span_next(&it));
		assert((it.key.text != NULL) == (cJSON_IsObject(tree) != 0));
		if (it.key.text && json_span_text(it.key, text, sizeof text) >= 0)
			assert(strcmp(text, child->string) == 0);
		compare(child, it.value);
	}
	assert(!json_span_next(&it));
}

static bool has_name_twice(const cJSON *tree)
{
	const cJSON *child, *other;
	if (cJSON_GetArraySize(tree) > 100) // not to look for long
		return true;
	cJSON_ArrayForEach(child, tree)
	{
		for (other = child->next; other && cJSON_IsObject(tree); other = other->next)
			if (strcmp(child->string, other->string) == 0)
				return true;
		if (has_name_twice(child))
			return true;
	}
	return false;
}

// They agree on the group of a pod, too.
static void compare_members(const struct workload_kind *k, const char *json, size_t size,
                            const struct group_member *listed)
{
	struct label *labels;
	size_t n, bytes;
	assert(pod_decode_labels(json, size, &labels, &n, &bytes) == 0);
	struct group_member m = pod_decode_member(k, json, size, labels, n);
	assert(m.size >= 0 && m.size <= WORKLOAD_GROUP_PODS_MAX);
	assert(n == POD_LABELS_MAX ||
	       (m.group == listed->group && m.size == listed->size && m.is_leader == listed->is_leader));
	free(labels);
}

// The two readers of pods, of a watch's objects and of a list's pages, see the same.
static void compare_pods(const char *json, size_t size, const cJSON *tree, const struct pod_facts *pod)
{
	struct pod_counts counts = {0};
	struct pod_list list;
	struct buf page;
	struct err e = {0};
	char next[PODS_CONTINUE_BYTES_MAX];
	if (memchr(json, '\\', size) || has_name_twice(tree))
		return;
	buf_init(&page, size + 100);
	buf_puts(&page, "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[");
	buf_put(&page, json, size);
	buf_puts(&page, "]}");
	pod_list_init(&list);
	list.workload = workload_kind_find("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", NULL);
	if (pods_decode_page(buf_str(&page), page.len, &counts, &list, next, &e) == 0) {
		assert(counts.total == 1 && list.items[0].kind == pod->kind);
		assert(counts.ready == pod->is_ready && counts.pending == pod->is_pending);
		assert(counts.failed == pod->is_failed && counts.terminating == pod->is_deleted);
		compare_members(list.workload, json, size, &list.items[0].member);
	}
	pod_list_done(&list);
	buf_done(&page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *json = malloc(size ? size : 1); // of its own, so that reading past it is seen
	memcpy(json, data, size);
	cJSON *tree = json_read(json, size, NULL);
	bool is_whole = json_span_is_whole((struct json_span){json, size});
	assert(is_whole || !tree);
	if (tree) {
		size_t start = 0, end = size;
		while (strchr(" \t\r\n", json[start]))
			start++;
		while (strchr(" \t\r\n", json[end - 1]))
			end--;
		compare(tree, (struct json_span){json + start, end - start});
	}
	struct pod_facts pod;
	if (pod_decode(json, size, &pod)) {
		assert(pod.kind >= 0 && pod.kind < POD_KIND__COUNT);
		assert(pod.created_ms > -100000000000000 && pod.created_ms < 300000000000000 &&
		       (pod.is_ready || pod.ready_ms == 0 || pod.is_deleted));
		if (tree)
			compare_pods(json, size, tree, &pod);
	}

	struct json_span only;
	if (object_list_find(json, size, "web", &only) >= 0)
		assert(is_whole && (!tree || cJSON_GetArraySize(json_get(tree, "items")) <= 1));

	struct target_fields f;
	struct err e = {0};
	if (target_decode(json, size, &f, &e) == 0) {
		assert(f.resource_version[0] && f.spec_replicas >= 0 && f.status_replicas >= 0 &&
		       f.ready_replicas >= 0);
		if (f.selector[0]) { // what is rendered can be read
			struct label_selector *s = label_selector_parse(f.selector, &e);
			assert(s || e.kind == ERR_LIMIT);
			label_selector_free(s);
		}
	} else {
		assert((e.kind == ERR_PROTOCOL || e.kind == ERR_LIMIT) && e.msg[0]);
	}

	if (target_decode_metadata(json, size, &f, &e) == 0)
		assert(f.resource_version[0] && f.generation >= 0 && f.spec_replicas == 1 && !f.selector[0]);

	if (is_whole)
		read_paths((struct json_span){json, size});

	struct label *labels;
	size_t n, bytes;
	assert(pod_decode_labels(json, size, &labels, &n, &bytes) == 0 && n <= POD_LABELS_MAX);
	for (size_t i = 0; i < n; i++)
		assert(strlen(labels[i].key) + strlen(labels[i].value) <= size);
	free(labels);
	cJSON_Delete(tree);
	free(json);
	return 0;
}
