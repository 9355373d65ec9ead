// SPDX-License-Identifier: Apache-2.0
// What is reported about a request: the class of its path for metrics, and the error of a failed reply.

#include "base/base.h"
#include "base/json/json_read.h"
#include "k8s/client/k8s_client.h"

void k8s_path_class(const char *path, char out[K8S_RESOURCE_CLASS_BYTES])
{
	// Segments: [apis, GROUP | api], VERSION, [namespaces, NS], PLURAL, [NAME], [SUBRESOURCE].
	const char *segment[8];
	size_t len[8], n = 0;
	const char *end = path + strcspn(path, "?");
	for (const char *p = path; p < end && *p == '/' && n < 8; n++) {
		segment[n] = ++p;
		len[n] = strcspn(p, "/?");
		p += len[n];
	}
	size_t i = n > 0 && len[0] == 4 && memcmp(segment[0], "apis", 4) == 0 ? 3 : 2;
	bool is_api = i == 3 || (n > 0 && len[0] == 3 && memcmp(segment[0], "api", 3) == 0);
	const char *fixed = !is_api ? "other" : n <= i ? "discovery" : NULL;
	if (fixed) {
		memcpy(out, fixed, strlen(fixed) + 1);
		return;
	}
	if (n > i + 2 && len[i] == 10 && memcmp(segment[i], "namespaces", 10) == 0)
		i += 2;
	struct buf text;
	buf_init(&text, K8S_RESOURCE_CLASS_BYTES - 1);
	buf_put(&text, segment[i], len[i]);
	if (n > i + 2) {
		buf_putc(&text, '/');
		buf_put(&text, segment[i + 2], len[i + 2]);
	}
	memcpy(out, text.failed ? "other" : buf_str(&text), text.failed ? 6 : text.len + 1);
	buf_done(&text);
}

#define STATUS_TEXT_BYTES_MAX    300
#define STATUS_RETRY_AFTER_S_MAX 3600

// Copies text and replaces control characters by spaces, so that a peer cannot add lines to the log.
static void copy_clean(char *out, size_t size, const char *text, size_t len)
{
	size_t n = len < size - 1 ? len : size - 1;
	bool cut = n < len;
	while (cut && n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) // do not cut inside a UTF-8 sequence
		n--;
	for (size_t i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)text[i];
		out[i] = ch < 0x20 || ch == 0x7F ? ' ' : text[i];
	}
	while (n > 0 && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
}

void k8s_status_to_err(int http_status, const char *body, size_t len, struct err *e)
{
	char text[STATUS_TEXT_BYTES_MAX] = "";
	int64_t retry_after_s = 0;
	cJSON *root = len ? json_read(body, len, NULL) : NULL;
	if (root && strcmp(json_get_str(root, "kind", ""), "Status") == 0) {
		const char *message = json_get_str(root, "message", "");
		const char *reason = json_get_str(root, "reason", "");
		const char *best = message[0] ? message : reason;
		copy_clean(text, sizeof text, best, strlen(best));
		// An invalid value is treated as absent.
		if (json_get_i64(json_get(root, "details"), "retryAfterSeconds", 0, STATUS_RETRY_AFTER_S_MAX,
		                 &retry_after_s, NULL) != 1)
			retry_after_s = 0;
	} else if (!root && len) {
		const char *line_end = memchr(body, '\n', len);
		copy_clean(text, sizeof text, body, line_end ? (size_t)(line_end - body) : len);
	}
	cJSON_Delete(root);
	enum err_kind kind = err_kind_of_http_status(http_status);
	if (text[0])
		err_set_code(e, kind, http_status, "%s (HTTP %d)", text, http_status);
	else
		err_set_code(e, kind, http_status, "the API server answered HTTP %d without saying why", http_status);
	if (e)
		e->retry_after_ms = retry_after_s * 1000;
}
