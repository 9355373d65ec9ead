// SPDX-License-Identifier: Apache-2.0
// A small libnvidia-ml.so.1 that answers from a text file (script.h), so that the exporter's NVML backend can be shown
// every behaviour of a driver.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fake/nvml/script.h"

// As in the real library: GPUs that come or go are seen by the next init.
static unsigned count_at_init;

nvml_return nvmlInit_v2(void);
nvml_return nvmlInit_v2(void)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlInit_v2", ANY_GPU);
	struct words w;
	count_at_init = 2;
	for (const char *p = s.text; (p = next_line(p, &w));)
		if (w.n >= 2 && word_is(&w, 0, "devices"))
			count_at_init = (unsigned)word_number(&w, 1) % (GPUS_MAX + 1);
	return r;
}

nvml_return nvmlShutdown(void);
nvml_return nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvml_return r);
const char *nvmlErrorString(nvml_return r)
{
	return r == NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded" : r == NVML_GPU_IS_LOST ? "GPU is lost" : "Some error";
}

nvml_return nvmlSystemGetDriverVersion(char *version, unsigned length);
nvml_return nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlSystemGetDriverVersion", ANY_GPU);
	text_of(&s, "driver", ANY_GPU, "580.65.06", version, length);
	return r;
}

nvml_return nvmlDeviceGetCount_v2(unsigned *count);
nvml_return nvmlDeviceGetCount_v2(unsigned *count)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetCount_v2", ANY_GPU);
	*count = count_at_init;
	return r;
}

nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *d);
nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *d)
{
	struct script s;
	*d = handle_of((int)index);
	return begin(&s, "nvmlDeviceGetHandleByIndex_v2", (int)index);
}

nvml_return nvmlDeviceGetUUID(nvml_device d, char *uuid, unsigned length);
nvml_return nvmlDeviceGetUUID(nvml_device d, char *uuid, unsigned length)
{
	struct script s;
	int instance = instance_of(d);
	if (instance < 0)
		snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012d", index_of(d));
	else
		snprintf(uuid, length, "MIG-00000000-0000-0000-%04d-%012d", index_of(d), instance);
	return begin(&s, "nvmlDeviceGetUUID", index_of(d));
}

nvml_return nvmlDeviceGetName(nvml_device d, char *name, unsigned length);
nvml_return nvmlDeviceGetName(nvml_device d, char *name, unsigned length)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetName", index_of(d));
	int64_t id;
	const char *profile = "";
	size_t len = 0;
	bool mig = instance_of(d) >= 0 && mig_at(&s, index_of(d), instance_of(d), &id, &profile, &len);
	char model[NVML_NAME_BYTES];
	text_of(&s, "name", index_of(d), "NVIDIA Fake 9000", model, sizeof model);
	snprintf(name, length, "%s%s%.*s", model, mig ? " MIG " : "", (int)len, profile);
	return r;
}

nvml_return nvmlDeviceGetMinorNumber(nvml_device d, unsigned *minor);
nvml_return nvmlDeviceGetMinorNumber(nvml_device d, unsigned *minor)
{
	struct script s;
	*minor = (unsigned)index_of(d);
	return begin(&s, "nvmlDeviceGetMinorNumber", index_of(d));
}

nvml_return nvmlDeviceGetPciInfo_v3(nvml_device d, struct nvml_pci *pci);
nvml_return nvmlDeviceGetPciInfo_v3(nvml_device d, struct nvml_pci *pci)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetPciInfo_v3", index_of(d));
	char fallback[32];
	snprintf(fallback, sizeof fallback, "00000000:%02X:00.0", (unsigned)index_of(d) + 4);
	text_of(&s, "pci", index_of(d), fallback, pci->bus_id, sizeof pci->bus_id);
	return r;
}

nvml_return nvmlDeviceGetUtilizationRates(nvml_device d, struct nvml_utilization *u);
nvml_return nvmlDeviceGetUtilizationRates(nvml_device d, struct nvml_utilization *u)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetUtilizationRates", index_of(d));
	u->gpu = (unsigned)reading(&s, "util_gpu", index_of(d));
	u->memory = (unsigned)reading(&s, "util_mem", index_of(d));
	return r;
}

// A function that gives one number: `type` is what it points at.
#define ONE_NUMBER(function, type, key)                                                                                \
	nvml_return function(nvml_device d, type *value);                                                              \
	nvml_return function(nvml_device d, type *value)                                                               \
	{                                                                                                              \
		struct script s;                                                                                       \
		nvml_return r = begin(&s, #function, index_of(d));                                                     \
		*value = (type)reading(&s, key, index_of(d));                                                          \
		return r;                                                                                              \
	}
ONE_NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power_mw")
ONE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "limit_enforced_mw")
ONE_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "limit_default_mw")
ONE_NUMBER(nvmlDeviceGetPerformanceState, unsigned, "pstate")
ONE_NUMBER(nvmlDeviceGetFanSpeed, unsigned, "fan")
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "link_gen")
ONE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "link_width")
ONE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "max_link_gen")
ONE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "max_link_width")
ONE_NUMBER(nvmlDeviceGetVirtualizationMode, int, "virtualization")
ONE_NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, "limit_mw")
ONE_NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy_mj")
ONE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "reasons")
ONE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "reasons")
ONE_NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "replay")

#define CODEC(function, key)                                                                                           \
	nvml_return function(nvml_device d, unsigned *percent, unsigned *period_us);                                   \
	nvml_return function(nvml_device d, unsigned *percent, unsigned *period_us)                                    \
	{                                                                                                              \
		struct script s;                                                                                       \
		nvml_return r = begin(&s, #function, index_of(d));                                                     \
		*percent = (unsigned)reading(&s, key, index_of(d));                                                    \
		*period_us = 167000;                                                                                   \
		return r;                                                                                              \
	}
CODEC(nvmlDeviceGetEncoderUtilization, "enc")
CODEC(nvmlDeviceGetDecoderUtilization, "dec")

static unsigned long long bytes(const struct script *s, const char *name, int gpu)
{
	return (unsigned long long)reading(s, name, gpu) * 1048576;
}

// A MIG instance that the script does not hold any more.
static bool is_gone(const struct script *s, nvml_device d)
{
	int64_t id;
	const char *profile;
	size_t len;
	return instance_of(d) >= 0 && !mig_at(s, index_of(d), instance_of(d), &id, &profile, &len);
}

nvml_return nvmlDeviceGetMemoryInfo(nvml_device d, struct nvml_memory *m);
nvml_return nvmlDeviceGetMemoryInfo(nvml_device d, struct nvml_memory *m)
{
	struct script s;
	int gpu = index_of(d);
	nvml_return r = begin(&s, "nvmlDeviceGetMemoryInfo", gpu);
	unsigned long long parts = instance_of(d) < 0 ? 1 : MIGS_MAX; // an instance has its part
	m->total = bytes(&s, "mem_total_mib", gpu) / parts;
	m->used = (bytes(&s, "mem_used_mib", gpu) + bytes(&s, "mem_reserved_mib", gpu)) / parts;
	m->free = m->total - m->used;
	return is_gone(&s, d) ? NVML_INVALID_ARGUMENT : r;
}

nvml_return nvmlDeviceGetMemoryInfo_v2(nvml_device d, struct nvml_memory_v2 *m);
nvml_return nvmlDeviceGetMemoryInfo_v2(nvml_device d, struct nvml_memory_v2 *m)
{
	struct script s;
	int gpu = index_of(d);
	nvml_return r = begin(&s, "nvmlDeviceGetMemoryInfo_v2", gpu);
	if (m->version != NVML_MEMORY_V2_VERSION)
		return 25; // ARGUMENT_VERSION_MISMATCH
	unsigned long long parts = instance_of(d) < 0 ? 1 : MIGS_MAX;
	m->total = bytes(&s, "mem_total_mib", gpu) / parts;
	m->used = bytes(&s, "mem_used_mib", gpu) / parts;
	m->reserved = bytes(&s, "mem_reserved_mib", gpu) / parts;
	m->free = m->total - m->used - m->reserved;
	return is_gone(&s, d) ? NVML_INVALID_ARGUMENT : r;
}

// A function that gives a number for a selector, by its names; NULL: an invalid one.
#define BY_SELECTOR(function, ...)                                                                                     \
	nvml_return function(nvml_device d, int selector, unsigned *value);                                            \
	nvml_return function(nvml_device d, int selector, unsigned *value)                                             \
	{                                                                                                              \
		static const char *const names[4] = {__VA_ARGS__};                                                     \
		struct script s;                                                                                       \
		nvml_return r = begin(&s, #function, index_of(d));                                                     \
		if (selector < 0 || selector > 3 || !names[selector])                                                  \
			return NVML_INVALID_ARGUMENT;                                                                  \
		*value = (unsigned)reading(&s, names[selector], index_of(d));                                          \
		return r;                                                                                              \
	}
BY_SELECTOR(nvmlDeviceGetClockInfo, NULL, "sm_clock", "mem_clock", "video_clock")
BY_SELECTOR(nvmlDeviceGetMaxClockInfo, NULL, "max_sm_clock", "max_mem_clock", NULL)
BY_SELECTOR(nvmlDeviceGetTemperature, "temp")
BY_SELECTOR(nvmlDeviceGetTemperatureThreshold, "shutdown", "slowdown")

nvml_return nvmlDeviceGetPowerManagementLimitConstraints(nvml_device d, unsigned *min_mw, unsigned *max_mw);
nvml_return nvmlDeviceGetPowerManagementLimitConstraints(nvml_device d, unsigned *min_mw, unsigned *max_mw)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetPowerManagementLimitConstraints", index_of(d));
	*min_mw = (unsigned)reading(&s, "limit_min_mw", index_of(d));
	*max_mw = (unsigned)reading(&s, "limit_max_mw", index_of(d));
	return r;
}

nvml_return nvmlDeviceGetBAR1MemoryInfo(nvml_device d, struct nvml_bar1 *m);
nvml_return nvmlDeviceGetBAR1MemoryInfo(nvml_device d, struct nvml_bar1 *m)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetBAR1MemoryInfo", index_of(d));
	m->total = bytes(&s, "bar1_total_mib", index_of(d));
	m->used = bytes(&s, "bar1_used_mib", index_of(d));
	m->free = m->total - m->used;
	return r;
}

nvml_return nvmlDeviceGetRemappedRows(nvml_device d, unsigned *correctable, unsigned *uncorrectable, unsigned *pending,
                                      unsigned *failed);
nvml_return nvmlDeviceGetRemappedRows(nvml_device d, unsigned *correctable, unsigned *uncorrectable, unsigned *pending,
                                      unsigned *failed)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetRemappedRows", index_of(d));
	*correctable = (unsigned)reading(&s, "rows_correctable", index_of(d));
	*uncorrectable = (unsigned)reading(&s, "rows_uncorrectable", index_of(d));
	*pending = (unsigned)reading(&s, "rows_pending", index_of(d));
	*failed = (unsigned)reading(&s, "rows_failed", index_of(d));
	return r;
}

nvml_return nvmlDeviceGetGridLicensableFeatures_v4(nvml_device d, struct nvml_licenses *l);
nvml_return nvmlDeviceGetGridLicensableFeatures_v4(nvml_device d, struct nvml_licenses *l)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetGridLicensableFeatures_v4", index_of(d));
	*l = (struct nvml_licenses){.supported = 1, .n = 2};
	l->features[1].state = (unsigned)reading(&s, "licensed", index_of(d));
	return r;
}

nvml_return nvmlDeviceGetTotalEccErrors(nvml_device d, int error, int counter, unsigned long long *n);
nvml_return nvmlDeviceGetTotalEccErrors(nvml_device d, int error, int counter, unsigned long long *n)
{
	static const char *const names[2][2] = {{"sbe_vol", "sbe_agg"}, {"dbe_vol", "dbe_agg"}};
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetTotalEccErrors", index_of(d));
	*n = (unsigned long long)reading(&s, names[error != 0][counter != 0], index_of(d));
	return r;
}

// Known are the temperature of the memory and the fields with a default; NVLink data needs the scope of all links.
nvml_return nvmlDeviceGetFieldValues(nvml_device d, int n, struct nvml_field_value *values);
nvml_return nvmlDeviceGetFieldValues(nvml_device d, int n, struct nvml_field_value *values)
{
	static const unsigned known[] = {29, 30, 31, 38, 45, 52, 59,  74,  75,  76,
	                                 77, 78, 79, 80, 81, 82, 138, 139, 186, 230};
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetFieldValues", index_of(d));
	for (int i = 0; i < n; i++) {
		struct nvml_field_value *v = &values[i];
		char name[24];
		snprintf(name, sizeof name, "field%u", v->field_id);
		v->result = NVML_NOT_SUPPORTED;
		for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
			if (known[k] == v->field_id)
				v->result = (nvml_return)lookup(&s, "fail", name, index_of(d), NVML_SUCCESS);
		if ((v->field_id == 138 || v->field_id == 139) && v->scope_id != NVML_SCOPE_ALL_LINKS)
			v->result = NVML_INVALID_ARGUMENT;
		if (v->result != NVML_SUCCESS)
			continue;
		int64_t number = reading(&s, v->field_id == 82 ? "mem_temp" : name, index_of(d));
		// The types the driver uses: counters are 64 bits wide, the rest unsigned.
		v->value_type = (v->field_id >= 74 && v->field_id <= 81) || v->field_id == 138 || v->field_id == 139
		                        ? NVML_VALUE_ULONGLONG
		                        : NVML_VALUE_UINT;
		if (v->value_type == NVML_VALUE_ULONGLONG)
			v->value.ull = (unsigned long long)number;
		else
			v->value.ui = (unsigned)number;
	}
	return r;
}
