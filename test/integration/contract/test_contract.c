// SPDX-License-Identifier: Apache-2.0
// Goal: what we rely on in an API server, asked through our own client. The same suite runs against the fake
// (run-fake) and the real kube-apiserver (run-real), so that the fake cannot drift from the truth.
// Environment: CONTRACT_KUBECONFIG      may do everything
//              CONTRACT_VIEWER_TOKEN    a file; that token may GET scales, and nothing else
//              CONTRACT_ONLY            a pattern of test names, for another way to log in
// Leaves nothing behind: objects are made and removed here, with names of this process.
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
#include "base/json/json_read.h"
#include "test/fake/k8s_harness.h"

#define APPS        "/apis/apps/v1/namespaces/default/"
#define WIDGETS     "/apis/example.dev/v1/namespaces/default/widgets"
#define CRDS        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define PODS        "/api/v1/namespaces/default/pods"
#define JSON        "application/json"
#define MERGE       "application/merge-patch+json"
#define PATH_BYTES  256
#define BODY_BYTES  2048
#define CRD_WAIT_MS 60000

struct contract {
	struct harness h;
	struct arena arena;
	char web[64], db[64], widget[64], pod[64]; // names
	struct scale_ref web_ref, db_ref, widget_ref;
	char web_scale[PATH_BYTES], web_path[PATH_BYTES], label[96];
	bool has_made_crd;
};

// ---- asking ----

static const char *path_to(char out[PATH_BYTES], const char *collection, const char *name, const char *suffix)
{
	snprintf(out, PATH_BYTES, "%s/%s%s", collection, name, suffix);
	return out;
}

static void ask_ok(struct contract *c, const char *method, const char *path, const char *type, const char *body,
                   struct outcome *o)
{
	harness_request(&c->h, method, path, type, body, o);
	if (o->is_error)
		fail_msg("%s %s: %s", method, path, o->error.msg);
}

static void get_scale(struct contract *c, const struct scale_ref *ref, struct outcome *o)
{
	harness_get(&c->h, ref, o);
	if (o->is_error)
		fail_msg("%s %s: %s", ref->kind, ref->name, o->error.msg);
}

// ---- objects ----

static void create_workload(struct contract *c, const char *kind, const char *plural, const char *name)
{
	char body[BODY_BYTES];
	struct outcome o;
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"replicas\":2,"
	         "\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"%"
	         "s\"}},"
	         "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\"}]}}%s}}",
	         kind, name, name, name, strcmp(kind, "StatefulSet") == 0 ? ",\"serviceName\":\"x\"" : "");
	char path[PATH_BYTES];
	snprintf(path, sizeof path, APPS "%s", plural);
	ask_ok(c, "POST", path, JSON, body, &o);
}

static const char crd[] =
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":"
        "\"widgets.example.dev\"},\"spec\":{\"group\":\"example.dev\",\"scope\":\"Namespaced\",\"names\":{\"plural\":"
        "\"widgets\",\"singular\":\"widget\",\"kind\":\"Widget\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
        "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":"
        "\"object\",\"properties\":{\"replicas\":{\"type\":\"integer\"}}},\"status\":{\"type\":\"object\","
        "\"properties\":{"
        "\"replicas\":{\"type\":\"integer\"},\"selector\":{\"type\":\"string\"}}}}}},\"subresources\":{\"status\":{},"
        "\"scale\":{\"specReplicasPath\":\".spec.replicas\",\"statusReplicasPath\":\".status.replicas\","
        "\"labelSelectorPath\":\".status.selector\"}}}]}}";

// On the real server the kind is made here and served a moment later (one of an earlier run may still be going away);
// the fake has it built in.
static void create_widget(struct contract *c)
{
	struct outcome o;
	char body[BODY_BYTES];
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"example.dev/"
	         "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"replicas\":2}}",
	         c->widget);
	int64_t end = clock_mono_ms(&c->h.clock) + CRD_WAIT_MS;
	for (;;) {
		harness_request(&c->h, "POST", WIDGETS, JSON, body, &o);
		const bool is_made = !o.is_error || strstr(o.error.msg, "already exists");
		harness_request(&c->h, "GET", "/apis/example.dev/v1", NULL, NULL, &o);
		if (is_made && !o.is_error && strstr(o.body, "\"widgets/scale\"")) // discovery says so, too
			return;
		if (clock_mono_ms(&c->h.clock) > end)
			fail_msg("custom resource: %s", o.is_error ? o.error.msg : o.body);
		harness_request(&c->h, "POST", CRDS, JSON, crd, &o);
		c->has_made_crd = c->has_made_crd || !o.is_error;
		struct timeval pause = {.tv_usec = 100000};
		event_base_loopexit(c->h.loop, &pause);
		event_base_dispatch(c->h.loop);
	}
}

static int setup(void **state)
{
	static struct contract contract;
	struct contract *c = &contract;
	if (harness_start_kubeconfig(&c->h, &c->arena, "CONTRACT_KUBECONFIG") < 0)
		return -1;
	const unsigned id = (unsigned)getpid();
	snprintf(c->web, sizeof c->web, "contract-web-%u", id);
	snprintf(c->db, sizeof c->db, "contract-db-%u", id);
	snprintf(c->widget, sizeof c->widget, "contract-widget-%u", id);
	snprintf(c->pod, sizeof c->pod, "contract-pod-%u", id);
	snprintf(c->label, sizeof c->label, "run=%s", c->pod);
	c->web_ref = (struct scale_ref){"apps/v1", "Deployment", "default", c->web, NULL};
	c->db_ref = (struct scale_ref){"apps/v1", "StatefulSet", "default", c->db, NULL};
	c->widget_ref = (struct scale_ref){"example.dev/v1", "Widget", "default", c->widget, NULL};
	path_to(c->web_path, APPS "deployments", c->web, "");
	path_to(c->web_scale, APPS "deployments", c->web, "/scale");
	create_workload(c, "Deployment", "deployments", c->web);
	create_workload(c, "StatefulSet", "statefulsets", c->db);
	create_widget(c);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char path[PATH_BYTES];
	harness_request(&c->h, "DELETE", c->web_path, NULL, NULL, &o);
	harness_request(&c->h, "DELETE", path_to(path, APPS "statefulsets", c->db, ""), NULL, NULL, &o);
	harness_request(&c->h, "DELETE", path_to(path, WIDGETS, c->widget, ""), NULL, NULL, &o);
	if (c->has_made_crd)
		harness_request(&c->h, "DELETE", CRDS "/widgets.example.dev", NULL, NULL, &o);
	harness_stop(&c->h);
	arena_done(&c->arena);
	return 0;
}

// ---- the contract ----

static void scale_has_replicas_version_and_selector(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char selector[96];
	snprintf(selector, sizeof selector, "app=%s", c->web);
	get_scale(c, &c->web_ref, &o);
	assert_int_equal(o.scale.spec_replicas, 2);
	assert_string_equal(o.scale.selector, selector);
	assert_true(o.scale.resource_version[0] != '\0');
}

static void patch_changes_the_object_and_its_version(void **state)
{
	struct contract *c = *state;
	struct outcome before, after, object;
	get_scale(c, &c->web_ref, &before);
	harness_patch(&c->h, &c->web_ref, before.scale.resource_version, 5, &after);
	if (after.is_error)
		fail_msg("%s", after.error.msg);
	assert_int_equal(after.scale.spec_replicas, 5);
	assert_string_not_equal(after.scale.resource_version, before.scale.resource_version);
	ask_ok(c, "GET", c->web_path, NULL, NULL, &object);
	assert_non_null(strstr(object.body, "\"replicas\":5"));
}

static void patch_that_changes_nothing_leaves_the_version(void **state)
{
	struct contract *c = *state;
	struct outcome before, after;
	get_scale(c, &c->web_ref, &before);
	harness_patch(&c->h, &c->web_ref, before.scale.resource_version, before.scale.spec_replicas, &after);
	if (after.is_error)
		fail_msg("%s", after.error.msg);
	assert_string_equal(after.scale.resource_version, before.scale.resource_version);
}

static void of_two_writers_one_is_refused(void **state)
{
	struct contract *c = *state;
	struct outcome read, first, second, now;
	char body[BODY_BYTES];
	get_scale(c, &c->web_ref, &read);
	harness_patch(&c->h, &c->web_ref, read.scale.resource_version, 6, &first);
	assert_false(first.is_error);
	harness_patch(&c->h, &c->web_ref, read.scale.resource_version, 7, &second);
	assert_int_equal(second.error.kind, ERR_CONFLICT);
	assert_non_null(strstr(second.error.msg, "the object has been modified"));
	assert_non_null(strstr(second.error.msg, c->web));
	snprintf(body, sizeof body,
	         "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/"
	         "v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\","
	         "\"resourceVersion\":\"%s\"},\"spec\":{\"replicas\":8}}",
	         c->web, read.scale.resource_version);
	harness_request(&c->h, "PUT", c->web_scale, JSON, body, &second);
	assert_int_equal(second.error.kind, ERR_CONFLICT);
	get_scale(c, &c->web_ref, &now);
	assert_int_equal(now.scale.spec_replicas, 6);
}

static void stateful_set_scales_the_same_way(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	get_scale(c, &c->db_ref, &o);
	assert_int_equal(o.scale.spec_replicas, 2);
	harness_patch(&c->h, &c->db_ref, o.scale.resource_version, 0, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	assert_int_equal(o.scale.spec_replicas, 0);
	get_scale(c, &c->db_ref, &o);
	assert_int_equal(o.scale.spec_replicas, 0);
}

static void custom_resource_with_scale_does_too(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	get_scale(c, &c->widget_ref, &o);
	assert_int_equal(o.scale.spec_replicas, 2);
	harness_patch(&c->h, &c->widget_ref, o.scale.resource_version, 9, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	assert_int_equal(o.scale.spec_replicas, 9);
	harness_patch(&c->h, &c->widget_ref, "1", 3, &o);
	assert_int_equal(o.error.kind, ERR_CONFLICT);
}

static void missing_object_is_not_found(void **state)
{
	struct contract *c = *state;
	static const struct {
		struct scale_ref ref;
		const char *says;
	} cases[] = {
	        {{"apps/v1", "Deployment", "default", "nope", NULL}, "\"nope\" not found"},
	        {{"example.dev/v1", "Widget", "default", "nope", NULL}, "\"nope\" not found"},
	        {{"apps/v1", "Deploymnt", "default", "x", NULL}, "did you mean \"Deployment\"?"},
	        {{"apps/v1", "DaemonSet", "default", "x", NULL}, "Deployment, ReplicaSet, StatefulSet"},
	        {{"example.dev/v7", "Widget", "default", "x", NULL}, "the server has no API example.dev/v7"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct outcome o;
		harness_get(&c->h, &cases[i].ref, &o);
		if (o.error.kind != ERR_NOT_FOUND || !strstr(o.error.msg, cases[i].says))
			fail_msg("%s %s: %s", cases[i].ref.api_version, cases[i].ref.kind, o.error.msg);
	}
}

struct refusal {
	const char *name, *method, *suffix, *type, *body;
	int status;
	const char *says;
};
static const struct refusal refusals[] = {
        {"a patch of another content type", "PATCH", "/scale", JSON, "{\"spec\":{\"replicas\":3}}", 415,
         "Unsupported Media Type"},
        {"negative replicas", "PATCH", "/scale", MERGE, "{\"spec\":{\"replicas\":-3}}", 422,
         "must be greater than or equal to 0"},
        {"replicas given as a string", "PATCH", "/scale", MERGE, "{\"spec\":{\"replicas\":\"x\"}}", 422, "is invalid"},
        {"a patch that is not valid JSON", "PATCH", "/scale", MERGE, "{\"spec\":", 400, "error decoding patch"},
        {"deleting a scale", "DELETE", "/scale", NULL, NULL, 405, "does not allow this method"},
        {"an unknown subresource", "GET", "/nope", NULL, NULL, 404, "could not find the requested resource"},
};

static bool is_refusal(const struct refusal *r, const struct err *e)
{
	return e->code == r->status && strstr(e->msg, r->says);
}

static void nonsense_is_refused_and_changes_nothing(void **state)
{
	struct contract *c = *state;
	struct outcome before, after, o;
	get_scale(c, &c->web_ref, &before);
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		const struct refusal *r = &refusals[i];
		char path[PATH_BYTES];
		harness_request(&c->h, r->method, path_to(path, APPS "deployments", c->web, r->suffix), r->type,
		                r->body, &o);
		if (!is_refusal(r, &o.error))
			fail_msg("%s: %d %s", r->name, o.error.code, o.error.msg);
	}
	get_scale(c, &c->web_ref, &after);
	assert_string_equal(before.scale.resource_version, after.scale.resource_version);
}

static void object_is_created_once(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char body[BODY_BYTES];
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"apps/"
	         "v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"selector\":{"
	         "\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
	         "\"containers\":[{"
	         "\"name\":\"c\",\"image\":\"none\"}]}}}}",
	         c->web);
	harness_request(&c->h, "POST", APPS "deployments", JSON, body, &o);
	assert_int_equal(o.error.kind, ERR_CONFLICT);
	assert_non_null(strstr(o.error.msg, "already exists"));
}

static void dry_run_answers_but_writes_nothing(void **state)
{
	struct contract *c = *state;
	struct outcome before, after, o;
	char path[PATH_BYTES];
	get_scale(c, &c->web_ref, &before);
	ask_ok(c, "PATCH", path_to(path, APPS "deployments", c->web, "/scale?dryRun=All"), MERGE,
	       "{\"spec\":{\"replicas\":11}}", &o);
	assert_non_null(strstr(o.body, "\"replicas\":11"));
	get_scale(c, &c->web_ref, &after);
	assert_string_equal(before.scale.resource_version, after.scale.resource_version);
	assert_int_equal(before.scale.spec_replicas, after.scale.spec_replicas);
}

// Counts what is reported about a pod, and that a page ends where it was reported to.
static void pods_are_listed_by_label_in_pages(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	char body[BODY_BYTES], path[PATH_BYTES], name[96];
	enum { N = 5 };
	for (int i = 0; i < N; i++) {
		snprintf(body, sizeof body,
		         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s-%d\",\"labels\":{\"run\":"
		         "\"%s\"}},"
		         "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\"}]}}",
		         c->pod, i, c->pod);
		ask_ok(c, "POST", PODS, JSON, body, &o);
	}
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "%s-%d", c->pod, i);
		ask_ok(c, "PATCH", path_to(path, PODS, name, "/status"), MERGE,
		       "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		       &o);
	}
	harness_count(&c->h, "default", c->label, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	struct pod_counts counts = o.counts;
	snprintf(path, sizeof path, PODS "?limit=2&labelSelector=run%%3D%s", c->pod);
	// The body may be larger than an outcome keeps: only its beginning, with the list's metadata, is wanted.
	ask_ok(c, "GET", path, NULL, NULL, &o);
	bool has_more = strstr(o.body, "\"continue\":\"") != NULL;
	struct outcome bad;
	harness_request(&c->h, "GET", PODS "?labelSelector=a%3D%3D%3Db", NULL, NULL, &bad);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%s-%d", c->pod, i);
		ask_ok(c, "DELETE", path_to(path, PODS, name, "?gracePeriodSeconds=0"), NULL, NULL, &o);
	}
	assert_int_equal(counts.total, N);
	assert_int_equal(counts.ready, 2);
	assert_int_equal(counts.pending, N - 2);
	assert_true(has_more);
	assert_int_equal(bad.error.code, 400);
	assert_non_null(strstr(bad.error.msg, "unable to parse requirement"));
	harness_count(&c->h, "default", c->label, &o);
	assert_int_equal(o.counts.total, 0);
}

// A second client with other credentials.
static void start_other(struct contract *c, struct harness *other, const char *token, const char *token_file)
{
	harness_start_loop(other);
	other->config = c->h.config;
	other->config.token = token;
	other->config.token_file = token_file;
	harness_start_client(other, 0);
}

static void viewer_may_look_but_not_write(void **state)
{
	struct contract *c = *state;
	struct harness viewer;
	struct outcome o;
	const char *token_file = getenv("CONTRACT_VIEWER_TOKEN");
	if (!token_file)
		skip();
	start_other(c, &viewer, NULL, token_file);
	harness_get(&viewer, &c->web_ref, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	harness_patch(&viewer, &c->web_ref, o.scale.resource_version, 3, &o);
	assert_int_equal(o.error.kind, ERR_AUTH);
	assert_int_equal(o.error.code, 403);
	assert_non_null(strstr(o.error.msg, "is forbidden: User \""));
	assert_non_null(strstr(o.error.msg,
	                       "cannot patch resource \"deployments/scale\" in API group \"apps\" in the namespace "
	                       "\"default\""));
	harness_stop(&viewer);
}

static void wrong_token_is_unauthorized(void **state)
{
	struct contract *c = *state;
	struct harness stranger;
	struct outcome o;
	start_other(c, &stranger, "not-a-token", NULL);
	harness_get(&stranger, &c->web_ref, &o);
	assert_int_equal(o.error.kind, ERR_AUTH);
	assert_int_equal(o.error.code, 401);
	assert_non_null(strstr(o.error.msg, "Unauthorized"));
	harness_stop(&stranger);
}

static void server_says_its_version_and_health(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	ask_ok(c, "GET", "/version", NULL, NULL, &o);
	assert_non_null(strstr(o.body, "\"gitVersion\""));
	ask_ok(c, "GET", "/readyz", NULL, NULL, &o);
	assert_string_equal(o.body, "ok");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(scale_has_replicas_version_and_selector),
	        cmocka_unit_test(patch_changes_the_object_and_its_version),
	        cmocka_unit_test(patch_that_changes_nothing_leaves_the_version),
	        cmocka_unit_test(of_two_writers_one_is_refused),
	        cmocka_unit_test(stateful_set_scales_the_same_way),
	        cmocka_unit_test(custom_resource_with_scale_does_too),
	        cmocka_unit_test(missing_object_is_not_found),
	        cmocka_unit_test(nonsense_is_refused_and_changes_nothing),
	        cmocka_unit_test(object_is_created_once),
	        cmocka_unit_test(dry_run_answers_but_writes_nothing),
	        cmocka_unit_test(pods_are_listed_by_label_in_pages),
	        cmocka_unit_test(viewer_may_look_but_not_write),
	        cmocka_unit_test(wrong_token_is_unauthorized),
	        cmocka_unit_test(server_says_its_version_and_health),
	};
	if (getenv("CONTRACT_ONLY"))
		cmocka_set_test_filter(getenv("CONTRACT_ONLY"));
	return cmocka_run_group_tests(tests, setup, teardown);
}
