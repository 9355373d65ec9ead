// SPDX-License-Identifier: Apache-2.0
#include "test/fake/k8s_harness.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/http/http_client.h"
#include "k8s/client/k8s_config.h"

static void observe(void *arg, const struct k8s_attempt *attempt)
{
	struct harness *h = arg;
	h->observed++;
	h->last_status = attempt->status;
	snprintf(h->last_class, sizeof h->last_class, "%s", attempt->resource);
}

void harness_start_loop(struct harness *h)
{
	*h = (struct harness){0};
	signal(SIGPIPE, SIG_IGN);
	clock_init_real(&h->clock);
	h->loop = event_base_new();
	assert_non_null(h->loop);
}

void harness_start(struct harness *h, const struct fake_apiserver_options *server)
{
	struct fake_apiserver_options o = server ? *server : (struct fake_apiserver_options){.gpus = -1};
	struct err e = {0};
	harness_start_loop(h);
	o.loop = h->loop;
	o.listen = "127.0.0.1:0";
	h->server = fake_apiserver_new(&o, &e);
	if (!h->server)
		fail_msg("%s", e.msg);
	snprintf(h->url, sizeof h->url, "http://127.0.0.1:%u", (unsigned)fake_apiserver_port(h->server));
	h->config = (struct k8s_config){.server = h->url, .namespace_name = "default", .source = "the test"};
}

void harness_start_client(struct harness *h, int max_attempts)
{
	struct err e = {0};
	struct http_client_options ho = {.loop = h->loop, .connect_timeout_ms = HARNESS_WAIT_MS};
	h->http = http_client_new(&ho, &e);
	if (!h->http)
		fail_msg("%s", e.msg);
	struct k8s_client_options ko = {.loop = h->loop,
	                                .http = h->http,
	                                .clock = &h->clock,
	                                .config = &h->config,
	                                .timeout_ms = h->timeout_ms,
	                                .max_attempts = max_attempts,
	                                .observe = observe,
	                                .observe_arg = h};
	h->client = k8s_client_new(&ko, &e);
	if (!h->client)
		fail_msg("%s", e.msg);
}

int harness_start_kubeconfig(struct harness *h, struct arena *arena, const char *variable)
{
	struct err e = {0};
	const struct k8s_config_options options = {.kubeconfig = getenv(variable)};
	if (!options.kubeconfig) {
		print_error("%s is not set\n", variable);
		return -1;
	}
	harness_start_loop(h);
	h->timeout_ms = HARNESS_WAIT_MS; // watches are read as one body
	arena_init(arena, 1024 * 1024);
	if (k8s_config_load(arena, &options, &h->config, &e) < 0) {
		print_error("%s\n", e.msg);
		return -1;
	}
	harness_start_client(h, 0);
	return 0;
}

void harness_stop(struct harness *h)
{
	k8s_client_free(h->client);
	http_client_free(h->http);
	fake_apiserver_free(h->server);
	event_base_free(h->loop);
	*h = (struct harness){0};
}

void harness_wait(struct harness *h, const struct outcome *o)
{
	int64_t end = clock_mono_ms(&h->clock) + HARNESS_WAIT_MS;
	while (!o->is_done) {
		struct timeval tick = {.tv_usec = 100000};
		event_base_loopexit(h->loop, &tick);
		event_base_loop(h->loop, EVLOOP_ONCE);
		if (clock_mono_ms(&h->clock) > end)
			fail_msg("no answer within %d ms", HARNESS_WAIT_MS);
	}
}

static void record(struct outcome *o, const struct err *error)
{
	if (o->is_done)
		fail_msg("a callback ran twice");
	o->is_done = true;
	o->is_error = error != NULL;
	if (error)
		o->error = *error;
}

void outcome_of_request(void *arg, const struct http_response *response, const struct err *error)
{
	struct outcome *o = arg;
	record(o, error);
	if (response)
		snprintf(o->body, sizeof o->body, "%s", response->body);
}

void outcome_of_scale(void *arg, const struct scale *scale, const struct err *error)
{
	struct outcome *o = arg;
	record(o, error);
	if (scale)
		o->scale = *scale;
}

void outcome_of_pods(void *arg, const struct pod_counts *counts, const struct err *error)
{
	struct outcome *o = arg;
	record(o, error);
	if (counts)
		o->counts = *counts;
}

// A request refused at once is an outcome like any other.
static void finish(struct harness *h, struct outcome *o, int rc, const struct err *e)
{
	if (rc < 0)
		record(o, e);
	harness_wait(h, o);
}

void harness_get(struct harness *h, const struct scale_ref *ref, struct outcome *o)
{
	struct err e = {0};
	*o = (struct outcome){0};
	finish(h, o, scale_get(h->client, ref, outcome_of_scale, o, &e), &e);
}

void harness_patch(struct harness *h, const struct scale_ref *ref, const char *version, int replicas, struct outcome *o)
{
	struct err e = {0};
	char copy[SCALE_RESOURCE_VERSION_BYTES_MAX]; // version may be o's own
	snprintf(copy, sizeof copy, "%s", version);
	*o = (struct outcome){0};
	finish(h, o, scale_patch(h->client, ref, copy, replicas, outcome_of_scale, o, &e), &e);
}

void harness_request(struct harness *h, const char *method, const char *path, const char *type, const char *body,
                     struct outcome *o)
{
	struct err e = {0};
	*o = (struct outcome){0};
	size_t len = body ? strlen(body) : 0;
	finish(h, o, k8s_request(h->client, method, path, type, body, len, outcome_of_request, o, &e), &e);
}

void harness_count(struct harness *h, const char *ns, const char *selector, struct outcome *o)
{
	struct err e = {0};
	*o = (struct outcome){0};
	finish(h, o, pods_list(h->client, ns, selector, NULL, outcome_of_pods, o, &e), &e);
}
