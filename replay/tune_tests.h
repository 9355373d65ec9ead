// SPDX-License-Identifier: Apache-2.0
// The unit tests of a policy (kind: PolicyTest), which better numbers must keep: those that the present policy passes
// are run with other numbers in its place.
#ifndef GPUSCALE_REPLAY_TUNE_TESTS_H
#define GPUSCALE_REPLAY_TUNE_TESTS_H

#include <stddef.h>

struct err;
struct policy;
struct tune_tests; // opaque

struct tune_test_name {
	const char *name;
	int line;
};
#define TUNE_TESTS_BROKEN_MAX 64 // that tune_tests_run() names
struct tune_broken {
	struct tune_test_name tests[TUNE_TESTS_BROKEN_MAX];
	size_t n; // named ones
};

// Reads the tests of `policy` from the file at `path`, which must outlive the result, and drops those of other policies
// and those that `policy` itself fails. *ret_tests is NULL on failure and when no test is left; otherwise the caller
// frees it. Returns 0, or -1 and *e (ERR_IO, ERR_INPUT, ERR_LIMIT, ERR_INTERNAL) when the file, or a policy file that
// it names, cannot be read or decoded.
int tune_tests_load(const char *path, const struct policy *policy, struct tune_tests **ret_tests, struct err *e);
void tune_tests_free(struct tune_tests *t); // t may be NULL
size_t tune_tests_count(const struct tune_tests *t);
const char *tune_tests_path(const struct tune_tests *t);
// Runs the tests with `policy`, which differs from that of tune_tests_load() in numbers only, and returns how many
// fail. *ret_broken, which may be NULL, names them until tune_tests_free(). Not for several threads at once.
size_t tune_tests_run(struct tune_tests *t, const struct policy *policy, struct tune_broken *ret_broken);

#endif
