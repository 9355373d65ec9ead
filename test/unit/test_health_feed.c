// SPDX-License-Identifier: Apache-2.0
// Goal: what one exporter reports, however much and however named, costs only its own node its data. The source is a
// fake that answers with what a test passes to it.
#include "remedy/agent/health_feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

#define QUERIES_MAX 16
#define LABELS      5
#define SERIES_MAX  12000

static struct {
	struct health_feed *feed;
	struct {
		char *text;
		promql_done_fn *done;
		void *arg;
		size_t max_series;
	} asked[QUERIES_MAX];
	size_t n_asked;
	int done;
	struct err error;
	struct promql_series series[SERIES_MAX];
	struct promql_label labels[SERIES_MAX][LABELS];
	char *texts[SERIES_MAX][LABELS];
	size_t n_series;
} world;

int promql_source_ask(struct promql_source *s, const struct promql_question *question,
                      const struct promql_ticket *ticket, promql_done_fn *done, void *arg, struct err *e)
{
	assert_true(world.n_asked < QUERIES_MAX);
	world.asked[world.n_asked].text = strdup(question->query);
	world.asked[world.n_asked].max_series = question->max_series ? question->max_series : PROMQL_SERIES_MAX;
	world.asked[world.n_asked].done = done;
	world.asked[world.n_asked++].arg = arg;
	return 0;
}

static void on_done(void *arg, const struct err *error)
{
	world.done++;
	world.error = error ? *error : (struct err){0};
}

static int set_up(void **state)
{
	static struct promql_source source;
	static const struct health_feed_options options = {.source = &source,
	                                                   .node_label = "Hostname",
	                                                   .matchers = "job=\"j\"",
	                                                   .heat_ms = 600000,
	                                                   .done = on_done};
	struct err e = {0};
	memset(&world, 0, sizeof world);
	world.feed = health_feed_new(&options, &e);
	if (!world.feed)
		fail_msg("%s", e.msg);
	health_feed_start(world.feed);
	return 0;
}

static void forget_series(void)
{
	for (size_t i = 0; i < world.n_series; i++)
		for (size_t k = 0; k < LABELS; k++)
			free(world.texts[i][k]);
	world.n_series = 0;
}

static int tear_down(void **state)
{
	forget_series();
	for (size_t i = 0; i < world.n_asked; i++)
		free(world.asked[i].text);
	health_feed_free(world.feed);
	return 0;
}

static void add(const char *instance, const char *node, const char *uuid)
{
	static const struct promql_sample one = {.time_ms = 1000, .value = 1};
	static const char *const names[LABELS] = {"job", "instance", "Hostname", "UUID", "__name__"};
	const char *const values[LABELS] = {"j", instance, node, uuid, "gpuscale_gpu_up"};
	size_t i = world.n_series++;
	assert_true(i < SERIES_MAX);
	for (size_t k = 0; k < LABELS; k++) {
		world.texts[i][k] = strdup(values[k]);
		world.labels[i][k] = (struct promql_label){names[k], world.texts[i][k]};
	}
	world.series[i] =
	        (struct promql_series){.labels = world.labels[i], .n_labels = LABELS, .samples = &one, .n_samples = 1};
}

static size_t query_with(const char *text)
{
	size_t i = 0;
	while (i < world.n_asked && !(strncmp(world.asked[i].text, text, strlen(text)) == 0))
		i++;
	assert_true(i < world.n_asked);
	return i;
}

// With the series added, as the source does: at most those that the question permits.
static void answer(size_t i)
{
	const struct promql_result result = {.type = PROMQL_VECTOR, .series = world.series, .n_series = world.n_series};
	const struct err too_large = {.kind = ERR_TOO_LARGE};
	bool fits = world.n_series <= world.asked[i].max_series;
	world.asked[i].done(world.asked[i].arg, fits ? &result : NULL, fits ? NULL : &too_large);
	world.asked[i].done = NULL;
}

// The other queries have no series.
static void complete(void)
{
	forget_series();
	for (size_t i = 0; i < world.n_asked; i++)
		if (world.asked[i].done)
			answer(i);
	assert_int_equal(world.done, 1);
	assert_string_equal(world.error.msg, "");
	assert_int_equal(world.error.kind, ERR_NONE);
}

static size_t gpus_of(const char *node)
{
	const char *uuids[16];
	return health_feed_gpus(world.feed, node, NULL, uuids, 16);
}

static void labels_that_are_too_long_lose_only_their_series(void **state)
{
	char text[3000];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	add(text, "long-1", "GPU-1");
	add("i2", text, "GPU-2");
	add("i3", "short", "GPU-3");
	answer(query_with("gpuscale_gpu_up{"));
	complete();
	assert_int_equal(gpus_of("long-1"), 0);
	assert_int_equal(gpus_of("short"), 1);
}

// 1,400 nodes with 8 GPUs; each GPU has an up, and all five conditions.
static void large_fleet_fits(void **state)
{
	for (int i = 0; i < 1400 * 8; i++) {
		char instance[40], node[40], uuid[48];
		snprintf(instance, sizeof instance, "10.0.%d.%d:9400", i / 8 / 256, i / 8 % 256);
		snprintf(node, sizeof node, "node-%d", i / 8);
		snprintf(uuid, sizeof uuid, "GPU-00000000-0000-0000-0000-%012d", i);
		add(instance, node, uuid);
	}
	answer(query_with("gpuscale_gpu_up{"));
	for (size_t i = 0; i < world.n_asked; i++)
		if (world.asked[i].done && (strncmp(world.asked[i].text, "DCGM_FI_DEV_", 12) == 0 ||
		                            strncmp(world.asked[i].text, "gpuscale_gpu_recovery_action", 28) == 0))
			answer(i);
	complete();
	assert_int_equal(gpus_of("node-0"), 8);
	assert_int_equal(gpus_of("node-1399"), 8);
}

// Prometheus leaves out the series of such an exporter, and names it with a node.
static void exporter_with_too_many_gpus_is_reported_for_its_node(void **state)
{
	char why[256];
	add("i1", "good", "GPU-1");
	answer(query_with("gpuscale_gpu_up{"));
	forget_series();
	add("i2", "crowded", "");
	add("i3", "good", ""); // says so; the exporter of this node remains believed
	add("i4", "crowded", "");
	add("i5", "", "");
	answer(query_with("topk by (job, instance) (1, max by (job, instance, Hostname)"));
	complete();
	assert_true(health_feed_contradiction(world.feed, "crowded", why, sizeof why));
	assert_non_null(strstr(why, " of job j reports too many series"));
	assert_int_equal(gpus_of("crowded"), 0);
	assert_false(health_feed_contradiction(world.feed, "good", why, sizeof why));
	assert_int_equal(gpus_of("good"), 1);
	assert_false(health_feed_contradiction(world.feed, "", why, sizeof why));
}

// Codes that are only watched take no place.
// Whatever node Prometheus names: what is left of its series must not count as health.
static void exporter_with_too_many_series_has_no_data(void **state)
{
	char text[3000];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	add("i1", "n1", "GPU-1");
	add("i2", "n2", "GPU-2");
	answer(query_with("gpuscale_gpu_up{"));
	forget_series();
	add("i1", text, "");
	add("i2", "n1", "");
	answer(query_with("topk by"));
	complete();
	assert_int_equal(gpus_of("n1"), 0);
	assert_int_equal(gpus_of("n2"), 0);
}

static void only_xids_that_are_acted_on_are_asked_for(void **state)
{
	const char *text = world.asked[query_with("{__name__=~\"gpuscale_gpu_xid")].text;
	assert_non_null(strstr(text, "xid=~\"46|48|54|"));
	assert_null(strstr(text, "|13|"));
}

static void heat_that_lasts_is_asked_for_in_the_trusted_series(void **state)
{
	const char *text = world.asked[query_with("sum_over_time((floor(DCGM_FI_DEV_CLOCKS_EVENT_REASONS")].text;
	assert_non_null(strstr(text, "REASONS{GPU_I_ID=\"\",job=\"j\"} / 64) % 2)[600s:15s]) > bool 36.0"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(labels_that_are_too_long_lose_only_their_series),
	        TEST(large_fleet_fits),
	        TEST(exporter_with_too_many_gpus_is_reported_for_its_node),
	        TEST(exporter_with_too_many_series_has_no_data),
	        TEST(only_xids_that_are_acted_on_are_asked_for),
	        TEST(heat_that_lasts_is_asked_for_in_the_trusted_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
