// SPDX-License-Identifier: Apache-2.0
// The text of the shipped prices, prices.yaml, compiled into the program
#include <stdint.h>

#include "policies/price/price_schema.h"

// Relative to the folder that make runs in; scripts/prices.mk has the dependency.
__asm__(".section .rodata\n"
        ".global price_shipped_begin, price_shipped_end\n"
        "price_shipped_begin:\n"
        ".incbin \"policies/price/prices.yaml\"\n"
        "price_shipped_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char price_shipped_begin[], price_shipped_end[];

const char *price_shipped_text(size_t *ret_len)
{
	*ret_len = (size_t)((uintptr_t)price_shipped_end - (uintptr_t)price_shipped_begin);
	return price_shipped_begin;
}
