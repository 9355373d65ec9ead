// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files and folders given, without libFuzzer: corpora double as unit tests with any
// compiler.
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REPLAY_FILE_MAX_BYTES (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	// A copy of exactly the file's size, so that a sanitizer sees a read past its end.
	uint8_t *all = malloc(REPLAY_FILE_MAX_BYTES), *exact = NULL;
	size_t size = all ? fread(all, 1, REPLAY_FILE_MAX_BYTES, f) : 0;
	int failed = !all || ferror(f) || !feof(f) || !(exact = malloc(size ? size : 1));
	if (failed) {
		fprintf(stderr, "%s: cannot be read whole (at most %u bytes)\n", path, REPLAY_FILE_MAX_BYTES);
	} else {
		memcpy(exact, all, size);
		free(all);
		all = NULL;
		LLVMFuzzerTestOneInput(exact, size);
	}
	free(exact);
	free(all);
	fclose(f);
	return failed ? -1 : 0;
}

static int replay_folder(const char *path, unsigned *count)
{
	DIR *d = opendir(path);
	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	int rc = 0;
	for (struct dirent *e; rc == 0 && (e = readdir(d));) {
		char file[4096];
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		rc = replay_file(file);
		++*count;
	}
	closedir(d);
	return rc;
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	for (int i = 1; i < argc; i++) {
		struct stat st;
		int rc;
		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
			rc = replay_folder(argv[i], &count);
		} else {
			rc = replay_file(argv[i]);
			count++;
		}
		if (rc < 0)
			return 1;
	}
	printf("%u inputs\n", count);
	return count ? 0 : 1;
}
