// SPDX-License-Identifier: Apache-2.0
// What this process takes of the machine: memory that it returns to the kernel, its limit on file descriptors, and the
// standard process_* families that every exporter of the Prometheus world has.
#ifndef GPUSCALE_BASE_PROCESS_PROCESS_H
#define GPUSCALE_BASE_PROCESS_PROCESS_H

#include <stdint.h>

struct buf;

// Returns free heap pages to the kernel and unmaps the code and constants of every loaded library until they are used
// again: by then thirty libraries have run their constructors, and most are not used afterwards. The cost is some page
// faults, so call this after start-up and after work that is rare. Other threads may run.
void process_trim(void);
// Makes free() return heap blocks of 128 KiB and more to the kernel at once. By default glibc raises this limit after
// the first large block is freed and keeps later ones, which suits a server of large pages but not a process that
// renders one occasionally.
void process_return_large_blocks(void);

#define PROCESS_DESCRIPTORS 8192 // a server reserves an eighth for silent connections: HTTP_SERVER_SILENT_MAX

// Raises the soft limit to PROCESS_DESCRIPTORS, or to the hard limit when that is lower; never lowers it. Container
// runtimes start processes with a soft limit of 1024 for the sake of select(2), which this program does not use. Call
// this before creating servers, because they read the limit.
void process_raise_descriptors(void);

struct process_stat {
	int64_t resident_bytes;
	double cpu_seconds;   // user + system
	double start_seconds; // since the epoch
};

// Reads the values from /proc and getrusage; fields that cannot be read are -1.
void process_stat_read(struct process_stat *ret_stat);
// process_resident_memory_bytes, process_cpu_seconds_total, process_start_time_seconds; those that are known.
void process_stat_render(struct buf *out);

#endif
