// SPDX-License-Identifier: Apache-2.0
// spec.restoreReplicas of a policy that is gone: set once, over conflicts, and only by who may write.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/process/log.h"
#include "controller/policy/policy_sync.h"
#include "policies/load/policy_ref.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

struct fixture {
	struct harness h;
	struct restore_env env;
	struct policy_ref *body;
	struct log *log;
	bool may_write;
};

static const struct scale_ref target = {"apps/v1", "Deployment", "serving", "llama", NULL};

static bool may_write(void *arg, const struct policy_ref *body, struct err *e)
{
	const struct fixture *f = arg;
	assert_ptr_equal(body, f->body);
	if (!f->may_write)
		err_set(e, ERR_CANCELED, "not ours");
	return f->may_write;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct err e;
	harness_start(&f->h, NULL);
	harness_start_client(&f->h, 1);
	assert_int_equal(fake_apiserver_add(f->h.server, "serving/Deployment/llama=7", &e), 0);
	f->log = log_new(STDERR_FILENO, LOG_FORMAT_TEXT, LOG_ERROR, &f->h.clock);
	f->env = (struct restore_env){f->h.client, f->log, may_write, f};
	f->may_write = true;
	f->body = policy_ref_new();
	f->body->policy = (struct policy){
	        .namespace_name = "serving", .name = "llama", .restore_set = true, .restore_replicas = 2};
	f->body->target = (struct scale_target){"apps/v1", "Deployment", "llama", NULL};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	harness_stop(&f->h);
	assert_int_equal(f->body->refs, 1); // whatever happened, no other reference is left
	policy_ref_release(f->body);
	log_free(f->log);
	free(f);
	return 0;
}

// Until the restoring has ended: its reference on the policy is gone.
static void restore(struct fixture *f)
{
	restore_replicas(&f->env, f->body, f->body->bindings);
	for (int i = 0; i < 6000 && f->body->refs > 1; i++)
		test_loop_for(f->h.loop, 10);
	assert_int_equal(f->body->refs, 1);
}

static int32_t replicas(struct fixture *f)
{
	struct outcome o = {0};
	harness_get(&f->h, &target, &o);
	assert_false(o.is_error);
	return o.scale.spec_replicas;
}

static void replicas_are_set(void **state)
{
	struct fixture *f = *state;
	restore(f);
	assert_int_equal(replicas(f), 2);
}

static void equal_replica_count_is_not_written(void **state)
{
	struct fixture *f = *state;
	f->body->policy.restore_replicas = 7;
	restore(f);
	assert_int_equal(fake_apiserver_count(f->h.server, "PATCH", "deployments/scale"), 0);
}

static void replica_that_may_not_write_does_not(void **state)
{
	struct fixture *f = *state;
	f->may_write = false;
	restore(f);
	assert_int_equal(replicas(f), 7);
}

static void conflict_is_tried_again(void **state)
{
	struct fixture *f = *state;
	struct fake_fault fault = {.next = 1, .status = 409, .match = "PATCH"};
	fake_apiserver_fail(f->h.server, &fault);
	restore(f);
	assert_int_equal(replicas(f), 2);
}

static void not_for_ever(void **state)
{
	struct fixture *f = *state;
	struct fake_fault fault = {.next = 100, .status = 409, .match = "PATCH"};
	fake_apiserver_fail(f->h.server, &fault);
	restore(f);
	assert_int_equal(replicas(f), 7);
}

static void target_that_is_gone_is_left_alone(void **state)
{
	struct fixture *f = *state;
	f->body->target.name = "gone";
	restore(f);
	assert_int_equal(replicas(f), 7);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(replicas_are_set),
	        T(equal_replica_count_is_not_written),
	        T(replica_that_may_not_write_does_not),
	        T(conflict_is_tried_again),
	        T(not_for_ever),
	        T(target_that_is_gone_is_left_alone),
	};
	return cmocka_run_group_tests_name("restore_replicas", tests, NULL, NULL);
}
