// SPDX-License-Identifier: Apache-2.0
// Which jobs of a batch system such as Slurm use which GPU: a folder with one file per GPU, named by its index ("0"),
// or per MIG instance, named by the GPU's index and the id of the instance ("0.1"), one job id on each line. Prolog and
// epilog scripts write the files (dcgm-exporter: internal/pkg/transformation/hpc.go). Call every function from one
// thread.
#ifndef GPUSCALE_EXPORTER_HPC_JOBS_H
#define GPUSCALE_EXPORTER_HPC_JOBS_H

#include <stddef.h>
#include <stdint.h>

struct device;
struct err;
struct hpc_jobs;
struct log;

#define HPC_JOBS_PER_GPU_MAX 16
#define HPC_JOBS_ID_BYTES    64
#define HPC_JOBS_FILE_BYTES  4096
#define HPC_JOBS_QUIET_MS    1000
#define HPC_JOBS_NAME_BYTES  32

// Prepares to read the folder `dir`, which need not exist yet; `dir` and `log` (may be NULL) are not owned. Returns
// NULL and fills `e` if memory is exhausted.
struct hpc_jobs *hpc_jobs_new(const char *dir, struct log *log, struct err *e);
void hpc_jobs_free(struct hpc_jobs *j);

// Reads the files of devices[0..n) that have changed since the last call. An instance without a file has the jobs of
// its GPU. A file that changes while it is read, or that contains anything but at most HPC_JOBS_PER_GPU_MAX printable
// ids, keeps the jobs that were read before; the second case is logged once per version of the file. The same applies
// to a file that an unprivileged user may have placed: a symbolic link, a hard link, a file whose owner is not root,
// this user or the owner of the folder, and any file of a folder in which every user may replace files. A file that is
// gone or empty means that the GPU has no job. `wall_ms` is the current time: a file that was written within the last
// HPC_JOBS_QUIET_MS is read again the next time, because time stamps of files are too coarse to show a second change.
void hpc_jobs_refresh(struct hpc_jobs *j, const struct device *devices, size_t n, int64_t wall_ms);
// The number of jobs of device `i` of the last refresh; their ids are hpc_jobs_id(j, i, 0 ..), valid until the next
// one.
size_t hpc_jobs_count(const struct hpc_jobs *j, size_t i);
const char *hpc_jobs_id(const struct hpc_jobs *j, size_t i, size_t k);
// Decodes text[0..len) into `ret_ids`, at most HPC_JOBS_PER_GPU_MAX ids, each once. Blank lines and spaces around an id
// are skipped. Returns their number, or -1 and fills `e` (ERR_INPUT, ERR_LIMIT).
int hpc_jobs_parse(const char *text, size_t len, char ret_ids[HPC_JOBS_PER_GPU_MAX][HPC_JOBS_ID_BYTES], struct err *e);

#endif
