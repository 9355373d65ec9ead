// SPDX-License-Identifier: Apache-2.0
// Loads the policies of a test, checks it against its policy, and completes it.
#include <stdarg.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/series_notation.h"
#include "policies/engine/decision.h"
#include "policies/engine/reason.h"
#include "policies/load/file_set.h"
#include "policies/test/scenario.h"

#define SHOWN_BYTES  80
#define DETAIL_BYTES 256

struct binder {
	struct scenario *s;
	const struct doc_node *node; // the test
	size_t index;
	struct arena *a;
	struct schema_errors *errors;
	size_t points_left; // of SCENARIO_POINTS_MAX
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

// Returns the index of `word` in names[0..n), or n after it reported that there is no WHAT of this name, with a
// suggestion.
static size_t find_known(struct binder *b, const struct doc_node *at, const char *below, const char *what,
                         const char *word, const char *const *names, size_t n)
{
	char shown[SHOWN_BYTES];
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], word) == 0)
			return i;
	const char *close = num_closest_name(word, names, n);
	text_show(shown, sizeof shown, word, strlen(word));
	if (close)
		fault(b, at, below, "there is no %s \"%s\", did you mean \"%s\"?", what, shown, close);
	else
		fault(b, at, below, "there is no %s \"%s\"", what, shown);
	return n;
}

static size_t signal_names(const struct policy *p, const char *ret_names[POLICY_SIGNALS_MAX])
{
	for (size_t i = 0; i < p->n_signals; i++)
		ret_names[i] = p->signals[i].name;
	return p->n_signals;
}

static void check_reason(struct binder *b, const struct doc_node *at, const char *below, const char *word)
{
	const char *names[REASON__COUNT];
	size_t n = 0;
	for (int r = REASON_NONE + 1; r < REASON__COUNT; r++)
		names[n++] = reason_info((enum reason)r)->name;
	find_known(b, at, below, "reason", word, names, n);
}

// ---- expectations ----

static void bind_expect_signal(struct binder *b, struct scenario_expect_signal *x, const struct doc_node *node,
                               const char *below)
{
	char path[SCHEMA_PATH_BYTES];
	snprintf(path, sizeof path, "tests[%zu].%s", b->index, below);
	if (schema_decode(&scenario_expect_signal_schema, node, x, b->a, b->errors, path) < 0)
		return;
	if (!x->state && !x->reason && !x->value_set && !x->proposal_set)
		fault(b, node, below, "expects nothing: add state, value, proposal or reason");
	if (x->reason)
		check_reason(b, doc_get(node, "reason"), below, x->reason);
	if (!x->state)
		return;
	x->state_index = (int)find_known(b, doc_get(node, "state"), below, "signal state", x->state, signal_state_names,
	                                 SIGNAL_STATE__COUNT);
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
		size_t i = find_known(b, c, below, "signal", c->key, names, n);
		snprintf(sub, sizeof sub, "%s.%s", below, c->key);
		if (i < n && c->kind != DOC_MAP)
			fault(b, c, sub, "must be a map such as {state: Missing, proposal: 4}");
		else if (i < n)
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
			check_reason(b, doc_get(node, "reason"), sub, x->reason);
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
		size_t law = find_known(b, node, "invariants", "invariant", b->s->law_names[i], scenario_law_names,
		                        LAW__COUNT);
		if (law < LAW__COUNT)
			b->s->laws[law] = true;
	}
	if (b->s->n_laws == 0 && b->s->n_expect == 0)
		fault(b, NULL, "", "a test that cannot fail: add expect or invariants");
}

// ---- series: a notation, a list of pieces, or a map from pods to either ----

static int fail_memory(struct binder *b, const struct doc_node *node, const char *path)
{
	schema_report(b->errors, node, path, "does not fit into the memory allowed");
	return -1;
}

// Makes room for n more points at the end of the series.
static struct scenario_point *append(struct binder *b, struct scenario_series *s, size_t n, const struct doc_node *node,
                                     const char *path)
{
	if (n > b->points_left) {
		schema_report(b->errors, node, path, "the series of a test may have %d values in all",
		              SCENARIO_POINTS_MAX);
		return NULL;
	}
	if (s->n + n > s->cap) {
		size_t cap = s->n + n > 2 * s->cap ? s->n + n : 2 * s->cap;
		struct scenario_point *grown = arena_calloc(b->a, cap, sizeof *grown);
		if (!grown) {
			fail_memory(b, node, path);
			return NULL;
		}
		if (s->n > 0)
			memcpy(grown, s->points, s->n * sizeof *grown);
		s->points = grown;
		s->cap = cap;
	}
	b->points_left -= n;
	s->n += n;
	return s->points + s->n - n;
}

static struct scenario_point point_of(const struct series_point *from, int64_t age_ms)
{
	switch (from->kind) {
	case SERIES_POINT_VALUE:
		return (struct scenario_point){.state = OBS_OK, .value = from->value, .age_ms = age_ms};
	case SERIES_POINT_ERROR:
		return (struct scenario_point){.state = OBS_FAILED,
		                               .detail = from->detail ? from->detail : "the test says so"};
	case SERIES_POINT_MISSING:
	case SERIES_POINT_STALE:
		break;
	}
	return (struct scenario_point){.state = OBS_EMPTY};
}

static int add_notation(struct binder *b, struct scenario_series *s, const char *text, int64_t age_ms,
                        const struct doc_node *node, const char *path)
{
	struct err e;
	struct series_point *from;
	size_t n;
	if (strlen(node->text) != node->text_len) {
		schema_report(b->errors, node, path, "cannot hold the character \\0: remove it");
		return -1;
	}
	if (series_notation_parse(b->a, text, &from, &n, &e) < 0) {
		schema_report(b->errors, node, path, "%s", e.msg);
		return -1;
	}
	struct scenario_point *to = append(b, s, n, node, path);
	for (size_t i = 0; to && i < n; i++)
		to[i] = point_of(&from[i], age_ms);
	return to ? 0 : -1;
}

// `whole`: the piece is the only one of the signal, so that an error without `times` repeats.
static int add_piece(struct binder *b, struct scenario_series *s, const struct doc_node *node, const char *path,
                     bool whole)
{
	struct scenario_piece piece = {0};
	if (schema_decode(&scenario_piece_schema, node, &piece, b->a, b->errors, path) < 0)
		return -1;
	if (piece.values)
		return add_notation(b, s, piece.values, piece.age_ms, node, path);
	struct scenario_point *to = append(b, s, piece.times_set ? (size_t)piece.times : 1, node, path);
	if (!to)
		return -1;
	s->endless = whole && !piece.times_set;
	const char *text = piece.error ? piece.error : piece.partial;
	char clean[DETAIL_BYTES]; // it is printed to terminals
	text_show(clean, sizeof clean, text, strlen(text));
	const char *detail = arena_strdup(b->a, clean);
	if (!detail)
		return fail_memory(b, node, path);
	for (size_t i = 0; i < (piece.times_set ? (size_t)piece.times : 1); i++)
		to[i] = (struct scenario_point){.state = piece.error ? OBS_FAILED : OBS_PARTIAL, .detail = detail};
	return 0;
}

static int add_series(struct binder *b, struct scenario_series *s, const struct doc_node *node, const char *path)
{
	switch (node->kind) {
	case DOC_SCALAR:
		return add_notation(b, s, node->text, 0, node, path);
	case DOC_MAP:
		return add_piece(b, s, node, path, true);
	case DOC_SEQ:
		break;
	case DOC_NULL:
	case DOC_KIND__COUNT:
		schema_report(b->errors, node, path,
		              "must be a series such as '0.5x10 0.9x4', or a list of pieces of one");
		return -1;
	}
	size_t i = 0;
	for (const struct doc_node *c = node->child; c; c = c->next, i++) {
		char sub[SCHEMA_PATH_BYTES];
		snprintf(sub, sizeof sub, "%s[%zu]", path, i);
		int rc = c->kind == DOC_MAP      ? add_piece(b, s, c, sub, false)
		         : c->kind == DOC_SCALAR ? add_notation(b, s, c->text, 0, c, sub)
		                                 : -1;
		if (rc < 0 && c->kind != DOC_MAP && c->kind != DOC_SCALAR)
			schema_report(b->errors, c, sub,
			              "must be a piece of a series: '5x3', or {error: timeout, times: 3}");
		if (rc < 0)
			return -1;
	}
	if (s->n > 0)
		return 0;
	schema_report(b->errors, node, path, "the series is empty: write values such as '0+10x9 90x20'");
	return -1;
}

// A map with one of a piece's own keys is a piece; any other maps pods to series.
static bool is_piece(const struct doc_node *node)
{
	const struct schema *piece = &scenario_piece_schema;
	for (size_t i = 0; i < piece->n_fields; i++)
		if (doc_get(node, piece->fields[i].name))
			return true;
	return false;
}

static void bind_series(struct binder *b, struct scenario_signal *ret_signal, const struct doc_node *node,
                        const char *path)
{
	bool by_pod = node->kind == DOC_MAP && !is_piece(node);
	size_t n = by_pod ? node->n_children : 1;
	if (n > SCENARIO_PODS_MAX) {
		schema_report(b->errors, node, path, "%zu series are more than the ceiling of %d", n,
		              SCENARIO_PODS_MAX);
		return;
	}
	ret_signal->series = arena_calloc(b->a, n, sizeof *ret_signal->series);
	if (!ret_signal->series) {
		fail_memory(b, node, path);
		return;
	}
	if (!by_pod) {
		ret_signal->n_series = 1;
		ret_signal->series[0].pod = "";
		add_series(b, &ret_signal->series[0], node, path);
		return;
	}
	for (const struct doc_node *c = node->child; c; c = c->next) {
		char sub[SCHEMA_PATH_BYTES];
		struct scenario_series *s = &ret_signal->series[ret_signal->n_series++];
		snprintf(sub, sizeof sub, "%s.%s", path, c->key);
		s->pod = c->key;
		if (add_series(b, s, c, sub) < 0)
			return;
	}
}

// ---- what is played ----

// A series that is not one of a signal.
static void bind_plain_series(struct binder *b, const struct doc_node *node, const char *name,
                              struct scenario_signal *ret)
{
	char path[SCHEMA_PATH_BYTES];
	snprintf(path, sizeof path, "tests[%zu].%s", b->index, name);
	if (node && node->kind != DOC_SCALAR)
		fault(b, node, name, "must be a series such as '4x10 8x20'");
	else if (node)
		bind_series(b, ret, node, path);
}

static void bind_signals(struct binder *b)
{
	const char *names[POLICY_SIGNALS_MAX];
	size_t n = signal_names(b->s->policy, names);
	const struct doc_node *map = b->s->signals_node;
	bind_plain_series(b, b->s->room_node, "room", &b->s->room);
	bind_plain_series(b, b->s->unhealthy_node, "unhealthy", &b->s->unhealthy);
	if (map && map->kind != DOC_MAP) {
		fault(b, map, "signals", "must map signals to series: {queue: '5x10'}");
		return;
	}
	for (const struct doc_node *c = map ? map->child : NULL; c; c = c->next) {
		char path[SCHEMA_PATH_BYTES];
		size_t i = find_known(b, c, "signals", "signal", c->key, names, n);
		snprintf(path, sizeof path, "tests[%zu].signals.%s", b->index, c->key);
		if (i < n && !b->s->policy->signals[i].query)
			fault(b, c, "signals", "\"%s\" is computed by its formula: give the signals that it names",
			      names[i]);
		else if (i < n)
			bind_series(b, &b->s->signals[i], c, path);
	}
}

// Compares two struct scenario_recommendation, or two struct scenario_event: both begin with their age.
static int older_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
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
		qsort(s->recommendations, s->n_recommendations, sizeof *s->recommendations, older_first);
	if (s->n_events > 1)
		qsort(s->events, s->n_events, sizeof *s->events, older_first);
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
		size_t state =
		        find_known(b, c, "target.pods", "state of a pod", c->text, pod_state_names, POD_STATE__COUNT);
		b->s->pods[b->s->n_pods++] = (struct obs_pod){c->key, (enum pod_state)state};
	}
}

int scenario_bind(struct scenario *s, const struct doc_node *node, size_t index, int64_t interval_ms,
                  const struct file_set *set, struct arena *a, struct schema_errors *errors)
{
	struct binder b = {s, node, index, a, errors, SCENARIO_POINTS_MAX};
	struct err e;
	size_t before = errors->n + errors->dropped;
	s->line = node->line;
	s->policy = file_set_pick(set, s->policy_key, &e);
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

int scenario_load_policies(const struct scenario_file *doc, const char *path, struct arena *a, struct file_set *ret_set,
                           struct buf *report, struct err *e)
{
	const char **paths = arena_calloc(a, doc->n_policy_files, sizeof *paths);
	for (size_t i = 0; paths && i < doc->n_policy_files; i++) {
		paths[i] = arena_path_beside(a, path, doc->policy_files[i]);
		if (!paths[i])
			return err_set(e, ERR_LIMIT, "%s: the tests do not fit into the memory allowed", path);
	}
	if (!paths)
		return err_set(e, ERR_LIMIT, "%s: the tests do not fit into the memory allowed", path);
	return file_set_load(ret_set, paths, doc->n_policy_files, NULL, report, e);
}
