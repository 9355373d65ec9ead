// SPDX-License-Identifier: Apache-2.0
// The documents behind the status page are JSON whatever they are about, say what is known and nothing else, and stay
// within their ceilings; the page's own policy admits what stands in it and nothing else.
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
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "controller/controller.h"
#include "controller/policy/policy_report.h"
#include "controller/serve/endpoints.h"
#include "controller/status/sparkline.h"
#include "controller/status/status_conditions.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"
#include "runtime/endpoint_reply.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

#define NOW_MS 1767603600000 // 2026-01-05T09:00:00Z

static const struct policy_signal signals[] = {
        {.name = "queue", .query = "q", .target = {.set = true, .type = TARGET_VALUE, .value = 8}},
        {.name = "sm_active", .query = "s", .watermarks = {.set = true, .high = 0.7, .low = 0.3}},
};
static const struct scale_target target = {"apps/v1", "Deployment", "llm", NULL};
static const struct policy policy = {.namespace_name = "serving",
                                     .name = "llama",
                                     .interval_ms = 15000,
                                     .min_replicas = 1,
                                     .max_replicas = 16,
                                     .signals = signals,
                                     .n_signals = 2};

static struct decision sample(void)
{
	struct decision d = {.time_ms = NOW_MS,
	                     .current = 2,
	                     .ready = -1,
	                     .desired = 2,
	                     .action = ACTION_HOLD,
	                     .reason = REASON_NO_DATA,
	                     .driver = 0,
	                     .min_replicas = 2,
	                     .max_replicas = 12,
	                     .n_signals = 2,
	                     .n_trace = 1};
	d.signals[0] = (struct decision_signal){SIGNAL_OK, REASON_NONE, 4, 12.5, 8, 3000};
	d.signals[1] = (struct decision_signal){SIGNAL_MISSING, REASON_NO_DATA, 2, NAN, 0, -1};
	d.entries[0] = (struct trace_entry){
	        .stage = STAGE_SOURCES, .reason = REASON_NO_DATA, .signal = 1, .before = 2, .after = 2};
	return d;
}

static const struct overview_policy unknown = {
        .namespace_name = "serving", .name = "llama", .error = "", .last_scale_ms = -1};

static cJSON *parse(const struct buf *b)
{
	struct err e;
	assert_false(b->failed);
	cJSON *root = json_read(buf_str(b), b->len, &e);
	if (!root)
		fail_msg("%s in: %.400s", e.msg, buf_str(b));
	return root;
}

static struct connections connections;
static struct controller controller = {.connections = &connections};

// What the head is about, with the controller above.
struct head {
	struct shards_view shards;
	struct overview_items items;
	const char *problems;
};
static const struct head nothing = {.shards = {.leader = "", .error = ""}, .problems = ""};

static int open_sources(void **state)
{
	(void)state;
	struct err e;
	const struct promql_source_options sources[] = {
	        {.name = "default", .query = {.url = "http://prometheus:9090"}},
	        {.name = "eu", .query = {.url = "http://eu:9090"}},
	};
	connections.loop = event_base_new();
	connections.promql = promql_sources_new(connections.loop, NULL, sources, 2, &e);
	connections.queries = query_hub_new(connections.promql);
	return connections.queries ? 0 : -1;
}

static int close_sources(void **state)
{
	(void)state;
	promql_sources_cancel(connections.promql);
	query_hub_free(connections.queries);
	promql_sources_free(connections.promql);
	event_base_free(connections.loop);
	return 0;
}

static cJSON *overview_of(const struct head *h, const struct overview_policy *list, size_t n)
{
	struct buf b;
	struct json_writer w;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	json_write_init(&w, &b, 0);
	overview_begin(&w, &controller, &h->shards, &h->items, h->problems);
	for (size_t i = 0; i < n; i++)
		overview_add(&w, &list[i], true);
	overview_end(&w);
	cJSON *root = parse(&b);
	buf_done(&b);
	return root;
}

// The value at "a.b.2.c" as JSON; "" when there is none.
static void assert_at(const cJSON *root, const char *path, const char *want)
{
	char got[1024] = "";
	const cJSON *at = root;
	for (const char *p = path; at && *p;) {
		char key[64];
		size_t n = strcspn(p, ".");
		snprintf(key, sizeof key, "%.*s", (int)n, p);
		at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, key[0] - '0') : json_get(at, key);
		p += n + (p[n] == '.');
	}
	if (at)
		assert_true(cJSON_PrintPreallocated((cJSON *)(uintptr_t)at, got, sizeof got, false));
	if (strcmp(got, want) != 0)
		fail_msg("%s: got %s, want %s", path, got, want);
}

static void head_says_what_is_known(void **state)
{
	(void)state;
	struct promql_source *up = connections.promql->items[0];
	struct promql_source *down = connections.promql->items[1];
	up->stats.last_answer_wall_ms = NOW_MS - 1000;
	up->stats.last_seconds = 0.004;
	down->health.state = PROMQL_DOWN;
	snprintf(down->error, sizeof down->error, "connection refused");
	controller.policies.changed_ms = NOW_MS;
	controller.start_ms = NOW_MS - 60000;
	struct head h = {.shards = {.identity = "a_1", .leader = "", .n_owned = 0, .n_shards = 1},
	                 .items = {.n = 3, .n_invalid = 1, .n_waiting = 2},
	                 .problems = "a.yaml: no \xff text\n\nleases: away"};
	cJSON *root = overview_of(&h, NULL, 0);
	assert_at(root, "apiVersion", "\"gpuscale.dev/v1alpha1\"");
	assert_at(root, "kind", "\"Overview\"");
	assert_at(root, "time", "\"2026-01-05T09:00:00Z\"");
	assert_at(root, "controller",
	          "{\"identity\":\"a_1\",\"dryRun\":false,\"leader\":false,\"shardsOwned\":0,\"shardsTotal\":1,"
	          "\"startTime\":\"2026-01-05T08:59:00Z\"}");
	assert_at(root, "sources.0",
	          "{\"name\":\"default\",\"url\":\"http://prometheus:9090\",\"state\":\"Up\",\"error\":\"\","
	          "\"lastSuccessTime\":\"2026-01-05T08:59:59Z\",\"latencySeconds\":0.004}");
	assert_at(root, "sources.1",
	          "{\"name\":\"eu\",\"url\":\"http://eu:9090\",\"state\":\"Down\",\"error\":\"connection refused\"}");
	assert_at(root, "counts", "{\"policies\":3,\"invalid\":1,\"waiting\":2}");
	assert_at(root, "problems", "[\"a.yaml: no \xef\xbf\xbd text\",\"leases: away\"]");
	assert_at(root, "policies", "[]");
	cJSON_Delete(root);

	controller.start_ms = NOW_MS;
	controller.options.dry_run = true;
	h = nothing;
	root = overview_of(&h, NULL, 0);
	assert_at(root, "controller", "{\"dryRun\":true,\"startTime\":\"2026-01-05T09:00:00Z\"}"); // no election
	assert_at(root, "problems", "[]");
	cJSON_Delete(root);

	h.shards = (struct shards_view){.identity = "a_1", .leader = "", .n_owned = 2, .n_shards = 4};
	root = overview_of(&h, NULL, 0);
	assert_at(root, "controller.leader", ""); // with shards there is no single leader
	assert_at(root, "controller.shardsOwned", "2");
	assert_at(root, "controller.shardsTotal", "4");
	cJSON_Delete(root);
}

static void policy_says_what_was_decided(void **state)
{
	(void)state;
	struct decision d = sample();
	struct overview_policy p = unknown;
	p.decided = (struct decided){.policy = &policy, .target = &target, .decision = &d};
	p.facts = (struct status_facts){.phase = STATUS_DECIDED, .decided = &p.decided};
	p.has_facts = true;
	p.last_scale_ms = NOW_MS - 3600000;
	p.trend = sparkline_new(15000, 4);
	sparkline_add((struct sparkline *)(uintptr_t)p.trend, NOW_MS - 15000, NULL);
	sparkline_add((struct sparkline *)(uintptr_t)p.trend, NOW_MS, (const double[]){2, 1000000, 12.34567, NAN});
	struct head h = nothing;
	cJSON *root = overview_of(&h, &p, 1);
	const cJSON *at = cJSON_GetArrayItem(json_get(root, "policies"), 0);
	assert_at(at, "namespace", "\"serving\"");
	assert_at(at, "name", "\"llama\"");
	assert_at(at, "target", "{\"kind\":\"Deployment\",\"name\":\"llm\"}");
	assert_at(at, "minReplicas", "2"); // in force at that tick
	assert_at(at, "maxReplicas", "12");
	assert_at(at, "currentReplicas", "2");
	assert_at(at, "readyReplicas", ""); // not known
	assert_at(at, "desiredReplicas", "2");
	assert_at(at, "action", "\"Hold\"");
	assert_at(at, "held", "true");
	assert_at(at, "reason", "\"NoData\"");
	assert_at(at, "paused", "false");
	assert_at(at, "dryRun", "false");
	assert_at(at, "lastScaleTime", "\"2026-01-05T08:00:00Z\"");
	assert_at(at, "error", "\"\"");
	assert_at(at, "signals.0",
	          "{\"name\":\"queue\",\"value\":12.5,\"target\":8,\"state\":\"OK\",\"ageSeconds\":3,\"error\":\"\"}");
	assert_at(at, "signals.1.value", "null");
	assert_at(at, "signals.1.target", "0.7");
	assert_at(at, "signals.1.ageSeconds", "");
	char sentence[RENDER_SENTENCE_BYTES], quoted[RENDER_SENTENCE_BYTES + 2];
	explain_message(&p.decided, sentence); // there is one explanation
	snprintf(quoted, sizeof quoted, "\"%s\"", sentence);
	assert_at(at, "message", quoted);
	assert_at(at, "signals.1.error", quoted);
	assert_at(at, "conditions.2", "{\"type\":\"ScalingActive\",\"status\":\"False\",\"reason\":\"NoData\"}");
	assert_int_equal(cJSON_GetArraySize(json_get(at, "conditions")), CONDITION_OBJECTIVE_NOT_REACHABLE);
	assert_at(at, "history",
	          "{\"stepSeconds\":15,\"endTime\":\"2026-01-05T09:00:00Z\",\"current\":[null,2],\"desired\":[null,"
	          "1000000],\"signals\":[{\"name\":\"queue\",\"values\":[null,12.3]},{\"name\":\"sm_active\","
	          "\"values\":[null,null]}]}");
	cJSON_Delete(root);
	free((struct sparkline *)(uintptr_t)p.trend);
}

static void target_of_one_replica_comes_with_the_share_of_one(void **state)
{
	(void)state;
	struct policy_signal average[] = {
	        {.name = "sm_active",
	         .query = "s",
	         .watermarks = {.set = true, .high = 0.8, .algorithm = WATERMARK_AVERAGE}},
	        {.name = "queue", .query = "q", .target = {.set = true, .type = TARGET_AVERAGE_VALUE, .value = 8}}};
	struct policy of_one = policy;
	of_one.signals = average;
	struct decision d = sample();
	d.signals[0] = (struct decision_signal){SIGNAL_OK, REASON_INSIDE_WATERMARKS, 4, 3, 0.8, 1000};
	d.n_trace = 2;
	d.entries[0] = (struct trace_entry){.stage = STAGE_SIGNALS, .reason = REASON_REPLICAS_STARTING, .value = 7};
	d.entries[1] = (struct trace_entry){.stage = STAGE_SIGNALS, .reason = REASON_INSIDE_WATERMARKS, .value = 0.75};
	struct overview_policy p = unknown;
	p.decided = (struct decided){.policy = &of_one, .target = &target, .decision = &d};
	struct head h = nothing;
	cJSON *root = overview_of(&h, &p, 1);
	const cJSON *at = cJSON_GetArrayItem(json_get(root, "policies"), 0);
	assert_at(at, "signals.0.value", "3");
	assert_at(at, "signals.0.perReplica", "true");
	assert_at(at, "signals.0.compared", "0.75");
	assert_at(at, "signals.1.perReplica", "true");
	assert_at(at, "signals.1.compared", "null"); // nothing was compared: its data is missing
	cJSON_Delete(root);
}

static void policy_without_a_decision_invents_nothing(void **state)
{
	(void)state;
	struct overview_policy p = unknown;
	struct head h = nothing;
	p.error = "spec.maxReplicas: \"\x01\" is not a number";
	p.facts = (struct status_facts){.phase = STATUS_INVALID, .text = p.error};
	p.has_facts = true;
	cJSON *root = overview_of(&h, &p, 1);
	const cJSON *at = cJSON_GetArrayItem(json_get(root, "policies"), 0);
	static const char *const absent[] = {
	        "target", "minReplicas", "maxReplicas", "time",   "currentReplicas", "desiredReplicas", "action",
	        "reason", "message",     "held",        "paused", "dryRun",          "lastScaleTime",   "history"};
	for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
		assert_at(at, absent[i], "");
	assert_at(at, "error", "\"spec.maxReplicas: \\\"\\u0001\\\" is not a number\"");
	assert_at(at, "signals", "[]");
	assert_at(at, "conditions.0", "{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"InvalidPolicy\"}");
	cJSON_Delete(root);

	p.decided = (struct decided){.policy = &policy, .target = &target}; // it waits
	p.has_facts = false;                                                // for what is not known
	p.dry_run = true;
	root = overview_of(&h, &p, 1);
	at = cJSON_GetArrayItem(json_get(root, "policies"), 0);
	assert_at(at, "minReplicas", "1");
	assert_at(at, "maxReplicas", "16");
	assert_at(at, "dryRun", "true");
	assert_at(at, "currentReplicas", "");
	assert_at(at, "conditions", "[]");
	cJSON_Delete(root);
}

static void detail_has_the_decision_with_its_trace_and_those_before(void **state)
{
	(void)state;
	struct decision d = sample();
	struct policy other = policy;
	struct overview_policy p = unknown;
	struct decision_history *history = decision_history_new();
	struct buf b;
	struct json_writer w;
	other.name = "other";
	p.decided = (struct decided){.policy = &policy, .target = &target, .decision = &d};
	decision_history_add(history, NULL, &p.decided);
	decision_history_add(history, NULL, &(struct decided){.policy = &other, .target = &target, .decision = &d});
	for (int has_decision = 0; has_decision < 2; has_decision++) {
		p.decided.decision = has_decision ? &d : NULL;
		buf_init(&b, ENDPOINT_BYTES_MAX);
		json_write_init(&w, &b, 0);
		overview_write_detail(&w, &p, history);
		cJSON *root = parse(&b);
		assert_at(root, "kind", "\"PolicyDetail\"");
		assert_at(root, "policy.name", "\"llama\"");
		assert_at(root, "decision.trace.0.stage", has_decision ? "\"sources\"" : "");
		assert_at(root, "decisions.0.name", "\"llama\"");
		assert_int_equal(cJSON_GetArraySize(json_get(root, "decisions")), 1);
		if (!has_decision)
			assert_at(root, "decision", "null");
		cJSON_Delete(root);
		buf_done(&b);
	}
	decision_history_free(history);
}

// What is drawn is close to what was, and is a number of JSON.
static void numbers_of_a_sparkline_are_short_and_right(void **state)
{
	(void)state;
	static const struct {
		double value;
		const char *text;
	} rows[] = {
	        {0, "0"},         {1, "1"},          {-1, "-1"},       {0.5, "0.5"},          {10, "10"},
	        {100, "100"},     {1000, "1000"},    {1000000, "1e6"}, {12.34567, "12.3"},    {9.9996, "10"},
	        {99.996, "100"},  {0.099999, "0.1"}, {0.01, "0.01"},   {0.0123456, "0.0123"}, {0.5001, "0.5"},
	        {-7.25, "-7.25"}, {0.001, "0.001"},  {1e-12, "1e-12"}, {9e17, "9e17"},        {123456, "123000"},
	        {-0.04, "-0.04"}, {1.05, "1.05"},    {100.04, "100"},  {1e14, "1e14"},
	};
	static const struct policy_signal one[] = {{.name = "n", .query = "n"}};
	struct policy p1 = policy;
	struct overview_policy p = unknown;
	struct head h = nothing;
	p1.signals = one;
	p1.n_signals = 1;
	p.decided = (struct decided){.policy = &p1, .target = &target};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct sparkline *t = sparkline_new(15000, 3);
		sparkline_add(t, NOW_MS, (const double[]){1, 1, rows[i].value});
		p.trend = t;
		cJSON *root = overview_of(&h, &p, 1);
		const cJSON *at = cJSON_GetArrayItem(json_get(root, "policies"), 0);
		const cJSON *signal = cJSON_GetArrayItem(json_get(json_get(at, "history"), "signals"), 0);
		double got = cJSON_GetNumberValue(cJSON_GetArrayItem(json_get(signal, "values"), 0)), want;
		struct err e;
		assert_int_equal(num_parse_f64(rows[i].text, strlen(rows[i].text), &want, &e), 0);
		if (fabs(got - want) > fabs(want) * 1e-6)
			fail_msg("%g is written as %.17g, not %s", rows[i].value, got, rows[i].text);
		cJSON_Delete(root);
		free(t);
	}
}

#define MANY 1000

static void thousand_policies_are_one_document_of_bounded_size(void **state)
{
	(void)state;
	struct decision d = sample();
	struct overview_policy *list = calloc(MANY, sizeof *list);
	struct head h = nothing;
	struct sparkline *trend = sparkline_new(15000, 4);
	struct buf b;
	struct json_writer w;
	for (int i = 0; i < 1000; i++)
		sparkline_add(trend, NOW_MS + i * (int64_t)15000, (const double[]){i, i + 1, i * 1234.5678, i / 7.0});
	for (size_t i = 0; i < MANY; i++) {
		list[i] = unknown;
		list[i].decided = (struct decided){.policy = &policy, .target = &target, .decision = &d};
		list[i].trend = trend;
	}
	cJSON *root = overview_of(&h, list, MANY);
	assert_int_equal(cJSON_GetArraySize(json_get(root, "policies")), MANY);
	cJSON_Delete(root);
	// A document that does not fit is not written at all, rather than half of it.
	buf_init(&b, 100 * 1024);
	json_write_init(&w, &b, 0);
	overview_begin(&w, &controller, &h.shards, &h.items, h.problems);
	for (size_t i = 0; i < MANY; i++)
		overview_add(&w, &list[i], true);
	overview_end(&w);
	assert_true(b.failed);
	assert_in_range(b.len, 1, 100 * 1024);
	buf_done(&b);
	free(trend);
	free(list);
}

static void page_admits_what_stands_in_it_and_nothing_else(void **state)
{
	(void)state;
	static const struct {
		const char *html, *script, *style;
	} rows[] = {
	        // echo -n 'x()' | openssl sha256 -binary | base64
	        {"<style>a{}</style><script>x()</script>", "'sha256-D6IGS8VMvCoyaR/l0h9tERrBTATY01CoPS7l6xDv0kI='",
	         "'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='"},
	        {"<script src=\"x\"></script><script>x()", "", ""},
	        {"", "", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char want[512];
		struct buf b;
		snprintf(want, sizeof want,
		         "default-src 'none'; script-src%s%s; style-src%s%s; img-src data:; connect-src 'self'; "
		         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		         rows[i].script[0] ? " " : "", rows[i].script, rows[i].style[0] ? " " : "", rows[i].style);
		buf_init(&b, 4096);
		status_page_csp(rows[i].html, strlen(rows[i].html), &b);
		assert_string_equal(buf_str(&b), want);
		buf_done(&b);
	}
}

static void page_is_in_the_program(void **state)
{
	(void)state;
	char etag[STATUS_PAGE_ETAG_BYTES], other[STATUS_PAGE_ETAG_BYTES];
	struct buf file, csp, page;
	struct err e;
	buf_init(&page, STATUS_PAGE_BYTES_MAX);
	assert_int_equal(status_page(&page, &e), 0);
	const char *html = buf_str(&page);
	size_t len = page.len;
	buf_init(&file, STATUS_PAGE_BYTES_MAX);
	buf_init(&csp, 4096);
	assert_int_equal(buf_read_file(&file, "controller/serve/status_page.html", &e), 0);
	assert_int_equal(len, file.len);
	assert_memory_equal(html, file.data, len);
	assert_int_equal(html[len], '\0');
	status_page_csp(html, len, &csp);
	assert_non_null(strstr(buf_str(&csp), "script-src 'sha256-"));
	assert_non_null(strstr(buf_str(&csp), "style-src 'sha256-"));
	// What this policy would keep from working, and from whom.
	static const char *const banned[] = {"http://", "https://", " style=\"", " onclick=", "eval(", "innerHTML"};
	for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++)
		if (strstr(html, banned[i]) && strncmp(strstr(html, banned[i]), "http://www.w3.org/", 18) != 0)
			fail_msg("the page has %.60s", strstr(html, banned[i]));
	status_page_etag(html, len, etag);
	status_page_etag(html, len - 1, other);
	assert_int_equal(strlen(etag), 34);
	assert_string_not_equal(etag, other);
	buf_done(&csp);
	buf_done(&file);
	buf_done(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(head_says_what_is_known),
	        cmocka_unit_test(policy_says_what_was_decided),
	        cmocka_unit_test(target_of_one_replica_comes_with_the_share_of_one),
	        cmocka_unit_test(policy_without_a_decision_invents_nothing),
	        cmocka_unit_test(detail_has_the_decision_with_its_trace_and_those_before),
	        cmocka_unit_test(numbers_of_a_sparkline_are_short_and_right),
	        cmocka_unit_test(thousand_policies_are_one_document_of_bounded_size),
	        cmocka_unit_test(page_admits_what_stands_in_it_and_nothing_else),
	        cmocka_unit_test(page_is_in_the_program),
	};
	return cmocka_run_group_tests(tests, open_sources, close_sources);
}
