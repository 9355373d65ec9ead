// SPDX-License-Identifier: Apache-2.0
// Goal: pods are counted as the replicas that they make up, whatever their labels and annotations state; and the table
// of kinds leads to the labels.
#include "k8s/client/replica_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "k8s/client/scale.h"

#define LWS "leaderworkerset.sigs.k8s.io/"

static const struct workload_kind *lws(void)
{
	return workload_kind_find("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", NULL);
}

// Pods as text: a group, 'r'eady, 'u'nready, 'p'ending, 'e'nded or 'd'eleted, and the size stated if any: "ar3 ar au".
static void fill(struct pod_list *l, const char *text)
{
	static const char kinds[] = "rupde";
	static const enum pod_kind kind_of[] = {POD_KIND_READY, POD_KIND_UNREADY, POD_KIND_PENDING, POD_KIND_DELETED,
	                                        POD_KIND_ENDED};
	pod_list_init(l);
	for (const char *p = text; *p; p += strcspn(p, " ") + strspn(p + strcspn(p, " "), " ")) {
		char group[2] = {p[0] == '-' ? '\0' : p[0], '\0'}, size[8] = "";
		snprintf(size, sizeof size, "%.*s", (int)strcspn(p + 2, " "), p + 2);
		assert_int_equal(pod_list_add(l, "pod", kind_of[strchr(kinds, p[1]) - kinds], NULL), 0);
		l->items[l->n - 1].member = group_member_read(lws(), group, size[0] ? size : NULL, NULL, NULL);
	}
}

static void complete_groups_are_ready_replicas(void **state)
{
	static const struct {
		const char *pods;
		int total, ready, pending; // total -1: no pod names a group
	} rows[] = {
	        {"", -1, 0, 0},
	        {"-r -r -r", -1, 0, 0},
	        {"ar3 ar3 ar3 br3 br3 br3", 2, 2, 0},
	        {"br3 ar3 ar3 br3 ar3 br3", 2, 2, 0},
	        {"ar3 ar3 ar3 br3 br3", 2, 1, 1},     // a pod is missing
	        {"ar3 ar3 ar3 br3 br3 bu3", 2, 1, 0}, // all run, one is not ready
	        {"ar3 ar3 ar3 br3 br3 bp3", 2, 1, 1}, // one is pending
	        {"ar3 ar3 ar3 br3 br3 be3", 2, 1, 1}, // one has finished
	        {"ar3 ar3 ar3 br3 br3 bd3", 2, 1, 1}, // one is being deleted
	        {"ar3 ar3 ar3 bd3 bd3 bd3", 1, 1, 0}, // all of a group are
	        {"ar3 ar3 ar3 au3", 1, 1, 0},         // a replacement that is not ready yet
	        {"ar3 ar3 ar3 -r -p", 1, 1, 0},       // pods without a group are not counted
	        {"ar ar ar br br", 2, 1, 1},          // no size is stated: as large as the largest
	        {"ar ar ar br br bu", 2, 1, 0},
	        {"ar1 br1", 2, 2, 0},
	        {"ar3 ar3 ar3 br20000", 2, 1, 1},              // a pod that states a large size harms its group only
	        {"ar3 ar3 ar3 br0 br-1 brx br99999", 2, 2, 0}, // a size that is none: as large as the largest
	        {"ar3 ar ar", 1, 1, 0},                        // one pod of a group states it
	        {"ar2 ar3", 1, 0, 1},                          // the largest counts
	        {"ad3 ad3 ad3", -1, 0, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct pod_list l;
		struct replica_groups g;
		fill(&l, rows[i].pods);
		bool has_groups = replica_groups_count(&l, &g);
		if (has_groups != (rows[i].total >= 0) || (has_groups && g.total != rows[i].total) ||
		    g.ready != rows[i].ready || g.pending != rows[i].pending)
			fail_msg("\"%s\": %d groups, %d ready, %d pending", rows[i].pods, has_groups ? g.total : -1,
			         g.ready, g.pending);
		pod_list_done(&l);
	}
}

static void pods_of_a_group_are_distinct_once(void **state)
{
	uint64_t groups[] = {7, 0, 5, 7, 0, 5, 5};
	assert_int_equal(replica_groups_distinct(groups, 0), 0);
	assert_int_equal(replica_groups_distinct(groups, 7), 4); // 5, 7, and two pods without a group
}

static void kinds_are_found_by_group_and_kind(void **state)
{
	assert_true(workload_kind_find("apps/v1", "Deployment", NULL)->is_pod);
	assert_string_equal(lws()->group_label, LWS "group-index");
	assert_ptr_equal(workload_kind_find("leaderworkerset.x-k8s.io/v2", "LeaderWorkerSet", NULL), lws());
	assert_string_equal(workload_kind_find("grove.io/v1alpha1", "PodCliqueScalingGroup", NULL)->ready,
	                    "availableReplicas");
	static const char *const others[][2] = {{"example.dev/v1", "Deployment"}, {"app/v1", "Deployment"},
	                                        {"apps2/v1", "Deployment"},       {"v1", "Deployment"},
	                                        {"", "LeaderWorkerSet"},          {"apps/v1", "DaemonSet"}};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		const struct workload_kind *k = workload_kind_find(others[i][0], others[i][1], NULL);
		assert_false(k->is_pod || k->group_label || k->group);
		assert_string_equal(k->ready, "readyReplicas");
	}
}

static void selector_of_leaders_is_widened_to_all_pods_of_the_groups(void **state)
{
	static const struct {
		const char *selector, *wide;
		bool is_wide;
	} rows[] = {
	        {LWS "name=x," LWS "worker-index=0", LWS "name=x", true},
	        {LWS "worker-index=0,a=b", "a=b", true},
	        {"a in (b,c)," LWS "worker-index=0,d", "a in (b,c),d", true},
	        {LWS "worker-index=0", LWS "worker-index=0", false}, // else it would match every pod
	        {LWS "worker-index=1,a=b", LWS "worker-index=1,a=b", false},
	        {"x" LWS "worker-index=0,a=b", "x" LWS "worker-index=0,a=b", false},
	        {"a in (" LWS "worker-index=0),b", "a in (" LWS "worker-index=0),b", false},
	        {"a in (b", "a in (b", false},
	        {"app=x", "app=x", false},
	        {"", "", false},
	};
	char out[256];
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(workload_kind_widen(lws(), rows[i].selector, out), rows[i].is_wide);
		assert_string_equal(out, rows[i].wide);
	}
	assert_false(workload_kind_widen(workload_kind_find("apps/v1", "Deployment", NULL), rows[0].selector, out));
	assert_string_equal(out, rows[0].selector);
}

static void listed_pods_state_their_group(void **state)
{
	static const char page[] =
	        "{\"kind\":\"PodList\",\"metadata\":{},\"items\":["
	        "{\"metadata\":{\"name\":\"leader\",\"labels\":{\"" LWS "group-index\":\"4\",\"" LWS
	        "worker-index\":\"0\"},\"annotations\":{\"" LWS "size\":\"2\"}}},"
	        "{\"metadata\":{\"name\":\"worker\",\"labels\":{\"" LWS "group-index\":\"4\",\"" LWS
	        "worker-index\":\"1\",\"" LWS "size\":\"3\"}}},"
	        "{\"metadata\":{\"name\":\"none\",\"labels\":{\"" LWS "group-index\":\"\"},\"annotations\":null}}]}";
	struct pod_list l;
	struct pod_counts counts = {0};
	struct err e = {0};
	char next[PODS_CONTINUE_BYTES_MAX];
	pod_list_init(&l);
	l.workload = lws();
	assert_int_equal(pods_decode_page(page, strlen(page), &counts, &l, next, &e), 0);
	const struct group_member *m[] = {&l.items[0].member, &l.items[1].member, &l.items[2].member};
	assert_true(m[0]->group && m[0]->size == 2 && m[0]->is_leader);
	assert_true(m[1]->group == m[0]->group && m[1]->size == 3 && !m[1]->is_leader);
	assert_true(m[2]->group == 0 && m[2]->size == 0);
	pod_list_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(complete_groups_are_ready_replicas),
	        cmocka_unit_test(pods_of_a_group_are_distinct_once),
	        cmocka_unit_test(kinds_are_found_by_group_and_kind),
	        cmocka_unit_test(selector_of_leaders_is_widened_to_all_pods_of_the_groups),
	        cmocka_unit_test(listed_pods_state_their_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
