// SPDX-License-Identifier: Apache-2.0
// What the API server says about authenticator, tokens and rights, as any bytes: no reader finds a yes without an
// object that says so, and what it finds can be written again.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/server/access_review.h"
#include "k8s/server/k8s_user.h"
#include "k8s/server/request_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_token(const char *text, size_t len)
{
	struct k8s_user *user;
	struct err e = {0};
	int rc = token_review_read(text, len, &user, &e);
	assert((rc == 1) == (user != NULL));
	if (rc < 0)
		assert(e.kind != ERR_NONE && e.msg[0]);
	if (!user)
		return;
	assert(memmem(text, len, "true", 4) && k8s_user_name(user)[0]);
	assert(k8s_user_has_group(user, K8S_GROUP_AUTHENTICATED));
	const struct access_attributes t = {.verb = "get", .path = "/"};
	struct buf b;
	buf_init(&b, 1 << 20);
	subject_access_review_write(&b, user, &t);
	assert(!b.failed);
	buf_done(&b);
	k8s_user_unref(user);
}

static void read_access(const char *text, size_t len)
{
	char reason[ACCESS_REASON_BYTES];
	struct err e = {0};
	int rc = subject_access_review_read(text, len, reason, &e);
	assert(rc != 1 || memmem(text, len, "true", 4));
	for (const char *p = reason; *p; p++)
		assert((unsigned char)*p >= 0x20 && *p != 0x7F);
}

static void read_configmap(const char *text, size_t len)
{
	struct arena arena;
	struct request_header_config c;
	struct err e = {0};
	arena_init(&arena, REQUEST_HEADER_BYTES_MAX);
	if (request_header_read(text, len, &arena, &c, &e) == 0) {
		const struct request_header_list *lists[] = {&c.allowed_names, &c.name_headers, &c.uid_headers,
		                                             &c.group_headers, &c.extra_prefixes};
		for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
			for (size_t k = 0; k < lists[i]->n; k++)
				assert(lists[i]->items[k][0]);
	} else {
		assert(e.kind != ERR_NONE && e.msg[0]);
	}
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	read_token(text, size);
	read_access(text, size);
	read_configmap(text, size);
	return 0;
}
