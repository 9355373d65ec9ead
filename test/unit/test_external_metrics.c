// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/metrics_api.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "k8s/client/label_selector.h"
#include "k8s/server/metrics_api.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void number_becomes_the_canonical_quantity(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
	        {0, "0"},
	        {-0.0, "0"},
	        {1, "1"},
	        {-1, "-1"},
	        {0.7, "700m"},
	        {0.1 + 0.2, "300m"},
	        {1.5, "1500m"},
	        {-2.25, "-2250m"},
	        {0.0125, "12500u"},
	        {1.0 / 3, "333333333n"},
	        {2.0 / 3, "666666667n"},
	        {1e-9, "1n"},
	        {4e-10, "0"},
	        {-4e-10, "0"},
	        {6e-10, "1n"},
	        {999, "999"},
	        {1000, "1k"},
	        {1500, "1500"},
	        {1024, "1024"},
	        {1e6, "1M"},
	        {12e9, "12G"},
	        {1234567.25, "1234567250m"},
	        {9e15, "9P"},
	        {-9e15, "-9P"},
	        {9007199254740.5, "9007199254740500m"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char out[QUANTITY_BYTES];
		struct err e;
		assert_int_equal(quantity_format(out, rows[i].value, &e), strlen(rows[i].text));
		assert_string_equal(out, rows[i].text);
	}
}

static void quantity_reads_back_as_the_number_to_a_billionth(void **state)
{
	uint64_t seed = 42;
	for (int i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		double v = ((double)(int64_t)seed / 9.3e18) * pow(10, (double)(seed % 20) - 6), back;
		char out[QUANTITY_BYTES];
		struct err e;
		if (fabs(v) > QUANTITY_MAX)
			continue;
		int n = quantity_format(out, v, &e);
		assert_true(n > 0 && n < QUANTITY_BYTES);
		assert_int_equal(num_parse_quantity(out, (size_t)n, &back, &e), 0);
		if (fabs(back - v) > 5.001e-10 + fabs(v) * 1e-15)
			fail_msg("%.17g became %s", v, out);
	}
}

static void non_finite_value_is_refused_as_quantity(void **state)
{
	static const double bad[] = {NAN, INFINITY, -INFINITY, 1e16, -9.1e15};
	for (size_t i = 0; i < COUNT(bad); i++) {
		char out[QUANTITY_BYTES];
		struct err e;
		assert_int_equal(quantity_format(out, bad[i], &e), -1);
	}
}

static void paths_name_what_they_name_and_nothing_else(void **state)
{
	static const char base[] = "/apis/external.metrics.k8s.io/v1beta1";
	static const struct {
		const char *path;
		enum metrics_page page;
		const char *namespace_name, *metric;
	} rows[] = {
	        {"/apis", METRICS_GROUPS, "", ""},
	        {"/apis/", METRICS_GROUPS, "", ""},
	        {"/apis//", METRICS_NONE, "", ""},
	        {"/apis/external.metrics.k8s.io", METRICS_OF_GROUP, "", ""},
	        {"/apis/external.metrics.k8s.iox", METRICS_NONE, "", ""},
	        {"/apis/custom.metrics.k8s.io", METRICS_NONE, "", ""},
	        {"/apis/external.metrics.k8s.io/v1beta1", METRICS_RESOURCES, "", ""},
	        {"/apis/external.metrics.k8s.io/v1beta1/", METRICS_RESOURCES, "", ""},
	        {"/apis/external.metrics.k8s.io/v1beta2", METRICS_NONE, "", ""},
	        {"/openapi/v2", METRICS_OPENAPI, "", ""},
	        {"/", METRICS_NONE, "", ""},
	        {"+/namespaces/serving/queue", METRICS_VALUES, "serving", "queue"},
	        {"+/namespaces/serving/llama:queue", METRICS_VALUES, "serving", "llama:queue"},
	        {"+/namespaces/serving/queue/", METRICS_VALUES, "serving", "queue"},
	        {"+/namespaces/serving/queue/x", METRICS_NONE, "", ""},
	        {"+/namespaces/serving", METRICS_NONE, "", ""},
	        {"+/namespaces/serving/", METRICS_NONE, "", ""},
	        {"+/namespaces//queue", METRICS_NONE, "", ""},
	        {"+/queue", METRICS_NONE, "", ""},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char path[256];
		struct metrics_path p;
		bool is_short = rows[i].path[0] == '+';
		snprintf(path, sizeof path, "%s%s", is_short ? base : "", rows[i].path + is_short);
		metrics_path_parse(&external_metrics_api, path, &p);
		if (p.page != rows[i].page || strcmp(p.namespace_name, rows[i].namespace_name) != 0 ||
		    strcmp(p.metric, rows[i].metric) != 0)
			fail_msg("%s: page %d, \"%s\", \"%s\"", path, (int)p.page, p.namespace_name, p.metric);
	}
	char longer[1024];
	struct metrics_path p;
	snprintf(longer, sizeof longer, "%s/namespaces/%064d/queue", base, 0);
	metrics_path_parse(&external_metrics_api, longer, &p);
	assert_int_equal(p.page, METRICS_NONE);
	snprintf(longer, sizeof longer, "%s/namespaces/serving/%0513d", base, 0);
	metrics_path_parse(&external_metrics_api, longer, &p);
	assert_int_equal(p.page, METRICS_NONE);
}

static void paths_of_custom_metrics_name_an_object(void **state)
{
	static const char base[] = "/apis/custom.metrics.k8s.io/v1beta2";
	static const struct {
		const char *path;
		enum metrics_page page;
		const char *resource, *object, *metric;
	} rows[] = {
	        {"", METRICS_RESOURCES, "", "", ""},
	        {"/", METRICS_RESOURCES, "", "", ""},
	        {"x", METRICS_NONE, "", "", ""},
	        {"/namespaces/serving/deployments.apps/llama/queue", METRICS_VALUES, "deployments.apps", "llama",
	         "queue"},
	        {"/namespaces/serving/deployments.apps/llama/queue/", METRICS_VALUES, "deployments.apps", "llama",
	         "queue"},
	        {"/namespaces/serving/deployments.apps/llama/queue/x", METRICS_NONE, "", "", ""},
	        {"/namespaces/serving/deployments.apps/llama", METRICS_NONE, "", "", ""},
	        {"/namespaces/serving/deployments.apps//queue", METRICS_NONE, "", "", ""},
	        {"/namespaces/serving/metrics/queue", METRICS_NONE, "", "", ""},
	        {"/nodes/a/queue", METRICS_NONE, "", "", ""},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char path[256];
		struct metrics_path p;
		snprintf(path, sizeof path, "%s%s", base, rows[i].path);
		metrics_path_parse(&custom_metrics_api, path, &p);
		if (p.page != rows[i].page || strcmp(p.resource, rows[i].resource) != 0 ||
		    strcmp(p.object, rows[i].object) != 0 || strcmp(p.metric, rows[i].metric) != 0)
			fail_msg("%s: page %d, \"%s\", \"%s\", \"%s\"", path, (int)p.page, p.resource, p.object,
			         p.metric);
	}
	struct metrics_path p;
	metrics_path_parse(&custom_metrics_api, "/apis/custom.metrics.k8s.io/", &p);
	assert_int_equal(p.page, METRICS_OF_GROUP);
	metrics_path_parse(&custom_metrics_api, "/apis/custom.metrics.k8s.io/v1beta1", &p);
	assert_int_equal(p.page, METRICS_NONE);
	char longer[1024];
	snprintf(longer, sizeof longer, "%s/namespaces/serving/%0254d/llama/queue", base, 0);
	metrics_path_parse(&custom_metrics_api, longer, &p);
	assert_int_equal(p.page, METRICS_NONE);
}

static void custom_metric_has_the_shape_of_the_api(void **state)
{
	struct buf b;
	struct err e;
	buf_init(&b, 65536);
	const struct custom_metrics_object object = {"apps/v1", "Deployment", "serving", "llama"};
	struct external_metric_value v = {.time_ms = 1767603600999, .window_s = 60, .value = 12.5};
	assert_int_equal(custom_metrics_write_value(&b, &object, "queue", &v, &e), 0);
	assert_string_equal(buf_str(&b),
	                    "{\"kind\":\"MetricValueList\",\"apiVersion\":\"custom.metrics.k8s.io/v1beta2\","
	                    "\"metadata\":{},\"items\":[{\"describedObject\":{\"kind\":\"Deployment\","
	                    "\"namespace\":\"serving\",\"name\":\"llama\",\"apiVersion\":\"apps/v1\"},"
	                    "\"metric\":{\"name\":\"queue\"},\"timestamp\":\"2026-01-05T09:00:00Z\","
	                    "\"windowSeconds\":60,\"value\":\"12500m\"}]}");
	v.value = NAN;
	assert_int_equal(custom_metrics_write_value(&b, &object, "queue", &v, &e), -1);
	buf_reset(&b);
	static const char *const names[] = {"queue"}, *const prefixes[] = {"a.b/", "c.d/"};
	metrics_api_write_resources(&b, &custom_metrics_api, prefixes, 2, names, 1);
	assert_non_null(strstr(buf_str(&b), "\"name\":\"a.b/queue\""));
	assert_non_null(strstr(buf_str(&b), "\"name\":\"c.d/queue\""));
	assert_non_null(strstr(buf_str(&b), "\"kind\":\"MetricValueList\""));
	buf_done(&b);
}

static void documents_have_the_shapes_of_the_api(void **state)
{
	struct buf b;
	struct err e;
	buf_init(&b, 65536);
	static const struct metrics_api *const apis[] = {&external_metrics_api};
	static const char *const no_prefix[] = {""};
	metrics_api_write_groups(&b, apis, 1);
	assert_string_equal(
	        buf_str(&b),
	        "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[{\"name\":\"external.metrics.k8s.io\","
	        "\"versions\":[{\"groupVersion\":\"external.metrics.k8s.io/v1beta1\",\"version\":\"v1beta1\"}],"
	        "\"preferredVersion\":{\"groupVersion\":\"external.metrics.k8s.io/"
	        "v1beta1\",\"version\":\"v1beta1\"}}]}");
	buf_reset(&b);
	metrics_api_write_group(&b, &external_metrics_api);
	assert_string_equal(
	        buf_str(&b),
	        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"external.metrics.k8s.io\","
	        "\"versions\":[{\"groupVersion\":\"external.metrics.k8s.io/v1beta1\",\"version\":\"v1beta1\"}],"
	        "\"preferredVersion\":{\"groupVersion\":\"external.metrics.k8s.io/v1beta1\",\"version\":\"v1beta1\"}}");
	buf_reset(&b);
	static const char *const names[] = {"queue"};
	metrics_api_write_resources(&b, &external_metrics_api, no_prefix, 1, names, 1);
	assert_string_equal(buf_str(&b),
	                    "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":"
	                    "\"external.metrics.k8s.io/v1beta1\",\"resources\":[{\"name\":\"queue\","
	                    "\"singularName\":\"\",\"namespaced\":true,\"kind\":\"ExternalMetricValueList\","
	                    "\"verbs\":[\"get\"]}]}");
	buf_reset(&b);
	const struct label labels[] = {{"policy", "llama"}, {"signal", "queue"}};
	const struct external_metric_value values[] = {
	        {.labels = labels, .n_labels = 2, .time_ms = 1767603600999, .value = 12.5},
	        {.labels = NULL, .time_ms = 1767603600000, .window_s = 120, .value = 3}};
	assert_int_equal(external_metrics_write_values(&b, "queue", values, 2, &e), 0);
	assert_string_equal(buf_str(&b),
	                    "{\"kind\":\"ExternalMetricValueList\",\"apiVersion\":\"external.metrics.k8s.io/v1beta1\","
	                    "\"metadata\":{},\"items\":[{\"metricName\":\"queue\",\"metricLabels\":{\"policy\":"
	                    "\"llama\",\"signal\":\"queue\"},\"timestamp\":\"2026-01-05T09:00:00Z\",\"value\":"
	                    "\"12500m\"},{\"metricName\":\"queue\",\"metricLabels\":{},\"timestamp\":"
	                    "\"2026-01-05T09:00:00Z\",\"window\":120,\"value\":\"3\"}]}");
	buf_reset(&b);
	const struct external_metric_value bad = {.time_ms = 0, .value = NAN};
	assert_int_equal(external_metrics_write_values(&b, "queue", &bad, 1, &e), -1);
	buf_reset(&b);
	metrics_api_write_openapi(&b, "1");
	assert_string_equal(buf_str(&b), "{\"swagger\":\"2.0\",\"info\":{\"title\":\"gpuscale external metrics\","
	                                 "\"version\":\"1\"},\"paths\":{}}");
	buf_reset(&b);
	k8s_status_write(&b, 404, "no \"x\"");
	assert_string_equal(buf_str(&b),
	                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
	                    "\"Failure\",\"message\":\"no \\\"x\\\"\",\"reason\":\"NotFound\",\"code\":404}");
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(number_becomes_the_canonical_quantity),
	        cmocka_unit_test(quantity_reads_back_as_the_number_to_a_billionth),
	        cmocka_unit_test(non_finite_value_is_refused_as_quantity),
	        cmocka_unit_test(paths_name_what_they_name_and_nothing_else),
	        cmocka_unit_test(documents_have_the_shapes_of_the_api),
	        cmocka_unit_test(paths_of_custom_metrics_name_an_object),
	        cmocka_unit_test(custom_metric_has_the_shape_of_the_api),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
