// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/cmd_describe.h"

#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/term/cli.h"
#include "policies/schema/policy_schema.h"

#define EVENTS_PAGES_MAX 200

struct describe_args {
	struct policy_scope scope;
	enum output_format output;
};

// clang-format off
#define FLAGS_OF struct describe_args
static const struct flag_set command = {
	.args = "[NAME..]",
	.about = "Describe GPUAutoscalers, or with `so` the ScaledObjects of KEDA on which the controller acts: mode, signals, "
	         "conditions, the last decisions and Events.",
	.flags = (const struct flag[]){
		FLAG_OUTPUT(1, output, OUTPUT_SET(TEXT) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML) | OUTPUT_SET(NAME), "text, json, yaml or name (default text)"),
		FLAG_ARGUMENTS(scope, policy_scope_add),
		FLAG_INCLUDE(&policy_scope_flags, scope, 0),
		FLAG_END}};
// clang-format on

// ---- Events ----

#define TIME_BYTES 64

void policy_events_init(void *events)
{
	*(struct policy_events *)events = (struct policy_events){0};
}

static int64_t time_of(struct json_span event)
{
	static const char *const keys[] = {"lastTimestamp", "eventTime", "firstTimestamp"};
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		char text[TIME_BYTES];
		int64_t ms = 0;
		int len = json_span_text(json_span_get(event, keys[i]), text, sizeof text);
		if (len > 0 && num_parse_rfc3339_ms(text, (size_t)len, &ms, NULL) == 0)
			return ms;
	}
	return 0;
}

int policy_events_add(void *events, struct json_span event, struct err *e)
{
	struct policy_events *v = events;
	int64_t last_ms = time_of(event);
	size_t at = v->n;
	v->total++;
	while (at > 0 && v->items[at - 1].last_ms < last_ms)
		at--;
	if (at == POLICY_EVENTS_SHOWN_MAX)
		return 0;
	v->n += v->n < POLICY_EVENTS_SHOWN_MAX;
	memmove(&v->items[at + 1], &v->items[at], (v->n - 1 - at) * sizeof v->items[0]);
	struct policy_event *x = &v->items[at];
	*x = (struct policy_event){.last_ms = last_ms, .count = 1};
	json_span_text(json_span_get(event, "type"), x->type, sizeof x->type);
	json_span_text(json_span_get(event, "reason"), x->reason, sizeof x->reason);
	json_span_text(json_span_get(json_span_get(event, "source"), "component"), x->from, sizeof x->from);
	json_span_text(json_span_get(event, "message"), x->message, sizeof x->message);
	json_span_i64(json_span_get(event, "count"), 1, INT32_MAX, &x->count);
	return 0;
}

static void policy_events_write(const struct policy_events *v, struct json_writer *w)
{
	json_write_member_array(w, "events");
	for (size_t i = 0; i < v->n; i++) {
		const struct policy_event *x = &v->items[i];
		json_write_object_begin(w);
		if (x->last_ms)
			json_write_member_time(w, "time", x->last_ms);
		json_write_format(w, "type:%s,reason:%s,count:%ld,from:%s", x->type, x->reason, x->count, x->from);
		json_write_member_text(w, "message", x->message);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void policy_events_render(const struct policy_events *v, struct buf *out, int64_t now_ms)
{
	struct table t;
	buf_puts(out, "Events:\n");
	table_init_wide(&t, "LAST SEEN\t!TYPE\tREASON\tCOUNT\tFROM\tMESSAGE", false, policy_render_tone);
	for (size_t i = 0; i < v->n; i++) {
		const struct policy_event *x = &v->items[i];
		table_put(&t, "%s\t%s\t%s\t%lld\t%s\t%s", table_age(x->last_ms, now_ms).text, table_or_none(x->type),
		          table_or_none(x->reason), (long long)x->count, table_or_none(x->from), x->message);
	}
	table_finish(&t, out, 2, true);
	if (v->total > v->n)
		print_to(out, "  (the newest %zu of %zu)\n", v->n, v->total);
}

// ---- details ----

#define LABEL_WIDTH  18
#define SHOWN_BYTES  1024
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

static void put_line(struct buf *out, const char *label, const char *text)
{
	struct table t;
	table_init(&t, "\t");
	t.gap = 2;
	t.widths[0] = LABEL_WIDTH - 2;
	table_put(&t, "%s\t%s", label, text);
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
	char time[NUM_TEXT_BYTES];
	if (since_ms == 0) {
		put_line(out, label, never);
		return;
	}
	num_format_rfc3339_ms(time, since_ms - since_ms % 1000);
	print_to(out, "%-*s%s (%s ago)\n", LABEL_WIDTH, label, time, table_age(since_ms, now_ms).text);
}

static void put_signal(struct table *t, const struct status_view *s, size_t i, int64_t now_ms)
{
	const struct status_view_signal *x = &s->signals[i];
	struct table_text value, target;
	table_put(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s", table_or_none(x->name), policy_render_number(&value, x->value),
	          policy_render_number(&target, x->target), table_number(x->proposal_set, x->proposal, "<none>").text,
	          table_or_none(x->state), table_or_none(x->reason), table_since(x->sample_ms, now_ms).text);
}

static void put_variant(struct table *t, const struct status_view *s, size_t i, int64_t now_ms)
{
	const struct status_view_variant *v = &s->variants[i];
	table_put(t, "%s\t%s/%s\t%d\t%s\t%d\t%s\t%s", table_or_none(v->name), v->kind ? v->kind : "",
	          v->target ? v->target : "", v->current, table_number(v->ready_set, v->ready, "<unknown>").text,
	          v->desired, table_or_none(v->reason), v->message ? v->message : "");
}

static void put_condition(struct table *t, const struct status_view *s, size_t i, int64_t now_ms)
{
	const struct status_view_condition *c = &s->conditions[i];
	table_put(t, "%s\t%s\t%s\t%s\t%s", table_or_none(c->type), table_or_none(c->status), table_or_none(c->reason),
	          table_since(c->since_ms, now_ms).text, c->message ? c->message : "");
}

static void put_decision(struct table *t, const struct status_view *s, size_t i, int64_t now_ms)
{
	const struct status_view_decision *d = &s->decisions[s->n_decisions - 1 - i]; // newest first
	table_put(t, "%s\t%s\t%d\t%d\t%s\t%s", table_since(d->time_ms, now_ms).text, table_or_none(d->action), d->from,
	          d->to, table_or_none(d->reason), d->message ? d->message : "");
}

// The lists of a status, each a table; one that is empty is shown as "<none>" where has_none is true.
// clang-format off
static const struct section {
	const char *label;
	size_t count; // offset of the number of its rows
	bool has_none;
	void (*put_row)(struct table *t, const struct status_view *s, size_t i, int64_t now_ms);
	const char *heads;
} sections[] = {
	{"Signals:",    offsetof(struct status_view, n_signals),    true,  put_signal,    "NAME\tVALUE\tTARGET\tWANTS\t!STATE\t!REASON\tSAMPLE"},
	{"Variants:",   offsetof(struct status_view, n_variants),   false, put_variant,   "NAME\tTARGET\tREPLICAS\tREADY\tDESIRED\t!REASON\tMESSAGE"},
	{"Conditions:", offsetof(struct status_view, n_conditions), true,  put_condition, "TYPE\tSTATUS\t!REASON\tSINCE\tMESSAGE"},
	{"Decisions:",  offsetof(struct status_view, n_decisions),  true,  put_decision,  "AGE\tACTION\tFROM\tTO\t!REASON\tMESSAGE"},
};
// clang-format on

static void put_section(struct buf *out, const struct section *x, const struct status_view *s, int64_t now_ms)
{
	struct table t;
	size_t n = *(const size_t *)(const void *)((const char *)s + x->count);
	if (n == 0 && x->has_none)
		put_line(out, x->label, "<none>");
	if (n == 0)
		return;
	print_to(out, "%s\n", x->label);
	table_init_wide(&t, x->heads, false, policy_render_tone);
	for (size_t i = 0; i < n; i++)
		x->put_row(&t, s, i, now_ms);
	table_finish(&t, out, 2, true);
}

// What the status says of a target: the only one of the policy, or one of several.
static void put_status(struct buf *out, const struct policy_view *p, int64_t now_ms)
{
	const struct status_view *s = &p->status;
	put_replicas(out, p);
	put_line(out, "Action:", table_or_none(s->action));
	put_line(out, "Reason:", table_or_none(s->reason));
	put_line(out, "Message:", table_or_none(s->message));
	put_age(out, "Last scale:", s->last_scale_ms, now_ms, "<none>");
	if (s->startup_set)
		print_to(out, "%-*s%d s, learnt\n", LABEL_WIDTH, "Start-up time:", s->startup_seconds);
	put_age(out, "Status written:", s->updated_ms, now_ms, "never: is the controller running?");
	if (p->status_fault)
		put_line(out, "Status fault:", p->status_fault);
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		put_section(out, &sections[i], s, now_ms);
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
	snprintf(text, sizeof text, "%s to %s", p->min, table_or_none(p->max));
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

// ---- the command ----

// The server sorts Events by name, so the latest may be on any page: all pages are read.
static int fetch_events(struct connections *session, const char *kind, const struct policy_view *p,
                        struct policy_events *events, struct err *e)
{
	static const struct kube_pages pages = {"Events", EVENTS_PAGES_MAX, policy_events_add, policy_events_init};
	char path[POLICY_PATH_BYTES_MAX], selector[POLICY_PATH_BYTES_MAX];
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/events", p->namespace_name);
	snprintf(selector, sizeof selector, "fieldSelector=involvedObject.kind=%s,involvedObject.name=%s", kind,
	         p->name);
	policy_events_init(events);
	return kube_pages_fetch(session, &pages, path, selector, events, e);
}

static void describe_all(struct buf *out, struct connections *session, const struct policy_views *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct err e = {0};
		struct policy_events events;
		int rc = fetch_events(session, object_kind_info(v->kind)->kind, &v->items[i], &events, &e);
		buf_puts(out, i > 0 ? "\n\n" : "");
		policy_render_describe(out, &v->items[i], rc < 0 ? NULL : &events, e.msg,
		                       clock_wall_ms(&session->clock));
	}
}

// A List of the objects, each with its Events; "eventsError" where these cannot be read.
static void write_all(struct buf *out, struct connections *session, const struct policy_views *v)
{
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{items:[");
	for (size_t i = 0; i < v->n; i++) {
		struct err e = {0};
		struct policy_events events;
		json_write_object_begin(&w);
		json_write_key(&w, "object");
		policy_render_object(&w, &v->items[i]);
		if (fetch_events(session, object_kind_info(v->kind)->kind, &v->items[i], &events, &e) == 0)
			policy_events_write(&events, &w);
		else
			json_write_member_text(&w, "eventsError", e.msg);
		json_write_object_end(&w);
	}
	json_write_format(&w, "]}");
}

static int print(void *arg, struct connections *session, struct policy_views *v, struct buf *out)
{
	const struct describe_args *a = arg;
	if (output_is_document(a->output))
		write_all(out, session, v);
	else if (a->output == OUTPUT_NAME)
		policy_render_list(out, v, NULL, OUTPUT_NAME, false, false, 0);
	else
		describe_all(out, session, v);
	return EXIT_OK;
}

int cmd_describe(int argc, char **argv)
{
	struct describe_args args = {.output = OUTPUT_TEXT,
	                             .scope.kinds = 1U << OBJECT_POLICY | 1U << OBJECT_SCALED_OBJECT};
	args_parse(&command, argc, argv, &args);
	return policy_fetch_run(&args.scope, "gpuscale describe", args.output, print, &args);
}
