// SPDX-License-Identifier: Apache-2.0
// The interface of a backend, the source of samples. A backend belongs to the sampler thread: open, sample and close
// are called only there, may be slow or hang, and may be repeated after close. The exception is attach, which runs in
// the main thread before the sampler starts, for work that needs the event loop.
#ifndef GPUSCALE_EXPORTER_BACKEND_H
#define GPUSCALE_EXPORTER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "exporter/device.h"

struct backend;
struct buf;
struct event_base;
struct log;
struct xid_store;

struct backend_ops {
	const char *name;
	// The name of the backend in use. NULL: always `name`. Any thread.
	const char *(*active_name)(const struct backend *b);
	int first_rounds; // rounds until a sample is complete; 0: the first one is
	// Starts the part of the backend that runs in the main loop, until destroy. May be NULL.
	int (*attach)(struct backend *b, struct event_base *loop, struct err *e);
	// True once every request that attach started has a reply. May be NULL. Any thread.
	bool (*has_replies)(struct backend *b);
	// Finds the devices and sets those and the version of the driver in `b`. Returns -1 and fills `e` if there are
	// none (yet): the sampler retries later.
	int (*open)(struct backend *b, struct err *e);
	// Fills one sample per device, in the order of b->devices afterwards; devices may appear and vanish here.
	// `samples` has room for DEVICES_MAX. `mono_ms` is the time since the sampler started, `wall_ms` the time
	// stamp for events. A device that fails alone is only marked as lost. Returns -1 and fills `e` if nothing can
	// be read until the backend is closed and opened again.
	int (*sample)(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
	              struct err *e);
	// Appends the backend's own metric families, as of the last sample, to `out`. May be NULL.
	void (*render_extra)(struct backend *b, struct buf *out);
	void (*close)(struct backend *b);
	// Frees the backend. Main thread, after the sampler has stopped.
	void (*destroy)(struct backend *b);
};

// ---- the library of a driver, loaded at run time ----

#define BACKEND_VARIANTS_MAX 3

// A function: the member for it in the struct of the functions, and the names of its variants, newest first.
struct backend_symbol {
	size_t offset;
	bool optional;
	const char *names[BACKEND_VARIANTS_MAX];
};

// Loads `library`, a path or a name that the dynamic loader searches; `maker` is its name in messages. `api` is a
// struct of `size` bytes whose first member, a void *, receives the library; the others receive the functions of
// symbols[0..n), NULL for an optional one that the library lacks. Returns -1 and fills `e` if it cannot be loaded
// (ERR_NOT_FOUND) or lacks a function; *api is zero then.
int backend_load_library(void *api, size_t size, const char *maker, const char *library,
                         const struct backend_symbol *symbols, size_t n, struct err *e);
// Unloads the library, if any, and zeroes *api.
void backend_unload_library(void *api, size_t size);

// ---- small files in /sys and /proc ----

#define SYSFS_PATH_BYTES 384
#define SYSFS_TEXT_BYTES 1024 // longer files are truncated

// Reads the file dir/name without trailing spaces. False if it cannot be read or is empty.
bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES]);

// ---- backends ----

// The configuration of a backend. Each backend reads the members that concern it and keeps the pointers: everything
// here must outlive the backend.
struct backend_config {
	struct xid_store *xids; // receives XID events
	struct log *log;        // may be NULL
	int64_t interval_ms;    // time between two samples

	const char *nvml_library; // path or name for dlopen()
	const char *proc_root;    // "/proc"; NULL: no memory per process
	const char *dcgm_library; // path or name for dlopen(); NULL: libdcgm.so.4 or .3
	const char *dcgm_address; // address of nv-hostengine: "host", "host:port", "unix:///path" or "/path"
	bool dcgm_profiling_only; // read no other fields through it, and count no XIDs
	const char *sysfs_root;   // "/sys"
	const char *mock_script;  // path; NULL: the built-in script
	struct buf *ret_errors;   // receives one line for each error in the script
};

// The first member of each backend.
struct backend {
	const struct backend_ops *ops;
	struct backend_config config;
	const struct device *devices; // at most DEVICES_MAX; valid until the next sample or close
	size_t n;
	const char *driver_version; // label DCGM_FI_DRIVER_VERSION, "" if unknown; valid until close
};

// Allocates a backend of `size` bytes, with zeroes behind its first member. NULL and *e: memory is exhausted.
static inline void *backend_alloc(size_t size, const struct backend_ops *ops, const struct backend_config *config,
                                  struct err *e)
{
	struct backend *b = err_calloc(size, e);
	if (b)
		*b = (struct backend){.ops = ops, .config = *config, .driver_version = ""};
	return b;
}

// The destroy of a backend that owns nothing while it is closed.
static inline void backend_free(struct backend *b)
{
	free(b);
}

// Creates a backend that is not open yet. Returns NULL and fills `e` on failure.
typedef struct backend *backend_new_fn(const struct backend_config *config, struct err *e);

// Those of the drivers fail only when memory is exhausted: open() loads the library. That of the mock reads the script,
// and fails if it has errors: ret_errors then contains one line for each.
backend_new_fn backend_nvml_new;   // NVIDIA GPUs through NVML; uses xids, log, nvml_library and proc_root
backend_new_fn backend_dcgm_new;   // NVIDIA GPUs through nv-hostengine; uses xids, log, interval_ms and dcgm_*
backend_new_fn backend_amdgpu_new; // AMD GPUs through sysfs; uses log and sysfs_root
backend_new_fn backend_intel_new;  // Intel GPUs through sysfs; uses log and sysfs_root
backend_new_fn backend_mock_new;   // GPUs simulated from a script; uses xids, log, mock_script and ret_errors

// The name of the backend that provides the readings: for `auto`, the one it chose. Any thread.
static inline const char *backend_name(const struct backend *b)
{
	return b->ops->active_name ? b->ops->active_name(b) : b->ops->name;
}

#endif
