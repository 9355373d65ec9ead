// SPDX-License-Identifier: Apache-2.0
// XID events of the scripted NVML: a set remembers the number of the last one it handed out, and who registered.
#include <stdlib.h>

#include "test/fake/nvml/script.h"

struct nvml_event_set {
	int64_t last;
	bool registered[GPUS_MAX];
};

nvml_return nvmlEventSetCreate(nvml_event_set *set);
nvml_return nvmlEventSetCreate(nvml_event_set *set)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlEventSetCreate", ANY_GPU);
	*set = r == NVML_SUCCESS ? calloc(1, sizeof **set) : NULL;
	return r;
}

nvml_return nvmlEventSetFree(nvml_event_set set);
nvml_return nvmlEventSetFree(nvml_event_set set)
{
	free(set);
	return NVML_SUCCESS;
}

nvml_return nvmlDeviceRegisterEvents(nvml_device d, unsigned long long mask, nvml_event_set set);
nvml_return nvmlDeviceRegisterEvents(nvml_device d, unsigned long long mask, nvml_event_set set)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceRegisterEvents", index_of(d));
	set->registered[index_of(d)] = r == NVML_SUCCESS && (mask & NVML_EVENT_XID);
	return r;
}

nvml_return nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms);
nvml_return nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms)
{
	for (unsigned waited = 0;; waited += STEP_MS) {
		struct script s;
		nvml_return r = begin(&s, "nvmlEventSetWait_v2", ANY_GPU);
		if (r != NVML_SUCCESS)
			return r;
		struct words w;
		for (const char *p = s.text; (p = next_line(p, &w));) {
			if (w.n < 4 || !word_is(&w, 0, "xid") || word_number(&w, 1) != set->last + 1)
				continue;
			set->last++;
			int64_t gpu = word_number(&w, 2);
			if (gpu >= GPUS_MAX || !set->registered[gpu])
				continue;
			*event = (struct nvml_event){.device = handle_of((int)gpu),
			                             .type = NVML_EVENT_XID,
			                             .data = (unsigned long long)word_number(&w, 3)};
			return NVML_SUCCESS;
		}
		if (waited >= timeout_ms)
			return NVML_TIMEOUT;
		pause_ms(STEP_MS);
	}
}
