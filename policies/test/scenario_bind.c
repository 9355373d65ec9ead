// SPDX-License-Identifier: Apache-2.0
// Checks a test against its policy, and completes it.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/text.h"
#include "policies/engine/decision.h"
#include "policies/engine/reason.h"
#include "policies/load/policy_pick.h"
#include "policies/test/scenario.h"

#define SHOWN_BYTES 80

struct binder {
	struct scenario *s;
	const struct doc_node *node; // the test
	size_t index;
	struct arena *a;
	struct schema_errors *errors;
};

static void fault(struct binder *b, const struct doc_node *at, const char *below, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
static void fault(struct binder *b, const struct doc_node *at, const char *below, const char *fmt, ...)
{
	char path[SCHEMA_PATH_BYTES], message[SCHEMA_MESSAGE_BYTES];
	va_list ap;
	snprintf(path, sizeof path, "tests[%zu]%s%s", b->index, *below ? "." : "", below);
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	schema_report(b->errors, at ? at : b->node, path, "%s", message);
}

// "no <what> "<word>"", with a suggestion.
static void fault_unknown(struct binder *b, const struct doc_node *at, const char *below, const char *what,
                          const char *word, const char *const *names, size_t n)
{
	char shown[SHOWN_BYTES];
	const char *close = num_closest_name(word, names, n);
	text_show(shown, sizeof shown, word, strlen(word));
	if (close)
		fault(b, at, below, "there is no %s \"%s\", did you mean \"%s\"?", what, shown, close);
	else
		fault(b, at, below, "there is no %s \"%s\"", what, shown);
}

static size_t signal_names(const struct policy *p, const char *ret_names[POLICY_SIGNALS_MAX])
{
	for (size_t i = 0; i < p->n_signals; i++)
		ret_names[i] = p->signals[i].name;
	return p->n_signals;
}

static size_t find_name(const char *const *names, size_t n, const char *word)
{
	size_t i = 0;
	while (i < n && strcmp(names[i], word) != 0)
		i++;
	return i;
}

static bool reason_is_known(struct binder *b, const struct doc_node *at, const char *below, const char *word)
{
	const char *names[REASON__COUNT];
	size_t n = 0;
	for (int r = REASON_NONE + 1; r < REASON__COUNT; r++)
		names[n++] = reason_info((enum reason)r)->name;
	if (find_name(names, n, word) < n)
		return true;
	fault_unknown(b, at, below, "reason", word, names, n);
	return false;
}

// ---- expectations ----

static void bind_expect_signal(struct binder *b, struct scenario_expect_signal *x, const struct doc_node *node,
                               const char *below)
{
	char path[SCHEMA_PATH_BYTES];
	snprintf(path, sizeof path, "tests[%zu].%s", b->index, below);
	if (schema_decode(scenario_expect_signal_schema(), node, x, b->a, b->errors, path) < 0)
		return;
	if (!x->state && !x->reason && !x->value_set && !x->proposal_set)
		fault(b, node, below, "expects nothing: add state, value, proposal or reason");
	if (x->reason)
		reason_is_known(b, doc_get(node, "reason"), below, x->reason);
	if (!x->state)
		return;
	const char *names[SIGNAL_STATE__COUNT];
	for (int k = 0; k < SIGNAL_STATE__COUNT; k++)
		names[k] = signal_state_name((enum signal_state)k);
	x->state_index = (int)find_name(names, SIGNAL_STATE__COUNT, x->state);
	if (x->state_index == SIGNAL_STATE__COUNT)
		fault_unknown(b, doc_get(node, "state"), below, "signal state", x->state, names, SIGNAL_STATE__COUNT);
}

static void bind_expect_signals(struct binder *b, struct scenario_expect *x, const char *below)
{
	const char *names[POLICY_SIGNALS_MAX];
	size_t n = signal_names(b->s->policy, names);
	if (x->signal_map->kind != DOC_MAP) {
		fault(b, x->signal_map, below,
		      "must map signals to what is expected of them: {queue: {state: Missing}}");
		return;
	}
	x->signals = arena_calloc(b->a, n, sizeof *x->signals);
	if (!x->signals) {
		fault(b, x->signal_map, below, "does not fit into the memory allowed");
		return;
	}
	for (const struct doc_node *c = x->signal_map->child; c; c = c->next) {
		char sub[SCHEMA_PATH_BYTES];
		size_t i = find_name(names, n, c->key);
		snprintf(sub, sizeof sub, "%s.%s", below, c->key);
		if (i == n)
			fault_unknown(b, c, below, "signal", c->key, names, n);
		else if (c->kind != DOC_MAP)
			fault(b, c, sub, "must be a map such as {state: Missing, proposal: 4}");
		else
			bind_expect_signal(b, &x->signals[i], c, sub);
	}
}

static void bind_expect(struct binder *b)
{
	const struct doc_node *list = doc_get(b->node, "expect"), *node = list ? list->child : NULL;
	for (size_t i = 0; i < b->s->n_expect; i++, node = node ? node->next : NULL) {
		struct scenario_expect *x = &b->s->expect[i];
		char below[64], sub[96];
		snprintf(below, sizeof below, "expect[%zu]", i);
		x->line = node ? node->line : b->node->line;
		if (!x->replicas_set && !x->action_set && !x->reason && !x->message && !x->signal_map)
			fault(b, node, below, "expects nothing: add replicas, action, reason, message or signals");
		if (x->at_ms % b->s->interval_ms != 0) {
			char at[NUM_TEXT_BYTES], every[NUM_TEXT_BYTES], near[NUM_TEXT_BYTES];
			num_format_duration_ms(at, x->at_ms);
			num_format_duration_ms(every, b->s->interval_ms);
			num_format_duration_ms(near, x->at_ms - x->at_ms % b->s->interval_ms);
			snprintf(sub, sizeof sub, "%s.at", below);
			fault(b, doc_get(node, "at"), sub,
			      "no tick at %s: ticks run every %s; the previous one is at %s", at, every, near);
		}
		if (x->reason) {
			snprintf(sub, sizeof sub, "%s.reason", below);
			reason_is_known(b, doc_get(node, "reason"), sub, x->reason);
		}
		if (x->signal_map) {
			snprintf(sub, sizeof sub, "%s.signals", below);
			bind_expect_signals(b, x, sub);
		}
	}
}

static void bind_laws(struct binder *b)
{
	const struct doc_node *list = doc_get(b->node, "invariants"), *node = list ? list->child : NULL;
	for (size_t i = 0; i < b->s->n_laws; i++, node = node ? node->next : NULL) {
		size_t law = find_name(scenario_law_names, LAW__COUNT, b->s->law_names[i]);
		if (law == LAW__COUNT)
			fault_unknown(b, node, "invariants", "invariant", b->s->law_names[i], scenario_law_names,
			              LAW__COUNT);
		else
			b->s->laws[law] = true;
	}
	if (b->s->n_laws == 0 && b->s->n_expect == 0)
		fault(b, NULL, "", "a test that cannot fail: add expect or invariants");
}

// ---- what is played ----

// A series that is not one of a signal.
static void bind_series(struct binder *b, const struct doc_node *node, const char *name, struct scenario_signal *ret,
                        size_t *points_left)
{
	char path[SCHEMA_PATH_BYTES];
	snprintf(path, sizeof path, "tests[%zu].%s", b->index, name);
	if (node && node->kind != DOC_SCALAR)
		fault(b, node, name, "must be a series such as '4x10 8x20'");
	else if (node)
		scenario_bind_signal(ret, node, path, points_left, b->a, b->errors);
}

static void bind_signals(struct binder *b)
{
	const char *names[POLICY_SIGNALS_MAX];
	size_t n = signal_names(b->s->policy, names), points_left = SCENARIO_POINTS_MAX;
	const struct doc_node *map = b->s->signals_node;
	bind_series(b, b->s->room_node, "room", &b->s->room, &points_left);
	bind_series(b, b->s->unhealthy_node, "unhealthy", &b->s->unhealthy, &points_left);
	if (map && map->kind != DOC_MAP) {
		fault(b, map, "signals", "must map signals to series: {queue: '5x10'}");
		return;
	}
	for (const struct doc_node *c = map ? map->child : NULL; c; c = c->next) {
		char path[SCHEMA_PATH_BYTES];
		size_t i = find_name(names, n, c->key);
		snprintf(path, sizeof path, "tests[%zu].signals.%s", b->index, c->key);
		if (i == n)
			fault_unknown(b, c, "signals", "signal", c->key, names, n);
		else if (!b->s->policy->signals[i].query)
			fault(b, c, "signals", "\"%s\" is computed by its formula: give the signals that it names",
			      names[i]);
		else
			scenario_bind_signal(&b->s->signals[i], c, path, &points_left, b->a, b->errors);
	}
}

static int older_first_recommendation(const void *a, const void *b)
{
	int64_t x = ((const struct scenario_recommendation *)a)->ago_ms;
	int64_t y = ((const struct scenario_recommendation *)b)->ago_ms;
	return (x < y) - (x > y);
}

static int older_first_event(const void *a, const void *b)
{
	int64_t x = ((const struct scenario_event *)a)->ago_ms, y = ((const struct scenario_event *)b)->ago_ms;
	return (x < y) - (x > y);
}

static void bind_history(struct binder *b)
{
	struct scenario *s = b->s;
	const struct doc_node *state = doc_get(b->node, "state"), *events = doc_get(state, "scaleEvents");
	const struct doc_node *node = events ? events->child : NULL;
	for (size_t i = 0; i < s->n_events; i++, node = node ? node->next : NULL)
		if (s->events[i].change == 0)
			fault(b, node, "state.scaleEvents", "a scale event changes something: +2 or -1, not 0");
	if (s->n_recommendations > 1)
		qsort(s->recommendations, s->n_recommendations, sizeof *s->recommendations, older_first_recommendation);
	if (s->n_events > 1)
		qsort(s->events, s->n_events, sizeof *s->events, older_first_event);
}

static void bind_pods(struct binder *b)
{
	const struct doc_node *node = b->s->pods_node;
	if (!node)
		return;
	if (node->kind != DOC_MAP)
		fault(b, node, "target.pods", "must be a map of pods to their states: {a: Ready}");
	else if (b->s->follow.set)
		fault(b, node, "target.pods", "cannot stand beside follow: remove one of them");
	else if (node->n_children > SCENARIO_PODS_MAX)
		fault(b, node, "target.pods", "%zu pods are more than the ceiling of %d", node->n_children,
		      SCENARIO_PODS_MAX);
	else if (!(b->s->pods = arena_calloc(b->a, node->n_children ? node->n_children : 1, sizeof *b->s->pods)))
		fault(b, node, "target.pods", "does not fit into the memory allowed");
	for (const struct doc_node *c = b->s->pods ? node->child : NULL; c; c = c->next) {
		size_t state = 0;
		while (state < POD_STATE__COUNT && strcmp(pod_state_names[state], c->text) != 0)
			state++;
		if (state == POD_STATE__COUNT)
			fault_unknown(b, c, "target.pods", "state of a pod", c->text, pod_state_names,
			              POD_STATE__COUNT);
		b->s->pods[b->s->n_pods++] = (struct obs_pod){c->key, (enum pod_state)state};
	}
}

int scenario_bind(struct scenario *s, const struct doc_node *node, size_t index, int64_t interval_ms,
                  const struct file_set *set, struct arena *a, struct schema_errors *errors)
{
	struct binder b = {s, node, index, a, errors};
	struct err e;
	size_t before = errors->n + errors->dropped;
	s->line = node->line;
	s->policy = policy_pick(set, s->policy_key, &e);
	if (!s->policy) {
		fault(&b, doc_get(node, "policy"), "policy", "%s", e.msg);
		return -1;
	}
	s->interval_ms = interval_ms > 0 ? interval_ms : s->policy->interval_ms;
	if (num_parse_rfc3339_ms(s->start, strlen(s->start), &s->start_ms, &e) < 0)
		fault(&b, doc_get(node, "start"), "start", "%s", e.msg);
	bind_history(&b);
	bind_pods(&b);
	bind_signals(&b);
	bind_expect(&b);
	bind_laws(&b);
	return errors->n + errors->dropped == before ? 0 : -1;
}
