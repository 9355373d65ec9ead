// SPDX-License-Identifier: Apache-2.0
#include "insight/training_ranks.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/hash_table.h"
#include "insight/gpu_use_query.h"
#include "promql/promql.h"

#define INDEX_DIGITS_MAX 5
#define SUFFIX_BYTES     5 // that a Job appends to the names of its pods: apimachinery, util/rand
#define SUFFIX_LETTERS   "abcdefghijklmnopqrstuvwxyz0123456789"
#define DIGITS           "0123456789"
#define LABEL_NAME_BYTES 700 // "label_" and a name of Kubernetes
#define POD              "wl_pod"

// clang-format off
const struct training_kind training_kinds[] = {
	{"pod label",       "training_job",                            {"rank"}},
	{"JobSet",          "jobset.sigs.k8s.io/jobset-name",          {"jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"}},
	{"Kubeflow",        "training.kubeflow.org/job-name",          {"training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"}},
	{"LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name",        {"leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"}},
	{"Job",             "batch.kubernetes.io/job-name",            {"batch.kubernetes.io/job-completion-index"}},
};
// clang-format on
const size_t training_n_kinds = sizeof training_kinds / sizeof *training_kinds;

static bool is_given(const char *text)
{
	return text && text[0];
}

// The value of a label of the pod, named as in Kubernetes; "" when the pod does not have it.
static const char *label_of(const struct training_pod *pod, const char *name)
{
	struct buf key;
	if (!pod->labels || !name)
		return "";
	buf_init(&key, LABEL_NAME_BYTES);
	gpu_label_name(&key, name);
	const char *value = key.failed ? "" : promql_label(pod->labels, buf_str(&key));
	buf_done(&key);
	return value;
}

// Copies `text`, cut to the room of `out`.
static void copy(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
}

static const struct training_kind *kind_of(const struct training_pod *pod)
{
	for (size_t i = 0; i < training_n_kinds; i++)
		if (is_given(label_of(pod, training_kinds[i].job_label)))
			return &training_kinds[i];
	return NULL;
}

// Where "-INDEX" or "-INDEX-SUFFIX" starts at the end of the name, and the index; the name's end when it has none.
static size_t find_index(const char *name, size_t *ret_start, size_t *ret_len)
{
	size_t len = strlen(name);
	for (size_t dash = 1; dash < len; dash++) {
		size_t digits = name[dash] == '-' ? strspn(name + dash + 1, DIGITS) : 0;
		if (digits == 0 || digits > INDEX_DIGITS_MAX)
			continue;
		const char *rest = name + dash + 1 + digits;
		bool is_suffix = rest[0] == '-' && strspn(rest + 1, SUFFIX_LETTERS) == SUFFIX_BYTES &&
		                 rest[1 + SUFFIX_BYTES] == '\0';
		if (rest[0] != '\0' && !is_suffix)
			continue;
		*ret_start = dash + 1;
		*ret_len = digits;
		return dash;
	}
	*ret_start = 0;
	*ret_len = len;
	return len;
}

// True when the kind's labels make a rank.
static bool rank_of_labels(const struct training_pod *pod, const struct training_kind *kind, char *out, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; kind && i < TRAINING_RANK_LABELS_MAX; i++) {
		const char *part = label_of(pod, kind->rank_labels[i]);
		if (!part[0])
			continue;
		int n = snprintf(out + used, size - used, "%s%s", used ? "-" : "", part);
		if (n < 0 || (size_t)n >= size - used)
			return false; // a cut rank may be that of another pod
		used += (size_t)n;
	}
	return used > 0;
}

void training_rank_identify(const struct training_pod *pod, struct training_rank *ret_rank)
{
	const char *name = pod->pod ? pod->pod : "";
	size_t index, index_len, base = find_index(name, &index, &index_len);
	const struct training_kind *kind = is_given(pod->job_claim) ? NULL : kind_of(pod);
	ret_rank->kind = kind;
	if (is_given(pod->job_claim))
		copy(ret_rank->job, sizeof ret_rank->job, pod->job_claim);
	else if (kind)
		copy(ret_rank->job, sizeof ret_rank->job, label_of(pod, kind->job_label));
	else if (is_given(pod->job_owner))
		copy(ret_rank->job, sizeof ret_rank->job, pod->job_owner);
	else
		snprintf(ret_rank->job, sizeof ret_rank->job, "%.*s", (int)base, name);

	if (is_given(pod->rank_claim))
		copy(ret_rank->rank, sizeof ret_rank->rank, pod->rank_claim);
	else if (rank_of_labels(pod, kind, ret_rank->rank, sizeof ret_rank->rank))
		return;
	else if (strlen(ret_rank->job) == base && strncmp(ret_rank->job, name, base) == 0)
		snprintf(ret_rank->rank, sizeof ret_rank->rank, "%.*s", (int)index_len, name + index);
	else // pods of several name parts have equal indexes
		copy(ret_rank->rank, sizeof ret_rank->rank, name);
}

// ---- the pods of a namespace ----

struct named_pod {
	UT_hash_handle hh;               // by name
	bool is_identified, has_several; // several: ranks in one pod, which have labels of their own
	char claimed_job[TRAINING_JOB_BYTES], claimed_rank[TRAINING_RANK_BYTES], owner[TRAINING_JOB_BYTES];
	struct training_rank rank;
	char name[];
};

void rank_names_done(struct rank_names *n)
{
	struct named_pod *p, *next;
	HASH_ITER(hh, n->pods, p, next)
	{
		HASH_DEL(n->pods, p);
		free(p);
	}
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

static void identify(struct named_pod *p, const struct promql_series *labels)
{
	const struct training_pod pod = {.pod = p->name,
	                                 .job_claim = p->claimed_job,
	                                 .rank_claim = p->has_several ? "" : p->claimed_rank,
	                                 .job_owner = p->owner,
	                                 .labels = labels};
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
