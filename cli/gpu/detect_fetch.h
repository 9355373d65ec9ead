// SPDX-License-Identifier: Apache-2.0
// Reads the past of the ranks of a job from Prometheus, for the detectors of insight/detect.h.
#ifndef GPUSCALE_CLI_GPU_DETECT_FETCH_H
#define GPUSCALE_CLI_GPU_DETECT_FETCH_H

#include <stdint.h>

struct detect;
struct err;
struct prometheus_session;

#define DETECT_EVERY_JOB "*"

struct detect_fetch {
	const char *namespace_name;
	const char *pods;          // regular expression of the pods of one job; NULL: by `job`
	const char *job;           // name of a job (insight/training_ranks.h); DETECT_EVERY_JOB: each
	int64_t since_ms, step_ms; // length of the period up to now, and time between two values
};

// Feeds the values of the jobs to `d`, in the order of time. With fetch->pods, a rank is a pod, or POD/GPU where GPUs
// of a pod have values of their own; else it is the rank in its job, or RANK/GPU, and the job is NAMESPACE/JOB. Returns
// 0, or -1 and *e: as promql_ask(), ERR_INPUT for quotes in the names, ERR_NOT_FOUND without a value at
// all, and as detect_add().
int detect_fetch(struct prometheus_session *session, const struct detect_fetch *fetch, struct detect *d, struct err *e);

#endif
