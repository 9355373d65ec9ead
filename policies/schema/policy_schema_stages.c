// SPDX-License-Identifier: Apache-2.0
// The stages around the signals: spec.schedules, spec.idle, spec.fallback, spec.startup, spec.guards, spec.capacity,
// spec.forecast, spec.panic and spec.objective of a GPUAutoscaler.
#include <stdbool.h>
#include <string.h>

#include "policies/engine/policy.h"
#include "policies/schema/policy_schema_private.h"

#define OBJECTIVE_INTERVAL_MAX_MS 120000 // eight simulated steps of 15 s

// ---- schedules ----

ENUM_NAMES(schedule_combines, SCHEDULE_COMBINE__COUNT, [SCHEDULE_LATEST] = "Latest", [SCHEDULE_MAX] = "Max");

static void check_schedule(const void *value, struct fault_list *l)
{
	const struct policy_schedule *s = value;
	struct cron unused;
	const char *fault = cron_parse(&unused, s->start_text);
	if (fault)
		fault_add(l, "start", -1, fault);
	fault = cron_parse(&unused, s->end_text);
	if (fault)
		fault_add(l, "end", -1, fault);
	if (s->replicas_set && (s->min_set || s->max_set))
		fault_add(l, "replicas", -1,
		          "cannot be combined with minReplicas and maxReplicas: remove one or the others");
	else if (!s->replicas_set && !s->min_set && !s->max_set)
		fault_add(l, NULL, -1, "changes nothing: set minReplicas, maxReplicas or replicas");
	else if (s->min_set && s->max_set && s->min_replicas > s->max_replicas)
		fault_add(l, "minReplicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
}

// clang-format off
static const struct schema_field schedule_fields[] = {
	{ROW("name", STRING),       FIELD(struct policy_schedule, name),                       REQUIRED,       RANGE(1, 63),                  DOC("Name of the window, unique in the policy.")},
	{ROW("start", STRING),      FIELD(struct policy_schedule, start_text),                 REQUIRED,       RANGE(1, CRON_TEXT_BYTES_MAX), DOC("When it opens: a cron expression of five fields, as in \"0 8 * * MON-FRI\". A time skipped by daylight saving fires when the clock changes; a repeated time fires once, at its first occurrence.")},
	{ROW("end", STRING),        FIELD(struct policy_schedule, end_text),                   REQUIRED,       RANGE(1, CRON_TEXT_BYTES_MAX), DOC("When it closes: a cron expression of five fields.")},
	{ROW("timeZone", STRING),   FIELD(struct policy_schedule, time_zone),                  DEFAULT("UTC"), RANGE(1, 64),                  DOC("Time zone of both: a name of the IANA database, as Europe/Zurich.")},
	{ROW("minReplicas", INT32), FIELD_SET(struct policy_schedule, min_replicas, min_set),  OPTIONAL,       RANGE(0, POLICY_REPLICAS_MAX), DOC("minReplicas inside the window; the target does not go idle there. 0 needs idle, and leaves it on, or an objective.")},
	{ROW("maxReplicas", INT32), FIELD_SET(struct policy_schedule, max_replicas, max_set),  OPTIONAL,       RANGE(1, POLICY_REPLICAS_MAX), DOC("maxReplicas inside the window.")},
	{ROW("replicas", INT32),    FIELD_SET(struct policy_schedule, replicas, replicas_set), OPTIONAL,       RANGE(0, POLICY_REPLICAS_MAX), DOC("Exactly this many inside the window: minReplicas and maxReplicas in one. 0 scales to zero.")},
	{ROW("combine", ENUM),      FIELD(struct policy_schedule, combine),                    DEFAULT("Latest"), ONE_OF(schedule_combines),  DOC("Which of several open windows is in force. Latest: the one that opened last. Max: of those with Max, the one with the largest minReplicas or replicas, as for KEDA's cron triggers.")},
};
static const struct schema_rule schedule_rules[] = {
	{"has(self.replicas) != (has(self.minReplicas) || has(self.maxReplicas))", "needs either replicas, or minReplicas and maxReplicas or one of them"},
};
const struct schema policy_schema_schedule = {SCHEMA("GPUAutoscaler.spec.schedules[]", struct policy_schedule, schedule_fields), VALIDATE(check_schedule), RULES(schedule_rules), DOC("Different bounds during a window of time.")};
// clang-format on

// ---- idle ----

// clang-format off
static const struct schema_field any_of_fields[] = {
	{ROW("signal", STRING),  FIELD(struct policy_activation, signal), REQUIRED,     RANGE(1, 63), DOC("Name of a signal that shows whether the target is needed.")},
	{ROW("above", QUANTITY), FIELD(struct policy_activation, above),  DEFAULT("0"), ANY_SIZE,     DOC("The target is needed while the signal is above this.")},
};
static const struct schema any_of = {SCHEMA("GPUAutoscaler.spec.idle.activation.anyOf[]", struct policy_activation, any_of_fields), DOC("One of several signals that show whether the target is needed.")};
// clang-format on

static void check_activation(const void *value, struct fault_list *l)
{
	const struct policy_idle *idle = value;
	if (!idle->activation.signal && idle->n_any_of == 0)
		fault_add(l, "signal", -1, "required, but missing: add it (string), or anyOf for several signals");
	else if (idle->activation.signal && idle->n_any_of > 0)
		fault_add(l, "anyOf", -1, "cannot be combined with signal: add that signal to the list");
}

// clang-format off
static const struct schema_field activation_fields[] = {
	{ROW("signal", STRING),  FIELD(struct policy_idle, activation.signal),    OPTIONAL,     RANGE(1, 63),                                            DOC("Name of the signal that shows whether the target is needed. Its query must return data without any replica. Exactly one of signal and anyOf.")},
	{ROW("above", QUANTITY), FIELD(struct policy_idle, activation.above),     DEFAULT("0"), ANY_SIZE,                                                DOC("The target is needed while the signal is above this.")},
	{ROW("anyOf", LIST),     FIELD_LIST(struct policy_idle, any_of, n_any_of), OPTIONAL,     ITEMS(1, POLICY_SIGNALS_MAX), KEY("signal"), CHILD(any_of), DOC("Several signals: the target is needed while any of them is above its number, and goes idle once none is, with data of all of them.")},
};
static const struct schema_rule activation_rules[] = {
	{"has(self.signal) != has(self.anyOf)", "needs exactly one of signal and anyOf"},
};
static const struct schema activation = {SCHEMA("GPUAutoscaler.spec.idle.activation", struct policy_idle, activation_fields), VALIDATE(check_activation), RULES(activation_rules), DOC("The signal that shows whether the target is needed, or several.")};

static const struct schema_field idle_fields[] = {
	{ROW("after", DURATION_MS),           FIELD(struct policy_idle, after_ms),            DEFAULT("5m"), RANGE(0, 7 * DAY_MS),          DOC("How long the target must not have been needed, with every replica ready and no data missing, before it goes idle.")},
	{ROW("replicas", INT32),              FIELD(struct policy_idle, replicas),            DEFAULT("0"),  RANGE(0, POLICY_REPLICAS_MAX), DOC("Replicas while idle, fewer than minReplicas; 0 scales to zero.")},
	{ROW("initialCooldown", DURATION_MS), FIELD(struct policy_idle, initial_cooldown_ms), DEFAULT("0s"), RANGE(0, 7 * DAY_MS),          DOC("The target does not go idle for this long after the first decision for the policy.")},
	{ROW("activation", OBJECT),           IN_PARENT,                                      REQUIRED,      CHILD(activation),             DOC("The signal that shows whether the target is needed, or several.")},
};
const struct schema policy_schema_idle = {SCHEMA("GPUAutoscaler.spec.idle", struct policy_idle, idle_fields), DOC("Scale to fewer than minReplicas, or to zero, after a time without activity, and back at once.")};
// clang-format on

// ---- fallback ----

ENUM_NAMES(fallback_behaviors, FALLBACK_BEHAVIOR__COUNT, [FALLBACK_STATIC] = "Static",
           [FALLBACK_CURRENT] = "CurrentReplicas", [FALLBACK_CURRENT_IF_HIGHER] = "CurrentReplicasIfHigher",
           [FALLBACK_CURRENT_IF_LOWER] = "CurrentReplicasIfLower", [FALLBACK_SCALING_MODIFIERS] = "ScalingModifiers");

ENUM_NAMES(fallback_whens, FALLBACK_WHEN__COUNT, [FALLBACK_ALL] = "All", [FALLBACK_ANY] = "Any");

static void check_fallback(const void *value, struct fault_list *l)
{
	const struct policy_fallback *f = value;
	if (f->behavior == FALLBACK_SCALING_MODIFIERS && f->replicas_set)
		fault_add(l, "replicas", -1,
		          "has no meaning with behavior ScalingModifiers, where ?? in the formula replaces it: remove "
		          "it");
	else if (f->behavior == FALLBACK_CURRENT && f->replicas_set)
		fault_add(l, "replicas", -1, "has no meaning with behavior CurrentReplicas: remove it");
	else if (f->behavior != FALLBACK_CURRENT && f->behavior != FALLBACK_SCALING_MODIFIERS && !f->replicas_set)
		fault_add(l, "replicas", -1, "required, but missing: add it (integer)");
}

// clang-format off
static const struct schema_field fallback_fields[] = {
	{ROW("failureThreshold", INT32), FIELD(struct policy_fallback, failure_threshold),          DEFAULT("3"),      RANGE(0, 10000),               DOC("The fallback applies after more consecutive failures of a signal than this, and lifts after this many consecutive ticks with data of all signals; until then the target is not scaled down.")},
	{ROW("replicas", INT32),         FIELD_SET(struct policy_fallback, replicas, replicas_set), OPTIONAL,          RANGE(1, POLICY_REPLICAS_MAX), DOC("Replicas to use. At least 1: an outage never scales to zero.")},
	{ROW("behavior", ENUM),          FIELD(struct policy_fallback, behavior),                   DEFAULT("Static"), ONE_OF(fallback_behaviors),    DOC("Static: `replicas`. CurrentReplicas: the present scale. CurrentReplicasIfHigher, CurrentReplicasIfLower: the present scale if it is higher (lower) than `replicas`, else `replicas`. ScalingModifiers: the result of the formula in `combine` or of a signal, in which a failed signal is nil, so that ?? supplies its default. Until a signal has failed that often, the scale is held.")},
	{ROW("when", ENUM),              FIELD(struct policy_fallback, when),                       DEFAULT("All"),    ONE_OF(fallback_whens),        DOC("All: only when every signal has failed; while one has data, it decides as usual. Any: each failed signal asks for the fallback, in addition to the proposals of the others.")},
};
static const struct schema_rule fallback_rules[] = {
	{"has(self.replicas) != (self.behavior == 'CurrentReplicas' || self.behavior == 'ScalingModifiers')", "replicas is required, but for behavior CurrentReplicas and ScalingModifiers, where it has no meaning"},
};
const struct schema policy_schema_fallback = {SCHEMA("GPUAutoscaler.spec.fallback", struct policy_fallback, fallback_fields), VALIDATE(check_fallback), RULES(fallback_rules), DOC("Replicas to use when the signals have been missing for long.")};
// clang-format on

// ---- startup ----

// clang-format off
static const struct schema_field startup_fields[] = {
	{ROW("seconds", SECONDS_MS), FIELD_SET(struct policy_startup, start_ms, given), OPTIONAL, RANGE(1, 86400), DOC("Time from requesting a replica until it is ready, in seconds, until three starts have been observed; from then on their median counts (of the last 9). Default: the first observed start.")},
};
const struct schema policy_schema_startup = {SCHEMA("GPUAutoscaler.spec.startup", struct policy_startup, startup_fields), DOC("How long a replica takes to become ready; it counts as capacity until then.")};
// clang-format on

// ---- guards ----

// clang-format off
static const struct schema_field gain_fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_gain_guard, signal),    REQUIRED,      RANGE(1, 63),      DOC("Name of the signal that measures the throughput of all replicas together: requests, tokens or samples per second. It needs neither target nor watermarks.")},
	{ROW("gain", QUANTITY),      FIELD(struct policy_gain_guard, gain),      REQUIRED,      RANGE(0.01, 0.99), DOC("The least that one more replica must add, as a share of what a single replica serves: \"0.7\".")},
	{ROW("steady", DURATION_MS), FIELD(struct policy_gain_guard, steady_ms), DEFAULT("1m"), RANGE(0, DAY_MS),  DOC("Throughput is learnt once all replicas have been ready and unchanged for this long. Set it to at least the range of the query.")},
};
static const struct schema gain_guard = {SCHEMA("GPUAutoscaler.spec.guards.minMarginalGain", struct policy_gain_guard, gain_fields), DOC("No growth where one more replica would add too little, by Amdahl's law fitted to the measured throughput.")};

static const struct schema_field throttled_fields[] = {
	{ROW("signal", STRING),  FIELD(struct policy_throttled_guard, signal), REQUIRED,       RANGE(1, 63), DOC("Name of the signal that measures the share of throttled replicas, from 0 to 1. It needs neither target nor watermarks.")},
	{ROW("share", QUANTITY), FIELD(struct policy_throttled_guard, share),  DEFAULT("0.1"), RANGE(0, 1),  DOC("Up to this share, throttling is ignored.")},
};
static const struct schema throttled_guard = {SCHEMA("GPUAutoscaler.spec.guards.maxThrottledShare", struct policy_throttled_guard, throttled_fields), DOC("While more than this share of the replicas is throttled, a throttled replica counts as 0.7.")};
// clang-format on

ENUM_NAMES(unhealthy_modes, UNHEALTHY_MODE__COUNT, [UNHEALTHY_IGNORE] = "Ignore", [UNHEALTHY_REPORT] = "Report",
           [UNHEALTHY_REPLACE] = "Replace");

static void check_guards(const void *value, struct fault_list *l)
{
	const struct policy_guards *g = value;
	if (!g->max_pending_set && g->min_available_percent == 0 && g->max_step == 0 && !g->gain.set &&
	    !g->throttled.set && g->unhealthy == UNHEALTHY_IGNORE)
		fault_add(l, NULL, -1,
		          "guards nothing: set maxPendingPods, minAvailablePercent, maxStep, minMarginalGain, "
		          "maxThrottledShare or unhealthyReplicas, or remove it");
}

// clang-format off
static const struct schema_field guard_fields[] = {
	{ROW("maxPendingPods", INT32),      FIELD_SET(struct policy_guards, max_pending_pods, max_pending_set), OPTIONAL, RANGE(0, POLICY_REPLICAS_MAX), DOC("No scale-up while more replicas than this are still starting: pending, or running and not ready yet. 0 scales up only when all are ready. Prevents 2-4-8-16 while models load, and requests that exceed the capacity of the cluster.")},
	{ROW("minAvailablePercent", INT32), FIELD(struct policy_guards, min_available_percent),                 OPTIONAL, RANGE(1, 100),                 DOC("No scaling in either direction while less than this share of the replicas is ready.")},
	{ROW("maxStep", INT32),             FIELD(struct policy_guards, max_step),                              OPTIONAL, RANGE(1, POLICY_REPLICAS_MAX), DOC("Largest change of one decision, in replicas, whatever behavior allows.")},
	{ROW("minMarginalGain", OBJECT),    FIELD_SET(struct policy_guards, gain, gain.set),                    OPTIONAL, CHILD(gain_guard),             DOC("No growth where one more replica would add less than a share of what a single replica serves.")},
	{ROW("unhealthyReplicas", ENUM),    FIELD(struct policy_guards, unhealthy),                             OPTIONAL, ONE_OF(unhealthy_modes),       DOC("Replicas on GPUs that gpuscale remediate took out of service. Replace: orders as many replicas in addition, up to maxReplicas, and removes them when fewer have been on such GPUs for the stabilization window of scaleDown. Report: the trace shows their number. Ignore: the same as without the field.")},
	{ROW("maxThrottledShare", OBJECT),  FIELD_SET(struct policy_guards, throttled, throttled.set),          OPTIONAL, CHILD(throttled_guard),        DOC("Throttled replicas count as 0.7 while more than this share of the replicas is throttled.")},
};
static const struct schema_rule guards_rules[] = {
	{"has(self.maxPendingPods) || has(self.minAvailablePercent) || has(self.maxStep) || has(self.minMarginalGain) || has(self.maxThrottledShare) || (has(self.unhealthyReplicas) && self.unhealthyReplicas != 'Ignore')", "guards nothing: set maxPendingPods, minAvailablePercent, maxStep, minMarginalGain, maxThrottledShare or unhealthyReplicas, or remove it"},
};
const struct schema policy_schema_guards = {SCHEMA("GPUAutoscaler.spec.guards", struct policy_guards, guard_fields), VALIDATE(check_guards), RULES(guards_rules), DOC("States of the target in which scaling is held or limited.")};
// clang-format on

// ---- capacity ----

ENUM_NAMES(capacity_modes,
           CAPACITY_MODE__COUNT, [CAPACITY_OFF] = "Off", [CAPACITY_FIXED] = "Fixed", [CAPACITY_ELASTIC] = "Elastic");

// clang-format off
static const struct schema_field capacity_fields[] = {
	{ROW("mode", ENUM),               FIELD(struct policy_capacity, mode),       DEFAULT("Off"), ONE_OF(capacity_modes),      DOC("Fixed: never order more replicas than fit into the cluster. Elastic, for clusters with a node autoscaler: order what is wanted, and withdraw what cannot be scheduled in time. Both remove unschedulable replicas first when they scale down. Off: the capacity of the cluster has no effect.")},
	{ROW("giveUpAfter", DURATION_MS), FIELD(struct policy_capacity, give_up_ms), DEFAULT("5m"),  RANGE(SECOND_MS, 7 * DAY_MS), DOC("Elastic: replicas that have been unschedulable for this long are withdrawn, down to minReplicas.")},
	{ROW("retryAfter", DURATION_MS),  FIELD(struct policy_capacity, retry_ms),   DEFAULT("10m"), RANGE(0, 7 * DAY_MS),         DOC("Elastic: for this long after a withdrawal, no more is ordered than fits.")},
};
const struct schema policy_schema_capacity = {SCHEMA("GPUAutoscaler.spec.capacity", struct policy_capacity, capacity_fields), DOC("What to order when the cluster has no room for it.")};
// clang-format on

// ---- gpus ----

// clang-format off
static const struct schema_field gpus_fields[] = {
	{ROW("perReplica", INT32), FIELD(struct policy_gpus, per_replica), DEFAULT("1"), RANGE(1, POLICY_GPUS_PER_REPLICA_MAX), DOC("GPUs of one replica, over all of its containers and pods.")},
	{ROW("model", STRING),     FIELD(struct policy_gpus, model),       DEFAULT(""),  RANGE(0, 128),                         DOC("Model of these GPUs, as in H100-SXM: a name of the price book, or the modelName of an exporter. Without it, GPUs are counted and have no price.")},
};
const struct schema policy_schema_gpus = {SCHEMA("GPUAutoscaler.spec.gpus", struct policy_gpus, gpus_fields), DOC("What one replica uses. Only for reports of cost and GPU time; no decision depends on it.")};
// clang-format on

// ---- forecast ----

ENUM_NAMES(models, FORECAST_MODEL__COUNT, [FORECAST_LINEAR] = "Linear", [FORECAST_HOLT_WINTERS] = "HoltWinters");

ENUM_NAMES(uses, FORECAST_USE__COUNT, [FORECAST_SCALE_UP_ONLY] = "ScaleUpOnly", [FORECAST_BOTH] = "Both");

static void check_forecast(const void *value, struct fault_list *l)
{
	const struct policy_forecast *f = value;
	if (f->model == FORECAST_HOLT_WINTERS && !f->season_set)
		fault_add(l, "season", -1, "required with model HoltWinters, but missing: add it, as in 24h");
	if (f->model == FORECAST_LINEAR && f->season_set)
		fault_add(l, "season", -1, "has no meaning with model Linear: remove it, or use HoltWinters");
	if (f->model == FORECAST_HOLT_WINTERS && f->window_set)
		fault_add(l, "window", -1, "has no meaning with model HoltWinters: remove it, or use Linear");
}

// clang-format off
static const struct schema_field forecast_fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_forecast, signal),                    REQUIRED,               RANGE(1, 63),                       DOC("Name of the signal to look ahead on. Its load is forecast: a value per replica counts times the ready replicas.")},
	{ROW("model", ENUM),         FIELD(struct policy_forecast, model),                     DEFAULT("HoltWinters"), ONE_OF(models),                     DOC("HoltWinters: level, trend and a season that adds to them, for load that recurs with the time of day or week. Linear: a straight line through the last `window`.")},
	{ROW("season", DURATION_MS), FIELD_SET(struct policy_forecast, season_ms, season_set), OPTIONAL,               RANGE(SECOND_MS, 28 * DAY_MS),      DOC("HoltWinters: length of the season, such as 24h or 1w. It is divided into at most 288 slots. After two seasons the forecast is compared with the load for a quarter of a season, at most 6h, and starts if it was better than the last load and the load one season earlier.")},
	{ROW("window", DURATION_MS), FIELD_SET(struct policy_forecast, window_ms, window_set), DEFAULT("10m"),         RANGE(SECOND_MS, 7 * DAY_MS),       DOC("Linear: the period that the line is fitted to. It is divided into at most 64 slots. When the window is full, the forecast is compared with the load for another window, at most 1d, and starts if it was better than the last load.")},
	{ROW("horizon", STRING),     FIELD(struct policy_forecast, horizon_text),              DEFAULT("Startup"),     RANGE(1, 63),                       DOC("How far ahead: a duration, or Startup for the time a replica takes to start (given by startup.seconds or learnt).")},
	{ROW("use", ENUM),           FIELD(struct policy_forecast, use),                       DEFAULT("ScaleUpOnly"), ONE_OF(uses),                       DOC("ScaleUpOnly: the larger of what the signal asks for now and then. Both: the forecast replaces the proposal of the signal, which must still have recent data.")},
	{ROW("band", QUANTITY),      FIELD(struct policy_forecast, band),                      DEFAULT("0"),           RANGE(0, 10), TUNE(LINEAR, 0, 4),   DOC("How many standard deviations of its error are added to the forecast: with 0 the load is above it half of the time, with \"1.3\" one time in ten, with 2 one time in forty.")},
	{ROW("alpha", QUANTITY),     FIELD(struct policy_forecast, alpha),                     DEFAULT("0.3"),         RANGE(0, 1), TUNE(LOG, 0.01, 1),    DOC("HoltWinters: weight of the newest slot in the level.")},
	{ROW("beta", QUANTITY),      FIELD(struct policy_forecast, beta),                      DEFAULT("0.01"),        RANGE(0, 1), TUNE(LOG, 0.001, 0.3), DOC("HoltWinters: weight of the newest change of the level in the trend.")},
	{ROW("gamma", QUANTITY),     FIELD(struct policy_forecast, gamma),                     DEFAULT("0.2"),         RANGE(0, 1), TUNE(LOG, 0.01, 1),    DOC("HoltWinters: weight of the newest season.")},
};
static const struct schema_rule forecast_rules[] = {
	{"self.model == 'HoltWinters' ? has(self.season) && !has(self.window) : !has(self.season)", "model HoltWinters needs a season and takes no window, model Linear takes no season"},
};
const struct schema policy_schema_forecast = {SCHEMA("GPUAutoscaler.spec.forecast", struct policy_forecast, forecast_fields), VALIDATE(check_forecast), RULES(forecast_rules), DOC("Scale ahead of the load: to what its signal would ask for when replicas requested now are ready.")};
// clang-format on

// ---- panic ----

// clang-format off
static const struct schema_field panic_fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_panic, signal),      REQUIRED,       RANGE(1, 63),                         DOC("Name of the signal whose bursts count. It needs a window with aggregate Avg: the stable window.")},
	{ROW("window", STRING),      FIELD(struct policy_panic, window_text), DEFAULT("10%"), RANGE(1, 63),                         DOC("The panic window: the last part of the signal's window, as a share of it (10%) or a duration. At least one interval.")},
	{ROW("threshold", QUANTITY), FIELD(struct policy_panic, threshold),   DEFAULT("2"),   RANGE(1.1, 10), TUNE(LINEAR, 1.1, 5), DOC("A panic starts when the panic window asks for this many times the ready replicas, and ends one stable window after it last did.")},
};
const struct schema policy_schema_panic = {SCHEMA("GPUAutoscaler.spec.panic", struct policy_panic, panic_fields), DOC("Use a short window during a burst, and do not scale down until it has passed (Knative's panic mode).")};
// clang-format on

// ---- objective ----

// clang-format off
static const struct schema_field objective_fields[] = {
	{ROW("late", STRING),      FIELD(struct policy_objective, late_text), REQUIRED, RANGE(1, 16), PATTERN("^[0-9]+([.][0-9]+)?%$"), TUNE(LOG, 0.05, 20), DOC("Share of the work that may wait longer than `wait`, from 0.01% to 50%, as in 1%.")},
	{ROW("wait", DURATION_MS), FIELD(struct policy_objective, wait_ms),   REQUIRED, RANGE(SECOND_MS, HOUR_MS),                                           DOC("How long work may wait in the queue before it counts as late, as in 10s.")},
	{ROW("demand", STRING),    FIELD(struct policy_objective, demand),    REQUIRED, RANGE(1, 63),                                                        DOC("Name of the signal that measures arriving work in replicas: 3.2 keeps 3.2 replicas busy. It must not depend on the number of replicas.")},
	{ROW("backlog", STRING),   FIELD(struct policy_objective, backlog),   REQUIRED, RANGE(1, 63),                                                        DOC("Name of the signal that measures queued work in replica-seconds: 600 keeps one replica busy for ten minutes.")},
	{ROW("utilization", STRING), FIELD(struct policy_objective, utilization), OPTIONAL, RANGE(1, 63),                                                    DOC("Name of a signal that measures which share of the ready replicas is busy, from 0 to 1. It asks for no replicas and needs neither target nor watermarks; what a replica can do is then learnt from it, too, not from the queue alone (CapacityLearnt). Leave it out where a replica counts as busy with a fraction of its load, as GPUs do.")},
	{ROW("measured", STRING),  FIELD(struct policy_objective, measured),  OPTIONAL, RANGE(1, 63),                                                        DOC("Name of a signal that measures which share of the requests was late, from 0 to 1, such as the share of vLLM's time to first token above `wait`. It asks for no replicas and needs neither target nor watermarks; the rules are held to less while it is above `late`, and to more while it is below.")},
};
const struct schema policy_schema_objective = {SCHEMA("GPUAutoscaler.spec.objective", struct policy_objective, objective_fields), DOC("At most `late` of the work may wait longer than `wait`. `demand` and `backlog` have neither target nor watermarks.")};
// clang-format on

// ---- rules with other fields ----

static bool is_named(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static bool is_input(const struct policy *p, const char *name)
{
	return is_named(name, p->objective.demand) || is_named(name, p->objective.backlog);
}

// The objective simulates every sample as it was measured: an average or a delay would be replayed as demand.
static void check_input(const struct policy_signal *s, int32_t i, struct fault_list *l)
{
	if (s->target.set || s->watermarks.set)
		fault_add(l, "signals", i,
		          "is named by the objective, which asks for replicas in its place: remove its target or "
		          "watermarks");
	else if (s->window.set || s->sustain.up_ms > 0 || s->sustain.down_ms > 0)
		fault_add(l, "signals", i,
		          "is named by the objective, which needs every sample as it was measured: remove window and "
		          "sustain");
}

static bool is_unknown(const struct policy *p, const char *name)
{
	return name && policy_schema_signal_index(p, name) == p->n_signals;
}

void policy_schema_check_objective(const struct policy *p, struct fault_list *l)
{
	const struct policy_objective *o = &p->objective;
	if (!o->set)
		return;
	for (size_t i = 0; i < p->n_signals; i++)
		if (is_input(p, p->signals[i].name))
			check_input(&p->signals[i], (int32_t)i, l);
	// clang-format off
	const struct fault_rule rules[] = {
		{is_unknown(p, o->demand), "objective.demand", "must be the name of one of the signals"},
		{is_unknown(p, o->backlog), "objective.backlog", "must be the name of one of the signals"},
		{is_unknown(p, o->utilization), "objective.utilization", "must be the name of one of the signals"},
		{is_input(p, o->utilization), "objective.utilization", "must be another signal than demand and backlog: the share of the replicas that is busy"},
		{is_unknown(p, o->measured), "objective.measured", "must be the name of one of the signals"},
		{is_input(p, o->measured), "objective.measured", "must be another signal than demand and backlog: the share of the requests that was late"},
		{is_named(o->demand, o->backlog), "objective.backlog", "must be another signal than demand: demand is work that arrives, backlog is work that waits"},
		{p->forecast.set && is_input(p, p->forecast.signal), "forecast.signal", "is a signal of the objective, which forecasts it already: remove forecast, or name another signal"},
		{p->interval_ms > OBJECTIVE_INTERVAL_MAX_MS, "interval", "must be at most 2m with an objective, which simulates in steps of 15 s: shorten it"},
		{!p->startup.set, "objective", "needs to know how long a replica takes to start: add startup: {seconds: N}, or startup: {} to learn it from the pods"},
	};
	// clang-format on
	fault_add_broken(l, rules, COUNT_OF(rules));
}
