// SPDX-License-Identifier: Apache-2.0
// A process with shards and nothing else: while it owns a policy, it writes to the policy's ConfigMap all the time.
// What the API server's audit log has of it is what test/e2e/run-ha judges.
//   ha-process --kubeconfig F --policies N --every MS [the flags of gpuscale run about high availability]
// The ConfigMaps are policy-0 .. in namespace default. SIGTERM ends it cleanly. Who holds shard 0, as it knows, is
// reported whenever that changes; a write that got no answer in its time, too: "gave up on POLICY COUNT".
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/process/log.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"
#include "k8s/lease/lease_private.h"
#include "runtime/options/controller_options.h"
#include "runtime/options/flag_table.h"
#include "runtime/shard/shards.h"
#include "runtime/shard/shards_private.h"

#define POLICIES_MAX 1000

struct policy {
	struct process *process;
	char name[32];
	bool is_under_way;
	unsigned long count;
};

struct process {
	struct event_base *loop;
	struct clock clock;
	struct k8s_client *client;
	struct shards *shards;
	const char *identity;
	struct policy policies[POLICIES_MAX];
	int64_t n_policies, every_ms;
	unsigned long written, failed;
	char holder[LEASE_IDENTITY_BYTES]; // of shard 0, as last reported
};

struct arguments {
	struct kube_options kube;
	struct ha_options ha;
	int64_t n_policies, every_ms;
};

// clang-format off
#define FLAGS_OF struct arguments
static const struct flag_set command = {.args = "", .about = "Writes while it owns.", .flags = (const struct flag[]){
	FLAG_I64(1, 'n', "policies", "N", n_policies, 0, POLICIES_MAX, "how many"),
	FLAG_I64(1, 'e', "every", "MS", every_ms, 1, 60000, "time between two writes"),
	FLAG_INCLUDE(&kube_flags, kube, 0),
	FLAG_INCLUDE(&ha_flags, ha, 0),
	FLAG_END}};
// clang-format on

static bool is_busy(void *arg, int32_t shard)
{
	const struct process *p = arg;
	for (int64_t i = 0; i < p->n_policies; i++) {
		const struct policy *policy = &p->policies[i];
		if (policy->is_under_way && shards_of(p->shards, "default", policy->name) == shard)
			return true;
	}
	return false;
}

static void on_written(void *arg, const struct http_response *response, const struct err *error)
{
	struct policy *policy = arg;
	struct process *p = policy->process;
	policy->is_under_way = false;
	p->written += response != NULL;
	p->failed += error != NULL;
	if (error)
		fprintf(stderr, "%s: %s\n", policy->name, error->msg);
	if (error && error->kind == ERR_TIMEOUT)
		fprintf(stderr, "gave up on %s %lu\n", policy->name, policy->count);
}

static void write_policy(struct policy *policy)
{
	struct process *p = policy->process;
	struct err e;
	char path[128], body[256];
	if (policy->is_under_way || !shards_may_write(p->shards, "default", policy->name, &e))
		return;
	snprintf(path, sizeof path, "/api/v1/namespaces/default/configmaps/%s", policy->name);
	int n = snprintf(body, sizeof body, "{\"data\":{\"count\":\"%lu\",\"writer\":\"%s\",\"shard\":\"%d\"}}",
	                 ++policy->count, p->identity, shards_of(p->shards, "default", policy->name));
	if (k8s_request(p->client, "PATCH", path, "application/merge-patch+json", body, (size_t)n, on_written, policy,
	                &e) == 0)
		policy->is_under_way = true;
	else
		fprintf(stderr, "%s: %s\n", policy->name, e.msg);
}

static void say_holder(struct process *p)
{
	const struct lease *lease = p->shards->shards[0].lease;
	const char *holder = lease->state.exists ? lease->state.record.holder : ""; // as far as known
	if (strcmp(holder, p->holder) == 0)
		return;
	snprintf(p->holder, sizeof p->holder, "%s", holder);
	fprintf(stderr, "shard 0 is held by \"%s\"\n", holder);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct process *p = arg;
	say_holder(p);
	for (int64_t i = 0; i < p->n_policies; i++)
		write_policy(&p->policies[i]);
}

static void on_shard(void *arg, int32_t shard)
{
	(void)arg;
	(void)shard;
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct process *p = arg;
	event_base_loopbreak(p->loop);
}

static int fail(const struct err *e)
{
	fprintf(stderr, "ha-process: %s\n", e->msg);
	return 1;
}

int main(int argc, char **argv)
{
	static struct process p;
	static struct arguments a = {.n_policies = 1, .every_ms = 50};
	struct arena arena;
	struct k8s_config config;
	struct err e;
	ha_options_init(&a.ha);
	struct flag_parser parser;
	flag_parser_init(&parser, &command, NULL, &a);
	flag_parser_run(&parser, argc, argv);
	signal(SIGPIPE, SIG_IGN);
	clock_init_real(&p.clock);
	arena_init(&arena, 1024 * 1024);
	p.loop = event_base_new();
	struct log *log = log_new(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_INFO, &p.clock);
	struct shards_options options_of_shards = {
	        .loop = p.loop, .clock = &p.clock, .log = log, .callbacks = {on_shard, on_shard, is_busy}, .arg = &p};
	if (k8s_config_load(&arena, &a.kube.config, &config, &e) < 0)
		return fail(&e);
	ha_options_apply(&a.ha, &config, &options_of_shards);
	p.shards = shards_new(&options_of_shards, &e);
	if (!p.shards)
		return fail(&e);
	struct http_client *http = http_client_new(&(struct http_client_options){.loop = p.loop}, &e);
	if (!http)
		return fail(&e);
	struct k8s_client_options client = {.loop = p.loop,
	                                    .http = http,
	                                    .clock = &p.clock,
	                                    .config = &config,
	                                    .timeout_ms = lease_write_timeout_ms(&a.ha.timing),
	                                    .may_write = shards_guard,
	                                    .write_term = shards_term,
	                                    .may_write_arg = p.shards};
	p.client = k8s_client_new(&client, &e);
	if (!p.client)
		return fail(&e);
	p.identity = a.ha.identity;
	p.n_policies = a.n_policies;
	p.every_ms = a.every_ms;
	for (int64_t i = 0; i < p.n_policies; i++) {
		p.policies[i].process = &p;
		snprintf(p.policies[i].name, sizeof p.policies[i].name, "policy-%d", (int)i);
	}
	struct event *tick = event_new(p.loop, -1, EV_PERSIST, on_tick, &p);
	struct event *term = evsignal_new(p.loop, SIGTERM, on_signal, &p);
	struct timeval every = {p.every_ms / 1000, p.every_ms % 1000 * 1000};
	event_add(tick, &every);
	event_add(term, NULL);
	event_base_dispatch(p.loop);
	shards_stop(p.shards);
	printf("wrote %lu, failed %lu\n", p.written, p.failed);
	event_free(tick);
	event_free(term);
	k8s_client_free(p.client);
	http_client_free(http);
	shards_free(p.shards);
	event_base_free(p.loop);
	arena_done(&arena);
	log_free(log);
	return 0;
}
