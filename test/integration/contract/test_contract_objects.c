// SPDX-License-Identifier: Apache-2.0
// Goal: what we rely on in custom resources, leases, events, discovery and refusals; the same suite against the fake
// (run-fake) and the real kube-apiserver (run-real), like test_contract.c.
// Environment: CONTRACT_KUBECONFIG, CONTRACT_VIEWER_TOKEN as in test_contract.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json/json_read.h"
#include "test/integration/contract/contract_world.h"

// ---- custom resources ----

static void status_and_spec_of_a_custom_resource_are_written_apart(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], version[NAME_BYTES], body[BODY_BYTES];
	contract_new_name(c, name);
	contract_create_gpua(c, name, "status", &o); // which tries to bring a status
	assert_null(strstr(o.body, "\"desiredReplicas\""));
	assert_int_equal(contract_generation_of(&o), 1);
	contract_path_to(path, GPUAS, name, "/status");
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":3},\"spec\":{\"maxReplicas\":44}}",
	                &o);
	assert_non_null(strstr(o.body, "\"desiredReplicas\":3"));
	assert_null(strstr(o.body, "\"maxReplicas\":44"));
	assert_int_equal(contract_generation_of(&o), 1);
	contract_version_of(&o, version);
	contract_path_to(path, GPUAS, name, "");
	contract_ask_ok(c, "PATCH", path, MERGE,
	                "{\"status\":{\"desiredReplicas\":5},\"metadata\":{\"labels\":{\"a\":\"b\"}}}", &o);
	assert_non_null(strstr(o.body, "\"desiredReplicas\":3"));
	assert_int_equal(contract_generation_of(&o), 1);
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"spec\":{\"maxReplicas\":7}}", &o);
	assert_int_equal(contract_generation_of(&o), 2);
	assert_non_null(strstr(o.body, "\"desiredReplicas\":3"));
	snprintf(body, sizeof body, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"status\":{\"desiredReplicas\":4}}",
	         version);
	contract_path_to(path, GPUAS, name, "/status");
	contract_ask_refused(c, "PATCH", path, MERGE, body, 409, "the object has been modified");
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":null}}", &o);
	assert_null(strstr(o.body, "\"desiredReplicas\":"));
	contract_ask_refused(c, "PATCH", path, STRATEGIC, "{\"status\":{}}", 415, "");
}

static void status_patch_that_changes_nothing_leaves_the_version(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], before[NAME_BYTES], after[NAME_BYTES];
	contract_new_name(c, name);
	contract_create_gpua(c, name, "same", &o);
	contract_path_to(path, GPUAS, name, "/status");
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":3}}", &o);
	contract_version_of(&o, before);
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":3}}", &o);
	contract_version_of(&o, after);
	assert_string_equal(before, after);
}

static void put_without_a_version_is_refused(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES];
	contract_new_name(c, name);
	contract_create_gpua(c, name, "put", &o);
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"%s\"},"
	         "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"},"
	         "\"maxReplicas\":4,\"signals\":[{\"name\":\"q\",\"query\":\"up\",\"target\":{\"type\":\"Value\","
	         "\"value\":\"1\"}}]}}",
	         name);
	contract_ask_refused(c, "PUT", contract_path_to(path, GPUAS, name, ""), JSON, body, 422,
	                     "must be specified for an update");
}

// ---- leases, events, HPAs ----

static void lease_is_taken_by_one_of_two(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES], version[NAME_BYTES];
	static const char lease[] =
	        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":"
	        "\"%s\"%s%s%s},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,"
	        "\"leaseTransitions\":1,\"renewTime\":\"2026-01-05T09:00:00.123456Z\"}}";
	contract_new_name(c, name);
	snprintf(body, sizeof body, lease, name, "", "", "", "a");
	contract_create(c, LEASES, name, body, &o);
	contract_version_of(&o, version);
	assert_non_null(strstr(o.body, "\"renewTime\":\"2026-01-05T09:00:00.123456Z\""));
	contract_ask_refused(c, "POST", LEASES, JSON, body, 409, "already exists");
	contract_path_to(path, LEASES, name, "");
	contract_ask_refused(c, "PUT", path, JSON, body, 422, "must be specified for an update");
	snprintf(body, sizeof body, lease, name, ",\"resourceVersion\":\"", version, "\"", "b");
	contract_ask_ok(c, "PUT", path, JSON, body, &o);
	assert_non_null(strstr(o.body, "\"holderIdentity\":\"b\""));
	snprintf(body, sizeof body, lease, name, ",\"resourceVersion\":\"", version, "\"", "c");
	contract_ask_refused(c, "PUT", path, JSON, body, 409, "the object has been modified");
	snprintf(body, sizeof body, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"spec\":{\"holderIdentity\":\"c\"}}",
	         version);
	contract_ask_refused(c, "PATCH", path, MERGE, body, 409, "the object has been modified");
	contract_ask_ok(c, "GET", path, NULL, NULL, &o);
	assert_non_null(strstr(o.body, "\"holderIdentity\":\"b\""));
}

static void event_is_created_and_counted_up(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES];
	static const char event[] =
	        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"},\"involvedObject\":{\"kind\":"
	        "\"GPUAutoscaler\",\"namespace\":\"%s\",\"name\":\"%s\",\"apiVersion\":\"gpuscale.dev/v1alpha1\"},"
	        "\"reason\":\"Scaled\",\"message\":\"m\",\"type\":\"Normal\",\"count\":1,\"source\":{\"component\":"
	        "\"gpuscale\"},\"firstTimestamp\":\"2026-01-05T09:00:00Z\",\"lastTimestamp\":\"2026-01-05T09:00:00Z\"}";
	contract_new_name(c, name);
	snprintf(body, sizeof body, event, name, "default", name);
	contract_create(c, EVENTS, name, body, &o);
	contract_ask_ok(c, "PATCH", contract_path_to(path, EVENTS, name, ""), MERGE, "{\"count\":2}", &o);
	assert_non_null(strstr(o.body, "\"count\":2"));
	snprintf(path, sizeof path, EVENTS "?fieldSelector=involvedObject.name%%3D%s,reason%%3DScaled", name);
	contract_ask_ok(c, "GET", path, NULL, NULL, &o);
	assert_non_null(strstr(o.body, "\"count\":2"));
	contract_new_name(c, name);
	snprintf(body, sizeof body, event, name, "elsewhere", name);
	contract_ask_refused(c, "POST", EVENTS, JSON, body, 422, "does not match event.namespace");
	snprintf(
	        body, sizeof body,
	        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"generateName\":\"%s-\"},\"involvedObject\":{"
	        "\"namespace\":\"default\"},\"reason\":\"R\",\"type\":\"Normal\"}",
	        name);
	contract_ask_ok(c, "POST", EVENTS, JSON, body, &o);
	cJSON *root = contract_tree_of(&o);
	char made[NAME_BYTES * 2];
	contract_metadata_of(root, "name", made, sizeof made);
	cJSON_Delete(root);
	assert_int_equal(strncmp(made, name, strlen(name)), 0);
	assert_int_equal(strlen(made), strlen(name) + 1 + 5);
	contract_ask_ok(c, "DELETE", contract_path_to(path, EVENTS, made, ""), NULL, NULL, &o);
}

// ---- what there is, and who may ----

static void discovery_names_every_kind_we_use(void **state)
{
	struct contract *c = *state;
	static const struct {
		const char *group, *resource, *kind;
	} wanted[] = {
	        {"/api/v1", "pods", "Pod"},
	        {"/api/v1", "events", "Event"},
	        {"/apis/apps/v1", "deployments", "Deployment"},
	        {"/apis/apps/v1", "deployments/scale", "Scale"},
	        {"/apis/apps/v1", "statefulsets", "StatefulSet"},
	        {"/apis/apps/v1", "replicasets", "ReplicaSet"},
	        {"/apis/autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"},
	        {"/apis/coordination.k8s.io/v1", "leases", "Lease"},
	        {"/apis/gpuscale.dev/v1alpha1", "gpuautoscalers", "GPUAutoscaler"},
	        {"/apis/gpuscale.dev/v1alpha1", "gpuautoscalers/status", "GPUAutoscaler"},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		struct outcome o;
		contract_ask_ok(c, "GET", wanted[i].group, NULL, NULL, &o);
		cJSON *root = contract_tree_of(&o);
		const cJSON *item;
		bool is_found = false;
		cJSON_ArrayForEach(item, json_get(root, "resources"))
		{
			is_found = is_found || (strcmp(json_get_str(item, "name", ""), wanted[i].resource) == 0 &&
			                        strcmp(json_get_str(item, "kind", ""), wanted[i].kind) == 0 &&
			                        cJSON_IsTrue(json_get(item, "namespaced")));
		}
		cJSON_Delete(root);
		if (!is_found)
			fail_msg("%s: no %s", wanted[i].group, wanted[i].resource);
	}
	struct outcome o;
	contract_ask_ok(c, "GET", "/apis/gpuscale.dev", NULL, NULL, &o);
	assert_non_null(strstr(o.body, "\"APIGroup\""));
	assert_non_null(strstr(o.body, "\"gpuscale.dev/v1alpha1\""));
	contract_ask_refused(c, "GET", "/apis/keda.sh/v1alpha1", NULL, NULL, 404, "");
	contract_ask_refused(c, "GET", "/apis/keda.sh", NULL, NULL, 404, "");
}

static void refusal_names_the_verb_and_resource_that_a_viewer_lacks(void **state)
{
	struct contract *c = *state;
	struct harness viewer;
	const char *token_file = getenv("CONTRACT_VIEWER_TOKEN");
	if (!token_file)
		skip();
	static const struct {
		const char *method, *path, *body, *says;
	} cases[] = {
	        {"GET", GPUAS, NULL,
	         "cannot list resource \"gpuautoscalers\" in API group \"gpuscale.dev\" in the namespace \"default\""},
	        {"GET", GPUAS_ALL, NULL,
	         "cannot list resource \"gpuautoscalers\" in API group \"gpuscale.dev\" at the cluster scope"},
	        {"GET", GPUAS "?watch=true&timeoutSeconds=1", NULL,
	         "cannot watch resource \"gpuautoscalers\" in API group \"gpuscale.dev\" in the namespace \"default\""},
	        {"GET", "/api/v1" NS "pods", NULL,
	         "cannot list resource \"pods\" in API group \"\" in the namespace \"default\""},
	        {"PATCH", GPUAS "/x/status", "{}",
	         "cannot patch resource \"gpuautoscalers/status\" in API group \"gpuscale.dev\" in the namespace"},
	        {"POST", EVENTS, "{}", "cannot create resource \"events\" in API group \"\" in the namespace"},
	        {"PUT", LEASES "/x", "{}", "cannot update resource \"leases\" in API group \"coordination.k8s.io\" in"},
	        {"DELETE", LEASES "/x", NULL,
	         "cannot delete resource \"leases\" in API group \"coordination.k8s.io\" in"},
	};
	harness_start_loop(&viewer);
	viewer.config = c->h.config;
	viewer.config.token = NULL;
	viewer.config.token_file = token_file;
	harness_start_client(&viewer, 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct outcome o;
		harness_request(&viewer, cases[i].method, cases[i].path, cases[i].body ? MERGE : NULL, cases[i].body,
		                &o);
		if (o.error.code != 403 || !strstr(o.error.msg, cases[i].says))
			fail_msg("%s %s: %d %s", cases[i].method, cases[i].path, o.error.code, o.error.msg);
	}
	harness_stop(&viewer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(status_and_spec_of_a_custom_resource_are_written_apart),
	        cmocka_unit_test(status_patch_that_changes_nothing_leaves_the_version),
	        cmocka_unit_test(put_without_a_version_is_refused),
	        cmocka_unit_test(lease_is_taken_by_one_of_two),
	        cmocka_unit_test(event_is_created_and_counted_up),
	        cmocka_unit_test(discovery_names_every_kind_we_use),
	        cmocka_unit_test(refusal_names_the_verb_and_resource_that_a_viewer_lacks),
	};
	return cmocka_run_group_tests(tests, contract_setup, contract_teardown);
}
