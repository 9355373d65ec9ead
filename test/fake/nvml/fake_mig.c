// SPDX-License-Identifier: Apache-2.0
// MIG of the scripted NVML: the instances of its `mig` lines.
#include "test/fake/nvml/script.h"

nvml_return nvmlDeviceGetMigMode(nvml_device d, unsigned *current, unsigned *pending);
nvml_return nvmlDeviceGetMigMode(nvml_device d, unsigned *current, unsigned *pending)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetMigMode", index_of(d));
	int64_t id;
	const char *profile;
	size_t len;
	*current = *pending = mig_at(&s, index_of(d), 0, &id, &profile, &len);
	return r;
}

nvml_return nvmlDeviceGetMaxMigDeviceCount(nvml_device d, unsigned *count);
nvml_return nvmlDeviceGetMaxMigDeviceCount(nvml_device d, unsigned *count)
{
	struct script s;
	*count = MIGS_MAX;
	return begin(&s, "nvmlDeviceGetMaxMigDeviceCount", index_of(d));
}

nvml_return nvmlDeviceGetMigDeviceHandleByIndex(nvml_device d, unsigned index, nvml_device *mig);
nvml_return nvmlDeviceGetMigDeviceHandleByIndex(nvml_device d, unsigned index, nvml_device *mig)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetMigDeviceHandleByIndex", index_of(d));
	int64_t id;
	const char *profile;
	size_t len;
	if (index >= MIGS_MAX || !mig_at(&s, index_of(d), (int)index, &id, &profile, &len))
		return NVML_NOT_FOUND;
	*mig = mig_handle_of(index_of(d), (int)index);
	return r;
}

nvml_return nvmlDeviceGetGpuInstanceId(nvml_device d, unsigned *id);
nvml_return nvmlDeviceGetGpuInstanceId(nvml_device d, unsigned *id)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetGpuInstanceId", index_of(d));
	int64_t number = 0;
	const char *profile;
	size_t len;
	if (instance_of(d) < 0 || !mig_at(&s, index_of(d), instance_of(d), &number, &profile, &len))
		return NVML_INVALID_ARGUMENT;
	*id = (unsigned)number;
	return r;
}

nvml_return nvmlDeviceGetAttributes_v2(nvml_device d, struct nvml_attributes *a);
nvml_return nvmlDeviceGetAttributes_v2(nvml_device d, struct nvml_attributes *a)
{
	struct script s;
	*a = (struct nvml_attributes){.gpu_slices = 2, .compute_slices = 2, .memory_mib = 20096};
	return begin(&s, "nvmlDeviceGetAttributes_v2", index_of(d));
}
