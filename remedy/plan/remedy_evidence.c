// SPDX-License-Identifier: Apache-2.0
#include "remedy/plan/remedy_evidence.h"

#include <string.h>

static const struct health_xid *xid_row(int32_t code)
{
	size_t n;
	const struct health_xid *rows = health_xid_table(&n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].code == code)
			return &rows[i];
	return NULL;
}

static const struct health_condition *condition_row(int32_t id)
{
	size_t n;
	const struct health_condition *rows = health_condition_table(&n);
	return &rows[-1 - id];
}

enum health_action remedy_evidence_worst(int32_t id)
{
	if (id < 0)
		return condition_row(id)->action;
	const struct health_xid *row = xid_row(id);
	return row ? row->action : HEALTH_WATCH;
}

enum health_action remedy_evidence_action(const struct remedy_fault *f)
{
	if (f->id < 0)
		return condition_row(f->id)->action;
	const struct health_xid *row = xid_row(f->id);
	return !row || (uint64_t)f->occurrences < row->min_count ? HEALTH_WATCH : row->action;
}

void remedy_evidence_name(int32_t id, char out[REMEDY_FAULT_NAME_BYTES])
{
	memset(out, 0, REMEDY_FAULT_NAME_BYTES);
	if (id < 0) {
		const char *reason = condition_row(id)->reason;
		memcpy(out, reason, strnlen(reason, REMEDY_FAULT_NAME_BYTES - 1));
		return;
	}
	char digits[12];
	int n = 0;
	do
		digits[n++] = (char)('0' + id % 10);
	while ((id /= 10) > 0);
	memcpy(out, "XID", 3);
	for (int i = 0; i < n; i++)
		out[3 + i] = digits[n - 1 - i];
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

struct remedy_fault *remedy_evidence_row(struct remedy_node *n, int gpu, int32_t id, bool *ret_is_new)
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
