// SPDX-License-Identifier: Apache-2.0
// The unit tests of a policy, which better numbers must keep.
#include "base/base.h"
#include "replay/tune.h"

#include "base/arena.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/test/scenario.h"

#define TESTS_ARENA_MAX (256 * 1024 * 1024)
#define REPORT_MAX      (1024 * 1024)

void tune_tests_free(struct tune_tests *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_sets; i++)
		file_set_done(&t->sets[i]);
	free(t->sets);
	free(t->tests);
	arena_done(&t->arena);
	arena_done(&t->run);
	free(t);
}

// A test that exceeds a limit fails.
static bool passes(struct arena *a, const struct scenario *test, const struct policy *policy)
{
	struct scenario copy = *test;
	struct scenario_result result;
	struct err e;
	copy.policy = policy;
	arena_reset(a);
	return scenario_run(&copy, NULL, a, &result, &e) == 0 && result.n == 0;
}

// Reads the policies of one document, relative to the test file.
static int load_policies(struct tune_tests *t, const struct scenario_file *doc, struct err *e)
{
	const char *slash = strrchr(t->path, '/');
	const char **paths = arena_calloc(&t->arena, doc->n_policy_files + 1, sizeof *paths);
	struct buf why;
	if (!paths)
		return err_set(e, ERR_LIMIT, "%s: the tests do not fit into the memory allowed", t->path);
	for (size_t i = 0; i < doc->n_policy_files; i++) {
		paths[i] = doc->policy_files[i][0] == '/' || !slash
		                   ? doc->policy_files[i]
		                   : arena_printf(&t->arena, "%.*s/%s", (int)(slash - t->path), t->path,
		                                  doc->policy_files[i]);
		if (!paths[i])
			return err_set(e, ERR_LIMIT, "%s: the tests do not fit into the memory allowed", t->path);
	}
	buf_init(&why, REPORT_MAX);
	struct file_set *set = &t->sets[t->n_sets];
	int rc = file_set_load(set, paths, doc->n_policy_files, NULL, &why, e);
	if (rc == 0)
		t->n_sets++;
	if (rc == 0 && set->n_errors > 0)
		rc = err_set(e, ERR_INPUT, "%s: a policy file is invalid: %.200s", t->path, buf_str(&why));
	buf_done(&why);
	return rc;
}

static bool is_same(const struct policy *a, const struct policy *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->namespace_name, b->namespace_name) == 0;
}

static int add_document(struct tune_tests *t, const struct doc_node *root, const struct policy *policy, struct err *e)
{
	struct schema_errors errors;
	struct scenario_file doc = {0};
	schema_errors_init(&errors, t->path);
	if (schema_decode(&scenario_schema, root, &doc, &t->arena, &errors, "") < 0)
		return err_set(e, ERR_INPUT, "%s:%d: %s: %s", t->path, errors.items[0].line, errors.items[0].path,
		               errors.items[0].message);
	if (load_policies(t, &doc, e) < 0)
		return -1;
	struct scenario **grown = realloc(t->tests, (t->n + doc.n_tests + 1) * sizeof(struct scenario *));
	if (!grown)
		return err_no_memory(e);
	t->tests = grown;
	const struct doc_node *node = doc_get(root, "tests")->child;
	for (size_t i = 0; i < doc.n_tests; i++, node = node->next) {
		schema_errors_init(&errors, t->path);
		if (scenario_bind(&doc.tests[i], node, i, doc.interval_ms, &t->sets[t->n_sets - 1], &t->arena,
		                  &errors) < 0)
			continue; // `gpuscale test` reports why the test cannot be run
		if (is_same(doc.tests[i].policy, policy) && doc.tests[i].policy->n_signals == policy->n_signals &&
		    passes(&t->run, &doc.tests[i], policy))
			t->tests[t->n++] = &doc.tests[i];
	}
	return 0;
}

static int read_file(struct tune_tests *t, const struct policy *policy, struct err *e)
{
	struct doc_file doc;
	if (doc_read_yaml(&t->arena, t->path, false, &doc, e) < 0)
		return -1;
	t->sets = calloc(doc.n_roots + 1, sizeof *t->sets);
	if (!t->sets)
		return err_no_memory(e);
	for (size_t i = 0; i < doc.n_roots; i++)
		if (strcmp(doc_get_text(doc.roots[i], "kind", ""), "PolicyTest") == 0 &&
		    add_document(t, doc.roots[i], policy, e) < 0)
			return -1;
	return 0;
}

int tune_tests_load(const char *path, const struct policy *policy, struct tune_tests **ret_tests, struct err *e)
{
	struct tune_tests *t = *ret_tests = calloc(1, sizeof *t);
	if (!t)
		return err_no_memory(e);
	t->path = path;
	arena_init(&t->arena, TESTS_ARENA_MAX);
	arena_init(&t->run, TESTS_ARENA_MAX);
	int rc = read_file(t, policy, e);
	if (rc < 0 || t->n == 0) {
		tune_tests_free(t);
		*ret_tests = NULL;
	}
	return rc;
}

size_t tune_tests_run(struct tune_tests *t, const struct policy *policy, struct tune_broken *ret_broken)
{
	size_t n = 0;
	struct tune_broken broken = {.n = 0};
	for (size_t i = 0; i < t->n; i++) {
		const struct scenario *test = t->tests[i];
		if (passes(&t->run, test, policy))
			continue;
		if (broken.n < TUNE_TESTS_BROKEN_MAX)
			broken.tests[broken.n++] = (struct tune_test_name){test->name, test->line};
		n++;
	}
	if (ret_broken)
		*ret_broken = broken;
	return n;
}
