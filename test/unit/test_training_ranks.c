// SPDX-License-Identifier: Apache-2.0
// Goal of this test: pods of every kind of training job are identified by job and rank, and ranks are unique in a job.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "insight/gpu_use_query.h"
#include "insight/training_ranks.h"
#include "promql/promql.h"

#define LABELS_MAX 8

struct pod_labels {
	struct promql_series series;
	struct promql_label items[LABELS_MAX];
	char names[LABELS_MAX][128];
};

// Pairs of name and value, as kube-state-metrics reports them.
static const struct promql_series *series_of(const char *const *pairs, struct pod_labels *l)
{
	l->series = (struct promql_series){.labels = l->items};
	for (; *pairs; pairs += 2) {
		size_t i = l->series.n_labels++;
		struct buf name;
		buf_init(&name, sizeof l->names[i] - 1);
		gpu_label_name(&name, pairs[0]);
		snprintf(l->names[i], sizeof l->names[i], "%s", buf_str(&name));
		buf_done(&name);
		l->items[i] = (struct promql_label){l->names[i], pairs[1]};
	}
	return &l->series;
}

// clang-format off
static const struct {
	const char *pod, *job_claim, *rank_claim, *owner;
	const char *labels[LABELS_MAX + 1];
	const char *job, *rank;
} rows[] = {
	{"train-0", NULL, NULL, NULL, {0}, "train", "0"},
	{"train-12-abcde", NULL, NULL, NULL, {0}, "train", "12"},
	{"train-0-abcdef", NULL, NULL, NULL, {0}, "train-0-abcdef", "train-0-abcdef"},
	{"llm-7d9f8b6c5d-abcde", NULL, NULL, NULL, {0}, "llm-7d9f8b6c5d-abcde", "llm-7d9f8b6c5d-abcde"},
	{"x-123456", NULL, NULL, NULL, {0}, "x-123456", "x-123456"},
	{"", NULL, NULL, NULL, {0}, "", ""},
	{"pool-7", "c", NULL, NULL, {0}, "c", "pool-7"},
	{"pool-7", "c", "3", "other", {0}, "c", "3"},
	{"odd-abcde", NULL, NULL, "odd", {0}, "odd", "odd-abcde"},
	{"train-3-abcde", NULL, NULL, NULL, {"batch.kubernetes.io/job-name", "train", "batch.kubernetes.io/job-completion-index", "3"}, "train", "3"},
	{"train-4-abcde", NULL, NULL, NULL, {"batch.kubernetes.io/job-name", "train"}, "train", "4"},
	{"s-w-1-0-abcde", NULL, NULL, NULL, {"batch.kubernetes.io/job-name", "s-w-1", "jobset.sigs.k8s.io/jobset-name", "s", "jobset.sigs.k8s.io/job-index", "1", "batch.kubernetes.io/job-completion-index", "0"}, "s", "1-0"},
	{"s-w-1-0-abcde", NULL, NULL, NULL, {"jobset.sigs.k8s.io/jobset-name", "s"}, "s", "s-w-1-0-abcde"},
	{"p-master-0", NULL, NULL, NULL, {"training.kubeflow.org/job-name", "p", "training.kubeflow.org/replica-type", "master", "training.kubeflow.org/replica-index", "0"}, "p", "master-0"},
	{"p-worker-0", NULL, NULL, NULL, {"training.kubeflow.org/job-name", "p", "training.kubeflow.org/replica-type", "worker", "training.kubeflow.org/replica-index", "0"}, "p", "worker-0"},
	{"l-1-2", NULL, NULL, NULL, {"leaderworkerset.sigs.k8s.io/name", "l", "leaderworkerset.sigs.k8s.io/group-index", "1", "leaderworkerset.sigs.k8s.io/worker-index", "2"}, "l", "1-2"},
	{"any", NULL, NULL, NULL, {"training_job", "t", "rank", "5"}, "t", "5"},
};
// clang-format on

static void job_and_rank_of_each_kind(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct training_rank r;
		struct pod_labels labels;
		struct training_pod pod = {.pod = rows[i].pod,
		                           .job_claim = rows[i].job_claim,
		                           .rank_claim = rows[i].rank_claim,
		                           .job_owner = rows[i].owner,
		                           .labels = series_of(rows[i].labels, &labels)};
		training_rank_identify(&pod, &r);
		assert_string_equal(r.job, rows[i].job);
		assert_string_equal(r.rank, rows[i].rank);
	}
}

static void every_kind_has_a_label_for_its_job_and_its_rank(void **state)
{
	(void)state;
	size_t n = training_n_kinds;
	const struct training_kind *kinds = training_kinds;
	assert_true(n >= 5);
	for (size_t i = 0; i < n; i++) {
		const char *pairs[] = {kinds[i].job_label, "j", kinds[i].rank_labels[0], "7", NULL};
		struct pod_labels labels;
		struct training_pod pod = {.pod = "a-0", .labels = series_of(pairs, &labels)};
		struct training_rank r;
		training_rank_identify(&pod, &r);
		assert_ptr_equal(r.kind, &kinds[i]);
		assert_string_equal(r.job, "j");
		assert_string_equal(r.rank, "7");
	}
}

static void rank_too_long_for_its_room_is_the_name_of_the_pod(void **state)
{
	(void)state;
	char a[200], b[200];
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	a[sizeof a - 1] = b[sizeof b - 1] = '\0';
	struct pod_labels labels;
	const char *pairs[] = {"leaderworkerset.sigs.k8s.io/name",
	                       "l",
	                       "leaderworkerset.sigs.k8s.io/group-index",
	                       a,
	                       "leaderworkerset.sigs.k8s.io/worker-index",
	                       b,
	                       NULL};
	struct training_pod pod = {.pod = "l-1-2", .labels = series_of(pairs, &labels)};
	struct training_rank r;
	training_rank_identify(&pod, &r);
	assert_string_equal(r.rank, "l-1-2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(job_and_rank_of_each_kind),
	        cmocka_unit_test(every_kind_has_a_label_for_its_job_and_its_rank),
	        cmocka_unit_test(rank_too_long_for_its_room_is_the_name_of_the_pod),
	};
	return cmocka_run_group_tests_name("training ranks", tests, NULL, NULL);
}
