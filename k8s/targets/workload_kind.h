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
	const char *plural;       // the resource, where a watch needs no discovery; NULL: discovery finds it
	bool is_pod;              // a replica is one pod, always
	// Where the replicas are, in a kind that is scaled without /scale; NULL: /scale. A path
	// (base/json/json_path.h), or a pattern with * for the name of a list item: then a policy names the path, and *
	// stands for the same name below.
	const char *path;
	int32_t absent; // replicas when there is no value at `path`; WORKLOAD_ABSENT_*
	// A member next to the last one of `path` that is set to the same number, but to at least 1; NULL: none.
	const char *also;
	// MEMBER=TEXT next to it: `also` is set only where MEMBER is TEXT and both numbers are equal; NULL: always.
	const char *also_if;
	const char *existing; // path below `status`: the replicas that exist, for kinds without /scale; NULL: the pods
	                      // show it
	const char *ready;    // path below `status`: the replicas that are ready; NULL: the pods show it
	// Selector of the pods, for kinds without /scale: @ stands for the name of the object. NULL: status.selector.
	const char *selector;
	// Where a replica is a group of pods; NULL: it is a pod, or nothing shows which pods belong together.
	const char *group_label; // label of a pod: which replica it belongs to
	const char *size;        // annotation or label of a pod: how many pods its replica has; NULL: none
	const char *leader_label, *leader_value; // label of the pods that /scale selects; NULL: no limit
	// What a replica needs: paths of the PodSpec of its pods, of the number of pods (NULL: 1), which is 1 when
	// absent, and of a template that differs for one of the pods (NULL: none).
	const char *pod_spec, *pods, *other_template;
};
#define WORKLOAD_ABSENT_ERROR    -1 // the path leads nowhere
#define WORKLOAD_ABSENT_EXISTING -2 // as many as exist

// Returns the row of a kind; never NULL. apiVersion: "GROUP/VERSION", or "VERSION" of the core group. With a
// `path`, the row whose pattern it matches, else that of any other kind; without one (NULL), the first row of the kind.
const struct workload_kind *workload_kind_find(const char *api_version, const char *kind, const char *path);
// Returns row i; NULL: there are no more.
const struct workload_kind *workload_kind_at(size_t i);
// Returns where an object of a kind has its replicas: at `path` of a policy; without one (NULL), at the path of the
// kind, unless it is a pattern. NULL: in /scale, also for the path of it.
const char *workload_kind_path(const char *api_version, const char *kind, const char *path);
// Writes a pattern of the row to out, of `size` bytes, with the name of the list item that `path` has in place of *,
// and `name`, the name of the object, in place of @. Returns false when the pattern is NULL, `path` is not a
// path of the row, or the result does not fit.
bool workload_kind_fill(const struct workload_kind *k, const char *pattern, const char *path, const char *name,
                        char *out, size_t size);

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
