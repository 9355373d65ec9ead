// SPDX-License-Identifier: Apache-2.0
// The price book of the controller: the shipped one, or a file that is read again when it changes. When a changed file
// cannot be used, an error is logged and the previous prices stay in use.
#ifndef GPUSCALE_CONTROLLER_PRICE_FOLLOWER_H
#define GPUSCALE_CONTROLLER_PRICE_FOLLOWER_H

#include <stdint.h>

struct err;
struct log;
struct price_book;
struct price_follower;

// path: of a PriceBook, must live as long; NULL: the shipped prices, which are decoded when they are first needed.
// Returns NULL and *e unless the file holds a valid price book.
struct price_follower *price_follower_new(const char *path, struct log *log, struct err *e);
void price_follower_free(struct price_follower *f); // NULL is fine
// Looks at the file, at most once a second. The book is valid until the next call; NULL: out of memory.
const struct price_book *price_follower_book(struct price_follower *f, int64_t now_ms);

#endif
