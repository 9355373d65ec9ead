// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/policy_render.h"

#include <cjson/cJSON.h>

#include "base/json/json_read.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/engine/reason.h"
#include "policies/price/price_book.h"
#include "policies/schema/binding.h"

#define NONE    "<none>"
#define UNKNOWN "<unknown>"

void policy_render_state(struct table *t, const char *word)
{
	static const struct {
		const char *word;
		enum table_tone tone;
	} words[] = {{"OK", TONE_GOOD},     {"Active", TONE_GOOD},     {"Normal", TONE_GOOD},    {"Warning", TONE_BAD},
	             {"Missing", TONE_BAD}, {"Ignored", TONE_WAITING}, {"Filling", TONE_WAITING}};
	enum table_tone tone = TONE_PLAIN;
	word = word && word[0] ? word : NONE;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(words[i].word, word) == 0)
			tone = words[i].tone;
	for (int i = REASON_DESIRED_WITHIN_RANGE; i < REASON__COUNT && tone == TONE_PLAIN; i++) {
		const struct reason_info *r = reason_info((enum reason)i);
		if (strcmp(r->name, word) == 0)
			tone = strcmp(r->event_type, "Warning") == 0 ? TONE_BAD
			       : i == REASON_DESIRED_WITHIN_RANGE ||
			                       (r->condition && strcmp(r->condition, "ScalingActive") == 0)
			               ? TONE_GOOD
			               : TONE_WAITING;
	}
	table_state(t, tone, word);
}

void policy_render_number(struct table *t, const char *number)
{
	double value;
	if (number && num_parse_f64(number, strlen(number), &value, NULL) == 0)
		table_cell(t, fabs(value) >= 1000 && fabs(value) < 1e15 ? "%.0f" : "%.3g", value);
	else
		table_text(t, number);
}

// Returns what the current replicas cost per hour; NaN: unknown. ret_basis may be NULL.
static double cost_of(const struct policy_view *p, const struct price_book *prices, enum price_basis *ret_basis)
{
	enum price_basis basis;
	int64_t micro = policy_gpu_micro(prices, p->gpu_model, &basis);
	if (ret_basis)
		*ret_basis = basis;
	if (!p->status.current_set || p->gpus_per_replica == 0 || basis == PRICE_NONE)
		return NAN;
	return (double)p->status.current * (double)p->gpus_per_replica * (double)micro / 1e6;
}

// "58.77 USD", with "~" for an assumed price.
static void cost_cell(struct table *t, const struct policy_view *p, const struct price_book *prices)
{
	enum price_basis basis;
	double cost = cost_of(p, prices, &basis);
	if (isnan(cost))
		table_cell(t, "<unknown>");
	else
		table_cell(t, "%s%.2f %s", basis == PRICE_ASSUMED ? "~" : "", cost, prices->currency);
}

static void put_name(struct buf *out, enum object_kind kind, const struct policy_view *p)
{
	print_to(out, "%s.%s/%s\n", object_kind_info(kind)->singular, object_kind_info(kind)->group, p->name);
}

// ---- get ----

void policy_render_table(struct table *t, bool wide, bool with_namespace)
{
	static const char *const heads[] = {"NAMESPACE", "NAME",    "TARGET", "MIN",   "MAX",      "CURRENT",
	                                    "DESIRED",   "REASON",  "+READY", "+MODE", "+SIGNALS", "+LAST SCALE",
	                                    "+GPUS",     "+COST/H", "AGE",    NULL};
	table_init_wide(t, heads + !with_namespace, wide);
}

static void put_row(struct table *t, const struct policy_view *p, const struct price_book *prices, bool with_namespace,
                    int64_t now_ms)
{
	const struct status_view *s = &p->status;
	if (with_namespace)
		table_text(t, p->namespace_name);
	table_text(t, p->name);
	table_cell(t, "%s/%s", p->target_kind, p->target_name);
	table_text(t, p->min);
	table_text(t, p->max);
	table_number(t, s->current_set, s->current, UNKNOWN);
	table_number(t, s->desired_set, s->desired, UNKNOWN);
	policy_render_state(t, s->reason);
	table_number(t, s->ready_set, s->ready, UNKNOWN);
	policy_render_state(t, policy_view_mode(p));
	table_text(t, s->summary);
	table_since(t, s->last_scale_ms, now_ms);
	table_number(t, s->current_set && p->gpus_per_replica > 0, p->gpus_per_replica * s->current, UNKNOWN);
	cost_cell(t, p, prices);
	table_since(t, p->created_ms, now_ms);
}

void policy_render_rows(struct table *t, const struct policy_view *p, const struct price_book *prices,
                        bool with_namespace, int64_t now_ms)
{
	size_t n;
	const struct policy_view *targets = policy_view_targets(p, &n);
	for (size_t i = 0; i < n; i++)
		put_row(t, &targets[i], prices, with_namespace, now_ms);
}

void policy_render_object(struct json_writer *w, const struct policy_view *p)
{
	cJSON *tree = json_read(p->json, strlen(p->json), NULL);
	if (tree)
		output_put_tree(w, tree);
	else
		w->out->failed = true;
	cJSON_Delete(tree);
}

static void write_list(struct buf *out, const struct policy_views *v, bool is_single)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	if (is_single && v->n == 1) {
		policy_render_object(&w, &v->items[0]);
	} else {
		json_write_object_begin(&w);
		json_write_member_str(&w, "apiVersion", "v1");
		json_write_member_str(&w, "kind", "List");
		json_write_member_array(&w, "items");
		for (size_t i = 0; i < v->n; i++)
			policy_render_object(&w, &v->items[i]);
		json_write_array_end(&w);
		json_write_object_end(&w);
	}
	buf_putc(out, '\n');
}

void policy_render_list(struct buf *out, const struct policy_views *v, const struct price_book *prices,
                        enum output_format format, bool is_single, bool with_namespace, int64_t now_ms)
{
	struct table t;
	bool wide = format == OUTPUT_WIDE;
	if (format == OUTPUT_JSON || format == OUTPUT_YAML) {
		write_list(out, v, is_single);
	} else if (format == OUTPUT_NAME) {
		for (size_t i = 0; i < v->n; i++)
			put_name(out, v->kind, &v->items[i]);
	} else if (v->n > 0) {
		policy_render_table(&t, wide, with_namespace);
		for (size_t i = 0; i < v->n; i++)
			policy_render_rows(&t, &v->items[i], prices, with_namespace, now_ms);
		table_finish(&t, out, 0, true);
	}
}

// ---- top ----

struct load {
	const struct policy_view *policy;
	const struct status_view_signal *signal; // NULL: the status has no signals
	double load;                             // value / target; -1: unknown
	double most;                             // of all signals of the policy
};

// NaN: absent, or not a number.
static double number_of(const char *text)
{
	double value;
	return text && num_parse_f64(text, strlen(text), &value, NULL) == 0 ? value : NAN;
}

static double load_of(const struct status_view_signal *s)
{
	double value = number_of(s->value), target = number_of(s->target);
	return value >= 0 && target > 0 ? value / target : -1;
}

static int compare_numbers(double a, double b)
{
	return (a < b) - (a > b); // larger first
}

// Invalid fields of a status are NULL, even if the table requires them.
static const char *signal_name(const struct load *l)
{
	return l->signal && l->signal->name ? l->signal->name : "";
}

static int compare_loads(const void *a, const void *b)
{
	const struct load *x = a, *y = b;
	int c = compare_numbers(x->most, y->most);
	c = c ? c : strcmp(x->policy->namespace_name, y->policy->namespace_name);
	c = c ? c : strcmp(x->policy->name, y->policy->name);
	c = c ? c : binding_key_compare(x->policy->key, y->policy->key);
	c = c ? c : compare_numbers(x->load, y->load);
	return c ? c : strcmp(signal_name(x), signal_name(y));
}

// Writes the loads of one target and returns how many; a target without signals has one without a signal.
static size_t add_loads(struct load *loads, const struct policy_view *p)
{
	size_t n = p->status.n_signals ? p->status.n_signals : 1;
	double most = -1;
	for (size_t k = 0; loads && k < n; k++) {
		const struct status_view_signal *s = p->status.n_signals ? &p->status.signals[k] : NULL;
		loads[k] = (struct load){.policy = p, .signal = s, .load = s ? load_of(s) : -1};
		most = fmax(most, loads[k].load);
	}
	for (size_t k = 0; loads && k < n; k++)
		loads[k].most = most;
	return n;
}

// Returns the number of the loads, and writes them unless `loads` is NULL.
static size_t collect_loads(const struct policy_views *v, struct load *loads)
{
	size_t n = 0, n_targets;
	for (size_t i = 0; i < v->n; i++) {
		const struct policy_view *targets = policy_view_targets(&v->items[i], &n_targets);
		for (size_t k = 0; k < n_targets; k++)
			n += add_loads(loads ? &loads[n] : NULL, &targets[k]);
	}
	return n;
}

static void load_row(struct table *t, const struct load *l, const struct price_book *prices, bool with_namespace,
                     int64_t now_ms)
{
	const struct policy_view *p = l->policy;
	const struct status_view_signal *s = l->signal;
	if (with_namespace)
		table_text(t, p->namespace_name);
	if (p->key)
		table_cell(t, "%s/%s", p->name, p->key);
	else
		table_text(t, p->name);
	table_text(t, s ? s->name : NULL);
	policy_render_number(t, s ? s->value : NULL);
	policy_render_number(t, s ? s->target : NULL);
	if (l->load >= 0)
		table_cell(t, "%.0f%%", 100 * l->load);
	else
		table_cell(t, NONE);
	table_number(t, p->status.current_set, p->status.current, UNKNOWN);
	table_number(t, s && s->proposal_set, s ? s->proposal : 0, UNKNOWN);
	policy_render_state(t, s ? s->state : NULL);
	cost_cell(t, p, prices);
	table_since(t, p->status.updated_ms, now_ms);
}

static void put_number(struct json_writer *w, const char *key, bool set, double value)
{
	json_write_member_f64(w, key, set ? value : NAN);
}

static void write_load(struct json_writer *w, const struct load *l, const struct price_book *prices)
{
	const struct policy_view *p = l->policy;
	const struct status_view_signal *s = l->signal;
	double cost = cost_of(p, prices, NULL);
	json_write_object_begin(w);
	json_write_member_str(w, "namespace", p->namespace_name);
	json_write_member_str(w, "name", p->name);
	if (p->key)
		json_write_member_str(w, "target", p->key);
	json_write_member_str(w, "signal", s ? s->name : NULL);
	put_number(w, "value", s != NULL, s ? number_of(s->value) : 0);
	put_number(w, "target", s != NULL, s ? number_of(s->target) : 0);
	put_number(w, "load", l->load >= 0, l->load);
	put_number(w, "replicas", p->status.current_set, p->status.current);
	put_number(w, "wants", s && s->proposal_set, s ? s->proposal : 0);
	json_write_member_str(w, "state", s ? s->state : NULL);
	put_number(w, "costPerHour", true, round(cost * 1e6) / 1e6);
	if (p->status.updated_ms)
		json_write_member_time(w, "time", p->status.updated_ms);
	json_write_object_end(w);
}

static void write_loads(struct buf *out, const struct load *loads, size_t n, const struct price_book *prices)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_str(&w, "currency", prices ? prices->currency : NULL);
	json_write_member_array(&w, "items");
	for (size_t i = 0; i < n; i++)
		write_load(&w, &loads[i], prices);
	json_write_array_end(&w);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

void policy_render_top(struct buf *out, const struct policy_views *v, const struct price_book *prices,
                       enum output_format format, bool with_namespace, bool with_head, int64_t now_ms)
{
	static const char *const heads[] = {"NAMESPACE", "NAME",  "SIGNAL", "VALUE",  "TARGET", "LOAD",
	                                    "REPLICAS",  "WANTS", "STATE",  "COST/H", "SEEN",   NULL};
	size_t n = collect_loads(v, NULL);
	struct load *loads = calloc(n ? n : 1, sizeof *loads);
	if (!loads) {
		out->failed = true;
		return;
	}
	collect_loads(v, loads);
	qsort(loads, n, sizeof *loads, compare_loads);
	if (output_is_document(format)) {
		write_loads(out, loads, n, prices);
	} else if (format == OUTPUT_NAME) {
		for (size_t i = 0; i < n; i++)
			if (i == 0 || loads[i].policy != loads[i - 1].policy)
				put_name(out, v->kind, loads[i].policy);
	} else if (n > 0) {
		struct table t;
		table_init(&t, heads + !with_namespace);
		for (size_t i = 0; i < n; i++)
			load_row(&t, &loads[i], prices, with_namespace, now_ms);
		table_finish(&t, out, 0, with_head);
	}
	free(loads);
}

// ---- plan ----

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
