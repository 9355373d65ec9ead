// SPDX-License-Identifier: Apache-2.0
#include "test/support/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_MAX_DIRS 16
#define PATH_BYTES    512

void tree_make(struct tree *t)
{
	snprintf(t->root, sizeof t->root, "/tmp/gpuscale-tree-XXXXXX");
	assert_non_null(mkdtemp(t->root));
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

void tree_remove(struct tree *t)
{
	assert_int_equal(nftw(t->root, remove_entry, OPEN_MAX_DIRS, FTW_DEPTH | FTW_PHYS), 0);
}

void tree_delete(const struct tree *t, const char *path)
{
	char full[PATH_BYTES];
	assert_true(snprintf(full, sizeof full, "%s/%s", t->root, path) < PATH_BYTES);
	assert_int_equal(nftw(full, remove_entry, OPEN_MAX_DIRS, FTW_DEPTH | FTW_PHYS), 0);
}

void tree_write(const struct tree *t, const char *path, const char *text)
{
	char full[PATH_BYTES];
	assert_true(snprintf(full, sizeof full, "%s/%s", t->root, path) < PATH_BYTES);
	for (char *p = full + strlen(t->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdir(full, 0700); // is there, or the file cannot be made
	}
	FILE *out = fopen(full, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}
