// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/metrics.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/metrics/metrics_private.h"

const char *const metrics_result_names[] = {"ok", "deferred", "scaled", "error"};
_Static_assert(sizeof metrics_result_names / sizeof metrics_result_names[0] == METRICS_RESULT__COUNT,
               "one name per result");

struct metrics *metrics_new(void)
{
	struct metrics *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->max_policies = METRICS_POLICIES_MAX;
	static const double bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
	m->duration_seconds.n = sizeof bounds / sizeof bounds[0];
	memcpy(m->duration_seconds.upper, bounds, sizeof bounds);
	static const double delays[] = {0.01, 0.1, 1, 5, 15};
	m->delay_seconds.n = sizeof delays / sizeof delays[0];
	memcpy(m->delay_seconds.upper, delays, sizeof delays);
	return m;
}

void metrics_free(struct metrics *m)
{
	free(m);
}

void metrics_limit_policies(struct metrics *m, size_t n)
{
	m->max_policies = n;
}

void metrics_reconciled(struct metrics *m, const char *result, double seconds)
{
	exposition_histogram_observe(&m->duration_seconds, seconds);
	for (int i = 0; i < METRICS_RESULT__COUNT; i++)
		if (strcmp(metrics_result_names[i], result) == 0)
			m->results[i]++;
}

void metrics_decided(struct metrics *m, const struct decision *d)
{
	m->decisions[d->action][d->reason]++;
}

void metrics_scaled(struct metrics *m, int32_t from, int32_t to)
{
	m->scaled_up += to > from;
	m->scaled_down += to < from;
}

void metrics_count(struct metrics *m, enum metric_family_id id)
{
	m->counts[id]++;
}

void metrics_tick_delayed(struct metrics *m, double seconds)
{
	exposition_histogram_observe(&m->delay_seconds, seconds);
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

const int metrics_external_codes[METRICS_EXTERNAL_CODES] = {200, 400, 401, 403, 404, 405, 429, 500, 503};

void metrics_add_server(struct metrics *m, const char *name, const struct http_server *server)
{
	assert(m->n_servers < METRICS_SERVERS_MAX);
	m->servers[m->n_servers].name = name;
	m->servers[m->n_servers++].server = server;
}

void metrics_external_begin(struct metrics *m)
{
	m->serves_external = true;
}

void metrics_external_request(struct metrics *m, int code)
{
	for (size_t i = 0; i < METRICS_EXTERNAL_CODES; i++)
		if (metrics_external_codes[i] == code)
			m->external[i]++;
}

void metrics_api_request(struct metrics *m, const char *verb, const char *resource, int code)
{
	size_t i = 0;
	while (i < m->n_api && (m->api[i].code != code || strcmp(m->api[i].verb, verb) != 0 ||
	                        strcmp(m->api[i].resource, resource) != 0))
		i++;
	if (i == m->n_api) {
		if (m->n_api == METRICS_API_COUNTS_MAX)
			return; // verbs x resources x codes of a sane server fit many times over
		snprintf(m->api[i].verb, sizeof m->api[i].verb, "%s", verb);
		snprintf(m->api[i].resource, sizeof m->api[i].resource, "%s", resource);
		m->api[i].code = code;
		m->n_api++;
	}
	m->api[i].n++;
}
