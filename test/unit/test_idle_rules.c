// SPDX-License-Identifier: Apache-2.0
// Goal: a process that loses its leadership while it evaluates an idle rule, and then sees what the next leader wrote
// to the status, forgets the evaluation; and a rule that is being deleted is no longer in force.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/idle/idle_rules_private.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

#define TARGET "/apis/apps/v1/namespaces/serving/statefulsets/web"

struct world {
	struct harness h;
	struct status_writer *writer;
	struct idle_rules *rules;
	bool is_leader;
};

// metadata: further members, with a comma before each.
static void put_rule(struct world *w, int64_t last_scale_s, const char *metadata)
{
	char json[512];
	struct err e;
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"gpuscale.dev/"
	         "v1alpha1\",\"kind\":\"GPUIdleRule\",\"metadata\":{\"name\":\"nights\"%s},"
	         "\"spec\":{\"action\":\"Scale\"},\"status\":{\"lastScaleTime\":\"2026-01-05T09:00:%02dZ\"}}",
	         metadata, (int)last_scale_s);
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

// One StatefulSet is idle.
static void ask(void *arg, const char *source, const char *query, int64_t now_ms, struct idle_slot *slot)
{
	static struct obs_series idle = {.pod = "serving/web-0/StatefulSet/web/H100", .value = 1};
	bool has_data = slot->what == IDLE_ASK_ALIVE || slot->what == IDLE_ASK_COUNT;
	const struct idle_answer a = {.state = has_data ? OBS_OK : OBS_EMPTY, .series = &idle, .n_series = has_data};
	(void)arg;
	(void)source;
	(void)query;
	idle.time_ms = now_ms;
	idle_rules_answer(slot, &a);
}

static const struct price_book *prices(void *arg)
{
	(void)arg;
	return NULL;
}

static int64_t now_ms(void *arg)
{
	const struct world *w = arg;
	return clock_wall_ms(&w->h.clock);
}

static bool may_act(void *arg)
{
	const struct world *w = arg;
	return w->is_leader;
}

static const char *find_policy(void *arg, const struct scale_ref *ref, char *text, size_t size)
{
	(void)arg;
	(void)ref;
	(void)text;
	(void)size;
	return NULL;
}

static void start(struct world *w)
{
	struct err e;
	harness_start(&w->h, NULL);
	harness_start_client(&w->h, 1);
	w->writer = status_writer_new(w->h.client, &e);
	fake_apiserver_fail(w->h.server,
	                    &(struct fake_fault){.next = 1, .delay_ms = 3000, .status = 404, .match = "GET " TARGET});
	put_rule(w, 1, "");
	const struct idle_rules_options options = {.loop = w->h.loop,
	                                           .clock = &w->h.clock,
	                                           .k8s = w->h.client,
	                                           .writer = w->writer,
	                                           .ask = ask,
	                                           .matchers = "job=\"a/b\"",
	                                           .now_ms = now_ms,
	                                           .prices = prices,
	                                           .may_act = may_act,
	                                           .find_policy = find_policy,
	                                           .arg = w};
	w->rules = idle_rules_new(&options, &e);
	assert_non_null(w->rules);
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "get", "statefulsets") == 1);
}

static void stop(struct world *w)
{
	idle_rules_disconnect(w->rules);
	k8s_client_free(w->h.client);
	w->h.client = NULL;
	idle_rules_free(w->rules);
	status_writer_free(w->writer);
	harness_stop(&w->h);
}

static void status_of_the_next_leader_ends_an_evaluation(void **state)
{
	struct world w = {.is_leader = true};
	(void)state;
	start(&w);
	const struct idle_entry *entry = w.rules->entries;
	assert_ptr_equal(w.rules->evaluation.entry, entry);
	assert_int_equal(entry->n, 1);
	w.is_leader = false;
	TEST_BECOMES(w.h.loop, !entry->is_ours);
	put_rule(&w, 2, "");
	TEST_BECOMES(w.h.loop, entry->n == 0);
	assert_ptr_equal(w.rules->evaluation.entry, entry); // the read is in flight
	TEST_BECOMES(w.h.loop, !w.rules->evaluation.entry);
	assert_int_equal(entry->n, 0);
	stop(&w);
}

static void rule_that_is_being_deleted_is_not_in_force(void **state)
{
	static const char deleted[] = ",\"deletionTimestamp\":\"2026-01-05T10:00:00Z\",\"finalizers\":[\"a/b\"]";
	struct world w = {.is_leader = true};
	(void)state;
	start(&w);
	put_rule(&w, 1, deleted);
	TEST_BECOMES(w.h.loop, w.rules->entries && w.rules->entries->is_gone); // the read is in flight
	TEST_BECOMES(w.h.loop, !w.rules->entries);
	assert_null(w.rules->evaluation.entry);
	put_rule(&w, 2, deleted); // a further change, while a finalizer keeps the object
	put_rule(&w, 3, "");
	TEST_BECOMES(w.h.loop, w.rules->entries != NULL);
	assert_int_equal(w.rules->entries->last_scale_ms % 60000, 3000);
	assert_null(w.rules->entries->next);
	stop(&w);
}

static void clock_that_was_ahead_leaves_no_stamp_in_the_future(void **state)
{
	static const char json[] =
	        "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUIdleRule\",\"metadata\":{\"name\":\"nights\"},"
	        "\"spec\":{\"action\":\"Scale\"},\"status\":{\"lastScaleTime\":\"2999-01-05T09:00:00Z\",\"workloads\":["
	        "{"
	        "\"id\":\"a/StatefulSet/web\",\"namespace\":\"a\",\"kind\":\"StatefulSet\",\"name\":\"web\",\"state\":"
	        "\"Warned\",\"gpus\":\"1\",\"warnedTime\":\"2999-01-05T09:00:00Z\"}]}}";
	struct world w = {.is_leader = true};
	struct err e;
	(void)state;
	start(&w);
	struct idle_entry *entry = w.rules->entries;
	int64_t before_ms = entry->last_scale_ms, since_ms = entry->records[0].since_ms;
	idle_rules_clock_was_set(w.rules, 86400000);
	assert_int_equal(entry->last_scale_ms - before_ms, 86400000);
	assert_int_equal(entry->records[0].since_ms - since_ms, 86400000);
	idle_rules_clock_was_set(w.rules, -86400000);
	assert_int_equal(entry->last_scale_ms, before_ms);
	w.is_leader = false;
	TEST_BECOMES(w.h.loop, !entry->is_ours);
	assert_int_equal(fake_apiserver_put(w.h.server, json, &e), 0);
	TEST_BECOMES(w.h.loop, entry->n == 1 && entry->records[0].state == IDLE_WARNED);
	assert_true(entry->last_scale_ms <= now_ms(&w) && entry->records[0].warned_ms <= now_ms(&w));
	stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(status_of_the_next_leader_ends_an_evaluation),
	        cmocka_unit_test(rule_that_is_being_deleted_is_not_in_force),
	        cmocka_unit_test(clock_that_was_ahead_leaves_no_stamp_in_the_future),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
