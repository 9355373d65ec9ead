// SPDX-License-Identifier: Apache-2.0
// N Deployments of the benchmark (d0000 .., 10,000 in namespace bench, the next ones in bench-2), over the bare HTTP
// client on 16 connections: no retries, no decoding, nothing but the requests themselves.
//   bench_kube KUBECONFIG create N            makes them (and the namespaces)
//   bench_kube KUBECONFIG scale N REPLICAS    merge-PATCHes each one's /scale: the yardstick of step_500_ratio
//   bench_kube KUBECONFIG policies N SECONDS  makes a GPUAutoscaler for each, of that interval: replicas = bench_load
//   bench_kube KUBECONFIG hpas N              makes an HPA for each: replicas = the external metric bench_load
//   bench_kube KUBECONFIG status N REPLICAS   writes each one's status.replicas, which the HPA divides by
//   bench_kube KUBECONFIG policy-status N FILE  merge-PATCHes the status of each policy with the content of FILE
//   bench_kube KUBECONFIG events N            makes an Event about each policy, as the controller does after a scale
// Prints "seconds=S requests=N". Exit 1 when a request failed.
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/num.h"
#include "k8s/client/k8s_config.h"

#define CONFIG_BYTES_MAX  (1024 * 1024)
#define OBJECTS_MAX       20000
#define NAMESPACE_OBJECTS 10000 // Deployments of one namespace
#define NAME_BYTES        64
#define BODY_BYTES_MAX    (64 * 1024)
#define CONNECTIONS       16
#define TIMEOUT_MS        (10 * 60 * 1000)

struct bench {
	struct event_base *loop;
	struct http_client *http;
	struct k8s_config config;
	struct buf body; // of policy-status
	int64_t pending, failed, sent;
};

static double now_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void on_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct bench *b = arg;
	// 409: it was there already.
	bool ok = response && ((response->status >= 200 && response->status < 300) || response->status == 409);
	if (!ok && b->failed++ == 0) {
		if (response)
			fprintf(stderr, "bench_kube: HTTP %d: %.300s\n", response->status, response->body);
		else
			fprintf(stderr, "bench_kube: %s\n", error->msg);
	}
	if (--b->pending == 0)
		event_base_loopbreak(b->loop);
}

static void submit(struct bench *b, const char *method, const char *path, const char *content_type, const char *body)
{
	char url[1024];
	struct err e;
	snprintf(url, sizeof url, "%.500s%s", b->config.server, path);
	const char *const headers[] = {content_type, "Accept: application/json", NULL};
	struct http_request request = {
	        .method = method,
	        .url = url,
	        .headers = headers,
	        .body = body,
	        .body_len = strlen(body),
	        .bearer_token = b->config.token,
	        .tls = &b->config.tls,
	        .timeout_ms = TIMEOUT_MS, // waiting for a place included
	};
	if (http_client_submit(b->http, &request, on_done, b, NULL, &e) < 0) {
		fprintf(stderr, "bench_kube: %s\n", e.msg);
		exit(1);
	}
	b->pending++;
	b->sent++;
}

// The controller accepts 15,000 policies of one namespace, so objects are spread over several.
static void put_namespace(char out[NAME_BYTES], int i)
{
	if (i < NAMESPACE_OBJECTS)
		snprintf(out, NAME_BYTES, "bench");
	else
		snprintf(out, NAME_BYTES, "bench-%d", i / NAMESPACE_OBJECTS + 1);
}

static void submit_new_namespace(struct bench *b, int first)
{
	char name[NAME_BYTES], body[128];
	put_namespace(name, first);
	snprintf(body, sizeof body, "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\"}}",
	         name);
	submit(b, "POST", "/api/v1/namespaces", "Content-Type: application/json", body);
}

static void submit_new_deployment(struct bench *b, int i)
{
	char name[NAME_BYTES], path[128], body[1024];
	put_namespace(name, i);
	snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/deployments", name);
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d%04d\"},\"spec\":{"
	         "\"replicas\":1,\"selector\":{\"matchLabels\":{\"app\":\"d%04d\"}},\"template\":{\"metadata\":{"
	         "\"labels\":{\"app\":\"d%04d\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\","
	         "\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]}}}}",
	         i, i, i);
	submit(b, "POST", path, "Content-Type: application/json", body);
}

// Of a policy and of an HPA: a step is one scale.
#define BEHAVIOR                                                                                                       \
	"\"behavior\":{\"scaleUp\":{\"policies\":[{\"type\":\"Pods\",\"value\":16,\"periodSeconds\":1}]},"             \
	"\"scaleDown\":{\"stabilizationWindowSeconds\":0,\"policies\":[{\"type\":\"Pods\",\"value\":16,"               \
	"\"periodSeconds\":1}]}}"

static void submit_new_policy(struct bench *b, int i, int64_t interval_s)
{
	char name[NAME_BYTES], path[128], body[2048];
	put_namespace(name, i);
	snprintf(path, sizeof path, "/apis/gpuscale.dev/v1alpha1/namespaces/%s/gpuautoscalers", name);
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"gpuscale.dev/"
	         "v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"d%04d\"},"
	         "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"d%04d\"},"
	         "\"minReplicas\":1,\"maxReplicas\":16,\"interval\":\"%ds\",\"signals\":[{\"name\":\"load\","
	         "\"query\":\"bench_load{target=\\\"d%04d\\\"}\",\"target\":{\"type\":\"Replicas\"},\"staleAfter\":"
	         "\"60s\"}]," BEHAVIOR "}}",
	         i, i, (int)interval_s, i);
	submit(b, "POST", path, "Content-Type: application/json", body);
}

// An AverageValue of 1: replicas = bench_load. It is also the cheapest for the HPA, which lists no pods for it.
static void submit_new_hpa(struct bench *b, int i)
{
	char name[NAME_BYTES], path[128], body[2048];
	put_namespace(name, i);
	snprintf(path, sizeof path, "/apis/autoscaling/v2/namespaces/%s/horizontalpodautoscalers", name);
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"name\":"
	         "\"d%04d\"},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\","
	         "\"name\":\"d%04d\"},\"minReplicas\":1,\"maxReplicas\":16,\"metrics\":[{\"type\":\"External\","
	         "\"external\":{\"metric\":{\"name\":\"bench_load\",\"selector\":{\"matchLabels\":{\"target\":"
	         "\"d%04d\"}}},\"target\":{\"type\":\"AverageValue\",\"averageValue\":\"1\"}}}]," BEHAVIOR "}}",
	         i, i, i);
	submit(b, "POST", path, "Content-Type: application/json", body);
}

// `subresource` is scale, whose spec is written, or status.
static void submit_patch(struct bench *b, int i, const char *subresource, const char *member, int64_t replicas)
{
	char name[NAME_BYTES], path[128], body[64];
	put_namespace(name, i);
	snprintf(path, sizeof path, "/apis/apps/v1/namespaces/%s/deployments/d%04d/%s", name, i, subresource);
	snprintf(body, sizeof body, "{\"%s\":{\"replicas\":%d}}", member, (int)replicas);
	submit(b, "PATCH", path, "Content-Type: application/merge-patch+json", body);
}

static void submit_policy_status(struct bench *b, int i)
{
	char name[NAME_BYTES], path[160];
	put_namespace(name, i);
	snprintf(path, sizeof path, "/apis/gpuscale.dev/v1alpha1/namespaces/%s/gpuautoscalers/d%04d/status", name, i);
	submit(b, "PATCH", path, "Content-Type: application/merge-patch+json", buf_str(&b->body));
}

static void submit_new_event(struct bench *b, int i)
{
	char name[NAME_BYTES], path[128], body[1024];
	put_namespace(name, i);
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/events", name);
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"generateName\":\"d%04d.\",\"namespace\":"
	         "\"%s\"},\"involvedObject\":{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\","
	         "\"namespace\":\"%s\",\"name\":\"d%04d\",\"uid\":\"3f1c9b3e-5a43-4d0b-9d59-0d3c7c3a%04d\"},\"type\":"
	         "\"Normal\",\"reason\":\"SuccessfulRescale\",\"firstTimestamp\":\"2026-01-01T00:00:00Z\",\"message\":"
	         "\"scaled from 2 to 3 replicas: signal load wants 3 replicas: 3 against a target of 1\",\"count\":1,"
	         "\"lastTimestamp\":\"2026-01-01T00:00:00Z\",\"source\":{\"component\":\"gpuscale\"},"
	         "\"reportingComponent\":\"gpuscale\",\"reportingInstance\":\"bench\"}",
	         i, name, name, i, i);
	submit(b, "POST", path, "Content-Type: application/json", body);
}

enum verb {
	VERB_CREATE,
	VERB_SCALE,
	VERB_POLICIES,
	VERB_HPAS,
	VERB_STATUS,
	VERB_POLICY_STATUS,
	VERB_EVENTS,
	VERB__COUNT
};
static const struct {
	const char *name;
	int n_arguments;
} verbs[] = {
        {"create", 1}, {"scale", 2}, {"policies", 2}, {"hpas", 1}, {"status", 2}, {"policy-status", 2}, {"events", 1},
};
_Static_assert(sizeof verbs / sizeof verbs[0] == VERB__COUNT, "a verb without a name");

static int run(struct bench *b, enum verb verb, int64_t n, int64_t value)
{
	if (verb == VERB_CREATE) {
		for (int i = 0; i < (int)n; i += NAMESPACE_OBJECTS)
			submit_new_namespace(b, i);
	} else { // the connection, and with it the TLS handshake, is made outside the time
		submit(b, "GET", "/version", "Accept-Language: en", "");
	}
	event_base_dispatch(b->loop);
	b->sent = 0;
	double start_s = now_s();
	for (int i = 0; i < (int)n; i++) {
		if (verb == VERB_CREATE)
			submit_new_deployment(b, i);
		else if (verb == VERB_SCALE)
			submit_patch(b, i, "scale", "spec", value);
		else if (verb == VERB_STATUS)
			submit_patch(b, i, "status", "status", value);
		else if (verb == VERB_HPAS)
			submit_new_hpa(b, i);
		else if (verb == VERB_POLICY_STATUS)
			submit_policy_status(b, i);
		else if (verb == VERB_EVENTS)
			submit_new_event(b, i);
		else
			submit_new_policy(b, i, value);
	}
	event_base_dispatch(b->loop);
	printf("seconds=%.4f requests=%lld\n", now_s() - start_s, (long long)b->sent);
	return b->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	struct err e;
	int64_t n, value = 0;
	enum verb verb = 0;
	while (argc > 3 && verb < VERB__COUNT && strcmp(argv[2], verbs[verb].name) != 0)
		verb++;
	bool has_file = verb == VERB_POLICY_STATUS;
	if (verb == VERB__COUNT || argc != 3 + verbs[verb].n_arguments ||
	    num_parse_i64(argv[3], strlen(argv[3]), 1, OBJECTS_MAX, &n, &e) < 0 ||
	    (argc == 5 && !has_file && num_parse_i64(argv[4], strlen(argv[4]), 0, 1000, &value, &e) < 0)) {
		fputs("usage: bench_kube KUBECONFIG create N | scale N REPLICAS | policies N SECONDS | hpas N | "
		      "status N REPLICAS | policy-status N FILE | events N\n",
		      stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	struct arena arena;
	arena_init(&arena, CONFIG_BYTES_MAX);
	struct k8s_config_options from = {.kubeconfig = argv[1]};
	buf_init(&b.body, BODY_BYTES_MAX);
	int rc = k8s_config_load(&arena, &from, &b.config, &e);
	if (rc == 0 && has_file)
		rc = buf_read_file(&b.body, argv[4], &e);
	b.loop = event_base_new();
	struct http_client_options options = {.loop = b.loop, .max_in_flight = CONNECTIONS};
	if (rc == 0 && b.loop && (b.http = http_client_new(&options, &e)))
		rc = run(&b, verb, n, value);
	else
		fprintf(stderr, "bench_kube: %s\n", e.msg), rc = 1;
	http_client_free(b.http);
	if (b.loop)
		event_base_free(b.loop);
	buf_done(&b.body);
	arena_done(&arena);
	return rc;
}
