// SPDX-License-Identifier: Apache-2.0
#include "controller/status/status_schema.h"

#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/pool/gpu_pool.h"
#include "policies/schema/binding.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

// A row is a member of struct `type_`.
#define FIELD_SET(type_, key, kind, member, set, text, ...)                                                            \
	{                                                                                                              \
		.name = key, .type = kind, .doc = text, .offset = offsetof(type_, member), .set_offset = set,          \
		.count_offset = SCHEMA_NO_OFFSET, __VA_ARGS__                                                          \
	}
#define FIELD(type_, key, kind, member, text, ...)                                                                     \
	FIELD_SET(type_, key, kind, member, SCHEMA_NO_OFFSET, text, __VA_ARGS__)
#define LIST(type_, key, member, count, text, most, schema_, ...)                                                      \
	{                                                                                                              \
		.name = key, .type = SCHEMA_LIST, .doc = text, .offset = offsetof(type_, member),                      \
		.set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(type_, count), .max_items = most,             \
		.child = &schema_, __VA_ARGS__                                                                         \
	}
#define OBJECT(name_, path, type_, fields_, doc_)                                                                      \
	const struct schema name_ = {                                                                                  \
	        .name = path, .doc = doc_, .struct_size = sizeof(type_), .fields = fields_, .n_fields = N(fields_)}

// ---- GPUAutoscaler ----

// clang-format off
#define NAME      .max = STATUS_VIEW_NAME_BYTES
#define SENTENCE  .max = STATUS_VIEW_SENTENCE_BYTES
#define SIGNAL    struct status_view_signal
#define CONDITION struct status_view_condition
#define DECISION  struct status_view_decision

static const struct schema_field signal_fields[] = {
	FIELD(SIGNAL, "name", SCHEMA_STRING, name, "Name of the signal, as in spec.signals.", .required = true, .min = 1, .max = 63),
	FIELD(SIGNAL, "value", SCHEMA_STRING, value, "Its value, after window and series; absent when the signal is missing.", .max = 63),
	FIELD(SIGNAL, "target", SCHEMA_STRING, target, "What it was compared with: the target's value, or the watermark that applies.", .max = 63),
	FIELD_SET(SIGNAL, "proposal", SCHEMA_INT32, proposal, offsetof(SIGNAL, proposal_set), "Replicas that it asks for; the current scale when it is missing.", .min = 0),
	FIELD(SIGNAL, "state", SCHEMA_STRING, state, "OK, Missing, Ignored, or Filling while its window fills.", NAME),
	FIELD(SIGNAL, "reason", SCHEMA_STRING, reason, "Why it asks for these replicas, or why it is missing.", NAME),
	FIELD(SIGNAL, "sampleTime", SCHEMA_TIME_MS, sample_ms, "Time of its newest sample.", .min = 0),
};
static OBJECT(signal_schema, "GPUAutoscaler.status.signals[]", SIGNAL, signal_fields, "One signal when the status was last written.");

static const char condition_doc[] =
	"Ready, AbleToScale, ScalingActive, ScalingLimited, Conflict, DryRun, Paused, ObjectiveNotReachable, "
	"CapacityLearnt, UnhealthyReplicas or CapacityLimited.";
static const struct schema_field condition_fields[] = {
	FIELD(CONDITION, "type", SCHEMA_STRING, type, condition_doc, .required = true, .min = 1, .max = 316),
	FIELD(CONDITION, "status", SCHEMA_STRING, status, "True, False or Unknown.", .required = true, .pattern = "^(True|False|Unknown)$", NAME),
	FIELD(CONDITION, "reason", SCHEMA_STRING, reason, "One word for programs.", NAME),
	FIELD(CONDITION, "message", SCHEMA_STRING, message, "One sentence for people.", SENTENCE),
	FIELD(CONDITION, "lastTransitionTime", SCHEMA_TIME_MS, since_ms, "When the status of the condition last changed.", .min = 0),
	FIELD(CONDITION, "observedGeneration", SCHEMA_INT64, observed_generation, "The metadata.generation that the condition is based on.", .min = 0),
};
static OBJECT(condition_schema, "GPUAutoscaler.status.conditions[]", CONDITION, condition_fields, "One aspect of the policy.");

#define VARIANT struct status_view_variant
static const struct schema_field variant_fields[] = {
	FIELD(VARIANT, "name", SCHEMA_STRING, name, "Name of the variant, as in spec.variants.", .required = true, .min = 1, .max = 63),
	FIELD(VARIANT, "kind", SCHEMA_STRING, kind, "Kind of its target.", NAME),
	FIELD(VARIANT, "target", SCHEMA_STRING, target, "Name of its target.", NAME),
	FIELD(VARIANT, "currentReplicas", SCHEMA_INT32, current, "spec.replicas of its target.", .min = 0),
	FIELD_SET(VARIANT, "readyReplicas", SCHEMA_INT32, ready, offsetof(VARIANT, ready_set), "Ready replicas of its target; absent when unknown.", .min = 0),
	FIELD(VARIANT, "desiredReplicas", SCHEMA_INT32, desired, "Its share of the last decision.", .min = 0),
	FIELD(VARIANT, "reason", SCHEMA_STRING, reason, "Why, in one word.", NAME),
	FIELD(VARIANT, "message", SCHEMA_STRING, message, "Why its target could not be read.", SENTENCE),
};
static OBJECT(variant_schema, "GPUAutoscaler.status.variants[]", VARIANT, variant_fields, "One variant when the status was last written.");

static const struct schema_field event_fields[] = {
	FIELD(struct status_view_mark, "time", SCHEMA_TIME_MS, time_ms, "When it was acknowledged.", .min = 0),
	FIELD(struct status_view_mark, "change", SCHEMA_INT32, value, "Replicas added, or removed (negative).", .min = 0),
};
static OBJECT(event_schema, "GPUAutoscaler.status.scaleEvents[]", struct status_view_mark, event_fields, "A change of scale that rate limits still count.");

static const struct schema_field recommendation_fields[] = {
	FIELD(struct status_view_mark, "time", SCHEMA_TIME_MS, time_ms, "When it was made.", .min = 0),
	FIELD(struct status_view_mark, "replicas", SCHEMA_INT32, value, "Recommended replicas.", .min = 0),
};
static OBJECT(recommendation_schema, "GPUAutoscaler.status.recommendations[]", struct status_view_mark, recommendation_fields, "A recommendation that stabilization still considers.");

static const struct schema_field decision_fields[] = {
	FIELD(DECISION, "time", SCHEMA_TIME_MS, time_ms, "When it was made.", .min = 0),
	FIELD(DECISION, "action", SCHEMA_STRING, action, "ScaleUp, ScaleDown, Hold or None.", NAME),
	FIELD(DECISION, "reason", SCHEMA_STRING, reason, "One word for programs.", NAME),
	FIELD(DECISION, "from", SCHEMA_INT32, from, "Replicas before.", .min = 0),
	FIELD(DECISION, "to", SCHEMA_INT32, to, "Desired replicas.", .min = 0),
	FIELD(DECISION, "message", SCHEMA_STRING, message, "One sentence for people.", SENTENCE),
};
static OBJECT(decision_schema, "GPUAutoscaler.status.decisions[]", DECISION, decision_fields, "A decision that differed from the one before.");

#define STATUS struct status_view
static const struct schema_field status_fields[] = {
	FIELD(STATUS, "observedGeneration", SCHEMA_INT64, observed_generation, "metadata.generation of the version that is in force; 0: none was ever valid.", .min = 0),
	FIELD(STATUS, "lastUpdateTime", SCHEMA_TIME_MS, updated_ms, "When this status was written.", .min = 0),
	FIELD_SET(STATUS, "currentReplicas", SCHEMA_INT32, current, offsetof(STATUS, current_set), "spec.replicas of the target; absent while another autoscaler controls the target, or the policy is invalid.", .min = 0),
	FIELD_SET(STATUS, "desiredReplicas", SCHEMA_INT32, desired, offsetof(STATUS, desired_set), "What the last decision wants; absent as currentReplicas is.", .min = 0),
	FIELD_SET(STATUS, "readyReplicas", SCHEMA_INT32, ready, offsetof(STATUS, ready_set), "Ready replicas of the target, where the policy needs to know.", .min = 0),
	FIELD(STATUS, "lastScaleTime", SCHEMA_TIME_MS, last_scale_ms, "When the target was last scaled.", .min = 0),
	FIELD(STATUS, "lastWithdrawTime", SCHEMA_TIME_MS, last_withdraw_ms, "When unschedulable replicas were last withdrawn (capacity.mode Elastic).", .min = 0),
	FIELD(STATUS, "replacements", SCHEMA_INT32, replacements, "How many of the replicas replace replicas on failing GPUs (guards.unhealthyReplicas).", .min = 0),
	FIELD(STATUS, "action", SCHEMA_STRING, action, "ScaleUp, ScaleDown, Hold or None; absent without a decision.", NAME),
	FIELD(STATUS, "reason", SCHEMA_STRING, reason, "Why, in one word.", NAME),
	FIELD(STATUS, "message", SCHEMA_STRING, message, "Why, in one sentence.", SENTENCE),
	FIELD(STATUS, "signalsSummary", SCHEMA_STRING, summary, "The signals in one line: name value/target.", SENTENCE),
	LIST(STATUS, "signals", signals, n_signals, "The signals of the last decision; absent as currentReplicas is.", POLICY_SIGNALS_MAX, signal_schema, .list_key = "name"),
	LIST(STATUS, "variants", variants, n_variants, "The variants of a policy that has some; its other numbers of replicas are units of capacity.", VARIANTS_MAX, variant_schema, .list_key = "name"),
	LIST(STATUS, "conditions", conditions, n_conditions, condition_doc, STATUS_VIEW_LIST_MAX, condition_schema, .list_key = "type"),
	LIST(STATUS, "scaleEvents", scale_events, n_scale_events, "Changes of scale that rate limits still count, oldest first.", STATUS_VIEW_HISTORY_MAX, event_schema, .min = 0),
	LIST(STATUS, "recommendations", recommendations, n_recommendations, "Recommendations that stabilization still looks at, oldest first.", STATUS_VIEW_HISTORY_MAX, recommendation_schema, .min = 0),
	LIST(STATUS, "decisions", decisions, n_decisions, "The last decisions that differed from the one before, oldest first.", STATUS_VIEW_LIST_MAX, decision_schema, .min = 0),
	FIELD_SET(STATUS, "startupSeconds", SCHEMA_INT32, startup_seconds, offsetof(STATUS, startup_set), "How long replicas take to become ready, as learnt from them.", .min = 0),
	FIELD(STATUS, "objectiveRecord", SCHEMA_STRING, objective_record, "What the rules of the objective have learnt, for the next process: base64, of one version of the controller.", .max = STATUS_VIEW_OBJECTIVE_BYTES),
	FIELD(STATUS, "targets", SCHEMA_ANY, targets, "The status of each target, by KIND/NAME, with the fields above, of a policy that has several; observedGeneration is then the only other field.", .min = 0),
	FIELD(STATUS, "fleet", SCHEMA_ANY, fleet, "Of a policy with scaleTargets: numbers of targets, ready, idle (or would be, in a dry run), atMax, holding, conflicts (left to others), failed, and of unmatchedSeries; the worst targets; and the record for the next process. The replicas of the other fields are sums over the targets.", .min = 0),
};
const struct schema status_schema = {
	.name = "GPUAutoscaler.status",
	.doc = "What the controller saw, wants and did. Written by the controller only.",
	.struct_size = sizeof(STATUS),
	.fields = status_fields,
	.n_fields = N(status_fields),
	.is_opaque = true,
};
// clang-format on

// ---- GPUPool ----

// clang-format off
#define MEMBER    struct pool_status_member
#define POOL      struct pool_status
#define SPENDING  struct pool_status_spending
#define DAY       struct pool_status_day
#define MONEY_MAX 1e12

static const struct schema_field member_fields[] = {
	FIELD(MEMBER, "name", SCHEMA_STRING, name, "The policy, as namespace/name.", .required = true, .min = 1, .max = POOL_STATUS_NAME_BYTES),
	FIELD(MEMBER, "requested", SCHEMA_INT32, requested, "Replicas that the policy asks for.", .min = 0),
	FIELD(MEMBER, "granted", SCHEMA_INT32, granted, "Replicas that the pool grants.", .min = 0),
	FIELD(MEMBER, "gpus", SCHEMA_INT32, gpus, "GPUs that the member counts for: the largest of granted, current and pending replicas.", .min = 0),
	FIELD(MEMBER, "reason", SCHEMA_STRING, reason, "Why, in one word.", .max = 63),
	FIELD(MEMBER, "message", SCHEMA_STRING, message, "Why, in one sentence.", .max = POOL_STATUS_SENTENCE_BYTES),
};
static OBJECT(member_schema, "GPUPool.status.members[]", MEMBER, member_fields, "What one member asked for and got.");

static const struct schema_field day_fields[] = {
	FIELD(DAY, "start", SCHEMA_TIME_MS, start_ms, "When the day starts, UTC.", .required = true, .min = 0),
	FIELD(DAY, "spent", SCHEMA_QUANTITY, spent, "What the recorded part of the day cost.", .required = true, .min = 0, .max = MONEY_MAX),
};
static OBJECT(day_schema, "GPUPool.status.spending.days[]", DAY, day_fields, "What one day cost.");

static const struct schema_field spending_fields[] = {
	FIELD(SPENDING, "since", SCHEMA_TIME_MS, since_ms, "When the record starts.", .required = true, .min = 0),
	FIELD(SPENDING, "until", SCHEMA_TIME_MS, until_ms, "The end of the time that was counted.", .required = true, .min = 0),
	FIELD(SPENDING, "spent", SCHEMA_QUANTITY, spent, "What the members cost in the calendar month of `until` (UTC), as far as it was recorded: price x GPUs x time.", .required = true, .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "assumed", SCHEMA_QUANTITY, assumed, "The part of spent that counts for times without a controller, at the larger of the costs before and after.", .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "perHour", SCHEMA_QUANTITY, per_hour, "What the members cost per hour at `until`.", .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "projected", SCHEMA_QUANTITY, projected, "What the month will have cost at its end, if the rest costs as much per hour as the last seven days.", .min = 0, .max = MONEY_MAX),
	LIST(SPENDING, "days", days, n_days, "What the last days cost, the current one first.", POOL_LEDGER_DAYS, day_schema, .list_key = "start"),
};
OBJECT(pool_spending_schema, "GPUPool.status.spending", SPENDING, spending_fields, "What a pool with a budget has spent, in the currency of its prices.");

static const struct schema_field pool_fields[] = {
	FIELD(POOL, "observedGeneration", SCHEMA_INT64, observed_generation, "metadata.generation of the version that is in force.", .min = 0),
	FIELD(POOL, "lastUpdateTime", SCHEMA_TIME_MS, updated_ms, "When this status was written.", .min = 0),
	FIELD(POOL, "gpus", SCHEMA_INT64, gpus, "The cap in force.", .min = 0),
	FIELD(POOL, "usedGPUs", SCHEMA_INT64, used_gpus, "GPUs that the members count for.", .min = 0),
	FIELD(POOL, "memberCount", SCHEMA_INT32, member_count, "Policies that belong to the pool.", .min = 0),
	FIELD(POOL, "limitedCount", SCHEMA_INT32, limited_count, "Members that got less than they asked for.", .min = 0),
	FIELD(POOL, "message", SCHEMA_STRING, message, "The state of the pool in one sentence.", .max = POOL_STATUS_SENTENCE_BYTES),
	FIELD(POOL, "spending", SCHEMA_OBJECT, spending, "What a pool with a budget has spent, in the currency of its prices.", .child = &pool_spending_schema),
	LIST(POOL, "members", members, n_members, "The members, in the order of their names.", POOL_STATUS_MEMBERS_MAX, member_schema, .list_key = "name"),
};
OBJECT(pool_status_schema, "GPUPool.status", POOL, pool_fields, "The cap, what is used, and what each member asked for and got. Written by the controller only.");
// clang-format on
