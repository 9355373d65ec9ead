// SPDX-License-Identifier: Apache-2.0
#include "k8s/targets/workload_kind.h"

#include <string.h>

#include "base/hash.h"
#include "base/num.h"

#define LWS    "leaderworkerset.sigs.k8s.io/"
#define KTHENA "modelserving.volcano.sh/"
#define PODS   NULL, NULL, NULL, NULL, NULL // a replica is a pod

// LeaderWorkerSet: api/leaderworkerset/v1, leaderworkerset_types.go. Grove: operator/api, labels.go, scalinggroup.go.
// kthena: pkg/apis/workload/v1alpha1, labels.go, model_serving_types.go.
// clang-format off
static const struct workload_kind kinds[] = {
	// group                        kind                     plural          ready                group_label                                     size        leader                       group_template
	{"apps",                        "Deployment",            "deployments",  "readyReplicas",     PODS},
	{"apps",                        "StatefulSet",           "statefulsets", "readyReplicas",     PODS},
	{"apps",                        "ReplicaSet",            "replicasets",  "readyReplicas",     PODS},
	{"leaderworkerset.x-k8s.io",    "LeaderWorkerSet",       NULL,           "readyReplicas",     LWS "group-index",                              LWS "size", LWS "worker-index", "0",     "leaderWorkerTemplate"},
	{"grove.io",                    "PodCliqueScalingGroup", NULL,           "availableReplicas", "grove.io/podcliquescalinggroup-replica-index", NULL,       NULL, NULL,                  NULL},
	{"workload.serving.volcano.sh", "ModelServing",          NULL,           "availableReplicas", KTHENA "group-name",                            NULL,       KTHENA "entry", "true",      NULL},
	{NULL,                          NULL,                    NULL,           "readyReplicas",     PODS}, // last: any other
};
// clang-format on
#define KINDS (sizeof kinds / sizeof kinds[0] - 1)

const struct workload_kind *workload_kind_find(const char *api_version, const char *kind)
{
	size_t len = strcspn(api_version, "/"), i = 0;
	while (i < KINDS && !(strncmp(kinds[i].group, api_version, len) == 0 && kinds[i].group[len] == '\0' &&
	                      strcmp(kinds[i].kind, kind) == 0))
		i++;
	return &kinds[i];
}

const struct workload_kind *workload_kind_at(size_t i)
{
	return i < KINDS ? &kinds[i] : NULL;
}

bool workload_kind_is_pod(const struct workload_kind *k)
{
	return k->plural != NULL;
}

bool workload_kind_widen(const struct workload_kind *k, const char *selector, char *out)
{
	size_t key_len = k->leader_label ? strlen(k->leader_label) : 0, at = 0;
	bool is_dropped = false;
	for (const char *p = selector; *p;) {
		size_t len = strcspn(p, ",(");
		if (p[len] == '(')
			len += strcspn(p + len, ")");
		len += strcspn(p + len, ",");
		if (key_len && len == key_len + 1 + strlen(k->leader_value) &&
		    memcmp(p, k->leader_label, key_len) == 0 && p[key_len] == '=' &&
		    memcmp(p + key_len + 1, k->leader_value, len - key_len - 1) == 0) {
			is_dropped = true;
		} else {
			if (at)
				out[at++] = ',';
			memcpy(out + at, p, len);
			at += len;
		}
		p += len + (p[len] == ',');
	}
	out[at] = '\0';
	if (at == 0) // nothing would be left, which matches every pod
		memcpy(out, selector, strlen(selector) + 1);
	return is_dropped && at > 0;
}

static bool read_size(const char *text, int64_t *ret_size)
{
	return text && strlen(text) < GROUP_SIZE_BYTES &&
	       num_parse_i64(text, strlen(text), 1, WORKLOAD_GROUP_PODS_MAX, ret_size, NULL) == 0;
}

struct group_member group_member_read(const struct workload_kind *k, const char *group, const char *size_annotation,
                                      const char *size_label, const char *leader)
{
	int64_t n = 0;
	if (!read_size(size_annotation, &n) && !read_size(size_label, &n))
		n = 0;
	return (struct group_member){.group = group && group[0] ? hash_text(HASH_START, group) | 1 : 0,
	                             .size = (int32_t)n,
	                             .is_leader = !k->leader_label || (leader && strcmp(leader, k->leader_value) == 0)};
}
