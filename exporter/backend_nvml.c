// SPDX-License-Identifier: Apache-2.0
// Readings from NVML: which devices there are, and what becomes of them. A lost device ends its own round only.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "exporter/backend.h"
#include "exporter/nvml_api.h"
#include "exporter/nvml_events.h"
#include "exporter/nvml_gpm.h"
#include "exporter/nvml_read.h"
#include "exporter/xid.h"

struct nvml {
	struct backend base;
	const char *library;
	struct xid_store *xids;
	struct log *log;
	struct nvml_api api;
	struct nvml_events *events; // NULL while closed, or when the library has no events
	char driver_version[NVML_DRIVER_BYTES];
	size_t n;
	struct device devices[DEVICES_MAX];
	nvml_device handles[DEVICES_MAX];
	struct nvml_reader readers[DEVICES_MAX];
	struct nvml_gpm gpm[DEVICES_MAX];
	bool gpm_told;              // why there are no profiling fields was logged
	bool was_lost[DEVICES_MAX]; // for one line of log per transition
};

static struct nvml *nvml_of(struct backend *b)
{
	return (struct nvml *)b;
}

static int nvml_fail(const struct nvml *m, struct err *e, const char *what, nvml_return r)
{
	char scratch[32];
	enum err_kind kind = r == NVML_NO_PERMISSION ? ERR_AUTH : r == NVML_DRIVER_NOT_LOADED ? ERR_NOT_FOUND : ERR_IO;
	return err_set_code(e, kind, r, "%s: %s", what, nvml_api_error(&m->api, r, scratch, sizeof scratch));
}

static void describe(struct nvml *m, size_t i, unsigned index)
{
	struct device *d = &m->devices[i];
	struct nvml_pci pci = {.bus_id = ""};
	unsigned minor;
	d->index = (int32_t)index;
	if (!m->api.name || m->api.name(m->handles[i], d->model, sizeof d->model) != NVML_SUCCESS)
		d->model[0] = '\0';
	if (m->api.minor && m->api.minor(m->handles[i], &minor) == NVML_SUCCESS)
		snprintf(d->node, sizeof d->node, "nvidia%u", minor);
	if (m->api.pci && m->api.pci(m->handles[i], &pci) == NVML_SUCCESS)
		snprintf(d->pci_bus_id, sizeof d->pci_bus_id, "%.*s", (int)sizeof pci.bus_id - 1, pci.bus_id);
}

// Devices that cannot be addressed at all (fallen off the bus before we came) are left out; the rest goes on.
static int find_devices(struct nvml *m, struct err *e)
{
	unsigned count = 0;
	nvml_return r = m->api.count(&count);
	if (r != NVML_SUCCESS)
		return nvml_fail(m, e, "cannot count GPUs", r);
	if (count == 0)
		return err_set(e, ERR_NOT_FOUND, "NVML knows no GPU on this node");
	if (count > DEVICES_MAX)
		LOG(m->log, LOG_WARNING, "More GPUs than the ceiling, the rest is left out", LOG_I("gpus", count),
		    LOG_I("ceiling", DEVICES_MAX));
	m->n = 0;
	nvml_return last = NVML_SUCCESS;
	for (unsigned index = 0; index < count && m->n < DEVICES_MAX; index++) {
		struct device *d = &m->devices[m->n];
		*d = (struct device){.index = 0};
		r = m->api.handle_by_index(index, &m->handles[m->n]);
		if (r == NVML_SUCCESS)
			r = m->api.uuid(m->handles[m->n], d->uuid, sizeof d->uuid);
		if (r != NVML_SUCCESS) {
			char scratch[32];
			LOG(m->log, LOG_WARNING, "Cannot address GPU, leaving it out", LOG_I("gpu", index),
			    LOG_S("err", nvml_api_error(&m->api, r, scratch, sizeof scratch)));
			last = r;
			continue;
		}
		d->uuid[sizeof d->uuid - 1] = '\0';
		describe(m, m->n, index);
		xid_store_add_gpu(m->xids, d->uuid);
		m->was_lost[m->n] = false;
		m->readers[m->n] = (struct nvml_reader){.has_slow = false};
		m->n++;
	}
	return m->n ? 0 : nvml_fail(m, e, "no GPU answers", last);
}

static void nvml_close(struct backend *b)
{
	struct nvml *m = nvml_of(b);
	nvml_events_free(m->events);
	m->events = NULL;
	for (size_t i = 0; i < m->n; i++)
		nvml_gpm_done(&m->api, &m->gpm[i]);
	m->gpm_told = false;
	if (m->api.shutdown)
		m->api.shutdown();
	nvml_api_unload(&m->api);
	m->n = 0;
}

static int nvml_open(struct backend *b, struct err *e)
{
	struct nvml *m = nvml_of(b);
	if (nvml_api_load(&m->api, m->library, e) < 0)
		return -1;
	nvml_return r = m->api.init();
	if (r != NVML_SUCCESS) {
		nvml_fail(m, e, "NVML does not start", r);
		nvml_api_unload(&m->api);
		return -1;
	}
	if (!m->api.driver_version ||
	    m->api.driver_version(m->driver_version, sizeof m->driver_version) != NVML_SUCCESS)
		m->driver_version[0] = '\0';
	if (find_devices(m, e) < 0) {
		nvml_close(b);
		return -1;
	}
	struct err events_error;
	m->events = nvml_events_new(&m->api, m->handles, m->devices, m->n, m->xids, &events_error);
	if (!m->events)
		LOG(m->log, LOG_WARNING, "No XID events from NVML", LOG_S("err", events_error.msg));
	return 0;
}

static const struct device *nvml_devices(struct backend *b, size_t *ret_n)
{
	*ret_n = nvml_of(b)->n;
	return nvml_of(b)->devices;
}

static const char *nvml_driver_version(struct backend *b)
{
	return nvml_of(b)->driver_version;
}

// Profiling fields are a bonus: a GPU without them is a good one.
static void sample_profiling(struct nvml *m, size_t i, int64_t mono_ms, struct device_sample *s)
{
	nvml_return r = nvml_gpm_read(&m->api, m->handles[i], NVML_GPM_WHOLE_GPU, &m->gpm[i], mono_ms, s);
	if (r == NVML_SUCCESS || r == NVML_NOT_SUPPORTED || r == NVML_FUNCTION_NOT_FOUND || m->gpm_told)
		return;
	char scratch[32];
	LOG(m->log, LOG_WARNING, "No profiling fields", LOG_S("uuid", m->devices[i].uuid),
	    LOG_S("err", nvml_api_error(&m->api, r, scratch, sizeof scratch)));
	m->gpm_told = true;
}

// NVML_SUCCESS, or a result that concerns the whole library.
static nvml_return sample_device(struct nvml *m, size_t i, int64_t mono_ms, struct device_sample *s)
{
	nvml_return r = nvml_read_device(&m->api, m->handles[i], &m->readers[i], mono_ms, s);
	if (nvml_result_is_fatal(r))
		return r;
	if (nvml_result_is_lost(r)) {
		char scratch[32];
		if (!m->was_lost[i])
			LOG(m->log, LOG_ERROR, "GPU does not answer any more", LOG_S("uuid", m->devices[i].uuid),
			    LOG_S("err", nvml_api_error(&m->api, r, scratch, sizeof scratch)));
		*s = (struct device_sample){.lost = true};
		m->was_lost[i] = true;
		return NVML_SUCCESS;
	}
	if (m->was_lost[i])
		LOG(m->log, LOG_INFO, "GPU answers again", LOG_S("uuid", m->devices[i].uuid));
	m->was_lost[i] = false;
	sample_profiling(m, i, mono_ms, s);
	sample_set_i64(s, FIELD_XID_ERRORS, xid_store_last(m->xids, m->devices[i].uuid));
	return NVML_SUCCESS;
}

static int nvml_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                       struct err *e)
{
	(void)wall_ms;
	struct nvml *m = nvml_of(b);
	for (size_t i = 0; i < m->n; i++) {
		samples[i] = (struct device_sample){.lost = false};
		nvml_return r = sample_device(m, i, mono_ms, &samples[i]);
		if (r != NVML_SUCCESS)
			return nvml_fail(m, e, "NVML went away", r);
	}
	return 0;
}

static void nvml_destroy(struct backend *b)
{
	free(b);
}

static const struct backend_ops ops = {.name = "nvml",
                                       .first_rounds = 2, // rates and profiling fields need a past
                                       .open = nvml_open,
                                       .devices = nvml_devices,
                                       .driver_version = nvml_driver_version,
                                       .sample = nvml_sample,
                                       .close = nvml_close,
                                       .destroy = nvml_destroy};

struct backend *backend_nvml_new(const char *library, struct xid_store *xids, struct log *log, struct err *e)
{
	struct nvml *m = calloc(1, sizeof *m);
	if (!m) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	m->base.ops = &ops;
	m->library = library;
	m->xids = xids;
	m->log = log;
	return &m->base;
}
