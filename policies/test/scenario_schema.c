// SPDX-License-Identifier: Apache-2.0
// The one table of the PolicyTest format.
#include "base/schema/schema.h"
#include "base/series_notation.h"
#include "policies/engine/decision.h"
#include "policies/schema/policy_schema.h"
#include "policies/test/scenario.h"

#define N(a)        (sizeof(a) / sizeof((a)[0]))
#define MS_PER_YEAR 31536000000.0

// FIELD: presence is not recorded. FIELD_SET: `set` records it. LIST: with its count.
#define FIELD_SET(type_, key, kind, member, set, ...)                                                                  \
	{                                                                                                              \
		.name = key, .type = kind, .offset = offsetof(type_, member), .set_offset = set,                       \
		.count_offset = SCHEMA_NO_OFFSET, __VA_ARGS__                                                          \
	}
#define FIELD(type_, key, kind, member, ...) FIELD_SET(type_, key, kind, member, SCHEMA_NO_OFFSET, __VA_ARGS__)
#define LIST(type_, key, kind, member, count, ...)                                                                     \
	{                                                                                                              \
		.name = key, .type = kind, .offset = offsetof(type_, member), .set_offset = SCHEMA_NO_OFFSET,          \
		.count_offset = offsetof(type_, count), __VA_ARGS__                                                    \
	}
// An object whose children are stored in the same struct.
#define INLINE(key, set, ...)                                                                                          \
	{                                                                                                              \
		.name = key, .type = SCHEMA_OBJECT, .offset = 0, .set_offset = set, .count_offset = SCHEMA_NO_OFFSET,  \
		__VA_ARGS__                                                                                            \
	}
#define OBJECT(name_, path, type_, fields_, doc_)                                                                      \
	static const struct schema name_ = {                                                                           \
	        .name = path, .doc = doc_, .struct_size = sizeof(type_), .fields = fields_, .n_fields = N(fields_)}

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {"PolicyTest", NULL};
static const char *const actions[] = {"None", "Hold", "ScaleUp", "ScaleDown", NULL}; // order of enum action
_Static_assert(N(actions) == ACTION__COUNT + 1, "one name per action");
const char *const scenario_law_names[LAW__COUNT] = {"WithinBounds", "NoFlap", "HoldOnNoData", "MonotoneInLoad"};

static const struct schema_field recommendation_fields[] = {
        FIELD(struct scenario_recommendation, "ago", SCHEMA_DURATION_MS, ago_ms,
              .doc = "How long before the start it was made.", .required = true, .min = 1, .max = MS_PER_YEAR),
        FIELD(struct scenario_recommendation, "replicas", SCHEMA_INT32, replicas, .doc = "What was recommended.",
              .required = true, .min = 0, .max = POLICY_REPLICAS_MAX),
};
OBJECT(recommendation_schema, "PolicyTest.tests[].state.recommendations[]", struct scenario_recommendation,
       recommendation_fields, "A recommendation from before the start.");

static const struct schema_field event_fields[] = {
        FIELD(struct scenario_event, "ago", SCHEMA_DURATION_MS, ago_ms, .doc = "How long before the start it happened.",
              .required = true, .min = 1, .max = MS_PER_YEAR),
        FIELD(struct scenario_event, "change", SCHEMA_INT32, change,
              .doc = "Replicas added (positive) or removed (negative).", .required = true, .min = -POLICY_REPLICAS_MAX,
              .max = POLICY_REPLICAS_MAX),
};
OBJECT(event_schema, "PolicyTest.tests[].state.scaleEvents[]", struct scenario_event, event_fields,
       "A scale from before the start.");

static const struct schema_field last_scale_fields[] = {
        FIELD(struct scenario, "ago", SCHEMA_DURATION_MS, last_scale.ago_ms,
              .doc = "How long before the start it happened.", .required = true, .min = 1, .max = MS_PER_YEAR),
};
OBJECT(last_scale_schema, "PolicyTest.tests[].state.lastScale", struct scenario, last_scale_fields,
       "The last scale, when only its time matters (cooldown).");

static const struct schema_field state_fields[] = {
        LIST(struct scenario, "recommendations", SCHEMA_LIST, recommendations, n_recommendations,
             .doc = "Recommendations made before the start.", .child = &recommendation_schema),
        LIST(struct scenario, "scaleEvents", SCHEMA_LIST, events, n_events,
             .doc = "Scales that happened before the start.", .child = &event_schema),
        INLINE("lastScale", offsetof(struct scenario, last_scale.set),
               .doc = "Time of the last scale, for cooldown. Default: the last scale event.",
               .child = &last_scale_schema),
};
OBJECT(state_schema, "PolicyTest.tests[].state", struct scenario, state_fields,
       "What the engine remembers at the start.");

static const struct schema_field target_fields[] = {
        FIELD(struct scenario, "replicas", SCHEMA_INT32, target.replicas,
              .doc = "spec.replicas of the target at the start.", .required = true, .min = 0,
              .max = POLICY_REPLICAS_MAX),
        FIELD_SET(struct scenario, "ready", SCHEMA_INT32, target.ready, offsetof(struct scenario, target.ready_set),
                  .doc = "Ready pods at the start; -1 = not known. Default: as many as replicas.", .min = -1,
                  .max = POLICY_REPLICAS_MAX),
        FIELD(struct scenario, "pending", SCHEMA_INT32, target.pending,
              .doc = "Pending pods. With follow: those not ready yet.", .min = 0, .max = POLICY_REPLICAS_MAX),
        FIELD(struct scenario, "pods", SCHEMA_ANY, pods_node,
              .doc = "The pods by name, for targets of type Pods: {a: Ready, b: Pending}; states are Ready, Unready, "
                     "Pending, Failed and Deleted. Not with follow, whose pods have no names."),
};
OBJECT(target_schema, "PolicyTest.tests[].target", struct scenario, target_fields, "The workload at the start.");

static const struct schema_field follow_fields[] = {
        FIELD(struct scenario, "readyAfter", SCHEMA_DURATION_MS, follow.ready_after_ms,
              .doc = "How long a new pod takes to become ready. Pods not ready at the start are new then.",
              .default_text = "0s", .min = 0, .max = MS_PER_YEAR),
};
OBJECT(follow_schema, "PolicyTest.tests[].follow", struct scenario, follow_fields,
       "Apply the decisions, so that the next tick sees them. Without it the target stays as given.");

static const struct schema_field expect_signal_fields[] = {
        FIELD(struct scenario_expect_signal, "state", SCHEMA_STRING, state, .doc = "OK, Missing, Ignored or Filling."),
        FIELD_SET(struct scenario_expect_signal, "value", SCHEMA_QUANTITY, value,
                  offsetof(struct scenario_expect_signal, value_set),
                  .doc = "Its value after series reduction and window, within a millionth."),
        FIELD_SET(struct scenario_expect_signal, "proposal", SCHEMA_INT32, proposal,
                  offsetof(struct scenario_expect_signal, proposal_set), .doc = "Replicas it asks for.", .min = 0,
                  .max = POLICY_REPLICAS_MAX),
        FIELD(struct scenario_expect_signal, "reason", SCHEMA_STRING, reason,
              .doc = "Why it asks for that, or why it has no value."),
};
OBJECT(expect_signal_schema, "PolicyTest.tests[].expect[].signals.*", struct scenario_expect_signal,
       expect_signal_fields, "What one signal must show in a decision.");

static const struct schema_field expect_fields[] = {
        FIELD(struct scenario_expect, "at", SCHEMA_DURATION_MS, at_ms,
              .doc = "Time after the start; a multiple of the interval.", .required = true, .min = 0,
              .max = MS_PER_YEAR),
        FIELD_SET(struct scenario_expect, "replicas", SCHEMA_INT32, replicas,
                  offsetof(struct scenario_expect, replicas_set), .doc = "Replicas the decision wants.", .min = 0,
                  .max = POLICY_REPLICAS_MAX),
        FIELD_SET(struct scenario_expect, "action", SCHEMA_ENUM, action, offsetof(struct scenario_expect, action_set),
                  .doc = "What it does.", .enum_names = actions),
        FIELD(struct scenario_expect, "reason", SCHEMA_STRING, reason, .doc = "Its primary reason."),
        FIELD(struct scenario_expect, "message", SCHEMA_STRING, message, .doc = "Text that its message must contain."),
        FIELD(struct scenario_expect, "signals", SCHEMA_ANY, signal_map,
              .doc = "Per signal what it must show: state, value, proposal, reason."),
};
OBJECT(expect_schema, "PolicyTest.tests[].expect[]", struct scenario_expect, expect_fields,
       "What must be decided at one time.");

static const struct schema_field test_fields[] = {
        FIELD(struct scenario, "name", SCHEMA_STRING, name, .doc = "A sentence that says what must hold.",
              .required = true, .min = 1, .max = 200),
        FIELD(struct scenario, "policy", SCHEMA_STRING, policy_key,
              .doc = "namespace/name of the policy under test. Not needed when the files hold one policy only."),
        FIELD(struct scenario, "start", SCHEMA_STRING, start, .doc = "Time of the first tick, RFC 3339.",
              .default_text = "1970-01-01T00:00:00Z"),
        INLINE("target", SCHEMA_NO_OFFSET, .doc = "The workload at the start.", .required = true,
               .child = &target_schema),
        INLINE("state", SCHEMA_NO_OFFSET, .doc = "What the engine remembers at the start.", .child = &state_schema),
        FIELD(struct scenario, "signals", SCHEMA_ANY, signals_node,
              .doc = "Per signal its values in promtool's notation, one per interval: 'a+bxn', 'axn', '_', 'stale', "
                     "'error:timeout'; or a list of pieces of it, each a text or {values, age}, {error, times}, "
                     "{partial, times}; or a map from pod to one of these. After its last value a series is gone."),
        FIELD(struct scenario, "room", SCHEMA_ANY, room_node,
              .doc = "For spec.capacity: how many replicas of the target the cluster has room for, in the same "
                     "notation; '_' where that is unknown. With follow, replicas beyond it stay unschedulable. "
                     "Default: unknown."),
        FIELD(struct scenario, "unhealthy", SCHEMA_ANY, unhealthy_node,
              .doc = "For guards.unhealthyReplicas: how many replicas are on failing GPUs, in the same notation; '_' "
                     "where that is unknown. Default: unknown."),
        INLINE("follow", offsetof(struct scenario, follow.set), .doc = "Apply the decisions.", .child = &follow_schema),
        LIST(struct scenario, "expect", SCHEMA_LIST, expect, n_expect, .doc = "What must be decided, and when.",
             .max_items = SCENARIO_EXPECT_MAX, .child = &expect_schema),
        LIST(struct scenario, "invariants", SCHEMA_STRING_LIST, law_names, n_laws,
             .doc = "Laws that must hold at every tick: WithinBounds, NoFlap, HoldOnNoData, MonotoneInLoad.",
             .max_items = LAW__COUNT),
};
OBJECT(test_schema, "PolicyTest.tests[]", struct scenario, test_fields, "One scenario.");

static size_t check_piece(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct scenario_piece *p = value;
	size_t n = 0;
	if (!p->values + !p->error + !p->partial != 2 && n < max)
		ret_faults[n++] = (struct schema_fault){
		        NULL, -1, "a piece of a series is one of values ('5x3'), error (a text) and partial (a text)"};
	if (!p->values && p->age_ms > 0 && n < max)
		ret_faults[n++] = (struct schema_fault){"age", -1, "only values have an age"};
	if (p->values && p->times_set && n < max)
		ret_faults[n++] =
		        (struct schema_fault){"times", -1, "goes with error and partial; values say x3 themselves"};
	return n;
}

static const struct schema_field piece_fields[] = {
        FIELD(struct scenario_piece, "values", SCHEMA_STRING, values, .doc = "Values in promtool's notation."),
        FIELD(struct scenario_piece, "age", SCHEMA_DURATION_MS, age_ms,
              .doc = "How old each of them is at its tick, for staleAfter.", .min = 0, .max = MS_PER_YEAR),
        FIELD(struct scenario_piece, "error", SCHEMA_STRING, error, .doc = "The query fails, and why.", .min = 1,
              .max = 200),
        FIELD(struct scenario_piece, "partial", SCHEMA_STRING, partial,
              .doc = "The answer is incomplete, and what the source says about it.", .min = 1, .max = 200),
        FIELD_SET(struct scenario_piece, "times", SCHEMA_INT32, times, offsetof(struct scenario_piece, times_set),
                  .doc = "At how many ticks. Default: one; at every tick when the signal shows nothing else.", .min = 1,
                  .max = SERIES_NOTATION_POINTS_MAX),
};
static const struct schema piece_schema = {.name = "PolicyTest.tests[].signals.*[]",
                                           .doc = "A piece of a series.",
                                           .struct_size = sizeof(struct scenario_piece),
                                           .fields = piece_fields,
                                           .n_fields = N(piece_fields),
                                           .validate = check_piece};

static const struct schema_field root_fields[] = {
        FIELD(struct scenario_file, "apiVersion", SCHEMA_ENUM, api_version, .doc = "Version of the format.",
              .required = true, .enum_names = api_versions),
        FIELD(struct scenario_file, "kind", SCHEMA_ENUM, kind, .doc = "PolicyTest.", .required = true,
              .enum_names = kinds),
        LIST(struct scenario_file, "policyFiles", SCHEMA_STRING_LIST, policy_files, n_policy_files,
             .doc = "Policy files, relative to this file.", .required = true, .min = 1),
        FIELD(struct scenario_file, "interval", SCHEMA_DURATION_MS, interval_ms,
              .doc = "Time between two values of a series, and between two ticks. Default: the policy's interval.",
              .min = 100, .max = MS_PER_YEAR),
        LIST(struct scenario_file, "tests", SCHEMA_LIST, tests, n_tests, .doc = "The scenarios.", .required = true,
             .min = 1, .max_items = SCENARIO_TESTS_MAX, .child = &test_schema),
};
OBJECT(root_schema, "PolicyTest", struct scenario_file, root_fields, "Unit tests of policies.");

const struct schema *scenario_schema(void)
{
	return &root_schema;
}

const struct schema *scenario_expect_signal_schema(void)
{
	return &expect_signal_schema;
}

const struct schema *scenario_piece_schema(void)
{
	return &piece_schema;
}
