// SPDX-License-Identifier: Apache-2.0
#include "test/fake/lease_holder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/loop.h"

const struct lease_timing lease_test_timing = {
        .duration_ms = 24000, .renew_deadline_ms = 18000, .retry_period_ms = 1000};

static void on_gained(void *arg)
{
	struct lease_holder *o = arg;
	o->gained++;
	o->gained_ms = test_now_ms();
	assert_true(lease_valid_for_ms(o->lease) > 0);
}
static void on_lost(void *arg, const char *why)
{
	struct lease_holder *o = arg;
	o->lost++;
	o->lost_ms = test_now_ms();
	snprintf(o->why, sizeof o->why, "%s", why);
	assert_int_equal(lease_valid_for_ms(o->lease), 0);
}
static void on_released(void *arg)
{
	((struct lease_holder *)arg)->released++;
}
static void on_error(void *arg, const struct err *error)
{
	struct lease_holder *o = arg;
	o->errors += error != NULL;
	o->as_expected += error && o->expected && strstr(error->msg, o->expected);
	o->fine += error == NULL;
	if (error)
		snprintf(o->error, sizeof o->error, "%s", error->msg);
}

void lease_holder_start(struct lease_holder *o, struct harness *h, const char *identity)
{
	struct err e = {0};
	*o = (struct lease_holder){.h = h};
	struct lease_options options = {.client = h->client,
	                                .loop = h->loop,
	                                .clock = &h->clock,
	                                .namespace_name = "default",
	                                .name = "x-0",
	                                .identity = identity,
	                                .timing = lease_test_timing,
	                                .callbacks = {on_gained, on_lost, on_released, on_error},
	                                .arg = o};
	o->lease = lease_new(&options, &e);
	if (!o->lease)
		fail_msg("%s", e.msg);
	lease_set_candidate(o->lease, true);
}

void lease_world_start(struct harness *h)
{
	struct err e = {0};
	harness_start(h, NULL);
	struct http_client_options http = {.loop = h->loop, .no_http2 = true};
	h->http = http_client_new(&http, &e);
	struct k8s_client_options client = {.loop = h->loop,
	                                    .http = h->http,
	                                    .clock = &h->clock,
	                                    .config = &h->config,
	                                    .timeout_ms = lease_request_timeout_ms(&lease_test_timing),
	                                    .max_attempts = 1};
	h->client = k8s_client_new(&client, &e);
	if (!h->client)
		fail_msg("%s", e.msg);
}

void lease_put_free(struct harness *h)
{
	struct err e = {0};
	if (fake_apiserver_put(h->server,
	                       "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
	                       "\"x-0\",\"namespace\":\"default\"},\"spec\":{\"holderIdentity\":\"\","
	                       "\"leaseTransitions\":3}}",
	                       &e) < 0)
		fail_msg("%s", e.msg);
}

void lease_read(struct harness *h, struct lease_record *r)
{
	struct outcome o = {0};
	struct err e = {0};
	harness_request(h, "GET", LEASE, NULL, NULL, &o);
	if (o.is_error || lease_record_decode(o.body, strlen(o.body), r, &e) < 0)
		fail_msg("%s%s", o.error.msg, e.msg);
}

void lease_merge(struct harness *h, const char *patch)
{
	struct outcome o = {0};
	harness_request(h, "PATCH", LEASE, "application/merge-patch+json", patch, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
}

int64_t lease_wait_until_fresh(struct harness *h, const struct lease *lease)
{
	int64_t now, end = test_now_ms() + TEST_PATIENCE_MS;
	while (now = test_now_ms(), lease_valid_for_ms(lease) < FRESH_MS && now < end)
		test_loop_for(h->loop, 2);
	assert_true(now < end);
	return now;
}
