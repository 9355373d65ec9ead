// SPDX-License-Identifier: Apache-2.0
// Readings from NVML. Every reading is taken alone: what the library lacks or the device does not support gives no
// sample, never a zero; a lost device ends its own round only.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "exporter/backend.h"
#include "exporter/nvml_api.h"
#include "exporter/nvml_events.h"
#include "exporter/xid.h"

#define BYTES_PER_MIB 1048576

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
		m->n++;
	}
	return m->n ? 0 : nvml_fail(m, e, "no GPU answers", last);
}

static void nvml_close(struct backend *b)
{
	struct nvml *m = nvml_of(b);
	nvml_events_free(m->events);
	m->events = NULL;
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

// ---- one reading each; the result says whether the device is still there ----

// Calls a function that may be missing. Evaluates to its result.
#define CALL(api, function, ...) ((api)->function ? (api)->function(__VA_ARGS__) : (nvml_return)NVML_FUNCTION_NOT_FOUND)

static nvml_return read_utilization(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_utilization u = {0};
	nvml_return r = CALL(api, utilization, d, &u);
	if (r == NVML_SUCCESS) {
		sample_set_i64(s, FIELD_GPU_UTIL, u.gpu);
		sample_set_i64(s, FIELD_MEM_COPY_UTIL, u.memory);
	}
	return r;
}

static nvml_return read_encoder(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned percent = 0, period_us = 0;
	nvml_return r = CALL(api, encoder, d, &percent, &period_us);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_ENC_UTIL, percent);
	return r;
}

static nvml_return read_decoder(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned percent = 0, period_us = 0;
	nvml_return r = CALL(api, decoder, d, &percent, &period_us);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_DEC_UTIL, percent);
	return r;
}

static int64_t mib(unsigned long long bytes)
{
	return (int64_t)(bytes / BYTES_PER_MIB);
}

static nvml_return read_memory(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2_VERSION};
	nvml_return r = CALL(api, memory_v2, d, &v2);
	if (r == NVML_SUCCESS) {
		sample_set_i64(s, FIELD_FB_TOTAL, mib(v2.total));
		sample_set_i64(s, FIELD_FB_FREE, mib(v2.free));
		sample_set_i64(s, FIELD_FB_USED, mib(v2.used));
		sample_set_i64(s, FIELD_FB_RESERVED, mib(v2.reserved));
		return r;
	}
	if (r == NVML_GPU_IS_LOST || r == NVML_RESET_REQUIRED)
		return r;
	// Drivers before 510: what they keep is part of used, and nobody knows how much it is.
	struct nvml_memory v1 = {0};
	r = CALL(api, memory, d, &v1);
	if (r == NVML_SUCCESS) {
		sample_set_i64(s, FIELD_FB_TOTAL, mib(v1.total));
		sample_set_i64(s, FIELD_FB_FREE, mib(v1.free));
		sample_set_i64(s, FIELD_FB_USED, mib(v1.used));
	}
	return r;
}

static nvml_return read_power(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned mw = 0;
	nvml_return r = CALL(api, power, d, &mw);
	if (r == NVML_SUCCESS)
		sample_set_f64(s, FIELD_POWER_USAGE, mw / 1000.0);
	return r;
}

static nvml_return read_power_limit(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned mw = 0;
	nvml_return r = CALL(api, power_limit, d, &mw);
	if (r == NVML_SUCCESS)
		sample_set_f64(s, FIELD_POWER_LIMIT, mw / 1000.0);
	return r;
}

static nvml_return read_energy(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned long long mj = 0;
	nvml_return r = CALL(api, energy, d, &mj);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_TOTAL_ENERGY, (int64_t)mj);
	return r;
}

static nvml_return read_temperature(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned celsius = 0;
	nvml_return r = CALL(api, temperature, d, NVML_TEMPERATURE_GPU, &celsius);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_GPU_TEMP, celsius);
	return r;
}

static nvml_return read_memory_temperature(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	struct nvml_field_value v = {.field_id = NVML_FIELD_MEMORY_TEMP};
	nvml_return r = CALL(api, field_values, d, 1, &v);
	if (r != NVML_SUCCESS)
		return r;
	if (v.result != NVML_SUCCESS)
		return v.result;
	if (v.value_type == NVML_VALUE_UINT)
		sample_set_i64(s, FIELD_MEMORY_TEMP, v.value.ui);
	return NVML_SUCCESS;
}

static nvml_return read_sm_clock(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned mhz = 0;
	nvml_return r = CALL(api, clock, d, NVML_CLOCK_SM, &mhz);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_SM_CLOCK, mhz);
	return r;
}

static nvml_return read_memory_clock(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned mhz = 0;
	nvml_return r = CALL(api, clock, d, NVML_CLOCK_MEM, &mhz);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_MEM_CLOCK, mhz);
	return r;
}

static nvml_return read_event_reasons(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned long long bits = 0;
	nvml_return r = CALL(api, event_reasons, d, &bits);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_CLOCKS_EVENT_REASONS, (int64_t)bits);
	return r;
}

static nvml_return read_pcie_replay(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	unsigned n = 0;
	nvml_return r = CALL(api, pcie_replay, d, &n);
	if (r == NVML_SUCCESS)
		sample_set_i64(s, FIELD_PCIE_REPLAY, n);
	return r;
}

static nvml_return read_ecc(const struct nvml_api *api, nvml_device d, struct device_sample *s)
{
	static const struct {
		enum field field;
		int error, counter;
	} rows[] = {{FIELD_ECC_SBE_VOL, NVML_MEMORY_ERROR_SINGLE, NVML_ECC_VOLATILE},
	            {FIELD_ECC_DBE_VOL, NVML_MEMORY_ERROR_DOUBLE, NVML_ECC_VOLATILE},
	            {FIELD_ECC_SBE_AGG, NVML_MEMORY_ERROR_SINGLE, NVML_ECC_AGGREGATE},
	            {FIELD_ECC_DBE_AGG, NVML_MEMORY_ERROR_DOUBLE, NVML_ECC_AGGREGATE}};
	nvml_return r = NVML_SUCCESS;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		unsigned long long n = 0;
		r = CALL(api, ecc_errors, d, rows[i].error, rows[i].counter, &n);
		if (r == NVML_SUCCESS)
			sample_set_i64(s, rows[i].field, (int64_t)n);
		if (r == NVML_GPU_IS_LOST || r == NVML_RESET_REQUIRED)
			break;
	}
	return r;
}

static nvml_return (*const readings[])(const struct nvml_api *, nvml_device, struct device_sample *) = {
        read_utilization,        read_memory,        read_power,       read_temperature, read_sm_clock,
        read_memory_clock,       read_encoder,       read_decoder,     read_power_limit, read_energy,
        read_memory_temperature, read_event_reasons, read_pcie_replay, read_ecc,
};

// 0, or a result that concerns the whole library.
static nvml_return sample_device(struct nvml *m, size_t i, struct device_sample *s)
{
	for (size_t k = 0; k < sizeof readings / sizeof readings[0]; k++) {
		nvml_return r = readings[k](&m->api, m->handles[i], s);
		if (r == NVML_GPU_IS_LOST || r == NVML_RESET_REQUIRED) {
			char scratch[32];
			if (!m->was_lost[i])
				LOG(m->log, LOG_ERROR, "GPU does not answer any more",
				    LOG_S("uuid", m->devices[i].uuid),
				    LOG_S("err", nvml_api_error(&m->api, r, scratch, sizeof scratch)));
			*s = (struct device_sample){.lost = true};
			m->was_lost[i] = true;
			return NVML_SUCCESS;
		}
		if (r == NVML_DRIVER_NOT_LOADED || r == NVML_LIB_RM_VERSION_MISMATCH || r == NVML_UNINITIALIZED)
			return r;
	}
	if (m->was_lost[i])
		LOG(m->log, LOG_INFO, "GPU answers again", LOG_S("uuid", m->devices[i].uuid));
	m->was_lost[i] = false;
	sample_set_i64(s, FIELD_XID_ERRORS, xid_store_last(m->xids, m->devices[i].uuid));
	return NVML_SUCCESS;
}

static int nvml_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                       struct err *e)
{
	(void)mono_ms, (void)wall_ms;
	struct nvml *m = nvml_of(b);
	for (size_t i = 0; i < m->n; i++) {
		samples[i] = (struct device_sample){.lost = false};
		nvml_return r = sample_device(m, i, &samples[i]);
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
