// SPDX-License-Identifier: Apache-2.0
#include "remedy/remedy_line.h"

#include <string.h>

#include "base/err.h"
#include "base/health_table.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "remedy/plan/remedy_state.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define TIME_MAX_S  253402300799.0 // 9999-12-31T23:59:59Z
#define WHOLE_MAX   9007199254740991.0
#define POD_BYTES   317 // namespace, slash and name

static const char *const types[] = {"event", "telemetry", "node", "tick", NULL};
_Static_assert(COUNT_OF(types) == REMEDY_LINE_TYPE__COUNT + 1, "one name per type");

#define AT(parent, key, kind, member, set, counted)                                                                    \
	.name = (key), .type = SCHEMA_##kind, .offset = offsetof(struct parent, member), .set_offset = (set),          \
	.count_offset = (counted)
#define SET(parent, member) offsetof(struct parent, has_##member)
#define N(parent, member)   offsetof(struct parent, n_##member)
#define NO                  SCHEMA_NO_OFFSET

// clang-format off
static const struct schema_field pod_fields[] = {
	{AT(remedy_line_pod, "name", STRING, name, NO, NO), .required = true, .min = 1, .max = POD_BYTES, .doc = "Namespace and name of the pod: namespace/name."},
	{AT(remedy_line_pod, "gpus", STRING_LIST, gpus, NO, N(remedy_line_pod, gpus)), .max_items = REMEDY_GPUS_MAX - 1, .doc = "UUIDs of the GPUs that the pod uses; any GPU of the node when absent."},
	{AT(remedy_line_pod, "pinned", BOOL, pinned, NO, NO), .default_text = "false", .doc = "The pod belongs to a DaemonSet or is static: it is never evicted."},
	{AT(remedy_line_pod, "refused", BOOL, refused, NO, NO), .default_text = "false", .doc = "A PodDisruptionBudget refused the last eviction."},
	{AT(remedy_line_pod, "moveAtCheckpoint", SECONDS_MS, until_ms, NO, NO), .default_text = "0", .min = 0, .max = TIME_MAX_S, .doc = "The pod moves at its next checkpoint; the time from which it may be evicted."},
};
static const struct schema pod = {.name = "pods[]", .doc = "A pod with GPUs.", .struct_size = sizeof(struct remedy_line_pod), .fields = pod_fields, .n_fields = COUNT_OF(pod_fields)};

static const struct schema_field fields[] = {
	{AT(remedy_line, "time", SECONDS_MS, time_ms, NO, NO), .required = true, .min = 0, .max = TIME_MAX_S, .doc = "When the line was observed, in seconds."},
	{AT(remedy_line, "type", ENUM, type, NO, NO), .required = true, .enum_names = types, .doc = "What the line reports."},
	{AT(remedy_line, "node", STRING, node, NO, NO), .min = 1, .max = REMEDY_NAME_BYTES_MAX, .doc = "Name of the node."},
	{AT(remedy_line, "gpu", STRING, gpu, SET(remedy_line, gpu), NO), .min = 1, .max = REMEDY_UUID_BYTES - 1, .doc = "UUID of the GPU; the node itself when absent."},
	{AT(remedy_line, "xid", INT32, xid, SET(remedy_line, xid), NO), .min = 0, .max = INT32_MAX, .doc = "Code of an XID error."},
	{AT(remedy_line, "condition", STRING, condition, SET(remedy_line, condition), NO), .min = 1, .max = 63, .doc = "Reason of a lasting condition, as gpuscale-exporter check reports it."},
	{AT(remedy_line, "value", INT64, value, SET(remedy_line, value), NO), .min = 0, .max = WHOLE_MAX, .doc = "Counter of the XID, or value of the condition."},
	{AT(remedy_line, "at", SECONDS_MS, at_ms, SET(remedy_line, at), NO), .min = 0, .max = TIME_MAX_S, .doc = "When the event happened; the time of the line when absent."},
	{AT(remedy_line, "present", BOOL, present, SET(remedy_line, present), NO), .doc = "Whether the exporter of the node answers."},
	{AT(remedy_line, "gpus", STRING_LIST, gpus, SET(remedy_line, gpus), N(remedy_line, gpus)), .max_items = 64, .doc = "UUIDs of the GPUs that the exporter or the node reports."},
	{AT(remedy_line, "deleted", BOOL, deleted, SET(remedy_line, deleted), NO), .doc = "The node is no longer in the cluster."},
	{AT(remedy_line, "dra", BOOL, dra, SET(remedy_line, dra), NO), .doc = "DRA serves the GPUs of the node: single GPUs can be tainted."},
	{AT(remedy_line, "cordoned", BOOL, cordoned, SET(remedy_line, cordoned), NO), .doc = "The node is unschedulable."},
	{AT(remedy_line, "ready", BOOL, ready, SET(remedy_line, ready), NO), .doc = "The node is ready."},
	{AT(remedy_line, "taints", STRING_LIST, taints, SET(remedy_line, taints), N(remedy_line, taints)), .max_items = REMEDY_GPUS_MAX, .doc = "Taints of gpuscale on the node: node, or the UUID of a GPU."},
	{AT(remedy_line, "pods", LIST, pods, SET(remedy_line, pods), N(remedy_line, pods)), .child = &pod, .doc = "The pods with GPUs on the node."},
	{AT(remedy_line, "record", STRING, record, SET(remedy_line, record), NO), .max = DOC_BYTES_MAX, .doc = "Text of the annotation gpuscale.dev/remediation."},
};
// clang-format on

static bool is_condition(const char *name)
{
	size_t n;
	const struct health_condition *rows = health_condition_table(&n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].reason, name) == 0)
			return true;
	return false;
}

static size_t check(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct remedy_line *l = value;
	bool event = l->type == REMEDY_LINE_EVENT, node = l->type == REMEDY_LINE_NODE;
	bool telemetry = l->type == REMEDY_LINE_TELEMETRY;
	const struct {
		bool is_wrong;
		const char *field, *message;
	} rules[] = {
	        {!l->node && l->type != REMEDY_LINE_TICK, "node", "required: the name of the node"},
	        {l->node && l->type == REMEDY_LINE_TICK, "node", "a tick names no node: remove it"},
	        {event && l->has_xid == l->has_condition, "xid", "an event has either xid or condition"},
	        {l->has_condition && !is_condition(l->condition), "condition",
	         "must be GPULost, GPUMissing, RecoveryAction, RowRemapFailure, RowRemapPending, "
	         "PageRetirementPending, UncorrectableEcc, HwThermalSlowdown or HwPowerBrake"},
	        {!event && (l->has_gpu || l->has_xid || l->has_condition || l->has_value || l->has_at), "type",
	         "gpu, xid, condition, value and at belong to an event"},
	        {!telemetry && l->has_present, "present", "belongs to telemetry"},
	        {l->has_gpus && !telemetry && !node, "gpus", "belongs to telemetry or a node"},
	        {!node && (l->has_deleted || l->has_dra || l->has_cordoned || l->has_ready || l->has_taints ||
	                   l->has_pods || l->has_record),
	         "type", "deleted, dra, cordoned, ready, taints, pods and record belong to a node"},
	};
	for (size_t i = 0; i < COUNT_OF(rules); i++)
		if (rules[i].is_wrong)
			return schema_fault_put(ret_faults, max, rules[i].field, rules[i].message);
	for (size_t i = 0; i < l->n_gpus; i++)
		if (!l->gpus[i][0] || strlen(l->gpus[i]) >= REMEDY_UUID_BYTES)
			return schema_fault_put(ret_faults, max, "gpus", "a UUID has 1 to 63 bytes");
	for (size_t i = 0; i < l->n_taints; i++)
		if (!l->taints[i][0] || strlen(l->taints[i]) >= REMEDY_UUID_BYTES)
			return schema_fault_put(ret_faults, max, "taints",
			                        "a taint is node or a UUID of 1 to 63 bytes");
	for (size_t k = 0; k < l->n_pods; k++)
		for (size_t i = 0; i < l->pods[k].n_gpus; i++)
			if (!l->pods[k].gpus[i][0] || strlen(l->pods[k].gpus[i]) >= REMEDY_UUID_BYTES)
				return schema_fault_put(ret_faults, max, "pods", "a UUID has 1 to 63 bytes");
	return 0;
}

static const struct schema line = {
        .name = "line",
        .doc = "One line.",
        .struct_size = sizeof(struct remedy_line),
        .fields = fields,
        .n_fields = COUNT_OF(fields),
        .validate = check,
};

int remedy_line_parse(const char *text, size_t len, struct arena *a, struct remedy_line *ret_line, struct err *e)
{
	struct doc_node *root;
	struct schema_errors errors;
	memset(ret_line, 0, sizeof *ret_line);
	if (len > REMEDY_LINE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the line has %zu bytes, the ceiling is %d", len, REMEDY_LINE_BYTES_MAX);
	if (doc_from_json(a, text, len, &root, e) < 0)
		return -1;
	if (root->kind != DOC_MAP)
		return err_set(e, ERR_INPUT,
		               "a line must be an object: {\"time\": 0, \"type\": \"node\", \"node\": \"a\"}");
	schema_errors_init(&errors, "");
	if (schema_decode(&line, root, ret_line, a, &errors, "") == 0)
		return 0;
	if (errors.n == 0)
		return err_set(e, ERR_LIMIT, "the line does not fit into the memory allowed");
	const struct schema_error *first = &errors.items[0];
	return err_set(e, ERR_INPUT, "%s%s%s", first->path, first->path[0] ? ": " : "", first->message);
}
