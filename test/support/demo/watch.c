// SPDX-License-Identifier: Apache-2.0
#include "test/support/demo/watch.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/json/json_read.h"
#include "base/num.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"
#include "k8s/client/scale.h"

#define WATCH_BRIDGE_MS 250
#define WATCH_ARENA_MAX (1024 * 1024)

struct watch {
	struct watch_options options;
	struct arena arena;
	struct clock clock;
	struct k8s_config config;
	struct http_client *http, *kube_http;
	struct k8s_client *k8s;
	struct event *bridge;
	bool bridging;
	struct scale scale;
	struct pod_counts pods;
	struct watch_row row;
	watch_row_fn *fn;
	void *arg;
};

// ---- the last link: ready replicas -> file -> mock exporter ----

static void on_pods(void *arg, const struct pod_counts *pods, const struct err *error)
{
	(void)error; // a failed look leaves the file as it was; the controller's own errors are what the demo shows
	struct watch *w = arg;
	w->bridging = false;
	if (!pods)
		return;
	w->pods = *pods;
	char path[600], text[16];
	snprintf(path, sizeof path, "%s.new", w->options.replicas_path);
	int n = snprintf(text, sizeof text, "%d\n", pods->ready);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bool ok = fd >= 0 && write(fd, text, (size_t)n) == n;
	if (fd >= 0)
		close(fd);
	if (ok && rename(path, w->options.replicas_path) < 0)
		perror(w->options.replicas_path);
}

static void on_scale(void *arg, const struct scale *scale, const struct err *error)
{
	(void)error;
	struct watch *w = arg;
	struct err e;
	if (scale)
		w->scale = *scale;
	if (!scale || pods_list(w->k8s, w->options.namespace_name, w->scale.selector, NULL, on_pods, w, &e) < 0)
		w->bridging = false;
}

static void on_bridge(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct watch *w = arg;
	if (w->bridging)
		return;
	struct scale_ref ref = {"apps/v1", "Deployment", w->options.namespace_name, w->options.deployment, NULL};
	struct err e;
	w->bridging = scale_get(w->k8s, &ref, on_scale, w, &e) == 0;
}

// ---- one row ----

static void finish(struct watch *w, const struct err *error)
{
	watch_row_fn *fn = w->fn;
	w->fn = NULL;
	fn(w->arg, error ? NULL : &w->row, error);
}

static void get(struct watch *w, const char *base, const char *path, http_done_fn *done)
{
	char url[512];
	struct err e;
	snprintf(url, sizeof url, "%s%s", base, path);
	struct http_request r = {.method = "GET", .url = url, .timeout_ms = 2000};
	if (http_client_submit(w->http, &r, done, w, NULL, &e) < 0)
		finish(w, &e);
}

static void copy_text(char *out, size_t size, const cJSON *item, const char *key)
{
	snprintf(out, size, "%s", json_get_str(item, key, ""));
}

static void on_decisions(void *arg, const struct http_response *response, const struct err *error)
{
	struct watch *w = arg;
	struct watch_row *row = &w->row;
	row->decided = false;
	cJSON *doc = response ? json_read(response->body, response->body_len, NULL) : NULL;
	const cJSON *item = cJSON_GetArrayItem(json_get(doc, "items"), 0);
	int64_t v;
	if (item) {
		row->decided = true;
		row->desired = json_get_i64(item, "desiredReplicas", 0, INT32_MAX, &v, NULL) > 0 ? (int32_t)v : 0;
		copy_text(row->action, sizeof row->action, item, "action");
		copy_text(row->reason, sizeof row->reason, item, "reason");
		copy_text(row->message, sizeof row->message, item, "message");
	}
	cJSON_Delete(doc);
	row->spec = w->scale.spec_replicas;
	row->ready = w->pods.ready;
	row->pending = w->pods.pending;
	finish(w, error);
}

// Adds up the values of a family's samples that are above `least`; *ret_n says how many there were.
static double sum_family(const char *text, const char *name, double least, int *ret_n)
{
	double sum = 0;
	size_t len = strlen(name);
	*ret_n = 0;
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		if (strncmp(line, name, len) != 0 || (line[len] != '{' && line[len] != ' '))
			continue;
		size_t n = strcspn(line, "\n");
		while (n > 0 && line[n - 1] != ' ')
			n--; // the value stands behind the last blank
		double v;
		if (num_parse_sample(line + n, strcspn(line + n, "\n"), &v, NULL) == 0 && v > least) {
			sum += v;
			++*ret_n;
		}
	}
	return sum;
}

static void on_exporter(void *arg, const struct http_response *response, const struct err *error)
{
	struct watch *w = arg;
	int n;
	if (error) {
		finish(w, error);
		return;
	}
	w->row.demand = sum_family(response->body, "gpuscale_mock_demand", -1, &n);
	w->row.backlog = sum_family(response->body, "gpuscale_mock_backlog", -1, &n);
	double active = sum_family(response->body, "DCGM_FI_PROF_SM_ACTIVE", 0.001, &n);
	w->row.utilization_ratio = w->pods.ready > 0 ? active / w->pods.ready : 0;
	get(w, w->options.controller_url, "/debug/decisions", on_decisions);
}

void watch_read(struct watch *w, watch_row_fn *fn, void *arg)
{
	if (w->fn)
		return; // the last look has not come back yet
	w->fn = fn;
	w->arg = arg;
	get(w, w->options.exporter_url, "/metrics", on_exporter);
}

// ---- life ----

struct watch *watch_new(const struct watch_options *options, struct err *e)
{
	struct watch *w = calloc(1, sizeof *w);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->options = *options;
	arena_init(&w->arena, WATCH_ARENA_MAX);
	clock_init_real(&w->clock);
	struct k8s_config_options config = {.kubeconfig = options->kubeconfig, .context = options->context};
	struct http_client_options http = {.loop = options->loop};
	struct k8s_client_options kube = {.loop = options->loop, .clock = &w->clock, .config = &w->config};
	struct timeval every = {0, WATCH_BRIDGE_MS * 1000};
	if (k8s_config_load(&w->arena, &config, &w->config, e) < 0 || !(w->http = http_client_new(&http, e)) ||
	    !(w->kube_http = kube.http = http_client_new(&http, e)) || !(w->k8s = k8s_client_new(&kube, e)))
		goto fail;
	w->bridge = event_new(options->loop, -1, EV_PERSIST, on_bridge, w);
	if (!w->bridge || event_add(w->bridge, &every) < 0) {
		err_set(e, ERR_INTERNAL, "cannot create a timer");
		goto fail;
	}
	on_bridge(-1, 0, w);
	return w;
fail:
	watch_free(w);
	return NULL;
}

static void ignore_row(void *arg, const struct watch_row *row, const struct err *error)
{
	(void)arg;
	(void)row;
	(void)error;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	w->fn = w->fn ? ignore_row : NULL; // what is in progress ends unheard
	if (w->bridge)
		event_free(w->bridge);
	k8s_client_free(w->k8s);
	http_client_free(w->kube_http);
	http_client_free(w->http);
	arena_done(&w->arena);
	free(w);
}
