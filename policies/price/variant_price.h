// SPDX-License-Identifier: Apache-2.0
// What a replica of each variant costs.
#ifndef GPUSCALE_POLICIES_PRICE_VARIANT_PRICE_H
#define GPUSCALE_POLICIES_PRICE_VARIANT_PRICE_H

struct price_book;
struct scale_variants;

// Writes the cost of a replica and hour of each variant to ret_prices[0..variants->n): its pricePerHour, else the price
// of its GPUs in `book` (NULL: none), else as much per unit of capacity as the dearest of the others.
void variant_prices(const struct scale_variants *variants, const struct price_book *book, double *ret_prices);

#endif
