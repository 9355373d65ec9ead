// SPDX-License-Identifier: Apache-2.0
// Goal: policies of the (fake) API server reach the store when they are applied, edited, broken and deleted; a status
// write changes nothing; changes during a gap of the watch are found; a missing CRD is retried.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/process/log.h"
#include "controller/source/object_watch.h"
#include "controller/source/policy_store.h"
#include "controller/source/policy_watch.h"
#include "policies/load/policy_ref.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

#define ALL  "/apis/gpuscale.dev/v1alpha1/namespaces/serving/gpuautoscalers"
#define WAIT 60000

struct fixture {
	struct harness h;
	struct policy_store *store;
	struct policy_watch *watch;
	struct log *log;
	int news, removed, synced;
	bool last_deleted;
};

static void on_change(void *arg, struct stored_binding *b)
{
	struct fixture *f = arg;
	(void)b;
	f->news++;
}

static void on_remove(void *arg, struct stored_binding *b, bool deleted)
{
	struct fixture *f = arg;
	(void)b;
	f->removed++;
	f->last_deleted = deleted;
}

static void on_synced(void *arg)
{
	struct fixture *f = arg;
	f->synced++;
}

static void watch(struct fixture *f, const char *namespace_name)
{
	struct err e;
	struct policy_watch_options o = {.client = f->h.client,
	                                 .namespace_name = namespace_name,
	                                 .store = f->store,
	                                 .log = f->log,
	                                 .on_synced = on_synced,
	                                 .arg = f,
	                                 .source = POLICY_FROM_OBJECT};
	f->watch = policy_watch_new(&o, &e);
	assert_non_null(f->watch);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct policy_listener listener = {on_change, on_remove, f};
	harness_start(&f->h, NULL);
	harness_start_client(&f->h, 1);
	f->store = policy_store_new(&listener);
	f->log = log_new(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_ERROR, &f->h.clock);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	policy_watch_free(f->watch);
	policy_store_free(f->store);
	harness_stop(&f->h);
	log_free(f->log);
	free(f);
	return 0;
}

static void request(struct fixture *f, const char *method, const char *path, const char *type, const char *body)
{
	struct outcome o = {0};
	harness_request(&f->h, method, path, type, body, &o);
	assert_false(o.is_error);
}

static void create(struct fixture *f, const char *name, const char *max)
{
	char body[1024];
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"%s\","
	         "\"namespace\":\"serving\"},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":"
	         "\"Deployment\",\"name\":\"%s\"},\"maxReplicas\":%s,\"signals\":[{\"name\":\"q\",\"query\":\"up\","
	         "\"target\":{\"type\":\"Value\",\"value\":\"1\"}}]}}",
	         name, name, max);
	request(f, "POST", ALL, "application/json", body);
}

static void patch(struct fixture *f, const char *name, const char *body)
{
	char path[256];
	snprintf(path, sizeof path, ALL "/%s", name);
	request(f, "PATCH", path, "application/merge-patch+json", body);
}

static void delete (struct fixture *f, const char *name)
{
	char path[256];
	snprintf(path, sizeof path, ALL "/%s", name);
	request(f, "DELETE", path, NULL, NULL);
}

static int32_t max_of(struct fixture *f, const char *name)
{
	const struct policy_entry *e = policy_store_find(f->store, "serving", name);
	return e && e->body ? e->body->policy.max_replicas : -1;
}

static const char *watch_error(struct fixture *f)
{
	const char *error = f->watch->objects->error;
	return error ? error : "";
}

// ---- what becomes of objects ----

static void existing_and_new_policies_are_stored(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	assert_int_equal(max_of(f, "a"), 4);
	create(f, "b", "5");
	assert_true(test_loop_until(f->h.loop, &f->news, 2, WAIT));
	assert_int_equal(max_of(f, "b"), 5);
	patch(f, "a", "{\"spec\":{\"maxReplicas\":9}}");
	assert_true(test_loop_until(f->h.loop, &f->news, 3, WAIT));
	assert_int_equal(max_of(f, "a"), 9);
	const struct policy_entry *e = policy_store_find(f->store, "serving", "a");
	assert_true(e->versions[POLICY_FROM_OBJECT].identity->uid[0] != '\0');
	assert_true(e->versions[POLICY_FROM_OBJECT].identity->created_ms > 0);
	assert_int_equal(e->body->generation, e->versions[POLICY_FROM_OBJECT].identity->generation);
}

static void status_write_does_not_change_the_policy(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	const struct policy_entry *e = policy_store_find(f->store, "serving", "a");
	const struct policy_ref *before = e->body;
	assert_false(e->versions[POLICY_FROM_OBJECT].identity->has_status);
	request(f, "PATCH", ALL "/a/status", "application/merge-patch+json",
	        "{\"status\":{\"currentReplicas\":3,\"desiredReplicas\":3}}");
	TEST_BECOMES(f->h.loop, e->versions[POLICY_FROM_OBJECT].identity->has_status);
	test_loop_for(f->h.loop, 100);
	assert_ptr_equal(e->body, before);
	assert_int_equal(f->news, 1);
	assert_true(e->versions[POLICY_FROM_OBJECT].identity->has_status);
}

static void annotation_takes_effect(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	watch(f, "serving");
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	patch(f, "a", "{\"metadata\":{\"annotations\":{\"gpuscale.dev/paused\":\"true\"}}}");
	assert_true(test_loop_until(f->h.loop, &f->news, 2, WAIT));
	assert_true(policy_store_find(f->store, "serving", "a")->body->policy.paused);
	patch(f, "a", "{\"metadata\":{\"annotations\":{\"gpuscale.dev/paused\":null}}}");
	assert_true(test_loop_until(f->h.loop, &f->news, 3, WAIT));
	assert_false(policy_store_find(f->store, "serving", "a")->body->policy.paused);
}

// The fake takes any object, as a server does under an older CRD.
static void invalid_object_leaves_the_last_valid_version_in_force(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	create(f, "never", "\"many\"");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	assert_int_equal(max_of(f, "never"), -1);
	assert_non_null(strstr(policy_entry_error(policy_store_find(f->store, "serving", "never")),
	                       "spec.maxReplicas: must be a whole number, found \"many\""));
	patch(f, "a", "{\"spec\":{\"maxReplicas\":\"many\"}}");
	assert_true(test_loop_until(f->h.loop, &f->news, 3, WAIT));
	assert_int_equal(max_of(f, "a"), 4);
	assert_true(policy_entry_error(policy_store_find(f->store, "serving", "a"))[0]);
	patch(f, "a", "{\"spec\":{\"maxReplicas\":6}}");
	assert_true(test_loop_until(f->h.loop, &f->news, 4, WAIT));
	assert_int_equal(max_of(f, "a"), 6);
	assert_string_equal(policy_entry_error(policy_store_find(f->store, "serving", "a")), "");
}

// Nested deeper than we read: no tree for us, but not gone. Taken for deleted, its target would get its
// restoreReplicas.
static void object_that_cannot_be_decoded_is_kept(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	create(f, "b", "5");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	patch(f, "a",
	      "{\"metadata\":{\"annotations\":{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]"
	      "]]]]]]]"
	      "]]]]]]]]}}}");
	assert_true(test_loop_until(f->h.loop, &f->news, 3, WAIT));
	const struct policy_entry *e = policy_store_find(f->store, "serving", "a");
	assert_int_equal(max_of(f, "a"), 4);
	assert_non_null(strstr(policy_entry_error(e), "nested"));
	fake_apiserver_mute(f->h.server, true);
	delete (f, "b");
	fake_apiserver_compact(f->h.server);
	fake_apiserver_mute(f->h.server, false);
	fake_apiserver_drop_streams(f->h.server, false);
	assert_true(test_loop_until(f->h.loop, &f->synced, 2, WAIT)); // a new list
	assert_int_equal(f->removed, 1);
	assert_int_equal(max_of(f, "a"), 4);
	assert_null(policy_store_find(f->store, "serving", "b"));
	delete (f, "a");
	assert_true(test_loop_until(f->h.loop, &f->removed, 2, WAIT));
	assert_null(policy_store_find(f->store, "serving", "a"));
}

static void unknown_field_is_ignored(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	patch(f, "a", "{\"spec\":{\"maxReplicas\":7,\"fromTheFuture\":{\"x\":1}}}");
	assert_true(test_loop_until(f->h.loop, &f->news, 2, WAIT));
	assert_int_equal(max_of(f, "a"), 7);
	assert_string_equal(policy_entry_error(policy_store_find(f->store, "serving", "a")), "");
}

static void deleted_object_is_removed(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	delete (f, "a");
	assert_true(test_loop_until(f->h.loop, &f->removed, 1, WAIT));
	assert_true(f->last_deleted);
	assert_null(policy_store_find(f->store, "serving", "a"));
}

// ---- what becomes of the watch ----

static void changes_during_a_watch_gap_are_found(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	create(f, "b", "4");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	const struct policy_ref *same = policy_store_find(f->store, "serving", "b")->body;
	fake_apiserver_mute(f->h.server, true);
	delete (f, "a");
	create(f, "c", "8");
	fake_apiserver_compact(f->h.server);
	fake_apiserver_mute(f->h.server, false);
	fake_apiserver_drop_streams(f->h.server, false);
	assert_true(test_loop_until(f->h.loop, &f->synced, 2, WAIT)); // a new list
	assert_null(policy_store_find(f->store, "serving", "a"));
	assert_int_equal(max_of(f, "c"), 8);
	assert_ptr_equal(policy_store_find(f->store, "serving", "b")->body, same);
}

// A stream that sends nothing: the API server resumed it from a version that a restored etcd does not have yet.
static void policy_that_the_server_denies_is_removed_without_an_event(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	create(f, "b", "4");
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	const struct policy_ref *same = policy_store_find(f->store, "serving", "b")->body;
	fake_apiserver_mute(f->h.server, true);
	delete (f, "a");
	object_watch_verify(f->watch->objects, "serving", "b");
	object_watch_verify(f->watch->objects, "serving", "never-existed");
	object_watch_verify(f->watch->objects, "serving", "a");
	assert_true(test_loop_until(f->h.loop, &f->removed, 1, WAIT));
	assert_true(f->last_deleted);
	assert_null(policy_store_find(f->store, "serving", "a"));
	test_loop_for(f->h.loop, 200);
	assert_ptr_equal(policy_store_find(f->store, "serving", "b")->body, same);
	assert_int_equal(f->removed, 1);
}

static void missing_crd_is_reported_and_retried(void **state)
{
	struct fixture *f = *state;
	create(f, "a", "4");
	fake_apiserver_serve_group(f->h.server, "gpuscale.dev", false);
	watch(f, NULL);
	assert_true(test_loop_until(f->h.loop, &f->synced, 1, WAIT));
	assert_non_null(strstr(watch_error(f), "gpuscale crd | kubectl apply -f -"));
	assert_int_equal(max_of(f, "a"), -1);
	fake_apiserver_serve_group(f->h.server, "gpuscale.dev", true);
	assert_true(test_loop_until(f->h.loop, &f->synced, 2, WAIT));
	for (int i = 0; i < 600 && watch_error(f)[0]; i++) // until the stream has stood for a while
		test_loop_for(f->h.loop, 100);
	assert_string_equal(watch_error(f), "");
	assert_int_equal(max_of(f, "a"), 4);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(existing_and_new_policies_are_stored),
	        T(status_write_does_not_change_the_policy),
	        T(annotation_takes_effect),
	        T(invalid_object_leaves_the_last_valid_version_in_force),
	        T(object_that_cannot_be_decoded_is_kept),
	        T(unknown_field_is_ignored),
	        T(deleted_object_is_removed),
	        T(changes_during_a_watch_gap_are_found),
	        T(policy_that_the_server_denies_is_removed_without_an_event),
	        T(missing_crd_is_reported_and_retried),
	};
	return cmocka_run_group_tests_name("policy_watch", tests, NULL, NULL);
}
