// SPDX-License-Identifier: Apache-2.0
// The backends of --backend. To add a backend, write a folder with a backend_new_fn and add a row to the table.
#include "exporter/cmd/exporter_options.h"

#include <dirent.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/print.h"

// ---- the backend that the GPUs of the node choose ----

#define BACKEND_CANDIDATES_MAX 16
#define PCI_VENDOR_NVIDIA      "0x10de"
#define PCI_CLASS_DISPLAY      "0x03" // 0x0300 VGA, 0x0302 3D
#define PCI_DEVICES_MAX        65536
#define PROFILING_RETRY_MS     60000

struct chooser {
	struct backend base;
	struct backend *candidates[BACKEND_CANDIDATES_MAX];
	size_t n;
	struct backend *profiling;      // backend of the host engine
	struct device_sample *profiled; // its samples; NULL while it is closed
	int64_t profiling_retry_ms;
	struct backend *chosen;   // NULL while closed
	const char *_Atomic name; // name of the backend chosen last
};

static const char *auto_active_name(const struct backend *b)
{
	const struct chooser *c = (const struct chooser *)b;
	return atomic_load(&c->name);
}

// True if the PCI bus has a GPU of NVIDIA's, with or without a driver.
static bool has_nvidia_gpu(const char *sysfs_root)
{
	char dir[SYSFS_PATH_BYTES], device[SYSFS_PATH_BYTES], text[SYSFS_TEXT_BYTES];
	if (snprintf(dir, sizeof dir, "%s/bus/pci/devices", sysfs_root) >= (int)sizeof dir)
		return false;
	DIR *d = opendir(dir);
	if (!d)
		return false;
	bool found = false;
	const struct dirent *entry;
	for (int i = 0; !found && i < PCI_DEVICES_MAX && (entry = readdir(d)); i++) {
		if (entry->d_name[0] == '.' ||
		    snprintf(device, sizeof device, "%s/%s", dir, entry->d_name) >= (int)sizeof device)
			continue;
		found = sysfs_read_text(device, "vendor", text) && strcmp(text, PCI_VENDOR_NVIDIA) == 0 &&
		        sysfs_read_text(device, "class", text) &&
		        strncmp(text, PCI_CLASS_DISPLAY, strlen(PCI_CLASS_DISPLAY)) == 0;
	}
	closedir(d);
	return found;
}

// Takes over the devices and the driver of the chosen backend.
static void mirror(struct chooser *c)
{
	c->base.devices = c->chosen->devices;
	c->base.n = c->chosen->n;
	c->base.driver_version = c->chosen->driver_version;
}

static int auto_open(struct backend *b, struct err *e)
{
	struct chooser *c = (struct chooser *)b;
	struct err first;
	size_t n = c->n > 1 && has_nvidia_gpu(c->base.config.sysfs_root) ? 1 : c->n;
	char others[ERR_MSG_BYTES] = "";
	for (size_t i = 0; i < n; i++) {
		struct backend *candidate = c->candidates[i];
		if (candidate->ops->open(candidate, e) == 0) {
			c->chosen = candidate;
			mirror(c);
			atomic_store(&c->name, candidate->ops->name);
			return 0;
		}
		size_t len = strlen(others);
		if (i == 0)
			first = *e;
		else
			snprintf(others + len, sizeof others - len, "; %s", e->msg);
	}
	return err_set_code(e, first.kind, first.code, "%.*s%.*s", (int)sizeof first.msg / 2, first.msg,
	                    (int)sizeof others / 2, others);
}

static struct backend *chosen_of(struct backend *b)
{
	assert(((struct chooser *)b)->chosen); // the sampler uses only an open backend
	return ((struct chooser *)b)->chosen;
}

static void close_profiling(struct chooser *c)
{
	if (c->profiled)
		c->profiling->ops->close(c->profiling);
	free(c->profiled);
	c->profiled = NULL;
}

static int open_profiling(struct chooser *c, struct err *e)
{
	if (c->profiled)
		return 0;
	if (c->profiling->ops->open(c->profiling, e) < 0)
		return -1;
	c->profiled = calloc(DEVICES_MAX, sizeof *c->profiled);
	if (c->profiled) {
		LOG(c->base.config.log, LOG_INFO, "Profiling fields are read through nv-hostengine",
		    LOG_I("gpus", (int64_t)c->profiling->n));
		return 0;
	}
	c->profiling->ops->close(c->profiling);
	return err_no_memory(e);
}

// Adds the profiling fields of the host engine to GPUs for which NVML has none: those before Hopper.
static void add_profiling(struct chooser *c, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples)
{
	struct err e;
	size_t n = c->base.n;
	for (size_t i = 0; i < n; i++)
		if (sample_has(&samples[i], FIELD_GR_ENGINE_ACTIVE) || sample_has(&samples[i], FIELD_SM_ACTIVE))
			return;
	// The first rounds of NVML have no profiling fields on any GPU.
	if (c->profiling_retry_ms == 0)
		c->profiling_retry_ms = mono_ms + 1;
	if (mono_ms < c->profiling_retry_ms && !c->profiled)
		return;
	if (open_profiling(c, &e) < 0 ||
	    c->profiling->ops->sample(c->profiling, mono_ms, wall_ms, c->profiled, &e) < 0) {
		close_profiling(c);
		c->profiling_retry_ms = mono_ms + PROFILING_RETRY_MS;
		return;
	}
	const struct device *profiled = c->profiling->devices;
	for (size_t k = 0; k < c->profiling->n; k++)
		for (size_t i = 0; i < n; i++)
			for (enum field f = 0; f < FIELD__COUNT && device_is_same(&c->base.devices[i], &profiled[k]);
			     f++)
				if (!samples[i].lost && sample_has(&c->profiled[k], f) && !sample_has(&samples[i], f)) {
					samples[i].value[f] = c->profiled[k].value[f];
					samples[i].valid[f] = true;
				}
}

static int auto_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                       struct err *e)
{
	struct backend *c = chosen_of(b);
	if (c->ops->sample(c, mono_ms, wall_ms, samples, e) < 0)
		return -1;
	mirror((struct chooser *)b);
	if (c == ((struct chooser *)b)->candidates[0])
		add_profiling(((struct chooser *)b), mono_ms, wall_ms, samples);
	return 0;
}

static void auto_render_extra(struct backend *b, struct buf *out)
{
	struct backend *c = chosen_of(b);
	if (c->ops->render_extra)
		c->ops->render_extra(c, out);
}

static void auto_close(struct backend *b)
{
	struct backend *c = chosen_of(b);
	close_profiling((struct chooser *)b);
	c->ops->close(c);
	((struct chooser *)b)->chosen = NULL;
}

static void auto_destroy(struct backend *b)
{
	struct chooser *c = (struct chooser *)b;
	for (size_t i = 0; i < c->n; i++)
		c->candidates[i]->ops->destroy(c->candidates[i]);
	if (c->profiling)
		c->profiling->ops->destroy(c->profiling);
	free(c);
}

static const struct backend_ops ops = {.name = "auto",
                                       .active_name = auto_active_name,
                                       .first_rounds = 2,
                                       .open = auto_open,
                                       .sample = auto_sample,
                                       .render_extra = auto_render_extra,
                                       .close = auto_close,
                                       .destroy = auto_destroy};

// ---- the registry ----

static struct backend *make_auto(const struct backend_config *config, struct err *e);

// The first probed row must be NVIDIA's (make_auto).
// clang-format off
static const struct backend_row rows[] = {
	// name    help                                          make                probed         scripted
	{"auto",   "chosen by the GPUs of the node",            make_auto,          .probed = false},
	{"nvml",   "NVIDIA GPUs through NVML",                   backend_nvml_new,   .probed = true},
	{"dcgm",   "NVIDIA GPUs through nv-hostengine",          backend_dcgm_new,   .probed = false},
	{"amdgpu", "AMD GPUs through sysfs",                     backend_amdgpu_new, .probed = true},
	{"intel",  "Intel GPUs through sysfs",                   backend_intel_new,  .probed = true},
	{"mock",   "simulated GPUs",                             backend_mock_new,   .probed = false, .scripted = true},
};
// clang-format on
#define ROWS (sizeof rows / sizeof rows[0])
_Static_assert(ROWS <= BACKEND_CANDIDATES_MAX, "every row can be a candidate of auto");

const struct backend_row *backend_registry_find(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

void backend_registry_put_names(struct buf *out, const char *separator, const char *last)
{
	for (size_t i = 0; i < ROWS; i++)
		print_to(out, "%s%s", i == 0 ? "" : i + 1 == ROWS ? last : separator, rows[i].name);
}

void backend_registry_put_help(struct buf *out)
{
	for (size_t i = 0; i < ROWS; i++)
		print_to(out, "%s%s: %s", i == 0 ? "" : "; ", rows[i].name, rows[i].help);
}

// Returns a backend that uses the first of the probed backends that opens, tried in their order whenever none is open.
// If a PCI device under `sysfs_root` is a display controller of NVIDIA's, only the first one is tried, which must be
// the NVIDIA backend: a driver that loads late is waited for instead of being replaced by a graphics chip on the board.
// While the first one is used and none of its GPUs has profiling fields, those of nv-hostengine are added for the GPUs
// of the same UUID, tried again every minute.
static struct backend *make_auto(const struct backend_config *config, struct err *e)
{
	struct backend_config profiling_config = *config;
	profiling_config.dcgm_profiling_only = true;
	struct chooser *c = backend_alloc(sizeof *c, &ops, config, e);
	if (!c)
		return NULL;
	atomic_init(&c->name, ops.name);
	c->profiling = backend_dcgm_new(&profiling_config, e);
	bool ok = c->profiling != NULL;
	for (size_t i = 0; ok && i < ROWS; i++) {
		if (!rows[i].probed)
			continue;
		c->candidates[c->n] = rows[i].make(config, e);
		ok = c->candidates[c->n] != NULL;
		c->n += ok;
	}
	if (ok)
		return &c->base;
	auto_destroy(&c->base);
	return NULL;
}
