// SPDX-License-Identifier: Apache-2.0
// Files of pools: the table of fields, its rules, and the rules between pools and policies.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "policies/engine/policy.h"
#include "policies/load/pool_set.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define HEAD "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUPool\nmetadata: {name: h100}\nspec:\n"

static const struct policy chat = {.namespace_name = "serving", .name = "chat", .min_replicas = 3};
static const struct policy train = {.namespace_name = "batch", .name = "train", .min_replicas = 1};
static const struct policy *const policies[] = {&train, &chat};

// Loads the text as a file; *ret_errors includes the rules with the policies.
static void load(const char *text, struct pool_set *set, struct buf *report, size_t *ret_errors)
{
	char path[] = "/tmp/test-pool-XXXXXX";
	int fd = mkstemp(path);
	struct err e;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	const char *const paths[] = {path};
	int rc = pool_set_load(set, paths, 1, true, report, &e);
	unlink(path);
	assert_int_equal(rc, 0);
	*ret_errors = set->n_errors + pool_set_check(set, policies, N(policies), report);
}

static void entry_matches_labels(void **state)
{
	static const struct {
		const char *labels;
		int entry; // -1: none
	} rows[] = {
	        {"team=ml\ntier=prod\n", 0}, {"tier=prod\nteam=ml\n", 0}, {"team=ml\n", 1}, {"team=mla\n", -1},
	        {"xteam=ml\n", -1},          {"tier=prod\n", -1},         {"", -1},
	};
	struct pool_set set;
	struct buf report;
	size_t errors;
	(void)state;
	buf_init(&report, 1 << 16);
	load(HEAD "  gpus: 32\n  members:\n  - {namespaces: [batch, serving], labels: [team=ml, tier=prod]}\n  - "
	          "{namespace: serving, labels: [team=ml]}\n",
	     &set, &report, &errors);
	assert_string_equal(buf_str(&report), "");
	for (size_t i = 0; i < N(rows); i++) {
		const struct gpu_pool_entry *e = gpu_pool_claims(&set.pools[0], "serving", "chat", rows[i].labels);
		if (e != (rows[i].entry < 0 ? NULL : &set.pools[0].entries[rows[i].entry]))
			fail_msg("%s", rows[i].labels);
	}
	pool_set_done(&set);
	buf_done(&report);
}

static void pool_is_read(void **state)
{
	struct pool_set set;
	struct buf report;
	size_t errors;
	buf_init(&report, 1 << 16);
	load(HEAD "  gpus: 32\n  budget: {perHour: 90, pricePerGPU: \"2.5\"}\n  members:\n"
	          "  - {namespace: serving, name: chat, gpusPerReplica: 4, priority: 10, weight: \"1.5\"}\n"
	          "  - {namespaces: [batch, other], backfill: true, pricePerGPU: 1, maxGPUs: 6, maxMinReplicas: 2}\n"
	          "  ratios: [{of: serving/chat, to: batch/train, min: \"0.25\", max: 4}]\n",
	     &set, &report, &errors);
	assert_string_equal(buf_str(&report), "");
	assert_int_equal(errors, 0);
	assert_int_equal(set.n, 1);
	const struct gpu_pool *p = &set.pools[0];
	assert_string_equal(p->name, "h100");
	assert_int_equal(p->gpus, 32);
	assert_true(p->has_budget);
	assert_int_equal(p->turn_every_ms, 30 * 60000);
	assert_int_equal(p->n_entries, 2);
	assert_ptr_equal(gpu_pool_claims(p, "serving", "chat", NULL), &p->entries[0]);
	assert_ptr_equal(gpu_pool_claims(p, "batch", "train", NULL), &p->entries[1]);
	assert_ptr_equal(gpu_pool_claims(p, "other", "train", NULL), &p->entries[1]);
	assert_null(gpu_pool_claims(p, "serving", "other", NULL));
	struct pool_member m = {0};
	gpu_pool_apply(p, &p->entries[0], &m);
	assert_int_equal(m.guaranteed, 0);
	assert_int_equal(m.most, 8); // all of the pool
	gpu_pool_apply(p, &p->entries[1], &m);
	assert_int_equal(m.guaranteed, 2);
	assert_int_equal(m.most, 6);
	assert_int_equal(gpu_pool_most(p, 7, 4), 1); // whole replicas
	assert_string_equal(p->ratios[0].to, "batch/train");
	pool_set_done(&set);
	buf_done(&report);
}

static void faults_are_reported_with_their_place(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
	        {HEAD "  gpus: 0\n  members: [{namespaces: [serving, batch]}]\n",
	         ":5:9: spec.gpus: must be between 1 and 1000000"},
	        {HEAD "  gpus: 4\n", "spec.members: required, but missing"},
	        {HEAD "  gpus: 4\n  members: []\n", "spec.members"},
	        {HEAD "  gpus: 4\n  members: [{namespace: serving, gpusPerReplica: 0}]\n",
	         "spec.members[0].gpusPerReplica: must be between"},
	        {HEAD "  gpus: 4\n  members: [{namespace: serving, wieght: 2}]\n", "did you mean weight?"},
	        {HEAD "  gpus: 4\n  members: [{namespace: serving}, {namespaces: [serving]}]\n",
	         "spec.members[1]: is shadowed by an earlier entry"},
	        {HEAD "  gpus: 4\n  budget: {perHour: 3}\n  members: [{namespaces: [serving, batch]}]\n",
	         "spec.budget.pricePerGPU: required, but missing"},
	        {HEAD "  gpus: 40\n  members: [{namespaces: [serving, batch]}]\n  ratios: [{of: serving/chat, to: "
	              "batch/train, min: 1, max: 1}]\n",
	         "spec.ratios[0].min: must be smaller than max"},
	        {HEAD "  gpus: 40\n  members: [{namespaces: [serving, batch]}]\n  ratios: [{of: serving/chat, to: "
	              "serving/chat, min: 1, max: 2}]\n",
	         "spec.ratios[0].to: is the same policy"},
	        {HEAD "  gpus: 40\n  members: [{namespace: serving}]\n  ratios: [{of: serving/chat, to: batch/train, "
	              "min: 1, "
	              "max: 2}]\n",
	         "spec.ratios[0]: names a policy that no entry of members matches"},
	        {HEAD "  gpus: 40\n  members: [{labels: [team=ml]}]\n",
	         ":6:13: spec.members[0]: names no namespace, so that it matches no policy: add namespace or"},
	        {HEAD "  gpus: 40\n  members: [{namespace: \"\", name: chat}]\n",
	         "spec.members[0]: names no namespace"},
	        {HEAD "  gpus: 40\n  members: [{namespaces: []}]\n", "spec.members[0].namespaces"},
	        {HEAD "  gpus: 40\n  members: [{namespaces: [\"\"]}]\n",
	         "spec.members[0].namespaces[0]: must be the name of a namespace"},
	        {HEAD "  gpus: 40\n  members: [{namespace: batch, namespaces: [serving]}]\n",
	         "spec.members[0].namespaces: is set in addition to namespace"},
	        {HEAD "  gpus: 40\n  members: [{namespace: serving, gpusPerReplica: 8, maxGPUs: 7}]\n",
	         "spec.members[0].maxGPUs: is less than gpusPerReplica"},
	        {HEAD "  gpus: 40\n  members: [{namespace: serving, name: chit}]\n",
	         ":6:13: spec.members[0]: unknown member: no policy is called serving/chit"},
	        {HEAD "  gpus: 13\n  members: [{namespace: serving, gpusPerReplica: 4, maxMinReplicas: 3}, {namespace: "
	              "batch, gpusPerReplica: 2, maxMinReplicas: 1}]\n",
	         ":5:9: spec.gpus: is 13, but the guaranteed minReplicas of the members need 14 GPUs"},
	        {HEAD "  gpus: 40\n  budget: {perHour: 7, pricePerGPU: \"2.5\"}\n  members: [{namespace: serving, "
	              "maxMinReplicas: 9}]\n",
	         ":6:21: spec.budget.perHour: is 7, but the guaranteed minReplicas of the members cost 7.5"},
	        {HEAD "  gpus: 40\n  budget: {perMonth: 5000, pricePerGPU: \"2.5\"}\n  members: [{namespace: serving, "
	              "maxMinReplicas: 9}]\n",
	         ":6:22: spec.budget.perMonth: is 5000, but the guaranteed minReplicas of the members cost 5580"},
	        {HEAD "  gpus: 40\n  budget: {pricePerGPU: 1}\n  members: [{namespaces: [serving, batch]}]\n",
	         "spec.budget.perHour: set perHour, perMonth or both"},
	        {HEAD "  gpus: 40\n  members: [{namespaces: [serving, batch]}]\n---\n" HEAD
	              "  gpus: 40\n  members: [{namespace: other}]\n",
	         "pool h100 is already defined at"},
	        {HEAD "  gpus: 40\n  members: [{namespaces: [serving, batch]}]\n---\napiVersion: "
	              "gpuscale.dev/v1alpha1\nkind: GPUPool\nmetadata: {name: "
	              "a100}\nspec:\n  gpus: 40\n  members:\n  - {namespace: serving}\n",
	         ":14:5: spec.members[0]: policy serving/chat already belongs to pool h100"},
	        {"apiVersion: gpuscale.dev/v1alpha1\nkind: GPUPool\nmetadata: {name: H100, namespace: x}\nspec: {gpus: "
	         "1, "
	         "members: [{namespaces: [serving, batch]}]}\n",
	         "metadata.namespace: unknown field"},
	        {"kind: [", "1"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct pool_set set;
		struct buf report;
		size_t errors;
		buf_init(&report, 1 << 16);
		load(rows[i].text, &set, &report, &errors);
		if (errors == 0 || !strstr(buf_str(&report), rows[i].error))
			fail_msg("row %zu: %zu errors, \"%s\", expected \"%s\"", i, errors, buf_str(&report),
			         rows[i].error);
		pool_set_done(&set);
		buf_done(&report);
	}
}

static void pool_alone_has_no_unknown_members(void **state)
{
	struct pool_set set;
	struct buf report;
	size_t errors;
	buf_init(&report, 1 << 16);
	load(HEAD "  gpus: 40\n  members: [{namespace: serving, name: chit}]\n", &set, &report, &errors);
	assert_int_equal(errors, 1);
	assert_int_equal(pool_set_check(&set, NULL, 0, &report), 0);
	pool_set_done(&set);
	buf_done(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pool_is_read),
	        cmocka_unit_test(entry_matches_labels),
	        cmocka_unit_test(faults_are_reported_with_their_place),
	        cmocka_unit_test(pool_alone_has_no_unknown_members),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
