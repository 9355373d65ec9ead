// SPDX-License-Identifier: Apache-2.0
#include "controller/external/external_metrics_server.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/server/metrics_api.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define NOW_MS   1767603600000 // 2026-01-05T09:00:00Z

// Three policies: llama and mistral in serving, llama in other.
struct world {
	struct policy_signal signals[3][2];
	struct policy policies[3];
	struct scale_target targets[3];
	struct decision decisions[3];
	struct external_source sources[3];
	struct buf out;
	struct err e;
};

static struct world w;

static int setup(void **state)
{
	static const char *const names[][2] = {{"serving", "llama"}, {"serving", "mistral"}, {"other", "llama"}};
	memset(&w, 0, sizeof w);
	for (size_t i = 0; i < 3; i++) {
		w.signals[i][0] = (struct policy_signal){.name = "queue", .stale_after_ms = 60000};
		w.signals[i][1] = (struct policy_signal){.name = i == 1 ? "tokens" : "sm_active",
		                                         .stale_after_ms = 60000,
		                                         .window = {.set = true, .duration_ms = 120000}};
		w.policies[i] = (struct policy){.namespace_name = names[i][0],
		                                .name = names[i][1],
		                                .interval_ms = 15000,
		                                .signals = w.signals[i],
		                                .n_signals = 2};
		w.targets[i] = (struct scale_target){.kind = "Deployment", .name = names[i][1]};
		w.decisions[i] = (struct decision){
		        .time_ms = NOW_MS - 5000,
		        .current = 2,
		        .desired = (int32_t)i + 3,
		        .n_signals = 2,
		        .signals = {{.value = 10 * ((double)i + 1), .age_ms = 4000}, {.value = 0.5, .age_ms = 0}}};
		w.sources[i] = (struct external_source){&w.policies[i], &w.targets[i], &w.decisions[i], ""};
	}
	buf_init(&w.out, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	buf_done(&w.out);
	return 0;
}

static bool next(void *arg, size_t i, struct external_source *ret)
{
	if (i >= COUNT(w.sources))
		return false;
	*ret = w.sources[i];
	return true;
}

static int ask(const char *ns, const char *metric, const char *selector)
{
	buf_reset(&w.out);
	err_clear(&w.e);
	return external_values_write(&w.out, next, NULL, ns, metric, selector, NOW_MS, &w.e);
}

// How many values the answer has.
static int count(const char *ns, const char *metric, const char *selector)
{
	if (ask(ns, metric, selector) < 0)
		fail_msg("%s %s %s: %s", ns, metric, selector ? selector : "", w.e.msg);
	int n = 0;
	for (const char *p = buf_str(&w.out); (p = strstr(p, "\"metricName\"")); p++)
		n++;
	return n;
}

static bool says(const char *part)
{
	return strstr(buf_str(&w.out), part) != NULL;
}

static void names_and_selectors_pick_values(void **state)
{
	assert_int_equal(count("serving", "queue", NULL), 2);
	assert_true(says("\"metricName\":\"queue\",\"metricLabels\":{\"policy\":\"llama\",\"signal\":\"queue\","
	                 "\"target_kind\":\"Deployment\",\"target_name\":\"llama\"},\"timestamp\":"
	                 "\"2026-01-05T08:59:51Z\",\"value\":\"10\""));
	assert_true(says("\"value\":\"20\""));
	assert_int_equal(count("serving", "queue", "policy=llama"), 1);
	assert_int_equal(count("serving", "queue", "target_name in (mistral,x)"), 1);
	assert_true(says("\"value\":\"20\""));
	assert_int_equal(count("serving", "queue", "policy=absent"), 0);
	assert_int_equal(count("serving", "llama:queue", NULL), 1);
	assert_true(says("\"metricName\":\"llama:queue\""));
	assert_int_equal(count("serving", "mistral:tokens", "signal=tokens"), 1);
	assert_true(says("\"window\":120,\"value\":\"500m\""));
	assert_int_equal(count("other", "queue", NULL), 1);
	assert_true(says("\"value\":\"30\""));
	assert_int_equal(count("serving", "@desired-replicas", NULL), 2);
	assert_int_equal(count("serving", "llama:@desired-replicas", NULL), 1);
	assert_true(says("\"timestamp\":\"2026-01-05T08:59:55Z\",\"value\":\"3\""));
}

static int ask_of(const char *ns, const char *resource, const char *object, const char *metric, const char *selector)
{
	struct metrics_path p = {.page = METRICS_VALUES};
	snprintf(p.namespace_name, sizeof p.namespace_name, "%s", ns);
	snprintf(p.resource, sizeof p.resource, "%s", resource);
	snprintf(p.object, sizeof p.object, "%s", object);
	snprintf(p.metric, sizeof p.metric, "%s", metric);
	buf_reset(&w.out);
	err_clear(&w.e);
	return custom_value_write(&w.out, next, NULL, &p, selector, NOW_MS, &w.e);
}

static void custom_metric_is_of_the_target_or_of_the_policy(void **state)
{
	for (size_t i = 0; i < 3; i++)
		w.targets[i].api_version = "apps/v1";
	w.targets[0].name = "web"; // of policy llama
	assert_int_equal(ask_of("serving", "deployments.apps", "web", "queue", NULL), 0);
	assert_true(says("\"describedObject\":{\"kind\":\"Deployment\",\"namespace\":\"serving\",\"name\":\"web\","));
	assert_true(says("\"value\":\"10\""));
	assert_int_equal(ask_of("serving", "gpuautoscalers.gpuscale.dev", "mistral", "queue", NULL), 0);
	assert_true(says("\"kind\":\"GPUAutoscaler\"") && says("\"value\":\"20\""));
	assert_int_equal(ask_of("other", "deployments.apps", "llama", "@desired-replicas", NULL), 0);
	assert_true(says("\"value\":\"5\""));
	static const char *const unknown[][4] = {
	        {"serving", "deployments.apps", "llama", "queue"}, // the policy's name, not the target's
	        {"serving", "deployments.apps", "web", "nothing"},
	        {"other", "deployments.apps", "web", "queue"},
	        {"serving", "deployments", "web", "queue"},
	        {"serving", "deployments.app", "web", "queue"},
	        {"serving", "statefulsets.apps", "web", "queue"},
	        {"serving", "pods", "web", "queue"},
	        {"serving", "gpuautoscalers.gpuscale.dev", "web", "queue"},
	};
	for (size_t i = 0; i < COUNT(unknown); i++) {
		assert_int_equal(ask_of(unknown[i][0], unknown[i][1], unknown[i][2], unknown[i][3], NULL), -1);
		if (w.e.kind != ERR_NOT_FOUND)
			fail_msg("row %zu: %s", i, w.e.msg);
	}
	assert_int_equal(ask_of("serving", "deployments.apps", "web", "queue", "policy=mistral"), -1);
	assert_int_equal(w.e.kind, ERR_NOT_FOUND);
	w.targets[1].name = "web";
	assert_int_equal(ask_of("serving", "deployments.apps", "web", "queue", NULL), -1);
	assert_int_equal(w.e.kind, ERR_INPUT); // of two policies
	assert_int_equal(ask_of("serving", "deployments.apps", "web", "queue", "policy=mistral"), 0);
	assert_true(says("\"value\":\"20\""));
	w.decisions[1].signals[0].age_ms = 100000;
	assert_int_equal(ask_of("serving", "deployments.apps", "web", "queue", "policy=mistral"), -1);
	assert_int_equal(w.e.kind, ERR_SERVER); // older than staleAfter
	w.targets[2].api_version = "leaderworkerset.x-k8s.io/v1";
	w.targets[2].kind = "Policy";
	assert_int_equal(ask_of("other", "policies.leaderworkerset.x-k8s.io", "llama", "queue", NULL), 0);
}

static void metric_that_no_policy_of_the_namespace_has_is_not_found(void **state)
{
	static const char *const rows[][2] = {
	        {"serving", "nothing"},         {"empty", "queue"},        {"serving", "llama:tokens"},
	        {"other", "mistral:queue"},     {"serving", "llam:queue"}, {"serving", "llamaa:queue"},
	        {"serving", ":queue"},          {"serving", "llama:"},     {"serving", "llama:queue:"},
	        {"empty", "@desired-replicas"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(ask(rows[i][0], rows[i][1], NULL), -1);
		if (w.e.kind != ERR_NOT_FOUND)
			fail_msg("%s %s: %s", rows[i][0], rows[i][1], w.e.msg);
	}
}

static void bad_selector_is_an_error_whatever_else(void **state)
{
	assert_int_equal(ask("serving", "queue", "policy in"), -1);
	assert_int_equal(w.e.kind, ERR_INPUT);
	assert_int_equal(ask("serving", "nothing", "="), -1);
	assert_int_equal(w.e.kind, ERR_INPUT);
}

static void blind(const char *why)
{
	if (ask("serving", "queue", NULL) == 0)
		fail_msg("%s was served: %s", why, buf_str(&w.out));
	assert_int_equal(w.e.kind, ERR_SERVER);
	if (!strstr(w.e.msg, why))
		fail_msg("%s: %s", why, w.e.msg);
	// The other policy's value can still be had by itself.
	assert_int_equal(count("serving", "mistral:queue", NULL), 1);
	assert_int_equal(count("serving", "queue", "policy!=llama"), 1);
}

static void unusable_value_withholds_all_values(void **state)
{
	struct decision *d = &w.decisions[0];
	struct decision_signal good = d->signals[0];
	static const enum signal_state states[] = {SIGNAL_MISSING, SIGNAL_IGNORED, SIGNAL_FILLING};
	for (size_t i = 0; i < COUNT(states); i++) {
		d->signals[0].state = states[i];
		d->signals[0].reason = REASON_STALE_DATA;
		blind("StaleData");
	}
	d->signals[0] = good;
	static const double values[] = {NAN, INFINITY, -INFINITY};
	for (size_t i = 0; i < COUNT(values); i++) {
		d->signals[0].value = values[i];
		blind("not a number");
	}
	d->signals[0].value = 1e16;
	blind("exceeds the largest quantity");
	d->signals[0] = good;
	w.sources[0].decision = NULL;
	w.sources[0].error = "Deployment serving/llama: not found";
	blind("nothing was decided yet: Deployment serving/llama: not found");
}

static void value_is_given_until_it_is_stale_and_not_a_millisecond_longer(void **state)
{
	struct decision *d = &w.decisions[0];
	d->signals[0].age_ms = 40000;
	d->time_ms = NOW_MS - 20000; // the sample is 60 s old now
	assert_int_equal(count("serving", "llama:queue", NULL), 1);
	d->time_ms--;
	blind("older than staleAfter");
	d->time_ms = NOW_MS - 30000;
	d->signals[0].age_ms = 0;
	assert_int_equal(count("serving", "llama:queue", NULL), 1);
}

static void decision_that_is_old_is_not_given(void **state)
{
	struct decision *d = &w.decisions[0];
	d->time_ms = NOW_MS - 2 * 15000 - EXTERNAL_DECISION_AGE_MS;
	assert_int_equal(count("serving", "llama:@desired-replicas", NULL), 1);
	d->time_ms--;
	assert_int_equal(ask("serving", "llama:@desired-replicas", NULL), -1);
	assert_int_equal(w.e.kind, ERR_SERVER);
}

// The clock was set back: the decision would look new for hours.
static void decision_from_the_future_is_not_given(void **state)
{
	struct decision *d = &w.decisions[0];
	d->time_ms = NOW_MS + EXTERNAL_DECISION_AGE_MS;
	assert_int_equal(count("serving", "llama:@desired-replicas", NULL), 1);
	assert_int_equal(count("serving", "llama:queue", NULL), 1);
	d->time_ms++;
	assert_int_equal(ask("serving", "llama:@desired-replicas", NULL), -1);
	blind("older than staleAfter");
}

static void target_without_ready_replicas_does_not_hide_a_good_value(void **state)
{
	w.decisions[0].signals[0].state = SIGNAL_MISSING;
	w.decisions[0].signals[0].reason = REASON_NO_READY_REPLICAS;
	assert_int_equal(count("serving", "llama:queue", NULL), 1);
}

static void discovery_lists_each_name_once(void **state)
{
	const char *names[EXTERNAL_NAMES_MAX];
	static const char *const want[] = {"@desired-replicas", "queue", "sm_active", "tokens"};
	assert_int_equal(external_values_names(next, NULL, names), COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++)
		assert_string_equal(names[i], want[i]);
}

static bool many(void *arg, size_t i, struct external_source *ret)
{
	static struct policy_signal signal;
	static struct policy policy;
	static char name[32];
	if (i > EXTERNAL_NAMES_MAX)
		return false;
	char *names = arg;
	char *own = names ? names + 32 * i : name;
	snprintf(own, 32, "s%zu", i);
	signal = (struct policy_signal){.name = names ? own : "queue", .stale_after_ms = 60000};
	policy = w.policies[0];
	policy.signals = &signal;
	policy.n_signals = 1;
	*ret = (struct external_source){&policy, &w.targets[0], &w.decisions[0], ""};
	return true;
}

static void more_than_the_ceilings_is_refused_or_cut(void **state)
{
	static char texts[(EXTERNAL_NAMES_MAX + 1) * 32];
	const char *names[EXTERNAL_NAMES_MAX];
	assert_int_equal(external_values_names(many, texts, names), EXTERNAL_NAMES_MAX);
	assert_int_equal(external_values_write(&w.out, many, NULL, "serving", "queue", NULL, NOW_MS, &w.e), -1);
	assert_int_equal(w.e.kind, ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(names_and_selectors_pick_values, setup, teardown),
	        cmocka_unit_test_setup_teardown(custom_metric_is_of_the_target_or_of_the_policy, setup, teardown),
	        cmocka_unit_test_setup_teardown(metric_that_no_policy_of_the_namespace_has_is_not_found, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(bad_selector_is_an_error_whatever_else, setup, teardown),
	        cmocka_unit_test_setup_teardown(unusable_value_withholds_all_values, setup, teardown),
	        cmocka_unit_test_setup_teardown(value_is_given_until_it_is_stale_and_not_a_millisecond_longer, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(decision_that_is_old_is_not_given, setup, teardown),
	        cmocka_unit_test_setup_teardown(decision_from_the_future_is_not_given, setup, teardown),
	        cmocka_unit_test_setup_teardown(target_without_ready_replicas_does_not_hide_a_good_value, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(discovery_lists_each_name_once, setup, teardown),
	        cmocka_unit_test_setup_teardown(more_than_the_ceilings_is_refused_or_cut, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
