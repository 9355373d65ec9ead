// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/block_max.h"

float block_max_add(struct block_max *b, int n, float value)
{
	int block = n < BLOCK_MAX_BLOCKS - 1 ? 1 : n / (BLOCK_MAX_BLOCKS - 1);
	if (++b->filled > block) {
		b->filled = 1;
		b->at = (uint16_t)((b->at + 1) % BLOCK_MAX_BLOCKS);
		b->blocks[b->at] = 0;
	}
	if (value > b->blocks[b->at])
		b->blocks[b->at] = value;
	float largest = 0;
	for (int i = 0; i < BLOCK_MAX_BLOCKS; i++)
		largest = b->blocks[i] > largest ? b->blocks[i] : largest;
	return largest;
}
