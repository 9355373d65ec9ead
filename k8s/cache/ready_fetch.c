// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/ready_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/http/http_client.h"
#include "k8s/cache/target_decode.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/object_name.h"
#include "k8s/client/scale.h"

struct fetch {
	struct scale_ref ref; // texts in the same allocation
	ready_fetch_fn *done;
	void *arg;
};

static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct fetch *f = arg;
	struct json_span object;
	int32_t ready = -1;
	bool is_stale = false;
	if (!error && object_list_find(response->body, response->body_len, f->ref.name, &object) > 0) {
		ready = scale_path_ready(&f->ref, object, &is_stale);
		if (ready < 0 && workload_kind_find(f->ref.api_version, f->ref.kind, f->ref.path)->plural)
			ready = 0; // the API leaves zeros out
	}
	f->done(f->arg, ready, is_stale);
	free(f);
}

int ready_fetch(struct k8s_client *c, const struct scale_ref *ref, ready_fetch_fn *done, void *arg)
{
	const struct k8s_resource *resource =
	        discovery_find(k8s_client_discovery(c), ref->api_version, ref->kind, !ref->path);
	struct buf path;
	if (!resource || !resource->is_namespaced || !k8s_name_is_valid(ref->name))
		return -1;
	struct fetch *f = scale_ref_copy(ref, sizeof *f);
	if (!f)
		return -1;
	f->done = done;
	f->arg = arg;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s/%s/namespaces/%s/%s?fieldSelector=metadata.name%%3D%s",
	           strchr(ref->api_version, '/') ? "/apis" : "/api", ref->api_version, ref->namespace_name,
	           resource->plural, ref->name);
	int rc = path.failed ? -1 : k8s_request(c, "GET", buf_str(&path), NULL, NULL, 0, on_reply, f, NULL);
	buf_done(&path);
	if (rc < 0)
		free(f);
	return rc;
}
