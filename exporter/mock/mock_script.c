// SPDX-License-Identifier: Apache-2.0
// Mock scripts: YAML files that describe GPUs and what happens to them (docs/exporter.md). A script depends only on the
// time since the start, so that it repeats exactly.
#include "exporter/mock/mock.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema_rows.h"

// Two GPUs whose load rises and falls slowly; every family has values.
static const char builtin[] =
        "gpus:\n"
        "- series: {DCGM_FI_DEV_GPU_UTIL: {sine: {mean: 55, amplitude: 40, period: 10m}}}\n"
        "- series: {DCGM_FI_DEV_GPU_UTIL: {sine: {mean: 45, amplitude: 35, period: 7m, phase: 2m}}}\n";

#define MS_PER_DAY 86400000.0

// ---- the fields ----

ENUM_NAMES(throttle_reasons, THROTTLE__COUNT, "thermal", "power", "hw", "power-brake");
static const char *const ecc_kinds[] = {"corrected", "uncorrectable", NULL};

// clang-format off
#define OWNER(type) \
	{ROW("namespace", STRING), FIELD(type, given.namespace_), RANGE(1, 253), DOC("Label namespace.")}, \
	{ROW("pod", STRING), FIELD(type, given.pod), RANGE(1, 253), DOC("Label pod.")}, \
	{ROW("container", STRING), FIELD(type, given.container), RANGE(1, 253), DOC("Label container.")}
#define AT        {ROW("at", DURATION_MS), FIELD(struct mock_fault, at_ms), REQUIRED, DOC("Time since start.")}
#define FOR(text) {ROW("for", DURATION_MS), FIELD(struct mock_fault, for_ms), DOC(text)}
#define GPU       {ROW("gpu", INT32), FIELD(struct mock_fault, gpu), REQUIRED, RANGE(0, 63), DOC("The GPU's number.")}
#define HOW_LONG  "How long; left out: for ever."
#define FAULTS(kind) FIELD_LIST(struct mock_script, faults[kind].list, faults[kind].n)
static const struct schema_field sine_fields[] = {
	{ROW("mean", QUANTITY), FIELD(struct mock_sine, mean), REQUIRED, RANGE(-1e15, 1e15), DOC("Mean value.")},
	{ROW("amplitude", QUANTITY), FIELD(struct mock_sine, amplitude), REQUIRED, RANGE(-1e15, 1e15), DOC("Amplitude around the mean.")},
	{ROW("period", DURATION_MS), FIELD(struct mock_sine, period_ms), REQUIRED, RANGE(1, 365 * MS_PER_DAY), DOC("Duration of one period.")},
	{ROW("phase", DURATION_MS), FIELD(struct mock_sine, phase_ms), DOC("Phase at the start.")},
};
static const struct schema sine_schema = {SCHEMA("sine", struct mock_sine, sine_fields), DOC("A sine over time.")};

static const struct schema_field series_fields[] = {
	{ROW("sine", OBJECT), IN_PARENT, REQUIRED, CHILD(sine_schema), DOC("A sine over time.")},
};
static const struct schema series_schema = {SCHEMA("series", struct mock_sine, series_fields), DOC("A series given as a function of time.")};

static const struct schema_field instance_fields[] = {
	{ROW("profile", STRING), FIELD(struct mock_instance, profile), REQUIRED, RANGE(1, 31), DOC("Label GPU_I_PROFILE; \"1g.18gb\" also says how much memory it has.")},
	{ROW("id", INT32), FIELD(struct mock_instance, id), REQUIRED, RANGE(0, 999), DOC("Label GPU_I_ID.")},
	OWNER(struct mock_instance),
	{ROW("series", ANY), FIELD(struct mock_instance, given.series_node), DOC("As that of a GPU.")},
};
static const struct schema instance_schema = {SCHEMA("gpus[].instances[]", struct mock_instance, instance_fields), DOC("A MIG instance.")};

static const struct schema_field gpu_fields[] = {
	{ROW("count", INT32), FIELD(struct mock_gpu, count), DEFAULT("1"), RANGE(1, 64), DOC("How many GPUs like this one.")},
	{ROW("uuid", STRING), FIELD(struct mock_gpu, uuid), RANGE(1, 95), DOC("Default: GPU-00000000-0000-0000-0000- and the GPU's number in twelve digits.")},
	{ROW("model", STRING), FIELD(struct mock_gpu, model), DEFAULT("NVIDIA H200"), RANGE(1, 95), DOC("Label modelName.")},
	{ROW("pciBusId", STRING), FIELD(struct mock_gpu, pci_bus_id), RANGE(1, 31), DOC("Default: derived from the GPU's number.")},
	{ROW("migProfile", STRING), FIELD(struct mock_gpu, mig_profile), RANGE(1, 31), DOC("Label GPU_I_PROFILE.")},
	{ROW("migId", STRING), FIELD(struct mock_gpu, mig_id), RANGE(1, 15), DOC("Label GPU_I_ID.")},
	OWNER(struct mock_gpu),
	{ROW("memoryMiB", INT32), FIELD(struct mock_gpu, memory_mib), DEFAULT("143771"), RANGE(1, 16777216), DOC("Device memory.")},
	{ROW("powerLimitW", QUANTITY), FIELD(struct mock_gpu, power_limit_watts), DEFAULT("700"), RANGE(1, 100000), DOC("Power at full load.")},
	{ROW("idlePowerW", QUANTITY), FIELD(struct mock_gpu, idle_power_watts), DEFAULT("75"), RANGE(0, 100000), DOC("Power when idle.")},
	{ROW("series", ANY), FIELD(struct mock_gpu, given.series_node), DOC("Field name to series. The other fields follow DCGM_FI_DEV_GPU_UTIL; '_' means no sample.")},
	{ROW("instances", LIST), FIELD_LIST(struct mock_gpu, instances, n_instances), .max_items = 16, CHILD(instance_schema), DOC("MIG instances of each of these GPUs.")},
};

static const struct schema_field xid_fields[] = {
	AT, GPU,
	{ROW("code", INT32), FIELD(struct mock_fault, code), REQUIRED, RANGE(1, 999), DOC("XID code.")},
	{ROW("count", INT32), FIELD(struct mock_fault, count), DEFAULT("1"), RANGE(1, 1000000), DOC("How many times at once.")},
};
static const struct schema xid_schema = {SCHEMA("xids[]", struct mock_fault, xid_fields), DOC("An XID error.")};
static const struct schema_field loss_fields[] = {
	AT, GPU, FOR(HOW_LONG),
};
static const struct schema loss_schema = {SCHEMA("losses[]", struct mock_fault, loss_fields), DOC("A time during which a GPU does not respond.")};
static const struct schema_field throttle_fields[] = {
	AT, FOR(HOW_LONG), GPU,
	{ROW("reason", ENUM), FIELD(struct mock_fault, reason), DEFAULT("thermal"), ONE_OF(throttle_reasons), DOC("Why the clock is low.")},
	{ROW("clockPercent", QUANTITY), FIELD(struct mock_fault, clock_percent), DEFAULT("72"), RANGE(1, 100), DOC("SM clock, of the healthy one.")},
};
static const struct schema throttle_schema = {SCHEMA("throttles[]", struct mock_fault, throttle_fields), DOC("A time during which the clock of a GPU is reduced.")};
static const struct schema_field ecc_fields[] = {
	AT, FOR("Time over which the errors are spread; left out: all at once."), GPU,
	{ROW("kind", ENUM), FIELD(struct mock_fault, reason), DEFAULT("corrected"), ONE_OF(ecc_kinds), DOC("Whether the errors are corrected.")},
	{ROW("count", INT32), FIELD(struct mock_fault, count), DEFAULT("1"), RANGE(1, 1000000000), DOC("Number of errors.")},
};
static const struct schema ecc_schema = {SCHEMA("ecc[]", struct mock_fault, ecc_fields), DOC("Memory errors of a GPU.")};
static const struct schema_field leak_fields[] = {
	AT, FOR(HOW_LONG), GPU,
	{ROW("mibPerHour", QUANTITY), FIELD(struct mock_fault, mib_per_hour), REQUIRED, RANGE(0.001, 1e9), DOC("Growth of the used memory, until none is free.")},
};
static const struct schema leak_schema = {SCHEMA("leaks[]", struct mock_fault, leak_fields), DOC("GPU memory that a process does not free.")};
static const struct schema_field straggler_fields[] = {
	AT, FOR(HOW_LONG), GPU,
	{ROW("slowerPercent", QUANTITY), FIELD(struct mock_fault, slower_percent), DEFAULT("15"), RANGE(0.1, 99), DOC("By how much clock, activity and power above idle are lower.")},
};
static const struct schema straggler_schema = {SCHEMA("stragglers[]", struct mock_fault, straggler_fields), DOC("A GPU that works slower than the others, without a reason that it reports.")};
static const struct schema_field hang_fields[] = {
	AT, FOR(HOW_LONG), GPU,
};
static const struct schema hang_schema = {SCHEMA("hangs[]", struct mock_fault, hang_fields), DOC("A kernel that waits without end, such as a collective without its peer.")};
static const struct schema_field downtrain_fields[] = {
	AT, FOR(HOW_LONG), GPU,
	{ROW("generation", INT32), FIELD(struct mock_fault, generation), DEFAULT("1"), RANGE(1, 7), DOC("PCIe generation of the link.")},
	{ROW("lanes", INT32), FIELD(struct mock_fault, lanes), DEFAULT("16"), RANGE(1, 32), DOC("Lanes of the link.")},
};
static const struct schema downtrain_schema = {SCHEMA("downtrains[]", struct mock_fault, downtrain_fields), DOC("A PCIe link that runs below its maximum.")};

static const struct schema_field demand_fields[] = {
	{ROW("csv", STRING), FIELD(struct mock_demand, csv), RANGE(1, 4096), DOC("CSV file with a header line.")},
	{ROW("column", STRING), FIELD(struct mock_demand, column), RANGE(1, 128), DOC("Its column of numbers.")},
	{ROW("series", STRING), FIELD(struct mock_demand, series), RANGE(1, 65536), DOC("Values in promtool's notation.")},
	{ROW("sine", OBJECT), FIELD_SET(struct mock_demand, sine, has_sine), CHILD(sine_schema), DOC("A sine over time.")},
	{ROW("step", DURATION_MS), FIELD(struct mock_demand, step_ms), DEFAULT("1s"), RANGE(1, MS_PER_DAY), DOC("Time of one value of csv or series.")},
	{ROW("timeScale", QUANTITY), FIELD(struct mock_demand, time_scale), DEFAULT("1"), RANGE(0.001, 100000), DOC("How many times faster than written the demand plays.")},
	{ROW("scale", QUANTITY), FIELD(struct mock_demand, scale), DEFAULT("1"), RANGE(-1e15, 1e15), DOC("Factor on every value.")},
	{ROW("loop", BOOL), FIELD(struct mock_demand, loop), DEFAULT("true"), DOC("Start over after the last value; else the last value stays.")},
	{ROW("smooth", DURATION_MS), FIELD(struct mock_demand, smooth_ms), RANGE(0, MS_PER_DAY), DOC("Average the demand over this time (after timeScale).")},
};

static const struct schema_field replicas_fields[] = {
	{ROW("url", STRING), FIELD(struct mock_replicas_source, url), RANGE(8, 4096), DOC("http(s) URL of a Kubernetes object or its scale.")},
	{ROW("field", STRING), FIELD(struct mock_replicas_source, field), DEFAULT("status.readyReplicas"), RANGE(1, 256), DOC("Dotted path of the ready replicas in that object.")},
	{ROW("tokenFile", STRING), FIELD(struct mock_replicas_source, token_file), RANGE(1, 4096), DOC("Bearer token, read for every request.")},
	{ROW("caFile", STRING), FIELD(struct mock_replicas_source, ca_file), RANGE(1, 4096), DOC("Certificates to trust.")},
	{ROW("file", STRING), FIELD(struct mock_replicas_source, file), RANGE(1, 4096), DOC("File that holds one number.")},
	{ROW("constant", INT32), FIELD_SET(struct mock_replicas_source, constant, has_constant), RANGE(0, 1000000), DOC("Always this many.")},
	{ROW("interval", DURATION_MS), FIELD(struct mock_replicas_source, interval_ms), DEFAULT("1s"), RANGE(100, MS_PER_DAY), DOC("How often to ask url or file.")},
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
static const struct schema gpu_schema = {SCHEMA("gpus[]", struct mock_gpu, gpu_fields), VALIDATE(gpu_validate), DOC("A GPU, or `count` equal ones.")};
static const struct schema demand_schema = {SCHEMA("workload.demand", struct mock_demand, demand_fields), VALIDATE(demand_validate), DOC("The work that arrives, in units of work a second.")};
static const struct schema replicas_schema = {SCHEMA("workload.replicas", struct mock_replicas_source, replicas_fields), VALIDATE(replicas_validate), DOC("Where the number of ready replicas comes from.")};

static const struct schema_field workload_fields[] = {
	{ROW("name", STRING), FIELD(struct mock_workload, name), REQUIRED, RANGE(1, 240), DOC("Its name; pods are called name-0, name-1 ..")},
	{ROW("namespace", STRING), FIELD(struct mock_workload, namespace_), DEFAULT("default"), RANGE(1, 253), DOC("Its namespace.")},
	{ROW("demand", OBJECT), FIELD(struct mock_workload, demand), REQUIRED, CHILD(demand_schema), DOC("The work that arrives.")},
	{ROW("capacityPerReplica", QUANTITY), FIELD(struct mock_workload, capacity_per_replica), REQUIRED, RANGE(1e-9, 1e15), DOC("Work a second that one ready replica can do.")},
	{ROW("serialFraction", QUANTITY), FIELD(struct mock_workload, serial_ratio), DEFAULT("0"), RANGE(0, 1), DOC("Share of the work that only one replica can do: n replicas do n / (1 + it x (n - 1)).")},
	{ROW("replicas", OBJECT), FIELD(struct mock_workload, replicas), REQUIRED, CHILD(replicas_schema), DOC("Number of ready replicas.")},
	{ROW("gpusPerReplica", INT32), FIELD(struct mock_workload, gpus_per_replica), DEFAULT("1"), RANGE(1, 64), DOC("GPUs a replica holds.")},
	{ROW("idleUtil", QUANTITY), FIELD(struct mock_workload, idle_percent), DEFAULT("0"), RANGE(0, 100), DOC("Utilisation in % of a held GPU with nothing to do.")},
	{ROW("backlogMax", QUANTITY), FIELD(struct mock_workload, backlog_max), DEFAULT("0"), RANGE(0, 1e15), DOC("Work that can wait; what is above gives up. 0: no ceiling.")},
};
static const struct schema workload_schema = {SCHEMA("workload", struct mock_workload, workload_fields), DOC("A workload that shares its demand over its ready replicas.")};

static const struct schema_field script_fields[] = {
	{ROW("driverVersion", STRING), FIELD(struct mock_script, driver_version), DEFAULT("580.65.06"), RANGE(1, 79), DOC("Label DCGM_FI_DRIVER_VERSION.")},
	{ROW("step", DURATION_MS), FIELD(struct mock_script, step_ms), DEFAULT("1s"), RANGE(1, MS_PER_DAY), DOC("Time of one value of a GPU's series.")},
	{ROW("loop", BOOL), FIELD(struct mock_script, loop), DEFAULT("true"), DOC("GPU series start over after their last value.")},
	{ROW("gpus", LIST), FIELD_LIST(struct mock_script, gpus, n_gpus), REQUIRED, .max_items = 64, CHILD(gpu_schema), DOC("The GPUs.")},
	{ROW("xids", LIST), FAULTS(MOCK_XID), CHILD(xid_schema), DOC("XID errors to come.")},
	{ROW("losses", LIST), FAULTS(MOCK_LOSS), CHILD(loss_schema), DOC("GPUs that fall away.")},
	{ROW("throttles", LIST), FAULTS(MOCK_THROTTLE), CHILD(throttle_schema), DOC("Reduced clocks to come.")},
	{ROW("ecc", LIST), FAULTS(MOCK_ECC), CHILD(ecc_schema), DOC("Memory errors to come.")},
	{ROW("leaks", LIST), FAULTS(MOCK_LEAK), CHILD(leak_schema), DOC("Memory leaks to come.")},
	{ROW("stragglers", LIST), FAULTS(MOCK_STRAGGLER), CHILD(straggler_schema), DOC("GPUs that become slower than the others.")},
	{ROW("hangs", LIST), FAULTS(MOCK_HANG), CHILD(hang_schema), DOC("Kernels that hang.")},
	{ROW("downtrains", LIST), FAULTS(MOCK_DOWNTRAIN), CHILD(downtrain_schema), DOC("PCIe links that lose speed.")},
	{ROW("workload", OBJECT), FIELD_SET(struct mock_script, workload, has_workload), CHILD(workload_schema), DOC("A workload that uses the GPUs.")},
};
static const struct schema script_schema = {SCHEMA("mock script", struct mock_script, script_fields), DOC("What the mock backend plays.")};
// clang-format on

// ---- decoding ----

struct decoding {
	struct arena *a;
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
	struct mock_sine sine = {0};
	if (schema_decode(&series_schema, node, &sine, d->a, d->errors, path) == 0)
		mock_series_init_sine(ret_series, sine.mean, sine.amplitude, (double)sine.period_ms,
		                      (double)sine.phase_ms);
}

// A map from a field name to a series.
static void decode_series_map(struct decoding *d, const struct mock_script *s, const char *path,
                              struct mock_given *given)
{
	const struct doc_node *node = given->series_node;
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
		given->series[f] = series;
	}
}

static void decode_gpu(struct decoding *d, struct mock_script *s, size_t index)
{
	struct mock_gpu *g = &s->gpus[index];
	char path[128];
	snprintf(path, sizeof path, "gpus[%zu].series", index);
	decode_series_map(d, s, path, &g->given);
	for (size_t k = 0; k < g->n_instances; k++) {
		snprintf(path, sizeof path, "gpus[%zu].instances[%zu].series", index, k);
		decode_series_map(d, s, path, &g->instances[k].given);
	}
}

// Resolves a file name relative to the script.
static const char *resolve(struct decoding *d, const char *path)
{
	return path ? arena_path_beside(d->a, d->errors->file, path) : NULL;
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

static void check_gpu_numbers(struct decoding *d, const struct doc_node *root, const struct mock_script *s)
{
	static const char *const lists[MOCK_FAULT__COUNT] = {"xids",  "losses",     "throttles", "ecc",
	                                                     "leaks", "stragglers", "hangs",     "downtrains"};
	for (int k = 0; k < MOCK_FAULT__COUNT; k++)
		for (size_t i = 0; i < s->faults[k].n; i++)
			check_gpu_number(d, root, lists[k], i, s->faults[k].list[i].gpu, s->n_boards);
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

int mock_script_parse(struct arena *a, const char *name, const char *text, size_t len, struct mock_script *ret_script,
                      struct buf *ret_errors, struct err *e)
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
	struct decoding d = {.a = a, .errors = errors};
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
		return mock_script_parse(a, "built-in", builtin, sizeof builtin - 1, ret_script, ret_errors, e);
	struct buf text;
	buf_init(&text, DOC_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = mock_script_parse(a, path, buf_str(&text), text.len, ret_script, ret_errors, e);
	buf_done(&text);
	return rc;
}
