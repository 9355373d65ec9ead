// SPDX-License-Identifier: Apache-2.0
#include "base/process_trim.h"

#include <link.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// Segments that can be written hold relocated pointers and data, which exist nowhere else: those stay. A read-only one
// is the file's own bytes, and comes back from the page cache.
static int trim_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	uintptr_t page = *(const uintptr_t *)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || (p->p_flags & PF_W) || p->p_filesz == 0)
			continue;
		uintptr_t start = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		uintptr_t end = (info->dlpi_addr + p->p_vaddr + p->p_filesz + page - 1) & ~(page - 1);
		(void)madvise((void *)start, end - start, MADV_DONTNEED); // refused: the pages just stay
	}
	return 0;
}

void process_trim(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	malloc_trim(0);
	dl_iterate_phdr(trim_object, &page);
}
