// SPDX-License-Identifier: Apache-2.0
// The job file of a GPU: every id that is taken is printable, short and there once.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "exporter/hpc_jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES];
	struct err e = {.kind = ERR_NONE};
	int n = hpc_jobs_parse((const char *)data, size, ids, &e);
	assert(n <= HPC_JOBS_PER_GPU_MAX && (n >= 0 || e.msg[0]));
	for (int i = 0; i < n; i++) {
		assert(ids[i][0] && strlen(ids[i]) < HPC_JOBS_ID_BYTES);
		for (const char *p = ids[i]; *p; p++)
			assert(*p > ' ' && *p <= '~');
		for (int k = 0; k < i; k++)
			assert(strcmp(ids[i], ids[k]) != 0);
	}
	return 0;
}
