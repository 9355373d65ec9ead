// SPDX-License-Identifier: Apache-2.0
#include "remedy/plan/remedy_plan.h"

#include "remedy/plan/remedy_state.h"

const char *const remedy_kind_names[] = {"taint", "untaint", "evict", "reset", "hold"};
_Static_assert(sizeof remedy_kind_names / sizeof *remedy_kind_names == REMEDY_KIND__COUNT, "one name per kind");

struct plan {
	struct remedy *r;
	struct remedy_action *actions;
	size_t n, max;
};

static bool is_full(const struct plan *p)
{
	return p->n == p->max;
}

static const struct remedy_fault *evidence(const struct plan *p, const struct remedy_node *n, int gpu)
{
	return remedy_evidence_of(n, gpu, p->r->now_ms);
}

static void add(struct plan *p, enum remedy_kind kind, enum remedy_reason reason, const struct remedy_node *n, int gpu,
                int pod, bool whole_node)
{
	const struct remedy_fault *f = evidence(p, n, gpu);
	p->actions[p->n++] = (struct remedy_action){.kind = kind,
	                                            .reason = reason,
	                                            .node = (int32_t)(n - p->r->nodes),
	                                            .gpu = (int16_t)gpu,
	                                            .pod = (int16_t)pod,
	                                            .whole_node = whole_node,
	                                            .fault = f ? f->id : REMEDY_NO_FAULT,
	                                            .wanted = f ? remedy_evidence_action(f) : HEALTH_IGNORE};
}

// Reports a hold once per GPU and time in or out of service: conditions that alternate do not flood.
static void hold(struct plan *p, enum remedy_reason reason, struct remedy_node *n, int gpu, int pod)
{
	uint32_t bit = UINT32_C(1) << reason;
	if ((n->gpus[gpu].reported & bit) || is_full(p))
		return;
	add(p, REMEDY_HOLD, reason, n, gpu, pod, false);
	n->gpus[gpu].reported |= bit;
}

// ---- rules ----

static bool is_heard(const struct remedy *r, const struct remedy_gpu *g)
{
	return g->heard_ms >= 0 && r->now_ms - g->heard_ms <= HEALTH_STALE_MS;
}

static bool is_wanted_out(const struct remedy *r, const struct remedy_fault *f)
{
	return f && remedy_evidence_action(f) >= (r->limits.can_reset ? HEALTH_RESET_IDLE : HEALTH_DRAIN);
}

// Whether a fault concerns the whole node.
static bool needs_node(int gpu, const struct remedy_fault *f)
{
	return gpu == 0 || (f && remedy_evidence_action(f) == HEALTH_DRAIN_REBOOT);
}

static bool uses(uint32_t pod_gpus, int gpu, bool whole_node)
{
	return whole_node ? pod_gpus != 0 : (pod_gpus >> gpu & 1) != 0;
}

// The fault for which the GPU is out of service; NULL: none.
static const struct remedy_fault *fault_behind(const struct remedy *r, const struct remedy_node *n, int gpu)
{
	const struct remedy_gpu *g = &n->gpus[gpu];
	return g->out_ms < 0 || g->is_replaced ? NULL : remedy_evidence_of(n, gpu, r->now_ms);
}

bool remedy_plan_moves(const struct remedy *r, const struct remedy_node *n, int gpu, uint32_t pod_gpus)
{
	const struct remedy_fault *f = fault_behind(r, n, gpu);
	bool is_drained = r->limits.drains && n->gpus[gpu].has_node_taint;
	return f && remedy_evidence_action(f) >= HEALTH_DRAIN && uses(pod_gpus, gpu, is_drained || needs_node(gpu, f));
}

static bool is_idle(const struct remedy_node *n, int gpu)
{
	for (int i = 0; i < n->n_pods; i++)
		if (uses(n->pods[i].gpus, gpu, gpu == 0))
			return false;
	return n->has_pods;
}

// The hook resets one GPU, so the fault must name it.
static bool wants_reset(const struct remedy *r, int gpu, enum health_action wanted)
{
	return r->limits.can_reset && gpu > 0 && (wanted == HEALTH_RESET_IDLE || wanted == HEALTH_DRAIN_RESET);
}

int remedy_plan_node_taint(const struct remedy_node *n)
{
	for (int i = 0; i < n->n_gpus; i++)
		if (n->gpus[i].has_node_taint)
			return i;
	return -1;
}

int32_t remedy_plan_unavailable(const struct remedy *r)
{
	int32_t n = 0;
	for (int32_t k = 0; k < r->n_nodes; k++) {
		const struct remedy_node *node = &r->nodes[k];
		n += !node->is_gone && (node->n_out > 0 || node->is_cordoned || !node->is_ready);
	}
	return n;
}

int32_t remedy_plan_allowed(const struct remedy *r)
{
	int64_t total = 0;
	for (int32_t k = 0; k < r->n_nodes; k++)
		total += !r->nodes[k].is_gone;
	int64_t percent = total * r->limits.max_percent / 100;
	if (percent == 0 && r->limits.max_percent > 0)
		percent = 1;
	return percent < r->limits.max_nodes ? (int32_t)percent : r->limits.max_nodes;
}

// ---- returning ----

// REMEDY_CLEAN or REMEDY_REPLACED: the GPU may return. Else why not; REMEDY_NO_REASON: only time is missing.
static enum remedy_reason may_return(const struct remedy *r, const struct remedy_node *n, int gpu)
{
	const struct remedy_gpu *g = &n->gpus[gpu];
	const struct remedy_gpu *watched = g->is_replaced ? &n->gpus[0] : g;
	const struct remedy_fault *f = g->is_replaced ? NULL : remedy_evidence_of(n, gpu, r->now_ms);
	enum health_action wanted = f ? remedy_evidence_action(f) : HEALTH_IGNORE;
	int64_t since_ms = watched->clean_ms > g->out_ms ? watched->clean_ms : g->out_ms;
	if (wanted == HEALTH_REPLACE)
		return REMEDY_NEEDS_REPLACEMENT;
	if (!is_heard(r, watched))
		return REMEDY_TELEMETRY_MISSING;
	if (!g->is_replaced && remedy_evidence_lasts(n, gpu))
		return wanted == HEALTH_DRAIN_REBOOT ? REMEDY_NEEDS_REBOOT : REMEDY_NO_REASON;
	if (wants_reset(r, gpu, wanted) && g->is_reset_failed)
		return REMEDY_RESET_FAILED;
	if (g->is_reset_open || (wants_reset(r, gpu, wanted) && !g->is_reset) || watched->clean_ms < 0 ||
	    watched->heard_ms - since_ms < g->need_ms) // time without telemetry is not clean
		return REMEDY_NO_REASON;
	return g->is_replaced ? REMEDY_REPLACED : REMEDY_CLEAN;
}

static void return_gpu(struct plan *p, struct remedy_node *n, int i)
{
	if (n->gpus[i].has_gpu_taint) {
		add(p, REMEDY_UNTAINT, may_return(p->r, n, i), n, i, -1, false);
		n->gpus[i].is_in_flight = true;
	}
	remedy_evidence_return(n, i);
}

static void plan_returns(struct plan *p, struct remedy_node *n)
{
	int held_by_node = 0, first = remedy_plan_node_taint(n);
	for (int i = 0; i < n->n_gpus; i++) {
		if (n->gpus[i].out_ms < 0)
			continue;
		enum remedy_reason reason = may_return(p->r, n, i);
		bool may = reason == REMEDY_CLEAN || reason == REMEDY_REPLACED;
		if (n->gpus[i].has_node_taint)
			held_by_node += !may;
		else if (may && !is_full(p))
			return_gpu(p, n, i);
	}
	// The taint of the node goes when the last GPU behind it may return.
	if (first < 0 || held_by_node > 0 || p->max - p->n < REMEDY_GPUS_MAX + 1)
		return;
	add(p, REMEDY_UNTAINT, may_return(p->r, n, first), n, first, -1, true);
	for (int i = 0; i < n->n_gpus; i++)
		if (n->gpus[i].has_node_taint)
			return_gpu(p, n, i);
}

// ---- taking out of service ----

// REMEDY_FAULT: the GPU is to be taken out, limits apart.
static enum remedy_reason may_take(const struct remedy *r, struct remedy_node *n, int gpu)
{
	const struct remedy_gpu *g = &n->gpus[gpu];
	const struct remedy_fault *f = remedy_evidence_of(n, gpu, r->now_ms);
	if (g->is_replaced || g->out_ms >= 0 || !is_wanted_out(r, f))
		return REMEDY_NO_REASON;
	if (n->is_cordoned || !n->is_ready)
		return REMEDY_CORDONED;
	// A condition lasts as long as the GPU reports it; an XID has happened, and its GPU may report nothing more.
	if (!is_heard(r, f->id < 0 ? g : &n->gpus[0]))
		return REMEDY_TELEMETRY_MISSING;
	if (remedy_evidence_attempts(r, n) >= r->limits.attempts && remedy_evidence_is_attempt(r, n, gpu))
		return REMEDY_ATTEMPTS_EXHAUSTED;
	return REMEDY_FAULT;
}

static void take(struct plan *p, struct remedy_node *n, int gpu)
{
	struct remedy_gpu *g = &n->gpus[gpu];
	bool whole = !n->has_dra || needs_node(gpu, evidence(p, n, gpu));
	if (!whole || remedy_plan_node_taint(n) < 0)
		add(p, REMEDY_TAINT, REMEDY_FAULT, n, gpu, -1, whole);
	remedy_evidence_take(p->r, n, gpu);
	g->has_node_taint = whole;
	g->has_gpu_taint = !whole;
	g->is_in_flight |= !whole; // behind the taint of the node, the removal of its own may still be in flight
}

// A worse fault of a GPU whose own taint is not enough any more: the node is out of service already.
static void widen(struct plan *p, struct remedy_node *n, int gpu)
{
	struct remedy_gpu *g = &n->gpus[gpu];
	if (g->out_ms < 0 || g->has_node_taint || g->is_replaced || !needs_node(gpu, evidence(p, n, gpu)))
		return;
	if (remedy_plan_node_taint(n) < 0)
		add(p, REMEDY_TAINT, REMEDY_FAULT, n, gpu, -1, true);
	g->has_node_taint = true;
}

// Further GPUs of a node that is out of service by us, and holds.
static void plan_joins(struct plan *p, struct remedy_node *n)
{
	for (int i = 0; i < n->n_gpus && !is_full(p); i++) {
		enum remedy_reason reason = may_take(p->r, n, i);
		if (reason == REMEDY_FAULT && n->n_out > 0)
			take(p, n, i);
		else if (reason != REMEDY_FAULT && reason != REMEDY_NO_REASON)
			hold(p, reason, n, i, -1);
		else
			widen(p, n, i);
	}
}

struct candidate {
	struct remedy_node *node;
	int gpu;
	enum health_action wanted;
	int64_t first_ms;
};

static struct candidate worst_candidate(struct plan *p)
{
	struct candidate best = {.wanted = HEALTH_IGNORE};
	for (int32_t k = 0; k < p->r->n_nodes; k++) {
		struct remedy_node *n = &p->r->nodes[k];
		if (n->is_gone || n->n_faults == 0)
			continue;
		for (int i = 0; i < n->n_gpus; i++) {
			if (may_take(p->r, n, i) != REMEDY_FAULT)
				continue;
			const struct remedy_fault *f = evidence(p, n, i);
			enum health_action wanted = remedy_evidence_action(f);
			if (!best.node || wanted > best.wanted ||
			    (wanted == best.wanted && f->first_ms < best.first_ms))
				best = (struct candidate){n, i, wanted, f->first_ms};
		}
	}
	return best;
}

// Nodes that are in service, the worst fault first, as far as the limits allow.
static void plan_takes(struct plan *p)
{
	int32_t room = remedy_plan_allowed(p->r) - remedy_plan_unavailable(p->r);
	while (room > 0 && !is_full(p)) {
		struct candidate c = worst_candidate(p);
		if (!c.node)
			return;
		take(p, c.node, c.gpu);
		plan_joins(p, c.node);
		room--;
	}
	for (int32_t k = 0; k < p->r->n_nodes && !is_full(p); k++) {
		struct remedy_node *n = &p->r->nodes[k];
		for (int i = 0; !n->is_gone && n->n_faults > 0 && i < n->n_gpus; i++)
			if (may_take(p->r, n, i) == REMEDY_FAULT)
				hold(p, REMEDY_MAX_UNAVAILABLE, n, i, -1);
	}
}

// ---- moving the work away, resetting ----

static void evict(struct plan *p, struct remedy_node *n, int gpu, int k)
{
	const struct remedy_gpu *g = &n->gpus[gpu];
	struct remedy_pod *pod = &n->pods[k];
	int64_t last_ms = g->out_ms + REMEDY_CHECKPOINT_MAX_MS;
	int64_t until_ms = pod->until_ms < last_ms ? pod->until_ms : last_ms;
	if (pod->is_pinned)
		return;
	if (p->r->now_ms < until_ms) {
		hold(p, REMEDY_CHECKPOINT, n, gpu, k);
		return;
	}
	if (pod->tries > 0 && p->r->now_ms - pod->next_ms >= REMEDY_EVICT_MAX_MS)
		pod->tries = 0; // an attempt of an earlier time out of service
	if (pod->is_refused)
		hold(p, REMEDY_EVICTION_REFUSED, n, gpu, k);
	if ((pod->tries > 0 && p->r->now_ms < pod->next_ms) || is_full(p))
		return;
	add(p, REMEDY_EVICT, REMEDY_FAULT, n, gpu, k, false);
	int64_t wait_ms = REMEDY_EVICT_MS;
	for (int i = 0; i < pod->tries && wait_ms < REMEDY_EVICT_MAX_MS; i++)
		wait_ms *= 2;
	pod->next_ms = p->r->now_ms + (wait_ms < REMEDY_EVICT_MAX_MS ? wait_ms : REMEDY_EVICT_MAX_MS);
	pod->tries += pod->tries < INT32_MAX;
}

// A reset without a result has failed.
static void expire_resets(const struct remedy *r, struct remedy_node *n)
{
	for (int i = 0; i < n->n_gpus; i++) {
		struct remedy_gpu *g = &n->gpus[i];
		if (!g->is_reset_open || r->now_ms - g->reset_ms < REMEDY_RESET_MS)
			continue;
		g->is_reset_open = false;
		g->is_reset_failed = true;
	}
}

// Requests the reset of a GPU, of one GPU of a node at a time.
static void reset(struct plan *p, struct remedy_node *n, int gpu)
{
	struct remedy_gpu *g = &n->gpus[gpu];
	for (int i = 0; i < n->n_gpus; i++)
		if (n->gpus[i].is_reset_open)
			return;
	if (!is_heard(p->r, g)) {
		hold(p, REMEDY_TELEMETRY_MISSING, n, gpu, -1);
		return;
	}
	add(p, REMEDY_RESET, REMEDY_IDLE, n, gpu, -1, false);
	g->is_reset = true;
	g->is_reset_open = p->r->limits.is_answered;
	g->reset_ms = g->clean_ms = p->r->now_ms;
}

static void plan_work(struct plan *p, struct remedy_node *n)
{
	for (int i = 0; i < n->n_gpus; i++) {
		struct remedy_gpu *g = &n->gpus[i];
		enum remedy_reason reason = g->out_ms < 0 ? REMEDY_NO_REASON : may_return(p->r, n, i);
		if (reason != REMEDY_NO_REASON && reason != REMEDY_CLEAN && reason != REMEDY_REPLACED)
			hold(p, reason, n, i, -1);
		const struct remedy_fault *f = fault_behind(p->r, n, i);
		enum health_action wanted = f ? remedy_evidence_action(f) : HEALTH_IGNORE;
		if (wanted < HEALTH_RESET_IDLE)
			continue;
		if (!n->has_pods) {
			hold(p, REMEDY_PODS_UNKNOWN, n, i, -1);
			continue;
		}
		for (int others = 0; others < 2; others++) // the pods of the GPU go first
			for (int k = 0; k < n->n_pods; k++)
				if (uses(n->pods[k].gpus, i, false) != others &&
				    remedy_plan_moves(p->r, n, i, n->pods[k].gpus))
					evict(p, n, i, k);
		if (wants_reset(p->r, i, wanted) && !g->is_reset && is_idle(n, i) && !is_full(p))
			reset(p, n, i);
	}
}

size_t remedy_plan(struct remedy *r, bool all, struct remedy_action *ret_actions, size_t max)
{
	struct plan p = {.r = r, .actions = ret_actions, .max = max};
	bool is_any = all;
	for (int32_t k = 0; k < r->n_nodes && !is_full(&p); k++) {
		struct remedy_node *n = &r->nodes[k];
		if (n->is_gone || !(all || n->is_dirty))
			continue;
		is_any = true;
		expire_resets(r, n);
		plan_returns(&p, n);
		plan_joins(&p, n);
	}
	if (is_any)
		plan_takes(&p);
	for (int32_t k = 0; k < r->n_nodes && !is_full(&p); k++) {
		struct remedy_node *n = &r->nodes[k];
		if (n->is_gone || !(all || n->is_dirty))
			continue;
		plan_work(&p, n);
		n->is_dirty = is_full(&p);
	}
	return p.n;
}
