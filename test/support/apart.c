// SPDX-License-Identifier: Apache-2.0
#include "test/support/apart.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/on_valgrind.h"

#define LINE_BYTES_MAX   4096
#define AT_ONCE_VALGRIND 3 // more would starve each other, and their waits would end too early

// exit(), not _exit(): what looks for leaks and counts lines does so there.
static pid_t start_one(const struct CMUnitTest *test, FILE *out)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	if (dup2(fileno(out), STDOUT_FILENO) < 0 || dup2(fileno(out), STDERR_FILENO) < 0)
		exit(99);
	exit(_cmocka_run_group_tests("tests", test, 1, NULL, NULL) == 0 ? 0 : 1);
}

// Prints the output of test number `number`; its own number, 1, becomes that. Returns whether it failed.
static bool tell(const struct CMUnitTest *test, size_t number, int status, FILE *out)
{
	char line[LINE_BYTES_MAX];
	bool said = false, failed = false;
	rewind(out);
	while (fgets(line, sizeof line, out)) {
		bool bad = strncmp(line, "not ok 1 ", 9) == 0;
		if (bad || strncmp(line, "ok 1 ", 5) == 0) {
			said = true;
			failed = failed || (bad && !strstr(line, "# SKIP")); // as cmocka says it
			printf("%sok %zu %s", bad ? "not " : "", number, line + (bad ? 9 : 5));
		} else if (strncmp(line, "1..", 3) != 0) {
			fputs(line, stdout);
		}
	}
	if (!said || (status != 0 && !failed)) {
		failed = true;
		// Two lines for one test would be a wrong plan: then the exit status alone says it.
		if (!said)
			printf("not ok %zu - %s\n", number, test->name);
		printf("# %s ended with wait status %d\n", test->name, status);
	}
	return failed;
}

int test_run_apart(const struct CMUnitTest *tests, size_t n)
{
	pid_t pids[TEST_APART_MAX];
	FILE *outs[TEST_APART_MAX];
	int n_failed = 0;
	size_t n_started = 0, at_once = on_valgrind() ? AT_ONCE_VALGRIND : n;
	assert(n <= TEST_APART_MAX);
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1); // also when run by hand: report() reads it
	printf("1..%zu\n", n);
	fflush(stdout);
	for (size_t i = 0; i < n; i++) {
		int status = -1;
		for (; n_started < n && n_started < i + at_once; n_started++) {
			outs[n_started] = tmpfile();
			fflush(stdout); // a child would print it again
			pids[n_started] = outs[n_started] ? start_one(&tests[n_started], outs[n_started]) : -1;
		}
		if (pids[i] < 0) {
			printf("not ok %zu - %s\n# %s\n", i + 1, tests[i].name, strerror(errno));
			n_failed++;
			continue;
		}
		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			;
		n_failed += tell(&tests[i], i + 1, status, outs[i]);
		fclose(outs[i]);
	}
	return n_failed;
}
