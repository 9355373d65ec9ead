// SPDX-License-Identifier: Apache-2.0
// Goal: a struct tick_result is all that the owner of a reconciler needs to log, count and show a tick.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "controller/policy/policy_report.h"
#include "controller/serve/endpoints.h"
#include "controller/status/sparkline.h"
#include "controller/tick/reconcile.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "runtime/log_edge.h"
#include "runtime/metrics/metrics.h"

struct fixture {
	struct policy policy;
	struct binding binding;
	struct reconcile_env env;
	struct reconciler *reconciler;
	struct policy_report_env report_env;
	struct policy_report report;
	struct decision decision;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	f->policy = (struct policy){.namespace_name = "serving",
	                            .name = "llama",
	                            .min_replicas = 1,
	                            .max_replicas = 8,
	                            .interval_ms = 15000};
	static const struct scale_target target = {"apps/v1", "Deployment", "llama", NULL};
	f->binding = (struct binding){.policy = &f->policy, .target = &target};
	struct reconcile_subject subject = {.binding = &f->binding, .last_scale_ms = -1};
	f->reconciler = reconciler_new(&f->env, &subject);
	f->report_env.metrics = metrics_new();
	f->report_env.history = decision_history_new();
	f->report_env.keep_sparklines = true;
	policy_report_init(&f->report);
	f->decision.current = 2;
	f->decision.desired = 4;
	*state = f;
	return f->reconciler && f->report_env.metrics && f->report_env.history ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	policy_report_reset(&f->report);
	reconciler_free(f->reconciler);
	free(f->report_env.metrics);
	decision_history_free(f->report_env.history);
	free(f);
	return 0;
}

static void report(struct fixture *f, struct tick_result result)
{
	policy_report_tick(&f->report, &f->report_env, f->reconciler, &result);
}

static bool has_metric(const struct fixture *f, const char *line)
{
	struct buf b;
	struct metrics_view view = {0};
	buf_init(&b, 1024 * 1024);
	metrics_render(f->report_env.metrics, &view, &b);
	bool has = strstr(buf_str(&b), line) != NULL;
	buf_done(&b);
	return has;
}

static void failed_tick_keeps_its_error_until_a_tick_decides(void **state)
{
	struct fixture *f = *state;
	struct err e;
	err_set(&e, ERR_UNREACHABLE, "connection refused");
	report(f, (struct tick_result){.outcome = TICK_READ_FAILED, .is_current = true, .now_ms = 1000, .error = &e});
	assert_string_equal(f->report.error, "connection refused");
	assert_int_equal(f->report.phase, STATUS_READ_FAILED);
	assert_int_equal(f->report.sparkline->n, 1);
	assert_true(has_metric(f, "gpuscale_reconciles_total{result=\"error\"} 1"));
}

// Else the error of each write would be logged at every tick while many targets cannot be scaled.
static void deferred_tick_keeps_the_error_of_a_write_only(void **state)
{
	struct fixture *f = *state;
	struct err e;
	err_set(&e, ERR_SERVER, "webhook failed");
	report(f, (struct tick_result){.outcome = TICK_WRITE_FAILED, .is_current = true, .error = &e});
	report(f, (struct tick_result){.outcome = TICK_DEFERRED, .is_current = true});
	assert_string_equal(f->report.error, "webhook failed");
	assert_int_equal(f->report.phase, STATUS_WRITE_FAILED);
	err_set(&e, ERR_UNREACHABLE, "connection refused");
	report(f, (struct tick_result){.outcome = TICK_READ_FAILED, .is_current = true, .error = &e});
	report(f, (struct tick_result){.outcome = TICK_DEFERRED, .is_current = true});
	assert_null(f->report.error);
	assert_int_equal(f->report.phase, STATUS_DECIDED);
	assert_true(has_metric(f, "gpuscale_reconciles_total{result=\"deferred\"} 2"));
}

static void superseded_tick_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct err e;
	err_set(&e, ERR_CANCELED, "canceled");
	report(f, (struct tick_result){.outcome = TICK_SUPERSEDED, .is_current = false});
	report(f, (struct tick_result){.outcome = TICK_READ_FAILED, .is_current = false, .error = &e});
	assert_null(f->report.error);
	assert_int_equal(f->report.phase, STATUS_PHASE__COUNT);
	assert_null(f->report.sparkline);
}

static void facts_exist_after_the_first_tick_only(void **state)
{
	struct fixture *f = *state;
	struct decided decided;
	struct status_facts facts;
	struct err e;
	assert_false(policy_report_facts(&f->report, &f->report_env, f->reconciler, &decided, &facts));
	err_set(&e, ERR_AUTH, "forbidden");
	report(f, (struct tick_result){.outcome = TICK_WRITE_FAILED, .is_current = true, .error = &e});
	assert_true(policy_report_facts(&f->report, &f->report_env, f->reconciler, &decided, &facts));
	assert_int_equal(facts.phase, STATUS_WRITE_FAILED);
	assert_string_equal(facts.text, "forbidden");
	policy_report_set_policy(&f->report, &f->policy, &f->policy);
	assert_false(policy_report_facts(&f->report, &f->report_env, f->reconciler, &decided, &facts));
}

static void each_conflict_of_a_tick_is_counted(void **state)
{
	struct fixture *f = *state;
	for (int attempt = 1; attempt < RECONCILE_CONFLICTS_MAX; attempt++)
		report(f, (struct tick_result){.outcome = TICK_RETRIED,
		                               .is_current = true,
		                               .attempt = attempt,
		                               .decision = &f->decision});
	assert_true(has_metric(f, "gpuscale_conflicts_total 2"));
	assert_false(has_metric(f, "gpuscale_reconciles_total{result=\"ok\"} 1"));
}

static void phase_has_a_name_and_is_idle_between_ticks(void **state)
{
	const struct fixture *f = *state;
	assert_int_equal(reconciler_phase(f->reconciler), TICK_PHASE_IDLE);
	for (int i = 0; i < TICK_PHASE__COUNT; i++)
		assert_non_null(tick_phase_names[i]);
}

static void edge_is_reported_once_per_change(void **state)
{
	(void)state;
	bool condition = false;
	assert_int_equal(log_edge(&condition, false), LOG_EDGE_NONE);
	assert_int_equal(log_edge(&condition, true), LOG_EDGE_STARTED);
	assert_int_equal(log_edge(&condition, true), LOG_EDGE_NONE);
	assert_int_equal(log_edge(&condition, false), LOG_EDGE_ENDED);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(failed_tick_keeps_its_error_until_a_tick_decides),
	        T(deferred_tick_keeps_the_error_of_a_write_only),
	        T(superseded_tick_changes_nothing),
	        T(facts_exist_after_the_first_tick_only),
	        T(each_conflict_of_a_tick_is_counted),
	        T(phase_has_a_name_and_is_idle_between_ticks),
	        cmocka_unit_test(edge_is_reported_once_per_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
