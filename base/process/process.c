// SPDX-License-Identifier: Apache-2.0
#include "base/process/process.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/exposition.h"

#define LARGE_BLOCK_BYTES (128 * 1024) // glibc's own default to begin with
#define PROC_FILE_MAX     4096
#define WORD_MAX          (INT64_MAX / (1024 * 1024)) // in bytes, of pages, it still fits

// ---- memory ----

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

// ---- descriptors ----

void process_raise_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= PROCESS_DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < PROCESS_DESCRIPTORS ? limit.rlim_max : PROCESS_DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit); // on failure the servers have fewer places
}

// ---- statistics ----

// Word number `index` (0-based) of a line of words parted by single spaces, as a number; -1 when there is none.
static int64_t word_at(const char *line, int index)
{
	for (; index > 0 && line; index--) {
		line = strchr(line, ' ');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return -1;
	int64_t v = 0;
	return num_parse_i64(line, strcspn(line, " \n"), 0, WORD_MAX, &v, NULL) < 0 ? -1 : v;
}

void process_stat_read(struct process_stat *ret_stat)
{
	*ret_stat = (struct process_stat){-1, -1, -1};
	int64_t pages = -1;
	struct buf b;
	buf_init(&b, PROC_FILE_MAX);
	if (buf_read_file(&b, "/proc/self/statm", NULL) == 0)
		pages = word_at(buf_str(&b), 1);
	if (pages >= 0)
		ret_stat->resident_bytes = pages * sysconf(_SC_PAGESIZE);
	buf_reset(&b);
	if (buf_read_file(&b, "/proc/self/stat", NULL) == 0) {
		const char *behind_name = strrchr(buf_str(&b), ')'); // the name may contain spaces
		struct timespec wall, boot;
		clock_gettime(CLOCK_REALTIME, &wall);
		clock_gettime(CLOCK_BOOTTIME, &boot);
		// field 22, starttime: number 19 behind the name
		int64_t ticks = behind_name && behind_name[1] == ' ' ? word_at(behind_name + 2, 19) : -1;
		if (ticks >= 0)
			ret_stat->start_seconds =
			        (double)(wall.tv_sec - boot.tv_sec) + (double)ticks / (double)sysconf(_SC_CLK_TCK);
	}
	buf_done(&b);
	struct rusage u;
	if (getrusage(RUSAGE_SELF, &u) == 0)
		ret_stat->cpu_seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		                        (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

// An unknown value is left out: size 0 or a start in 1970 would be wrong.
static void render(struct buf *out, const char *name, const char *help, enum metric_type type, double value)
{
	if (value < 0)
		return;
	exposition_family(out, name, help, type);
	exposition_sample_f64(out, name, NULL, 0, value);
}

void process_stat_render(struct buf *out)
{
	struct process_stat s;
	process_stat_read(&s);
	render(out, "process_resident_memory_bytes", "Resident memory size in bytes.", METRIC_GAUGE,
	       (double)s.resident_bytes);
	render(out, "process_cpu_seconds_total", "User and system CPU time spent in seconds.", METRIC_COUNTER,
	       s.cpu_seconds);
	render(out, "process_start_time_seconds", "Start time since the epoch in seconds.", METRIC_GAUGE,
	       s.start_seconds);
}
