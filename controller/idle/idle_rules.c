// SPDX-License-Identifier: Apache-2.0
// The rules themselves: from objects, by an informer, and from files; and the timer that evaluates them.
#include "controller/idle/idle_rules.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/must.h"
#include "base/process/log.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/timer.h"
#include "controller/idle/idle_rules_private.h"
#include "controller/idle/idle_status_schema.h"
#include "k8s/cache/conflict_watch.h"
#include "policies/schema/policy_schema.h"

#define PLURAL         "gpuidlerules"
#define TREE_BYTES_MAX ((size_t)16 * 1024 * 1024)

// ---- objects ----

static void put_fault(const struct schema_errors *errors, char out[IDLE_FAULT_BYTES])
{
	size_t used = 0;
	for (size_t i = 0; i < errors->n && used < IDLE_FAULT_BYTES; i++) {
		const struct schema_error *s = &errors->items[i];
		int n = snprintf(out + used, IDLE_FAULT_BYTES - used, "%s%s: %s", i ? "; " : "", s->path, s->message);
		used += n > 0 ? (size_t)n : 0;
	}
}

static void decode(struct idle_entry *e, const char *json, size_t len)
{
	struct schema_errors *errors = must_alloc(malloc(2 * sizeof *errors));
	struct arena tree, memory;
	struct idle_rule rule = {0};
	struct doc_node *root;
	struct err why;
	arena_init(&tree, TREE_BYTES_MAX);
	arena_init(&memory, IDLE_RULE_BYTES_MAX);
	schema_errors_init(&errors[0], "");
	schema_errors_init(&errors[1], "");
	e->fault[0] = '\0';
	if (doc_from_json(&tree, json, len, &root, &why) < 0)
		schema_report(&errors[0], NULL, "", "%s", why.msg);
	else if (!doc_get(root, "spec"))
		schema_report(&errors[0], NULL, "spec", "is required");
	else
		idle_rule_decode_spec(doc_get(root, "spec"), &rule, &memory, &errors[0], &errors[1]);
	put_fault(&errors[0], e->fault);
	if (e->fault[0]) {
		LOG(e->all->options.log, LOG_ERROR, "Invalid idle rule", LOG_S("rule", e->key + 1),
		    LOG_S("err", e->fault));
		arena_done(&memory);
	} else {
		arena_done(&e->arena);
		e->arena = memory;
		e->rule = rule;
		e->is_valid = true;
		e->due_mono_ms = 0;
	}
	arena_done(&tree);
	free(errors);
}

static bool on_object(void *arg, struct watched_object *o, enum object_change change, const char *json, size_t len)
{
	struct idle_rules *r = arg;
	struct idle_entry *e = o->user ? o->user : idle_entry_new(r, o->name);
	o->user = e;
	e->is_object = true;
	if (!e->is_ours || change == OBJECT_NEW) {
		idle_status_read(e, json, len);
		r->evaluation.is_void |= r->evaluation.entry == e; // its records are gone
	}
	if (change == OBJECT_STATUS)
		return true;
	snprintf(e->uid, sizeof e->uid, "%s", o->uid);
	e->generation = o->generation;
	decode(e, json, len);
	return true;
}

static void on_gone(void *arg, struct watched_object *o)
{
	idle_entry_forget(o->user);
}

static void on_error(void *arg, const struct err *error)
{
	const struct idle_rules *r = arg;
	if (error)
		LOG(r->options.log, LOG_WARNING, "Cannot watch idle rules", LOG_S("err", error->msg));
	else
		LOG(r->options.log, LOG_INFO, "Watching idle rules again", LOG_S("resource", PLURAL));
}

static int watch(struct idle_rules *r, struct err *e)
{
	r->objects = object_watch_new(&(struct object_watch_options){.client = r->options.k8s,
	                                                             .plural = PLURAL,
	                                                             .is_cluster_scoped = true,
	                                                             .on_object = on_object,
	                                                             .on_gone = on_gone,
	                                                             .on_error = on_error,
	                                                             .arg = r},
	                              e);
	return r->objects ? 0 : -1;
}

// ---- files ----

void idle_rules_put_files(struct idle_rules *r, struct idle_rule_set *set)
{
	for (struct idle_entry *e = r->entries, *next; e; e = next) {
		next = e->next;
		if (!e->is_object)
			idle_entry_forget(e);
	}
	idle_rule_set_done(&r->files);
	r->files = *set;
	*set = (struct idle_rule_set){0};
	for (size_t i = 0; i < r->files.n; i++) {
		struct idle_entry *e = idle_entry_new(r, r->files.rules[i].name);
		e->rule = r->files.rules[i];
		e->is_valid = true;
		if (e->rule.action == IDLE_SCALE)
			LOG(r->options.log, LOG_WARNING, "Idle rule from a file only reports",
			    LOG_S("rule", e->key + 1),
			    LOG_S("fix", "create it as an object: its status keeps the grace period over a restart"));
	}
}

// ---- time ----

// An object ranks before a file of the same name.
static bool is_covered(const struct idle_rules *r, const struct idle_entry *e)
{
	for (const struct idle_entry *o = r->entries; o && !e->is_object; o = o->next)
		if (o->is_object && strcmp(o->key, e->key) == 0)
			return true;
	return false;
}

static bool is_due(const struct idle_rules *r, const struct idle_entry *e, int64_t now_mono_ms)
{
	return e->is_valid && !e->is_gone && !is_covered(r, e) && now_mono_ms >= e->due_mono_ms &&
	       (!e->is_object || !r->options.writer || r->options.may_act(r->options.arg));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct idle_rules *r = arg;
	int64_t now = clock_mono_ms(r->options.clock);
	if (r->is_closing)
		return;
	bool may_act = r->options.may_act(r->options.arg);
	for (struct idle_entry *e = r->entries; e; e = e->next)
		e->is_ours = e->is_ours && may_act;
	for (struct idle_entry *e = r->entries; e && !r->evaluation.entry; e = e->next)
		if (is_due(r, e, now)) {
			e->is_ours = may_act;
			e->due_mono_ms = now + e->rule.interval_ms;
			idle_evaluate(r, e);
			break;
		}
	if (r->entries)
		timer_start(r->timer, IDLE_CHECK_MS);
}

void idle_rules_clock_was_set(struct idle_rules *r, int64_t step_ms)
{
	for (struct idle_entry *e = r->entries; e; e = e->next) {
		e->last_scale_ms += e->last_scale_ms > 0 ? step_ms : 0;
		for (size_t i = 0; i < e->n; i++) {
			int64_t *const stamps[] = {&e->records[i].since_ms, &e->records[i].warned_ms,
			                           &e->records[i].changed_ms};
			for (size_t k = 0; k < sizeof stamps / sizeof stamps[0]; k++)
				*stamps[k] += *stamps[k] > 0 ? step_ms : 0;
		}
	}
	r->evaluation.now_ms += step_ms;
}

size_t idle_rules_summarize(const struct idle_rules *r, struct idle_summary *ret, size_t max)
{
	size_t n = 0;
	for (const struct idle_entry *e = r->entries; e && n < max; e = e->next) {
		if (is_covered(r, e))
			continue;
		ret[n] = (struct idle_summary){.name = e->key + 1,
		                               .gpus = e->gpus,
		                               .per_hour = e->per_hour,
		                               .unallocated = e->unallocated,
		                               .n_workloads = e->n_found,
		                               .is_evaluated = e->is_evaluated && !e->message[0]};
		for (size_t i = 0; i < e->n; i++)
			ret[n].n_scaled += e->records[i].state == IDLE_SCALED;
		n++;
	}
	return n;
}

// ---- life ----

struct idle_rules *idle_rules_new(const struct idle_rules_options *options, struct err *e)
{
	struct idle_rules *r = calloc(1, sizeof *r);
	if (!r) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	r->options = *options;
	r->timer = evtimer_new(options->loop, on_timer, r);
	if (r->timer && (!options->k8s || watch(r, e) == 0))
		return r;
	if (!r->timer)
		err_set(e, ERR_INTERNAL, "out of memory");
	idle_rules_disconnect(r);
	idle_rules_free(r);
	return NULL;
}

void idle_rules_disconnect(struct idle_rules *r)
{
	if (!r || r->is_closing)
		return;
	r->is_closing = true;
	for (struct idle_entry *e = r->entries; e; e = e->next) {
		while (e->n > 0 && e != r->evaluation.entry)
			idle_entry_remove(e, e->n - 1);
		for (size_t i = 0; i < e->n; i++) {
			conflict_watch_release(e->records[i].interest);
			e->records[i].interest = NULL;
		}
	}
	object_watch_free(r->objects);
	r->objects = NULL;
}

void idle_rules_free(struct idle_rules *r)
{
	if (!r)
		return;
	while (r->entries)
		idle_entry_free(r->entries);
	idle_rule_set_done(&r->files);
	idle_target_free(r->evaluation.target);
	if (r->timer)
		event_free(r->timer);
	free(r);
}
