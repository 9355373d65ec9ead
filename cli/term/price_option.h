// SPDX-License-Identifier: Apache-2.0
// The flags --prices FILE and --gpu-model MODEL: the price of one GPU-hour from a price book.
#ifndef GPUSCALE_CLI_TERM_PRICE_OPTION_H
#define GPUSCALE_CLI_TERM_PRICE_OPTION_H

#include <stddef.h>

struct argp_state;
struct arena;
struct price_book;

#define PRICE_OPTION_CURRENCY_BYTES 4
#define PRICE_OPTION_ARENA_MAX      ((size_t)16 * 1024 * 1024) // of a price book

struct price_option {
	const char *prices;                         // file; NULL: the shipped prices
	const char *model;                          // short name or modelName; NULL: the only one of the file
	char currency[PRICE_OPTION_CURRENCY_BYTES]; // of the price that was taken from a book; else ""
};

// Reads the price book of `path`, NULL: the shipped prices. Its strings live in `a`, which the caller has initialized.
// Returns -1 after printing the errors, as those of `command`.
int price_option_read(const char *path, struct arena *a, struct price_book *ret_book, const char *command);
// Returns the price that the flags name; `price`, which is that of --price or NaN, when neither is given. Exits with a
// usage error when --price is given too, and with EXIT_FAILED when the file is invalid or has no such model.
double price_option_get(struct price_option *o, double price, struct argp_state *state);

#endif
