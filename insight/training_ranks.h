// SPDX-License-Identifier: Apache-2.0
// Which training job a pod belongs to, and which rank of the job it is: one table of the labels that the kinds of jobs
// set on their pods.
#ifndef GPUSCALE_INSIGHT_TRAINING_RANKS_H
#define GPUSCALE_INSIGHT_TRAINING_RANKS_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct promql_series;

#define TRAINING_JOB_BYTES       254 // with the NUL: a name of Kubernetes has at most 253
#define TRAINING_RANK_BYTES      254
#define TRAINING_RANK_LABELS_MAX 3

// A kind of job, by the labels of its pods.
struct training_kind {
	const char *name; // "JobSet"
	const char *job_label;
	// The values of these labels, joined with '-', are the rank. A missing one is left out.
	const char *rank_labels[TRAINING_RANK_LABELS_MAX];
};

// The known properties of a pod. An unknown string is NULL or "".
struct training_pod {
	const char *pod;
	const char *job_claim;              // label training_job of the trainer's own metrics
	const char *rank_claim;             // label rank of the trainer's own metrics
	const char *job_owner;              // name of the Job that owns the pod
	const struct promql_series *labels; // of kube_pod_labels; NULL: no label is known
};

struct training_rank {
	char job[TRAINING_JOB_BYTES]; // "" only for a pod without a name
	char rank[TRAINING_RANK_BYTES];
	const struct training_kind *kind; // whose label is the job's name; NULL: a claim, an owner, or the pod's name
};

// The table, in order of precedence: the pods of a JobSet also have the labels of a Job.
extern const struct training_kind training_kinds[];
extern const size_t training_n_kinds;

// Identifies the job and the rank of a pod; ranks are unique within a job. The job is, in this order: the claim of the
// trainer, the first label of the table that the pod has, the owner, the pod's name without the index at its end
// ("x-0", and "x-0-abcde" of an Indexed Job). The rank is the claim, else the rank labels of the kind, else that index
// when the rest of the pod's name is the job, else the pod's name. This is the order of workload:train_job:info of the
// recording rules.
void training_rank_identify(const struct training_pod *pod, struct training_rank *ret_rank);

// The jobs and ranks of the pods of one namespace, gathered from responses of Prometheus: the labels that a trainer
// reports take precedence over the labels of the pod, its owner and its name.
struct rank_names { // zeroed: empty
	struct named_pod *pods;
};

#define RANK_NAMES_MAX 20000 // pods

// The queries, in the order in which their results must be added.
enum rank_ask { RANK_ASK_CLAIMS, RANK_ASK_OWNERS, RANK_ASK_LABELS, RANK_ASK__COUNT };

void rank_names_done(struct rank_names *n);
// Appends the query, for an instant at the end of the period of since_s seconds.
void rank_names_query(struct buf *out, enum rank_ask what, const char *namespace_name, int64_t since_s);
// Adds a series of the result. -1 and *e: ERR_LIMIT, ERR_INTERNAL.
int rank_names_add(struct rank_names *n, enum rank_ask what, const struct promql_series *series, struct err *e);
// Returns the job of the pod and, in *ret_rank, its rank. A pod that no result has is identified by its name. Valid
// until the next call; NULL when memory is exhausted.
const char *rank_names_find(struct rank_names *n, const char *pod, const char **ret_rank);

#endif
