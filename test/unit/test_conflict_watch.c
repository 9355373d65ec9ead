// SPDX-License-Identifier: Apache-2.0
// Goal: a conflicting autoscaler of a target is reported by name while it exists, with and without KEDA; missing RBAC
// is reported and does not block; while nothing changes, no request is sent.
#include "k8s/cache/conflict_watch.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "k8s/cache/autoscaler_object.h"
#include "test/fake/k8s_harness.h"
#include "test/support/apart.h"
#include "test/support/conflict_watch_stats.h"
#include "test/support/loop.h"

#define WAIT_MS 60000
#define WEB     ((struct scale_ref){"apps/v1", "Deployment", "default", "web", NULL})

struct world {
	struct harness h;
	struct conflict_watch *scalers;
	int changes;
	const void *last_user;
};

static void on_change(void *arg, void *user)
{
	struct world *w = arg;
	w->changes++;
	w->last_user = user;
}

static void start(struct world *w, bool keda, int64_t ask_ms)
{
	struct err e = {0};
	*w = (struct world){0};
	harness_start(&w->h, &(struct fake_apiserver_options){.gpus = -1, .keda = keda});
	harness_start_client(&w->h, 1);
	w->scalers = conflict_watch_new(
	        &(struct conflict_watch_options){
	                .client = w->h.client, .on_change = on_change, .arg = w, .ask_ms = ask_ms},
	        &e);
	assert_non_null(w->scalers);
}

static void stop(struct world *w)
{
	conflict_watch_free(w->scalers);
	harness_stop(&w->h);
}

static struct conflict_interest *want(struct world *w, struct scale_ref ref)
{
	struct err e = {0};
	struct conflict_interest *want = conflict_watch_acquire(w->scalers, &ref, NULL, &e);
	if (!want)
		fail_msg("%s", e.msg);
	return want;
}

// Runs the loop until the conflict is as expected (NULL: known to be none).
static void expect_owner(struct world *w, const struct conflict_interest *want, const char *owner)
{
	int64_t end = test_now_ms() + WAIT_MS;
	for (;;) {
		const char *now = conflict_watch_find(want);
		if (conflict_watch_is_known(want) && (owner ? now && strcmp(owner, now) == 0 : !now))
			return;
		if (test_now_ms() > end)
			fail_msg("wanted %s, got %s", owner ? owner : "none", now ? now : "none");
		test_loop_for(w->h.loop, 5);
	}
}

// Turns the loop until so many objects are known: two kinds come by two streams, one of them perhaps later.
static void expect_objects(struct world *w, size_t n)
{
	struct conflict_watch_stats stats;
	TEST_BECOMES(w->h.loop, (conflict_watch_get_stats(w->scalers, &stats), stats.objects == n));
}

static void expect_error(struct world *w, const struct conflict_interest *want, const char *part)
{
	int64_t end = test_now_ms() + WAIT_MS;
	for (;;) {
		const char *now = conflict_watch_error(want);
		if (part ? now && strstr(now, part) : !now)
			return;
		if (test_now_ms() > end)
			fail_msg("wanted %s, got %s", part ? part : "no error", now ? now : "none");
		test_loop_for(w->h.loop, 5);
	}
}

static void put(struct world *w, const char *json)
{
	struct err e = {0};
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

static void put_hpa(struct world *w, const char *ns, const char *name, const char *metadata, const char *target)
{
	char json[1024];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{\"namespace\":"
	         "\"%s\",\"name\":\"%s\"%s},\"spec\":{\"maxReplicas\":3,\"scaleTargetRef\":{%s}}}",
	         ns, name, metadata, target);
	put(w, json);
}

static void put_scaled_object(struct world *w, const char *name, const char *metadata, const char *target)
{
	char json[1024];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"keda.sh/v1alpha1\",\"kind\":\"ScaledObject\",\"metadata\":{\"namespace\":"
	         "\"default\",\"name\":\"%s\"%s},\"spec\":{\"scaleTargetRef\":{%s},\"triggers\":[]}}",
	         name, metadata, target);
	put(w, json);
}

static void delete (struct world *w, const char *path)
{
	struct outcome o;
	harness_request(&w->h, "DELETE", path, NULL, NULL, &o);
	assert_false(o.is_error);
}

#define HPAS    "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
#define SCALEDS "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects"
#define ON_WEB  "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\""

#define OBJECT(spec) "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"},\"spec\":" spec "}"

// ---- objects ----

static void target_of_an_autoscaler_is_read_from_its_object(void **state)
{
	static const struct {
		enum autoscaler_kind kind;
		const char *json, *group, *target_kind, *name, *scaled_object;
		bool is_usable, has_target;
	} cases[] = {
	        {AUTOSCALER_HPA,
	         "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":"
	         "\"apps/v1\",\"kind\":\"StatefulSet\",\"name\":\"db\"}}}",
	         "apps", "StatefulSet", "db", "", true, true},
	        {AUTOSCALER_HPA,
	         "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\","
	         "\"kind\":\"ScaledObject\",\"name\":\"no\"},{\"apiVersion\":\"keda.sh/v1alpha1\",\"kind\":"
	         "\"ScaledObject\",\"name\":\"so\"}]},\"spec\":{\"scaleTargetRef\":{\"kind\":\"K\",\"name\":\"db\"}}}",
	         "", "K", "db", "so", true, true},
	        {AUTOSCALER_HPA,
	         "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\",\"labels\":{\"scaledobject.keda.sh/name\":\"lb\"}},"
	         "\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"v1\",\"kind\":\"ReplicationController\",\"name\":"
	         "\"db\"}}}",
	         "", "ReplicationController", "db", "lb", true, true},
	        {AUTOSCALER_SCALED_OBJECT,
	         "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"},\"spec\":{\"scaleTargetRef\":{\"name\":\"web\"}}}",
	         "apps", "Deployment", "web", "", true, true},
	        {AUTOSCALER_SCALED_OBJECT,
	         "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":"
	         "\"argoproj.io/v1alpha1\",\"kind\":\"Rollout\",\"name\":\"web\"}}}",
	         "argoproj.io", "Rollout", "web", "", true, true},
	        {AUTOSCALER_DATADOG,
	         OBJECT("{\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"}}"),
	         "apps", "Deployment", "web", "", true, true},
	        {AUTOSCALER_AIBRIX,
	         OBJECT("{\"scaleTargetRef\":{\"kind\":\"StormService\",\"name\":\"web\"},\"subTargetSelector\":{}}"),
	         "", "StormService", "web", "", true, true},
	        {AUTOSCALER_AIBRIX, // a role of its target
	         OBJECT("{\"scaleTargetRef\":{\"kind\":\"StormService\",\"name\":\"web\"},\"subTargetSelector\":{"
	                "\"roleName\":\"p\"}}"),
	         "", "StormService", "web", "", true, false},
	        {AUTOSCALER_KTHENA, OBJECT("{\"homogeneousTarget\":{\"target\":{\"targetRef\":{\"name\":\"web\"}}}}"),
	         "workload.serving.volcano.sh", "ModelServing", "web", "", true, true},
	        {AUTOSCALER_KTHENA_BINDING,
	         OBJECT("{\"homogeneousTarget\":{\"target\":{\"targetRef\":{\"name\":\"web\"},\"subTargets\":{\"kind\":"
	                "\"Role\",\"name\":\"p\"}}}}"),
	         "workload.serving.volcano.sh", "ModelServing", "web", "", true, false},
	        {AUTOSCALER_KTHENA, OBJECT("{\"heterogeneousTarget\":{\"params\":[]}}"), "workload.serving.volcano.sh",
	         "ModelServing", "", "", true, false},
	        {AUTOSCALER_HPA, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"},\"spec\":{}}", "", "", "", "",
	         true, false},
	        {AUTOSCALER_SCALED_OBJECT, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"a\"}}", "apps", "Deployment",
	         "", "", true, false},
	        {AUTOSCALER_HPA, "{\"metadata\":{\"name\":\"a\"}}", "", "", "", "", false, false},
	        {AUTOSCALER_HPA, "[1]", "", "", "", "", false, false},
	        {AUTOSCALER_HPA, "", "", "", "", "", false, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct autoscaler_object o;
		const char *json = cases[i].json;
		assert_int_equal(autoscaler_decode(cases[i].kind, json, strlen(json), &o), cases[i].is_usable);
		if (!cases[i].is_usable)
			continue;
		assert_int_equal(o.has_target, cases[i].has_target);
		assert_string_equal(o.target_group, cases[i].group);
		assert_string_equal(o.target_kind, cases[i].target_kind);
		assert_string_equal(o.target_name, cases[i].name);
		assert_string_equal(o.scaled_object, cases[i].scaled_object);
	}
}

// ---- owners ----

static void hpa_is_named_while_it_is_there(void **state)
{
	struct world w;
	start(&w, false, 0);
	put_hpa(&w, "default", "other", "", "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"other\"");
	put_hpa(&w, "default", "kin", "", "\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"name\":\"web\"");
	put_hpa(&w, "default", "far", "", "\"apiVersion\":\"example.dev/v1\",\"kind\":\"Deployment\",\"name\":\"web\"");
	put_hpa(&w, "elsewhere", "web", "", ON_WEB);
	struct conflict_interest *web = want(&w, WEB);
	assert_false(conflict_watch_is_known(web));
	expect_owner(&w, web, NULL);
	assert_int_equal(w.changes, 1); // it has become known
	put_hpa(&w, "default", "web", "", ON_WEB);
	expect_owner(&w, web, "HorizontalPodAutoscaler default/web");
	assert_int_equal(w.changes, 2);
	put_hpa(&w, "default", "web", ",\"labels\":{\"a\":\"b\"}", ON_WEB); // changes nothing that matters
	put_hpa(&w, "default", "earlier", "", ON_WEB);
	expect_owner(&w, web, "HorizontalPodAutoscaler default/earlier");
	assert_int_equal(w.changes, 3);
	delete (&w, HPAS "/earlier");
	expect_owner(&w, web, "HorizontalPodAutoscaler default/web");
	put_hpa(&w, "default", "web", "", "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"another\"");
	expect_owner(&w, web, NULL);
	put_hpa(&w, "default", "web", "", "\"kind\":\"Deployment\",\"name\":\"web\""); // was meant to
	expect_owner(&w, web, "HorizontalPodAutoscaler default/web");
	assert_int_equal(w.changes, 6);
	struct conflict_interest *again = want(&w, WEB); // known at once
	assert_true(conflict_watch_is_known(again));
	assert_string_equal(conflict_watch_find(again), "HorizontalPodAutoscaler default/web");
	delete (&w, HPAS "/web");
	expect_owner(&w, web, NULL);
	assert_int_equal(w.changes, 8); // both were notified
	stop(&w);
}

static void scaled_object_owns_through_its_hpa_paused_or_not(void **state)
{
	struct world w;
	start(&w, true, 0);
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, NULL);
	put_hpa(&w, "default", "keda-hpa-so",
	        ",\"ownerReferences\":[{\"apiVersion\":\"keda.sh/"
	        "v1alpha1\",\"kind\":\"ScaledObject\",\"name\":\"so\"}]",
	        ON_WEB);
	expect_owner(&w, web, "ScaledObject default/so");
	int changes = w.changes;
	put_scaled_object(&w, "so", "", "\"name\":\"web\"");
	expect_objects(&w, 2);
	delete (&w, HPAS "/keda-hpa-so"); // scaled to zero
	expect_objects(&w, 1);
	put_scaled_object(&w, "so", ",\"annotations\":{\"autoscaling.keda.sh/paused-replicas\":\"0\"}",
	                  "\"name\":\"web\"");
	test_loop_for(w.h.loop, 100);
	expect_owner(&w, web, "ScaledObject default/so");
	put_hpa(&w, "default", "a", "", ON_WEB); // a plain one beside it is not what is named
	expect_objects(&w, 2);
	test_loop_for(w.h.loop, 100);
	expect_owner(&w, web, "ScaledObject default/so");
	assert_int_equal(w.changes, changes);
	delete (&w, SCALEDS "/so");
	expect_owner(&w, web, "HorizontalPodAutoscaler default/a");
	stop(&w);
}

static void keda_may_come_and_go(void **state)
{
	struct world w;
	struct conflict_watch_stats stats;
	start(&w, false, 200);
	put_scaled_object(&w, "so", "", "\"name\":\"web\"");
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, NULL);
	fake_apiserver_serve_group(w.h.server, "keda.sh", true);
	expect_owner(&w, web, "ScaledObject default/so");
	conflict_watch_get_stats(w.scalers, &stats);
	assert_true(stats.has_keda);
	uint64_t asked = stats.keda_asked;
	test_loop_for(w.h.loop, 600); // its watch reports changes from now on
	conflict_watch_get_stats(w.scalers, &stats);
	assert_int_equal(stats.keda_asked, asked);
	fake_apiserver_serve_group(w.h.server, "keda.sh", false);
	expect_owner(&w, web, NULL);
	assert_null(conflict_watch_error(web));
	fake_apiserver_serve_group(w.h.server, "keda.sh", true);
	expect_owner(&w, web, "ScaledObject default/so");
	stop(&w);
}

// Puts an object of the kind that scales Deployment web; its reference is complete, as the API server demands it.
static void put_kind(struct world *w, const struct autoscaler_kind_info *k, const char *name)
{
	char json[1024], *at = json;
	const char *end = json + sizeof json;
	size_t depth = 0;
	at += snprintf(
	        at, (size_t)(end - at),
	        "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\"}",
	        k->group_version, k->name, name);
	for (; k->target[depth]; depth++)
		at += snprintf(at, (size_t)(end - at), "%c\"%s\":", depth ? '{' : ',', k->target[depth]);
	at += snprintf(at, (size_t)(end - at), "{" ON_WEB "}");
	while (depth-- > 0)
		at += snprintf(at, (size_t)(end - at), "}");
	put(w, json);
}

static void every_kind_of_the_table_is_found_once_it_is_served(void **state)
{
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		const struct autoscaler_kind_info *k = &autoscaler_kinds[kind];
		struct world w;
		char group[AUTOSCALER_NAME_BYTES], expected[100];
		start(&w, false, 200);
		struct conflict_interest *web = want(&w, WEB);
		expect_owner(&w, web, NULL);
		autoscaler_group_of(k->group_version, group);
		fake_apiserver_serve_group(w.h.server, group, true);
		for (int i = 0; i < AUTOSCALER_KIND__COUNT; i++) // the fake does not convert between versions
			if (strcmp(autoscaler_kinds[i].plural, k->plural) == 0)
				put_kind(&w, &autoscaler_kinds[i], "other");
		snprintf(expected, sizeof expected, "%s default/other", k->name);
		expect_owner(&w, web, expected);
		assert_null(conflict_watch_error(web));
		stop(&w);
	}
}

static void kind_served_in_two_versions_is_watched_in_one(void **state)
{
	struct world w;
	start(&w, false, 200);
	fake_apiserver_serve_group(w.h.server, "datadoghq.com", true);
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, NULL);
	struct conflict_watch_stats stats;
	test_loop_for(w.h.loop, 600); // several rounds of questions
	conflict_watch_get_stats(w.scalers, &stats);
	assert_int_equal(stats.watches, 3); // HPAs, DatadogPodAutoscalers, WatermarkPodAutoscalers
	stop(&w);
}

// Each account of the product that watches for conflicts may list and watch exactly the kinds of the table.
static void manifests_grant_list_and_watch_of_every_kind(void **state)
{
	static const char *const files[] = {
	        "manifests/base/controller-rbac.yaml",
	        "manifests/overlays/namespaced/roles.yaml",
	        "manifests/hpa-bridge/account.yaml",
	        "manifests/chart/templates/controller-rbac.yaml",
	        "manifests/chart/templates/external-metrics.yaml",
	};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char text[40000], head[300], group[AUTOSCALER_NAME_BYTES];
		FILE *f = fopen(files[i], "r");
		assert_non_null(f);
		text[fread(text, 1, sizeof text - 1, f)] = '\0';
		fclose(f);
		for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
			const struct autoscaler_kind_info *k = &autoscaler_kinds[kind];
			autoscaler_group_of(k->group_version, group);
			snprintf(head, sizeof head, "- apiGroups: [%s]\n  resources: [", group);
			const char *rule = strstr(text, head), *plural = rule ? strstr(rule, k->plural) : NULL;
			const char *verbs = rule ? strstr(rule, "\n  verbs: [list, watch]\n") : NULL;
			if (!plural || !verbs || plural > verbs || (size_t)(verbs - rule) > 200)
				fail_msg("%s: no right to list and watch %s", files[i], k->plural);
		}
	}
}

// ---- faults ----

static void forbidden_kind_hides_no_other(void **state)
{
	struct world w;
	start(&w, false, 200);
	fake_apiserver_serve_group(w.h.server, "autoscaling.aibrix.ai", true);
	fake_apiserver_serve_group(w.h.server, "datadoghq.com", true);
	fake_apiserver_fail(
	        w.h.server,
	        &(struct fake_fault){.next = 1000, .status = 403, .verb = "list", .resource = "podautoscalers"});
	put_kind(&w, &autoscaler_kinds[AUTOSCALER_WATERMARK], "other");
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, "WatermarkPodAutoscaler default/other");
	expect_error(&w, web, "cannot list resource \"podautoscalers\" in API group \"autoscaling.aibrix.ai\"");
	int changes = w.changes;
	test_loop_for(w.h.loop, 600); // asked and refused again
	assert_int_equal(w.changes, changes);
	stop(&w);
}

static void missing_rbac_is_reported_and_does_not_block(void **state)
{
	struct world w;
	start(&w, true, 0);
	put_hpa(&w, "default", "web", "", ON_WEB);
	put_scaled_object(&w, "so", "", "\"name\":\"web\"");
	fake_apiserver_fail(w.h.server, &(struct fake_fault){.next = 1000,
	                                                     .status = 403,
	                                                     .verb = "list",
	                                                     .resource = "horizontalpodautoscalers"});
	fake_apiserver_fail_also(
	        w.h.server,
	        &(struct fake_fault){.next = 1000, .status = 403, .verb = "list", .resource = "scaledobjects"});
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, NULL);
	expect_error(&w, web,
	             "cannot list resource \"horizontalpodautoscalers\" in API group \"autoscaling\" in the namespace "
	             "\"default\"");
	fake_apiserver_fail(w.h.server, &(struct fake_fault){.next = 0});
	expect_owner(&w, web, "ScaledObject default/so"); // both may be looked at now
	expect_error(&w, web, NULL);
	fake_apiserver_fail(w.h.server,
	                    &(struct fake_fault){
	                            .next = 2, .status = 403, .verb = "watch", .resource = "horizontalpodautoscalers"});
	fake_apiserver_drop_streams(w.h.server, false);
	expect_error(&w, web, "cannot watch resource \"horizontalpodautoscalers\"");
	assert_string_equal(conflict_watch_find(web), "ScaledObject default/so"); // what was known stays
	expect_error(&w, web, NULL);
	stop(&w);
}

static void keda_that_cannot_be_asked_for_is_an_error_of_its_own(void **state)
{
	struct world w;
	start(&w, true, 0);
	put_hpa(&w, "default", "web", "", ON_WEB);
	fake_apiserver_fail(w.h.server,
	                    &(struct fake_fault){.next = 1000, .status = 500, .match = "/apis/keda.sh/v1alpha1"});
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, "HorizontalPodAutoscaler default/web");
	expect_error(&w, web, "/apis/keda.sh/v1alpha1");
	stop(&w);
	// An answer that does not say what there is does not say that there is nothing.
	start(&w, true, 0);
	fake_apiserver_fail(w.h.server,
	                    &(struct fake_fault){.next = 1000, .status = 200, .match = "/apis/keda.sh/v1alpha1"});
	web = want(&w, WEB);
	expect_error(&w, web, "expected an APIResourceList, got kind \"Status\"");
	stop(&w);
}

static void conflict_is_found_after_a_broken_stream_and_a_compaction(void **state)
{
	struct world w;
	start(&w, true, 0);
	put_hpa(&w, "default", "web", "", ON_WEB);
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, "HorizontalPodAutoscaler default/web");
	for (int round = 0; round < 3; round++) {
		fake_apiserver_drop_streams(w.h.server, round == 1);
		put_hpa(&w, "default", "new", "", ON_WEB); // while no stream is open
		struct outcome o;
		if (round == 2)
			fake_apiserver_compact(w.h.server); // 410, and a new list
		expect_owner(&w, web, "HorizontalPodAutoscaler default/new");
		harness_request(&w.h, "DELETE", HPAS "/new", NULL, NULL, &o);
		expect_owner(&w, web, "HorizontalPodAutoscaler default/web");
	}
	fake_apiserver_drop_streams(w.h.server, false);
	struct outcome o;
	harness_request(&w.h, "DELETE", HPAS "/web", NULL, NULL, &o);
	fake_apiserver_compact(w.h.server); // no event will report the deletion: the list shows it
	expect_owner(&w, web, NULL);
	stop(&w);
}

// ---- cost ----

static void while_nothing_changes_nothing_is_asked(void **state)
{
	struct world w;
	struct fake_counts before, after;
	start(&w, true, 0);
	struct conflict_interest *web = want(&w, WEB);
	expect_owner(&w, web, NULL);
	TEST_BECOMES(w.h.loop, fake_apiserver_count(w.h.server, "watch", "horizontalpodautoscalers") == 1 &&
	                               fake_apiserver_count(w.h.server, "watch", "scaledobjects") == 1);
	test_loop_for(w.h.loop, 300);
	fake_apiserver_get_counts(w.h.server, &before);
	struct conflict_interest *more[50];
	for (int i = 0; i < 50; i++) { // in a namespace that is watched
		char name[16];
		snprintf(name, sizeof name, "d%d", i);
		more[i] = want(&w, (struct scale_ref){"apps/v1", "Deployment", "default", name, NULL});
		assert_true(conflict_watch_is_known(more[i]));
	}
	test_loop_for(w.h.loop, 1500);
	fake_apiserver_get_counts(w.h.server, &after);
	assert_int_equal(after.total, before.total);
	for (int i = 0; i < 50; i++)
		conflict_watch_release(more[i]);
	conflict_watch_release(web);
	struct conflict_watch_stats stats;
	conflict_watch_get_stats(w.scalers, &stats);
	assert_int_equal(stats.watches, 0);
	assert_int_equal(stats.wants, 0);
	assert_int_equal(stats.objects, 0);
	web = want(&w, WEB); // and again
	expect_owner(&w, web, NULL);
	stop(&w);
}

static void many_namespaces_are_watched_as_one(void **state)
{
	struct world w;
	struct conflict_watch_stats stats;
	enum { N = CONFLICT_NAMESPACES_MAX + 8 };
	struct conflict_interest *wants[N];
	start(&w, true, 0);
	for (int i = 0; i < N; i++) {
		char ns[16];
		snprintf(ns, sizeof ns, "ns%d", i);
		put_hpa(&w, ns, "h", "", ON_WEB);
		wants[i] = want(&w, (struct scale_ref){"apps/v1", "Deployment", ns, "web", NULL});
	}
	for (int i = 0; i < N; i++) {
		char owner[64];
		snprintf(owner, sizeof owner, "HorizontalPodAutoscaler ns%d/h", i);
		expect_owner(&w, wants[i], owner);
	}
	// Of HPAs, and of KEDA's, which may come later; each takes over when it knows all.
	TEST_BECOMES(w.h.loop, (conflict_watch_get_stats(w.scalers, &stats), stats.watches == 2 && stats.objects == N));
	for (int i = 0; i < N; i++) { // no conflict was lost
		assert_non_null(conflict_watch_find(wants[i]));
		assert_true(conflict_watch_is_known(wants[i]));
	}
	int changes = w.changes;
	test_loop_for(w.h.loop, 100);
	assert_int_equal(w.changes, changes);
	for (int i = 0; i < N; i++)
		conflict_watch_release(wants[i]);
	conflict_watch_get_stats(w.scalers, &stats);
	assert_int_equal(stats.watches, 0);
	stop(&w);
}

static void where_all_namespaces_are_forbidden_each_is_watched_alone(void **state)
{
	struct world w;
	struct conflict_watch_stats stats;
	enum { N = CONFLICT_NAMESPACES_MAX + 4 };
	struct conflict_interest *wants[N];
	start(&w, false, 0);
	fake_apiserver_fail(
	        w.h.server,
	        &(struct fake_fault){.next = 100000, .status = 403, .match = "/apis/autoscaling/v1/horizontalpod"});
	for (int i = 0; i < N; i++) {
		char ns[16];
		snprintf(ns, sizeof ns, "ns%d", i);
		put_hpa(&w, ns, "h", "", ON_WEB);
		wants[i] = want(&w, (struct scale_ref){"apps/v1", "Deployment", ns, "web", NULL});
	}
	for (int i = 0; i < N; i++) {
		char owner[64];
		snprintf(owner, sizeof owner, "HorizontalPodAutoscaler ns%d/h", i);
		expect_owner(&w, wants[i], owner);
		expect_error(&w, wants[i], NULL);
	}
	conflict_watch_get_stats(w.scalers, &stats);
	assert_int_equal(stats.watches, N + 1);
	stop(&w);
}

static void names_that_cannot_be_are_refused(void **state)
{
	struct world w;
	struct err e = {0};
	char name[300];
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	start(&w, false, 0);
	assert_null(conflict_watch_acquire(
	        w.scalers, &(struct scale_ref){"apps/v1", "Deployment", "default", name, NULL}, NULL, &e));
	assert_int_equal(e.kind, ERR_USAGE);
	assert_null(conflict_watch_acquire(w.scalers, &(struct scale_ref){"apps/v1", "Deployment", "", "x", NULL}, NULL,
	                                   &e));
	want(&w, WEB); // freed with all requests in flight
	stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(target_of_an_autoscaler_is_read_from_its_object),
	        cmocka_unit_test(hpa_is_named_while_it_is_there),
	        cmocka_unit_test(scaled_object_owns_through_its_hpa_paused_or_not),
	        cmocka_unit_test(keda_may_come_and_go),
	        cmocka_unit_test(every_kind_of_the_table_is_found_once_it_is_served),
	        cmocka_unit_test(kind_served_in_two_versions_is_watched_in_one),
	        cmocka_unit_test(manifests_grant_list_and_watch_of_every_kind),
	        cmocka_unit_test(forbidden_kind_hides_no_other),
	        cmocka_unit_test(missing_rbac_is_reported_and_does_not_block),
	        cmocka_unit_test(keda_that_cannot_be_asked_for_is_an_error_of_its_own),
	        cmocka_unit_test(conflict_is_found_after_a_broken_stream_and_a_compaction),
	        cmocka_unit_test(while_nothing_changes_nothing_is_asked),
	        cmocka_unit_test(many_namespaces_are_watched_as_one),
	        cmocka_unit_test(where_all_namespaces_are_forbidden_each_is_watched_alone),
	        cmocka_unit_test(names_that_cannot_be_are_refused),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
