// SPDX-License-Identifier: Apache-2.0
#include "exporter/nvml/nvml_api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/file_open.h"

#define NAMES_MAX 3

struct symbol {
	size_t offset;
	bool required;
	const char *names[NAMES_MAX]; // newest first
};
#define SYMBOL(member, need, ...)                                                                                      \
	{                                                                                                              \
		offsetof(struct nvml_api, member), need,                                                               \
		{                                                                                                      \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}

// All variants in a row have the same arguments. memory and memory_v2 differ, so they have two rows.
static const struct symbol symbols[] = {
        SYMBOL(init, true, "nvmlInit_v2", "nvmlInit"),
        SYMBOL(shutdown, false, "nvmlShutdown"),
        SYMBOL(driver_version, false, "nvmlSystemGetDriverVersion"),
        SYMBOL(error_string, false, "nvmlErrorString"),
        SYMBOL(count, true, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
        SYMBOL(handle_by_index, true, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
        SYMBOL(uuid, true, "nvmlDeviceGetUUID"),
        SYMBOL(name, false, "nvmlDeviceGetName"),
        SYMBOL(minor, false, "nvmlDeviceGetMinorNumber"),
        SYMBOL(pci, false, "nvmlDeviceGetPciInfo_v3"),
        SYMBOL(utilization, false, "nvmlDeviceGetUtilizationRates"),
        SYMBOL(encoder, false, "nvmlDeviceGetEncoderUtilization"),
        SYMBOL(decoder, false, "nvmlDeviceGetDecoderUtilization"),
        SYMBOL(memory, false, "nvmlDeviceGetMemoryInfo"),
        SYMBOL(memory_v2, false, "nvmlDeviceGetMemoryInfo_v2"),
        SYMBOL(power, false, "nvmlDeviceGetPowerUsage"),
        SYMBOL(power_limit, false, "nvmlDeviceGetPowerManagementLimit"),
        SYMBOL(power_limit_default, false, "nvmlDeviceGetPowerManagementDefaultLimit"),
        SYMBOL(power_limit_enforced, false, "nvmlDeviceGetEnforcedPowerLimit"),
        SYMBOL(power_limit_range, false, "nvmlDeviceGetPowerManagementLimitConstraints"),
        SYMBOL(energy, false, "nvmlDeviceGetTotalEnergyConsumption"),
        SYMBOL(temperature, false, "nvmlDeviceGetTemperature"),
        SYMBOL(threshold, false, "nvmlDeviceGetTemperatureThreshold"),
        SYMBOL(clock, false, "nvmlDeviceGetClockInfo"),
        SYMBOL(max_clock, false, "nvmlDeviceGetMaxClockInfo"),
        SYMBOL(pstate, false, "nvmlDeviceGetPerformanceState"),
        SYMBOL(fan_speed, false, "nvmlDeviceGetFanSpeed"),
        SYMBOL(event_reasons, false, "nvmlDeviceGetCurrentClocksEventReasons",
               "nvmlDeviceGetCurrentClocksThrottleReasons"),
        SYMBOL(pcie_replay, false, "nvmlDeviceGetPcieReplayCounter"),
        SYMBOL(link_gen, false, "nvmlDeviceGetCurrPcieLinkGeneration"),
        SYMBOL(link_width, false, "nvmlDeviceGetCurrPcieLinkWidth"),
        SYMBOL(max_link_gen, false, "nvmlDeviceGetMaxPcieLinkGeneration"),
        SYMBOL(max_link_width, false, "nvmlDeviceGetMaxPcieLinkWidth"),
        SYMBOL(bar1, false, "nvmlDeviceGetBAR1MemoryInfo"),
        SYMBOL(virtualization, false, "nvmlDeviceGetVirtualizationMode"),
        SYMBOL(licenses, false, "nvmlDeviceGetGridLicensableFeatures_v4"),
        SYMBOL(remapped_rows, false, "nvmlDeviceGetRemappedRows"),
        SYMBOL(ecc_errors, false, "nvmlDeviceGetTotalEccErrors"),
        SYMBOL(field_values, false, "nvmlDeviceGetFieldValues"),
        SYMBOL(compute_processes, false, "nvmlDeviceGetComputeRunningProcesses_v3",
               "nvmlDeviceGetComputeRunningProcesses_v2"),
        SYMBOL(graphics_processes, false, "nvmlDeviceGetGraphicsRunningProcesses_v3",
               "nvmlDeviceGetGraphicsRunningProcesses_v2"),
        SYMBOL(mig_mode, false, "nvmlDeviceGetMigMode"),
        SYMBOL(mig_count_max, false, "nvmlDeviceGetMaxMigDeviceCount"),
        SYMBOL(mig_handle, false, "nvmlDeviceGetMigDeviceHandleByIndex"),
        SYMBOL(gpu_instance_id, false, "nvmlDeviceGetGpuInstanceId"),
        SYMBOL(attributes, false, "nvmlDeviceGetAttributes_v2"),
        SYMBOL(gpm_support, false, "nvmlGpmQueryDeviceSupport"),
        SYMBOL(gpm_sample_alloc, false, "nvmlGpmSampleAlloc"),
        SYMBOL(gpm_sample_free, false, "nvmlGpmSampleFree"),
        SYMBOL(gpm_sample_get, false, "nvmlGpmSampleGet"),
        SYMBOL(gpm_mig_sample_get, false, "nvmlGpmMigSampleGet"),
        SYMBOL(gpm_metrics_get, false, "nvmlGpmMetricsGet"),
        SYMBOL(event_set_create, false, "nvmlEventSetCreate"),
        SYMBOL(event_set_free, false, "nvmlEventSetFree"),
        SYMBOL(register_events, false, "nvmlDeviceRegisterEvents"),
        SYMBOL(event_wait, false, "nvmlEventSetWait_v2"),
};

int nvml_api_load(struct nvml_api *api, const char *library, struct err *e)
{
	*api = (struct nvml_api){0};
	if (strchr(library, '/') && file_check_regular(library, e) < 0)
		return err_wrap(e, "cannot load NVML");
	api->library = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (!api->library)
		return err_set(e, ERR_NOT_FOUND, "cannot load NVML: %s", dlerror());
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		const struct symbol *s = &symbols[i];
		void *found = NULL;
		for (size_t k = 0; k < NAMES_MAX && s->names[k] && !found; k++)
			found = dlsym(api->library, s->names[k]);
		if (!found && s->required) {
			nvml_api_unload(api);
			return err_set(e, ERR_PROTOCOL, "%s has no function %s: is it NVML?", library, s->names[0]);
		}
		// ISO C does not convert void * to a function pointer; POSIX guarantees equal representations.
		memcpy((char *)api + s->offset, &found, sizeof found);
	}
	return 0;
}

void nvml_api_unload(struct nvml_api *api)
{
	if (api->library)
		dlclose(api->library);
	*api = (struct nvml_api){0};
}

const char *nvml_api_error(const struct nvml_api *api, nvml_return r, char *scratch, size_t size)
{
	const char *text = api->error_string ? api->error_string(r) : NULL;
	if (text)
		return text;
	snprintf(scratch, size, "error %d", r);
	return scratch;
}
