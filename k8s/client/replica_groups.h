// SPDX-License-Identifier: Apache-2.0
// Counts replicas that are groups of pods. Values only: no clock, no requests.
#ifndef GPUSCALE_K8S_CLIENT_REPLICA_GROUPS_H
#define GPUSCALE_K8S_CLIENT_REPLICA_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pod_list;

struct replica_groups {
	int32_t total;   // groups with at least one pod
	int32_t ready;   // all of whose pods exist and are ready
	int32_t pending; // groups that are not ready because a pod is missing or pending
};
// Counts the groups of a list (pod_info.member). A group has as many pods as the largest number that one of its pods
// states; where none states it, as many as the largest group of the list. Pods that are finished or being deleted are
// no part of a group. Returns false when no pod names a group, or when memory is exhausted.
bool replica_groups_count(const struct pod_list *pods, struct replica_groups *ret_groups);

// Returns how many different groups the n pods belong to; a pod without a group (0) is one of its own. Sorts `groups`.
size_t replica_groups_distinct(uint64_t *groups, size_t n);

#endif
