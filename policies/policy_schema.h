// SPDX-License-Identifier: Apache-2.0
// The one table of policy fields: decoder, defaults, ranges, `check`, `explain`, and later CRD and reference page come
// from it.
#ifndef GPUSCALE_POLICIES_POLICY_SCHEMA_H
#define GPUSCALE_POLICIES_POLICY_SCHEMA_H

#include <string.h>

#include "base/arena.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema.h"
#include "policies/policy.h"

#define POLICY_API_VERSION "gpuscale.dev/v1alpha1"
#define POLICY_KIND        "GPUAutoscaler"
// "true" does what spec.paused and spec.dryRun do
#define POLICY_ANNOTATION_PAUSED  "gpuscale.dev/paused"
#define POLICY_ANNOTATION_DRY_RUN "gpuscale.dev/dry-run"

// Root object: apiVersion, kind, metadata, spec. Decodes straight into struct policy; its validate hooks hold the
// cross-field rules (min <= max, low < high, exactly one of target and watermarks, duplicate signal names, ...).
// Use policy_decode() rather than schema_decode() with it.
const struct schema *policy_schema(void);

// Second half of decoding, while the document still lives: `combine` from its text (but for a formula), `paused` and
// `dry_run` from the annotations.
void policy_settle(struct policy *policy);

// Compiles the formula of `combine` into `a`. 0, or -1 with the fault added to errors. Inline like policy_decode():
// the core asks nothing of base/.
static inline int policy_compile_formula(const struct doc_node *node, struct policy *policy, struct arena *a,
                                         struct schema_errors *errors)
{
	static const char path[] = "spec.combine";
	const struct doc_node *text = doc_get(doc_get(node, "spec"), "combine");
	const char *names[POLICY_SIGNALS_MAX];
	struct formula_op ops[FORMULA_OPS_MAX], *kept;
	struct formula_fault fault;
	if (!text || policy->n_signals == 0)
		return 0; // reported by then
	for (size_t i = 0; i < policy->n_signals; i++) {
		names[i] = policy->signals[i].name;
		if (!names[i])
			return 0;
	}
	if (formula_compile(text->text, text->text_len, names, policy->n_signals, ops, &policy->formula, &fault) < 0) {
		char word[64];
		size_t n = fault.len < sizeof word ? fault.len : sizeof word - 1;
		memcpy(word, text->text + fault.offset, n);
		word[n] = '\0';
		const char *close = fault.is_name ? num_closest_name(word, names, policy->n_signals) : NULL;
		if (n == 0)
			schema_report_text(errors, text, path, fault.offset, 0, "the formula ends too early");
		else if (close)
			schema_report_text(errors, text, path, fault.offset, fault.len,
			                   "%s is no signal of this policy, did you mean %s?", word, close);
		else
			schema_report_text(errors, text, path, fault.offset, fault.len, "%s%s %s", word,
			                   n < fault.len ? "..." : "", fault.message);
		return -1;
	}
	kept = (struct formula_op *)arena_calloc(a, policy->formula.n_ops, sizeof *kept);
	if (!kept) {
		schema_report(errors, text, path, "does not fit into the memory allowed");
		return -1;
	}
	memcpy(kept, ops, policy->formula.n_ops * sizeof *kept);
	policy->formula.ops = kept;
	return 0;
}

// forecast.horizon from its text: a duration, or Startup. 0, or -1 with the fault added to errors.
static inline int policy_settle_horizon(const struct doc_node *node, struct policy *policy,
                                        struct schema_errors *errors)
{
	struct policy_forecast *f = &policy->forecast;
	const struct doc_node *text = doc_get(doc_get(doc_get(node, "spec"), "forecast"), "horizon");
	struct err e;
	f->horizon_ms = FORECAST_HORIZON_STARTUP;
	if (!f->set || !f->horizon_text || strcmp(f->horizon_text, "Startup") == 0)
		return 0;
	int64_t longest_ms = f->model == FORECAST_LINEAR ? f->window_ms : f->season_ms;
	if (num_parse_duration_ms(f->horizon_text, strlen(f->horizon_text), &f->horizon_ms, &e) < 0)
		schema_report(errors, text, "spec.forecast.horizon", "must be a duration or Startup: %s", e.msg);
	else if (f->horizon_ms == 0 || f->horizon_ms > longest_ms)
		schema_report(errors, text, "spec.forecast.horizon",
		              "must be longer than 0s and not longer than the %s",
		              f->model == FORECAST_LINEAR ? "window" : "season");
	else
		return 0;
	f->horizon_ms = FORECAST_HORIZON_STARTUP;
	return -1;
}

// panic.window from its text: a share of the signal's window, or a duration. 0, or -1 with the fault added to errors.
static inline int policy_settle_panic(const struct doc_node *node, struct policy *policy, struct schema_errors *errors)
{
	static const char path[] = "spec.panic.window";
	struct policy_panic *p = &policy->panic;
	if (!p->set || !p->window_text || !p->signal || p->signal_index >= policy->n_signals ||
	    !policy->signals[p->signal_index].name || strcmp(policy->signals[p->signal_index].name, p->signal) != 0)
		return 0; // reported by then
	const struct doc_node *panic = doc_get(doc_get(node, "spec"), "panic"), *text = doc_get(panic, "window");
	text = text ? text : panic;
	int64_t stable_ms = policy->signals[p->signal_index].window.duration_ms;
	size_t len = strlen(p->window_text);
	double percent = 0;
	struct err e;
	if (len > 0 && p->window_text[len - 1] == '%') {
		if (num_parse_f64(p->window_text, len - 1, &percent, &e) < 0 || !(percent > 0 && percent <= 100)) {
			schema_report(errors, text, path, "must be a share of up to 100%%, as in 10%%");
			return -1;
		}
		p->window_ms = (int64_t)((double)stable_ms * percent / 100);
	} else if (num_parse_duration_ms(p->window_text, len, &p->window_ms, &e) < 0) {
		schema_report(errors, text, path,
		              "must be a share of the signal's window, as in 10%%, or a duration: %s", e.msg);
		return -1;
	}
	if (stable_ms == 0 || policy->signals[p->signal_index].window.aggregate != WINDOW_AVG)
		return 0; // reported by then
	if (p->window_ms < policy->interval_ms || p->window_ms > stable_ms) {
		schema_report(errors, text, path,
		              "must be at least one interval and at most the signal's window, is %.6g s",
		              (double)p->window_ms / 1000);
		return -1;
	}
	return 0;
}

// One document -> *policy (zeroed by the caller). Strings and lists live in `a`; the document is not needed afterwards.
// 0, or -1 with the faults added to errors. Fields that the table does not know are added to `unknown`, which may be
// errors itself: then they are faults.
static inline int policy_decode_tolerant(const struct doc_node *node, struct policy *policy, struct arena *a,
                                         struct schema_errors *errors, struct schema_errors *unknown)
{
	int rc = schema_decode_tolerant(policy_schema(), node, policy, a, errors, unknown, "");
	policy_settle(policy);
	if (policy->combine == COMBINE_FORMULA && policy_compile_formula(node, policy, a, errors) < 0)
		rc = -1;
	if (policy_settle_panic(node, policy, errors) < 0)
		rc = -1;
	if (policy_settle_horizon(node, policy, errors) < 0)
		rc = -1;
	return rc;
}

// As a file is decoded: what the table does not know is a fault.
static inline int policy_decode(const struct doc_node *node, struct policy *policy, struct arena *a,
                                struct schema_errors *errors)
{
	return policy_decode_tolerant(node, policy, a, errors, errors);
}

#endif
