// SPDX-License-Identifier: Apache-2.0
// Process lists of the scripted NVML. On a GPU that is split they belong to its first instance.
#include "test/fake/nvml/script.h"

#define INSUFFICIENT_SIZE 7

static nvml_return list(nvml_device d, const char *function, int repeated, unsigned *n, struct nvml_process_info *out)
{
	struct script s;
	nvml_return r = begin(&s, function, index_of(d));
	struct words w;
	unsigned room = *n;
	int64_t id = 0;
	const char *profile;
	size_t len;
	bool split = mig_at(&s, index_of(d), 0, &id, &profile, &len);
	*n = 0;
	for (const char *p = s.text; (p = next_line(p, &w));) {
		if (w.n < 4 || !word_is(&w, 0, "process") || word_number(&w, 2) != index_of(d))
			continue;
		// The second line of a process puts it into the second list.
		int earlier = 0;
		struct words v;
		for (const char *q = s.text; (q = next_line(q, &v)) && q < p;)
			earlier += v.n >= 4 && word_is(&v, 0, "process") && word_number(&v, 1) == word_number(&w, 1);
		if (earlier != repeated)
			continue;
		if (*n == room)
			return INSUFFICIENT_SIZE;
		out[(*n)++] = (struct nvml_process_info){
		        .pid = (unsigned)word_number(&w, 1),
		        .memory_bytes = word_is(&w, 3, "unknown") ? NVML_MEMORY_NOT_AVAILABLE
		                                                  : (unsigned long long)word_number(&w, 3) * 1048576,
		        .gpu_instance = split ? (unsigned)id : NVML_NO_INSTANCE,
		        .compute_instance = NVML_NO_INSTANCE};
	}
	return r;
}

nvml_return nvmlDeviceGetComputeRunningProcesses_v3(nvml_device d, unsigned *n, struct nvml_process_info *out);
nvml_return nvmlDeviceGetComputeRunningProcesses_v3(nvml_device d, unsigned *n, struct nvml_process_info *out)
{
	return list(d, "nvmlDeviceGetComputeRunningProcesses_v3", 0, n, out);
}

nvml_return nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device d, unsigned *n, struct nvml_process_info *out);
nvml_return nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device d, unsigned *n, struct nvml_process_info *out)
{
	return list(d, "nvmlDeviceGetGraphicsRunningProcesses_v3", 1, n, out);
}
