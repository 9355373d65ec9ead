// SPDX-License-Identifier: Apache-2.0
// Discovery documents of the metrics APIs behind the aggregation layer. Kubernetes: meta/v1 APIGroupList, APIGroup,
// APIResourceList.
#ifndef GPUSCALE_K8S_SERVER_METRICS_API_H
#define GPUSCALE_K8S_SERVER_METRICS_API_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct metrics_api {
	const char *group, *version, *list_kind; // the kind of its responses
};

// Append an APIGroupList and an APIGroup.
void metrics_api_write_groups(struct buf *out, const struct metrics_api *const *apis, size_t n);
void metrics_api_write_group(struct buf *out, const struct metrics_api *api);
// Appends an APIResourceList with a resource for each of the names, behind each of the prefixes ("" or "RESOURCE/").
void metrics_api_write_resources(struct buf *out, const struct metrics_api *api, const char *const *prefixes,
                                 size_t n_prefixes, const char *const *names, size_t n);

// Copies the segment of a path at *at, up to the next '/' or the end, to out, and moves *at behind it. Returns false
// when the segment is empty or has more than max bytes.
bool metrics_api_take_segment(const char **at, char *out, size_t max);
// Whether the rest of a path is its end, with or without a last '/'.
bool metrics_api_is_end(const char *rest);

#endif
