// SPDX-License-Identifier: Apache-2.0
// Reading policies from files and folders: what is taken, what is refused where, and what a bad reload keeps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_ref.h"

struct fixture {
	char dir[64];
	struct buf report;
	struct err e;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	snprintf(f->dir, sizeof f->dir, "/tmp/policy-set-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	buf_init(&f->report, 1 << 20);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"a.yaml",      "b.yaml",    "c.json",       "d.txt",
	                                    "e_test.yaml", "sub/f.yml", ".hidden.yaml", "sub",
	                                    "loop.yaml",   "gone.yaml", "pipe.yaml"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/%s", f->dir, names[i]);
		remove(path);
	}
	rmdir(f->dir);
	buf_done(&f->report);
	free(f);
	return 0;
}

static void put(const struct fixture *f, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", f->dir, name);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static const char *policy(char *out, size_t size, const char *name, const char *target, const char *max)
{
	snprintf(out, size,
	         "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: %s, namespace: "
	         "serving}\nspec:\n"
	         "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}\n  maxReplicas: %s\n"
	         "  signals:\n  - {name: q, query: up, target: {type: Value, value: 1}}\n",
	         name, target, max);
	return out;
}

static int load(struct fixture *f, struct file_set *set, const struct file_set *previous)
{
	const char *paths[] = {f->dir};
	buf_reset(&f->report);
	return file_set_load(set, paths, 1, previous, &f->report, &f->e);
}

static void folders_are_read_and_other_files_left_alone(void **state)
{
	struct fixture *f = *state;
	char text[1024], sub[128];
	snprintf(sub, sizeof sub, "%s/sub", f->dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "4"));
	put(f, "sub/f.yml", policy(text, sizeof text, "f", "f", "4"));
	put(f, "d.txt", "not yaml: [");
	put(f, "e_test.yaml", "kind: PolicyTest\n");
	put(f, ".hidden.yaml", "not yaml: [");
	put(f, "c.json",
	    "{\"apiVersion\":\"gpuscale.dev/"
	    "v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"c\"},\"spec\":{"
	    "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"c\"},\"maxReplicas\":2,"
	    "\"signals\":[{\"name\":\"q\",\"query\":\"up\",\"target\":{\"type\":\"Value\",\"value\":\"1\"}}]}}");
	struct file_set set;
	assert_int_equal(load(f, &set, NULL), 0);
	assert_string_equal(buf_str(&f->report), "");
	assert_int_equal(set.n_policies, 3);
	assert_string_equal(set.policies[0]->name, "c"); // namespace default sorts first
	assert_string_equal(set.policies[0]->namespace_name, "default");
	assert_string_equal(set.policies[1]->name, "a");
	assert_string_equal(set.policies[2]->name, "f");
	assert_int_equal(set.n_errors, 0);
	file_set_done(&set);
}

static void bad_file_does_not_stop_the_others(void **state)
{
	struct fixture *f = *state;
	char text[1024];
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "nonsense"));
	put(f, "b.yaml", policy(text, sizeof text, "b", "b", "4"));
	struct file_set set;
	assert_int_equal(load(f, &set, NULL), 0);
	assert_int_equal(set.n_policies, 1);
	assert_string_equal(set.policies[0]->name, "b");
	assert_int_equal(set.n_bad_files, 1);
	assert_int_equal(set.n_errors, 1);
	assert_non_null(strstr(buf_str(&f->report), "/a.yaml:6:16: spec.maxReplicas: "));
	file_set_done(&set);
}

static void file_that_turns_bad_keeps_its_last_good_policies(void **state)
{
	struct fixture *f = *state;
	char text[1024];
	struct file_set one, two, three;
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "4"));
	assert_int_equal(load(f, &one, NULL), 0);
	put(f, "a.yaml", "spec: [broken");
	assert_int_equal(load(f, &two, &one), 0);
	file_set_done(&one); // what two kept must not live in one
	assert_int_equal(two.n_policies, 1);
	assert_int_equal(two.policies[0]->max_replicas, 4);
	assert_int_equal(two.n_bad_files, 1);
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "9"));
	assert_int_equal(load(f, &three, &two), 0);
	file_set_done(&two);
	assert_int_equal(three.n_policies, 1);
	assert_int_equal(three.policies[0]->max_replicas, 9);
	assert_int_equal(three.n_bad_files, 0);
	file_set_done(&three);
}

static void deleted_file_takes_its_policies_along(void **state)
{
	struct fixture *f = *state;
	char text[1024], path[128];
	struct file_set one, two;
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "4"));
	put(f, "b.yaml", policy(text, sizeof text, "b", "b", "4"));
	assert_int_equal(load(f, &one, NULL), 0);
	snprintf(path, sizeof path, "%s/a.yaml", f->dir);
	assert_int_equal(remove(path), 0);
	assert_int_equal(load(f, &two, &one), 0);
	assert_int_equal(two.n_policies, 1);
	assert_string_equal(two.policies[0]->name, "b");
	file_set_done(&one);
	file_set_done(&two);
}

static void doubles_are_errors_at_the_second_place(void **state)
{
	struct fixture *f = *state;
	char text[1024], want[256];
	struct file_set set;
	put(f, "a.yaml", policy(text, sizeof text, "a", "tx", "4"));
	put(f, "b.yaml", policy(text, sizeof text, "a", "ty", "4"));
	assert_int_equal(load(f, &set, NULL), 0);
	assert_int_equal(set.n_policies, 1);
	assert_string_equal(policy_ref_of(set.policies[0])->target.name, "tx");
	snprintf(want, sizeof want,
	         "%s/b.yaml:1:1: policy a is already defined as serving/a at %s/a.yaml:1: remove one of them\n", f->dir,
	         f->dir);
	assert_string_equal(buf_str(&f->report), want);
	file_set_done(&set);

	put(f, "b.yaml", policy(text, sizeof text, "b", "tx", "4"));
	assert_int_equal(load(f, &set, NULL), 0);
	assert_int_equal(set.n_policies, 1);
	assert_string_equal(set.policies[0]->name, "a");
	snprintf(want, sizeof want,
	         "%s/b.yaml:1:1: target tx is already scaled by serving/a at %s/a.yaml:1: remove one of them\n", f->dir,
	         f->dir);
	assert_string_equal(buf_str(&f->report), want);
	file_set_done(&set);
}

static void fingerprint_follows_what_is_on_disk(void **state)
{
	struct fixture *f = *state;
	const char *paths[] = {f->dir}, *gone[] = {"/nonexistent/policies"};
	char text[1024];
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "4"));
	struct file_set set;
	assert_int_equal(load(f, &set, NULL), 0);
	assert_true(set.fingerprint == file_set_fingerprint(paths, 1));
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "14"));
	assert_true(set.fingerprint != file_set_fingerprint(paths, 1));
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "4"));
	put(f, "d.txt", "no policy");
	uint64_t same = file_set_fingerprint(paths, 1);
	put(f, "d.txt", "still no policy");
	assert_true(same == file_set_fingerprint(paths, 1));
	assert_true(file_set_fingerprint(gone, 1) == 0);
	file_set_done(&set);
}

static void unchanged_policy_is_not_created_again(void **state)
{
	struct fixture *f = *state;
	char a[1024], b[1024], both[2100];
	struct file_set one, two, three, four;
	policy(a, sizeof a, "a", "ta", "4");
	policy(b, sizeof b, "b", "tb", "4");
	put(f, "a.yaml", a);
	snprintf(both, sizeof both, "%s---\n%s", policy(a, sizeof a, "c", "tc", "4"), b);
	put(f, "b.yaml", both);
	assert_int_equal(load(f, &one, NULL), 0);
	snprintf(both, sizeof both, "%s---\n# a remark\n%s", policy(a, sizeof a, "c", "tc", "9"), b);
	put(f, "b.yaml", both);
	assert_int_equal(load(f, &two, &one), 0);
	assert_int_equal(two.n_policies, 3);
	assert_ptr_equal(two.policies[0], one.policies[0]); // its file is the same
	assert_ptr_equal(two.policies[1], one.policies[1]); // its file is not
	assert_ptr_not_equal(two.policies[2], one.policies[2]);
	assert_int_equal(two.policies[1]->line, 11);
	file_set_done(&one);
	put(f, "b.yaml", "broken: [");
	assert_int_equal(load(f, &three, &two), 0);
	assert_ptr_equal(three.policies[2], two.policies[2]);
	file_set_done(&two);
	assert_int_equal(load(f, &four, &three), 0); // an unchanged bad file is still bad
	assert_int_equal(four.n_bad_files, 1);
	assert_int_equal(four.n_policies, 3);
	assert_non_null(strstr(buf_str(&f->report), "b.yaml:"));
	file_set_done(&three);
	file_set_done(&four);
}

static void stale_set_reads_every_file_again(void **state)
{
	struct fixture *f = *state;
	char text[1024];
	struct file_set one, two;
	put(f, "a.yaml", policy(text, sizeof text, "a", "ta", "4"));
	assert_int_equal(load(f, &one, NULL), 0);
	one.is_stale = true;
	assert_int_equal(load(f, &two, &one), 0);
	assert_ptr_not_equal(two.files[0], one.files[0]);
	assert_ptr_equal(two.policies[0], one.policies[0]); // and finds the same in it
	file_set_done(&one);
	file_set_done(&two);
}

static void paths_that_cannot_be_read_are_errors(void **state)
{
	struct fixture *f = *state;
	const char *gone[] = {"/nonexistent/policies"};
	struct file_set set;
	assert_int_equal(file_set_load(&set, gone, 1, NULL, &f->report, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_NOT_FOUND);
	assert_string_equal(f->e.msg, "cannot read /nonexistent/policies: No such file or directory");
	assert_int_equal(load(f, &set, NULL), 0); // an empty folder is not an error here
	assert_int_equal(set.n_policies, 0);
	file_set_done(&set);
}

static void pipe_in_a_folder_is_an_error_and_not_waited_for(void **state)
{
	struct fixture *f = *state;
	char text[1024], path[128];
	struct file_set set;
	put(f, "a.yaml", policy(text, sizeof text, "a", "a", "4"));
	snprintf(path, sizeof path, "%s/loop.yaml", f->dir);
	assert_int_equal(symlink("loop.yaml", path), 0);
	snprintf(path, sizeof path, "%s/gone.yaml", f->dir);
	assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(load(f, &set, NULL), 0); // links to nothing are ignored
	assert_int_equal(set.n_policies, 1);
	file_set_done(&set);
	snprintf(path, sizeof path, "%s/pipe.yaml", f->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(load(f, &set, NULL), -1);
	assert_non_null(strstr(f->e.msg, "pipe.yaml: expected a regular file, found a named pipe"));
	const char *named[] = {path};
	assert_int_equal(file_set_load(&set, named, 1, NULL, &f->report, &f->e), -1);
	assert_non_null(strstr(f->e.msg, "pipe.yaml: expected a regular file, found a named pipe"));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(folders_are_read_and_other_files_left_alone),
	        T(bad_file_does_not_stop_the_others),
	        T(file_that_turns_bad_keeps_its_last_good_policies),
	        T(deleted_file_takes_its_policies_along),
	        T(doubles_are_errors_at_the_second_place),
	        T(fingerprint_follows_what_is_on_disk),
	        T(unchanged_policy_is_not_created_again),
	        T(stale_set_reads_every_file_again),
	        T(paths_that_cannot_be_read_are_errors),
	        T(pipe_in_a_folder_is_an_error_and_not_waited_for),
	};
	return cmocka_run_group_tests_name("file_set", tests, NULL, NULL);
}
