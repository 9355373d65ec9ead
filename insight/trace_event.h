// SPDX-License-Identifier: Apache-2.0
// One timed event of a profiler trace, and what the GPU or the host does in it.
#ifndef GPUSCALE_INSIGHT_TRACE_EVENT_H
#define GPUSCALE_INSIGHT_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_NAME_BYTES 256 // longer names are cut

// What the host does, in order of precedence: when several threads are active at one moment, the first of these counts.
enum trace_activity {
	TRACE_COLLECTIVE,   // starts or waits for communication between ranks
	TRACE_DATA_LOADING, // reads or prepares the next batch
	TRACE_COPY,         // moves tensors between host and device, or waits for such a copy
	TRACE_LAUNCH,       // executes operators and launches kernels
	TRACE_UNKNOWN,      // nothing of the above is in the trace
	TRACE_ACTIVITY__COUNT
};
// Returns "data-loading" and so on.
const char *trace_activity_name(enum trace_activity a);

enum trace_place {
	TRACE_ON_GPU,  // a kernel, memcpy or memset
	TRACE_ON_HOST, // an operator, a call of the runtime, a Python function, an annotation
	TRACE_NOWHERE, // the record of the profiler itself, or an annotation that repeats kernels
};

struct trace_event {
	enum trace_place place;
	enum trace_activity activity; // of a GPU event: TRACE_COLLECTIVE or TRACE_UNKNOWN
	int32_t gpu;                  // of a GPU event
	int64_t start_ns, end_ns;     // end_ns >= start_ns
	const char *name;
};

// The texts of an event that show its place: category, name, and the process and thread that it belongs to.
struct trace_labels {
	const char *cat, *name, *pid, *tid; // "" when absent
};
// Returns where the event happened. Categories of the torch profiler (Kineto), in the spelling of all its versions, and
// the "Device N" / "Stream N" rows of converters of Nsight Systems reports.
enum trace_place trace_place_of(const struct trace_labels *l);
// Returns what a host event does, by its name and category.
enum trace_activity trace_activity_of_host(const struct trace_labels *l);
// Returns whether a kernel is a collective of NCCL, RCCL or a similar library.
bool trace_is_collective_kernel(const char *name);

#endif
