// SPDX-License-Identifier: Apache-2.0
// Device memory per process, through NVML. Process numbers are the host's, and only its own namespace of processes
// knows their names.
#ifndef GPUSCALE_EXPORTER_NVML_PROCESSES_H
#define GPUSCALE_EXPORTER_NVML_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/nvml_api.h"

struct buf;
struct device;

#define NVML_PROCESSES_MAX      64 // of one GPU; the ones with the most memory when there are more
#define NVML_PROCESS_NAME_BYTES 64

struct nvml_process {
	unsigned pid;
	unsigned gpu_instance; // NVML_NO_INSTANCE: the GPU is not split
	uint64_t memory_bytes;
	char name[NVML_PROCESS_NAME_BYTES]; // "" where it is not known
};

// Fills ret_processes, most memory first; returns how many. proc_root is "/proc". 0 where the library or the device
// does not tell.
size_t nvml_processes_read(const struct nvml_api *api, nvml_device d, const char *proc_root,
                           struct nvml_process ret_processes[NVML_PROCESSES_MAX]);
// Appends gpuscale_gpu_process_memory_bytes{gpu,UUID,GPU_I_ID,pid,process} of one GPU; *opened tells whether HELP and
// TYPE stand already.
void nvml_processes_render(struct buf *out, const struct device *gpu, const struct nvml_process *processes, size_t n,
                           bool *opened);

#endif
