// SPDX-License-Identifier: Apache-2.0
// Plays a mock script: series and the workload model set the utilization of each GPU, and the GPU model derives the
// other fields.

#include "base/arena.h"
#include "base/base.h"
#include "base/exposition.h"
#include "exporter/backend.h"
#include "exporter/mock/mock.h"
#include "exporter/xid.h"

// A device: a GPU, or a MIG instance of the preceding GPU.
struct part {
	const struct mock_gpu *gpu;
	const struct mock_instance *instance; // NULL: the GPU itself
	const struct mock_given *given;
	int32_t board; // number of the GPU
	int32_t unit;  // number among the units that a pod can use; -1: a split GPU
};

struct mock {
	struct backend base;
	struct arena arena;
	struct mock_script script;
	struct mock_replicas *replicas; // NULL without a workload
	struct workload_state workload_state;
	bool workload_seen; // the number of replicas was known at least once
	int64_t last_ms;    // time of the last sample, -1 before the first
	size_t n;
	struct part parts[DEVICES_MAX];
	struct gpu_state states[DEVICES_MAX];
	struct device devices[DEVICES_MAX];
	char pods[DEVICES_MAX][OWNER_NAME_BYTES]; // of the workload, that use the devices
};

static void copy(char *out, size_t size, const char *s)
{
	snprintf(out, size, "%s", s ? s : "");
}

static void describe_gpu(const struct mock_gpu *g, size_t board, struct device *d)
{
	d->index = (int32_t)board;
	if (g->uuid)
		copy(d->uuid, sizeof d->uuid, g->uuid);
	else
		snprintf(d->uuid, sizeof d->uuid, "GPU-00000000-0000-0000-0000-%012zu", board);
	if (g->pci_bus_id)
		copy(d->pci_bus_id, sizeof d->pci_bus_id, g->pci_bus_id);
	else
		snprintf(d->pci_bus_id, sizeof d->pci_bus_id, "00000000:%02zX:00.0", board + 1);
	snprintf(d->node, sizeof d->node, "nvidia%zu", board);
	copy(d->model, sizeof d->model, g->model);
	copy(d->mig_profile, sizeof d->mig_profile, g->mig_profile);
	copy(d->mig_id, sizeof d->mig_id, g->mig_id);
}

static void describe_devices(struct mock *m)
{
	size_t board = 0;
	int32_t unit = 0;
	for (size_t i = 0; i < m->script.n_gpus; i++) {
		const struct mock_gpu *g = &m->script.gpus[i];
		for (int32_t k = 0; k < g->count; k++, board++) {
			const size_t at = m->n++;
			m->parts[at] = (struct part){.gpu = g,
			                             .given = &g->given,
			                             .board = (int32_t)board,
			                             .unit = g->n_instances ? -1 : unit};
			unit += g->n_instances == 0;
			describe_gpu(g, board, &m->devices[at]);
			for (size_t j = 0; j < g->n_instances; j++) {
				const struct mock_instance *mig = &g->instances[j];
				struct device *d = &m->devices[m->n];
				m->parts[m->n] = (struct part){.gpu = g,
				                               .instance = mig,
				                               .given = &mig->given,
				                               .board = (int32_t)board,
				                               .unit = unit};
				m->n++;
				unit++;
				*d = m->devices[at];
				copy(d->mig_profile, sizeof d->mig_profile, mig->profile);
				snprintf(d->mig_id, sizeof d->mig_id, "%d", (int)mig->id);
				snprintf(d->mig_uuid, sizeof d->mig_uuid, "MIG-00000000-0000-0000-%04zu-%012d", board,
				         (int)mig->id);
			}
		}
	}
}

static int mock_attach(struct backend *b, struct event_base *loop, struct err *e)
{
	struct mock *m = (struct mock *)b;
	return m->replicas ? mock_replicas_start(m->replicas, loop, e) : 0;
}

static bool mock_has_replies(struct backend *b)
{
	struct mock *m = (struct mock *)b;
	return !m->replicas || mock_replicas_get(m->replicas) >= 0;
}

static int mock_open(struct backend *b, struct err *e)
{
	struct mock *m = (struct mock *)b;
	for (size_t i = 0; i < m->n; i++)
		if (!m->parts[i].instance)
			xid_store_add_gpu(m->base.config.xids, m->devices[i].uuid);
	return 0;
}

static bool is_lost(const struct mock *m, int32_t board, int64_t t_ms)
{
	const struct mock_faults *losses = &m->script.faults[MOCK_LOSS];
	for (size_t i = 0; i < losses->n; i++)
		if (losses->list[i].gpu == board && mock_fault_is_active(&losses->list[i], t_ms))
			return true;
	return false;
}

static const char *uuid_of_board(const struct mock *m, int32_t board)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->parts[i].board == board)
			return m->devices[i].uuid;
	return ""; // the script was validated
}

static void play_xids(struct mock *m, int64_t t_ms, int64_t wall_ms)
{
	for (size_t i = 0; i < m->script.faults[MOCK_XID].n; i++) {
		const struct mock_fault *x = &m->script.faults[MOCK_XID].list[i];
		bool is_due = x->at_ms > m->last_ms && x->at_ms <= t_ms;
		for (int32_t k = 0; is_due && k < x->count; k++)
			xid_store_count(m->base.config.xids, uuid_of_board(m, x->gpu), x->code, wall_ms);
	}
}

// The replica of the workload that uses this device: the first devices belong to the first replicas. -1: none.
static int32_t holder_of(const struct mock *m, size_t at)
{
	if (!m->workload_seen || m->parts[at].unit < 0)
		return -1;
	int32_t replica = m->parts[at].unit / m->script.workload.gpus_per_replica;
	return replica < m->workload_state.replicas ? replica : -1;
}

static void set_owner(struct mock *m, size_t at, int32_t holder, struct pod_share *o)
{
	const struct mock_given *given = m->parts[at].given;
	const struct mock_workload *w = &m->script.workload;
	*o = (struct pod_share){.namespace_ = given->namespace_ ? given->namespace_ : "",
	                        .pod = given->pod ? given->pod : "",
	                        .container = given->container ? given->container : "",
	                        .replica = -1};
	if (!given->pod && !given->namespace_ && !given->container && holder >= 0) {
		snprintf(m->pods[at], sizeof m->pods[at], "%s-%d", w->name, (int)holder);
		*o = (struct pod_share){
		        .namespace_ = w->namespace_, .pod = m->pods[at], .container = w->name, .replica = -1};
	}
}

// Series of the script override the model; '_' removes the sample.
static void play_series(const struct mock_series *const *series, double t_ms, struct device_sample *s)
{
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		double v;
		if (!series[f])
			continue;
		if (mock_series_at(series[f], t_ms, &v)) // at most a few SERIES_VALUE_MAX, which fit 64 bits
			sample_set(s, f, v);
		else
			sample_drop(s, f);
	}
}

struct load {
	double utilization; // 0 to 1
	bool held;          // a process uses its memory
};

static struct load load_of(const struct mock *m, size_t at, int64_t t_ms)
{
	const struct part *p = &m->parts[at];
	const struct mock_series *util = p->given->series[FIELD_GPU_UTIL];
	double percent;
	if (util)
		return (struct load){mock_series_at(util, (double)t_ms, &percent) ? percent / 100 : 0, true};
	if (p->unit < 0) { // split: derived from its instances
		struct load sum = {0, false};
		for (size_t i = 1; i <= p->gpu->n_instances; i++) {
			const struct load l = load_of(m, at + i, t_ms);
			sum.utilization += l.utilization / (double)p->gpu->n_instances;
			sum.held |= l.held;
		}
		return sum;
	}
	int32_t holder = holder_of(m, at);
	bool fixed = p->given->pod != NULL;
	return (struct load){holder >= 0 ? m->workload_state.utilization : 0, holder >= 0 || (fixed && !m->replicas)};
}

// Memory of "1g.18gb" in MiB; an equal part of the GPU's memory if the profile does not name a size.
static int32_t instance_memory_mib(const struct mock_gpu *g, const struct mock_instance *mig)
{
	const char *dot = strchr(mig->profile, '.');
	int64_t gib;
	size_t len = dot ? strspn(dot + 1, "0123456789") : 0;
	if (len && num_parse_i64(dot + 1, len, 1, g->memory_mib / 1024, &gib, NULL) == 0)
		return (int32_t)gib * 1024;
	return g->memory_mib / (int32_t)g->n_instances;
}

// As in NVML, an instance has its memory and its profiling fields, and a split GPU has no utilization.
static void drop_what_mig_lacks(const struct part *p, struct device_sample *s)
{
	for (enum field f = 0; f < FIELD__COUNT; f++)
		if (p->instance ? family_of(f)->scope != FAMILY_EACH
		                : p->unit < 0 && family_of(f)->scope == FAMILY_WHOLE)
			sample_drop(s, f);
}

static void sample_part(struct mock *m, size_t at, int64_t t_ms, struct device_sample *s)
{
	const struct part *p = &m->parts[at];
	const struct load load = load_of(m, at, t_ms);
	set_owner(m, at, holder_of(m, at), &s->owner);
	int32_t memory_mib = p->instance ? instance_memory_mib(p->gpu, p->instance) : p->gpu->memory_mib;
	gpu_step(p->gpu, memory_mib, &m->states[at], (double)t_ms, load.utilization, load.held, s);
	sample_set_i64(s, FIELD_XID_ERRORS, xid_store_last(m->base.config.xids, m->devices[at].uuid));
	const struct mock_series *const *series = p->given->series;
	const double model_watts = sample_get(s, FIELD_POWER_USAGE);
	drop_what_mig_lacks(p, s);
	play_series(series, (double)t_ms, s);
	gpu_derive(&m->states[at], series, model_watts, s);
	if (!p->instance)
		mock_faults_apply(m->script.faults, p->board, p->gpu->idle_power_watts, t_ms, s);
	else
		sample_drop(s, FIELD_GPU_UTIL); // drives the other fields but is not reported here
}

static int mock_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                       struct err *e)
{
	struct mock *m = (struct mock *)b;
	play_xids(m, mono_ms, wall_ms);
	int32_t replicas = m->replicas ? mock_replicas_get(m->replicas) : -1;
	if (replicas >= 0) {
		// Work that arrived before the number of replicas was known is not queued.
		if (!m->workload_seen)
			m->workload_state.t_ms = (double)(m->last_ms < 0 ? mono_ms : m->last_ms);
		m->workload_seen = true;
		workload_step(&m->script.workload, &m->workload_state, (double)mono_ms, replicas);
	}
	for (size_t i = 0; i < m->n; i++) {
		samples[i] = (struct device_sample){.lost = is_lost(m, m->parts[i].board, mono_ms)};
		if (!samples[i].lost)
			sample_part(m, i, mono_ms, &samples[i]);
	}
	m->last_ms = mono_ms;
	return 0;
}

static void mock_render_extra(struct backend *b, struct buf *out)
{
	const struct mock *m = (struct mock *)b;
	if (!m->workload_seen)
		return;
	const struct workload_state *w = &m->workload_state;
	const struct exposition_label labels[] = {{"namespace", m->script.workload.namespace_},
	                                          {"workload", m->script.workload.name}};
	const struct {
		const char *name, *help;
		double value;
	} rows[] = {
	        {"gpuscale_mock_demand", "Work that arrives (units per second).", w->demand},
	        {"gpuscale_mock_capacity", "Capacity of the ready replicas (units per second).", w->capacity},
	        {"gpuscale_mock_backlog", "Queued work (units).", w->backlog},
	        {"gpuscale_mock_replicas", "Ready replicas, as known to the mock.", w->replicas},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		exposition_family(out, rows[i].name, rows[i].help, METRIC_GAUGE);
		exposition_sample_f64(out, rows[i].name, labels, 2, rows[i].value);
	}
}

static void mock_close(struct backend *b)
{
	// nothing to close
}

static void mock_destroy(struct backend *b)
{
	struct mock *m = (struct mock *)b;
	mock_replicas_free(m->replicas);
	arena_done(&m->arena);
	free(m);
}

static const struct backend_ops ops = {.name = "mock",
                                       .attach = mock_attach,
                                       .has_replies = mock_has_replies,
                                       .open = mock_open,
                                       .sample = mock_sample,
                                       .render_extra = mock_render_extra,
                                       .close = mock_close,
                                       .destroy = mock_destroy};

struct backend *backend_mock_new(const struct backend_config *config, struct err *e)
{
	struct mock *m = backend_alloc(sizeof *m, &ops, config, e);
	if (!m)
		return NULL;
	m->last_ms = -1;
	arena_init(&m->arena, MOCK_SCRIPT_BYTES_MAX);
	if (mock_script_read(&m->arena, config->mock_script, &m->script, config->ret_errors, e) < 0)
		goto fail;
	describe_devices(m);
	m->base.devices = m->devices;
	m->base.n = m->n;
	m->base.driver_version = m->script.driver_version;
	if (m->script.has_workload) {
		m->replicas = mock_replicas_new(&m->script.workload.replicas, config->log, e);
		if (!m->replicas)
			goto fail;
	}
	return &m->base;
fail:
	mock_destroy(&m->base);
	return NULL;
}
