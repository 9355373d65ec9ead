// SPDX-License-Identifier: Apache-2.0
// The values of the external metrics API, from the policies in force.
#include "base/base.h"
#include "controller/external/external_metrics_server.h"

#include <math.h>
#include <strings.h>

#include "k8s/client/label_selector.h"
#include "k8s/server/metrics_api.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

#define LABELS          4
#define POLICY_RESOURCE "gpuautoscalers.gpuscale.dev"

struct found {
	struct external_metric_value value;
	struct label labels[LABELS];
	const struct policy *policy;
	const struct scale_target *target;
};

struct query {
	const char *policy; // as long as policy_len; NULL: of any
	size_t policy_len;
	const char *signal;            // or EXTERNAL_DESIRED
	const char *resource, *object; // of which the metric is; NULL: external
	const char *namespace_name;
	const struct label_selector *selector;
	int64_t wall_ms;
	struct found *found;
	size_t n_found;
	bool is_known; // a policy of the namespace has the metric
};

// ---- whether a value is usable ----

static int refuse(const struct external_source *s, const char *signal, const char *why, struct err *e)
{
	const struct policy *p = s->policy;
	return err_set(e, ERR_SERVER, "no value of %s of policy %.63s/%.200s: %s%s%.150s", signal, p->namespace_name,
	               p->name, why, s->error[0] ? ": " : "", s->error);
}

// The clock was set back, and no decision was made since: the age of the value is unknown.
static bool is_ahead(const struct query *q, const struct decision *d)
{
	return d->time_ms - q->wall_ms > EXTERNAL_DECISION_AGE_MS;
}

static int read_signal(const struct query *q, const struct external_source *s, size_t i,
                       struct external_metric_value *ret_value, struct err *e)
{
	const struct policy_signal *signal = &s->policy->signals[i];
	const struct decision *d = s->decision;
	const struct decision_signal *ds = &d->signals[i];
	// Without a ready replica a value per replica cannot be computed; the value itself is valid.
	bool good = ds->state == SIGNAL_OK || ds->reason == REASON_NO_READY_REPLICAS;
	if (!good)
		return refuse(s, signal->name, reason_info(ds->reason)->name, e);
	if (!isfinite(ds->value))
		return refuse(s, signal->name, "it is not a number", e);
	int64_t time_ms = d->time_ms - (ds->age_ms > 0 ? ds->age_ms : 0);
	if (q->wall_ms - time_ms > signal->stale_after_ms || is_ahead(q, d))
		return refuse(s, signal->name, "the last one is older than staleAfter", e);
	*ret_value = (struct external_metric_value){
	        .time_ms = time_ms,
	        .window_s = signal->window.set ? signal->window.duration_ms / 1000 : 0,
	        .value = ds->value,
	};
	return 0;
}

static int read_desired(const struct query *q, const struct external_source *s, struct external_metric_value *ret_value,
                        struct err *e)
{
	const struct decision *d = s->decision;
	if (q->wall_ms - d->time_ms > 2 * s->policy->interval_ms + EXTERNAL_DECISION_AGE_MS || is_ahead(q, d))
		return refuse(s, EXTERNAL_DESIRED, "the last decision is too old", e);
	*ret_value = (struct external_metric_value){.time_ms = d->time_ms, .value = d->desired};
	return 0;
}

// ---- finding ----

static int add(struct query *q, const struct external_source *s, int signal, struct err *e)
{
	const struct policy *p = s->policy;
	const char *name = signal < 0 ? EXTERNAL_DESIRED : p->signals[signal].name;
	const struct label labels[LABELS] = {{"policy", p->name},
	                                     {"signal", name},
	                                     {"target_kind", s->target->kind},
	                                     {"target_name", s->target->name}};
	q->is_known = true;
	if (!label_selector_matches(q->selector, labels, LABELS))
		return 0;
	if (!s->decision)
		return refuse(s, name, "nothing was decided yet", e);
	if (q->n_found == EXTERNAL_VALUES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d values: narrow it down by a label selector",
		               EXTERNAL_VALUES_MAX);
	struct found *f = &q->found[q->n_found++];
	f->policy = p;
	f->target = s->target;
	memcpy(f->labels, labels, sizeof labels);
	return signal < 0 ? read_desired(q, s, &f->value, e) : read_signal(q, s, (size_t)signal, &f->value, e);
}

// Returns whether `resource` is that of the kind: "deployments.apps" for Deployment of "apps/v1". The plural is that of
// nearly every kind; Kubernetes: apimachinery meta.UnsafeGuessKindToResource.
static bool is_resource_of(const char *resource, const char *api_version, const char *kind)
{
	char guess[METRICS_RESOURCE_MAX + 1];
	size_t n = strlen(kind), n_group = strcspn(api_version, "/");
	char last = n ? kind[n - 1] : '\0';
	bool has_group = api_version[n_group] != '\0'; // "v1": the core group
	const char *plural = last == 's' ? "es" : last == 'y' ? "ies" : "s";
	int len = snprintf(guess, sizeof guess, "%.*s%s%s%.*s", (int)(last == 'y' ? n - 1 : n), kind, plural,
	                   has_group ? "." : "", has_group ? (int)n_group : 0, api_version);
	return len > 0 && (size_t)len < sizeof guess && strcasecmp(guess, resource) == 0;
}

static bool is_policy_itself(const struct query *q)
{
	return strcmp(q->resource, POLICY_RESOURCE) == 0;
}

static bool is_asked(const struct query *q, const struct external_source *s)
{
	const struct policy *p = s->policy;
	const struct scale_target *t = s->target;
	if (strcmp(p->namespace_name, q->namespace_name) != 0)
		return false;
	if (!q->resource)
		return !q->policy || (strncmp(p->name, q->policy, q->policy_len) == 0 && !p->name[q->policy_len]);
	if (is_policy_itself(q))
		return strcmp(p->name, q->object) == 0;
	return strcmp(t->name, q->object) == 0 && is_resource_of(q->resource, t->api_version, t->kind);
}

static int search_policy(struct query *q, const struct external_source *s, struct err *e)
{
	const struct policy *p = s->policy;
	if (!is_asked(q, s))
		return 0;
	if (strcmp(q->signal, EXTERNAL_DESIRED) == 0)
		return add(q, s, -1, e);
	size_t i = policy_signal_index(p, q->signal);
	return i < p->n_signals ? add(q, s, (int)i, e) : 0;
}

static int write_object(const struct query *q, const char *metric, struct buf *out, struct err *e)
{
	if (q->n_found != 1)
		return q->n_found == 0
		               ? err_set(e, ERR_NOT_FOUND,
		                         "no policy that matches the selector has a metric \"%.200s\"", metric)
		               : err_set(e, ERR_INPUT,
		                         "%zu policies of %.200s have a metric \"%.200s\": add the label policy to the "
		                         "selector",
		                         q->n_found, q->object, metric);
	const struct policy *p = q->found[0].policy;
	const struct custom_metrics_object object = {
	        .api_version = is_policy_itself(q) ? "gpuscale.dev/v1alpha1" : q->found[0].target->api_version,
	        .kind = is_policy_itself(q) ? "GPUAutoscaler" : q->found[0].target->kind,
	        .namespace_name = p->namespace_name,
	        .name = q->object};
	if (custom_metrics_write_value(out, &object, metric, &q->found[0].value, e) == 0)
		return 0;
	e->kind = ERR_SERVER; // as below
	return -1;
}

static int write_found(const struct query *q, const char *metric, struct buf *out, struct err *e)
{
	struct external_metric_value *values = must_alloc(calloc(q->n_found ? q->n_found : 1, sizeof *values));
	for (size_t i = 0; i < q->n_found; i++) {
		values[i] = q->found[i].value;
		values[i].labels = q->found[i].labels;
		values[i].n_labels = LABELS;
	}
	int rc = external_metrics_write_values(out, metric, values, q->n_found, e);
	free(values);
	if (rc < 0)
		e->kind = ERR_SERVER; // a value that a quantity cannot hold is not usable
	return rc;
}

static int search(struct query *q, external_source_fn *next, void *arg, const char *metric, struct buf *out,
                  struct err *e)
{
	struct external_source s;
	for (size_t i = 0; next(arg, i, &s); i++)
		if (search_policy(q, &s, e) < 0)
			return -1;
	if (!q->is_known)
		return err_set(e, ERR_NOT_FOUND, "no policy of namespace \"%.63s\" has a metric \"%.200s\"",
		               q->namespace_name, metric);
	return q->resource ? write_object(q, metric, out, e) : write_found(q, metric, out, e);
}

static int answer(struct query *q, const char *metric, const char *selector, external_source_fn *next, void *arg,
                  struct buf *out, struct err *e)
{
	struct label_selector *parsed = label_selector_parse(selector, e);
	if (!parsed)
		return -1;
	q->selector = parsed;
	q->found = must_alloc(calloc(EXTERNAL_VALUES_MAX, sizeof *q->found));
	int rc = search(q, next, arg, metric, out, e);
	free(q->found);
	label_selector_free(parsed);
	return rc;
}

int custom_value_write(struct buf *out, external_source_fn *next, void *arg, const struct metrics_path *path,
                       const char *selector, int64_t wall_ms, struct err *e)
{
	struct query q = {
	        .resource = path->resource,
	        .object = path->object,
	        .signal = path->metric,
	        .namespace_name = path->namespace_name,
	        .wall_ms = wall_ms,
	};
	return answer(&q, path->metric, selector, next, arg, out, e);
}

int external_values_write(struct buf *out, external_source_fn *next, void *arg, const char *namespace_name,
                          const char *metric, const char *selector, int64_t wall_ms, struct err *e)
{
	const char *colon = strchr(metric, ':'); // names of policies and signals contain none
	struct query q = {
	        .policy = colon ? metric : NULL,
	        .policy_len = colon ? (size_t)(colon - metric) : 0,
	        .signal = colon ? colon + 1 : metric,
	        .namespace_name = namespace_name,
	        .wall_ms = wall_ms,
	};
	return answer(&q, metric, selector, next, arg, out, e);
}

// ---- names ----

// Inserts in order, so that the document does not depend on the order of policies. Returns false when it is full.
static bool insert(const char **names, size_t *n, const char *name)
{
	size_t lo = 0, hi = *n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int order = strcmp(names[mid], name);
		if (order == 0)
			return true;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (*n == EXTERNAL_NAMES_MAX)
		return false;
	memmove(names + lo + 1, names + lo, (*n - lo) * sizeof *names);
	names[lo] = name;
	++*n;
	return true;
}

size_t external_values_names(external_source_fn *next, void *arg, const char *ret_names[EXTERNAL_NAMES_MAX])
{
	struct external_source s;
	size_t n = 0;
	bool room = true;
	for (size_t i = 0; room && next(arg, i, &s); i++) {
		insert(ret_names, &n, EXTERNAL_DESIRED);
		for (size_t k = 0; room && k < s.policy->n_signals; k++)
			room = insert(ret_names, &n, s.policy->signals[k].name);
	}
	return n;
}
