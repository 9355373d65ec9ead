// SPDX-License-Identifier: Apache-2.0
#include "controller/tick/variant_scale.h"

#include <math.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "controller/tick/unacked_write.h"
#include "k8s/cache/target_store.h"
#include "k8s/capacity/fit_store.h"
#include "policies/engine/decision.h"
#include "policies/explain/explain.h"
#include "policies/price/price_book.h"
#include "policies/schema/binding.h"
#include "policies/spread/spread.h"
#include "runtime/log_edge.h"

struct variant_item {
	struct variant_scale *all;
	const struct scale_variant *rules;
	struct binding binding; // of the target alone, with a policy that has no signals
	struct fit_target *fit; // NULL: a policy without capacity
	bool is_acquired;       // in the target store
	struct unacked_write unacked;
	int32_t spec, ready; // as last read; spec -1: never
	int32_t to;          // to write
	int32_t left;        // after the last write, or the last plan that wrote nothing
	bool is_lost;        // logged
	int64_t grown_ms;    // -1: not known yet
	char resource_version[SCALE_RESOURCE_VERSION_BYTES_MAX]; // of `spec`
	struct err error;                                        // why it could not be read or written
};

struct variant_scale {
	const struct observe_sources *sources;
	struct log *log;
	const struct binding *binding;
	struct policy bare; // the policy, without signals
	size_t n;
	struct variant_item items[VARIANTS_MAX];
	struct variant_now now[VARIANTS_MAX];
	struct observation_call *calls; // of the tick in progress; NULL: none
	size_t n_pending;
	void (*done)(void *arg, const struct err *error);
	void *arg;
	int32_t ordered; // units of the last decision, while the targets are as it left them; -1: unknown
	struct decided_variant rows[VARIANTS_MAX];
	size_t n_rows;
	struct variant_write write;
	struct err write_error;
	size_t next; // of the PATCHes: the items that grow, then those that shrink
};

// ---- life ----

struct variant_scale *variant_scale_new(const struct observe_sources *sources, struct log *log,
                                        const struct binding *binding)
{
	if (!binding->variants)
		return NULL;
	struct variant_scale *v = must_alloc(calloc(1, sizeof *v));
	v->sources = sources;
	v->log = log;
	v->binding = binding;
	v->bare = *binding->policy;
	v->bare.n_signals = 0;
	v->n = binding->variants->n;
	v->ordered = -1;
	for (size_t i = 0; i < v->n; i++) {
		struct variant_item *it = &v->items[i];
		it->all = v;
		it->rules = &binding->variants->items[i];
		it->binding = (struct binding){.policy = &v->bare, .target = &it->rules->target};
		it->spec = -1;
		it->grown_ms = -1;
		unacked_write_clear(&it->unacked);
	}
	return v;
}

void variant_scale_acquire(struct variant_scale *v)
{
	struct err e;
	for (size_t i = 0; i < v->n; i++) {
		struct variant_item *it = &v->items[i];
		struct scale_ref ref = binding_scale_ref(&it->binding);
		if (!it->is_acquired && v->sources->targets)
			it->is_acquired = target_store_acquire(v->sources->targets, &ref, false, &e) > 0;
		if (!it->fit)
			it->fit = observe_acquire_fit(v->sources, &it->binding, &e);
	}
}

void variant_scale_release(struct variant_scale *v)
{
	for (size_t i = 0; v->calls && i < v->n; i++)
		observe_release(&v->calls[i]);
	free(v->calls);
	v->calls = NULL;
}

void variant_scale_free(struct variant_scale *v)
{
	if (!v)
		return;
	variant_scale_release(v);
	for (size_t i = 0; i < v->n; i++) {
		struct scale_ref ref = binding_scale_ref(&v->items[i].binding);
		if (v->items[i].is_acquired)
			target_store_release(v->sources->targets, &ref, false);
		fit_target_release(v->items[i].fit);
	}
	free(v);
}

// ---- the observation ----

static int64_t mono_ms(void)
{
	return clock_real_mono_us() / 1000;
}

static void take_scale(struct variant_item *it, const struct observation_call *c, int64_t now_ms)
{
	const struct observation *o = &c->observation;
	int32_t from;
	if (unacked_write_found(&it->unacked, o->spec_replicas, mono_ms(), &from) && o->spec_replicas > from)
		it->grown_ms = now_ms;
	it->spec = o->spec_replicas;
	it->ready = o->ready_replicas;
	memcpy(it->resource_version, c->scale.resource_version, sizeof it->resource_version);
}

// Returns whether no other client has changed a target.
static bool is_as_left(const struct variant_scale *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->items[i].spec != v->items[i].left)
			return false;
	return v->ordered >= 0;
}

static void set_ordered(struct variant_scale *v, int32_t units)
{
	v->ordered = units;
	for (size_t i = 0; i < v->n; i++)
		v->items[i].left = v->items[i].spec;
}

static void log_lost(const struct variant_scale *v, struct variant_item *it)
{
	if (log_edge(&it->is_lost, it->error.kind != ERR_NONE) == LOG_EDGE_STARTED && v->log)
		LOG(v->log, LOG_WARNING, "Cannot read variant; it keeps its replicas", LOG_POLICY(&v->bare),
		    LOG_S("variant", it->rules->name), LOG_S("err", it->error.msg));
}

static void finish_observation(struct variant_scale *v)
{
	const struct err *first = NULL;
	size_t n_known = 0;
	for (size_t i = 0; i < v->n; i++) {
		struct variant_item *it = &v->items[i];
		const struct observation_call *c = &v->calls[i];
		it->error = c->error;
		log_lost(v, it);
		first = first || it->error.kind == ERR_NONE ? first : &it->error;
		if (it->error.kind == ERR_NONE)
			take_scale(it, c, c->now_ms);
		else if (it->error.kind == ERR_NOT_FOUND)
			it->spec = it->ready = 0;
		else if (it->spec < 0) {
			v->done(v->arg, &it->error); // nothing is known about it
			return;
		}
		if (it->grown_ms < 0)
			it->grown_ms = c->now_ms;
		n_known += it->error.kind == ERR_NONE;
	}
	if (!is_as_left(v))
		v->ordered = -1;
	v->done(v->arg, n_known == 0 ? first : NULL);
}

static void on_observed(void *arg, struct observation_call *c)
{
	struct variant_scale *v = arg;
	if (--v->n_pending == 0)
		finish_observation(v);
}

void variant_scale_observe(struct variant_scale *v, int64_t now_ms, bool bypass_cache,
                           void (*done)(void *arg, const struct err *error), void *arg)
{
	variant_scale_release(v);
	v->done = done;
	v->arg = arg;
	v->calls = must_alloc(calloc(v->n, sizeof *v->calls));
	v->n_pending = v->n + 1; // and this function itself
	for (size_t i = 0; i < v->n; i++) {
		struct variant_item *it = &v->items[i];
		v->calls[i].bypass_cache = bypass_cache || unacked_write_is_open(&it->unacked);
		v->calls[i].fit = it->fit;
		observe_start(&v->calls[i], v->sources, &it->binding, now_ms, on_observed, v);
	}
	on_observed(v, NULL);
}

// The replicas that a target has or, by a write without a response, may have.
static int32_t replicas_of(const struct variant_item *it)
{
	bool is_open = unacked_write_is_open(&it->unacked);
	return is_open && it->unacked.to > it->spec ? it->unacked.to : it->spec;
}

static int32_t units_of(const struct variant_scale *v, int32_t (*replicas)(const struct variant_item *it))
{
	struct variant_now now[VARIANTS_MAX];
	int32_t n[VARIANTS_MAX];
	for (size_t i = 0; i < v->n; i++) {
		now[i] = (struct variant_now){.capacity = v->items[i].rules->capacity};
		n[i] = replicas(&v->items[i]);
	}
	return variant_units(now, n, v->n);
}

int32_t variant_scale_units(const struct variant_scale *v)
{
	return v->ordered >= 0 ? v->ordered : units_of(v, replicas_of);
}

static int32_t ready_of(const struct variant_item *it)
{
	return it->ready < 0 || it->ready > it->spec ? it->spec : it->ready;
}

static bool is_readable(const struct variant_item *it)
{
	return it->error.kind == ERR_NONE;
}

static int32_t at_most(double n, int32_t most)
{
	return n < most ? (int32_t)n : most;
}

// Reads what fits at this moment into the observation of the target.
static void read_fit(struct variant_scale *v, size_t i, struct obs_capacity *sum, double *units)
{
	const struct variant_item *it = &v->items[i];
	struct observation_call *c = &v->calls[i];
	struct variant_now *now = &v->now[i];
	now->fit = VARIANT_NO_LIMIT;
	now->unschedulable = 0;
	if (!it->fit || !is_readable(it))
		return;
	observe_capacity(c);
	const struct obs_capacity *o = &c->observation.capacity;
	sum->detail = sum->detail ? sum->detail : o->detail;
	if (!o->is_known) {
		sum->is_known = false;
		return;
	}
	now->fit = o->fit;
	now->unschedulable = o->unschedulable < it->spec ? o->unschedulable : it->spec;
	int32_t room = it->rules->max_replicas - it->spec + now->unschedulable;
	int32_t more = room <= 0 ? 0 : o->fit < room ? o->fit : room;
	*units += it->rules->capacity * (more - now->unschedulable); // these move first
}

void variant_scale_fill(struct variant_scale *v, struct observation *o)
{
	struct obs_capacity sum = {.is_known = v->bare.capacity.mode != CAPACITY_OFF};
	double fit = 0, pending = 0;
	for (size_t i = 0; i < v->n; i++) {
		const struct variant_item *it = &v->items[i];
		v->now[i] = (struct variant_now){.capacity = it->rules->capacity};
		read_fit(v, i, &sum, &fit);
		pending += it->rules->capacity * (is_readable(it) ? v->calls[i].observation.pending_replicas : 0);
	}
	o->ready_replicas = units_of(v, ready_of);
	if (o->ready_replicas > o->spec_replicas)
		o->ready_replicas = o->spec_replicas; // replicas that still serve while they move
	o->pending_replicas = at_most(ceil(pending), o->spec_replicas - o->ready_replicas);
	if (v->bare.capacity.mode == CAPACITY_OFF)
		return;
	sum.fit = fit <= 0 ? 0 : at_most(floor(fit + 1e-9), SPREAD_REPLICAS_MAX);
	o->capacity = sum;
}

// ---- the plan ----

static void set_now(struct variant_scale *v, const struct price_book *prices, int64_t startup_ms)
{
	double price[VARIANTS_MAX];
	variant_prices(v->binding->variants, prices, price);
	for (size_t i = 0; i < v->n; i++) {
		const struct variant_item *it = &v->items[i];
		struct variant_now *now = &v->now[i];
		now->price = price[i];
		now->min = it->rules->min_replicas;
		now->max = it->rules->max_replicas;
		now->is_fixed = !is_readable(it);
		now->current = replicas_of(it);
		now->ready = it->ready;
		now->grown_ms = it->grown_ms;
		now->startup_ms = it->rules->startup_ms ? it->rules->startup_ms
		                  : startup_ms >= 0     ? startup_ms
		                                        : VARIANT_STARTUP_MS;
	}
}

static bool misses_data(const struct decision *d)
{
	for (size_t i = 0; i < d->n_signals; i++)
		if (d->signals[i].state == SIGNAL_MISSING)
			return true;
	return false;
}

static void set_rows(struct variant_scale *v, const struct variant_order *orders)
{
	v->n_rows = v->n;
	for (size_t i = 0; i < v->n; i++) {
		const struct variant_item *it = &v->items[i];
		const char *reason = orders[i].share < orders[i].replicas ? "ReplacementStarting"
		                                                          : spread_reason_names[orders[i].reason];
		v->rows[i] = (struct decided_variant){
		        .name = it->rules->name,
		        .target = &it->rules->target,
		        .current = it->spec,
		        .ready = it->ready,
		        .desired = orders[i].share,
		        .capacity = it->rules->capacity,
		        .price_per_hour = v->now[i].price,
		        .reason = is_readable(it)                   ? reason
		                  : it->error.kind == ERR_NOT_FOUND ? "NotFound"
		                                                    : "Unreadable",
		        .detail = is_readable(it) ? NULL : it->error.msg,
		};
	}
}

bool variant_scale_plan(struct variant_scale *v, const struct price_book *prices, int64_t startup_ms, int64_t now_ms,
                        struct decision *d)
{
	struct variant_order orders[VARIANTS_MAX];
	struct spread_total total;
	const struct policy *policy = v->binding->policy;
	bool moves = !policy->paused && !misses_data(d), any = false, is_complete = true;
	set_now(v, prices, startup_ms);
	variant_plan(v->now, v->n, d->desired, v->binding->variants->switch_cost, now_ms, orders, &total);
	for (size_t i = 0; i < v->n; i++) {
		struct variant_item *it = &v->items[i];
		if (d->desired == d->current && !moves)
			orders[i] = (struct variant_order){replicas_of(it), replicas_of(it), SPREAD_KEPT};
		it->to = orders[i].replicas;
		any |= it->to != it->spec && is_readable(it);
		is_complete &= is_readable(it);
	}
	set_rows(v, orders);
	if (!policy->paused && !policy->dry_run) {
		int32_t shares[VARIANTS_MAX];
		for (size_t i = 0; i < v->n; i++)
			shares[i] = orders[i].share;
		int32_t served = variant_units(v->now, shares, v->n);
		enum reason reason = total.is_short ? REASON_VARIANTS_LIMITED : REASON_VARIANTS_ROUNDED;
		if (d->desired != d->current || moves)
			decide_grant(policy, served, reason, d);
	}
	decide_add_note(d, STAGE_VARIANTS, is_complete ? REASON_VARIANTS_SPREAD : REASON_VARIANT_UNREADABLE);
	if (policy->paused || policy->dry_run)
		return false;
	if (!d->write && !any)
		set_ordered(v, d->desired);
	return d->write || any;
}

const struct decided_variant *variant_scale_rows(const struct variant_scale *v, size_t *ret_n)
{
	*ret_n = v->n_rows;
	return v->rows;
}

// ---- the writes ----

static bool is_written(const struct variant_item *it)
{
	return is_readable(it) && it->to != it->spec;
}

void variant_scale_order(struct variant_scale *v, bool is_sent)
{
	for (size_t i = 0; i < v->n; i++) {
		struct variant_item *it = &v->items[i];
		if (!it->fit || !is_written(it))
			continue;
		if (is_sent)
			fit_target_ordered(it->fit, it->spec, it->to);
		else
			fit_target_unsent(it->fit, it->spec);
	}
}

static void write_next(struct variant_scale *v);

static void write_failed(struct variant_scale *v, struct variant_item *it, const struct err *error)
{
	if (error->kind == ERR_NOT_FOUND)
		observe_written(v->sources, &it->binding, NULL);
	unacked_write_failed(&it->unacked, error, it->spec, it->to, mono_ms());
	if (it->fit && error->kind == ERR_CANCELED)
		fit_target_unsent(it->fit, it->spec);
	else if (it->fit && !unacked_write_is_open(&it->unacked))
		fit_target_scaled(it->fit, it->spec);
	it->error = *error;
	if (error->kind == ERR_CANCELED)
		v->next = 2 * v->n; // the connections are being closed, or the clock was set
	if (v->write_error.kind == ERR_NONE) {
		v->write_error = *error;
		err_wrap(&v->write_error, "variant %s", it->rules->name);
	}
}

static void on_written(void *arg, const struct scale *scale, const struct err *error)
{
	struct variant_item *it = arg;
	struct variant_scale *v = it->all;
	if (!scale) {
		write_failed(v, it, error);
		write_next(v);
		return;
	}
	LOG(v->log, LOG_INFO, "Scaled variant", LOG_POLICY(&v->bare), LOG_S("variant", it->rules->name),
	    LOG_S("target", it->rules->target.name), LOG_I("from", it->spec), LOG_I("to", it->to));
	observe_written(v->sources, &it->binding, scale);
	unacked_write_clear(&it->unacked);
	if (it->to > it->spec)
		it->grown_ms = v->write.now_ms;
	it->spec = it->to;
	if (it->fit)
		fit_target_scaled(it->fit, it->to);
	write_next(v);
}

static void finish_write(struct variant_scale *v)
{
	bool has_failed = v->write_error.kind != ERR_NONE;
	if (has_failed)
		variant_scale_order(v, false); // of the items that were skipped
	set_ordered(v, has_failed ? -1 : v->write.units_to);
	v->write.done(v->write.arg, has_failed ? units_of(v, replicas_of) : v->write.units_to,
	              has_failed ? &v->write_error : NULL);
}

static void write_next(struct variant_scale *v)
{
	for (; v->next < 2 * v->n; v->next++) {
		struct variant_item *it = &v->items[v->next % v->n];
		bool shrinks = v->next >= v->n;
		struct scale_ref ref = binding_scale_ref(&it->binding);
		struct err e;
		if (!is_written(it) || (it->to < it->spec) != shrinks)
			continue;
		if (shrinks && v->write_error.kind != ERR_NONE)
			continue; // what would replace these replicas was not written
		v->next++;
		if (v->write.may_write(v->write.arg, &e) < 0 ||
		    scale_patch(v->sources->k8s, &ref, it->resource_version, it->to, on_written, it, &e) < 0)
			on_written(it, NULL, &e);
		return;
	}
	finish_write(v);
}

void variant_scale_write(struct variant_scale *v, const struct variant_write *write)
{
	v->write = *write;
	err_clear(&v->write_error);
	v->next = 0;
	write_next(v);
}
