// SPDX-License-Identifier: Apache-2.0
// The workloads that use GPUs, each with its measures, gathered from responses of Prometheus. A workload is a pod; a
// GPU without a pod is a workload of its own, called HOST/gpuN.
#ifndef GPUSCALE_INSIGHT_WORKLOAD_SET_H
#define GPUSCALE_INSIGHT_WORKLOAD_SET_H

#include <stddef.h>

#include "base/arena.h"
#include "insight/training_ranks.h"
#include "insight/verdict.h"

struct err;
struct promql_series;

#define WORKLOADS_MAX      20000 // devices with their holders
#define WORKLOAD_BYTES_MAX ((size_t)64 * 1024 * 1024)

// A GPU or MIG instance, used by one workload. A shared GPU has one entry per holder.
struct workload_gpu {
	const char *uuid, *instance; // instance "": a whole GPU
	const char *model, *host;
	size_t workload; // index
	int holders;     // workloads that use this device
	double values[MEASURE__COUNT];
};

struct workload {
	const char *namespace_name; // "": the GPU has no pod
	const char *name;
	const char *job, *rank; // training_ranks.h; "" without a pod
	size_t n_gpus;
	double values[MEASURE__COUNT]; // NaN: missing
	const struct verdict_row *row;
};

struct workload_set {
	struct workload_gpu *gpus; // ordered by UUID and instance
	size_t n_gpus, cap_gpus;
	struct workload *workloads; // ordered by namespace and name
	size_t n, cap;
	struct arena names;
};

void workload_set_init(struct workload_set *s);
void workload_set_done(struct workload_set *s);
// Adds the device of a series of verdict_query_owners() to a struct workload_set. -1 and *e: ERR_LIMIT, ERR_INTERNAL.
int workload_set_add_owner(void *set, const struct promql_series *series, struct err *e);
// Orders the set once every owner is added, and joins the devices of a workload.
int workload_set_index(struct workload_set *s, struct err *e);
// The following need an indexed set. Series of other devices and pods are ignored.
// Takes a pod's job and rank from a series of verdict_query_pod_labels() into a struct workload_set.
int workload_set_add_labels(void *set, const struct promql_series *series, struct err *e);
// Takes the value of a series of verdict_query_measure().
void workload_set_add_value(struct workload_set *s, enum verdict_measure m, const struct promql_series *series);
// Folds the values of the devices, decides about every workload, and identifies pods without labels by their names.
// -1 and *e: ERR_INTERNAL.
int workload_set_decide(struct workload_set *s, struct err *e);

#endif
