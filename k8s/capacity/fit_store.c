// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/fit_store.h"

#include <event2/event_struct.h>
#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/timer.h"
#include "k8s/cache/target_store.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/fit_order.h"
#include "k8s/capacity/inventory.h"
#include "k8s/capacity/shape_fetch.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/replica_groups.h"
#include "k8s/client/scale.h"

struct fit_target {
	struct fit_store *store;
	struct fit_target *prev, *next;                 // list of all targets
	struct fit_target *prev_asking, *next_asking;   // list of targets with a question that waits
	struct fit_target *prev_ordered, *next_ordered; // list of targets with replicas that do not exist as pods yet
	struct fit_target *prev_late, *next_late;       // list of targets whose fit is computed in later turns
	bool is_ordering, is_late, was_late;
	struct scale_ref *ref; // owned
	const struct workload_kind *workload;
	char *selector_text; // selector of the scale; NULL: unknown
	struct label_selector *selector;
	struct target_shape shape;          // the last one fetched
	int64_t of_target, fetched_mono_ms; // the generation that it was fetched for, and when
	struct shape_fetch *fetching;
	void (*done)(void *arg); // callback of a question that waits; NULL: none
	void *arg;
	int32_t spec, status; // status -1: no fit was requested yet
	struct fit_order order;
	int64_t in_flight;  // replicas for which room is reserved
	uint64_t placed_in; // number of the plan in which they have got it
	int64_t placed;     // how many of their pods
	uint64_t planned;   // number of the plan that was completed for this target, until its result; 0: none
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
	struct fit_target *targets, *ordered, *asking, *late;
	uint64_t orders_generation;
	int64_t work;            // left in this turn
	struct event turn_timer; // pending while `work` is not that of a new turn, or targets are late
	struct event sync_timer;
	bool is_late, is_stopped; // late: questions wait for the inventory no longer
	bool is_broken;           // reported
};

static void on_turn(evutil_socket_t fd, short what, void *arg);
static void join_late(struct fit_target *t);
static void leave_late(struct fit_target *t);

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
		timer_start(&s->sync_timer, 0);
}

static int open_inventory(struct fit_store *s, struct err *e)
{
	const struct inventory_options o = {.client = s->options.client, .on_change = on_inventory, .arg = s};
	if (s->inventory)
		return 0;
	s->inventory = inventory_new(&o, e);
	if (s->inventory)
		timer_start(&s->sync_timer, FIT_SYNC_WAIT_MS);
	return s->inventory ? 0 : -1;
}

struct fit_store *fit_store_new(const struct fit_store_options *options, struct err *e)
{
	struct fit_store *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->options = *options;
	s->work = FIT_WORK_PER_TURN;
	evtimer_assign(&s->sync_timer, options->client->options.loop, on_late, s);
	evtimer_assign(&s->turn_timer, options->client->options.loop, on_turn, s);
	return s;
}

static void forget_shape(struct fit_target *t);

void fit_store_stop(struct fit_store *s)
{
	struct fit_target *t;
	s->is_stopped = true;
	event_del(&s->sync_timer);
	event_del(&s->turn_timer);
	DL_FOREACH(s->targets, t)
	{
		leave_late(t);
		if (t->fetching)
			shape_fetch_abandon(t->fetching);
		t->fetching = NULL;
	}
	wake(s);
	DL_FOREACH(s->targets, t)
	{
		forget_shape(t); // it refers to names of the inventory
	}
	inventory_free(s->inventory);
	s->inventory = NULL;
}

void fit_store_free(struct fit_store *s)
{
	if (!s)
		return;
	while (s->targets)
		fit_target_release(s->targets);
	event_del(&s->sync_timer);
	event_del(&s->turn_timer);
	free(s);
}

// ---- targets ----

struct fit_target *fit_store_acquire(struct fit_store *s, const struct scale_ref *ref, struct err *e)
{
	if (s->is_stopped) {
		err_set(e, ERR_CANCELED, "the connections are being closed");
		return NULL;
	}
	if (open_inventory(s, e) < 0)
		return NULL;
	struct fit_target *t = must_alloc(calloc(1, sizeof *t));
	t->store = s;
	t->status = -1;
	fit_order_init(&t->order);
	t->ref = must_alloc(scale_ref_copy(ref, sizeof *t->ref));
	t->workload = workload_kind_find(ref->api_version, ref->kind, ref->path);
	DL_APPEND(s->targets, t);
	return t;
}

// The reservation of the plan for the target is void.
static void drop_plan(const struct fit_target *t)
{
	struct capacity *c = t->store->inventory ? inventory_capacity(t->store->inventory) : NULL;
	if (c && t->placed > 0 && t->placed_in == c->plan.number)
		capacity_drop_plan(c);
}

static void stop_ordering(struct fit_target *t)
{
	if (!t->is_ordering)
		return;
	DL_DELETE2(t->store->ordered, t, prev_ordered, next_ordered);
	drop_plan(t);
	t->is_ordering = false;
	t->in_flight = 0;
	t->store->orders_generation++;
}

static void forget_shape(struct fit_target *t)
{
	if (t->store->inventory && t->shape.has_shape && t->shape.shape.n_selectors)
		capacity_drop_plan(inventory_capacity(t->store->inventory)); // a plan knows it by its address
	drop_plan(t);
	target_shape_done(&t->shape);
}

void fit_target_release(struct fit_target *t)
{
	if (!t)
		return;
	stop_ordering(t);
	leave_late(t);
	forget_shape(t);
	if (t->fetching)
		shape_fetch_abandon(t->fetching);
	DL_DELETE(t->store->targets, t);
	free(t->since_ms);
	free(t->selector_text);
	label_selector_free(t->selector);
	free(t->ref);
	free(t);
}

// ---- what a replica needs ----

static void on_fetched(void *arg, const struct target_shape *shape)
{
	struct fit_target *t = arg;
	t->fetching = NULL;
	forget_shape(t);
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
	int64_t mono_ms = clock_mono_ms(s->options.client->options.clock);
	t->done = done;
	t->arg = arg;
	DL_APPEND2(s->asking, t, prev_asking, next_asking);
	if (!s->is_stopped && must_fetch(t, generation, mono_ms)) {
		t->of_target = generation;
		t->fetched_mono_ms = mono_ms;
		t->fetching = shape_fetch_start(s->options.client, t->ref, &inventory_capacity(s->inventory)->names,
		                                on_fetched, t, &t->shape.error);
	}
	if (t->was_late && !s->is_stopped)
		join_late(t); // so that the fit is ready when it is read
	if (!t->fetching && (s->is_stopped || !must_wait(s)))
		answer(t);
}

// ---- orders ----

static int64_t now_mono_ms(const struct fit_store *s)
{
	return clock_mono_ms(s->options.client->options.clock);
}

static int64_t count_order(struct fit_target *t)
{
	const struct fit_store *s = t->store;
	struct target_view view = {.state = TARGET_UNWATCHED};
	int32_t spec = t->spec, status = t->status;
	if (s->options.targets)
		target_store_get(s->options.targets, t->ref, &view);
	if (view.state == TARGET_FOUND) {
		spec = view.spec_replicas;
		status = view.status_replicas >= 0 ? view.status_replicas : status;
	}
	return fit_order_count(&t->order, spec, status, now_mono_ms(s));
}

static void update_order(struct fit_target *t)
{
	int64_t n = count_order(t);
	if (n == 0) {
		stop_ordering(t);
		return;
	}
	if (!t->is_ordering)
		DL_APPEND2(t->store->ordered, t, prev_ordered, next_ordered);
	t->store->orders_generation += !t->is_ordering || n != t->in_flight;
	if (n * t->shape.pods < t->placed)
		drop_plan(t);
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

void fit_target_ordered(struct fit_target *t, int32_t from, int32_t to)
{
	fit_order_write(&t->order, from, to, now_mono_ms(t->store));
	update_order(t);
}

void fit_target_unsent(struct fit_target *t, int32_t replicas)
{
	fit_order_cancel(&t->order);
	t->spec = replicas;
	update_order(t);
}

void fit_target_scaled(struct fit_target *t, int32_t replicas)
{
	fit_order_end(&t->order);
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
	return strcmp(t->ref->api_version, "apps/v1") == 0 &&
	       (strcmp(t->ref->kind, "Deployment") == 0 || strcmp(t->ref->kind, "ReplicaSet") == 0);
}

void fit_target_select(struct fit_target *t, const char *selector)
{
	char all[SCALE_SELECTOR_BYTES_MAX];
	if (t->selector_text && strcmp(t->selector_text, selector) == 0)
		return;
	free(t->selector_text);
	label_selector_free(t->selector);
	t->selector_text = must_alloc(strdup(selector));
	workload_kind_widen(t->workload, selector, all);
	t->selector = all[0] ? label_selector_parse(all, NULL) : NULL;
	t->has_result = false;
}

// Returns the group of a pod without a node; 0: none.
static uint64_t group_of(const struct fit_target *t, const struct capacity_waiting *w)
{
	for (size_t i = 0; t->workload->group_label && i < w->n_labels; i++) {
		if (strcmp(w->labels[i].key, t->workload->group_label) == 0)
			return group_member_read(t->workload, w->labels[i].value, NULL, NULL, NULL).group;
	}
	return 0;
}

static void find_unschedulable(struct fit_target *t, const struct capacity *c)
{
	const struct capacity_waiting *w;
	const struct label_selector *selector = t->shape.selector ? t->shape.selector : t->selector;
	uint64_t groups[CAPACITY_WAITING_OF_NAMESPACE];
	t->unschedulable = t->gated = 0;
	t->n_since = 0;
	for (w = c->waiting; w && selector; w = w->next) {
		if (!(w->is_unschedulable || w->is_gated) || strcmp(w->namespace_name, t->ref->namespace_name) != 0 ||
		    !label_selector_matches(selector, w->labels, w->n_labels))
			continue;
		if (t->unschedulable < CAPACITY_WAITING_OF_NAMESPACE)
			groups[t->unschedulable] = group_of(t, w);
		must_reserve(&t->since_ms, t->n_since, &t->room, sizeof *t->since_ms, 8);
		t->gated += w->is_gated;
		if (t->unschedulable++ == 0 || (w->is_gated && t->gated == 1))
			memcpy(t->detail, w->message, sizeof t->detail);
		t->since_ms[t->n_since++] = w->since_ms > 0 ? w->since_ms : INT64_MAX; // never overdue
	}
	// A ReplicaSet may remove a gated pod in place of an overdue one, so none is overdue in addition to it.
	for (size_t i = 0; i < t->n_since && t->gated > 0; i++)
		t->since_ms[i] = INT64_MAX;
	if (t->n_since > 1)
		qsort(t->since_ms, t->n_since, sizeof *t->since_ms, by_time);
	if (!removes_unscheduled_first(t))
		t->n_since = 0;
	if (t->workload->group_label && t->unschedulable <= CAPACITY_WAITING_OF_NAMESPACE)
		t->unschedulable = (int32_t)replica_groups_distinct(groups, (size_t)t->unschedulable);
}

// Reserves room in the complete plan for what is ordered. Returns false when no work is left.
static bool place_orders(struct fit_store *s, struct capacity *c)
{
	struct fit_target *o;
	DL_FOREACH2(s->ordered, o, next_ordered)
	{
		int64_t pods = o->in_flight * o->shape.pods, n = pods < FIT_ORDER_MAX ? pods : FIT_ORDER_MAX;
		if (!o->shape.has_shape || o->shape.error.kind != ERR_NONE)
			continue;
		if (o->placed_in != c->plan.number)
			o->placed = 0;
		o->placed_in = c->plan.number;
		if (o->placed < n)
			o->placed += capacity_plan_order(c, &o->shape.shape, n - o->placed, &s->work);
		if (o->placed < n)
			return false;
	}
	return true;
}

static void take_result(struct fit_target *t, struct capacity *c, const struct fit_result *fit)
{
	t->detail[0] = '\0';
	find_unschedulable(t, c);
	t->fit = t->gated > 0 ? 0 : (int32_t)(fit->replicas / t->shape.pods); // the next one would be gated as well
	if (!t->detail[0]) {
		char why[FIT_WHY_BYTES];
		fit_explain(c, fit, why);
		snprintf(t->detail, sizeof t->detail, "%s", why);
	}
}

// Returns whether the result is that of the plan; false: no work is left.
static bool compute(struct fit_target *t, struct capacity *c)
{
	struct fit_store *s = t->store;
	struct fit_result fit;
	int rc = 1;
	t->error = (struct err){0};
	if (s->work <= 0)
		return false;
	// A plan that was completed for this target serves it although the account has changed since: where changes are
	// frequent and plans long, it would never get a result otherwise.
	if (t->planned != c->plan.number || !capacity_plan_serves(c, &t->shape.shape))
		rc = capacity_plan(c, &t->shape.shape, &s->work, &t->error);
	if (rc == 0)
		return false;
	t->planned = rc > 0 ? c->plan.number : 0;
	if (rc > 0 && (!place_orders(s, c) || !capacity_fit_planned(c, &t->shape.shape, &s->work, &fit)))
		return false;
	if (rc > 0)
		take_result(t, c, &fit);
	t->planned = 0;
	t->has_result = true;
	t->of_generation = rc > 0 ? c->plan.generation : c->generation;
	t->of_orders = s->orders_generation;
	return true;
}

// ---- later turns ----

static void leave_late(struct fit_target *t)
{
	if (t->is_late)
		DL_DELETE2(t->store->late, t, prev_late, next_late);
	t->is_late = false;
}

static void join_late(struct fit_target *t)
{
	if (!t->is_late)
		DL_APPEND2(t->store->late, t, prev_late, next_late);
	t->is_late = true;
	timer_start(&t->store->turn_timer, 0);
}

static bool is_current(const struct fit_target *t, const struct capacity *c)
{
	return t->has_result && t->of_generation == c->generation && t->of_orders == t->store->orders_generation;
}

// Returns 0 when the fit can be computed; else *e.
static int check(const struct fit_target *t, struct err *e)
{
	const struct fit_store *s = t->store;
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
	return t->shape.has_shape ? 0 : err_set(e, ERR_CANCELED, "the target has not been read");
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct fit_store *s = arg;
	struct fit_target *t;
	struct err e = {0};
	s->work = FIT_WORK_PER_TURN;
	while ((t = s->late)) {
		if (check(t, &e) == 0 && !compute(t, inventory_capacity(s->inventory)))
			break; // first in the next turn, too: a plan serves one resource at a time
		leave_late(t);
	}
	if (s->late)
		timer_start(&s->turn_timer, 0);
}

// Returns 0 when the fit is up to date, 1 when it is that of an earlier moment; else *e.
static int update(struct fit_target *t, struct err *e)
{
	struct fit_store *s = t->store;
	if (check(t, e) < 0)
		return -1;
	struct capacity *c = inventory_capacity(s->inventory);
	if (!is_current(t, c)) {
		timer_start(&s->turn_timer, 0);
		// A plan in progress is not dropped for one that serves another resource.
		bool may_plan = !s->late || s->late == t || capacity_plan_serves(c, &t->shape.shape);
		t->was_late = !may_plan || !compute(t, c);
		if (t->was_late) {
			join_late(t);
			return 1;
		}
		leave_late(t);
	}
	*e = t->error;
	return e->kind == ERR_NONE ? 0 : -1;
}

void fit_target_read(struct fit_target *t, int32_t spec, int32_t status, bool keeps_order, struct fit_view *ret_view)
{
	struct err e = {0};
	t->spec = spec;
	t->status = status;
	if (!keeps_order)
		fit_order_end(&t->order);
	update_order(t);
	update_orders(t->store);
	int rc = update(t, &e);
	*ret_view = (struct fit_view){.is_known = rc >= 0, .detail = t->detail};
	if (rc < 0) {
		t->has_result = false; // `detail` is that of the error
		// The remedy comes first: the end of a long message is cut.
		snprintf(t->detail, sizeof t->detail, "%s%s",
		         e.code == 403 ? "manifests/capacity-controller permits it: " : "", e.msg);
		return;
	}
	if (rc > 0 && (!t->has_result || t->of_orders != t->store->orders_generation)) {
		ret_view->detail = "what fits is still being counted, because the rules of pods that wait are many";
		return;
	}
	// Replicas that are part of the scale, do not exist as pods, and have no reservation: their room is not free.
	int32_t requested = t->order.now.is_unacked && t->order.now.to > spec ? t->order.now.to : spec;
	int64_t missing = (int64_t)requested - status - t->in_flight;
	int64_t fit = missing > 0 ? t->fit - missing : t->fit;
	// The surge of a rollout is not part of the scale: a scale-down would remove others.
	size_t surge = status > spec ? (size_t)(status - spec) : 0;
	ret_view->fit = fit > 0 ? (int32_t)fit : 0;
	ret_view->unschedulable = t->unschedulable;
	ret_view->since_ms = t->since_ms;
	ret_view->n_since = t->n_since > surge ? t->n_since - surge : 0;
}

int32_t fit_target_gpus(const struct fit_target *t)
{
	bool is_known = t->shape.has_shape && t->shape.error.kind == ERR_NONE && t->store->inventory;
	return is_known ? target_shape_gpus(&t->shape, &inventory_capacity(t->store->inventory)->names) : 0;
}

// ---- failing GPUs ----

static struct capacity_node *failing_node(const struct fit_target *t, const struct pod_info *p)
{
	if (p->kind == POD_KIND_ENDED || p->kind == POD_KIND_DELETED)
		return NULL;
	const struct capacity_pod *pod = inventory_find_pod(t->store->inventory, t->ref->namespace_name, p->name);
	return pod && pod->node && pod->node->failing_gpus > 0 ? pod->node : NULL;
}

int32_t fit_target_failing(const struct fit_target *t, const struct pod_list *pods)
{
	const struct fit_store *s = t->store;
	size_t n = 0;
	if (!s->inventory || inventory_get_state(s->inventory, NULL) != INVENTORY_KNOWN)
		return -1;
	uint64_t *groups = must_alloc(malloc((pods->n + 1) * sizeof *groups));
	for (size_t i = 0; i < pods->n; i++) {
		struct capacity_node *node = failing_node(t, &pods->items[i]);
		if (node && ++node->failing_pods <= node->failing_gpus)
			groups[n++] = pods->items[i].member.group;
	}
	for (size_t i = 0; i < pods->n; i++) {
		struct capacity_node *node = failing_node(t, &pods->items[i]);
		if (node)
			node->failing_pods = 0;
	}
	n = replica_groups_distinct(groups, n);
	free(groups);
	return (int32_t)n;
}
