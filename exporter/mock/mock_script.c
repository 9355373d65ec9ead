// SPDX-License-Identifier: Apache-2.0
#include "exporter/mock/mock_script.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "exporter/device.h"

// Two GPUs whose load rises and falls slowly; every family has values.
static const char builtin[] =
        "gpus:\n"
        "- series: {DCGM_FI_DEV_GPU_UTIL: {sine: {mean: 55, amplitude: 40, period: 10m}}}\n"
        "- series: {DCGM_FI_DEV_GPU_UTIL: {sine: {mean: 45, amplitude: 35, period: 7m, phase: 2m}}}\n";

// A series written as a map.
struct mock_series_map {
	struct mock_sine sine;
};

#define MS_PER_DAY 86400000.0
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

// ---- the fields ----

// A field whose presence is not recorded.
#define FIELD(parent, key, kind, member, ...)                                                                          \
	FIELD_WITH(parent, key, kind, member, SCHEMA_NO_OFFSET, SCHEMA_NO_OFFSET, __VA_ARGS__)
#define FIELD_WITH(parent, key, kind, member, set, counted, ...)                                                       \
	{                                                                                                              \
		.name = key, .type = SCHEMA_##kind, .offset = offsetof(struct parent, member), .set_offset = set,      \
		.count_offset = counted, __VA_ARGS__                                                                   \
	}
#define LIST(parent, key, member, count, ...)                                                                          \
	FIELD_WITH(parent, key, LIST, member, SCHEMA_NO_OFFSET, offsetof(struct parent, count), __VA_ARGS__)
#define FAULTS(key, member, ...) LIST(mock_script, key, faults.member, faults.n_##member, __VA_ARGS__)
#define SCHEMA(title, parent, list, ...)                                                                               \
	{                                                                                                              \
		.name = title, .struct_size = sizeof(struct parent), .fields = list, .n_fields = COUNT(list),          \
		__VA_ARGS__                                                                                            \
	}
#define AT(parent, member) FIELD(parent, "at", DURATION_MS, member, .doc = "Time since start.", .required = true)
#define GPU(parent, member)                                                                                            \
	FIELD(parent, "gpu", INT32, member, .doc = "The GPU's number.", .required = true, .min = 0, .max = 63)
#define FOR(parent, member, ...) FIELD(parent, "for", DURATION_MS, member, __VA_ARGS__)
#define HOW_LONG                 .doc = "How long; left out: for ever."
// The fields of struct mock_fault.
#define FAULT(parent, ...) AT(parent, fault.at_ms), FOR(parent, fault.for_ms, __VA_ARGS__), GPU(parent, fault.gpu)

static const char *const throttle_reasons[] = {"thermal", "power", "hw", "power-brake", NULL};
_Static_assert(COUNT(throttle_reasons) == THROTTLE__COUNT + 1, "one name per reason");
static const char *const ecc_kinds[] = {"corrected", "uncorrectable", NULL};

// clang-format off
static const struct schema_field sine_fields[] = {
	FIELD(mock_sine, "mean", QUANTITY, mean, .doc = "Mean value.", .required = true, .min = -1e15, .max = 1e15),
	FIELD(mock_sine, "amplitude", QUANTITY, amplitude, .doc = "Amplitude around the mean.", .required = true, .min = -1e15, .max = 1e15),
	FIELD(mock_sine, "period", DURATION_MS, period_ms, .doc = "Duration of one period.", .required = true, .min = 1, .max = 365 * MS_PER_DAY),
	FIELD(mock_sine, "phase", DURATION_MS, phase_ms, .doc = "Phase at the start."),
};
static const struct schema sine_schema = SCHEMA("sine", mock_sine, sine_fields, .doc = "A sine over time.");

static const struct schema_field series_fields[] = {
	FIELD(mock_series_map, "sine", OBJECT, sine, .doc = "A sine over time.", .required = true, .child = &sine_schema),
};
static const struct schema series_schema = SCHEMA("series", mock_series_map, series_fields, .doc = "A series given as a function of time.");

static const struct schema_field instance_fields[] = {
	FIELD(mock_instance, "profile", STRING, profile, .doc = "Label GPU_I_PROFILE; \"1g.18gb\" also says how much memory it has.", .required = true, .min = 1, .max = 31),
	FIELD(mock_instance, "id", INT32, id, .doc = "Label GPU_I_ID.", .required = true, .min = 0, .max = 999),
	FIELD(mock_instance, "namespace", STRING, namespace_, .doc = "Label namespace.", .min = 1, .max = 253),
	FIELD(mock_instance, "pod", STRING, pod, .doc = "Label pod.", .min = 1, .max = 253),
	FIELD(mock_instance, "container", STRING, container, .doc = "Label container.", .min = 1, .max = 253),
	FIELD(mock_instance, "series", ANY, series_node, .doc = "As that of a GPU."),
};
static const struct schema instance_schema = SCHEMA("gpus[].instances[]", mock_instance, instance_fields, .doc = "A MIG instance.");

static const struct schema_field gpu_fields[] = {
	FIELD(mock_gpu, "count", INT32, count, .doc = "How many GPUs like this one.", .default_text = "1", .min = 1, .max = 64),
	FIELD(mock_gpu, "uuid", STRING, uuid, .doc = "Default: GPU-00000000-0000-0000-0000- and the GPU's number in twelve digits.", .min = 1, .max = 95),
	FIELD(mock_gpu, "model", STRING, model, .doc = "Label modelName.", .default_text = "NVIDIA H200", .min = 1, .max = 95),
	FIELD(mock_gpu, "pciBusId", STRING, pci_bus_id, .doc = "Default: derived from the GPU's number.", .min = 1, .max = 31),
	FIELD(mock_gpu, "migProfile", STRING, mig_profile, .doc = "Label GPU_I_PROFILE.", .min = 1, .max = 31),
	FIELD(mock_gpu, "migId", STRING, mig_id, .doc = "Label GPU_I_ID.", .min = 1, .max = 15),
	FIELD(mock_gpu, "namespace", STRING, namespace_, .doc = "Label namespace.", .min = 1, .max = 253),
	FIELD(mock_gpu, "pod", STRING, pod, .doc = "Label pod.", .min = 1, .max = 253),
	FIELD(mock_gpu, "container", STRING, container, .doc = "Label container.", .min = 1, .max = 253),
	FIELD(mock_gpu, "memoryMiB", INT32, memory_mib, .doc = "Device memory.", .default_text = "143771", .min = 1, .max = 16777216),
	FIELD(mock_gpu, "powerLimitW", QUANTITY, power_limit_watts, .doc = "Power at full load.", .default_text = "700", .min = 1, .max = 100000),
	FIELD(mock_gpu, "idlePowerW", QUANTITY, idle_power_watts, .doc = "Power when idle.", .default_text = "75", .max = 100000),
	FIELD(mock_gpu, "series", ANY, series_node, .doc = "Field name to series. The other fields follow DCGM_FI_DEV_GPU_UTIL; '_' means no sample."),
	LIST(mock_gpu, "instances", instances, n_instances, .doc = "MIG instances of each of these GPUs.", .max_items = 16, .child = &instance_schema),
};

static const struct schema_field xid_fields[] = {
	AT(mock_xid, at_ms),
	GPU(mock_xid, gpu),
	FIELD(mock_xid, "code", INT32, code, .doc = "XID code.", .required = true, .min = 1, .max = 999),
	FIELD(mock_xid, "count", INT32, count, .doc = "How many times at once.", .default_text = "1", .min = 1, .max = 1000000),
};
static const struct schema xid_schema = SCHEMA("xids[]", mock_xid, xid_fields, .doc = "An XID error.");
static const struct schema_field loss_fields[] = {
	AT(mock_fault, at_ms),
	GPU(mock_fault, gpu),
	FOR(mock_fault, for_ms, HOW_LONG),
};
static const struct schema loss_schema = SCHEMA("losses[]", mock_fault, loss_fields, .doc = "A time during which a GPU does not respond.");
static const struct schema_field throttle_fields[] = {
	FAULT(mock_throttle, HOW_LONG),
	FIELD(mock_throttle, "reason", ENUM, reason, .doc = "Why the clock is low.", .default_text = "thermal", .enum_names = throttle_reasons),
	FIELD(mock_throttle, "clockPercent", QUANTITY, clock_percent, .doc = "SM clock, of the healthy one.", .default_text = "72", .min = 1, .max = 100),
};
static const struct schema throttle_schema = SCHEMA("throttles[]", mock_throttle, throttle_fields, .doc = "A time during which the clock of a GPU is reduced.");
static const struct schema_field ecc_fields[] = {
	FAULT(mock_ecc, .doc = "Time over which the errors are spread; left out: all at once."),
	FIELD(mock_ecc, "kind", ENUM, kind, .doc = "Whether the errors are corrected.", .default_text = "corrected", .enum_names = ecc_kinds),
	FIELD(mock_ecc, "count", INT32, count, .doc = "Number of errors.", .default_text = "1", .min = 1, .max = 1000000000),
};
static const struct schema ecc_schema = SCHEMA("ecc[]", mock_ecc, ecc_fields, .doc = "Memory errors of a GPU.");
static const struct schema_field leak_fields[] = {
	FAULT(mock_leak, HOW_LONG),
	FIELD(mock_leak, "mibPerHour", QUANTITY, mib_per_hour, .doc = "Growth of the used memory, until none is free.", .required = true, .min = 0.001, .max = 1e9),
};
static const struct schema leak_schema = SCHEMA("leaks[]", mock_leak, leak_fields, .doc = "GPU memory that a process does not free.");
static const struct schema_field straggler_fields[] = {
	FAULT(mock_straggler, HOW_LONG),
	FIELD(mock_straggler, "slowerPercent", QUANTITY, slower_percent, .doc = "By how much clock, activity and power above idle are lower.", .default_text = "15", .min = 0.1, .max = 99),
};
static const struct schema straggler_schema = SCHEMA("stragglers[]", mock_straggler, straggler_fields, .doc = "A GPU that works slower than the others, without a reason that it reports.");
static const struct schema_field hang_fields[] = {
	AT(mock_fault, at_ms), FOR(mock_fault, for_ms, HOW_LONG), GPU(mock_fault, gpu),
};
static const struct schema hang_schema = SCHEMA("hangs[]", mock_fault, hang_fields, .doc = "A kernel that waits without end, such as a collective without its peer.");
static const struct schema_field downtrain_fields[] = {
	FAULT(mock_downtrain, HOW_LONG),
	FIELD(mock_downtrain, "generation", INT32, generation, .doc = "PCIe generation of the link.", .default_text = "1", .min = 1, .max = 7),
	FIELD(mock_downtrain, "lanes", INT32, lanes, .doc = "Lanes of the link.", .default_text = "16", .min = 1, .max = 32),
};
static const struct schema downtrain_schema = SCHEMA("downtrains[]", mock_downtrain, downtrain_fields, .doc = "A PCIe link that runs below its maximum.");

static const struct schema_field demand_fields[] = {
	FIELD(mock_demand, "csv", STRING, csv, .doc = "CSV file with a header line.", .min = 1, .max = 4096),
	FIELD(mock_demand, "column", STRING, column, .doc = "Its column of numbers.", .min = 1, .max = 128),
	FIELD(mock_demand, "series", STRING, series, .doc = "Values in promtool's notation.", .min = 1, .max = 65536),
	FIELD_WITH(mock_demand, "sine", OBJECT, sine, offsetof(struct mock_demand, has_sine), SCHEMA_NO_OFFSET, .doc = "A sine over time.", .child = &sine_schema),
	FIELD(mock_demand, "step", DURATION_MS, step_ms, .doc = "Time of one value of csv or series.", .default_text = "1s", .min = 1, .max = MS_PER_DAY),
	FIELD(mock_demand, "timeScale", QUANTITY, time_scale, .doc = "How many times faster than written the demand plays.", .default_text = "1", .min = 0.001, .max = 100000),
	FIELD(mock_demand, "scale", QUANTITY, scale, .doc = "Factor on every value.", .default_text = "1", .min = -1e15, .max = 1e15),
	FIELD(mock_demand, "loop", BOOL, loop, .doc = "Start over after the last value; else the last value stays.", .default_text = "true"),
	FIELD(mock_demand, "smooth", DURATION_MS, smooth_ms, .doc = "Average the demand over this time (after timeScale).", .max = MS_PER_DAY),
};

static const struct schema_field replicas_fields[] = {
	FIELD(mock_replicas_source, "url", STRING, url, .doc = "http(s) URL of a Kubernetes object or its scale.", .min = 8, .max = 4096),
	FIELD(mock_replicas_source, "field", STRING, field, .doc = "Dotted path of the ready replicas in that object.", .default_text = "status.readyReplicas", .min = 1, .max = 256),
	FIELD(mock_replicas_source, "tokenFile", STRING, token_file, .doc = "Bearer token, read for every request.", .min = 1, .max = 4096),
	FIELD(mock_replicas_source, "caFile", STRING, ca_file, .doc = "Certificates to trust.", .min = 1, .max = 4096),
	FIELD(mock_replicas_source, "file", STRING, file, .doc = "File that holds one number.", .min = 1, .max = 4096),
	FIELD_WITH(mock_replicas_source, "constant", INT32, constant, offsetof(struct mock_replicas_source, has_constant), SCHEMA_NO_OFFSET, .doc = "Always this many.", .min = 0, .max = 1000000),
	FIELD(mock_replicas_source, "interval", DURATION_MS, interval_ms, .doc = "How often to ask url or file.", .default_text = "1s", .min = 100, .max = MS_PER_DAY),
};
// clang-format on

static void gpu_validate(const void *value, struct fault_list *l)
{
	const struct mock_gpu *g = value;
	bool is_twice = false;
	for (size_t i = 0; i < g->n_instances; i++)
		for (size_t k = 0; k < i; k++)
			is_twice |= g->instances[i].id == g->instances[k].id;
	if (g->count > 1 && (g->uuid || g->pci_bus_id))
		fault_add(l, "count", -1, "several GPUs cannot share a uuid or pciBusId: leave those out");
	else if (g->n_instances && (g->mig_id || g->mig_profile))
		fault_add(l, "migId", -1, "a GPU with instances has no MIG id itself: leave migId and migProfile out");
	else if (is_twice)
		fault_add(l, "instances", -1, "two instances have the same id");
	else if (g->idle_power_watts > g->power_limit_watts)
		fault_add(l, "idlePowerW", -1, "must not be above powerLimitW");
}

static void demand_validate(const void *value, struct fault_list *l)
{
	const struct mock_demand *m = value;
	int given = (m->csv != NULL) + (m->series != NULL) + m->has_sine;
	if (given != 1)
		fault_add(l, "series", -1, "exactly one of csv, series and sine must be given");
	else if ((m->csv != NULL) != (m->column != NULL))
		fault_add(l, "column", -1, "csv and column go together: name the column to read");
}

static void replicas_validate(const void *value, struct fault_list *l)
{
	const struct mock_replicas_source *r = value;
	int given = (r->url != NULL) + (r->file != NULL) + r->has_constant;
	if (given != 1)
		fault_add(l, "url", -1, "exactly one of url, file and constant must be given");
	else if (r->url && strncmp(r->url, "http://", 7) != 0 && strncmp(r->url, "https://", 8) != 0)
		fault_add(l, "url", -1, "must start with http:// or https://");
}

// clang-format off
static const struct schema gpu_schema = SCHEMA("gpus[]", mock_gpu, gpu_fields, .doc = "A GPU, or `count` equal ones.", .validate = gpu_validate);
static const struct schema demand_schema = SCHEMA("workload.demand", mock_demand, demand_fields, .doc = "The work that arrives, in units of work a second.", .validate = demand_validate);
static const struct schema replicas_schema = SCHEMA("workload.replicas", mock_replicas_source, replicas_fields, .doc = "Where the number of ready replicas comes from.", .validate = replicas_validate);

static const struct schema_field workload_fields[] = {
	FIELD(mock_workload, "name", STRING, name, .doc = "Its name; pods are called name-0, name-1 ..", .required = true, .min = 1, .max = 240),
	FIELD(mock_workload, "namespace", STRING, namespace_, .doc = "Its namespace.", .default_text = "default", .min = 1, .max = 253),
	FIELD(mock_workload, "demand", OBJECT, demand, .doc = "The work that arrives.", .required = true, .child = &demand_schema),
	FIELD(mock_workload, "capacityPerReplica", QUANTITY, capacity_per_replica, .doc = "Work a second that one ready replica can do.", .required = true, .min = 1e-9, .max = 1e15),
	FIELD(mock_workload, "serialFraction", QUANTITY, serial_ratio, .doc = "Share of the work that only one replica can do: n replicas do n / (1 + it x (n - 1)).", .default_text = "0", .max = 1),
	FIELD(mock_workload, "replicas", OBJECT, replicas, .doc = "Number of ready replicas.", .required = true, .child = &replicas_schema),
	FIELD(mock_workload, "gpusPerReplica", INT32, gpus_per_replica, .doc = "GPUs a replica holds.", .default_text = "1", .min = 1, .max = 64),
	FIELD(mock_workload, "idleUtil", QUANTITY, idle_percent, .doc = "Utilisation in % of a held GPU with nothing to do.", .default_text = "0", .max = 100),
	FIELD(mock_workload, "backlogMax", QUANTITY, backlog_max, .doc = "Work that can wait; what is above gives up. 0: no ceiling.", .default_text = "0", .max = 1e15),
};
static const struct schema workload_schema = SCHEMA("workload", mock_workload, workload_fields, .doc = "A workload that shares its demand over its ready replicas.");

static const struct schema_field script_fields[] = {
	FIELD(mock_script, "driverVersion", STRING, driver_version, .doc = "Label DCGM_FI_DRIVER_VERSION.", .default_text = "580.65.06", .min = 1, .max = 79),
	FIELD(mock_script, "step", DURATION_MS, step_ms, .doc = "Time of one value of a GPU's series.", .default_text = "1s", .min = 1, .max = MS_PER_DAY),
	FIELD(mock_script, "loop", BOOL, loop, .doc = "GPU series start over after their last value.", .default_text = "true"),
	LIST(mock_script, "gpus", gpus, n_gpus, .doc = "The GPUs.", .required = true, .max_items = 64, .child = &gpu_schema),
	LIST(mock_script, "xids", xids, n_xids, .doc = "XID errors to come.", .child = &xid_schema),
	LIST(mock_script, "losses", losses, n_losses, .doc = "GPUs that fall away.", .child = &loss_schema),
	FAULTS("throttles", throttles, .doc = "Reduced clocks to come.", .child = &throttle_schema),
	FAULTS("ecc", ecc, .doc = "Memory errors to come.", .child = &ecc_schema),
	FAULTS("leaks", leaks, .doc = "Memory leaks to come.", .child = &leak_schema),
	FAULTS("stragglers", stragglers, .doc = "GPUs that become slower than the others.", .child = &straggler_schema),
	FAULTS("hangs", hangs, .doc = "Kernels that hang.", .child = &hang_schema),
	FAULTS("downtrains", downtrains, .doc = "PCIe links that lose speed.", .child = &downtrain_schema),
	FIELD_WITH(mock_script, "workload", OBJECT, workload, offsetof(struct mock_script, has_workload), SCHEMA_NO_OFFSET, .doc = "A workload that uses the GPUs.", .child = &workload_schema),
};
static const struct schema script_schema = SCHEMA("mock script", mock_script, script_fields, .doc = "What the mock backend plays.");
// clang-format on

// ---- decoding ----

struct decoding {
	struct arena *a;
	const char *base_dir;
	struct schema_errors *errors;
};

static void out_of_memory(struct decoding *d, const struct doc_node *node, const char *path)
{
	schema_report(d->errors, node, path, "the script exceeds the ceiling of %d bytes of memory",
	              MOCK_SCRIPT_BYTES_MAX);
}

// A series is a scalar in promtool's notation, or a map {sine: {...}}.
static void decode_series(struct decoding *d, const struct doc_node *node, const char *path, int64_t step_ms, bool loop,
                          struct mock_series *ret_series)
{
	struct err e;
	if (node->kind == DOC_SCALAR) {
		if (mock_series_parse(d->a, node->text, (double)step_ms, loop, 1, ret_series, &e) < 0)
			schema_report(d->errors, node, path, "%s", e.msg);
		return;
	}
	if (node->kind != DOC_MAP) {
		schema_report(
		        d->errors, node, path,
		        "a series is text such as '0+10x9 90x20' or {sine: {mean: 50, amplitude: 40, period: 10m}}");
		return;
	}
	struct mock_series_map map = {0};
	if (schema_decode(&series_schema, node, &map, d->a, d->errors, path) == 0)
		mock_series_init_sine(ret_series, map.sine.mean, map.sine.amplitude, (double)map.sine.period_ms,
		                      (double)map.sine.phase_ms);
}

// A map from a field name to a series.
static void decode_series_map(struct decoding *d, const struct mock_script *s, const struct doc_node *node,
                              const char *path, const struct mock_series **ret_series)
{
	if (!node)
		return;
	if (node->kind != DOC_MAP) {
		schema_report(d->errors, node, path, "must be a map from a field name to a series");
		return;
	}
	for (const struct doc_node *c = node->child; c; c = c->next) {
		enum field f = family_find(c->key);
		char child[224];
		snprintf(child, sizeof child, "%s.%s", path, c->key);
		if (f == FIELD__COUNT) {
			// Errors above the limit are only counted and need no suggestion.
			const char *closest = d->errors->n < SCHEMA_ERRORS_MAX ? family_closest_name(c->key) : NULL;
			schema_report(d->errors, c, path, "no field \"%s\"%s%s%s", c->key,
			              closest ? "; did you mean \"" : "", closest ? closest : "", closest ? "\"?" : "");
			continue;
		}
		struct mock_series *series = arena_alloc(d->a, sizeof *series);
		if (!series) {
			out_of_memory(d, c, child);
			return;
		}
		decode_series(d, c, child, s->step_ms, s->loop, series);
		ret_series[f] = series;
	}
}

static void decode_gpu(struct decoding *d, struct mock_script *s, size_t index)
{
	struct mock_gpu *g = &s->gpus[index];
	char path[128];
	snprintf(path, sizeof path, "gpus[%zu].series", index);
	decode_series_map(d, s, g->series_node, path, g->series);
	for (size_t k = 0; k < g->n_instances; k++) {
		snprintf(path, sizeof path, "gpus[%zu].instances[%zu].series", index, k);
		decode_series_map(d, s, g->instances[k].series_node, path, g->instances[k].series);
	}
}

// Resolves a file name relative to the script.
static const char *resolve(struct decoding *d, const char *path)
{
	if (!path || !path[0] || path[0] == '/' || !d->base_dir[0])
		return path;
	return arena_printf(d->a, "%s/%s", d->base_dir, path);
}

static void decode_demand(struct decoding *d, const struct doc_node *node, struct mock_workload *w)
{
	struct mock_demand *m = &w->demand;
	const struct doc_node *at = doc_get(node, "demand");
	double step_ms = (double)m->step_ms / m->time_scale;
	struct err e;
	int rc = 0;
	if (m->csv) {
		const char *path = resolve(d, m->csv);
		at = doc_get(at, "csv");
		if (!path)
			rc = err_set(&e, ERR_LIMIT, "the script exceeds its memory");
		else
			rc = mock_series_read_csv(d->a, path, m->column, step_ms, m->loop, m->scale, &w->demand_series,
			                          &e);
	} else if (m->series) {
		at = doc_get(at, "series");
		rc = mock_series_parse(d->a, m->series, step_ms, m->loop, m->scale, &w->demand_series, &e);
	} else {
		mock_series_init_sine(&w->demand_series, m->sine.mean * m->scale, m->sine.amplitude * m->scale,
		                      (double)m->sine.period_ms / m->time_scale,
		                      (double)m->sine.phase_ms / m->time_scale);
	}
	if (rc < 0)
		schema_report(d->errors, at, m->csv ? "workload.demand.csv" : "workload.demand.series", "%s", e.msg);
}

static void check_gpu_number(struct decoding *d, const struct doc_node *root, const char *list, size_t i, int32_t gpu,
                             int32_t n_boards)
{
	if (gpu < n_boards)
		return;
	const struct doc_node *item = doc_get(root, list);
	item = item ? item->child : NULL;
	for (size_t k = 0; item && k < i; k++)
		item = item->next;
	char path[64];
	snprintf(path, sizeof path, "%s[%zu].gpu", list, i);
	schema_report(d->errors, doc_get(item, "gpu"), path, "there are %d GPUs, the last one is %d", (int)n_boards,
	              (int)n_boards - 1);
}

// Checks the field `gpu` of every element of every list that has one: XIDs, losses and faults.
static void check_gpu_numbers(struct decoding *d, const struct doc_node *root, const struct mock_script *s)
{
	for (size_t l = 0; l < COUNT(script_fields); l++) {
		const struct schema_field *list = &script_fields[l];
		for (size_t k = 0; list->type == SCHEMA_LIST && k < list->child->n_fields; k++) {
			const struct schema_field *gpu = &list->child->fields[k];
			const char *items = *(char *const *)((const char *)s + list->offset);
			size_t n = *(const size_t *)((const char *)s + list->count_offset);
			for (size_t i = 0; strcmp(gpu->name, "gpu") == 0 && i < n; i++)
				check_gpu_number(d, root, list->name, i,
				                 *(const int32_t *)(items + i * list->child->struct_size + gpu->offset),
				                 s->n_boards);
		}
	}
}

static void decode_rest(struct decoding *d, const struct doc_node *root, struct mock_script *s)
{
	for (size_t i = 0; i < s->n_gpus; i++) {
		s->n_boards += s->gpus[i].count;
		s->n_devices += s->gpus[i].count * (1 + (int32_t)s->gpus[i].n_instances);
		decode_gpu(d, s, i);
	}
	if (s->n_devices > DEVICES_MAX)
		schema_report(d->errors, doc_get(root, "gpus"), "gpus", "%d GPUs and MIG instances, the ceiling is %d",
		              (int)s->n_devices, DEVICES_MAX);
	check_gpu_numbers(d, root, s);
	if (s->has_workload) {
		struct mock_replicas_source *r = &s->workload.replicas;
		decode_demand(d, doc_get(root, "workload"), &s->workload);
		r->file = resolve(d, r->file);
		r->token_file = resolve(d, r->token_file);
		r->ca_file = resolve(d, r->ca_file);
	}
}

int mock_script_parse(struct arena *a, const char *name, const char *base_dir, const char *text, size_t len,
                      struct mock_script *ret_script, struct buf *ret_errors, struct err *e)
{
	struct doc_file file;
	if (doc_parse_yaml(a, name, text, len, &file, e) < 0)
		return -1;
	if (file.n_roots != 1)
		return err_set(e, ERR_INPUT, "%s: %zu documents, a mock script is one", name, file.n_roots);
	struct schema_errors *errors = arena_alloc(a, sizeof *errors);
	if (!errors)
		return err_no_memory(e);
	schema_errors_init(errors, name);
	struct decoding d = {.a = a, .base_dir = base_dir, .errors = errors};
	*ret_script = (struct mock_script){0};
	if (schema_decode(&script_schema, file.roots[0], ret_script, a, errors, "") == 0)
		decode_rest(&d, file.roots[0], ret_script);
	if (errors->n == 0)
		return 0;
	schema_errors_print(errors, ret_errors);
	return err_set(e, ERR_INPUT, "%s: %zu errors", name, errors->n + errors->dropped);
}

int mock_script_read(struct arena *a, const char *path, struct mock_script *ret_script, struct buf *ret_errors,
                     struct err *e)
{
	if (!path)
		return mock_script_parse(a, "built-in", "", builtin, sizeof builtin - 1, ret_script, ret_errors, e);
	struct buf text;
	buf_init(&text, DOC_BYTES_MAX);
	const char *slash = strrchr(path, '/');
	// "/script.yaml" has the base directory "/".
	char *base_dir = arena_strndup(a, path, !slash ? 0 : slash == path ? 1 : (size_t)(slash - path));
	int rc = base_dir ? 0 : err_no_memory(e);
	if (rc == 0)
		rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = mock_script_parse(a, path, base_dir, buf_str(&text), text.len, ret_script, ret_errors, e);
	buf_done(&text);
	return rc;
}
