// SPDX-License-Identifier: Apache-2.0
// A PriceBook as plain data: what one GPU of each model costs per hour. price_book_decode() fills it, and nothing
// changes it afterwards. The arena that was passed to price_book_decode() owns strings and arrays.
#ifndef GPUSCALE_POLICIES_PRICE_PRICE_BOOK_H
#define GPUSCALE_POLICIES_PRICE_PRICE_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct doc_node;
struct err;
struct scale_variants;
struct schema;
struct schema_errors;

#define PRICE_BOOK_KIND          "PriceBook"
#define PRICE_BOOK_MODELS_MAX    256
#define PRICE_BOOK_NAMES_MAX     32 // names of one model
#define PRICE_BOOK_DISCOUNTS_MAX 32
#define PRICE_MAX                1000 // price of one GPU and hour, in the currency of the book
#define PRICE_ELECTRICITY_MAX    100  // price of one kWh
#define PRICE_GRAMS_CO2_MAX      2000 // of one kWh

struct price_model {
	const char *name; // a short name: H100-SXM
	const char *
	        *names; // values of the label modelName; one that ends in '*' matches every name that starts like it
	size_t n_names;
	double per_gpu_hour;
	const char *source, *as_of; // where the price was published, and on which day
};

struct price_discount {
	const char *name; // 1-year, spot
	double percent;   // percent of the price on demand: 37 leaves 63 %
	const char *source, *as_of;
};

struct price_book {
	int api_version, kind;
	const char *currency; // ISO 4217
	struct price_model *models;
	size_t n_models;
	struct price_discount *discounts;
	size_t n_discounts;
	bool has_assumed;
	double assumed_per_gpu_hour; // price of GPUs without one of their own
	bool has_electricity;
	struct {
		double per_kwh;
		bool has_grams_co2;
		double grams_co2_per_kwh;
		const char *source, *as_of;
	} electricity;
};

// Millionths of an amount of money, rounded; 0 <= money <= 9e12.
int64_t price_micro(double money);
// The model whose names match modelName. An equal name takes precedence over a pattern, and a longer pattern over a
// shorter one. NULL = the book has no price for it.
const struct price_model *price_book_find(const struct price_book *book, const char *model_name);
// The model of this short name, else the one that price_book_find() returns.
const struct price_model *price_book_named(const struct price_book *book, const char *name);
// NULL = the book has no discount of that name.
const struct price_discount *price_book_discount(const struct price_book *book, const char *name);
// Millionths of the currency for one GPU of this model name and hour, after `discount` (NULL: none):
// price * (1 - percent / 100). Without a price, the assumed price of the book, or 0, and *ret_is_priced is false.
int64_t price_book_micro(const struct price_book *book, const char *model_name, const struct price_discount *discount,
                         bool *ret_is_priced);

// ---- the price of the replicas of a policy ----

enum price_basis {
	PRICE_NONE,    // no model is given, or the book has no price for it
	PRICE_ASSUMED, // assumedPerGPUHour of the book
	PRICE_LISTED,
	PRICE_BASIS__COUNT
};
extern const char *const price_basis_names[]; // "none", "assumed", "listed"

// Returns the millionths of the currency per hour for one GPU of `model`, a short name of the book or a modelName; 0
// for PRICE_NONE, which also a NULL book and an empty model have.
int64_t policy_gpu_micro(const struct price_book *book, const char *model, enum price_basis *ret_basis);
// Writes the cost of a replica and hour of each variant to ret_prices[0..variants->n): its pricePerHour, else the price
// of its GPUs in `book` (NULL: none), else as much per unit of capacity as the dearest of the others.
void variant_prices(const struct scale_variants *variants, const struct price_book *book, double *ret_prices);

// ---- documents ----

// The one table of the fields. Decoder, ranges, `check`, `explain` and the reference in docs/cost.md come from it.
extern const struct schema price_schema;
// Decodes `node` into `book`, which the caller has zeroed. Strings and lists of the book live in `a`; the document may
// be freed afterwards. Returns 0, or -1 with every fault appended to `errors`.
int price_book_decode(const struct doc_node *node, struct price_book *book, struct arena *a,
                      struct schema_errors *errors);
// Reads the only document of the file at `path` ("-": standard input, NULL: the shipped prices). Returns 0, or -1:
// errors are appended to `report` as `check` prints them and *e counts them, or *e is set when the file cannot be read
// (report is then unchanged).
int price_book_read(const char *path, struct arena *a, struct price_book *ret_book, struct buf *report, struct err *e);
// The text of the shipped prices, prices.yaml, as it was compiled in; not NUL-terminated.
const char *price_shipped_text(size_t *ret_len);

#endif
