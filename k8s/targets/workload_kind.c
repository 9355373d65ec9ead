// SPDX-License-Identifier: Apache-2.0
#include "k8s/targets/workload_kind.h"

#include <string.h>

#include "base/hash.h"
#include "base/json/json_path.h"
#include "base/num.h"

#define LWS      "leaderworkerset.sigs.k8s.io/"
#define KTHENA   "modelserving.volcano.sh/"
#define JOBSET   "jobset.sigs.k8s.io/"
#define TEMPLATE .pod_spec = "spec.template.spec"
#define ELASTIC  .also = "completions", .also_if = "completionMode=Indexed"

// LeaderWorkerSet and DisaggregatedSet: api/leaderworkerset/v1, api/disaggregatedset/v1. Grove: operator/api,
// labels.go, scalinggroup.go. kthena: pkg/apis/workload/v1alpha1, labels.go, model_serving_types.go and
// model_serving_role_replica_types.go. Dynamo: dynamographdeploymentscalingadapter_types.go. KubeRay: rayv1
// raycluster_types.go, utils/constant.go. JobSet: api/jobset/v1alpha2, jobset_types.go. KServe: v1beta1 component.go,
// constants.go. Job: batch/v1 types.go.
// clang-format off
static const struct workload_kind kinds[] = {
	{"apps", "Deployment",  .plural = "deployments",  .is_pod = true, .ready = "readyReplicas", TEMPLATE},
	{"apps", "StatefulSet", .plural = "statefulsets", .is_pod = true, .ready = "readyReplicas", TEMPLATE},
	{"apps", "ReplicaSet",  .plural = "replicasets",  .is_pod = true, .ready = "readyReplicas", TEMPLATE},
	{"argoproj.io", "Rollout", .ready = "readyReplicas", TEMPLATE},
	{"leaderworkerset.x-k8s.io", "LeaderWorkerSet", .ready = "readyReplicas", .group_label = LWS "group-index", .size = LWS "size", .leader_label = LWS "worker-index", .leader_value = "0", .pod_spec = "spec.leaderWorkerTemplate.workerTemplate.spec", .pods = "spec.leaderWorkerTemplate.size", .other_template = "spec.leaderWorkerTemplate.leaderTemplate"},
	// The server has no /scale of it as long as nothing has set spec.replicas.
	{"disaggregatedset.x-k8s.io", "DisaggregatedSetRoleScaler", .path = "spec.replicas", .absent = WORKLOAD_ABSENT_EXISTING, .existing = "replicas", .group_label = LWS "group-key", .size = LWS "size"},
	{"grove.io", "PodCliqueScalingGroup", .ready = "availableReplicas", .group_label = "grove.io/podcliquescalinggroup-replica-index"},
	{"nvidia.com", "DynamoGraphDeploymentScalingAdapter", .group_label = "grove.io/podcliquescalinggroup-replica-index"},
	{"workload.serving.volcano.sh", "ModelServing", .ready = "availableReplicas", .group_label = KTHENA "group-name", .leader_label = KTHENA "entry", .leader_value = "true"},
	{"workload.serving.volcano.sh", "ModelServingRoleReplica", .group_label = KTHENA "role-id", .leader_label = KTHENA "entry", .leader_value = "true"},
	{"batch", "Job", .is_pod = true, .path = "spec.parallelism", .absent = 1, ELASTIC, .existing = "active", .ready = "ready", .selector = "batch.kubernetes.io/job-name=@", TEMPLATE},
	{"jobset.x-k8s.io", "JobSet", .path = "spec.replicatedJobs[name=*].template.spec.parallelism", .absent = 1, ELASTIC, .selector = JOBSET "jobset-name=@," JOBSET "replicatedjob-name=*", .pod_spec = "spec.replicatedJobs[name=*].template.spec.template.spec"},
	{"jobset.x-k8s.io", "JobSet", .path = "spec.replicatedJobs[name=*].replicas", .absent = 1, .ready = "replicatedJobsStatus[name=*].ready", .selector = JOBSET "jobset-name=@," JOBSET "replicatedjob-name=*", .group_label = JOBSET "job-index", .pod_spec = "spec.replicatedJobs[name=*].template.spec.template.spec", .pods = "spec.replicatedJobs[name=*].template.spec.parallelism"},
	{"ray.io", "RayCluster", .path = "spec.workerGroupSpecs[groupName=*].replicas", .absent = 0, .selector = "ray.io/cluster=@,ray.io/group=*,ray.io/node-type=worker", .group_label = "ray.io/worker-group-replica-name", .pod_spec = "spec.workerGroupSpecs[groupName=*].template.spec", .pods = "spec.workerGroupSpecs[groupName=*].numOfHosts"},
	{"serving.kserve.io", "InferenceService", .path = "spec.predictor.minReplicas", .absent = 1, .also = "maxReplicas", .selector = "serving.kserve.io/inferenceservice=@,component=predictor"},
	{NULL, NULL, .absent = WORKLOAD_ABSENT_ERROR, .existing = "replicas", .ready = "readyReplicas", TEMPLATE}, // last: any other
};
// clang-format on
#define KINDS (sizeof kinds / sizeof kinds[0] - 1)

const struct workload_kind *workload_kind_find(const char *api_version, const char *kind, const char *path)
{
	char item[JSON_PATH_NAME_MAX + 1];
	size_t len = strcspn(api_version, "/");
	for (size_t i = 0; i < KINDS; i++) {
		if (strncmp(kinds[i].group, api_version, len) == 0 && !kinds[i].group[len] &&
		    strcmp(kinds[i].kind, kind) == 0 &&
		    (!path || (kinds[i].path && json_path_match(kinds[i].path, path, item))))
			return &kinds[i];
	}
	return &kinds[KINDS];
}

const struct workload_kind *workload_kind_at(size_t i)
{
	return i < KINDS ? &kinds[i] : NULL;
}

const char *workload_kind_path(const char *api_version, const char *kind, const char *path)
{
	const struct workload_kind *k = workload_kind_find(api_version, kind, NULL);
	if (path && k->group && !k->path && strcmp(path, "spec.replicas") == 0)
		return NULL;
	return path || !k->path || strchr(k->path, '*') ? path : k->path;
}

bool workload_kind_fill(const struct workload_kind *k, const char *pattern, const char *path, const char *name,
                        char *out, size_t size)
{
	char item[JSON_PATH_NAME_MAX + 1] = "";
	size_t at = 0;
	if (!pattern || (k->path && (!path || !json_path_match(k->path, path, item))))
		return false;
	for (const char *p = pattern; *p; p++) {
		const char *text = *p == '*' ? item : *p == '@' ? name : NULL;
		size_t len = text ? strlen(text) : 1;
		if (at + len >= size)
			return false;
		memcpy(out + at, text ? text : p, len);
		at += len;
	}
	out[at] = '\0';
	return true;
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
