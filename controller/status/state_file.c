// SPDX-License-Identifier: Apache-2.0
#include "controller/status/state_file.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define MAGIC       "gpuscale-state "
#define DIGEST_TEXT (2 * SHA256_DIGEST_LENGTH)

int state_file_name(char out[STATE_FILE_NAME_BYTES], const struct binding *binding, struct err *e)
{
	static const char temporary[] = ".tmp"; // suffix while the file is being written
	const struct policy *policy = binding->policy;
	int n = snprintf(out, STATE_FILE_NAME_BYTES, "%s_%s%s%s.state", policy->namespace_name, policy->name,
	                 binding->key ? "/" : "", binding->key ? binding->key : "");
	for (char *slash = out; (slash = strchr(slash, '/'));)
		*slash = '_'; // which no part contains
	if (n > 0 && (size_t)n + sizeof temporary <= STATE_FILE_NAME_BYTES)
		return 0;
	return err_set(e, ERR_LIMIT,
	               "expected namespace and name of a policy to have at most %d characters together, so that a "
	               "file can be named after them, got %d: use a shorter name",
	               (int)(STATE_FILE_NAME_BYTES - sizeof temporary - sizeof "_.state" + 1),
	               n - (int)(sizeof "_.state" - 1));
}

static void digest_of(char out[DIGEST_TEXT + 1], const char *text, size_t len)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)text, len, digest);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static void target_of(struct buf *out, const struct scale_target *t)
{
	buf_printf(out, "%s %s %s%s%s", t->api_version, t->kind, t->name, t->path ? " " : "", t->path ? t->path : "");
}

void state_file_seal(struct buf *out, const char *body, size_t len)
{
	char digest[DIGEST_TEXT + 1];
	digest_of(digest, body, len);
	buf_printf(out, MAGIC "%d %s\n", STATE_FILE_VERSION, digest);
	buf_put(out, body, len);
}

void state_file_write(struct buf *out, const struct binding *binding, const struct state_clock *clock,
                      const char *status)
{
	struct buf body, target;
	struct json_writer w;
	char offset[NUM_TEXT_BYTES];
	buf_init(&body, STATE_FILE_BYTES_MAX);
	buf_init(&target, STATE_FILE_BYTES_MAX);
	const struct policy *policy = binding->policy;
	target_of(&target, binding->target);
	snprintf(offset, sizeof offset, "%lld", (long long)clock->offset_ms);
	json_write_init(&w, &body, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "apiVersion", POLICY_API_VERSION);
	json_write_member_str(&w, "kind", POLICY_KIND);
	json_write_member_object(&w, "metadata");
	json_write_member_str(&w, "namespace", policy->namespace_name);
	json_write_member_str(&w, "name", policy->name);
	json_write_member_i64(&w, "generation", 0); // a file has no generation
	json_write_object_end(&w);
	json_write_member_str(&w, "target", buf_str(&target));
	json_write_member_str(&w, "bootId", clock->boot_id);
	json_write_member_str(&w, "clockOffsetMs", offset); // as text, because JSON numbers are exact only up to 2^53
	json_write_object_end(&w);
	// Merges the two objects into one.
	if (body.len > 0)
		body.data[--body.len] = '\0';
	buf_printf(&body, ",%s\n", status + 1);
	state_file_seal(out, buf_str(&body), body.len);
	out->failed = out->failed || body.failed || target.failed;
	buf_done(&target);
	buf_done(&body);
}

// ---- reading ----

static int damaged(struct err *e, const char *what)
{
	return err_set(e, ERR_PROTOCOL, "%s: it was cut short or damaged", what);
}

// The first line identifies the format; the checksum verifies the rest.
int state_file_unseal(const char *text, size_t len, size_t *ret_body, struct err *e)
{
	const char *end = memchr(text, '\n', len);
	size_t magic = sizeof MAGIC - 1, line = end ? (size_t)(end - text) : 0;
	char expected[DIGEST_TEXT + 1];
	int64_t version;
	if (!end || line <= magic || memcmp(text, MAGIC, magic) != 0)
		return damaged(e, "expected a first line \"" MAGIC "VERSION CHECKSUM\"");
	const char *blank = memchr(text + magic, ' ', line - magic);
	if (!blank || num_parse_i64(text + magic, (size_t)(blank - text) - magic, 0, INT32_MAX, &version, e) < 0)
		return damaged(e, "expected a version number in the first line");
	if (version != STATE_FILE_VERSION)
		return err_set(e, ERR_UNSUPPORTED, "expected format version %d, found %d: another release wrote it",
		               STATE_FILE_VERSION, (int)version);
	digest_of(expected, end + 1, len - line - 1);
	if ((size_t)(end - blank - 1) != DIGEST_TEXT || memcmp(blank + 1, expected, DIGEST_TEXT) != 0)
		return damaged(e, "the checksum does not match the content");
	*ret_body = line + 1;
	return 0;
}

static int check_owner(const cJSON *root, const struct binding *binding, struct err *e)
{
	const struct policy *p = binding->policy;
	const cJSON *metadata = json_get(root, "metadata");
	const char *namespace_name = json_get_str(metadata, "namespace", ""),
	           *name = json_get_str(metadata, "name", "");
	if (strcmp(namespace_name, p->namespace_name) != 0 || strcmp(name, p->name) != 0)
		return err_set(e, ERR_CONFLICT,
		               "expected the memory of policy %.63s/%.253s, found that of %.63s/%.253s",
		               p->namespace_name, p->name, namespace_name, name);
	struct buf target;
	buf_init(&target, STATE_FILE_BYTES_MAX);
	target_of(&target, binding->target);
	const char *found = json_get_str(root, "target", "");
	int rc = 0;
	if (strcmp(found, buf_str(&target)) != 0)
		rc = err_set(e, ERR_CONFLICT, "expected the memory of target %.200s, found that of %.200s",
		             buf_str(&target), found);
	buf_done(&target);
	return rc;
}

static int read_body(const cJSON *root, const struct binding *binding, struct state_clock *ret_clock, struct err *e)
{
	if (!cJSON_IsObject(root) || !cJSON_IsObject(json_get(root, "status")))
		return damaged(e, "expected an object with a status");
	if (check_owner(root, binding, e) < 0)
		return -1;
	const char *offset = json_get_str(root, "clockOffsetMs", ""), *boot_id = json_get_str(root, "bootId", "");
	*ret_clock = (struct state_clock){0};
	// Without both fields, the times are used unchanged.
	if (num_parse_i64(offset, strlen(offset), INT64_MIN / 4, INT64_MAX / 4, &ret_clock->offset_ms, NULL) == 0 &&
	    strlen(boot_id) < STATE_BOOT_ID_BYTES)
		snprintf(ret_clock->boot_id, sizeof ret_clock->boot_id, "%s", boot_id);
	return 0;
}

int state_file_read(const char *text, size_t len, const struct binding *binding, struct state_file *ret_file,
                    struct err *e)
{
	size_t body = 0;
	if (len > STATE_FILE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "expected at most %d bytes, found %zu", STATE_FILE_BYTES_MAX, len);
	if (state_file_unseal(text, len, &body, e) < 0)
		return -1;
	cJSON *root = json_read(text + body, len - body, e);
	if (!root)
		return -1;
	int rc = read_body(root, binding, &ret_file->clock, e);
	cJSON_Delete(root);
	ret_file->json = text + body;
	ret_file->json_len = len - body;
	return rc;
}
