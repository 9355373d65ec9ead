// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the pods that hold GPUs get the UID and the labels that the API server reports for them, never
// those of an earlier pod of the same name; and the API server is asked as rarely as the header promises, whatever it
// replies.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_server.h"
#include "exporter/apiserver/pod_metadata.h"
#include "exporter/kubelet/pod_resources.h"
#include "exporter/page/render_page.h"
#include "exporter/xid.h"
#include "test/support/certs.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/pod_message.h"

#define LIST(items) "{\"kind\":\"PartialObjectMetadataList\",\"items\":[" items "]}"
#define POD(name, uid, team)                                                                                           \
	"{\"metadata\":{\"namespace\":\"ml\",\"name\":\"" name "\",\"uid\":\"" uid "\",\"labels\":{\"team\":\"" team   \
	"\"}}}"

struct fixture {
	struct event_base *loop;
	struct http_server *server;
	struct clock clock;
	struct pod_labels labels;
	char folder[64], list[8];
	struct pod_metadata *p;

	int status;
	const char *reply;  // NULL: the request is held
	const char *single; // the reply to a request for one pod; NULL: as for the node
	struct http_exchange *held;
	int requests;
	char seen[512]; // the last request: path, query, Accept, Authorization
};

static void on_request(void *arg, struct http_exchange *x)
{
	struct fixture *f = arg;
	const char *auth = http_exchange_header(x, "Authorization");
	f->requests++;
	snprintf(f->seen, sizeof f->seen, "%s %s %s|%s|%s", http_exchange_path(x),
	         http_exchange_query(x, "fieldSelector"), http_exchange_query(x, "resourceVersion"),
	         http_exchange_header(x, "Accept"), auth ? auth : "-");
	const char *reply =
	        f->single && strncmp(http_exchange_path(x), "/api/v1/namespaces/", 19) == 0 ? f->single : f->reply;
	if (reply)
		http_exchange_reply(x, f->status, "application/json", reply, strlen(reply));
	else
		f->held = x;
}

static void write_token(struct fixture *f, const char *text)
{
	char path[96];
	snprintf(path, sizeof path, "%s/token", f->folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void start(struct fixture *f, const char *scheme, struct http_server_options o)
{
	struct err e;
	char url[64];
	o.loop = f->loop;
	o.listen = "127.0.0.1:0";
	f->server = http_server_new(&o, &e);
	if (!f->server)
		fail_msg("%s", e.msg);
	assert_int_equal(http_server_route(f->server, "/", on_request, f, &e), 0);
	snprintf(url, sizeof url, "%s://127.0.0.1:%u", scheme, http_server_port(f->server));
	const struct pod_metadata_options options = {.loop = f->loop,
	                                             .clock = &f->clock,
	                                             .labels = &f->labels,
	                                             .server = url,
	                                             .folder = f->folder,
	                                             .node = "node-1.example"};
	f->p = pod_metadata_new(&options, &e);
	if (!f->p)
		fail_msg("%s", e.msg);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct err e;
	assert_non_null(f);
	signal(SIGPIPE, SIG_IGN);
	f->loop = event_base_new();
	clock_init_manual(&f->clock, 1767603600000);
	snprintf(f->folder, sizeof f->folder, "/tmp/gpuscale-metadata-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	write_token(f, "first\n");
	snprintf(f->list, sizeof f->list, "team");
	assert_int_equal(pod_labels_parse(&f->labels, f->list, &e), 0);
	f->status = 200;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char path[96];
	pod_metadata_free(f->p);
	http_server_free(f->server);
	event_base_free(f->loop);
	snprintf(path, sizeof path, "%s/token", f->folder);
	unlink(path);
	snprintf(path, sizeof path, "%s/ca.crt", f->folder);
	unlink(path);
	rmdir(f->folder);
	free(f);
	return 0;
}

// The map in which pod `name` holds GPU-`gpu`; with a second pod, ml/other, if `more`.
static struct pod_map *map_of(const char *name, const char *gpu, bool more)
{
	struct err e;
	const struct pod_message_holder holders[] = {{"ml", name, "c", "nvidia.com/gpu", {gpu}},
	                                             {"ml", "other", "c", "nvidia.com/gpu", {"GPU-z"}}};
	struct pod_map *m = pod_message_map(holders, more ? 2 : 1, &e);
	assert_non_null(m);
	return m;
}

static void take(struct fixture *f, const char *name, const char *gpu, bool more)
{
	struct pod_map *m = map_of(name, gpu, more);
	pod_metadata_take_map(f->p, m);
	pod_map_free(m);
}

static void become_idle(struct fixture *f)
{
	TEST_BECOMES(f->loop, !pod_metadata_is_busy(f->p));
}

// "UID TEAM" of ml/name, or "-".
static const char *known(struct fixture *f, const char *name)
{
	static _Thread_local char text[256];
	pod_metadata_acquire(f->p);
	const struct pod_known *k = pod_metadata_find(f->p, "ml", name);
	snprintf(text, sizeof text, "%s%s%s", k ? k->uid : "-", k ? " " : "", k ? k->labels[0] : "");
	pod_metadata_release(f->p);
	return text;
}

static struct pod_metadata_status status_of(struct fixture *f)
{
	struct pod_metadata_status st;
	pod_metadata_get_status(f->p, &st);
	return st;
}

static void request_asks_for_the_metadata_of_the_node_alone(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	struct err e;
	struct pod_map *none = pod_message_map(NULL, 0, &e);
	pod_metadata_take_map(f->p, none);
	pod_map_free(none);
	assert_false(pod_metadata_is_busy(f->p)); // no pod holds a GPU
	f->reply = LIST(POD("a", "u-a", "red") "," POD("b", "u-b", "blue"));
	take(f, "a", "GPU-1", false);
	assert_string_equal(known(f, "a"), "-"); // the page does not wait
	assert_int_equal(status_of(f).missing, 1);
	become_idle(f);
	assert_string_equal(f->seen,
	                    "/api/v1/pods spec.nodeName=node-1.example 0|" METADATA_LIST_ACCEPT "|Bearer first");
	assert_string_equal(known(f, "a"), "u-a red");
	assert_string_equal(known(f, "b"), "-"); // it holds no GPU
	assert_true(status_of(f).last_ok && status_of(f).missing == 0 && status_of(f).polls == 1);
}

// A tenant fills the node with pods that hold no GPU and have annotations of the largest size.
static void pods_above_the_ceiling_of_a_reply_cost_no_other_pod_its_labels(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	size_t size = METADATA_LIST_BYTES_MAX + 1000;
	char *large = malloc(size);
	assert_non_null(large);
	int n = snprintf(large, size,
	                 "{\"kind\":\"PartialObjectMetadataList\",\"items\":[{\"metadata\":{\"annotations\":{\"a\":\"");
	memset(large + n, 'x', size - (size_t)n);
	snprintf(large + size - 120, 120, "\"},\"namespace\":\"ml\",\"name\":\"bomb\",\"uid\":\"u-x\"}}]}");
	f->reply = large;
	f->single = LIST(POD("a", "u-a", "red"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_string_equal(known(f, "a"), "u-a red");
	assert_string_equal(f->seen,
	                    "/api/v1/namespaces/ml/pods metadata.name=a 0|" METADATA_LIST_ACCEPT "|Bearer first");
	assert_int_equal(f->requests, 2);
	assert_true(status_of(f).last_ok && status_of(f).missing == 0);
	clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS); // the list is not tried again at once
	take(f, "a", "GPU-1", true);
	become_idle(f);
	assert_int_equal(f->requests, 4);
	assert_string_equal(known(f, "a"), "u-a red");
	assert_string_equal(known(f, "other"), "-"); // its reply is that of another pod
	clock_advance_ms(&f->clock, 10 * 60 * 1000);
	f->reply = LIST(POD("a", "u-a", "red") "," POD("other", "u-o", "blue"));
	take(f, "a", "GPU-1", true);
	become_idle(f);
	assert_int_equal(f->requests, 5);
	assert_string_equal(known(f, "other"), "u-o blue");
	free(large);
}

static void requests_are_rare_while_every_pod_is_known(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-a", "red"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS - 1);
	take(f, "a", "GPU-1", false);
	assert_false(pod_metadata_is_busy(f->p));
	f->reply = LIST(POD("a", "u-a", "green"));
	write_token(f, "second");
	clock_advance_ms(&f->clock, 1);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_int_equal(f->requests, 2);
	assert_string_equal(known(f, "a"), "u-a green"); // a changed label
	assert_non_null(strstr(f->seen, "Bearer second"));
}

static void new_pod_is_asked_for_after_the_shortest_interval(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-a", "red") "," POD("other", "u-o", "blue"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	clock_advance_ms(&f->clock, POD_METADATA_MIN_MS - 1);
	take(f, "a", "GPU-1", true);
	assert_false(pod_metadata_is_busy(f->p));
	assert_string_equal(known(f, "a"), "u-a red");
	assert_string_equal(known(f, "other"), "-");
	clock_advance_ms(&f->clock, 1);
	take(f, "a", "GPU-1", true);
	become_idle(f);
	assert_string_equal(known(f, "other"), "u-o blue");
}

static void pod_with_other_devices_is_not_known(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-1", "red"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	take(f, "a", "GPU-2", false); // a StatefulSet has replaced it
	assert_string_equal(known(f, "a"), "-");
	clock_advance_ms(&f->clock, POD_METADATA_MIN_MS);
	f->reply = LIST(POD("a", "u-2", "red"));
	take(f, "a", "GPU-2", false);
	become_idle(f);
	assert_string_equal(known(f, "a"), "u-2 red");
}

static void pod_that_was_gone_is_not_known(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-1", "red") "," POD("b", "u-b", ""));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	take(f, "b", "GPU-1", false);
	take(f, "a", "GPU-1", false);
	assert_string_equal(known(f, "a"), "-");
}

// A pod that is replaced between two maps, with the same name and devices, looks the same to the kubelet's reply.
static void refresh_corrects_the_uid(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-1", "red"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	f->reply = LIST(POD("a", "u-2", "red"));
	clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_string_equal(known(f, "a"), "u-2 red");
	// The API server no longer has it: nothing is better than what it was.
	f->reply = LIST("");
	clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_string_equal(known(f, "a"), "-");
	assert_int_equal(status_of(f).missing, 1);
}

// The reply may be older than a pod that appears while the request is in flight.
static void reply_does_not_name_a_pod_that_came_later(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	take(f, "a", "GPU-1", true);
	TEST_BECOMES(f->loop, f->held != NULL);
	take(f, "a", "GPU-2", true);
	static const char reply[] = LIST(POD("a", "u-old", "red") "," POD("other", "u-o", ""));
	http_exchange_reply(f->held, 200, "application/json", reply, sizeof reply - 1);
	become_idle(f);
	assert_string_equal(known(f, "a"), "-");
	assert_string_equal(known(f, "other"), "u-o ");
	f->reply = LIST(POD("a", "u-new", "red") "," POD("other", "u-o", ""));
	clock_advance_ms(&f->clock, POD_METADATA_MIN_MS);
	take(f, "a", "GPU-2", true);
	become_idle(f);
	assert_string_equal(known(f, "a"), "u-new red");
}

static void delay_doubles_while_requests_fail(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->status = 403;
	f->reply = "{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}";
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_int_equal(f->requests, 1);
	int64_t delay_ms = POD_METADATA_MIN_MS;
	for (int i = 2; i < 8; i++) {
		clock_advance_ms(&f->clock, delay_ms - 1);
		take(f, "a", "GPU-1", false);
		assert_false(pod_metadata_is_busy(f->p));
		clock_advance_ms(&f->clock, 1);
		take(f, "a", "GPU-1", false);
		become_idle(f);
		assert_int_equal(f->requests, i);
		delay_ms = delay_ms * 2 > POD_METADATA_REFRESH_MS ? POD_METADATA_REFRESH_MS : delay_ms * 2;
	}
	assert_true(!status_of(f).last_ok && status_of(f).errors == 7);
	f->status = 200;
	f->reply = LIST(POD("a", "u-1", "red"));
	clock_advance_ms(&f->clock, delay_ms);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_true(status_of(f).last_ok);
	assert_string_equal(known(f, "a"), "u-1 red");
}

static void metadata_is_used_until_it_is_too_old(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-1", "red"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	f->status = 500;
	clock_advance_ms(&f->clock, POD_METADATA_STALE_MS);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_string_equal(known(f, "a"), "u-1 red");
	assert_true(!status_of(f).stale && status_of(f).age_ms == POD_METADATA_STALE_MS);
	clock_advance_ms(&f->clock, 1);
	assert_string_equal(known(f, "a"), "-");
	assert_true(status_of(f).stale);
	f->status = 200;
	clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_string_equal(known(f, "a"), "u-1 red");
	assert_false(status_of(f).stale);
}

static void bad_reply_leaves_what_is_known(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-1", "red"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	static const char *const replies[] = {
	        "", "{}", "<html>", "{\"kind\":\"PodList\",\"items\":[]}",
	        "{\"kind\":\"PartialObjectMetadataList\",\"items\":[" POD("a", "u-2", "red")};
	for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
		f->reply = replies[i];
		clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS);
		take(f, "a", "GPU-1", false);
		become_idle(f);
		assert_int_equal(status_of(f).errors, i + 1);
		if (i < 4) // then it is too old
			assert_string_equal(known(f, "a"), "u-1 red");
	}
	size_t len = METADATA_LIST_BYTES_MAX + 1;
	char *big = malloc(len + 1);
	assert_non_null(big);
	memset(big, ' ', len);
	big[len] = '\0';
	f->reply = big;
	clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_int_equal(status_of(f).errors, 6);
	free(big);
}

static void missing_token_is_a_failed_request(void **state)
{
	struct fixture *f = *state;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-1", "red"));
	write_token(f, "\n");
	take(f, "a", "GPU-1", false);
	assert_false(pod_metadata_is_busy(f->p));
	assert_int_equal(status_of(f).errors, 1);
	write_token(f, "again");
	clock_advance_ms(&f->clock, POD_METADATA_MIN_MS);
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_int_equal(f->requests, 1);
	assert_string_equal(known(f, "a"), "u-1 red");
}

static void certificate_of_the_server_is_checked(void **state)
{
	struct fixture *f = *state;
	struct certs certs;
	char path[96];
	assert_int_equal(certs_init(&certs), 0);
	snprintf(path, sizeof path, "%s/ca.crt", f->folder);
	start(f, "https",
	      (struct http_server_options){.tls_cert_file = certs.path[CERTS_SERVER],
	                                   .tls_key_file = certs.path[CERTS_SERVER_KEY]});
	f->reply = LIST(POD("a", "u-1", "red"));
	take(f, "a", "GPU-1", false);
	become_idle(f);
	assert_int_equal(status_of(f).errors, 1); // no ca.crt
	static const enum certs_file files[] = {CERTS_OTHER_CA, CERTS_CA};
	for (size_t i = 0; i < 2; i++) {
		unlink(path);
		assert_int_equal(symlink(certs.path[files[i]], path), 0); // a mounted Secret is a link, too
		clock_advance_ms(&f->clock, POD_METADATA_REFRESH_MS);
		take(f, "a", "GPU-1", false);
		become_idle(f);
		assert_int_equal(f->requests, i); // only the right server gets the token
	}
	assert_string_equal(known(f, "a"), "u-1 red");
	certs_done(&certs);
}

static void node_name_is_checked(void **state)
{
	struct fixture *f = *state;
	struct err e;
	static const char *const names[] = {"", "a b", "a&b=c", "a,spec.nodeName!=b", "A"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const struct pod_metadata_options o = {.loop = f->loop,
		                                       .clock = &f->clock,
		                                       .labels = &f->labels,
		                                       .server = "http://127.0.0.1:1",
		                                       .folder = f->folder,
		                                       .node = names[i]};
		assert_null(pod_metadata_new(&o, &e));
		assert_int_equal(e.kind, ERR_INPUT);
	}
}

static void page_carries_what_is_known(void **state)
{
	struct fixture *f = *state;
	struct err e;
	start(f, "http", (struct http_server_options){0});
	f->reply = LIST(POD("a", "u-1", "r\\\"d") "," POD("other", "u-2", ""));
	take(f, "a", "GPU-1", true);
	become_idle(f);
	static const struct device gpu = {.index = 0, .uuid = "GPU-1"};
	struct xid_store *xids = xid_store_new(&e);
	struct device_sample *s = calloc(1, sizeof *s);
	assert_true(xids && s);
	sample_set_i64(s, FIELD_GPU_UTIL, 5);
	const struct sampler_round round = {.devices = &gpu, .samples = s, .n = 1, .driver_version = "9"};
	static const struct {
		const char *pod, *labels;
		bool uid;
	} rows[] = {
	        {"a", "label_team=\"r\\\"d\",container=\"c\",namespace=\"ml\",pod=\"a\",pod_uid=\"u-1\",vgpu=\"3\"",
	         true},
	        {"a", "label_team=\"r\\\"d\",container=\"c\",namespace=\"ml\",pod=\"a\",vgpu=\"3\"", false},
	        {"other", "container=\"c\",namespace=\"ml\",pod=\"other\",pod_uid=\"u-2\",vgpu=\"3\"", true},
	        {"unknown", "container=\"c\",namespace=\"ml\",pod=\"unknown\",vgpu=\"3\"", true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct pod_share pod = {.namespace_ = "ml", .pod = rows[i].pod, .container = "c", .replica = 3};
		const struct render_page_options o = {.hostname_label = "Hostname",
		                                      .hostname = "",
		                                      .sidecar_of = &pod,
		                                      .metadata = f->p,
		                                      .pod_uid = rows[i].uid,
		                                      .labels = &f->labels,
		                                      .xids = xids};
		struct render_page r;
		struct buf out;
		char want[400];
		render_page_init(&r, &o);
		buf_init(&out, 1024 * 1024);
		render_page_round(&r, &round, &out);
		snprintf(want, sizeof want,
		         "\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",DCGM_FI_DRIVER_VERSION=\"9\",%s} 5\n",
		         rows[i].labels);
		if (!strstr(buf_str(&out), want))
			fail_msg("%s\ngot: %s", want, buf_str(&out));
		render_page_done(&r);
		buf_done(&out);
	}
	free(s);
	xid_store_free(xids);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(request_asks_for_the_metadata_of_the_node_alone),
	        TEST(requests_are_rare_while_every_pod_is_known),
	        TEST(pods_above_the_ceiling_of_a_reply_cost_no_other_pod_its_labels),
	        TEST(new_pod_is_asked_for_after_the_shortest_interval),
	        TEST(pod_with_other_devices_is_not_known),
	        TEST(pod_that_was_gone_is_not_known),
	        TEST(refresh_corrects_the_uid),
	        TEST(reply_does_not_name_a_pod_that_came_later),
	        TEST(delay_doubles_while_requests_fail),
	        TEST(metadata_is_used_until_it_is_too_old),
	        TEST(bad_reply_leaves_what_is_known),
	        TEST(missing_token_is_a_failed_request),
	        TEST(certificate_of_the_server_is_checked),
	        TEST(node_name_is_checked),
	        TEST(page_carries_what_is_known),
	};
	return cmocka_run_group_tests_name("exporter_pod_metadata", tests, NULL, NULL);
}
