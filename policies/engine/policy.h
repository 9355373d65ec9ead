// SPDX-License-Identifier: Apache-2.0
// A GPUAutoscaler as plain data: policy_decode() fills it, and nothing changes it afterwards. The arena that was passed
// to policy_decode() owns strings and arrays.
#ifndef GPUSCALE_POLICIES_ENGINE_POLICY_H
#define GPUSCALE_POLICIES_ENGINE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "policies/engine/cron.h"
#include "policies/engine/formula.h"

struct doc_node;
struct tz_table;

#define POLICY_SIGNALS_MAX          16
#define POLICY_WINDOW_SAMPLES_MAX   512
#define POLICY_RATE_POLICIES_MAX    8
#define POLICY_SCHEDULES_MAX        32
#define POLICY_REPLICAS_MAX         1000000
#define POLICY_GPUS_PER_REPLICA_MAX 1024

enum target_type { TARGET_VALUE, TARGET_AVERAGE_VALUE, TARGET_PODS, TARGET_REPLICAS, TARGET_TYPE__COUNT };
enum watermark_algorithm { WATERMARK_AVERAGE, WATERMARK_ABSOLUTE, WATERMARK_ALGORITHM__COUNT };
enum window_aggregate {
	WINDOW_LAST,
	WINDOW_AVG,
	WINDOW_MAX,
	WINDOW_MIN,
	WINDOW_P50,
	WINDOW_P90,
	WINDOW_P95,
	WINDOW_P99,
	WINDOW_AGGREGATE__COUNT
};
enum on_missing { ON_MISSING_HOLD, ON_MISSING_IGNORE, ON_MISSING_ZERO, ON_MISSING__COUNT };
enum series_mode { SERIES_SINGLE, SERIES_SUM, SERIES_MAX, SERIES_MIN, SERIES_AVG, SERIES_MODE__COUNT };
enum select_policy { SELECT_MAX, SELECT_MIN, SELECT_DISABLED, SELECT_POLICY__COUNT };
enum combine { COMBINE_MAX, COMBINE_MIN, COMBINE_FORMULA, COMBINE__COUNT };
enum fallback_behavior {
	FALLBACK_STATIC,
	FALLBACK_CURRENT,
	FALLBACK_CURRENT_IF_HIGHER,
	FALLBACK_CURRENT_IF_LOWER,
	FALLBACK_SCALING_MODIFIERS, // the signal is nil in the formula of combine
	FALLBACK_BEHAVIOR__COUNT
};
enum unhealthy_mode { UNHEALTHY_IGNORE, UNHEALTHY_REPORT, UNHEALTHY_REPLACE, UNHEALTHY_MODE__COUNT };
enum schedule_combine { SCHEDULE_LATEST, SCHEDULE_MAX, SCHEDULE_COMBINE__COUNT };
enum fallback_when { FALLBACK_ALL, FALLBACK_ANY, FALLBACK_WHEN__COUNT };
enum rate_type { RATE_PODS, RATE_PERCENT, RATE_TYPE__COUNT };

struct policy_target {
	bool set;
	int type;               // enum target_type
	double value;           // > 0; not used by TARGET_REPLICAS
	double tolerance_ratio; // default 0.1; both directions, limits inclusive; not used by TARGET_REPLICAS
	bool value_set;         // the document has the field: for the validate hook only
};

struct policy_watermarks {
	bool set;
	double high, low;
	double tolerance_ratio;
	int algorithm; // enum watermark_algorithm
};

struct policy_window {
	bool set;
	int64_t duration_ms;
	int aggregate;       // enum window_aggregate
	int32_t min_samples; // usable from this many samples on; 0 = absent: once the history covers duration_ms
};

struct policy_sustain {
	int64_t up_ms, down_ms;
};

struct policy_signal {
	const char *name, *query; // query NULL: the value is that of `formula`
	const char *source;       // name of the server to query; NULL: the default one
	// One of target, watermarks is set, but neither for a signal of the objective; a signal of a guard or of a
	// formula may have neither: it asks for no replicas then.
	struct policy_target target;
	struct policy_watermarks watermarks;
	struct policy_window window;
	struct policy_sustain sustain;
	int64_t stale_after_ms;   // older samples are treated as missing; 0 = never (the schema does not allow it)
	int on_missing;           // enum on_missing
	int series;               // enum series_mode
	const char *formula_text; // over the values of signals with a query: see policy.value_formulas
};

struct policy_rate {
	int type; // enum rate_type
	int32_t value;
	int64_t period_ms;
};

// How the pods that a scale-down removes are chosen.
struct policy_victims {
	bool set;
	const char *query, *source; // as those of a signal: the work of each pod, by its label pod or exported_pod
};

struct policy_scaling_rules {
	int64_t stabilization_window_ms;
	int select; // enum select_policy
	const struct policy_rate *rates;
	size_t n_rates;
	bool rates_set; // the document has the field. With n_rates 0 the HPA's defaults apply
	double tolerance_ratio;
	bool tolerance_set; // overrides the signal's tolerance in this direction (HPA v2 behavior.*.tolerance)
	struct policy_victims victims; // scaleDown only
	int64_t drain_ms;              // scaleDown only: the longest wait until the victims are empty; 0: none
};

// No growth where one more replica adds less than `gain` of one.
struct policy_gain_guard {
	bool set;
	const char *signal;  // name; its value is the throughput of all replicas
	double gain;         // 0 < gain < 1
	int64_t steady_ms;   // throughput counts once the replicas have not changed for this long
	size_t signal_index; // index of `signal`; set by policy_decode()
};

// Throttled replicas are treated as less than one.
struct policy_throttled_guard {
	bool set;
	const char *signal;  // name; its value is the share of throttled replicas, 0..1
	double share;        // 0..1; up to this share throttling is ignored
	size_t signal_index; // index of `signal`; set by policy_decode()
};

// States of the target in which scaling is held or limited. Bounds take precedence over guards.
struct policy_guards {
	bool set;
	struct policy_gain_guard gain;
	struct policy_throttled_guard throttled;
	bool max_pending_set;
	int32_t max_pending_pods;      // no scale-up while more replicas than this are starting
	int32_t min_available_percent; // no scaling while fewer percent of spec are ready; 0 = off
	int32_t max_step;              // largest change of one decision, in replicas; 0 = off
	int unhealthy;                 // enum unhealthy_mode: what to do about replicas on failing GPUs
};

// Different bounds during a window of time.
struct policy_schedule {
	const char *name, *start_text, *end_text, *time_zone;
	bool min_set, max_set, replicas_set;
	int32_t min_replicas, max_replicas, replicas; // `replicas` sets both bounds
	int combine;                                  // enum schedule_combine: which of several open windows decides
	struct cron start, end;                       // parsed from the texts by policy_decode()
	// The table of time_zone; NULL = UTC. Set by policy_zones_load(), which reads the time zone database.
	const struct tz_table *zone;
};

// The target is needed while the signal is above a number.
struct policy_activation {
	const char *signal; // name
	double above;
	size_t index; // index of `signal`; set by policy_decode()
};

// Few or no replicas without activity.
struct policy_idle {
	bool set;
	int64_t after_ms, initial_cooldown_ms;
	int32_t replicas;                    // while idle; below max(minReplicas, 1)
	struct policy_activation activation; // without signal where any_of is given
	struct policy_activation *any_of;
	size_t n_any_of;
};

// The replicas to use when signals have been missing for long. KEDA: pkg/fallback.
struct policy_fallback {
	bool set, replicas_set;
	int32_t failure_threshold; // applies after more consecutive failures than this; lifts after as many readings
	int32_t replicas;          // >= 1
	int behavior;              // enum fallback_behavior
	int when;                  // enum fallback_when: which of the signals must be missing
};

enum forecast_model { FORECAST_LINEAR, FORECAST_HOLT_WINTERS, FORECAST_MODEL__COUNT };
enum forecast_use { FORECAST_SCALE_UP_ONLY, FORECAST_BOTH, FORECAST_USE__COUNT };
#define FORECAST_HORIZON_STARTUP (-1)

struct policy_forecast {
	bool set;
	const char *signal; // name
	int model;          // enum forecast_model
	int64_t season_ms;  // HoltWinters
	int64_t window_ms;  // Linear
	int64_t horizon_ms; // or FORECAST_HORIZON_STARTUP; set by policy_decode()
	int use;            // enum forecast_use
	double band;        // how many standard deviations of its error are added to the forecast
	double alpha, beta, gamma;
	size_t signal_index; // index of `signal`; set by policy_decode()
	const char *horizon_text;
	bool season_set, window_set;
};

// Reaction to a burst that a long window would average away. Knative: panic mode.
struct policy_panic {
	bool set;
	const char *signal;      // name
	const char *window_text; // "10%" of the signal's window, or a duration
	int64_t window_ms;       // set by policy_decode()
	double threshold;        // replicas wanted / ready replicas
	size_t signal_index;     // index of `signal`; set by policy_decode()
};

// The goal that a size is chosen for: at most `late_ratio` of the work waits longer than `wait_ms`.
struct policy_objective {
	bool set;
	const char *demand, *backlog; // names of signals, which have neither target nor watermarks
	const char *utilization;      // name of a signal that only informs; NULL: none
	const char *measured;         // as this one: the share of requests that were late
	const char *late_text;        // "1%"
	double late_ratio;            // 0.0001 .. 0.5; set by policy_decode()
	int64_t wait_ms;
	size_t demand_index, backlog_index;       // indexes of `demand` and `backlog`; set by policy_decode() ..
	size_t utilization_index, measured_index; // .. as are these; 0 without a name
	bool backlog_has_default; // its query ends as 0 where nothing is measured; set by policy_decode()
	double divisor;           // at the end of the demand query, as in `.. / 900`; 0: none; set by policy_decode()
};

struct policy_startup {
	bool set;   // starting replicas are treated as capacity; start-up times are learnt in any case
	bool given; // start_ms is set by the policy; otherwise the learnt time is used
	int64_t start_ms;
};

enum capacity_mode { CAPACITY_OFF, CAPACITY_FIXED, CAPACITY_ELASTIC, CAPACITY_MODE__COUNT };

// Orders when the cluster has no room for them.
struct policy_capacity {
	int mode;           // enum capacity_mode
	int64_t give_up_ms; // Elastic: unschedulable replicas are withdrawn after this time
	int64_t retry_ms;   // Elastic: more than fits is ordered again this long after the last withdrawal
};

// The GPUs of one replica, for amounts of money and GPU time; no decision depends on it.
struct policy_gpus {
	bool set;
	int32_t per_replica;
	const char *model; // short name of a price book, or as exporters report it; "": not given
};

struct policy {
	const char *namespace_name, *name; // metadata; namespace "default" when absent
	int32_t min_replicas, max_replicas, replica_multiple;
	int64_t interval_ms;
	bool dry_run, paused;
	const struct policy_signal *signals;
	size_t n_signals;
	int combine;                          // enum combine: the largest proposal, the smallest, or `formula`
	struct formula formula;               // COMBINE_FORMULA only
	uint32_t formulas;                    // bit i: signal i has a formula,
	uint32_t inputs;                      // which reads the value of signal k: bit k
	const struct formula *value_formulas; // one per signal, for those in `formulas`; set by policy_decode()
	struct policy_scaling_rules scale_up, scale_down; // behavior
	struct policy_sustain cooldown;                   // up_ms / down_ms after a scale in either direction
	struct policy_schedule *schedules;
	size_t n_schedules;
	struct policy_idle idle;
	struct policy_forecast forecast;
	struct policy_panic panic;
	struct policy_objective objective;
	struct policy_fallback fallback;
	struct policy_startup startup;
	struct policy_guards guards;
	struct policy_capacity capacity;
	struct policy_gpus gpus;
	bool restore_set;
	int32_t restore_replicas; // scale of the target after the policy is deleted; not set: unchanged
	const char *file;         // where the policy was read, for messages; may be NULL
	int line;
	const char *label_lines; // metadata.labels, as "name=value\n" each; NULL or "": none
	// As written, for the schema table only: policy_decode() sets the fields above from them.
	int api_version, kind;                       // one allowed value each
	const char *combine_text;                    // -> combine, formula
	const struct doc_node *annotations, *labels; // -> paused, dry_run, label_lines; NULL after decoding
};

// Returns the index of the signal called `name`, or p->n_signals when the policy has none of that name.
static inline size_t policy_signal_index(const struct policy *p, const char *name)
{
	size_t i = 0;
	while (i < p->n_signals && !(p->signals[i].name && strcmp(p->signals[i].name, name) == 0))
		i++;
	return i;
}

#endif
