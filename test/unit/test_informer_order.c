// SPDX-License-Identifier: Apache-2.0
// Goal: while a namespace has its own watch, the watch of all namespaces, which may be behind it, replaces no newer
// object. The watches and the client are fakes that report only what a test passes to them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "k8s/cache/informer.h"
#include "k8s/cache/watch.h"
#include "k8s/client/k8s_client.h"
#include "test/support/manual_clock.h"

struct k8s_watch {
	struct k8s_watch_options options;
};

static struct {
	struct clock clock;
	struct k8s_client client;
	struct informer *informer;
	struct informer_item a, b; // all objects of these namespaces
	struct k8s_watch *own, *all;
	struct informer_item item; // "a/web", wanted or kept
	bool keeps_objects;
	char version[32]; // of the object reported last; "": absent
	int requests;
} world;

int k8s_request_with(struct k8s_client *c, const struct k8s_request_options *options, struct k8s_call **ret_call,
                     struct err *e)
{
	world.requests++;
	if (ret_call)
		*ret_call = (struct k8s_call *)(void *)&world; // never answered
	return 0;
}

void k8s_call_cancel(struct k8s_call *call) {}

struct k8s_watch *k8s_watch_new(const struct k8s_watch_options *options, struct err *e)
{
	struct k8s_watch *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->options = *options;
	*(strstr(options->path, "/namespaces/a/") ? &world.own : &world.all) = w;
	return w;
}

void k8s_watch_free(struct k8s_watch *w)
{
	free(w);
}

void k8s_watch_relist(struct k8s_watch *w) {}

void k8s_watch_get_stats(const struct k8s_watch *w, struct k8s_watch_stats *ret_stats)
{
	*ret_stats = (struct k8s_watch_stats){0};
}

static void list(struct k8s_watch *w)
{
	w->options.callbacks.on_list(w->options.arg);
}

static void complete(struct k8s_watch *w)
{
	w->options.callbacks.on_synced(w->options.arg);
}

static void report(struct k8s_watch *w, const char *version, bool is_deleted)
{
	char json[256];
	int n = snprintf(json, sizeof json,
	                 "{\"metadata\":{\"name\":\"web\",\"namespace\":\"a\",\"resourceVersion\":\"%s\"}}", version);
	const struct k8s_watch_callbacks *fns = &w->options.callbacks;
	(is_deleted ? fns->on_deleted : fns->on_object)(w->options.arg, json, (size_t)n);
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	if (!item && !world.keeps_objects)
		return;
	const char *version = strstr(json, "resourceVersion\":\"") + strlen("resourceVersion\":\"");
	snprintf(world.version, sizeof world.version, "%.*s", (int)strcspn(version, "\""), version);
	if (!item)
		assert_int_equal(informer_put(world.informer, &world.item, "a/web", "", NULL), 0);
}

static void on_absent(void *arg, struct informer_item *item)
{
	world.version[0] = '\0';
	if (item->role == INFORMER_KEPT)
		informer_remove(item);
}

// Namespace a has its own watch; namespace b, the second, starts the watch of all namespaces.
static int set_up(void **state)
{
	struct err e;
	memset(&world, 0, sizeof world);
	clock_init_manual(&world.clock, 1000);
	world.client.options.clock = &world.clock;
	world.informer =
	        informer_new(&(struct informer_options){.client = &world.client,
	                                                .group_path = "/apis/apps/v1",
	                                                .plural = "deployments",
	                                                .own_watches = 1,
	                                                .callbacks = {.on_object = on_object, .on_absent = on_absent}},
	                     &e);
	assert_non_null(world.informer);
	assert_int_equal(informer_put(world.informer, &world.a, "a/", NULL, &e), 0);
	assert_int_equal(informer_put(world.informer, &world.b, "b/", NULL, &e), 0);
	assert_true(world.own && world.all);
	return 0;
}

static int tear_down(void **state)
{
	struct informer_item *item = informer_list(world.informer);
	if (item)
		informer_remove(item);
	informer_remove(&world.a);
	informer_remove(&world.b);
	informer_free(world.informer);
	return 0;
}

// The own watch reported version 9 before the item was added, and does not report it again.
static void object_added_late_is_not_taken_from_an_old_page(void **state)
{
	list(world.all);
	list(world.own);
	report(world.own, "9", false);
	complete(world.own);
	assert_int_equal(informer_put(world.informer, &world.item, "a/web", NULL, NULL), 0);
	report(world.all, "5", false);
	assert_string_equal(world.version, "");
	assert_int_equal(world.item.state, INFORMER_UNKNOWN);
	assert_true(informer_refetch(&world.item, 0));
	assert_int_equal(world.requests, 1);
}

// Without numeric versions, no list shows which of two versions is newer.
static void non_numeric_version_is_fetched_at_takeover(void **state)
{
	world.keeps_objects = true;
	list(world.own);
	list(world.all);
	report(world.all, "new", false);
	report(world.own, "old", false);
	assert_string_equal(world.version, "old");
	complete(world.all);
	assert_int_equal(world.requests, 1);
	assert_int_equal(world.item.state, INFORMER_UNKNOWN);
}

static void non_numeric_version_is_not_replaced_by_the_watch_of_all(void **state)
{
	world.keeps_objects = true;
	list(world.own);
	report(world.own, "new", false);
	complete(world.own);
	list(world.all);
	report(world.all, "old", false);
	assert_string_equal(world.version, "new");
	complete(world.all);
	assert_int_equal(world.requests, 1);
}

// While the own watch lists again, which resets the comparison of versions, an old deletion arrives.
static void old_deletion_during_a_list_removes_no_object(void **state)
{
	world.keeps_objects = true;
	list(world.all);
	list(world.own);
	report(world.own, "9", false);
	complete(world.own);
	list(world.own);
	report(world.all, "7", true);
	assert_string_equal(world.version, "9");
	report(world.all, "6", false);
	assert_string_equal(world.version, "9");
	report(world.all, "10", true);
	assert_string_equal(world.version, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(object_added_late_is_not_taken_from_an_old_page),
	        TEST(non_numeric_version_is_fetched_at_takeover),
	        TEST(non_numeric_version_is_not_replaced_by_the_watch_of_all),
	        TEST(old_deletion_during_a_list_removes_no_object),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
