// SPDX-License-Identifier: Apache-2.0
#include "remedy/plan/remedy_state.h"

#include <string.h>

#include "base/hash.h"

static size_t index_size(int32_t max_nodes)
{
	size_t n = 2;
	while (n < 2 * (size_t)max_nodes)
		n *= 2;
	return n;
}

size_t remedy_fleet_bytes(int32_t max_nodes)
{
	return (size_t)max_nodes * sizeof(struct remedy_node) + index_size(max_nodes) * sizeof(int32_t);
}

void remedy_fleet_init(struct remedy *r, void *block, int32_t max_nodes, const struct remedy_limits *limits)
{
	*r = (struct remedy){.limits = *limits, .nodes = block, .max_nodes = max_nodes};
	r->index = (int32_t *)(r->nodes + max_nodes);
	r->n_index = index_size(max_nodes);
}

// The place of the name in the index: of its node, or the free one where it belongs.
static size_t place_of(const struct remedy *r, const char *name)
{
	size_t i = (size_t)hash_mix(hash_text(HASH_START, name)) & (r->n_index - 1);
	while (r->index[i] && strcmp(r->nodes[r->index[i] - 1].name, name) != 0)
		i = (i + 1) & (r->n_index - 1);
	return i;
}

struct remedy_node *remedy_fleet_find(const struct remedy *r, const char *name)
{
	int32_t k = r->index[place_of(r, name)];
	return k ? &r->nodes[k - 1] : NULL;
}

static void fill_index(struct remedy *r)
{
	memset(r->index, 0, r->n_index * sizeof *r->index);
	for (int32_t k = 0; k < r->n_nodes; k++)
		r->index[place_of(r, r->nodes[k].name)] = k + 1;
}

static void start_gpu(struct remedy_gpu *g, const char *uuid)
{
	*g = (struct remedy_gpu){.out_ms = REMEDY_NONE_MS,
	                         .was_out_ms = REMEDY_NONE_MS,
	                         .clean_ms = REMEDY_NONE_MS,
	                         .heard_ms = REMEDY_NONE_MS};
	memcpy(g->uuid, uuid, strnlen(uuid, REMEDY_UUID_BYTES - 1));
}

// Initializes *n as a node of that name: without GPUs, ready, without attempts. `name` must not lie in *n.
static void start_node(struct remedy_node *n, const char *name)
{
	memset(n, 0, sizeof *n);
	memcpy(n->name, name, strnlen(name, REMEDY_NAME_BYTES_MAX));
	n->is_ready = n->is_dirty = true;
	n->n_gpus = 1;
	start_gpu(&n->gpus[0], "");
	n->gpus[0].is_listed = true;
}

// As remedy_fleet_find(), but adds a missing node. When the fleet is full, the node replaces a deleted one; NULL when
// there is none. `name` has at most REMEDY_NAME_BYTES_MAX bytes.
static struct remedy_node *add_node(struct remedy *r, const char *name)
{
	struct remedy_node *n = remedy_fleet_find(r, name);
	if (n)
		return n;
	int32_t k = r->n_nodes;
	if (k == r->max_nodes)
		for (k = 0; k < r->max_nodes && !r->nodes[k].is_gone; k++)
			;
	if (k == r->max_nodes)
		return NULL;
	n = &r->nodes[k];
	start_node(n, name);
	if (k < r->n_nodes) {
		fill_index(r); // the name of the node that gave up its place is gone
	} else {
		r->n_nodes++;
		r->index[place_of(r, name)] = k + 1;
	}
	return n;
}

int remedy_fleet_gpu(const struct remedy_node *n, const char *uuid)
{
	for (int i = 0; i < n->n_gpus; i++)
		if (strcmp(n->gpus[i].uuid, uuid) == 0)
			return i;
	return -1;
}

static void mark_replaced(struct remedy *r, const struct remedy_node *here, const char *uuid)
{
	for (int32_t k = 0; k < r->n_nodes; k++) {
		struct remedy_node *n = &r->nodes[k];
		int i = n == here || n->is_gone ? -1 : remedy_fleet_gpu(n, uuid);
		if (i > 0) {
			n->gpus[i].is_replaced = true;
			n->gpus[i].is_listed = false;
			n->is_dirty = true;
		}
	}
}

// Drops what is known of a GPU whose place another GPU takes.
static void forget_gpu(struct remedy_node *n, int i)
{
	int16_t kept = 0;
	for (int16_t k = 0; k < n->n_faults; k++)
		if (n->faults[k].gpu != i)
			n->faults[kept++] = n->faults[k];
	n->n_faults = kept;
	for (int k = 0; k < n->n_pods; k++)
		n->pods[k].gpus &= ~(UINT32_C(1) << i);
}

// A GPU that comes back to a node where it was in service: what happened to it meanwhile is unknown.
static void clear_evidence(struct remedy_node *n, int i)
{
	for (int k = 0; k < n->n_faults; k++)
		if (n->faults[k].gpu == i) {
			n->faults[k].is_handled = true;
			n->faults[k].is_active = false;
		}
}

int remedy_fleet_add_gpu(struct remedy *r, struct remedy_node *n, const char *uuid)
{
	int i = remedy_fleet_gpu(n, uuid);
	if (i == 0 || (i > 0 && !n->gpus[i].is_replaced))
		return i;
	if (i < 0) {
		i = n->n_gpus;
		if (i == REMEDY_GPUS_MAX)
			for (i = 1; i < REMEDY_GPUS_MAX && (n->gpus[i].is_listed || n->gpus[i].out_ms >= 0); i++)
				;
		if (i == REMEDY_GPUS_MAX)
			return -1;
		if (i == n->n_gpus)
			n->n_gpus++;
		else
			forget_gpu(n, i);
		start_gpu(&n->gpus[i], uuid);
	} else if (n->gpus[i].out_ms < 0) {
		clear_evidence(n, i);
	}
	n->gpus[i].is_replaced = false;
	n->gpus[i].is_listed = true;
	n->is_dirty = true;
	mark_replaced(r, n, uuid);
	return i;
}

// ---- evidence ----

static const struct health_xid *xid_row(int32_t code)
{
	for (size_t i = 0; i < health_n_xids; i++)
		if (health_xids[i].code == code)
			return &health_xids[i];
	return NULL;
}

enum health_action remedy_evidence_worst(int32_t id)
{
	if (id < 0)
		return health_conditions[-1 - id].action;
	const struct health_xid *row = xid_row(id);
	return row ? row->action : HEALTH_WATCH;
}

enum health_action remedy_evidence_action(const struct remedy_fault *f)
{
	if (f->id < 0)
		return health_conditions[-1 - f->id].action;
	const struct health_xid *row = xid_row(f->id);
	return !row || (uint64_t)f->occurrences < row->min_count ? HEALTH_WATCH : row->action;
}

struct remedy_fault *remedy_evidence_find(struct remedy_node *n, int gpu, int32_t id)
{
	for (int i = 0; i < n->n_faults; i++)
		if (n->faults[i].gpu == gpu && n->faults[i].id == id)
			return &n->faults[i];
	return NULL;
}

static bool is_weaker(const struct remedy_fault *a, const struct remedy_fault *b)
{
	if (a->is_active != b->is_active)
		return b->is_active;
	if (a->is_handled != b->is_handled)
		return a->is_handled;
	enum health_action x = remedy_evidence_action(a), y = remedy_evidence_action(b);
	return x != y ? x < y : a->last_ms < b->last_ms;
}

// As remedy_evidence_find(), but adds a missing row, if need be in place of the weakest one: *ret_is_new. Never NULL.
static struct remedy_fault *add_row(struct remedy_node *n, int gpu, int32_t id, bool *ret_is_new)
{
	struct remedy_fault *f = remedy_evidence_find(n, gpu, id);
	*ret_is_new = !f;
	if (f)
		return f;
	f = &n->faults[0];
	if (n->n_faults < REMEDY_FAULTS_MAX)
		f = &n->faults[n->n_faults++];
	else
		for (int i = 1; i < n->n_faults; i++)
			if (is_weaker(&n->faults[i], f))
				f = &n->faults[i];
	*f = (struct remedy_fault){.id = id, .gpu = (int16_t)gpu, .count = -1, .last_ms = REMEDY_NONE_MS};
	return f;
}

// Whether a row counts against a GPU in service.
static bool is_current(const struct remedy_fault *f, int64_t now_ms)
{
	return f->is_active || (f->id >= 0 && now_ms - f->last_ms <= HEALTH_SINCE_MS);
}

const struct remedy_fault *remedy_evidence_of(const struct remedy_node *n, int gpu, int64_t now_ms)
{
	const struct remedy_fault *best = NULL;
	bool is_out = n->gpus[gpu].out_ms >= 0;
	for (int i = 0; i < n->n_faults; i++) {
		const struct remedy_fault *f = &n->faults[i];
		if (f->gpu != gpu || f->is_handled)
			continue;
		if (!is_out && !is_current(f, now_ms))
			continue;
		enum health_action a = remedy_evidence_action(f),
		                   b = best ? remedy_evidence_action(best) : HEALTH_WATCH;
		if (a > b || (best && a == b && f->first_ms < best->first_ms))
			best = f;
	}
	return best;
}

bool remedy_evidence_lasts(const struct remedy_node *n, int gpu)
{
	for (int i = 0; i < n->n_faults; i++)
		if (n->faults[i].gpu == gpu && n->faults[i].is_active && !n->faults[i].is_handled)
			return true;
	return false;
}

int remedy_evidence_attempts(const struct remedy *r, struct remedy_node *n)
{
	int16_t old = 0;
	while (old < n->n_attempts && r->now_ms - n->attempts_ms[old] >= REMEDY_DAY_MS)
		old++;
	n->n_attempts = (int16_t)(n->n_attempts - old);
	memmove(n->attempts_ms, n->attempts_ms + old, (size_t)n->n_attempts * sizeof *n->attempts_ms);
	return n->n_attempts;
}

bool remedy_evidence_is_attempt(const struct remedy *r, const struct remedy_node *n, int gpu)
{
	const struct remedy_gpu *g = &n->gpus[gpu];
	return n->n_out == 0 || (g->was_out_ms >= 0 && r->now_ms - g->was_out_ms < REMEDY_DAY_MS);
}

void remedy_evidence_take(const struct remedy *r, struct remedy_node *n, int gpu)
{
	struct remedy_gpu *g = &n->gpus[gpu];
	if (g->out_ms >= 0)
		return;
	int attempts = remedy_evidence_attempts(r, n);
	if (remedy_evidence_is_attempt(r, n, gpu) && attempts < REMEDY_ATTEMPTS_MAX)
		n->attempts_ms[n->n_attempts++] = r->now_ms;
	for (int i = 0; i < n->n_faults; i++)
		if (n->faults[i].gpu == gpu && !is_current(&n->faults[i], r->now_ms))
			n->faults[i].is_handled = true; // it did not count before, and must not from now on
	g->need_ms = r->limits.clean_ms;
	for (int i = 1; i < n->n_attempts && g->need_ms < REMEDY_DAY_MS / 2; i++)
		g->need_ms *= 2;
	g->out_ms = g->was_out_ms = r->now_ms;
	g->is_reset = g->is_reset_open = g->is_reset_failed = false;
	g->reported = 0;
	n->n_out++;
}

void remedy_evidence_return(struct remedy_node *n, int gpu)
{
	struct remedy_gpu *g = &n->gpus[gpu];
	n->n_out = (int16_t)(n->n_out - (g->out_ms >= 0));
	g->out_ms = REMEDY_NONE_MS;
	g->has_gpu_taint = g->has_node_taint = g->is_reset_open = false;
	g->reported = 0;
	for (int i = 0; i < n->n_faults; i++)
		if (n->faults[i].gpu == gpu)
			n->faults[i].is_handled = true;
	n->is_dirty = true;
}

// ---- what is observed ----

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
	struct remedy_fault *f = add_row(n, gpu, event->xid, &is_new);
	if (is_new || !is_repeat(f, event))
		add_occurrence(r, n, f, event, is_new);
	else if (event->value >= 0 && event->value < f->count)
		f->count = event->value;
}

static void fold_condition(struct remedy *r, struct remedy_node *n, int gpu, const struct remedy_event *event)
{
	const struct health_condition *rows = health_conditions;
	for (size_t i = 0; i < health_n_conditions; i++) {
		if (strcmp(rows[i].reason, event->condition) != 0 || rows[i].action < HEALTH_RESET_IDLE)
			continue;
		int32_t id = -1 - (int32_t)i;
		bool holds = health_condition_holds(&rows[i], (double)event->value), is_new = false;
		struct remedy_fault *f = holds ? add_row(n, gpu, id, &is_new) : remedy_evidence_find(n, gpu, id);
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
static void restore_node(struct remedy_node *n, const char *name, const struct remedy_node *record)
{
	struct remedy_node restored = *record;
	memcpy(restored.name, name, strnlen(name, REMEDY_NAME_BYTES_MAX));
	restored.is_ready = restored.is_dirty = true;
	*n = restored;
}

void remedy_fold_restore(struct remedy *r, const char *name, const struct remedy_node *record)
{
	struct remedy_node *n = add_node(r, name);
	if (n && record)
		restore_node(n, name, record);
	else if (n)
		start_node(n, name);
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
	n = n ? n : add_node(r, seen->name);
	if (!n)
		return REMEDY_TOO_MANY_NODES;
	if (n->is_gone) { // another machine of the same name; the attempts of the day remain
		struct remedy_node fresh;
		start_node(&fresh, n->name);
		fresh.n_attempts = n->n_attempts;
		memcpy(fresh.attempts_ms, n->attempts_ms, sizeof fresh.attempts_ms);
		*n = fresh;
	}
	if (is_new && record)
		restore_node(n, seen->name, record);
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

// ---- reasons ----

// clang-format off
const struct remedy_reason_info remedy_reasons[] = {
	[REMEDY_NO_REASON]          = {"",                      ""},
	[REMEDY_FAULT]              = {"Fault",                 "the GPU reported a fault"},
	[REMEDY_CLEAN]              = {"Clean",                 "no fault for the required time, with telemetry"},
	[REMEDY_REPLACED]           = {"Replaced",              "the GPU is no longer in the node"},
	[REMEDY_IDLE]               = {"Idle",                  "no pod uses the GPU"},
	[REMEDY_MAX_UNAVAILABLE]    = {"MaxUnavailable",        "as many nodes are out of service as the limits allow"},
	[REMEDY_ATTEMPTS_EXHAUSTED] = {"AttemptsExhausted",     "the node was taken out of service as often as the limit per day allows: a person must examine it"},
	[REMEDY_CORDONED]           = {"CordonedByOther",       "the node is already cordoned, or not ready: its evidence is kept"},
	[REMEDY_TELEMETRY_MISSING]  = {"TelemetryMissing",      "the GPU reports nothing: the planner neither takes it out of service nor returns it"},
	[REMEDY_CHECKPOINT]         = {"WaitsForCheckpoint",    "a pod moves at its next checkpoint"},
	[REMEDY_EVICTION_REFUSED]   = {"EvictionRefused",       "a PodDisruptionBudget refuses the eviction: the planner tries again at growing intervals"},
	[REMEDY_PODS_UNKNOWN]       = {"PodsUnknown",           "the pods of the node are not known: nothing is evicted or reset"},
	[REMEDY_NEEDS_REBOOT]       = {"NeedsReboot",           "the fault needs a reboot of the node"},
	[REMEDY_NEEDS_REPLACEMENT]  = {"NeedsReplacement",      "the fault needs new hardware"},
	[REMEDY_RESET_FAILED]       = {"ResetFailed",           "the reset of the GPU failed, or had no answer: a person must examine it"},
	[REMEDY_LIFTED]             = {"LiftedByHand",          "the taint was removed by hand: the evidence so far counts as handled"},
	[REMEDY_ADOPTED]            = {"Adopted",               "the node has a taint of gpuscale without a record: it returns after the clean time"},
	[REMEDY_CONTRADICTED]       = {"Contradicted",          "series about this node contradict each other or are too many: none is used"},
	[REMEDY_UNKNOWN_NODE]       = {"UnknownNode",           "the cluster has no such node"},
	[REMEDY_FUTURE]             = {"FromTheFuture",         "the time of the event lies in the future"},
	[REMEDY_TOO_OLD]            = {"TooOld",                "the event is more than an hour old"},
	[REMEDY_TOO_MANY_GPUS]      = {"TooManyGPUs",           "the node has more GPUs than the ceiling of 16"},
	[REMEDY_TOO_MANY_NODES]     = {"TooManyNodes",          "the cluster has more nodes than the ceiling of 5000"},
	[REMEDY_TOO_MANY_PODS]      = {"TooManyPods",           "the node has more pods with GPUs than the ceiling of 64"},
	[REMEDY_BAD_RECORD]         = {"BadRecord",             "the record in the node's annotation is invalid: it is ignored"},
};
// clang-format on
_Static_assert(sizeof remedy_reasons / sizeof *remedy_reasons == REMEDY_REASON__COUNT, "one row per reason");
_Static_assert(REMEDY_REASON__COUNT <= 32, "struct remedy_gpu has one bit per reason");
