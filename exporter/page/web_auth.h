// SPDX-License-Identifier: Apache-2.0
// Basic auth against the users of a web-config. A keyed digest of each accepted password is cached, so that a scrape
// does not run bcrypt; the latest wrong passwords are cached as well. Other passwords are checked at a bounded rate, so
// that guessing does not consume the CPU that all pages share. An unknown user takes as long as a wrong password.
//
// Classes of client addresses have separate shares of the checks, so that no class uses up another's: addresses that
// have sent a right password; addresses that have sent a wrong one, which are also limited individually; and all others
// by how often they have tried lately. So an address that has not failed and tries for the first time is
// checked before all addresses that keep trying, however many there are. Clients behind one address share its checks.
#ifndef GPUSCALE_EXPORTER_PAGE_WEB_AUTH_H
#define GPUSCALE_EXPORTER_PAGE_WEB_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct web_auth;

#define WEB_CONFIG_USERS_MAX      64
#define WEB_CONFIG_USER_BYTES     128
#define WEB_CONFIG_HASH_BYTES     60 // length of a bcrypt hash: "$2y$10$", 22 characters of salt, 31 of digest
#define WEB_AUTH_HEADER_BYTES_MAX 1024
#define WEB_AUTH_TRIES_BURST      5 // checks that a class of addresses may run at once,
#define WEB_AUTH_TRY_MS                                                                                                \
	500                            // and one more in this time, at most a tenth of the CPU (web_auth_try_ms);
	                               // twice that time for each further level of peer_tries
#define WEB_AUTH_PEER_TRIES_BURST 4    // the same for one address that has sent a wrong password,
#define WEB_AUTH_PEER_TRY_MS      4000 // and one more in this time
#define WEB_AUTH_WRONG_MAX        64   // cached wrong passwords

struct web_user {
	char name[WEB_CONFIG_USER_BYTES];
	char hash[WEB_CONFIG_HASH_BYTES + 1];
};

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

// ---- a token bucket for each client address, in a table of fixed size ----

#define PEER_RATE_PEERS_MAX   256
#define PEER_RATE_TRUSTED_MAX 64 // trusted entries in PEER_RATE_PEERS_MAX; the others are for untrusted peers
#define PEER_RATE_NAME_BYTES  64

struct peer_rate_entry {
	char peer[PEER_RATE_NAME_BYTES]; // its address, as text
	bool trusted;
	int64_t used_ms; // when the entry was last used
	int64_t full_ms; // when its bucket will be full
};

struct peer_rate { // zero it before use
	struct peer_rate_entry entries[PEER_RATE_PEERS_MAX];
	size_t n;
};

// Takes one token at now_ms from a bucket that has room for `burst` tokens and gains one each interval_ms. Returns
// false when the bucket is empty. *full_ms is the state of the bucket; 0 is a full bucket.
bool peer_rate_take(int64_t *full_ms, int64_t interval_ms, int64_t burst, int64_t now_ms);

// Returns the entry of the peer, or NULL. Valid until the next peer_rate_add.
struct peer_rate_entry *peer_rate_find(struct peer_rate *r, const char *peer);
// Returns the entry of the peer. In a full table, the new entry replaces the least recently used one. Only a trusted
// peer can replace a trusted one, and at most PEER_RATE_TRUSTED_MAX peers are trusted, so a flood of addresses cannot
// evict them. Sets used_ms.
struct peer_rate_entry *peer_rate_add(struct peer_rate *r, const char *peer, bool trusted, int64_t now_ms);

#endif
