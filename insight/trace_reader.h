// SPDX-License-Identifier: Apache-2.0
// Reads a trace in Chrome's Trace Event Format as a stream of bytes: `{"traceEvents": [...]}` or a bare array, complete
// events ("X") and pairs ("B", "E"), in any order between threads. Times are decimal microseconds; they are read to the
// nanosecond, which a double could not represent. Memory does not depend on the length of the trace.
// Format: "Trace Event Format", Google; categories: libkineto, output_json.cpp.
#ifndef GPUSCALE_INSIGHT_TRACE_READER_H
#define GPUSCALE_INSIGHT_TRACE_READER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/json_scan.h"

struct err;

// ---- events ----

// One timed event of a profiler trace, and what the GPU or the host does in it.
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
extern const char *const trace_activity_names[TRACE_ACTIVITY__COUNT]; // "data-loading"

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

// ---- the reader ----

#define TRACE_OPEN_MAX    4096                      // "B" events that wait for their "E"
#define TRACE_TEXT_BYTES  64                        // category, process, thread; longer ones are cut
#define TRACE_TIME_MAX_US INT64_C(3000000000000000) // in both directions: 95 years

#define TRACE_ROWS_MAX 256

// Called for every event with a start and an end; `event` and its name are valid during the call. Return 0, or -1 and
// *e to stop.
typedef int trace_event_fn(void *arg, const struct trace_event *event, struct err *e);

struct trace_open;

struct trace_reader {
	trace_event_fn *fn;
	void *arg;
	size_t n_events;                     // with a start and an end, passed to fn
	size_t n_negative;                   // left out: they end before they start
	size_t n_unmatched;                  // left out: "B" without "E", or "E" without "B"
	const struct trace_classes *classes; // classes of the user; may be NULL
	char other_device[TRACE_TEXT_BYTES]; // a category of device activity that is not read; "": none
	// Private to the reader.
	struct json_scan scan;
	size_t event_depth; // level of the members of an event; 0: not yet known
	bool in_events;     // inside of traceEvents
	bool in_args;       // inside of the args of an event
	bool has_events;
	int member; // enum member of trace_reader.c
	struct trace_members {
		char phase;
		char cat[TRACE_TEXT_BYTES], pid[TRACE_TEXT_BYTES], tid[TRACE_TEXT_BYTES], name[TRACE_NAME_BYTES];
		char label[TRACE_TEXT_BYTES]; // metadata: args.name
		bool has_ts, has_dur, has_device;
		int64_t ts_ns, dur_ns, device;
	} event;
	struct trace_open *open; // TRACE_OPEN_MAX entries; NULL: none yet
	size_t n_open;
	struct trace_row {
		uint64_t key;   // hash of a process, or of a process and a stream
		int32_t gpu;    // GPU of a process
	} rows[TRACE_ROWS_MAX]; // rows of GPUs, which TensorFlow and JAX name in metadata
	size_t n_rows;
};

// Initializes the reader. Allocates nothing.
void trace_reader_init(struct trace_reader *r, trace_event_fn *fn, void *arg);
void trace_reader_done(struct trace_reader *r);
// Reads the next `len` bytes of the text. Returns 0, or -1 and *e: ERR_INPUT with "byte N: " (N from 0) for text that
// is not a trace, ERR_LIMIT, ERR_INTERNAL, or the error of fn.
int trace_reader_feed(struct trace_reader *r, const char *data, size_t len, struct err *e);
// Ends the text. Returns -1 and *e as trace_reader_feed when it ends early or has no events.
int trace_reader_finish(struct trace_reader *r, struct err *e);

#endif
