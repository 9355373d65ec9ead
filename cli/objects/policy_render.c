// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/policy_render.h"

#include <cjson/cJSON.h>

#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/engine/reason.h"
#include "policies/schema/binding.h"

#define UNKNOWN "<unknown>"

enum table_tone policy_render_tone(const char *word)
{
	static const struct {
		const char *word;
		enum table_tone tone;
	} words[] = {{"OK", TONE_GOOD},     {"Active", TONE_GOOD},     {"Normal", TONE_GOOD},    {"Warning", TONE_BAD},
	             {"Missing", TONE_BAD}, {"Ignored", TONE_WAITING}, {"Filling", TONE_WAITING}};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(words[i].word, word) == 0)
			return words[i].tone;
	for (int i = REASON_DESIRED_WITHIN_RANGE; i < REASON__COUNT; i++) {
		const struct reason_info *r = reason_info((enum reason)i);
		if (strcmp(r->name, word) == 0)
			return strcmp(r->event_type, "Warning") == 0 ? TONE_BAD
			       : i == REASON_DESIRED_WITHIN_RANGE ||
			                       (r->condition && strcmp(r->condition, "ScalingActive") == 0)
			               ? TONE_GOOD
			               : TONE_WAITING;
	}
	return TONE_PLAIN;
}

const char *policy_render_number(struct table_text *out, const char *number)
{
	double value;
	if (!number || num_parse_f64(number, strlen(number), &value, NULL) < 0)
		return table_or_none(number);
	bool is_large = fabs(value) >= 1000 && fabs(value) < 1e15;
	snprintf(out->text, sizeof out->text, is_large ? "%.0f" : "%.3g", value);
	return out->text;
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
static struct table_text show_cost(const struct policy_view *p, const struct price_book *prices)
{
	enum price_basis basis;
	struct table_text t = {UNKNOWN};
	double cost = cost_of(p, prices, &basis);
	if (!isnan(cost))
		snprintf(t.text, sizeof t.text, "%s%.2f %s", basis == PRICE_ASSUMED ? "~" : "", cost, prices->currency);
	return t;
}

static void put_name(struct buf *out, enum object_kind kind, const struct policy_view *p)
{
	print_to(out, "%s.%s/%s\n", object_kind_info(kind)->singular, object_kind_info(kind)->group, p->name);
}

// ---- get ----

void policy_render_table(struct table *t, bool wide, bool with_namespace)
{
	static const char heads[] = "NAMESPACE\tNAME\tTARGET\tMIN\tMAX\tCURRENT\tDESIRED\t!REASON\t+READY\t+!MODE\t"
	                            "+SIGNALS\t+LAST SCALE\t+GPUS\t+COST/H\tAGE";
	table_init_wide(t, heads + (with_namespace ? 0 : strlen("NAMESPACE\t")), wide, policy_render_tone);
}

static void put_row(struct table *t, const struct policy_view *p, const struct price_book *prices, bool with_namespace,
                    int64_t now_ms)
{
	const struct status_view *s = &p->status;
	bool has_gpus = s->current_set && p->gpus_per_replica > 0;
	if (with_namespace)
		table_put(t, "%s", table_or_none(p->namespace_name));
	table_put(t, "%s\t%s/%s\t%s\t%s\t%s\t%s\t%s", table_or_none(p->name), p->target_kind, p->target_name,
	          table_or_none(p->min), table_or_none(p->max), table_number(s->current_set, s->current, UNKNOWN).text,
	          table_number(s->desired_set, s->desired, UNKNOWN).text, table_or_none(s->reason));
	table_put(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s", table_number(s->ready_set, s->ready, UNKNOWN).text,
	          policy_view_mode(p), table_or_none(s->summary), table_since(s->last_scale_ms, now_ms).text,
	          table_number(has_gpus, p->gpus_per_replica * s->current, UNKNOWN).text, show_cost(p, prices).text,
	          table_since(p->created_ms, now_ms).text);
}

void policy_render_rows(struct table *t, const struct policy_view *p, const struct price_book *prices,
                        bool with_namespace, int64_t now_ms)
{
	size_t n;
	const struct policy_view *targets = policy_view_targets(p, &n);
	for (size_t i = 0; i < n; i++)
		put_row(t, &targets[i], prices, with_namespace, now_ms);
}

// Writes a tree with the writer's indentation; the printer of cJSON supports only tabs.
static void put_tree(struct json_writer *w, const cJSON *node)
{
	if (cJSON_IsObject(node) || cJSON_IsArray(node)) {
		bool is_object = cJSON_IsObject(node);
		if (is_object)
			json_write_object_begin(w);
		else
			json_write_array_begin(w);
		for (const cJSON *c = node->child; c; c = c->next) {
			if (is_object)
				json_write_key(w, c->string);
			put_tree(w, c);
		}
		if (is_object)
			json_write_object_end(w);
		else
			json_write_array_end(w);
	} else if (cJSON_IsString(node)) {
		json_write_str(w, node->valuestring);
	} else if (cJSON_IsNumber(node)) {
		json_write_f64(w, node->valuedouble);
	} else if (cJSON_IsBool(node)) {
		json_write_bool(w, cJSON_IsTrue(node));
	} else {
		json_write_null(w);
	}
}

void policy_render_object(struct json_writer *w, const struct policy_view *p)
{
	cJSON *tree = json_read(p->json, strlen(p->json), NULL);
	if (tree)
		put_tree(w, tree);
	else
		w->out->failed = true;
	cJSON_Delete(tree);
}

static void write_list(struct buf *out, const struct policy_views *v, bool is_single)
{
	struct json_writer w = JSON_WRITER(out, 2);
	if (is_single && v->n == 1) {
		policy_render_object(&w, &v->items[0]);
	} else {
		json_write_format(&w, "{apiVersion:%s,kind:%s,items:[", "v1", "List");
		for (size_t i = 0; i < v->n; i++)
			policy_render_object(&w, &v->items[i]);
		json_write_format(&w, "]}");
	}
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
	const struct status_view_signal *signal; // empty where the status has no signals
	double load;                             // value / target; -1: unknown
	double most;                             // of all signals of the policy
};

// NaN: absent, or not a number.
static double number_of(const char *text)
{
	double value;
	return text && num_parse_f64(text, strlen(text), &value, NULL) == 0 ? value : NAN;
}

static int compare_numbers(double a, double b)
{
	return (a < b) - (a > b); // larger first
}

static int compare_loads(const void *a, const void *b)
{
	const struct load *x = a, *y = b;
	int c = compare_numbers(x->most, y->most);
	c = c ? c : strcmp(x->policy->namespace_name, y->policy->namespace_name);
	c = c ? c : strcmp(x->policy->name, y->policy->name);
	c = c ? c : binding_key_compare(x->policy->key, y->policy->key);
	c = c ? c : compare_numbers(x->load, y->load);
	// Invalid fields of a status are NULL, even if the table requires them.
	return c ? c : strcmp(x->signal->name ? x->signal->name : "", y->signal->name ? y->signal->name : "");
}

// Writes the loads of one target and returns how many; a target without signals has one without a signal.
static size_t add_loads(struct load *loads, const struct policy_view *p)
{
	static const struct status_view_signal none;
	size_t n = p->status.n_signals ? p->status.n_signals : 1;
	double most = -1;
	for (size_t k = 0; loads && k < n; k++) {
		const struct status_view_signal *s = p->status.n_signals ? &p->status.signals[k] : &none;
		double value = number_of(s->value), target = number_of(s->target);
		loads[k] =
		        (struct load){.policy = p, .signal = s, .load = value >= 0 && target > 0 ? value / target : -1};
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
	struct table_text value, target, load = {"<none>"};
	if (l->load >= 0)
		snprintf(load.text, sizeof load.text, "%.0f%%", 100 * l->load);
	if (with_namespace)
		table_put(t, "%s", table_or_none(p->namespace_name));
	table_put(t, "%s%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", table_or_none(p->name), p->key ? "/" : "",
	          p->key ? p->key : "", table_or_none(s->name), policy_render_number(&value, s->value),
	          policy_render_number(&target, s->target), load.text,
	          table_number(p->status.current_set, p->status.current, UNKNOWN).text,
	          table_number(s->proposal_set, s->proposal, UNKNOWN).text, table_or_none(s->state),
	          show_cost(p, prices).text, table_since(p->status.updated_ms, now_ms).text);
}

static void write_load(struct json_writer *w, const struct load *l, const struct price_book *prices)
{
	const struct policy_view *p = l->policy;
	const struct status_view_signal *s = l->signal;
	json_write_format(w, "{namespace:%s,name:%s", p->namespace_name, p->name);
	if (p->key)
		json_write_member_str(w, "target", p->key);
	json_write_format(w, "signal:%s,value:%g,target:%g,load:%g,replicas:%g,wants:%g,state:%s,costPerHour:%g",
	                  s->name, number_of(s->value), number_of(s->target), l->load >= 0 ? l->load : NAN,
	                  p->status.current_set ? p->status.current : (double)NAN,
	                  s->proposal_set ? s->proposal : (double)NAN, s->state,
	                  round(cost_of(p, prices, NULL) * 1e6) / 1e6);
	if (p->status.updated_ms)
		json_write_member_time(w, "time", p->status.updated_ms);
	json_write_object_end(w);
}

void policy_render_top(struct buf *out, const struct policy_views *v, const struct price_book *prices,
                       enum output_format format, bool with_namespace, bool with_head, int64_t now_ms)
{
	static const char heads[] =
	        "NAMESPACE\tNAME\tSIGNAL\tVALUE\tTARGET\tLOAD\tREPLICAS\tWANTS\t!STATE\tCOST/H\tSEEN";
	size_t n = collect_loads(v, NULL);
	struct load *loads = calloc(n ? n : 1, sizeof *loads);
	if (!loads) {
		out->failed = true;
		return;
	}
	collect_loads(v, loads);
	qsort(loads, n, sizeof *loads, compare_loads);
	if (output_is_document(format)) {
		struct json_writer w = JSON_WRITER(out, 2);
		json_write_format(&w, "{currency:%s,items:[", prices ? prices->currency : NULL);
		for (size_t i = 0; i < n; i++)
			write_load(&w, &loads[i], prices);
		json_write_format(&w, "]}");
	} else if (format == OUTPUT_NAME) {
		for (size_t i = 0; i < n; i++)
			if (i == 0 || loads[i].policy != loads[i - 1].policy)
				put_name(out, v->kind, loads[i].policy);
	} else if (n > 0) {
		struct table t;
		table_init_wide(&t, heads + (with_namespace ? 0 : strlen("NAMESPACE\t")), false, policy_render_tone);
		for (size_t i = 0; i < n; i++)
			load_row(&t, &loads[i], prices, with_namespace, now_ms);
		table_finish(&t, out, 0, with_head);
	}
	free(loads);
}

// ---- plan ----

static void put_summary(struct buf *out, const struct decided *items, size_t n, bool wide)
{
	struct table t;
	table_init_wide(
	        &t, "NAMESPACE\tNAME\tTARGET\tCURRENT\t+READY\t+PENDING\t+RANGE\tDESIRED\tACTION\t!REASON\t+MESSAGE",
	        wide, policy_render_tone);
	for (size_t i = 0; i < n; i++) {
		const struct policy *p = items[i].policy;
		const struct decision *d = items[i].decision;
		char message[RENDER_SENTENCE_BYTES];
		explain_message(&items[i], message);
		table_put(&t, "%s\t%s\t%s/%s\t%d\t%s\t%d\t%d..%d\t%d\t%s\t%s\t%s", p->namespace_name, p->name,
		          items[i].target->kind, items[i].target->name, d->current,
		          table_number(d->ready >= 0, d->ready, "?").text, d->pending, d->min_replicas, d->max_replicas,
		          d->desired, action_names[d->action], reason_info(d->reason)->name, message);
	}
	table_finish(&t, out, 0, true);
}

// As explain_trace(), on a terminal with wrapped sentences and colours.
static void put_trace(struct buf *out, const struct decided *d)
{
	struct table t;
	table_init_wide(&t, "\t\t!\t", false, policy_render_tone);
	t.gap = 2;
	t.widths[0] = 9;
	t.widths[1] = 10;
	t.widths[2] = 21;
	for (size_t i = 0; i < d->decision->n_trace; i++) {
		const struct trace_entry *e = decision_entry(d->decision, i);
		char sentence[RENDER_SENTENCE_BYTES];
		explain_sentence(d, e, sentence);
		table_put(&t, "%s", stage_name(e->stage));
		if (e->before != e->after)
			table_put(&t, "%d -> %d", e->before, e->after);
		else
			table_put(&t, "%d", e->after);
		table_put(&t, "%s\t%s", reason_info(e->reason)->name, sentence);
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
