// SPDX-License-Identifier: Apache-2.0
// Goal: devices of dynamic resource allocation are counted once: those of the newest generation of a complete pool,
// that no claim holds and no taint keeps away; and what cannot be counted is an error, not a number.
#include "k8s/capacity/capacity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "k8s/capacity/capacity_groups.h"

#define CLAIMS_MAX 4

struct world {
	struct capacity *c;
	struct capacity_claim claims[CLAIMS_MAX];
	struct capacity_pod pod;
};

// Quotes are single.
static const char *to_json(const char *text, size_t *ret_len)
{
	static char json[8192];
	size_t len = strlen(text);
	assert_true(len < sizeof json);
	for (size_t i = 0; i <= len; i++)
		json[i] = text[i] == '\'' ? '"' : text[i];
	*ret_len = len;
	return json;
}

static void set_slice(struct world *w, const char *name, const char *text)
{
	size_t len;
	const char *json = to_json(text, &len);
	capacity_set_object(w->c, CAPACITY_SLICE, name, json, len);
}

static void set_class(struct world *w, const char *name, const char *text)
{
	size_t len;
	const char *json = to_json(text, &len);
	capacity_set_object(w->c, CAPACITY_CLASS, name, json, len);
}

static void set_claim(struct world *w, size_t i, const char *text)
{
	size_t len;
	const char *json = to_json(text, &len);
	capacity_set_claim(w->c, &w->claims[i], json, len);
}

static void set_node(struct world *w, const char *name)
{
	size_t len;
	const char *json = to_json(
	        "{'status':{'conditions':[{'type':'Ready','status':'True'}],'allocatable':{'cpu':8,'pods':110}}}",
	        &len);
	capacity_set_object(w->c, CAPACITY_NODE, name, json, len);
}

#define GPU(name)                                                                                                      \
	"{'name':'" name                                                                                               \
	"','attributes':{'type':{'string':'gpu'},'productName':{'string':'H100'},'uuid':{'string':'" name "'}}}"
#define SLICE(node, generation, count, devices)                                                                        \
	"{'spec':{'driver':'gpu.nvidia.com','nodeName':'" node "','pool':{'name':'" node "','generation':" generation  \
	",'resourceSliceCount':" count "},'devices':[" devices "]}}"
#define CLASS(expression, more) "{'spec':{'selectors':[{'cel':{'expression':'" expression "'}}]" more "}}"
#define EVERY_GPU               "device.driver == \\'gpu.nvidia.com\\' && device.attributes[\\'gpu.nvidia.com\\'].type == \\'gpu\\'"
#define HOLDS(device)                                                                                                  \
	"{'status':{'allocation':{'devices':{'results':[{'driver':'gpu.nvidia.com','pool':'a','device':'" device       \
	"'}]}}}}"
#define REQUEST(exactly) "{'spec':{'spec':{'devices':{'requests':[{'name':'r','exactly':{" exactly "}}]}}}}"

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	w->c = capacity_new(NULL);
	assert_non_null(w->c);
	*state = w;
	set_node(w, "a");
	set_node(w, "b");
	set_slice(w, "slice-a", SLICE("a", "1", "1", GPU("gpu-0") "," GPU("gpu-1") "," GPU("gpu-2")));
	set_slice(w, "slice-b", SLICE("b", "1", "1", GPU("gpu-0")));
	set_class(w, "gpu", CLASS(EVERY_GPU, ",'extendedResourceName':'nvidia.com/gpu'"));
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	for (size_t i = 0; i < CLAIMS_MAX; i++)
		capacity_remove_claim(w->c, &w->claims[i]);
	capacity_remove_pod(w->c, &w->pod);
	capacity_free(w->c);
	free(w);
	return 0;
}

// claim_template NULL: a pod without claims.
static int fit(struct world *w, const char *pod_spec, const char *claim_template, struct fit_result *ret_fit,
               struct err *e)
{
	struct replica_shape shape;
	size_t len;
	const char *json = to_json(pod_spec, &len);
	assert_int_equal(replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED, (struct json_span){json, len}, e),
	                 0);
	int rc = 0;
	if (claim_template) {
		json = to_json(claim_template, &len);
		rc = replica_shape_add_claim(&shape, &w->c->names, (struct json_span){json, len}, e);
	}
	rc = rc == 0 ? capacity_fit(w->c, &shape, ret_fit, e) : rc;
	replica_shape_done(&shape);
	return rc;
}

static void assert_fit(struct world *w, const char *claim_template, int64_t wanted)
{
	struct fit_result result;
	struct err e = {0};
	if (fit(w, "{'containers':[{}]}", claim_template, &result, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(result.replicas, wanted);
}

static void assert_uncounted(struct world *w, const char *claim_template, const char *message)
{
	struct fit_result result;
	struct err e = {0};
	if (fit(w, "{'containers':[{}]}", claim_template, &result, &e) == 0)
		fail_msg("%lld fit", (long long)result.replicas);
	if (!strstr(e.msg, message))
		fail_msg("%s", e.msg);
}

#define ONE REQUEST("'deviceClassName':'gpu'")
#define TWO REQUEST("'deviceClassName':'gpu','count':2")

static void devices_that_claims_hold_are_not_free(void **state)
{
	struct world *w = *state;
	assert_fit(w, ONE, 4);
	assert_fit(w, TWO, 1);
	set_claim(w, 0, HOLDS("gpu-1"));
	assert_fit(w, ONE, 3);
	set_claim(w, 1, HOLDS("gpu-1")); // a shared device
	capacity_remove_claim(w->c, &w->claims[0]);
	assert_fit(w, ONE, 3);
	set_claim(w, 1, HOLDS("gpu-2"));
	assert_fit(w, ONE, 3);
	capacity_remove_claim(w->c, &w->claims[1]);
	assert_fit(w, ONE, 4);
	set_claim(w, 2,
	          "{'status':{'allocation':{'devices':{'results':[{'driver':'gpu.nvidia.com','pool':'a','device':"
	          "'gpu-0','adminAccess':true}]}}}}");
	assert_fit(w, ONE, 4);
}

static void claims_that_wait_get_their_devices_first(void **state)
{
	struct world *w = *state;
	set_claim(w, 0, "{'spec':{'devices':{'requests':[{'exactly':{'deviceClassName':'gpu','count':2}}]}}}");
	assert_fit(w, ONE, 2);
	set_claim(w, 1, "{'spec':{'devices':{'requests':[{'exactly':{'deviceClassName':'gpu','count':9}}]}}}");
	assert_fit(w, ONE, 2); // fits nowhere
	set_claim(w, 1, "{'spec':{'devices':{'requests':[{'exactly':{'deviceClassName':'other'}}]}}}");
	assert_fit(w, ONE, 2);
}

static void only_the_newest_complete_generation_counts(void **state)
{
	struct world *w = *state;
	struct capacity_faults faults;
	set_slice(w, "slice-a2", SLICE("a", "2", "2", GPU("gpu-0")));
	assert_fit(w, ONE, 1); // the second slice is missing
	capacity_get_faults(w->c, &faults);
	assert_int_equal(faults.of[CAPACITY_FAULT_POOL_INCOMPLETE], 1);
	set_slice(w, "slice-a3", SLICE("a", "2", "2", GPU("gpu-1")));
	assert_fit(w, ONE, 3);
	capacity_remove_object(w->c, CAPACITY_SLICE, "slice-a");
	assert_fit(w, ONE, 3);
	capacity_remove_object(w->c, CAPACITY_SLICE, "slice-b");
	capacity_remove_object(w->c, CAPACITY_NODE, "b");
	assert_fit(w, ONE, 2);
	capacity_get_faults(w->c, &faults);
	assert_int_equal(faults.of[CAPACITY_FAULT_POOL_INCOMPLETE], 0);
}

static void tainted_devices_and_nodes_that_are_not_ready_do_not_count(void **state)
{
	struct world *w = *state;
	set_slice(w, "slice-b",
	          SLICE("b", "2", "1",
	                "{'name':'gpu-0','taints':[{'key':'x','effect':'NoExecute'}],'attributes':{'type':{'string':'"
	                "gpu'}}},"
	                "{'name':'gpu-1','taints':[{'key':'x','effect':'None'}],'attributes':{'type':{'string':'gpu'}}"
	                "}"));
	assert_fit(w, ONE, 4);
	capacity_set_object(w->c, CAPACITY_NODE, "a", "{}", 2);
	assert_fit(w, ONE, 1);
	capacity_remove_object(w->c, CAPACITY_NODE, "a"); // its slice stays for a while
	assert_fit(w, ONE, 1);
}

static void set_rule(struct world *w, const char *text)
{
	size_t len;
	const char *json = to_json(text, &len);
	capacity_set_object(w->c, CAPACITY_TAINT_RULE, "rule", json, len);
}

static void rule_taints_the_devices_that_match_all_of_its_criteria(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *selector;
		int64_t fit;
	} cases[] = {
	        {"{'driver':'gpu.nvidia.com','pool':'a','device':'gpu-1'}", 3},
	        {"{'driver':'gpu.nvidia.com','pool':'b'}", 3},
	        {"{'pool':'a'}", 1},
	        {"{'device':'gpu-0'}", 2},
	        {"{'driver':'gpu.amd.com'}", 4},
	        {"{'pool':'a','device':'gpu-9'}", 4},
	        {"{}", 0},   // selects every device
	        {"null", 4}, // selects none
	};
	assert_fit(w, ONE, 4);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[256];
		snprintf(text, sizeof text, "{'spec':{'deviceSelector':%s,'taint':{'key':'x','effect':'NoSchedule'}}}",
		         cases[i].selector);
		set_rule(w, text);
		assert_fit(w, ONE, cases[i].fit);
	}
	set_rule(w, "{'spec':{'deviceSelector':{},'taint':{'key':'x','effect':'None'}}}");
	assert_fit(w, ONE, 4);
	set_rule(w, "{'spec':{'deviceSelector':{},'taint':{'key':'x','effect':'NoExecute'}}}");
	struct capacity_groups g;
	assert_int_equal(capacity_groups_read(w->c, NULL, &g), 0);
	assert_true(g.items[0].free == 0 && g.items[0].unready == g.items[0].allocatable);
	capacity_groups_done(&g);
	capacity_remove_object(w->c, CAPACITY_TAINT_RULE, "rule");
	capacity_remove_object(w->c, CAPACITY_TAINT_RULE, "none");
	assert_fit(w, ONE, 4);
	set_rule(w,
	         "{'spec':{'deviceSelector':{},'taint':{'key':'x','effect':'NoExecute'}}}"); // freed with the account
}

static void extended_resource_is_served_by_devices(void **state)
{
	struct world *w = *state;
	struct fit_result result;
	struct capacity_faults faults;
	struct err e = {0};
	size_t len;
	static const char pod[] = "{'containers':[{'resources':{'limits':{'nvidia.com/gpu':1}}}]}";
	assert_int_equal(fit(w, pod, NULL, &result, &e), 0);
	assert_int_equal(result.replicas, 4);
	// The pod holds the device by a claim that the scheduler made, not by the node's allocatable amount.
	const char *json = to_json(
	        "{'spec':{'nodeName':'a','containers':[{'resources':{'requests':{'nvidia.com/gpu':1}}}]}}", &len);
	assert_true(capacity_set_pod(w->c, &w->pod, "ns", "p", json, len, 1));
	set_claim(w, 0, HOLDS("gpu-0"));
	assert_int_equal(fit(w, pod, NULL, &result, &e), 0);
	assert_int_equal(result.replicas, 3);
	capacity_get_faults(w->c, &faults);
	assert_int_equal(faults.of[CAPACITY_FAULT_NODE_OVERCOMMITTED], 0);
	// A node with a device plugin beside them.
	json = to_json("{'status':{'conditions':[{'type':'Ready','status':'True'}],'allocatable':{'cpu':8,'pods':110,"
	               "'nvidia.com/gpu':8}}}",
	               &len);
	capacity_set_object(w->c, CAPACITY_NODE, "plugin", json, len);
	assert_int_equal(fit(w, pod, NULL, &result, &e), 0);
	assert_int_equal(result.replicas, 11);
	// A waiting pod gets a device or a GPU first.
	json = to_json("{'spec':{'containers':[{'resources':{'requests':{'nvidia.com/gpu':1}}}]}}", &len);
	assert_true(capacity_set_pod(w->c, &w->pod, "ns", "p", json, len, 1));
	assert_int_equal(fit(w, pod, NULL, &result, &e), 0);
	assert_int_equal(result.replicas, 10);
}

static void requests_select_devices(void **state)
{
	struct world *w = *state;
	assert_fit(w,
	           REQUEST("'deviceClassName':'gpu','selectors':[{'cel':{'expression':'device.attributes[\\'gpu.nvidia."
	                   "com\\'].productName == \\'H100\\''}}]"),
	           4);
	assert_fit(w,
	           REQUEST("'deviceClassName':'gpu','selectors':[{'cel':{'expression':'device.attributes[\\'gpu.nvidia."
	                   "com\\'].productName == \\'A100\\''}}]"),
	           0);
	assert_fit(w, REQUEST("'deviceClassName':'gpu','adminAccess':true"), 220); // only pods limit
}

// A waiting pod with the most resources of one pod, all of them made up.
static void set_hostile(struct world *w, struct capacity_pod *pod, int number)
{
	char json[8192];
	size_t len = (size_t)snprintf(json, sizeof json, "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{");
	for (int i = 0; i < RESOURCES_MAX; i++)
		len += (size_t)snprintf(json + len, sizeof json - len, "%s\"hostile.dev/r%d-%d\":\"1\"", i ? "," : "",
		                        number, i);
	len += (size_t)snprintf(json + len, sizeof json - len, "}}}]}}");
	assert_true(len < sizeof json);
	assert_true(capacity_set_pod(w->c, pod, "hostile", "p", json, len, 1));
}

static void made_up_resources_of_pods_take_no_places_of_others(void **state)
{
	struct world *w = *state;
	struct capacity_pod pods[3] = {{0}};
	struct capacity_faults faults;
	struct fit_result result;
	struct err e = {0};
	for (int i = 0; i < 3; i++)
		set_hostile(w, &pods[i], i);
	assert_uncounted(w, REQUEST("'deviceClassName':'none'"), "no DeviceClass none");
	set_class(w, "late", CLASS(EVERY_GPU, ",'extendedResourceName':'example.dev/late'"));
	assert_fit(w, REQUEST("'deviceClassName':'late'"), 4);
	assert_int_equal(fit(w, "{'containers':[{'resources':{'limits':{'example.dev/late':1}}}]}", NULL, &result, &e),
	                 0);
	assert_int_equal(result.replicas, 4);
	// Of a node pool without nodes.
	assert_int_equal(fit(w, "{'containers':[{'resources':{'limits':{'amd.com/gpu':1}}}]}", NULL, &result, &e), 0);
	assert_int_equal(result.replicas, 0);
	capacity_get_faults(w->c, &faults);
	assert_int_equal(faults.of[CAPACITY_FAULT_POD_TOO_MANY], 2);
	for (int i = 0; i < 3; i++)
		capacity_remove_pod(w->c, &pods[i]);
	// The places end with the pods, and with the templates.
	for (int i = 3; i < 100; i++) {
		char spec[128];
		set_hostile(w, &pods[0], i);
		capacity_get_faults(w->c, &faults);
		assert_int_equal(faults.of[CAPACITY_FAULT_POD_TOO_MANY], 0);
		snprintf(spec, sizeof spec, "{'containers':[{'resources':{'limits':{'example.dev/t%d':1}}}]}", i);
		assert_int_equal(fit(w, spec, NULL, &result, &e), 0);
		capacity_remove_pod(w->c, &pods[0]);
	}
	assert_fit(w, ONE, 4);
}

static void requests_that_cannot_be_counted_are_errors(void **state)
{
	struct world *w = *state;
	assert_uncounted(w, REQUEST("'deviceClassName':'none'"), "no DeviceClass none");
	assert_uncounted(w, REQUEST("'deviceClassName':'gpu','allocationMode':'All'"), "allocationMode");
	assert_uncounted(w, REQUEST("'deviceClassName':'gpu','count':0"), "expected a number from 1");
	assert_uncounted(w, REQUEST("'deviceClassName':'gpu','capacity':{}"), "a part of a device");
	assert_uncounted(w, REQUEST("'count':1"), "expected the name of a DeviceClass");
	assert_uncounted(w, REQUEST("'deviceClassName':'gpu','selectors':[{}]"), "expected cel.expression");
	assert_uncounted(w,
	                 REQUEST("'deviceClassName':'gpu','selectors':[{'cel':{'expression':'device.attributes[\\'gpu."
	                         "nvidia.com\\'].uuid == \\'x\\''}}]"),
	                 "is unknown");
	assert_uncounted(w, "{'spec':{'spec':{'devices':{'requests':[{'firstAvailable':[{}]}]}}}}", "firstAvailable");
	set_class(w, "odd", CLASS("device.driver.startsWith(\\'gpu\\')", ""));
	assert_uncounted(w, REQUEST("'deviceClassName':'odd'"),
	                 "whether DeviceClass odd selects the devices of driver gpu.nvidia.com is unknown");
	set_class(w, "any", "{'spec':{}}");
	assert_uncounted(w,
	                 "{'spec':{'spec':{'devices':{'requests':[{'exactly':{'deviceClassName':'gpu'}},{'exactly':{'"
	                 "deviceClassName':'any'}}]}}}}",
	                 "select the same devices");
	set_slice(w, "slice-a",
	          SLICE("a", "3", "1",
	                "{'name':'mig-0','consumesCounters':[{}],'attributes':{'type':{'string':'gpu'}}}"));
	assert_uncounted(w, ONE, "partitions");
	set_slice(
	        w, "slice-a",
	        "{'spec':{'driver':'gpu.nvidia.com','allNodes':true,'pool':{'name':'a','generation':4},'devices':[" GPU(
	                "g") "]}}");
	assert_uncounted(w, ONE, "belong to no single node");
}

static void devices_are_summed_by_driver_and_model(void **state)
{
	struct world *w = *state;
	struct capacity_groups g;
	set_claim(w, 0, HOLDS("gpu-1"));
	capacity_set_object(w->c, CAPACITY_NODE, "b", "{}", 2); // not ready
	assert_int_equal(capacity_groups_read(w->c, NULL, &g), 0);
	assert_int_equal(g.n, 1);
	assert_string_equal(g.items[0].resource, "gpu.nvidia.com");
	assert_string_equal(g.items[0].model, "H100");
	assert_true(g.items[0].allocatable == 4 && g.items[0].used == 1 && g.items[0].free == 2);
	assert_true(g.items[0].unready == 1 && g.items[0].nodes == 2);
	capacity_groups_done(&g);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(devices_that_claims_hold_are_not_free),
	        TEST(claims_that_wait_get_their_devices_first),
	        TEST(only_the_newest_complete_generation_counts),
	        TEST(tainted_devices_and_nodes_that_are_not_ready_do_not_count),
	        TEST(rule_taints_the_devices_that_match_all_of_its_criteria),
	        TEST(extended_resource_is_served_by_devices),
	        TEST(requests_select_devices),
	        TEST(made_up_resources_of_pods_take_no_places_of_others),
	        TEST(requests_that_cannot_be_counted_are_errors),
	        TEST(devices_are_summed_by_driver_and_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
