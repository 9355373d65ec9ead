// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/kube_pages.h"

#include "base/http/http_client.h"
#include "cli/term/cli.h"
#include "k8s/capacity/resource_names.h"
#include "k8s/capacity/shape_fetch.h"
#include "k8s/client/k8s_client.h"

#define PATH_BYTES_MAX (32 * 1024)
#define RESTARTS_MAX   3 // of a list that outlives its continue token

// ---- one request ----

struct reply {
	struct buf *body; // may be NULL
	bool is_done;
	struct err error;
};

static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct reply *r = arg;
	r->is_done = true;
	if (error)
		r->error = *error;
	else if (r->body && buf_put(r->body, response->body, response->body_len) < 0)
		err_set(&r->error, ERR_LIMIT, "the reply has %zu bytes, the ceiling is %zu", response->body_len,
		        r->body->max);
}

int kube_request(struct connections *c, const char *method, const char *path, const char *content_type,
                 const char *body, struct buf *ret_body, struct err *e)
{
	struct reply reply = {.body = ret_body};
	if (k8s_request(c->k8s, method, path, content_type, body, body ? strlen(body) : 0, on_reply, &reply, e) < 0 ||
	    connections_wait(c, &reply.is_done, &reply.error, e) < 0)
		return -1;
	// The login page of a proxy answers everything with 200.
	if (ret_body && buf_str(ret_body)[0] != '{')
		return err_set(e, ERR_PROTOCOL, "%s answered %s with no JSON object: is it a Kubernetes API server?",
		               c->k8s->options.config->server, path);
	return 0;
}

// ---- lists ----

// Without a readable token the list is incomplete, which is an error.
static int read_continue(const struct kube_pages *p, const struct buf *body, char more[KUBE_PAGES_CONTINUE_BYTES],
                         struct err *e)
{
	struct json_span list = {buf_str(body), body->len}, metadata = json_span_get(list, "metadata");
	struct json_span token = json_span_get(metadata, "continue");
	more[0] = '\0';
	if (!json_span_is_whole(list))
		return err_set(e, ERR_PROTOCOL, "the list of %s: expected JSON, got something else", p->what);
	if (json_span_kind(metadata) != '\0' && json_span_kind(metadata) != 'n' && json_span_kind(metadata) != '{')
		return err_set(e, ERR_PROTOCOL, "the list of %s: its metadata is not an object", p->what);
	if (json_span_kind(token) == '\0' || json_span_kind(token) == 'n')
		return 0;
	if (json_span_text(token, more, KUBE_PAGES_CONTINUE_BYTES) < 0)
		return err_set(e, ERR_PROTOCOL,
		               "the list of %s: expected a continue token of up to %d bytes in its metadata", p->what,
		               KUBE_PAGES_CONTINUE_BYTES - 1);
	return 0;
}

static int fetch_page(struct connections *c, const struct kube_pages *p, const char *collection, const char *selector,
                      char more[KUBE_PAGES_CONTINUE_BYTES], void *arg, struct err *e)
{
	struct buf path = BUF(PATH_BYTES_MAX), body = BUF(JSON_BYTES_MAX);
	size_t name_len = strcspn(selector, "=");
	buf_printf(&path, "%s?limit=%d", collection, KUBE_PAGES_OBJECTS);
	if (selector[0]) {
		buf_printf(&path, "&%.*s=", (int)name_len, selector);
		http_append_urlencoded(&path, selector + name_len + 1);
	}
	buf_puts(&path, more[0] ? "&continue=" : "");
	http_append_urlencoded(&path, more);
	int rc = path.failed ? err_set(e, ERR_LIMIT, "the list of %s: the request is longer than %d bytes", p->what,
	                               PATH_BYTES_MAX)
	                     : kube_request(c, "GET", buf_str(&path), NULL, NULL, &body, e);
	if (rc == 0)
		rc = read_continue(p, &body, more, e);
	if (rc == 0)
		rc = kube_pages_each(p->what, buf_str(&body), body.len, p->item, arg, e);
	buf_done(&path);
	buf_done(&body);
	return rc;
}

int kube_pages_fetch(struct connections *c, const struct kube_pages *p, const char *path, const char *selector,
                     void *arg, struct err *e)
{
	char more[KUBE_PAGES_CONTINUE_BYTES] = "";
	int rc = 0, restarts = 0;
	struct progress progress = {.what = p->what};
	progress_watch(&progress, c->loop);
	for (int pages = 0; rc == 0 && pages < p->pages_max && (pages == 0 || more[0]); pages++) {
		rc = fetch_page(c, p, path, selector, more, arg, e);
		if (rc < 0 && e->code == 410 && restarts++ < RESTARTS_MAX) {
			if (p->restart)
				p->restart(arg);
			more[0] = '\0';
			pages = -1;
			rc = 0;
		}
	}
	progress_clear(&progress);
	if (rc == 0 && more[0]) // truncating the list here would make it look complete
		rc = err_set(e, ERR_LIMIT, "the list of %s has more than %d pages", p->what, p->pages_max);
	return rc;
}

int kube_pages_each(const char *what, const char *json, size_t len, kube_item_fn *item, void *arg, struct err *e)
{
	struct json_span list = {json, len};
	struct json_span_iter it = {.rest = json_span_get(list, "items")};
	int rc = 0;
	if (!json_span_is_whole(list))
		return err_set(e, ERR_PROTOCOL, "the list of %s: expected JSON, got something else", what);
	if (json_span_kind(it.rest) != '[')
		return err_set(e, ERR_PROTOCOL, "the list of %s has no items", what);
	while (rc == 0 && json_span_next(&it))
		rc = item(arg, it.value, e);
	return rc;
}
// ---- what a replica needs ----

struct wait {
	struct target_shape *result;
	bool is_done;
};

static void on_fetched(void *arg, const struct target_shape *shape)
{
	struct wait *w = arg;
	*w->result = *shape;
	w->is_done = true;
}

int shape_read(struct connections *c, const struct scale_ref *ref, struct resource_names *names,
               struct target_shape *ret, struct err *e)
{
	struct wait w = {.result = ret};
	*ret = (struct target_shape){.has_shape = false};
	struct shape_fetch *f = shape_fetch_start(c->k8s, ref, names, on_fetched, &w, e);
	if (!f)
		return -1;
	int rc = connections_wait(c, &w.is_done, &ret->error, e);
	if (!w.is_done)
		shape_fetch_abandon(f);
	return rc;
}

int32_t shape_read_gpus(struct connections *c, const struct scale_ref *ref, struct err *e)
{
	struct target_shape shape;
	struct resource_names names;
	int32_t n = 0;
	if (resource_names_init(&names) < 0) {
		err_no_memory(e);
		return 0;
	}
	if (shape_read(c, ref, &names, &shape, e) == 0) {
		n = target_shape_gpus(&shape, &names);
		if (n == 0)
			err_set(e, ERR_INPUT, "the pod template requests no GPUs");
	}
	target_shape_done(&shape);
	resource_names_done(&names);
	return n;
}
