// SPDX-License-Identifier: Apache-2.0
// What the watches do not tell of a target, read by itself: an object that was passed over, for it was not wanted when
// the list came; the scale of a kind whose objects do not tell it.
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/http_client.h"
#include "k8s/k8s_client.h"
#include "k8s/target_store_private.h"

// One that came when the list had come already.
static void take_object(struct target_record *r, const struct http_response *response)
{
	struct json_span object;
	if (r->is_known)
		return;                              // an event was faster
	const char *name = strrchr(r->key, '/') + 1; // as format_key() writes it
	int n = response ? object_list_find(response->body, response->body_len, name, &object) : -1;
	if (n < 0) {
		target_set_unknown(r, TARGET_RETRY_MS);
	} else if (n == 0) {
		target_set_absent(r);
	} else {
		target_apply(r, object.text, object.len);
		r->is_noted = r->is_known; // events on their way may be older
	}
}

static void take_scale(struct target_record *r, const struct http_response *response, const struct err *error)
{
	struct scale scale;
	if (r->is_known)
		return; // it was deleted meanwhile
	if (error && error->code == 404)
		target_set_absent(r);
	else if (error || scale_decode(response->body, response->body_len, &scale, NULL) < 0)
		target_set_unknown(r, TARGET_RETRY_MS);
	else
		target_apply_scale(r, &scale);
}

static void on_fetched(void *arg, const struct http_response *response, const struct err *error)
{
	struct target_record *r = arg;
	r->fetch = NULL;
	if (error && error->kind == ERR_CANCELED)
		return; // nobody wants it any more, or all ends
	if (r->kind->tells_scale)
		take_object(r, response);
	else
		take_scale(r, response, error);
	target_store_wake(r->store);
}

void target_fetch(struct target_record *r, const struct scale_ref *ref)
{
	struct target_store *s = r->store;
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s%s/namespaces/%s/%s", strchr(r->kind->api_version, '/') ? "/apis/" : "/api/",
	           r->kind->api_version, ref->namespace_name, r->kind->plural);
	if (r->kind->tells_scale) // as a list of one: who may list and watch may do this, and need not be allowed to
	                          // get
		buf_printf(&path, "?fieldSelector=metadata.name%%3D%s", ref->name);
	else
		buf_printf(&path, "/%s/scale", ref->name);
	const struct k8s_request_options o = {.method = "GET", .path = buf_str(&path), .done = on_fetched, .arg = r};
	s->stats.fetches++;
	if (path.failed || k8s_request_with(s->options.client, &o, &r->fetch, NULL) < 0) {
		r->fetch = NULL;
		target_set_unknown(r, TARGET_RETRY_MS);
	}
	buf_done(&path);
}
