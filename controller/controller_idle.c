// SPDX-License-Identifier: Apache-2.0
#include "controller/controller_idle.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/process/log.h"
#include "controller/clock_watch.h"
#include "controller/idle/idle_query.h"
#include "controller/idle/idle_rules.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/policy/policy_ownership.h"
#include "controller/price_follower.h"
#include "controller/source/policy_store.h"
#include "k8s/client/scale.h"
#include "policies/engine/policy.h"
#include "policies/load/idle_rule_set.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"
#include "runtime/query/query_failover.h"
#include "runtime/query/query_hub.h"

#define REPORT_MAX     (1024 * 1024)
#define QUERY_STALE_MS INT64_C(300000)
#define QUERY_WAIT_MS  INT64_C(60000)

static const struct price_book *prices_of(void *arg)
{
	const struct controller_idle *i = arg;
	return price_follower_book(i->options.prices, clock_wall_ms(&i->options.all->connections->clock));
}

static void on_answer(void *arg, struct query_answer *a)
{
	const struct idle_answer answer = {a->state, a->detail, a->series, a->n_series, query_answer_ref(a)};
	idle_rules_answer(arg, &answer);
}

static void ask(void *arg, const char *source, const char *query, int64_t now_ms, struct idle_slot *slot)
{
	const struct controller_idle *i = arg;
	const struct query_question question = {
	        .source = source, .query = query, .stale_after_ms = QUERY_STALE_MS, .wait_ms = QUERY_WAIT_MS};
	query_failover_ask(i->options.all->connections->queries, &question, now_ms, on_answer, slot);
}

static int64_t now_of(void *arg)
{
	const struct controller_idle *i = arg;
	clock_watch_check(i->options.clock);
	return clock_wall_ms(&i->options.all->connections->clock);
}

static void release(void *kept)
{
	query_answer_unref(kept);
}

// Only one of the processes that share the policies acts, and only when it knows every policy.
static bool may_act(void *arg)
{
	const struct controller_idle *i = arg;
	const struct managed_policies *all = i->options.all;
	return ownership_is_first(all->ownership) && all->has_synced(all->arg);
}

static const char *find_policy(void *arg, const struct scale_ref *ref, char *text, size_t size)
{
	const struct controller_idle *i = arg;
	for (const struct stored_binding *b = NULL; (b = policy_store_next(i->options.all->store, b));) {
		if (strcmp(b->entry->namespace_name, ref->namespace_name) != 0)
			continue;
		if (!b->binding)
			snprintf(text, size, "policy %s is invalid, so its target is not known", b->entry->name);
		else if (binding_scales(b->binding, ref->kind, ref->name))
			snprintf(text, size, "policy %s controls it", b->entry->name);
		else
			continue;
		return text;
	}
	return NULL;
}

int controller_idle_open(struct controller_idle *i, const struct controller_idle_options *options, struct err *e)
{
	struct managed_policies *all = options->all;
	const struct idle_rules_options rules = {
	        .loop = all->connections->loop,
	        .clock = &all->connections->clock,
	        .ask = ask,
	        .release = release,
	        .k8s = options->reads_objects ? all->connections->k8s : NULL,
	        .writer = options->writer,
	        .events = options->events,
	        .conflicts = conflicts_watch(all->conflicts),
	        .log = all->log,
	        .matchers = options->series_matchers,
	        .own_namespace = connections_own_namespace(all->connections),
	        .now_ms = now_of,
	        .prices = prices_of,
	        .may_act = may_act,
	        .find_policy = find_policy,
	        .arg = i,
	};
	i->options = *options;
	i->rules = idle_rules_new(&rules, e);
	return i->rules ? 0 : -1;
}

int controller_idle_read_files(struct controller_idle *i, const char *const *paths, size_t n_paths, struct err *e)
{
	struct idle_rule_set set;
	struct buf report;
	if (!i->rules)
		return 0;
	buf_init(&report, REPORT_MAX);
	int rc = idle_rule_set_load(&set, paths, n_paths, &report, e);
	if (rc == 0 && set.n_errors > 0) {
		LOG(i->options.all->log, LOG_ERROR, "Invalid idle rule", LOG_S("err", buf_str(&report)));
		rc = err_set(e, ERR_INPUT, "an idle rule is invalid; the errors are above");
	}
	if (rc == 0)
		idle_rules_put_files(i->rules, &set);
	else
		idle_rule_set_done(&set);
	buf_done(&report);
	return rc;
}
