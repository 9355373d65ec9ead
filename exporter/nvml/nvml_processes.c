// SPDX-License-Identifier: Apache-2.0
#include "exporter/nvml/nvml_processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/exposition.h"
#include "exporter/device.h"
#include "exporter/sysfs/sysfs.h"

#define ROWS_MAX 256 // rows of one call

typedef nvml_return list_fn(nvml_device, unsigned *n, struct nvml_process_info *);

static size_t add_list(list_fn *list, nvml_device d, struct nvml_process *rows, size_t n)
{
	struct nvml_process_info infos[ROWS_MAX] = {{.pid = 0}}; // the library may report more rows than it writes
	unsigned got = ROWS_MAX;
	if (!list || list(d, &got, infos) != NVML_SUCCESS)
		return n;
	for (unsigned i = 0; i < got && i < ROWS_MAX && n < 2 * ROWS_MAX; i++) {
		bool known = infos[i].memory_bytes == NVML_MEMORY_NOT_AVAILABLE || infos[i].pid == 0;
		// A process that uses compute and graphics is in both lists, with the same memory.
		for (size_t k = 0; k < n && !known; k++)
			known = rows[k].pid == infos[i].pid && rows[k].gpu_instance == infos[i].gpu_instance;
		if (!known)
			rows[n++] = (struct nvml_process){.pid = infos[i].pid,
			                                  .gpu_instance = infos[i].gpu_instance,
			                                  .memory_bytes = infos[i].memory_bytes};
	}
	return n;
}

static int by_memory(const void *a, const void *b)
{
	const struct nvml_process *x = a, *y = b;
	if (x->memory_bytes != y->memory_bytes)
		return x->memory_bytes < y->memory_bytes ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void find_name(const char *proc_root, struct nvml_process *p)
{
	char dir[SYSFS_PATH_BYTES], text[SYSFS_TEXT_BYTES];
	if (snprintf(dir, sizeof dir, "%s/%u", proc_root, p->pid) < (int)sizeof dir &&
	    sysfs_read_text(dir, "comm", text))
		snprintf(p->name, sizeof p->name, "%.60s", text);
}

size_t nvml_processes_read(const struct nvml_api *api, nvml_device d, const char *proc_root,
                           struct nvml_process ret_processes[NVML_PROCESSES_MAX])
{
	struct nvml_process *rows = calloc(2 * ROWS_MAX, sizeof *rows);
	if (!rows)
		return 0;
	size_t n = add_list(api->compute_processes, d, rows, 0);
	n = add_list(api->graphics_processes, d, rows, n);
	qsort(rows, n, sizeof *rows, by_memory);
	if (n > NVML_PROCESSES_MAX)
		n = NVML_PROCESSES_MAX;
	for (size_t i = 0; i < n; i++)
		find_name(proc_root, &rows[i]);
	memcpy(ret_processes, rows, n * sizeof *rows);
	free(rows);
	return n;
}

void nvml_processes_render(struct buf *out, const struct device *gpu, const struct nvml_process *processes, size_t n,
                           bool *opened)
{
	static const char family[] = "gpuscale_gpu_process_memory_bytes";
	for (size_t i = 0; i < n; i++) {
		const struct nvml_process *p = &processes[i];
		if (!*opened)
			exposition_family(out, family, "GPU memory of a process (bytes).", METRIC_GAUGE);
		*opened = true;
		buf_printf(out, "%s{gpu=\"%" PRId32 "\",UUID=\"", family, gpu->index);
		exposition_label_value(out, gpu->uuid);
		if (p->gpu_instance != NVML_NO_INSTANCE)
			buf_printf(out, "\",GPU_I_ID=\"%u", p->gpu_instance);
		buf_printf(out, "\",pid=\"%u\",process=\"", p->pid);
		exposition_label_value(out, p->name);
		buf_printf(out, "\"} %" PRIu64 "\n", p->memory_bytes);
	}
}
