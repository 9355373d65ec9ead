// SPDX-License-Identifier: Apache-2.0
// What the inventory of a large cluster takes: 5,000 nodes and 50,000 pods over list and watch from a server in another
// process. Prints "rss_mib=N cpu_us=N requests=N list_s=N fit_ms=N": memory added, CPU of one change of a pod from the
// bytes of its event to the account, requests sent while changes arrive, CPU of the first lists, and CPU of one fit.
#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/inventory.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"

#define NODES       5000
#define PODS        50000
#define CHANGES     20000
#define GPUS        8 // of a node
#define WAIT_S      300
#define FITS        20
#define REQUEST_MAX 16384

// ---- the server: a process for each connection ----

static void put_node(struct buf *b, int i)
{
	buf_printf(b,
	           "{\"metadata\":{\"name\":\"node-%d\",\"uid\":\"5b2b4d5e-0000-4000-8000-%012d\",\"resourceVersion\":"
	           "\"%d\","
	           "\"labels\":{\"kubernetes.io/hostname\":\"node-%d\",\"karpenter.sh/nodepool\":\"pool-%d\","
	           "\"nvidia.com/gpu.product\":\"NVIDIA-H100-80GB-HBM3\"",
	           i, i, 1000 + i, i, i % 10);
	for (int k = 0; k < 40; k++) // as GPU and node feature discovery write them
		buf_printf(b, ",\"feature.node.kubernetes.io/cpu-cpuid.FEATURE%d\":\"true\"", k);
	buf_puts(b, "},\"managedFields\":[{\"manager\":\"kubelet\",\"fieldsV1\":{\"f:status\":{");
	for (int k = 0; k < 40; k++)
		buf_printf(b, "%s\"f:field%d\":{\".\":{},\"f:lastHeartbeatTime\":{}}", k ? "," : "", k);
	buf_printf(
	        b,
	        "}}}]},\"spec\":{\"providerID\":\"aws:///eu-west-1a/i-%017d\",\"taints\":[{\"key\":\"nvidia.com/gpu\","
	        "\"value\":\"present\",\"effect\":\"NoSchedule\"}]},\"status\":{\"capacity\":{\"cpu\":\"192\"},"
	        "\"allocatable\":{\"cpu\":\"191450m\",\"memory\":\"2113929216Ki\",\"ephemeral-storage\":"
	        "\"95551679124\","
	        "\"hugepages-1Gi\":\"0\",\"hugepages-2Mi\":\"0\",\"pods\":\"110\",\"nvidia.com/gpu\":\"%d\"},"
	        "\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":\"False\"},{\"type\":\"Ready\",\"status\":"
	        "\"True\"}],\"images\":[",
	        i, GPUS);
	for (int k = 0; k < 20; k++)
		buf_printf(b,
		           "%s{\"names\":[\"registry.example.com/team/image-%d@sha256:%064d\"],\"sizeBytes\":1234567}",
		           k ? "," : "", k, k);
	buf_puts(b, "]}}");
}

static void put_pod(struct buf *b, int i, int version)
{
	bool has_gpu = i % 2 == 0;
	buf_printf(
	        b,
	        "{\"metadata\":{\"name\":\"worker-%d-7d4b9c6f5-x%05d\",\"namespace\":\"team-%d\",\"resourceVersion\":"
	        "\"%d\",\"labels\":{\"app\":\"worker-%d\",\"pod-template-hash\":\"7d4b9c6f5\"},\"managedFields\":[{"
	        "\"manager\":\"kube-controller-manager\",\"fieldsV1\":{\"f:spec\":{",
	        i / 20, i, i % 200, version, i / 20);
	for (int k = 0; k < 30; k++)
		buf_printf(b, "%s\"f:field%d\":{\".\":{},\"f:name\":{},\"f:value\":{}}", k ? "," : "", k);
	buf_printf(b,
	           "}}}]},\"spec\":{\"nodeName\":\"node-%d\",\"containers\":[{\"name\":\"main\",\"image\":"
	           "\"registry.example.com/team/"
	           "image:1.2.3\",\"resources\":{\"limits\":{\"memory\":\"64Gi\"%s},\"requests\":"
	           "{\"cpu\":\"4\",\"memory\":\"64Gi\"%s}},\"env\":[",
	           i % NODES, has_gpu ? ",\"nvidia.com/gpu\":\"1\"" : "", has_gpu ? ",\"nvidia.com/gpu\":\"1\"" : "");
	for (int k = 0; k < 12; k++)
		buf_printf(b, "%s{\"name\":\"VARIABLE_%d\",\"value\":\"a value of ordinary length %d\"}", k ? "," : "",
		           k, k);
	buf_printf(b,
	           "],\"volumeMounts\":[{\"name\":\"token\",\"readOnly\":true,\"mountPath\":\"/var/run/secrets\"}]}],"
	           "\"volumes\":[{\"name\":\"token\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{}}]}}],"
	           "\"tolerations\":[{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"}]},\"status\":{\"phase\":"
	           "\"Running\",\"conditions\":[");
	for (int k = 0; k < 5; k++)
		buf_printf(
		        b,
		        "%s{\"type\":\"Type%d\",\"status\":\"True\",\"lastTransitionTime\":\"2026-01-05T09:00:00Z\"}",
		        k ? "," : "", k);
	buf_printf(b,
	           "],\"containerStatuses\":[{\"name\":\"main\",\"ready\":true,\"restartCount\":%d,\"imageID\":"
	           "\"registry.example.com/team/image@sha256:%064d\",\"state\":{\"running\":{\"startedAt\":"
	           "\"2026-01-05T09:00:00Z\"}}}]}}",
	           version % 7, i);
}

static bool send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static void send_page(int fd, bool is_nodes, int from)
{
	struct buf body, head;
	int total = is_nodes ? NODES : PODS, end = from + 100 < total ? from + 100 : total;
	buf_init(&body, 64 * 1024 * 1024);
	buf_init(&head, 1024);
	buf_puts(&body, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"200000\"");
	if (end < total)
		buf_printf(&body, ",\"continue\":\"%d\"", end);
	buf_puts(&body, "},\"items\":[");
	for (int i = from; i < end; i++) {
		if (i > from)
			buf_putc(&body, ',');
		if (is_nodes)
			put_node(&body, i);
		else
			put_pod(&body, i, 1000);
	}
	buf_puts(&body, "]}");
	buf_printf(&head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body.len);
	if (!send_all(fd, buf_str(&head), head.len) || !send_all(fd, buf_str(&body), body.len))
		exit(0);
	buf_done(&body);
	buf_done(&head);
}

// Streams one byte of `go` later: CHANGES events of pods, then nothing.
static void send_stream(int fd, bool is_nodes, int go)
{
	static const char head[] =
	        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct buf event, chunk;
	char byte;
	if (!send_all(fd, head, sizeof head - 1))
		exit(0);
	if (is_nodes)
		for (;;)
			pause();
	buf_init(&event, 1024 * 1024);
	buf_init(&chunk, 1024 * 1024);
	if (read(go, &byte, 1) != 1)
		exit(0);
	for (int i = 0; i < CHANGES; i++) {
		buf_reset(&event);
		buf_reset(&chunk);
		buf_puts(&event, "{\"type\":\"MODIFIED\",\"object\":");
		put_pod(&event, (i * 7) % PODS, 300000 + i);
		buf_puts(&event, "}\n");
		buf_printf(&chunk, "%zx\r\n", event.len);
		buf_put(&chunk, event.data, event.len);
		buf_puts(&chunk, "\r\n");
		if (!send_all(fd, chunk.data, chunk.len))
			exit(0);
	}
	for (;;)
		pause();
}

static void serve(int fd, int go)
{
	char text[REQUEST_MAX];
	size_t len = 0;
	for (;;) {
		ssize_t n = read(fd, text + len, sizeof text - 1 - len);
		if (n <= 0)
			exit(0);
		len += (size_t)n;
		text[len] = '\0';
		if (!strstr(text, "\r\n\r\n"))
			continue;
		if (strstr(text, "GET /apis/")) { // no dynamic resource allocation
			static const char none[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
			if (!send_all(fd, none, sizeof none - 1))
				exit(0);
			len = 0;
			continue;
		}
		bool is_nodes = strstr(text, "/api/v1/nodes?") != NULL;
		const char *more = strstr(text, "continue=");
		int from = 0;
		for (const char *at = more ? more + 9 : ""; *at >= '0' && *at <= '9'; at++)
			from = 10 * from + (*at - '0');
		if (strstr(text, "watch=true"))
			send_stream(fd, is_nodes, go);
		send_page(fd, is_nodes, from);
		len = 0;
	}
}

static void run_server(int listener, int go)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		if (fd < 0)
			exit(0);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(listener);
			serve(fd, go);
		}
		close(fd);
	}
}

// ---- measuring ----

static double cpu_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double rss_mib(void)
{
	long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%ld %ld", &pages, &resident) != 2)
		abort();
	fclose(f);
	return (double)(resident * sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

struct bench {
	struct event_base *loop;
	struct inventory *inventory;
	unsigned requests;
};

static void count_request(void *arg, const struct k8s_attempt *attempt)
{
	struct bench *b = arg;
	b->requests++;
}

static void die(const char *message)
{
	fprintf(stderr, "bench_capacity: %s\n", message);
	exit(1);
}

// Runs the loop until so many events have arrived; 0: until the account is known and both streams are open.
static void run_until(struct bench *b, uint64_t events)
{
	struct timespec start, now;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (;;) {
		struct inventory_stats stats;
		stats = inventory_get_stats(b->inventory);
		bool is_known = inventory_get_state(b->inventory, NULL) == INVENTORY_KNOWN && stats.sum.streams >= 2;
		if (is_known && stats.sum.events >= events)
			return;
		struct timeval slice = {0, 20000};
		event_base_loopexit(b->loop, &slice);
		event_base_dispatch(b->loop);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - start.tv_sec > WAIT_S)
			die("the inventory did not catch up");
	}
}

static double fit_ms(struct bench *b)
{
	static const char spec[] =
	        "{\"tolerations\":[{\"operator\":\"Exists\"}],\"nodeSelector\":{\"karpenter.sh/nodepool\":"
	        "\"pool-3\"},\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]}";
	struct capacity *c = inventory_capacity(b->inventory);
	struct replica_shape shape;
	struct fit_result fit;
	if (replica_shape_read(&shape, &c->names, RESOURCE_NEEDED, (struct json_span){spec, sizeof spec - 1}, NULL) < 0)
		die("no shape");
	double before = cpu_s();
	for (int i = 0; i < FITS; i++)
		(void)capacity_fit(c, &shape, &fit, NULL);
	double ms = (cpu_s() - before) * 1000 / FITS;
	replica_shape_done(&shape);
	// Every node has pods % NODES; half of the ten pods of every second node hold a GPU.
	if (fit.replicas <= 0 || fit.nodes != NODES)
		die("the account is wrong");
	return ms;
}

int main(void)
{
	struct bench b = {.requests = 0};
	struct err e = {0};
	int go[2], listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof address;
	char url[64];
	signal(SIGPIPE, SIG_IGN);
	if (listener < 0 || pipe(go) < 0 || bind(listener, (struct sockaddr *)&address, len) < 0 ||
	    listen(listener, 16) < 0 || getsockname(listener, (struct sockaddr *)&address, &len) < 0)
		die("no server");
	pid_t server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		run_server(listener, go[0]);
	}
	close(listener);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned)ntohs(address.sin_port));

	struct clock clock;
	clock_init_real(&clock);
	b.loop = event_base_new();
	struct k8s_config config = {.server = url, .namespace_name = "default", .source = "the benchmark"};
	struct http_client *http = http_client_new(&(struct http_client_options){.loop = b.loop}, &e);
	struct k8s_client *client = http ? k8s_client_new(&(struct k8s_client_options){.loop = b.loop,
	                                                                               .http = http,
	                                                                               .clock = &clock,
	                                                                               .config = &config,
	                                                                               .observe = count_request,
	                                                                               .observe_arg = &b},
	                                                  &e)
	                                 : NULL;
	if (!client)
		die(e.msg);
	double rss = rss_mib(), cpu = cpu_s();
	b.inventory = inventory_new(&(struct inventory_options){.client = client}, &e);
	if (!b.inventory)
		die(e.msg);
	run_until(&b, 0);
	double list_s = cpu_s() - cpu, added = rss_mib() - rss, fit = fit_ms(&b);
	unsigned before = b.requests;
	cpu = cpu_s();
	if (write(go[1], "g", 1) != 1)
		die("no changes");
	run_until(&b, CHANGES);
	double change_us = (cpu_s() - cpu) * 1e6 / CHANGES;
	printf("rss_mib=%.1f cpu_us=%.2f requests=%u list_s=%.2f fit_ms=%.2f\n", added, change_us, b.requests - before,
	       list_s, fit);
	inventory_free(b.inventory);
	k8s_client_free(client);
	http_client_free(http);
	event_base_free(b.loop);
	kill(server, SIGTERM);
	return 0;
}
