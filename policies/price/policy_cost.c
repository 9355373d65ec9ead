// SPDX-License-Identifier: Apache-2.0
#include "policies/price/policy_cost.h"

#include "policies/price/price_book.h"

const char *const price_basis_names[] = {"none", "assumed", "listed"};
_Static_assert(sizeof price_basis_names / sizeof price_basis_names[0] == PRICE_BASIS__COUNT, "one name per basis");

int64_t policy_gpu_micro(const struct price_book *book, const char *model, enum price_basis *ret_basis)
{
	*ret_basis = PRICE_NONE;
	if (!book || !model || !model[0])
		return 0;
	const struct price_model *m = price_book_named(book, model);
	if (m || book->has_assumed)
		*ret_basis = m ? PRICE_LISTED : PRICE_ASSUMED;
	return m ? price_micro(m->per_gpu_hour) : book->has_assumed ? price_micro(book->assumed_per_gpu_hour) : 0;
}
