// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_descriptors.h"

#include <sys/resource.h>

void process_raise_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= PROCESS_DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < PROCESS_DESCRIPTORS ? limit.rlim_max : PROCESS_DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit); // on failure the servers have fewer places
}
