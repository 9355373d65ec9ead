// SPDX-License-Identifier: Apache-2.0
// Where readings come from. A backend belongs to the sampler thread: open, sample and close are called from there only,
// may be slow or hang, and may come again after close. attach is the exception: it runs in the main thread, before the
// sampler starts, for what needs the event loop.
#ifndef GPUSCALE_EXPORTER_BACKEND_H
#define GPUSCALE_EXPORTER_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"

struct backend;
struct buf;
struct err;
struct event_base;
struct log;
struct xid_store;

struct backend_ops {
	const char *name;
	// May be NULL: it is always called `name`. Any thread.
	const char *(*active_name)(const struct backend *b);
	int first_rounds; // rounds until a sample is whole; 0: the first one is
	// May be NULL. Starts what the backend does in the main loop; it ends in destroy.
	int (*attach)(struct backend *b, struct event_base *loop, struct err *e);
	// May be NULL. False while something attach started has not answered yet. Any thread.
	bool (*is_settled)(struct backend *b);
	// Finds the devices. -1 and *e when there are none (yet): the sampler tries again later.
	int (*open)(struct backend *b, struct err *e);
	// The devices found; valid until the next sample or close. At most DEVICES_MAX.
	const struct device *(*devices)(struct backend *b, size_t *ret_n);
	// Label DCGM_FI_DRIVER_VERSION, "" if unknown; valid until close.
	const char *(*driver_version)(struct backend *b);
	// One sample per device, in the order that devices has afterwards (they may come and go in here); samples has
	// room for DEVICES_MAX. mono_ms is the sampler's time since it started, wall_ms the
	// stamp for events. A device that fails alone is only marked lost. -1 and *e: nothing can be read any more,
	// close and open again.
	int (*sample)(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
	              struct err *e);
	// May be NULL. Appends metric families of the backend's own, as of the last sample.
	void (*render_extra)(struct backend *b, struct buf *out);
	void (*close)(struct backend *b);
	// Main thread, after the sampler ended. Frees everything.
	void (*destroy)(struct backend *b);
};

struct backend {
	const struct backend_ops *ops;
};

// NVML by dlopen of `library`. Events go to `xids` (not owned). log may be NULL.
struct backend *backend_nvml_new(const char *library, struct xid_store *xids, struct log *log, struct err *e);

// Makes the backend of backend_nvml_new tell the device memory of each process. Before it is opened.
void backend_nvml_show_processes(struct backend *b, const char *proc_root);

// A running nv-hostengine by dlopen of `library` (NULL: libdcgm.so.4 or .3). address: "host", "host:port",
// "unix:///path" or "/path". interval_ms: how often the host engine reads. Events go to `xids` (not owned). log may be
// NULL.
struct backend *backend_dcgm_new(const char *library, const char *address, int64_t interval_ms, struct xid_store *xids,
                                 struct log *log, struct err *e);

// AMD GPUs (driver amdgpu) and Intel GPUs (i915, xe), from files below sysfs_root ("/sys"). log may be NULL.
struct backend *backend_amdgpu_new(const char *sysfs_root, struct log *log, struct err *e);
struct backend *backend_intel_new(const char *sysfs_root, struct log *log, struct err *e);

// The first of the n candidates that opens, asked in their order whenever there is none; owns them. sysfs_root tells
// whether this is a node of NVIDIA's: then only the first candidate counts, which must be its backend, so that a driver
// that is late is waited for and not replaced by a graphics chip of the board.
#define BACKEND_CANDIDATES_MAX 4
struct backend *backend_auto_new(struct backend *const *candidates, size_t n, const char *sysfs_root, struct err *e);

// The name of the backend at work: that of the one chosen, where there is a choice. Any thread.
const char *backend_name(const struct backend *b);

// GPUs played from a script (docs/exporter.md); script_path NULL plays the built-in one. ret_errors gets a line for
// every fault of the script.
struct backend *backend_mock_new(const char *script_path, struct xid_store *xids, struct log *log,
                                 struct buf *ret_errors, struct err *e);

#endif
