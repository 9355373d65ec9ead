// SPDX-License-Identifier: Apache-2.0
// Goal: a client that keeps changing a scale against its policy is detected after three changes, with pauses that grow
// and shrink again; everything else that changes a scale is not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/policy/scale_fight.h"

#define S 1000LL
#define M (60 * S)
#define H (60 * M)

// The policy is about to write from -> to, and does unless it must not. Returns the pause.
static int64_t act(struct scale_fight *f, int32_t from, int32_t to, int64_t now_ms)
{
	int64_t pause_ms = scale_fight_check(f, from, to, 15 * S, now_ms);
	if (pause_ms == 0)
		scale_fight_written(f, to);
	return pause_ms;
}

static void third_change_against_the_policy_is_a_fight(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct {
			int32_t from, to;
			int64_t at_ms;
		} write[6];
		int n;
		bool is_fight; // at the last write, and not before
	} rows[] = {
	        // clang-format off
	        {"script every 20 s",                 {{1, 3, 0}, {9, 3, 20 * S}, {9, 3, 40 * S}, {9, 3, 60 * S}},               4, true},
	        {"script that scales down",           {{1, 9, 0}, {2, 9, 20 * S}, {1, 9, 40 * S}, {0, 9, 60 * S}},               4, true},
	        {"two changes",                       {{1, 3, 0}, {9, 3, 20 * S}, {9, 3, 40 * S}},                               3, false},
	        {"kubectl scale once",                {{1, 3, 0}, {9, 3, 20 * S}, {3, 4, 40 * S}, {4, 5, 60 * S}, {5, 4, 80 * S}}, 5, false},
	        {"before the first own write",        {{9, 3, 0}, {9, 3, 20 * S}, {9, 3, 40 * S}},                               3, false},
	        {"third at the end of the window",    {{1, 3, 0}, {9, 3, M}, {9, 3, 2 * M}, {9, 3, 11 * M}},                     4, true},
	        {"third after the window",            {{1, 3, 0}, {9, 3, M}, {9, 3, 2 * M}, {9, 3, 11 * M + 1}},                 4, false},
	        {"slow manual changes",               {{1, 3, 0}, {9, 3, 6 * M}, {9, 3, 12 * M}, {9, 3, 18 * M}, {9, 3, 24 * M}}, 5, false},
	        {"own steps",                         {{1, 2, 0}, {2, 4, 15 * S}, {4, 2, 30 * S}, {2, 4, 45 * S}, {4, 1, 60 * S}}, 5, false},
	        {"changes that the policy continues", {{1, 2, 0}, {3, 4, 15 * S}, {5, 6, 30 * S}, {7, 8, 45 * S}, {9, 10, 60 * S}}, 5, false},
	        {"reversed in two steps each",        {{1, 3, 0}, {9, 6, 10 * S}, {6, 3, 20 * S}, {9, 6, 30 * S}, {6, 3, 40 * S}, {9, 6, 50 * S}}, 6, true},
	        // clang-format on
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct scale_fight f = {0};
		for (int k = 0; k < rows[i].n; k++) {
			bool is_last = k == rows[i].n - 1;
			int64_t pause_ms = act(&f, rows[i].write[k].from, rows[i].write[k].to, rows[i].write[k].at_ms);
			if (pause_ms != (is_last && rows[i].is_fight ? SCALE_FIGHT_PAUSE_MS : 0))
				fail_msg("%s: write %d: pause of %lld ms", rows[i].name, k, (long long)pause_ms);
		}
	}
}

static void change_that_the_policy_agreed_to_is_not_against_it(void **state)
{
	(void)state;
	for (int n_agreed = 0; n_agreed <= 3; n_agreed++) {
		struct scale_fight f = {0};
		int64_t now_ms = 0, pause_ms = act(&f, 1, 3, now_ms);
		for (int i = 0; i < 10 && pause_ms == 0; i++) {
			for (int k = 0; k < n_agreed; k++)
				scale_fight_agreed(&f, 2); // the load has fallen; then it rises again
			pause_ms = act(&f, 2, 3, now_ms += 30 * S);
		}
		assert_int_equal(pause_ms > 0, n_agreed < SCALE_FIGHT_AGREED);
	}
	struct scale_fight f = {0};
	scale_fight_written(&f, 3);
	for (int i = 0; i < 9; i++)
		scale_fight_agreed(&f, 3); // steady ticks before the change
	assert_true(f.is_armed);
}

static void change_counts_once_however_often_its_reversal_fails(void **state)
{
	(void)state;
	struct scale_fight f = {0};
	scale_fight_written(&f, 3);
	for (int i = 0; i < 20; i++)
		assert_int_equal(scale_fight_check(&f, 9, 3, 15 * S, i * 15 * S), 0);
	scale_fight_written(&f, 3);
	assert_int_equal(act(&f, 9, 3, 5 * M), 0);
}

static void replicas_that_the_server_stored_are_compared(void **state)
{
	(void)state;
	struct scale_fight f = {0};
	for (int i = 0; i < 10; i++) { // a webhook limits the replicas to 5
		assert_int_equal(scale_fight_check(&f, i ? 5 : 1, 9, 15 * S, i * 15 * S), 0);
		scale_fight_written(&f, 5);
	}
}

static void write_before_a_hand_over_is_forgotten(void **state)
{
	(void)state;
	struct scale_fight f = {0};
	for (int i = 0; i < 10; i++) {
		assert_int_equal(act(&f, 9, 3, i * 15 * S), 0);
		f.is_armed = false;
	}
}

static void long_interval_has_a_long_window(void **state)
{
	(void)state;
	struct scale_fight f = {0};
	int64_t pause_ms[5];
	for (int i = 0; i < 4; i++) {
		pause_ms[i] = scale_fight_check(&f, 9, 3, 10 * M, i * 20 * M);
		scale_fight_written(&f, 3);
	}
	assert_int_equal(pause_ms[2], 0);
	assert_int_equal(pause_ms[3], SCALE_FIGHT_PAUSE_MS);
}

// Three changes from now_ms on, 20 s apart, of which the last may start a pause; returns it.
static int64_t fight(struct scale_fight *f, int64_t *now_ms)
{
	int64_t pause_ms = act(f, 9, 3, *now_ms);
	for (int i = 0; i < 3 && pause_ms == 0; i++)
		pause_ms = act(f, 9, 3, *now_ms += 20 * S);
	return pause_ms;
}

static void pauses_double_up_to_an_hour_and_start_anew_after_a_quiet_time(void **state)
{
	(void)state;
	static const int64_t expected[] = {5 * M, 10 * M, 20 * M, 40 * M, H, H};
	struct scale_fight f = {0};
	int64_t now_ms = 0;
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		int64_t pause_ms = fight(&f, &now_ms);
		assert_int_equal(pause_ms, expected[i]);
		now_ms += pause_ms;
		assert_int_equal(act(&f, 9, 3, now_ms), 0); // resumed: it writes once
		now_ms += 20 * S;
	}
	assert_int_equal(fight(&f, &now_ms), H);
	now_ms += H + 30 * M; // quiet for less than an hour: three changes again, but no first pause
	assert_int_equal(act(&f, 9, 3, now_ms), 0);
	assert_int_equal(act(&f, 9, 3, now_ms + S), 0);
	assert_int_equal(act(&f, 9, 3, now_ms + 2 * S), 0);
	assert_int_equal(act(&f, 9, 3, now_ms + 3 * S), H);
	now_ms += 2 * H + M;
	assert_int_equal(fight(&f, &now_ms), 5 * M);
}

static void fight_continues_after_a_pause_with_one_change(void **state)
{
	(void)state;
	struct scale_fight f = {0};
	int64_t now_ms = 0;
	now_ms += fight(&f, &now_ms);
	assert_int_equal(act(&f, 9, 3, now_ms), 0);
	assert_int_equal(act(&f, 9, 3, now_ms + 20 * S), 10 * M);
	now_ms += 20 * S + 10 * M;
	assert_int_equal(act(&f, 9, 3, now_ms), 0);
	assert_int_equal(act(&f, 9, 3, now_ms + 11 * M), 0); // a manual change, later
}

#define ENTRY(manager, time, fields)                                                                                   \
	"{\"manager\":\"" manager "\",\"operation\":\"Update\",\"apiVersion\":\"apps/v1\",\"time\":\"" time            \
	"\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":" fields "}"
#define REPLICAS "{\"f:spec\":{\"f:replicas\":{}}}"
#define STATUS   "{\"f:status\":{\"f:replicas\":{}}}"
#define LIST(entries)                                                                                                  \
	"{\"kind\":\"DeploymentList\",\"items\":[{\"metadata\":{\"name\":\"web\",\"managedFields\":[" entries          \
	"]},\"spec\":{\"replicas\":9}}]}"

static void field_manager_is_the_last_that_changed_the_replicas(void **state)
{
	(void)state;
	static const struct {
		const char *json, *manager;
	} rows[] = {
	        {LIST(ENTRY("helm", "2026-11-28T10:00:00Z", "{\"f:spec\":{\"f:template\":{}}}") "," ENTRY(
	                 "kubectl", "2026-11-28T10:00:05Z", REPLICAS) "," ENTRY("kube-controller-manager",
	                                                                        "2026-11-28T10:00:09Z", STATUS)),
	         "kubectl"},
	        {LIST(ENTRY("argocd-controller", "2026-11-28T10:00:09Z",
	                    REPLICAS) "," ENTRY("helm", "2026-11-28T10:00:00Z", REPLICAS)),
	         "argocd-controller"},
	        {LIST("{\"manager\":\"timeless\",\"fieldsV1\":" REPLICAS "}"), "timeless"},
	        {LIST(ENTRY("a-manager-whose-name-is-too-long-for-the-buffer", "2026-11-28T10:00:00Z", REPLICAS)), ""},
	        {LIST(""), ""},
	        {"{\"items\":[]}", ""},
	        {"{\"items\":[{\"metadata\":{\"managedFields\":[1,{\"fieldsV1\":[]}]}}]}", ""},
	        {"[", ""},
	        {"", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char out[32];
		scale_fight_manager(rows[i].json, strlen(rows[i].json), NULL, out, sizeof out);
		assert_string_equal(out, rows[i].manager);
	}
	char out[32];
	const char *ray =
	        LIST(ENTRY("kuberay", "2026-11-28T10:00:00Z", "{\"f:spec\":{\"f:workerGroupSpecs\":{}}}") "," ENTRY(
	                "kubectl", "2026-11-28T10:00:05Z", REPLICAS));
	scale_fight_manager(ray, strlen(ray), "spec.workerGroupSpecs[groupName=gpu].replicas", out, sizeof out);
	assert_string_equal(out, "kuberay");
}

static void creation_of_the_target_is_read(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		int64_t created_ms;
	} rows[] = {
	        {"{\"items\":[{\"metadata\":{\"creationTimestamp\":\"2026-01-05T09:00:00Z\"}}]}", 1767603600000},
	        {"{\"items\":[{\"metadata\":{\"creationTimestamp\":\"yesterday\"}}]}", -1},
	        {"{\"items\":[{\"metadata\":{\"creationTimestamp\":7}}]}", -1},
	        {"{\"items\":[]}", -1},
	        {"", -1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char out[32];
		assert_true(scale_fight_manager(rows[i].json, strlen(rows[i].json), NULL, out, sizeof out) ==
		            rows[i].created_ms);
	}
}

static void fight_starts_with_the_first_of_its_changes(void **state)
{
	(void)state;
	struct scale_fight f = {0};
	int64_t now_ms = 100 * M;
	for (int i = 0; i < 4; i++) // the first is too long ago
		act(&f, 9, 3, now_ms + i * 6 * M);
	assert_int_equal(f.pause_ms, 0);
	assert_int_equal(act(&f, 9, 3, now_ms + 19 * M), 5 * M);
	assert_int_equal(f.since_ms, now_ms + 12 * M);
	now_ms = f.resumed_ms;
	act(&f, 9, 3, now_ms);
	assert_int_equal(act(&f, 9, 3, now_ms + M), 10 * M);
	assert_int_equal(f.since_ms, now_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(third_change_against_the_policy_is_a_fight),
	        cmocka_unit_test(change_that_the_policy_agreed_to_is_not_against_it),
	        cmocka_unit_test(change_counts_once_however_often_its_reversal_fails),
	        cmocka_unit_test(replicas_that_the_server_stored_are_compared),
	        cmocka_unit_test(write_before_a_hand_over_is_forgotten),
	        cmocka_unit_test(long_interval_has_a_long_window),
	        cmocka_unit_test(pauses_double_up_to_an_hour_and_start_anew_after_a_quiet_time),
	        cmocka_unit_test(fight_continues_after_a_pause_with_one_change),
	        cmocka_unit_test(field_manager_is_the_last_that_changed_the_replicas),
	        cmocka_unit_test(creation_of_the_target_is_read),
	        cmocka_unit_test(fight_starts_with_the_first_of_its_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
