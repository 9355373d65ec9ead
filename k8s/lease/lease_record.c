// SPDX-License-Identifier: Apache-2.0
#include "k8s/lease/lease_record.h"

#include "base/base.h"
#include "base/json/json_read.h"

#define SHARDS_TEXT_MAX 100000

static int decode_item(const cJSON *o, struct lease_record *r, struct err *e)
{
	*r = (struct lease_record){0};
	const cJSON *metadata = json_get(o, "metadata"), *spec = json_get(o, "spec");
	int64_t seconds = 0;
	if (!json_may_be(spec, cJSON_IsObject)) // must not be mistaken for a free lease
		return err_set(e, ERR_PROTOCOL, "spec is not a map");
	if (json_get_text(metadata, "name", r->name, sizeof r->name, e) < 0 ||
	    json_get_text(metadata, "resourceVersion", r->version, sizeof r->version, e) < 0)
		return err_wrap(e, "metadata");
	if (!r->name[0] || !r->version[0])
		return err_set(e, ERR_PROTOCOL, "metadata.name or metadata.resourceVersion is missing");
	if (json_get_text(spec, "holderIdentity", r->holder, sizeof r->holder, e) < 0 ||
	    json_get_text(spec, "renewTime", r->renew_stamp, sizeof r->renew_stamp, e) < 0 ||
	    json_get_i64(spec, "leaseDurationSeconds", 0, INT32_MAX, &seconds, e) < 0 ||
	    json_get_i64(spec, "leaseTransitions", 0, INT32_MAX, &r->transitions, e) < 0)
		return err_wrap(e, "lease %.80s: spec", r->name);
	r->duration_ms = seconds * 1000;
	const char *shards = json_get_str(json_get(metadata, "annotations"), LEASE_ANNOTATION_SHARDS, "");
	int64_t n = 0;
	if (shards[0] && num_parse_i64(shards, strlen(shards), 1, SHARDS_TEXT_MAX, &n, NULL) == 0)
		r->n_shards = (int32_t)n;
	r->is_member = strcmp(json_get_str(json_get(metadata, "labels"), LEASE_LABEL_ROLE, ""), "member") == 0;
	return 0;
}

int lease_record_decode(const char *text, size_t len, struct lease_record *ret_record, struct err *e)
{
	cJSON *root = json_read(text, len, e);
	int rc = -1;
	if (root && strcmp(json_get_str(root, "kind", ""), "Lease") != 0)
		err_set(e, ERR_PROTOCOL, "expected a Lease, got kind \"%.60s\"", json_get_str(root, "kind", ""));
	else if (root)
		rc = decode_item(root, ret_record, e);
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "reply to a request for a lease") : 0;
}

int lease_item_decode(const char *text, size_t len, struct lease_record *ret_record, struct err *e)
{
	cJSON *root = json_read(text, len, e);
	int rc = root ? decode_item(root, ret_record, e) : -1;
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "a lease") : 0;
}

static int decode_list(const cJSON *root, lease_record_fn *fn, void *arg, struct err *e)
{
	if (strcmp(json_get_str(root, "kind", ""), "LeaseList") != 0)
		return err_set(e, ERR_PROTOCOL, "expected a LeaseList, got kind \"%.60s\"",
		               json_get_str(root, "kind", ""));
	const cJSON *metadata = json_get(root, "metadata"), *items = json_get(root, "items"), *item;
	const cJSON *more = json_get(metadata, "continue");
	if (!cJSON_IsNull(items) && !cJSON_IsArray(items))
		return err_set(e, ERR_PROTOCOL, "items is not a list");
	if (!cJSON_IsObject(metadata) || !json_may_be(more, cJSON_IsString))
		return err_set(e, ERR_PROTOCOL, "metadata does not say whether the list is complete");
	// An incomplete list must not be mistaken for all leases.
	if (cJSON_GetArraySize(items) > LEASES_MAX || (cJSON_IsString(more) && more->valuestring[0]))
		return err_set(e, ERR_LIMIT, "more than %d leases with one group label", LEASES_MAX);
	cJSON_ArrayForEach(item, items)
	{
		struct lease_record record;
		if (decode_item(item, &record, e) < 0)
			return -1;
		fn(arg, &record);
	}
	return 0;
}

int lease_list_decode(const char *text, size_t len, lease_record_fn *fn, void *arg, struct err *e)
{
	cJSON *root = json_read(text, len, e);
	int rc = root ? decode_list(root, fn, arg, e) : -1;
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "list of leases") : 0;
}

// ---- writing ----

void lease_stamp(char out[LEASE_STAMP_BYTES], int64_t wall_ms, unsigned micros)
{
	char text[NUM_TEXT_BYTES];
	int64_t at_ms = wall_ms > 0 ? wall_ms : 0;
	num_format_rfc3339_ms(text, at_ms - at_ms % 1000);
	snprintf(out, LEASE_STAMP_BYTES, "%.19s.%03u%03uZ", text, (unsigned)(at_ms % 1000), micros % 1000);
}

// Sets a member, replacing its value. Returns false when memory is exhausted.
static bool put(cJSON *o, const char *key, cJSON *value)
{
	if (!o || !value) {
		cJSON_Delete(value);
		return false;
	}
	while (cJSON_GetObjectItemCaseSensitive(o, key))
		cJSON_DeleteItemFromObjectCaseSensitive(o, key); // the object may contain the key several times
	return cJSON_AddItemToObject(o, key, value);
}

// Returns the object under the key, which is created when it is missing or not an object; NULL when memory is
// exhausted.
static cJSON *child(cJSON *o, const char *key)
{
	cJSON *c = cJSON_GetObjectItemCaseSensitive(o, key);
	if (cJSON_IsObject(c))
		return c;
	c = cJSON_CreateObject();
	return put(o, key, c) ? c : NULL;
}

static bool fill(cJSON *root, const struct lease_write *w, bool is_new)
{
	cJSON *metadata = child(root, "metadata"), *spec = child(root, "spec");
	bool ok = metadata && spec;
	if (ok && is_new)
		ok = put(root, "apiVersion", cJSON_CreateString("coordination.k8s.io/v1")) &&
		     put(root, "kind", cJSON_CreateString("Lease")) &&
		     put(metadata, "name", cJSON_CreateString(w->name)) &&
		     put(metadata, "namespace", cJSON_CreateString(w->namespace_name));
	cJSON_DeleteItemFromObjectCaseSensitive(metadata, "managedFields"); // the server maintains them
	if (ok && w->group)
		ok = put(child(metadata, "labels"), LEASE_LABEL_GROUP, cJSON_CreateString(w->group)) &&
		     put(child(metadata, "labels"), LEASE_LABEL_ROLE, cJSON_CreateString(w->role));
	if (ok && w->n_shards > 0) {
		char text[NUM_TEXT_BYTES];
		snprintf(text, sizeof text, "%d", w->n_shards);
		ok = put(child(metadata, "annotations"), LEASE_ANNOTATION_SHARDS, cJSON_CreateString(text));
	}
	double seconds = (double)((w->duration_ms + 999) / 1000);
	ok = ok && put(spec, "holderIdentity", cJSON_CreateString(w->holder)) &&
	     put(spec, "leaseDurationSeconds", cJSON_CreateNumber(seconds)) &&
	     put(spec, "renewTime", cJSON_CreateString(w->stamp));
	if (ok && w->is_takeover) {
		const cJSON *before = cJSON_GetObjectItemCaseSensitive(spec, "leaseTransitions");
		double transitions = is_new ? 0 : (cJSON_IsNumber(before) ? before->valuedouble : 0) + 1;
		// The API stores 32 bits, and would refuse a larger number every time.
		transitions = transitions < 0 ? 0 : transitions < INT32_MAX ? transitions : INT32_MAX;
		ok = put(spec, "acquireTime", cJSON_CreateString(w->stamp)) &&
		     put(spec, "leaseTransitions", cJSON_CreateNumber(transitions));
	}
	return ok;
}

int lease_write_encode(struct buf *out, const struct lease_write *w, const char *object, size_t len, struct err *e)
{
	cJSON *root = object ? json_read(object, len, e) : cJSON_CreateObject();
	if (object && !root)
		return err_wrap(e, "lease %s", w->name);
	char *text = root && fill(root, w, !object) ? cJSON_PrintUnformatted(root) : NULL;
	cJSON_Delete(root);
	int rc = text ? buf_puts(out, text) : err_no_memory(e);
	if (text && rc < 0)
		err_set(e, ERR_LIMIT, "lease %s would exceed %zu bytes", w->name, out->max);
	free(text);
	return rc;
}
