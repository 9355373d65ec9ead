// SPDX-License-Identifier: Apache-2.0
#include "test/fake/target_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "test/support/loop.h"

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct target_world *w = arg;
	snprintf(w->what, sizeof w->what, "%s", what);
	w->errors += error != NULL;
	w->oks += !error;
}

void target_fixture_add(struct target_world *w, const char *object)
{
	struct err e = {0};
	if (fake_apiserver_add(w->h.server, object, &e) < 0)
		fail_msg("%s", e.msg);
}

int target_fixture_setup(void **state)
{
	struct target_world *w = calloc(1, sizeof *w);
	struct err e = {0};
	*state = w;
	harness_start(&w->h, NULL);
	target_fixture_add(w, "ns/Deployment/web=2");
	target_fixture_add(w, "ns/StatefulSet/db=3");
	harness_start_client(&w->h, 1);
	w->store = target_store_new(
	        &(struct target_store_options){.client = w->h.client, .on_error = on_error, .arg = w}, &e);
	assert_non_null(w->store);
	return 0;
}

int target_fixture_teardown(void **state)
{
	struct target_world *w = *state;
	target_store_free(w->store);
	harness_stop(&w->h);
	free(w);
	return 0;
}

void target_fixture_acquire(struct target_world *w, const struct scale_ref *ref)
{
	struct err e = {0};
	if (target_store_acquire(w->store, ref, false, &e) < 0)
		fail_msg("%s", e.msg);
}

struct target_view target_fixture_get(struct target_world *w, const struct scale_ref *ref)
{
	struct target_view v;
	target_store_get(w->store, ref, &v);
	return v;
}

struct target_view target_fixture_wait_for(struct target_world *w, const struct scale_ref *ref, enum target_state state,
                                           int replicas)
{
	int64_t end = test_now_ms() + TARGET_FIXTURE_WAIT_MS;
	for (;;) {
		struct target_view v = target_fixture_get(w, ref);
		if (v.state == state && (replicas < 0 || v.spec_replicas == replicas))
			return v;
		if (test_now_ms() > end)
			fail_msg("%s/%s stays in state %d with %d replicas (%s)", ref->kind, ref->name, (int)v.state,
			         v.spec_replicas, v.why);
		test_loop_for(w->h.loop, 5);
	}
}

uint64_t target_fixture_requests(const struct target_world *w)
{
	struct fake_counts counts;
	fake_apiserver_get_counts(w->h.server, &counts);
	return counts.total;
}
