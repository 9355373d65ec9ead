// SPDX-License-Identifier: Apache-2.0
#include "exporter/hpc_jobs.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_stamp.h"
#include "base/process/log.h"

#define PATH_BYTES 4200

struct gpu_jobs {
	struct file_stamp stamp; // of the version that was read last
	size_t n;
	char ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES];
};

struct hpc_jobs {
	const char *dir;
	struct log *log;
	struct buf text;
	struct gpu_jobs gpus[HPC_JOBS_GPUS_MAX];
};

struct hpc_jobs *hpc_jobs_new(const char *dir, struct log *log, struct err *e)
{
	struct hpc_jobs *j = calloc(1, sizeof *j);
	if (!j) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	j->dir = dir;
	j->log = log;
	buf_init(&j->text, HPC_JOBS_FILE_BYTES);
	return j;
}

void hpc_jobs_free(struct hpc_jobs *j)
{
	if (!j)
		return;
	buf_done(&j->text);
	free(j);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

// Appends the id text[0..len) unless it is one of ids[0..*n).
static int take_id(const char *text, size_t len, char ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES], int *n,
                   struct err *e)
{
	if (len >= HPC_JOBS_ID_BYTES)
		return err_set(e, ERR_LIMIT, "a job id of %zu bytes, the ceiling is %d", len, HPC_JOBS_ID_BYTES - 1);
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return err_set(e, ERR_INPUT, "a line is not a job id: expected printable ASCII without blanks");
	for (int i = 0; i < *n; i++)
		if (strlen(ids[i]) == len && memcmp(ids[i], text, len) == 0)
			return 0;
	if (*n == HPC_JOBS_PER_GPU_MAX)
		return err_set(e, ERR_LIMIT, "more than %d jobs", HPC_JOBS_PER_GPU_MAX);
	memcpy(ids[*n], text, len);
	ids[(*n)++][len] = '\0';
	return 0;
}

int hpc_jobs_parse(const char *text, size_t len, char ret_ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES], struct err *e)
{
	int n = 0;
	const char *end = text + len;
	for (const char *p = text, *stop; p < end; p = stop + 1) {
		stop = memchr(p, '\n', (size_t)(end - p));
		stop = stop ? stop : end;
		const char *last = stop;
		while (p < last && is_blank(*p))
			p++;
		while (last > p && is_blank(last[-1]))
			last--;
		if (last > p && take_id(p, (size_t)(last - p), ret_ids, &n, e) < 0)
			return -1;
	}
	return n;
}

// Reads one file whose stamp has changed to `stamp`.
static void read_file(struct hpc_jobs *j, struct gpu_jobs *g, const char *path, const struct file_stamp *stamp,
                      int64_t wall_ms)
{
	struct err e = {.kind = ERR_NONE};
	char ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES];
	buf_reset(&j->text);
	int n = buf_read_file(&j->text, path, &e);
	struct file_stamp now = file_stamp_of(path);
	if (!file_stamp_is_same(&now, stamp))
		return; // a script is writing it: it is read again the next time
	bool is_old = wall_ms - (stamp->mtime_s * 1000 + stamp->mtime_ns / 1000000) > HPC_JOBS_SETTLE_MS;
	if (is_old)
		g->stamp = *stamp;
	if (n == 0 && (n = hpc_jobs_parse(buf_str(&j->text), j->text.len, ids, &e)) >= 0) {
		g->n = (size_t)n;
		memcpy(g->ids, ids, (size_t)n * sizeof ids[0]);
		return;
	}
	if (is_old)
		LOG(j->log, LOG_WARNING, "Job file of a GPU not valid, keeping its last jobs", LOG_S("file", path),
		    LOG_S("err", e.msg));
}

void hpc_jobs_refresh(struct hpc_jobs *j, int64_t wall_ms)
{
	static const struct file_stamp none;
	for (int i = 0; i < HPC_JOBS_GPUS_MAX; i++) {
		struct gpu_jobs *g = &j->gpus[i];
		char path[PATH_BYTES];
		snprintf(path, sizeof path, "%s/%d", j->dir, i);
		struct file_stamp stamp = file_stamp_of(path);
		if (file_stamp_is_same(&stamp, &none)) {
			*g = (struct gpu_jobs){.n = 0};
			continue;
		}
		if (!file_stamp_is_same(&stamp, &g->stamp))
			read_file(j, g, path, &stamp, wall_ms);
	}
}

size_t hpc_jobs_count(const struct hpc_jobs *j, int32_t index)
{
	return index >= 0 && index < HPC_JOBS_GPUS_MAX ? j->gpus[index].n : 0;
}

const char *hpc_jobs_id(const struct hpc_jobs *j, int32_t index, size_t i)
{
	return j->gpus[index].ids[i];
}
