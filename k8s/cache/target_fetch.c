// SPDX-License-Identifier: Apache-2.0
// Reads /scale of a target whose object does not contain its scale, once after each change of the object.
#include "base/buf.h"
#include "base/http/http_client.h"
#include "k8s/cache/target_store_private.h"
#include "k8s/client/k8s_client.h"

static void on_scale(void *arg, const struct http_response *response, const struct err *error)
{
	struct target_record *r = arg;
	struct scale scale;
	r->scale_call = NULL;
	if (error && error->kind == ERR_CANCELED)
		return; // no longer wanted, or shutdown
	if (r->is_known)
		; // deleted in between
	else if (error && error->code == 404)
		target_set_absent(r);
	else if (error || scale_decode(response->body, response->body_len, &scale, NULL) < 0)
		target_set_scale_unknown(r, TARGET_RETRY_MS);
	else
		target_apply_scale(r, &scale);
	target_store_wake(r->kind->store);
}

void target_fetch_scale(struct target_record *r, const struct scale_ref *ref)
{
	struct target_store *s = r->kind->store;
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s%s/namespaces/%s/%s/%s/scale", strchr(r->kind->api_version, '/') ? "/apis/" : "/api/",
	           r->kind->api_version, ref->namespace_name, r->kind->plural, ref->name);
	const struct k8s_request_options o = {.method = "GET", .path = buf_str(&path), .done = on_scale, .arg = r};
	s->stats.fetches++;
	if (path.failed || k8s_request_with(s->options.client, &o, &r->scale_call, NULL) < 0) {
		r->scale_call = NULL;
		target_set_scale_unknown(r, TARGET_RETRY_MS);
	}
	buf_done(&path);
}
