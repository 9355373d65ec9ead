// SPDX-License-Identifier: Apache-2.0
// Device memory per process, through NVML. Process ids are those of the host; the names of processes outside the own
// pid namespace are unknown.
#ifndef GPUSCALE_EXPORTER_NVML_NVML_PROCESSES_H
#define GPUSCALE_EXPORTER_NVML_NVML_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/nvml/nvml_api.h"

struct buf;
struct device;

#define NVML_PROCESSES_MAX      64 // per GPU; the processes with the most memory if there are more
#define NVML_PROCESS_NAME_BYTES 64

struct nvml_process {
	unsigned pid;
	unsigned gpu_instance; // NVML_NO_INSTANCE: the GPU is not split
	uint64_t memory_bytes;
	char name[NVML_PROCESS_NAME_BYTES]; // "" where it is not known
};

// Fills `ret_processes`, most memory first, and returns their number. `proc_root` is "/proc". Returns 0 if the
// library or the device does not report processes.
size_t nvml_processes_read(const struct nvml_api *api, nvml_device d, const char *proc_root,
                           struct nvml_process ret_processes[NVML_PROCESSES_MAX]);
// Appends gpuscale_gpu_process_memory_bytes{gpu,UUID,GPU_I_ID,pid,process} of one GPU to `out`. `*opened` is true
// once HELP and TYPE were written.
void nvml_processes_render(struct buf *out, const struct device *gpu, const struct nvml_process *processes, size_t n,
                           bool *opened);

#endif
