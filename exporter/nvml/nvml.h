// SPDX-License-Identifier: Apache-2.0
// Finds the devices that NVML lists, and reads one device: its fields, its profiling fields, the memory of its
// processes. Fields are independent: a field that the library lacks or the device does not support stays absent, never
// 0.
#ifndef GPUSCALE_EXPORTER_NVML_NVML_H
#define GPUSCALE_EXPORTER_NVML_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/nvml/nvml_api.h"

struct buf;
struct err;
struct log;

// Loads `library` (a path, or a name that the dynamic loader searches) and resolves its functions, newest variant
// first. Returns -1 and fills `e` if it cannot be loaded or lacks a required function: init, count, handle or UUID.
// Unload it with backend_unload_library().
int nvml_api_load(struct nvml_api *api, const char *library, struct err *e);
// Returns the library's text for `r`; or "error N", written to scratch[0..size).
const char *nvml_api_error(const struct nvml_api *api, nvml_return r, char *scratch, size_t size);
// Fills `e` with the library's text for `r`, prefixed by `what`, and returns -1.
int nvml_fail(const struct nvml_api *api, struct err *e, const char *what, nvml_return r);

// ---- the devices ----

#define NVML_WHOLE_GPU (-1) // in place of the id of a MIG instance

struct nvml_handle {
	nvml_device gpu;    // the GPU, also for an instance; NULL: the library counts it, but returned no handle
	nvml_device device; // the GPU or the instance
	int instance;       // id of the MIG GPU instance, or NVML_WHOLE_GPU
};

struct nvml_found {
	size_t n;
	struct device devices[DEVICES_MAX];
	struct nvml_handle handles[DEVICES_MAX];
};

// Lists the devices. A GPU without a handle is listed with its number only, unless the library does not permit its use.
// Instances above DEVICES_MAX are omitted. All of these are logged to `log`, which may be NULL. A GPU instance with
// several compute instances is one device, named after the first. Returns -1 and fills `e` if there is no GPU at all,
// or the library fails; e->code is then its result.
int nvml_find(const struct nvml_api *api, struct log *log, struct nvml_found *ret_found, struct err *e);
// Inserts device `k` of `from` and its instances into `f`, which must not contain them, ordered by number. They replace
// a GPU without a handle of this number. Devices above DEVICES_MAX are omitted.
void nvml_found_insert(struct nvml_found *f, const struct nvml_found *from, size_t k);
// True if `f` contains the GPU with this UUID, regardless of instances.
bool nvml_found_has(const struct nvml_found *f, const char *uuid);
// True if both lists contain the same devices with the same handles.
bool nvml_found_equal(const struct nvml_found *a, const struct nvml_found *b);

// ---- the fields of a device ----

#define NVML_READ_COSTLY_MS 5000  // fields that cost the driver 0.2 to 4 ms each are read this often
#define NVML_READ_SLOW_MS   10000 // so often those that rarely change

// Fields that are not read in every round, with their last values.
struct nvml_kept {
	bool is_read;
	int64_t read_ms;
	struct device_sample values;
};

// State of a device between two readings. Zero it before use.
struct nvml_reader {
	struct nvml_kept costly, slow; // read every NVML_READ_COSTLY_MS, NVML_READ_SLOW_MS
	bool has_nvlink;
	int64_t nvlink_ms;
	uint64_t nvlink_kib;
};

// True if `r` means that the device is lost until it is reset or the library is reopened.
bool nvml_result_is_lost(nvml_return r);
// True if `r` means that nothing can be read until the driver is back.
bool nvml_result_is_fatal(nvml_return r);

// Fills `s` with every field of the device except XID_ERRORS and the profiling fields. Returns NVML_SUCCESS, or a
// result for which nvml_result_is_lost() or nvml_result_is_fatal() is true. A device without a single field is
// NVML_GPU_IS_LOST.
nvml_return nvml_read_device(const struct nvml_api *api, nvml_device d, struct nvml_reader *reader, int64_t mono_ms,
                             struct device_sample *s);
// Reads only the device memory, the one set of fields that a MIG instance has here.
nvml_return nvml_read_memory(const struct nvml_api *api, nvml_device d, struct device_sample *s);

// ---- profiling fields: DCGM_FI_PROF_* without DCGM, on Hopper and newer GPUs ----

// NVML's GPM reports each field as a mean between two samples.
#define NVML_GPM_APART_MIN_MS 100    // two samples closer than this are not compared
#define NVML_GPM_APART_MAX_MS 600000 // after a longer pause the previous sample is discarded

// State of a device or instance between two rounds. Zero it before use.
struct nvml_gpm {
	bool asked, supported;
	bool seeded; // `previous` has a sample taken at previous_ms
	int64_t previous_ms;
	nvml_gpm_sample previous, current; // NULL until the device reports support
	struct device_sample values;       // the last values, for rounds that come too early
};

// Adds the profiling fields to `s`, from the second call on. `instance` is NVML_WHOLE_GPU or the id of a MIG GPU
// instance of `gpu`. Returns NVML_SUCCESS or the reason why there are none; NVML_NOT_SUPPORTED and
// NVML_FUNCTION_NOT_FOUND are permanent for this GPU or library.
nvml_return nvml_gpm_read(const struct nvml_api *api, nvml_device gpu, int instance, struct nvml_gpm *g,
                          int64_t mono_ms, struct device_sample *s);
// Frees the samples of `g` in the library and zeroes `g`.
void nvml_gpm_done(const struct nvml_api *api, struct nvml_gpm *g);

// ---- device memory per process ----

#define NVML_PROCESSES_MAX 64 // per GPU; the processes with the most memory if there are more

// Appends gpuscale_gpu_process_memory_bytes{gpu,UUID,GPU_I_ID,pid,process} of `d`, the GPU that `gpu` describes, to
// `out`, most memory first; nothing if the library or the device does not report processes. Process ids are those of
// the host; the names of processes outside the own pid namespace are unknown. `proc_root` is "/proc". `*opened` is true
// once HELP and TYPE were written.
void nvml_processes_render(const struct nvml_api *api, nvml_device d, const struct device *gpu, const char *proc_root,
                           struct buf *out, bool *opened);

#endif
