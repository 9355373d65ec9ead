// SPDX-License-Identifier: Apache-2.0
// One timed event of a profiler trace, and what the GPU or the host does in it.
#ifndef GPUSCALE_INSIGHT_TRACE_EVENT_H
#define GPUSCALE_INSIGHT_TRACE_EVENT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define TRACE_NAME_BYTES  16384 // longer names are cut
#define TRACE_CLASSES_MAX 16

// Activities of the host, in order of precedence: when several threads are active at once, the first of these counts.
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
	enum trace_activity activity; // GPU event: TRACE_COLLECTIVE or TRACE_UNKNOWN
	int32_t gpu;                  // GPU event: the device
	const char *process;          // the process that the trace names, "" or NULL: none
	uint64_t thread;              // hash of process and thread
	bool is_frame;                // a Python function
	int64_t start_ns, end_ns;     // end_ns >= start_ns
	const char *name;
};

// The texts of an event that show its place: category, name, and the process and thread that it belongs to.
struct trace_labels {
	const char *cat, *name, *pid, *tid; // "" when absent
};
// Returns where the event happened. Categories of the torch profiler (Kineto) for CUDA, ROCm, XPU, MTIA and HPU, in the
// spelling of all its versions, and the "Device N" / "Stream N" rows of converters of Nsight Systems reports.
enum trace_place trace_place_of(const struct trace_labels *l);
bool trace_is_frame(const struct trace_labels *l); // a Python function: "FILE(LINE): FUNCTION"
// Returns what a host event does: operators and calls by their exact names, Python functions by their module,
// annotations by what they name. The names of files and folders decide nothing.
enum trace_activity trace_activity_of_host(const struct trace_labels *l);
// Returns whether a kernel is a collective: of NCCL, RCCL, NVSHMEM, DeepEP, or an all-reduce of an inference engine.
bool trace_is_collective_kernel(const char *name);
// Properties of the thread of a host event.
bool trace_is_launch(const char *name);     // a call that starts kernels
bool trace_is_pin_thread(const char *name); // the main function of a thread that pins memory
bool trace_is_pin_operator(const char *name);

// Rules of the user, which come before the built-in ones. Zeroed: none.
struct trace_classes {
	size_t n;
	struct trace_class {
		regex_t regex;
		enum trace_activity activity;
	} rows[TRACE_CLASSES_MAX];
};
// Adds 'REGEX=ACTIVITY' (POSIX extended, without anchors). Returns 0, or -1 and *e: ERR_INPUT, ERR_LIMIT.
int trace_classes_add(struct trace_classes *c, const char *text, struct err *e);
void trace_classes_done(struct trace_classes *c);
// Returns the activity of the first rule that matches, else `otherwise`. c may be NULL.
enum trace_activity trace_classes_find(const struct trace_classes *c, const char *name, enum trace_activity otherwise);

#endif
