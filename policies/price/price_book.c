// SPDX-License-Identifier: Apache-2.0
#include "policies/price/price_book.h"

#include <math.h>
#include <string.h>

int64_t price_micro(double money)
{
	return (int64_t)floor(money * 1e6 + 0.5);
}

// How closely the pattern matches: 0 = not at all, an equal name more than any pattern.
static size_t closeness(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);
	if (strcmp(pattern, name) == 0)
		return SIZE_MAX;
	if (len == 0 || pattern[len - 1] != '*' || strncmp(pattern, name, len - 1) != 0)
		return 0;
	return len;
}

const struct price_model *price_book_find(const struct price_book *book, const char *model_name)
{
	const struct price_model *found = NULL;
	size_t best = 0;
	for (size_t i = 0; i < book->n_models; i++)
		for (size_t k = 0; k < book->models[i].n_names; k++) {
			size_t c = closeness(book->models[i].names[k], model_name);
			if (c > best) {
				best = c;
				found = &book->models[i];
			}
		}
	return found;
}

const struct price_model *price_book_named(const struct price_book *book, const char *name)
{
	for (size_t i = 0; i < book->n_models; i++)
		if (strcmp(book->models[i].name, name) == 0)
			return &book->models[i];
	return price_book_find(book, name);
}

const struct price_discount *price_book_discount(const struct price_book *book, const char *name)
{
	for (size_t i = 0; i < book->n_discounts; i++)
		if (strcmp(book->discounts[i].name, name) == 0)
			return &book->discounts[i];
	return NULL;
}

int64_t price_book_micro(const struct price_book *book, const char *model_name, const struct price_discount *discount,
                         bool *ret_is_priced)
{
	const struct price_model *m = price_book_find(book, model_name);
	double price = m ? m->per_gpu_hour : book->has_assumed ? book->assumed_per_gpu_hour : 0;
	*ret_is_priced = m != NULL;
	return price_micro(discount ? price * (1 - discount->percent / 100) : price);
}

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
