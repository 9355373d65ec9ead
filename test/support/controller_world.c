// SPDX-License-Identifier: Apache-2.0
#include "test/support/controller_world.h"

#include <dirent.h>
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/schema/schema.h"
#include "controller/policy/managed_policy.h"
#include "controller/pool/pools.h"
#include "controller/source/policy_object.h"
#include "controller/tick/ticks.h"
#include "k8s/cache/target_store.h"
#include "k8s/capacity/fit_store.h"
#include "policies/load/policy_ref.h"
#include "policies/pool/gpu_pool.h"
#include "promql/promql_source.h"
#include "runtime/metrics/metrics.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards_private.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/query_server.h"

static struct query_reply classify(void *arg, const char *query, size_t n_together)
{
	struct world *w = arg;
	(void)n_together;
	w->n_sums += strncmp(query, "load + load", strlen("load + load")) == 0;
	return (struct query_reply){.fault = w->is_slow ? QUERY_HANGS : QUERY_ANSWERED};
}

static void open_controller(struct world *w, bool elects)
{
	struct connections *to = &w->connections;
	struct err e = {0};
	harness_start_client(&w->h, 1);
	const struct promql_source_options source = {.name = "default", .query = {.url = query_server_url(w->queries)}};
	to->loop = w->h.loop;
	to->kube_http = w->h.http;
	to->k8s = w->h.client;
	to->k8s_config = w->h.config;
	to->promql = promql_sources_new(to->loop, &to->clock, &source, 1, &e);
	to->queries = query_hub_new(to->promql);
	w->metrics = metrics_new();
	const struct controller_options options = {
	        .policies_from_cluster = true, .state_dir = w->dir, .election = elects ? &w->election : NULL};
	w->c = controller_new(to, &options, w->metrics, &e);
	if (!w->c)
		fail_msg("%s", e.msg);
	TEST_BECOMES(w->h.loop, w->c->policies.has_synced(w->c));
	struct shards_view view = {0};
	if (elects)
		TEST_BECOMES(w->h.loop, (shards_get_view(to->shards, &view), view.n_owned == view.n_shards));
}

static void close_controller(struct world *w)
{
	struct clock clock = w->connections.clock;
	controller_disconnect(w->c);
	ticks_stop(w->c->policies.ticks);
	connections_cancel(&w->connections);
	w->h.client = NULL;
	w->h.http = NULL;
	controller_free(w->c);
	shards_free(w->connections.shards);
	fit_store_free(w->connections.fits);
	target_store_free(w->connections.targets);
	query_hub_free(w->connections.queries);
	promql_sources_free(w->connections.promql);
	free(w->metrics);
	w->connections = (struct connections){.clock = clock};
}

static int start(void **state, bool elects)
{
	struct world *w = calloc(1, sizeof *w);
	harness_start(&w->h, &(struct fake_apiserver_options){.gpus = -1, .no_pods = true});
	w->queries = query_server_new(w->h.loop, classify, w);
	if (elects)
		clock_init_real(&w->connections.clock); // leases are renewed
	else
		clock_init_manual(&w->connections.clock, 1767603600000);
	ha_options_init(&w->election);
	w->election.n_shards = 2;
	w->election.leader_elect = HA_ON;
	w->election.timing =
	        (struct lease_timing){.duration_ms = 2000, .renew_deadline_ms = 1500, .retry_period_ms = 200};
	snprintf(w->dir, sizeof w->dir, "/tmp/members-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	open_controller(w, elects);
	*state = w;
	return 0;
}

void world_restart(struct world *w)
{
	close_controller(w);
	open_controller(w, false);
}

int world_setup(void **state)
{
	return start(state, false);
}

int world_setup_with_election(void **state)
{
	return start(state, true);
}

static void remove_dir(const char *path)
{
	DIR *d = opendir(path);
	char file[300];
	for (const struct dirent *f; d && (f = readdir(d));) {
		snprintf(file, sizeof file, "%s/%s", path, f->d_name);
		unlink(file);
	}
	closedir(d);
	rmdir(path);
}

int world_teardown(void **state)
{
	struct world *w = *state;
	close_controller(w);
	query_server_free(w->queries);
	harness_stop(&w->h);
	remove_dir(w->dir);
	free(w);
	return 0;
}

struct policy_ref *world_policy(const char *json, int generation, int64_t interval_ms)
{
	static struct schema_errors errors, unknown;
	struct policy_object o;
	struct policy_document document;
	struct policy_ref *ref = policy_ref_new();
	schema_errors_init(&errors, "");
	schema_errors_init(&unknown, "");
	if (policy_object_decode(json, strlen(json), &ref->arena, &o, &document, &errors, &unknown) < 0)
		fail_msg("%s: %s", errors.items[0].path, errors.items[0].message);
	policy_ref_set(ref, &document);
	ref->policy.interval_ms = interval_ms;
	ref->generation = generation;
	ref->fingerprint = o.fingerprint;
	return ref;
}

void world_put_for(struct world *w, enum policy_source source, int i, int generation, int64_t interval_ms,
                   const char *target)
{
	char json[1024], name[16];
	struct err e;
	snprintf(name, sizeof name, "p%02d", i);
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":"
	         "\"%s\",\"namespace\":\"" WORLD_SPACE "\"},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\","
	         "\"kind\":\"Deployment\",\"name\":\"%s\"},\"minReplicas\":%d,\"maxReplicas\":%d,"
	         "\"restoreReplicas\":1,%s\"signals\":[{\"name\":\"load\",\"query\":\"load%d\",\"target\":"
	         "{\"type\":\"Value\",\"value\":1},\"window\":{\"duration\":\"30s\",\"function\":\"avg\"}}]}}",
	         name, target ? target : name, 1 + 2 * generation, 2 + 2 * generation,
	         i % 3 ? "" : "\"capacity\":{\"mode\":\"Fixed\"},", i % 7);
	struct policy_ref *ref = world_policy(json, generation, interval_ms);
	struct policy_identity id = {.generation = generation, .has_status = generation == 1};
	snprintf(id.uid, sizeof id.uid, "uid-%s", name);
	assert_int_equal(
	        policy_store_put(w->c->policies.store, source, ref, source == POLICY_FROM_OBJECT ? &id : NULL, &e), 0);
}

void world_put(struct world *w, enum policy_source source, int i, int generation, int64_t interval_ms)
{
	world_put_for(w, source, i, generation, interval_ms, NULL);
}

void world_take_away(struct world *w, enum policy_source source, int i)
{
	char name[16];
	snprintf(name, sizeof name, "p%02d", i);
	policy_store_remove(w->c->policies.store, source, WORLD_SPACE, name);
}

struct managed_policy *world_member(const struct world *w, int i)
{
	char name[16];
	snprintf(name, sizeof name, "p%02d", i);
	const struct policy_entry *entry = policy_store_find(w->c->policies.store, WORLD_SPACE, name);
	return entry ? entry->bindings[0]->user : NULL;
}

struct ticks_stats world_stats(const struct world *w)
{
	struct ticks_stats s;
	ticks_get_stats(w->c->policies.ticks, &s);
	return s;
}

void world_put_pool(struct world *w, int gpus)
{
	struct pool_object *o = calloc(1, sizeof *o);
	struct err e;
	assert_non_null(o);
	arena_init(&o->arena, 1 << 20);
	o->pool = (struct gpu_pool){.name = "h100", .gpus = gpus, .turn_every_ms = 1800000};
	o->pool.entries = arena_calloc(&o->arena, 1, sizeof *o->pool.entries);
	o->pool.entries[0] =
	        (struct gpu_pool_entry){.namespace_name = WORLD_SPACE, .name = "", .gpus_per_replica = 1, .weight = 1};
	o->pool.n_entries = 1;
	o->generation = 1;
	assert_int_equal(pools_put_object(w->c->pools->pools, o, &e), 0);
}
