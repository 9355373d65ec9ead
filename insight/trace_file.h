// SPDX-License-Identifier: Apache-2.0
// Reads a profiler trace from a file, plain or compressed with gzip, and analyses it (gpu_trace.h).
#ifndef GPUSCALE_INSIGHT_TRACE_FILE_H
#define GPUSCALE_INSIGHT_TRACE_FILE_H

#include <stddef.h>

struct err;
struct gpu_trace;

#define TRACE_FILE_BYTES_MAX ((size_t)1024 * 1024 * 1024) // size of the text, after decompression

struct trace_file_counts {
	size_t bytes;       // size of the text
	size_t n_events;    // with a start and an end
	size_t n_negative;  // left out: they end before they start
	size_t n_unmatched; // left out: "B" without "E", or "E" without "B"
};

// Called from time to time with the bytes of the file that are read, of both passes, and their total.
typedef void trace_file_progress_fn(void *arg, size_t done, size_t total);

// Reads the regular file at `path` twice and fills *t, which the caller has initialized. `progress` may be NULL.
// Returns 0, or -1 and *e, which names the path and, for invalid text, the byte (from 0, of the decompressed text):
// the errors of file_open(), ERR_INPUT, ERR_LIMIT, ERR_IO, ERR_INTERNAL.
int trace_file_analyse(const char *path, struct gpu_trace *t, trace_file_progress_fn *progress, void *arg,
                       struct trace_file_counts *ret_counts, struct err *e);

#endif
