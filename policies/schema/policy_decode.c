// SPDX-License-Identifier: Apache-2.0
// Decodes one GPUAutoscaler document into its rules and its target: the schema table, then every field that needs more
// than one other field to be understood.
#include "base/base.h"
#include "policies/schema/policy_schema.h"

#include "base/arena.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema_private.h"

// ---- combine, signals[].formula ----

// Reports what formula_compile() found wrong, with a caret under the word at fault.
static void report_formula(const struct doc_node *text, const char *path, const struct formula_fault *fault,
                           const char *const *names, size_t n_names, struct schema_errors *errors)
{
	char word[64];
	size_t n = fault->len < sizeof word ? fault->len : sizeof word - 1;
	memcpy(word, text->text + fault->offset, n);
	word[n] = '\0';
	const char *close = fault->is_name ? num_closest_name(word, names, n_names) : NULL;
	if (n == 0)
		schema_report_text(errors, text, path, fault->offset, 0, "the formula ends too early");
	else if (close)
		schema_report_text(errors, text, path, fault->offset, fault->len,
		                   "%s is not a signal of this policy, did you mean %s?", word, close);
	else
		schema_report_text(errors, text, path, fault->offset, fault->len, "%s%s %s", word,
		                   n < fault->len ? "..." : "", fault->message);
}

// Compiles a formula into `a`. Signals without a name have been reported already.
static void compile_formula(const struct doc_node *text, const char *path, const struct policy *policy,
                            enum formula_names meaning, struct formula *ret_formula, struct arena *a,
                            struct schema_errors *errors)
{
	const char *names[POLICY_SIGNALS_MAX];
	struct formula_op ops[FORMULA_OPS_MAX], *kept;
	struct formula_fault fault;
	if (!text || text->kind != DOC_SCALAR || policy->n_signals == 0)
		return;
	for (size_t i = 0; i < policy->n_signals; i++) {
		names[i] = policy->signals[i].name;
		if (!names[i])
			return;
	}
	if (formula_compile(text->text, text->text_len, names, policy->n_signals, meaning, ops, ret_formula, &fault) <
	    0) {
		report_formula(text, path, &fault, names, policy->n_signals, errors);
		return;
	}
	kept = (struct formula_op *)arena_calloc(a, ret_formula->n_ops, sizeof *kept);
	if (kept)
		memcpy(kept, ops, ret_formula->n_ops * sizeof *kept);
	else
		schema_report(errors, text, path, "does not fit into the memory allowed");
	ret_formula->ops = kept;
}

static void compile_formulas(const struct doc_node *node, struct policy *policy, struct arena *a,
                             struct schema_errors *errors)
{
	const struct doc_node *spec = doc_get(node, "spec"), *signals = doc_get(spec, "signals");
	const struct doc_node *signal = signals && signals->kind == DOC_SEQ ? signals->child : NULL;
	if (policy->combine == COMBINE_FORMULA)
		compile_formula(doc_get(spec, "combine"), "spec.combine", policy, FORMULA_PROPOSALS, &policy->formula,
		                a, errors);
	for (size_t i = 0; i < policy->n_signals; i++)
		policy->formulas |= policy->signals[i].formula_text ? UINT32_C(1) << i : 0;
	struct formula *values = policy->formulas ? arena_calloc(a, policy->n_signals, sizeof *values) : NULL;
	policy->value_formulas = values;
	if (policy->formulas && !values)
		schema_report(errors, signals, "spec.signals", "does not fit into the memory allowed");
	for (size_t i = 0; values && signal && i < policy->n_signals; i++, signal = signal->next) {
		const struct doc_node *text = doc_get(signal, "formula");
		char path[SCHEMA_PATH_BYTES];
		snprintf(path, sizeof path, "spec.signals[%zu].formula", i);
		if (!(policy->formulas >> i & 1))
			continue;
		compile_formula(text, path, policy, FORMULA_VALUES, &values[i], a, errors);
		if (values[i].reads & policy->formulas)
			schema_report(errors, text, path,
			              "names a signal that is a formula itself: write that formula in its place");
		policy->inputs |= values[i].reads;
	}
}

// ---- forecast.horizon: a duration, or Startup ----

static void decode_horizon(const struct doc_node *node, struct policy *policy, struct schema_errors *errors)
{
	struct policy_forecast *f = &policy->forecast;
	const struct doc_node *text = doc_get(doc_get(doc_get(node, "spec"), "forecast"), "horizon");
	struct err e;
	f->horizon_ms = FORECAST_HORIZON_STARTUP;
	if (!f->set || !f->horizon_text || strcmp(f->horizon_text, "Startup") == 0)
		return;
	int64_t longest_ms = f->model == FORECAST_LINEAR ? f->window_ms : f->season_ms;
	if (num_parse_duration_ms(f->horizon_text, strlen(f->horizon_text), &f->horizon_ms, &e) < 0)
		schema_report(errors, text, "spec.forecast.horizon", "must be a duration or Startup: %s", e.msg);
	else if (f->horizon_ms == 0 || f->horizon_ms > longest_ms)
		schema_report(errors, text, "spec.forecast.horizon",
		              "must be longer than 0s and not longer than the %s",
		              f->model == FORECAST_LINEAR ? "window" : "season");
	else
		return;
	f->horizon_ms = FORECAST_HORIZON_STARTUP;
}

// ---- panic.window: a share of the signal's window, or a duration ----

// A signal that is missing or has no suitable window has been reported already.
static void decode_panic_window(const struct doc_node *node, struct policy *policy, struct schema_errors *errors)
{
	static const char path[] = "spec.panic.window";
	struct policy_panic *p = &policy->panic;
	if (!p->set || !p->window_text || !p->signal || p->signal_index >= policy->n_signals ||
	    !policy->signals[p->signal_index].name || strcmp(policy->signals[p->signal_index].name, p->signal) != 0)
		return;
	const struct doc_node *panic = doc_get(doc_get(node, "spec"), "panic"), *text = doc_get(panic, "window");
	text = text ? text : panic;
	const struct policy_window *stable = &policy->signals[p->signal_index].window;
	size_t len = strlen(p->window_text);
	double percent = 0;
	struct err e;
	if (len > 0 && p->window_text[len - 1] == '%') {
		if (num_parse_f64(p->window_text, len - 1, &percent, &e) < 0 || !(percent > 0 && percent <= 100)) {
			schema_report(errors, text, path, "must be a share of up to 100%%, as in 10%%");
			return;
		}
		p->window_ms = (int64_t)((double)stable->duration_ms * percent / 100);
	} else if (num_parse_duration_ms(p->window_text, len, &p->window_ms, &e) < 0) {
		schema_report(errors, text, path,
		              "must be a share of the signal's window, as in 10%%, or a duration: %s", e.msg);
		return;
	}
	if (stable->duration_ms > 0 && stable->aggregate == WINDOW_AVG &&
	    (p->window_ms < policy->interval_ms || p->window_ms > stable->duration_ms))
		schema_report(errors, text, path,
		              "must be at least one interval and at most the signal's window, is %.6g s",
		              (double)p->window_ms / 1000);
}

// ---- signals: target or watermarks, but for those of the objective, of guards and of formulas ----

static bool has_field(const struct doc_node *map, const char *key)
{
	const struct doc_node *field = doc_get(map, key);
	return field && field->kind != DOC_NULL;
}

static bool is_text(const struct doc_node *a, const struct doc_node *b)
{
	return a && b && a->kind == DOC_SCALAR && b->kind == DOC_SCALAR && a->text_len == b->text_len &&
	       memcmp(a->text, b->text, a->text_len) == 0;
}

// Reads the document, so that this error is reported along with those of other signals.
static void check_thresholds(const struct doc_node *node, uint32_t inputs, struct schema_errors *errors)
{
	const struct doc_node *spec = doc_get(node, "spec"), *signals = doc_get(spec, "signals");
	const struct doc_node *objective = doc_get(spec, "objective"), *guards = doc_get(spec, "guards");
	const struct doc_node *signal = signals && signals->kind == DOC_SEQ ? signals->child : NULL;
	for (size_t i = 0; signal && i < POLICY_SIGNALS_MAX; i++, signal = signal->next) {
		const struct doc_node *name = doc_get(signal, "name");
		if ((inputs >> i & 1) || signal->kind != DOC_MAP || has_field(signal, "target") ||
		    has_field(signal, "watermarks") || is_text(name, doc_get(objective, "demand")) ||
		    is_text(name, doc_get(objective, "backlog")) || is_text(name, doc_get(objective, "utilization")) ||
		    is_text(name, doc_get(objective, "measured")) ||
		    is_text(name, doc_get(doc_get(guards, "minMarginalGain"), "signal")) ||
		    is_text(name, doc_get(doc_get(guards, "maxThrottledShare"), "signal")))
			continue;
		char path[SCHEMA_PATH_BYTES];
		snprintf(path, sizeof path, "spec.signals[%zu]", i);
		schema_report(errors, signal, path, "needs target or watermarks: add one of them%s",
		              objective ? "; only the signals that objective names, and those of guards and formulas, "
		                          "take neither"
		                        : "");
	}
}

// ---- scaleTargetRef, scaleTargets or variants ----

// Reads the document, so that this error is reported along with those of other fields.
static void check_target(const struct doc_node *node, struct schema_errors *errors)
{
	static const char *const fields[] = {"scaleTargetRef", "scaleTargets", "variants"};
	const struct doc_node *spec = doc_get(node, "spec");
	const char *first = NULL, *second = NULL;
	if (!spec || spec->kind != DOC_MAP)
		return;
	for (size_t i = 0; i < 3; i++)
		if (has_field(spec, fields[i]))
			*(first ? &second : &first) = fields[i];
	char path[64];
	snprintf(path, sizeof path, "spec.%s", second ? second : "scaleTargetRef");
	if (second)
		schema_report(errors, doc_get(spec, second), path, "cannot be combined with %s: remove one of them",
		              first);
	else if (!first)
		schema_report(
		        errors, spec, path,
		        "required, but missing: add it (object), or variants or scaleTargets for several targets");
}

// ---- objective.late: a percentage ----

#define LATE_MIN_PERCENT 0.01
#define LATE_MAX_PERCENT 50

static void decode_late(const struct doc_node *node, struct policy *policy, struct schema_errors *errors)
{
	struct policy_objective *o = &policy->objective;
	size_t len = o->late_text ? strlen(o->late_text) : 0;
	double percent = 0;
	struct err e;
	if (!o->set || !o->late_text)
		return;
	if (len < 2 || o->late_text[len - 1] != '%' || num_parse_f64(o->late_text, len - 1, &percent, &e) < 0 ||
	    !(percent >= LATE_MIN_PERCENT && percent <= LATE_MAX_PERCENT))
		schema_report(errors, doc_get(doc_get(doc_get(node, "spec"), "objective"), "late"),
		              "spec.objective.late", "must be a percentage from 0.01%% to 50%%, as in 1%%");
	else
		o->late_ratio = percent / 100;
}

// ---- the whole document ----

static size_t index_or_zero(const struct policy *policy, bool is_set, const char *name)
{
	size_t i = is_set && name ? policy_signal_index(policy, name) : 0;
	return i < policy->n_signals ? i : 0;
}

// Returns the number by which the whole query is divided at its end, as in `sum(rate(x[1m])) / 900`; 0 when there is
// none. What divides one term of a sum does not count.
static double divisor_of(const char *query)
{
	size_t n = query ? strlen(query) : 0, slash = 0;
	int depth = 0;
	char quote = 0;
	struct err e;
	double divisor = 0;
	while (n > 0 && strchr(" \t\r\n", query[n - 1]))
		n--;
	for (size_t i = 0; i < n; i++) {
		char c = query[i];
		if (quote && c == '\\' && quote != '`')
			i++;
		else if (quote)
			quote = c == quote ? 0 : quote;
		else if (strchr("\"'`", c))
			quote = c;
		else if (strchr("([{", c))
			depth++;
		else if (strchr(")]}", c))
			depth--;
		else if (depth == 0 && strchr("+-#", c))
			return 0;
		else if (depth == 0 && c == '/')
			slash = i;
	}
	for (slash += slash > 0; slash < n && strchr(" \t\r\n", query[slash]);)
		slash++;
	return slash > 0 && num_parse_f64(query + slash, n - slash, &divisor, &e) == 0 && divisor > 0 ? divisor : 0;
}

static void parse_schedules(struct policy *policy)
{
	for (size_t i = 0; i < policy->n_schedules; i++) {
		struct policy_schedule *s = &policy->schedules[i];
		if (!s->start_text || !s->end_text || cron_parse(&s->start, s->start_text) ||
		    cron_parse(&s->end, s->end_text))
			s->start = s->end = (struct cron){0}; // the schedule has been reported already
	}
}

int policy_decode_tolerant(const struct doc_node *node, struct policy_document *ret_document, struct arena *a,
                           struct schema_errors *errors, struct schema_errors *unknown)
{
	size_t before = errors->n + errors->dropped;
	schema_decode_tolerant(&policy_schema, node, ret_document, a, errors, unknown, "");
	struct policy *policy = &ret_document->policy;
	policy->combine = policy->combine_text ? policy_schema_combine(policy->combine_text) : COMBINE_MAX;
	struct policy_idle *idle = &policy->idle;
	idle->activation.index = index_or_zero(policy, idle->set, idle->activation.signal);
	for (size_t i = 0; i < idle->n_any_of; i++)
		idle->any_of[i].index = index_or_zero(policy, idle->set, idle->any_of[i].signal);
	policy->forecast.signal_index = index_or_zero(policy, policy->forecast.set, policy->forecast.signal);
	policy->panic.signal_index = index_or_zero(policy, policy->panic.set, policy->panic.signal);
	struct policy_objective *o = &policy->objective;
	o->demand_index = index_or_zero(policy, o->set, o->demand);
	o->backlog_index = index_or_zero(policy, o->set, o->backlog);
	o->utilization_index = index_or_zero(policy, o->utilization != NULL, o->utilization);
	o->measured_index = index_or_zero(policy, o->measured != NULL, o->measured);
	const bool has_signals = o->set && policy->n_signals > 0; // without any, their lack is reported
	const char *backlog = has_signals ? policy->signals[o->backlog_index].query : NULL;
	o->backlog_has_default = backlog && strstr(backlog, "vector(0)");
	o->divisor = has_signals ? divisor_of(policy->signals[o->demand_index].query) : 0;
	struct policy_guards *g = &policy->guards;
	g->gain.signal_index = index_or_zero(policy, g->gain.set, g->gain.signal);
	g->throttled.signal_index = index_or_zero(policy, g->throttled.set, g->throttled.signal);
	parse_schedules(policy);
	if (ret_document->variants.n > 0)
		ret_document->target = ret_document->variants.items[0].target;
	policy_schema_read_metadata(node, policy, a, errors);
	policy_schema_read_fleet(node, ret_document, a, errors);
	compile_formulas(node, policy, a, errors);
	decode_panic_window(node, policy, errors);
	decode_horizon(node, policy, errors);
	check_thresholds(node, policy->inputs, errors);
	decode_late(node, policy, errors);
	check_target(node, errors);
	return errors->n + errors->dropped == before ? 0 : -1;
}

int policy_decode(const struct doc_node *node, struct policy_document *ret_document, struct arena *a,
                  struct schema_errors *errors)
{
	return policy_decode_tolerant(node, ret_document, a, errors, errors);
}
