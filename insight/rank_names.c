// SPDX-License-Identifier: Apache-2.0
#include "insight/rank_names.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash_table.h"
#include "insight/gpu_use_query.h"
#include "insight/training_ranks.h"
#include "promql/promql_result.h"

#define LABEL_NAME_BYTES 700 // "label_" and a name of Kubernetes
#define POD              "wl_pod"

struct named_pod {
	UT_hash_handle hh;               // by name
	bool is_identified, has_several; // several: ranks in one pod, which have labels of their own
	char claimed_job[TRAINING_JOB_BYTES], claimed_rank[TRAINING_RANK_BYTES], owner[TRAINING_JOB_BYTES];
	struct training_rank rank;
	char name[];
};

struct rank_names {
	struct named_pod *pods;
};

struct rank_names *rank_names_new(void)
{
	return calloc(1, sizeof(struct rank_names));
}

void rank_names_free(struct rank_names *n)
{
	struct named_pod *p, *next;
	if (!n)
		return;
	HASH_ITER(hh, n->pods, p, next)
	{
		HASH_DEL(n->pods, p);
		free(p);
	}
	free(n);
}

void rank_names_query(struct buf *out, enum rank_ask what, const char *namespace_name, int64_t since_s)
{
	static const char *const metrics[RANK_ASK__COUNT] = {"training_batches_total", "kube_pod_owner",
	                                                     "kube_pod_labels"};
	if (what != RANK_ASK_CLAIMS) {
		buf_printf(out, "last_over_time(%s{namespace=\"%s\"}[%" PRId64 "s])", metrics[what], namespace_name,
		           since_s);
		return;
	}
	// With honor_labels, the pod is in the labels pod and namespace, without it in exported_pod and
	// exported_namespace.
	buf_printf(out,
	           "group by (" POD ", training_job, rank) (label_replace(last_over_time(%s{exported_namespace=\"%s\""
	           ",exported_pod!=\"\"}[%" PRId64 "s]), \"" POD "\", \"$1\", \"exported_pod\", \"(.+)\") or "
	           "label_replace(last_over_time(%s{namespace=\"%s\",pod!=\"\",exported_pod=\"\"}[%" PRId64
	           "s]), \"" POD "\", \"$1\", \"pod\", \"(.+)\")",
	           metrics[what], namespace_name, since_s, metrics[what], namespace_name, since_s);
	if (!namespace_name[0]) // outside of Kubernetes, the instance is the pod
		buf_printf(out,
		           " or label_replace(last_over_time(%s{namespace=\"\",exported_pod=\"\",pod=\"\"}[%" PRId64
		           "s]), \"" POD "\", \"$1\", \"instance\", \"(.+)\")",
		           metrics[what], since_s);
	buf_putc(out, ')');
}

static struct named_pod *find(struct rank_names *n, const char *name)
{
	struct named_pod *p;
	HASH_FIND_STR(n->pods, name, p);
	if (p)
		return p;
	size_t size = strlen(name) + 1;
	p = calloc(1, sizeof *p + size);
	if (!p)
		return NULL;
	memcpy(p->name, name, size);
	HASH_ADD_STR(n->pods, name, p);
	return p;
}

static void copy(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text);
}

// The value of a label of Kubernetes, under the name that kube-state-metrics gives to it.
static const char *pod_label(const void *arg, const char *name)
{
	struct buf key;
	buf_init(&key, LABEL_NAME_BYTES);
	gpu_label_name(&key, name);
	const char *value = key.failed ? "" : promql_label(arg, buf_str(&key));
	buf_done(&key);
	return value;
}

static void identify(struct named_pod *p, const struct promql_series *labels)
{
	const struct training_pod pod = {.pod = p->name,
	                                 .job_claim = p->claimed_job,
	                                 .rank_claim = p->has_several ? "" : p->claimed_rank,
	                                 .job_owner = p->owner,
	                                 .label = labels ? pod_label : NULL,
	                                 .label_arg = labels};
	training_rank_identify(&pod, &p->rank);
	p->is_identified = true;
}

static void claim(struct named_pod *p, const struct promql_series *s)
{
	const char *rank = promql_label(s, "rank");
	p->has_several = p->has_several || (p->claimed_rank[0] && strcmp(p->claimed_rank, rank) != 0);
	copy(p->claimed_job, sizeof p->claimed_job, promql_label(s, "training_job"));
	copy(p->claimed_rank, sizeof p->claimed_rank, rank);
}

int rank_names_add(struct rank_names *n, enum rank_ask what, const struct promql_series *s, struct err *e)
{
	const char *pod = promql_label(s, what == RANK_ASK_CLAIMS ? POD : "pod");
	if (!pod[0] || (what == RANK_ASK_OWNERS && strcmp(promql_label(s, "owner_kind"), "Job") != 0))
		return 0;
	if (HASH_COUNT(n->pods) >= RANK_NAMES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d pods: shorten --since", RANK_NAMES_MAX);
	struct named_pod *p = find(n, pod);
	if (!p)
		return err_no_memory(e);
	if (what == RANK_ASK_CLAIMS)
		claim(p, s);
	else if (what == RANK_ASK_OWNERS)
		copy(p->owner, sizeof p->owner, promql_label(s, "owner_name"));
	else
		identify(p, s);
	return 0;
}

const char *rank_names_find(struct rank_names *n, const char *pod, const char **ret_rank)
{
	struct named_pod *p = find(n, pod);
	if (!p)
		return NULL;
	if (!p->is_identified)
		identify(p, NULL);
	*ret_rank = p->rank.rank;
	return p->rank.job;
}
