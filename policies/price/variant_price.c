// SPDX-License-Identifier: Apache-2.0
#include "policies/price/variant_price.h"

#include <math.h>
#include <stddef.h>

#include "policies/price/price_book.h"
#include "policies/schema/binding.h"

static double price_of(const struct scale_variant *v, const struct price_book *book)
{
	enum price_basis basis;
	if (v->price_set)
		return v->price_per_hour;
	double micro = (double)policy_gpu_micro(book, v->gpus.model, &basis);
	return basis == PRICE_NONE ? NAN : micro / 1e6 * v->gpus.per_replica;
}

void variant_prices(const struct scale_variants *variants, const struct price_book *book, double *ret_prices)
{
	double dearest = 0; // unit
	for (size_t i = 0; i < variants->n; i++) {
		ret_prices[i] = price_of(&variants->items[i], book);
		dearest = fmax(dearest, ret_prices[i] / variants->items[i].capacity); // fmax() ignores NaN
	}
	for (size_t i = 0; i < variants->n; i++)
		if (isnan(ret_prices[i]))
			ret_prices[i] = dearest * variants->items[i].capacity;
}
