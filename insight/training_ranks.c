// SPDX-License-Identifier: Apache-2.0
#include "insight/training_ranks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define INDEX_DIGITS_MAX 5
#define SUFFIX_BYTES     5 // that a Job appends to the names of its pods: apimachinery, util/rand
#define SUFFIX_LETTERS   "abcdefghijklmnopqrstuvwxyz0123456789"
#define DIGITS           "0123456789"

// clang-format off
static const struct training_kind kinds[] = {
	{"pod label",       "training_job",                            {"rank"}},
	{"JobSet",          "jobset.sigs.k8s.io/jobset-name",          {"jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"}},
	{"Kubeflow",        "training.kubeflow.org/job-name",          {"training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"}},
	{"LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name",        {"leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"}},
	{"Job",             "batch.kubernetes.io/job-name",            {"batch.kubernetes.io/job-completion-index"}},
};
// clang-format on

const struct training_kind *training_kinds(size_t *ret_n)
{
	*ret_n = sizeof kinds / sizeof kinds[0];
	return kinds;
}

static bool is_given(const char *text)
{
	return text && text[0];
}

static const char *label_of(const struct training_pod *pod, const char *name)
{
	const char *value = pod->label && name ? pod->label(pod->label_arg, name) : NULL;
	return value ? value : "";
}

// Copies `text`, cut to the room of `out`.
static void copy(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
}

static const struct training_kind *kind_of(const struct training_pod *pod)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (is_given(label_of(pod, kinds[i].job_label)))
			return &kinds[i];
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
