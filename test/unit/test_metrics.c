// SPDX-License-Identifier: Apache-2.0
// Goal of this test: every family of the table is served, with the labels that its row has and no others; the series of
// a policy are there while it is; a page of many policies is one page.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_server.h"
#include "controller/fleet/fleet.h"
#include "controller/policy/managed_policy.h"
#include "controller/pool/pools.h"
#include "controller/serve/endpoints.h"
#include "controller/status/status_writer.h"
#include "controller/tick/reconcile.h"
#include "k8s/events/event_recorder.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/price/price_book.h"
#include "promql/promql_source.h"
#include "runtime/metrics/metrics.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

#define MANY 5000

static const struct scale_target target = {"apps/v1", "Deployment", "web", NULL};
static const struct policy fleet_policy = {.namespace_name = "serving", .name = "models"};
static const struct fleet_numbers fleet = {.policy = &fleet_policy, .targets = 12, .holding = 3, .desired = 41};

struct world {
	struct metrics *metrics;
	struct event_base *loop;
	struct promql_sources *sources;
	struct query_hub *hub;
	struct policy_signal signals[1];
	struct policy policies[2];
	struct decision decision;
	struct binding bindings[2];
	struct reconciler reconcilers[2];
	struct managed_policy *list[2];
	struct metrics_watch watch;
	struct status_writer_stats status;
	struct event_recorder_stats events;
	struct shards_view shards;
	struct pool_summary pool;
	struct price_model models[1];
	struct price_book book;
	struct metrics_view view;
	struct http_server *server;
	struct buf page;
};

static int setup(void **state)
{
	struct err e;
	struct world *w = calloc(1, sizeof *w);
	w->metrics = metrics_new();
	w->metrics->serves_external = true;
	metrics_external_request(w->metrics, 503);
	w->loop = event_base_new();
	const struct promql_source_options source = {
	        .name = "default", .query = {.url = "http://127.0.0.1:1", .kind = PROMQL_KIND_THANOS}};
	const struct http_server_options server = {.loop = w->loop, .listen = "127.0.0.1:0"};
	w->server = http_server_new(&server, &e);
	assert_non_null(w->server);
	metrics_add_server(w->metrics, "endpoints", w->server);
	w->sources = promql_sources_new(w->loop, NULL, &source, 1, &e);
	w->hub = query_hub_new(w->sources);
	w->signals[0].name = "queue";
	for (int i = 0; i < 2; i++) {
		struct policy *p = &w->policies[i];
		p->namespace_name = "serving";
		p->name = i ? "b\"\\\n" : "a"; // no such name is admitted; the page must stay one anyway
		p->min_replicas = 1;
		p->max_replicas = 9;
		p->signals = w->signals;
		p->n_signals = 1;
		p->gpus = (struct policy_gpus){!i, 2, "L4"}; // the other does not say what a replica uses
		w->bindings[i] = (struct binding){.policy = p, .target = &target};
		w->reconcilers[i] =
		        (struct reconciler){.policy = p, .subject.binding = &w->bindings[i], .decision = &w->decision};
		w->list[i] = calloc(1, sizeof *w->list[i]);
		w->list[i]->reconciler = &w->reconcilers[i];
		w->list[i]->report =
		        (struct policy_report){.gpu_time = {.used_ms = 90500, .saved_ms = 12000}, .values_limited = 7};
	}
	w->decision =
	        (struct decision){.current = 3, .ready = 2, .desired = 4, .action = ACTION_SCALE_UP, .n_signals = 1};
	w->decision.signals[0] =
	        (struct decision_signal){.value = 0.25, .target = 0.125, .proposal = 4, .age_ms = 1500};
	w->watch = (struct metrics_watch){"gpuautoscalers", {.lists = 1, .streams = 2, .events = 3}};
	w->models[0] = (struct price_model){.name = "L4", .per_gpu_hour = 0.75};
	w->book = (struct price_book){.currency = "EUR", .models = w->models, .n_models = 1};
	w->pool = (struct pool_summary){"h100", .cap_gpus = 32, .used_gpus = 30, .requested_gpus = 40,
	                                .granted_gpus = 31};
	w->view = (struct metrics_view){.policies = w->list,
	                                .pools = &w->pool,
	                                .n_pools = 1,
	                                .prices = &w->book,
	                                .n_policies = 2,
	                                .queries = w->hub,
	                                .watches = &w->watch,
	                                .n_watches = 1,
	                                .status = &w->status,
	                                .events = &w->events,
	                                .shards = &w->shards};
	buf_init(&w->page, 64 * 1024 * 1024);
	w->metrics->decisions[w->decision.action][w->decision.reason]++;
	metrics_api_request(w->metrics, "GET", "pods", 200);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	promql_sources_cancel(w->sources);
	query_hub_free(w->hub);
	promql_sources_free(w->sources);
	http_server_free(w->server);
	event_base_free(w->loop);
	free(w->metrics);
	free(w->list[0]);
	free(w->list[1]);
	buf_done(&w->page);
	free(w);
	return 0;
}

static const char *render(struct world *w)
{
	buf_reset(&w->page);
	metrics_render(w->metrics, &w->view, &w->page);
	assert_false(w->page.failed);
	return buf_str(&w->page);
}

static void expect(struct world *w, const char *line)
{
	if (!strstr(render(w), line))
		fail_msg("\"%s\" is not on the page:\n%s", line, buf_str(&w->page));
}

static void show_fleet(struct world *w)
{
	w->view.fleets = &fleet;
	w->view.n_fleets = 1;
}

static void every_family_is_served_once(void **state)
{
	struct world *w = *state;
	show_fleet(w);
	const char *page = render(w);
	for (int id = 0; id < FAMILY__COUNT; id++) {
		char head[256];
		const struct metric_family *f = metric_family_of((enum metric_family_id)id);
		snprintf(head, sizeof head, "\n# TYPE %s %s\n", f->name, metric_type_name(f->type));
		const char *at = strstr(page, head);
		if (!at || strstr(at + 1, head))
			fail_msg("%s is there %s", f->name, at ? "twice" : "never");
	}
}

static const struct metric_family *family_called(const char *name, size_t len)
{
	static const char *const suffixes[] = {"", "_bucket", "_sum", "_count"};
	for (int id = 0; id < FAMILY__COUNT; id++) {
		const struct metric_family *f = metric_family_of((enum metric_family_id)id);
		size_t n = strlen(f->name);
		for (size_t s = 0; s < (f->type == METRIC_HISTOGRAM ? 4u : 1u); s++)
			if (n + strlen(suffixes[s]) == len && strncmp(f->name, name, n) == 0 &&
			    strncmp(suffixes[s], name + n, len - n) == 0)
				return f;
	}
	return NULL;
}

static void every_sample_has_the_labels_of_its_row(void **state)
{
	struct world *w = *state;
	const char *line = render(w), *end;
	size_t n_samples = 0;
	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		if (*line == '#')
			continue;
		n_samples++;
		size_t len = strcspn(line, "{ ");
		const struct metric_family *f = family_called(line, len);
		if (!f)
			fail_msg("%.*s is not in the table", (int)len, line);
		const char *p = line + len + 1;
		for (size_t i = 0; i < FAMILY_LABELS_MAX && f->labels[i]; i++) {
			size_t n = strlen(f->labels[i]);
			if (strncmp(p, f->labels[i], n) != 0 || strncmp(p + n, "=\"", 2) != 0)
				fail_msg("%.*s: no label %s", (int)(end - line), line, f->labels[i]);
			for (p += n + 2; *p != '"'; p++)
				p += *p == '\\';
			p += 1 + (p[1] == ',');
		}
		bool is_bucket = f->type == METRIC_HISTOGRAM && strstr(line, "le=\"") && strstr(line, "le=\"") < end;
		if (*p != '}' && f->labels[0] && !is_bucket)
			fail_msg("%.*s: more labels than the row has", (int)(end - line), line);
	}
	assert_true(n_samples > FAMILY__COUNT);
}

static void values_arrive(void **state)
{
	struct world *w = *state;
	show_fleet(w);
	expect(w, "\ngpuscale_pool_gpus{pool=\"h100\",of=\"cap\"} 32\n");
	expect(w, "\ngpuscale_pool_gpus{pool=\"h100\",of=\"granted\"} 31\n");
	expect(w, "\ngpuscale_fleet_targets{namespace=\"serving\",policy=\"models\",of=\"holding\"} 3\n");
	expect(w, "\ngpuscale_fleet_replicas{namespace=\"serving\",policy=\"models\",of=\"desired\"} 41\n");
	w->status = (struct status_writer_stats){.sent = 5, .failed = 2, .waiting = 1};
	w->events = (struct event_recorder_stats){.written = 6, .failed = 3, .dropped = 4};
	w->shards = (struct shards_view){.n_shards = 8, .n_owned = 3, .n_members = 2, .gained = 5, .lost = 2};
	expect(w, "\ngpuscale_desired_replicas{namespace=\"serving\",policy=\"a\"} 4\n");
	expect(w, "\ngpuscale_desired_replicas{namespace=\"serving\",policy=\"b\\\"\\\\\\n\"} 4\n");
	expect(w, "\ngpuscale_signal_value{namespace=\"serving\",policy=\"a\",signal=\"queue\"} 0.25\n");
	expect(w, "\ngpuscale_signal_target{namespace=\"serving\",policy=\"a\",signal=\"queue\"} 0.125\n");
	expect(w, "\ngpuscale_signal_desired_replicas{namespace=\"serving\",policy=\"a\",signal=\"queue\"} 4\n");
	expect(w, "\ngpuscale_signal_age_seconds{namespace=\"serving\",policy=\"a\",signal=\"queue\"} 1.5\n");
	expect(w, "\ngpuscale_values_limited_total{namespace=\"serving\",policy=\"a\"} 7\n");
	expect(w, "\ngpuscale_target_info{namespace=\"serving\",policy=\"a\",workload=\"web\"} 1\n");
	expect(w, "\ngpuscale_gpu_seconds_total{namespace=\"serving\",policy=\"a\"} 90.5\n");
	expect(w, "\ngpuscale_saved_gpu_seconds_total{namespace=\"serving\",policy=\"a\",against=\"max\"} 12\n");
	expect(w, "\ngpuscale_gpus{namespace=\"serving\",policy=\"a\",model=\"L4\"} 6\n");
	expect(w,
	       "\ngpuscale_cost_per_hour{namespace=\"serving\",policy=\"a\",currency=\"EUR\",price=\"listed\"} 4.5\n");
	expect(w, "\ngpuscale_decisions_total{action=\"ScaleUp\",reason=\"");
	expect(w, "\ngpuscale_api_requests_total{verb=\"GET\",resource=\"pods\",code=\"200\"} 1\n");
	expect(w, "\ngpuscale_source_info{source=\"default\",type=\"Thanos\",version=\"\"} 1\n");
	expect(w, "\ngpuscale_source_state{source=\"default\",state=\"down\"} 0\n");
	expect(w, "\ngpuscale_source_query_duration_seconds_count{source=\"default\"} 0\n");
	expect(w, "\ngpuscale_watch_streams_total{resource=\"gpuautoscalers\"} 2\n");
	expect(w, "\ngpuscale_status_writes_total{result=\"ok\"} 5\n");
	expect(w, "\ngpuscale_events_total{result=\"dropped\"} 4\n");
	expect(w, "\ngpuscale_shards_held 3\n");
	expect(w, "\ngpuscale_external_metrics_requests_total{code=\"503\"} 1\n");
	expect(w, "\ngpuscale_shard_changes_total{change=\"lost\"} 2\n");
	expect(w, "\ngpuscale_leader 1\n");
	w->shards.n_owned = 0;
	expect(w, "\ngpuscale_leader 0\n");
}

static void unknown_values_are_not_exported(void **state)
{
	struct world *w = *state;
	w->decision.ready = -1;
	w->decision.signals[0] = (struct decision_signal){
	        .state = SIGNAL_MISSING, .value = NAN, .target = 1, .proposal = 2, .age_ms = -1};
	w->view.n_watches = 0;
	w->view.shards = NULL;
	const char *page = render(w);
	assert_null(strstr(page, "gpuscale_ready_replicas{"));
	assert_null(strstr(page, "gpuscale_signal_value{"));
	assert_null(strstr(page, "gpuscale_signal_target{"));
	assert_null(strstr(page, "gpuscale_signal_desired_replicas{"));
	assert_null(strstr(page, "gpuscale_signal_age_seconds{"));
	assert_null(strstr(page, "gpuscale_watch_"));
	assert_null(strstr(page, "gpuscale_shards"));
	assert_null(strstr(page, "gpuscale_source_last_answer_timestamp_seconds{")); // nothing was asked yet
	expect(w, "\ngpuscale_leader 1\n");                                          // without an election
}

static void policy_that_is_gone_leaves_nothing(void **state)
{
	struct world *w = *state;
	assert_non_null(strstr(render(w), "policy=\"a\""));
	w->view.policies++;
	w->view.n_policies = 1;
	assert_null(strstr(render(w), "policy=\"a\""));
	w->reconcilers[1].decision = NULL; // and one that has not decided yet says nothing
	assert_null(strstr(render(w), "policy="));
}

static void page_of_many_policies_is_whole(void **state)
{
	struct world *w = *state;
	struct managed_policy **many = calloc(MANY, sizeof *many);
	for (size_t i = 0; i < MANY; i++)
		many[i] = w->list[0];
	w->view.policies = many;
	w->view.n_policies = MANY;
	w->metrics->max_policies = MANY;
	size_t n = 0;
	for (const char *p = render(w); (p = strstr(p, "policy=\"a\"")); p++)
		n++;
	assert_int_equal(n, 17 * MANY); // nine of its own, four of its GPUs and four of its signal
	expect(w, "\ngpuscale_policies_without_series 0\n");
	free(many);
}

static void policies_above_the_limit_have_no_series_and_are_counted(void **state)
{
	struct world *w = *state;
	w->metrics->max_policies = 1;
	assert_non_null(strstr(render(w), "policy=\"a\""));
	assert_null(strstr(render(w), "policy=\"b"));
	expect(w, "\ngpuscale_policies 2\n");
	expect(w, "\ngpuscale_policies_without_series 1\n");
	w->metrics->max_policies = 0;
	assert_null(strstr(render(w), "policy="));
	expect(w, "\ngpuscale_policies_without_series 2\n");
}

static void gpus_that_are_not_stated_have_no_series(void **state)
{
	static const char *const families[] = {"gpuscale_gpu_seconds_total{", "gpuscale_saved_gpu_seconds_total{",
	                                       "gpuscale_gpus{", "gpuscale_cost_per_hour{"};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
		const char *at = strstr(render(w), families[i]);
		assert_non_null(at);
		assert_null(strstr(at + 1, families[i])); // only policy a
	}
	w->policies[0].gpus.model = "X1";
	expect(w, "\ngpuscale_gpus{namespace=\"serving\",policy=\"a\",model=\"X1\"} 6\n");
	assert_null(strstr(render(w), "gpuscale_cost_per_hour{"));
	w->book.has_assumed = true;
	w->book.assumed_per_gpu_hour = 2;
	expect(w,
	       "\ngpuscale_cost_per_hour{namespace=\"serving\",policy=\"a\",currency=\"EUR\",price=\"assumed\"} 12\n");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(every_family_is_served_once),
	        T(every_sample_has_the_labels_of_its_row),
	        T(values_arrive),
	        T(unknown_values_are_not_exported),
	        T(gpus_that_are_not_stated_have_no_series),
	        T(policy_that_is_gone_leaves_nothing),
	        T(page_of_many_policies_is_whole),
	        T(policies_above_the_limit_have_no_series_and_are_counted),
	};
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
