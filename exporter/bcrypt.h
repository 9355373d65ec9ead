// SPDX-License-Identifier: Apache-2.0
// bcrypt by the system's libcrypt, loaded at the first use: an exporter without basic auth does not have it in memory,
// and does not need it to be there.
#ifndef GPUSCALE_EXPORTER_BCRYPT_H
#define GPUSCALE_EXPORTER_BCRYPT_H

#include <stdbool.h>

struct err;
struct bcrypt;

// Loads libcrypt. NULL and *e (ERR_UNSUPPORTED) when there is none that knows bcrypt.
struct bcrypt *bcrypt_new(struct err *e);
void bcrypt_free(struct bcrypt *b);
// Whether password is the one that hash was made from. Takes about 0.2 s at cost 12, half of that for one less.
bool bcrypt_verify(struct bcrypt *b, const char *password, const char *hash);

#endif
