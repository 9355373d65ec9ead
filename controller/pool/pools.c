// SPDX-License-Identifier: Apache-2.0
#include "controller/pool/pools.h"

#include "base/base.h"
#include "policies/schema/binding.h"

// ---- pools ----

struct pools *pools_new(const struct pools_options *options)
{
	struct pools *p = must_alloc(calloc(1, sizeof *p));
	p->options = *options;
	p->started_ms = -1;
	p->read_ms = p->resumed_ms = POOL_NEVER_MS;
	return p;
}

void pool_object_free(struct pool_object *o)
{
	if (!o)
		return;
	arena_done(&o->arena);
	free(o);
}

static void drop_object(struct pool *pool)
{
	if (pool->valid != pool->object)
		pool_object_free(pool->valid);
	pool_object_free(pool->object);
	pool->object = pool->valid = NULL;
}

static void forget_record(struct pool *pool)
{
	if (!pool->record)
		return;
	status_slot_cancel(&pool->record->slot);
	state_slot_cancel(&pool->record->file);
	free(pool->record);
	pool->record = NULL;
}

static void pool_free(struct pool *pool)
{
	struct pools *p = pool->pools;
	HASH_DEL(p->by_name, pool);
	p->n--;
	for (struct pool_membership *s = p->memberships; s; s = s->hh.next) { // until pools_assign_all()
		if (s->pool == pool)
			s->pool = NULL;
		if (s->other == pool)
			s->other = NULL;
	}
	drop_object(pool);
	forget_record(pool);
	free(pool->memberships);
	free(pool->entries);
	free(pool->members);
	free(pool->grants);
	free(pool->ratios);
	free(pool);
}

void pools_free(struct pools *p)
{
	if (!p)
		return;
	while (p->by_name)
		pool_free(p->by_name);
	pool_set_done(&p->files);
	free(p);
}

static void note_change(struct pools *p)
{
	p->is_unseated = true;
	if (p->options.changed)
		p->options.changed(p->options.arg);
}

static int by_name(const struct pool *a, const struct pool *b)
{
	return strcmp(a->name, b->name);
}

static struct pool *find(struct pools *p, const char *name)
{
	struct pool *pool;
	HASH_FIND_STR(p->by_name, name, pool);
	return pool;
}

static struct pool *get(struct pools *p, const char *name, struct err *e)
{
	struct pool *pool = find(p, name);
	if (pool)
		return pool;
	if (p->n >= POOLS_MAX) {
		err_set(e, ERR_LIMIT, "pool %s is one more than the ceiling of %d pools", name, POOLS_MAX);
		return NULL;
	}
	pool = hash_table_get(&p->by_name, name, strlen(name), offsetof(struct pool, name));
	pool->pools = p;
	HASH_SORT(p->by_name, by_name);
	p->n++;
	return pool;
}

// Puts the version in force that ranks first, or frees the pool when it has none.
static void choose(struct pool *pool)
{
	if (!pool->object && !pool->file) {
		pool_free(pool);
		return;
	}
	// An invalid object still claims its members, as far as it could be decoded, so that they are held.
	pool->spec = pool->valid ? &pool->valid->pool : pool->object ? &pool->object->pool : pool->file;
	pool_invalidate(pool);
}

int pools_put_object(struct pools *p, struct pool_object *object, struct err *e)
{
	struct pool *pool = get(p, object->pool.name, e);
	if (!pool) {
		pool_object_free(object);
		return -1;
	}
	bool is_valid = object->fault[0] == '\0';
	if (!pool->object || strcmp(pool->object->uid, object->uid) != 0)
		pool->ledger = (struct pool_ledger){0}; // another object of this name
	if (is_valid || (pool->object && strcmp(pool->object->uid, object->uid) != 0)) {
		drop_object(pool);
	} else if (pool->object != pool->valid) {
		pool_object_free(pool->object);
	}
	pool->object = object;
	if (is_valid)
		pool->valid = object;
	choose(pool);
	note_change(p);
	return 0;
}

void pools_remove_object(struct pools *p, const char *name)
{
	struct pool *pool = find(p, name);
	if (!pool || !pool->object)
		return;
	drop_object(pool);
	forget_record(pool);
	choose(pool);
	note_change(p);
}

void pools_put_spending(struct pools *p, const char *name, const char *uid, const struct pool_ledger *spending)
{
	struct pool *pool = find(p, name);
	if (!pool || !pool->object || strcmp(pool->object->uid, uid) != 0 ||
	    spending->until_ms <= pool->ledger.until_ms)
		return;
	pool->ledger = *spending;
	pool_invalidate(pool);
}

int pools_put_files(struct pools *p, struct pool_set *set, struct err *e)
{
	int rc = 0;
	struct pool *pool, *next;
	HASH_ITER(hh, p->by_name, pool, next) pool->file = NULL;
	for (size_t i = 0; i < set->n; i++) {
		pool = get(p, set->pools[i].name, e);
		if (!pool)
			rc = -1;
		else
			pool->file = &set->pools[i];
	}
	HASH_ITER(hh, p->by_name, pool, next) choose(pool);
	pool_set_done(&p->files);
	p->files = *set;
	*set = (struct pool_set){0};
	note_change(p);
	return rc;
}

// ---- policies ----

static void forget_heard(struct pool_membership *s)
{
	struct pools *p = s->pools;
	if (!s->is_heard)
		return;
	s->is_heard = false;
	if (--p->n_heard > 0)
		return;
	p->started_ms = -1; // as after a start
	for (struct pool *pool = p->by_name; pool; pool = pool->hh.next)
		pool_invalidate(pool);
}

struct pool_membership *pool_membership_new(struct pools *p, const char *namespace_name, const char *name,
                                            const char *key, const char *label_lines, void *user)
{
	char none[1];
	size_t name_at = strlen(namespace_name) + 1, size = binding_format(none, sizeof none, name, key) + 1;
	struct pool_membership *s = must_alloc(calloc(1, sizeof *s + name_at + size));
	snprintf(s->key, name_at + 1, "%s/", namespace_name);
	binding_format(s->key + name_at, size, name, key);
	s->pools = p;
	s->namespace_name = must_alloc(strdup(namespace_name));
	s->name = must_alloc(strdup(name));
	s->label_lines = must_alloc(strdup(label_lines ? label_lines : ""));
	s->user = user;
	s->in_flight = s->unacked = -1;
	s->lost_ms = -1;
	s->asked_ms = INT64_MIN / 2; // never
	p->is_unseated = true;
	HASH_ADD_STR(p->memberships, key, s);
	return s;
}

const char *pools_find_claim(const struct pools *p, const char *namespace_name, const char *name,
                             const char *label_lines)
{
	for (const struct pool *pool = p->by_name; pool; pool = pool->hh.next)
		if (gpu_pool_claims(pool->spec, namespace_name, name, label_lines ? label_lines : ""))
			return pool->spec->name;
	return NULL;
}

void pool_membership_set_labels(struct pool_membership *s, const char *label_lines)
{
	if (strcmp(s->label_lines, label_lines ? label_lines : "") == 0)
		return;
	char *old = s->label_lines;
	s->label_lines = must_alloc(strdup(label_lines ? label_lines : ""));
	for (const struct pool *pool = s->pools->by_name; pool && !s->pools->is_unseated; pool = pool->hh.next)
		s->pools->is_unseated = gpu_pool_claims(pool->spec, s->namespace_name, s->name, old) !=
		                        gpu_pool_claims(pool->spec, s->namespace_name, s->name, s->label_lines);
	free(old);
}

void pool_membership_forget(struct pool_membership *s, int64_t now_mono_ms)
{
	if (!s)
		return;
	forget_heard(s);
	s->is_known = s->has_asked = s->is_idle = false;
	// Its earlier replicas are counted for a while longer, like those granted to a fixed member.
	bool is_over = now_mono_ms >= s->granted_ms + POOL_GRANTED_MS;
	if (s->existing > 0 && (is_over || s->existing >= s->granted)) {
		s->granted = s->existing;
		s->granted_ms = now_mono_ms;
	}
	s->existing = s->refusals = s->own = 0;
	s->is_countable = false;
	s->lost_ms = -1;
	s->in_flight = -1;
	if (s->pool)
		s->pool->is_stale = true;
	if (s->other)
		s->other->is_stale = true;
}

static int compare_member(const void *key, const void *member)
{
	return strcmp(key, (*(struct pool_membership *const *)member)->key);
}

static size_t find_member(const struct pool *pool, const char *key)
{
	struct pool_membership *const *found =
	        pool->n ? bsearch(key, pool->memberships, pool->n, sizeof *found, compare_member) : NULL;
	return found ? (size_t)(found - pool->memberships) : pool->n;
}

void pool_membership_free(struct pool_membership *s)
{
	if (!s)
		return;
	forget_heard(s);
	HASH_DEL(s->pools->memberships, s);
	s->pools->is_unseated = true;
	struct pool *pool, *next; // they refer to the seat until pools_assign_all()
	HASH_ITER(hh, s->pools->by_name, pool, next)
	{
		if (find_member(pool, s->key) == pool->n)
			continue; // not in it
		pool->unknown = NULL;
		pool->n = 0;
		pool_invalidate(pool);
	}
	free(s->namespace_name);
	free(s->name);
	free(s->label_lines);
	free(s);
}

// ---- which policies belong to which pools ----

// Returns whether the place had another member before, when the pool had n_before, or none. An unchanged list keeps its
// grants: a tenant can create policies and change labels as often as it likes.
static bool add_member(struct pool *pool, struct pool_membership *s, const struct gpu_pool_entry *entry,
                       size_t n_before)
{
	if (pool->n == pool->room) {
		pool->room = pool->room ? 2 * pool->room : 16;
		pool->memberships =
		        must_alloc(realloc(pool->memberships, pool->room * sizeof(struct pool_membership *)));
		pool->entries = must_alloc(realloc(pool->entries, pool->room * sizeof *pool->entries));
		pool->members = must_alloc(realloc(pool->members, pool->room * sizeof *pool->members));
		pool->grants = must_alloc(realloc(pool->grants, pool->room * sizeof *pool->grants));
	}
	s->is_excess = false;
	bool is_new = pool->shared_mono_ms == POOL_NEVER_MS || pool->n >= n_before || pool->memberships[pool->n] != s ||
	              pool->entries[pool->n] != entry;
	if (is_new) {
		pool->members[pool->n] = (struct pool_member){0};
		gpu_pool_apply(pool->spec, entry, &pool->members[pool->n]);
		pool->grants[pool->n] = (struct pool_grant){0};
		pool->memberships[pool->n] = s;
		pool->entries[pool->n] = entry;
	}
	if (!s->pool) {
		s->pool = pool;
		s->index = pool->n;
	} else if (!s->other) {
		s->other = pool;
	}
	pool->n++;
	return is_new;
}

// A ratio applies while both of its members are in force, and those of an invalid pool do not.
static void set_ratios(struct pool *pool)
{
	const struct gpu_pool *spec = pool->spec;
	pool->n_ratios = 0;
	free(pool->ratios);
	pool->ratios = must_alloc(calloc(spec->n_ratios + 1, sizeof *pool->ratios));
	for (size_t i = 0; i < spec->n_ratios && (pool->valid || !pool->object); i++) {
		const struct gpu_pool_ratio *r = &spec->ratios[i];
		size_t of = find_member(pool, r->of), to = find_member(pool, r->to);
		if (of < pool->n && to < pool->n && of != to)
			pool->ratios[pool->n_ratios++] =
			        (struct pool_ratio){of, to, gpu_pool_milli(r->min), gpu_pool_milli(r->max)};
	}
}

static int by_key(const struct pool_membership *a, const struct pool_membership *b)
{
	return strcmp(a->key, b->key);
}

// The most members of one namespace with which all namespaces together have at most POOL_MEMBERS_MAX: a namespace with
// too many policies loses places, no other one.
static size_t fair_places(const size_t *n_by_namespace, size_t n)
{
	size_t low = 0, high = POOL_MEMBERS_MAX;
	while (low < high) {
		size_t middle = low + (high - low + 1) / 2, sum = 0;
		for (size_t i = 0; i < n; i++)
			sum += n_by_namespace[i] < middle ? n_by_namespace[i] : middle;
		if (sum <= POOL_MEMBERS_MAX)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static bool holds_gpus(const struct pool_membership *s)
{
	return s->granted > 0 || s->existing > 0 || s->in_flight > 0 || s->unacked > 0;
}

// Divides the places of the namespace of the member `first` into those for members that hold GPUs, which come first,
// and [false] those for the others.
static void divide_places(const struct pool *pool, size_t first, size_t n, size_t ret[2])
{
	const char *namespace_name = pool->memberships[first]->namespace_name;
	ret[true] = 0;
	for (size_t i = first; i < n && strcmp(pool->memberships[i]->namespace_name, namespace_name) == 0; i++)
		ret[true] += ret[true] < pool->per_namespace && holds_gpus(pool->memberships[i]);
	ret[false] = pool->per_namespace - ret[true];
}

// Removes the members for which the pool has no place. The seats are sorted by namespace.
static void drop_excess(struct pool *pool)
{
	size_t n_namespaces = 0, n_kept = 0, n_before = pool->n, places[2] = {0, 0};
	pool->n_excess = 0;
	if (pool->n <= POOL_MEMBERS_MAX)
		return;
	size_t *counts = must_alloc(calloc(pool->n, sizeof *counts));
	for (size_t i = 0; i < pool->n; i++) {
		bool is_next = i > 0 && strcmp(pool->memberships[i]->namespace_name,
		                               pool->memberships[i - 1]->namespace_name) != 0;
		n_namespaces += is_next;
		counts[n_namespaces]++;
	}
	pool->per_namespace = fair_places(counts, n_namespaces + 1);
	free(counts);
	const char *namespace_name = "";
	for (size_t i = 0; i < n_before; i++) {
		struct pool_membership *s = pool->memberships[i];
		if (strcmp(s->namespace_name, namespace_name) != 0)
			divide_places(pool, i, n_before, places);
		namespace_name = s->namespace_name;
		if (places[holds_gpus(s)] == 0) {
			s->is_excess = s->is_excess || s->pool == pool;
			continue;
		}
		places[holds_gpus(s)]--;
		pool->members[n_kept] = pool->members[i];
		pool->memberships[n_kept] = s;
		pool->entries[n_kept] = pool->entries[i];
		if (s->pool == pool)
			s->index = n_kept;
		n_kept++;
	}
	pool->n = n_kept;
	pool->n_excess = n_before - n_kept;
}

void pools_assign_all(struct pools *p)
{
	struct pool *pool, *next_pool;
	struct pool_membership *s, *next_membership;
	if (!p->is_unseated)
		return;
	p->is_unseated = false;
	HASH_SORT(p->memberships, by_key);
	HASH_ITER(hh, p->memberships, s, next_membership) s->pool = s->other = NULL;
	HASH_ITER(hh, p->by_name, pool, next_pool)
	{
		size_t n_before = pool->n;
		bool is_changed = false;
		pool->n = 0;
		pool->is_stale = true; // another pool may claim a member now
		HASH_ITER(hh, p->memberships, s, next_membership)
		{
			const struct gpu_pool_entry *entry =
			        gpu_pool_claims(pool->spec, s->namespace_name, s->name, s->label_lines);
			if (entry)
				is_changed = add_member(pool, s, entry, n_before) || is_changed;
		}
		if (is_changed || pool->n != n_before)
			pool_invalidate(pool);
		drop_excess(pool);
		set_ratios(pool);
	}
}
