// SPDX-License-Identifier: Apache-2.0
// Goal: what we rely on in lists and watches; the same suite against the fake
// (run-fake) and the real kube-apiserver (run-real), like test_contract.c. Streams are asked to end after some seconds
// (timeoutSeconds), and read as one body. Where that was too short for a machine that is held up, a longer one is asked
// for.
// Environment: CONTRACT_KUBECONFIG, CONTRACT_VIEWER_TOKEN as in test_contract.c.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json/json_read.h"
#include "base/num.h"
#include "test/integration/contract/contract_world.h"

#define EVENTS_MAX 32
#define LONGEST_S  30

struct seen {
	char type[16], name[NAME_BYTES], version[NAME_BYTES], kind[64];
	int code; // of an ERROR
};

static size_t read_events(const struct outcome *o, struct seen seen[EVENTS_MAX])
{
	size_t n = 0;
	for (const char *line = o->body; *line; n++) {
		size_t len = strcspn(line, "\n");
		struct err e = {0};
		cJSON *root = json_read(line, len, &e);
		if (!root)
			fail_msg("%s in %.300s", e.msg, line);
		assert_true(n < EVENTS_MAX);
		const cJSON *object = json_get(root, "object");
		int64_t code = 0;
		seen[n] = (struct seen){0};
		snprintf(seen[n].type, sizeof seen[n].type, "%s", json_get_str(root, "type", ""));
		snprintf(seen[n].kind, sizeof seen[n].kind, "%s", json_get_str(object, "kind", ""));
		contract_metadata_of(object, "name", seen[n].name, NAME_BYTES);
		contract_metadata_of(object, "resourceVersion", seen[n].version, NAME_BYTES);
		json_get_i64(object, "code", 0, 999, &code, NULL);
		seen[n].code = (int)code;
		cJSON_Delete(root);
		line += len + (line[len] == '\n');
	}
	return n;
}

static void list_version(struct contract *c, const char *collection, char out[NAME_BYTES])
{
	char path[PATH_BYTES];
	struct outcome o;
	snprintf(path, sizeof path, "%s?limit=1", collection);
	contract_ask_ok(c, "GET", path, NULL, NULL, &o);
	cJSON *root = json_read(o.body, strlen(o.body), NULL);
	contract_metadata_of(root, "resourceVersion", out, NAME_BYTES);
	cJSON_Delete(root);
	assert_true(out[0] != '\0');
}

// wanted: so many events; fewer come only when there are no more.
static size_t watch(struct contract *c, const char *collection, const char *query, size_t wanted,
                    struct seen seen[EVENTS_MAX])
{
	char path[PATH_BYTES];
	struct outcome o;
	size_t n = 0;
	for (int seconds = 1; n < wanted && seconds <= LONGEST_S; seconds *= 4) {
		snprintf(path, sizeof path, "%s?watch=true&timeoutSeconds=%d&%s", collection, seconds, query);
		contract_ask_ok(c, "GET", path, NULL, NULL, &o);
		n = read_events(&o, seen);
	}
	return n;
}

// ---- lists ----

static void all_pages_of_a_list_have_the_version_of_the_first(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], first[NAME_BYTES], second[NAME_BYTES], next[1024];
	for (int i = 0; i < 3; i++) {
		contract_new_name(c, name);
		contract_create_gpua(c, name, c->id, &o);
	}
	snprintf(path, sizeof path, GPUAS "?limit=2&labelSelector=run%%3D%s", c->id);
	contract_ask_ok(c, "GET", path, NULL, NULL, &o);
	cJSON *root = contract_tree_of(&o);
	contract_metadata_of(root, "resourceVersion", first, sizeof first);
	contract_metadata_of(root, "continue", next, sizeof next);
	assert_int_equal(cJSON_GetArraySize(json_get(root, "items")), 2);
	assert_string_equal(json_get_str(root, "kind", ""), "GPUAutoscalerList");
	cJSON_Delete(root);
	assert_true(next[0] != '\0');
	contract_new_name(c, name); // the version moves on
	contract_create_gpua(c, name, "other", &o);
	snprintf(path, sizeof path, GPUAS "?limit=2&labelSelector=run%%3D%s&continue=%.200s", c->id, next);
	contract_ask_ok(c, "GET", path, NULL, NULL, &o);
	root = contract_tree_of(&o);
	contract_metadata_of(root, "resourceVersion", second, sizeof second);
	contract_metadata_of(root, "continue", next, sizeof next);
	assert_int_equal(cJSON_GetArraySize(json_get(root, "items")), 1);
	cJSON_Delete(root);
	assert_string_equal(first, second);
	assert_string_equal(next, "");
	contract_ask_refused(c, "GET", GPUAS "?limit=2&continue=nonsense", NULL, NULL, 400,
	                     "continue key is not valid");
}

static void list_is_chosen_by_field_and_label(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES];
	contract_new_name(c, name);
	contract_create_gpua(c, name, "chosen", &o);
	static const struct {
		const char *selector;
		int n;
	} cases[] = {
	        {"labelSelector=run%3Dchosen,run!%3Dx", 1}, {"labelSelector=run%3Dchosen,!run", 0},
	        {"labelSelector=run%3Dchosen,run", 1},      {"labelSelector=run%3Dchosen,run!%3Dchosen", 0},
	        {"labelSelector=nothing%3Dat-all", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(path, sizeof path, GPUAS "?fieldSelector=metadata.name%%3D%s&%s", name, cases[i].selector);
		contract_ask_ok(c, "GET", path, NULL, NULL, &o);
		cJSON *root = contract_tree_of(&o);
		if (cJSON_GetArraySize(json_get(root, "items")) != cases[i].n)
			fail_msg("%s: %.300s", cases[i].selector, o.body);
		cJSON_Delete(root);
	}
	contract_ask_refused(c, "GET", GPUAS "?fieldSelector=spec.minReplicas%3D1", NULL, NULL, 400,
	                     "field label not supported");
}

// A decoder of a list's items must not rely on their kind.
static void items_of_built_in_kinds_do_not_say_their_kind(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES];
	contract_new_name(c, name);
	snprintf(
	        body, sizeof body,
	        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"%s\"},\"spec\":"
	        "{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15}}",
	        name);
	contract_create(c, LEASES, name, body, &o);
	snprintf(path, sizeof path, LEASES "?fieldSelector=metadata.name%%3D%s", name);
	contract_ask_ok(c, "GET", path, NULL, NULL, &o);
	cJSON *root = contract_tree_of(&o);
	assert_string_equal(json_get_str(root, "kind", ""), "LeaseList");
	assert_int_equal(cJSON_GetArraySize(json_get(root, "items")), 1);
	assert_null(json_get(cJSON_GetArrayItem(json_get(root, "items"), 0), "kind"));
	cJSON_Delete(root);
	contract_new_name(c, name);
	contract_create_gpua(c, name, "kind", &o);
	snprintf(path, sizeof path, GPUAS "?fieldSelector=metadata.name%%3D%s", name);
	contract_ask_ok(c, "GET", path, NULL, NULL, &o);
	root = contract_tree_of(&o);
	const cJSON *item = cJSON_GetArrayItem(json_get(root, "items"), 0);
	assert_string_equal(json_get_str(item, "kind", ""), "GPUAutoscaler");
	assert_string_equal(json_get_str(item, "apiVersion", ""), "gpuscale.dev/v1alpha1");
	cJSON_Delete(root);
}

// ---- watches ----

static void watch_from_a_version_reports_later_changes_in_order(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], path[PATH_BYTES], query[PATH_BYTES], from[NAME_BYTES];
	list_version(c, GPUAS, from);
	contract_new_name(c, name);
	contract_create_gpua(c, name, "order", &o);
	contract_ask_ok(c, "PATCH", contract_path_to(path, GPUAS, name, ""), MERGE, "{\"spec\":{\"maxReplicas\":5}}",
	                &o);
	contract_ask_ok(c, "PATCH", contract_path_to(path, GPUAS, name, "/status"), MERGE,
	                "{\"status\":{\"desiredReplicas\":3}}", &o);
	contract_ask_ok(c, "DELETE", contract_path_to(path, GPUAS, name, ""), NULL, NULL, &o);
	snprintf(query, sizeof query, "resourceVersion=%s&labelSelector=run%%3Dorder", from);
	const char *const collections[] = {GPUAS, GPUAS_ALL};
	for (int i = 0; i < 2; i++) {
		size_t n = watch(c, collections[i], query, 4, seen);
		static const char *const types[] = {"ADDED", "MODIFIED", "MODIFIED", "DELETED"};
		assert_int_equal(n, 4);
		for (size_t j = 0; j < n; j++) {
			assert_string_equal(seen[j].type, types[j]);
			assert_string_equal(seen[j].kind, "GPUAutoscaler"); // in a watch every object says it
			assert_string_equal(seen[j].name, name);
			assert_true(contract_number_of(seen[j].version) >
			            contract_number_of(j ? seen[j - 1].version : from));
		}
	}
	snprintf(query, sizeof query, "resourceVersion=%s&labelSelector=run%%3Dorder", seen[2].version);
	assert_int_equal(watch(c, GPUAS, query, 1, seen), 1); // resumed: only the deletion is new
	assert_string_equal(seen[0].type, "DELETED");
}

static void watch_without_a_version_begins_with_the_existing_objects(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], query[PATH_BYTES];
	contract_new_name(c, name);
	contract_create_gpua(c, name, "there", &o);
	static const char *const versions[] = {"", "resourceVersion=&", "resourceVersion=0&"};
	for (int i = 0; i < 3; i++) {
		snprintf(query, sizeof query, "%slabelSelector=run%%3Dthere", versions[i]);
		assert_int_equal(watch(c, GPUAS, query, 1, seen), 1);
		assert_string_equal(seen[0].type, "ADDED");
		assert_string_equal(seen[0].name, name);
	}
}

// Returns when the server has had time to begin it.
static void open_stream(struct contract *c, const char *path, struct outcome *stream)
{
	struct err e = {0};
	*stream = (struct outcome){0};
	assert_int_equal(k8s_request(c->h.client, "GET", path, NULL, NULL, 0, outcome_of_request, stream, &e), 0);
	struct timeval pause = {.tv_usec = 300000};
	event_base_loopexit(c->h.loop, &pause);
	event_base_dispatch(c->h.loop);
}

static void watch_hears_what_happens_while_it_is_open_and_ends_in_its_time(void **state)
{
	struct contract *c = *state;
	struct outcome o, stream = {.is_done = true};
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], path[PATH_BYTES], from[NAME_BYTES];
	int64_t begin = 0, asked_s = 6;
	for (; stream.is_done && asked_s <= LONGEST_S; asked_s *= 4) {
		list_version(c, GPUAS, from);
		snprintf(path, sizeof path,
		         GPUAS "?watch=true&resourceVersion=%s&timeoutSeconds=%d&labelSelector=run%%3Dlive", from,
		         (int)asked_s);
		begin = clock_mono_ms(&c->h.clock);
		open_stream(c, path, &stream);
		contract_new_name(c, name);
		contract_create_gpua(c, name, "live", &o);
		contract_ask_ok(c, "PATCH", contract_path_to(path, GPUAS, name, ""), MERGE,
		                "{\"spec\":{\"maxReplicas\":6}}", &o);
	}
	assert_false(stream.is_done);
	harness_wait(&c->h, &stream);
	if (stream.is_error)
		fail_msg("%s", stream.error.msg);
	assert_in_range(clock_mono_ms(&c->h.clock) - begin, asked_s / 4 * 1000 - 500, HARNESS_WAIT_MS);
	assert_int_equal(read_events(&stream, seen), 2);
	assert_string_equal(seen[0].type, "ADDED");
	assert_string_equal(seen[1].type, "MODIFIED");
}

static void object_that_leaves_the_selection_of_a_watch_is_reported_deleted(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], path[PATH_BYTES], query[PATH_BYTES], from[NAME_BYTES];
	list_version(c, GPUAS, from);
	contract_new_name(c, name);
	contract_create_gpua(c, name, "out", &o);
	contract_path_to(path, GPUAS, name, "");
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"metadata\":{\"labels\":{\"run\":\"in\"}}}", &o);
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"spec\":{\"maxReplicas\":5}}", &o);
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"metadata\":{\"labels\":{\"run\":\"out\"}}}", &o);
	char last[NAME_BYTES];
	contract_version_of(&o, last);
	contract_ask_ok(c, "PATCH", path, MERGE, "{\"spec\":{\"maxReplicas\":6}}", &o);
	snprintf(query, sizeof query, "resourceVersion=%s&labelSelector=run%%3Din&fieldSelector=metadata.name%%3D%s",
	         from, name);
	assert_int_equal(watch(c, GPUAS, query, 3, seen), 3);
	assert_string_equal(seen[0].type, "ADDED");
	assert_string_equal(seen[1].type, "MODIFIED");
	assert_string_equal(seen[2].type, "DELETED");
	assert_string_equal(seen[2].version, last); // that of the change, so that a resumption starts behind it
}

static void version_that_is_too_old_is_gone(void **state)
{
	struct contract *c = *state;
	struct seen seen[EVENTS_MAX];
	assert_int_equal(watch(c, GPUAS, "resourceVersion=1", 1, seen), 1);
	assert_string_equal(seen[0].type, "ERROR");
	assert_string_equal(seen[0].kind, "Status");
	assert_int_equal(seen[0].code, 410);
}

// Watches for so long, and makes a change outside of the selection meanwhile, or none. How many bookmarks came from
// behind it.
static size_t count_bookmarks(struct contract *c, const char *flag, bool has_change, int asked_s)
{
	struct outcome o, stream;
	struct seen seen[EVENTS_MAX];
	char from[NAME_BYTES], name[NAME_BYTES], path[PATH_BYTES], reached[NAME_BYTES];
	list_version(c, GPUAS, from);
	snprintf(reached, sizeof reached, "%s", from);
	snprintf(path, sizeof path,
	         GPUAS "?watch=true&resourceVersion=%s&timeoutSeconds=%d&labelSelector=run%%3Dbookmark%s", from,
	         asked_s, flag);
	open_stream(c, path, &stream);
	if (has_change) {
		contract_new_name(c, name);
		contract_create_gpua(c, name, "unwatched", &o);
		contract_version_of(&o, reached);
	}
	harness_wait(&c->h, &stream);
	assert_false(stream.is_error);
	size_t n = read_events(&stream, seen), n_behind = 0;
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(seen[i].type, "BOOKMARK");
		assert_string_equal(seen[i].kind, "GPUAutoscaler");
		assert_string_equal(seen[i].name, "");
		assert_true(contract_number_of(seen[i].version) >= contract_number_of(from));
		n_behind += contract_number_of(seen[i].version) >= contract_number_of(reached);
	}
	return n_behind;
}

// They carry the version past changes that the watch was not notified of. Without a change while it is open there need
// be none: an idle stream may be silent for as long as it lasts. None is promised either: they are due 2 s before the
// end, and a server that is held up by then leaves them out. So both are to be seen in one of a few tries, longer each
// time; who does not ask gets none ever.
static void bookmarks_come_before_the_end_to_those_who_ask(void **state)
{
	struct contract *c = *state;
	static const char asked[] = "&allowWatchBookmarks=true";
	int seconds = 5;
	while (count_bookmarks(c, asked, true, seconds) == 0)
		assert_true((seconds *= 2) <= LONGEST_S);
	for (seconds = 5; count_bookmarks(c, asked, false, seconds) > 0;)
		assert_true((seconds *= 2) <= LONGEST_S);
	assert_int_equal(count_bookmarks(c, "", true, 5), 0);
}

static void built_in_kinds_are_watched_the_same_way(void **state)
{
	struct contract *c = *state;
	static const struct {
		const char *collection, *kind, *api_version, *spec, *patch;
	} kinds[] = {
	        {"/apis/apps/v1" NS "deployments", "Deployment", "apps/v1",
	         "{\"replicas\":0,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{"
	         "\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\"}]}}}",
	         "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}"},
	        {"/apis/apps/v1" NS "statefulsets", "StatefulSet", "apps/v1",
	         "{\"replicas\":0,\"serviceName\":\"s\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{"
	         "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
	         "\"none\"}]}}}",
	         "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}"},
	        {"/apis/apps/v1" NS "replicasets", "ReplicaSet", "apps/v1",
	         "{\"replicas\":0,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{"
	         "\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\"}]}}}",
	         "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}"},
	        {HPAS, "HorizontalPodAutoscaler", "autoscaling/v1",
	         "{\"maxReplicas\":3,\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":"
	         "\"no\"}}",
	         "{\"spec\":{\"maxReplicas\":4}}"},
	        {LEASES, "Lease", "coordination.k8s.io/v1", "{\"leaseDurationSeconds\":15}",
	         "{\"spec\":{\"holderIdentity\":\"b\"}}"},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		struct outcome o;
		struct seen seen[EVENTS_MAX];
		char name[NAME_BYTES], from[NAME_BYTES], body[BODY_BYTES], path[PATH_BYTES], query[PATH_BYTES];
		list_version(c, kinds[i].collection, from);
		contract_new_name(c, name);
		snprintf(body, sizeof body,
		         "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
		         kinds[i].api_version, kinds[i].kind, name, kinds[i].spec);
		contract_ask_ok(c, "POST", kinds[i].collection, JSON, body, &o);
		contract_ask_ok(c, "PATCH", contract_path_to(path, kinds[i].collection, name, ""), MERGE,
		                kinds[i].patch, &o);
		contract_ask_ok(c, "DELETE", path, NULL, NULL, &o);
		snprintf(query, sizeof query, "resourceVersion=%s&fieldSelector=metadata.name%%3D%s", from, name);
		size_t n = watch(c, kinds[i].collection, query, 3, seen);
		if (n < 3) // controllers may write a status in between
			fail_msg("%s: %zu events", kinds[i].kind, n);
		assert_string_equal(seen[0].type, "ADDED");
		assert_string_equal(seen[1].type, "MODIFIED");
		assert_string_equal(seen[n - 1].type, "DELETED");
		assert_string_equal(seen[0].kind, kinds[i].kind);
	}
}

static void watch_of_what_is_not_there_is_not_found(void **state)
{
	struct contract *c = *state;
	contract_ask_refused(c, "GET", "/apis/gpuscale.dev/v1alpha1/nopes?watch=true&timeoutSeconds=1", NULL, NULL, 404,
	                     "");
	contract_ask_refused(c, "GET", "/apis/keda.sh/v1alpha1/scaledobjects?watch=true&timeoutSeconds=1", NULL, NULL,
	                     404, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(all_pages_of_a_list_have_the_version_of_the_first),
	        cmocka_unit_test(list_is_chosen_by_field_and_label),
	        cmocka_unit_test(items_of_built_in_kinds_do_not_say_their_kind),
	        cmocka_unit_test(watch_from_a_version_reports_later_changes_in_order),
	        cmocka_unit_test(watch_without_a_version_begins_with_the_existing_objects),
	        cmocka_unit_test(watch_hears_what_happens_while_it_is_open_and_ends_in_its_time),
	        cmocka_unit_test(object_that_leaves_the_selection_of_a_watch_is_reported_deleted),
	        cmocka_unit_test(version_that_is_too_old_is_gone),
	        cmocka_unit_test(bookmarks_come_before_the_end_to_those_who_ask),
	        cmocka_unit_test(built_in_kinds_are_watched_the_same_way),
	        cmocka_unit_test(watch_of_what_is_not_there_is_not_found),
	};
	return cmocka_run_group_tests(tests, contract_setup, contract_teardown);
}
