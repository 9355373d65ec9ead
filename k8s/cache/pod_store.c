// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/pod_store.h"

#include <utlist.h>

#include "base/base.h"
#include "base/hash_table.h"
#include "k8s/cache/informer.h"
#include "k8s/cache/pod_decode.h"
#include "k8s/client/label_selector.h"

#define TERM_BYTES 400 // "key=value" of a label

// A pod belongs to a set; usually to one.
struct membership {
	struct membership *prev, *next; // memberships of the set
	struct membership *also;        // the pod's next membership
	struct pod *pod;
	struct pod_set *set;
	struct group_member member;
};

struct pod {
	struct informer_item item; // first; informer_keep() allocates it
	struct membership *memberships;
	struct pod_facts facts;
	const char *name; // in the key
};

struct pod_set {
	struct pod_set *prev, *next; // sets of the namespace
	struct pod_set *next_of_term;
	struct pod_namespace *space;
	struct pod_term *term;
	struct label_selector *selector;
	const struct workload_kind *workload;
	bool is_wide; // `text` and `selector` match more pods than the leaders, which were requested
	struct membership *members;
	int refs;
	uint32_t after; // number of the latest list requested when the set was created; only a later list contains its
	                // pods
	struct pod_set_counts counts;
	char text[];
};

// The sets whose pods all have a certain label, "key=value", so that a pod is matched only against sets with one of its
// labels. "" has the sets that do not require a label.
struct pod_term {
	UT_hash_handle hh;
	struct pod_set *sets;
	size_t n_sets;
	char text[];
};

// A namespace in which sets are wanted.
struct pod_namespace {
	UT_hash_handle hh;
	struct pod_store *store;
	struct informer_item watched; // all pods of the namespace
	struct pod_set *sets;
	struct pod_term *terms; // hash
	char namespace_name[];
};

struct pod_store {
	struct pod_store_options options;
	struct informer *informer;
	struct pod_namespace *spaces; // hash
};

// ---- pods ----

static void count(struct pod_set *set, const struct pod *p, int32_t by)
{
	struct pod_counts *c = &set->counts.counts;
	c->total += by;
	c->ready += p->facts.is_ready ? by : 0;
	c->pending += p->facts.is_pending ? by : 0;
	c->failed += p->facts.is_failed ? by : 0;
	c->terminating += p->facts.is_deleted ? by : 0;
	set->counts.crashing += p->facts.is_crashing ? by : 0;
}

static void leave(struct membership *m)
{
	count(m->set, m->pod, -1);
	DL_DELETE(m->set->members, m);
	LL_DELETE2(m->pod->memberships, m, also);
	free(m);
}

static void join(struct pod *p, struct pod_set *set, struct group_member member)
{
	struct membership *m = must_alloc(calloc(1, sizeof *m));
	m->pod = p;
	m->set = set;
	m->member = member;
	m->member.is_leader |= !set->is_wide;
	DL_APPEND(set->members, m);
	LL_PREPEND2(p->memberships, m, also);
	count(set, p, 1);
}

static void leave_all(struct pod *p)
{
	while (p->memberships)
		leave(p->memberships);
}

static void pod_free(struct pod *p)
{
	leave_all(p);
	informer_remove(&p->item);
	free(p);
}

// ---- the sets of a pod ----

static struct pod_term *find_term(const struct pod_namespace *space, const char *text)
{
	struct pod_term *term;
	HASH_FIND_STR(space->terms, text, term);
	return term;
}

struct match {
	struct pod_namespace *space;
	struct label *labels;
	size_t n_labels;
	struct pod *pod; // NULL until a set wants it
	const char *name;
	struct pod_facts facts;
	struct json_span json;
};

static void update_pod(struct match *m)
{
	if (!m->pod) {
		struct pod_namespace *space = m->space;
		m->pod = informer_keep(space->store->informer, sizeof *m->pod, space->namespace_name, m->name);
		m->pod->name = strchr(m->pod->item.hh.key, '/') + 1;
	}
	leave_all(m->pod); // before the facts change: the counts subtract the old ones
	m->pod->facts = m->facts;
}

static void try_set(struct match *m, struct pod_set *set, bool *is_updated)
{
	if (!label_selector_matches(set->selector, m->labels, m->n_labels))
		return;
	if (!*is_updated)
		update_pod(m);
	*is_updated = true;
	struct group_member member = {0};
	if (set->workload->group_label)
		member = pod_decode_member(set->workload, m->json.text, m->json.len, m->labels, m->n_labels);
	join(m->pod, set, member);
}

static void try_term(struct match *m, const char *text, bool *is_updated)
{
	const struct pod_term *term = find_term(m->space, text);
	for (struct pod_set *set = term ? term->sets : NULL; set; set = set->next_of_term)
		try_set(m, set, is_updated);
}

static bool find_sets(struct match *m)
{
	bool is_updated = false;
	for (size_t i = 0; i < m->n_labels; i++) {
		char text[TERM_BYTES];
		int len = snprintf(text, sizeof text, "%s=%s", m->labels[i].key, m->labels[i].value);
		if (len > 0 && (size_t)len < sizeof text)
			try_term(m, text, &is_updated);
	}
	try_term(m, "", &is_updated);
	return is_updated;
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	const struct pod_store *s = arg;
	struct match m = {.pod = (struct pod *)item, .name = name, .json = {json, len}};
	size_t bytes;
	HASH_FIND_STR(s->spaces, namespace_name, m.space);
	if (!m.space || !pod_decode(json, len, &m.facts))
		return;
	if (pod_decode_labels(json, len, &m.labels, &m.n_labels, &bytes) < 0)
		abort(); // base/alloc.h
	if (!find_sets(&m) && item)
		pod_free(m.pod); // its labels changed
	free(m.labels);
}

static void on_absent(void *arg, struct informer_item *item)
{
	pod_free((struct pod *)item);
}

static void on_change(void *arg)
{
	const struct pod_store *s = arg;
	if (s->options.on_change)
		s->options.on_change(s->options.arg);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	const struct pod_store *s = arg;
	if (s->options.on_error)
		s->options.on_error(s->options.arg, what, error);
}

// ---- namespaces and sets ----

static void space_free(struct pod_namespace *space)
{
	assert(!space->sets);
	HASH_DELETE(hh, space->store->spaces, space);
	informer_remove(&space->watched);
	free(space);
}

static struct informer_state watch_of(const struct pod_namespace *space)
{
	return informer_get_state(space->store->informer, &space->watched);
}

static struct pod_namespace *space_of(struct pod_store *s, const char *namespace_name, struct err *e)
{
	char key[INFORMER_KEY_BYTES];
	struct pod_namespace *space = hash_table_get(&s->spaces, namespace_name, strlen(namespace_name),
	                                             offsetof(struct pod_namespace, namespace_name));
	if (space->store)
		return space;
	space->store = s;
	snprintf(key, sizeof key, "%s/", namespace_name);
	if (informer_put(s->informer, &space->watched, key, NULL, e) == 0)
		return space;
	space_free(space);
	return NULL;
}

// Reads the next "key=value" of a selector, a label that all its pods have, and moves *at behind it. Returns false when
// there is none.
static bool read_term(const char **at, char out[TERM_BYTES])
{
	for (const char *p = *at; *p; p = *at) {
		bool in_list = false;
		size_t len = 0, equals = 0;
		for (; p[len] && (in_list || p[len] != ','); len++) {
			in_list = p[len] == '(' || (in_list && p[len] != ')');
			equals += p[len] == '=';
		}
		*at = p + len + (p[len] == ',');
		if (equals == 1 && len < TERM_BYTES && !memchr(p, '!', len) && !memchr(p, ' ', len)) {
			memcpy(out, p, len);
			out[len] = '\0';
			return true;
		}
	}
	return false;
}

struct wanted_set {
	char selector[SCALE_SELECTOR_BYTES_MAX];
	const struct workload_kind *workload;
	bool is_wide;
};

static struct pod_set *find_in_term(const struct pod_term *term, const struct wanted_set *wanted)
{
	struct pod_set *set = term ? term->sets : NULL;
	while (set && (strcmp(set->text, wanted->selector) != 0 || set->workload != wanted->workload ||
	               set->is_wide != wanted->is_wide))
		set = set->next_of_term;
	return set;
}

// Finds the set of a selector under any of its terms. Returns NULL when there is none: then `ret_text` is the term with
// the fewest sets, *ret_n.
static struct pod_set *find_set(const struct pod_namespace *space, const struct wanted_set *wanted,
                                char ret_text[TERM_BYTES], size_t *ret_n)
{
	const char *at = wanted->selector;
	char text[TERM_BYTES];
	const struct pod_term *term = find_term(space, "");
	struct pod_set *set = find_in_term(term, wanted);
	bool has_term = false;
	ret_text[0] = '\0';
	*ret_n = term ? term->n_sets : 0;
	while (!set && read_term(&at, text)) {
		term = find_term(space, text);
		set = find_in_term(term, wanted);
		size_t n = term ? term->n_sets : 0;
		if (has_term && n >= *ret_n)
			continue;
		memcpy(ret_text, text, sizeof text);
		*ret_n = n;
		has_term = true;
	}
	return set;
}

static void add_to_index(struct pod_set *set, const char *text)
{
	struct pod_term *term = hash_table_get(&set->space->terms, text, strlen(text), offsetof(struct pod_term, text));
	set->term = term;
	LL_PREPEND2(term->sets, set, next_of_term);
	term->n_sets++;
}

static void remove_from_index(struct pod_set *set)
{
	struct pod_term *term = set->term;
	LL_DELETE2(term->sets, set, next_of_term);
	term->n_sets--;
	if (!term->sets) {
		HASH_DELETE(hh, set->space->terms, term);
		free(term);
	}
}

struct pod_set *pod_store_acquire(struct pod_store *s, const char *namespace_name, const char *selector,
                                  const struct workload_kind *workload, struct err *e)
{
	char text[TERM_BYTES];
	struct wanted_set wanted = {.workload = workload};
	if (!selector[0] || strlen(selector) >= sizeof wanted.selector) {
		err_set(e, ERR_INPUT, "expected a selector of 1 to %d bytes: an empty one would match every pod",
		        SCALE_SELECTOR_BYTES_MAX - 1);
		return NULL;
	}
	wanted.is_wide = workload_kind_widen(workload, selector, wanted.selector);
	struct label_selector *parsed = label_selector_parse(wanted.selector, e);
	struct pod_namespace *space = parsed ? space_of(s, namespace_name, e) : NULL;
	if (!space) {
		label_selector_free(parsed);
		return NULL;
	}
	size_t n_sets;
	struct pod_set *set = find_set(space, &wanted, text, &n_sets);
	if (set) {
		label_selector_free(parsed);
		set->refs++;
		return set;
	}
	if (n_sets >= POD_TERM_SETS_MAX) {
		label_selector_free(parsed);
		err_set(e, ERR_LIMIT, "more than %d selectors of namespace %s require the same labels, or none",
		        POD_TERM_SETS_MAX, namespace_name);
		return NULL;
	}
	size_t size = strlen(wanted.selector) + 1;
	set = must_alloc(calloc(1, sizeof *set + size));
	memcpy(set->text, wanted.selector, size);
	set->workload = workload;
	set->is_wide = wanted.is_wide;
	set->space = space;
	set->selector = parsed;
	set->refs = 1;
	DL_APPEND(space->sets, set);
	add_to_index(set, text);
	(void)informer_refetch(&space->watched, 0); // the store did not keep its pods
	set->after = watch_of(space).requested_list;
	return set;
}

void pod_set_release(struct pod_set *set)
{
	if (!set || --set->refs > 0)
		return;
	struct pod_namespace *space = set->space;
	while (set->members) {
		struct pod *p = set->members->pod;
		leave(set->members);
		if (!p->memberships)
			pod_free(p);
	}
	remove_from_index(set);
	DL_DELETE(space->sets, set);
	label_selector_free(set->selector);
	free(set);
	if (!space->sets)
		space_free(space);
}

enum pod_set_state pod_set_state(const struct pod_set *set)
{
	const struct informer_state watch = watch_of(set->space);
	if (watch.broken > 0)
		return POD_SET_BROKEN;
	return watch.synced_list > set->after ? POD_SET_KNOWN : POD_SET_UNSYNCED;
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
		const struct pod_facts *f = &m->pod->facts;
		const struct pod_view v = {m->pod->name,  f->kind,     f->is_crashing,
		                           f->created_ms, f->ready_ms, m->member};
		fn(arg, &v);
	}
}

struct pod_store *pod_store_new(const struct pod_store_options *options, struct err *e)
{
	struct pod_store *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->options = *options;
	s->informer =
	        informer_new(&(struct informer_options){.client = options->client,
	                                                .group_path = "/api/v1",
	                                                .plural = "pods",
	                                                .own_watches = POD_NAMESPACES_MAX,
	                                                .callbacks = {on_object, on_absent, NULL, on_change, on_error},
	                                                .arg = s},
	                     e);
	if (s->informer)
		return s;
	free(s);
	return NULL;
}

void pod_store_free(struct pod_store *s)
{
	if (!s)
		return;
	assert(!s->spaces);
	informer_free(s->informer);
	free(s);
}

struct informer_state pod_store_get_state(const struct pod_store *s)
{
	return informer_get_state(s->informer, NULL);
}
