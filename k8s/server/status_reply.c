// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/status_reply.h"

#include <stddef.h>

#include "base/json/json_write.h"

static const char *reason_of(int http_status)
{
	static const struct {
		int status;
		const char *reason;
	} rows[] = {
	        {400, "BadRequest"},
	        {401, "Unauthorized"},
	        {403, "Forbidden"},
	        {404, "NotFound"},
	        {405, "MethodNotAllowed"},
	        {409, "Conflict"},
	        {410, "Expired"},
	        {422, "Invalid"},
	        {429, "TooManyRequests"},
	        {500, "InternalError"},
	        {503, "ServiceUnavailable"},
	        {504, "Timeout"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].status == http_status)
			return rows[i].reason;
	return "";
}

void k8s_status_write(struct buf *out, int http_status, const char *message)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "kind");
	json_write_str(&w, "Status");
	json_write_key(&w, "apiVersion");
	json_write_str(&w, "v1");
	json_write_key(&w, "metadata");
	json_write_object_begin(&w);
	json_write_object_end(&w);
	json_write_key(&w, "status");
	json_write_str(&w, "Failure");
	json_write_key(&w, "message");
	json_write_str(&w, message);
	json_write_key(&w, "reason");
	json_write_str(&w, reason_of(http_status));
	json_write_key(&w, "code");
	json_write_i64(&w, http_status);
	json_write_object_end(&w);
}
