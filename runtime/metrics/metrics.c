// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/metrics.h"

#include "base/base.h"

// The values of the last label of the families that are served as counters, in the order of the counters.
// clang-format off
static const char *const sample_labels[FAMILY__COUNT][FAMILY_COUNTS_MAX] = {
	[FAMILY_POLICY_RELOADS]    = {"ok", "error"},
	[FAMILY_RECONCILES]        = {"ok", "deferred", "scaled", "error"},
	[FAMILY_TICKS_SKIPPED]     = {""},
	[FAMILY_TICKS_EARLY]       = {""},
	[FAMILY_SCALES]            = {"up", "down"},
	[FAMILY_CONFLICTS]         = {""},
	[FAMILY_POOL_GPUS]         = {"cap", "used", "requested", "granted"},
	[FAMILY_POOL_MEMBER_GPUS]  = {"used", "requested", "granted"},
	[FAMILY_FLEET_TARGETS]     = {"all", "ready", "idle", "atMax", "holding", "conflicts", "failed"},
	[FAMILY_FLEET_REPLICAS]    = {"current", "desired", "ready"},
	[FAMILY_STATUS_WRITES]     = {"ok", "error"},
	[FAMILY_EVENTS]            = {"ok", "error", "dropped"},
	[FAMILY_SHARD_CHANGES]     = {"gained", "lost"},
	[FAMILY_CLOCK_STEPS]       = {""},
	[FAMILY_EXTERNAL_REQUESTS] = {"200", "400", "401", "403", "404", "405", "429", "500", "503"},
};
// clang-format on

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

void metrics_count(struct metrics *m, enum metric_family_id id, const char *label)
{
	for (size_t i = 0; i < FAMILY_COUNTS_MAX && sample_labels[id][i]; i++)
		m->counts[id][i] += strcmp(sample_labels[id][i], label) == 0;
}

void metrics_reconciled(struct metrics *m, const char *result, double seconds)
{
	exposition_histogram_observe(&m->duration_seconds, seconds);
	metrics_count(m, FAMILY_RECONCILES, result);
}

void metrics_scaled(struct metrics *m, int32_t from, int32_t to)
{
	if (to != from)
		metrics_count(m, FAMILY_SCALES, to > from ? "up" : "down");
}

void metrics_reloaded(struct metrics *m, int64_t wall_ms, int ok)
{
	if (ok)
		m->reloaded_ms = wall_ms;
	metrics_count(m, FAMILY_POLICY_RELOADS, ok ? "ok" : "error");
}

void metrics_add_server(struct metrics *m, const char *name, const struct http_server *server)
{
	assert(m->n_servers < METRICS_SERVERS_MAX);
	m->servers[m->n_servers].name = name;
	m->servers[m->n_servers++].server = server;
}

void metrics_external_request(struct metrics *m, int code)
{
	char label[16];
	snprintf(label, sizeof label, "%d", code);
	metrics_count(m, FAMILY_EXTERNAL_REQUESTS, label);
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
// ---- the table ----

#define L(...)                                                                                                         \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
#define NONE L(0)
#define ROW_OF(id, name_, type_, unit_, labels_, help_)                                                                \
	[FAMILY_##id] = {.name = name_, .type = METRIC_##type_, .unit = unit_, .labels = labels_, .help = help_},

static const struct metric_family families[FAMILY__COUNT] = {METRIC_FAMILIES(ROW_OF)};

const struct metric_family *metric_family_of(enum metric_family_id id)
{
	return &families[id];
}

// Returns the number of labels.
static size_t count_labels(enum metric_family_id id)
{
	size_t n = 0;
	while (n < FAMILY_LABELS_MAX && families[id].labels[n])
		n++;
	return n;
}

void metric_family_begin(struct buf *out, enum metric_family_id id)
{
	exposition_family(out, families[id].name, families[id].help, families[id].type);
}

static size_t take_labels(enum metric_family_id id, const char *const *values, struct exposition_label *ret_labels)
{
	size_t n = count_labels(id);
	assert(n == 0 || values);
	for (size_t i = 0; i < n; i++)
		ret_labels[i] = (struct exposition_label){families[id].labels[i], values[i]};
	return n;
}

void metric_family_f64(struct buf *out, enum metric_family_id id, const char *const *values, double v)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_f64(out, families[id].name, labels, take_labels(id, values, labels), v);
}

void metric_family_i64(struct buf *out, enum metric_family_id id, const char *const *values, int64_t v)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_i64(out, families[id].name, labels, take_labels(id, values, labels), v);
}

void metric_family_histogram(struct buf *out, enum metric_family_id id, const char *const *values,
                             const struct exposition_histogram *h)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_histogram(out, families[id].name, labels, take_labels(id, values, labels), h);
}

void metric_family_counts(struct buf *out, enum metric_family_id id, const char *const *labels, const uint64_t *n)
{
	const char *values[FAMILY_LABELS_MAX];
	size_t last = count_labels(id) > 0 ? count_labels(id) - 1 : 0;
	for (size_t i = 0; i < last; i++)
		values[i] = labels[i];
	for (size_t i = 0; i < FAMILY_COUNTS_MAX && sample_labels[id][i]; i++) {
		values[last] = sample_labels[id][i];
		metric_family_i64(out, id, values, (int64_t)n[i]);
	}
}

void metric_family_single(struct buf *out, enum metric_family_id id, double v)
{
	assert(count_labels(id) == 0);
	metric_family_begin(out, id);
	metric_family_f64(out, id, NULL, v);
}

void metric_family_label_text(struct buf *out, enum metric_family_id id, const char *const *values, size_t n)
{
	assert(n <= count_labels(id));
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(out, ',');
		buf_puts(out, families[id].labels[i]);
		buf_puts(out, "=\"");
		exposition_label_value(out, values[i]);
		buf_putc(out, '"');
	}
}

void metric_family_page(struct buf *out)
{
	buf_puts(out, "| name | type | labels | unit | what |\n|---|---|---|---|---|\n");
	for (int id = 0; id < FAMILY__COUNT; id++) {
		const struct metric_family *f = &families[id];
		buf_printf(out, "| `%s` | %s | ", f->name, metric_type_name(f->type));
		size_t n = count_labels((enum metric_family_id)id);
		for (size_t i = 0; i < n; i++)
			buf_printf(out, "%s`%s`", i ? ", " : "", f->labels[i]);
		buf_printf(out, " | %s | %s |\n", f->unit, f->help);
	}
}
