// SPDX-License-Identifier: Apache-2.0
// Reads and patches the number of replicas at a path of an object.
#include "base/base.h"
#include "k8s/client/scale.h"

#include "base/json/json_path.h"
#include "base/json/json_write.h"

static const struct workload_kind *kind_of(const struct scale_ref *ref)
{
	return workload_kind_find(ref->api_version, ref->kind, ref->path);
}

static int read_version(struct json_span object, char version[SCALE_RESOURCE_VERSION_BYTES_MAX], struct err *e)
{
	static const char *const path[] = {"metadata", "resourceVersion", NULL};
	if (json_span_text(json_span_path(object, path), version, SCALE_RESOURCE_VERSION_BYTES_MAX) <= 0 ||
	    strpbrk(version, "\"\\"))
		return err_set(e, ERR_PROTOCOL, "metadata.resourceVersion is missing or invalid");
	return 0;
}

// Reads a number of replicas that the status reports; -1: none.
static int32_t read_status(const struct scale_ref *ref, struct json_span object, const char *pattern)
{
	const struct workload_kind *k = kind_of(ref);
	char path[JSON_PATH_BYTES_MAX + 1];
	struct json_span value;
	int64_t n;
	if (!workload_kind_fill(k, pattern, ref->path, ref->name, path, sizeof path))
		return -1;
	// The status of an object with several groups is not that of one of them.
	if (!k->group && ref->path && strchr(ref->path, '['))
		return -1;
	bool has = json_path_find(json_span_get(object, "status"), path, &value, NULL, NULL) == 0;
	return has && json_span_i64(value, 0, INT32_MAX, &n) ? (int32_t)n : -1;
}

// Without a selector, the pods are not known.
static void read_selector(const struct scale_ref *ref, struct json_span object, struct scale *s)
{
	static const char *const reported[] = {"status", "selector", NULL};
	const struct workload_kind *k = kind_of(ref);
	bool is_one_of_several = !k->group && strchr(ref->path, '[');
	if (workload_kind_fill(k, k->selector, ref->path, ref->name, s->selector, sizeof s->selector))
		return;
	s->selector[0] = '\0';
	if (!k->selector && !is_one_of_several)
		json_span_text(json_span_path(object, reported), s->selector, sizeof s->selector);
}

int scale_path_read(const struct scale_ref *ref, struct json_span object, struct scale *ret_scale, struct err *e)
{
	const struct workload_kind *k = kind_of(ref);
	struct json_span value;
	int64_t n = k->absent;
	*ret_scale = (struct scale){0};
	if (read_version(object, ret_scale->resource_version, e) < 0 ||
	    json_path_find(object, ref->path, &value, NULL, e) < 0)
		return -1;
	ret_scale->status_replicas = read_status(ref, object, k->existing);
	bool is_absent = !value.text || json_span_kind(value) == 'n';
	if (!is_absent && !json_span_i64(value, 0, INT32_MAX, &n))
		return err_set(e, ERR_INPUT, "%s: expected a number of replicas, got %.*s", ref->path,
		               value.len < 40 ? (int)value.len : 40, value.text);
	if (is_absent && n == WORKLOAD_ABSENT_ERROR)
		return err_set(e, ERR_INPUT, "%s: the object has no number of replicas there", ref->path);
	if (n == WORKLOAD_ABSENT_EXISTING)
		n = ret_scale->status_replicas > 0 ? ret_scale->status_replicas : 0;
	ret_scale->spec_replicas = (int32_t)n;
	read_selector(ref, object, ret_scale);
	return 0;
}

int32_t scale_path_ready(const struct scale_ref *ref, struct json_span object, bool *ret_is_stale)
{
	static const char *const path[] = {"metadata", "generation", NULL};
	int64_t generation = 0, observed = 0;
	*ret_is_stale = json_span_i64(json_span_get(json_span_get(object, "status"), "observedGeneration"), 0,
	                              INT64_MAX, &observed) &&
	                json_span_i64(json_span_path(object, path), 0, INT64_MAX, &generation) && observed < generation;
	return read_status(ref, object, kind_of(ref)->ready);
}

// Returns whether the row's other number is to be set, too, and changes `pointer` to it.
static bool find_also(const struct workload_kind *k, const struct scale_ref *ref, struct json_span object,
                      struct buf *pointer)
{
	char parent[JSON_PATH_BYTES_MAX + 1], member[JSON_PATH_NAME_MAX + 1];
	const char *last = strrchr(ref->path, '.'), *slash = strrchr(buf_str(pointer), '/');
	struct json_span map, now;
	int64_t a = k->absent, b;
	if (!k->also || !last)
		return false;
	snprintf(parent, sizeof parent, "%.*s", (int)(last - ref->path), ref->path);
	if (json_path_find(object, parent, &map, NULL, NULL) < 0)
		return false;
	now = json_span_get(map, last + 1);
	pointer->len = (size_t)(slash - buf_str(pointer)) + 1;
	buf_puts(pointer, k->also);
	if (!k->also_if)
		return true;
	snprintf(member, sizeof member, "%.*s", (int)strcspn(k->also_if, "="), k->also_if);
	if (now.text && !json_span_i64(now, 0, INT32_MAX, &a))
		return false;
	return json_span_is(json_span_get(map, member), strchr(k->also_if, '=') + 1) &&
	       json_span_i64(json_span_get(map, k->also), 0, INT32_MAX, &b) && a == b;
}

int scale_path_write_patch(const struct scale_ref *ref, struct json_span object, const char *resource_version,
                           int32_t replicas, struct buf *body, struct err *e)
{
	char version[SCALE_RESOURCE_VERSION_BYTES_MAX];
	struct buf pointer;
	struct json_span value;
	struct json_writer w;
	if (read_version(object, version, e) < 0)
		return -1;
	if (strcmp(version, resource_version) != 0)
		return err_set_code(e, ERR_CONFLICT, 409, "the object has been changed since it was read");
	buf_init(&pointer, 2 * JSON_PATH_BYTES_MAX);
	int rc = json_path_find(object, ref->path, &value, &pointer, e);
	if (rc == 0) {
		json_write_init(&w, body, 0);
		json_write_array_begin(&w);
		json_write_format(&w, "{op:%s,path:%s,value:%s}", "replace", "/metadata/resourceVersion",
		                  resource_version);
		json_write_format(&w, "{op:%s,path:%s,value:%d}", "add", buf_str(&pointer), replicas);
		if ((replicas > 0 || !kind_of(ref)->also_if) && find_also(kind_of(ref), ref, object, &pointer))
			json_write_format(&w, "{op:%s,path:%s,value:%d}", "add", buf_str(&pointer),
			                  replicas > 1 ? replicas : 1);
		json_write_array_end(&w);
	}
	if (rc == 0 && (pointer.failed || body->failed))
		rc = err_set(e, ERR_LIMIT, "the patch of %s is too long", ref->path);
	buf_done(&pointer);
	return rc;
}
