// SPDX-License-Identifier: Apache-2.0
// The jobs and ranks of the pods of one namespace, gathered from responses of Prometheus: the labels that a trainer
// reports take precedence over the labels of the pod, its owner and its name (insight/training_ranks.h).
#ifndef GPUSCALE_INSIGHT_RANK_NAMES_H
#define GPUSCALE_INSIGHT_RANK_NAMES_H

#include <stdint.h>

struct buf;
struct err;
struct promql_series;
struct rank_names;

#define RANK_NAMES_MAX 20000 // pods

// The queries, in the order in which their results must be added.
enum rank_ask { RANK_ASK_CLAIMS, RANK_ASK_OWNERS, RANK_ASK_LABELS, RANK_ASK__COUNT };

struct rank_names *rank_names_new(void); // NULL: out of memory
void rank_names_free(struct rank_names *n);
// Appends the query, for an instant at the end of the period of since_s seconds.
void rank_names_query(struct buf *out, enum rank_ask what, const char *namespace_name, int64_t since_s);
// Adds a series of the result. -1 and *e: ERR_LIMIT, ERR_INTERNAL.
int rank_names_add(struct rank_names *n, enum rank_ask what, const struct promql_series *series, struct err *e);
// Returns the job of the pod and, in *ret_rank, its rank. A pod that no result has is identified by its name. Valid
// until the next call; NULL when memory is exhausted.
const char *rank_names_find(struct rank_names *n, const char *pod, const char **ret_rank);

#endif
