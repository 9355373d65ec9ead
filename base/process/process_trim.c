// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_trim.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_BLOCK_BYTES (128 * 1024) // glibc's own default to begin with

// Code that the loader patched (none of Debian's; a driver's library might) is no longer the file's.
static bool has_patched_code(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (const ElfW(Dyn) *)(info->dlpi_addr + p->p_vaddr); d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
				return true;
	}
	return false;
}

// Segments that can be written contain relocated pointers and data, which exist nowhere else: those stay. A read-only
// one is the file's own bytes, and comes back from the page cache.
static int trim_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (has_patched_code(info))
		return 0;
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

void process_return_large_blocks(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK_BYTES);
}
