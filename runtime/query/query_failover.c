// SPDX-License-Identifier: Apache-2.0
// Queries all servers of a source, and chooses one of the responses.
#include "base/base.h"
#include "runtime/query/query_hub.h"

#include <event2/event.h>
#include <math.h>

#include "base/hash.h"
#include "promql/promql_source.h"

struct failover_call {
	const struct promql_source *first;
	struct query_agreement *agreement;
	char *query;
	int64_t stale_after_ms, now_ms;
	query_answer_fn *fn; // NULL: it was called
	void *arg;
	struct event *grace;
	int n_waiting;                                 // outstanding answers, and the call that sends the queries
	struct query_answer *answers[PROMQL_URLS_MAX]; // in order of the URLs; NULL: outstanding
	struct failover_slot {
		struct failover_call *call;
		int i;
	} slots[PROMQL_URLS_MAX];
};

// ---- which answer ----

static int64_t time_of(const struct query_answer *a)
{
	int64_t oldest_ms = INT64_MAX;
	for (size_t i = 0; i < a->n_series; i++)
		if (a->series[i].time_ms < oldest_ms)
			oldest_ms = a->series[i].time_ms;
	return oldest_ms;
}

static bool is_current(const struct failover_call *c, const struct query_answer *a)
{
	return a && a->state == OBS_OK && c->now_ms - time_of(a) <= c->stale_after_ms;
}

// Ranks the states: data first. That there are no series counts only when every server says so: a server that has just
// started without its data says it, too, and with onMissing: Zero the policy would scale down.
static int rank(enum obs_state state)
{
	return state == OBS_OK ? 4 : state == OBS_TOO_MANY ? 3 : state == OBS_PARTIAL ? 2 : state == OBS_EMPTY ? 0 : 1;
}

static bool is_better(const struct query_answer *a, const struct query_answer *than)
{
	if (!than || a->state != than->state)
		return !than || rank(a->state) > rank(than->state);
	return a->state == OBS_OK && time_of(a) > time_of(than);
}

// ---- whether they agree ----

static bool differs(double a, double b, double max)
{
	double scale = fmax(fabs(a), fabs(b));
	return isfinite(a) && isfinite(b) && fabs(a - b) > max * scale;
}

// The series of an answer are sorted by pod. A series that one of them lacks does not count: a pod that starts or
// ends is scraped by one server before the other.
static bool find_difference(const struct query_answer *a, const struct query_answer *b, double max, double ret[2])
{
	for (size_t i = 0, k = 0; i < a->n_series && k < b->n_series;) {
		int order = strcmp(a->series[i].pod, b->series[k].pod);
		ret[0] = a->series[i].value;
		ret[1] = b->series[k].value;
		if (order == 0 && differs(ret[0], ret[1], max))
			return true;
		i += order <= 0;
		k += order >= 0;
	}
	return false;
}

// Servers scrape at different moments, so a value that jumps differs for a tick. Servers disagree when one query does,
// QUERY_DISAGREEMENTS times in a row.
static void note_difference(struct query_agreement *g, const struct failover_call *c, const double values[2])
{
	uint64_t hash = hash_text(HASH_START, c->query);
	if (g->n_in_row == 0 || c->now_ms - g->disagree_ms >= QUERY_DISAGREEMENT_MS) {
		g->query_hash = hash;
		g->n_in_row = 0;
	}
	g->disagreed++;
	g->disagree_ms = c->now_ms;
	g->n_in_row += g->query_hash == hash;
	if (g->is_disagreeing || g->n_in_row < QUERY_DISAGREEMENTS)
		return;
	g->is_disagreeing = true;
	snprintf(g->detail, sizeof g->detail, "%.160s: %.6g and %.6g", c->query, values[0], values[1]);
}

static void note_agreement(struct failover_call *c)
{
	struct query_agreement *g = c->agreement;
	double max = c->first->max_disagreement, values[2] = {0};
	const struct query_answer *one = NULL;
	int n_current = 0;
	bool is_different = false;
	for (int i = 0; i < PROMQL_URLS_MAX && !is_different; i++) {
		if (!is_current(c, c->answers[i]))
			continue;
		n_current++;
		is_different = one && find_difference(one, c->answers[i], max, values);
		if (!one)
			one = c->answers[i];
	}
	if (is_different)
		note_difference(g, c, values);
	else if (n_current > 1 && g->query_hash == hash_text(HASH_START, c->query))
		g->n_in_row = 0;
	if (c->now_ms - g->disagree_ms >= QUERY_DISAGREEMENT_MS)
		g->is_disagreeing = false;
}

// ---- the call ----

static void release(struct failover_call *c)
{
	if (c->n_waiting > 0)
		return;
	event_free(c->grace);
	free(c->query);
	free(c);
}

static void deliver(struct failover_call *c)
{
	struct query_answer *best = NULL;
	query_answer_fn *fn = c->fn;
	event_del(c->grace);
	for (int i = 0; i < PROMQL_URLS_MAX; i++)
		if (c->answers[i] && is_better(c->answers[i], best))
			best = c->answers[i];
	note_agreement(c);
	c->fn = NULL;
	fn(c->arg, best);
	for (int i = 0; i < PROMQL_URLS_MAX; i++) { // large answers are counted
		query_answer_unref(c->answers[i]);
		c->answers[i] = NULL;
	}
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
	deliver(arg); // answers are outstanding, so the call stays
}

static void take(struct failover_call *c)
{
	static const struct timeval grace = {.tv_usec = QUERY_FAILOVER_GRACE_MS * 1000};
	bool has_data = false;
	for (int i = 0; i < PROMQL_URLS_MAX; i++)
		has_data |= is_current(c, c->answers[i]);
	c->n_waiting--;
	if (c->fn && c->n_waiting == 0)
		deliver(c);
	else if (c->fn && has_data && !event_pending(c->grace, EV_TIMEOUT, NULL))
		event_add(c->grace, &grace);
	release(c);
}

static void on_answer(void *arg, struct query_answer *a)
{
	struct failover_slot *slot = arg;
	struct failover_call *c = slot->call;
	if (c->fn) // a later answer is of no use
		c->answers[slot->i] = query_answer_ref(a);
	take(c);
}

void query_failover_ask(struct query_hub *hub, const struct query_question *question, int64_t now_ms,
                        query_answer_fn *fn, void *arg)
{
	struct err e;
	const struct promql_source *first = promql_sources_find(hub->sources, question->source, &e);
	if (!first || !first->next) {
		query_hub_ask(hub, question, now_ms, fn, arg);
		return;
	}
	struct failover_call *c = must_alloc(calloc(1, sizeof *c));
	c->query = must_alloc(strdup(question->query));
	c->grace = must_alloc(evtimer_new(hub->sources->loop, on_grace, c));
	c->first = first;
	c->agreement = query_hub_agreement_of(hub, first);
	c->stale_after_ms = question->stale_after_ms;
	c->now_ms = now_ms;
	c->fn = fn;
	c->arg = arg;
	c->n_waiting = 1;
	int i = 0;
	for (const struct promql_source *s = first; s; s = s->next, i++) {
		c->slots[i] = (struct failover_slot){c, i};
		c->n_waiting++;
		query_hub_ask_server(hub, s, question, now_ms, on_answer, &c->slots[i]);
	}
	take(c);
}
