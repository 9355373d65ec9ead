// SPDX-License-Identifier: Apache-2.0
// Profiler traces: the reader of Chrome's format, and the idle time of GPUs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "insight/gpu_trace.h"
#include "insight/trace_reader.h"

#define US       INT64_C(1000)
#define LIST_MAX 16
#define TEXT_MAX 4096
#define K(ts, dur)                                                                                                     \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"device\":0}}"
#define HOST(cat, name, ts, dur)                                                                                       \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"ts\":" ts ",\"dur\":" dur ",\"pid\":9,\"tid\":1}"

// ---- helpers ----

struct list {
	struct trace_event events[LIST_MAX];
	char names[LIST_MAX][TRACE_NAME_BYTES];
	size_t n;
};

static int add(void *arg, const struct trace_event *event, struct err *e)
{
	struct list *l = arg;
	(void)e;
	assert_true(l->n < LIST_MAX);
	snprintf(l->names[l->n], TRACE_NAME_BYTES, "%s", event->name);
	l->events[l->n++] = *event;
	return 0;
}

static int read_all(const char *text, size_t piece, trace_event_fn *fn, void *arg, struct trace_reader *ret,
                    struct err *e)
{
	size_t size = strlen(text);
	int rc = 0;
	trace_reader_init(ret, fn, arg);
	for (size_t at = 0; at < size && rc == 0; at += piece)
		rc = trace_reader_feed(ret, text + at, size - at < piece ? size - at : piece, e);
	if (rc == 0)
		rc = trace_reader_finish(ret, e);
	trace_reader_done(ret);
	return rc;
}

static struct list read_list(const char *text, size_t piece)
{
	struct trace_reader r;
	struct list l = {.n = 0};
	struct err e;
	if (read_all(text, piece, add, &l, &r, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return l;
}

static void analyse(const char *events, struct gpu_trace *t)
{
	char text[TEXT_MAX];
	struct trace_reader r;
	struct err e = {.kind = ERR_NONE};
	snprintf(text, sizeof text, "{\"traceEvents\":[%s]}", events);
	gpu_trace_init(t, 5);
	if (read_all(text, 64, gpu_trace_first, t, &r, &e) < 0 || gpu_trace_find_gaps(t, &e) < 0 ||
	    read_all(text, 64, gpu_trace_second, t, &r, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	gpu_trace_finish(t);
}

// ---- the reader ----

static void events_are_equal_in_pieces_of_any_size(void **state)
{
	(void)state;
	static const char text[] =
	        "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"traceEvents\":[1]}],\"traceEvents\":["
	        "{\"args\":{\"grid\":[1,2],\"device\":3},\"dur\":2.5,\"ts\":1700000000000000.001,\"name\":\"a\\u00e9\","
	        "\"cat\":\"kernel\",\"ph\":\"X\"},"
	        "{\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"python\"}}," HOST(
	                "cpu_op", "aten::mm", "5", "0.125") "],\"tail\":{\"ph\":\"X\"}}";
	for (size_t piece = 1; piece < sizeof text; piece++) {
		struct list l = read_list(text, piece);
		assert_int_equal(l.n, 2);
		assert_int_equal(l.events[0].place, TRACE_ON_GPU);
		assert_int_equal(l.events[0].gpu, 3);
		assert_true(l.events[0].start_ns == INT64_C(1700000000000000001));
		assert_true(l.events[0].end_ns == INT64_C(1700000000000002501));
		assert_string_equal(l.names[0], "a\xc3\xa9");
		assert_int_equal(l.events[1].place, TRACE_ON_HOST);
		assert_int_equal(l.events[1].activity, TRACE_LAUNCH);
		assert_true(l.events[1].start_ns == 5000 && l.events[1].end_ns == 5125);
	}
}

static void pairs_belong_to_their_thread_and_nest(void **state)
{
	(void)state;
	struct list l =
	        read_list("[{\"ph\":\"B\",\"name\":\"outer\",\"pid\":1,\"tid\":1,\"ts\":1},"
	                  "{\"ph\":\"B\",\"name\":\"other\",\"pid\":1,\"tid\":2,\"ts\":2},"
	                  "{\"ph\":\"B\",\"name\":\"inner\",\"pid\":1,\"tid\":1,\"ts\":3},"
	                  "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":4},{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":6},"
	                  "{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":7}]",
	                  16);
	static const struct {
		const char *name;
		int64_t start_ns, end_ns;
	} want[] = {{"inner", 3 * US, 4 * US}, {"outer", 1 * US, 6 * US}, {"other", 2 * US, 7 * US}};
	assert_int_equal(l.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(l.names[i], want[i].name);
		assert_true(l.events[i].start_ns == want[i].start_ns && l.events[i].end_ns == want[i].end_ns);
	}
}

static void events_without_a_counterpart_are_counted(void **state)
{
	(void)state;
	struct trace_reader r;
	struct list l = {.n = 0};
	struct err e;
	assert_int_equal(read_all("[{\"ph\":\"E\",\"ts\":1},{\"ph\":\"B\",\"ts\":2,\"tid\":1},"
	                          "{\"ph\":\"X\",\"ts\":3,\"dur\":-2}]",
	                          8, add, &l, &r, &e),
	                 0);
	assert_int_equal(r.n_unmatched, 2);
	assert_int_equal(r.n_negative, 1);
	assert_int_equal(l.n, 0);
}

static void places_follow_the_category_in_all_spellings(void **state)
{
	(void)state;
	static const struct {
		struct trace_labels labels;
		enum trace_place want;
	} rows[] = {
	        {{"Kernel", "k", "0", "stream 7"}, TRACE_ON_GPU},
	        {{"kernel", "k", "0", "7"}, TRACE_ON_GPU},
	        {{"gpu_memset", "Memset", "0", "7"}, TRACE_ON_GPU},
	        {{"cuda", "k", "Device 1", "Stream 7"}, TRACE_ON_GPU},
	        {{"nvtx", "step", "Device 1", "NVTX 5"}, TRACE_ON_HOST},
	        {{"cuda_runtime", "cudaMemcpyAsync", "9", "9"}, TRACE_ON_HOST},
	        {{"gpu_user_annotation", "ProfilerStep#1", "0", "7"}, TRACE_NOWHERE},
	        {{"Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler"}, TRACE_NOWHERE},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(trace_place_of(&rows[i].labels), rows[i].want);
}

static void errors_name_the_byte(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} rows[] = {
	        {"[{\"ph\":\"X\",\"ts\":1", "byte 17: "},
	        {"{\"traceEvents\":[}", "byte 16: "},
	        {"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"k\"}]}", "no ts"},
	        {"[{\"ph\":\"X\",\"ts\":\"1x\"}]", "byte 16: expected a number"},
	        {"[{\"ph\":\"X\",\"ts\":{}}]", "expected a number"},
	        {"[{\"ph\":\"X\",\"ts\":1e300}]", "95 years"},
	        {"[1]", "expected an event"},
	        {"[[]]", "expected an event"},
	        {"{\"traceEvents\":1}", "expected an array"},
	        {"{\"events\":[]}", "no traceEvents"},
	        {"12", "expected an object"},
	        {"", "byte 0: "},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t piece = 1; piece < 40; piece += 13) {
			struct trace_reader r;
			struct list l = {.n = 0};
			struct err e;
			if (read_all(rows[i].text, piece, add, &l, &r, &e) == 0 || !strstr(e.msg, rows[i].want))
				fail_msg("%s in pieces of %zu: expected \"%s\", got \"%s\"", rows[i].text, piece,
				         rows[i].want, e.msg);
			assert_int_equal(e.kind, ERR_INPUT);
		}
}

// ---- idle time ----

static void overlapping_streams_count_once(void **state)
{
	(void)state;
	struct gpu_trace t;
	// Out of order: 10..30 from three kernels on two streams, and 50..60. The window is 0..100.
	analyse(K("50", "10") "," K("20", "10") "," K("10", "15") "," K("12", "3") "," HOST("", "main", "0", "100"),
	        &t);
	assert_int_equal(t.n_gpus, 1);
	assert_true(t.gpus[0]->busy_ns == 30 * US);
	assert_true(gpu_trace_window_ns(&t) == 100 * US);
	assert_true(gpu_trace_idle_ratio(&t, t.gpus[0]) == 0.7);
	assert_true(t.gpus[0]->longest_gap_ns == 40 * US);
	assert_int_equal(t.kernels.rows[0].count, 4);
	assert_true(t.kernels.rows[0].total_ns == 38 * US);
	gpu_trace_done(&t);
}

static void gaps_are_split_by_what_the_host_did(void **state)
{
	(void)state;
	struct gpu_trace t;
	// The gap 10..74: data 10..42, copy 42..58 inside of an operator 42..66, nothing until 74.
	analyse(K("0", "10") "," K("74", "10") "," HOST("user_annotation", "enumerate(DataLoader)#x.__next__", "10",
	                                                "32") "," HOST("cpu_op", "aten::linear", "42",
	                                                               "24") "," HOST("cuda_runtime", "cudaMemcpyAsync",
	                                                                              "42", "16"),
	        &t);
	const double *idle = t.gpus[0]->idle_ns;
	assert_true(idle[TRACE_DATA_LOADING] == 32000 && idle[TRACE_COPY] == 16000 && idle[TRACE_LAUNCH] == 8000);
	assert_true(idle[TRACE_COLLECTIVE] == 0 && idle[TRACE_UNKNOWN] == 8000);
	assert_int_equal(t.n_longest, 1);
	assert_int_equal(t.longest[0].activity, TRACE_DATA_LOADING);
	assert_true(t.longest[0].start_ns == 10 * US && t.longest[0].end_ns == 74 * US);
	assert_string_equal(t.longest[0].host, "enumerate(DataLoader)#x.__next__");
	gpu_trace_done(&t);
}

static void innermost_host_operation_is_named(void **state)
{
	(void)state;
	struct gpu_trace t;
	analyse(K("0", "1") "," K("11", "1") "," HOST("user_annotation", "ProfilerStep#3", "0", "12") "," HOST(
	                "cpu_op", "c10d::allreduce_", "2", "8") "," HOST("cpu_op", "aten::add", "10", "1"),
	        &t);
	assert_string_equal(t.longest[0].host, "c10d::allreduce_");
	assert_int_equal(t.longest[0].activity, TRACE_COLLECTIVE);
	gpu_trace_done(&t);
}

static void gpus_are_separate_and_collectives_are_counted_alone(void **state)
{
	(void)state;
	struct gpu_trace t;
	analyse("{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":1,\"tid\":9,\"ts\":5,"
	        "\"dur\":20},"
	        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":1,\"tid\":7,\"ts\":0,\"dur\":10},"
	        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":0,\"dur\":40}",
	        &t);
	assert_int_equal(t.n_gpus, 2);
	assert_int_equal(t.gpus[0]->index, 0);
	assert_true(t.gpus[0]->busy_ns == 40 * US && t.gpus[0]->collective_ns == 0);
	assert_true(t.gpus[1]->busy_ns == 25 * US && t.gpus[1]->collective_ns == 15 * US);
	gpu_trace_done(&t);
}

static void trace_without_a_gpu_is_refused(void **state)
{
	(void)state;
	struct gpu_trace t;
	struct trace_reader r;
	struct err e = {.kind = ERR_NONE};
	gpu_trace_init(&t, 5);
	assert_int_equal(read_all("[" HOST("cpu_op", "aten::mm", "0", "1") "]", 16, gpu_trace_first, &t, &r, &e), 0);
	assert_int_equal(gpu_trace_find_gaps(&t, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	gpu_trace_done(&t);
}

// More gaps than are kept: the shorter ones are unknown, and the sums still add up.
static void many_gaps_stay_within_their_ceiling(void **state)
{
	(void)state;
	struct gpu_trace t;
	struct err e = {.kind = ERR_NONE};
	const int64_t n = 3 * (int64_t)GPU_TRACE_GAPS_MAX / 2;
	gpu_trace_init(&t, 5);
	int64_t at = 0, busy = 0;
	for (int64_t i = 0; i < n; i++) {
		struct trace_event k = {.place = TRACE_ON_GPU,
		                        .activity = TRACE_UNKNOWN,
		                        .start_ns = at,
		                        .end_ns = at + 10,
		                        .name = "k"};
		assert_int_equal(gpu_trace_first(&t, &k, &e), 0);
		at += 10 + (i % 4 == 0 ? 100 : 3);
		busy += 10;
	}
	assert_int_equal(gpu_trace_find_gaps(&t, &e), 0);
	assert_true(t.n_gaps <= GPU_TRACE_GAPS_MAX && t.n_gaps > GPU_TRACE_GAPS_MAX / 4);
	assert_true(t.unattributed_below_ns > 3 && t.unattributed_below_ns <= 100);
	gpu_trace_finish(&t);
	assert_true(t.gpus[0]->busy_ns == busy);
	assert_true(t.gpus[0]->idle_ns[TRACE_UNKNOWN] == (double)(gpu_trace_window_ns(&t) - busy));
	gpu_trace_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(events_are_equal_in_pieces_of_any_size),
	        cmocka_unit_test(pairs_belong_to_their_thread_and_nest),
	        cmocka_unit_test(events_without_a_counterpart_are_counted),
	        cmocka_unit_test(places_follow_the_category_in_all_spellings),
	        cmocka_unit_test(errors_name_the_byte),
	        cmocka_unit_test(overlapping_streams_count_once),
	        cmocka_unit_test(gaps_are_split_by_what_the_host_did),
	        cmocka_unit_test(innermost_host_operation_is_named),
	        cmocka_unit_test(gpus_are_separate_and_collectives_are_counted_alone),
	        cmocka_unit_test(trace_without_a_gpu_is_refused),
	        cmocka_unit_test(many_gaps_stay_within_their_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
