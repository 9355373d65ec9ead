// SPDX-License-Identifier: Apache-2.0
#include "controller/source/policy_store.h"

#include <utlist.h>

#include "base/base.h"
#include "base/hash_table.h"
#include "k8s/targets/workload_kind.h"
#include "policies/load/policy_ref.h"

#define KEY_BYTES 1024 // namespace, kind, name and path with slashes between: at most 63 + 63 + 253 + 253

struct policy_claim { // a target, and the bindings for it
	UT_hash_handle hh;
	struct policy_claimant *claimants, *winner;
	char key[]; // "namespace/kind/name" of the target
};

struct policy_claimant {
	struct stored_binding *b;
	struct policy_claim *claim; // NULL: the name of its target is too long
	struct policy_claimant *prev, *next;
};

struct space { // a namespace that has entries
	UT_hash_handle hh;
	size_t n;
	char name[];
};

struct row {                       // an entry in the table
	struct policy_entry entry; // first; its texts are those of `space` and `key`
	struct space *space;
	UT_hash_handle hh;
	char key[]; // "namespace/name"
};

struct policy_store {
	struct row *rows;
	struct space *spaces;
	struct policy_claim *claims;
	struct policy_listener listener;
	struct policy_counts counts;
};

static void row_free(struct row *row)
{
	free(row->entry.bindings);
	free(row);
}

static int compare_keys(const struct stored_binding *b, const struct binding *other)
{
	return binding_key_compare(b->binding ? b->binding->key : NULL, other ? other->key : NULL);
}

static void notify(struct policy_store *s, struct stored_binding *b)
{
	s->listener.on_change(s->listener.arg, b);
}

// ---- owner of a target ----

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
	struct policy_claimant *it;
	claim->winner = claim->claimants;
	DL_FOREACH(claim->claimants, it)
	if (goes_before(it->b->entry, claim->winner->b->entry))
		claim->winner = it;
}

// Notifies all claimants except `but`, which the caller notifies.
static void notify_claimants(struct policy_store *s, const struct policy_claim *claim, const struct stored_binding *but)
{
	struct policy_claimant *it;
	DL_FOREACH(claim->claimants, it)
	if (it->b != but)
		notify(s, it->b);
}

static void leave_claim(struct policy_store *s, struct policy_claimant *c)
{
	struct policy_claim *claim = c->claim;
	if (!claim)
		return;
	DL_DELETE(claim->claimants, c);
	c->claim = NULL;
	if (!claim->claimants) {
		HASH_DEL(s->claims, claim);
		free(claim);
		return;
	}
	if (claim->winner != c)
		return;
	choose_winner(claim);
	notify_claimants(s, claim, c->b);
}

static void leave_claims(struct policy_store *s, struct stored_binding *b)
{
	for (size_t i = 0; i < b->n_claims; i++)
		leave_claim(s, &b->claims[i]);
	free(b->claims);
	b->claims = NULL;
	b->n_claims = 0;
}

static int claim_key(char key[KEY_BYTES], const struct binding *b, size_t target)
{
	const struct scale_target *t = binding_target(b, target);
	const char *path = workload_kind_path(t->api_version, t->kind, t->path);
	// Fleets share no name: controller/fleet finds out which objects they have in common.
	const char *more = strcmp(t->name, FLEET_TARGET_NAME) == 0 ? b->policy->name : path;
	return snprintf(key, KEY_BYTES, "%s/%s/%s%s%s", b->policy->namespace_name, t->kind, t->name, more ? "/" : "",
	                more ? more : "");
}

struct stored_binding *policy_store_holder(const struct policy_store *s, const struct binding *binding)
{
	char key[KEY_BYTES];
	struct policy_claim *claim = NULL;
	claim_key(key, binding, 0);
	HASH_FIND_STR(s->claims, key, claim);
	return claim ? claim->winner->b : NULL;
}

static int enter_claim(struct policy_store *s, struct policy_claimant *c, size_t target, struct err *e)
{
	char key[KEY_BYTES];
	int n = claim_key(key, c->b->binding, target);
	if (n < 0 || (size_t)n >= sizeof key)
		return err_set(e, ERR_LIMIT, "the name of the target has %d bytes, more than %zu", n, sizeof key - 1);
	struct policy_claim *claim = hash_table_get(&s->claims, key, (size_t)n, offsetof(struct policy_claim, key));
	DL_APPEND(claim->claimants, c);
	c->claim = claim;
	if (!claim->winner || goes_before(c->b->entry, claim->winner->b->entry)) {
		claim->winner = c;
		notify_claimants(s, claim, c->b);
	}
	return 0;
}

// Claims all targets of the binding. After an error, the binding has no claim.
static int enter_claims(struct policy_store *s, struct stored_binding *b, struct err *e)
{
	const size_t n = binding_targets(b->binding);
	b->claims = must_alloc(calloc(n, sizeof *b->claims));
	b->n_claims = n;
	for (size_t i = 0; i < n; i++) {
		b->claims[i].b = b;
		if (enter_claim(s, &b->claims[i], i, e) < 0) {
			leave_claims(s, b);
			return -1;
		}
	}
	return 0;
}

// ---- versions ----

static void drop_version(struct policy_store *s, struct policy_version *v)
{
	s->counts.invalid -= v->error != NULL;
	policy_ref_release(v->body);
	free(v->error);
	free(v->identity);
	*v = (struct policy_version){0};
}

// Returns the source whose version is in force, or else of the first existing version; POLICY_SOURCE__COUNT: there is
// none.
static enum policy_source source_of(const struct policy_entry *entry)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < POLICY_SOURCE__COUNT; i++)
			if (entry->versions[i].is_there && (pass == 1 || entry->versions[i].body))
				return (enum policy_source)i;
	return POLICY_SOURCE__COUNT;
}

static void remove_binding(struct policy_store *s, struct stored_binding *b, bool deleted)
{
	s->listener.on_remove(s->listener.arg, b, deleted);
	free(b);
}

// Gives the entry the bindings of `body` (NULL: one without a key and a target), which must outlive them. Keeps those
// of the same key. None may have a claim.
static void set_bindings(struct policy_store *s, struct policy_entry *entry, const struct policy_ref *body)
{
	const size_t n = body ? body->n_bindings : 1, n_before = entry->n_bindings;
	struct stored_binding **list = must_alloc(calloc(n ? n : 1, sizeof(struct stored_binding *)));
	size_t old = 0;
	for (size_t i = 0; i < n; i++) {
		const struct binding *binding = body ? &body->bindings[i] : NULL;
		int order = 1; // of the old binding and the new one
		while (old < n_before && (order = compare_keys(entry->bindings[old], binding)) < 0)
			remove_binding(s, entry->bindings[old++], false);
		list[i] = order == 0 ? entry->bindings[old++] : must_alloc(calloc(1, sizeof *list[i]));
	}
	while (old < n_before)
		remove_binding(s, entry->bindings[old++], false);
	for (size_t i = 0; i < n; i++) {
		list[i]->entry = entry;
		list[i]->index = i;
		list[i]->binding = body ? &body->bindings[i] : NULL;
	}
	free(entry->bindings);
	entry->bindings = list;
	entry->n_bindings = n;
}

// Puts the right version in force after a change, and notifies the listener. The versions own the bodies.
static int update_entry(struct policy_store *s, struct policy_entry *entry, bool is_news, struct err *e)
{
	enum policy_source source = source_of(entry);
	assert(source < POLICY_SOURCE__COUNT);
	struct policy_ref *body = entry->versions[source].body;
	int rc = 0;
	if (body != entry->body || source != entry->source) {
		is_news = true;
		for (size_t i = 0; i < entry->n_bindings; i++)
			leave_claims(s, entry->bindings[i]);
		set_bindings(s, entry, body);
		s->counts.in_force -= entry->body != NULL;
		entry->body = body;
		entry->source = source;
		s->counts.in_force += body != NULL;
		for (size_t i = 0; body && i < entry->n_bindings; i++)
			rc = enter_claims(s, entry->bindings[i], e) < 0 ? -1 : rc;
	}
	for (size_t i = 0; is_news && i < entry->n_bindings; i++)
		notify(s, entry->bindings[i]);
	return rc;
}

// Counts one more entry of the namespace.
static struct space *enter_space(struct policy_store *s, const char *namespace_name)
{
	struct space *space =
	        hash_table_get(&s->spaces, namespace_name, strlen(namespace_name), offsetof(struct space, name));
	space->n++;
	return space;
}

static void leave_space(struct policy_store *s, struct space *space)
{
	if (--space->n > 0)
		return;
	HASH_DEL(s->spaces, space);
	free(space);
}

static void remove_version(struct policy_store *s, struct policy_entry *entry, enum policy_source source, bool deleted)
{
	struct policy_version *v = &entry->versions[source];
	if (!v->is_there)
		return;
	struct policy_version gone = *v;
	*v = (struct policy_version){0};
	if (source_of(entry) != POLICY_SOURCE__COUNT) {
		struct err e;
		(void)update_entry(s, entry, true, &e); // a binding whose name is too long has no claim
		*v = gone;
		drop_version(s, v);
		return;
	}
	*v = gone; // the listener may still read it
	for (size_t i = 0; i < entry->n_bindings; i++)
		leave_claims(s, entry->bindings[i]);
	s->counts.in_force -= entry->body != NULL;
	for (size_t i = 0; i < entry->n_bindings; i++)
		remove_binding(s, entry->bindings[i], deleted);
	drop_version(s, v);
	struct row *row = (void *)entry;
	HASH_DEL(s->rows, row);
	leave_space(s, row->space);
	s->counts.entries--;
	row_free(row);
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

// Returns the entry; creates it when there is none.
static struct policy_entry *entry_for(struct policy_store *s, enum policy_source source, const char *namespace_name,
                                      const char *name, struct err *e)
{
	struct policy_entry *found = policy_store_find(s, namespace_name, name);
	if (found)
		return found;
	if (s->counts.entries == POLICY_STORE_MAX) {
		err_set(e, ERR_LIMIT, "policy %s/%s is one more than the ceiling of %d policies", namespace_name, name,
		        POLICY_STORE_MAX);
		return NULL;
	}
	struct space *space;
	HASH_FIND_STR(s->spaces, namespace_name, space);
	if (source != POLICY_FROM_FILE && space && space->n >= POLICY_STORE_NAMESPACE_MAX) {
		err_set(e, ERR_LIMIT, "policy %s/%s is one more than the ceiling of %d objects of namespace \"%s\"",
		        namespace_name, name, POLICY_STORE_NAMESPACE_MAX, namespace_name);
		return NULL;
	}
	char key[KEY_BYTES];
	key_of(key, namespace_name, name);
	size_t size = strlen(key) + 1;
	struct row *row = must_alloc(calloc(1, sizeof *row + size));
	row->space = enter_space(s, namespace_name);
	memcpy(row->key, key, size);
	row->entry.namespace_name = row->space->name;
	row->entry.name = row->key + strlen(namespace_name) + 1;
	row->entry.source = POLICY_SOURCE__COUNT;
	HASH_ADD_STR(s->rows, key, row);
	s->counts.entries++;
	return &row->entry;
}

static bool is_replaced(const struct policy_version *v, const struct policy_identity *identity)
{
	return v->is_there && v->identity && identity && strcmp(v->identity->uid, identity->uid) != 0;
}

// Stores the identity of a version; *ret_is_news: its generation changed.
static void set_identity(struct policy_version *v, const struct policy_identity *identity, bool *ret_is_news)
{
	*ret_is_news = !v->is_there || !v->identity != !identity ||
	               (identity && identity->generation != v->identity->generation);
	if (!identity) {
		free(v->identity);
		v->identity = NULL;
		return;
	}
	if (!v->identity)
		v->identity = must_alloc(malloc(sizeof *v->identity));
	*v->identity = *identity;
}

// Stores a valid version (`body`, one reference), or why it is invalid (`error`, owned); the other is NULL.
static int put_version(struct policy_store *s, enum policy_source source, const char *namespace_name, const char *name,
                       struct policy_ref *body, char *error, const struct policy_identity *identity, struct err *e)
{
	struct policy_entry *entry = policy_store_find(s, namespace_name, name);
	if (entry && is_replaced(&entry->versions[source], identity))
		remove_version(s, entry, source, false);
	entry = entry_for(s, source, namespace_name, name, e);
	if (!entry) {
		policy_ref_release(body);
		free(error);
		return -1;
	}
	struct policy_version *v = &entry->versions[source];
	struct policy_ref *before = body ? v->body : NULL;
	bool is_news;
	set_identity(v, identity, &is_news);
	is_news = is_news || (v->error && error ? strcmp(v->error, error) != 0 : v->error != error);
	s->counts.invalid -= v->error != NULL;
	s->counts.invalid += error != NULL;
	free(v->error);
	v->error = error;
	v->is_there = true;
	v->body = body ? body : v->body;
	int rc = update_entry(s, entry, is_news, e);
	policy_ref_release(before); // after update_entry(), because the listener may still read it
	return rc;
}

int policy_store_put(struct policy_store *s, enum policy_source source, struct policy_ref *body,
                     const struct policy_identity *identity, struct err *e)
{
	return put_version(s, source, body->policy.namespace_name, body->policy.name, body, NULL, identity, e);
}

int policy_store_put_bad(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name, const struct policy_identity *identity, const char *error, struct err *e)
{
	char *text = must_alloc(strndup(error, POLICY_ERROR_BYTES_MAX));
	return put_version(s, source, namespace_name, name, NULL, text, identity, e);
}

void policy_store_remove(struct policy_store *s, enum policy_source source, const char *namespace_name,
                         const char *name)
{
	struct policy_entry *entry = policy_store_find(s, namespace_name, name);
	if (entry)
		remove_version(s, entry, source, source != POLICY_FROM_FILE);
}

// ---- reading ----

struct stored_binding *policy_store_next(const struct policy_store *s, const struct stored_binding *b)
{
	if (b && b->index + 1 < b->entry->n_bindings)
		return b->entry->bindings[b->index + 1];
	const struct row *row = b ? (void *)b->entry : NULL;
	const struct row *next = row ? row->hh.next : s->rows;
	while (next && next->entry.n_bindings == 0)
		next = next->hh.next;
	return next ? next->entry.bindings[0] : NULL;
}

struct stored_binding *stored_binding_winner(const struct stored_binding *b)
{
	for (size_t i = 0; i < b->n_claims; i++)
		if (b->claims[i].claim->winner->b != b)
			return b->claims[i].claim->winner->b;
	return b->n_claims > 0 ? b->claims[0].b : NULL;
}

const struct scale_target *stored_binding_awaited(const struct stored_binding *b)
{
	for (size_t i = 0; i < b->n_claims; i++)
		if (b->claims[i].claim->winner->b != b)
			return binding_target(b->binding, i);
	return NULL;
}

const char *policy_entry_error(const struct policy_entry *entry)
{
	if (entry->source >= POLICY_SOURCE__COUNT || !entry->versions[entry->source].error)
		return "";
	return entry->versions[entry->source].error;
}

const struct policy_identity *policy_entry_identity(const struct policy_entry *entry)
{
	enum policy_source source = entry->source == POLICY_FROM_SCALED_OBJECT ? entry->source : POLICY_FROM_OBJECT;
	return entry->versions[source].identity;
}

const struct policy_counts *policy_store_counts(const struct policy_store *s)
{
	return &s->counts;
}

// ---- life ----

struct policy_store *policy_store_new(const struct policy_listener *listener)
{
	struct policy_store *s = must_alloc(calloc(1, sizeof *s));
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
		leave_space(s, row->space);
		for (size_t i = 0; i < row->entry.n_bindings; i++) {
			free(row->entry.bindings[i]->claims);
			free(row->entry.bindings[i]);
		}
		row_free(row);
	}
	struct policy_claim *claim, *next_claim;
	HASH_ITER(hh, s->claims, claim, next_claim)
	{
		HASH_DEL(s->claims, claim);
		free(claim);
	}
	free(s);
}
