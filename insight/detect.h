// SPDX-License-Identifier: Apache-2.0
// Stragglers and leaks of several jobs, from their values in the order of time: chooses what ranks are compared by, and
// writes what is found as JSON lines.
//   {"time":1831,"job":"","event":"Straggler","rank":"6","input":"step","ratio":1.9,"since":1811}
//   {"time":9000,"job":"","event":"Leak","rank":"3","input":"memory","bytesPerHour":2.7e8,"hoursToLimit":6.1}
#ifndef GPUSCALE_INSIGHT_DETECT_H
#define GPUSCALE_INSIGHT_DETECT_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define DETECT_JOBS_MAX   1024
#define DETECT_NAME_BYTES 320            // name of a job or rank, with its terminator
#define DETECT_SERIES_MAX 65536          // memory, of all jobs
#define DETECT_TIME_MAX_S 253402300799.0 // 9999-12-31T23:59:59Z

// The inputs that ranks are compared by, the best first, then memory.
enum detect_input {
	DETECT_STEP,        // seconds per step
	DETECT_COMPUTE,     // seconds of a step without waiting for data and for other ranks
	DETECT_CLOCK,       // clock of the SMs
	DETECT_POWER,       // watts
	DETECT_ACTIVITY,    // share of time in which SMs are active
	DETECT_MEMORY,      // bytes in use on the GPU
	DETECT_WORKING_SET, // bytes of the container
	DETECT_INPUT__COUNT
};
#define DETECT_RANK_INPUTS DETECT_MEMORY

struct detect;
struct detect_job;

// Creates a detector that appends events to `out`, one line each. Returns NULL when memory is exhausted.
struct detect *detect_new(struct buf *out);
void detect_free(struct detect *d);
// Starts the values of a job at a time; times of a job do not go back. Returns the job, or NULL and *e: ERR_INPUT for a
// time before the last one, ERR_LIMIT for too many jobs or a name that is too long, ERR_INTERNAL.
struct detect_job *detect_at(struct detect *d, const char *job, int64_t time_ms, struct err *e);
// Adds the value of a rank. A value that is not finite, or not above zero, is missing. Of DETECT_MEMORY and
// DETECT_WORKING_SET also their limit in bytes and the epoch in progress: a limit that is not finite or not above zero,
// and an epoch that is not a number from 0 to 1e15, are unknown. -1 and *e: ERR_LIMIT, ERR_INTERNAL.
int detect_add(struct detect_job *job, enum detect_input input, const char *rank, double value, double limit,
               double epoch, struct err *e);
// Ends the values of this time: every rank that has a value was added.
void detect_tick(struct detect_job *job);
// Ends the input: detect_tick() for every job. May append events.
void detect_finish(struct detect *d);

// The input of `gpuscale detect`, line by line: JSON, a line per time, or CSV, a row per time and rank.
//   {"time": 1800, "job": "ml/bert", "step": {"0": 0.47, "1": 0.45}, "memory": {"0": 3.2e10}, "memoryLimit": 8e10}
//   time,rank,step
//   1800,0,0.47
#define DETECT_LINE_BYTES_MAX (1024 * 1024)
#define DETECT_COLUMNS_MAX    64

// Reads text[0..len), a line without its end. The first line decides: JSON if it starts with '{', else the header of
// CSV. -1 and *e: the line was not used, or only up to the value that the message names.
int detect_read(struct detect *d, const char *text, size_t len, struct err *e);

#endif
