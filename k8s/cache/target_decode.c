// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/target_decode.h"

#include "base/base.h"
#include "k8s/client/label_selector.h"

bool object_decode_name(const char *json, size_t len, char namespace_name[TARGET_NAME_BYTES],
                        char name[TARGET_NAME_BYTES])
{
	// The API server writes both early; managedFields follows them and may be long.
	static const char *const names[] = {"name", "namespace"};
	struct json_span found[2];
	json_span_members(json_span_get((struct json_span){json, len}, "metadata"), names, found, 2);
	json_span_text(found[1], namespace_name, TARGET_NAME_BYTES);
	return json_span_text(found[0], name, TARGET_NAME_BYTES) > 0;
}

uint64_t k8s_version_number(const char *text)
{
	uint64_t n = 0;
	for (; *text >= '0' && *text <= '9' && n < UINT64_MAX / 10 - 1; text++)
		n = 10 * n + (uint64_t)(*text - '0');
	return *text ? 0 : n;
}

int object_list_find(const char *json, size_t len, const char *name, struct json_span *ret_object)
{
	static const char *const more[] = {"metadata", "continue", NULL};
	char namespace_name[TARGET_NAME_BYTES], found[TARGET_NAME_BYTES];
	struct json_span list = {json, len}, items = json_span_get(list, "items"), next = json_span_path(list, more);
	struct json_span_iter it = {.rest = items};
	*ret_object = (struct json_span){0};
	if (!json_span_is_whole(list) || (next.text && !json_span_is(next, "") && json_span_kind(next) != 'n') ||
	    (json_span_kind(items) != '[' && json_span_kind(items) != 'n'))
		return -1;
	if (!json_span_next(&it))
		return 0;
	*ret_object = it.value;
	bool is_it = object_decode_name(it.value.text, it.value.len, namespace_name, found) && strcmp(found, name) == 0;
	return is_it && !json_span_next(&it) ? 1 : -1;
}

// Returns whether the value is absent, null, or of the kind.
static bool may_be(struct json_span value, char kind)
{
	char is = json_span_kind(value);
	return is == kind || is == 'n' || is == '\0';
}

// ---- selectors ----

#define KEY_BYTES   320
#define VALUE_BYTES 64

struct rendered {
	const char *text; // in the buffer
	size_t key_len;
};

static int by_key(const void *a, const void *b)
{
	const struct rendered *x = a, *y = b;
	size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
	size_t skip_x = x->text[0] == '!', skip_y = y->text[0] == '!';
	int order = memcmp(x->text + skip_x, y->text + skip_y, n);
	return order ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int put_values(struct buf *out, struct json_span values, struct err *e)
{
	char texts[LABEL_SELECTOR_REQUIREMENTS_MAX][VALUE_BYTES];
	size_t n = 0;
	struct json_span_iter it = {.rest = values};
	if (json_span_kind(values) != '[')
		return err_set(e, ERR_PROTOCOL, "the values of a selector are not a list");
	for (; json_span_next(&it); n++) {
		if (n == LABEL_SELECTOR_REQUIREMENTS_MAX)
			return err_set(e, ERR_LIMIT, "a selector lists more than %d values",
			               LABEL_SELECTOR_REQUIREMENTS_MAX);
		if (json_span_text(it.value, texts[n], VALUE_BYTES) < 0 || !label_value_is_valid(texts[n]))
			return err_set(e, ERR_PROTOCOL, "a value of a selector is not a valid label value");
	}
	if (n == 0) // "in ()" would mean the empty value
		return err_set(e, ERR_PROTOCOL, "a selector lists no values");
	qsort(texts, n, VALUE_BYTES, by_text);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s", i ? "," : "", texts[i]);
	return 0;
}

// Renders one element of matchExpressions. *ret_key_len is as in struct rendered.
static int put_expression(struct buf *out, struct json_span expression, size_t *ret_key_len, struct err *e)
{
	struct json_span op = json_span_get(expression, "operator");
	char key[KEY_BYTES];
	int len = json_span_text(json_span_get(expression, "key"), key, sizeof key);
	if (len <= 0 || !label_key_is_valid(key))
		return err_set(e, ERR_PROTOCOL, "an expression of a selector has no key");
	*ret_key_len = (size_t)len;
	if (json_span_is(op, "Exists") || json_span_is(op, "DoesNotExist")) {
		buf_printf(out, "%s%s", json_span_is(op, "Exists") ? "" : "!", key);
		return 0;
	}
	if (!json_span_is(op, "In") && !json_span_is(op, "NotIn"))
		return err_set(e, ERR_PROTOCOL, "an expression of a selector has an unknown operator");
	buf_printf(out, "%s %s (", key, json_span_is(op, "In") ? "in" : "notin");
	if (put_values(out, json_span_get(expression, "values"), e) < 0)
		return -1;
	return buf_putc(out, ')');
}

struct rendering {
	struct buf pieces; // each with its NUL; does not move
	struct rendered list[LABEL_SELECTOR_REQUIREMENTS_MAX];
	size_t n;
};

static int begin_piece(struct rendering *r, struct err *e)
{
	if (r->n == LABEL_SELECTOR_REQUIREMENTS_MAX)
		return err_set(e, ERR_LIMIT, "a selector has more than %d requirements",
		               LABEL_SELECTOR_REQUIREMENTS_MAX);
	r->list[r->n].text = r->pieces.data + r->pieces.len;
	return 0;
}

static int render_pieces(struct rendering *r, struct json_span selector, struct err *e)
{
	struct json_span pairs = json_span_get(selector, "matchLabels"),
	                 expressions = json_span_get(selector, "matchExpressions");
	struct json_span_iter it = {.rest = pairs};
	// A requirement that is left out would make the selector match more pods.
	if (!may_be(selector, '{') || !may_be(pairs, '{') || !may_be(expressions, '['))
		return err_set(e, ERR_PROTOCOL, "expected a label selector");
	while (json_span_next(&it)) {
		char key[KEY_BYTES], value[VALUE_BYTES];
		int len = json_span_text(it.key, key, sizeof key);
		if (begin_piece(r, e) < 0)
			return -1;
		if (len <= 0 || json_span_text(it.value, value, sizeof value) < 0 || !label_key_is_valid(key) ||
		    !label_value_is_valid(value))
			return err_set(e, ERR_PROTOCOL, "a label of a selector is invalid");
		r->list[r->n++].key_len = (size_t)len;
		buf_printf(&r->pieces, "%s=%s", key, value);
		buf_putc(&r->pieces, '\0');
	}
	it = (struct json_span_iter){.rest = expressions};
	while (json_span_next(&it)) {
		if (begin_piece(r, e) < 0 || put_expression(&r->pieces, it.value, &r->list[r->n].key_len, e) < 0)
			return -1;
		r->n++;
		buf_putc(&r->pieces, '\0');
	}
	if (r->pieces.failed)
		return err_set(e, ERR_LIMIT, "a selector exceeds %d bytes", SCALE_SELECTOR_BYTES_MAX);
	return 0;
}

int label_selector_render(struct json_span selector, char *out, size_t size, struct err *e)
{
	struct rendering r = {.n = 0};
	buf_init(&r.pieces, SCALE_SELECTOR_BYTES_MAX);
	out[0] = '\0';
	int rc = buf_reserve(&r.pieces, SCALE_SELECTOR_BYTES_MAX) < 0 ? err_no_memory(e)
	                                                              : render_pieces(&r, selector, e);
	size_t at = 0;
	if (rc == 0)
		qsort(r.list, r.n, sizeof r.list[0], by_key);
	for (size_t i = 0; rc == 0 && i < r.n; i++) {
		size_t len = strlen(r.list[i].text);
		if (at + len + 2 > size) {
			rc = err_set(e, ERR_LIMIT, "a selector exceeds %zu bytes", size);
			break;
		}
		if (i)
			out[at++] = ',';
		memcpy(out + at, r.list[i].text, len + 1);
		at += len;
	}
	buf_done(&r.pieces);
	return rc;
}

// ---- the object ----

static int decode_metadata(struct json_span metadata, struct target_fields *f, struct err *e)
{
	static const char *const names[] = {"resourceVersion", "uid", "generation"};
	struct json_span found[3];
	json_span_members(metadata, names, found, 3);
	json_span_text(found[0], f->resource_version, sizeof f->resource_version);
	if (found[1].text && json_span_text(found[1], f->uid, sizeof f->uid) < 0)
		return err_set(e, ERR_PROTOCOL, "metadata.uid is invalid");
	if (found[2].text && !json_span_i64(found[2], 0, INT64_MAX, &f->generation))
		return err_set(e, ERR_PROTOCOL, "metadata.generation: expected a whole number");
	if (!f->resource_version[0] || strpbrk(f->resource_version, "\"\\"))
		return err_set(e, ERR_PROTOCOL, "metadata.resourceVersion is missing or invalid");
	return 0;
}

// An absent count keeps its default: the API leaves zeros out.
static int read_count(struct json_span value, const char *name, int32_t *count, struct err *e)
{
	int64_t n = *count;
	if (value.text && !json_span_i64(value, 0, INT32_MAX, &n))
		return err_set(e, ERR_PROTOCOL, "%s: expected a number of replicas", name);
	*count = (int32_t)n;
	return 0;
}

int target_decode(const char *json, size_t len, struct target_fields *ret_fields, struct err *e)
{
	static const char *const members[] = {"metadata", "spec", "status"},
	                         *const of_spec[] = {"replicas", "selector"},
	                         *const of_status[] = {"replicas", "readyReplicas"};
	struct target_fields *f = ret_fields;
	struct json_span object[3], spec[2], status[2];
	*f = (struct target_fields){.spec_replicas = 1};
	json_span_members((struct json_span){json, len}, members, object, 3);
	if (!object[0].text)
		return err_set(e, ERR_PROTOCOL, "not an object with metadata.resourceVersion");
	if (decode_metadata(object[0], f, e) < 0)
		return -1;
	// A reply that contains only metadata does not show replicas.
	if (json_span_kind(object[1]) != '{')
		return err_set(e, ERR_PROTOCOL, object[1].text ? "spec is not a map" : "an object without a spec");
	if (!may_be(object[2], '{'))
		return err_set(e, ERR_PROTOCOL, "status is not a map");
	json_span_members(object[1], of_spec, spec, 2);
	json_span_members(object[2], of_status, status, 2);
	if (read_count(spec[0], "spec.replicas", &f->spec_replicas, e) < 0 ||
	    read_count(status[0], "status.replicas", &f->status_replicas, e) < 0 ||
	    read_count(status[1], "status.readyReplicas", &f->ready_replicas, e) < 0)
		return -1;
	if (spec[1].text && label_selector_render(spec[1], f->selector, sizeof f->selector, e) < 0)
		return err_wrap(e, "spec.selector");
	return 0;
}

int target_decode_metadata(const char *json, size_t len, struct target_fields *ret_fields, struct err *e)
{
	*ret_fields = (struct target_fields){.spec_replicas = 1};
	return decode_metadata(json_span_get((struct json_span){json, len}, "metadata"), ret_fields, e);
}
