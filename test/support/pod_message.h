// SPDX-License-Identifier: Apache-2.0
// Replies of the kubelet's pod-resources API, by a writer of protobuf as simple as can be.
#ifndef GPUSCALE_TEST_SUPPORT_POD_MESSAGE_H
#define GPUSCALE_TEST_SUPPORT_POD_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct pod_map;

#define POD_MESSAGE_BYTES_MAX (8 * 1024 * 1024)

// A pod whose container holds devices.
struct pod_message_holder {
	const char *namespace_, *pod, *container, *resource;
	const char *ids[4]; // up to the first NULL
};

void pod_message_put_field(struct buf *b, uint32_t number, const void *data, size_t len);
void pod_message_put_text(struct buf *b, uint32_t number, const char *text);
// Appends a pod to a ListPodResourcesResponse.
void pod_message_put_pod(struct buf *out, const struct pod_message_holder *h);
// The decoded reply with these pods; NULL and *e as pod_map_parse().
struct pod_map *pod_message_map(const struct pod_message_holder *holders, size_t n, struct err *e);

#endif
