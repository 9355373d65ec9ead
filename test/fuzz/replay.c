// SPDX-License-Identifier: Apache-2.0
// main() for a fuzz target where there is no fuzzing engine: every file named, and every file in every directory named,
// is fed to the target once. So the corpora are regression tests with any compiler.
//   build/release/fuzz/fuzz_num test/fuzz/corpus/num
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

#define INPUT_BYTES_MAX (1024 * 1024)
#define INPUTS_MAX      10000
#define DEPTH_MAX       4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t *inputs, struct err *e)
{
	if (*inputs == INPUTS_MAX)
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
		LLVMFuzzerTestOneInput((const uint8_t *)exact, b.len);
		++*inputs;
	}
	free(exact);
	buf_done(&b);
	return rc;
}

static int replay(const char *path, int depth, size_t *inputs, struct err *e);

static int replay_directory(const char *path, int depth, size_t *inputs, struct err *e)
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
				rc = replay(buf_str(&child), depth + 1, inputs, e);
		}
		buf_done(&child);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

static int replay(const char *path, int depth, size_t *inputs, struct err *e)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return err_set_code(e, ERR_IO, errno, "cannot open %s: %s", path, strerror(errno));
	return S_ISDIR(st.st_mode) ? replay_directory(path, depth, inputs, e) : replay_file(path, inputs, e);
}

int main(int argc, char **argv)
{
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: %s FILE|DIRECTORY...\n", argc ? argv[0] : "replay");
		return 2;
	}
	size_t inputs = 0;
	struct err e;
	for (int i = 1; i < argc; i++)
		if (replay(argv[i], 0, &inputs, &e) < 0) {
			fprintf(stderr, "%s: %s\n", argv[0], e.msg);
			return 1;
		}
	printf("%zu inputs replayed\n", inputs);
	return inputs ? 0 : 1;
}
