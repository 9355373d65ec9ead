// SPDX-License-Identifier: Apache-2.0
// The largest value of the last n ticks, in nine numbers instead of n: the ticks are grouped in blocks of n / 8, and a
// block is forgotten as a whole. The value covers the last n ticks (rounded down to whole blocks, at least nine ticks)
// and up to a block more. Part of the flat state; has no padding; all zero at the start.
#ifndef GPUSCALE_POLICIES_ENGINE_BLOCK_MAX_H
#define GPUSCALE_POLICIES_ENGINE_BLOCK_MAX_H

#include <stdint.h>

#define BLOCK_MAX_BLOCKS 9

struct block_max {
	float blocks[BLOCK_MAX_BLOCKS];
	uint16_t filled; // ticks in the current block
	uint16_t at;     // the current block
};

// Adds the value of a tick, which is not negative, and returns the largest one of the last n ticks. n may change.
float block_max_add(struct block_max *b, int n, float value);

#endif
