// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/exposition.h"
#include "base/num.h"

#define PROC_FILE_MAX 4096

// Word number `index` (0-based) of a line of words parted by single blanks, as a number; 0 when there is none.
static int64_t word_at(const char *line, int index)
{
	for (; index > 0 && line; index--) {
		line = strchr(line, ' ');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return 0;
	int64_t v = 0;
	return num_parse_i64(line, strcspn(line, " \n"), 0, INT64_MAX, &v, NULL) < 0 ? 0 : v;
}

void process_stat_read(struct process_stat *ret_stat)
{
	*ret_stat = (struct process_stat){0};
	struct buf b;
	buf_init(&b, PROC_FILE_MAX);
	if (buf_read_file(&b, "/proc/self/statm", NULL) == 0)
		ret_stat->resident_bytes = word_at(buf_str(&b), 1) * sysconf(_SC_PAGESIZE);
	buf_reset(&b);
	if (buf_read_file(&b, "/proc/self/stat", NULL) == 0) {
		const char *behind_name = strrchr(buf_str(&b), ')'); // the name may hold blanks
		struct timespec wall, boot;
		clock_gettime(CLOCK_REALTIME, &wall);
		clock_gettime(CLOCK_BOOTTIME, &boot);
		if (behind_name && behind_name[1] == ' ') // field 22, starttime: number 19 behind the name
			ret_stat->start_seconds = (double)(wall.tv_sec - boot.tv_sec) +
			                          (double)word_at(behind_name + 2, 19) / (double)sysconf(_SC_CLK_TCK);
	}
	buf_done(&b);
	struct rusage u;
	if (getrusage(RUSAGE_SELF, &u) == 0)
		ret_stat->cpu_seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		                        (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void process_stat_render(struct buf *out)
{
	struct process_stat s;
	process_stat_read(&s);
	exposition_family(out, "process_resident_memory_bytes", "Resident memory size in bytes.", METRIC_GAUGE);
	exposition_sample_i64(out, "process_resident_memory_bytes", NULL, 0, s.resident_bytes);
	exposition_family(out, "process_cpu_seconds_total", "User and system CPU time spent in seconds.",
	                  METRIC_COUNTER);
	exposition_sample_f64(out, "process_cpu_seconds_total", NULL, 0, s.cpu_seconds);
	exposition_family(out, "process_start_time_seconds", "Start time since the epoch in seconds.", METRIC_GAUGE);
	exposition_sample_f64(out, "process_start_time_seconds", NULL, 0, s.start_seconds);
}
