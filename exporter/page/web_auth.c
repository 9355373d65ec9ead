// SPDX-License-Identifier: Apache-2.0
// Basic auth against the users of a web-config. A keyed digest of each accepted password is cached, so that a scrape
// does not run bcrypt; the latest wrong passwords are cached as well. Other passwords are checked at a bounded rate, so
// that guessing does not consume the CPU that all pages share. An unknown user takes as long as a wrong password.
//
// Classes of client addresses have separate shares of the checks, so that no class uses up another's: addresses that
// have sent a right password; addresses that have sent a wrong one, which are also limited individually; and all others
// by how often they have tried lately. So an address that has not failed and tries for the first time is
// checked before all addresses that keep trying, however many there are. Clients behind one address share its checks.
#include "exporter/page/web.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <strings.h>
#include <sys/random.h>

#include "base/base.h"
#include "base/hash.h"

// ---- bcrypt from the system's libcrypt, which is loaded on first use ----

#define DATA_BYTES 32768 // struct crypt_data of libxcrypt; crypt_rn refuses less

struct bcrypt {
	void *library;
	char *(*crypt_rn)(const char *phrase, const char *setting, void *data, int size);
	char data[DATA_BYTES];
};

static void bcrypt_free(struct bcrypt *b)
{
	if (!b)
		return;
	if (b->library)
		dlclose(b->library);
	OPENSSL_cleanse(b->data, sizeof b->data);
	free(b);
}

// Returns NULL and *e (ERR_UNSUPPORTED) if libcrypt is missing or does not support bcrypt.
static struct bcrypt *bcrypt_new(struct err *e)
{
	// A hash of the password "x": a library that verifies it supports bcrypt.
	static const char probe[] = "$2b$04$abcdefghijklmnopqrstuu";
	static const char *const names[] = {"libcrypt.so.1", "libcrypt.so.2"};
	struct bcrypt *b = err_calloc(sizeof *b, e);
	if (!b)
		return NULL;
	for (size_t i = 0; i < sizeof names / sizeof names[0] && !b->library; i++)
		b->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	void *symbol = b->library ? dlsym(b->library, "crypt_rn") : NULL;
	memcpy(&b->crypt_rn, &symbol, sizeof symbol);
	const char *hash = b->crypt_rn ? b->crypt_rn("x", probe, b->data, sizeof b->data) : NULL;
	if (!hash || strncmp(hash, probe, sizeof probe - 2) != 0) {
		err_set(e, ERR_UNSUPPORTED, "basic auth needs libcrypt.so.1 with bcrypt (Debian: libcrypt1)%s",
		        b->library ? "; the one here has none" : "");
		bcrypt_free(b);
		return NULL;
	}
	return b;
}

// Takes about 0.2 s at cost 12, and half of that for each step below.
static bool bcrypt_verify(struct bcrypt *b, const char *password, const char *hash)
{
	const char *got = b->crypt_rn(password, hash, b->data, sizeof b->data);
	size_t len = strlen(hash);
	return got && strlen(got) == len && CRYPTO_memcmp(got, hash, len) == 0;
}

// ---- rates of addresses ----

bool peer_rate_take(int64_t *full_ms, int64_t interval_ms, int64_t burst, int64_t now_ms)
{
	int64_t full = *full_ms > now_ms ? *full_ms : now_ms;
	if (full - now_ms > (burst - 1) * interval_ms)
		return false;
	*full_ms = full + interval_ms;
	return true;
}

struct peer_rate_entry *peer_rate_find(struct peer_rate *r, const char *peer)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->entries[i].peer, peer) == 0)
			return &r->entries[i];
	return NULL;
}

// Returns the least recently used entry of the trusted peers or of the others; NULL if there is none.
static struct peer_rate_entry *oldest(struct peer_rate *r, bool trusted)
{
	struct peer_rate_entry *found = NULL;
	for (size_t i = 0; i < r->n; i++)
		if (r->entries[i].trusted == trusted && (!found || r->entries[i].used_ms < found->used_ms))
			found = &r->entries[i];
	return found;
}

static size_t count_trusted(const struct peer_rate *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		n += r->entries[i].trusted;
	return n;
}

struct peer_rate_entry *peer_rate_add(struct peer_rate *r, const char *peer, bool trusted, int64_t now_ms)
{
	struct peer_rate_entry *entry = peer_rate_find(r, peer);
	bool becomes_trusted = trusted && !(entry && entry->trusted);
	if (becomes_trusted && count_trusted(r) == PEER_RATE_TRUSTED_MAX)
		oldest(r, true)->trusted = false; // it can be evicted now
	if (!entry) {
		entry = r->n < PEER_RATE_PEERS_MAX ? &r->entries[r->n++] : oldest(r, false);
		*entry = (struct peer_rate_entry){.trusted = false};
		snprintf(entry->peer, sizeof entry->peer, "%s", peer);
	}
	entry->trusted |= trusted;
	entry->used_ms = now_ms;
	return entry;
}

// ---- tries of addresses ----

// How often client addresses have tried to log in lately, for any number of addresses in a fixed amount of memory (a
// count-min sketch that halves its counts every minute). An address that shares its counters with others is counted too
// high, never too low.
#define PEER_TRIES_ROWS     4
#define PEER_TRIES_COUNTERS 65536 // counters per row; with 10,000 addresses, 1 of 2,000 new ones is counted too high
#define PEER_TRIES_HALVE_MS 60000
#define PEER_TRIES_LEVELS   8 // 0: no try, 1: 1 try, 2: 2 or 3, 3: 4 to 7, ..
#define PEER_TRIES_PREFIX   4 // an IPv6 address has at least the level of this share of the tries of its /64

struct peer_tries { // `keys` are random bytes
	uint64_t keys[PEER_TRIES_ROWS];
	uint8_t counts[PEER_TRIES_ROWS][PEER_TRIES_COUNTERS];
	int64_t halved_ms; // when the counts were halved last
};

#define PREFIX_BYTES 8 // the /64 of an IPv6 address

// A host chooses the second half of its IPv6 address, and may use a new one for each connection.
static bool has_prefix(const char *peer, unsigned char ret_prefix[PREFIX_BYTES])
{
	struct in6_addr address;
	char text[INET6_ADDRSTRLEN];
	peer += peer[0] == '[';
	snprintf(text, sizeof text, "%.*s", (int)strcspn(peer, "]%"), peer);
	if (inet_pton(AF_INET6, text, &address) != 1 || IN6_IS_ADDR_V4MAPPED(&address))
		return false;
	memcpy(ret_prefix, &address, PREFIX_BYTES);
	return true;
}

static uint8_t *counter(struct peer_tries *t, int row, const void *id, size_t len)
{
	return &t->counts[row][hash_mix(hash_bytes(HASH_START ^ t->keys[row], id, len)) % PEER_TRIES_COUNTERS];
}

static unsigned count_of(struct peer_tries *t, const void *id, size_t len)
{
	unsigned n = UINT8_MAX;
	for (int row = 0; row < PEER_TRIES_ROWS; row++) {
		unsigned of_row = *counter(t, row, id, len);
		n = of_row < n ? of_row : n;
	}
	return n;
}

// Raises only the counters that are too low, so that addresses with shared counters disturb each other less.
static void add(struct peer_tries *t, const void *id, size_t len, unsigned n)
{
	unsigned sum = count_of(t, id, len) + n;
	uint8_t after = (uint8_t)(sum < UINT8_MAX ? sum : UINT8_MAX);
	for (int row = 0; row < PEER_TRIES_ROWS; row++) {
		uint8_t *c = counter(t, row, id, len);
		*c = *c > after ? *c : after;
	}
}

static int level_of(unsigned n)
{
	int level = 0;
	for (; n > 0 && level < PEER_TRIES_LEVELS - 1; n /= 2)
		level++;
	return level;
}

static void halve(struct peer_tries *t, int64_t now_ms)
{
	int64_t times = (now_ms - t->halved_ms) / PEER_TRIES_HALVE_MS;
	if (times <= 0)
		return;
	t->halved_ms += times * PEER_TRIES_HALVE_MS;
	for (int row = 0; row < PEER_TRIES_ROWS; row++)
		for (size_t i = 0; i < PEER_TRIES_COUNTERS; i++)
			t->counts[row][i] = (uint8_t)(times < 8 ? t->counts[row][i] >> times : 0);
}

// Returns the level of the address `peer`: the bits of the number of its tries, at most PEER_TRIES_LEVELS - 1.
static int peer_tries_level(struct peer_tries *t, const char *peer, int64_t now_ms)
{
	unsigned char prefix[PREFIX_BYTES];
	halve(t, now_ms);
	unsigned own = count_of(t, peer, strlen(peer));
	unsigned shared = has_prefix(peer, prefix) ? count_of(t, prefix, sizeof prefix) / PEER_TRIES_PREFIX : 0;
	return level_of(own > shared ? own : shared);
}

// Adds n tries to those of `peer`, and one to those of its /64.
static void peer_tries_add(struct peer_tries *t, const char *peer, unsigned n)
{
	unsigned char prefix[PREFIX_BYTES];
	add(t, peer, strlen(peer), n);
	if (has_prefix(peer, prefix))
		add(t, prefix, sizeof prefix, 1);
}

// ---- logins ----

#define DIGEST_BYTES 32
#define KEY_BYTES    32
#define FAILED_TRIES 63 // a wrong password weighs as much as so many tries that were not checked

// Each class of addresses has a share of the checks. Addresses that have neither succeeded nor failed lately are in a
// class of their own for each level of peer_tries.
enum kind { KIND_TRUSTED, KIND_FAILED, KIND_NEW, KIND__COUNT = KIND_NEW + PEER_TRIES_LEVELS };

struct web_auth {
	struct bcrypt *bcrypt;
	struct web_user users[WEB_CONFIG_USERS_MAX];
	size_t n;
	unsigned char key[KEY_BYTES]; // random, of this process
	unsigned char good[WEB_CONFIG_USERS_MAX][DIGEST_BYTES];
	bool has_good[WEB_CONFIG_USERS_MAX];
	unsigned char wrong[WEB_AUTH_WRONG_MAX][DIGEST_BYTES];
	size_t n_wrong; // total; only the latest are kept
	struct peer_rate peers;
	struct peer_tries tries;       // tries of addresses that are not in `peers` or not trusted
	int64_t tries_ms[KIND__COUNT]; // buckets of peer_rate_take
};

struct web_auth *web_auth_new(const struct web_user *users, size_t n, struct err *e)
{
	assert(n <= WEB_CONFIG_USERS_MAX);
	struct web_auth *a = err_calloc(sizeof *a, e);
	if (!a)
		return NULL;
	a->n = n;
	memcpy(a->users, users, n * sizeof *users);
	a->bcrypt = bcrypt_new(e);
	if (a->bcrypt && getrandom(a->key, sizeof a->key, 0) == (ssize_t)sizeof a->key &&
	    getrandom(a->tries.keys, sizeof a->tries.keys, 0) == (ssize_t)sizeof a->tries.keys)
		return a;
	if (a->bcrypt)
		err_set(e, ERR_INTERNAL, "no random bytes");
	web_auth_free(a);
	return NULL;
}

void web_auth_free(struct web_auth *a)
{
	if (!a)
		return;
	bcrypt_free(a->bcrypt);
	OPENSSL_cleanse(a, sizeof *a);
	free(a);
}

// Decodes "Basic dXNlcjpwYXNz" into the name and the password in `text`. False if the header is invalid.
static bool parse_header(const char *header, char *text, size_t size, char **ret_password)
{
	if (!header || strlen(header) > WEB_AUTH_HEADER_BYTES_MAX || strncasecmp(header, "Basic ", 6) != 0)
		return false;
	header += 6;
	header += strspn(header, " ");
	char again[TEXT_BASE64_BYTES(WEB_AUTH_HEADER_BYTES_MAX)];
	size_t n = text_from_base64(header, text, size - 1);
	text[n] = '\0';
	EVP_EncodeBlock((unsigned char *)again, (const unsigned char *)text, (int)n);
	// RFC 4648, 3.5: bits that padding leaves unused must be 0.
	bool is_strict = strlen(text) == n && strcmp(again, header) == 0;
	OPENSSL_cleanse(again, sizeof again);
	char *colon = strchr(text, ':');
	if (!is_strict || !colon)
		return false;
	*colon = '\0';
	*ret_password = colon + 1;
	return true;
}

static bool digest(const struct web_auth *a, size_t user, const char *password, unsigned char out[DIGEST_BYTES])
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char index = (unsigned char)user;
	bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
	          EVP_DigestUpdate(md, a->key, sizeof a->key) == 1 && EVP_DigestUpdate(md, &index, 1) == 1 &&
	          EVP_DigestUpdate(md, password, strlen(password)) == 1 && EVP_DigestFinal_ex(md, out, NULL) == 1;
	EVP_MD_CTX_free(md);
	return ok;
}

void web_auth_inherit(struct web_auth *a, const struct web_auth *from)
{
	a->peers = from->peers;
	a->tries = from->tries;
	memcpy(a->tries_ms, from->tries_ms, sizeof a->tries_ms);
}

// ---- rate limits ----

int64_t web_auth_try_ms(const char *hash)
{
	int cost = (hash[4] - '0') * 10 + (hash[5] - '0');
	return cost > 10 ? (int64_t)WEB_AUTH_TRY_MS << (cost - 10) : WEB_AUTH_TRY_MS;
}

// Returns the class of the address, and counts the try.
static int classify(struct web_auth *a, const struct peer_rate_entry *known, const char *peer, int64_t now_ms)
{
	if (known && known->trusted)
		return KIND_TRUSTED;
	int level = peer_tries_level(&a->tries, peer, now_ms);
	peer_tries_add(&a->tries, peer, 1);
	return known ? KIND_FAILED : KIND_NEW + level;
}

// Takes one check from the share of the peer's class and, if the peer has sent wrong passwords, from its own. The share
// of addresses that have tried twice as often is half as large.
static bool may_try(struct web_auth *a, const char *peer, const char *hash, int64_t now_ms)
{
	struct peer_rate_entry *known = peer_rate_find(&a->peers, peer);
	int kind = classify(a, known, peer, now_ms), level = kind > KIND_NEW ? kind - KIND_NEW : 0;
	int64_t before = known ? known->full_ms : 0;
	if (known && !peer_rate_take(&known->full_ms, WEB_AUTH_PEER_TRY_MS, WEB_AUTH_PEER_TRIES_BURST, now_ms))
		return false;
	if (peer_rate_take(&a->tries_ms[kind], web_auth_try_ms(hash) << level, WEB_AUTH_TRIES_BURST, now_ms))
		return true;
	if (known)
		known->full_ms = before;
	return false;
}

static bool is_known_as_wrong(const struct web_auth *a, const unsigned char d[DIGEST_BYTES])
{
	size_t n = a->n_wrong < WEB_AUTH_WRONG_MAX ? a->n_wrong : WEB_AUTH_WRONG_MAX;
	bool found = false;
	for (size_t i = 0; i < n; i++)
		found |= CRYPTO_memcmp(a->wrong[i], d, DIGEST_BYTES) == 0;
	return found;
}

static enum web_auth_result check(struct web_auth *a, const char *name, const char *password, const char *peer,
                                  int64_t now_ms)
{
	unsigned char d[DIGEST_BYTES];
	size_t user = 0;
	while (user < a->n && strcmp(a->users[user].name, name) != 0)
		user++;
	bool known = user < a->n;
	if (!digest(a, known ? user : WEB_CONFIG_USERS_MAX, password, d))
		return WEB_AUTH_LATER; // out of memory
	if (known && a->has_good[user] && CRYPTO_memcmp(d, a->good[user], sizeof d) == 0) {
		peer_rate_add(&a->peers, peer, true, now_ms)->full_ms = 0;
		return WEB_AUTH_GOOD;
	}
	if (is_known_as_wrong(a, d))
		return WEB_AUTH_BAD;
	// For an unknown user, the hash of the first user is checked, so that the time does not reveal which users
	// exist.
	const char *hash = a->users[known ? user : 0].hash;
	if (!may_try(a, peer, hash, now_ms))
		return WEB_AUTH_LATER;
	if (!bcrypt_verify(a->bcrypt, password, hash) || !known) {
		memcpy(a->wrong[a->n_wrong++ % WEB_AUTH_WRONG_MAX], d, DIGEST_BYTES);
		peer_rate_add(&a->peers, peer, false, now_ms);
		peer_tries_add(&a->tries, peer, FAILED_TRIES);
		return WEB_AUTH_BAD;
	}
	memcpy(a->good[user], d, sizeof d);
	a->has_good[user] = true;
	peer_rate_add(&a->peers, peer, true, now_ms)->full_ms = 0;
	return WEB_AUTH_GOOD;
}

enum web_auth_result web_auth_check(struct web_auth *a, const char *authorization, const char *peer, int64_t mono_ms)
{
	char text[WEB_AUTH_HEADER_BYTES_MAX], *password;
	enum web_auth_result r = WEB_AUTH_BAD;
	if (parse_header(authorization, text, sizeof text, &password))
		r = check(a, text, password, peer, mono_ms);
	OPENSSL_cleanse(text, sizeof text);
	return r;
}
