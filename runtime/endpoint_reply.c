// SPDX-License-Identifier: Apache-2.0
#include "runtime/endpoint_reply.h"

#include "base/base.h"
#include "base/http/http_server.h"

bool endpoint_is_read(struct http_exchange *x)
{
	const char *m = http_exchange_method(x);
	if (strcmp(m, "GET") == 0 || strcmp(m, "HEAD") == 0)
		return true;
	http_exchange_set_header(x, "Allow", "GET, HEAD");
	http_exchange_reply_text(x, 405, "method not allowed\n");
	return false;
}

static void free_sent(const void *text, size_t len, void *data)
{
	(void)text, (void)len;
	free(data);
}

// Lends the text, as a copy would double the memory of a page: one about 20,000 policies has 11 MiB.
void endpoint_reply(struct http_exchange *x, int status, const char *type, struct buf *body)
{
	if (body->failed) {
		http_exchange_reply_text(x, 500, "the reply is larger than its ceiling\n");
		buf_done(body);
		return;
	}
	struct buf sent = *body;
	buf_init(body, sent.max);
	http_exchange_reply_lent(x, status, type, buf_str(&sent), sent.len, free_sent, sent.data);
}
