// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/access_review.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/sha.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "controller/external/external_metrics_server.h"
#include "k8s/server/k8s_user.h"
#include "k8s/server/request_header.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void review_asks_with_all_that_is_known(void **state)
{
	struct buf b;
	struct err e;
	buf_init(&b, 65536);
	struct k8s_user *u = k8s_user_new("jane \"x\"", "7", &e);
	assert_int_equal(k8s_user_add_group(u, "a", &e), 0);
	assert_int_equal(k8s_user_add_group(u, "a", &e), 0);
	assert_int_equal(k8s_user_add_group(u, "b", &e), 0);
	assert_int_equal(k8s_user_add_extra(u, "scopes", "one", &e), 0);
	assert_int_equal(k8s_user_add_extra(u, "other", "x", &e), 0);
	assert_int_equal(k8s_user_add_extra(u, "scopes", "two", &e), 0);
	const struct access_attributes list = {.verb = "list",
	                                       .group = "external.metrics.k8s.io",
	                                       .version = "v1beta1",
	                                       .resource = "queue",
	                                       .namespace_name = "serving",
	                                       .path = "/ignored"};
	subject_access_review_write(&b, u, &list);
	assert_string_equal(buf_str(&b),
	                    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
	                    "\"user\":\"jane \\\"x\\\"\",\"uid\":\"7\",\"groups\":[\"a\",\"b\"],\"extra\":{\"scopes\":"
	                    "[\"one\",\"two\"],\"other\":[\"x\"]},\"resourceAttributes\":{\"verb\":\"list\",\"group\":"
	                    "\"external.metrics.k8s.io\",\"version\":\"v1beta1\",\"resource\":\"queue\","
	                    "\"namespace\":\"serving\"}}}");
	buf_reset(&b);
	const struct access_attributes path = {.verb = "get", .path = "/apis"};
	struct k8s_user *plain = k8s_user_new("x", "", &e);
	subject_access_review_write(&b, plain, &path);
	assert_string_equal(buf_str(&b),
	                    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
	                    "\"user\":\"x\",\"groups\":[],\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/"
	                    "apis\"}}}");
	buf_reset(&b);
	token_review_write(&b, "t\"k");
	assert_string_equal(buf_str(&b), "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
	                                 "\"spec\":{\"token\":\"t\\\"k\"}}");
	k8s_user_unref(u);
	k8s_user_unref(plain);
	buf_done(&b);
}

static void only_a_clear_yes_is_one(void **state)
{
	static const struct {
		const char *status;
		int want;
	} rows[] = {
	        {"{\"allowed\":true}", 1},
	        {"{\"allowed\":true,\"denied\":false}", 1},
	        {"{\"allowed\":true,\"denied\":true}", 0},
	        {"{\"allowed\":false}", 0},
	        {"{}", 0},
	        {"{\"allowed\":\"true\"}", -1},
	        {"{\"allowed\":1}", -1},
	        {"{\"allowed\":true,\"denied\":1}", -1},
	        {"true", -1},
	        {"null", -1},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[256], reason[ACCESS_REASON_BYTES];
		struct err e;
		int n = snprintf(text, sizeof text, "{\"kind\":\"SubjectAccessReview\",\"status\":%s}", rows[i].status);
		int got = subject_access_review_read(text, (size_t)n, reason, &e);
		if (got != rows[i].want)
			fail_msg("%s: %d", rows[i].status, got);
	}
	char reason[ACCESS_REASON_BYTES];
	struct err e;
	static const char other[] = "{\"kind\":\"TokenReview\",\"status\":{\"allowed\":true}}";
	assert_int_equal(subject_access_review_read(other, sizeof other - 1, reason, &e), -1);
	static const char said[] =
	        "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":false,\"reason\":\"no\\nway\"}}";
	assert_int_equal(subject_access_review_read(said, sizeof said - 1, reason, &e), 0);
	assert_string_equal(reason, "no\\nway");
}

static int read_token(const char *status, struct k8s_user **ret_user)
{
	char text[1024];
	struct err e;
	int n = snprintf(text, sizeof text, "{\"kind\":\"TokenReview\",\"status\":%s}", status);
	return token_review_read(text, (size_t)n, ret_user, &e);
}

static void token_without_an_owner_is_refused(void **state)
{
	struct k8s_user *u;
	assert_int_equal(read_token("{\"authenticated\":true,\"user\":{\"username\":\"sa\",\"uid\":\"1\",\"groups\":["
	                            "\"g\"],\"extra\":{\"k\":[\"v\"]}}}",
	                            &u),
	                 1);
	assert_string_equal(k8s_user_name(u), "sa");
	assert_true(k8s_user_has_group(u, "g") && k8s_user_has_group(u, "system:authenticated"));
	struct buf b;
	struct json_writer w;
	buf_init(&b, 4096);
	json_write_init(&w, &b, 0);
	json_write_object_begin(&w);
	k8s_user_write(u, &w);
	json_write_object_end(&w);
	assert_string_equal(buf_str(&b), "{\"user\":\"sa\",\"uid\":\"1\",\"groups\":[\"g\",\"system:authenticated\"],"
	                                 "\"extra\":{\"k\":[\"v\"]}}");
	buf_done(&b);
	k8s_user_unref(u);
	assert_int_equal(read_token("{\"authenticated\":false,\"user\":{\"username\":\"sa\"}}", &u), 0);
	assert_int_equal(read_token("{\"error\":\"expired\"}", &u), 0);
	assert_int_equal(read_token("{\"authenticated\":true,\"user\":{\"username\":\"\"}}", &u), -1);
	assert_int_equal(read_token("{\"authenticated\":true}", &u), -1);
	assert_int_equal(read_token("{\"authenticated\":true,\"user\":{\"username\":\"x\",\"groups\":[1]}}", &u), -1);
	assert_null(u);
}

static void user_with_parts_of_another_shape_is_refused(void **state)
{
	static const char *const members[] = {"\"extra\":[[\"a\"]]",
	                                      "\"extra\":[1]",
	                                      "\"extra\":\"a\"",
	                                      "\"extra\":{\"k\":1}",
	                                      "\"extra\":{\"k\":\"v\"}",
	                                      "\"extra\":{\"k\":{\"a\":\"v\"}}",
	                                      "\"extra\":{\"k\":[1]}",
	                                      "\"groups\":\"g\"",
	                                      "\"groups\":{\"a\":\"g\"}",
	                                      "\"groups\":1",
	                                      "\"uid\":7",
	                                      "\"uid\":[\"7\"]"};
	for (size_t i = 0; i < COUNT(members); i++) {
		char status[256];
		struct k8s_user *u;
		snprintf(status, sizeof status, "{\"authenticated\":true,\"user\":{\"username\":\"x\",%s}}",
		         members[i]);
		if (read_token(status, &u) != -1 || u)
			fail_msg("%s was taken", members[i]);
	}
	struct k8s_user *u;
	static const char nulls[] = "{\"authenticated\":true,\"user\":{\"username\":\"x\",\"uid\":null,\"groups\":null,"
	                            "\"extra\":null}}";
	assert_int_equal(read_token(nulls, &u), 1);
	k8s_user_unref(u);
}

static void user_past_the_ceilings_is_refused(void **state)
{
	struct err e;
	char name[32];
	assert_null(k8s_user_new("", "", &e));
	struct k8s_user *u = k8s_user_new("x", "", &e);
	for (int i = 0; i < K8S_USER_GROUPS_MAX; i++) {
		snprintf(name, sizeof name, "g%d", i);
		assert_int_equal(k8s_user_add_group(u, name, &e), 0);
	}
	assert_int_equal(k8s_user_add_group(u, "one more", &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	for (int i = 0; i < K8S_USER_EXTRAS_MAX; i++)
		assert_int_equal(k8s_user_add_extra(u, "k", "v", &e), 0);
	assert_int_equal(k8s_user_add_extra(u, "k", "v", &e), -1);
	k8s_user_unref(u);
}

// ---- the ConfigMap ----

#define CONFIGMAP(data)                                                                                                \
	"{\"metadata\":{\"name\":\"extension-apiserver-authentication\",\"namespace\":\"kube-system\"},\"data\":" data \
	"}"

static void configmap_of_a_cluster_is_read(void **state)
{
	static const char text[] =
	        CONFIGMAP("{\"client-ca-file\":\"A\\n\",\"requestheader-client-ca-file\":\"B\\n\",\"requestheader-"
	                  "allowed-names\":"
	                  "\"[\\\"front-proxy-client\\\",\\\"other\\\"]\",\"requestheader-username-headers\":"
	                  "\"[\\\"X-Remote-User\\\"]\",\"requestheader-group-headers\":\"[\\\"X-Remote-Group\\\"]\","
	                  "\"requestheader-extra-headers-prefix\":\"[\\\"X-Remote-Extra-\\\"]\"}");
	struct arena arena;
	struct request_header_config c;
	struct err e;
	arena_init(&arena, REQUEST_HEADER_BYTES_MAX);
	assert_int_equal(request_header_read(text, sizeof text - 1, &arena, &c, &e), 0);
	assert_string_equal(c.client_ca_pem, "A\n");
	assert_string_equal(c.proxy_ca_pem, "B\n");
	assert_int_equal(c.allowed_names.n, 2);
	assert_string_equal(c.allowed_names.items[1], "other");
	assert_string_equal(c.name_headers.items[0], "X-Remote-User");
	assert_string_equal(c.group_headers.items[0], "X-Remote-Group");
	assert_string_equal(c.extra_prefixes.items[0], "X-Remote-Extra-");
	assert_int_equal(c.uid_headers.n, 0);
	arena_done(&arena);
}

static void configmap_that_is_not_right_is_refused_whole(void **state)
{
	static const char *const bad[] = {
	        "",
	        "[]",
	        "{\"metadata\":{\"name\":\"extension-apiserver-authentication\",\"namespace\":\"default\"},\"data\":{}"
	        "}",
	        "{\"metadata\":{\"name\":\"other\",\"namespace\":\"kube-system\"},\"data\":{}}",
	        CONFIGMAP("{\"requestheader-allowed-names\":\"[1]\"}"),
	        CONFIGMAP("{\"requestheader-allowed-names\":\"[\\\"\\\"]\"}"),
	        CONFIGMAP("{\"requestheader-allowed-names\":\"{}\"}"),
	        CONFIGMAP("{\"requestheader-allowed-names\":\"front-proxy-client\"}"),
	        CONFIGMAP("{\"requestheader-username-headers\":\"[\\\"X Remote\\\"]\"}"),
	        CONFIGMAP("{\"requestheader-allowed-names\":[\"front-proxy-client\"]}"),
	        CONFIGMAP("{\"requestheader-allowed-names\":null}"),
	        CONFIGMAP("{\"client-ca-file\":7}"),
	        CONFIGMAP("[]"),
	        CONFIGMAP("\"client-ca-file\""),
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct arena arena;
		struct request_header_config c;
		struct err e;
		arena_init(&arena, REQUEST_HEADER_BYTES_MAX);
		if (request_header_read(bad[i], strlen(bad[i]), &arena, &c, &e) == 0)
			fail_msg("row %zu was taken", i);
		arena_done(&arena);
	}
}

static void cluster_without_aggregation_trusts_no_headers(void **state)
{
	static const char text[] = CONFIGMAP("{\"client-ca-file\":\"A\",\"requestheader-client-ca-file\":\" \\n\"}");
	struct arena arena;
	struct request_header_config c;
	struct err e;
	arena_init(&arena, REQUEST_HEADER_BYTES_MAX);
	assert_int_equal(request_header_read(text, sizeof text - 1, &arena, &c, &e), 0);
	assert_null(c.proxy_ca_pem);
	assert_non_null(c.client_ca_pem);
	arena_done(&arena);
}

// ---- the cache ----

static void answer_is_believed_for_its_time_and_no_longer(void **state)
{
	unsigned char key[REVIEW_KEY_BYTES], other[REVIEW_KEY_BYTES];
	struct review_cache *c = review_cache_new(2, 10000);
	SHA256((const unsigned char *)"a", 1, key);
	SHA256((const unsigned char *)"b", 1, other);
	assert_null(review_cache_get(c, key, 1000));
	review_cache_put(c, key, &(struct review_answer){.yes = 1}, 1000);
	assert_int_equal(review_cache_get(c, key, 1000)->yes, 1);
	assert_null(review_cache_get(c, other, 1000));
	assert_non_null(review_cache_get(c, key, 10999));
	assert_null(review_cache_get(c, key, 11000));
	review_cache_put(c, key, &(struct review_answer){.yes = 1}, 20000);
	review_cache_put(c, key, &(struct review_answer){.yes = 0, .reason = "no"}, 21000);
	assert_string_equal(review_cache_get(c, key, 30500)->reason, "no"); // the newer one counts, and lives on
	review_cache_free(c);
}

static void oldest_answer_makes_room(void **state)
{
	struct err e;
	struct k8s_user *u = k8s_user_new("x", "", &e);
	struct review_cache *c = review_cache_new(3, 10000);
	for (int i = 0; i < 100; i++) {
		unsigned char key[REVIEW_KEY_BYTES];
		SHA256((const unsigned char *)&i, sizeof i, key);
		review_cache_put(c, key, &(struct review_answer){.yes = 1, .user = u}, i);
		for (int k = 0; k <= i; k++) {
			SHA256((const unsigned char *)&k, sizeof k, key);
			assert_int_equal(review_cache_get(c, key, i) != NULL, k > i - 3);
		}
	}
	review_cache_free(c);
	k8s_user_unref(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(review_asks_with_all_that_is_known),
	        cmocka_unit_test(only_a_clear_yes_is_one),
	        cmocka_unit_test(token_without_an_owner_is_refused),
	        cmocka_unit_test(user_with_parts_of_another_shape_is_refused),
	        cmocka_unit_test(user_past_the_ceilings_is_refused),
	        cmocka_unit_test(configmap_of_a_cluster_is_read),
	        cmocka_unit_test(configmap_that_is_not_right_is_refused_whole),
	        cmocka_unit_test(cluster_without_aggregation_trusts_no_headers),
	        cmocka_unit_test(answer_is_believed_for_its_time_and_no_longer),
	        cmocka_unit_test(oldest_answer_makes_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
