// SPDX-License-Identifier: Apache-2.0
#include "exporter/hpc_jobs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file_open.h"
#include "base/process/log.h"
#include "exporter/device.h"

#define BLANKS " \t\r"

struct folder {
	int fd; // -1: cannot be opened
	struct stat st;
};

// The jobs of a GPU or instance, from the file of this name.
struct gpu_jobs {
	char name[HPC_JOBS_NAME_BYTES];
	bool has_file;
	struct file_stamp stamp; // stamp of the version that was read last
	size_t n;
	char ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES];
};

struct hpc_jobs {
	const char *dir;
	struct log *log;
	struct buf text;
	struct gpu_jobs gpus[DEVICES_MAX]; // in the order of the devices
	size_t from[DEVICES_MAX];          // whose jobs a device has: its own, or those of its GPU
};

struct hpc_jobs *hpc_jobs_new(const char *dir, struct log *log, struct err *e)
{
	struct hpc_jobs *j = err_calloc(sizeof *j, e);
	if (!j)
		return NULL;
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

// Appends the id text[0..len) unless it is one of ids[0..*n).
static int take_id(const char *text, size_t len, char ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES], int *n,
                   struct err *e)
{
	if (len >= HPC_JOBS_ID_BYTES)
		return err_set(e, ERR_LIMIT, "a job id of %zu bytes, the limit is %d", len, HPC_JOBS_ID_BYTES - 1);
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return err_set(e, ERR_INPUT, "a line is not a job id: expected printable ASCII without spaces");
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
		while (p < last && memchr(BLANKS, *p, strlen(BLANKS)))
			p++;
		while (last > p && memchr(BLANKS, last[-1], strlen(BLANKS)))
			last--;
		if (last > p && take_id(p, (size_t)(last - p), ret_ids, &n, e) < 0)
			return -1;
	}
	return n;
}

// A user who may write in the folder must not be able to show the contents of a file that only the exporter may read: a
// symbolic link is not followed, and a hard link to a file of root has more than one name.
static int check_owner(const struct stat *dir, const struct stat *st, struct err *e)
{
	if (dir->st_mode & S_IWOTH && !(dir->st_mode & S_ISVTX))
		return err_set(e, ERR_INPUT,
		               "every user may replace files of the folder: remove the right, or set its "
		               "sticky bit");
	if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != dir->st_uid)
		return err_set(e, ERR_INPUT,
		               "expected a file of root, of the exporter's user or of the owner of the folder, found "
		               "one of the user %lu",
		               (unsigned long)st->st_uid);
	if (st->st_nlink > 1)
		return err_set(e, ERR_INPUT, "expected a file with one name, found a hard link to a file with %lu",
		               (unsigned long)st->st_nlink);
	return 0;
}

static int read_ids(struct hpc_jobs *j, const struct folder *dir, const char *name, struct stat *ret_st,
                    char ret_ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES], struct err *e)
{
	int fd = file_open_in(dir->fd, name, ret_st, e);
	if (fd < 0)
		return -1;
	if (check_owner(&dir->st, ret_st, e) < 0) {
		close(fd);
		return -1;
	}
	buf_reset(&j->text);
	if (buf_read_opened(&j->text, fd, name, e) < 0)
		return -1;
	return hpc_jobs_parse(buf_str(&j->text), j->text.len, ret_ids, e);
}

// Reads one file whose stamp has changed to that of `st`.
static void read_file(struct hpc_jobs *j, struct gpu_jobs *g, const struct folder *dir, const char *name,
                      const struct stat *st, int64_t wall_ms)
{
	struct err e = {.kind = ERR_NONE};
	char ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES];
	const struct file_stamp stamp = file_stamp_from(st);
	struct stat opened = *st, after;
	int n = read_ids(j, dir, name, &opened, ids, &e);
	if (fstatat(dir->fd, name, &after, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	const struct file_stamp now[2] = {file_stamp_from(&opened), file_stamp_from(&after)};
	if (!file_stamp_is_same(&now[0], &stamp) || !file_stamp_is_same(&now[1], &stamp))
		return; // a script is writing it: it is read again the next time
	bool is_old = wall_ms - (stamp.mtime_s * 1000 + stamp.mtime_ns / 1000000) > HPC_JOBS_QUIET_MS;
	if (is_old)
		g->stamp = stamp;
	if (n >= 0) {
		g->n = (size_t)n;
		memcpy(g->ids, ids, (size_t)n * sizeof ids[0]);
	} else if (is_old) {
		LOG(j->log, LOG_WARNING, "Job file of a GPU not valid, keeping its last jobs", LOG_S("folder", j->dir),
		    LOG_S("file", name), LOG_S("err", e.msg));
	}
}

static void refresh_gpu(struct hpc_jobs *j, const struct folder *dir, size_t i, const struct device *d, int64_t wall_ms)
{
	struct gpu_jobs *g = &j->gpus[i];
	char name[HPC_JOBS_NAME_BYTES];
	struct stat st;
	snprintf(name, sizeof name, "%" PRId32 "%s%s", d->index, d->mig_id[0] ? "." : "", d->mig_id);
	bool has_file = dir->fd >= 0 && fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!has_file || strcmp(name, g->name) != 0)
		*g = (struct gpu_jobs){.n = 0};
	g->has_file = has_file;
	memcpy(g->name, name, sizeof name);
	if (!has_file)
		return;
	const struct file_stamp stamp = file_stamp_from(&st);
	if (!file_stamp_is_same(&stamp, &g->stamp))
		read_file(j, g, dir, name, &st, wall_ms);
}

void hpc_jobs_refresh(struct hpc_jobs *j, const struct device *devices, size_t n, int64_t wall_ms)
{
	struct folder dir = {.fd = open(j->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (dir.fd >= 0 && fstat(dir.fd, &dir.st) < 0) {
		close(dir.fd);
		dir.fd = -1;
	}
	size_t gpu = 0;
	for (size_t i = 0; i < n; i++) {
		refresh_gpu(j, &dir, i, &devices[i], wall_ms);
		gpu = device_is_instance(devices, i) ? gpu : i;
		j->from[i] = j->gpus[i].has_file ? i : gpu;
	}
	if (dir.fd >= 0)
		close(dir.fd);
}

size_t hpc_jobs_count(const struct hpc_jobs *j, size_t i)
{
	return j->gpus[j->from[i]].n;
}

const char *hpc_jobs_id(const struct hpc_jobs *j, size_t i, size_t k)
{
	return j->gpus[j->from[i]].ids[k];
}
