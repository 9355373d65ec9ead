// SPDX-License-Identifier: Apache-2.0
// The status of GPUPool objects and their Events, and the numbers of pools that endpoints show.

#include "base/base.h"
#include "base/hash.h"
#include "base/json/json_write.h"
#include "base/process/log.h"
#include "controller/pool/pools.h"
#include "controller/status/status_schema.h"
#include "controller/status/status_writer.h"
#include "k8s/events/event_recorder.h"
#include "policies/explain/explain.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"

#define PATH_BYTES 400
#define TEXT_BYTES 4096 // before it is cut

// ---- the state of one member, and of all ----

static bool is_held(const struct pool *p, const struct pool_membership *s)
{
	return s->other || p->state != POOL_SHARED;
}

static bool is_clipped(const struct pool *p, size_t i)
{
	return p->grants[i].reason == POOL_MEMBER_LIMITED;
}

// What the member claims counts up to what the pool allows it.
static int32_t requested_of(const struct pool *p, size_t i)
{
	const struct pool_membership *s = p->memberships[i];
	int32_t n = s->has_asked && !s->is_idle ? s->asked : s->current;
	return n < p->members[i].most ? n : p->members[i].most;
}

static int32_t granted_of(const struct pool *p, size_t i)
{
	int32_t requested = requested_of(p, i), current = p->memberships[i]->current;
	int32_t most = requested > current ? requested : current;
	if (is_held(p, p->memberships[i]))
		return requested < current ? requested : current;
	return p->grants[i].replicas < most ? p->grants[i].replicas : most;
}

static void summarize(const struct pool *p, int64_t now_ms, struct pool_summary *ret)
{
	*ret = (struct pool_summary){.name = p->name,
	                             .pool = p,
	                             .cap_gpus = p->spec->gpus,
	                             .used_gpus = p->total.used_gpus,
	                             .n_members = p->n,
	                             .n_excess = p->n_excess,
	                             .has_budget = p->spec->has_budget,
	                             .cost_micro = (int64_t)pool_cost_micro(p),
	                             .budget_micro = p->budget_micro,
	                             .month_micro = p->spec->has_per_month ? gpu_pool_micro(p->spec->per_month) : 0,
	                             .spending = p->ledger,
	                             .projected_micro = pool_projected(p, now_ms)};
	for (size_t i = 0; i < p->n; i++) {
		int32_t requested = requested_of(p, i), granted = granted_of(p, i);
		ret->requested_gpus += (int64_t)requested * p->members[i].gpus_per_replica;
		ret->granted_gpus += (int64_t)granted * p->members[i].gpus_per_replica;
		ret->n_limited += granted < requested || is_clipped(p, i);
	}
}

static int64_t used_by(const struct pool *p, size_t i)
{
	int32_t held = pool_held(&p->members[i]), granted = granted_of(p, i), most = p->members[i].most;
	granted = granted < most ? granted : most;
	return (int64_t)(held > granted ? held : granted) * p->members[i].gpus_per_replica;
}

void pools_get_member(const struct pool *p, size_t i, struct pool_member_summary *ret)
{
	const struct pool_membership *s = p->memberships[i];
	int64_t each = p->members[i].gpus_per_replica;
	*ret = (struct pool_member_summary){.namespace_name = s->namespace_name,
	                                    .name = s->key + strlen(s->namespace_name) + 1,
	                                    .used_gpus = used_by(p, i),
	                                    .requested_gpus = requested_of(p, i) * each,
	                                    .granted_gpus = granted_of(p, i) * each};
}

const struct pool *pools_next(struct pools *p, const struct pool *after, int64_t now_ms, int64_t now_mono_ms,
                              struct pool_summary *ret)
{
	pools_assign_all(p);
	struct pool *pool = after ? after->hh.next : p->by_name;
	if (!pool)
		return NULL;
	pool_share(pool, NULL, now_ms, now_mono_ms);
	summarize(pool, now_ms, ret);
	return pool;
}

static const struct pool_membership *find_conflict(const struct pool *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->memberships[i]->other)
			return p->memberships[i];
	return NULL;
}

static const char *put_message(const struct pool *p, const struct pool_summary *sum, struct buf *out)
{
	const struct pool_membership *conflict = find_conflict(p);
	pool_put_state(p, out);
	if (sum->n_limited > 0 && p->state == POOL_SHARED)
		buf_printf(out, "; %zu of %zu members get less than they ask for", sum->n_limited, p->n);
	if (p->state == POOL_SHARED && p->total.minimum_gpus > p->spec->gpus)
		buf_printf(out, "; the guaranteed minimums need %lld GPUs: lower a maxMinReplicas or raise the cap",
		           (long long)p->total.minimum_gpus);
	else if (p->budget_micro > 0 && p->total.minimum_micro > p->budget_micro)
		buf_printf(
		        out,
		        "; the guaranteed minimums cost %.6g per hour, the budget is %.6g: lower a maxMinReplicas or "
		        "raise the budget",
		        (double)p->total.minimum_micro / 1e6, (double)p->budget_micro / 1e6);
	if (p->n_excess > 0)
		buf_printf(out,
		           "; %zu policies are held, because the pool has places for %d, and for %zu of a namespace",
		           p->n_excess, POOL_MEMBERS_MAX, p->per_namespace);
	for (size_t i = 0; i < p->spec->n_entries; i++)
		if (!gpu_pool_entry_has_namespace(&p->spec->entries[i]))
			buf_printf(out,
			           "; members[%zu] names no namespace, so that it matches no policy: add namespace or "
			           "namespaces",
			           i);
	if (conflict)
		buf_printf(out, "; %s is held, because pool %s claims it too: remove it from one of them",
		           conflict->key, (conflict->pool == p ? conflict->other : conflict->pool)->name);
	if (p->object && p->object != p->valid && p->valid)
		buf_printf(out, "; the last valid version is in force, because the newest one is invalid: %s",
		           p->object->fault);
	return buf_str(out);
}

// ---- the document ----

static void put_member_reason(const struct pool *p, size_t i, struct json_writer *w)
{
	const struct pool_membership *s = p->memberships[i];
	struct buf text;
	const char *reason = pool_reasons[p->grants[i].reason].name;
	buf_init(&text, TEXT_BYTES);
	if (s->other) {
		reason = pool_reasons[POOL_HELD].name;
		pool_put_exclusion(s, &text);
	} else if (is_held(p, s)) {
		reason = pool_reasons[POOL_HELD].name;
		pool_put_state(p, &text);
	} else if (is_clipped(p, i)) {
		int32_t claimed = s->has_asked && !s->is_idle && s->asked > s->current ? s->asked : s->current;
		buf_printf(&text, "claims %d replicas: ", claimed);
		explain_pool_reason(&text, p->name, p->spec->gpus, &p->grants[i], &p->total);
	} else if (s->is_idle) {
		buf_puts(&text, "paused, dryRun, or scaled to 0 by hand: it keeps what it has");
		if (pool_held(&p->members[i]) < s->current)
			buf_printf(&text, "; of its %d replicas, %d exist or were granted, and count", s->current,
			           pool_held(&p->members[i]));
		reason = "NotMoved";
	} else {
		explain_pool_grant(&text, p->name, p->spec->gpus, requested_of(p, i), &p->grants[i], &p->total);
	}
	json_write_member_str(w, "reason", reason);
	if (text.len > POOL_STATUS_SENTENCE_BYTES)
		text.data[POOL_STATUS_SENTENCE_BYTES] = '\0';
	json_write_member_text(w, "message", buf_str(&text));
	buf_done(&text);
}

static void put_members(const struct pool *p, struct json_writer *w)
{
	json_write_member_array(w, "members");
	for (size_t i = 0; i < p->n && i < POOL_STATUS_MEMBERS_MAX; i++) {
		const struct pool_membership *s = p->memberships[i];
		json_write_format(w, "{name:%s,requested:%d,granted:%d,gpus:%ld", s->key, requested_of(p, i),
		                  granted_of(p, i), used_by(p, i));
		put_member_reason(p, i, w);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

// Without the spending and lastUpdateTime, whose changes alone cause no write.
static void put_body(const struct pool *p, const struct pool_summary *sum, struct json_writer *w)
{
	struct buf text;
	buf_init(&text, TEXT_BYTES);
	put_message(p, sum, &text);
	if (text.len > POOL_STATUS_SENTENCE_BYTES)
		text.data[POOL_STATUS_SENTENCE_BYTES] = '\0';
	json_write_format(w, "observedGeneration:%ld,gpus:%ld,usedGPUs:%ld,memberCount:%zu,limitedCount:%zu",
	                  p->object->generation, sum->cap_gpus, sum->used_gpus, sum->n_members, sum->n_limited);
	json_write_member_text(w, "message", buf_str(&text));
	put_members(p, w);
	buf_done(&text);
}

// Returns whether contents with this fingerprint are written now.
static bool is_due(const struct pool *p, uint64_t print, int64_t now_mono_ms)
{
	static const struct status_pace pace = {
	        .change_ms = POOL_STATUS_MS, .retry_ms = POOL_STATUS_MS, .refresh_ms = POOL_SPENDING_MS};
	const struct status_offer offer = {.pace = &pace,
	                                   .past = &p->record->past,
	                                   .major = print,
	                                   .extra = p->ledger.since_ms > 0 ? STATUS_EXTRA_REFRESH : STATUS_EXTRA_NONE};
	return status_reasons[status_schedule(&offer, now_mono_ms)].action == STATUS_WRITE;
}

static void on_written(void *arg, const struct err *error)
{
	struct pool_status_record *r = arg;
	r->past.failed = error != NULL;
	r->is_missing = error && error->kind == ERR_NOT_FOUND;
}

static void write_status(struct pool *p, const struct pool_status_env *env, const struct pool_summary *sum,
                         int64_t now_ms, int64_t now_mono_ms)
{
	struct pool_status_record *r = p->record;
	struct buf body;
	struct json_writer w;
	char path[PATH_BYTES];
	if (r->is_missing)
		env->on_missing(env->arg, p->name);
	r->is_missing = false;
	buf_init(&body, POOL_STATUS_BYTES_MAX);
	json_write_init(&w, &body, 0);
	json_write_format(&w, "{status:{");
	put_body(p, sum, &w);
	uint64_t print = hash_bytes(HASH_START, body.data, body.len);
	pool_spending_write(p, now_ms, &w);
	json_write_format(&w, "lastUpdateTime:%jd}}", now_ms);
	if (!body.failed && is_due(p, print, now_mono_ms)) {
		snprintf(path, sizeof path, "/apis/" POLICY_API_VERSION "/gpupools/%s/status", p->name);
		status_past_write(&r->past, print, 0, now_mono_ms);
		status_writer_put(env->writer, &r->slot, path, buf_str(&body), on_written, r);
	}
	buf_done(&body);
}

// ---- the spending of pools from files ----

static void on_saved(void *arg, const struct err *error)
{
	struct pool_status_record *r = arg;
	if (error)
		LOG(r->log, LOG_ERROR, "Cannot save the spending of a pool", LOG_S("err", error->msg));
}

static void save_spending(struct pool *p, const struct pool_status_env *env, int64_t now_ms, int64_t now_mono_ms)
{
	struct pool_status_record *r = p->record;
	struct err e;
	if (!is_due(p, 0, now_mono_ms))
		return;
	status_past_write(&r->past, 0, 0, now_mono_ms);
	r->log = env->log;
	if (pool_spending_file_write(p, env->dir, &r->file, now_ms, on_saved, r, &e) < 0)
		on_saved(r, &e);
}

// ---- Events ----

static enum pool_phase phase_of(const struct pool *p, const struct pool_summary *sum)
{
	if (p->state == POOL_UNKNOWN)
		return PHASE_NONE; // for a moment after a start, usually
	if (p->state != POOL_SHARED)
		return PHASE_HELD;
	if (find_conflict(p))
		return PHASE_CONFLICT;
	return sum->n_limited > 0 ? PHASE_LIMITED : PHASE_AVAILABLE;
}

static void record_event(struct pool *p, const struct pool_status_env *env, const struct pool_summary *sum)
{
	static const struct {
		const char *type, *reason;
	} events[PHASE__COUNT] = {
	        [PHASE_AVAILABLE] = {"Normal", "PoolAvailable"},
	        [PHASE_LIMITED] = {"Normal", "PoolLimited"},
	        [PHASE_HELD] = {"Warning", "PoolHeld"},
	        [PHASE_CONFLICT] = {"Warning", "PoolConflict"},
	};
	struct pool_status_record *r = p->record;
	enum pool_phase phase = phase_of(p, sum), before = r->phase;
	if (phase == PHASE_NONE || phase == before)
		return;
	r->phase = phase;
	if (!env->events || (before == PHASE_NONE && phase == PHASE_AVAILABLE))
		return; // nothing happened
	const struct event_object object = {POLICY_API_VERSION, POOL_KIND, "", p->name, p->object->uid};
	struct buf text;
	buf_init(&text, TEXT_BYTES);
	event_recorder_record(env->events, &object, events[phase].type, events[phase].reason,
	                      put_message(p, sum, &text));
	buf_done(&text);
}

// ---- all ----

void pool_status_write_all(struct pools *p, const struct pool_status_env *env, int64_t now_ms, int64_t now_mono_ms)
{
	struct pool_summary sum;
	pools_assign_all(p);
	for (struct pool *pool = p->by_name; pool; pool = pool->hh.next) {
		pool_share(pool, NULL, now_ms, now_mono_ms);
		pool_spending_count(pool, now_ms);
		bool is_file = !pool->object && env->dir;
		if (!is_file && (!pool->object || !env->writer))
			continue;
		if (!pool->record)
			pool->record = must_alloc(calloc(1, sizeof *pool->record));
		if (is_file) {
			save_spending(pool, env, now_ms, now_mono_ms);
			continue;
		}
		summarize(pool, now_ms, &sum);
		record_event(pool, env, &sum);
		write_status(pool, env, &sum, now_ms, now_mono_ms);
	}
}
