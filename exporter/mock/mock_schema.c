// SPDX-License-Identifier: Apache-2.0
#include "exporter/mock/mock_schema.h"

#include <string.h>

#define MS_PER_DAY 86400000.0
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
// A field whose presence is not recorded.
#define FIELD(parent, key, kind, member, ...)                                                                          \
	{                                                                                                              \
		.name = key, .type = kind, .offset = offsetof(parent, member), .set_offset = SCHEMA_NO_OFFSET,         \
		.count_offset = SCHEMA_NO_OFFSET, __VA_ARGS__                                                          \
	}

// ---- sine ----
static const struct schema_field sine_fields[] = {
        FIELD(struct mock_sine, "mean", SCHEMA_QUANTITY, mean, .doc = "Mean value.", .required = true, .min = -1e15,
              .max = 1e15),
        FIELD(struct mock_sine, "amplitude", SCHEMA_QUANTITY, amplitude, .doc = "Amplitude around the mean.",
              .required = true, .min = -1e15, .max = 1e15),
        FIELD(struct mock_sine, "period", SCHEMA_DURATION_MS, period_ms, .doc = "Duration of one period.",
              .required = true, .min = 1, .max = 365 * MS_PER_DAY),
        FIELD(struct mock_sine, "phase", SCHEMA_DURATION_MS, phase_ms, .doc = "Phase at the start."),
};
static const struct schema sine_schema = {.name = "sine",
                                          .doc = "A sine over time.",
                                          .struct_size = sizeof(struct mock_sine),
                                          .fields = sine_fields,
                                          .n_fields = COUNT(sine_fields)};

static const struct schema_field series_map_fields[] = {
        FIELD(struct mock_series_map, "sine", SCHEMA_OBJECT, sine, .doc = "A sine over time.", .required = true,
              .child = &sine_schema),
};
const struct schema mock_series_schema = {.name = "series",
                                          .doc = "A series given as a function of time.",
                                          .struct_size = sizeof(struct mock_series_map),
                                          .fields = series_map_fields,
                                          .n_fields = COUNT(series_map_fields)};

// ---- gpus[] ----
static const struct schema_field instance_fields[] = {
        FIELD(struct mock_instance, "profile", SCHEMA_STRING, profile,
              .doc = "Label GPU_I_PROFILE; \"1g.18gb\" also says how much memory it has.", .required = true, .min = 1,
              .max = 31),
        FIELD(struct mock_instance, "id", SCHEMA_INT32, id, .doc = "Label GPU_I_ID.", .required = true, .min = 0,
              .max = 999),
        FIELD(struct mock_instance, "namespace", SCHEMA_STRING, namespace_, .doc = "Label namespace.", .min = 1,
              .max = 253),
        FIELD(struct mock_instance, "pod", SCHEMA_STRING, pod, .doc = "Label pod.", .min = 1, .max = 253),
        FIELD(struct mock_instance, "container", SCHEMA_STRING, container, .doc = "Label container.", .min = 1,
              .max = 253),
        FIELD(struct mock_instance, "series", SCHEMA_ANY, series_node, .doc = "As that of a GPU."),
};
static const struct schema instance_schema = {.name = "gpus[].instances[]",
                                              .doc = "A MIG instance.",
                                              .struct_size = sizeof(struct mock_instance),
                                              .fields = instance_fields,
                                              .n_fields = COUNT(instance_fields)};

static const struct schema_field gpu_fields[] = {
        FIELD(struct mock_gpu, "count", SCHEMA_INT32, count, .doc = "How many GPUs like this one.", .default_text = "1",
              .min = 1, .max = 64),
        FIELD(struct mock_gpu, "uuid", SCHEMA_STRING, uuid,
              .doc = "Default: GPU-00000000-0000-0000-0000- and the GPU's number in twelve digits.", .min = 1,
              .max = 95),
        FIELD(struct mock_gpu, "model", SCHEMA_STRING, model, .doc = "Label modelName.", .default_text = "NVIDIA H200",
              .min = 1, .max = 95),
        FIELD(struct mock_gpu, "pciBusId", SCHEMA_STRING, pci_bus_id, .doc = "Default: derived from the GPU's number.",
              .min = 1, .max = 31),
        FIELD(struct mock_gpu, "migProfile", SCHEMA_STRING, mig_profile, .doc = "Label GPU_I_PROFILE.", .min = 1,
              .max = 31),
        FIELD(struct mock_gpu, "migId", SCHEMA_STRING, mig_id, .doc = "Label GPU_I_ID.", .min = 1, .max = 15),
        FIELD(struct mock_gpu, "namespace", SCHEMA_STRING, namespace_, .doc = "Label namespace.", .min = 1, .max = 253),
        FIELD(struct mock_gpu, "pod", SCHEMA_STRING, pod, .doc = "Label pod.", .min = 1, .max = 253),
        FIELD(struct mock_gpu, "container", SCHEMA_STRING, container, .doc = "Label container.", .min = 1, .max = 253),
        FIELD(struct mock_gpu, "memoryMiB", SCHEMA_INT32, memory_mib, .doc = "Device memory.", .default_text = "143771",
              .min = 1, .max = 16777216),
        FIELD(struct mock_gpu, "powerLimitW", SCHEMA_QUANTITY, power_limit_watts, .doc = "Power at full load.",
              .default_text = "700", .min = 1, .max = 100000),
        FIELD(struct mock_gpu, "idlePowerW", SCHEMA_QUANTITY, idle_power_watts, .doc = "Power when idle.",
              .default_text = "75", .max = 100000),
        FIELD(struct mock_gpu, "series", SCHEMA_ANY, series_node,
              .doc = "Field name to series. The other fields follow DCGM_FI_DEV_GPU_UTIL; '_' means no sample."),
        {.name = "instances",
         .type = SCHEMA_LIST,
         .doc = "MIG instances of each of these GPUs.",
         .offset = offsetof(struct mock_gpu, instances),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = offsetof(struct mock_gpu, n_instances),
         .max_items = 16,
         .child = &instance_schema},
};
static size_t gpu_validate(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct mock_gpu *g = value;
	if (g->count > 1 && (g->uuid || g->pci_bus_id))
		return schema_fault_put(ret_faults, max, "count",
		                        "several GPUs cannot share a uuid or pciBusId: leave those out");
	if (g->n_instances && (g->mig_id || g->mig_profile))
		return schema_fault_put(ret_faults, max, "migId",
		                        "a GPU with instances has no MIG id itself: leave migId and migProfile out");
	for (size_t i = 0; i < g->n_instances; i++)
		for (size_t k = 0; k < i; k++)
			if (g->instances[i].id == g->instances[k].id)
				return schema_fault_put(ret_faults, max, "instances", "two instances have the same id");
	if (g->idle_power_watts > g->power_limit_watts)
		return schema_fault_put(ret_faults, max, "idlePowerW", "must not be above powerLimitW");
	return 0;
}
static const struct schema gpu_schema = {.name = "gpus[]",
                                         .doc = "A GPU, or `count` equal ones.",
                                         .struct_size = sizeof(struct mock_gpu),
                                         .fields = gpu_fields,
                                         .n_fields = COUNT(gpu_fields),
                                         .validate = gpu_validate};

// ---- events ----
static const struct schema_field xid_fields[] = {
        FIELD(struct mock_xid, "at", SCHEMA_DURATION_MS, at_ms, .doc = "Time since start.", .required = true),
        FIELD(struct mock_xid, "gpu", SCHEMA_INT32, gpu, .doc = "The GPU's number.", .required = true, .min = 0,
              .max = 63),
        FIELD(struct mock_xid, "code", SCHEMA_INT32, code, .doc = "XID code.", .required = true, .min = 1, .max = 999),
        FIELD(struct mock_xid, "count", SCHEMA_INT32, count, .doc = "How many times at once.", .default_text = "1",
              .min = 1, .max = 1000000),
};
static const struct schema xid_schema = {.name = "xids[]",
                                         .doc = "An XID error.",
                                         .struct_size = sizeof(struct mock_xid),
                                         .fields = xid_fields,
                                         .n_fields = COUNT(xid_fields)};

static const struct schema_field loss_fields[] = {
        FIELD(struct mock_loss, "at", SCHEMA_DURATION_MS, at_ms, .doc = "Time since start.", .required = true),
        FIELD(struct mock_loss, "gpu", SCHEMA_INT32, gpu, .doc = "The GPU's number.", .required = true, .min = 0,
              .max = 63),
        FIELD(struct mock_loss, "for", SCHEMA_DURATION_MS, for_ms, .doc = "How long; left out: for ever."),
};
static const struct schema loss_schema = {.name = "losses[]",
                                          .doc = "A time during which a GPU does not respond.",
                                          .struct_size = sizeof(struct mock_loss),
                                          .fields = loss_fields,
                                          .n_fields = COUNT(loss_fields)};

// ---- workload ----
static const struct schema_field demand_fields[] = {
        FIELD(struct mock_demand, "csv", SCHEMA_STRING, csv, .doc = "CSV file with a header line.", .min = 1,
              .max = 4096),
        FIELD(struct mock_demand, "column", SCHEMA_STRING, column, .doc = "Its column of numbers.", .min = 1,
              .max = 128),
        FIELD(struct mock_demand, "series", SCHEMA_STRING, series, .doc = "Values in promtool's notation.", .min = 1,
              .max = 65536),
        {.name = "sine",
         .type = SCHEMA_OBJECT,
         .doc = "A sine over time.",
         .offset = offsetof(struct mock_demand, sine),
         .set_offset = offsetof(struct mock_demand, has_sine),
         .count_offset = SCHEMA_NO_OFFSET,
         .child = &sine_schema},
        FIELD(struct mock_demand, "step", SCHEMA_DURATION_MS, step_ms, .doc = "Time of one value of csv or series.",
              .default_text = "1s", .min = 1, .max = MS_PER_DAY),
        {.name = "timeScale",
         .type = SCHEMA_QUANTITY,
         .doc = "How many times faster than written the demand plays.",
         .offset = offsetof(struct mock_demand, time_scale),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = SCHEMA_NO_OFFSET,
         .default_text = "1",
         .min = 0.001,
         .max = 100000},
        FIELD(struct mock_demand, "scale", SCHEMA_QUANTITY, scale, .doc = "Factor on every value.", .default_text = "1",
              .min = -1e15, .max = 1e15),
        FIELD(struct mock_demand, "loop", SCHEMA_BOOL, loop,
              .doc = "Start over after the last value; else the last value stays.", .default_text = "true"),
        FIELD(struct mock_demand, "smooth", SCHEMA_DURATION_MS, smooth_ms,
              .doc = "Average the demand over this time (after timeScale).", .max = MS_PER_DAY),
};
static size_t demand_validate(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct mock_demand *m = value;
	int given = (m->csv != NULL) + (m->series != NULL) + m->has_sine;
	if (given != 1)
		return schema_fault_put(ret_faults, max, "series", "exactly one of csv, series and sine must be given");
	if ((m->csv != NULL) != (m->column != NULL))
		return schema_fault_put(ret_faults, max, "column",
		                        "csv and column go together: name the column to read");
	return 0;
}
static const struct schema demand_schema = {.name = "workload.demand",
                                            .doc = "The work that arrives, in units of work a second.",
                                            .struct_size = sizeof(struct mock_demand),
                                            .fields = demand_fields,
                                            .n_fields = COUNT(demand_fields),
                                            .validate = demand_validate};

static const struct schema_field replicas_fields[] = {
        FIELD(struct mock_replicas_source, "url", SCHEMA_STRING, url,
              .doc = "http(s) URL of a Kubernetes object or its scale.", .min = 8, .max = 4096),
        FIELD(struct mock_replicas_source, "field", SCHEMA_STRING, field,
              .doc = "Dotted path of the ready replicas in that object.", .default_text = "status.readyReplicas",
              .min = 1, .max = 256),
        FIELD(struct mock_replicas_source, "tokenFile", SCHEMA_STRING, token_file,
              .doc = "Bearer token, read for every request.", .min = 1, .max = 4096),
        FIELD(struct mock_replicas_source, "caFile", SCHEMA_STRING, ca_file, .doc = "Certificates to trust.", .min = 1,
              .max = 4096),
        FIELD(struct mock_replicas_source, "file", SCHEMA_STRING, file, .doc = "File that holds one number.", .min = 1,
              .max = 4096),
        {.name = "constant",
         .type = SCHEMA_INT32,
         .doc = "Always this many.",
         .offset = offsetof(struct mock_replicas_source, constant),
         .set_offset = offsetof(struct mock_replicas_source, has_constant),
         .count_offset = SCHEMA_NO_OFFSET,
         .min = 0,
         .max = 1000000},
        FIELD(struct mock_replicas_source, "interval", SCHEMA_DURATION_MS, interval_ms,
              .doc = "How often to ask url or file.", .default_text = "1s", .min = 100, .max = MS_PER_DAY),
};
static size_t replicas_validate(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct mock_replicas_source *r = value;
	int given = (r->url != NULL) + (r->file != NULL) + r->has_constant;
	if (given != 1)
		return schema_fault_put(ret_faults, max, "url", "exactly one of url, file and constant must be given");
	if (r->url && strncmp(r->url, "http://", 7) != 0 && strncmp(r->url, "https://", 8) != 0)
		return schema_fault_put(ret_faults, max, "url", "must start with http:// or https://");
	return 0;
}
static const struct schema replicas_schema = {.name = "workload.replicas",
                                              .doc = "Where the number of ready replicas comes from.",
                                              .struct_size = sizeof(struct mock_replicas_source),
                                              .fields = replicas_fields,
                                              .n_fields = COUNT(replicas_fields),
                                              .validate = replicas_validate};

static const struct schema_field workload_fields[] = {
        FIELD(struct mock_workload, "name", SCHEMA_STRING, name, .doc = "Its name; pods are called name-0, name-1 ..",
              .required = true, .min = 1, .max = 240),
        FIELD(struct mock_workload, "namespace", SCHEMA_STRING, namespace_, .doc = "Its namespace.",
              .default_text = "default", .min = 1, .max = 253),
        FIELD(struct mock_workload, "demand", SCHEMA_OBJECT, demand, .doc = "The work that arrives.", .required = true,
              .child = &demand_schema),
        FIELD(struct mock_workload, "capacityPerReplica", SCHEMA_QUANTITY, capacity_per_replica,
              .doc = "Work a second that one ready replica can do.", .required = true, .min = 1e-9, .max = 1e15),
        FIELD(struct mock_workload, "serialFraction", SCHEMA_QUANTITY, serial_ratio,
              .doc = "Share of the work that only one replica can do: n replicas do n / (1 + it x (n - 1)).",
              .default_text = "0", .max = 1),
        FIELD(struct mock_workload, "replicas", SCHEMA_OBJECT, replicas, .doc = "Number of ready replicas.",
              .required = true, .child = &replicas_schema),
        FIELD(struct mock_workload, "gpusPerReplica", SCHEMA_INT32, gpus_per_replica, .doc = "GPUs a replica holds.",
              .default_text = "1", .min = 1, .max = 64),
        FIELD(struct mock_workload, "idleUtil", SCHEMA_QUANTITY, idle_percent,
              .doc = "Utilisation in % of a held GPU with nothing to do.", .default_text = "0", .max = 100),
        FIELD(struct mock_workload, "backlogMax", SCHEMA_QUANTITY, backlog_max,
              .doc = "Work that can wait; what is above gives up. 0: no ceiling.", .default_text = "0", .max = 1e15),
};
static const struct schema workload_schema = {.name = "workload",
                                              .doc = "A workload that shares its demand over its ready replicas.",
                                              .struct_size = sizeof(struct mock_workload),
                                              .fields = workload_fields,
                                              .n_fields = COUNT(workload_fields)};

// ---- the script ----
#define FAULTS(key, member, kind, text)                                                                                \
	{                                                                                                              \
		.name = key, .type = SCHEMA_LIST, .doc = text, .offset = offsetof(struct mock_script, faults.member),  \
		.set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(struct mock_script, faults.n_##member),       \
		.child = &mock_fault_schemas[kind]                                                                     \
	}
static const struct schema_field script_fields[] = {
        FIELD(struct mock_script, "driverVersion", SCHEMA_STRING, driver_version,
              .doc = "Label DCGM_FI_DRIVER_VERSION.", .default_text = "580.65.06", .min = 1, .max = 79),
        FIELD(struct mock_script, "step", SCHEMA_DURATION_MS, step_ms, .doc = "Time of one value of a GPU's series.",
              .default_text = "1s", .min = 1, .max = MS_PER_DAY),
        FIELD(struct mock_script, "loop", SCHEMA_BOOL, loop, .doc = "GPU series start over after their last value.",
              .default_text = "true"),
        {.name = "gpus",
         .type = SCHEMA_LIST,
         .doc = "The GPUs.",
         .offset = offsetof(struct mock_script, gpus),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = offsetof(struct mock_script, n_gpus),
         .required = true,
         .max_items = 64,
         .child = &gpu_schema},
        {.name = "xids",
         .type = SCHEMA_LIST,
         .doc = "XID errors to come.",
         .offset = offsetof(struct mock_script, xids),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = offsetof(struct mock_script, n_xids),
         .child = &xid_schema},
        {.name = "losses",
         .type = SCHEMA_LIST,
         .doc = "GPUs that fall away.",
         .offset = offsetof(struct mock_script, losses),
         .set_offset = SCHEMA_NO_OFFSET,
         .count_offset = offsetof(struct mock_script, n_losses),
         .child = &loss_schema},
        FAULTS("throttles", throttles, FAULT_THROTTLES, "Reduced clocks to come."),
        FAULTS("ecc", ecc, FAULT_ECC, "Memory errors to come."),
        FAULTS("leaks", leaks, FAULT_LEAKS, "Memory leaks to come."),
        FAULTS("stragglers", stragglers, FAULT_STRAGGLERS, "GPUs that become slower than the others."),
        FAULTS("hangs", hangs, FAULT_HANGS, "Kernels that hang."),
        FAULTS("downtrains", downtrains, FAULT_DOWNTRAINS, "PCIe links that lose speed."),
        {.name = "workload",
         .type = SCHEMA_OBJECT,
         .doc = "A workload that uses the GPUs.",
         .offset = offsetof(struct mock_script, workload),
         .set_offset = offsetof(struct mock_script, has_workload),
         .count_offset = SCHEMA_NO_OFFSET,
         .child = &workload_schema},
};
const struct schema mock_script_schema = {.name = "mock script",
                                          .doc = "What the mock backend plays.",
                                          .struct_size = sizeof(struct mock_script),
                                          .fields = script_fields,
                                          .n_fields = COUNT(script_fields)};
