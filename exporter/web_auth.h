// SPDX-License-Identifier: Apache-2.0
// Basic auth against the users of a web-config. A password that was good once is known by a keyed digest from then on,
// so that a scrape costs no bcrypt; others are tried at a bounded rate, so that guessing does not take the CPU. An
// unknown user costs as much time as a wrong password.
#ifndef GPUSCALE_EXPORTER_WEB_AUTH_H
#define GPUSCALE_EXPORTER_WEB_AUTH_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct web_auth;
struct web_user;

#define WEB_AUTH_HEADER_BYTES_MAX 1024
#define WEB_AUTH_TRIES_BURST      5   // bcrypt runs at once,
#define WEB_AUTH_TRY_MS           500 // and one more each half second

enum web_auth_result { WEB_AUTH_GOOD, WEB_AUTH_BAD, WEB_AUTH_LATER };

// Copies the users (n <= WEB_CONFIG_USERS_MAX). NULL and *e when libcrypt or randomness is missing.
struct web_auth *web_auth_new(const struct web_user *users, size_t n, struct err *e);
void web_auth_free(struct web_auth *a);
// authorization: the header of that name, or NULL. mono_ms: now. LATER: too many tries, none was made.
enum web_auth_result web_auth_check(struct web_auth *a, const char *authorization, int64_t mono_ms);

#endif
