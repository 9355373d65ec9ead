// SPDX-License-Identifier: Apache-2.0
#include "remedy/remedy_replay.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/health_table.h"
#include "base/json/json_write.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/schema/schema_rows.h"
#include "remedy/plan/remedy_plan.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"

// ---- the lines ----

// One line of `gpuscale remediate --replay`: an event, telemetry, the state of a node, or a tick, as JSON
// (docs/remediation.md).
#define REMEDY_LINE_ARENA_MAX (32 * 1024 * 1024)

enum remedy_line_type {
	REMEDY_LINE_EVENT,
	REMEDY_LINE_TELEMETRY,
	REMEDY_LINE_NODE,
	REMEDY_LINE_TICK,
	REMEDY_LINE_TYPE__COUNT
};

// The fields of a line; which of them a type takes is checked.
struct remedy_line {
	int64_t time_ms;
	int type; // enum remedy_line_type
	const char *node;
	struct remedy_event event; // without the node
	bool has_gpu, has_condition, has_xid, has_value, has_at;
	bool present, has_present;    // of telemetry
	struct remedy_node_seen seen; // of a node, without its name and pods; telemetry has the GPUs, too
	bool has_deleted, has_dra, has_cordoned, has_ready;
	struct remedy_pod_seen *pods;
	size_t n_pods;
	bool has_pods;
	const char *record;
	bool has_record;
};

#define TIME_MAX_S 253402300799.0 // 9999-12-31T23:59:59Z
#define WHOLE_MAX  9007199254740991.0
#define POD_BYTES  317 // namespace, slash and name

ENUM_NAMES(types, REMEDY_LINE_TYPE__COUNT, "event", "telemetry", "node", "tick");

// clang-format off
static const struct schema_field pod_fields[] = {
	{ROW("name", STRING), FIELD(struct remedy_pod_seen, name), REQUIRED, RANGE(1, POD_BYTES), DOC("Namespace and name of the pod: namespace/name.")},
	{ROW("gpus", STRING_LIST), FIELD_LIST(struct remedy_pod_seen, gpus, n_gpus), ITEMS(0, REMEDY_GPUS_MAX - 1), DOC("UUIDs of the GPUs that the pod uses; any GPU of the node when absent.")},
	{ROW("pinned", BOOL), FIELD(struct remedy_pod_seen, is_pinned), DEFAULT("false"), DOC("The pod belongs to a DaemonSet or is static: it is never evicted.")},
	{ROW("refused", BOOL), FIELD(struct remedy_pod_seen, is_refused), DEFAULT("false"), DOC("A PodDisruptionBudget refused the last eviction.")},
	{ROW("moveAtCheckpoint", SECONDS_MS), FIELD(struct remedy_pod_seen, until_ms), DEFAULT("0"), RANGE(0, TIME_MAX_S), DOC("The pod moves at its next checkpoint; the time from which it may be evicted.")},
};
static const struct schema pod = {SCHEMA("pods[]", struct remedy_pod_seen, pod_fields), DOC("A pod with GPUs.")};

static const struct schema_field fields[] = {
	{ROW("time", SECONDS_MS), FIELD(struct remedy_line, time_ms), REQUIRED, RANGE(0, TIME_MAX_S), DOC("When the line was observed, in seconds.")},
	{ROW("type", ENUM), FIELD(struct remedy_line, type), REQUIRED, ONE_OF(types), DOC("What the line reports.")},
	{ROW("node", STRING), FIELD(struct remedy_line, node), RANGE(1, REMEDY_NAME_BYTES_MAX), DOC("Name of the node.")},
	{ROW("gpu", STRING), FIELD_SET(struct remedy_line, event.gpu, has_gpu), RANGE(1, REMEDY_UUID_BYTES - 1), DOC("UUID of the GPU; the node itself when absent.")},
	{ROW("xid", INT32), FIELD_SET(struct remedy_line, event.xid, has_xid), RANGE(0, INT32_MAX), DOC("Code of an XID error.")},
	{ROW("condition", STRING), FIELD_SET(struct remedy_line, event.condition, has_condition), RANGE(1, 63), DOC("Reason of a lasting condition, as gpuscale-exporter check reports it.")},
	{ROW("value", INT64), FIELD_SET(struct remedy_line, event.value, has_value), RANGE(0, WHOLE_MAX), DOC("Counter of the XID, or value of the condition.")},
	{ROW("at", SECONDS_MS), FIELD_SET(struct remedy_line, event.at_ms, has_at), RANGE(0, TIME_MAX_S), DOC("When the event happened; the time of the line when absent.")},
	{ROW("present", BOOL), FIELD_SET(struct remedy_line, present, has_present), DOC("Whether the exporter of the node answers.")},
	{ROW("gpus", STRING_LIST), FIELD_LIST_SET(struct remedy_line, seen.gpus, seen.n_gpus, seen.has_gpus), ITEMS(0, 64), DOC("UUIDs of the GPUs that the exporter or the node reports.")},
	{ROW("deleted", BOOL), FIELD_SET(struct remedy_line, seen.is_gone, has_deleted), DOC("The node is no longer in the cluster.")},
	{ROW("dra", BOOL), FIELD_SET(struct remedy_line, seen.has_dra, has_dra), DOC("DRA serves the GPUs of the node: single GPUs can be tainted.")},
	{ROW("cordoned", BOOL), FIELD_SET(struct remedy_line, seen.is_cordoned, has_cordoned), DOC("The node is unschedulable.")},
	{ROW("ready", BOOL), FIELD_SET(struct remedy_line, seen.is_ready, has_ready), DOC("The node is ready.")},
	{ROW("taints", STRING_LIST), FIELD_LIST_SET(struct remedy_line, seen.taints, seen.n_taints, seen.has_taints), ITEMS(0, REMEDY_GPUS_MAX), DOC("Taints of gpuscale on the node: node, or the UUID of a GPU.")},
	{ROW("pods", LIST), FIELD_LIST_SET(struct remedy_line, pods, n_pods, has_pods), CHILD(pod), DOC("The pods with GPUs on the node.")},
	{ROW("record", STRING), FIELD_SET(struct remedy_line, record, has_record), RANGE(0, DOC_BYTES_MAX), DOC("Text of the annotation gpuscale.dev/remediation.")},
};
// clang-format on

static bool are_uuids(const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!list[i][0] || strlen(list[i]) >= REMEDY_UUID_BYTES)
			return false;
	return true;
}

static bool is_condition(const char *name)
{
	for (size_t i = 0; i < health_n_conditions; i++)
		if (strcmp(health_conditions[i].reason, name) == 0)
			return true;
	return false;
}

// Returns the first fault of the line; its message is NULL: none.
static struct schema_fault find_fault(const struct remedy_line *l)
{
	bool event = l->type == REMEDY_LINE_EVENT, node = l->type == REMEDY_LINE_NODE;
	bool telemetry = l->type == REMEDY_LINE_TELEMETRY;
	const struct {
		bool is_wrong;
		const char *field, *message;
	} rules[] = {
	        {!l->node && l->type != REMEDY_LINE_TICK, "node", "required: the name of the node"},
	        {l->node && l->type == REMEDY_LINE_TICK, "node", "a tick names no node: remove it"},
	        {event && l->has_xid == l->has_condition, "xid", "an event has either xid or condition"},
	        {l->has_condition && !is_condition(l->event.condition), "condition",
	         "must be GPULost, GPUMissing, RecoveryAction, RowRemapFailure, RowRemapPending, "
	         "PageRetirementPending, UncorrectableEcc, HwThermalSlowdown, HwPowerBrake or SustainedHeat"},
	        {!event && (l->has_gpu || l->has_xid || l->has_condition || l->has_value || l->has_at), "type",
	         "gpu, xid, condition, value and at belong to an event"},
	        {!telemetry && l->has_present, "present", "belongs to telemetry"},
	        {l->seen.has_gpus && !telemetry && !node, "gpus", "belongs to telemetry or a node"},
	        {!node && (l->has_deleted || l->has_dra || l->has_cordoned || l->has_ready || l->seen.has_taints ||
	                   l->has_pods || l->has_record),
	         "type", "deleted, dra, cordoned, ready, taints, pods and record belong to a node"},
	};
	for (size_t i = 0; i < COUNT_OF(rules); i++)
		if (rules[i].is_wrong)
			return (struct schema_fault){rules[i].field, -1, rules[i].message};
	if (!are_uuids((const char *const *)l->seen.gpus, l->seen.n_gpus))
		return (struct schema_fault){"gpus", -1, "a UUID has 1 to 63 bytes"};
	if (!are_uuids((const char *const *)l->seen.taints, l->seen.n_taints))
		return (struct schema_fault){"taints", -1, "a taint is node or a UUID of 1 to 63 bytes"};
	for (size_t k = 0; k < l->n_pods; k++)
		if (!are_uuids((const char *const *)l->pods[k].gpus, l->pods[k].n_gpus))
			return (struct schema_fault){"pods", -1, "a UUID has 1 to 63 bytes"};
	return (struct schema_fault){0};
}

static void check(const void *value, struct fault_list *l)
{
	struct schema_fault first = find_fault(value);
	if (first.message)
		fault_add(l, first.field, first.index, first.message);
}

static const struct schema line_schema = {SCHEMA("line", struct remedy_line, fields), VALIDATE(check),
                                          DOC("One line.")};

// Reads text[0..len), a line without its end. What it finds lives in `a`. -1 and *e (ERR_INPUT, ERR_PROTOCOL,
// ERR_LIMIT): the message names the field and the fix.
static int remedy_line_parse(const char *text, size_t len, struct arena *a, struct remedy_line *ret_line, struct err *e)
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
	if (schema_decode(&line_schema, root, ret_line, a, &errors, "") == 0)
		return 0;
	if (errors.n == 0)
		return err_set(e, ERR_LIMIT, "the line does not fit into the memory allowed");
	const struct schema_error *first = &errors.items[0];
	return err_set(e, ERR_INPUT, "%s%s%s", first->path, first->path[0] ? ": " : "", first->message);
}

// ---- the replay ----

#define ACTIONS_AT_ONCE 64
#define SWEEP_MS        1000             // timers are looked at as often
#define IGNORED_MS      (10 * 60 * 1000) // between two reports of the same reason
#define RECORD_MAX      (64 * 1024)

struct remedy_replay {
	struct remedy fleet;
	void *block;
	char *pod_names[REMEDY_NODES_MAX]; // pod names of each node: its pods point into them
	struct arena line;
	unsigned long long n_lines;
	int64_t swept_ms;
	struct {
		int64_t next_ms, n;
	} ignored[REMEDY_REASON__COUNT];
	struct remedy_node record; // record of the current line
};

struct remedy_replay *remedy_replay_new(const struct remedy_limits *limits)
{
	struct remedy_replay *p = calloc(1, sizeof *p);
	void *block = calloc(1, remedy_fleet_bytes(REMEDY_NODES_MAX)); // pages are used as nodes appear
	if (!p || !block) {
		free(p);
		free(block);
		return NULL;
	}
	p->block = block;
	p->swept_ms = REMEDY_NONE_MS;
	remedy_fleet_init(&p->fleet, block, REMEDY_NODES_MAX, limits);
	arena_init(&p->line, REMEDY_LINE_ARENA_MAX);
	return p;
}

void remedy_replay_free(struct remedy_replay *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < REMEDY_NODES_MAX; i++)
		free(p->pod_names[i]);
	arena_done(&p->line);
	free(p->block);
	free(p);
}

// ---- what comes out ----

static void put_record(struct json_writer *w, const struct remedy_node *n)
{
	struct buf text;
	buf_init(&text, RECORD_MAX);
	remedy_record_write(n, &text);
	json_write_key(w, "record");
	if (text.failed)
		json_write_null(w);
	else
		json_write_raw(w, buf_str(&text));
	buf_done(&text);
}

static void put_reason(struct json_writer *w, enum remedy_reason reason)
{
	const struct remedy_reason_info *info = &remedy_reasons[reason];
	json_write_format(w, "reason:%s,message:%s", info->name, info->sentence);
}

static void put_action(struct remedy_replay *p, const struct remedy_action *a, struct buf *out)
{
	const struct remedy_node *n = &p->fleet.nodes[a->node];
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{time:%ld,action:%s,node:%s", p->fleet.now_ms / 1000, remedy_kind_names[a->kind],
	                  n->name);
	if (a->gpu > 0)
		json_write_member_str(&w, "gpu", n->gpus[a->gpu].uuid);
	if (a->kind == REMEDY_TAINT || a->kind == REMEDY_UNTAINT)
		json_write_member_str(&w, "scope", a->whole_node ? "node" : "gpu");
	if (a->pod >= 0)
		json_write_member_str(&w, "pod", n->pods[a->pod].name);
	if (a->fault != REMEDY_NO_FAULT) {
		char name[REMEDY_FAULT_NAME_BYTES];
		remedy_fault_name(a->fault, name);
		json_write_format(&w, "fault:%s,wanted:%s", name, health_action_name(a->wanted));
	}
	put_reason(&w, a->reason);
	if (a->kind != REMEDY_HOLD)
		put_record(&w, n);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

// An input that was not used, or not entirely. What a flood repeats is counted, and reported now and then.
static void put_ignored(struct remedy_replay *p, enum remedy_reason reason, const char *node, struct buf *out)
{
	bool is_transition = reason == REMEDY_LIFTED || reason == REMEDY_ADOPTED || reason == REMEDY_BAD_RECORD;
	struct json_writer w;
	p->ignored[reason].n++;
	if (!is_transition && p->fleet.now_ms < p->ignored[reason].next_ms)
		return;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{time:%ld,action:%s,node:%s", p->fleet.now_ms / 1000, is_transition ? "hold" : "ignore",
	                  node);
	put_reason(&w, reason);
	json_write_format(&w, "lines:%ld}", p->ignored[reason].n);
	buf_putc(out, '\n');
	p->ignored[reason].n = 0;
	p->ignored[reason].next_ms = p->fleet.now_ms + IGNORED_MS;
}

static void put_plan(struct remedy_replay *p, struct buf *out)
{
	struct remedy_action actions[ACTIONS_AT_ONCE];
	bool all = p->swept_ms < 0 || p->fleet.now_ms - p->swept_ms >= SWEEP_MS;
	size_t n;
	do {
		n = remedy_plan(&p->fleet, all, actions, ACTIONS_AT_ONCE);
		for (size_t i = 0; i < n; i++)
			put_action(p, &actions[i], out);
	} while (n == ACTIONS_AT_ONCE);
	if (all)
		p->swept_ms = p->fleet.now_ms;
}

// ---- what comes in ----

// Copies the names of the pods, which must live until the next list of this node. Returns the memory, or NULL.
static char *keep_names(const struct remedy_line *line)
{
	size_t bytes = 1;
	for (size_t i = 0; i < line->n_pods; i++)
		bytes += strlen(line->pods[i].name) + 1;
	char *names = malloc(bytes), *at = names;
	for (size_t i = 0; names && i < line->n_pods; i++) {
		size_t len = strlen(line->pods[i].name) + 1;
		line->pods[i].name = memcpy(at, line->pods[i].name, len);
		at += len;
	}
	return names;
}

static int fold_node(struct remedy_replay *p, const struct remedy_line *line, struct buf *out, struct err *e)
{
	struct remedy *r = &p->fleet;
	const struct remedy_node *known = remedy_fleet_find(r, line->node);
	bool was_here = known && !known->is_gone;
	struct remedy_node_seen seen = line->seen;
	seen.name = line->node;
	seen.has_dra = line->has_dra ? seen.has_dra : was_here && known->has_dra;
	seen.is_cordoned = line->has_cordoned ? seen.is_cordoned : was_here && known->is_cordoned;
	seen.is_ready = line->has_ready ? seen.is_ready : !was_here || known->is_ready;
	seen.pods = line->pods;
	seen.n_pods = line->n_pods;
	seen.has_pods = line->has_pods;
	char *names = line->has_pods ? keep_names(line) : NULL;
	if (line->has_pods && !names)
		return err_set(e, ERR_LIMIT, "the line does not fit into the memory allowed");
	bool has_record = line->has_record && line->record[0] && !known;
	if (has_record && remedy_record_read(line->record, strlen(line->record), r->now_ms, &p->record, e) < 0) {
		has_record = false;
		put_ignored(p, REMEDY_BAD_RECORD, line->node, out);
	}
	enum remedy_reason reason = remedy_fold_node(r, &seen, has_record ? &p->record : NULL);
	known = remedy_fleet_find(r, line->node);
	if (known && names) {
		size_t k = (size_t)(known - r->nodes);
		free(p->pod_names[k]);
		p->pod_names[k] = names;
	} else {
		free(names);
	}
	if (reason != REMEDY_NO_REASON)
		put_ignored(p, reason, line->node, out);
	return 0;
}

static void fold_event(struct remedy_replay *p, const struct remedy_line *line, struct buf *out)
{
	struct remedy_event event = line->event;
	event.node = line->node;
	event.gpu = line->has_gpu ? event.gpu : "";
	if (!line->has_value)
		event.value = line->has_condition ? 1 : -1; // a condition without a value exists
	event.at_ms = line->has_at ? event.at_ms : line->time_ms;
	enum remedy_reason reason = remedy_fold_event(&p->fleet, &event);
	if (reason != REMEDY_NO_REASON)
		put_ignored(p, reason, line->node, out);
}

static void fold_telemetry(struct remedy_replay *p, const struct remedy_line *line, struct buf *out)
{
	bool is_silent = line->has_present && !line->present;
	enum remedy_reason reason =
	        is_silent ? remedy_fold_silence(&p->fleet, line->node)
	                  : remedy_fold_telemetry(&p->fleet, line->node, (const char *const *)line->seen.gpus,
	                                          line->seen.n_gpus, !line->seen.has_gpus);
	if (reason != REMEDY_NO_REASON)
		put_ignored(p, reason, line->node, out);
}

static int fold(struct remedy_replay *p, const struct remedy_line *line, struct buf *out, struct err *e)
{
	int64_t now_ms = p->fleet.now_ms;
	if (p->swept_ms >= 0 && line->type != REMEDY_LINE_TICK && line->time_ms - now_ms > REMEDY_DAY_MS)
		return err_set(e, ERR_INPUT,
		               "time: %lld is more than a day after the lines before, which end at %lld: put a tick "
		               "between them",
		               (long long)(line->time_ms / 1000), (long long)(now_ms / 1000));
	remedy_fold_time(&p->fleet, line->time_ms);
	if (line->type == REMEDY_LINE_NODE)
		return fold_node(p, line, out, e);
	if (line->type == REMEDY_LINE_EVENT)
		fold_event(p, line, out);
	else if (line->type == REMEDY_LINE_TELEMETRY)
		fold_telemetry(p, line, out);
	return 0;
}

int remedy_replay_answer(void *replay, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct remedy_replay *p = replay;
	struct remedy_line parsed;
	arena_reset(&p->line);
	p->n_lines++;
	if (remedy_line_parse(line, len, &p->line, &parsed, e) < 0 || fold(p, &parsed, out, e) < 0) {
		struct err of_line = *e;
		struct json_writer w;
		err_wrap(&of_line, "line %llu", p->n_lines);
		json_write_init(&w, out, 0);
		json_write_format(&w, "{error:%s}", of_line.msg);
		buf_putc(out, '\n');
		return -1;
	}
	put_plan(p, out);
	return 0;
}
