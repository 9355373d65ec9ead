// SPDX-License-Identifier: Apache-2.0
// The parts of the mock: series of values, the script that contains them, the model of workload and GPUs, and the
// replicas of the workload.
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"

struct arena;
struct buf;
struct doc_node;
struct err;
struct event_base;
struct log;
struct mock_replicas;

// ---- series ----

#define SERIES_VALUE_MAX 1e15 // in both directions; sums and products of values stay far from infinity

struct mock_series {
	const double *points; // one per step, in the arena; NaN = no sample. NULL: a sine
	const double *sums;   // sums[i] = points[0] + .. + points[i - 1], missing ones as 0
	size_t n;
	double step_ms;
	bool loop; // repeats after the last step; otherwise keeps its value
	double mean, amplitude, period_ms, phase_ms;
};

// Parses promtool's notation (base/series_notation.h) and multiplies each value by `scale`; "_" and "stale" are
// missing samples. Fails with ERR_INPUT, which names the word, and ERR_LIMIT.
int mock_series_parse(struct arena *a, const char *text, double step_ms, bool loop, double scale,
                      struct mock_series *ret_series, struct err *e);
// Reads the numeric column `column` of a CSV file with a header line (without quoting) and multiplies each value by
// `scale`.
int mock_series_read_csv(struct arena *a, const char *path, const char *column, double step_ms, bool loop, double scale,
                         struct mock_series *ret_series, struct err *e);
// Parses the same from text[0..text_len); `name` is used in messages.
int mock_series_parse_csv(struct arena *a, const char *name, const char *text, size_t text_len, const char *column,
                          double step_ms, bool loop, double scale, struct mock_series *ret_series, struct err *e);
// Initializes a sine around `mean`.
void mock_series_init_sine(struct mock_series *s, double mean, double amplitude, double period_ms, double phase_ms);

// Reads the value at t_ms >= 0. False if there is none.
bool mock_series_at(const struct mock_series *s, double t_ms, double *ret_value);
// The mean over (from_ms, to_ms], with missing steps counted as 0. A sine is evaluated at the middle. 0 <= from_ms <
// to_ms.
double mock_series_mean(const struct mock_series *s, double from_ms, double to_ms);

// ---- script ----

#define MOCK_SCRIPT_BYTES_MAX (32 * 1024 * 1024) // memory of a script, with its CSV columns

// What a script gives for a GPU or a MIG instance.
struct mock_given {
	const char *namespace_, *pod, *container;
	const struct doc_node *series_node;
	const struct mock_series *series[FIELD__COUNT]; // NULL: no series for this field
};

// A MIG instance of each GPU that lists it.
struct mock_instance {
	const char *profile;
	int32_t id;
	struct mock_given given;
};

struct mock_gpu {
	int32_t count;
	const char *uuid, *model, *pci_bus_id;
	const char *mig_profile, *mig_id;
	struct mock_given given;
	int32_t memory_mib;
	double power_limit_watts, idle_power_watts;
	struct mock_instance *instances;
	size_t n_instances;
};

// The kinds in the order of the lists of a script. A loss is a time during which a GPU does not respond.
enum mock_fault_kind {
	MOCK_XID,
	MOCK_LOSS,
	MOCK_THROTTLE,
	MOCK_ECC,
	MOCK_LEAK,
	MOCK_STRAGGLER,
	MOCK_HANG,
	MOCK_DOWNTRAIN,
	MOCK_FAULT__COUNT
};
enum mock_throttle_reason { THROTTLE_THERMAL, THROTTLE_POWER, THROTTLE_HW, THROTTLE_POWER_BRAKE, THROTTLE__COUNT };

struct mock_fault {
	int64_t at_ms, for_ms; // for_ms 0: forever; ECC: the time over which the errors are spread
	int32_t gpu;
	int32_t code, count; // XID, its code; XID and ECC: how many
	int reason;          // THROTTLE: enum mock_throttle_reason; ECC: 0 corrected, 1 uncorrectable
	double clock_percent, mib_per_hour, slower_percent; // THROTTLE, LEAK, STRAGGLER
	int32_t generation, lanes;                          // DOWNTRAIN
};

struct mock_sine {
	double mean, amplitude;
	int64_t period_ms, phase_ms;
};

struct mock_demand {
	const char *csv, *column;
	const char *series;
	bool has_sine;
	struct mock_sine sine;
	int64_t step_ms;
	double time_scale, scale;
	bool loop;
	int64_t smooth_ms;
};

struct mock_replicas_source {
	const char *url, *field, *token_file, *ca_file; // exactly one of: url,
	const char *file;                               // file,
	bool has_constant;
	int32_t constant; // constant
	int64_t interval_ms;
};

struct mock_workload {
	const char *name, *namespace_;
	struct mock_demand demand;
	double capacity_per_replica, serial_ratio;
	struct mock_replicas_source replicas;
	int32_t gpus_per_replica;
	double idle_percent;
	double backlog_max;               // 0: no limit
	struct mock_series demand_series; // compiled from `demand`
};

struct mock_script {
	const char *driver_version;
	int64_t step_ms;
	bool loop;
	struct mock_gpu *gpus;
	size_t n_gpus;
	struct mock_faults {
		struct mock_fault *list;
		size_t n;
	} faults[MOCK_FAULT__COUNT];
	bool has_workload;
	struct mock_workload workload;
	int32_t n_boards;  // sum of gpus[].count
	int32_t n_devices; // with the MIG instances
};

// Decodes text[0..len) of the file `name`, to whose folder relative file names in the script refer. All memory comes
// from `a`. Returns -1 and fills `e` on failure; for errors in the script itself, `ret_errors` receives one line for
// each: "file:line:col: path: what is wrong and the fix".
int mock_script_parse(struct arena *a, const char *name, const char *text, size_t len, struct mock_script *ret_script,
                      struct buf *ret_errors, struct err *e);
// Reads the same from the file at `path`; NULL selects the built-in script.
int mock_script_read(struct arena *a, const char *path, struct mock_script *ret_script, struct buf *ret_errors,
                     struct err *e);

// ---- model ----

struct workload_state {
	double t_ms;        // time of the last step
	double demand;      // work per second that arrived, mean over the last step
	double backlog;     // queued work
	double capacity;    // work per second that the ready replicas can do
	double utilization; // 0 to 1, of every GPU used by a ready replica
	int32_t replicas;   // ready replicas at the last step
};

// Advances `s` to `t_ms` with `replicas` ready replicas. Their capacity follows Amdahl's law: n x capacity_per_replica
// / (1 + serial_ratio x (n - 1)). Work that the replicas cannot serve is queued; spare capacity serves the queue:
// served = min(capacity, demand + backlog / time), utilization = served / capacity.
void workload_step(const struct mock_workload *w, struct workload_state *s, double t_ms, int32_t replicas);

struct gpu_state {
	bool started;
	double t_ms;
	double temp_celsius;
	double energy_mj;
	double capped_ns; // time at the power limit
	double dt_ms;     // length of the last step
};

// Advances `s` to `t_ms` at `utilization` (0 to 1). `memory_mib` is the memory of the GPU or of its instance; `held`
// means that a process uses it. Fills every field except XID_ERRORS.
void gpu_step(const struct mock_gpu *g, int32_t memory_mib, struct gpu_state *s, double t_ms, double utilization,
              bool held, struct device_sample *ret_sample);

// Makes the fields of `s` agree with those that a script gave, given[f] != NULL: memory and BAR1 add up, and power,
// energy, NVLink and tensor families report the same. Fields without a value stay without one. Call it once after
// gpu_step() of the same `g`, whose power was `model_watts`.
void gpu_derive(struct gpu_state *g, const struct mock_series *const given[FIELD__COUNT], double model_watts,
                struct device_sample *s);

bool mock_fault_is_active(const struct mock_fault *f, int64_t t_ms);
// Applies the faults of GPU `gpu` at `t_ms` since the start; the GPU draws `idle_watts` when idle. Fields without a
// value stay without one. A leak ends with its time, as when the process is restarted.
void mock_faults_apply(const struct mock_faults faults[MOCK_FAULT__COUNT], int32_t gpu, double idle_watts, int64_t t_ms,
                       struct device_sample *s);

// ---- replicas ----

#define MOCK_REPLICAS_MAX 1000000

// `source` must outlive the result. `log` may be NULL. Returns NULL and fills `e` if memory is exhausted.
struct mock_replicas *mock_replicas_new(const struct mock_replicas_source *source, struct log *log, struct err *e);
// Starts polling, with the first request immediately. A constant source does not need it.
int mock_replicas_start(struct mock_replicas *r, struct event_base *loop, struct err *e);
void mock_replicas_free(struct mock_replicas *r);
// Returns the last known number; -1 if there is none. Any thread.
int32_t mock_replicas_get(const struct mock_replicas *r);

// Reads the number at the dotted `path` of a JSON object of the API server. A missing last part is 0, because
// Kubernetes omits zero fields; a missing parent is ERR_INPUT. Returns -1 and fills `e` for values outside 0 ..
// MOCK_REPLICAS_MAX.
int mock_replicas_decode(const char *json, size_t len, const char *path, int32_t *ret_replicas, struct err *e);

#endif
