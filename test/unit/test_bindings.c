// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a policy may have several bindings. Nothing but its document, from which one is read, assumes a
// single one: each of two has its own ticks, decisions, state, conflicts, seat in a pool, reservation of room, series
// and rows, and outlives the other.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/http/http_client.h"
#include "base/http/http_server.h"
#include "base/json/json_read.h"
#include "cli/objects/cmd_describe.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/term/output.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/pool/pools.h"
#include "controller/serve/endpoints.h"
#include "controller/status/status_writer.h"
#include "policies/load/policy_ref.h"
#include "test/support/controller_world.h"
#include "test/support/http_result.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"

#define POLICY_PATH "/apis/gpuscale.dev/v1alpha1/namespaces/serving/gpuautoscalers/p00"
#define LIMIT_MS    10000

// A policy that wants at least three replicas, whatever its signals are. Its own target does not exist.
#define DOCUMENT                                                                                                       \
	"{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"p00\","         \
	"\"namespace\":\"serving\"},\"spec\":{\"scaleTargetRef\":{\"name\":\"none\"},\"minReplicas\":3,"               \
	"\"maxReplicas\":9,\"restoreReplicas\":2,\"gpus\":{\"perReplica\":1},\"capacity\":{\"mode\":\"Fixed\"},"       \
	"\"interval\":\"1m\",\"signals\":[{\"name\":\"load\",\"query\":\"load\",\"target\":{\"type\":\"Value\","       \
	"\"value\":\"1\"}}]}}"

// Returns a version of the policy with a binding for each of the Deployments, whose names are sorted.
static struct policy_ref *version(int generation, const char *const *names, size_t n)
{
	struct policy_ref *ref = world_policy(DOCUMENT, generation, 60000);
	struct scale_target *targets = arena_calloc(&ref->arena, n, sizeof *targets);
	struct binding *bindings = arena_calloc(&ref->arena, n, sizeof *bindings);
	for (size_t i = 0; i < n; i++) {
		targets[i] = (struct scale_target){"apps/v1", "Deployment", names[i], NULL};
		bindings[i] = (struct binding){.policy = &ref->policy,
		                               .target = &targets[i],
		                               .key = arena_printf(&ref->arena, "Deployment/%s", names[i])};
	}
	ref->bindings = bindings;
	ref->n_bindings = n;
	return ref;
}

// Puts the policy with bindings of Deployments a and b, of a alone, or of b alone.
static void put_bindings(struct world *w, enum policy_source source, int generation, const char *which)
{
	static const char *const names[] = {"a", "b"};
	const struct policy_entry *known = policy_store_find(w->c->policies.store, WORLD_SPACE, "p00");
	struct policy_identity id = {.generation = generation};
	struct err e;
	if (source == POLICY_FROM_OBJECT)
		id = *known->versions[source].identity;
	struct policy_ref *ref = version(generation, &names[which[0] - 'a'], strlen(which));
	if (source == POLICY_FROM_OBJECT) // the watch keeps this version, as an unchanged one
		ref->fingerprint = known->versions[source].body->fingerprint;
	assert_int_equal(
	        policy_store_put(w->c->policies.store, source, ref, source == POLICY_FROM_OBJECT ? &id : NULL, &e), 0);
}

// Returns the managed policy of the binding; NULL: there is none.
static struct managed_policy *member(const struct world *w, const char *key)
{
	for (struct stored_binding *b = NULL; (b = policy_store_next(w->c->policies.store, b));)
		if (b->binding && b->binding->key && strcmp(b->binding->key, key) == 0)
			return b->user;
	return NULL;
}

static struct managed_policy *member_a(const struct world *w)
{
	return member(w, "Deployment/a");
}

static struct managed_policy *member_b(const struct world *w)
{
	return member(w, "Deployment/b");
}

static int replicas_of(struct world *w, const char *name)
{
	struct outcome o;
	harness_get(&w->h, &(struct scale_ref){"apps/v1", "Deployment", WORLD_SPACE, name, NULL}, &o);
	assert_false(o.is_error);
	return o.scale.spec_replicas;
}

static bool is_quiet(const struct world *w)
{
	const struct ticks_stats s = world_stats(w);
	return s.in_progress + s.due == 0;
}

// Lets both bindings tick once more.
static void tick_again(struct world *w)
{
	clock_advance_ms(&w->connections.clock, 60000);
	for (size_t i = 0; i < w->c->policies.n; i++)
		ticks_ask(w->c->policies.ticks, &w->c->policies.list[i]->ticker, clock_wall_ms(&w->connections.clock));
	ticks_run(w->c->policies.ticks);
	TEST_BECOMES(w->h.loop, is_quiet(w));
}

static const struct decision *decision_of(const struct managed_policy *m)
{
	return m->reconciler->decision;
}

// Waits until the object is known, with the one target of its document.
static void await_object(struct world *w)
{
	TEST_BECOMES(w->h.loop, world_member(w, 0) && world_member(w, 0)->body && is_quiet(w));
}

static bool has_decided(const struct world *w)
{
	return w->c->policies.n == 2 && is_quiet(w) && decision_of(member_a(w)) && decision_of(member_b(w));
}

// Creates Deployment a with 1 replica and b with 5, and lets both bindings tick.
static void start(struct world *w, enum policy_source source)
{
	struct err e;
	assert_int_equal(fake_apiserver_add(w->h.server, WORLD_SPACE "/Deployment/a=1", &e), 0);
	assert_int_equal(fake_apiserver_add(w->h.server, WORLD_SPACE "/Deployment/b=5", &e), 0);
	if (source == POLICY_FROM_OBJECT) {
		if (fake_apiserver_put(w->h.server, DOCUMENT, &e) < 0)
			fail_msg("%s", e.msg);
		await_object(w);
	}
	put_bindings(w, source, 1, "ab");
	TEST_BECOMES(w->h.loop, has_decided(w));
}

// ---- ticks ----

static void bindings_of_a_policy_tick_and_decide_apart(void **state)
{
	struct world *w = *state;
	start(w, POLICY_FROM_FILE);
	const struct managed_policy *a = member_a(w), *b = member_b(w);
	assert_int_equal(w->c->policies.n, 2);
	assert_ptr_not_equal(a->reconciler, b->reconciler);
	assert_ptr_equal(a->body, b->body); // one version
	assert_int_equal(decision_of(a)->current, 1);
	assert_int_equal(decision_of(a)->desired, 3);
	assert_int_equal(decision_of(b)->current, 5);
	assert_int_equal(decision_of(b)->desired, 5);
	assert_int_equal(replicas_of(w, "a"), 3);
	assert_int_equal(replicas_of(w, "b"), 5);
	assert_true(a->reconciler->last_scale_ms >= 0);
	assert_int_equal(b->reconciler->last_scale_ms, -1);
	assert_int_equal(a->awaits, AWAITS_NOTHING);
	assert_string_equal(policy_awaits_names[a->awaits], "Nothing");
}

static void put_deployment(struct world *w, const char *name)
{
	char json[700];
	struct err e;
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"namespace\":\"serving\","
	         "\"name\":\"%s\"},\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},"
	         "\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
	         "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}}}",
	         name, name, name);
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

// Both want four replicas more, and four GPUs are free: what one has ordered is not free for the other.
static void each_binding_has_its_own_reservation_of_room(void **state)
{
	static const char node[] = "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{"
	                           "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
	                           "\"allocatable\":{\"cpu\":\"64\",\"memory\":\"64Gi\",\"pods\":\"110\","
	                           "\"nvidia.com/gpu\":\"4\"}}}";
	struct world *w = *state;
	struct err e;
	if (fake_apiserver_put(w->h.server, node, &e) < 0)
		fail_msg("%s", e.msg);
	put_deployment(w, "a");
	put_deployment(w, "b");
	clock_init_manual(&w->connections.clock, 10000); // of the samples, each 7 times the target
	controller_check_clock(w->c);
	put_bindings(w, POLICY_FROM_FILE, 1, "ab");
	TEST_BECOMES(w->h.loop, has_decided(w));
	assert_int_equal(replicas_of(w, "a") + replicas_of(w, "b"), 3 + 3 + 4);
	const struct decision *a = decision_of(member_a(w)), *b = decision_of(member_b(w));
	assert_true((a->reason == REASON_CAPACITY_LIMITED) != (b->reason == REASON_CAPACITY_LIMITED));
}

// ---- one of them leaves ----

static void binding_that_leaves_ends_alone(void **state)
{
	struct world *w = *state;
	start(w, POLICY_FROM_FILE);
	const struct managed_policy *b = member_b(w);
	const struct reconciler *reconciler = b->reconciler;
	put_bindings(w, POLICY_FROM_FILE, 2, "b");
	TEST_BECOMES(w->h.loop, w->c->policies.n == 1 && is_quiet(w) && b->body->generation == 2);
	assert_null(member_a(w));
	assert_ptr_equal(member_b(w), b);
	assert_ptr_equal(b->reconciler, reconciler); // with its state
	assert_int_equal(replicas_of(w, "a"), 3);    // only a deleted policy restores its replicas
	put_bindings(w, POLICY_FROM_FILE, 3, "ab");
	TEST_BECOMES(w->h.loop, w->c->policies.n == 2 && is_quiet(w));
	assert_ptr_equal(member_b(w), b);
	assert_int_equal(member_a(w)->reconciler->last_scale_ms, -1); // a new one
}

static void deleted_policy_restores_the_replicas_of_each_binding(void **state)
{
	struct world *w = *state;
	struct outcome o;
	start(w, POLICY_FROM_OBJECT);
	harness_request(&w->h, "DELETE", POLICY_PATH, NULL, NULL, &o);
	assert_false(o.is_error);
	TEST_BECOMES(w->h.loop, replicas_of(w, "a") == 2 && replicas_of(w, "b") == 2);
	assert_int_equal(w->c->policies.n, 0);
}

// ---- conflicts ----

static void other_autoscaler_stops_the_binding_of_its_target_alone(void **state)
{
	static const char hpa[] =
	        "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":"
	        "{\"namespace\":\"serving\",\"name\":\"h\"},\"spec\":{\"maxReplicas\":9,"
	        "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":"
	        "\"b\"}}}";
	struct world *w = *state;
	struct outcome o;
	struct err e;
	char why[RENDER_SENTENCE_BYTES];
	start(w, POLICY_FROM_FILE);
	if (fake_apiserver_put(w->h.server, hpa, &e) < 0)
		fail_msg("%s", e.msg);
	TEST_BECOMES(w->h.loop, member_b(w)->awaits == AWAITS_AUTOSCALER);
	assert_null(member_b(w)->reconciler);
	assert_int_equal(policy_awaits_explain(member_b(w), why, sizeof why), STATUS_CONFLICT);
	assert_string_equal(why, "HorizontalPodAutoscaler serving/h drives the target");
	assert_int_equal(member_a(w)->awaits, AWAITS_NOTHING);
	assert_non_null(member_a(w)->reconciler);
	harness_request(&w->h, "DELETE", "/apis/autoscaling/v1/namespaces/serving/horizontalpodautoscalers/h", NULL,
	                NULL, &o);
	assert_false(o.is_error);
	TEST_BECOMES(w->h.loop, member_b(w)->reconciler);
}

static void other_policy_may_own_the_target_of_one_binding(void **state)
{
	struct world *w = *state;
	char why[RENDER_SENTENCE_BYTES];
	start(w, POLICY_FROM_FILE);
	world_put_for(w, POLICY_FROM_OBJECT, 1, 0, 60000, "b"); // an object ranks before a file
	TEST_BECOMES(w->h.loop, member_b(w)->awaits == AWAITS_POLICY);
	assert_null(member_b(w)->reconciler);
	policy_awaits_explain(member_b(w), why, sizeof why);
	assert_string_equal(why, "policy serving/p01 has the target Deployment/b");
	assert_int_equal(member_a(w)->awaits, AWAITS_NOTHING);
	assert_non_null(member_a(w)->reconciler);
	assert_ptr_equal(policy_sync_next_idle(&w->c->sync, NULL), member_b(w));
	world_take_away(w, POLICY_FROM_OBJECT, 1);
	TEST_BECOMES(w->h.loop, member_b(w)->reconciler);
}

// ---- pools ----

static void each_binding_is_a_member_of_the_pool(void **state)
{
	struct world *w = *state;
	struct pool_summary pools[POOLS_MAX];
	struct pool_member_summary m;
	world_put_pool(w, 6);
	start(w, POLICY_FROM_FILE);
	tick_again(w);
	const struct pool_membership *a = member_a(w)->membership;
	assert_int_equal(a->pool->n, 2);
	assert_int_equal(decision_of(member_a(w))->reason, REASON_POOL_LIMITED);
	assert_int_equal(replicas_of(w, "a"), 1); // b has the other five GPUs
	assert_int_equal(policy_pools_summarize(w->c->pools, pools), 1);
	pools_get_member(pools[0].pool, 1, &m);
	assert_string_equal(m.namespace_name, WORLD_SPACE);
	assert_string_equal(m.name, "p00/Deployment/b");
	assert_int_equal(m.used_gpus, 5);
	put_bindings(w, POLICY_FROM_FILE, 2, "a");
	TEST_BECOMES(w->h.loop, replicas_of(w, "a") == 3);
	assert_int_equal(a->pool->n, 1);
}

// ---- saved state ----

static bool has_file(const struct world *w, const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", w->dir, name);
	return access(path, F_OK) == 0;
}

static void each_binding_has_a_state_file_and_restores_it(void **state)
{
	struct world *w = *state;
	start(w, POLICY_FROM_FILE);
	const int64_t scaled_ms = member_a(w)->reconciler->last_scale_ms;
	tick_again(w); // writes what the scale has left behind
	TEST_BECOMES(w->h.loop, has_file(w, "serving_p00_Deployment_a.state"));
	TEST_BECOMES(w->h.loop, has_file(w, "serving_p00_Deployment_b.state"));
	clock_advance_ms(&w->connections.clock, 1000);
	world_restart(w);
	put_bindings(w, POLICY_FROM_FILE, 1, "ab");
	TEST_BECOMES(w->h.loop, has_decided(w));
	assert_int_equal(member_a(w)->reconciler->last_scale_ms, scaled_ms);
	assert_int_equal(member_b(w)->reconciler->last_scale_ms, -1);
	put_bindings(w, POLICY_FROM_FILE, 2, "b");
	TEST_BECOMES(w->h.loop, !has_file(w, "serving_p00_Deployment_a.state"));
	assert_true(has_file(w, "serving_p00_Deployment_b.state"));
}

// ---- status of the object ----

// Reads the object as `gpuscale get` does. Returns its view, which lives in *views.
static const struct policy_view *view_object(struct world *w, struct policy_views *views)
{
	static struct outcome o;
	struct err e;
	harness_request(&w->h, "GET", POLICY_PATH, NULL, NULL, &o);
	assert_false(o.is_error);
	cJSON *tree = json_read(o.body, strlen(o.body), &e);
	if (!tree)
		fail_msg("%s", e.msg);
	policy_views_init(views, OBJECT_POLICY);
	if (policy_views_add(views, tree, &e) < 0)
		fail_msg("%s", e.msg);
	cJSON_Delete(tree);
	return &views->items[0];
}

static size_t count_targets(struct world *w)
{
	struct policy_views views;
	size_t n = view_object(w, &views)->n_targets;
	policy_views_done(&views);
	return n;
}

static bool has_both_replicas(struct world *w)
{
	struct policy_views views;
	const struct policy_view *p = view_object(w, &views);
	bool has = p->n_targets == 2 && p->targets[0].status.current == 3 && p->targets[1].status.current == 5;
	policy_views_done(&views);
	return has;
}

static void assert_shows(const char *text, const char *const *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strstr(text, parts[i]))
			fail_msg("\"%s\" is missing in:\n%s", parts[i], text);
}

static void status_has_an_entry_for_each_binding(void **state)
{
	static const char *const rows[] = {"p00    Deployment/a   3     9     3         3", //
	                                   "p00    Deployment/b   3     9     5         5"};
	static const char *const details[] = {
	        "Generation:       1, in force\nTarget:           Deployment/a\n"
	        "Replicas:         3 current / 3 desired",
	        "Target:           Deployment/b\nReplicas:         5 current / 5 desired"};
	struct world *w = *state;
	struct policy_views views;
	struct buf out;
	start(w, POLICY_FROM_OBJECT);
	tick_again(w); // the status of the scale
	TEST_BECOMES(w->h.loop, has_both_replicas(w));

	const struct policy_view *p = view_object(w, &views);
	assert_int_equal(p->status.n_conditions, 0); // of the version with one target
	assert_true(p->targets[0].status.n_conditions > 0);
	buf_init(&out, 65536);
	policy_render_list(&out, &views, NULL, OUTPUT_TABLE, true, false, 1767603600000);
	assert_shows(buf_str(&out), rows, sizeof rows / sizeof rows[0]);
	buf_reset(&out);
	policy_render_describe(&out, p, NULL, "", 1767603600000);
	assert_shows(buf_str(&out), details, sizeof details / sizeof details[0]);
	buf_reset(&out);
	policy_render_top(&out, &views, NULL, OUTPUT_JSON, false, true, 1767603600000);
	assert_non_null(strstr(buf_str(&out), "\"target\": \"Deployment/a\""));
	assert_non_null(strstr(buf_str(&out), "\"target\": \"Deployment/b\""));
	buf_done(&out);
	policy_views_done(&views);

	put_bindings(w, POLICY_FROM_OBJECT, 1, "b");
	TEST_BECOMES(w->h.loop, count_targets(w) == 1);
	view_object(w, &views);
	assert_string_equal(views.items[0].targets[0].target_name, "b");
	policy_views_done(&views);
}

// If the process dies in the middle of the first scale, the next one compares with these replicas.
static void first_scale_is_preceded_by_the_entry_of_its_binding(void **state)
{
	struct world *w = *state;
	struct policy_views views;
	struct err e;
	assert_int_equal(fake_apiserver_add(w->h.server, WORLD_SPACE "/Deployment/a=1", &e), 0);
	assert_int_equal(fake_apiserver_put(w->h.server, DOCUMENT, &e), 0);
	await_object(w);
	fake_apiserver_fail(
	        w->h.server,
	        &(struct fake_fault){.next = 1, .hang = true, .verb = "patch", .resource = "deployments/scale"});
	put_bindings(w, POLICY_FROM_OBJECT, 1, "a");
	TEST_BECOMES(w->h.loop,
	             member_a(w)->reconciler && reconciler_phase(member_a(w)->reconciler) == TICK_PHASE_WRITE);
	const struct policy_view *p = view_object(w, &views);
	assert_false(p->status.current_set);
	assert_int_equal(p->n_targets, 1);
	assert_true(p->targets[0].status.current_set);
	assert_int_equal(p->targets[0].status.current, 1);
	policy_views_done(&views);
}

static bool has_writes(const struct world *w)
{
	struct status_writer_stats s;
	status_writer_get_stats(w->c->sync.status_env.writer, &s);
	return s.waiting + s.in_flight > 0;
}

static void entry_is_removed_after_the_patch_in_flight(void **state)
{
	struct world *w = *state;
	start(w, POLICY_FROM_OBJECT);
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 1, // that of the scale of a
	                                                      .delay_ms = 200,
	                                                      .verb = "patch",
	                                                      .resource = "gpuautoscalers/status"});
	tick_again(w);
	assert_true(has_writes(w));
	put_bindings(w, POLICY_FROM_OBJECT, 1, "b");
	TEST_BECOMES(w->h.loop, !has_writes(w));
	assert_int_equal(count_targets(w), 1);
}

static void each_binding_restores_its_entry_of_the_status(void **state)
{
	struct world *w = *state;
	start(w, POLICY_FROM_OBJECT);
	const int64_t scaled_ms = member_a(w)->reconciler->last_scale_ms;
	tick_again(w);
	TEST_BECOMES(w->h.loop, has_both_replicas(w));
	clock_advance_ms(&w->connections.clock, 1000);
	world_restart(w);
	await_object(w);
	put_bindings(w, POLICY_FROM_OBJECT, 1, "ab");
	TEST_BECOMES(w->h.loop, has_decided(w));
	assert_int_equal(member_a(w)->reconciler->last_scale_ms / 1000, scaled_ms / 1000);
	assert_int_equal(member_b(w)->reconciler->last_scale_ms, -1);
	assert_true(has_both_replicas(w));
}

// ---- endpoints ----

struct pages {
	struct http_server *server;
	struct http_client *client;
};

static void open_pages(struct world *w, struct pages *p)
{
	struct err e;
	p->server = http_server_new(&(struct http_server_options){.loop = w->h.loop, .listen = "127.0.0.1:0"}, &e);
	p->client = http_client_new(&(struct http_client_options){.loop = w->h.loop}, &e);
	assert_true(p->server && p->client);
	assert_int_equal(endpoints_add(p->server, w->c, &e), 0);
}

static void close_pages(struct pages *p)
{
	http_client_free(p->client);
	http_server_free(p->server);
}

static void assert_page_shows(struct world *w, const struct pages *p, const char *path, const char *const *parts,
                              size_t n)
{
	char url[160];
	struct http_result r = {0};
	snprintf(url, sizeof url, "http://127.0.0.1:%d%s", http_server_port(p->server), path);
	assert_int_equal(
	        http_result_of(p->client, w->h.loop, &(struct http_request){.method = "GET", .url = url}, &r, LIMIT_MS),
	        1);
	assert_int_equal(r.status, 200);
	assert_shows(r.body, parts, n);
	http_result_done(&r);
}

#define PAGE(w, p, path, ...)                                                                                          \
	assert_page_shows((w), (p), (path), (const char *const[]){__VA_ARGS__},                                        \
	                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void pages_show_each_binding(void **state)
{
	struct world *w = *state;
	struct pages p;
	start(w, POLICY_FROM_FILE);
	open_pages(w, &p);
	PAGE(w, &p, "/metrics",
	     "gpuscale_desired_replicas{namespace=\"serving\",policy=\"p00\",target=\"Deployment/a\"} 3\n",
	     "gpuscale_desired_replicas{namespace=\"serving\",policy=\"p00\",target=\"Deployment/b\"} 5\n",
	     "gpuscale_policies 1\n");
	PAGE(w, &p, "/debug/decisions?policy=serving/p00",
	     "\"namespace\":\"serving\",\"name\":\"p00\",\"target\":\"Deployment/a\",\"phase\":\"Idle\"",
	     "\"namespace\":\"serving\",\"name\":\"p00\",\"target\":\"Deployment/b\",\"phase\":\"Idle\"");
	PAGE(w, &p, "/api/v1/overview", "\"name\":\"p00\",\"key\":\"Deployment/a\"",
	     "\"name\":\"p00\",\"key\":\"Deployment/b\"");
	PAGE(w, &p, "/api/v1/policy?policy=serving/p00/Deployment/b", "\"key\":\"Deployment/b\"",
	     "\"currentReplicas\":5");
	close_pages(&p);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(bindings_of_a_policy_tick_and_decide_apart),
	        TEST(each_binding_has_its_own_reservation_of_room),
	        TEST(binding_that_leaves_ends_alone),
	        TEST(deleted_policy_restores_the_replicas_of_each_binding),
	        TEST(other_autoscaler_stops_the_binding_of_its_target_alone),
	        TEST(other_policy_may_own_the_target_of_one_binding),
	        TEST(each_binding_is_a_member_of_the_pool),
	        TEST(each_binding_has_a_state_file_and_restores_it),
	        TEST(status_has_an_entry_for_each_binding),
	        TEST(first_scale_is_preceded_by_the_entry_of_its_binding),
	        TEST(entry_is_removed_after_the_patch_in_flight),
	        TEST(each_binding_restores_its_entry_of_the_status),
	        TEST(pages_show_each_binding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
