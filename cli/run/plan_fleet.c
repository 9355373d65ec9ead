// SPDX-License-Identifier: Apache-2.0
#include "cli/run/plan_fleet.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/print.h"
#include "policies/engine/policy.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"

static bool permit(void *owner, enum tick_permission permission, struct err *e)
{
	return permission == TICK_MAY_CONTINUE; // a plan writes nothing
}

static void finished(void *owner)
{
	const struct plan_fleets *p = owner;
	event_base_loopbreak(p->connections->loop);
}

static void ask(void *owner) {} // one tick is enough

static const char *find_policy(void *owner, const struct scale_ref *ref)
{
	const struct plan_fleets *p = owner;
	for (size_t i = 0; i < p->n_policies; i++) {
		const struct policy_ref *b = policy_ref_of(p->policies[i]);
		if (strcmp(p->policies[i]->namespace_name, ref->namespace_name) == 0 &&
		    strcmp(b->target.kind, ref->kind) == 0 && strcmp(b->target.name, ref->name) == 0)
			return p->policies[i]->name;
	}
	return NULL;
}

static void add_row(void *arg, const struct fleet_row *row)
{
	struct plan_fleets *p = arg;
	const struct policy_ref *b = policy_ref_of(row->policy);
	if (!row->decision) {
		print_error("gpuscale plan: %s/%s: %s is not planned: %s%s%s\n", row->policy->namespace_name,
		            row->policy->name, row->name, row->role, row->detail[0] ? ": " : "", row->detail);
		return;
	}
	if (p->n_rows == p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->rows = must_alloc(realloc(p->rows, p->room * sizeof *p->rows));
	}
	struct scale_target *target = must_alloc(malloc(sizeof *target));
	*target = (struct scale_target){b->fleet.api_version, b->fleet.kind, row->name, NULL};
	p->rows[p->n_rows++] = (struct decided){.policy = row->policy, .target = target, .decision = row->decision};
}

static int by_name(const void *a, const void *b)
{
	const struct decided *x = a, *y = b;
	int order = strcmp(x->policy->name, y->policy->name);
	return order ? order : strcmp(x->target->name, y->target->name);
}

static void run_one(struct plan_fleets *p, const struct policy *policy, int64_t now_ms)
{
	struct fleet *f = fleet_new(&p->env, policy_ref_of(policy), NULL, p);
	p->fleets[p->n++] = f;
	fleet_tick(f, now_ms);
	if (fleet_phase(f) != TICK_PHASE_IDLE)
		event_base_dispatch(p->connections->loop);
	if (fleet_error(f)[0]) {
		print_error("gpuscale plan: %s/%s: %s\n", policy->namespace_name, policy->name, fleet_error(f));
		p->n_failed++;
	}
	fleet_each(f, add_row, p);
}

void plan_fleets_run(struct plan_fleets *p, struct connections *connections, const struct observe_sources *sources,
                     const struct policy *const *policies, size_t n, int64_t now_ms)
{
	p->connections = connections;
	p->policies = policies;
	p->n_policies = n;
	p->tick = (struct reconcile_env){.sources = *sources, .dry_run = true, .permit = permit};
	p->env = (struct fleet_env){
	        .tick = &p->tick, .find_policy = find_policy, .finished = finished, .ask = ask, .spans_anywhere = true};
	p->fleets = must_alloc(calloc(n ? n : 1, sizeof *p->fleets));
	for (size_t i = 0; i < n; i++)
		if (policy_ref_of(policies[i])->fleet.set)
			run_one(p, policies[i], now_ms);
	if (p->n_rows)
		qsort(p->rows, p->n_rows, sizeof *p->rows, by_name);
}

void plan_fleets_done(struct plan_fleets *p)
{
	fleets_disconnect(&p->env);
	for (size_t i = 0; i < p->n_rows; i++)
		free((void *)(uintptr_t)p->rows[i].target);
	for (size_t i = 0; i < p->n; i++)
		fleet_free(p->fleets[i]);
	free(p->fleets);
	free(p->rows);
}
