// SPDX-License-Identifier: Apache-2.0
#include "remedy/remedy_replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/health_table.h"
#include "base/json/json_write.h"
#include "remedy/plan/remedy_evidence.h"
#include "remedy/plan/remedy_fleet.h"
#include "remedy/plan/remedy_fold.h"
#include "remedy/plan/remedy_plan.h"
#include "remedy/remedy_line.h"
#include "remedy/remedy_record.h"

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
	json_write_member_str(w, "reason", remedy_reason_info(reason)->name);
	json_write_member_str(w, "message", remedy_reason_info(reason)->sentence);
}

static void put_action(struct remedy_replay *p, const struct remedy_action *a, struct buf *out)
{
	const struct remedy_node *n = &p->fleet.nodes[a->node];
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_member_i64(&w, "time", p->fleet.now_ms / 1000);
	json_write_member_str(&w, "action", remedy_kind_name(a->kind));
	json_write_member_str(&w, "node", n->name);
	if (a->gpu > 0)
		json_write_member_str(&w, "gpu", n->gpus[a->gpu].uuid);
	if (a->kind == REMEDY_TAINT || a->kind == REMEDY_UNTAINT)
		json_write_member_str(&w, "scope", a->whole_node ? "node" : "gpu");
	if (a->pod >= 0)
		json_write_member_str(&w, "pod", n->pods[a->pod].name);
	if (a->fault != REMEDY_NO_FAULT) {
		char name[REMEDY_FAULT_NAME_BYTES];
		remedy_evidence_name(a->fault, name);
		json_write_member_str(&w, "fault", name);
		json_write_member_str(&w, "wanted", health_action_name(a->wanted));
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
	json_write_object_begin(&w);
	json_write_member_i64(&w, "time", p->fleet.now_ms / 1000);
	json_write_member_str(&w, "action", is_transition ? "hold" : "ignore");
	json_write_member_str(&w, "node", node);
	put_reason(&w, reason);
	json_write_member_i64(&w, "lines", p->ignored[reason].n);
	json_write_object_end(&w);
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

// Copies the pods and their names, which must live until the next list of this node; *ret_names is the memory.
static struct remedy_pod_seen *keep_pods(struct remedy_replay *p, const struct remedy_line *line, char **ret_names)
{
	size_t bytes = 1;
	for (size_t i = 0; i < line->n_pods; i++)
		bytes += strlen(line->pods[i].name) + 1;
	struct remedy_pod_seen *pods = arena_calloc(&p->line, line->n_pods ? line->n_pods : 1, sizeof *pods);
	char *at = malloc(bytes);
	*ret_names = at;
	if (!pods || !at)
		return NULL;
	for (size_t i = 0; i < line->n_pods; i++) {
		const struct remedy_line_pod *from = &line->pods[i];
		size_t len = strlen(from->name) + 1;
		memcpy(at, from->name, len);
		pods[i] = (struct remedy_pod_seen){.name = at,
		                                   .gpus = from->gpus,
		                                   .n_gpus = from->n_gpus,
		                                   .is_pinned = from->pinned,
		                                   .is_refused = from->refused,
		                                   .until_ms = from->until_ms};
		at += len;
	}
	return pods;
}

static int fold_node(struct remedy_replay *p, const struct remedy_line *line, struct buf *out, struct err *e)
{
	struct remedy *r = &p->fleet;
	const struct remedy_node *known = remedy_fleet_find(r, line->node);
	bool was_here = known && !known->is_gone;
	struct remedy_node_seen seen = {.name = line->node,
	                                .is_gone = line->deleted,
	                                .has_dra = line->has_dra ? line->dra : was_here && known->has_dra,
	                                .is_cordoned =
	                                        line->has_cordoned ? line->cordoned : was_here && known->is_cordoned,
	                                .is_ready = line->has_ready ? line->ready : !was_here || known->is_ready,
	                                .gpus = line->gpus,
	                                .n_gpus = line->n_gpus,
	                                .has_gpus = line->has_gpus,
	                                .taints = line->taints,
	                                .n_taints = line->n_taints,
	                                .has_taints = line->has_taints};
	char *names = NULL;
	if (line->has_pods) {
		seen.pods = keep_pods(p, line, &names);
		seen.n_pods = line->n_pods;
		seen.has_pods = true;
		if (!seen.pods) {
			free(names);
			return err_set(e, ERR_LIMIT, "the line does not fit into the memory allowed");
		}
	}
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
	int64_t unset = line->has_condition ? 1 : -1; // a condition without a value exists
	struct remedy_event event = {.node = line->node,
	                             .gpu = line->has_gpu ? line->gpu : "",
	                             .condition = line->has_condition ? line->condition : NULL,
	                             .xid = line->xid,
	                             .value = line->has_value ? line->value : unset,
	                             .at_ms = line->has_at ? line->at_ms : line->time_ms};
	enum remedy_reason reason = remedy_fold_event(&p->fleet, &event);
	if (reason != REMEDY_NO_REASON)
		put_ignored(p, reason, line->node, out);
}

static void fold_telemetry(struct remedy_replay *p, const struct remedy_line *line, struct buf *out)
{
	bool is_silent = line->has_present && !line->present;
	enum remedy_reason reason =
	        is_silent ? remedy_fold_silence(&p->fleet, line->node)
	                  : remedy_fold_telemetry(&p->fleet, line->node, (const char *const *)line->gpus, line->n_gpus,
	                                          !line->has_gpus);
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

int remedy_replay_answer(struct remedy_replay *p, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct remedy_line parsed;
	arena_reset(&p->line);
	p->n_lines++;
	if (remedy_line_parse(line, len, &p->line, &parsed, e) < 0 || fold(p, &parsed, out, e) < 0) {
		struct err of_line = *e;
		struct json_writer w;
		err_wrap(&of_line, "line %llu", p->n_lines);
		json_write_init(&w, out, 0);
		json_write_object_begin(&w);
		json_write_member_str(&w, "error", of_line.msg);
		json_write_object_end(&w);
		buf_putc(out, '\n');
		return -1;
	}
	put_plan(p, out);
	return 0;
}
