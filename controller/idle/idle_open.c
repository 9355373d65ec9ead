// SPDX-License-Identifier: Apache-2.0
// Connects the rules about idle GPUs (controller/idle) with the controller: policies, queries and prices.
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/process/log.h"
#include "controller/controller_private.h"
#include "controller/idle/idle_query.h"
#include "controller/idle/idle_rules.h"
#include "controller/price_follower.h"
#include "k8s/client/scale.h"
#include "policies/engine/policy.h"
#include "policies/load/idle_rule_set.h"
#include "policies/load/policy_ref.h"
#include "runtime/query/query_failover.h"
#include "runtime/query/query_hub.h"

#define REPORT_MAX     (1024 * 1024)
#define QUERY_STALE_MS INT64_C(300000)
#define QUERY_WAIT_MS  INT64_C(60000)

static const struct price_book *prices_of(void *arg)
{
	struct controller *c = arg;
	return price_follower_book(c->prices, clock_wall_ms(&c->connections->clock));
}

static void on_answer(void *arg, struct query_answer *a)
{
	const struct idle_answer answer = {a->state, a->detail, a->series, a->n_series, query_answer_ref(a)};
	idle_rules_answer(arg, &answer);
}

static void ask(void *arg, const char *source, const char *query, int64_t now_ms, struct idle_slot *slot)
{
	const struct controller *c = arg;
	const struct query_question question = {
	        .source = source, .query = query, .stale_after_ms = QUERY_STALE_MS, .wait_ms = QUERY_WAIT_MS};
	query_failover_ask(c->connections->queries, &question, now_ms, on_answer, slot);
}

static int64_t now_of(void *arg)
{
	struct controller *c = arg;
	controller_look_at_clock(c);
	return clock_wall_ms(&c->connections->clock);
}

static void release(void *kept)
{
	query_answer_unref(kept);
}

// Only one of the processes that share the policies acts, and only when it knows every policy.
static bool may_act(void *arg)
{
	const struct controller *c = arg;
	return (!c->ownership.shards || c->ownership.shard[0].is_owned) && controller_has_synced(c);
}

static const char *find_policy(void *arg, const struct scale_ref *ref, char *text, size_t size)
{
	const struct controller *c = arg;
	for (const struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));) {
		if (strcmp(e->namespace_name, ref->namespace_name) != 0)
			continue;
		if (!e->body)
			snprintf(text, size, "policy %s is invalid, so its target is not known", e->name);
		else if (strcmp(e->body->policy.target_kind, ref->kind) == 0 &&
		         strcmp(e->body->policy.target_name, ref->name) == 0)
			snprintf(text, size, "policy %s controls it", e->name);
		else
			continue;
		return text;
	}
	return NULL;
}

int controller_idle_open(struct controller *c, struct err *e)
{
	const struct idle_rules_options options = {
	        .loop = c->connections->loop,
	        .clock = &c->connections->clock,
	        .ask = ask,
	        .release = release,
	        .k8s = c->options.idle_rules ? c->connections->k8s : NULL,
	        .writer = c->status_env.writer,
	        .events = c->status_env.events,
	        .conflicts = conflicts_watch(c),
	        .log = c->options.log,
	        .matchers = c->options.series_matchers,
	        .own_namespace = connections_own_namespace(c->connections),
	        .now_ms = now_of,
	        .prices = prices_of,
	        .may_act = may_act,
	        .find_policy = find_policy,
	        .arg = c,
	};
	if (c->options.once)
		return 0; // a rule needs time
	c->idle = idle_rules_new(&options, e);
	return c->idle ? 0 : -1;
}

int controller_idle_read_files(void *arg, struct err *e)
{
	const struct controller *c = arg;
	struct idle_rule_set set;
	struct buf report;
	if (!c->idle)
		return 0;
	buf_init(&report, REPORT_MAX);
	int rc = idle_rule_set_load(&set, c->options.policy_paths, c->options.n_policy_paths, &report, e);
	if (rc == 0 && set.n_errors > 0) {
		LOG(c->options.log, LOG_ERROR, "Invalid idle rule", LOG_S("err", buf_str(&report)));
		rc = err_set(e, ERR_INPUT, "an idle rule is invalid; the errors are above");
	}
	if (rc == 0)
		idle_rules_put_files(c->idle, &set);
	else
		idle_rule_set_done(&set);
	buf_done(&report);
	return rc;
}

size_t controller_get_idle_rules(const struct controller *c, struct idle_summary *ret, size_t max)
{
	return c->idle ? idle_rules_summarize(c->idle, ret, max) : 0;
}
