// SPDX-License-Identifier: Apache-2.0
#include "k8s/pod_store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "base/err.h"
#include "k8s/label_selector.h"
#include "k8s/pod_decode.h"
#include "k8s/watch.h"

#define TERM_BYTES 400 // "key=value" of a label

// That a pod is of a set: one per pod, mostly.
struct membership {
	struct membership *prev, *next; // of the set
	struct membership *also;        // of the pod: in another set
	struct pod *pod;
	struct pod_set *set;
};

struct pod {
	UT_hash_handle hh;
	struct membership *memberships;
	uint64_t seen; // number of the latest list it was in
	int64_t created_ms, ready_ms;
	enum pod_kind kind;
	bool is_ready, is_pending, is_failed, is_deleted, is_crashing;
	char name[];
};

struct pod_set {
	struct pod_set *prev, *next; // of the watch
	struct pod_set *next_of_term;
	struct pod_watch *watch;
	struct pod_term *term;
	struct label_selector *selector;
	struct membership *members;
	int refs;
	bool is_listed; // a list came since it was wanted
	struct pod_set_counts counts;
	char text[];
};

// The sets whose pods all have a certain label, "key=value": a pod is held against those of its own labels only. "" is
// for the sets that name none.
struct pod_term {
	UT_hash_handle hh;
	struct pod_set *sets;
	char text[];
};

struct pod_watch {
	struct pod_watch *prev, *next;
	struct pod_store *store;
	struct k8s_watch *watch;
	struct pod_set *sets;
	struct pod_term *terms; // hash
	struct pod *pods;       // hash
	uint64_t list;
	bool is_broken;
	char namespace_name[];
};

struct pod_store {
	struct pod_store_options options;
	struct pod_watch *watches;
	int n_watches;
};

static void *must(void *p)
{
	if (!p)
		abort(); // nothing sensible goes on without memory; the supervisor restarts us
	return p;
}

// ---- pods ----

static void count(struct pod_set *set, const struct pod *p, int32_t by)
{
	struct pod_counts *c = &set->counts.counts;
	c->total += by;
	c->ready += p->is_ready ? by : 0;
	c->pending += p->is_pending ? by : 0;
	c->failed += p->is_failed ? by : 0;
	c->terminating += p->is_deleted ? by : 0;
	set->counts.crashing += p->is_crashing ? by : 0;
}

static void leave(struct membership *m)
{
	count(m->set, m->pod, -1);
	DL_DELETE(m->set->members, m);
	LL_DELETE2(m->pod->memberships, m, also);
	free(m);
}

static void join(struct pod *p, struct pod_set *set)
{
	struct membership *m = must(calloc(1, sizeof *m));
	m->pod = p;
	m->set = set;
	DL_APPEND(set->members, m);
	LL_PREPEND2(p->memberships, m, also);
	count(set, p, 1);
}

static void leave_all(struct pod *p)
{
	while (p->memberships)
		leave(p->memberships);
}

static void pod_free(struct pod_watch *w, struct pod *p)
{
	leave_all(p);
	HASH_DELETE(hh, w->pods, p);
	free(p);
}

static struct pod *find_pod(struct pod_watch *w, const char *name)
{
	struct pod *p;
	HASH_FIND_STR(w->pods, name, p);
	return p;
}

static struct pod *take_pod(struct pod_watch *w, struct pod *p, const struct pod_facts *f)
{
	if (!p) {
		size_t size = strlen(f->name) + 1;
		p = must(calloc(1, sizeof *p + size));
		memcpy(p->name, f->name, size);
		HASH_ADD_STR(w->pods, name, p);
	}
	leave_all(p); // counted as it was
	p->seen = w->list;
	p->created_ms = f->created_ms;
	p->ready_ms = f->ready_ms;
	p->kind = f->kind;
	p->is_ready = f->is_ready;
	p->is_pending = f->is_pending;
	p->is_failed = f->is_failed;
	p->is_deleted = f->is_deleted;
	p->is_crashing = f->is_crashing;
	return p;
}

// ---- which sets a pod is of ----

static struct pod_term *find_term(const struct pod_watch *w, const char *text)
{
	struct pod_term *term;
	HASH_FIND_STR(w->terms, text, term);
	return term;
}

struct match {
	struct pod_watch *watch;
	const struct label *labels;
	size_t n_labels;
	struct pod *pod; // NULL until a set wants it
	const struct pod_facts *facts;
};

static void try_set(struct match *m, struct pod_set *set, bool *is_taken)
{
	if (!label_selector_matches(set->selector, m->labels, m->n_labels))
		return;
	if (!*is_taken) {
		m->pod = take_pod(m->watch, m->pod, m->facts);
		*is_taken = true;
	}
	join(m->pod, set);
}

static void try_term(struct match *m, const char *text, bool *is_taken)
{
	const struct pod_term *term = find_term(m->watch, text);
	for (struct pod_set *set = term ? term->sets : NULL; set; set = set->next_of_term)
		try_set(m, set, is_taken);
}

static bool find_sets(struct match *m)
{
	bool is_taken = false;
	for (size_t i = 0; i < m->n_labels; i++) {
		char text[TERM_BYTES];
		int len = snprintf(text, sizeof text, "%s=%s", m->labels[i].key, m->labels[i].value);
		if (len > 0 && (size_t)len < sizeof text)
			try_term(m, text, &is_taken);
	}
	try_term(m, "", &is_taken);
	return is_taken;
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct pod_watch *w = arg;
	struct pod_facts facts;
	struct label *labels;
	size_t n_labels;
	if (!pod_decode(json, len, &facts))
		return;
	if (pod_decode_labels(json, len, &labels, &n_labels) < 0)
		abort();
	struct pod *p = find_pod(w, facts.name);
	struct match m = {.watch = w, .labels = labels, .n_labels = n_labels, .pod = p, .facts = &facts};
	if (!find_sets(&m) && p)
		pod_free(w, p); // its labels changed
	free(labels);
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	struct pod_watch *w = arg;
	char namespace_name[TARGET_NAME_BYTES], name[TARGET_NAME_BYTES];
	struct pod *p = object_decode_name(json, len, namespace_name, name) ? find_pod(w, name) : NULL;
	if (p)
		pod_free(w, p);
}

static void on_list(void *arg)
{
	struct pod_watch *w = arg;
	w->list++;
}

static void changed(const struct pod_store *s)
{
	if (s->options.on_change)
		s->options.on_change(s->options.arg);
}

static void on_synced(void *arg)
{
	struct pod_watch *w = arg;
	struct pod *p, *next;
	struct pod_set *set;
	HASH_ITER(hh, w->pods, p, next)
	{
		if (p->seen != w->list)
			pod_free(w, p);
	}
	DL_FOREACH(w->sets, set)
	set->is_listed = true;
	changed(w->store);
}

static void on_error(void *arg, const struct err *error)
{
	struct pod_watch *w = arg;
	const struct pod_store_options *o = &w->store->options;
	char what[TARGET_NAME_BYTES + 64];
	w->is_broken = error != NULL;
	snprintf(what, sizeof what, "pods in namespace %s", w->namespace_name);
	if (o->on_error)
		o->on_error(o->arg, what, error);
	changed(w->store);
}

// ---- watches and sets ----

static void watch_free(struct pod_watch *w)
{
	assert(!w->sets);
	struct pod *p, *next;
	k8s_watch_free(w->watch);
	HASH_ITER(hh, w->pods, p, next)
	{
		pod_free(w, p);
	}
	DL_DELETE(w->store->watches, w);
	w->store->n_watches--;
	free(w);
}

static struct pod_watch *watch_of(struct pod_store *s, const char *namespace_name, struct err *e)
{
	struct pod_watch *w;
	char path[TARGET_NAME_BYTES + 64];
	size_t size = strlen(namespace_name) + 1;
	DL_FOREACH(s->watches, w)
	{
		if (strcmp(w->namespace_name, namespace_name) == 0)
			return w;
	}
	if (s->n_watches >= POD_NAMESPACES_MAX) {
		err_set(e, ERR_LIMIT, "pods are watched in %d namespaces, the ceiling is %d", s->n_watches,
		        POD_NAMESPACES_MAX);
		return NULL;
	}
	w = must(calloc(1, sizeof *w + size));
	memcpy(w->namespace_name, namespace_name, size);
	w->store = s;
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods", namespace_name);
	w->watch = k8s_watch_new(
	        &(struct k8s_watch_options){.client = s->options.client,
	                                    .path = path,
	                                    .callbacks = {on_list, on_object, on_deleted, on_synced, on_error},
	                                    .arg = w},
	        e);
	if (!w->watch) {
		free(w);
		return NULL;
	}
	DL_APPEND(s->watches, w);
	s->n_watches++;
	return w;
}

// The first "key=value" of a selector, which every pod of it has; "" if there is none.
static void read_term(const char *selector, char out[TERM_BYTES])
{
	out[0] = '\0';
	for (const char *p = selector; *p;) {
		bool in_list = false;
		size_t len = 0, equals = 0;
		for (; p[len] && (in_list || p[len] != ','); len++) {
			in_list = p[len] == '(' || (in_list && p[len] != ')');
			equals += p[len] == '=';
		}
		if (equals == 1 && len < TERM_BYTES && !memchr(p, '!', len) && !memchr(p, ' ', len)) {
			memcpy(out, p, len);
			out[len] = '\0';
			return;
		}
		p += len + (p[len] == ',');
	}
}

static void add_to_index(struct pod_set *set, const char *text)
{
	struct pod_term *term = find_term(set->watch, text);
	if (!term) {
		size_t size = strlen(text) + 1;
		term = must(calloc(1, sizeof *term + size));
		memcpy(term->text, text, size);
		HASH_ADD_STR(set->watch->terms, text, term);
	}
	set->term = term;
	LL_PREPEND2(term->sets, set, next_of_term);
}

static void remove_from_index(struct pod_set *set)
{
	struct pod_term *term = set->term;
	LL_DELETE2(term->sets, set, next_of_term);
	if (!term->sets) {
		HASH_DELETE(hh, set->watch->terms, term);
		free(term);
	}
}

struct pod_set *pod_store_want(struct pod_store *s, const char *namespace_name, const char *selector, struct err *e)
{
	char text[TERM_BYTES];
	if (!selector[0]) {
		err_set(e, ERR_INPUT, "an empty selector would match every pod of the namespace");
		return NULL;
	}
	struct label_selector *parsed = label_selector_parse(selector, e);
	struct pod_watch *w = parsed ? watch_of(s, namespace_name, e) : NULL;
	if (!w) {
		label_selector_free(parsed);
		return NULL;
	}
	read_term(selector, text);
	const struct pod_term *term = find_term(w, text);
	struct pod_set *set = term ? term->sets : NULL;
	for (; set; set = set->next_of_term) {
		if (strcmp(set->text, selector) == 0) {
			label_selector_free(parsed);
			set->refs++;
			return set;
		}
	}
	size_t size = strlen(selector) + 1;
	set = must(calloc(1, sizeof *set + size));
	memcpy(set->text, selector, size);
	set->watch = w;
	set->selector = parsed;
	set->refs = 1;
	DL_APPEND(w->sets, set);
	add_to_index(set, text);
	if (w->list > 0)
		k8s_watch_relist(w->watch); // its pods were not kept
	return set;
}

void pod_set_unwant(struct pod_set *set)
{
	if (!set || --set->refs > 0)
		return;
	struct pod_watch *w = set->watch;
	while (set->members) {
		struct pod *p = set->members->pod;
		leave(set->members);
		if (!p->memberships)
			pod_free(w, p);
	}
	remove_from_index(set);
	DL_DELETE(w->sets, set);
	label_selector_free(set->selector);
	free(set);
	if (!w->sets)
		watch_free(w);
}

enum pod_set_state pod_set_state(const struct pod_set *set)
{
	if (set->watch->is_broken)
		return POD_SET_BROKEN;
	return set->is_listed ? POD_SET_KNOWN : POD_SET_UNSYNCED;
}

void pod_set_get_counts(const struct pod_set *set, struct pod_set_counts *ret_counts)
{
	*ret_counts = set->counts;
}

void pod_set_each(const struct pod_set *set, void (*fn)(void *arg, const struct pod_view *pod), void *arg)
{
	const struct membership *m;
	DL_FOREACH(set->members, m)
	{
		const struct pod_view v = {m->pod->name, m->pod->kind, m->pod->is_crashing, m->pod->created_ms,
		                           m->pod->ready_ms};
		fn(arg, &v);
	}
}

struct pod_store *pod_store_new(const struct pod_store_options *options, struct err *e)
{
	struct pod_store *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	s->options = *options;
	return s;
}

void pod_store_free(struct pod_store *s)
{
	assert(!s || !s->watches);
	free(s);
}

void pod_store_get_stats(const struct pod_store *s, struct pod_store_stats *ret_stats)
{
	const struct pod_watch *w;
	*ret_stats = (struct pod_store_stats){0};
	DL_FOREACH(s->watches, w)
	{
		struct k8s_watch_stats one;
		const struct pod_set *set;
		int sets = 0;
		DL_COUNT(w->sets, set, sets);
		k8s_watch_get_stats(w->watch, &one);
		ret_stats->watches++;
		ret_stats->sets += (size_t)sets;
		ret_stats->pods += HASH_COUNT(w->pods);
		ret_stats->lists += one.lists;
		ret_stats->streams += one.streams;
		ret_stats->events += one.events;
	}
}
