// SPDX-License-Identifier: Apache-2.0
#include "test/support/pod_message.h"

#include <string.h>

#include "base/buf.h"
#include "exporter/kubelet/pod_resources.h"

static void put_varint(struct buf *b, uint64_t n)
{
	for (; n > 127; n >>= 7)
		buf_putc(b, (char)(n | 128));
	buf_putc(b, (char)n);
}

void pod_message_put_field(struct buf *b, uint32_t number, const void *data, size_t len)
{
	put_varint(b, (uint64_t)number << 3 | 2);
	put_varint(b, len);
	buf_put(b, data, len);
}

void pod_message_put_text(struct buf *b, uint32_t number, const char *text)
{
	pod_message_put_field(b, number, text, strlen(text));
}

void pod_message_put_pod(struct buf *out, const struct pod_message_holder *h)
{
	struct buf devices, container, pod;
	buf_init(&devices, POD_MESSAGE_BYTES_MAX);
	buf_init(&container, POD_MESSAGE_BYTES_MAX);
	buf_init(&pod, POD_MESSAGE_BYTES_MAX);
	for (size_t i = 0; i < 4 && h->ids[i]; i++)
		pod_message_put_text(&devices, 2, h->ids[i]);
	pod_message_put_text(&devices, 1, h->resource); // after its ids: the order of fields means nothing
	pod_message_put_field(&devices, 3, "\x0a\x02\x08\x01", 4);
	pod_message_put_text(&container, 1, h->container);
	pod_message_put_field(&container, 2, devices.data, devices.len);
	buf_put(&container, "\x18\x07\x1a\x02\x08\x09\x25zzzz\x29zzzzzzzz", 20); // cpu ids and kinds to come
	pod_message_put_field(&pod, 3, container.data, container.len);
	pod_message_put_text(&pod, 1, h->pod);
	pod_message_put_text(&pod, 2, h->namespace_);
	pod_message_put_field(out, 1, pod.data, pod.len);
	buf_done(&devices);
	buf_done(&container);
	buf_done(&pod);
}

struct pod_map *pod_message_map(const struct pod_message_holder *holders, size_t n, struct err *e)
{
	struct buf message;
	buf_init(&message, POD_MESSAGE_BYTES_MAX);
	for (size_t i = 0; i < n; i++)
		pod_message_put_pod(&message, &holders[i]);
	struct pod_map *m = pod_map_parse(buf_str(&message), message.len, NULL, e);
	buf_done(&message);
	return m;
}
