// SPDX-License-Identifier: Apache-2.0
// The rules about a policy as a whole, and about its target.
#include "policies/lint/lint.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <strings.h>

#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema_rows.h"
#include "policies/engine/idle.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"
#include "policies/schema/binding.h"

#define START_LEAST_MS 60000 // a GPU pod that is ready sooner is rare
#define FRESH_LEAST    2     // scrapes that may be late

// A part of the policy, and where warnings about it go.
struct place {
	const struct doc_node *node;
	const char *path;
	struct schema_errors *warnings;
};

struct duration_text {
	char s[NUM_TEXT_BYTES];
};

static struct duration_text show(int64_t ms)
{
	struct duration_text t = {""};
	num_format_duration_ms(t.s, ms);
	return t;
}

const struct doc_node *lint_nearest(const struct doc_node *node, const char *a, const char *b)
{
	const struct doc_node *outer = a ? doc_get(node, a) : NULL, *inner = outer && b ? doc_get(outer, b) : NULL;
	return inner ? inner : outer ? outer : node;
}

// Warns about `a`.`b` of the place, about `a` without b, or about the place itself without both.
__attribute__((format(printf, 4, 5))) static void warn_at(const struct place *at, const char *a, const char *b,
                                                          const char *fmt, ...)
{
	char path[SCHEMA_PATH_BYTES], message[SCHEMA_MESSAGE_BYTES];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	snprintf(path, sizeof path, "%s%s%s%s%s", at->path, a ? "." : "", a ? a : "", b ? "." : "", b ? b : "");
	schema_report(at->warnings, lint_nearest(at->node, a, b), path, "%s", message);
}

// ---- the whole policy ----

static void lint_bounds(const struct policy *p, const struct place *at)
{
	bool varies = p->idle.set || p->n_schedules > 0; // idle and schedules have bounds of their own
	if (p->min_replicas == p->max_replicas && !varies)
		warn_at(at, "minReplicas", NULL,
		        "is maxReplicas, so that nothing is ever scaled: raise maxReplicas, or set paused");
}

static void lint_interval(const struct policy *p, const struct place *at)
{
	if (p->interval_ms < LINT_SCRAPE_MS * 2 / 3)
		warn_at(at, "interval", NULL,
		        "%s is shorter than the usual scrape of 15s: the same samples are looked at again; use 15s, or "
		        "scrape as often",
		        show(p->interval_ms).s);
}

static void lint_scale_down(const struct policy *p, const struct place *at)
{
	if (p->scale_down.select == SELECT_DISABLED)
		return;
	int64_t delay_ms = p->scale_down.stabilization_window_ms;
	if (p->cooldown.down_ms > delay_ms)
		delay_ms = p->cooldown.down_ms;
	int64_t sustain_ms = INT64_MAX; // the quickest signal decides only where all must agree, which Max asks for
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].sustain.down_ms < sustain_ms)
			sustain_ms = p->signals[i].sustain.down_ms;
	if (sustain_ms > delay_ms)
		delay_ms = sustain_ms;
	const struct place behavior = {lint_nearest(at->node, "behavior", NULL), "spec.behavior", at->warnings};
	if (delay_ms == 0)
		warn_at(&behavior, "scaleDown", "stabilizationWindowSeconds",
		        "is 0 and nothing else delays a scale-down: one low sample takes replicas away that need "
		        "minutes to come back; use 300");
	else if (delay_ms < START_LEAST_MS && !p->startup.given)
		warn_at(&behavior, "scaleDown", "stabilizationWindowSeconds",
		        "replicas are removed after %s, sooner than GPU pods start: use 300, or set startup.seconds",
		        show(delay_ms).s);
}

// The idle level has no effect while a schedule's bounds are below it (policies/engine/idle_stage.c).
static void lint_idle(const struct policy *p, const struct place *at)
{
	for (size_t i = 0; p->idle.set && i < p->n_schedules; i++) {
		const struct policy_schedule *schedule = &p->schedules[i];
		const struct doc_node *node = lint_element(doc_get(at->node, "schedules"), i);
		int32_t min, max;
		char path[64];
		schedule_bounds(p, schedule, &min, &max);
		if (schedule_prevents_idle(schedule) || p->idle.replicas <= min)
			continue;
		snprintf(path, sizeof path, "spec.schedules[%zu]", i);
		const struct place window = {node, path, at->warnings};
		warn_at(&window, NULL, NULL,
		        "sets the bounds %d to %d, and idle.replicas is %d: going idle would add replicas, so idle has "
		        "no effect while this schedule is in force; lower idle.replicas to %d",
		        min, max, p->idle.replicas, min);
	}
}

static bool is_busy_only(const struct lint_query *queries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (queries[i].signal->query &&
		    (queries[i].n_metrics == 0 || queries[i].n_metrics != queries[i].n_busy))
			return false;
	return n > 0;
}

// ---- one signal ----

static void lint_window(const struct policy *p, const struct policy_signal *s, const struct place *at)
{
	if (s->window.set && s->window.aggregate != WINDOW_LAST && s->window.duration_ms <= p->interval_ms)
		warn_at(at, "window", "duration",
		        "never holds more than one sample at an interval of %s: lengthen it, or leave the window out",
		        show(p->interval_ms).s);
	for (int up = 0; up < 2 && s->window.set; up++) {
		int64_t sustain_ms = up ? s->sustain.up_ms : s->sustain.down_ms;
		if (sustain_ms > s->window.duration_ms)
			warn_at(at, "sustain", up ? "up" : "down",
			        "%s is longer than the window of %s, which has forgotten the beginning by then: "
			        "lengthen the window, or let stabilizationWindowSeconds wait",
			        show(sustain_ms).s, show(s->window.duration_ms).s);
	}
	int64_t fresh_ms = FRESH_LEAST * (p->interval_ms < LINT_SCRAPE_MS ? p->interval_ms : LINT_SCRAPE_MS);
	if (s->stale_after_ms > 0 && s->stale_after_ms < fresh_ms)
		warn_at(at, "staleAfter", NULL,
		        "%s is less than two scrapes: one that is late holds the scale; use 60s",
		        show(s->stale_after_ms).s);
}

// If one more replica moves the signal below the low watermark, that replica is removed again.
static void lint_band(const struct policy *p, const struct policy_signal *s, const struct place *at)
{
	const struct policy_watermarks *m = &s->watermarks;
	int32_t n = p->min_replicas > 1 ? p->min_replicas : 1;
	double step = p->replica_multiple;
	if (!m->set || m->low <= 0)
		return;
	double after = m->high * (1 + m->tolerance_ratio) * n / (n + step), least = m->low * (1 - m->tolerance_ratio);
	if (after < least)
		warn_at(at, "watermarks", "low",
		        "is too near to high: at %d replicas one step up brings the load per replica from high to "
		        "%.3g, below low, and down it goes again; lower it to %.3g",
		        n, after, m->high * n / (n + step));
}

static void lint_missing(const struct policy_signal *s, const struct place *at)
{
	if (s->on_missing == ON_MISSING_ZERO && s->query && strstr(s->query, "DCGM_"))
		warn_at(at, "onMissing", NULL,
		        "a GPU always has a value, so no series means that its exporter is gone, not that it is idle: "
		        "use Hold");
}

// ---- marks outside of the range of a query ----

struct mark {
	const struct place *at;
	const char *group, *field;
	double low, high; // no value that is compared with the mark lies outside
};

struct widened_text {
	char s[64];
};

// A mark, and the value from which on it acts.
static struct widened_text show_mark(double mark, double acts)
{
	struct widened_text t;
	if (acts == mark)
		snprintf(t.s, sizeof t.s, "%g", mark);
	else
		snprintf(t.s, sizeof t.s, "%g (%g with its tolerance)", mark, acts);
	return t;
}

// Returns whether it warned.
static bool lint_upper_mark(const struct mark *m, const char *what, double mark, double acts)
{
	if (acts >= m->high)
		warn_at(m->at, m->group, m->field,
		        "%s %s is never exceeded, because the value is at most %g: nothing scales up; lower it", what,
		        show_mark(mark, acts).s, m->high);
	else if (acts < m->low)
		warn_at(m->at, m->group, m->field,
		        "%s %s is always exceeded, because the value is at least %g: raise it", what,
		        show_mark(mark, acts).s, m->low);
	else
		return false;
	return true;
}

static void lint_lower_mark(const struct mark *m, double mark, double acts)
{
	if (acts > m->high)
		warn_at(m->at, m->group, m->field,
		        "the low mark %s is above every value, which is at most %g: lower it", show_mark(mark, acts).s,
		        m->high);
	else if (mark != 0 && acts <= m->low) // 0: never scale down
		warn_at(m->at, m->group, m->field,
		        "no value is below the low mark %s, because it is at least %g: nothing scales down; raise it",
		        show_mark(mark, acts).s, m->low);
}

static void lint_range(const struct policy *p, const struct policy_signal *s, const struct lint_query *q,
                       const struct place *at)
{
	const struct policy_target *t = &s->target;
	const struct policy_watermarks *w = &s->watermarks;
	bool is_total = t->set ? t->type == TARGET_AVERAGE_VALUE : w->algorithm == WATERMARK_AVERAGE;
	int32_t least = is_total && p->n_schedules == 0 && p->min_replicas > 1 ? p->min_replicas : 1;
	int32_t most = is_total && p->max_replicas > 1 ? p->max_replicas : 1;
	struct mark m = {at, "target", "value", q->low / most, q->high / least};
	if (q->has_wrong_unit || s->series == SERIES_SUM)
		return;
	if (t->set && t->type != TARGET_REPLICAS) {
		double tolerance = p->scale_up.tolerance_set ? p->scale_up.tolerance_ratio : t->tolerance_ratio;
		lint_upper_mark(&m, "the target", t->value, t->value * (1 + tolerance));
	}
	if (!w->set)
		return;
	m.group = "watermarks";
	m.field = "high";
	if (lint_upper_mark(&m, "the high mark", w->high, w->high * (1 + w->tolerance_ratio)))
		return;
	m.field = "low";
	lint_lower_mark(&m, w->low, w->low * (1 - w->tolerance_ratio));
}

static void lint_activation(const struct policy *p, const struct policy_activation *a, const struct place *at,
                            const struct lint_query *queries)
{
	const struct lint_query *q = &queries[a->index];
	double above = a->above;
	if (p->signals[a->index].series == SERIES_SUM)
		return;
	const struct place idle = {doc_get(at->node, "idle"), "spec.idle", at->warnings};
	// A constant next to schedules leaves it to them to wake the target.
	bool is_left_to_schedules = false;
	for (size_t i = 0; i < p->n_schedules && q->low == q->high; i++)
		is_left_to_schedules |= schedule_prevents_idle(&p->schedules[i]);
	if (above >= q->high && is_left_to_schedules)
		return;
	if (above >= q->high)
		warn_at(&idle, "activation", "above",
		        "%g is never exceeded, because the value is at most %g: the signal never wakes the target up; "
		        "lower it",
		        above, q->high);
	else if (above < q->low)
		warn_at(&idle, "activation", "above",
		        "%g is always exceeded, because the value is at least %g: the target never idles; raise it",
		        above, q->low);
}

static void lint_forecast(const struct policy *p, const struct place *at)
{
	const struct policy_signal *s = p->forecast.set ? &p->signals[p->forecast.signal_index] : NULL;
	bool per_replica = s && ((s->target.set && s->target.type == TARGET_VALUE) ||
	                         (s->watermarks.set && s->watermarks.algorithm == WATERMARK_ABSOLUTE));
	if (per_replica && p->forecast.model == FORECAST_HOLT_WINTERS)
		warn_at(at, "forecast", "signal",
		        "%s is a value per replica, of which no source knows the past load: after every restart two "
		        "seasons are learnt anew; use a total (type AverageValue or Replicas)",
		        s->name);
	if (s && p->forecast.use == FORECAST_BOTH && p->forecast.band <= 0)
		schema_report(at->warnings, lint_nearest(at->node, "forecast", "use"), "spec.forecast.band",
		              "is 0 with use Both, which also scales down to the forecast: half of the time the load "
		              "is above it; use band \"1.3\", or use ScaleUpOnly");
}

// The rules of the objective are simulated without `behavior`: what it delays or shortens makes work late all the same.
static void lint_objective(const struct policy *p, const struct place *at)
{
	if (!p->objective.set)
		return;
	const struct doc_node *behavior = doc_get(at->node, "behavior");
	const struct doc_node *node = behavior ? behavior : lint_nearest(at->node, "objective", NULL);
	if (p->scale_down.stabilization_window_ms > 0)
		schema_report(at->warnings, node, "spec.behavior.scaleDown.stabilizationWindowSeconds",
		              "is %s, but the objective keeps replicas for a while itself, so this costs more than it "
		              "simulates: use 0",
		              show(p->scale_down.stabilization_window_ms).s);
	if (!p->scale_up.rates_set || p->scale_up.select == SELECT_DISABLED || p->scale_up.stabilization_window_ms > 0)
		schema_report(at->warnings, node, "spec.behavior.scaleUp",
		              "limits a scale-up that the objective asks for, so that work is late: use policies: "
		              "[{type: Pods, value: %d, periodSeconds: 15}]",
		              p->max_replicas);
}

// Returns whether only a running replica serves the metrics of the query: its engine, or the exporter of its GPU.
static bool needs_replica(const char *query)
{
	static const char *const served[] = {"vllm:", "sglang:", "tgi_", "nv_inference_", "trt", "DCGM_", NULL};
	for (size_t i = 0; query && served[i]; i++)
		if (strstr(query, served[i]))
			return true;
	return false;
}

// At zero, an objective needs to see arriving work, and a request that starts a replica waits for it.
static void lint_objective_zero(const struct policy *p, const struct place *at)
{
	const struct policy_objective *o = &p->objective;
	if (!o->set || p->idle.set || p->min_replicas > 0)
		return;
	const struct policy_signal *demand = &p->signals[o->demand_index], *backlog = &p->signals[o->backlog_index];
	if (needs_replica(demand->query) && needs_replica(backlog->query))
		warn_at(at, "minReplicas", NULL,
		        "is 0, but only a running replica serves what %s and %s read, so that arriving work would "
		        "start none: measure one of them at a gateway, or use 1",
		        demand->name, backlog->name);
	else if (p->startup.given && p->startup.start_ms >= o->wait_ms)
		warn_at(at, "minReplicas", NULL,
		        "is 0, but a request that finds no replica waits for a start-up of %s, longer than the "
		        "objective allows: the scale reaches 0 only while that is rarer than `late`",
		        show(p->startup.start_ms).s);
}

// A signal that the formula does not name has no effect.
static void lint_unused(const struct policy *p, const struct place *at)
{
	const struct policy_objective *o = &p->objective;
	if (p->combine != COMBINE_FORMULA)
		return;
	for (size_t i = 0; i < p->n_signals; i++) {
		char path[64];
		if (((p->formula.reads | p->inputs) >> i & 1) || (p->idle.set && idle_activation_of(&p->idle, i)))
			continue;
		// Both signals of the objective propose the same: the formula needs one of them.
		if (o->set && (i == o->demand_index || i == o->backlog_index) &&
		    ((p->formula.reads >> o->demand_index & 1) || (p->formula.reads >> o->backlog_index & 1)))
			continue;
		snprintf(path, sizeof path, "spec.signals[%zu]", i);
		const struct place unused = {lint_element(doc_get(at->node, "signals"), i), path, at->warnings};
		warn_at(&unused, NULL, NULL, "%s is asked and never used: name it in combine, or remove it",
		        p->signals[i].name);
	}
}

// Returns whether the signal only informs formulas, of which one reads it as `name ?? default`.
static bool has_default(const struct policy *policy, const struct policy_signal *signal)
{
	size_t len = strlen(signal->name);
	for (size_t i = 0; i < policy->n_signals && !signal->target.set && !signal->watermarks.set; i++) {
		const char *at = policy->signals[i].formula_text ? policy->signals[i].formula_text : "";
		while ((at = strstr(at, signal->name)) != NULL) {
			at += len;
			if (strncmp(at + strspn(at, "` \t\n"), "??", 2) == 0)
				return true;
		}
	}
	return false;
}

void lint_policy(const struct policy *policy, const struct doc_node *root, const char *text,
                 struct schema_errors *warnings, struct schema_errors *notes)
{
	const struct place at = {doc_get(root, "spec"), "spec", warnings};
	struct lint_query queries[POLICY_SIGNALS_MAX];
	lint_bounds(policy, &at);
	lint_interval(policy, &at);
	if (!policy->objective.set) // it delays scale-downs itself
		lint_scale_down(policy, &at);
	lint_forecast(policy, &at);
	lint_objective(policy, &at);
	lint_objective_zero(policy, &at);
	lint_idle(policy, &at);
	lint_unused(policy, &at);
	for (size_t i = 0; i < policy->n_signals; i++) {
		const struct policy_signal *s = &policy->signals[i];
		char path[64], query_path[64];
		const struct place here = {lint_element(doc_get(at.node, "signals"), i), path, warnings};
		snprintf(path, sizeof path, "spec.signals[%zu]", i);
		snprintf(query_path, sizeof query_path, "spec.signals[%zu].query", i);
		lint_window(policy, s, &here);
		lint_band(policy, s, &here);
		lint_missing(s, &here);
		queries[i] = (struct lint_query){.signal = s,
		                                 .node = lint_nearest(here.node, "query", NULL),
		                                 .text = text,
		                                 .path = query_path,
		                                 .warnings = warnings,
		                                 .notes = notes,
		                                 .has_default = has_default(policy, s),
		                                 .is_noted = i > 0 && queries[i - 1].is_noted};
		queries[i].low = -INFINITY;
		queries[i].high = INFINITY;
		if (s->query)
			lint_query_check(&queries[i]);
		if (s->on_missing == ON_MISSING_ZERO) {
			queries[i].low = queries[i].low > 0 ? 0 : queries[i].low;
			queries[i].high = queries[i].high < 0 ? 0 : queries[i].high;
		}
		lint_range(policy, s, &queries[i], &here);
		queries[i].path = "spec.signals";
	}
	size_t n;
	const struct policy_activation *a = idle_activations(&policy->idle, &n);
	for (; policy->idle.set && n > 0; n--, a++)
		lint_activation(policy, a, &at, queries);
	if (is_busy_only(queries, policy->n_signals))
		schema_report(warnings, queries[0].node, "spec.signals",
		              "nothing but the share of time with some kernel running: one small kernel in a loop "
		              "reads 100; add a signal of demand (a queue) or DCGM_FI_PROF_SM_ACTIVE");
}

// ---- the target: which kinds can be scaled ----

#define KIND_BYTES 64

// The built-in kinds that have a scale subresource, and Jobs, whose parallelism is scaled. Kinds of custom resources
// are in groups with a dot, which a policy may name freely.
static const struct {
	const char *kind, *api_version;
} built_in[] = {
        {"Deployment", "apps/v1"},       {"ReplicaSet", "apps/v1"}, {"StatefulSet", "apps/v1"},
        {"ReplicationController", "v1"}, {"Job", "batch/v1"},
};

static bool is_built_in_group(const char *api_version)
{
	return !memchr(api_version, '.', strcspn(api_version, "/"));
}

// The API server matches kinds by their exact name, so a misspelt kind stays "not found".
static void report_kind(const struct scale_target *t, const struct doc_node *ref, const char *path,
                        struct schema_errors *errors)
{
	const char *kinds[COUNT_OF(built_in)];
	char upper[KIND_BYTES];
	for (size_t i = 0; i < COUNT_OF(built_in); i++)
		kinds[i] = built_in[i].kind;
	snprintf(upper, sizeof upper, "%s", t->kind);
	upper[0] = (char)toupper((unsigned char)upper[0]);
	const char *meant = num_closest_name(upper, kinds, COUNT_OF(kinds));
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (strcasecmp(kinds[i], upper) == 0)
			meant = kinds[i];
	bool is_custom = !is_built_in_group(t->api_version);
	if (meant && !is_custom)
		schema_report(errors, lint_nearest(ref, "kind", NULL), path, "%s has no kind %s: did you mean %s?",
		              t->api_version, t->kind, meant);
	else if (is_custom)
		schema_report(errors, lint_nearest(ref, "kind", NULL), path,
		              "expected the name of a kind, which starts with a capital letter, got %s", t->kind);
	else
		schema_report(errors, lint_nearest(ref, "kind", NULL), path,
		              "%s has no kind %s that can be scaled: expected Deployment, StatefulSet or ReplicaSet of "
		              "apps/v1, Job of batch/v1, or a custom resource with a scale subresource",
		              t->api_version, t->kind);
}

static void lint_one(const struct scale_target *target, const struct doc_node *ref, const char *path,
                     struct schema_errors *errors)
{
	char field[SCHEMA_PATH_BYTES];
	const char *version = NULL;
	if (!target->kind || !target->api_version)
		return; // the reference is missing, which is reported
	for (size_t i = 0; i < COUNT_OF(built_in) && !version; i++)
		if (strcmp(target->kind, built_in[i].kind) == 0)
			version = built_in[i].api_version;
	snprintf(field, sizeof field, "%s.kind", path);
	if (!is_built_in_group(target->api_version)) {
		if (!isupper((unsigned char)target->kind[0]))
			report_kind(target, ref, field, errors);
	} else if (!version) {
		report_kind(target, ref, field, errors);
	} else if (strcmp(target->api_version, version) != 0) {
		snprintf(field, sizeof field, "%s.apiVersion", path);
		schema_report(errors, lint_nearest(ref, "apiVersion", NULL), field, "%s is in %s, got %s", target->kind,
		              version, target->api_version);
	}
}

void lint_target(const struct policy_document *document, const struct doc_node *root, struct schema_errors *errors)
{
	const struct doc_node *spec = doc_get(root, "spec"), *list = doc_get(spec, "variants");
	const struct scale_variants *all = &document->variants;
	char path[SCHEMA_PATH_BYTES];
	if (all->n == 0)
		lint_one(&document->target, doc_get(spec, "scaleTargetRef"), "spec.scaleTargetRef", errors);
	for (size_t i = 0; i < all->n; i++) {
		snprintf(path, sizeof path, "spec.variants[%zu].scaleTargetRef", i);
		lint_one(&all->items[i].target, doc_get(lint_element(list, i), "scaleTargetRef"), path, errors);
	}
}

// Kubernetes: pkg/controller/statefulset; LeaderWorkerSet: pkg/controllers, which creates StatefulSets.
void lint_victims(const struct policy *policy, const struct scale_target *target, const struct doc_node *root,
                  struct schema_errors *warnings)
{
	static const char *const by_ordinal[] = {"StatefulSet", "LeaderWorkerSet"};
	const struct doc_node *down = doc_get(doc_get(doc_get(root, "spec"), "behavior"), "scaleDown");
	for (size_t i = 0; policy->scale_down.victims.set && i < COUNT_OF(by_ordinal); i++)
		if (strcmp(target->kind, by_ordinal[i]) == 0)
			schema_report(warnings, lint_nearest(down, "victims", NULL), "spec.behavior.scaleDown.victims",
			              "has no effect: a %s removes the highest number first, whatever the deletion "
			              "costs of its pods: remove it, or use a Deployment",
			              by_ordinal[i]);
}
