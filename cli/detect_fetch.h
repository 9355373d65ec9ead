// SPDX-License-Identifier: Apache-2.0
// Reads the past of the ranks of a job from Prometheus, for the detectors of insight/detect.h.
#ifndef GPUSCALE_CLI_DETECT_FETCH_H
#define GPUSCALE_CLI_DETECT_FETCH_H

#include <stdint.h>

struct connections;
struct detect;
struct err;

struct detect_fetch {
	const char *namespace_name, *pods; // the pods of the job: a namespace, and a regular expression of their names
	int64_t since_ms, step_ms;         // length of the period up to now, and time between two values
};

// Feeds the values of the job that fetch->pods names to `d`, in the order of time. A rank is a pod, or POD/GPU where
// GPUs of a pod have values of their own. Returns 0, or -1 and *e: as promql_query_range(), ERR_INPUT for quotes in the
// names, ERR_NOT_FOUND when there is no value at all, and as detect_add().
int detect_fetch(struct connections *c, const struct detect_fetch *fetch, struct detect *d, struct err *e);

#endif
