// SPDX-License-Identifier: Apache-2.0
// bcrypt from the system's libcrypt, which is loaded on first use: an exporter without basic auth neither needs it
// nor holds it in memory.
#ifndef GPUSCALE_EXPORTER_PAGE_BCRYPT_H
#define GPUSCALE_EXPORTER_PAGE_BCRYPT_H

#include <stdbool.h>

struct err;
struct bcrypt;

// Loads libcrypt. Returns NULL and fills `e` (ERR_UNSUPPORTED) if it is missing or does not support bcrypt.
struct bcrypt *bcrypt_new(struct err *e);
void bcrypt_free(struct bcrypt *b);
// True if `password` matches `hash`. Takes about 0.2 s at cost 12, and half of that for each step below.
bool bcrypt_verify(struct bcrypt *b, const char *password, const char *hash);

#endif
