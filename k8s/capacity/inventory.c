// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/inventory.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/json/json_span.h"
#include "base/timer.h"
#include "k8s/cache/informer.h"
#include "k8s/cache/watch.h"
#include "k8s/capacity/capacity.h"
#include "k8s/client/k8s_client.h"

#define DRA_PATH        "/apis/resource.k8s.io/v1"
#define TAINT_RULE_PATH "/apis/resource.k8s.io/v1beta2"

enum probe_state { PROBE_UNKNOWN, PROBE_ABSENT, PROBE_PRESENT };

// An API of dynamic resource allocation that a cluster may lack, and the kinds that are watched where it is served.
static const struct {
	const char *path, *plural; // the reply lists the resource; NULL: any
	enum capacity_kind first, end;
} probes[] = {{DRA_PATH, NULL, CAPACITY_SLICE, CAPACITY_TAINT_RULE},
              {TAINT_RULE_PATH, "devicetaintrules", CAPACITY_TAINT_RULE, CAPACITY_KIND__COUNT}};
#define PROBES (sizeof probes / sizeof probes[0])

// The watch of one kind.
struct kind_watch {
	struct inventory *inventory;
	enum capacity_kind kind;
	struct informer *informer;
	struct informer_item all; // all objects
	struct err error;         // kind ERR_NONE: it works
};

struct inventory {
	struct inventory_options options;
	struct capacity *capacity;
	struct kind_watch of[CAPACITY_KIND__COUNT];
	struct group_probe {
		struct inventory *inventory;
		enum probe_state state;
		struct k8s_call *asking; // NULL: no request is in flight
		struct err error;        // error of the last request
		struct event timer;
	} probes[PROBES];
};

// An object. The account keeps the state of nodes, slices and classes by name.
struct record {
	struct informer_item item; // first; informer_keep() allocates it
	union {
		struct capacity_pod pod;
		struct capacity_claim claim;
	} of;
};

static void record_free(struct inventory *i, enum capacity_kind kind, struct record *r)
{
	if (kind == CAPACITY_POD)
		capacity_remove_pod(i->capacity, &r->of.pod);
	else if (kind == CAPACITY_CLAIM)
		capacity_remove_claim(i->capacity, &r->of.claim);
	else
		capacity_remove_object(i->capacity, kind, strchr(r->item.hh.key, '/') + 1);
	informer_remove(&r->item);
	free(r);
}

static void take_pod(struct kind_watch *w, struct record *r, const char *namespace_name, const char *name,
                     const char *json, size_t len)
{
	struct inventory *i = w->inventory;
	struct capacity_pod pod = {0};
	if (!namespace_name[0])
		return;
	bool counts = capacity_set_pod(i->capacity, r ? &r->of.pod : &pod, namespace_name, name, json, len,
	                               clock_wall_ms(i->options.client->options.clock));
	if (!counts && r)
		record_free(i, w->kind, r);
	if (!counts || r)
		return;
	r = informer_keep(w->informer, sizeof *r, namespace_name, name);
	r->of.pod = pod;
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct kind_watch *w = arg;
	struct record *r = (struct record *)item;
	if (w->kind == CAPACITY_POD) {
		take_pod(w, r, namespace_name, name, json, len);
		return;
	}
	if (w->kind == CAPACITY_CLAIM && !namespace_name[0])
		return;
	r = r ? r : informer_keep(w->informer, sizeof *r, namespace_name, name);
	if (w->kind == CAPACITY_CLAIM)
		capacity_set_claim(w->inventory->capacity, &r->of.claim, json, len);
	else
		capacity_set_object(w->inventory->capacity, w->kind, name, json, len);
}

static void on_absent(void *arg, struct informer_item *item)
{
	const struct kind_watch *w = arg;
	record_free(w->inventory, w->kind, (struct record *)item);
}

static void on_change(void *arg)
{
	const struct inventory *i = ((const struct kind_watch *)arg)->inventory;
	if (i->options.on_change)
		i->options.on_change(i->options.arg);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct kind_watch *w = arg;
	// The account leaves out an object that is too large; all others count.
	w->error = error && error->code != K8S_WATCH_LEFT_OUT ? *error : (struct err){0};
}

static int open_watch(struct inventory *i, enum capacity_kind kind, struct err *e)
{
	static const struct {
		const char *group_path, *plural;
		bool is_cluster_scoped;
	} kinds[] = {[CAPACITY_NODE] = {"/api/v1", "nodes", true},
	             [CAPACITY_POD] = {"/api/v1", "pods", false},
	             [CAPACITY_SLICE] = {DRA_PATH, "resourceslices", true},
	             [CAPACITY_CLASS] = {DRA_PATH, "deviceclasses", true},
	             [CAPACITY_CLAIM] = {DRA_PATH, "resourceclaims", false},
	             [CAPACITY_TAINT_RULE] = {TAINT_RULE_PATH, "devicetaintrules", true}};
	_Static_assert(sizeof kinds / sizeof kinds[0] == CAPACITY_KIND__COUNT, "a row for each");
	struct kind_watch *w = &i->of[kind];
	w->inventory = i;
	w->kind = kind;
	w->informer =
	        informer_new(&(struct informer_options){.client = i->options.client,
	                                                .group_path = kinds[kind].group_path,
	                                                .plural = kinds[kind].plural,
	                                                .is_cluster_scoped = kinds[kind].is_cluster_scoped,
	                                                .callbacks = {on_object, on_absent, NULL, on_change, on_error},
	                                                .arg = w},
	                     e);
	return w->informer ? informer_put(w->informer, &w->all, "/", NULL, e) : -1;
}

// ---- dynamic resource allocation ----

static void on_asked(void *arg, const struct http_response *response, const struct err *error)
{
	struct group_probe *p = arg;
	struct inventory *i = p->inventory;
	size_t at = (size_t)(p - i->probes);
	struct err e = {0};
	struct json_span list = {response ? response->body : NULL, response ? response->body_len : 0};
	p->asking = NULL;
	if (error && error->kind == ERR_CANCELED)
		return;
	p->error = (struct err){0};
	if (response &&
	    (!probes[at].plural || json_span_find(json_span_get(list, "resources"), "name", probes[at].plural).text)) {
		p->state = PROBE_PRESENT;
		for (int kind = (int)probes[at].first; kind < (int)probes[at].end; kind++) {
			if (open_watch(i, (enum capacity_kind)kind, &e) < 0)
				abort(); // base/alloc.h
		}
	} else if (response || (error->kind == ERR_NOT_FOUND && error->code == 404)) {
		p->state = PROBE_ABSENT;
		timer_start(&p->timer, INVENTORY_DRA_ASK_MS);
	} else {
		p->error = *error;
		timer_start(&p->timer, INVENTORY_DRA_RETRY_MS);
	}
	if (i->options.on_change)
		i->options.on_change(i->options.arg);
}

static void ask(struct group_probe *p)
{
	const struct k8s_request_options o = {
	        .method = "GET", .path = probes[p - p->inventory->probes].path, .done = on_asked, .arg = p};
	if (k8s_request_with(p->inventory->options.client, &o, &p->asking, &p->error) == 0)
		return;
	p->asking = NULL;
	timer_start(&p->timer, INVENTORY_DRA_RETRY_MS);
}

static void on_ask_timer(evutil_socket_t fd, short what, void *arg)
{
	struct group_probe *p = arg;
	if (p->state != PROBE_PRESENT && !p->asking)
		ask(p);
}

// ---- start and stop ----

struct inventory *inventory_new(const struct inventory_options *options, struct err *e)
{
	struct inventory *i = err_calloc(sizeof *i, e);
	if (!i)
		return NULL;
	i->options = *options;
	for (size_t at = 0; at < PROBES; at++) {
		i->probes[at].inventory = i;
		evtimer_assign(&i->probes[at].timer, options->client->options.loop, on_ask_timer, &i->probes[at]);
	}
	bool is_complete = (i->capacity = capacity_new(e)) != NULL;
	for (int kind = 0; is_complete && kind < CAPACITY_SLICE; kind++)
		is_complete = open_watch(i, (enum capacity_kind)kind, e) == 0;
	if (!is_complete) {
		inventory_free(i);
		return NULL;
	}
	for (size_t at = 0; at < PROBES; at++)
		ask(&i->probes[at]);
	return i;
}

void inventory_free(struct inventory *i)
{
	if (!i)
		return;
	for (size_t at = 0; at < PROBES; at++) {
		if (i->probes[at].asking)
			k8s_call_cancel(i->probes[at].asking);
		event_del(&i->probes[at].timer);
	}
	for (int kind = 0; kind < CAPACITY_KIND__COUNT; kind++) {
		informer_remove(&i->of[kind].all);
		informer_free(i->of[kind].informer);
	}
	capacity_free(i->capacity);
	free(i);
}

enum inventory_state inventory_get_state(const struct inventory *i, struct err *ret_error)
{
	bool is_synced = true;
	const struct err *error = NULL;
	for (size_t at = 0; at < PROBES; at++) {
		const struct group_probe *p = &i->probes[at];
		is_synced = is_synced && p->state != PROBE_UNKNOWN;
		error = p->error.kind != ERR_NONE ? &p->error : error;
	}
	for (int kind = 0; kind < CAPACITY_KIND__COUNT; kind++) {
		const struct kind_watch *w = &i->of[kind];
		is_synced = is_synced && (!w->informer || informer_get_state(w->informer, &w->all).unsynced == 0);
		error = w->error.kind != ERR_NONE ? &w->error : error;
	}
	if (error && ret_error)
		*ret_error = *error;
	return error ? INVENTORY_BROKEN : is_synced ? INVENTORY_KNOWN : INVENTORY_UNSYNCED;
}

struct capacity *inventory_capacity(const struct inventory *i)
{
	return i->capacity;
}

const struct capacity_pod *inventory_find_pod(const struct inventory *i, const char *namespace_name, const char *name)
{
	const struct record *r =
	        (const struct record *)informer_get(i->of[CAPACITY_POD].informer, namespace_name, name);
	return r ? &r->of.pod : NULL;
}

struct inventory_stats inventory_get_stats(const struct inventory *i)
{
	struct inventory_stats stats = {.nodes = informer_get_state(i->of[CAPACITY_NODE].informer, NULL).items,
	                                .pods = informer_get_state(i->of[CAPACITY_POD].informer, NULL).items};
	for (int kind = 0; kind < CAPACITY_KIND__COUNT; kind++)
		informer_add_state(i->of[kind].informer, &stats.sum);
	return stats;
}
