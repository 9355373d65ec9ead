// SPDX-License-Identifier: Apache-2.0
// FNV-1a with 64 bits (Fowler, Noll, Vo): detects changes and spreads keys. It gives no protection against an adversary
// who chooses the input. Results are equal on all machines and in all versions: shards depend on them.
#ifndef GPUSCALE_BASE_HASH_H
#define GPUSCALE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

// Returns the hash of what `h` covers followed by `len` bytes at `data`. Start with HASH_START.
static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

// Adds `text` with its terminator, so that "a", "bc" and "ab", "c" differ.
static inline uint64_t hash_text(uint64_t h, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	do
		h = (h ^ *p) * UINT64_C(0x100000001b3);
	while (*p++);
	return h;
}

// Spreads every bit of `h` over the whole result (finalizer of MurmurHash3): the high bits of FNV-1a hardly depend on
// the last bytes.
static inline uint64_t hash_mix(uint64_t h)
{
	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 33;
}

// Draws the next number of a sequence that is the same on every machine (splitmix64). `state` starts as any seed.
static inline uint64_t hash_draw(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

// Maps a spread value to 0 < x <= 1.
static inline double hash_unit(uint64_t h)
{
	return ((double)(h >> 11) + 1) * 0x1p-53;
}

#endif
