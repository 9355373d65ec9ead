// SPDX-License-Identifier: Apache-2.0
// Goal: of many requests for pages that take long, one is served in each turn of the loop, all in the order of their
// arrival, and those that still wait are dropped with the server.
#include "base/http/http_server.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/http_fixture.h"

#define CLIENTS   12
#define TURNS_MAX 100000

struct pages {
	int served;
};

static void handle_page(void *arg, struct http_exchange *x)
{
	struct pages *p = arg;
	p->served++;
	http_exchange_reply_text(x, 200, "page\n");
}

static void serve(struct http_fixture *f, struct pages *p)
{
	struct err e = {0};
	assert_int_equal(http_server_route_long(f->server, "/page", handle_page, p, &e), 0);
	assert_int_equal(http_server_route_long(f->server, "/other", handle_page, p, &e), 0);
}

static void send_requests(struct http_fixture *f, struct raw_client *clients[CLIENTS])
{
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = http_fixture_dial(f);
		raw_client_send(clients[i],
		                i % 2 ? "GET /page HTTP/1.1\r\nHost: test\r\n\r\n"
		                      : "GET /other HTTP/1.1\r\nHost: test\r\n\r\n",
		                0);
	}
}

static void long_pages_are_served_one_in_each_turn(void **state)
{
	struct http_fixture *f = *state;
	struct pages p = {0};
	struct raw_client *clients[CLIENTS];
	int most = 0;
	serve(f, &p);
	send_requests(f, clients);
	for (int turns = 0; p.served < CLIENTS && turns < TURNS_MAX; turns++) {
		int before = p.served;
		event_base_loop(f->loop, EVLOOP_ONCE | EVLOOP_NONBLOCK); // one turn
		most = p.served - before > most ? p.served - before : most;
	}
	assert_int_equal(p.served, CLIENTS);
	assert_int_equal(most, 1);
	for (int i = 0; i < CLIENTS; i++)
		raw_client_free(clients[i]);
}

static void requests_that_wait_are_dropped_with_the_server(void **state)
{
	struct http_fixture *f = *state;
	struct pages p = {0};
	struct raw_client *clients[CLIENTS];
	serve(f, &p);
	send_requests(f, clients);
	for (int turns = 0; p.served < 1 && turns < TURNS_MAX; turns++)
		event_base_loop(f->loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	http_server_free(f->server);
	f->server = NULL;
	assert_true(p.served >= 1 && p.served < CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		raw_client_free(clients[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, http_fixture_setup, http_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(long_pages_are_served_one_in_each_turn),
	        TEST(requests_that_wait_are_dropped_with_the_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
