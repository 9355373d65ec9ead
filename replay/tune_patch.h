// SPDX-License-Identifier: Apache-2.0
// A policy file with some of its numbers changed. Comments, order, layout and all other content are preserved.
#ifndef GPUSCALE_REPLAY_TUNE_PATCH_H
#define GPUSCALE_REPLAY_TUNE_PATCH_H

#include <stddef.h>

#include "replay/tune_space.h"

struct buf;
struct err;

// Appends text[0..len), from which `space` was read, with those values that differ from the present ones. Numbers that
// the text does not have are added. The result is read again and compared. Returns 0, or -1 and *e: ERR_UNSUPPORTED
// when a number is written in a way that cannot be replaced in its place, ERR_INTERNAL.
int tune_patch_write(const struct tune_space *space, const double values[], const char *text, size_t len,
                     struct buf *out, struct err *e);

#endif
