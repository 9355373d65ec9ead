// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/pod_mark.h"

#include "base/base.h"
#include "base/json/json_write.h"
#include "k8s/client/scale.h"

#define PATCH_BYTES_MAX 512

int pod_mark(struct k8s_client *c, const char *namespace_name, const struct pod_info *pod, int64_t marked_ms,
             k8s_done_fn *done, void *arg, struct err *e)
{
	char stamp[NUM_TEXT_BYTES], cost[NUM_TEXT_BYTES];
	struct buf path, body;
	struct json_writer w;
	assert(pod->removal && !(pod->removal->has_cost && marked_ms > 0));
	if (!k8s_name_is_valid(namespace_name) || !k8s_name_is_valid(pod->name))
		return err_set(e, ERR_INPUT, "invalid namespace and name of a pod: \"%.80s/%.80s\"", namespace_name,
		               pod->name);
	num_format_rfc3339_ms(stamp, marked_ms);
	snprintf(cost, sizeof cost, "%d", POD_MARK_COST);
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_init(&body, PATCH_BYTES_MAX);
	buf_printf(&path, "/api/v1/namespaces/%s/pods/%s", namespace_name, pod->name);
	json_write_init(&w, &body, 0);
	json_write_format(&w, "{metadata:{resourceVersion:%s,annotations:{", pod->removal->resource_version);
	json_write_member_str(&w, POD_VICTIM_ANNOTATION, marked_ms > 0 ? stamp : NULL);
	if (!pod->removal->has_cost)
		json_write_member_str(&w, POD_COST_ANNOTATION, marked_ms > 0 ? cost : NULL);
	json_write_format(&w, "}}}");
	int rc = path.failed || body.failed ? err_set(e, ERR_LIMIT, "the path or body of a pod's mark is too long")
	                                    : k8s_request(c, "PATCH", buf_str(&path), "application/merge-patch+json",
	                                                  buf_str(&body), body.len, done, arg, e);
	buf_done(&path);
	buf_done(&body);
	return rc;
}
