// SPDX-License-Identifier: Apache-2.0
// The standard process_* families every exporter of the Prometheus world has, for this process.
#ifndef GPUSCALE_BASE_PROCESS_PROCESS_STAT_H
#define GPUSCALE_BASE_PROCESS_PROCESS_STAT_H

#include <stdint.h>

struct buf;

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
