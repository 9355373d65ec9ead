// SPDX-License-Identifier: Apache-2.0
#include "cli/run/plan_render.h"


#include "base/buf.h"
#include "base/print.h"
#include "cli/objects/policy_render.h"
#include "cli/term/table.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"

static void put_summary(struct buf *out, const struct decided *items, size_t n, bool wide)
{
	static const char *const head[] = {"NAMESPACE", "NAME",    "TARGET", "CURRENT", "+READY",   "+PENDING",
	                                   "+RANGE",    "DESIRED", "ACTION", "REASON",  "+MESSAGE", NULL};
	struct table t;
	table_init_wide(&t, head, wide);
	for (size_t i = 0; i < n; i++) {
		const struct policy *p = items[i].policy;
		const struct decision *d = items[i].decision;
		char message[RENDER_SENTENCE_BYTES];
		table_cell(&t, "%s", p->namespace_name);
		table_cell(&t, "%s", p->name);
		table_cell(&t, "%s/%s", items[i].target->kind, items[i].target->name);
		table_cell(&t, "%d", d->current);
		table_cell(&t, d->ready < 0 ? "?" : "%d", d->ready);
		table_cell(&t, "%d", d->pending);
		table_cell(&t, "%d..%d", d->min_replicas, d->max_replicas);
		table_cell(&t, "%d", d->desired);
		table_cell(&t, "%s", action_name(d->action));
		policy_render_state(&t, reason_info(d->reason)->name);
		explain_message(&items[i], message);
		table_cell(&t, "%s", message);
	}
	table_finish(&t, out, 0, true);
}

// As explain_trace(), on a terminal with wrapped sentences and colours.
static void put_trace(struct buf *out, const struct decided *d)
{
	static const char *const columns[] = {"", "", "", "", NULL};
	struct table t;
	table_init(&t, columns);
	t.gap = 2;
	t.widths[0] = 9;
	t.widths[1] = 10;
	t.widths[2] = 21;
	for (size_t i = 0; i < d->decision->n_trace; i++) {
		const struct trace_entry *e = decision_entry(d->decision, i);
		char sentence[RENDER_SENTENCE_BYTES];
		explain_sentence(d, e, sentence);
		table_cell(&t, "%s", stage_name(e->stage));
		if (e->before == e->after)
			table_cell(&t, "%d", e->after);
		else
			table_cell(&t, "%d -> %d", e->before, e->after);
		policy_render_state(&t, reason_info(e->reason)->name);
		table_cell(&t, "%s", sentence);
	}
	table_finish(&t, out, 2, false);
	if (d->decision->trace_cut)
		print_to(out, "  (more than %d steps; the rest was cut)\n", DECISION_TRACE_MAX);
}

void plan_render(struct buf *out, const struct decided *items, size_t n, bool wide)
{
	put_summary(out, items, n, wide);
	for (size_t i = 0; i < n; i++) {
		print_to(out, "\n%s/%s:\n", items[i].policy->namespace_name, items[i].policy->name);
		put_trace(out, &items[i]);
	}
}
