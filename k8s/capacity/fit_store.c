// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/fit_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/must.h"
#include "base/timer.h"
#include "k8s/cache/target_store.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/inventory.h"
#include "k8s/capacity/shape_fetch.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/scale.h"

struct fit_target {
	struct fit_store *store;
	struct fit_target *prev, *next;                 // of all targets
	struct fit_target *prev_asking, *next_asking;   // of those with a question that waits
	struct fit_target *prev_ordered, *next_ordered; // of those with replicas that do not exist as pods yet
	bool is_ordering;
	char *api_version, *kind, *namespace_name, *name;
	struct target_shape shape;          // the last one fetched
	int64_t of_target, fetched_mono_ms; // the generation that it was fetched for, and when
	struct shape_fetch *fetching;
	void (*done)(void *arg); // of a question that waits; NULL: none
	void *arg;
	// status: -1: it was never asked how much fits; writing: a write in flight, or one whose answer was lost; -1:
	// none
	int32_t spec, status, writing;
	int64_t in_flight; // as counted last
	// The last result, and what it was computed from.
	bool has_result;
	uint64_t of_generation, of_orders;
	struct err error;
	int32_t fit, unschedulable, gated; // gated: those of the unschedulable ones that wait for a scheduling gate
	int64_t *since_ms;
	size_t n_since, room;
	char detail[CAPACITY_MESSAGE_BYTES];
};

struct fit_store {
	struct fit_store_options options;
	struct inventory *inventory; // NULL: nothing is wanted yet
	struct fit_target *targets, *ordered, *asking;
	uint64_t orders_generation;
	struct event *sync_timer;
	bool is_late, is_stopped; // late: questions wait for the inventory no longer
	bool is_broken;           // reported
};

// ---- the inventory ----

// Returns whether questions have to wait.
static bool must_wait(const struct fit_store *s)
{
	return !s->is_late && !s->is_stopped && inventory_get_state(s->inventory, NULL) == INVENTORY_UNSYNCED;
}

static void answer(struct fit_target *t)
{
	void (*done)(void *arg) = t->done;
	t->done = NULL;
	DL_DELETE2(t->store->asking, t, prev_asking, next_asking);
	done(t->arg);
}

// Answers all questions that wait for the inventory only; a callback may ask again.
static void wake(struct fit_store *s)
{
	struct fit_target *fetching = NULL, *t;
	while ((t = s->asking)) {
		if (!t->fetching) {
			answer(t);
			continue;
		}
		DL_DELETE2(s->asking, t, prev_asking, next_asking);
		DL_APPEND2(fetching, t, prev_asking, next_asking);
	}
	s->asking = fetching;
}

static void report(struct fit_store *s)
{
	struct err e = {0};
	bool is_broken = inventory_get_state(s->inventory, &e) == INVENTORY_BROKEN;
	if (is_broken != s->is_broken && s->options.on_error)
		s->options.on_error(s->options.arg, is_broken ? &e : NULL);
	s->is_broken = is_broken;
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	struct fit_store *s = arg;
	s->is_late = true;
	wake(s);
}

static void on_inventory(void *arg)
{
	struct fit_store *s = arg;
	if (!s->inventory || s->is_stopped)
		return;
	report(s);
	// Not from here: the callback of a question may remove watches, and this is called by one.
	if (!must_wait(s))
		timer_start(s->sync_timer, 0);
}

static int open_inventory(struct fit_store *s, struct err *e)
{
	const struct inventory_options o = {.client = s->options.client, .on_change = on_inventory, .arg = s};
	if (s->inventory)
		return 0;
	s->inventory = inventory_new(&o, e);
	if (s->inventory)
		timer_start(s->sync_timer, FIT_SYNC_WAIT_MS);
	return s->inventory ? 0 : -1;
}

struct fit_store *fit_store_new(const struct fit_store_options *options, struct err *e)
{
	struct fit_store *s = calloc(1, sizeof *s);
	if (s)
		s->options = *options;
	if (s && (s->sync_timer = evtimer_new(k8s_client_loop(options->client), on_late, s)))
		return s;
	free(s);
	err_set(e, ERR_INTERNAL, "out of memory");
	return NULL;
}

void fit_store_stop(struct fit_store *s)
{
	struct fit_target *t;
	s->is_stopped = true;
	event_del(s->sync_timer);
	DL_FOREACH(s->targets, t)
	{
		if (t->fetching)
			shape_fetch_abandon(t->fetching);
		t->fetching = NULL;
	}
	wake(s);
	inventory_free(s->inventory);
	s->inventory = NULL;
}

void fit_store_free(struct fit_store *s)
{
	if (!s)
		return;
	while (s->targets)
		fit_target_unwant(s->targets);
	event_free(s->sync_timer);
	free(s);
}

// ---- targets ----

struct fit_target *fit_store_want(struct fit_store *s, const struct scale_ref *ref, struct err *e)
{
	if (s->is_stopped) {
		err_set(e, ERR_CANCELED, "the connections are being closed");
		return NULL;
	}
	if (open_inventory(s, e) < 0)
		return NULL;
	struct fit_target *t = must_alloc(calloc(1, sizeof *t));
	t->store = s;
	t->status = t->writing = -1;
	t->api_version = must_alloc(strdup(ref->api_version));
	t->kind = must_alloc(strdup(ref->kind));
	t->namespace_name = must_alloc(strdup(ref->namespace_name));
	t->name = must_alloc(strdup(ref->name));
	DL_APPEND(s->targets, t);
	return t;
}

static void stop_ordering(struct fit_target *t)
{
	if (!t->is_ordering)
		return;
	DL_DELETE2(t->store->ordered, t, prev_ordered, next_ordered);
	t->is_ordering = false;
	t->in_flight = 0;
	t->store->orders_generation++;
}

void fit_target_unwant(struct fit_target *t)
{
	if (!t)
		return;
	stop_ordering(t);
	if (t->fetching)
		shape_fetch_abandon(t->fetching);
	DL_DELETE(t->store->targets, t);
	target_shape_done(&t->shape);
	free(t->since_ms);
	free(t->api_version);
	free(t->kind);
	free(t->namespace_name);
	free(t->name);
	free(t);
}

static struct scale_ref ref_of(const struct fit_target *t)
{
	return (struct scale_ref){t->api_version, t->kind, t->namespace_name, t->name};
}

// ---- what a replica needs ----

static void on_fetched(void *arg, const struct target_shape *shape)
{
	struct fit_target *t = arg;
	t->fetching = NULL;
	target_shape_done(&t->shape);
	t->shape = *shape;
	t->has_result = false;
	if (t->is_ordering)
		t->store->orders_generation++;
	if (!must_wait(t->store))
		answer(t);
}

static bool must_fetch(const struct fit_target *t, int64_t generation, int64_t mono_ms)
{
	bool is_recent = t->fetched_mono_ms > 0 && mono_ms - t->fetched_mono_ms < FIT_RETRY_MS;
	if (t->shape.error.kind != ERR_NONE || !t->shape.has_shape)
		return !is_recent || generation != t->of_target;
	return generation < 0 || generation != t->of_target;
}

void fit_target_prepare(struct fit_target *t, int64_t generation, void (*done)(void *arg), void *arg)
{
	struct fit_store *s = t->store;
	struct scale_ref ref = ref_of(t);
	int64_t mono_ms = clock_mono_ms(k8s_client_clock(s->options.client));
	t->done = done;
	t->arg = arg;
	DL_APPEND2(s->asking, t, prev_asking, next_asking);
	if (!s->is_stopped && must_fetch(t, generation, mono_ms)) {
		t->of_target = generation;
		t->fetched_mono_ms = mono_ms;
		t->fetching =
		        shape_fetch_start(s->options.client, &ref, capacity_names(inventory_capacity(s->inventory)),
		                          on_fetched, t, &t->shape.error);
	}
	if (!t->fetching && (s->is_stopped || !must_wait(s)))
		answer(t);
}

// ---- orders ----

// Replicas that are requested and do not exist as pods.
static int64_t count_in_flight(const struct fit_target *t)
{
	struct target_store *targets = t->store->options.targets;
	struct target_view view = {.state = TARGET_UNWATCHED};
	struct scale_ref ref = ref_of(t);
	int32_t spec = t->spec, status = t->status;
	if (targets)
		target_store_get(targets, &ref, &view);
	if (view.state == TARGET_FOUND) {
		spec = view.spec_replicas;
		status = view.status_replicas;
	}
	if (status < 0)
		return 0; // it is unknown which replicas exist
	int64_t n = (int64_t)(t->writing > spec ? t->writing : spec) - status;
	return n > 0 ? n : 0;
}

static void update_order(struct fit_target *t)
{
	int64_t n = count_in_flight(t);
	if (n == 0) {
		stop_ordering(t);
		return;
	}
	if (!t->is_ordering)
		DL_APPEND2(t->store->ordered, t, prev_ordered, next_ordered);
	t->store->orders_generation += !t->is_ordering || n != t->in_flight;
	t->is_ordering = true;
	t->in_flight = n;
}

static void update_orders(struct fit_store *s)
{
	struct fit_target *t, *next;
	for (t = s->ordered; t; t = next) {
		next = t->next_ordered;
		update_order(t);
	}
}

void fit_target_ordered(struct fit_target *t, int32_t replicas)
{
	t->writing = replicas;
	update_order(t);
}

void fit_target_scaled(struct fit_target *t, int32_t replicas)
{
	t->writing = -1;
	t->spec = replicas;
	update_order(t);
}

// ---- the fit ----

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

// A ReplicaSet removes pods without a node first. Other kinds choose by other rules, so none of theirs is listed.
static bool removes_unscheduled_first(const struct fit_target *t)
{
	return strcmp(t->api_version, "apps/v1") == 0 &&
	       (strcmp(t->kind, "Deployment") == 0 || strcmp(t->kind, "ReplicaSet") == 0);
}

static void find_unschedulable(struct fit_target *t, const struct capacity *c)
{
	const struct capacity_waiting *w;
	t->unschedulable = t->gated = 0;
	t->n_since = 0;
	for (w = capacity_first_waiting(c); w && t->shape.selector; w = w->next) {
		if (!(w->is_unschedulable || w->is_gated) || strcmp(w->namespace_name, t->namespace_name) != 0 ||
		    !label_selector_matches(t->shape.selector, w->labels, w->n_labels))
			continue;
		if (t->n_since == t->room) {
			t->room = t->room ? 2 * t->room : 8;
			t->since_ms = must_alloc(realloc(t->since_ms, t->room * sizeof *t->since_ms));
		}
		t->gated += w->is_gated;
		if (t->unschedulable++ == 0 || (w->is_gated && t->gated == 1))
			memcpy(t->detail, w->message, sizeof t->detail);
		t->since_ms[t->n_since++] = w->since_ms > 0 ? w->since_ms : INT64_MAX; // never overdue
	}
	// A ReplicaSet may remove a gated pod in place of an overdue one, so none is overdue beside it.
	for (size_t i = 0; i < t->n_since && t->gated > 0; i++)
		t->since_ms[i] = INT64_MAX;
	if (t->n_since > 1)
		qsort(t->since_ms, t->n_since, sizeof *t->since_ms, by_time);
	if (!removes_unscheduled_first(t))
		t->n_since = 0;
}

static void compute(struct fit_target *t, struct capacity *c)
{
	struct capacity_order orders[FIT_ORDERS_MAX];
	struct fit_result fit;
	struct fit_target *o;
	size_t n = 0;
	DL_FOREACH2(t->store->ordered, o, next_ordered)
	{
		if (n < FIT_ORDERS_MAX && o->shape.has_shape && o->shape.error.kind == ERR_NONE)
			orders[n++] = (struct capacity_order){&o->shape.shape, o->in_flight};
	}
	t->detail[0] = '\0';
	find_unschedulable(t, c);
	t->error = (struct err){0};
	if (capacity_fit_beside(c, &t->shape.shape, orders, n, &fit, &t->error) < 0)
		return;
	t->fit = t->gated > 0 ? 0 : (int32_t)fit.replicas; // the next replica would be gated as well
	if (!t->detail[0]) {
		char why[FIT_WHY_BYTES];
		fit_explain(c, &fit, why);
		snprintf(t->detail, sizeof t->detail, "%s", why);
	}
}

// Returns 0 when the fit is up to date; else *e.
static int update(struct fit_target *t, struct err *e)
{
	struct fit_store *s = t->store;
	if (!s->inventory)
		return err_set(e, ERR_CANCELED, "the connections are being closed");
	enum inventory_state state = inventory_get_state(s->inventory, e);
	if (state == INVENTORY_BROKEN)
		return -1;
	if (state == INVENTORY_UNSYNCED)
		return err_set(e, ERR_TIMEOUT, "the lists of nodes and pods are not complete yet");
	*e = t->shape.error;
	if (e->kind != ERR_NONE)
		return -1;
	if (!t->shape.has_shape)
		return err_set(e, ERR_CANCELED, "the target has not been read");
	struct capacity *c = inventory_capacity(s->inventory);
	uint64_t generation = capacity_generation(c);
	if (!t->has_result || t->of_generation != generation || t->of_orders != s->orders_generation)
		compute(t, c);
	t->has_result = true;
	t->of_generation = generation;
	t->of_orders = s->orders_generation;
	*e = t->error;
	return e->kind == ERR_NONE ? 0 : -1;
}

void fit_target_read(struct fit_target *t, int32_t spec, int32_t status, bool keeps_order, struct fit_view *ret_view)
{
	struct err e = {0};
	t->spec = spec;
	t->status = status;
	if (!keeps_order)
		t->writing = -1;
	update_order(t);
	update_orders(t->store);
	*ret_view = (struct fit_view){.is_known = update(t, &e) == 0, .detail = t->detail};
	if (!ret_view->is_known) {
		t->has_result = false; // `detail` is that of the error
		// The remedy comes first: the end of a long message is cut.
		snprintf(t->detail, sizeof t->detail, "%s%s",
		         e.code == 403 ? "manifests/capacity-controller permits it: " : "", e.msg);
		return;
	}
	// The surge of a rollout is not part of the scale: a scale-down would remove others.
	size_t surge = status > spec ? (size_t)(status - spec) : 0;
	ret_view->fit = t->fit;
	ret_view->unschedulable = t->unschedulable;
	ret_view->since_ms = t->since_ms;
	ret_view->n_since = t->n_since > surge ? t->n_since - surge : 0;
}

int32_t fit_target_gpus(const struct fit_target *t)
{
	bool is_known = t->shape.has_shape && t->shape.error.kind == ERR_NONE && t->store->inventory;
	return is_known ? replica_shape_gpus(&t->shape.shape, capacity_names(inventory_capacity(t->store->inventory)))
	                : 0;
}

// ---- failing GPUs ----

static struct capacity_node *failing_node(const struct fit_target *t, const struct pod_info *p)
{
	if (p->kind == POD_KIND_ENDED || p->kind == POD_KIND_DELETED)
		return NULL;
	const struct capacity_pod *pod = inventory_find_pod(t->store->inventory, t->namespace_name, p->name);
	return pod && pod->node && pod->node->failing_gpus > 0 ? pod->node : NULL;
}

int32_t fit_target_failing(const struct fit_target *t, const struct pod_list *pods)
{
	const struct fit_store *s = t->store;
	int32_t n = 0;
	if (!s->inventory || inventory_get_state(s->inventory, NULL) != INVENTORY_KNOWN)
		return -1;
	for (size_t i = 0; i < pods->n; i++) {
		struct capacity_node *node = failing_node(t, &pods->items[i]);
		n += node && ++node->failing_pods <= node->failing_gpus;
	}
	for (size_t i = 0; i < pods->n; i++) {
		struct capacity_node *node = failing_node(t, &pods->items[i]);
		if (node)
			node->failing_pods = 0;
	}
	return n;
}
