// SPDX-License-Identifier: Apache-2.0
#include "exporter/nvml/nvml_gpm.h"

#define PERCENT   0.01
#define MIB_PER_S 1048576.0
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

// GPM metric ids: NVML API reference, nvmlGpmMetricId_t. DCGM fields: DCGM's own use of GPM (DcgmGpmManager.cpp).
static const struct {
	enum field field;
	unsigned id;
	double scale;
} rows[] = {
        {FIELD_GR_ENGINE_ACTIVE, 1, PERCENT},
        {FIELD_SM_ACTIVE, 2, PERCENT},
        {FIELD_SM_OCCUPANCY, 3, PERCENT},
        {FIELD_PIPE_INT_ACTIVE, 4, PERCENT},
        {FIELD_PIPE_TENSOR_ACTIVE, 5, PERCENT},
        {FIELD_PIPE_TENSOR_DFMA_ACTIVE, 6, PERCENT},
        {FIELD_PIPE_TENSOR_HMMA_ACTIVE, 7, PERCENT},
        {FIELD_PIPE_TENSOR_IMMA_ACTIVE, 9, PERCENT},
        {FIELD_DRAM_ACTIVE, 10, PERCENT},
        {FIELD_PIPE_FP64_ACTIVE, 11, PERCENT},
        {FIELD_PIPE_FP32_ACTIVE, 12, PERCENT},
        {FIELD_PIPE_FP16_ACTIVE, 13, PERCENT},
        {FIELD_PCIE_TX_BYTES, 20, MIB_PER_S},
        {FIELD_PCIE_RX_BYTES, 21, MIB_PER_S},
        {FIELD_NVLINK_RX_BYTES, 60, MIB_PER_S},
        {FIELD_NVLINK_TX_BYTES, 61, MIB_PER_S},
};
_Static_assert(COUNT(rows) <= NVML_GPM_METRICS_MAX, "all are asked for at once");

static nvml_return prepare(const struct nvml_api *api, nvml_device gpu, struct nvml_gpm *g)
{
	if (!api->gpm_support || !api->gpm_sample_alloc || !api->gpm_sample_free || !api->gpm_metrics_get)
		return NVML_FUNCTION_NOT_FOUND;
	struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
	nvml_return r = api->gpm_support(gpu, &support);
	if (r != NVML_SUCCESS)
		return r;
	g->asked = true;
	g->supported = support.supported != 0;
	if (!g->supported)
		return NVML_NOT_SUPPORTED;
	r = api->gpm_sample_alloc(&g->previous);
	if (r == NVML_SUCCESS)
		r = api->gpm_sample_alloc(&g->current);
	if (r != NVML_SUCCESS)
		nvml_gpm_done(api, g);
	return r;
}

static nvml_return take(const struct nvml_api *api, nvml_device gpu, int instance, nvml_gpm_sample sample)
{
	if (instance == NVML_WHOLE_GPU)
		return api->gpm_sample_get ? api->gpm_sample_get(gpu, sample) : NVML_FUNCTION_NOT_FOUND;
	return api->gpm_mig_sample_get ? api->gpm_mig_sample_get(gpu, (unsigned)instance, sample)
	                               : NVML_FUNCTION_NOT_FOUND;
}

static void put(struct device_sample *s, enum field f, double v, double scale)
{
	double scaled = v * scale;
	if (!family_is_plausible(f, scaled))
		s->implausible++; // a library with another layout
	else
		sample_set(s, f, family_of(f)->kind == FIELD_DOUBLE && scaled > 1 ? 1 : scaled);
}

static nvml_return compare(const struct nvml_api *api, struct nvml_gpm *g)
{
	struct nvml_gpm_metrics m = {
	        .version = NVML_GPM_VERSION, .n = COUNT(rows), .sample1 = g->previous, .sample2 = g->current};
	// A library that skips a metric leaves its result unchanged: initialize it with an error, so that 0 is not
	// taken for a value.
	for (size_t i = 0; i < COUNT(rows); i++) {
		m.metrics[i].id = rows[i].id;
		m.metrics[i].result = NVML_NOT_SUPPORTED;
	}
	nvml_return r = api->gpm_metrics_get(&m);
	g->values = (struct device_sample){.lost = false};
	for (size_t i = 0; r == NVML_SUCCESS && i < COUNT(rows); i++)
		if (m.metrics[i].result == NVML_SUCCESS)
			put(&g->values, rows[i].field, m.metrics[i].value, rows[i].scale);
	return r;
}

nvml_return nvml_gpm_read(const struct nvml_api *api, nvml_device gpu, int instance, struct nvml_gpm *g,
                          int64_t mono_ms, struct device_sample *s)
{
	if (g->asked && !g->supported)
		return NVML_NOT_SUPPORTED;
	nvml_return r = g->previous ? NVML_SUCCESS : prepare(api, gpu, g);
	if (r != NVML_SUCCESS)
		return r;
	int64_t apart_ms = mono_ms - g->previous_ms;
	if (g->seeded && apart_ms >= 0 && apart_ms < NVML_GPM_APART_MIN_MS) {
		sample_add(s, &g->values);
		return NVML_SUCCESS;
	}
	r = take(api, gpu, instance, g->current);
	if (r != NVML_SUCCESS) {
		g->seeded = false;
		g->values = (struct device_sample){.lost = false};
		return r;
	}
	if (g->seeded && apart_ms >= NVML_GPM_APART_MIN_MS && apart_ms <= NVML_GPM_APART_MAX_MS)
		r = compare(api, g);
	else
		g->values = (struct device_sample){.lost = false};
	nvml_gpm_sample newest = g->current;
	g->current = g->previous;
	g->previous = newest;
	g->previous_ms = mono_ms;
	g->seeded = true;
	sample_add(s, &g->values);
	return r;
}

void nvml_gpm_done(const struct nvml_api *api, struct nvml_gpm *g)
{
	if (g->previous)
		api->gpm_sample_free(g->previous);
	if (g->current)
		api->gpm_sample_free(g->current);
	*g = (struct nvml_gpm){.asked = false};
}
