// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/err.h"
#include "controller/policy_body.h"

#define KEY_BYTES 1024 // namespace, kind and name with slashes between; Kubernetes' own ceilings are 63 + 63 + 253

struct policy_claim {
	char *key; // "namespace/kind/name" of the target
	struct policy_entry *claimants, *winner;
	UT_hash_handle hh;
};

struct row { // an entry in the table
	struct policy_entry entry;
	char *key; // "namespace/name"
	UT_hash_handle hh;
};

struct policy_store {
	struct row *rows;
	struct policy_claim *claims;
	struct policy_listener listener;
	uint32_t round[POLICY_SOURCE__COUNT];
	struct policy_counts counts;
};

static struct row *row_of(const struct policy_entry *entry)
{
	uintptr_t at = (uintptr_t)entry - offsetof(struct row, entry);
	return (struct row *)at;
}

static void tell(struct policy_store *s, struct policy_entry *entry)
{
	s->listener.on_change(s->listener.arg, entry);
}

// ---- who has a target ----

static bool goes_before(const struct policy_entry *a, const struct policy_entry *b)
{
	if (a->source != b->source)
		return a->source < b->source;
	const struct policy_identity *x = a->versions[a->source].identity, *y = b->versions[b->source].identity;
	if (x && y && x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms;
	return strcmp(a->name, b->name) < 0;
}

static void choose_winner(struct policy_claim *claim)
{
	struct policy_entry *it;
	claim->winner = claim->claimants;
	DL_FOREACH2(claim->claimants, it, next_claimant)
	if (goes_before(it, claim->winner))
		claim->winner = it;
}

// All but `but`: it is told by whoever moved it.
static void tell_claimants(struct policy_store *s, const struct policy_claim *claim, const struct policy_entry *but)
{
	struct policy_entry *it;
	DL_FOREACH2(claim->claimants, it, next_claimant)
	if (it != but)
		tell(s, it);
}

static void leave_claim(struct policy_store *s, struct policy_entry *entry)
{
	struct policy_claim *claim = entry->claim;
	if (!claim)
		return;
	DL_DELETE2(claim->claimants, entry, previous_claimant, next_claimant);
	entry->claim = NULL;
	if (!claim->claimants) {
		HASH_DEL(s->claims, claim);
		free(claim->key);
		free(claim);
		return;
	}
	if (claim->winner != entry)
		return;
	choose_winner(claim);
	tell_claimants(s, claim, entry);
}

static int claim_key(char key[KEY_BYTES], const struct policy *p)
{
	return snprintf(key, KEY_BYTES, "%s/%s/%s", p->namespace_name, p->target_kind, p->target_name);
}

struct policy_entry *policy_store_holder(const struct policy_store *s, const struct policy *policy)
{
	char key[KEY_BYTES];
	struct policy_claim *claim = NULL;
	claim_key(key, policy);
	HASH_FIND_STR(s->claims, key, claim);
	return claim ? claim->winner : NULL;
}

static int enter_claim(struct policy_store *s, struct policy_entry *entry, struct err *e)
{
	char key[KEY_BYTES];
	int n = claim_key(key, &entry->body->policy);
	if (n < 0 || (size_t)n >= sizeof key)
		return err_set(e, ERR_LIMIT, "the name of the target has %d bytes, more than %zu", n, sizeof key - 1);
	struct policy_claim *claim = NULL;
	HASH_FIND_STR(s->claims, key, claim);
	if (!claim) {
		claim = calloc(1, sizeof *claim);
		if (!claim || !(claim->key = strdup(key))) {
			free(claim);
			return err_set(e, ERR_INTERNAL, "out of memory for a policy");
		}
		HASH_ADD_KEYPTR(hh, s->claims, claim->key, strlen(claim->key), claim);
	}
	DL_APPEND2(claim->claimants, entry, previous_claimant, next_claimant);
	entry->claim = claim;
	if (!claim->winner || goes_before(entry, claim->winner)) {
		claim->winner = entry;
		tell_claimants(s, claim, entry);
	}
	return 0;
}

// ---- versions ----

static void drop_version(struct policy_store *s, struct policy_version *v)
{
	s->counts.invalid -= v->error != NULL;
	policy_body_unref(v->body);
	free(v->error);
	free(v->identity);
	*v = (struct policy_version){0};
}

static void free_row(struct row *row)
{
	free(row->entry.namespace_name);
	free(row->entry.name);
	free(row->key);
	free(row);
}

static bool is_empty(const struct policy_entry *entry)
{
	for (int i = 0; i < POLICY_SOURCE__COUNT; i++)
		if (entry->versions[i].is_there)
			return false;
	return true;
}

// The version whose policy is in force, or, without any, the first that is there.
static enum policy_source source_of(const struct policy_entry *entry)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < POLICY_SOURCE__COUNT; i++)
			if (entry->versions[i].is_there && (pass == 1 || entry->versions[i].body))
				return (enum policy_source)i;
	return POLICY_SOURCE__COUNT;
}

// Puts in force what the versions say now, and tells of it. The versions own the bodies.
static int settle(struct policy_store *s, struct policy_entry *entry, bool is_news, struct err *e)
{
	enum policy_source source = source_of(entry);
	assert(source < POLICY_SOURCE__COUNT);
	struct policy_body *body = entry->versions[source].body;
	int rc = 0;
	if (body != entry->body || source != entry->source) {
		is_news = true;
		leave_claim(s, entry);
		s->counts.in_force -= entry->body != NULL;
		entry->body = body;
		entry->source = source;
		s->counts.in_force += body != NULL;
		if (body)
			rc = enter_claim(s, entry, e);
	}
	if (is_news)
		tell(s, entry);
	return rc;
}

static void remove_version(struct policy_store *s, struct policy_entry *entry, enum policy_source source, bool deleted)
{
	struct policy_version *v = &entry->versions[source];
	if (!v->is_there)
		return;
	struct policy_version gone = *v;
	*v = (struct policy_version){0};
	if (!is_empty(entry)) {
		struct err e;
		(void)settle(s, entry, true, &e); // without memory the entry stays without a claim, and is told so
		*v = gone;
		drop_version(s, v);
		return;
	}
	*v = gone; // the listener still sees what it was
	leave_claim(s, entry);
	s->counts.in_force -= entry->body != NULL;
	s->listener.on_remove(s->listener.arg, entry, deleted);
	drop_version(s, v);
	struct row *row = row_of(entry);
	HASH_DEL(s->rows, row);
	s->counts.entries--;
	free_row(row);
}

static void key_of(char key[KEY_BYTES], const char *namespace_name, const char *name)
{
	snprintf(key, KEY_BYTES, "%s/%s", namespace_name, name);
}

struct policy_entry *policy_store_find(const struct policy_store *s, const char *namespace_name, const char *name)
{
	char key[KEY_BYTES];
	struct row *row = NULL;
	key_of(key, namespace_name, name);
	HASH_FIND_STR(s->rows, key, row);
	return row ? &row->entry : NULL;
}

// The entry, made when there is none.
static struct policy_entry *entry_for(struct policy_store *s, const char *namespace_name, const char *name,
                                      struct err *e)
{
	struct policy_entry *found = policy_store_find(s, namespace_name, name);
	if (found)
		return found;
	if (s->counts.entries == POLICY_STORE_MAX) {
		err_set(e, ERR_LIMIT, "policy %s/%s is one more than the ceiling of %d policies", namespace_name, name,
		        POLICY_STORE_MAX);
		return NULL;
	}
	char key[KEY_BYTES];
	key_of(key, namespace_name, name);
	struct row *row = calloc(1, sizeof *row);
	if (row) {
		row->entry.namespace_name = strdup(namespace_name);
		row->entry.name = strdup(name);
		row->key = strdup(key);
		row->entry.source = POLICY_SOURCE__COUNT;
	}
	if (!row || !row->entry.namespace_name || !row->entry.name || !row->key) {
		if (row)
			free_row(row);
		err_set(e, ERR_INTERNAL, "out of memory for policy %s/%s", namespace_name, name);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, s->rows, row->key, strlen(row->key), row);
	s->counts.entries++;
	return &row->entry;
}

static bool is_replaced(const struct policy_version *v, const struct policy_identity *identity)
{
	return v->is_there && v->identity && identity && strcmp(v->identity->uid, identity->uid) != 0;
}

// Takes over what came with a version; *ret_is_news when its generation is another one. -1: out of memory.
static int set_identity(struct policy_version *v, const struct policy_identity *identity, bool *ret_is_news)
{
	*ret_is_news = !v->is_there || !v->identity != !identity ||
	               (identity && identity->generation != v->identity->generation);
	if (!identity) {
		free(v->identity);
		v->identity = NULL;
		return 0;
	}
	if (!v->identity && !(v->identity = malloc(sizeof *v->identity)))
		return -1;
	*v->identity = *identity;
	return 0;
}

int policy_store_put(struct policy_store *s, enum policy_source source, struct policy_body *body,
                     const struct policy_identity *identity, struct err *e)
{
	const char *namespace_name = body->policy.namespace_name, *name = body->policy.name;
	struct policy_entry *entry = policy_store_find(s, namespace_name, name);
	if (entry && is_replaced(&entry->versions[source], identity))
		remove_version(s, entry, source, false);
	entry = entry_for(s, namespace_name, name, e);
	if (!entry) {
		policy_body_unref(body);
		return -1;
	}
	struct policy_version *v = &entry->versions[source];
	struct policy_body *before = v->body;
	bool is_news;
	if (set_identity(v, identity, &is_news) < 0)
		abort(); // 200 bytes: the supervisor restarts us
	is_news = is_news || v->error;
	s->counts.invalid -= v->error != NULL;
	free(v->error);
	v->error = NULL;
	v->is_there = true;
	v->round = s->round[source];
	v->body = body;
	int rc = settle(s, entry, is_news, e);
	policy_body_unref(before); // after settle: the listener may still look at what was in force
	return rc;
}

int policy_store_put_bad(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name, const struct policy_identity *identity, const char *error, struct err *e)
{
	struct policy_entry *entry = policy_store_find(s, namespace_name, name);
	if (entry && is_replaced(&entry->versions[source], identity))
		remove_version(s, entry, source, false);
	entry = entry_for(s, namespace_name, name, e);
	if (!entry)
		return -1;
	struct policy_version *v = &entry->versions[source];
	bool is_news;
	char *text = strndup(error, POLICY_ERROR_BYTES_MAX);
	if (!text || set_identity(v, identity, &is_news) < 0)
		abort(); // a few hundred bytes: the supervisor restarts us
	is_news = is_news || !v->error || strcmp(v->error, text) != 0;
	s->counts.invalid += v->error == NULL;
	free(v->error);
	v->error = text;
	v->is_there = true;
	v->round = s->round[source];
	return settle(s, entry, is_news, e);
}

void policy_store_remove(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name)
{
	struct policy_entry *entry = policy_store_find(s, namespace_name, name);
	if (entry)
		remove_version(s, entry, source, source == POLICY_FROM_OBJECT);
}

void policy_store_begin(struct policy_store *s, enum policy_source source)
{
	s->round[source]++;
}

void policy_store_end(struct policy_store *s, enum policy_source source)
{
	struct row *row, *next;
	HASH_ITER(hh, s->rows, row, next)
	{
		struct policy_version *v = &row->entry.versions[source];
		if (v->is_there && v->round != s->round[source])
			remove_version(s, &row->entry, source, source == POLICY_FROM_OBJECT);
	}
}

// ---- looking ----

struct policy_entry *policy_store_next(const struct policy_store *s, const struct policy_entry *entry)
{
	struct row *next = entry ? row_of(entry)->hh.next : s->rows;
	return next ? &next->entry : NULL;
}

struct policy_entry *policy_entry_winner(const struct policy_entry *entry)
{
	return entry->claim ? entry->claim->winner : NULL;
}

const char *policy_entry_error(const struct policy_entry *entry)
{
	if (entry->source >= POLICY_SOURCE__COUNT || !entry->versions[entry->source].error)
		return "";
	return entry->versions[entry->source].error;
}

void policy_store_get_counts(const struct policy_store *s, struct policy_counts *ret_counts)
{
	*ret_counts = s->counts;
}

// ---- life ----

struct policy_store *policy_store_new(const struct policy_listener *listener)
{
	struct policy_store *s = calloc(1, sizeof *s);
	if (s)
		s->listener = *listener;
	return s;
}

void policy_store_free(struct policy_store *s)
{
	if (!s)
		return;
	struct row *row, *next_row;
	HASH_ITER(hh, s->rows, row, next_row)
	{
		for (int i = 0; i < POLICY_SOURCE__COUNT; i++)
			drop_version(s, &row->entry.versions[i]);
		HASH_DEL(s->rows, row);
		free_row(row);
	}
	struct policy_claim *claim, *next_claim;
	HASH_ITER(hh, s->claims, claim, next_claim)
	{
		HASH_DEL(s->claims, claim);
		free(claim->key);
		free(claim);
	}
	free(s);
}
