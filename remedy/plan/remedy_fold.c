// SPDX-License-Identifier: Apache-2.0
#include "remedy/plan/remedy_fold.h"

#include <string.h>

#include "base/hash.h"
#include "base/health_table.h"
#include "remedy/plan/remedy_state.h"

void remedy_fold_time(struct remedy *r, int64_t now_ms)
{
	if (now_ms > r->now_ms)
		r->now_ms = now_ms;
}

static struct remedy_node *find_present(const struct remedy *r, const char *name)
{
	struct remedy_node *n = remedy_fleet_find(r, name);
	return n && !n->is_gone ? n : NULL;
}

// Telemetry names the GPU now. After a gap, the time without a fault starts again: what happened in it is unknown.
static void hear(const struct remedy *r, struct remedy_node *n, int i)
{
	struct remedy_gpu *g = &n->gpus[i];
	if (g->heard_ms < 0 || r->now_ms - g->heard_ms > HEALTH_STALE_MS || g->clean_ms < 0)
		g->clean_ms = r->now_ms;
	g->heard_ms = r->now_ms;
}

// ---- events ----

// A counter that did not grow repeats what is known. One that shrank, or has the same value at a later time, was reset:
// it counts. An exporter's clock may be REMEDY_FUTURE_MS ahead: then remedy_fold_event() took an earlier time at first.
static bool is_repeat(const struct remedy_fault *f, const struct remedy_event *event)
{
	bool has_count = event->value >= 0 && f->count >= 0;
	if (has_count && event->value > f->count)
		return false;
	return event->at_ms - f->last_ms <= (has_count && event->value == f->count ? REMEDY_FUTURE_MS : 0);
}

static int32_t grown(int32_t n, int64_t by)
{
	return by > INT32_MAX - n ? INT32_MAX : n + (int32_t)by;
}

static void add_occurrence(const struct remedy *r, struct remedy_node *n, struct remedy_fault *f,
                           const struct remedy_event *event, bool is_new)
{
	struct remedy_gpu *g = &n->gpus[f->gpu];
	int64_t by = event->value > f->count && f->count >= 0 ? event->value - f->count : 1;
	if (f->is_handled || is_new || (g->out_ms < 0 && event->at_ms - f->last_ms > HEALTH_SINCE_MS)) {
		f->occurrences = 0;
		f->first_ms = event->at_ms;
		f->is_handled = false;
		if (g->out_ms < 0)
			g->reported = 0;
	}
	f->occurrences = grown(f->occurrences, by);
	f->last_ms = event->at_ms > f->last_ms ? event->at_ms : f->last_ms;
	f->count = event->value;
	if (remedy_evidence_action(f) >= HEALTH_RESET_IDLE)
		g->clean_ms = r->now_ms;
	n->is_dirty = true;
}

static void fold_xid(struct remedy *r, struct remedy_node *n, int gpu, const struct remedy_event *event)
{
	if (remedy_evidence_worst(event->xid) < HEALTH_RESET_IDLE)
		return;
	bool is_new;
	struct remedy_fault *f = remedy_evidence_row(n, gpu, event->xid, &is_new);
	if (is_new || !is_repeat(f, event))
		add_occurrence(r, n, f, event, is_new);
	else if (event->value >= 0 && event->value < f->count)
		f->count = event->value;
}

static void fold_condition(struct remedy *r, struct remedy_node *n, int gpu, const struct remedy_event *event)
{
	size_t n_rows;
	const struct health_condition *rows = health_condition_table(&n_rows);
	for (size_t i = 0; i < n_rows; i++) {
		if (strcmp(rows[i].reason, event->condition) != 0 || rows[i].action < HEALTH_RESET_IDLE)
			continue;
		int32_t id = -1 - (int32_t)i;
		bool holds = health_condition_holds(&rows[i], (double)event->value), is_new = false;
		struct remedy_fault *f =
		        holds ? remedy_evidence_row(n, gpu, id, &is_new) : remedy_evidence_find(n, gpu, id);
		if (!f ||
		    (!is_new && (event->at_ms < f->last_ms || (holds && f->is_active && event->at_ms == f->last_ms))))
			continue; // nothing to clear, a repeat, or older than what is known
		if (holds && i == HEALTH_GPU_LOST && n->gpus[gpu].is_reset_open)
			continue; // a GPU does not respond while it is reset
		if (holds && f->is_active && f->is_handled) {
			f->last_ms = event->at_ms; // a person returned the GPU to service while the condition lasted
			continue;
		}
		if (holds) {
			bool starts = is_new || !f->is_active;
			f->is_active = true;
			add_occurrence(r, n, f, event, starts);
		} else if (f->is_active) {
			f->is_active = false;
			f->last_ms = event->at_ms;
			n->is_dirty = true;
		}
	}
}

enum remedy_reason remedy_fold_event(struct remedy *r, const struct remedy_event *event)
{
	struct remedy_node *n = find_present(r, event->node);
	struct remedy_event seen = *event;
	if (!n)
		return REMEDY_UNKNOWN_NODE;
	if (event->at_ms > r->now_ms + REMEDY_FUTURE_MS)
		return REMEDY_FUTURE;
	if (r->now_ms - event->at_ms > HEALTH_SINCE_MS)
		return REMEDY_TOO_OLD;
	if (seen.at_ms > r->now_ms)
		seen.at_ms = r->now_ms;
	int gpu = remedy_fleet_add_gpu(r, n, event->gpu);
	if (gpu < 0)
		return REMEDY_TOO_MANY_GPUS;
	hear(r, n, 0);
	hear(r, n, gpu);
	if (event->condition)
		fold_condition(r, n, gpu, &seen);
	else
		fold_xid(r, n, gpu, &seen);
	return REMEDY_NO_REASON;
}

void remedy_fold_reset(struct remedy *r, const char *node, const char *gpu, int64_t reset_ms, bool is_done)
{
	struct remedy_node *n = find_present(r, node);
	int i = n ? remedy_fleet_gpu(n, gpu) : -1;
	if (i < 0 || !n->gpus[i].is_reset_open || n->gpus[i].reset_ms != reset_ms)
		return;
	n->gpus[i].is_reset_open = false;
	n->gpus[i].is_reset_failed = !is_done;
	n->gpus[i].clean_ms = r->now_ms;
	n->is_dirty = true;
}

// ---- telemetry ----

enum remedy_reason remedy_fold_telemetry(struct remedy *r, const char *node, const char *const *gpus, size_t n_gpus,
                                         bool all)
{
	struct remedy_node *n = find_present(r, node);
	enum remedy_reason reason = REMEDY_NO_REASON;
	if (!n)
		return REMEDY_UNKNOWN_NODE;
	hear(r, n, 0);
	for (int i = 1; all && i < n->n_gpus; i++)
		if (!n->gpus[i].is_replaced)
			hear(r, n, i);
	for (size_t k = 0; !all && k < n_gpus; k++) {
		int i = remedy_fleet_add_gpu(r, n, gpus[k]);
		if (i >= 0)
			hear(r, n, i);
		else
			reason = REMEDY_TOO_MANY_GPUS;
	}
	return reason;
}

enum remedy_reason remedy_fold_silence(struct remedy *r, const char *node)
{
	struct remedy_node *n = find_present(r, node);
	if (!n)
		return REMEDY_UNKNOWN_NODE;
	for (int i = 0; i < n->n_gpus; i++)
		n->gpus[i].heard_ms = REMEDY_NONE_MS;
	return REMEDY_NO_REASON;
}

// ---- nodes ----

static bool has_text(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], text) == 0)
			return true;
	return false;
}

// A GPU that the list lacks is lost, unless as many GPUs as before are listed: then another GPU took its place.
static enum remedy_reason fold_gpus(struct remedy *r, struct remedy_node *n, const struct remedy_node_seen *seen)
{
	enum remedy_reason reason = REMEDY_NO_REASON;
	size_t before = 0;
	for (int i = 1; i < n->n_gpus; i++)
		before += !n->gpus[i].is_replaced;
	for (int i = 1; i < n->n_gpus; i++)
		if (!has_text((const char *const *)seen->gpus, seen->n_gpus, n->gpus[i].uuid)) {
			n->gpus[i].is_listed = false;
			n->gpus[i].is_replaced |= seen->n_gpus >= before;
		}
	for (size_t k = 0; k < seen->n_gpus; k++) {
		int i = remedy_fleet_add_gpu(r, n, seen->gpus[k]);
		if (i >= 0)
			n->gpus[i].is_listed = true;
		else
			reason = REMEDY_TOO_MANY_GPUS;
	}
	return reason;
}

static void lift_by_hand(const struct remedy *r, struct remedy_node *n, int i)
{
	remedy_evidence_return(n, i);
	n->gpus[i].is_in_flight = false;
	n->gpus[i].clean_ms = r->now_ms;
}

static enum remedy_reason fold_taints(struct remedy *r, struct remedy_node *n, const struct remedy_node_seen *seen)
{
	const char *const *taints = (const char *const *)seen->taints;
	bool has_node = has_text(taints, seen->n_taints, "node"), is_out = false;
	enum remedy_reason reason = REMEDY_NO_REASON;
	for (int i = 0; i < n->n_gpus; i++) {
		struct remedy_gpu *g = &n->gpus[i];
		bool has_gpu = has_text(taints, seen->n_taints, g->uuid);
		g->is_in_flight = g->is_in_flight && seen->taints_lag && g->has_gpu_taint != has_gpu;
		bool lifted = (g->has_node_taint && !has_node) || (g->has_gpu_taint && !has_gpu && !g->is_in_flight);
		if (lifted) {
			lift_by_hand(r, n, i);
			reason = REMEDY_LIFTED;
		}
		is_out |= g->has_node_taint;
	}
	// A taint of gpuscale without a record is adopted, so that it is removed one day.
	for (size_t k = 0; k < seen->n_taints; k++) {
		bool whole = strcmp(taints[k], "node") == 0;
		int i = whole ? 0 : remedy_fleet_add_gpu(r, n, taints[k]);
		if (i < 0 || (whole ? is_out : n->gpus[i].has_gpu_taint || n->gpus[i].is_in_flight))
			continue;
		remedy_evidence_take(r, n, i);
		n->gpus[i].has_node_taint |= whole;
		n->gpus[i].has_gpu_taint |= !whole;
		n->gpus[i].clean_ms = r->now_ms;
		reason = REMEDY_ADOPTED;
	}
	return reason;
}

static enum remedy_reason fold_pods(struct remedy *r, struct remedy_node *n, const struct remedy_node_seen *seen)
{
	struct remedy_pod pods[REMEDY_PODS_MAX];
	int16_t n_pods = 0;
	enum remedy_reason reason = REMEDY_NO_REASON;
	for (size_t k = 0; k < seen->n_pods; k++) {
		const struct remedy_pod_seen *s = &seen->pods[k];
		if (n_pods == REMEDY_PODS_MAX) {
			reason = REMEDY_TOO_MANY_PODS;
			break;
		}
		struct remedy_pod *p = &pods[n_pods++];
		*p = (struct remedy_pod){.name = s->name, .key = hash_mix(hash_text(HASH_START, s->name))};
		for (int i = 0; i < n->n_pods; i++)
			if (n->pods[i].key == p->key) {
				p->tries = n->pods[i].tries;
				p->next_ms = n->pods[i].next_ms;
			}
		p->is_pinned = s->is_pinned;
		p->is_refused = s->is_refused;
		p->until_ms = s->until_ms;
		for (size_t g = 0; g < s->n_gpus; g++) {
			int i = remedy_fleet_add_gpu(r, n, s->gpus[g]);
			p->gpus |= i > 0 ? UINT32_C(1) << i : 0;
		}
		if (s->n_gpus == 0)
			p->gpus = UINT32_MAX;
	}
	memcpy(n->pods, pods, (size_t)n_pods * sizeof *pods);
	n->n_pods = n_pods;
	n->has_pods = reason == REMEDY_NO_REASON;
	return reason;
}

// Takes over what an earlier process recorded about the node.
static void restore(struct remedy_node *n, const char *name, const struct remedy_node *record)
{
	struct remedy_node restored = *record;
	memcpy(restored.name, name, strnlen(name, REMEDY_NAME_BYTES_MAX));
	restored.is_ready = restored.is_dirty = true;
	*n = restored;
}

void remedy_fold_restore(struct remedy *r, const char *name, const struct remedy_node *record)
{
	struct remedy_node *n = remedy_fleet_add(r, name);
	if (n && record)
		restore(n, name, record);
	else if (n)
		remedy_fleet_start(n, name);
}

enum remedy_reason remedy_fold_node(struct remedy *r, const struct remedy_node_seen *seen,
                                    const struct remedy_node *record)
{
	struct remedy_node *n = remedy_fleet_find(r, seen->name);
	enum remedy_reason reason = REMEDY_NO_REASON, more;
	bool is_new = !n;
	if (seen->is_gone) {
		if (n)
			n->is_gone = true;
		return REMEDY_NO_REASON;
	}
	n = n ? n : remedy_fleet_add(r, seen->name);
	if (!n)
		return REMEDY_TOO_MANY_NODES;
	if (n->is_gone) { // another machine of the same name; the attempts of the day remain
		struct remedy_node fresh;
		remedy_fleet_start(&fresh, n->name);
		fresh.n_attempts = n->n_attempts;
		memcpy(fresh.attempts_ms, n->attempts_ms, sizeof fresh.attempts_ms);
		*n = fresh;
	}
	if (is_new && record)
		restore(n, seen->name, record);
	n->has_dra = seen->has_dra;
	n->is_cordoned = seen->is_cordoned;
	n->is_ready = seen->is_ready;
	n->is_dirty = true;
	if (seen->has_gpus)
		reason = fold_gpus(r, n, seen);
	if (seen->has_taints && (more = fold_taints(r, n, seen)))
		reason = more;
	if (seen->has_pods && (more = fold_pods(r, n, seen)))
		reason = more;
	return reason;
}
