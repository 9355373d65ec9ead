// SPDX-License-Identifier: Apache-2.0
#include "controller/status/status_schema.h"

#include "base/schema/schema_rows.h"
#include "policies/engine/policy.h"
#include "policies/pool/gpu_pool.h"
#include "policies/schema/binding.h"

// ---- GPUAutoscaler ----

// clang-format off
#define NAME      RANGE(0, STATUS_VIEW_NAME_BYTES)
#define SENTENCE  RANGE(0, STATUS_VIEW_SENTENCE_BYTES)
#define SIGNAL    struct status_view_signal
#define CONDITION struct status_view_condition
#define DECISION  struct status_view_decision

static const struct schema_field signal_fields[] = {
	{ROW("name", STRING), FIELD(SIGNAL, name), REQUIRED, RANGE(1, 63), DOC("Name of the signal, as in spec.signals.")},
	{ROW("value", STRING), FIELD(SIGNAL, value), RANGE(0, 63), DOC("Its value, after window and series; absent when the signal is missing.")},
	{ROW("target", STRING), FIELD(SIGNAL, target), RANGE(0, 63), DOC("What it was compared with: the target's value, or the watermark that applies.")},
	{ROW("proposal", INT32), FIELD_SET(SIGNAL, proposal, proposal_set), DOC("Replicas that it asks for; the current scale when it is missing.")},
	{ROW("state", STRING), FIELD(SIGNAL, state), NAME, DOC("OK, Missing, Ignored, or Filling while its window fills.")},
	{ROW("reason", STRING), FIELD(SIGNAL, reason), NAME, DOC("Why it asks for these replicas, or why it is missing.")},
	{ROW("sampleTime", TIME_MS), FIELD(SIGNAL, sample_ms), DOC("Time of its newest sample.")},
};
static const struct schema signal_schema = {SCHEMA("GPUAutoscaler.status.signals[]", SIGNAL, signal_fields), DOC("One signal when the status was last written.")};

static const char condition_doc[] =
	"Ready, AbleToScale, ScalingActive, ScalingLimited, Conflict, DryRun, Paused, ObjectiveNotReachable, "
	"CapacityLearnt, UnhealthyReplicas or CapacityLimited.";
static const struct schema_field condition_fields[] = {
	{ROW("type", STRING), FIELD(CONDITION, type), REQUIRED, RANGE(1, 316), DOC(condition_doc)},
	{ROW("status", STRING), FIELD(CONDITION, status), REQUIRED, PATTERN("^(True|False|Unknown)$"), NAME, DOC("True, False or Unknown.")},
	{ROW("reason", STRING), FIELD(CONDITION, reason), NAME, DOC("One word for programs.")},
	{ROW("message", STRING), FIELD(CONDITION, message), SENTENCE, DOC("One sentence for people.")},
	{ROW("lastTransitionTime", TIME_MS), FIELD(CONDITION, since_ms), DOC("When the status of the condition last changed.")},
	{ROW("observedGeneration", INT64), FIELD(CONDITION, observed_generation), DOC("The metadata.generation that the condition is based on.")},
};
static const struct schema condition_schema = {SCHEMA("GPUAutoscaler.status.conditions[]", CONDITION, condition_fields), DOC("One aspect of the policy.")};

#define VARIANT struct status_view_variant
static const struct schema_field variant_fields[] = {
	{ROW("name", STRING), FIELD(VARIANT, name), REQUIRED, RANGE(1, 63), DOC("Name of the variant, as in spec.variants.")},
	{ROW("kind", STRING), FIELD(VARIANT, kind), NAME, DOC("Kind of its target.")},
	{ROW("target", STRING), FIELD(VARIANT, target), NAME, DOC("Name of its target.")},
	{ROW("currentReplicas", INT32), FIELD(VARIANT, current), DOC("spec.replicas of its target.")},
	{ROW("readyReplicas", INT32), FIELD_SET(VARIANT, ready, ready_set), DOC("Ready replicas of its target; absent when unknown.")},
	{ROW("desiredReplicas", INT32), FIELD(VARIANT, desired), DOC("Its share of the last decision.")},
	{ROW("reason", STRING), FIELD(VARIANT, reason), NAME, DOC("Why, in one word.")},
	{ROW("message", STRING), FIELD(VARIANT, message), SENTENCE, DOC("Why its target could not be read.")},
};
static const struct schema variant_schema = {SCHEMA("GPUAutoscaler.status.variants[]", VARIANT, variant_fields), DOC("One variant when the status was last written.")};

static const struct schema_field event_fields[] = {
	{ROW("time", TIME_MS), FIELD(struct status_view_mark, time_ms), DOC("When it was acknowledged.")},
	{ROW("change", INT32), FIELD(struct status_view_mark, value), DOC("Replicas added, or removed (negative).")},
};
static const struct schema event_schema = {SCHEMA("GPUAutoscaler.status.scaleEvents[]", struct status_view_mark, event_fields), DOC("A change of scale that rate limits still count.")};

static const struct schema_field recommendation_fields[] = {
	{ROW("time", TIME_MS), FIELD(struct status_view_mark, time_ms), DOC("When it was made.")},
	{ROW("replicas", INT32), FIELD(struct status_view_mark, value), DOC("Recommended replicas.")},
};
static const struct schema recommendation_schema = {SCHEMA("GPUAutoscaler.status.recommendations[]", struct status_view_mark, recommendation_fields), DOC("A recommendation that stabilization still considers.")};

static const struct schema_field decision_fields[] = {
	{ROW("time", TIME_MS), FIELD(DECISION, time_ms), DOC("When it was made.")},
	{ROW("action", STRING), FIELD(DECISION, action), NAME, DOC("ScaleUp, ScaleDown, Hold or None.")},
	{ROW("reason", STRING), FIELD(DECISION, reason), NAME, DOC("One word for programs.")},
	{ROW("from", INT32), FIELD(DECISION, from), DOC("Replicas before.")},
	{ROW("to", INT32), FIELD(DECISION, to), DOC("Desired replicas.")},
	{ROW("message", STRING), FIELD(DECISION, message), SENTENCE, DOC("One sentence for people.")},
};
static const struct schema decision_schema = {SCHEMA("GPUAutoscaler.status.decisions[]", DECISION, decision_fields), DOC("A decision that differed from the one before.")};

#define STATUS struct status_view
static const struct schema_field status_fields[] = {
	{ROW("observedGeneration", INT64), FIELD(STATUS, observed_generation), DOC("metadata.generation of the version that is in force; 0: none was ever valid.")},
	{ROW("lastUpdateTime", TIME_MS), FIELD(STATUS, updated_ms), DOC("When this status was written.")},
	{ROW("currentReplicas", INT32), FIELD_SET(STATUS, current, current_set), DOC("spec.replicas of the target; absent while another autoscaler controls the target, or the policy is invalid.")},
	{ROW("desiredReplicas", INT32), FIELD_SET(STATUS, desired, desired_set), DOC("What the last decision wants; absent as currentReplicas is.")},
	{ROW("readyReplicas", INT32), FIELD_SET(STATUS, ready, ready_set), DOC("Ready replicas of the target, where the policy needs to know.")},
	{ROW("lastScaleTime", TIME_MS), FIELD(STATUS, last_scale_ms), DOC("When the target was last scaled.")},
	{ROW("lastWithdrawTime", TIME_MS), FIELD(STATUS, last_withdraw_ms), DOC("When unschedulable replicas were last withdrawn (capacity.mode Elastic).")},
	{ROW("replacements", INT32), FIELD(STATUS, replacements), DOC("How many of the replicas replace replicas on failing GPUs (guards.unhealthyReplicas).")},
	{ROW("action", STRING), FIELD(STATUS, action), NAME, DOC("ScaleUp, ScaleDown, Hold or None; absent without a decision.")},
	{ROW("reason", STRING), FIELD(STATUS, reason), NAME, DOC("Why, in one word.")},
	{ROW("message", STRING), FIELD(STATUS, message), SENTENCE, DOC("Why, in one sentence.")},
	{ROW("signalsSummary", STRING), FIELD(STATUS, summary), SENTENCE, DOC("The signals in one line: name value/target.")},
	{ROW("signals", LIST), FIELD_LIST(STATUS, signals, n_signals), .max_items = POLICY_SIGNALS_MAX, CHILD(signal_schema), KEY("name"), DOC("The signals of the last decision; absent as currentReplicas is.")},
	{ROW("variants", LIST), FIELD_LIST(STATUS, variants, n_variants), .max_items = VARIANTS_MAX, CHILD(variant_schema), KEY("name"), DOC("The variants of a policy that has some; its other numbers of replicas are units of capacity.")},
	{ROW("conditions", LIST), FIELD_LIST(STATUS, conditions, n_conditions), .max_items = STATUS_VIEW_LIST_MAX, CHILD(condition_schema), KEY("type"), DOC(condition_doc)},
	{ROW("scaleEvents", LIST), FIELD_LIST(STATUS, scale_events, n_scale_events), .max_items = STATUS_VIEW_HISTORY_MAX, CHILD(event_schema), DOC("Changes of scale that rate limits still count, oldest first.")},
	{ROW("recommendations", LIST), FIELD_LIST(STATUS, recommendations, n_recommendations), .max_items = STATUS_VIEW_HISTORY_MAX, CHILD(recommendation_schema), DOC("Recommendations that stabilization still looks at, oldest first.")},
	{ROW("decisions", LIST), FIELD_LIST(STATUS, decisions, n_decisions), .max_items = STATUS_VIEW_LIST_MAX, CHILD(decision_schema), DOC("The last decisions that differed from the one before, oldest first.")},
	{ROW("startupSeconds", INT32), FIELD_SET(STATUS, startup_seconds, startup_set), DOC("How long replicas take to become ready, as learnt from them.")},
	{ROW("objectiveRecord", STRING), FIELD(STATUS, objective_record), RANGE(0, STATUS_VIEW_OBJECTIVE_BYTES), DOC("What the rules of the objective have learnt, for the next process: base64, of one version of the controller.")},
	{ROW("targets", ANY), FIELD(STATUS, targets), DOC("The status of each target, by KIND/NAME, with the fields above, of a policy that has several; observedGeneration is then the only other field.")},
	{ROW("fleet", ANY), FIELD(STATUS, fleet), DOC("Of a policy with scaleTargets: numbers of targets, ready, idle (or would be, in a dry run), atMax, holding, conflicts (left to others), failed, and of unmatchedSeries; the worst targets; and the record for the next process. The replicas of the other fields are sums over the targets.")},
};
const struct schema status_schema = {SCHEMA("GPUAutoscaler.status", STATUS, status_fields), .is_opaque = true, DOC("What the controller saw, wants and did. Written by the controller only.")};
// clang-format on

// ---- GPUPool ----

// clang-format off
#define MEMBER    struct pool_status_member
#define POOL      struct pool_status
#define SPENDING  struct pool_status_spending
#define DAY       struct pool_status_day
#define MONEY_MAX 1e12

static const struct schema_field member_fields[] = {
	{ROW("name", STRING), FIELD(MEMBER, name), REQUIRED, RANGE(1, POOL_STATUS_NAME_BYTES), DOC("The policy, as namespace/name.")},
	{ROW("requested", INT32), FIELD(MEMBER, requested), DOC("Replicas that the policy asks for.")},
	{ROW("granted", INT32), FIELD(MEMBER, granted), DOC("Replicas that the pool grants.")},
	{ROW("gpus", INT32), FIELD(MEMBER, gpus), DOC("GPUs that the member counts for: the largest of granted, current and pending replicas.")},
	{ROW("reason", STRING), FIELD(MEMBER, reason), RANGE(0, 63), DOC("Why, in one word.")},
	{ROW("message", STRING), FIELD(MEMBER, message), RANGE(0, POOL_STATUS_SENTENCE_BYTES), DOC("Why, in one sentence.")},
};
static const struct schema member_schema = {SCHEMA("GPUPool.status.members[]", MEMBER, member_fields), DOC("What one member asked for and got.")};

static const struct schema_field day_fields[] = {
	{ROW("start", TIME_MS), FIELD(DAY, start_ms), REQUIRED, DOC("When the day starts, UTC.")},
	{ROW("spent", QUANTITY), FIELD(DAY, spent), REQUIRED, RANGE(0, MONEY_MAX), DOC("What the recorded part of the day cost.")},
};
static const struct schema day_schema = {SCHEMA("GPUPool.status.spending.days[]", DAY, day_fields), DOC("What one day cost.")};

static const struct schema_field spending_fields[] = {
	{ROW("since", TIME_MS), FIELD(SPENDING, since_ms), REQUIRED, DOC("When the record starts.")},
	{ROW("until", TIME_MS), FIELD(SPENDING, until_ms), REQUIRED, DOC("The end of the time that was counted.")},
	{ROW("spent", QUANTITY), FIELD(SPENDING, spent), REQUIRED, RANGE(0, MONEY_MAX), DOC("What the members cost in the calendar month of `until` (UTC), as far as it was recorded: price x GPUs x time.")},
	{ROW("assumed", QUANTITY), FIELD(SPENDING, assumed), RANGE(0, MONEY_MAX), DOC("The part of spent that counts for times without a controller, at the larger of the costs before and after.")},
	{ROW("perHour", QUANTITY), FIELD(SPENDING, per_hour), RANGE(0, MONEY_MAX), DOC("What the members cost per hour at `until`.")},
	{ROW("projected", QUANTITY), FIELD(SPENDING, projected), RANGE(0, MONEY_MAX), DOC("What the month will have cost at its end, if the rest costs as much per hour as the last seven days.")},
	{ROW("days", LIST), FIELD_LIST(SPENDING, days, n_days), .max_items = POOL_LEDGER_DAYS, CHILD(day_schema), KEY("start"), DOC("What the last days cost, the current one first.")},
};
const struct schema pool_spending_schema = {SCHEMA("GPUPool.status.spending", SPENDING, spending_fields), DOC("What a pool with a budget has spent, in the currency of its prices.")};

static const struct schema_field pool_fields[] = {
	{ROW("observedGeneration", INT64), FIELD(POOL, observed_generation), DOC("metadata.generation of the version that is in force.")},
	{ROW("lastUpdateTime", TIME_MS), FIELD(POOL, updated_ms), DOC("When this status was written.")},
	{ROW("gpus", INT64), FIELD(POOL, gpus), DOC("The cap in force.")},
	{ROW("usedGPUs", INT64), FIELD(POOL, used_gpus), DOC("GPUs that the members count for.")},
	{ROW("memberCount", INT32), FIELD(POOL, member_count), DOC("Policies that belong to the pool.")},
	{ROW("limitedCount", INT32), FIELD(POOL, limited_count), DOC("Members that got less than they asked for.")},
	{ROW("message", STRING), FIELD(POOL, message), RANGE(0, POOL_STATUS_SENTENCE_BYTES), DOC("The state of the pool in one sentence.")},
	{ROW("spending", OBJECT), FIELD(POOL, spending), CHILD(pool_spending_schema), DOC("What a pool with a budget has spent, in the currency of its prices.")},
	{ROW("members", LIST), FIELD_LIST(POOL, members, n_members), .max_items = POOL_STATUS_MEMBERS_MAX, CHILD(member_schema), KEY("name"), DOC("The members, in the order of their names.")},
};
const struct schema pool_status_schema = {SCHEMA("GPUPool.status", POOL, pool_fields), DOC("The cap, what is used, and what each member asked for and got. Written by the controller only.")};
// clang-format on
