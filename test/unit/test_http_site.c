// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a web site that points a name of its own at the server, or sends requests on behalf of its
// visitor, reads nothing and changes nothing; the clients of Kubernetes and Prometheus are answered.
#include "base/http/http_site.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/http_fixture.h"

static struct http_site *site_of(const char *names)
{
	struct err e;
	struct http_site *s = http_site_new(names, &e);
	if (!s)
		fail_msg("%s", e.msg);
	return s;
}

static void addresses_localhost_and_configured_names_are_accepted(void **state)
{
	(void)state;
	static const struct {
		const char *host;
		bool want;
	} rows[] = {
	        {"10.1.2.3:8080", true}, // the kubelet, Prometheus
	        {"10.1.2.3", true},
	        {"[fd00::1]:8080", true},
	        {"[::1]", true},
	        {"localhost:9400", true}, // port-forward
	        {"LocalHost", true},
	        {"localhost.", true},
	        {"gpuscale.gpuscale-system.svc:8080", true},
	        {"gpuscale.gpuscale-system.svc.cluster.local:8080", true},
	        {"GPU.example.com", true},
	        {"gpu.example.com.:80", true},
	        {"evil.example", false},
	        {"evil.example:8080", false},
	        {"10.1.2.3.evil.example", false},
	        {"localhost.evil.example", false},
	        {"evillocalhost", false},
	        {"svc", false},
	        {".svc", false},
	        {"gpuscale.svc.evil.example", false},
	        {"xgpu.example.com", false},
	        {"a.gpu.example.com", false},
	        {"010.1.2.3", false}, // octal to some
	        {"10.1.2", false},    // and 10.1.0.2 to some
	        {"2130706433", false},
	        {"0x7f000001", false},
	        {"[10.1.2.3]", false},
	        {"fd00::1", false},
	        {"[fd00::1", false},
	        {"[]", false},
	        {"user@localhost", false},
	        {"localhost/", false},
	        {"localhost:", true},
	        {"localhost:80a", false},
	        {"localhost:80:80", false},
	        {"localhost localhost", false},
	        {"", false},
	        {":8080", false},
	        {".", false},
	        {"a..svc", false},
	};
	struct http_site *s = site_of("gpu.example.com,*.svc,*.svc.cluster.local");
	for (size_t i = 0; i < COUNT(rows); i++)
		if (http_site_has_host(s, rows[i].host) != rows[i].want)
			fail_msg("\"%s\"", rows[i].host);
	free(s);
}

static void this_machine_has_a_name_too(void **state)
{
	(void)state;
	char name[256];
	struct http_site *s = site_of(NULL);
	assert_int_equal(gethostname(name, sizeof name), 0);
	assert_false(http_site_has_host(s, name));
	http_site_add_own_name(s);
	assert_true(http_site_has_host(s, name));
	free(s);
}

static void invalid_name_is_reported(void **state)
{
	(void)state;
	static const char *const bad[] = {
	        "a b",
	        "http://a",
	        "a:80",
	        "*",
	        "*.",
	        "**.a",
	        "a.*",
	        ".a",
	        "a..b",
	        "a,b,-_,!",
	        "[::1]:80",
	        "\xc3\xa9",
	        "x23456789012345678901234567890123456789012345678901234567890123x",
	};
	struct err e;
	char many[2 * HTTP_SITE_NAMES_MAX + 3] = "";
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct http_site *s = http_site_new(bad[i], &e);
		if (s || e.kind != ERR_USAGE || !strstr(e.msg, "expected a host name"))
			fail_msg("\"%s\"", bad[i]);
	}
	for (int i = 0; i <= HTTP_SITE_NAMES_MAX; i++)
		strncat(many, "a,", sizeof many - strlen(many) - 1);
	assert_null(http_site_new(many, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	many[2 * HTTP_SITE_NAMES_MAX] = '\0';
	free(site_of(many));
}

static void requests_that_change_something_are_not_taken_from_other_sites(void **state)
{
	(void)state;
	static const struct {
		const char *method, *host, *origin, *fetch_site, *own;
		int want;
	} rows[] = {
	        {"GET", "localhost:9400", NULL, NULL, NULL, 0},
	        {"GET", NULL, NULL, NULL, NULL, 0}, // HTTP/1.0
	        {"GET", "evil.example:9400", NULL, NULL, NULL, 421},
	        {"HEAD", "evil.example:9400", NULL, "cross-site", NULL, 421},
	        {"GET", "localhost:9400", "http://evil.example", "cross-site", NULL, 0}, // a link; it reads nothing
	        {"POST", "localhost:9400", NULL, NULL, NULL, 403},
	        {"POST", "localhost:9400", NULL, NULL, "", 403},
	        {"POST", "localhost:9400", NULL, NULL, "yes", 0}, // curl
	        {"POST", "localhost:9400", "http://localhost:9400", "same-origin", "yes", 0},
	        {"POST", "localhost:9400", NULL, "none", "yes", 0},
	        {"POST", "localhost:9400", "http://evil.example", NULL, "yes", 403},
	        {"POST", "localhost:9400", "http://localhost:8000", NULL, "yes", 403},
	        {"POST", "localhost:9400", "null", NULL, "yes", 403},
	        {"POST", "localhost:9400", "", NULL, "yes", 403},
	        {"POST", "localhost:9400", NULL, "cross-site", "yes", 403},
	        {"POST", "localhost:9400", NULL, "same-site", "yes", 403},
	        {"POST", "localhost:9400", NULL, "", "yes", 403},
	        {"POST", "evil.example", "http://evil.example", "same-origin", "yes", 421},
	        {"POST", NULL, "http://evil.example", NULL, "yes", 403},
	        {"DELETE", "localhost", NULL, NULL, NULL, 403},
	        {"post", "localhost", NULL, NULL, NULL, 403},
	        {"get", "localhost", NULL, NULL, NULL, 403},
	};
	struct http_site *s = site_of(NULL);
	char why[384];
	for (size_t i = 0; i < COUNT(rows); i++) {
		int got = http_site_classify(s, rows[i].method, rows[i].host, rows[i].origin, rows[i].fetch_site,
		                             rows[i].own, why, sizeof why);
		if (got != rows[i].want)
			fail_msg("row %zu: %d", i, got);
	}
	free(s);
}

static void server_refuses_before_any_handler_and_marks_every_reply(void **state)
{
	struct http_fixture *f = *state;
	static const char *const marks[] = {
	        "\r\nX-Content-Type-Options: nosniff\r\n",
	        "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
	        "\r\nCross-Origin-Resource-Policy: same-origin\r\n",
	        "\r\nReferrer-Policy: no-referrer\r\n",
	};
	static const struct {
		const char *request, *reply;
	} rows[] = {
	        {"GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 "},
	        {"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404 "},
	        {"GET /echo HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421 Misdirected Request"},
	        {"GET /nowhere HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421 "},
	        {"GET http://evil.example/echo HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 421 "},
	        {"GET http://localhost:80/echo HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 200 "},
	        {"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.1 403 "},
	        {"POST /echo HTTP/1.1\r\nHost: localhost\r\n" HTTP_SITE_HEADER ": yes\r\n\r\n", "HTTP/1.1 200 "},
	};
	struct http_site *s = site_of(NULL);
	http_fixture_serve(f, (struct http_server_options){.site = s});
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *reply = http_fixture_exchange(f, rows[i].request);
		http_fixture_assert_starts(reply, rows[i].reply);
		for (size_t k = 0; k < COUNT(marks); k++)
			if (!strstr(reply, marks[k]))
				fail_msg("row %zu lacks %s", i, marks[k]);
	}
	assert_int_equal(f->handled, 3);
	http_server_free(f->server);
	f->server = NULL;
	free(s);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(addresses_localhost_and_configured_names_are_accepted),
	        cmocka_unit_test(this_machine_has_a_name_too),
	        cmocka_unit_test(invalid_name_is_reported),
	        cmocka_unit_test(requests_that_change_something_are_not_taken_from_other_sites),
	        TEST(server_refuses_before_any_handler_and_marks_every_reply),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
