// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/informer.h"

#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/json/json_span.h"
#include "k8s/cache/target_decode.h"
#include "k8s/cache/watch.h"
#include "k8s/client/k8s_client.h"

#define NAMESPACE_BYTES_MAX 63 // Kubernetes: apimachinery, IsDNS1123Label

// A watch, of one namespace or of all.
struct watch_scope {
	struct watch_scope *prev, *next;
	struct informer *informer;
	struct informer_namespace *space; // NULL: all namespaces
	struct k8s_watch *watch;
	uint32_t list;        // number of the latest list requested; 0: none
	uint32_t synced_list; // number of the latest complete list
	bool is_broken, is_list_due;
	bool is_list_unclear; // the latest list contains an object without a valid namespace: any object may be that
	                      // one
	bool has_left_out;    // the latest list contains an object that is too large: any registered one may be that
	char why[ERR_MSG_BYTES];
};

// A namespace that is watched or has kept items; "" stands for all namespaces and has no items, except those of a
// cluster-scoped resource.
struct informer_namespace {
	UT_hash_handle hh;
	struct informer *informer;
	struct watch_scope *own; // NULL: the watch of all namespaces serves it
	struct informer_item *items;
	size_t refs;          // items that need the watch: wanted objects and namespaces
	uint32_t synced_list; // number of the latest complete list that covered it
	char namespace_name[];
};

struct informer {
	struct informer_options options;
	struct informer_namespace *spaces; // hash
	struct informer_item *items;       // hash
	struct watch_scope *scopes;        // list; includes the watch of all namespaces
	struct watch_scope *all;
	int n_own;
	size_t n_watched; // namespaces with references
	uint32_t lists;   // lists requested; orders events before and after a list
	uint64_t fetches;
};

static const struct watch_scope *source_of(const struct informer_namespace *space)
{
	return space->own ? space->own : space->informer->all;
}

static bool is_listing(const struct watch_scope *s)
{
	return s->list != s->synced_list;
}

static void changed(const struct informer *i)
{
	if (i->options.callbacks.on_change)
		i->options.callbacks.on_change(i->options.arg);
}

// ---- items ----

static size_t format_key(char key[INFORMER_KEY_BYTES], const char *namespace_name, const char *name)
{
	int n = snprintf(key, INFORMER_KEY_BYTES, "%s/%s", namespace_name, name);
	return n > 0 && n < INFORMER_KEY_BYTES ? (size_t)n : 0;
}

struct informer_item *informer_get(const struct informer *i, const char *namespace_name, const char *name)
{
	char key[INFORMER_KEY_BYTES];
	struct informer_item *item = NULL;
	size_t len = format_key(key, namespace_name, name);
	if (len)
		HASH_FIND(hh, i->items, key, len, item);
	return item;
}

struct informer_item *informer_list(const struct informer *i)
{
	return i->items;
}

static uint64_t object_version(const char *json, size_t len)
{
	static const char *const path[] = {"metadata", "resourceVersion", NULL};
	char text[32];
	if (json_span_text(json_span_path((struct json_span){json, len}, path), text, sizeof text) <= 0)
		return 0;
	return k8s_version_number(text);
}

static bool is_stale(const struct informer_item *item, uint64_t version)
{
	return item->has_floor && version && version < item->version;
}

static void learn(struct informer_item *item, enum informer_object_state state, uint64_t version)
{
	item->state = (unsigned char)state;
	item->touched = item->space->informer->lists;
	item->version = version;
	item->has_floor = version > 0;
}

static void set_absent(struct informer_item *item)
{
	const struct informer_options *o = &item->space->informer->options;
	item->state = INFORMER_ABSENT;
	o->callbacks.on_absent(o->arg, item); // a kept item is freed there
}

static void set_unknown(struct informer_item *item, int64_t retry_ms)
{
	struct informer *i = item->space->informer;
	item->state = INFORMER_UNKNOWN;
	item->fetch_after_ms = retry_ms ? clock_mono_ms(i->options.client->options.clock) + retry_ms : 0;
	if (item->role == INFORMER_WANTED && i->options.callbacks.on_unknown)
		i->options.callbacks.on_unknown(i->options.arg, item);
}

// Sets the version that the server returned to a request of the caller.
static void raise_version(struct informer_item *item, const char *version)
{
	uint64_t n = k8s_version_number(version);
	if (n <= item->version)
		return;
	item->version = n;
	item->has_floor = true;
	item->touched = item->space->informer->lists;
}

// ---- fetching one ----

static void list_again(struct watch_scope *s)
{
	if (s->list == 0 || s->is_list_due)
		return;
	s->is_list_due = true;
	if (!is_listing(s))
		k8s_watch_relist(s->watch); // otherwise after the list in progress
}

static void list_namespace(struct informer_namespace *space)
{
	struct watch_scope *source = space->own ? space->own : space->informer->all;
	if (source)
		list_again(source);
}

static void take_answer(struct informer_item *item, const struct http_response *response)
{
	struct json_span object;
	const struct informer_options *o = &item->space->informer->options;
	const char *name = strrchr(item->hh.key, '/') + 1;
	int n = response ? object_list_find(response->body, response->body_len, name, &object) : -1;
	if (n < 0) {
		set_unknown(item, INFORMER_FETCH_RETRY_MS);
		if (item->role == INFORMER_KEPT)
			list_namespace(item->space); // its result is unambiguous
		return;
	}
	if (n == 0) {
		item->touched = item->space->informer->lists;
		set_absent(item);
		return;
	}
	uint64_t version = object_version(object.text, object.len);
	if (is_stale(item, version)) { // the caller wrote in between
		set_unknown(item, 0);
		return;
	}
	learn(item, INFORMER_PRESENT, version);
	o->callbacks.on_object(o->arg, item, item->space->namespace_name, name, object.text, object.len);
}

static void on_fetched(void *arg, const struct http_response *response, const struct err *error)
{
	struct informer_item *item = arg;
	struct informer *i = item->space->informer;
	bool was_stale = item->is_fetch_stale;
	item->fetch = NULL;
	item->is_fetch_stale = false;
	if (error && error->kind == ERR_CANCELED)
		return;
	if (item->state == INFORMER_UNKNOWN && !was_stale)
		take_answer(item, response);
	else if (item->state == INFORMER_UNKNOWN && item->role == INFORMER_KEPT)
		(void)informer_refetch(item, 0);
	changed(i);
}

static void fetch(struct informer_item *item)
{
	struct informer *i = item->space->informer;
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	const char *name_space = item->space->namespace_name;
	buf_printf(&path, "%s%s%s/%s?fieldSelector=metadata.name%%3D%s", i->options.group_path,
	           name_space[0] ? "/namespaces/" : "", name_space, i->options.plural, strrchr(item->hh.key, '/') + 1);
	if (i->options.label_selector) {
		buf_puts(&path, "&labelSelector=");
		http_append_urlencoded(&path, i->options.label_selector);
	}
	const struct k8s_request_options o = {.method = "GET", .path = buf_str(&path), .done = on_fetched, .arg = item};
	i->fetches++;
	item->is_fetch_stale = false;
	if (path.failed || k8s_request_with(i->options.client, &o, &item->fetch, NULL) < 0) {
		item->fetch = NULL;
		set_unknown(item, INFORMER_FETCH_RETRY_MS);
	}
	buf_done(&path);
}

static bool fetch_unknown(struct informer_item *item)
{
	const struct watch_scope *source = source_of(item->space);
	if (item->fetch)
		return true;
	if (!source || source->is_broken)
		return false;
	if (source->synced_list == 0)
		return true; // the list will contain it, or it is fetched after the list
	if (clock_mono_ms(item->space->informer->options.client->options.clock) >= item->fetch_after_ms)
		fetch(item);
	return item->fetch != NULL;
}

// ---- the results of a complete list ----

// A report about an item that arrived while the list was being read may be older or newer than the list, so neither is
// evidence; a fetch that starts after both is. The same holds for a fetch that is still in flight.
static void conclude_item(struct informer_item *item, const struct watch_scope *s)
{
	uint32_t shown = s->space ? item->shown_own : item->shown_all;
	item->is_fetch_stale = item->fetch != NULL;
	if (shown == s->synced_list || (s->is_list_unclear && item->role == INFORMER_KEPT))
		return;
	bool is_unclear = s->is_list_unclear || (s->has_left_out && item->role == INFORMER_WANTED);
	if (item->touched < s->synced_list && !is_unclear) {
		if (item->state != INFORMER_ABSENT)
			set_absent(item);
		return;
	}
	set_unknown(item, 0);
	if (item->role == INFORMER_KEPT)
		(void)fetch_unknown(item);
}

static void conclude(struct informer_namespace *space, const struct watch_scope *s)
{
	struct informer_item *item, *next;
	if (space->synced_list < s->synced_list)
		space->synced_list = s->synced_list;
	DL_FOREACH_SAFE(space->items, item, next)
	{
		conclude_item(item, s);
	}
}

static void free_if_unused(struct informer_namespace *space)
{
	if (space->refs > 0 || space->items)
		return;
	assert(!space->own);
	HASH_DELETE(hh, space->informer->spaces, space);
	free(space);
}

static void scope_free(struct watch_scope *s)
{
	struct informer *i = s->informer;
	k8s_watch_free(s->watch);
	DL_DELETE(i->scopes, s);
	if (s->space) {
		s->space->own = NULL;
		i->n_own--;
	} else {
		i->all = NULL;
	}
	free(s);
}

// The watch of all namespaces replaces the watches of single namespaces.
static void take_over(struct watch_scope *all)
{
	struct informer *i = all->informer;
	struct informer_namespace *space, *next;
	bool is_list_due = false;
	if (all->is_broken || all->synced_list == 0 || is_listing(all))
		return;
	HASH_ITER(hh, i->spaces, space, next)
	{
		if (!space->own)
			continue;
		is_list_due = is_list_due || space->own->is_list_due || is_listing(space->own);
		scope_free(space->own);
		conclude(space, all);
	}
	if (is_list_due) { // for a caller that waits for a list
		all->is_list_due = true;
		k8s_watch_relist(all->watch);
	}
}

// ---- a watch ----

static void on_list(void *arg)
{
	struct watch_scope *s = arg;
	struct informer_namespace *space, *next;
	s->list = ++s->informer->lists;
	s->is_list_due = s->is_list_unclear = s->has_left_out = false;
	// The server may have restarted its versions, as after a restored backup: this list is used whatever its
	// versions.
	HASH_ITER(hh, s->informer->spaces, space, next)
	{
		struct informer_item *item;
		if (source_of(space) != s)
			continue;
		DL_FOREACH(space->items, item)
		item->has_floor = false;
	}
}

static bool has_place(const struct informer *i, const char *namespace_name)
{
	size_t len = strlen(namespace_name);
	return i->options.is_cluster_scoped ? len == 0 : len > 0 && len <= NAMESPACE_BYTES_MAX;
}

// While a namespace has its own watch, the watch of all namespaces may be far behind it, and may fail before it catches
// up; the own watch does not repeat what it has reported. So a report of the watch of all namespaces counts only if it
// is as new as the known version, or if the first list of the own watch is still going to contain the object.
static bool is_overridden(const struct watch_scope *s, const struct informer_item *item, uint64_t version)
{
	const struct watch_scope *own = item->space->own;
	if (s->space || !own)
		return false;
	if (version && item->version)
		return version < item->version;
	return own->synced_list > 0 || item->state != INFORMER_UNKNOWN || item->version;
}

// When the watch of all namespaces takes over, the item is fetched.
static void doubt(struct informer_item *item)
{
	item->shown_all = 0;
	item->touched = item->space->informer->lists;
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct watch_scope *s = arg;
	struct informer *i = s->informer;
	char namespace_name[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES];
	if (!object_decode_name(json, len, namespace_name, name) || !has_place(i, namespace_name)) {
		s->is_list_unclear = s->is_list_unclear || is_listing(s);
		i->options.callbacks.on_object(i->options.arg, NULL, "", name, json, len);
		return;
	}
	struct informer_item *item = informer_get(i, namespace_name, name);
	bool is_new = false;
	if (!item) {
		i->options.callbacks.on_object(i->options.arg, NULL, namespace_name, name, json, len);
		item = informer_get(i, namespace_name, name);
		is_new = item != NULL; // kept
	}
	if (!item)
		return; // not wanted
	uint64_t version = object_version(json, len);
	uint32_t *shown = s->space ? &item->shown_own : &item->shown_all;
	if (is_listing(s))
		*shown = s->list;
	if (is_stale(item, version))
		return;
	if (!is_new && is_overridden(s, item, version)) {
		doubt(item);
		return;
	}
	learn(item, INFORMER_PRESENT, version);
	if (s->space && version == 0)
		item->shown_all = 0;                   // the list of all namespaces may be newer
	if (is_new && !s->space && item->space->own) { // its own watch may have reported its deletion already
		set_unknown(item, 0);
		(void)fetch_unknown(item);
	}
	if (!is_new)
		i->options.callbacks.on_object(i->options.arg, item, namespace_name, name, json, len);
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	struct watch_scope *s = arg;
	char namespace_name[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES];
	struct informer_item *item = object_decode_name(json, len, namespace_name, name)
	                                     ? informer_get(s->informer, namespace_name, name)
	                                     : NULL;
	uint64_t version = item ? object_version(json, len) : 0;
	if (!item || is_stale(item, version))
		return;
	if (is_overridden(s, item, version)) {
		doubt(item);
		return;
	}
	learn(item, INFORMER_ABSENT, version);
	if (item->role == INFORMER_KEPT) {
		struct informer_namespace *space = item->space;
		set_absent(item);
		free_if_unused(space);
		return;
	}
	// The stream may lag: for an object that was created again before the item was registered, it reports the
	// earlier deletion first. Only a reply of the server is evidence.
	item->is_fetch_stale = item->fetch != NULL;
	set_unknown(item, 0);
}

static void on_synced(void *arg)
{
	struct watch_scope *s = arg;
	struct informer *i = s->informer;
	struct informer_namespace *space, *next;
	bool is_list_due = s->is_list_due;
	s->synced_list = s->list;
	HASH_ITER(hh, i->spaces, space, next)
	{
		if (source_of(space) != s)
			continue;
		conclude(space, s);
		free_if_unused(space);
	}
	if (i->all == s)
		take_over(s);
	if (is_list_due)
		k8s_watch_relist(s->watch);
	changed(i);
}

static struct watch_scope *scope_new(struct informer *i, struct informer_namespace *space, struct err *e);

// A server that is down is not a refusal: separate watches would fail as well.
static bool is_refusal(const struct err *error)
{
	return error->code == 403 || error->kind == ERR_LIMIT || error->kind == ERR_PROTOCOL;
}

// All namespaces cannot be watched together: watches each one separately.
static void fall_back(struct informer *i)
{
	struct informer_namespace *space, *next;
	HASH_ITER(hh, i->spaces, space, next)
	{
		if (space->refs > 0 && !space->own && space->namespace_name[0])
			space->own = scope_new(i, space, NULL); // NULL: above the ceiling
	}
}

static void on_error(void *arg, const struct err *error)
{
	struct watch_scope *s = arg;
	struct informer *i = s->informer;
	// Any tenant can create an object that is too large: all others remain available.
	bool is_left_out = error && error->code == K8S_WATCH_LEFT_OUT;
	s->is_broken = error && !is_left_out;
	s->has_left_out = s->has_left_out || (is_left_out && is_listing(s));
	snprintf(s->why, sizeof s->why, "%s", error ? error->msg : "");
	if (s == i->all && s->is_broken && is_refusal(error))
		fall_back(i);
	else if (s == i->all && !s->is_broken)
		take_over(s);
	char what[INFORMER_RESOURCE_BYTES + TARGET_NAME_BYTES + 32];
	snprintf(what, sizeof what, "%s in %s%s", i->options.plural, s->space ? "namespace " : "all namespaces",
	         s->space ? s->space->namespace_name : "");
	if (i->options.callbacks.on_error)
		i->options.callbacks.on_error(i->options.arg, what, error);
	changed(i);
}

// space NULL: of all namespaces.
static struct watch_scope *scope_new(struct informer *i, struct informer_namespace *space, struct err *e)
{
	char path[2 * INFORMER_RESOURCE_BYTES + TARGET_NAME_BYTES + 64];
	if (space && i->n_own >= INFORMER_OWN_WATCHES_MAX) {
		err_set(e, ERR_LIMIT, "%s are watched in %d namespaces, the ceiling is %d", i->options.plural, i->n_own,
		        INFORMER_OWN_WATCHES_MAX);
		return NULL;
	}
	struct watch_scope *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->informer = i;
	s->space = space;
	snprintf(path, sizeof path, "%s%s%s/%s", i->options.group_path, space ? "/namespaces/" : "",
	         space ? space->namespace_name : "", i->options.plural);
	s->watch = k8s_watch_new(
	        &(struct k8s_watch_options){.client = i->options.client,
	                                    .path = path,
	                                    .label_selector = i->options.label_selector,
	                                    .callbacks = {on_list, on_object, on_deleted, on_synced, on_error},
	                                    .arg = s},
	        e);
	if (!s->watch) {
		free(s);
		return NULL;
	}
	DL_APPEND(i->scopes, s);
	i->n_own += space != NULL;
	return s;
}

// ---- namespaces ----

static struct informer_namespace *get_space(struct informer *i, const char *namespace_name, size_t len)
{
	struct informer_namespace *space =
	        hash_table_get(&i->spaces, namespace_name, len, offsetof(struct informer_namespace, namespace_name));
	space->informer = i;
	return space;
}

// Returns false and *e when no watch covers the namespace.
static bool open_source(struct informer_namespace *space, struct err *e)
{
	struct informer *i = space->informer;
	if (space->own || (i->all && !i->all->is_broken))
		return true;
	if (!space->namespace_name[0]) {
		if (!i->all)
			i->all = scope_new(i, NULL, e);
		return i->all != NULL;
	}
	bool has_room = i->options.own_watches == 0 || i->n_own < i->options.own_watches;
	if (i->all || has_room)
		space->own = scope_new(i, space, e);
	else
		i->all = scope_new(i, NULL, e);
	return space->own || i->all;
}

static int acquire(struct informer_namespace *space, struct err *e)
{
	if (space->refs == 0 && !open_source(space, e)) {
		free_if_unused(space);
		return -1;
	}
	space->informer->n_watched += space->refs == 0;
	space->refs++;
	return 0;
}

// Removes the kept items of a namespace that no watch covers any more.
static void forget_items(struct informer_namespace *space)
{
	const struct informer_options *o = &space->informer->options;
	struct informer_item *item, *next;
	DL_FOREACH_SAFE(space->items, item, next)
	{
		o->callbacks.on_absent(o->arg, item);
	}
}

static void release(struct informer_namespace *space)
{
	struct informer *i = space->informer;
	if (--space->refs > 0)
		return;
	// A watch of all namespaces that listed while it was failing has not taken over; its list says nothing about
	// objects that only the namespace's own watch reported.
	if (space->own && i->all)
		list_again(i->all);
	if (space->own)
		scope_free(space->own);
	i->n_watched--;
	if (!i->all) // otherwise the watch of all namespaces continues to show them
		forget_items(space);
	free_if_unused(space);
	if (i->n_watched > 0 || !i->all)
		return;
	struct informer_namespace *next;
	scope_free(i->all);
	HASH_ITER(hh, i->spaces, space, next)
	{
		forget_items(space);
		free_if_unused(space);
	}
}

// ---- public functions ----

int informer_put(struct informer *i, struct informer_item *item, const char *key, const char *version, struct err *e)
{
	if (item->space) {
		raise_version(item, version);
		return 0;
	}
	size_t len = strcspn(key, "/");
	assert(key[len] && (len == 0 || !i->options.is_cluster_scoped));
	struct informer_namespace *space = get_space(i, key, len);
	item->role = !key[len + 1] ? INFORMER_NAMESPACE : version ? INFORMER_KEPT : INFORMER_WANTED;
	if (item->role != INFORMER_KEPT && acquire(space, e) < 0)
		return -1;
	item->space = space;
	if (item->role == INFORMER_NAMESPACE)
		return 0;
	item->touched = i->lists;
	DL_APPEND(space->items, item);
	HASH_ADD_KEYPTR(hh, i->items, key, strlen(key), item);
	if (item->role == INFORMER_KEPT)
		learn(item, INFORMER_PRESENT, k8s_version_number(version));
	return 0;
}

void *informer_keep(struct informer *i, size_t size, const char *namespace_name, const char *name)
{
	size_t key_size = strlen(namespace_name) + 1 + strlen(name) + 1;
	char *record = must_alloc(calloc(1, size + key_size));
	snprintf(record + size, key_size, "%s/%s", namespace_name, name);
	(void)informer_put(i, (struct informer_item *)(void *)record, record + size, "", NULL);
	return record;
}

void informer_remove(struct informer_item *item)
{
	struct informer_namespace *space = item->space;
	if (!space)
		return;
	if (item->role != INFORMER_NAMESPACE) {
		if (item->fetch)
			k8s_call_cancel(item->fetch);
		HASH_DELETE(hh, space->informer->items, item);
		DL_DELETE(space->items, item);
	}
	item->space = NULL;
	if (item->role != INFORMER_KEPT)
		release(space);
}

bool informer_refetch(struct informer_item *item, int64_t after_ms)
{
	if (item->role == INFORMER_NAMESPACE) {
		list_namespace(item->space);
		return true;
	}
	if (item->state != INFORMER_UNKNOWN || after_ms > 0)
		set_unknown(item, after_ms);
	return fetch_unknown(item);
}

// ---- start and stop ----

struct informer *informer_new(const struct informer_options *options, struct err *e)
{
	struct informer_options o = *options;
	const char **const texts[] = {&o.group_path, &o.plural, &o.label_selector};
	assert(strlen(o.group_path) < INFORMER_RESOURCE_BYTES && strlen(o.plural) < INFORMER_RESOURCE_BYTES);
	struct informer *i = alloc_with_texts(sizeof *i, texts, sizeof texts / sizeof texts[0], e);
	if (i)
		i->options = o;
	return i;
}

void informer_free(struct informer *i)
{
	if (!i)
		return;
	assert(!i->items && !i->spaces && !i->scopes);
	free(i);
}

static void add_scope(const struct watch_scope *s, struct informer_state *sum)
{
	struct k8s_watch_stats one;
	k8s_watch_get_stats(s->watch, &one);
	sum->watches++;
	sum->unsynced += s->synced_list == 0;
	sum->broken += s->is_broken;
	sum->streaming += one.is_streaming;
	if (s->is_broken)
		sum->broken_why = s->why;
	sum->last_heard_mono_ms = one.last_heard_mono_ms;
	sum->lists += one.lists;
	sum->streams += one.streams;
	sum->events += one.events;
	sum->gone += one.gone;
}

void informer_add_state(const struct informer *i, struct informer_state *sum)
{
	sum->items += i ? HASH_COUNT(i->items) : 0;
	sum->fetches += i ? i->fetches : 0;
	for (const struct watch_scope *s = i ? i->scopes : NULL; s; s = s->next)
		add_scope(s, sum);
}

struct informer_state informer_get_state(const struct informer *i, const struct informer_item *item)
{
	struct informer_state state = {.requested_list = i->lists};
	const struct watch_scope *s = item ? source_of(item->space) : NULL;
	if (!item)
		informer_add_state(i, &state);
	else
		state.synced_list = item->space->synced_list;
	if (s) {
		add_scope(s, &state);
	} else if (item) {
		state.unsynced = state.broken = 1;
		state.broken_why = "too many namespaces are watched";
	}
	return state;
}
