// SPDX-License-Identifier: Apache-2.0
// The kinds of scale targets, as one table: where their replicas are counted, and which pods make up a replica. A kind
// that is not listed has one row for all: its status may report readyReplicas, and a replica is a pod.
#ifndef GPUSCALE_K8S_TARGETS_WORKLOAD_KIND_H
#define GPUSCALE_K8S_TARGETS_WORKLOAD_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKLOAD_GROUP_PODS_MAX 20000 // a larger stated size is taken for none
#define GROUP_SIZE_BYTES        16    // size of its text, with the NUL

struct workload_kind {
	const char *group, *kind; // group: of the apiVersion; NULL: any kind that is not listed
	const char *plural;       // the resource, where the objects themselves contain their scale; NULL: /scale does
	const char *ready;        // member of `status`: the replicas that are ready
	// Where a replica is a group of pods; NULL: it is a pod, or nothing shows which pods belong together.
	const char *group_label; // label of a pod: which replica it belongs to
	const char *size;        // annotation or label of a pod: how many pods its replica has; NULL: none
	const char *leader_label, *leader_value; // label of the pods that /scale selects; NULL: no limit
	// Member of `spec` that has the number of pods of a replica in `size`, and their pod template in
	// workerTemplate, unless leaderTemplate differs for the first; NULL: the template of a replica's only pod is in
	// spec.template.
	const char *group_template;
};

// Returns the row of a kind; never NULL. apiVersion: "GROUP/VERSION", or "VERSION" of the core group.
const struct workload_kind *workload_kind_find(const char *api_version, const char *kind);
// Returns row i; NULL: there are no more.
const struct workload_kind *workload_kind_at(size_t i);
// Returns whether each replica is exactly one pod.
bool workload_kind_is_pod(const struct workload_kind *k);

// Writes the selector of all pods of the replicas to out, of at least strlen(selector) + 1 bytes: the selector of
// /scale without the requirement that only the leaders meet. Returns whether it had one, in addition to others.
bool workload_kind_widen(const struct workload_kind *k, const char *selector, char *out);

// What the labels and annotations of a pod state about its replica. A pod of a tenant may state anything: it changes
// what is counted for the targets whose selector matches it.
struct group_member {
	uint64_t group; // a hash of the value of the group's label; 0: none
	int32_t size;   // pods of the replica; 0: not stated
	bool is_leader; // true for kinds without leaders, too
};
// Reads the values of a pod under group_label, size (annotation first) and leader_label; NULL: the pod has none.
struct group_member group_member_read(const struct workload_kind *k, const char *group, const char *size_annotation,
                                      const char *size_label, const char *leader);

#endif
