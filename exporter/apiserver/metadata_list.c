// SPDX-License-Identifier: Apache-2.0
#include "exporter/apiserver/metadata_list.h"

#include <string.h>

#include "base/err.h"

// The levels that are read: the list, its items, an item, its metadata, its labels.
enum level { LIST = 1, ITEMS, ITEM, METADATA, LABELS };
enum key { KEY_OTHER, KEY_KIND, KEY_ITEMS, KEY_METADATA, KEY_NAMESPACE, KEY_NAME, KEY_UID, KEY_LABELS, KEY_LABEL };

static const struct {
	enum level level;
	enum key key;
	const char *text;
} keys[] = {
        {LIST, KEY_KIND, "kind"},         {LIST, KEY_ITEMS, "items"},
        {ITEM, KEY_METADATA, "metadata"}, {METADATA, KEY_NAMESPACE, "namespace"},
        {METADATA, KEY_NAME, "name"},     {METADATA, KEY_UID, "uid"},
        {METADATA, KEY_LABELS, "labels"},
};

static bool is_text(const struct json_token *t, const char *text)
{
	return t->bytes == strlen(text) && memcmp(t->text, text, t->bytes) == 0;
}

static int key_of(const struct metadata_list *l, const struct json_token *t)
{
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (keys[i].level == l->matched && is_text(t, keys[i].text))
			return (int)keys[i].key;
	for (size_t i = 0; l->matched == LABELS && i < l->labels->n; i++)
		if (is_text(t, l->labels->keys[i]))
			return KEY_LABEL + (int)i;
	return KEY_OTHER;
}

// Whether the container that opens at level l->matched + 1 leads to a value in use.
static bool is_wanted(const struct metadata_list *l, enum json_token_kind kind)
{
	bool is_object = kind == JSON_OBJECT_BEGIN;
	switch (l->matched + 1) {
	case LIST:
	case ITEM:
		return is_object;
	case ITEMS:
		return !is_object && l->at[LIST] == KEY_ITEMS;
	case METADATA:
		return is_object && l->at[ITEM] == KEY_METADATA;
	case LABELS:
		return is_object && l->at[METADATA] == KEY_LABELS;
	default:
		return false;
	}
}

static int not_an_object(struct err *e)
{
	return err_set(e, ERR_PROTOCOL, "a pod of the reply is not an object");
}

static int open_level(struct metadata_list *l, enum json_token_kind kind, struct err *e)
{
	if (l->scan.depth != l->matched + 1) // which includes the new level
		return 0;
	if (!is_wanted(l, kind))
		return l->matched == ITEMS ? not_an_object(e) : 0;
	l->matched++;
	if (l->matched == ITEMS && !l->is_list)
		return err_set(e, ERR_PROTOCOL, "the reply is not a PartialObjectMetadataList");
	l->has_items = l->has_items || l->matched == ITEMS;
	if (l->matched == ITEM) {
		if (++l->n > METADATA_LIST_PODS_MAX)
			return err_set(e, ERR_LIMIT, "the node has more than %d pods", METADATA_LIST_PODS_MAX);
		l->pod = (struct metadata_list_item){.uid = ""};
	}
	return 0;
}

static int close_level(struct metadata_list *l, struct err *e)
{
	if (l->matched != l->scan.depth + 1)
		return 0;
	bool is_pod = l->matched == ITEM;
	l->matched--;
	if (!is_pod)
		return 0;
	if (!l->pod.namespace_[0] || !l->pod.name[0] || !l->pod.uid[0])
		return err_set(e, ERR_PROTOCOL, "a pod of the reply lacks its namespace, name or UID");
	return l->fn(l->arg, &l->pod, e);
}

static int copy(char *out, size_t size, const struct json_token *t, const char *what, struct err *e)
{
	if (t->kind != JSON_STRING)
		return err_set(e, ERR_PROTOCOL, "%s of a pod of the reply is not a string", what);
	if (t->bytes >= size)
		return err_set(e, ERR_LIMIT, "%s of a pod of the reply has %zu bytes, the ceiling is %zu", what,
		               t->bytes, size - 1);
	memcpy(out, t->text, t->len);
	out[t->len] = '\0';
	return 0;
}

static int take_value(struct metadata_list *l, const struct json_token *t, struct err *e)
{
	struct metadata_list_item *p = &l->pod;
	if (l->scan.depth != l->matched)
		return 0;
	if (l->matched == ITEMS)
		return not_an_object(e);
	int key = l->at[l->matched];
	switch (key) {
	case KEY_KIND:
		l->is_list = t->kind == JSON_STRING && is_text(t, "PartialObjectMetadataList");
		return 0;
	case KEY_ITEMS: // Go writes an empty list as null, too
		l->has_items = l->has_items || (l->is_list && t->kind == JSON_NULL);
		return 0;
	case KEY_NAMESPACE:
		return copy(p->namespace_, sizeof p->namespace_, t, "the namespace", e);
	case KEY_NAME:
		return copy(p->name, sizeof p->name, t, "the name", e);
	case KEY_UID:
		return copy(p->uid, sizeof p->uid, t, "the UID", e);
	default:
		if (key < KEY_LABEL)
			return 0;
		return copy(p->labels[key - KEY_LABEL], sizeof p->labels[0], t, "a label", e);
	}
}

static int on_token(void *arg, const struct json_token *t, struct err *e)
{
	struct metadata_list *l = arg;
	switch (t->kind) {
	case JSON_OBJECT_BEGIN:
	case JSON_ARRAY_BEGIN:
		return open_level(l, t->kind, e);
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		return close_level(l, e);
	case JSON_KEY:
		if (l->scan.depth == l->matched)
			l->at[l->matched] = key_of(l, t);
		return 0;
	default:
		return take_value(l, t, e);
	}
}

void metadata_list_init(struct metadata_list *l, const struct pod_labels *labels, metadata_list_fn *fn, void *arg)
{
	*l = (struct metadata_list){.labels = labels, .fn = fn, .arg = arg};
	json_scan_init(&l->scan, POD_LABEL_KEY_BYTES_MAX, on_token, l);
}

void metadata_list_done(struct metadata_list *l)
{
	json_scan_done(&l->scan);
}

int metadata_list_feed(struct metadata_list *l, const char *data, size_t len, struct err *e)
{
	return json_scan_feed(&l->scan, data, len, e);
}

int metadata_list_finish(struct metadata_list *l, struct err *e)
{
	if (json_scan_finish(&l->scan, e) < 0)
		return -1;
	return l->has_items ? 0 : err_set(e, ERR_PROTOCOL, "the reply is not a PartialObjectMetadataList with items");
}
