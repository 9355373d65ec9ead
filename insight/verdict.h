// SPDX-License-Identifier: Apache-2.0
// The table of verdicts: why a workload's GPUs are slow or idle, and what to do. Everything that reports a verdict is
// rendered from it: gpuscale diagnose, the recording rules, the alert and docs/diagnosis.md.
#ifndef GPUSCALE_INSIGHT_VERDICT_H
#define GPUSCALE_INSIGHT_VERDICT_H

#include <stddef.h>
#include <stdint.h>

struct buf;

#define VERDICT_TERMS_MAX    3
#define VERDICT_EVIDENCE_MAX 6

// The windows of the measures: 5 minutes by default; a workload is idle after six windows.
#define VERDICT_WINDOW_S     300
#define VERDICT_LONG_WINDOWS 6

enum verdict_measure {
	MEASURE_BUSY,
	MEASURE_BUSY_LONG,
	MEASURE_SM,
	MEASURE_OCCUPANCY,
	MEASURE_TENSOR,
	MEASURE_DRAM,
	MEASURE_MEMORY,
	MEASURE_PCIE_RX,
	MEASURE_PCIE_SHARE,
	MEASURE_PCIE_PEAK,
	MEASURE_SWING,
	MEASURE_LINK,
	MEASURE_CLOCK,
	MEASURE_POWER,
	MEASURE_THROTTLED,
	MEASURE_THERMAL,
	MEASURE_XID,
	MEASURE_ECC,
	MEASURE_REMAP,
	MEASURE_NVLINK,
	MEASURE_PCIE_REPLAY,
	MEASURE_SHARE, // share of the price of its GPU; only for instances
	MEASURE_LOADING,
	MEASURE_CPU, // from here on, of pods and nodes: optional
	MEASURE_CPU_THROTTLED,
	MEASURE_DISK_WAIT,
	MEASURE_DATA_WAIT,
	MEASURE_COLLECTIVE,
	MEASURE_OOM,
	MEASURE_NODE_IOWAIT,
	MEASURE_NODE_NETWORK,
	MEASURE_NIC_ERRORS,
	MEASURE_NIC_DROPS,
	MEASURE__COUNT
};

// The scope of the series of a measure.
enum measure_scope {
	SCOPE_DEVICE, // labels UUID, GPU_I_ID: a GPU or a MIG instance
	SCOPE_GPU,    // label UUID: a GPU with all its instances
	SCOPE_POD,    // labels namespace, pod
	SCOPE_NODE,   // label nodename
};
// How the values of the GPUs of a workload become one value.
enum measure_fold { FOLD_AVG, FOLD_MAX, FOLD_MIN };
enum measure_unit { UNIT_RATIO, UNIT_BYTES_PER_SECOND, UNIT_COUNT, UNIT_PER_SECOND };

struct verdict_measure_info {
	const char *name;  // in JSON, and in the name of the recorded series
	const char *label; // in the table
	enum measure_scope scope;
	enum measure_fold fold;
	enum measure_unit unit;
	// PromQL over the series of gpuscale-exporter, dcgm-exporter, cAdvisor, node-exporter and the training hook,
	// with $W for the window, $L for the long window, $S for the step of a subquery and $B for
	// the busy part of each device in the window.
	const char *expr;
};

enum verdict {
	VERDICT_HARDWARE,
	VERDICT_FABRIC,
	VERDICT_THROTTLED,
	VERDICT_OOM,
	VERDICT_LOADING,
	VERDICT_IDLE,
	VERDICT_WAITING,
	VERDICT_HUNG,
	VERDICT_SLOW_LINK,
	VERDICT_SLOW_CLOCK,
	VERDICT_COMMUNICATION,
	VERDICT_LOADER,
	VERDICT_STORAGE,
	VERDICT_PREPROCESSING,
	VERDICT_SAWTOOTH,
	VERDICT_FAKE_LOAD,
	VERDICT_UNDERFILLED,
	VERDICT_NO_TENSOR,
	VERDICT_MISALIGNED,
	VERDICT_HALF_FILLED,
	VERDICT_SMALL_KERNELS,
	VERDICT_MEMORY_BOUND,
	VERDICT_COMPUTE_BOUND,
	VERDICT_BALANCED,
	VERDICT_UNMEASURED,
	VERDICT__COUNT
};

enum verdict_level {
	LEVEL_OK,     // nothing to do
	LEVEL_ADVICE, // the GPUs could do more
	LEVEL_FAULT,  // something is broken
	LEVEL__COUNT
};
// Which part of the price of the GPUs a verdict counts as lost.
enum verdict_loss {
	LOSS_NONE,
	LOSS_ALL,
	LOSS_SM,    // 1 - SM activity
	LOSS_CLOCK, // 1 - clock of the fleet's median
};

struct verdict_info {
	const char *name; // value of the label `verdict`
	enum verdict_level level;
	enum verdict_loss loss;
	const char *summary; // one clause: "the GPUs wait for the data loader"
	const char *advice;  // one line
	const char *meaning; // paragraph of docs/diagnosis.md
	const char *action;  // Markdown list of docs/diagnosis.md, the causes first
};

enum term_op {
	OP_END,
	OP_ABOVE,
	OP_BELOW,
	OP_AT_LEAST,
	OP_NOT_AT_LEAST, // true for a missing measure; all others are false
};
struct verdict_term {
	enum verdict_measure measure;
	enum term_op op;
	double limit;
};
// All terms must be true. The first row that matches gives the verdict; the last row has no terms.
struct verdict_row {
	enum verdict verdict;
	struct verdict_term terms[VERDICT_TERMS_MAX];
	size_t n_terms;
};

extern const struct verdict_measure_info verdict_measures[MEASURE__COUNT];
extern const struct verdict_info verdict_infos[VERDICT__COUNT];
extern const struct verdict_row verdict_rows[];
extern const size_t verdict_n_rows;
extern const char *const verdict_level_names[LEVEL__COUNT]; // "ok", "advice", "fault"
extern const char *const verdict_op_signs[];                // of PromQL: ">", "<", ">="

// Returns the row that decides about a workload with these measures (MEASURE__COUNT values, NaN = missing); never NULL.
const struct verdict_row *verdict_decide(const double *values);
// Returns the lost part of the price, from 0 to 1; NaN when the measure for it is missing.
double verdict_lost_ratio(enum verdict v, const double *values);
// Writes the measures that support the decision to `out` (room for VERDICT_EVIDENCE_MAX), those of the row first, then
// the present ones among busy, SM, tensor and DRAM. Returns their number.
size_t verdict_evidence(const struct verdict_row *row, const double *values, enum verdict_measure *out);

// ---- the PromQL of the table: measures over the series of the exporters, and rules that evaluate it ----

// Appends the PromQL of a measure over a window of `window_s` seconds. Its series have the labels of its scope; those
// of SCOPE_POD are only pods that use a GPU.
void verdict_query_measure(struct buf *out, enum verdict_measure m, int64_t window_s);
// Appends the query for the GPUs and MIG instances with the pods that use them: one series per device and holder,
// with the labels verdict_owner_labels.
void verdict_query_owners(struct buf *out);
// NULL-terminated: UUID, GPU_I_ID, gpu, modelName, Hostname, hostname, namespace, pod, exported_namespace,
// exported_pod, and is: "exporter" when the pod is that of the exporter.
extern const char *const verdict_owner_labels[];
// Appends the query for the labels of the pods that use a GPU (kube_pod_labels), those that identify training jobs.
void verdict_query_pod_labels(struct buf *out);

// Appends the table of verdicts as a file of Prometheus rules: the measures of each workload, its verdict, and one
// alert, with measures over `window_s` seconds. They read gpu:owner:info and
// gpu:memory_used:bytes of rules/gpu.yaml.
void verdict_rules_print(struct buf *out, int64_t window_s);
// Appends a table of contents and a section per verdict in Markdown: condition, meaning, evidence, action, cost.
void verdict_page_print(struct buf *out);

#endif
