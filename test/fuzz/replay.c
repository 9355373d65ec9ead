// SPDX-License-Identifier: Apache-2.0
// main() for a fuzz target where there is no fuzzing engine: every file named, and every file in every directory named,
// is fed to the target once, and then with each of its JSON or YAML values replaced by one of every other type. So the
// corpora are regression tests with any compiler.
//   build/release/fuzz/fuzz_num build/release/fuzz/corpus/num      (unpacked by test/fuzz/run-replay)
// With -v, each input is printed before it is fed: where the target fails, the last one is the culprit.
// Exit: 0 all replayed, 1 no input or an input that cannot be read, 2 usage; a failing target aborts.
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "test/fuzz/type_sweep.h"

#define INPUT_BYTES_MAX (1024 * 1024)
#define INPUTS_MAX      10000
#define DEPTH_MAX       4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct count {
	size_t inputs, swept;
};

// Set once in main(): the sweep's callback has no argument for it.
static bool prints_inputs;

static int feed(const uint8_t *data, size_t len)
{
	if (prints_inputs) {
		fwrite(data, 1, len, stdout);
		putchar('\n');
		fflush(stdout);
	}
	return LLVMFuzzerTestOneInput(data, len);
}

static int replay_file(const char *path, struct count *count, struct err *e)
{
	if (count->inputs == INPUTS_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than the ceiling of %d inputs", path, INPUTS_MAX);
	struct buf b;
	buf_init(&b, INPUT_BYTES_MAX);
	int rc = buf_read_file(&b, path, e);
	// A block of exactly that size: a sanitizer then sees the first byte read too far.
	char *exact = rc == 0 ? malloc(b.len ? b.len : 1) : NULL;
	if (rc == 0 && !exact)
		rc = err_set(e, ERR_INTERNAL, "%s: out of memory", path);
	if (exact) {
		memcpy(exact, buf_str(&b), b.len);
		feed((const uint8_t *)exact, b.len);
		count->inputs++;
		count->swept += type_sweep((const uint8_t *)exact, b.len, feed);
	}
	free(exact);
	buf_done(&b);
	return rc;
}

static int replay(const char *path, int depth, struct count *count, struct err *e);

static int replay_directory(const char *path, int depth, struct count *count, struct err *e)
{
	if (depth == DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%s: deeper than the ceiling of %d directories", path, DEPTH_MAX);
	struct dirent **entries;
	int n = scandir(path, &entries, NULL, alphasort), rc = 0; // sorted: two runs do the same
	if (n < 0)
		return err_set_code(e, ERR_IO, errno, "cannot list %s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		struct buf child;
		buf_init(&child, 4096);
		if (rc == 0 && entries[i]->d_name[0] != '.') {
			rc = buf_printf(&child, "%s/%s", path, entries[i]->d_name);
			if (rc < 0)
				err_set(e, ERR_LIMIT, "a path below %s is longer than %zu bytes", path, child.max);
			else
				rc = replay(buf_str(&child), depth + 1, count, e);
		}
		buf_done(&child);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

static int replay(const char *path, int depth, struct count *count, struct err *e)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return err_set_code(e, ERR_IO, errno, "cannot open %s: %s", path, strerror(errno));
	return S_ISDIR(st.st_mode) ? replay_directory(path, depth, count, e) : replay_file(path, count, e);
}

int main(int argc, char **argv)
{
	prints_inputs = argc > 1 && strcmp(argv[1], "-v") == 0;
	int first = prints_inputs ? 2 : 1;
	if (argc <= first || argv[first][0] == '-') {
		fprintf(stderr, "usage: %s [-v] FILE|DIRECTORY...\n", argc ? argv[0] : "replay");
		return 2;
	}
	struct count count = {0};
	struct err e;
	for (int i = first; i < argc; i++)
		if (replay(argv[i], 0, &count, &e) < 0) {
			fprintf(stderr, "%s: %s\n", argv[0], e.msg);
			return 1;
		}
	printf("%zu inputs replayed, %zu more with a value of another type\n", count.inputs, count.swept);
	return count.inputs ? 0 : 1;
}
