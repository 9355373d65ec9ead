// SPDX-License-Identifier: Apache-2.0
// Goal: the account of a cluster's capacity is right whatever order objects arrive in, and the number of replicas that
// fit, with the reason why no more do, is that of the scheduler's rules.
#include "k8s/capacity/capacity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "remedy/agent/node_view.h"

#define PODS_MAX 8
#define GPU      "nvidia.com/gpu"

struct world {
	struct capacity *c;
	struct capacity_pod pods[PODS_MAX];
	int64_t now_ms;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	w->c = capacity_new(NULL);
	assert_non_null(w->c);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	for (size_t i = 0; i < PODS_MAX; i++)
		capacity_remove_pod(w->c, &w->pods[i]);
	capacity_free(w->c);
	free(w);
	return 0;
}

// Quotes are single.
static char *to_json(const char *text)
{
	char *json = strdup(text);
	assert_non_null(json);
	for (char *at = json; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	return json;
}

static void set_node(struct world *w, const char *name, const char *text)
{
	char *json = to_json(text);
	capacity_set_object(w->c, CAPACITY_NODE, name, json, strlen(json));
	free(json);
}

static bool set_pod(struct world *w, size_t i, const char *text)
{
	char name[16], *json = to_json(text);
	snprintf(name, sizeof name, "p%zu", i);
	bool counts = capacity_set_pod(w->c, &w->pods[i], "ns", name, json, strlen(json), w->now_ms);
	free(json);
	return counts;
}

#define READY      "'conditions':[{'type':'Ready','status':'True'}]"
#define ROOM(gpus) "'allocatable':{'cpu':'8','memory':'64Gi','pods':'110','nvidia.com/gpu':'" gpus "'}"
#define NODE(gpus) "{'metadata':{},'spec':{},'status':{" READY "," ROOM(gpus) "}}"
#define POD(node, gpus)                                                                                                \
	"{'spec':{" node "'containers':[{'resources':{'requests':{'cpu':'1','nvidia.com/gpu':'" gpus "'}}}]}}"
#define ON(node) "'nodeName':'" node "',"

static int64_t fit(struct world *w, const char *spec, struct fit_result *ret_fit, char why[FIT_WHY_BYTES])
{
	struct replica_shape shape;
	struct err e = {0};
	char *json = to_json(spec);
	if (replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED, (struct json_span){json, strlen(json)}, &e) < 0)
		fail_msg("%s", e.msg);
	if (capacity_fit(w->c, &shape, ret_fit, &e) < 0)
		fail_msg("%s", e.msg);
	fit_explain(w->c, ret_fit, why);
	replica_shape_done(&shape);
	free(json);
	return ret_fit->replicas;
}

static void assert_fit(struct world *w, const char *spec, int64_t replicas, const char *why)
{
	struct fit_result result;
	char got[FIT_WHY_BYTES];
	fit(w, spec, &result, got);
	if (result.replicas != replicas || strcmp(got, why) != 0)
		fail_msg("%lld replicas fit: %s; wanted %lld: %s", (long long)result.replicas, got, (long long)replicas,
		         why);
	size_t sum = 0;
	for (int i = 0; i < FIT_REASON__COUNT; i++)
		sum += result.nodes_of[i];
	assert_int_equal(sum, result.nodes); // each node has one reason
}

#define ONE_GPU   "{'containers':[{'resources':{'limits':{'nvidia.com/gpu':1}}}]}"
#define FOUR_GPUS "{'containers':[{'resources':{'limits':{'nvidia.com/gpu':4}}}]}"

static const struct capacity_resource *gpus_of(struct world *w, const char *name)
{
	const struct capacity_node *n = w->c->nodes;
	for (; n && strcmp(n->name, name) != 0;)
		n = n->hh.next;
	assert_non_null(n);
	return capacity_node_resource(n, resource_names_find(&w->c->names, GPU));
}

static void free_gpus_are_those_that_no_pod_holds(void **state)
{
	struct world *w = *state;
	set_node(w, "a", NODE("8"));
	set_node(w, "b", NODE("4"));
	assert_fit(w, ONE_GPU, 12, "of 2 nodes, 2 without free nvidia.com/gpu");
	assert_true(set_pod(w, 0, POD(ON("a"), "3")));
	assert_true(set_pod(w, 1, POD(ON("b"), "1")));
	assert_int_equal(gpus_of(w, "a")->used, 3);
	assert_fit(w, ONE_GPU, 8, "of 2 nodes, 2 without free nvidia.com/gpu");
	assert_fit(w, FOUR_GPUS, 1, "of 2 nodes, 2 without free nvidia.com/gpu"); // 5 on a, 3 on b
	assert_true(set_pod(w, 0, POD(ON("b"), "3")));                            // moved, as when recreated
	assert_int_equal(gpus_of(w, "a")->used, 0);
	assert_int_equal(gpus_of(w, "b")->used, 4);
	capacity_remove_pod(w->c, &w->pods[1]);
	assert_int_equal(gpus_of(w, "b")->used, 3);
}

static void pod_holds_nothing_after_it_finished(void **state)
{
	struct world *w = *state;
	set_node(w, "a", NODE("8"));
	assert_true(set_pod(w, 0, POD(ON("a"), "3")));
	assert_false(set_pod(w, 0,
	                     "{'spec':{'nodeName':'a','containers':[{'resources':{'requests':{"
	                     "'nvidia.com/gpu':3}}}]},'status':{'phase':'Succeeded'}}"));
	assert_int_equal(gpus_of(w, "a")->used, 0);
	assert_false(set_pod(w, 1, "{'spec':{'nodeName':'a','containers':[]},'status':{'phase':'Failed'}}"));
	assert_false(set_pod(w, 1, "{'spec':7}"));
	assert_false(set_pod(w, 1, "{}"));
}

static void pods_may_arrive_before_their_node_and_outlive_it(void **state)
{
	struct world *w = *state;
	struct capacity_faults faults;
	assert_true(set_pod(w, 0, POD(ON("a"), "3")));
	assert_fit(w, ONE_GPU, 0, "the cluster has no nodes");
	set_node(w, "a", NODE("8"));
	assert_fit(w, ONE_GPU, 5, "of 1 nodes, 1 without free nvidia.com/gpu");
	capacity_remove_object(w->c, CAPACITY_NODE, "a");
	capacity_get_faults(w->c, &faults);
	assert_int_equal(faults.of[CAPACITY_FAULT_NODE_MISSING], 1);
	assert_fit(w, ONE_GPU, 0, "the cluster has no nodes");
	set_node(w, "a", NODE("8"));
	assert_fit(w, ONE_GPU, 5, "of 1 nodes, 1 without free nvidia.com/gpu");
	capacity_remove_object(w->c, CAPACITY_NODE, "a");
	capacity_remove_pod(w->c, &w->pods[0]);
	assert_null(w->c->nodes);
}

static void nodes_that_take_no_pods_do_not_count(void **state)
{
	struct world *w = *state;
	set_node(w, "cordoned", "{'spec':{'unschedulable':true},'status':{" READY "," ROOM("8") "}}");
	set_node(w, "down", "{'spec':{},'status':{'conditions':[{'type':'Ready','status':'Unknown'}]," ROOM("8") "}}");
	set_node(w, "silent", "{'status':{" ROOM("8") "}}");
	set_node(w, "cpu", "{'status':{" READY ",'allocatable':{'cpu':8,'pods':110}}}");
	set_node(w, "none", NODE("0"));
	set_node(w, "full", "{'status':{" READY ",'allocatable':{'cpu':8,'memory':1,'pods':2,'nvidia.com/gpu':8}}}");
	assert_true(set_pod(w, 0, "{'spec':{'nodeName':'full','containers':[{}]}}"));
	assert_fit(
	        w, ONE_GPU, 1,
	        "of 6 nodes, 2 without free nvidia.com/gpu, 1 with the most pods they take, 2 not ready, 1 cordoned");
}

static void other_resources_limit_too(void **state)
{
	struct world *w = *state;
	set_node(w, "a", NODE("8"));
	assert_fit(w, "{'containers':[{'resources':{'requests':{'cpu':3,'nvidia.com/gpu':1}}}]}", 2,
	           "of 1 nodes, 1 without free cpu");
	assert_fit(w, "{'containers':[{'resources':{'requests':{'memory':'65Gi','nvidia.com/gpu':1}}}]}", 0,
	           "of 1 nodes, 1 without free memory");
	assert_fit(w, "{'containers':[{'resources':{'requests':{'amd.com/gpu':1}}}]}", 0,
	           "of 1 nodes, 1 without free amd.com/gpu");
	assert_fit(w, "{'containers':[{}]}", 110, "of 1 nodes, 1 with the most pods they take");
}

static void taints_keep_pods_away_unless_tolerated(void **state)
{
	// clang-format off
	static const struct {
		const char *taint, *tolerations;
		bool fits;
	} rows[] = {
		{"{'key':'k','value':'v','effect':'NoSchedule'}", "[]", false},
		{"{'key':'k','value':'v','effect':'NoExecute'}", "[]", false},
		{"{'key':'k','value':'v','effect':'PreferNoSchedule'}", "[]", true},
		{"{'key':'k','value':'v','effect':'NewEffect'}", "[]", false},
		{"{'key':'k','value':'v','effect':'NoSchedule'}", "[{'key':'k','value':'v'}]", true},
		{"{'key':'k','value':'v','effect':'NoSchedule'}", "[{'key':'k','operator':'Equal','value':'v','effect':'NoSchedule'}]", true},
		{"{'key':'k','value':'v','effect':'NoSchedule'}", "[{'key':'k','operator':'Equal','value':'x'}]", false},
		{"{'key':'k','value':'v','effect':'NoSchedule'}", "[{'key':'k','value':'v','effect':'NoExecute'}]", false},
		{"{'key':'k','value':'v','effect':'NoSchedule'}", "[{'key':'k','operator':'Exists'}]", true},
		{"{'key':'k','value':'v','effect':'NoSchedule'}", "[{'key':'other','operator':'Exists'}]", false},
		{"{'key':'k','effect':'NoSchedule'}", "[{'operator':'Exists'}]", true},
		{"{'key':'k','effect':'NoSchedule'}", "[{'operator':'Exists','effect':'NoExecute'}]", false},
		{"{'key':'k','effect':'NoSchedule'}", "[{'value':''}]", false},
		{"{'key':'k','effect':'NoSchedule'}", "[{'key':'k'}]", true},
		{"{'key':'k','value':'5','effect':'NoSchedule'}", "[{'key':'k','operator':'Gt','value':'3'}]", false},
		{"{'key':'k','effect':'NoSchedule'},{'key':'l','effect':'NoExecute'}", "[{'key':'k','operator':'Exists'}]", false},
		{"{'key':'k','effect':'NoSchedule'},{'key':'l','effect':'NoExecute'}", "[{'key':'k','operator':'Exists'},{'key':'l','operator':'Exists'}]", true},
	};
	// clang-format on
	struct world *w = *state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char node[512], spec[512], why[FIT_WHY_BYTES];
		struct fit_result result;
		snprintf(node, sizeof node, "{'spec':{'taints':[%s]},'status':{" READY "," ROOM("1") "}}",
		         rows[i].taint);
		snprintf(spec, sizeof spec,
		         "{'tolerations':%s,'containers':[{'resources':{'limits':{'nvidia.com/gpu':1}}}]}",
		         rows[i].tolerations);
		set_node(w, "a", node);
		if (fit(w, spec, &result, why) != (rows[i].fits ? 1 : 0))
			fail_msg("taint %s, tolerations %s: %s", rows[i].taint, rows[i].tolerations, why);
		if (!rows[i].fits)
			assert_non_null(strstr(why, "of 1 nodes, 1 with a taint that is not tolerated ("));
	}
}

static void selectors_and_affinity_choose_nodes(void **state)
{
#define AFFINITY(terms)                                                                                                \
	"'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" terms    \
	"]}}}"
#define EXPR(x) AFFINITY("{'matchExpressions':[" x "]}")
	// clang-format off
	static const struct {
		const char *rule;
		bool fits; // on the node a with gpu=h100, zone=z1, generation=9
	} rows[] = {
		{"'nodeSelector':{}", true},
		{"'nodeSelector':{'gpu':'h100'}", true},
		{"'nodeSelector':{'gpu':'a100'}", false},
		{"'nodeSelector':{'gpu':'h100','zone':'z2'}", false},
		{"'nodeSelector':{'missing':''}", false},
		{"'nodeName':'a'", true},
		{"'nodeName':'b'", false},
		{EXPR("{'key':'gpu','operator':'In','values':['a100','h100']}"), true},
		{EXPR("{'key':'gpu','operator':'In','values':['a100']}"), false},
		{EXPR("{'key':'gpu','operator':'In','values':[]}"), false},
		{EXPR("{'key':'gpu','operator':'NotIn','values':['h100']}"), false},
		{EXPR("{'key':'missing','operator':'NotIn','values':['h100']}"), true},
		{EXPR("{'key':'gpu','operator':'Exists'}"), true},
		{EXPR("{'key':'missing','operator':'Exists'}"), false},
		{EXPR("{'key':'gpu','operator':'DoesNotExist'}"), false},
		{EXPR("{'key':'missing','operator':'DoesNotExist'}"), true},
		{EXPR("{'key':'generation','operator':'Gt','values':['8']}"), true},
		{EXPR("{'key':'generation','operator':'Gt','values':['9']}"), false},
		{EXPR("{'key':'generation','operator':'Lt','values':['10']}"), true},
		{EXPR("{'key':'gpu','operator':'Gt','values':['1']}"), false},
		{EXPR("{'key':'missing','operator':'Lt','values':['1']}"), false},
		// contradictory: no node can match
		{EXPR("{'key':'gpu','operator':'Exists'},{'key':'gpu','operator':'DoesNotExist'}"), false},
		{"'nodeSelector':{'gpu':'h100'}," EXPR("{'key':'gpu','operator':'NotIn','values':['h100']}"), false},
		// terms are alternatives; an empty term matches nothing
		{AFFINITY("{'matchExpressions':[{'key':'gpu','operator':'In','values':['a100']}]},{'matchExpressions':[{'key':'zone','operator':'Exists'}]}"), true},
		{AFFINITY("{}"), false},
		{AFFINITY(""), false},
		{AFFINITY("{'matchFields':[{'key':'metadata.name','operator':'In','values':['a']}]}"), true},
		{AFFINITY("{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['a']}]}"), false},
	};
	// clang-format on
	struct world *w = *state;
	set_node(w, "a",
	         "{'metadata':{'labels':{'gpu':'h100','zone':'z1','generation':'9'}},'spec':{},'status':{" READY
	         "," ROOM("1") "}}");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char spec[1024], why[FIT_WHY_BYTES];
		struct fit_result result;
		snprintf(spec, sizeof spec, "{%s,'containers':[{'resources':{'limits':{'nvidia.com/gpu':1}}}]}",
		         rows[i].rule);
		if (fit(w, spec, &result, why) != (rows[i].fits ? 1 : 0))
			fail_msg("%s: %s", rows[i].rule, why);
		if (!rows[i].fits)
			assert_string_equal(why, "of 1 nodes, 1 excluded by node selector or affinity");
	}
}

static void rules_that_cannot_be_read_are_errors(void **state)
{
	// clang-format off
	static const struct {
		const char *spec, *message;
	} rows[] = {
		{"[]", "expected the spec of a pod"},
		{"{" EXPR("{'key':'gpu','operator':'Near','values':[]}") "}", "expected an operator of In"},
		{"{" EXPR("{'operator':'Exists'}") "}", "an expression has no key"},
		{"{" AFFINITY("{'matchFields':[{'key':'metadata.uid','operator':'In','values':['a']}]}") "}", "expected the field metadata.name"},
		{"{'nodeSelector':{'gpu':7}}", "expected a string"},
		{"{'resourceClaims':[{}]}", "expected either resourceClaimTemplateName or resourceClaimName"},
		{"{'containers':[{'resources':{'limits':{'nvidia.com/gpu':'-1'}}}]}", "expected quantities between 0"},
	};
	// clang-format on
	struct world *w = *state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct replica_shape shape;
		struct err e = {0};
		char *json = to_json(rows[i].spec);
		int rc = replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED,
		                            (struct json_span){json, strlen(json)}, &e);
		if (rc == 0 || !strstr(e.msg, rows[i].message))
			fail_msg("%s: %d %s", rows[i].spec, rc, e.msg);
		replica_shape_done(&shape);
		free(json);
	}
}

static void pods_that_wait_get_their_room_first(void **state)
{
	struct world *w = *state;
	struct fit_result result;
	char why[FIT_WHY_BYTES];
	set_node(w, "a", NODE("8"));
	assert_true(set_pod(w, 0, POD("", "3")));
	assert_true(set_pod(w, 1, POD("", "16"))); // fits nowhere
	assert_true(
	        set_pod(w, 2, "{'spec':{'containers':[{'resources':{'requests':{'cpu':1}}}]}}")); // competes for no GPU
	assert_int_equal(fit(w, ONE_GPU, &result, why), 5);
	assert_int_equal(result.waiting, 1);
	assert_int_equal(fit(w, ONE_GPU, &result, why), 5); // planning changes nothing
	assert_int_equal(gpus_of(w, "a")->used, 0);
	assert_true(set_pod(w, 0, POD(ON("a"), "3")));
	assert_int_equal(fit(w, ONE_GPU, &result, why), 5);
	assert_int_equal(result.waiting, 0);
}

// Whether a node takes a pod is remembered for the pods after it: only for those with the same rules and resources.
static void pods_that_wait_in_a_row_may_have_other_rules(void **state)
{
#define IN(pool)           "'nodeSelector':{'pool':'" pool "'},"
#define NODE_OF(pool, gpu) "{'metadata':{'labels':{'pool':'" pool "'}},'status':{" READY "," ROOM(gpu) "}}"
	struct world *w = *state;
	struct fit_result result;
	char why[FIT_WHY_BYTES];
	set_node(w, "a", NODE_OF("x", "4"));
	set_node(w, "b", NODE_OF("y", "5"));
	assert_true(set_pod(w, 0, POD(IN("x"), "1")));
	assert_true(set_pod(w, 1, POD(IN("x"), "1")));
	assert_true(set_pod(w, 2, POD(IN("y"), "2")));
	assert_true(set_pod(w, 3, POD(IN("y"), "1','amd.com/gpu':'1"))); // no node has both
	assert_true(set_pod(w, 4, POD("", "6")));                        // too large for each
	assert_true(set_pod(w, 5, POD(IN("y"), "1")));
	assert_int_equal(fit(w, ONE_GPU, &result, why), 4);
	assert_int_equal(result.waiting, 4);
	assert_int_equal(
	        fit(w, "{" IN("x") "'containers':[{'resources':{'limits':{'nvidia.com/gpu':1}}}]}", &result, why), 2);
	set_node(w, "a", NODE_OF("y", "4")); // nothing is remembered until the next time
	assert_int_equal(fit(w, ONE_GPU, &result, why), 6);
	assert_int_equal(result.waiting, 2);
}

// ---- the largest rules that the API server accepts ----

#define HOSTILE_NODES 40
#define HOSTILE_PODS  60

// Writes the PodSpec of a pod with 62 terms of 10 values, of which only the last one of every second
// pod is a label of the nodes.
static void put_hostile_spec(struct buf *b, int pod)
{
	buf_puts(b, "{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
	            "\"nodeSelectorTerms\":[");
	for (int term = 0; term < 62; term++) {
		buf_printf(b, "%s{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\",\"values\":[",
		           term ? "," : "");
		for (int value = 0; value < 10; value++)
			buf_printf(b, "%s\"zone-%d-%d-%d\"", value ? "," : "", pod, term, value);
		buf_printf(b, "%s]}]}", term == 61 && pod % 2 ? ",\"z\"" : "");
	}
	buf_puts(b, "]}}},\"containers\":[{\"resources\":{\"requests\":{\"nvidia.com/gpu\":1}}}]}");
}

static void add_hostile(struct world *w, struct capacity_pod pods[HOSTILE_PODS])
{
	struct buf b;
	for (int i = 0; i < HOSTILE_NODES; i++) {
		char name[16];
		snprintf(name, sizeof name, "n%d", i);
		set_node(w, name, "{'metadata':{'labels':{'zone':'z'}},'status':{" READY "," ROOM("4") "}}");
	}
	buf_init(&b, 1024 * 1024);
	for (int i = 0; i < HOSTILE_PODS; i++) {
		buf_reset(&b);
		buf_puts(&b, "{\"spec\":");
		put_hostile_spec(&b, i);
		buf_puts(&b, "}");
		assert_true(capacity_set_pod(w->c, &pods[i], "hostile", "p", buf_str(&b), b.len, 0));
	}
	buf_done(&b);
}

// Completes a plan in steps of `step` comparisons. Returns the number of steps; *ret_most: the most that one took.
static int plan_in_steps(struct world *w, const struct replica_shape *shape, int64_t step, int64_t *ret_most)
{
	int steps = 0, rc = 0;
	for (*ret_most = 0; rc == 0; steps++) {
		int64_t work = step;
		rc = capacity_plan(w->c, shape, &work, NULL);
		assert_true(rc >= 0 && steps < 100000);
		*ret_most = step - work > *ret_most ? step - work : *ret_most;
	}
	return steps;
}

static void largest_rules_take_many_steps_once_and_then_few(void **state)
{
	struct world *w = *state;
	struct capacity_pod pods[HOSTILE_PODS] = {{0}};
	struct replica_shape shape;
	struct fit_result in_steps, at_once;
	char *json = to_json(ONE_GPU);
	int64_t most, work = INT64_MAX, pass = HOSTILE_NODES * (NODE_RULE_TEXTS_MAX + 64);
	add_hostile(w, pods);
	assert_int_equal(
	        replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED, (struct json_span){json, strlen(json)}, NULL),
	        0);
	assert_true(plan_in_steps(w, &shape, 20000, &most) > 20);
	assert_true(most <= 20000 + pass); // a step ends with the pass over the nodes that it is in
	assert_true(capacity_fit_planned(w->c, &shape, &work, &in_steps));
	assert_int_equal(in_steps.waiting, HOSTILE_PODS / 2);
	assert_int_equal(in_steps.replicas, 4 * HOSTILE_NODES - HOSTILE_PODS / 2);
	assert_int_equal(plan_in_steps(w, &shape, 20000, &most), 1); // nothing has changed

	// A rule was compared with each node once; now it is compared with the node that has changed.
	set_node(w, "n0", "{'metadata':{'labels':{'zone':'y'}},'status':{" READY "," ROOM("4") "}}");
	assert_int_equal(capacity_fit(w->c, &shape, &at_once, NULL), 0);
	set_node(w, "n0", "{'metadata':{'labels':{'zone':'z'}},'status':{" READY "," ROOM("4") "}}");
	work = INT64_MAX;
	assert_int_equal(capacity_plan(w->c, &shape, &work, NULL), 1);
	assert_true(INT64_MAX - work < HOSTILE_PODS * (NODE_RULE_TEXTS_MAX + 4 * HOSTILE_NODES));
	work = INT64_MAX;
	assert_true(capacity_fit_planned(w->c, &shape, &work, &at_once));
	assert_int_equal(at_once.replicas, in_steps.replicas);

	// A plan in progress survives the removal of the pod that would be next.
	set_node(w, "n0", NODE("4"));
	work = 1;
	assert_int_equal(capacity_plan(w->c, &shape, &work, NULL), 0);
	for (int i = 0; i < HOSTILE_PODS; i++)
		capacity_remove_pod(w->c, &pods[i]);
	work = 1000000;
	assert_int_equal(capacity_plan(w->c, &shape, &work, NULL), 1);
	assert_int_equal(fit(w, ONE_GPU, &at_once, (char[FIT_WHY_BYTES]){0}), 4 * HOSTILE_NODES);
	replica_shape_done(&shape);
	free(json);
}

static void rule_of_more_texts_than_the_limit_is_reported(void **state)
{
	struct world *w = *state;
	struct replica_shape shape;
	struct err e = {0};
	struct buf b;
	buf_init(&b, 1024 * 1024);
	buf_puts(&b, "{\"nodeSelector\":{\"a\":\"b\"},\"affinity\":{\"nodeAffinity\":{"
	             "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[");
	for (int term = 0; term < 5; term++) {
		buf_printf(&b, "%s{\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"NotIn\",\"values\":[",
		           term ? "," : "");
		for (int value = 0; value < 250; value++)
			buf_printf(&b, "%s\"v%d\"", value ? "," : "", value);
		buf_puts(&b, "]}]}");
	}
	buf_puts(&b, "]}}}}");
	assert_int_equal(
	        replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED, (struct json_span){buf_str(&b), b.len}, &e),
	        -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "more than 1024 keys and values"));
	replica_shape_done(&shape);
	buf_reset(&b);
	buf_puts(&b, "{\"tolerations\":[");
	while (b.len <= REPLICA_SPEC_BYTES_MAX)
		buf_puts(&b, "{\"key\":\"k\",\"operator\":\"Exists\"},");
	buf_puts(&b, "{}]}");
	assert_int_equal(
	        replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED, (struct json_span){buf_str(&b), b.len}, &e),
	        -1);
	assert_non_null(strstr(e.msg, "the spec of the pod has"));
	replica_shape_done(&shape);
	buf_done(&b);
}

// One tenant cannot hide the pods of the others behind its own.
static void pods_of_one_namespace_leave_room_for_those_of_others(void **state)
{
	struct world *w = *state;
	struct capacity_faults faults;
	struct capacity_pod *pods = calloc(CAPACITY_WAITING_OF_NAMESPACE + 2, sizeof *pods);
	static const char json[] = "{\"spec\":{\"containers\":[{}]}}";
	for (int i = 0; i < CAPACITY_WAITING_OF_NAMESPACE + 1; i++)
		assert_true(capacity_set_pod(w->c, &pods[i], "hostile", "p", json, sizeof json - 1, 0));
	assert_true(capacity_set_pod(w->c, &pods[CAPACITY_WAITING_OF_NAMESPACE + 1], "honest", "p", json,
	                             sizeof json - 1, 0));
	capacity_get_faults(w->c, &faults);
	assert_int_equal(faults.of[CAPACITY_FAULT_POD_LEFT_OUT], 1);
	size_t honest = 0;
	for (const struct capacity_waiting *p = w->c->waiting; p; p = p->next)
		honest += strcmp(p->namespace_name, "honest") == 0;
	assert_int_equal(honest, 1);
	for (int i = 0; i < CAPACITY_WAITING_OF_NAMESPACE + 2; i++)
		capacity_remove_pod(w->c, &pods[i]);
	free(pods);
}

static void message_of_the_scheduler_is_kept(void **state)
{
	struct world *w = *state;
	assert_true(set_pod(w, 0,
	                    "{'metadata':{'labels':{'app':'x'}},'spec':{'containers':[{}]},'status':{'phase':'Pending',"
	                    "'conditions':[{'type':'PodScheduled','status':'False','reason':'Unschedulable',"
	                    "'message':'0/3 nodes are available: 3 Insufficient nvidia.com/gpu.'}]}}"));
	const struct capacity_waiting *p = w->c->waiting;
	assert_non_null(p);
	assert_true(p->is_unschedulable && p->has_shape && p->n_labels == 1);
	assert_string_equal(p->name, "p0");
	assert_string_equal(p->namespace_name, "ns");
	assert_string_equal(p->message, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.");
	capacity_remove_pod(w->c, &w->pods[0]);
	assert_null(w->c->waiting);
}

#define PHASE_SINCE(minute, reason)                                                                                    \
	"'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False','reason':'" reason          \
	"','lastTransitionTime':'1970-01-01T00:0" minute ":00Z','message':'blocked'}]}}"

static void gated_pod_waits_for_its_gate_and_then_from_the_time_that_it_was_removed(void **state)
{
	struct world *w = *state;
	w->now_ms = 600000;
	for (int i = 0; i < 2; i++) { // the second time: a new process, which never saw the gate
		assert_true(
		        set_pod(w, 0,
		                "{'spec':{'schedulingGates':[{'name':'kueue.x-k8s.io/admission'},{'name':'second'}],"
		                "'containers':[{}]}," PHASE_SINCE("1", "SchedulingGated")));
		const struct capacity_waiting *p = w->c->waiting;
		assert_true(p->is_gated && !p->is_unschedulable);
		assert_string_equal(p->message, "waiting for scheduling gate kueue.x-k8s.io/admission");
		if (i > 0)
			capacity_remove_pod(w->c, &w->pods[0]);
		// Kubernetes keeps the time of the condition while its status remains False.
		assert_true(set_pod(w, 0, "{'spec':{'containers':[{}]}," PHASE_SINCE("1", "Unschedulable")));
		p = w->c->waiting;
		assert_true(p->is_unschedulable && !p->is_gated);
		assert_int_equal(p->since_ms, i > 0 ? 60000 : 600000);
		assert_string_equal(p->message, "blocked");
		w->now_ms += 60000;
		assert_true(set_pod(w, 0, "{'spec':{'containers':[{}]}," PHASE_SINCE("1", "Unschedulable")));
		assert_int_equal(w->c->waiting->since_ms, i > 0 ? 60000 : 600000);
	}
}

static void amounts_that_cannot_be_counted_are_reported_and_count_as_0(void **state)
{
	struct world *w = *state;
	struct capacity_faults f;
	set_node(w, "negative", NODE("-8"));
	set_node(w, "huge", NODE("9e18"));
	set_node(w, "text", NODE("lots"));
	set_node(w, "good",
	         "{'metadata':{'labels':{'nvidia.com/gpu.product':'H100'}},'status':{" READY "," ROOM("2") "}}");
	set_node(w, "unnamed", NODE("1"));
	assert_fit(w, ONE_GPU, 3, "of 5 nodes, 5 without free nvidia.com/gpu");
	assert_true(set_pod(w, 0, POD(ON("good"), "-1")));
	assert_true(set_pod(w, 1, POD(ON("unnamed"), "3")));
	assert_true(set_pod(w, 2, "{'spec':{'nodeSelector':{'a':1},'containers':[{}]}}"));
	capacity_get_faults(w->c, &f);
	assert_int_equal(f.of[CAPACITY_FAULT_NODE_NEGATIVE], 1);
	assert_string_equal(f.example[CAPACITY_FAULT_NODE_NEGATIVE], "negative");
	assert_int_equal(f.of[CAPACITY_FAULT_NODE_HUGE], 1);
	assert_int_equal(f.of[CAPACITY_FAULT_NODE_UNREADABLE], 1);
	assert_int_equal(f.of[CAPACITY_FAULT_NODE_WITHOUT_MODEL], 1);
	assert_string_equal(f.example[CAPACITY_FAULT_NODE_WITHOUT_MODEL], "unnamed");
	assert_int_equal(f.of[CAPACITY_FAULT_NODE_OVERCOMMITTED], 1);
	assert_int_equal(f.of[CAPACITY_FAULT_POD_AMOUNT], 1);
	assert_int_equal(f.of[CAPACITY_FAULT_POD_RULES], 1);
	assert_fit(w, ONE_GPU, 2, "of 5 nodes, 5 without free nvidia.com/gpu"); // none on the overcommitted one
	for (size_t i = 0; i < PODS_MAX; i++)
		capacity_remove_pod(w->c, &w->pods[i]);
	set_node(w, "negative", NODE("1"));
	capacity_get_faults(w->c, &f);
	assert_int_equal(f.of[CAPACITY_FAULT_NODE_NEGATIVE] + f.of[CAPACITY_FAULT_POD_AMOUNT] +
	                         f.of[CAPACITY_FAULT_POD_RULES] + f.of[CAPACITY_FAULT_NODE_OVERCOMMITTED],
	                 0);
	for (int i = 0; i < CAPACITY_FAULT__COUNT; i++)
		assert_true(capacity_fault_table[i].name[0] && capacity_fault_table[i].sentence[0]);
}

static void rules_that_are_not_counted_are_named(void **state)
{
	struct world *w = *state;
	struct replica_shape shape;
	char *json = to_json("{'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{}]}},"
	                     "'topologySpreadConstraints':[{'whenUnsatisfiable':'DoNotSchedule'}],"
	                     "'volumes':[{'persistentVolumeClaim':{}}],"
	                     "'resourceClaims':[{'resourceClaimTemplateName':'t'},{'resourceClaimName':'c'}],"
	                     "'containers':[{'ports':[{'hostPort':80}]}]}");
	assert_int_equal(
	        replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED, (struct json_span){json, strlen(json)}, NULL),
	        0);
	assert_int_equal(shape.uncounted, ((1 << UNCOUNTED_RULES) - 1) & ~UNCOUNTED_CONSTRAINTS);
	assert_int_equal(shape.n_claims, 2);
	replica_shape_done(&shape);
	free(json);
	for (int i = 0; i < UNCOUNTED_RULES; i++)
		assert_true(uncounted_rule_name(i)[0]);
}

// How many GPUs of a node are out of service, with these annotations and taints.
static int32_t failing(struct world *w, const char *annotations, const char *taints)
{
	char text[1024];
	snprintf(text, sizeof text,
	         "{'metadata':{'annotations':{%s}},'spec':{'taints':[%s]},'status':{" READY "," ROOM("8") "}}",
	         annotations, taints);
	set_node(w, "a", text);
	return w->c->nodes->failing_gpus;
}

#define TAINT "{'key':'gpuscale.dev/failing-gpu','value':'XID79','effect':'NoSchedule'}"
#define RECORD(a, b)                                                                                                   \
	"'gpuscale.dev/remediation':'{\\'v\\':1,\\'gpus\\':[" GPU_OUT(a) "," GPU_OUT(b) "," GPU_OUT("-1") "]}'"
#define GPU_OUT(since) "{\\'uuid\\':\\'G\\',\\'out\\':" since "}"

static void gpus_out_of_service_are_those_of_the_record(void **state)
{
	struct world *w = *state;
	assert_int_equal(failing(w, "", ""), 0);
	assert_int_equal(failing(w, RECORD("-1", "1700000000000"), TAINT), 1);
	assert_int_equal(failing(w, RECORD("-1", "1700000000000"), ""),
	                 1); // cordoned, or a single GPU is tainted
	assert_int_equal(failing(w, RECORD("1700000000000", "-1"), TAINT),
	                 CAPACITY_FAILING_ALL); // the node itself
	assert_int_equal(failing(w, RECORD("-1", "-1"), ""), 0);
	assert_int_equal(failing(w, RECORD("-1", "-1"), TAINT), CAPACITY_FAILING_ALL);
	assert_int_equal(failing(w, "", TAINT), CAPACITY_FAILING_ALL);
	assert_int_equal(failing(w, "'gpuscale.dev/remediation':'{\\'gpus\\':[{'", TAINT), CAPACITY_FAILING_ALL);
	assert_int_equal(failing(w, "'gpuscale.dev/remediation':7", ""), 0);
	assert_int_equal(failing(w, "", "{'key':'other','effect':'NoSchedule'}"), 0);
	// The agent writes its record every two minutes: nothing is computed again for that.
	failing(w, RECORD("-1", "1700000000000"), TAINT);
	uint64_t generation = w->c->generation;
	failing(w, RECORD("-1", "1700000000001"), TAINT);
	assert_int_equal(w->c->generation, generation);
}

static void agent_uses_the_names_that_the_account_reads(void **state)
{
	assert_string_equal(CAPACITY_FAILING_TAINT, NODE_TAINT);
	assert_string_equal(CAPACITY_REMEDY_ANNOTATION, NODE_ANNOTATION);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(free_gpus_are_those_that_no_pod_holds),
	        TEST(pod_holds_nothing_after_it_finished),
	        TEST(pods_may_arrive_before_their_node_and_outlive_it),
	        TEST(nodes_that_take_no_pods_do_not_count),
	        TEST(other_resources_limit_too),
	        TEST(taints_keep_pods_away_unless_tolerated),
	        TEST(selectors_and_affinity_choose_nodes),
	        TEST(rules_that_cannot_be_read_are_errors),
	        TEST(pods_that_wait_get_their_room_first),
	        TEST(pods_that_wait_in_a_row_may_have_other_rules),
	        TEST(largest_rules_take_many_steps_once_and_then_few),
	        TEST(rule_of_more_texts_than_the_limit_is_reported),
	        TEST(pods_of_one_namespace_leave_room_for_those_of_others),
	        TEST(message_of_the_scheduler_is_kept),
	        TEST(gated_pod_waits_for_its_gate_and_then_from_the_time_that_it_was_removed),
	        TEST(amounts_that_cannot_be_counted_are_reported_and_count_as_0),
	        TEST(rules_that_are_not_counted_are_named),
	        TEST(gpus_out_of_service_are_those_of_the_record),
	        TEST(agent_uses_the_names_that_the_account_reads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
