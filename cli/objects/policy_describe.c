// SPDX-License-Identifier: Apache-2.0
// Prints the details of one GPUAutoscaler in the layout of `kubectl describe`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "cli/objects/policy_events.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/term/table.h"
#include "policies/schema/policy_schema.h"

#define LABEL_WIDTH  18
#define SHOWN_BYTES  1024
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

static const char *or_none(const char *text)
{
	return text && text[0] ? text : "<none>";
}

static void put_line(struct buf *out, const char *label, const char *text)
{
	static const char *const columns[] = {"", "", NULL};
	struct table t;
	table_init(&t, columns);
	t.gap = 2;
	t.widths[0] = LABEL_WIDTH - 2;
	table_cell(&t, "%s", label);
	table_cell(&t, "%s", text);
	table_finish(&t, out, 0, false);
}

static void put_map(struct buf *out, const char *label, const struct doc_node *map)
{
	bool any = false;
	for (const struct doc_node *c = map && map->kind == DOC_MAP ? map->child : NULL; c; c = c->next) {
		if (strcmp(c->key, LAST_APPLIED) == 0)
			continue; // a copy of the whole object
		print_to(out, "%-*s%s: %.*s\n", LABEL_WIDTH, any ? "" : label, c->key, SHOWN_BYTES, c->text);
		any = true;
	}
	if (!any)
		put_line(out, label, "<none>");
}

static void put_replicas(struct buf *out, const struct policy_view *p)
{
	const struct status_view *s = &p->status;
	print_to(out, "%-*s", LABEL_WIDTH, "Replicas:");
	if (s->current_set && s->desired_set)
		print_to(out, "%d current / %d desired", s->current, s->desired);
	else
		buf_puts(out, "<unknown>");
	if (s->ready_set)
		print_to(out, " / %d ready", s->ready);
	if (s->ready_set && s->current_set && s->ready < s->current)
		print_to(out, " / %d starting", s->current - s->ready);
	buf_putc(out, '\n');
}

static void put_mode(struct buf *out, const struct policy_view *p)
{
	print_to(out, "%-*s%s", LABEL_WIDTH, "Mode:", policy_view_mode(p));
	if (p->paused_annotation)
		buf_puts(out, " (annotation " POLICY_ANNOTATION_PAUSED ")");
	else if (p->paused_spec)
		buf_puts(out, " (spec.paused)");
	else if (p->dry_run_annotation)
		buf_puts(out, " (annotation " POLICY_ANNOTATION_DRY_RUN ")");
	else if (p->dry_run_spec)
		buf_puts(out, " (spec.dryRun)");
	if (p->paused_annotation && p->paused_reason)
		print_to(out, ": %s", p->paused_reason);
	buf_putc(out, '\n');
}

static void put_generation(struct buf *out, const struct policy_view *p)
{
	int64_t seen = p->status.observed_generation;
	print_to(out, "%-*s", LABEL_WIDTH, "Generation:");
	if (seen == p->generation)
		print_to(out, "%lld, in force\n", (long long)p->generation);
	else if (seen == 0)
		print_to(out, "%lld, not in force yet\n", (long long)p->generation);
	else
		print_to(out, "%lld, in force is %lld\n", (long long)p->generation, (long long)seen);
}

static void put_age(struct buf *out, const char *label, int64_t since_ms, int64_t now_ms, const char *never)
{
	char age[TABLE_AGE_BYTES], time[NUM_TEXT_BYTES];
	if (since_ms == 0) {
		put_line(out, label, never);
		return;
	}
	num_format_rfc3339_ms(time, since_ms - since_ms % 1000);
	print_to(out, "%-*s%s (%s ago)\n", LABEL_WIDTH, label, time, table_age(age, since_ms, now_ms));
}

static void put_signals(struct buf *out, const struct status_view *s, int64_t now_ms)
{
	static const char *const heads[] = {"NAME", "VALUE", "TARGET", "WANTS", "STATE", "REASON", "SAMPLE", NULL};
	if (s->n_signals == 0) {
		put_line(out, "Signals:", "<none>");
		return;
	}
	struct table t;
	buf_puts(out, "Signals:\n");
	table_init(&t, heads);
	for (size_t i = 0; i < s->n_signals; i++) {
		const struct status_view_signal *x = &s->signals[i];
		table_text(&t, x->name);
		policy_render_number(&t, x->value);
		policy_render_number(&t, x->target);
		table_number(&t, x->proposal_set, x->proposal, "<none>");
		policy_render_state(&t, x->state);
		policy_render_state(&t, x->reason);
		table_since(&t, x->sample_ms, now_ms);
	}
	table_finish(&t, out, 2, true);
}

static void put_variants(struct buf *out, const struct status_view *s)
{
	static const char *const heads[] = {"NAME",    "TARGET", "REPLICAS", "READY",
	                                    "DESIRED", "REASON", "MESSAGE",  NULL};
	struct table t;
	if (s->n_variants == 0)
		return;
	buf_puts(out, "Variants:\n");
	table_init(&t, heads);
	for (size_t i = 0; i < s->n_variants; i++) {
		const struct status_view_variant *v = &s->variants[i];
		table_text(&t, v->name);
		table_cell(&t, "%s/%s", v->kind ? v->kind : "", v->target ? v->target : "");
		table_cell(&t, "%d", v->current);
		table_number(&t, v->ready_set, v->ready, "<unknown>");
		table_cell(&t, "%d", v->desired);
		policy_render_state(&t, v->reason);
		table_cell(&t, "%s", v->message ? v->message : "");
	}
	table_finish(&t, out, 2, true);
}

static void put_conditions(struct buf *out, const struct status_view *s, int64_t now_ms)
{
	static const char *const heads[] = {"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE", NULL};
	if (s->n_conditions == 0) {
		put_line(out, "Conditions:", "<none>");
		return;
	}
	struct table t;
	buf_puts(out, "Conditions:\n");
	table_init(&t, heads);
	for (size_t i = 0; i < s->n_conditions; i++) {
		const struct status_view_condition *c = &s->conditions[i];
		table_text(&t, c->type);
		table_text(&t, c->status);
		policy_render_state(&t, c->reason);
		table_since(&t, c->since_ms, now_ms);
		table_cell(&t, "%s", c->message ? c->message : "");
	}
	table_finish(&t, out, 2, true);
}

static void put_decisions(struct buf *out, const struct status_view *s, int64_t now_ms)
{
	static const char *const heads[] = {"AGE", "ACTION", "FROM", "TO", "REASON", "MESSAGE", NULL};
	if (s->n_decisions == 0) {
		put_line(out, "Decisions:", "<none>");
		return;
	}
	struct table t;
	buf_puts(out, "Decisions:\n");
	table_init(&t, heads);
	for (size_t i = s->n_decisions; i-- > 0;) { // newest first
		const struct status_view_decision *d = &s->decisions[i];
		table_since(&t, d->time_ms, now_ms);
		table_text(&t, d->action);
		table_cell(&t, "%d", d->from);
		table_cell(&t, "%d", d->to);
		policy_render_state(&t, d->reason);
		table_cell(&t, "%s", d->message ? d->message : "");
	}
	table_finish(&t, out, 2, true);
}

// ---- events ----

// What the status says of a target: the only one of the policy, or one of several.
static void put_status(struct buf *out, const struct policy_view *p, int64_t now_ms)
{
	const struct status_view *s = &p->status;
	put_replicas(out, p);
	put_line(out, "Action:", or_none(s->action));
	put_line(out, "Reason:", or_none(s->reason));
	put_line(out, "Message:", or_none(s->message));
	put_age(out, "Last scale:", s->last_scale_ms, now_ms, "<none>");
	if (s->startup_set)
		print_to(out, "%-*s%d s, learnt\n", LABEL_WIDTH, "Start-up time:", s->startup_seconds);
	put_age(out, "Status written:", s->updated_ms, now_ms, "never: is the controller running?");
	if (p->status_fault)
		put_line(out, "Status fault:", p->status_fault);
	put_signals(out, s, now_ms);
	put_variants(out, s);
	put_conditions(out, s, now_ms);
	put_decisions(out, s, now_ms);
}

static void put_target(struct buf *out, const struct policy_view *p)
{
	char text[SHOWN_BYTES];
	snprintf(text, sizeof text, "%s/%s", p->target_kind, p->target_name);
	put_line(out, "Target:", text);
}

// The worst targets of a fleet.
static void put_worst(struct buf *out, const struct policy_view *p)
{
	const struct doc_node *worst = doc_get(p->status.fleet, "worst");
	char text[SHOWN_BYTES];
	for (const struct doc_node *one = worst ? worst->child : NULL; one; one = one->next) {
		snprintf(text, sizeof text, "%s %s: %s", doc_get_text(one, "target", "?"),
		         doc_get_text(one, "state", "?"), doc_get_text(one, "message", ""));
		put_line(out, one == worst->child ? "Worst targets:" : "", text);
	}
}

void policy_render_describe(struct buf *out, const struct policy_view *p, const struct policy_events *events,
                            const char *events_fault, int64_t now_ms)
{
	char text[SHOWN_BYTES];
	put_line(out, "Name:", p->name);
	put_line(out, "Namespace:", p->namespace_name);
	put_map(out, "Labels:", p->labels);
	put_map(out, "Annotations:", p->annotations);
	put_age(out, "Created:", p->created_ms, now_ms, "<unknown>");
	if (p->deleted_ms)
		put_age(out, "Deleting since:", p->deleted_ms, now_ms, "");
	if (p->n_targets == 0)
		put_target(out, p);
	snprintf(text, sizeof text, "%s to %s", p->min, or_none(p->max));
	put_line(out, "Bounds:", text);
	put_mode(out, p);
	put_generation(out, p);
	if (p->n_targets == 0)
		put_status(out, p, now_ms);
	put_worst(out, p);
	for (size_t i = 0; i < p->n_targets; i++) {
		put_target(out, &p->targets[i]);
		put_status(out, &p->targets[i], now_ms);
	}
	if (events && events->n > 0)
		policy_events_render(events, out, now_ms);
	else
		put_line(out, "Events:", events ? "<none>" : events_fault);
}
