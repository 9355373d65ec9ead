// SPDX-License-Identifier: Apache-2.0
// The analysis of a profiler trace: the share of the time in which nothing ran (the complement of the union of
// kernels, memcpys and memsets, so that overlapping streams count once), what the host did in the gaps, and the kernels
// that took the most time. The events of the trace are given twice: the first pass finds the gaps, the second one what
// the host did in them. Memory is bounded: GPU_TRACE_SPANS_MAX spans per GPU and GPU_TRACE_GAPS_MAX gaps.
#ifndef GPUSCALE_INSIGHT_GPU_TRACE_H
#define GPUSCALE_INSIGHT_GPU_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash_table.h"
#include "insight/trace_reader.h"

struct err;

#define GPU_TRACE_GPUS_MAX    64
#define GPU_TRACE_SPANS_MAX   ((size_t)4 * 1024 * 1024) // spans of a GPU that do not overlap; 64 MiB
#define GPU_TRACE_GAPS_MAX    2097152                   // of all GPUs, 112 MiB; shorter ones are TRACE_UNKNOWN
#define GPU_TRACE_LONG_MAX    100                       // gaps that are reported one by one
#define GPU_TRACE_KERNELS_MAX 16384                     // names; further ones are treated as "(other)"
#define GPU_TRACE_BINS        240                       // bins of the timeline
#define GPU_TRACE_THREADS     1024                      // threads of hosts; further ones are treated as main threads
#define GPU_TRACE_TEXT        256                       // longer names are cut

// A union of time spans: spans that overlap or touch count once. Zeroed: empty.
struct span_set {
	struct span {
		int64_t start_ns, end_ns;
	} * spans;
	size_t n, cap;
};

struct kernel_time {
	const char *name;
	int64_t total_ns, max_ns; // kernels that run at the same time on several streams all count
	size_t count;
	UT_hash_handle hh; // private: by name
};

struct trace_gpu {
	int32_t index; // as the trace numbers it, in its process
	char process[GPU_TRACE_TEXT];
	bool is_shared_index; // GPUs of other processes have the same index
	size_t n_events;
	int64_t busy_ns;                       // union of all kernels, memcpys and memsets
	int64_t collective_ns;                 // part of busy_ns in which only collectives ran
	double idle_ns[TRACE_ACTIVITY__COUNT]; // by what the host did; they add up to the idle time
	int64_t longest_gap_ns;
	double busy_ratio[GPU_TRACE_BINS];
	double idle_ratio[TRACE_UNKNOWN][GPU_TRACE_BINS]; // by activity; the rest is TRACE_UNKNOWN
	struct span_set spans, collectives;               // private
};

struct trace_gap {
	const struct trace_gpu *gpu;
	int64_t start_ns, end_ns;     // since the start of the window
	enum trace_activity activity; // the activity of the host for most of it
	char host[GPU_TRACE_TEXT];    // the innermost host operation that covers at least half of it, else the one that
	                              // overlaps most; "" when there is none
	int64_t overlap_ns, host_ns;  // private: of that operation
};

struct gpu_gap;

struct gpu_trace {
	int64_t start_ns, end_ns;                   // the window: from the first to the last event of a host or a GPU
	struct trace_gpu *gpus[GPU_TRACE_GPUS_MAX]; // by index
	size_t n_gpus;
	struct kernel_table {
		struct kernel_time *rows; // most total time first
		size_t n;
		// Private.
		struct kernel_time *by_name; // hash table, until the trace is finished
		struct arena names;
	} kernels;
	struct trace_gap longest[GPU_TRACE_LONG_MAX]; // longest first
	size_t n_longest;
	int64_t unattributed_below_ns;       // shorter gaps were not compared with the host; 0: all were
	const struct trace_classes *classes; // rules of the user; set by the caller, NULL: none
	size_t n_zero;                       // events left out: isolated at time 0, long before all others
	char other_device[GPU_TRACE_TEXT];   // category of device activity that is not read; set by the caller
	// Private.
	size_t n_events, n_gaps, n_wanted;
	struct gpu_gap *gaps; // by GPU, then by time
	size_t first_gap[GPU_TRACE_GPUS_MAX + 1];
	int64_t zero_end_ns; // end of the events that start at 0
	struct trace_thread {
		uint64_t key; // 0: free
		bool works, launches, pins, is_pin_thread;
	} threads[GPU_TRACE_THREADS];
	size_t n_threads;
	bool has_work, has_launches;
};

// Initializes *t; `n_longest` (at most GPU_TRACE_LONG_MAX) gaps are reported one by one.
void gpu_trace_init(struct gpu_trace *t, size_t n_longest);
void gpu_trace_done(struct gpu_trace *t);
// The first pass; a trace_event_fn with struct gpu_trace as its argument. Returns -1 and *e: ERR_LIMIT, ERR_INTERNAL.
int gpu_trace_first(void *arg, const struct trace_event *event, struct err *e);
// Ends the first pass. Returns -1 and *e: ERR_INPUT when the trace has no event of a GPU, ERR_LIMIT, ERR_INTERNAL.
int gpu_trace_find_gaps(struct gpu_trace *t, struct err *e);
// The second pass, with the same events.
int gpu_trace_second(void *arg, const struct trace_event *event, struct err *e);
// Ends the second pass: fills idle_ns, longest and kernels.
void gpu_trace_finish(struct gpu_trace *t);

// Returns the length of the window, and the share of it in which the GPU was idle (0-1).
int64_t gpu_trace_window_ns(const struct gpu_trace *t);
double gpu_trace_idle_ratio(const struct gpu_trace *t, const struct trace_gpu *g);
// Writes the name of a GPU: "0", or "PROCESS/0" where GPUs of several processes have this number. Returns out.
const char *gpu_trace_name(const struct trace_gpu *g, char out[GPU_TRACE_TEXT]);

#endif
