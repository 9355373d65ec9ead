// SPDX-License-Identifier: Apache-2.0
// Goal: a leaking pod is replaced only if it is a replica, and only while all replicas are Ready.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "controller/remedy/leak_choice.h"

// Three replicas, all Ready.
static const struct leak_facts complete = {
        .owner = {"ReplicaSet", "web-5d4f"},
        .uses_gpus = true,
        .replicas = 3,
        .counts = {.total = 3, .ready = 3},
};

static void replica_is_replaced_while_all_are_ready(void **state)
{
	struct leak_facts f = complete;
	(void)state;
	assert_int_equal(leak_choose(&f), LEAK_REPLACE);
	f.owner = (struct leak_owner){"StatefulSet", "web"};
	assert_int_equal(leak_choose(&f), LEAK_REPLACE);
	f.counts =
	        (struct pod_counts){.total = 5, .ready = 3, .failed = 2}; // what earlier evictions by the kubelet left
	assert_int_equal(leak_choose(&f), LEAK_REPLACE);
}

static void replica_waits_for_the_replacement_of_an_earlier_replica(void **state)
{
	static const struct {
		const char *name;
		int32_t replicas;
		struct pod_counts counts;
	} rows[] = {
	        {"being deleted", 3, {.total = 4, .ready = 3, .terminating = 1}},
	        {"gone, and not replaced yet", 3, {.total = 2, .ready = 2}},
	        {"replacement is pending", 3, {.total = 3, .ready = 2, .pending = 1}},
	        {"replacement is not Ready", 3, {.total = 3, .ready = 2}},
	        {"replacement failed", 3, {.total = 3, .ready = 2, .failed = 1}},
	        {"scaled down at this moment", 2, {.total = 3, .ready = 3}},
	        {"scaled to zero", 0, {.total = 0, .ready = 0}},
	        {"only replica is not Ready", 1, {.total = 1, .ready = 0}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct leak_facts f = complete;
		f.replicas = rows[i].replicas;
		f.counts = rows[i].counts;
		if (leak_choose(&f) != LEAK_INCOMPLETE)
			fail_msg("%s", rows[i].name);
	}
}

static void pod_that_loses_work_is_never_replaced(void **state)
{
	static const struct {
		struct leak_facts change;
		enum leak_choice want;
	} rows[] = {
	        {{.owner = {"Job", "train"}, .uses_gpus = true}, LEAK_NOT_A_REPLICA},
	        {{.owner = {"DaemonSet", "agent"}, .uses_gpus = true}, LEAK_NOT_A_REPLICA},
	        {{.owner = {"", ""}, .uses_gpus = true}, LEAK_NOT_A_REPLICA},
	        {{.owner = {"ReplicaSet", "web"}, .uses_gpus = true, .is_pinned = true}, LEAK_PINNED},
	        {{.owner = {"StatefulSet", "web"}, .uses_gpus = true, .waits_for_checkpoint = true}, LEAK_CHECKPOINT},
	        {{.owner = {"ReplicaSet", "web"}}, LEAK_WITHOUT_GPUS},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct leak_facts f = rows[i].change;
		f.replicas = complete.replicas;
		f.counts = complete.counts;
		assert_int_equal(leak_choose(&f), rows[i].want);
		assert_int_equal(leak_choose_pod(&f), rows[i].want);
	}
}

#define POD(references) "{\"items\":[{\"metadata\":{\"name\":\"p\",\"ownerReferences\":" references "}}]}"

static void owner_is_the_controller_of_the_pod(void **state)
{
	static const struct {
		const char *json, *kind, *name;
	} rows[] = {
	        {POD("[{\"kind\":\"A\",\"name\":\"a\"},{\"controller\":true,\"kind\":\"ReplicaSet\",\"name\":\"web\"}"
	             "]"),
	         "ReplicaSet", "web"},
	        {POD("[{\"controller\":false,\"kind\":\"ReplicaSet\",\"name\":\"web\"}]"), "", ""},
	        {POD("[{\"controller\":true,\"kind\":\"ReplicaSet\"}]"), "", ""},
	        {POD("[{\"controller\":true,\"kind\":7,\"name\":\"web\"}]"), "", ""},
	        {POD("[]"), "", ""},
	        {POD("{}"), "", ""},
	        {"{\"items\":[]}", "", ""},
	        {"{\"items\":[{\"metadata\":{\"owner", "", ""},
	        {"", "", ""},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct leak_owner owner;
		leak_owner_read(rows[i].json, strlen(rows[i].json), &owner);
		assert_string_equal(owner.kind, rows[i].kind);
		assert_string_equal(owner.name, rows[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(replica_is_replaced_while_all_are_ready),
	        cmocka_unit_test(replica_waits_for_the_replacement_of_an_earlier_replica),
	        cmocka_unit_test(pod_that_loses_work_is_never_replaced),
	        cmocka_unit_test(owner_is_the_controller_of_the_pod),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
