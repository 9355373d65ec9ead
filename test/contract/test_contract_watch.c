// SPDX-License-Identifier: Apache-2.0
// Goal: what we rely on in lists, watches, custom resources, leases and events; the same suite against the fake
// (run-fake) and the real kube-apiserver (run-real), like test_contract.c. Streams are asked to end after a second or
// two (timeoutSeconds), and read as one body.
// Environment: CONTRACT_KUBECONFIG, CONTRACT_VIEWER_TOKEN as in test_contract.c.
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

#include "base/arena.h"
#include "base/json_read.h"
#include "base/num.h"
#include "test/fake/k8s_harness.h"

#define NS         "/namespaces/default/"
#define GPUAS_ALL  "/apis/gpuscale.dev/v1alpha1/gpuautoscalers"
#define GPUAS      "/apis/gpuscale.dev/v1alpha1" NS "gpuautoscalers"
#define LEASES     "/apis/coordination.k8s.io/v1" NS "leases"
#define EVENTS     "/api/v1" NS "events"
#define HPAS       "/apis/autoscaling/v1" NS "horizontalpodautoscalers"
#define JSON       "application/json"
#define MERGE      "application/merge-patch+json"
#define STRATEGIC  "application/strategic-merge-patch+json"
#define PATH_BYTES 512
#define BODY_BYTES 2048
#define NAME_BYTES 64
#define EVENTS_MAX 32

struct contract {
	struct harness h;
	struct arena arena;
	char id[24];
	int n_names;
	char made[64][PATH_BYTES]; // to be deleted
	int n_made;
};

// ---- asking ----

static void ask_ok(struct contract *c, const char *method, const char *path, const char *type, const char *body,
                   struct outcome *o)
{
	harness_request(&c->h, method, path, type, body, o);
	if (o->is_error)
		fail_msg("%s %s: %s", method, path, o->error.msg);
}

static void ask_refused(struct contract *c, const char *method, const char *path, const char *type, const char *body,
                        int status, const char *says)
{
	struct outcome o;
	harness_request(&c->h, method, path, type, body, &o);
	if (!o.is_error || o.error.code != status || !strstr(o.error.msg, says))
		fail_msg("%s %s: wanted %d with \"%s\", got %d %s", method, path, status, says, o.error.code,
		         o.is_error ? o.error.msg : o.body);
}

static const char *path_to(char out[PATH_BYTES], const char *collection, const char *name, const char *suffix)
{
	snprintf(out, PATH_BYTES, "%s/%s%s", collection, name, suffix);
	return out;
}

static void new_name(struct contract *c, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "contract-%s-%d", c->id, c->n_names++);
}

static void create(struct contract *c, const char *collection, const char *name, const char *body, struct outcome *o)
{
	ask_ok(c, "POST", collection, JSON, body, o);
	assert_true(c->n_made < (int)(sizeof c->made / sizeof c->made[0]));
	path_to(c->made[c->n_made++], collection, name, "");
}

static void create_gpua(struct contract *c, const char *name, const char *label, struct outcome *o)
{
	char body[BODY_BYTES];
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"%s\","
	         "\"labels\":{\"run\":\"%s\"}},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":"
	         "\"Deployment\",\"name\":\"web\"},\"minReplicas\":1,\"maxReplicas\":4,\"signals\":[{\"name\":\"q\","
	         "\"query\":\"up\",\"target\":{\"type\":\"Value\",\"value\":\"1\"}}]},\"status\":{\"desiredReplicas\":"
	         "9}}",
	         name, label);
	create(c, GPUAS, name, body, o);
}

// ---- reading ----

// metadata.KEY of an object, as text ("" when absent).
static void metadata_of(const cJSON *object, const char *key, char *out, size_t size)
{
	const cJSON *item = json_get(json_get(object, "metadata"), key);
	if (cJSON_IsNumber(item))
		snprintf(out, size, "%d", item->valueint);
	else
		snprintf(out, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

static cJSON *tree_of(const struct outcome *o)
{
	struct err e = {0};
	cJSON *root = json_read(o->body, strlen(o->body), &e);
	if (!root)
		fail_msg("%s in %.300s", e.msg, o->body);
	return root;
}

static void version_of(const struct outcome *o, char out[NAME_BYTES])
{
	cJSON *root = tree_of(o);
	metadata_of(root, "resourceVersion", out, NAME_BYTES);
	cJSON_Delete(root);
	assert_true(out[0] != '\0');
}

static int generation_of(const struct outcome *o)
{
	int64_t n = -1;
	cJSON *root = tree_of(o);
	json_get_i64(json_get(root, "metadata"), "generation", 0, 1000, &n, NULL);
	cJSON_Delete(root);
	return (int)n;
}

static int64_t number_of(const char *version)
{
	int64_t n = 0;
	assert_int_equal(num_parse_i64(version, strlen(version), 0, INT64_MAX, &n, NULL), 0);
	return n;
}

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
		metadata_of(object, "name", seen[n].name, NAME_BYTES);
		metadata_of(object, "resourceVersion", seen[n].version, NAME_BYTES);
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
	ask_ok(c, "GET", path, NULL, NULL, &o);
	cJSON *root = json_read(o.body, strlen(o.body), NULL);
	metadata_of(root, "resourceVersion", out, NAME_BYTES);
	cJSON_Delete(root);
	assert_true(out[0] != '\0');
}

static size_t watch(struct contract *c, const char *collection, const char *query, struct seen seen[EVENTS_MAX])
{
	char path[PATH_BYTES];
	struct outcome o;
	snprintf(path, sizeof path, "%s?watch=true&%s", collection, query);
	ask_ok(c, "GET", path, NULL, NULL, &o);
	return read_events(&o, seen);
}

static int setup(void **state)
{
	static struct contract contract;
	struct contract *c = &contract;
	const char *kubeconfig = getenv("CONTRACT_KUBECONFIG");
	struct err e = {0};
	if (!kubeconfig) {
		print_error("CONTRACT_KUBECONFIG is not set: run test/contract/run-fake or run-real\n");
		return -1;
	}
	harness_start_loop(&c->h);
	arena_init(&c->arena, 1024 * 1024);
	const struct k8s_config_options options = {.kubeconfig = kubeconfig};
	if (k8s_config_load(&c->arena, &options, &c->h.config, &e) < 0) {
		print_error("%s\n", e.msg);
		return -1;
	}
	harness_start_client(&c->h, 0);
	snprintf(c->id, sizeof c->id, "%u", (unsigned)getpid());
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	for (int i = 0; i < c->n_made; i++)
		harness_request(&c->h, "DELETE", c->made[i], NULL, NULL, &o);
	harness_stop(&c->h);
	arena_done(&c->arena);
	return 0;
}

// ---- lists ----

static void all_pages_of_a_list_have_the_version_of_the_first(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], first[NAME_BYTES], second[NAME_BYTES], next[1024];
	for (int i = 0; i < 3; i++) {
		new_name(c, name);
		create_gpua(c, name, c->id, &o);
	}
	snprintf(path, sizeof path, GPUAS "?limit=2&labelSelector=run%%3D%s", c->id);
	ask_ok(c, "GET", path, NULL, NULL, &o);
	cJSON *root = tree_of(&o);
	metadata_of(root, "resourceVersion", first, sizeof first);
	metadata_of(root, "continue", next, sizeof next);
	assert_int_equal(cJSON_GetArraySize(json_get(root, "items")), 2);
	assert_string_equal(json_get_str(root, "kind", ""), "GPUAutoscalerList");
	cJSON_Delete(root);
	assert_true(next[0] != '\0');
	new_name(c, name); // the version moves on
	create_gpua(c, name, "other", &o);
	snprintf(path, sizeof path, GPUAS "?limit=2&labelSelector=run%%3D%s&continue=%.200s", c->id, next);
	ask_ok(c, "GET", path, NULL, NULL, &o);
	root = tree_of(&o);
	metadata_of(root, "resourceVersion", second, sizeof second);
	metadata_of(root, "continue", next, sizeof next);
	assert_int_equal(cJSON_GetArraySize(json_get(root, "items")), 1);
	cJSON_Delete(root);
	assert_string_equal(first, second);
	assert_string_equal(next, "");
	ask_refused(c, "GET", GPUAS "?limit=2&continue=nonsense", NULL, NULL, 400, "continue key is not valid");
}

static void a_list_is_chosen_by_field_and_label(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES];
	new_name(c, name);
	create_gpua(c, name, "chosen", &o);
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
		ask_ok(c, "GET", path, NULL, NULL, &o);
		cJSON *root = tree_of(&o);
		if (cJSON_GetArraySize(json_get(root, "items")) != cases[i].n)
			fail_msg("%s: %.300s", cases[i].selector, o.body);
		cJSON_Delete(root);
	}
	ask_refused(c, "GET", GPUAS "?fieldSelector=spec.minReplicas%3D1", NULL, NULL, 400,
	            "field label not supported");
}

// Whoever decodes a list's items must not rely on their kind.
static void items_of_built_in_kinds_do_not_say_their_kind(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES];
	new_name(c, name);
	snprintf(
	        body, sizeof body,
	        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"%s\"},\"spec\":"
	        "{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15}}",
	        name);
	create(c, LEASES, name, body, &o);
	snprintf(path, sizeof path, LEASES "?fieldSelector=metadata.name%%3D%s", name);
	ask_ok(c, "GET", path, NULL, NULL, &o);
	cJSON *root = tree_of(&o);
	assert_string_equal(json_get_str(root, "kind", ""), "LeaseList");
	assert_int_equal(cJSON_GetArraySize(json_get(root, "items")), 1);
	assert_null(json_get(cJSON_GetArrayItem(json_get(root, "items"), 0), "kind"));
	cJSON_Delete(root);
	new_name(c, name);
	create_gpua(c, name, "kind", &o);
	snprintf(path, sizeof path, GPUAS "?fieldSelector=metadata.name%%3D%s", name);
	ask_ok(c, "GET", path, NULL, NULL, &o);
	root = tree_of(&o);
	const cJSON *item = cJSON_GetArrayItem(json_get(root, "items"), 0);
	assert_string_equal(json_get_str(item, "kind", ""), "GPUAutoscaler");
	assert_string_equal(json_get_str(item, "apiVersion", ""), "gpuscale.dev/v1alpha1");
	cJSON_Delete(root);
}

// ---- watches ----

static void a_watch_from_a_version_tells_what_came_after_in_order(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], path[PATH_BYTES], query[PATH_BYTES], from[NAME_BYTES];
	list_version(c, GPUAS, from);
	new_name(c, name);
	create_gpua(c, name, "order", &o);
	ask_ok(c, "PATCH", path_to(path, GPUAS, name, ""), MERGE, "{\"spec\":{\"maxReplicas\":5}}", &o);
	ask_ok(c, "PATCH", path_to(path, GPUAS, name, "/status"), MERGE, "{\"status\":{\"desiredReplicas\":3}}", &o);
	ask_ok(c, "DELETE", path_to(path, GPUAS, name, ""), NULL, NULL, &o);
	snprintf(query, sizeof query, "resourceVersion=%s&timeoutSeconds=1&labelSelector=run%%3Dorder", from);
	const char *const collections[] = {GPUAS, GPUAS_ALL};
	for (int i = 0; i < 2; i++) {
		size_t n = watch(c, collections[i], query, seen);
		static const char *const types[] = {"ADDED", "MODIFIED", "MODIFIED", "DELETED"};
		assert_int_equal(n, 4);
		for (size_t j = 0; j < n; j++) {
			assert_string_equal(seen[j].type, types[j]);
			assert_string_equal(seen[j].kind, "GPUAutoscaler"); // in a watch every object says it
			assert_string_equal(seen[j].name, name);
			assert_true(number_of(seen[j].version) > number_of(j ? seen[j - 1].version : from));
		}
	}
	snprintf(query, sizeof query, "resourceVersion=%s&timeoutSeconds=1&labelSelector=run%%3Dorder",
	         seen[2].version);
	assert_int_equal(watch(c, GPUAS, query, seen), 1); // resumed: only the deletion is new
	assert_string_equal(seen[0].type, "DELETED");
}

static void a_watch_without_a_version_begins_with_what_is_there(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], query[PATH_BYTES];
	new_name(c, name);
	create_gpua(c, name, "there", &o);
	static const char *const versions[] = {"", "resourceVersion=&", "resourceVersion=0&"};
	for (int i = 0; i < 3; i++) {
		snprintf(query, sizeof query, "%stimeoutSeconds=1&labelSelector=run%%3Dthere", versions[i]);
		assert_int_equal(watch(c, GPUAS, query, seen), 1);
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

static void a_watch_hears_what_happens_while_it_is_open_and_ends_in_its_time(void **state)
{
	struct contract *c = *state;
	struct outcome o, stream;
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], path[PATH_BYTES], from[NAME_BYTES];
	list_version(c, GPUAS, from);
	snprintf(path, sizeof path, GPUAS "?watch=true&resourceVersion=%s&timeoutSeconds=2&labelSelector=run%%3Dlive",
	         from);
	int64_t begin = clock_mono_ms(&c->h.clock);
	open_stream(c, path, &stream);
	new_name(c, name);
	create_gpua(c, name, "live", &o);
	ask_ok(c, "PATCH", path_to(path, GPUAS, name, ""), MERGE, "{\"spec\":{\"maxReplicas\":6}}", &o);
	assert_false(stream.is_done);
	harness_wait(&c->h, &stream);
	if (stream.is_error)
		fail_msg("%s", stream.error.msg);
	assert_in_range(clock_mono_ms(&c->h.clock) - begin, 1500, 10000);
	assert_int_equal(read_events(&stream, seen), 2);
	assert_string_equal(seen[0].type, "ADDED");
	assert_string_equal(seen[1].type, "MODIFIED");
}

static void what_leaves_the_selection_of_a_watch_is_deleted_for_it(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	struct seen seen[EVENTS_MAX];
	char name[NAME_BYTES], path[PATH_BYTES], query[PATH_BYTES], from[NAME_BYTES];
	list_version(c, GPUAS, from);
	new_name(c, name);
	create_gpua(c, name, "out", &o);
	path_to(path, GPUAS, name, "");
	ask_ok(c, "PATCH", path, MERGE, "{\"metadata\":{\"labels\":{\"run\":\"in\"}}}", &o);
	ask_ok(c, "PATCH", path, MERGE, "{\"spec\":{\"maxReplicas\":5}}", &o);
	ask_ok(c, "PATCH", path, MERGE, "{\"metadata\":{\"labels\":{\"run\":\"out\"}}}", &o);
	char last[NAME_BYTES];
	version_of(&o, last);
	ask_ok(c, "PATCH", path, MERGE, "{\"spec\":{\"maxReplicas\":6}}", &o);
	snprintf(query, sizeof query,
	         "resourceVersion=%s&timeoutSeconds=1&labelSelector=run%%3Din&fieldSelector=metadata.name%%3D%s", from,
	         name);
	assert_int_equal(watch(c, GPUAS, query, seen), 3);
	assert_string_equal(seen[0].type, "ADDED");
	assert_string_equal(seen[1].type, "MODIFIED");
	assert_string_equal(seen[2].type, "DELETED");
	assert_string_equal(seen[2].version, last); // that of the change, so that a resumption starts behind it
}

static void a_version_that_is_too_old_is_gone(void **state)
{
	struct contract *c = *state;
	struct seen seen[EVENTS_MAX];
	assert_int_equal(watch(c, GPUAS, "resourceVersion=1&timeoutSeconds=1", seen), 1);
	assert_string_equal(seen[0].type, "ERROR");
	assert_string_equal(seen[0].kind, "Status");
	assert_int_equal(seen[0].code, 410);
}

// They carry the version past changes that the watch was not told of. Without a change while it is open there are none:
// an idle stream may be silent for as long as it lasts.
static void bookmarks_come_before_the_end_to_those_who_ask(void **state)
{
	struct contract *c = *state;
	static const struct {
		const char *flag;
		bool has_change;
		bool has_bookmark;
	} cases[] = {{"&allowWatchBookmarks=true", true, true},
	             {"&allowWatchBookmarks=true", false, false},
	             {"", true, false}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct outcome o, stream;
		struct seen seen[EVENTS_MAX];
		char from[NAME_BYTES], name[NAME_BYTES], path[PATH_BYTES], changed[NAME_BYTES] = "";
		list_version(c, GPUAS, from);
		snprintf(path, sizeof path,
		         GPUAS "?watch=true&resourceVersion=%s&timeoutSeconds=5&labelSelector=run%%3Dbookmark%s", from,
		         cases[i].flag);
		open_stream(c, path, &stream);
		if (cases[i].has_change) {
			new_name(c, name);
			create_gpua(c, name, "unwatched", &o);
			version_of(&o, changed);
		}
		harness_wait(&c->h, &stream);
		assert_false(stream.is_error);
		size_t n = read_events(&stream, seen);
		assert_int_equal(n > 0, cases[i].has_bookmark);
		for (size_t j = 0; j < n; j++) {
			assert_string_equal(seen[j].type, "BOOKMARK");
			assert_string_equal(seen[j].kind, "GPUAutoscaler");
			assert_string_equal(seen[j].name, "");
			assert_true(number_of(seen[j].version) >= number_of(changed));
		}
	}
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
		new_name(c, name);
		snprintf(body, sizeof body,
		         "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
		         kinds[i].api_version, kinds[i].kind, name, kinds[i].spec);
		ask_ok(c, "POST", kinds[i].collection, JSON, body, &o);
		ask_ok(c, "PATCH", path_to(path, kinds[i].collection, name, ""), MERGE, kinds[i].patch, &o);
		ask_ok(c, "DELETE", path, NULL, NULL, &o);
		snprintf(query, sizeof query, "resourceVersion=%s&timeoutSeconds=1&fieldSelector=metadata.name%%3D%s",
		         from, name);
		size_t n = watch(c, kinds[i].collection, query, seen);
		if (n < 3) // controllers may write a status in between
			fail_msg("%s: %zu events", kinds[i].kind, n);
		assert_string_equal(seen[0].type, "ADDED");
		assert_string_equal(seen[1].type, "MODIFIED");
		assert_string_equal(seen[n - 1].type, "DELETED");
		assert_string_equal(seen[0].kind, kinds[i].kind);
	}
}

static void a_watch_of_what_is_not_there_is_not_found(void **state)
{
	struct contract *c = *state;
	ask_refused(c, "GET", "/apis/gpuscale.dev/v1alpha1/nopes?watch=true&timeoutSeconds=1", NULL, NULL, 404, "");
	ask_refused(c, "GET", "/apis/keda.sh/v1alpha1/scaledobjects?watch=true&timeoutSeconds=1", NULL, NULL, 404, "");
}

// ---- custom resources ----

static void status_and_spec_of_a_custom_resource_are_written_apart(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], version[NAME_BYTES], body[BODY_BYTES];
	new_name(c, name);
	create_gpua(c, name, "status", &o); // which tries to bring a status
	assert_null(strstr(o.body, "\"desiredReplicas\""));
	assert_int_equal(generation_of(&o), 1);
	path_to(path, GPUAS, name, "/status");
	ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":3},\"spec\":{\"maxReplicas\":44}}", &o);
	assert_non_null(strstr(o.body, "\"desiredReplicas\":3"));
	assert_null(strstr(o.body, "\"maxReplicas\":44"));
	assert_int_equal(generation_of(&o), 1);
	version_of(&o, version);
	path_to(path, GPUAS, name, "");
	ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":5},\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
	       &o);
	assert_non_null(strstr(o.body, "\"desiredReplicas\":3"));
	assert_int_equal(generation_of(&o), 1);
	ask_ok(c, "PATCH", path, MERGE, "{\"spec\":{\"maxReplicas\":7}}", &o);
	assert_int_equal(generation_of(&o), 2);
	assert_non_null(strstr(o.body, "\"desiredReplicas\":3"));
	snprintf(body, sizeof body, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"status\":{\"desiredReplicas\":4}}",
	         version);
	path_to(path, GPUAS, name, "/status");
	ask_refused(c, "PATCH", path, MERGE, body, 409, "the object has been modified");
	ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":null}}", &o);
	assert_null(strstr(o.body, "\"desiredReplicas\":"));
	ask_refused(c, "PATCH", path, STRATEGIC, "{\"status\":{}}", 415, "");
}

static void a_status_patch_that_changes_nothing_leaves_the_version(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], before[NAME_BYTES], after[NAME_BYTES];
	new_name(c, name);
	create_gpua(c, name, "same", &o);
	path_to(path, GPUAS, name, "/status");
	ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":3}}", &o);
	version_of(&o, before);
	ask_ok(c, "PATCH", path, MERGE, "{\"status\":{\"desiredReplicas\":3}}", &o);
	version_of(&o, after);
	assert_string_equal(before, after);
}

static void a_put_without_a_version_is_refused(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES];
	new_name(c, name);
	create_gpua(c, name, "put", &o);
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"%s\"},"
	         "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"},"
	         "\"maxReplicas\":4,\"signals\":[{\"name\":\"q\",\"query\":\"up\",\"target\":{\"type\":\"Value\","
	         "\"value\":\"1\"}}]}}",
	         name);
	ask_refused(c, "PUT", path_to(path, GPUAS, name, ""), JSON, body, 422, "must be specified for an update");
}

// ---- leases, events, HPAs ----

static void a_lease_is_taken_by_one_of_two(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES], version[NAME_BYTES];
	static const char lease[] =
	        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":"
	        "\"%s\"%s%s%s},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,"
	        "\"leaseTransitions\":1,\"renewTime\":\"2026-01-05T09:00:00.123456Z\"}}";
	new_name(c, name);
	snprintf(body, sizeof body, lease, name, "", "", "", "a");
	create(c, LEASES, name, body, &o);
	version_of(&o, version);
	assert_non_null(strstr(o.body, "\"renewTime\":\"2026-01-05T09:00:00.123456Z\""));
	ask_refused(c, "POST", LEASES, JSON, body, 409, "already exists");
	path_to(path, LEASES, name, "");
	ask_refused(c, "PUT", path, JSON, body, 422, "must be specified for an update");
	snprintf(body, sizeof body, lease, name, ",\"resourceVersion\":\"", version, "\"", "b");
	ask_ok(c, "PUT", path, JSON, body, &o);
	assert_non_null(strstr(o.body, "\"holderIdentity\":\"b\""));
	snprintf(body, sizeof body, lease, name, ",\"resourceVersion\":\"", version, "\"", "c");
	ask_refused(c, "PUT", path, JSON, body, 409, "the object has been modified");
	snprintf(body, sizeof body, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"spec\":{\"holderIdentity\":\"c\"}}",
	         version);
	ask_refused(c, "PATCH", path, MERGE, body, 409, "the object has been modified");
	ask_ok(c, "GET", path, NULL, NULL, &o);
	assert_non_null(strstr(o.body, "\"holderIdentity\":\"b\""));
}

static void an_event_is_created_and_counted_up(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char name[NAME_BYTES], path[PATH_BYTES], body[BODY_BYTES];
	static const char event[] =
	        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\"},\"involvedObject\":{\"kind\":"
	        "\"GPUAutoscaler\",\"namespace\":\"%s\",\"name\":\"%s\",\"apiVersion\":\"gpuscale.dev/v1alpha1\"},"
	        "\"reason\":\"Scaled\",\"message\":\"m\",\"type\":\"Normal\",\"count\":1,\"source\":{\"component\":"
	        "\"gpuscale\"},\"firstTimestamp\":\"2026-01-05T09:00:00Z\",\"lastTimestamp\":\"2026-01-05T09:00:00Z\"}";
	new_name(c, name);
	snprintf(body, sizeof body, event, name, "default", name);
	create(c, EVENTS, name, body, &o);
	ask_ok(c, "PATCH", path_to(path, EVENTS, name, ""), MERGE, "{\"count\":2}", &o);
	assert_non_null(strstr(o.body, "\"count\":2"));
	snprintf(path, sizeof path, EVENTS "?fieldSelector=involvedObject.name%%3D%s,reason%%3DScaled", name);
	ask_ok(c, "GET", path, NULL, NULL, &o);
	assert_non_null(strstr(o.body, "\"count\":2"));
	new_name(c, name);
	snprintf(body, sizeof body, event, name, "elsewhere", name);
	ask_refused(c, "POST", EVENTS, JSON, body, 422, "does not match event.namespace");
	snprintf(
	        body, sizeof body,
	        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"generateName\":\"%s-\"},\"involvedObject\":{"
	        "\"namespace\":\"default\"},\"reason\":\"R\",\"type\":\"Normal\"}",
	        name);
	ask_ok(c, "POST", EVENTS, JSON, body, &o);
	cJSON *root = tree_of(&o);
	char made[NAME_BYTES * 2];
	metadata_of(root, "name", made, sizeof made);
	cJSON_Delete(root);
	assert_int_equal(strncmp(made, name, strlen(name)), 0);
	assert_int_equal(strlen(made), strlen(name) + 1 + 5);
	ask_ok(c, "DELETE", path_to(path, EVENTS, made, ""), NULL, NULL, &o);
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
		ask_ok(c, "GET", wanted[i].group, NULL, NULL, &o);
		cJSON *root = tree_of(&o);
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
	ask_ok(c, "GET", "/apis/gpuscale.dev", NULL, NULL, &o);
	assert_non_null(strstr(o.body, "\"APIGroup\""));
	assert_non_null(strstr(o.body, "\"gpuscale.dev/v1alpha1\""));
	ask_refused(c, "GET", "/apis/keda.sh/v1alpha1", NULL, NULL, 404, "");
	ask_refused(c, "GET", "/apis/keda.sh", NULL, NULL, 404, "");
}

static void a_viewer_is_told_the_verb_and_resource_it_lacks(void **state)
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
	        cmocka_unit_test(all_pages_of_a_list_have_the_version_of_the_first),
	        cmocka_unit_test(a_list_is_chosen_by_field_and_label),
	        cmocka_unit_test(items_of_built_in_kinds_do_not_say_their_kind),
	        cmocka_unit_test(a_watch_from_a_version_tells_what_came_after_in_order),
	        cmocka_unit_test(a_watch_without_a_version_begins_with_what_is_there),
	        cmocka_unit_test(a_watch_hears_what_happens_while_it_is_open_and_ends_in_its_time),
	        cmocka_unit_test(what_leaves_the_selection_of_a_watch_is_deleted_for_it),
	        cmocka_unit_test(a_version_that_is_too_old_is_gone),
	        cmocka_unit_test(bookmarks_come_before_the_end_to_those_who_ask),
	        cmocka_unit_test(built_in_kinds_are_watched_the_same_way),
	        cmocka_unit_test(a_watch_of_what_is_not_there_is_not_found),
	        cmocka_unit_test(status_and_spec_of_a_custom_resource_are_written_apart),
	        cmocka_unit_test(a_status_patch_that_changes_nothing_leaves_the_version),
	        cmocka_unit_test(a_put_without_a_version_is_refused),
	        cmocka_unit_test(a_lease_is_taken_by_one_of_two),
	        cmocka_unit_test(an_event_is_created_and_counted_up),
	        cmocka_unit_test(discovery_names_every_kind_we_use),
	        cmocka_unit_test(a_viewer_is_told_the_verb_and_resource_it_lacks),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
