// SPDX-License-Identifier: Apache-2.0
// Lists of the fake API server, in pages. A page after the first shows the objects as they are now, under the version
// of the first page: a client that watches from there hears what has changed in between, as with the real one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/http/http_server.h"
#include "base/json/json_read.h"
#include "base/num.h"
#include "test/fake/apiserver_private.h"

static bool number(struct fake_request *r, const char *text, int64_t min, int64_t *ret_value)
{
	if (!text || !text[0] || num_parse_i64(text, strlen(text), min, INT64_MAX, ret_value, NULL) == 0)
		return true;
	fake_reply_status(r, 400, "BadRequest", "a number was expected in the query", NULL);
	return false;
}

bool fake_selectors_of(struct fake_request *r, const char **ret_labels, const char **ret_fields)
{
	const char *labels = http_exchange_query(r->x, "labelSelector");
	const char *fields = http_exchange_query(r->x, "fieldSelector");
	char message[600];
	if (labels && !fake_labels_are_known(labels)) {
		fake_reply_status(r, 400, "BadRequest",
		                  "unable to parse requirement: the fake knows only a=b, a!=b, a and !a", NULL);
		return false;
	}
	if (fields && !fake_fields_are_known(r->path.kind, fields)) {
		snprintf(message, sizeof message, "field label not supported: %.200s", fields);
		fake_reply_status(r, 400, "BadRequest", message, NULL);
		return false;
	}
	*ret_labels = labels;
	*ret_fields = fields;
	return true;
}

// "VERSION:SEQ", of the first page and of the last object that was shown. False: it has been answered.
static bool read_continue(struct fake_request *r, uint64_t *ret_version, uint64_t *ret_seq)
{
	const char *text = http_exchange_query(r->x, "continue"), *colon = text ? strchr(text, ':') : NULL;
	int64_t version = 0, seq = 0;
	*ret_version = r->f->store.version;
	*ret_seq = 0;
	if (!text || !text[0])
		return true;
	if (!colon || num_parse_i64(text, (size_t)(colon - text), 1, INT64_MAX, &version, NULL) < 0 ||
	    num_parse_i64(colon + 1, strlen(colon + 1), 1, INT64_MAX, &seq, NULL) < 0) {
		fake_reply_status(r, 400, "BadRequest", "continue key is not valid: not of this server", NULL);
		return false;
	}
	if ((uint64_t)version < fake_watches_oldest(r->f->watches, r->path.kind)) {
		fake_reply_status(r, 410, "Expired",
		                  "The provided continue parameter is too old to display a consistent list result. You "
		                  "must start a new list without the continue parameter.",
		                  NULL);
		return false;
	}
	*ret_version = (uint64_t)version;
	*ret_seq = (uint64_t)seq;
	return true;
}

// Whether the client asks for metadata alone, as metav1.PartialObjectMetadataList.
static bool wants_metadata(struct fake_request *r)
{
	const char *accept = http_exchange_header(r->x, "Accept");
	return accept && strncmp(accept, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 64) == 0;
}

static void put_metadata(struct buf *b, const cJSON *root)
{
	char *text = cJSON_PrintUnformatted(json_get(root, "metadata"));
	if (!text)
		abort(); // a test server has no better answer to the end of memory
	buf_printf(b, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":%s}", text);
	cJSON_free(text);
}

void fake_list(struct fake_request *r)
{
	bool is_metadata = wants_metadata(r);
	struct fake_apiserver *f = r->f;
	const struct fake_kind *kind = r->path.kind;
	const char *labels, *fields;
	int64_t limit = 0;
	uint64_t version, last;
	if (!fake_selectors_of(r, &labels, &fields) || !number(r, http_exchange_query(r->x, "limit"), 0, &limit) ||
	    !read_continue(r, &version, &last))
		return;
	struct buf b, next;
	buf_init(&b, FAKE_REPLY_BYTES_MAX);
	buf_init(&next, 128);
	int64_t n = 0;
	struct fake_object *o;
	struct buf items;
	buf_init(&items, FAKE_REPLY_BYTES_MAX);
	DL_FOREACH(f->store.of_kind[fake_kind_index(kind)], o)
	{
		if (o->seq <= last || (r->path.ns[0] && strcmp(fake_object_namespace(o), r->path.ns) != 0) ||
		    !fake_selected(o->root, labels, fields))
			continue;
		if (limit > 0 && n == limit) {
			buf_printf(&next, ",\"continue\":\"%llu:%llu\"", (unsigned long long)version,
			           (unsigned long long)last);
			break;
		}
		buf_puts(&items, n++ ? "," : "");
		if (is_metadata)
			put_metadata(&items, o->root);
		else if (kind->is_custom) // only custom resources say in a list what they are
			fake_put_object(&items, kind, o->text);
		else
			buf_put(&items, o->text->data, o->text->len);
		last = o->seq;
	}
	buf_printf(&b, "{\"kind\":\"%sList\",\"apiVersion\":\"", is_metadata ? "PartialObjectMetadata" : kind->kind);
	if (is_metadata)
		buf_puts(&b, "meta.k8s.io/v1");
	else
		fake_put_group_version(&b, kind);
	buf_printf(&b, "\",\"metadata\":{\"resourceVersion\":\"%llu\"%s},\"items\":[", (unsigned long long)version,
	           buf_str(&next));
	buf_put(&b, buf_str(&items), items.len);
	buf_puts(&b, "]}");
	fake_reply_text(r, 200, "application/json", buf_str(&b), b.len);
	buf_done(&items);
	buf_done(&next);
	buf_done(&b);
}
