// SPDX-License-Identifier: Apache-2.0
// Goal: the account of capacity follows the cluster by list and watch, sends nothing while nothing changes, and reports
// when it cannot be right: rights are missing, or a watch fails.
#include "k8s/capacity/inventory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/cache/watch.h"
#include "k8s/capacity/capacity.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

#define WAIT_MS 60000

struct world {
	struct harness h;
	struct inventory *inventory;
	int changes;
};

static void on_change(void *arg)
{
	struct world *w = arg;
	w->changes++;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	*state = w;
	harness_start(&w->h, NULL);
	harness_start_client(&w->h, 1);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	inventory_free(w->inventory);
	harness_stop(&w->h);
	free(w);
	return 0;
}

static void open_inventory(struct world *w)
{
	struct err e = {0};
	w->inventory = inventory_new(&(struct inventory_options){w->h.client, on_change, w}, &e);
	if (!w->inventory)
		fail_msg("%s", e.msg);
}

static void put(struct world *w, const char *json)
{
	struct err e = {0};
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

static void put_node(struct world *w, const char *name, int gpus)
{
	char json[512];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"},\"status\":{\"conditions\":[{"
	         "\"type\":\"Ready\",\"status\":\"True\"}],\"allocatable\":{\"pods\":\"110\",\"nvidia.com/"
	         "gpu\":\"%d\"}}}",
	         name, gpus);
	put(w, json);
}

// node "": none
static void put_pod(struct world *w, const char *ns, const char *name, const char *node, int gpus, const char *phase)
{
	char json[512];
	snprintf(
	        json, sizeof json,
	        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"},\"spec\":{"
	        "\"nodeName\":\"%s\",\"containers\":[{\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"%d\"}}}]},"
	        "\"status\":{\"phase\":\"%s\"}}",
	        ns, name, node, gpus, phase);
	put(w, json);
}

static void delete (struct world *w, const char *path)
{
	struct outcome o;
	harness_request(&w->h, "DELETE", path, NULL, NULL, &o);
	assert_false(o.is_error);
}

// How many pods of one GPU fit.
static int64_t fit(struct world *w)
{
	static const char spec[] = "{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]}";
	struct capacity *c = inventory_capacity(w->inventory);
	struct replica_shape shape;
	struct fit_result result;
	assert_int_equal(
	        replica_shape_read(&shape, &c->names, RESOURCE_NEEDED, (struct json_span){spec, sizeof spec - 1}, NULL),
	        0);
	assert_int_equal(capacity_fit(c, &shape, &result, NULL), 0);
	replica_shape_done(&shape);
	return result.replicas;
}

static void wait_fit(struct world *w, int64_t wanted)
{
	int64_t end = test_now_ms() + WAIT_MS;
	while (inventory_get_state(w->inventory, NULL) != INVENTORY_KNOWN || fit(w) != wanted) {
		if (test_now_ms() > end)
			fail_msg("state %d, %lld fit, wanted %lld", (int)inventory_get_state(w->inventory, NULL),
			         (long long)fit(w), (long long)wanted);
		test_loop_for(w->h.loop, 5);
	}
}

static void account_follows_nodes_and_pods(void **state)
{
	struct world *w = *state;
	put_node(w, "a", 8);
	put_pod(w, "x", "p", "a", 3, "Running");
	put_pod(w, "y", "p", "b", 2, "Running"); // its node comes later
	put_pod(w, "y", "done", "a", 5, "Succeeded");
	open_inventory(w);
	assert_int_equal(inventory_get_state(w->inventory, NULL), INVENTORY_UNSYNCED);
	wait_fit(w, 5);
	assert_true(w->changes >= 2);
	put_node(w, "b", 4);
	wait_fit(w, 7);
	put_pod(w, "x", "p", "a", 3, "Failed");
	wait_fit(w, 10);
	put_pod(w, "x", "waiting", "", 4, "Pending");
	wait_fit(w, 6);
	delete (w, "/api/v1/namespaces/x/pods/waiting");
	delete (w, "/api/v1/nodes/a");
	wait_fit(w, 2);
	delete (w, "/api/v1/namespaces/y/pods/p");
	wait_fit(w, 4);
	put_node(w, "b", 6); // a device plugin reports more
	wait_fit(w, 6);
	struct inventory_stats stats;
	stats = inventory_get_stats(w->inventory);
	assert_int_equal(stats.nodes, 1);
	assert_int_equal(stats.pods, 0);
	assert_int_equal(stats.sum.watches, 6);
}

static void account_is_the_same_after_a_new_list(void **state)
{
	struct world *w = *state;
	struct inventory_stats stats;
	put_node(w, "a", 8);
	put_node(w, "gone", 8);
	put_pod(w, "x", "p", "a", 3, "Running");
	open_inventory(w);
	wait_fit(w, 13);
	fake_apiserver_drop_streams(w->h.server, false);
	delete (w, "/api/v1/nodes/gone");
	delete (w, "/api/v1/namespaces/x/pods/p");
	fake_apiserver_compact(w->h.server);
	wait_fit(w, 8);
	stats = inventory_get_stats(w->inventory);
	assert_true(stats.sum.lists >= 4);
}

static void inventory_sends_no_request_for_a_change(void **state)
{
	struct world *w = *state;
	struct fake_counts before, after;
	put_node(w, "a", 8);
	open_inventory(w);
	wait_fit(w, 8);
	int64_t end = test_now_ms() + WAIT_MS;
	struct inventory_stats stats = {0};
	while (stats.sum.streams < 6 && test_now_ms() < end) {
		test_loop_for(w->h.loop, 5);
		stats = inventory_get_stats(w->inventory);
	}
	test_loop_for(w->h.loop, 50);
	fake_apiserver_get_counts(w->h.server, &before);
	put_pod(w, "x", "p", "a", 3, "Running");
	wait_fit(w, 5);
	test_loop_for(w->h.loop, 50);
	fake_apiserver_get_counts(w->h.server, &after);
	assert_int_equal(after.total, before.total);
}

static void put_slice(struct world *w, const char *name, const char *node, int generation)
{
	char json[512];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"%s\"},"
	         "\"spec\":{\"driver\":\"gpu.example.dev\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\","
	         "\"generation\":%d,"
	         "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"gpu-0\"},{\"name\":\"gpu-1\"}]}}",
	         name, node, node, generation);
	put(w, json);
}

static void devices_are_followed_where_the_cluster_has_them(void **state)
{
	struct world *w = *state;
	put_node(w, "a", 0);
	put_slice(w, "slice", "a", 1);
	put(w,
	    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"gpu\"},\"spec\":{"
	    "\"extendedResourceName\":\"nvidia.com/gpu\",\"selectors\":[{\"cel\":{\"expression\":\"device.driver == "
	    "'gpu.example.dev'\"}}]}}");
	open_inventory(w);
	wait_fit(w, 2);
	put(w, "{\"apiVersion\":\"resource.k8s.io/"
	       "v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"c\",\"namespace\":"
	       "\"x\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"driver\":\"gpu.example.dev\",\"pool\":"
	       "\"a\","
	       "\"device\":\"gpu-1\"}]}}}}");
	wait_fit(w, 1);
	put(w,
	    "{\"apiVersion\":\"resource.k8s.io/v1beta2\",\"kind\":\"DeviceTaintRule\",\"metadata\":{\"name\":\"bad\"},"
	    "\"spec\":{\"deviceSelector\":{\"driver\":\"gpu.example.dev\",\"pool\":\"a\",\"device\":\"gpu-0\"},"
	    "\"taint\":{\"key\":\"bad\",\"effect\":\"NoSchedule\"}}}");
	wait_fit(w, 0);
	delete (w, "/apis/resource.k8s.io/v1beta2/devicetaintrules/bad");
	wait_fit(w, 1);
	put_slice(w, "newer", "a", 2);
	delete (w, "/apis/resource.k8s.io/v1/namespaces/x/resourceclaims/c");
	wait_fit(w, 2);
	delete (w, "/apis/resource.k8s.io/v1/resourceslices/newer");
	delete (w, "/apis/resource.k8s.io/v1/resourceslices/slice");
	wait_fit(w, 0);
	put_slice(w, "slice", "a", 3);
	wait_fit(w, 2);
	delete (w, "/apis/resource.k8s.io/v1/deviceclasses/gpu");
	wait_fit(w, 0);
}

static void cluster_without_devices_is_known(void **state)
{
	struct world *w = *state;
	struct inventory_stats stats;
	put_node(w, "a", 8);
	fake_apiserver_serve_group(w->h.server, "resource.k8s.io", false);
	open_inventory(w);
	wait_fit(w, 8);
	stats = inventory_get_stats(w->inventory);
	assert_int_equal(stats.sum.watches, 2);
}

static void cluster_without_taint_rules_is_known(void **state)
{
	struct world *w = *state;
	struct inventory_stats stats;
	put_node(w, "a", 0);
	fake_apiserver_fail(
	        w->h.server,
	        &(struct fake_fault){.next = 1, .status = 404, .match = "GET /apis/resource.k8s.io/v1beta2"});
	open_inventory(w);
	wait_fit(w, 0);
	stats = inventory_get_stats(w->inventory);
	assert_int_equal(stats.sum.watches, 5);
}

// etcd stores a pod in a short form: its JSON may exceed what a watch reads.
static void pod_that_is_too_large_is_left_out_alone(void **state)
{
	struct world *w = *state;
	struct buf b;
	put_node(w, "a", 8);
	put_pod(w, "x", "p", "a", 3, "Running");
	buf_init(&b, 4 * (size_t)K8S_WATCH_OBJECT_BYTES_MAX);
	buf_puts(&b, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"hostile\",\"name\":\"p\","
	             "\"annotations\":{\"a\":\"");
	while (b.len < K8S_WATCH_OBJECT_BYTES_MAX)
		buf_puts(&b, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	buf_puts(&b, "\"}},\"spec\":{\"containers\":[{}]}}");
	put(w, buf_str(&b));
	buf_done(&b);
	open_inventory(w); // it is in the list
	wait_fit(w, 5);
	put_pod(w, "x", "q", "a", 1, "Running");
	wait_fit(w, 4);
	assert_int_equal(inventory_get_state(w->inventory, NULL), INVENTORY_KNOWN);
}

static void missing_rights_are_reported_until_they_are_granted(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	put_node(w, "a", 8);
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 1, .status = 403, .resource = "nodes"});
	open_inventory(w);
	int64_t end = test_now_ms() + WAIT_MS;
	while (inventory_get_state(w->inventory, &e) != INVENTORY_BROKEN && test_now_ms() < end)
		test_loop_for(w->h.loop, 5);
	assert_int_equal(e.kind, ERR_AUTH);
	assert_int_equal(e.code, 403);
	assert_non_null(strstr(e.msg, "/api/v1/nodes"));
	wait_fit(w, 8); // the next attempt succeeds
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(account_follows_nodes_and_pods),          TEST(account_is_the_same_after_a_new_list),
	        TEST(inventory_sends_no_request_for_a_change), TEST(devices_are_followed_where_the_cluster_has_them),
	        TEST(cluster_without_taint_rules_is_known),    TEST(cluster_without_devices_is_known),
	        TEST(pod_that_is_too_large_is_left_out_alone), TEST(missing_rights_are_reported_until_they_are_granted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
