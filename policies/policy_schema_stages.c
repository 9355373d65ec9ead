// SPDX-License-Identifier: Apache-2.0
// The stages around the signals: spec.schedules, spec.idle, spec.fallback, spec.startup and spec.guards of a
// GPUAutoscaler.
#include "policies/policy.h"
#include "policies/policy_schema_private.h"

// ---- schedules ----

static const struct schema_field schedule_fields[] = {
        {.name = "name",
         .type = SCHEMA_STRING,
         .doc = "Name of the window, unique in the policy.",
         FIELD(struct policy_schedule, name),
         .required = true,
         .min = 1,
         .max = 63},
        {.name = "start",
         .type = SCHEMA_STRING,
         .doc = "When it opens: a cron expression of five fields, as in \"0 8 * * MON-FRI\". A time that the clock "
                "skips in spring is taken at the jump, one that comes twice in autumn the first time.",
         FIELD(struct policy_schedule, start_text),
         .required = true,
         .min = 1,
         .max = CRON_TEXT_BYTES_MAX},
        {.name = "end",
         .type = SCHEMA_STRING,
         .doc = "When it closes: a cron expression of five fields.",
         FIELD(struct policy_schedule, end_text),
         .required = true,
         .min = 1,
         .max = CRON_TEXT_BYTES_MAX},
        {.name = "timeZone",
         .type = SCHEMA_STRING,
         .doc = "Time zone of both: a name of the IANA database, as Europe/Zurich.",
         FIELD(struct policy_schedule, time_zone),
         .default_text = "UTC",
         .min = 1,
         .max = 64},
        {.name = "minReplicas",
         .type = SCHEMA_INT32,
         .doc = "minReplicas inside the window; the target does not go idle there. 0 needs idle, and leaves it on.",
         FIELD_SET(struct policy_schedule, min_replicas, min_set),
         .min = 0,
         .max = POLICY_REPLICAS_MAX},
        {.name = "maxReplicas",
         .type = SCHEMA_INT32,
         .doc = "maxReplicas inside the window.",
         FIELD_SET(struct policy_schedule, max_replicas, max_set),
         .min = 1,
         .max = POLICY_REPLICAS_MAX},
        {.name = "replicas",
         .type = SCHEMA_INT32,
         .doc = "Exactly this many inside the window: minReplicas and maxReplicas in one. 0 scales to zero.",
         FIELD_SET(struct policy_schedule, replicas, replicas_set),
         .min = 0,
         .max = POLICY_REPLICAS_MAX},
};

static size_t check_schedule(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_schedule *s = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	struct cron unused;
	const char *fault = cron_parse(&unused, s->start_text);
	if (fault)
		fault_add(&l, "start", -1, fault);
	fault = cron_parse(&unused, s->end_text);
	if (fault)
		fault_add(&l, "end", -1, fault);
	if (s->replicas_set && (s->min_set || s->max_set))
		fault_add(&l, "replicas", -1,
		          "cannot stand beside minReplicas and maxReplicas: keep one or the others");
	else if (!s->replicas_set && !s->min_set && !s->max_set)
		fault_add(&l, NULL, -1, "changes nothing: set minReplicas, maxReplicas or replicas");
	else if (s->min_set && s->max_set && s->min_replicas > s->max_replicas)
		fault_add(&l, "minReplicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
	return l.n;
}

static const struct schema_rule schedule_rules[] = {
        {"has(self.replicas) != (has(self.minReplicas) || has(self.maxReplicas))",
         "needs either replicas, or minReplicas and maxReplicas or one of them"},
};

const struct schema policy_schema_schedule = {
        .name = "GPUAutoscaler.spec.schedules[]",
        .doc = "Other bounds in a window of time.",
        .struct_size = sizeof(struct policy_schedule),
        .fields = schedule_fields,
        .n_fields = COUNT_OF(schedule_fields),
        .validate = check_schedule,
        .rules = schedule_rules,
        .n_rules = COUNT_OF(schedule_rules),
};

// ---- idle ----

static const struct schema_field activation_fields[] = {
        {.name = "signal",
         .type = SCHEMA_STRING,
         .doc = "Name of the signal that tells whether the target is needed. Its query must answer without any "
                "replica.",
         FIELD(struct policy_idle, activation.signal),
         .required = true,
         .min = 1,
         .max = 63},
        {.name = "above",
         .type = SCHEMA_QUANTITY,
         .doc = "The target is needed while the signal is above this.",
         FIELD(struct policy_idle, activation.above),
         .default_text = "0",
         ANY_SIZE},
};

static const struct schema activation = {
        .name = "GPUAutoscaler.spec.idle.activation",
        .doc = "What tells whether the target is needed.",
        .struct_size = sizeof(struct policy_idle),
        .fields = activation_fields,
        .n_fields = COUNT_OF(activation_fields),
};

static const struct schema_field idle_fields[] = {
        {.name = "after",
         .type = SCHEMA_DURATION_MS,
         .doc = "How long nothing must have been needed, with every replica ready and no data missing, before the "
                "target goes idle.",
         FIELD(struct policy_idle, after_ms),
         .default_text = "5m",
         .min = 0,
         .max = 7 * DAY_MS},
        {.name = "replicas",
         .type = SCHEMA_INT32,
         .doc = "Replicas while idle, fewer than minReplicas; 0 scales to zero.",
         FIELD(struct policy_idle, replicas),
         .default_text = "0",
         .min = 0,
         .max = POLICY_REPLICAS_MAX},
        {.name = "initialCooldown",
         .type = SCHEMA_DURATION_MS,
         .doc = "The target does not go idle for this long after the policy was first seen.",
         FIELD(struct policy_idle, initial_cooldown_ms),
         .default_text = "0s",
         .min = 0,
         .max = 7 * DAY_MS},
        {.name = "activation",
         .type = SCHEMA_OBJECT,
         .doc = "What tells whether the target is needed.",
         .set_offset = SCHEMA_NO_OFFSET,
         .required = true,
         .child = &activation},
};

const struct schema policy_schema_idle = {
        .name = "GPUAutoscaler.spec.idle",
        .doc = "Scale to fewer than minReplicas, or to zero, after a time without activity, and back at once.",
        .struct_size = sizeof(struct policy_idle),
        .fields = idle_fields,
        .n_fields = COUNT_OF(idle_fields),
};

// ---- fallback ----

static const char *const fallback_behaviors[] = {
        [FALLBACK_STATIC] = "Static",
        [FALLBACK_CURRENT] = "CurrentReplicas",
        [FALLBACK_CURRENT_IF_HIGHER] = "CurrentReplicasIfHigher",
        [FALLBACK_CURRENT_IF_LOWER] = "CurrentReplicasIfLower",
        [FALLBACK_SCALING_MODIFIERS] = "ScalingModifiers",
        [FALLBACK_BEHAVIOR__COUNT] = NULL,
};
_Static_assert(COUNT_OF(fallback_behaviors) == FALLBACK_BEHAVIOR__COUNT + 1, "one name per behavior");

static const char *const fallback_whens[] = {
        [FALLBACK_ALL] = "All",
        [FALLBACK_ANY] = "Any",
        [FALLBACK_WHEN__COUNT] = NULL,
};
_Static_assert(COUNT_OF(fallback_whens) == FALLBACK_WHEN__COUNT + 1, "one name per condition");

static const struct schema_field fallback_fields[] = {
        {.name = "failureThreshold",
         .type = SCHEMA_INT32,
         .doc = "It applies once a signal has failed more ticks in a row than this, and lifts once all were read this "
                "many ticks in a row; until then nothing is scaled down.",
         FIELD(struct policy_fallback, failure_threshold),
         .default_text = "3",
         .min = 0,
         .max = 10000},
        {.name = "replicas",
         .type = SCHEMA_INT32,
         .doc = "Replicas to go to. At least 1: an outage never scales to zero.",
         FIELD_SET(struct policy_fallback, replicas, replicas_set),
         .min = 1,
         .max = POLICY_REPLICAS_MAX},
        {.name = "behavior",
         .type = SCHEMA_ENUM,
         .doc = "Static: `replicas`. CurrentReplicas: the present scale. CurrentReplicasIfHigher, "
                "CurrentReplicasIfLower: the present scale if it is higher (lower) than `replicas`, else `replicas`. "
                "ScalingModifiers: what the formula in `combine` makes of it: a signal that cannot be read is nil in "
                "it, "
                "so that ?? gives its default, but only once it has failed that often; until then the scale is held.",
         FIELD(struct policy_fallback, behavior),
         .default_text = "Static",
         .enum_names = fallback_behaviors},
        {.name = "when",
         .type = SCHEMA_ENUM,
         .doc = "All: only when no signal can be read any more; as long as one can, it decides as usual. Any: each "
                "signal that cannot be read asks for the fallback, beside what the others ask for.",
         FIELD(struct policy_fallback, when),
         .default_text = "All",
         .enum_names = fallback_whens},
};

static size_t check_fallback(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_fallback *f = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (f->behavior == FALLBACK_SCALING_MODIFIERS && f->replicas_set)
		fault_add(&l, "replicas", -1,
		          "has no meaning with behavior ScalingModifiers, where ?? in the formula says it: remove it");
	else if (f->behavior == FALLBACK_CURRENT && f->replicas_set)
		fault_add(&l, "replicas", -1, "has no meaning with behavior CurrentReplicas: remove it");
	else if (f->behavior != FALLBACK_CURRENT && f->behavior != FALLBACK_SCALING_MODIFIERS && !f->replicas_set)
		fault_add(&l, "replicas", -1, "required, but missing: add it (integer)");
	return l.n;
}

static const struct schema_rule fallback_rules[] = {
        {"has(self.replicas) != (self.behavior == 'CurrentReplicas' || self.behavior == 'ScalingModifiers')",
         "replicas is required, but for behavior CurrentReplicas and ScalingModifiers, where it has no meaning"},
};

const struct schema policy_schema_fallback = {
        .name = "GPUAutoscaler.spec.fallback",
        .doc = "What to go by when the signals cannot be read for long.",
        .struct_size = sizeof(struct policy_fallback),
        .fields = fallback_fields,
        .n_fields = COUNT_OF(fallback_fields),
        .validate = check_fallback,
        .rules = fallback_rules,
        .n_rules = COUNT_OF(fallback_rules),
};

// ---- startup ----

static const struct schema_field startup_fields[] = {
        {.name = "seconds",
         .type = SCHEMA_SECONDS_MS,
         .doc = "Time from the order of a replica to its being ready, in seconds. Default: the median of the last 9 "
                "starts seen.",
         FIELD_SET(struct policy_startup, start_ms, given),
         .min = 1,
         .max = 86400},
};

const struct schema policy_schema_startup = {
        .name = "GPUAutoscaler.spec.startup",
        .doc = "How long a replica takes to become ready, and that it counts until then.",
        .struct_size = sizeof(struct policy_startup),
        .fields = startup_fields,
        .n_fields = COUNT_OF(startup_fields),
};

// ---- guards ----

static const struct schema_field guard_fields[] = {
        {.name = "maxPendingPods",
         .type = SCHEMA_INT32,
         .doc = "No scale-up while more replicas than this are still starting: pending, or running and not ready yet. "
                "0 scales up only when all are ready. Stops 2-4-8-16 while models load, and orders beyond what the "
                "cluster has room for.",
         FIELD_SET(struct policy_guards, max_pending_pods, max_pending_set),
         .min = 0,
         .max = POLICY_REPLICAS_MAX},
        {.name = "minAvailablePercent",
         .type = SCHEMA_INT32,
         .doc = "No scaling in either direction while less than this share of the replicas is ready.",
         FIELD(struct policy_guards, min_available_percent),
         .min = 1,
         .max = 100},
        {.name = "maxStep",
         .type = SCHEMA_INT32,
         .doc = "Largest change of one decision, in replicas, whatever behavior allows.",
         FIELD(struct policy_guards, max_step),
         .min = 1,
         .max = POLICY_REPLICAS_MAX},
};

static size_t check_guards(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_guards *g = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (!g->max_pending_set && g->min_available_percent == 0 && g->max_step == 0)
		fault_add(&l, NULL, -1,
		          "guards nothing: set maxPendingPods, minAvailablePercent or maxStep, or remove it");
	return l.n;
}

static const struct schema_rule guards_rules[] = {
        {"has(self.maxPendingPods) || has(self.minAvailablePercent) || has(self.maxStep)",
         "guards nothing: set maxPendingPods, minAvailablePercent or maxStep, or remove it"},
};

const struct schema policy_schema_guards = {
        .name = "GPUAutoscaler.spec.guards",
        .doc = "States of the target in which it is not scaled, or not far.",
        .struct_size = sizeof(struct policy_guards),
        .fields = guard_fields,
        .n_fields = COUNT_OF(guard_fields),
        .validate = check_guards,
        .rules = guards_rules,
        .n_rules = COUNT_OF(guards_rules),
};
