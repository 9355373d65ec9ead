// SPDX-License-Identifier: Apache-2.0
// Goal: what a pod requests is counted as the scheduler counts it: containers, init containers, sidecars, requests of
// the whole pod, overhead, limits without requests; and an invalid amount is reported.
#include "base/err.h"
#include "k8s/capacity/pod_requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "k8s/capacity/replica_shape.h"
#include "k8s/capacity/resource_names.h"
#include "k8s/client/accelerators.h"

// "cpu=1500 nvidia.com/gpu=2 ", in the order of the names' first use.
static int read_spec(const char *single_quoted, char out[512])
{
	struct resource_names names;
	struct resource_vector v;
	struct pod_spec spec;
	char json[2048];
	size_t at = 0, len = strlen(single_quoted);
	assert_true(len < sizeof json);
	for (size_t i = 0; i <= len; i++)
		json[i] = single_quoted[i] == '\'' ? '"' : single_quoted[i];
	assert_true(json_span_is_whole((struct json_span){json, len}));
	assert_int_equal(resource_names_init(&names), 0);
	pod_spec_read((struct json_span){json, len}, &spec);
	int faults = pod_requests_read(&names, RESOURCE_REQUESTED, &spec, &v);
	out[0] = '\0';
	for (size_t id = 0; id < names.n; id++) {
		if (resource_vector_has(&v, (int)id))
			at += (size_t)snprintf(out + at, 512 - at, "%s=%lld ", names.names[id],
			                       (long long)resource_vector_get(&v, (int)id));
	}
	resource_names_done(&names);
	return faults;
}

#define REQ(x)  "{'resources':{'requests':{" x "}}}"
#define LIM(x)  "{'resources':{'limits':{" x "}}}"
#define SIDE(x) "{'restartPolicy':'Always','resources':{'requests':{" x "}}}"

static void requests_follow_the_formula_of_the_scheduler(void **state)
{
	// clang-format off
	static const struct {
		const char *name, *spec, *wanted;
		int faults;
	} rows[] = {
		{"no container requests anything", "{'containers':[{}]}", "", 0},
		{"containers add up", "{'containers':[" REQ("'cpu':'500m','nvidia.com/gpu':'1'") "," REQ("'cpu':1,'nvidia.com/gpu':2") "]}", "cpu=1500 nvidia.com/gpu=3 ", 0},
		{"a limit without a request is requested", "{'containers':[" LIM("'nvidia.com/gpu':8") "]}", "nvidia.com/gpu=8 ", 0},
		{"a request ranks before the limit", "{'containers':[{'resources':{'limits':{'cpu':4},'requests':{'cpu':1}}}]}", "cpu=1000 ", 0},
		{"a smaller init container changes nothing", "{'initContainers':[" REQ("'cpu':1") "],'containers':[" REQ("'cpu':2") "]}", "cpu=2000 ", 0},
		{"a larger init container counts alone", "{'initContainers':[" REQ("'cpu':3") "," REQ("'cpu':5") "],'containers':[" REQ("'cpu':2") "]}", "cpu=5000 ", 0},
		{"the larger counts for each resource", "{'initContainers':[" REQ("'cpu':9,'memory':'1Ki'") "],'containers':[" REQ("'cpu':2,'memory':'1Mi'") "]}", "cpu=9000 memory=1048576 ", 0},
		{"only an init container needs the GPU", "{'initContainers':[" REQ("'nvidia.com/gpu':1") "],'containers':[{}]}", "nvidia.com/gpu=1 ", 0},
		{"a sidecar adds to the containers", "{'initContainers':[" SIDE("'cpu':1") "],'containers':[" REQ("'cpu':2") "]}", "cpu=3000 ", 0},
		{"a sidecar runs beside later init containers", "{'initContainers':[" SIDE("'cpu':2") "," REQ("'cpu':5") "],'containers':[" REQ("'cpu':4") "]}", "cpu=7000 ", 0},
		{"a sidecar does not run beside earlier ones", "{'initContainers':[" REQ("'cpu':5") "," SIDE("'cpu':2") "],'containers':[" REQ("'cpu':1") "]}", "cpu=5000 ", 0},
		{"several sidecars start one after the other", "{'initContainers':[" SIDE("'cpu':1") "," REQ("'cpu':1") "," SIDE("'cpu':3") "," REQ("'cpu':4") "],'containers':[" REQ("'cpu':1") "]}", "cpu=8000 ", 0},
		{"overhead comes on top", "{'overhead':{'cpu':'250m','memory':'64Mi'},'containers':[" REQ("'cpu':1") "]}", "cpu=1250 memory=67108864 ", 0},
		{"overhead comes on top of an init container", "{'overhead':{'cpu':1},'initContainers':[" REQ("'cpu':5") "],'containers':[" REQ("'cpu':1") "]}", "cpu=6000 ", 0},
		{"requests of the pod replace those of containers", "{'resources':{'requests':{'cpu':2,'memory':'1Gi'}},'containers':[" REQ("'cpu':500,'nvidia.com/gpu':1") "]}", "cpu=2000 memory=1073741824 nvidia.com/gpu=1 ", 0},
		{"a pod cannot request GPUs as a whole", "{'resources':{'requests':{'nvidia.com/gpu':5}},'containers':[" REQ("'nvidia.com/gpu':1") "]}", "nvidia.com/gpu=1 ", 0},
		{"limits of the pod are requested where nothing is", "{'resources':{'limits':{'cpu':4,'memory':'1Ki'}},'containers':[" REQ("'cpu':1") "]}", "cpu=1000 memory=1024 ", 0},
		{"overhead comes on top of requests of the pod", "{'overhead':{'cpu':1},'resources':{'requests':{'cpu':2}},'containers':[{}]}", "cpu=3000 ", 0},
		{"huge pages of the pod", "{'resources':{'requests':{'hugepages-2Mi':'4Mi'}},'containers':[{}]}", "hugepages-2Mi=4194304 ", 0},
		{"fractions of a CPU are exact", "{'containers':[" REQ("'cpu':'0.7'") "," REQ("'cpu':'0.1'") "," REQ("'cpu':'100m'") "]}", "cpu=900 ", 0},
		{"less than a thousandth of a CPU rounds up", "{'containers':[" REQ("'cpu':'100u'") "]}", "cpu=1 ", 0},
		{"null lists are empty", "{'initContainers':null,'containers':null,'overhead':null,'resources':null}", "", 0},
		{"a negative amount", "{'containers':[" REQ("'nvidia.com/gpu':-3,'cpu':1") "]}", "cpu=1000 ", RESOURCE_FAULT_NEGATIVE},
		{"an impossible number of GPUs", "{'containers':[" REQ("'nvidia.com/gpu':'9e18'") "]}", "", RESOURCE_FAULT_HUGE},
		{"an amount that is not a quantity", "{'containers':[" REQ("'nvidia.com/gpu':'many','cpu':[1]") "]}", "", RESOURCE_FAULT_UNREADABLE},
		{"a sum that is too large", "{'containers':[" REQ("'memory':'8Pi'") "," REQ("'memory':'8Pi'") "]}", "memory=9007199254740992 ", RESOURCE_FAULT_HUGE},
	};
	// clang-format on
	char got[512];
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int faults = read_spec(rows[i].spec, got);
		if (strcmp(got, rows[i].wanted) != 0 || faults != rows[i].faults)
			fail_msg("%s: got \"%s\" with faults %d, wanted \"%s\" with %d", rows[i].name, got, faults,
			         rows[i].wanted, rows[i].faults);
	}
}

static void more_resources_than_the_ceiling_are_reported(void **state)
{
	char json[8192] = "{'containers':[{'resources':{'requests':{", got[512];
	struct resource_names names;
	struct resource_vector v;
	struct pod_spec spec;
	size_t at = strlen(json);
	for (int i = 0; i < RESOURCES_MAX + 1; i++)
		at += (size_t)snprintf(json + at, sizeof json - at, "%s'example.dev/r%d':1", i ? "," : "", i);
	at += (size_t)snprintf(json + at, sizeof json - at, "}}}]}");
	for (size_t i = 0; i < at; i++)
		json[i] = json[i] == '\'' ? '"' : json[i];
	assert_int_equal(resource_names_init(&names), 0);
	pod_spec_read((struct json_span){json, at}, &spec);
	assert_int_equal(pod_requests_read(&names, RESOURCE_REQUESTED, &spec, &v), RESOURCE_FAULT_TOO_MANY);
	assert_int_equal(v.n, RESOURCES_MAX);
	resource_names_done(&names);
	assert_int_equal(read_spec("{'containers':[{}]}", got), 0);
}

static void names_of_a_cluster_have_a_ceiling(void **state)
{
	struct resource_names names;
	char name[64];
	assert_int_equal(resource_names_init(&names), 0);
	for (size_t i = RESOURCE__COUNT; i < RESOURCE_NAMES_MAX; i++) {
		snprintf(name, sizeof name, "example.dev/r%zu", i);
		assert_int_equal(resource_names_add(&names, name, RESOURCE_OFFERED), i);
	}
	assert_int_equal(resource_names_add(&names, "example.dev/one-more", RESOURCE_OFFERED), -1);
	assert_int_equal(resource_names_add(&names, "cpu", RESOURCE_OFFERED), RESOURCE_CPU);
	assert_int_equal(resource_names_find(&names, "example.dev/one-more"), -1);
	resource_names_done(&names);
}

// A tenant's pods may request any name, and many of them.
static void names_that_pods_request_leave_room_for_those_of_nodes(void **state)
{
	struct resource_names names;
	struct resource_vector v = {.n = 0};
	struct buf b;
	assert_int_equal(resource_names_init(&names), 0);
	buf_init(&b, 1024 * 1024);
	buf_putc(&b, '{');
	for (int i = 0; i < 20000; i++)
		buf_printf(&b, "%s\"example.dev/r%d\":\"1\"", i ? "," : "", i);
	buf_putc(&b, '}');
	struct json_span map = {buf_str(&b), b.len};
	assert_int_equal(resource_vector_read(&names, RESOURCE_REQUESTED, map, &v), RESOURCE_FAULT_TOO_MANY);
	size_t n = RESOURCE__COUNT + RESOURCE_NAMES_REQUESTED_MAX;
	assert_int_equal(names.n, n);
	assert_int_equal(resource_names_add(&names, "nvidia.com/gpu", RESOURCE_REQUESTED), -1);
	assert_int_equal(resource_names_add(&names, "nvidia.com/gpu", RESOURCE_OFFERED), n);
	assert_int_equal(resource_names_add(&names, "nvidia.com/gpu", RESOURCE_REQUESTED), n);
	assert_int_equal(resource_names_add(&names, "amd.com/gpu", RESOURCE_NEEDED), n + 1);
	resource_names_done(&names);
	buf_done(&b);
}

static void resources_are_classified_by_name(void **state)
{
	assert_true(resource_is_extended("nvidia.com/gpu"));
	assert_true(resource_is_extended("deviceclass.resource.kubernetes.io/gpu"));
	assert_false(resource_is_extended("cpu"));
	assert_false(resource_is_extended("attachable.kubernetes.io/x"));
	assert_true(resource_is_accelerator("nvidia.com/gpu"));
	assert_true(resource_is_accelerator("nvidia.com/mig-1g.5gb"));
	assert_true(resource_is_accelerator("nvidia.com/gpu.shared"));
	assert_false(resource_is_accelerator("nvidia.com/gpu-driver"));
	assert_false(resource_is_accelerator("rdma/hca"));
	assert_true(resource_is_whole_gpu("nvidia.com/gpu"));
	assert_false(resource_is_whole_gpu("nvidia.com/mig-1g.5gb"));
	assert_false(resource_is_whole_gpu("nvidia.com/gpu.shared"));
}

// 0: unknown
static void replica_has_gpus_where_it_requests_whole_ones_only(void **state)
{
	static const struct {
		const char *limits;
		int gpus;
	} rows[] = {
	        // clang-format off
		{"\"nvidia.com/gpu\": 4, \"cpu\": 8",                      4},
		{"\"nvidia.com/gpu\": 1, \"amd.com/gpu\": 2",              3},
		{"\"cpu\": 8",                                             0},
		{"\"nvidia.com/mig-1g.5gb\": 1",                           0},
		{"\"nvidia.com/gpu\": 1, \"nvidia.com/mig-1g.5gb\": 1",    0},
		{"\"nvidia.com/gpu\": 1, \"nvidia.com/gpumem\": 4000",     0},
		{"\"deviceclass.resource.kubernetes.io/gpu.nvidia.com\": 2", 2},
		{"\"deviceclass.resource.kubernetes.io/nic\": 2",          0},
	        // clang-format on
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct resource_names names;
		struct replica_shape shape;
		struct err e;
		char spec[256];
		int len = snprintf(spec, sizeof spec, "{\"containers\": [{\"resources\": {\"limits\": {%s}}}]}",
		                   rows[i].limits);
		assert_int_equal(resource_names_init(&names), 0);
		assert_int_equal(
		        replica_shape_read(&shape, &names, RESOURCE_NEEDED, (struct json_span){spec, (size_t)len}, &e),
		        0);
		if (replica_shape_gpus(&shape, &names) != rows[i].gpus)
			fail_msg("%s: %d GPUs", rows[i].limits, replica_shape_gpus(&shape, &names));
		replica_shape_done(&shape);
		resource_names_done(&names);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(requests_follow_the_formula_of_the_scheduler),
	        cmocka_unit_test(more_resources_than_the_ceiling_are_reported),
	        cmocka_unit_test(names_of_a_cluster_have_a_ceiling),
	        cmocka_unit_test(names_that_pods_request_leave_room_for_those_of_nodes),
	        cmocka_unit_test(resources_are_classified_by_name),
	        cmocka_unit_test(replica_has_gpus_where_it_requests_whole_ones_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
