// SPDX-License-Identifier: Apache-2.0
// A folder of small files for one test, such as a /sys of its own; removed at the end.
#ifndef GPUSCALE_TEST_SUPPORT_TREE_H
#define GPUSCALE_TEST_SUPPORT_TREE_H

struct tree {
	char root[32];
};

void tree_make(struct tree *t);
void tree_remove(struct tree *t);
// Writes a file below the root, with the folders on its way; replaces it when it is there.
void tree_write(const struct tree *t, const char *path, const char *text);
// Removes a file or a folder with all it holds.
void tree_delete(const struct tree *t, const char *path);

#endif
