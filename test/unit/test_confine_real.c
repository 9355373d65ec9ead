// SPDX-License-Identifier: Apache-2.0
// Goal: a confined query gives the same result on a Prometheus with the series of all namespaces as the query itself on
// one with only the namespace's series. The test uses two real servers and queries from a grammar, unchanged and
// randomly damaged. For each query:
//   both servers answer the confined query alike: no series of another namespace has any influence;
//   and where the second server answers the query itself, the answers are equal.
// CONFINE_QUERIES and CONFINE_SEED set their number and the random seed. Skipped where prometheus is not installed.
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
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
#include "base/http/http_client.h"
#include "base/num.h"
#include "promql/confine.h"
#include "promql/freshness.h"
#include "promql/promql.h"
#include "test/support/loop.h"
#include "test/support/prometheus.h"
#include "test/support/promql_short.h"

#define QUERIES     400
#define QUERY_BYTES 2048
#define DEPTH       4
#define T0_S        INT64_C(1735689600) // 2025-01-01T00:00:00Z
#define STEP_S      15
#define STEPS       80
#define AT_MS       ((T0_S + INT64_C(60) * STEP_S) * 1000)
#define LABEL       "namespace"

// ---- the servers ----

static struct prometheus *servers[2]; // with the series of all namespaces; with those of "a" only
static struct promql *clients[2];
static struct event_base *loop;
static struct http_client *http;

static void add_series(struct buf *out, const char *metric, const char *labels, int first, int slope)
{
	for (int i = 0; i < STEPS; i++)
		buf_printf(out, "%s{%s} %d %" PRId64 "\n", metric, labels, first + slope * i,
		           T0_S + (int64_t)i * STEP_S);
}

static void add_history(struct buf *out, bool of_all)
{
	static const char *const metrics[] = {"load", "used", "job:load:sum"};
	for (int m = 0; m < 3; m++) {
		buf_printf(out, "# TYPE %s gauge\n", metrics[m]);
		for (int pod = 0; pod < 3; pod++) {
			char labels[128];
			snprintf(labels, sizeof labels, LABEL "=\"a\",pod=\"p%d\",x=\"}{\"", pod);
			add_series(out, metrics[m], labels, 10 * m + pod, pod + 1);
			if (!of_all)
				continue;
			snprintf(labels, sizeof labels, LABEL "=\"b\",pod=\"p%d\",x=\"}{\"", pod);
			add_series(out, metrics[m], labels, 1000 * m + 100 + pod, 7);
			snprintf(labels, sizeof labels, "pod=\"p%d\"", pod);
			add_series(out, metrics[m], labels, 5000, 3);
		}
	}
	if (of_all) {
		buf_puts(out, "# TYPE secret gauge\n");
		add_series(out, "secret", LABEL "=\"b\"", 31337, 1);
	}
	buf_puts(out, "# EOF\n");
}

static int start(void **state)
{
	(void)state;
	struct err e = {0};
	signal(SIGPIPE, SIG_IGN);
	loop = event_base_new();
	http = http_client_new(&(struct http_client_options){.loop = loop, .max_in_flight = 8}, &e);
	for (int i = 0; i < 2; i++) {
		struct buf history;
		buf_init(&history, 1024 * 1024);
		add_history(&history, i == 0);
		servers[i] = prometheus_start(&(struct prometheus_options){.openmetrics = buf_str(&history)}, &e);
		buf_done(&history);
		if (!servers[i] || !http) {
			print_error("%s\n", e.msg);
			return -1;
		}
		clients[i] = promql_new(&(struct promql_options){.http = http,
		                                                 .url = prometheus_url(servers[i]),
		                                                 .kind = PROMQL_KIND_PROMETHEUS,
		                                                 .timeout_ms = TEST_PATIENCE_MS},
		                        &e);
		assert_non_null(clients[i]);
	}
	return 0;
}

static int stop(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		promql_free(clients[i]);
		prometheus_stop(servers[i]);
	}
	http_client_free(http);
	event_base_free(loop);
	return 0;
}

// ---- answers as text ----

struct answer {
	bool is_error;
	char *text; // sorted lines, or the error
	int *n_done;
};

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *show_series(const struct promql_series *s)
{
	struct buf b;
	buf_init(&b, 1024 * 1024);
	for (size_t i = 0; i < s->n_labels; i++)
		buf_printf(&b, "%s=%s,", s->labels[i].name, s->labels[i].value);
	for (size_t i = 0; i < s->n_samples; i++)
		buf_printf(&b, " %.9g@%" PRId64, s->samples[i].value, s->samples[i].time_ms);
	char *text = strdup(buf_str(&b));
	buf_done(&b);
	return text;
}

static void on_done(void *arg, const struct promql_result *r, const struct err *error)
{
	struct answer *a = arg;
	struct buf b;
	++*a->n_done;
	a->is_error = r == NULL;
	if (!r) {
		a->text = strdup(error ? error->msg : "");
		return;
	}
	char **lines = calloc(r->n_series + 1, sizeof *lines);
	buf_init(&b, 8 * 1024 * 1024);
	buf_printf(&b, "%s %s\n", promql_type_names[r->type], r->string ? r->string : "");
	for (size_t i = 0; i < r->n_series; i++)
		lines[i] = show_series(&r->series[i]);
	qsort(lines, r->n_series, sizeof *lines, compare_lines);
	for (size_t i = 0; i < r->n_series; i++) {
		buf_printf(&b, "%s\n", lines[i]);
		free(lines[i]);
	}
	free(lines);
	a->text = strdup(buf_str(&b));
	buf_done(&b);
}

// ---- queries ----

static uint64_t seed;

static uint32_t up_to(uint32_t n) // 0 .. n - 1
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % n;
}

#define PICK(array) (array)[up_to(sizeof(array) / sizeof(array)[0])]

static void put_gap(struct buf *q)
{
	static const char *const gaps[] = {
	        "", "", "", " ", "\n", "\t ", (" # {" LABEL "=\"b\"} (\n"), " # or secret\r"};
	buf_puts(q, PICK(gaps));
}

static void put_selector(struct buf *q)
{
	static const char *const names[] = {"load", "used", "job:load:sum", "secret", "nothing"};
	static const char *const matchers[] = {"pod=\"p1\"", "pod!='p0'",      "pod=~`p[01]`",
	                                       "x=\"}{\"",   "x!~\"\\\"{.*\"", "pod=~\".+\",x!=\"y\"",
	                                       "z=\"\""};
	static const char *const alone[] = {"{__name__=\"load\"}", "{__name__=~\"lo.*|secret\"}", "{pod=~\".+\"}",
	                                    "{__name__!=\"used\",pod=\"p2\"}", "{x=\"}{\",}"};
	static const char *const kinds[] = {"bare", "empty", "one", "comma", "two", "alone"};
	const char *kind = PICK(kinds);
	if (strcmp(kind, "alone") == 0) {
		buf_puts(q, PICK(alone));
		return;
	}
	buf_puts(q, PICK(names));
	if (strcmp(kind, "bare") == 0)
		return;
	put_gap(q);
	buf_puts(q, "{");
	put_gap(q);
	if (strcmp(kind, "empty") != 0)
		buf_puts(q, PICK(matchers));
	if (strcmp(kind, "two") == 0)
		buf_printf(q, " , %s", PICK(matchers));
	if (strcmp(kind, "comma") == 0)
		buf_puts(q, ",");
	put_gap(q);
	buf_puts(q, "}");
}

static void put_modifiers(struct buf *q)
{
	static const char *const rows[] = {
	        "", "", "", " offset 1m", " offset -1m", " OFFSET 30s", " @ end()", " @ 1735689900 offset 15s"};
	buf_puts(q, PICK(rows));
}

static void put_grouping(struct buf *q, const char *const *rows, size_t n)
{
	buf_puts(q, " ");
	put_gap(q);
	buf_puts(q, rows[up_to((uint32_t)n)]);
	put_gap(q);
}

static void put_vector(struct buf *q, int depth);

static void put_aggregation(struct buf *q, int depth)
{
	static const char *const names[] = {"sum",
	                                    "avg",
	                                    "max",
	                                    "MIN",
	                                    "count",
	                                    "group",
	                                    "stddev",
	                                    "topk(2,",
	                                    "bottomk(1,",
	                                    "quantile(0.5,",
	                                    "count_values(\"v\","};
	static const char *const groups[] = {"by (pod)", "by(" LABEL ")", "without (x, " LABEL ",)", "by ()",
	                                     "by (pod, by, on)"};
	const char *name = PICK(names);
	bool has_argument = strchr(name, '(') != NULL;
	bool in_front = !has_argument && up_to(2);
	buf_puts(q, name);
	if (in_front)
		put_grouping(q, groups, sizeof groups / sizeof groups[0]);
	if (!has_argument)
		buf_puts(q, "(");
	put_gap(q);
	if (strncmp(name, "topk", 4) == 0 || strncmp(name, "bottomk", 7) == 0)
		put_selector(q); // values differ, because of equal ones a server may return any
	else
		put_vector(q, depth - 1);
	buf_puts(q, ")");
	if (!in_front && up_to(2))
		put_grouping(q, groups, sizeof groups / sizeof groups[0]);
}

static void put_range_function(struct buf *q, int depth)
{
	static const char *const names[] = {"rate",          "increase",       "delta",          "max_over_time",
	                                    "avg_over_time", "last_over_time", "count_over_time"};
	static const char *const ranges[] = {"[5m]", "[1m30s]", "[ 2m ]"}, *const steps[] = {"[5m:1m]", "[2m:]",
	                                                                                     "[3m : 30s]"};
	buf_printf(q, "%s(", PICK(names));
	if (up_to(2)) {
		put_selector(q);
		buf_puts(q, PICK(ranges));
	} else {
		buf_puts(q, "(");
		put_vector(q, depth - 1);
		buf_printf(q, ")%s", PICK(steps));
	}
	put_modifiers(q);
	buf_puts(q, ")");
}

static void put_binary(struct buf *q, int depth)
{
	static const char *const operators[] = {"+",       "-",     "*",    "/ ",       "%",      "^",
	                                        "==",      "!=",    ">",    "<",        ">=",     "<= bool ",
	                                        "> BOOL ", " and ", " or ", " unless ", " atan2 "};
	static const char *const matchings[] = {"",
	                                        "",
	                                        " on(pod)",
	                                        (" on (pod, " LABEL ")"),
	                                        " ignoring(x)",
	                                        " on(pod) group_left()",
	                                        " on(pod) group_left(x, q)",
	                                        " ignoring (x) group_right ()"};
	static const char *const scalars[] = {"2", "0x10", "1e-2", "Inf", ".5", "-3", "time()", "scalar(load)"};
	put_vector(q, depth - 1);
	put_gap(q);
	buf_puts(q, PICK(operators));
	if (up_to(3) == 0) {
		buf_printf(q, " %s", PICK(scalars));
		return;
	}
	buf_puts(q, PICK(matchings));
	put_gap(q);
	buf_puts(q, "(");
	put_vector(q, depth - 1);
	buf_puts(q, ")");
}

static void put_wrapped(struct buf *q, int depth)
{
	static const struct {
		const char *before, *behind;
	} rows[] = {
	        {"(", ")"},
	        {"-", ""},
	        {"abs(", ")"},
	        {"timestamp(", ")"},
	        {"max(absent(", "))"},
	        {"label_replace(", ", \"pod\", \"q$1\", 'pod', \"p(.*)\")"},
	        {"label_replace(", ", \"" LABEL "\", \"b\", \"\", \"\")"},
	        {"label_join(", ", \"d\", \"{\", \"pod\", `x`)"},
	        {"clamp_max(", ", 50)"},
	        {"sort_desc(", ")"},
	        {"vector(scalar(", "))"},
	        {"histogram_quantile(0.9, ", ")"},
	        {"(", ") or vector(1)"},
	};
	size_t i = up_to(sizeof rows / sizeof rows[0]);
	buf_puts(q, rows[i].before);
	put_vector(q, depth - 1);
	buf_puts(q, rows[i].behind);
}

static void put_vector(struct buf *q, int depth)
{
	switch (depth > 0 ? up_to(5) : 0) {
	case 0:
		put_selector(q);
		put_modifiers(q);
		break;
	case 1:
		put_aggregation(q, depth);
		break;
	case 2:
		put_range_function(q, depth);
		break;
	case 3:
		put_binary(q, depth);
		break;
	default:
		put_wrapped(q, depth);
		break;
	}
}

// Removes, doubles or replaces a few characters by ones with a meaning in PromQL.
static void damage(char *query)
{
	static const char letters[] = "{}()[]\"'`,=~!#\r\n\\ @:5aore+-";
	for (uint32_t n = 1 + up_to(3); n > 0 && query[0]; n--) {
		size_t len = strlen(query), at = up_to((uint32_t)len);
		if (up_to(2))
			memmove(query + at, query + at + 1, len - at);
		else
			query[at] = letters[up_to(sizeof letters - 1)];
	}
}

// ---- the laws ----

struct trial {
	char query[QUERY_BYTES], confined[8 * QUERY_BYTES];
	bool is_confined, is_damaged, has_age;
	struct answer of_all, of_one, original; // confined on both; as written on the second
	struct answer age_of_all, age_of_one;   // confined, with the age of the data, on both
};

static void ask(struct promql *p, const char *query, struct answer *a, int *n_asked, int *n_done)
{
	struct err e = {0};
	a->n_done = n_done;
	++*n_asked;
	if (promql_query(p, query, AT_MS, on_done, a, &e) < 0)
		on_done(a, NULL, &e);
}

static void begin(struct trial *t, const char *query, int *n_asked, int *n_done)
{
	struct buf confined, wrapped;
	struct err e = {0};
	snprintf(t->query, sizeof t->query, "%s", query);
	buf_init(&confined, sizeof t->confined - 1);
	buf_init(&wrapped, 64 * 1024);
	t->is_confined = confine_query(&confined, t->query, LABEL, "a", NULL, &e) == 0;
	if (t->is_confined) {
		snprintf(t->confined, sizeof t->confined, "%s", buf_str(&confined));
		ask(clients[0], t->confined, &t->of_all, n_asked, n_done);
		ask(clients[1], t->confined, &t->of_one, n_asked, n_done);
		ask(clients[1], t->query, &t->original, n_asked, n_done);
		t->has_age = freshness_wrap(&wrapped, t->confined) && !wrapped.failed;
	}
	if (t->has_age) {
		ask(clients[0], buf_str(&wrapped), &t->age_of_all, n_asked, n_done);
		ask(clients[1], buf_str(&wrapped), &t->age_of_one, n_asked, n_done);
	}
	if (!t->is_confined && !t->is_damaged)
		fail_msg("refused: %s\n%s", e.msg, t->query);
	buf_done(&confined);
	buf_done(&wrapped);
}

static bool is_same(const struct answer *a, const struct answer *b)
{
	return a->is_error == b->is_error && (a->is_error || strcmp(a->text, b->text) == 0);
}

static void trial_done(struct trial *t)
{
	struct answer *const answers[] = {&t->of_all, &t->of_one, &t->original, &t->age_of_all, &t->age_of_one};
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
		free(answers[i]->text);
}

static void classify(const struct trial *t, uint64_t trial_seed)
{
	if (!t->is_confined)
		return;
	if (t->has_age && !is_same(&t->age_of_all, &t->age_of_one))
		fail_msg("another namespace shows in the age (CONFINE_SEED=%" PRIu64
		         "):\n%s\n%s\nwith all: %s\nalone: %s",
		         trial_seed, t->query, t->confined, t->age_of_all.text, t->age_of_one.text);
	if (!is_same(&t->of_all, &t->of_one))
		fail_msg("another namespace shows (CONFINE_SEED=%" PRIu64 "):\n%s\n%s\nwith all: %s\nalone: %s",
		         trial_seed, t->query, t->confined, t->of_all.text, t->of_one.text);
	if ((!t->original.is_error || !t->is_damaged) && !is_same(&t->of_one, &t->original))
		fail_msg("confining changed the result (CONFINE_SEED=%" PRIu64
		         "):\n%s\n%s\nconfined: %s\nas written: %s",
		         trial_seed, t->query, t->confined, t->of_one.text, t->original.text);
}

static int64_t number_of(const char *variable, int64_t otherwise)
{
	const char *text = getenv(variable);
	int64_t n = otherwise;
	if (text && num_parse_i64(text, strlen(text), 1, INT64_MAX, &n, NULL) < 0)
		fail_msg("%s is not a number: %s", variable, text);
	return n;
}

// Runs 50 trials at a time, because waiting for each answer in turn would be slow.
static void confined_query_depends_on_its_namespace_alone(void **state)
{
	enum { BATCH = 50 };
	static struct trial trials[BATCH];
	uint64_t seeds[BATCH];
	int64_t n = number_of("CONFINE_QUERIES", QUERIES), n_confined = 0, n_answered = 0, n_with_data = 0;
	seed = (uint64_t)number_of("CONFINE_SEED", 88172645463325252);
	(void)state;
	for (int64_t done = 0; done < n; done += BATCH) {
		int n_asked = 0, n_done = 0;
		memset(trials, 0, sizeof trials);
		for (size_t i = 0; i < BATCH; i++) {
			struct buf q;
			char text[QUERY_BYTES];
			seeds[i] = seed;
			buf_init(&q, QUERY_BYTES - 1);
			put_vector(&q, DEPTH);
			snprintf(text, sizeof text, "%s", buf_str(&q));
			if (q.failed)
				snprintf(text, sizeof text, "load");
			buf_done(&q);
			trials[i].is_damaged = up_to(2);
			if (trials[i].is_damaged)
				damage(text);
			begin(&trials[i], text, &n_asked, &n_done);
		}
		assert_true(test_loop_until(loop, &n_done, n_asked, TEST_PATIENCE_MS));
		for (size_t i = 0; i < BATCH; i++) {
			n_confined += trials[i].is_confined;
			n_answered += trials[i].is_confined && !trials[i].of_all.is_error;
			n_with_data += trials[i].is_confined && !trials[i].of_all.is_error &&
			               strchr(trials[i].of_all.text, '@');
			classify(&trials[i], seeds[i]);
			trial_done(&trials[i]);
		}
	}
	print_message("%" PRId64 " queries, %" PRId64 " confined, %" PRId64 " answered, %" PRId64 " with data\n", n,
	              n_confined, n_answered, n_with_data);
	assert_true(n_with_data > n / 8); // else the test proves nothing
}

// Queries that the grammar above does not generate.
static void known_attacks_show_nothing(void **state)
{
	static const char *const queries[] = {
	        "load # \r or secret",
	        "load # \n or secret",
	        "load or ({__name__=\"secret\"})",
	        "load{} or {__name__=~\".*cret\"} # }",
	        "label_replace(load, \"a\", \"} or secret{\", \"\", \"\") or secret",
	        "label_replace(secret, \"" LABEL "\", \"a\", \"\", \"\")",
	        "sum by (" LABEL ") (secret) or secret",
	        "count({__name__!=\"\"})",
	        "secret offset 1m or secret @ 1735689900 or max_over_time(secret[5m:1m])",
	        "load * on() group_left() secret",
	        "load and on() secret",
	        "absent(secret)",
	        "count_values(\"" LABEL "\", secret)",
	        "secret{" LABEL "=\"a\"}",
	        "vector(scalar(secret))",
	        "{}",
	};
	static struct trial trials[sizeof queries / sizeof queries[0]];
	int n_asked = 0, n_done = 0;
	(void)state;
	for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
		trials[i].is_damaged = true; // a refusal is acceptable, too
		begin(&trials[i], queries[i], &n_asked, &n_done);
	}
	assert_true(test_loop_until(loop, &n_done, n_asked, TEST_PATIENCE_MS));
	for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
		struct trial *t = &trials[i];
		if (!t->is_confined)
			continue;
		if (!is_same(&t->of_all, &t->of_one) || strstr(t->of_all.text, "31337") ||
		    strstr(t->of_all.text, "=b,"))
			fail_msg("%s: %s", t->confined, t->of_all.text);
		trial_done(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(confined_query_depends_on_its_namespace_alone),
	        cmocka_unit_test(known_attacks_show_nothing),
	};
	if (!prometheus_is_installed()) {
		print_message("1..0 # SKIP prometheus and promtool are not installed\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
