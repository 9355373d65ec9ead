// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/pod_decode.h"

#include "base/base.h"
#include "base/json/json_span.h"
#include "k8s/client/label_selector.h"

#define PHASE_BYTES 16
#define STAMP_BYTES 40

static int64_t read_stamp(struct json_span value)
{
	char text[STAMP_BYTES];
	int64_t ms;
	int len = json_span_text(value, text, sizeof text);
	return len > 0 && num_parse_rfc3339_ms(text, (size_t)len, &ms, NULL) == 0 ? ms : 0;
}

// Reasons of a waiting container that will not start by itself. Kubernetes: kubelet, images and container errors.
static bool is_hopeless(struct json_span reason)
{
	static const char *const reasons[] = {"CrashLoopBackOff", "ImagePullBackOff",     "ErrImagePull",
	                                      "InvalidImageName", "CreateContainerError", "CreateContainerConfigError",
	                                      "RunContainerError"};
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
		if (json_span_is(reason, reasons[i]))
			return true;
	}
	return false;
}

static bool has_crashing(struct json_span containers)
{
	static const char *const reason[] = {"state", "waiting", "reason", NULL};
	struct json_span_iter it = {.rest = containers};
	while (json_span_next(&it)) {
		if (is_hopeless(json_span_path(it.value, reason)))
			return true;
	}
	return false;
}

bool pod_decode(const char *json, size_t len, struct pod_facts *ret_facts)
{
	enum { NAME, CREATED, DELETED, METADATA__COUNT };
	enum { PHASE, CONDITIONS, CONTAINERS, INIT_CONTAINERS, STATUS__COUNT };
	static const char *const of_metadata[] = {"name", "creationTimestamp", "deletionTimestamp"},
	                         *const of_status[] = {"phase", "conditions", "containerStatuses",
	                                               "initContainerStatuses"};
	struct json_span o = {json, len}, metadata[METADATA__COUNT], status[STATUS__COUNT];
	char name[TARGET_NAME_BYTES], phase[PHASE_BYTES];
	json_span_members(json_span_get(o, "metadata"), of_metadata, metadata, METADATA__COUNT);
	json_span_members(json_span_get(o, "status"), of_status, status, STATUS__COUNT);
	json_span_text(status[PHASE], phase, sizeof phase);
	struct json_span ready = json_span_find(status[CONDITIONS], "type", "Ready");
	bool is_ready = json_span_is(json_span_get(ready, "status"), "True");
	bool is_deleted = metadata[DELETED].text && json_span_kind(metadata[DELETED]) != 'n';
	*ret_facts = (struct pod_facts){
	        .kind = pod_kind_of(is_deleted, phase, is_ready),
	        .is_ready = is_ready && !is_deleted,
	        .is_pending = !is_deleted && strcmp(phase, "Pending") == 0,
	        .is_failed = strcmp(phase, "Failed") == 0,
	        .is_deleted = is_deleted,
	        .is_crashing = has_crashing(status[CONTAINERS]) || has_crashing(status[INIT_CONTAINERS]),
	        .created_ms = read_stamp(metadata[CREATED]),
	        .ready_ms = is_ready ? read_stamp(json_span_get(ready, "lastTransitionTime")) : 0};
	return json_span_text(metadata[NAME], name, sizeof name) > 0;
}

int pod_decode_labels(const char *json, size_t len, struct label **ret_labels, size_t *ret_n, size_t *ret_bytes)
{
	static const char *const path[] = {"metadata", "labels", NULL};
	struct json_span labels = json_span_path((struct json_span){json, len}, path);
	struct json_span_iter it = {.rest = labels};
	size_t n = 0, text_bytes = 0;
	while (n < POD_LABELS_MAX && json_span_next(&it)) {
		text_bytes += it.key.len + it.value.len; // a decoded string is never longer than its JSON text
		n++;
	}
	*ret_bytes = n * sizeof(struct label) + text_bytes + 1;
	struct label *list = malloc(*ret_bytes);
	*ret_labels = list;
	*ret_n = 0;
	if (!list)
		return -1;
	char *room = (char *)(list + n);
	it = (struct json_span_iter){.rest = labels};
	for (size_t i = 0; i < n && json_span_next(&it); i++) {
		int key_len = json_span_text(it.key, room, it.key.len);
		int value_len = key_len < 0 ? -1 : json_span_text(it.value, room + key_len + 1, it.value.len);
		if (value_len < 0)
			continue;
		list[(*ret_n)++] = (struct label){room, room + key_len + 1};
		room += key_len + 1 + value_len + 1;
	}
	label_sort(list, *ret_n);
	return 0;
}

static const char *find_label(const struct label *labels, size_t n, const char *key)
{
	for (size_t i = 0; key && i < n; i++) {
		if (strcmp(labels[i].key, key) == 0)
			return labels[i].value;
	}
	return NULL;
}

struct group_member pod_decode_member(const struct workload_kind *k, const char *json, size_t len,
                                      const struct label *labels, size_t n_labels)
{
	const char *const path[] = {"metadata", "annotations", k->size, NULL};
	char size[GROUP_SIZE_BYTES];
	bool has_size =
	        k->size && json_span_text(json_span_path((struct json_span){json, len}, path), size, sizeof size) > 0;
	return group_member_read(k, find_label(labels, n_labels, k->group_label), has_size ? size : NULL,
	                         find_label(labels, n_labels, k->size), find_label(labels, n_labels, k->leader_label));
}
