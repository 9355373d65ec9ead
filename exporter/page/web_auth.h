// SPDX-License-Identifier: Apache-2.0
// Basic auth against the users of a web-config. A keyed digest of each accepted password is cached, so that a scrape
// does not run bcrypt; the latest wrong passwords are cached as well. Other passwords are checked at a bounded rate, so
// that guessing does not consume the CPU that all pages share. An unknown user takes as long as a wrong password.
//
// Classes of client addresses have separate shares of the checks, so that no class uses up another's: addresses that
// have sent a right password; addresses that have sent a wrong one, which are also limited individually; and all others
// by how often they have tried lately (peer_tries.h). So an address that has not failed and tries for the first time is
// checked before all addresses that keep trying, however many there are. Clients behind one address share its checks.
#ifndef GPUSCALE_EXPORTER_PAGE_WEB_AUTH_H
#define GPUSCALE_EXPORTER_PAGE_WEB_AUTH_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct web_auth;
struct web_user;

#define WEB_AUTH_HEADER_BYTES_MAX 1024
#define WEB_AUTH_TRIES_BURST      5 // checks that a class of addresses may run at once,
#define WEB_AUTH_TRY_MS                                                                                                \
	500                            // and one more in this time, at most a tenth of the CPU (web_auth_try_ms);
	                               // twice that time for each further level of peer_tries
#define WEB_AUTH_PEER_TRIES_BURST 4    // the same for one address that has sent a wrong password,
#define WEB_AUTH_PEER_TRY_MS      4000 // and one more in this time
#define WEB_AUTH_WRONG_MAX        64   // cached wrong passwords

enum web_auth_result { WEB_AUTH_GOOD, WEB_AUTH_BAD, WEB_AUTH_LATER };

// Copies `users` (n <= WEB_CONFIG_USERS_MAX). Returns NULL and fills `e` if libcrypt or randomness is missing.
struct web_auth *web_auth_new(const struct web_user *users, size_t n, struct err *e);
void web_auth_free(struct web_auth *a);
// Copies from `from` which addresses have sent right and wrong passwords. Call when the users change.
void web_auth_inherit(struct web_auth *a, const struct web_auth *from);
// Checks the value of the Authorization header; NULL if it is missing. `peer` is the client's address as text,
// `mono_ms` the monotonic clock. Returns WEB_AUTH_LATER if the rate limit is reached and the password was not
// checked.
enum web_auth_result web_auth_check(struct web_auth *a, const char *authorization, const char *peer, int64_t mono_ms);
// Returns the time, in ms, in which one more check of a hash like this one is permitted: longer for a hash with a cost
// above 10, which takes longer to check.
int64_t web_auth_try_ms(const char *hash);

#endif
