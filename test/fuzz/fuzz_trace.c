// SPDX-License-Identifier: Apache-2.0
// Profiler traces for `gpuscale trace`: any bytes are refused with an error or give shares that add up, and the result
// does not depend on the pieces in which the text arrives.
#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "base/err.h"
#include "insight/gpu_trace.h"
#include "insight/trace_reader.h"

#define SMALL_PIECE 7

static int read_in_pieces(const char *text, size_t size, size_t piece, trace_event_fn *fn, struct gpu_trace *t,
                          size_t *ret_events, struct err *e)
{
	struct trace_reader r;
	int rc = 0;
	trace_reader_init(&r, fn, t);
	for (size_t at = 0; at < size && rc == 0; at += piece)
		rc = trace_reader_feed(&r, text + at, size - at < piece ? size - at : piece, e);
	if (rc == 0)
		rc = trace_reader_finish(&r, e);
	*ret_events = r.n_events;
	trace_reader_done(&r);
	return rc;
}

static void check_gpu(const struct gpu_trace *t, const struct trace_gpu *g)
{
	double idle_ns = 0, window_ns = (double)gpu_trace_window_ns(t), ratio = gpu_trace_idle_ratio(t, g);
	for (int a = 0; a < TRACE_ACTIVITY__COUNT; a++) {
		assert(g->idle_ns[a] >= 0);
		idle_ns += g->idle_ns[a];
	}
	assert(g->busy_ns >= 0 && g->collective_ns >= 0 && g->collective_ns <= g->busy_ns);
	assert(fabs(idle_ns + (double)g->busy_ns - window_ns) <= 1e-6 * window_ns + 1);
	assert(ratio >= 0 && ratio <= 1);
	for (int k = 0; k < GPU_TRACE_BINS; k++)
		assert(g->busy_ratio[k] >= 0 && g->busy_ratio[k] <= 1 + 1e-6);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct gpu_trace t, again;
	struct err e = {.kind = ERR_NONE}, other = {.kind = ERR_NONE};
	size_t n, n_again;
	gpu_trace_init(&t, 5);
	gpu_trace_init(&again, 5);
	int rc = read_in_pieces(text, size, size + 1, gpu_trace_first, &t, &n, &e);
	int rc_again = read_in_pieces(text, size, SMALL_PIECE, gpu_trace_first, &again, &n_again, &other);
	assert(rc == rc_again && n == n_again && e.kind == other.kind);
	if (rc == 0 && gpu_trace_find_gaps(&t, &e) == 0) {
		int second = read_in_pieces(text, size, size + 1, gpu_trace_second, &t, &n, &e);
		assert(second == 0);
		gpu_trace_finish(&t);
		for (size_t i = 0; i < t.n_gpus; i++)
			check_gpu(&t, t.gpus[i]);
	} else {
		assert(e.kind != ERR_NONE);
	}
	gpu_trace_done(&t);
	gpu_trace_done(&again);
	return 0;
}
