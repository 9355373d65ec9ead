// SPDX-License-Identifier: Apache-2.0
// The one table of the PolicyTest format.
#include "base/series_notation.h"
#include "policies/engine/decision.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/policy_schema_private.h"
#include "policies/test/scenario.h"

#define MS_PER_YEAR 31536000000.0
#define EXPECTED    struct scenario_expect_signal

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {"PolicyTest", NULL};
static const char *const actions[] = {"None", "Hold", "ScaleUp", "ScaleDown", NULL}; // order of enum action
_Static_assert(COUNT_OF(actions) == ACTION__COUNT + 1, "one name per action");
const char *const scenario_law_names[LAW__COUNT] = {"WithinBounds", "NoFlap", "HoldOnNoData", "MonotoneInLoad"};

static void check_piece(const void *value, struct fault_list *l)
{
	const struct scenario_piece *p = value;
	if (!p->values + !p->error + !p->partial != 2)
		fault_add(l, NULL, -1,
		          "a piece of a series is one of values ('5x3'), error (a text) and partial (a text)");
	if (!p->values && p->age_ms > 0)
		fault_add(l, "age", -1, "only values have an age");
	if (p->values && p->times_set)
		fault_add(l, "times", -1, "goes with error and partial; values say x3 themselves");
}

// clang-format off
static const struct schema_field recommendation_fields[] = {
	{ROW("ago", DURATION_MS), FIELD(struct scenario_recommendation, ago_ms), REQUIRED, RANGE(1, MS_PER_YEAR), DOC("How long before the start it was made.")},
	{ROW("replicas", INT32), FIELD(struct scenario_recommendation, replicas), REQUIRED, RANGE(0, POLICY_REPLICAS_MAX), DOC("What was recommended.")},
};
static const struct schema recommendation_schema = {SCHEMA("PolicyTest.tests[].state.recommendations[]", struct scenario_recommendation, recommendation_fields), DOC("A recommendation from before the start.")};

static const struct schema_field event_fields[] = {
	{ROW("ago", DURATION_MS), FIELD(struct scenario_event, ago_ms), REQUIRED, RANGE(1, MS_PER_YEAR), DOC("How long before the start it happened.")},
	{ROW("change", INT32), FIELD(struct scenario_event, change), REQUIRED, RANGE(-POLICY_REPLICAS_MAX, POLICY_REPLICAS_MAX), DOC("Replicas added (positive) or removed (negative).")},
};
static const struct schema event_schema = {SCHEMA("PolicyTest.tests[].state.scaleEvents[]", struct scenario_event, event_fields), DOC("A scale from before the start.")};

static const struct schema_field last_scale_fields[] = {
	{ROW("ago", DURATION_MS), FIELD(struct scenario, last_scale.ago_ms), REQUIRED, RANGE(1, MS_PER_YEAR), DOC("How long before the start it happened.")},
};
static const struct schema last_scale_schema = {SCHEMA("PolicyTest.tests[].state.lastScale", struct scenario, last_scale_fields), DOC("The last scale, when only its time matters (cooldown).")};

static const struct schema_field state_fields[] = {
	{ROW("recommendations", LIST), FIELD_LIST(struct scenario, recommendations, n_recommendations), OPTIONAL, CHILD(recommendation_schema), DOC("Recommendations made before the start.")},
	{ROW("scaleEvents", LIST), FIELD_LIST(struct scenario, events, n_events), OPTIONAL, CHILD(event_schema), DOC("Scales that happened before the start.")},
	{ROW("lastScale", OBJECT), .set_offset = offsetof(struct scenario, last_scale.set), OPTIONAL, CHILD(last_scale_schema), DOC("Time of the last scale, for cooldown. Default: the last scale event.")},
};
static const struct schema state_schema = {SCHEMA("PolicyTest.tests[].state", struct scenario, state_fields), DOC("What the engine remembers at the start.")};

static const struct schema_field target_fields[] = {
	{ROW("replicas", INT32), FIELD(struct scenario, target.replicas), REQUIRED, RANGE(0, POLICY_REPLICAS_MAX), DOC("spec.replicas of the target at the start.")},
	{ROW("ready", INT32), FIELD_SET(struct scenario, target.ready, target.ready_set), OPTIONAL, RANGE(-1, POLICY_REPLICAS_MAX), DOC("Ready pods at the start; -1 = not known. Default: as many as replicas.")},
	{ROW("pending", INT32), FIELD(struct scenario, target.pending), OPTIONAL, RANGE(0, POLICY_REPLICAS_MAX), DOC("Pending pods. With follow: those not ready yet.")},
	{ROW("pods", ANY), FIELD(struct scenario, pods_node), OPTIONAL, DOC("The pods by name, for targets of type Pods: {a: Ready, b: Pending}; states are Ready, Unready, Pending, Failed and Deleted. Not with follow, whose pods have no names.")},
};
static const struct schema target_schema = {SCHEMA("PolicyTest.tests[].target", struct scenario, target_fields), DOC("The workload at the start.")};

static const struct schema_field follow_fields[] = {
	{ROW("readyAfter", DURATION_MS), FIELD(struct scenario, follow.ready_after_ms), DEFAULT("0s"), RANGE(0, MS_PER_YEAR), DOC("How long a new pod takes to become ready. Pods not ready at the start are new then.")},
};
static const struct schema follow_schema = {SCHEMA("PolicyTest.tests[].follow", struct scenario, follow_fields), DOC("Apply the decisions, so that the next tick sees them. Without it the target stays as given.")};

static const struct schema_field expect_signal_fields[] = {
	{ROW("state", STRING), FIELD(EXPECTED, state), OPTIONAL, DOC("OK, Missing, Ignored or Filling.")},
	{ROW("value", QUANTITY), FIELD_SET(EXPECTED, value, value_set), OPTIONAL, DOC("Its value after series reduction and window, within a millionth.")},
	{ROW("proposal", INT32), FIELD_SET(EXPECTED, proposal, proposal_set), OPTIONAL, RANGE(0, POLICY_REPLICAS_MAX), DOC("Replicas it asks for.")},
	{ROW("reason", STRING), FIELD(EXPECTED, reason), OPTIONAL, DOC("Why it asks for that, or why it has no value.")},
};
const struct schema scenario_expect_signal_schema = {SCHEMA("PolicyTest.tests[].expect[].signals.*", EXPECTED, expect_signal_fields), DOC("What one signal must show in a decision.")};

static const struct schema_field expect_fields[] = {
	{ROW("at", DURATION_MS), FIELD(struct scenario_expect, at_ms), REQUIRED, RANGE(0, MS_PER_YEAR), DOC("Time after the start; a multiple of the interval.")},
	{ROW("replicas", INT32), FIELD_SET(struct scenario_expect, replicas, replicas_set), OPTIONAL, RANGE(0, POLICY_REPLICAS_MAX), DOC("Replicas the decision wants.")},
	{ROW("action", ENUM), FIELD_SET(struct scenario_expect, action, action_set), OPTIONAL, ONE_OF(actions), DOC("What it does.")},
	{ROW("reason", STRING), FIELD(struct scenario_expect, reason), OPTIONAL, DOC("Its primary reason.")},
	{ROW("message", STRING), FIELD(struct scenario_expect, message), OPTIONAL, DOC("Text that its message must contain.")},
	{ROW("signals", ANY), FIELD(struct scenario_expect, signal_map), OPTIONAL, DOC("Per signal what it must show: state, value, proposal, reason.")},
};
static const struct schema expect_schema = {SCHEMA("PolicyTest.tests[].expect[]", struct scenario_expect, expect_fields), DOC("What must be decided at one time.")};

static const struct schema_field test_fields[] = {
	{ROW("name", STRING), FIELD(struct scenario, name), REQUIRED, RANGE(1, 200), DOC("A sentence that says what must hold.")},
	{ROW("policy", STRING), FIELD(struct scenario, policy_key), OPTIONAL, DOC("namespace/name of the policy under test. Not needed when the files hold one policy only.")},
	{ROW("start", STRING), FIELD(struct scenario, start), DEFAULT("1970-01-01T00:00:00Z"), DOC("Time of the first tick, RFC 3339.")},
	{ROW("target", OBJECT), IN_PARENT, REQUIRED, CHILD(target_schema), DOC("The workload at the start.")},
	{ROW("state", OBJECT), IN_PARENT, OPTIONAL, CHILD(state_schema), DOC("What the engine remembers at the start.")},
	{ROW("signals", ANY), FIELD(struct scenario, signals_node), OPTIONAL, DOC("Per signal its values in promtool's notation, one per interval: 'a+bxn', 'axn', '_', 'stale', 'error:timeout'; or a list of pieces of it, each a text or {values, age}, {error, times}, {partial, times}; or a map from pod to one of these. After its last value a series is gone.")},
	{ROW("room", ANY), FIELD(struct scenario, room_node), OPTIONAL, DOC("For spec.capacity: how many replicas of the target the cluster has room for, in the same notation; '_' where that is unknown. With follow, replicas beyond it stay unschedulable. Default: unknown.")},
	{ROW("unhealthy", ANY), FIELD(struct scenario, unhealthy_node), OPTIONAL, DOC("For guards.unhealthyReplicas: how many replicas are on failing GPUs, in the same notation; '_' where that is unknown. Default: unknown.")},
	{ROW("follow", OBJECT), .set_offset = offsetof(struct scenario, follow.set), OPTIONAL, CHILD(follow_schema), DOC("Apply the decisions.")},
	{ROW("expect", LIST), FIELD_LIST(struct scenario, expect, n_expect), OPTIONAL, ITEMS(0, SCENARIO_EXPECT_MAX), CHILD(expect_schema), DOC("What must be decided, and when.")},
	{ROW("invariants", STRING_LIST), FIELD_LIST(struct scenario, law_names, n_laws), OPTIONAL, ITEMS(0, LAW__COUNT), DOC("Laws that must hold at every tick: WithinBounds, NoFlap, HoldOnNoData, MonotoneInLoad.")},
};
static const struct schema test_schema = {SCHEMA("PolicyTest.tests[]", struct scenario, test_fields), DOC("One scenario.")};

static const struct schema_field piece_fields[] = {
	{ROW("values", STRING), FIELD(struct scenario_piece, values), OPTIONAL, DOC("Values in promtool's notation.")},
	{ROW("age", DURATION_MS), FIELD(struct scenario_piece, age_ms), OPTIONAL, RANGE(0, MS_PER_YEAR), DOC("How old each of them is at its tick, for staleAfter.")},
	{ROW("error", STRING), FIELD(struct scenario_piece, error), OPTIONAL, RANGE(1, 200), DOC("The query fails, and why.")},
	{ROW("partial", STRING), FIELD(struct scenario_piece, partial), OPTIONAL, RANGE(1, 200), DOC("The answer is incomplete, and what the source says about it.")},
	{ROW("times", INT32), FIELD_SET(struct scenario_piece, times, times_set), OPTIONAL, RANGE(1, SERIES_NOTATION_POINTS_MAX), DOC("At how many ticks. Default: one; at every tick when the signal shows nothing else.")},
};
const struct schema scenario_piece_schema = {SCHEMA("PolicyTest.tests[].signals.*[]", struct scenario_piece, piece_fields), VALIDATE(check_piece), DOC("A piece of a series.")};

static const struct schema_field root_fields[] = {
	{ROW("apiVersion", ENUM), FIELD(struct scenario_file, api_version), REQUIRED, ONE_OF(api_versions), DOC("Version of the format.")},
	{ROW("kind", ENUM), FIELD(struct scenario_file, kind), REQUIRED, ONE_OF(kinds), DOC("PolicyTest.")},
	{ROW("policyFiles", STRING_LIST), FIELD_LIST(struct scenario_file, policy_files, n_policy_files), REQUIRED, .min = 1, DOC("Policy files, relative to this file.")},
	{ROW("interval", DURATION_MS), FIELD(struct scenario_file, interval_ms), OPTIONAL, RANGE(100, MS_PER_YEAR), DOC("Time between two values of a series, and between two ticks. Default: the policy's interval.")},
	{ROW("tests", LIST), FIELD_LIST(struct scenario_file, tests, n_tests), REQUIRED, ITEMS(1, SCENARIO_TESTS_MAX), CHILD(test_schema), DOC("The scenarios.")},
};
const struct schema scenario_schema = {SCHEMA("PolicyTest", struct scenario_file, root_fields), DOC("Unit tests of policies.")};
// clang-format on
