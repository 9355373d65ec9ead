// SPDX-License-Identifier: Apache-2.0
// Counts and lists the pods of a selector, page by page.
#include "k8s/client/object_name.h"
#include "k8s/client/scale.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "k8s/client/k8s_client.h"

#define PODS_PAGES_MAX 400

struct count {
	struct k8s_client *client;
	struct pod_counts counts;
	struct pod_list *list; // NULL: counts only
	char next_page[PODS_CONTINUE_BYTES_MAX];
	bool has_restarted;
	int pages;
	pod_counts_done_fn *done;
	void *arg;
	char *namespace_name, *selector; // in the same allocation
};

static void finish(struct count *n, const struct err *error)
{
	pod_counts_done_fn *done = n->done;
	void *arg = n->arg;
	struct pod_counts counts = n->counts;
	free(n);
	done(arg, error ? NULL : &counts, error);
}

static int ask_page(struct count *n, struct err *e);

static void on_page(void *arg, const struct http_response *response, const struct err *error)
{
	struct count *n = arg;
	struct err e = {0};
	// 410: the continue token has expired. Starts again, once.
	if (error && error->code == 410 && n->next_page[0] && !n->has_restarted) {
		n->has_restarted = true;
		n->next_page[0] = '\0';
		n->counts = (struct pod_counts){0};
		if (n->list) {
			const struct workload_kind *workload = n->list->workload;
			bool reads_removal = n->list->reads_removal;
			pod_list_done(n->list);
			pod_list_init(n->list);
			n->list->workload = workload;
			n->list->reads_removal = reads_removal;
		}
	} else if (error) {
		finish(n, error);
		return;
	} else if (pods_decode_page(response->body, response->body_len, &n->counts, n->list, n->next_page, &e) < 0) {
		finish(n, &e);
		return;
	} else if (!n->next_page[0]) {
		finish(n, NULL);
		return;
	}
	if (ask_page(n, &e) < 0)
		finish(n, &e);
}

static int ask_page(struct count *n, struct err *e)
{
	if (n->pages++ == PODS_PAGES_MAX) // pages may be short, but a list must end
		return err_set(e, ERR_LIMIT, "the list of pods has more than %d pages", PODS_PAGES_MAX);
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "/api/v1/namespaces/%s/pods?limit=%d&labelSelector=", n->namespace_name, PODS_PAGE);
	http_append_urlencoded(&path, n->selector);
	if (n->next_page[0]) {
		buf_puts(&path, "&continue=");
		http_append_urlencoded(&path, n->next_page);
	}
	int rc = path.failed ? err_set(e, ERR_LIMIT, "the path of a pod list exceeds %d bytes", K8S_PATH_BYTES_MAX)
	                     : k8s_request(n->client, "GET", buf_str(&path), NULL, NULL, 0, on_page, n, e);
	buf_done(&path);
	return rc;
}

int pods_list(struct k8s_client *c, const char *namespace_name, const char *selector, struct pod_list *list,
              pod_counts_done_fn *done, void *arg, struct err *e)
{
	if (!k8s_name_is_valid(namespace_name))
		return err_set(e, ERR_INPUT, "invalid namespace \"%.80s\"", namespace_name);
	if (!selector[0])
		return err_set(e, ERR_INPUT, "cannot count pods: the scale subresource has no selector");
	size_t selector_size = strlen(selector) + 1, namespace_size = strlen(namespace_name) + 1;
	struct count *n = calloc(1, sizeof *n + selector_size + namespace_size);
	if (!n)
		return err_no_memory(e);
	n->client = c;
	n->list = list;
	n->done = done;
	n->arg = arg;
	n->selector = memcpy((char *)(n + 1), selector, selector_size);
	n->namespace_name = memcpy(n->selector + selector_size, namespace_name, namespace_size);
	if (ask_page(n, e) < 0) {
		free(n);
		return -1;
	}
	return 0;
}
