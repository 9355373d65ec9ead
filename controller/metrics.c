// SPDX-License-Identifier: Apache-2.0
#include "controller/metrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/exposition.h"
#include "base/process_stat.h"
#include "controller/query_hub.h"
#include "controller/reconcile.h"
#include "k8s/k8s_client.h"
#include "policies/decision.h"
#include "promql/promql_source.h"

#define API_COUNTS_MAX 128

struct api_count {
	char verb[8], resource[K8S_RESOURCE_CLASS_BYTES];
	int code;
	uint64_t n;
};

enum { RESULT_OK, RESULT_SCALED, RESULT_ERROR, RESULT__COUNT };
static const char *const result_names[RESULT__COUNT] = {"ok", "scaled", "error"};

struct metrics {
	struct exposition_histogram duration_seconds;
	uint64_t results[RESULT__COUNT];
	uint64_t decisions[ACTION__COUNT][REASON__COUNT];
	uint64_t scaled_up, scaled_down, conflicts, skipped, reloads_ok, reloads_failed;
	int64_t reloaded_ms;
	struct api_count api[API_COUNTS_MAX];
	size_t n_api;
};

struct metrics *metrics_new(void)
{
	struct metrics *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	static const double bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
	m->duration_seconds.n = sizeof bounds / sizeof bounds[0];
	memcpy(m->duration_seconds.upper, bounds, sizeof bounds);
	return m;
}

void metrics_free(struct metrics *m)
{
	free(m);
}

void metrics_reconciled(struct metrics *m, const char *result, double seconds)
{
	exposition_histogram_observe(&m->duration_seconds, seconds);
	for (int i = 0; i < RESULT__COUNT; i++)
		if (strcmp(result_names[i], result) == 0)
			m->results[i]++;
}

void metrics_decided(struct metrics *m, const struct decision *d)
{
	m->decisions[d->action][d->reason]++;
}

void metrics_scaled(struct metrics *m, int32_t from, int32_t to)
{
	if (to > from)
		m->scaled_up++;
	else
		m->scaled_down++;
}

void metrics_conflict(struct metrics *m)
{
	m->conflicts++;
}

void metrics_tick_skipped(struct metrics *m)
{
	m->skipped++;
}

void metrics_reloaded(struct metrics *m, int64_t wall_ms, int ok)
{
	if (ok) {
		m->reloads_ok++;
		m->reloaded_ms = wall_ms;
	} else {
		m->reloads_failed++;
	}
}

void metrics_api_request(struct metrics *m, const char *verb, const char *resource, int code)
{
	size_t i = 0;
	while (i < m->n_api && (m->api[i].code != code || strcmp(m->api[i].verb, verb) != 0 ||
	                        strcmp(m->api[i].resource, resource) != 0))
		i++;
	if (i == m->n_api) {
		if (m->n_api == API_COUNTS_MAX)
			return; // verbs x resources x codes of a sane server fit many times over
		snprintf(m->api[i].verb, sizeof m->api[i].verb, "%s", verb);
		snprintf(m->api[i].resource, sizeof m->api[i].resource, "%s", resource);
		m->api[i].code = code;
		m->n_api++;
	}
	m->api[i].n++;
}

// One family with a single unlabelled sample.
static void single(struct buf *out, const char *name, const char *help, enum metric_type type, double value)
{
	exposition_family(out, name, help, type);
	exposition_sample_f64(out, name, NULL, 0, value);
}

static void render_counters(const struct metrics *m, struct buf *out)
{
	exposition_family(out, "gpuscale_reconciles_total", "Ticks that ended, by result.", METRIC_COUNTER);
	for (int i = 0; i < RESULT__COUNT; i++) {
		struct exposition_label l = {"result", result_names[i]};
		exposition_sample_i64(out, "gpuscale_reconciles_total", &l, 1, (int64_t)m->results[i]);
	}
	exposition_family(out, "gpuscale_reconcile_duration_seconds",
	                  "Time from the start of a tick to its last answer.", METRIC_HISTOGRAM);
	exposition_sample_histogram(out, "gpuscale_reconcile_duration_seconds", NULL, 0, &m->duration_seconds);
	exposition_family(out, "gpuscale_decisions_total", "Decisions by action and primary reason.", METRIC_COUNTER);
	for (int a = 0; a < ACTION__COUNT; a++)
		for (int r = 0; r < REASON__COUNT; r++) {
			if (m->decisions[a][r] == 0)
				continue;
			struct exposition_label l[] = {{"action", action_name((enum action)a)},
			                               {"reason", reason_info((enum reason)r)->name}};
			exposition_sample_i64(out, "gpuscale_decisions_total", l, 2, (int64_t)m->decisions[a][r]);
		}
	exposition_family(out, "gpuscale_scales_total", "Acknowledged writes of a target's replicas.", METRIC_COUNTER);
	exposition_sample_i64(out, "gpuscale_scales_total", &(struct exposition_label){"direction", "up"}, 1,
	                      (int64_t)m->scaled_up);
	exposition_sample_i64(out, "gpuscale_scales_total", &(struct exposition_label){"direction", "down"}, 1,
	                      (int64_t)m->scaled_down);
	single(out, "gpuscale_conflicts_total", "Writes refused because somebody else changed the target.",
	       METRIC_COUNTER, (double)m->conflicts);
	single(out, "gpuscale_ticks_skipped_total", "Ticks skipped because the one before had not ended.",
	       METRIC_COUNTER, (double)m->skipped);
	exposition_family(out, "gpuscale_api_requests_total",
	                  "Answered requests to the API server; code 0 = no answer.", METRIC_COUNTER);
	for (size_t i = 0; i < m->n_api; i++) {
		char code[16];
		snprintf(code, sizeof code, "%d", m->api[i].code);
		struct exposition_label l[] = {
		        {"verb", m->api[i].verb}, {"resource", m->api[i].resource}, {"code", code}};
		exposition_sample_i64(out, "gpuscale_api_requests_total", l, 3, (int64_t)m->api[i].n);
	}
}

static void render_policies(const struct metrics *m, const struct metrics_view *v, struct buf *out)
{
	single(out, "gpuscale_policies", "Policies in force.", METRIC_GAUGE, (double)v->n_reconcilers);
	single(out, "gpuscale_policy_files_invalid",
	       "Policy files with errors; their last good policies stay in force.", METRIC_GAUGE,
	       (double)v->n_bad_files);
	exposition_family(out, "gpuscale_policy_reloads_total", "Times the policies were read.", METRIC_COUNTER);
	exposition_sample_i64(out, "gpuscale_policy_reloads_total", &(struct exposition_label){"result", "ok"}, 1,
	                      (int64_t)m->reloads_ok);
	exposition_sample_i64(out, "gpuscale_policy_reloads_total", &(struct exposition_label){"result", "error"}, 1,
	                      (int64_t)m->reloads_failed);
	single(out, "gpuscale_policy_reload_timestamp_seconds", "When the policies were last read without error.",
	       METRIC_GAUGE, (double)m->reloaded_ms / 1000);
}

static void render_sources(const struct metrics_view *v, struct buf *out)
{
	const struct promql_sources *sources = query_hub_sources(v->queries);
	size_t n = promql_sources_count(sources);
	exposition_family(out, "gpuscale_source_up", "1 unless the source is down.", METRIC_GAUGE);
	for (size_t i = 0; i < n; i++) {
		const struct promql_source *s = promql_sources_at(sources, i);
		struct exposition_label l = {"source", promql_source_name(s)};
		exposition_sample_i64(out, "gpuscale_source_up", &l, 1, promql_source_health(s)->state != PROMQL_DOWN);
	}
	exposition_family(out, "gpuscale_source_queries_total", "Queries sent.", METRIC_COUNTER);
	for (size_t i = 0; i < n; i++) {
		const struct promql_source *s = promql_sources_at(sources, i);
		struct exposition_label l = {"source", promql_source_name(s)};
		exposition_sample_i64(out, "gpuscale_source_queries_total", &l, 1,
		                      (int64_t)promql_source_stats(s)->queries);
	}
	single(out, "gpuscale_source_queries_shared_total", "Questions answered by another policy's query.",
	       METRIC_COUNTER, (double)query_hub_shared(v->queries));
}

// The families with one sample per policy: name, help, and where the number is.
enum { GAUGE_CURRENT, GAUGE_READY, GAUGE_PENDING, GAUGE_DESIRED, GAUGE_MIN, GAUGE_MAX, GAUGE_HELD, GAUGE__COUNT };
static const struct {
	const char *name, *help;
} gauges[GAUGE__COUNT] = {
        [GAUGE_CURRENT] = {"gpuscale_current_replicas", "spec.replicas of the target."},
        [GAUGE_READY] = {"gpuscale_ready_replicas", "Ready pods of the target; absent when not known."},
        [GAUGE_PENDING] = {"gpuscale_pending_replicas", "Pending pods of the target."},
        [GAUGE_DESIRED] = {"gpuscale_desired_replicas", "Replicas the last decision wants."},
        [GAUGE_MIN] = {"gpuscale_min_replicas", "minReplicas of the policy."},
        [GAUGE_MAX] = {"gpuscale_max_replicas", "maxReplicas of the policy."},
        [GAUGE_HELD] = {"gpuscale_held", "1 while the policy holds because it cannot see."},
};

static bool gauge_value(int gauge, const struct policy *p, const struct decision *d, int64_t *ret)
{
	switch (gauge) {
	case GAUGE_CURRENT:
		*ret = d->current;
		return true;
	case GAUGE_READY:
		*ret = d->ready;
		return d->ready >= 0;
	case GAUGE_PENDING:
		*ret = d->pending;
		return true;
	case GAUGE_DESIRED:
		*ret = d->desired;
		return true;
	case GAUGE_MIN:
		*ret = p->min_replicas;
		return true;
	case GAUGE_MAX:
		*ret = p->max_replicas;
		return true;
	default:
		*ret = d->action == ACTION_HOLD;
		return true;
	}
}

static void render_gauges(const struct metrics_view *v, struct buf *out)
{
	for (int g = 0; g < GAUGE__COUNT; g++) {
		exposition_family(out, gauges[g].name, gauges[g].help, METRIC_GAUGE);
		for (size_t i = 0; i < v->n_reconcilers; i++) {
			const char *const *details;
			const struct decision *d = reconciler_decision(v->reconcilers[i], &details);
			const struct policy *p = reconciler_policy(v->reconcilers[i]);
			struct exposition_label l[] = {{"namespace", p->namespace_name}, {"policy", p->name}};
			int64_t value;
			if (d && gauge_value(g, p, d, &value))
				exposition_sample_i64(out, gauges[g].name, l, 2, value);
		}
	}
}

static void render_signals(const struct metrics_view *v, struct buf *out, bool age)
{
	const char *name = age ? "gpuscale_signal_age_seconds" : "gpuscale_signal_value";
	exposition_family(out, name,
	                  age ? "Age of the newest sample behind a signal."
	                      : "A signal after its window, as it was compared.",
	                  METRIC_GAUGE);
	for (size_t i = 0; i < v->n_reconcilers; i++) {
		const char *const *details;
		const struct decision *d = reconciler_decision(v->reconcilers[i], &details);
		const struct policy *p = reconciler_policy(v->reconcilers[i]);
		for (size_t s = 0; d && s < d->n_signals; s++) {
			struct exposition_label l[] = {
			        {"namespace", p->namespace_name}, {"policy", p->name}, {"signal", p->signals[s].name}};
			if (age && d->signals[s].age_ms >= 0)
				exposition_sample_f64(out, name, l, 3, (double)d->signals[s].age_ms / 1000);
			else if (!age && isfinite(d->signals[s].value))
				exposition_sample_f64(out, name, l, 3, d->signals[s].value);
		}
	}
}

void metrics_render(const struct metrics *m, const struct metrics_view *view, struct buf *out)
{
	exposition_family(out, "gpuscale_build_info", "Version of this binary.", METRIC_GAUGE);
	exposition_sample_i64(out, "gpuscale_build_info", &(struct exposition_label){"version", GPUSCALE_VERSION}, 1,
	                      1);
	single(out, "gpuscale_dry_run", "1 when this process was started with --dry-run.", METRIC_GAUGE, view->dry_run);
	render_counters(m, out);
	render_policies(m, view, out);
	render_sources(view, out);
	render_gauges(view, out);
	render_signals(view, out, false);
	render_signals(view, out, true);
	process_stat_render(out);
}
