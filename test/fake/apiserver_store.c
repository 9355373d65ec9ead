// SPDX-License-Identifier: Apache-2.0
#include "test/fake/apiserver_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/json/json_read.h"
#include "base/num.h"

#define FAKE_KEY_BYTES 1200

#define WORKLOAD .has_scale = true, .has_status = true, .has_generation = true
#define CUSTOM   .has_status = true, .has_generation = true, .is_custom = true, .needs_version = true
#define OPTIONAL CUSTOM, .is_optional = true

const struct fake_kind fake_kinds[] = {
        {"", "v1", "Pod", "pods", .has_status = true},
        {"", "v1", "Event", "events", .has_status = false},
        {"", "v1", "Namespace", "namespaces", .has_status = true, .is_cluster_wide = true},
        {"", "v1", "Node", "nodes", .has_status = true, .is_cluster_wide = true},
        {"apps", "v1", "Deployment", "deployments", WORKLOAD},
        {"apps", "v1", "ReplicaSet", "replicasets", WORKLOAD},
        {"apps", "v1", "StatefulSet", "statefulsets", WORKLOAD},
        {"apps", "v1", "DaemonSet", "daemonsets", .has_status = true, .has_generation = true},
        {"autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", .has_status = true},
        {"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", .has_status = true},
        {"coordination.k8s.io", "v1", "Lease", "leases", .needs_version = true},
        {"gpuscale.dev", "v1alpha1", "GPUAutoscaler", "gpuautoscalers", CUSTOM},
        {"gpuscale.dev", "v1alpha1", "GPUPool", "gpupools", CUSTOM, .is_cluster_wide = true},
        {"keda.sh", "v1alpha1", "ScaledObject", "scaledobjects", OPTIONAL},
        {"autoscaling.aibrix.ai", "v1alpha1", "PodAutoscaler", "podautoscalers", OPTIONAL},
        {"datadoghq.com", "v1alpha2", "DatadogPodAutoscaler", "datadogpodautoscalers", OPTIONAL},
        {"datadoghq.com", "v1alpha1", "DatadogPodAutoscaler", "datadogpodautoscalers", OPTIONAL},
        {"datadoghq.com", "v1alpha1", "WatermarkPodAutoscaler", "watermarkpodautoscalers", OPTIONAL},
        {"workload.serving.volcano.sh", "v1alpha1", "AutoscalingPolicy", "autoscalingpolicies", OPTIONAL},
        {"workload.serving.volcano.sh", "v1alpha1", "AutoscalingPolicyBinding", "autoscalingpolicybindings", OPTIONAL},
        {"kueue.x-k8s.io", "v1beta1", "LocalQueue", "localqueues", .has_status = true},
        {"leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets", CUSTOM, .has_scale = true},
        {"resource.k8s.io", "v1", "DeviceClass", "deviceclasses", .is_cluster_wide = true},
        {"resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", .has_status = true},
        {"resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", .has_status = false},
        {"resource.k8s.io", "v1", "ResourceSlice", "resourceslices", .is_cluster_wide = true},
        {"resource.k8s.io", "v1beta2", "DeviceTaintRule", "devicetaintrules", .is_cluster_wide = true},
        {"example.dev", "v1", "Widget", "widgets", CUSTOM, .has_scale = true},
};
_Static_assert(sizeof fake_kinds / sizeof fake_kinds[0] == FAKE_N_KINDS, "as many as the header says");

void fake_store_init(struct fake_store *s, fake_change_fn *on_change, void *arg)
{
	*s = (struct fake_store){.version = FAKE_FIRST_VERSION, .on_change = on_change, .arg = arg};
}

static void forget(struct fake_store *s, struct fake_object *o)
{
	HASH_DEL(s->index, o);
	DL_DELETE(s->of_kind[fake_kind_index(o->kind)], o);
	s->n_objects--;
	cJSON_Delete(o->root);
	fake_text_drop(o->text);
	free(o);
}

void fake_store_done(struct fake_store *s)
{
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		while (s->of_kind[i])
			forget(s, s->of_kind[i]);
	}
}

const struct fake_kind *fake_kind_find(const char *group, const char *version, const char *name_or_plural)
{
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		const struct fake_kind *k = &fake_kinds[i];
		if ((!group || strcmp(k->group, group) == 0) && (!version || strcmp(k->version, version) == 0) &&
		    (strcmp(k->kind, name_or_plural) == 0 || strcmp(k->plural, name_or_plural) == 0))
			return k;
	}
	return NULL;
}

// ---- reading ----

const char *fake_object_name(const struct fake_object *o)
{
	return json_get_str(json_get(o->root, "metadata"), "name", "");
}

const char *fake_object_namespace(const struct fake_object *o)
{
	return json_get_str(json_get(o->root, "metadata"), "namespace", "");
}

const char *fake_object_version(const struct fake_object *o)
{
	return json_get_str(json_get(o->root, "metadata"), "resourceVersion", "");
}

int fake_object_replicas(const struct fake_object *o)
{
	int64_t n = 1;
	return json_get_i64(json_get(o->root, "spec"), "replicas", 0, INT32_MAX, &n, NULL) < 0 ? 0 : (int)n;
}

char *fake_object_selector(const struct fake_object *o)
{
	struct buf text;
	buf_init(&text, 4096);
	const cJSON *label;
	cJSON_ArrayForEach(label, json_get(json_get(json_get(o->root, "spec"), "selector"), "matchLabels"))
	{
		if (cJSON_IsString(label))
			buf_printf(&text, "%s%s=%s", text.len ? "," : "", label->string, label->valuestring);
	}
	if (!text.len)
		buf_printf(&text, "app=%s", fake_object_name(o));
	return text.data;
}

static void write_key(char key[FAKE_KEY_BYTES], const struct fake_kind *kind, const char *ns, const char *name)
{
	snprintf(key, FAKE_KEY_BYTES, "%s/%s/%s", kind->plural, ns, name);
}

struct fake_object *fake_store_find(const struct fake_store *s, const struct fake_kind *kind, const char *ns,
                                    const char *name)
{
	char key[FAKE_KEY_BYTES];
	struct fake_object *o;
	write_key(key, kind, ns, name);
	HASH_FIND_STR(s->index, key, o);
	return o;
}

// ---- writing ----

static void set_version(struct fake_store *s, struct fake_object *o, cJSON *root)
{
	char text[32];
	o->version = ++s->version;
	snprintf(text, sizeof text, "%llu", (unsigned long long)o->version);
	fake_set(fake_sub(root, "metadata"), "resourceVersion", cJSON_CreateString(text));
}

static void tell(struct fake_store *s, const struct fake_object *o, enum fake_change_type type, const cJSON *old_root,
                 struct fake_text *old_text)
{
	s->on_change(s->arg, &(struct fake_change){.type = type,
	                                           .kind = o->kind,
	                                           .ns = fake_object_namespace(o),
	                                           .version = o->version,
	                                           .old_root = old_root,
	                                           .root = o->root,
	                                           .old_text = old_text,
	                                           .text = o->text});
}

static void drop_type(cJSON *root)
{
	cJSON_DeleteItemFromObjectCaseSensitive(root, "kind");
	cJSON_DeleteItemFromObjectCaseSensitive(root, "apiVersion");
}

struct fake_object *fake_store_add(struct fake_store *s, const struct fake_kind *kind, const char *ns, cJSON *root)
{
	char key[FAKE_KEY_BYTES], text[NUM_TEXT_BYTES > 300 ? NUM_TEXT_BYTES : 300];
	cJSON *metadata = fake_sub(root, "metadata");
	if (!json_get(metadata, "name")) {
		snprintf(text, sizeof text, "%.250s%05llx", json_get_str(metadata, "generateName", ""),
		         (unsigned long long)s->seq + 1);
		fake_set(metadata, "name", cJSON_CreateString(text));
	}
	write_key(key, kind, ns, json_get_str(metadata, "name", ""));
	struct fake_object *o = s->n_objects < FAKE_OBJECTS_MAX ? calloc(1, sizeof *o + strlen(key) + 1) : NULL;
	if (!o) {
		cJSON_Delete(root);
		return NULL;
	}
	o->kind = kind;
	o->root = root;
	o->seq = ++s->seq;
	drop_type(root);
	if (!kind->is_cluster_wide)
		fake_set(metadata, "namespace", cJSON_CreateString(ns));
	snprintf(text, sizeof text, "00000000-0000-4000-8000-%012llx", (unsigned long long)o->seq);
	fake_set(metadata, "uid", cJSON_CreateString(text));
	set_version(s, o, root);
	if (kind->has_generation)
		fake_set(metadata, "generation", cJSON_CreateNumber(1));
	num_format_rfc3339_ms(text, (int64_t)time(NULL) * 1000);
	fake_set(metadata, "creationTimestamp", cJSON_CreateString(text));
	if (kind->has_scale && !json_get(json_get(root, "spec"), "replicas"))
		fake_set(fake_sub(root, "spec"), "replicas", cJSON_CreateNumber(1));
	o->text = fake_text_of(root);
	memcpy(o->key, key, strlen(key) + 1);
	HASH_ADD_STR(s->index, key, o);
	DL_APPEND(s->of_kind[fake_kind_index(kind)], o);
	s->n_objects++;
	tell(s, o, FAKE_ADDED, NULL, NULL);
	return o;
}

void fake_store_remove(struct fake_store *s, struct fake_object *o)
{
	struct fake_text *old_text = o->text;
	set_version(s, o, o->root);
	o->text = fake_text_of(o->root);
	tell(s, o, FAKE_DELETED, o->root, old_text);
	fake_text_drop(old_text);
	forget(s, o);
}

void fake_store_update(struct fake_store *s, struct fake_object *o, cJSON *root)
{
	drop_type(root);
	if (cJSON_Compare(o->root, root, true)) {
		cJSON_Delete(root);
		return;
	}
	cJSON *old_root = o->root;
	struct fake_text *old_text = o->text;
	if (o->kind->has_generation && !cJSON_Compare(json_get(old_root, "spec"), json_get(root, "spec"), true)) {
		int64_t generation = 1;
		json_get_i64(json_get(old_root, "metadata"), "generation", 1, INT32_MAX, &generation, NULL);
		fake_set(fake_sub(root, "metadata"), "generation", cJSON_CreateNumber((double)generation + 1));
	}
	set_version(s, o, root);
	o->root = root;
	o->text = fake_text_of(root);
	tell(s, o, FAKE_MODIFIED, old_root, old_text);
	cJSON_Delete(old_root);
	fake_text_drop(old_text);
}
