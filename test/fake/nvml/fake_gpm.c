// SPDX-License-Identifier: Apache-2.0
// GPM of the scripted NVML. A sample remembers where and in which order it was taken; metric N of two samples is the
// reading gpmN in thousandths, and 1 more for every number of a MIG instance's id. What the real library refuses, this
// one refuses: another version than plain 1, samples of two devices, samples in the wrong order.
#include <stdio.h>
#include <stdlib.h>

#include "test/fake/nvml/script.h"

#define INVALID_VERSION 25

struct nvml_gpm_sample {
	int gpu, instance;
	int64_t sequence; // 0: empty
};

static int64_t next_sequence(void)
{
	static _Atomic int64_t sequence;
	return ++sequence;
}

nvml_return nvmlGpmQueryDeviceSupport(nvml_device d, struct nvml_gpm_support *support);
nvml_return nvmlGpmQueryDeviceSupport(nvml_device d, struct nvml_gpm_support *support)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlGpmQueryDeviceSupport", index_of(d));
	if (support->version != NVML_GPM_VERSION)
		return INVALID_VERSION;
	support->supported = (unsigned)reading(&s, "gpm_supported", index_of(d));
	return r;
}

nvml_return nvmlGpmSampleAlloc(nvml_gpm_sample *sample);
nvml_return nvmlGpmSampleAlloc(nvml_gpm_sample *sample)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlGpmSampleAlloc", ANY_GPU);
	*sample = r == NVML_SUCCESS ? calloc(1, sizeof **sample) : NULL;
	return r;
}

nvml_return nvmlGpmSampleFree(nvml_gpm_sample sample);
nvml_return nvmlGpmSampleFree(nvml_gpm_sample sample)
{
	free(sample);
	return NVML_SUCCESS;
}

nvml_return nvmlGpmSampleGet(nvml_device d, nvml_gpm_sample sample);
nvml_return nvmlGpmSampleGet(nvml_device d, nvml_gpm_sample sample)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlGpmSampleGet", index_of(d));
	if (instance_of(d) >= 0)
		return NVML_INVALID_ARGUMENT; // instances are asked through their GPU
	*sample = (struct nvml_gpm_sample){.gpu = index_of(d), .instance = -1, .sequence = next_sequence()};
	return r;
}

nvml_return nvmlGpmMigSampleGet(nvml_device d, unsigned gpu_instance, nvml_gpm_sample sample);
nvml_return nvmlGpmMigSampleGet(nvml_device d, unsigned gpu_instance, nvml_gpm_sample sample)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlGpmMigSampleGet", index_of(d));
	int64_t id;
	const char *profile;
	size_t len;
	for (int k = 0; r == NVML_SUCCESS; k++) {
		if (!mig_at(&s, index_of(d), k, &id, &profile, &len))
			return NVML_NOT_FOUND;
		if (id == gpu_instance)
			break;
	}
	*sample = (struct nvml_gpm_sample){
	        .gpu = index_of(d), .instance = (int)gpu_instance, .sequence = next_sequence()};
	return r;
}

nvml_return nvmlGpmMetricsGet(struct nvml_gpm_metrics *m);
nvml_return nvmlGpmMetricsGet(struct nvml_gpm_metrics *m)
{
	struct script s;
	if (m->version != NVML_GPM_VERSION)
		return INVALID_VERSION;
	const struct nvml_gpm_sample *a = m->sample1, *b = m->sample2;
	if (m->n > NVML_GPM_METRICS_MAX || a->gpu != b->gpu || a->instance != b->instance || a->sequence == 0 ||
	    a->sequence >= b->sequence)
		return NVML_INVALID_ARGUMENT;
	nvml_return r = begin(&s, "nvmlGpmMetricsGet", a->gpu);
	for (unsigned i = 0; i < m->n; i++) {
		char name[24];
		snprintf(name, sizeof name, "gpm%u", m->metrics[i].id);
		m->metrics[i].result = (nvml_return)lookup(&s, "fail", name, a->gpu, NVML_SUCCESS);
		m->metrics[i].value = (double)lookup(&s, "set", name, a->gpu, m->metrics[i].id * 1000) / 1000 +
		                      (a->instance < 0 ? 0 : a->instance);
	}
	return r;
}
