// SPDX-License-Identifier: Apache-2.0
// Goal: a path leads to one number of an object, whatever the object; the replicas, the existing and ready ones and the
// selector of each kind are those that its own controller works with; the patch changes that number alone, and only the
// version that was read; and docs/targets.md has the table.
#include "k8s/client/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_path.h"

#define META       "\"metadata\":{\"resourceVersion\":\"7\",\"generation\":2}"
#define RAY        "spec.workerGroupSpecs[groupName=gpu].replicas"
#define SPAN(text) ((struct json_span){text, strlen(text)})

static void paths_are_valid_or_refused(void **state)
{
	static const char *const good[] = {"spec.replicas", RAY, "spec.a_b-c[x-y=z.1].d", "a"};
	static const char *const bad[] = {"",
	                                  ".spec",
	                                  "spec.",
	                                  "spec..a",
	                                  "spec.a[",
	                                  "spec.a[b]",
	                                  "spec.a[b=]",
	                                  "spec.a[=b]",
	                                  "spec.a[b=c",
	                                  "spec.a[b=*].c",
	                                  "spec.a[0].c",
	                                  "spec/a",
	                                  "spec.a~b",
	                                  "spec.a[b=c]d",
	                                  "spec.\xc3\xa4",
	                                  "spec a",
	                                  "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q"};
	char longest[JSON_PATH_BYTES_MAX + 2];
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!json_path_is_valid(good[i]))
			fail_msg("%s was refused", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (json_path_is_valid(bad[i]))
			fail_msg("%s was taken", bad[i]);
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_false(json_path_is_valid(longest));
}

static void path_leads_to_a_value_and_its_pointer(void **state)
{
	static const struct {
		const char *path, *value, *pointer, *says;
	} rows[] = {
	        {"a.b", "1", "/a/b", NULL},
	        {"a.c", "", "/a/c", NULL},
	        {"l[n=y].r", "2", "/l/1/r", NULL},
	        {"l[n=z].r", "", "", "l has no item whose n is z"},
	        {"a[n=y].r", "", "", "a has no item whose n is y"},
	        {"a.b.c", "", "", "a.b is not a map"},
	        {"x.y", "", "", "x is not a map"},
	};
	const char *object = "{\"a\":{\"b\":1},\"l\":[{\"n\":\"x\"},{\"n\":\"y\",\"r\":2},7]}";
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct json_span value = {NULL, 0};
		struct buf pointer;
		struct err e = {0};
		buf_init(&pointer, 100);
		int rc = json_path_find(SPAN(object), rows[i].path, &value, &pointer, &e);
		if ((rc < 0) != (rows[i].says != NULL) || (rc < 0 && !strstr(e.msg, rows[i].says)))
			fail_msg("%s: %d, %s", rows[i].path, rc, e.msg);
		if (rc == 0 && (strcmp(buf_str(&pointer), rows[i].pointer) != 0 || value.len != strlen(rows[i].value)))
			fail_msg("%s: %s", rows[i].path, buf_str(&pointer));
		buf_done(&pointer);
	}
}

struct row {
	struct scale_ref ref; // path: of the policy; NULL: none
	const char *object;
	int32_t spec, existing, ready;
	const char *selector;
};

#define JOBSET(parallelism)                                                                                            \
	"{" META ",\"spec\":{\"replicatedJobs\":[{\"name\":\"ps\"},{\"name\":\"w\",\"replicas\":2,\"template\":{"      \
	"\"spec\":{\"completionMode\":\"Indexed\",\"completions\":4,\"parallelism\":" parallelism                      \
	"}}}]},\"status\":{\"replicatedJobsStatus\":[{\"name\":\"ps\",\"ready\":1},{\"name\":\"w\",\"ready\":2}]}}"
#define RAYCLUSTER                                                                                                     \
	"{" META ",\"spec\":{\"workerGroupSpecs\":[{\"groupName\":\"cpu\",\"replicas\":9},{\"groupName\":\"gpu\","     \
	"\"replicas\":3}]},\"status\":{\"readyWorkerReplicas\":11}}"
#define JOB(members) "{" META ",\"spec\":{" members "},\"status\":{\"active\":3,\"ready\":2}}"

static const struct row rows[] = {
        {{"batch/v1", "Job", "ns", "j", NULL}, JOB("\"parallelism\":4"), 4, 3, 2, "batch.kubernetes.io/job-name=j"},
        {{"batch/v1", "Job", "ns", "j", NULL}, JOB(""), 1, 3, 2, "batch.kubernetes.io/job-name=j"},
        {{"ray.io/v1", "RayCluster", "ns", "r", RAY},
         RAYCLUSTER,
         3,
         -1,
         -1,
         "ray.io/cluster=r,ray.io/group=gpu,ray.io/node-type=worker"},
        {{"jobset.x-k8s.io/v1alpha2", "JobSet", "ns", "s", "spec.replicatedJobs[name=w].replicas"},
         JOBSET("4"),
         2,
         -1,
         2,
         "jobset.sigs.k8s.io/jobset-name=s,jobset.sigs.k8s.io/replicatedjob-name=w"},
        {{"jobset.x-k8s.io/v1alpha2", "JobSet", "ns", "s", "spec.replicatedJobs[name=w].template.spec.parallelism"},
         JOBSET("4"),
         4,
         -1,
         -1,
         "jobset.sigs.k8s.io/jobset-name=s,jobset.sigs.k8s.io/replicatedjob-name=w"},
        {{"serving.kserve.io/v1beta1", "InferenceService", "ns", "i", NULL},
         "{" META ",\"spec\":{\"predictor\":{\"maxReplicas\":3}}}",
         1,
         -1,
         -1,
         "serving.kserve.io/inferenceservice=i,component=predictor"},
        {{"disaggregatedset.x-k8s.io/v1", "DisaggregatedSetRoleScaler", "ns", "d", NULL},
         "{" META ",\"spec\":{},\"status\":{\"replicas\":2,\"selector\":\"a=b\"}}",
         2,
         2,
         -1,
         "a=b"},
        {{"example.com/v1", "Other", "ns", "o", "spec.size"},
         "{" META ",\"spec\":{\"size\":5},\"status\":{\"replicas\":4,\"readyReplicas\":3,\"selector\":\"a=b\"}}",
         5,
         4,
         3,
         "a=b"},
        {{"example.com/v1", "Other", "ns", "o", "spec.groups[name=x].size"},
         "{" META ",\"spec\":{\"groups\":[{\"name\":\"x\",\"size\":5}]},\"status\":{\"replicas\":4,\"readyReplicas\":3,"
         "\"selector\":\"a=b\"}}",
         5,
         -1,
         -1,
         ""},
};

static struct scale_ref ref_of(const struct row *r)
{
	struct scale_ref ref = r->ref;
	ref.path = workload_kind_path(ref.api_version, ref.kind, ref.path);
	return ref;
}

static void replicas_of_each_kind_are_read(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		struct scale_ref ref = ref_of(r);
		struct scale s;
		struct err e = {0};
		bool is_stale;
		if (scale_path_read(&ref, SPAN(r->object), &s, &e) < 0)
			fail_msg("%s: %s", ref.kind, e.msg);
		if (s.spec_replicas != r->spec || s.status_replicas != r->existing ||
		    scale_path_ready(&ref, SPAN(r->object), &is_stale) != r->ready ||
		    strcmp(s.selector, r->selector) != 0)
			fail_msg("%s %s: spec %d, existing %d, selector %s", ref.kind, ref.path, s.spec_replicas,
			         s.status_replicas, s.selector);
		assert_string_equal(s.resource_version, "7");
	}
}

static void path_that_leads_to_no_number_is_reported(void **state)
{
	static const struct {
		const char *path, *object, *says;
	} bad[] = {
	        {"spec.size", "{" META ",\"spec\":{\"size\":\"big\"}}", "expected a number of replicas, got \"big\""},
	        {"spec.size", "{" META ",\"spec\":{\"size\":-1}}", "expected a number of replicas"},
	        {"spec.size", "{" META ",\"spec\":{\"size\":99999999999}}", "expected a number of replicas"},
	        {"spec.size", "{" META ",\"spec\":{}}", "no number of replicas there"},
	        {"spec.size", "{" META "}", "spec is not a map"},
	        {"spec.g[n=x].size", "{" META ",\"spec\":{\"g\":[]}}", "spec.g has no item whose n is x"},
	        {"spec.size", "{\"spec\":{\"size\":1}}", "resourceVersion"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct scale_ref ref = {"example.com/v1", "Other", "ns", "o", bad[i].path};
		struct scale s;
		struct err e = {0};
		if (scale_path_read(&ref, SPAN(bad[i].object), &s, &e) == 0 || !strstr(e.msg, bad[i].says))
			fail_msg("%s: %s", bad[i].object, e.msg);
	}
}

#define VERSION      "{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"7\"}"
#define ADD(path, n) ",{\"op\":\"add\",\"path\":\"" path "\",\"value\":" n "}"

static void patch_changes_that_number_of_that_version(void **state)
{
	static const struct {
		struct scale_ref ref;
		const char *object;
		int32_t replicas;
		const char *patch;
	} patches[] = {
	        {{"ray.io/v1", "RayCluster", "ns", "r", RAY},
	         RAYCLUSTER,
	         5,
	         "[" VERSION ADD("/spec/workerGroupSpecs/1/replicas", "5") "]"},
	        {{"batch/v1", "Job", "ns", "j", "spec.parallelism"},
	         JOB("\"parallelism\":4"),
	         6,
	         "[" VERSION ADD("/spec/parallelism", "6") "]"},
	        // An elastic Indexed Job: both numbers change together; not where completions are the size of the work.
	        {{"batch/v1", "Job", "ns", "j", "spec.parallelism"},
	         JOB("\"completionMode\":\"Indexed\",\"completions\":4,\"parallelism\":4"),
	         6,
	         "[" VERSION ADD("/spec/parallelism", "6") ADD("/spec/completions", "6") "]"},
	        {{"batch/v1", "Job", "ns", "j", "spec.parallelism"},
	         JOB("\"completionMode\":\"Indexed\",\"completions\":9,\"parallelism\":4"),
	         6,
	         "[" VERSION ADD("/spec/parallelism", "6") "]"},
	        {{"batch/v1", "Job", "ns", "j", "spec.parallelism"},
	         JOB("\"completions\":4,\"parallelism\":4"),
	         6,
	         "[" VERSION ADD("/spec/parallelism", "6") "]"},
	        {{"batch/v1", "Job", "ns", "j", "spec.parallelism"},
	         JOB("\"completionMode\":\"Indexed\",\"completions\":4,\"parallelism\":4"),
	         0,
	         "[" VERSION ADD("/spec/parallelism", "0") "]"},
	        {{"jobset.x-k8s.io/v1", "JobSet", "ns", "s", "spec.replicatedJobs[name=w].template.spec.parallelism"},
	         JOBSET("4"),
	         2,
	         "[" VERSION ADD("/spec/replicatedJobs/1/template/spec/parallelism", "2")
	                 ADD("/spec/replicatedJobs/1/template/spec/completions", "2") "]"},
	        {{"serving.kserve.io/v1beta1", "InferenceService", "ns", "i", "spec.predictor.minReplicas"},
	         "{" META ",\"spec\":{\"predictor\":{}}}",
	         0,
	         "[" VERSION ADD("/spec/predictor/minReplicas", "0") ADD("/spec/predictor/maxReplicas", "1") "]"},
	};
	for (size_t i = 0; i < sizeof patches / sizeof *patches; i++) {
		struct buf body;
		struct err e = {0};
		buf_init(&body, 2048);
		if (scale_path_write_patch(&patches[i].ref, SPAN(patches[i].object), "7", patches[i].replicas, &body,
		                           &e) < 0)
			fail_msg("%s: %s", patches[i].ref.kind, e.msg);
		assert_string_equal(buf_str(&body), patches[i].patch);
		assert_int_equal(scale_path_write_patch(&patches[i].ref, SPAN(patches[i].object), "6", 1, &body, &e),
		                 -1);
		assert_int_equal(e.kind, ERR_CONFLICT);
		buf_done(&body);
	}
}

static void path_of_a_scale_subresource_is_that_subresource(void **state)
{
	assert_null(workload_kind_path("apps/v1", "Deployment", "spec.replicas"));
	assert_null(workload_kind_path("apps/v1", "Deployment", NULL));
	assert_null(workload_kind_path("example.com/v1", "Other", NULL));
	assert_null(workload_kind_path("ray.io/v1", "RayCluster", NULL));
	assert_string_equal(workload_kind_path("batch/v1", "Job", NULL), "spec.parallelism");
	assert_string_equal(workload_kind_path("example.com/v1", "Other", "spec.replicas"), "spec.replicas");
	// What is known of a kind is not taken for another number of it.
	assert_null(workload_kind_find("ray.io/v1", "RayCluster", "spec.headGroupSpec.replicas")->group);
	assert_string_equal(workload_kind_find("ray.io/v1", "RayCluster", RAY)->kind, "RayCluster");
}

static void page_and_rights_have_every_kind(void **state)
{
	const struct workload_kind *k;
	struct buf page, rights;
	struct err e = {0};
	char line[256];
	buf_init(&page, 65536);
	buf_init(&rights, 65536);
	assert_int_equal(buf_read_file(&page, "docs/targets.md", &e), 0);
	assert_int_equal(buf_read_file(&rights, "manifests/chart/templates/kinds.yaml", &e), 0);
	for (size_t i = 0; (k = workload_kind_at(i)); i++) {
		if (k->plural)
			continue;
		snprintf(line, sizeof line, "| `%s` | `%s` | `%s` |", k->kind, k->group, k->path ? k->path : "/scale");
		if (!strstr(buf_str(&page), line))
			fail_msg("docs/targets.md has no line %s", line);
		snprintf(line, sizeof line, "kind: %s, name:", k->kind);
		if (!strstr(buf_str(&page), line))
			fail_msg("docs/targets.md has no example of %s", k->kind);
		snprintf(line, sizeof line, " \"%s\"", k->group);
		if (!strstr(buf_str(&rights), line))
			fail_msg("the chart has no rights for %s", k->group);
	}
	buf_done(&page);
	buf_done(&rights);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(paths_are_valid_or_refused),
	        cmocka_unit_test(path_leads_to_a_value_and_its_pointer),
	        cmocka_unit_test(replicas_of_each_kind_are_read),
	        cmocka_unit_test(path_that_leads_to_no_number_is_reported),
	        cmocka_unit_test(patch_changes_that_number_of_that_version),
	        cmocka_unit_test(path_of_a_scale_subresource_is_that_subresource),
	        cmocka_unit_test(page_and_rights_have_every_kind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
