// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd/health_classify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "exporter/cmd/page_view.h"

struct findings {
	struct health_finding *items;
	size_t n, max;
};

static void find(struct findings *f, enum health_action action, const struct page_view_gpu *gpu, const char *reason,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void find(struct findings *f, enum health_action action, const struct page_view_gpu *gpu, const char *reason,
                 const char *fmt, ...)
{
	if (f->n == f->max || action == HEALTH_IGNORE)
		return;
	struct health_finding *x = &f->items[f->n++];
	x->action = action;
	x->gpu = gpu;
	snprintf(x->reason, sizeof x->reason, "%s", reason);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(x->text, sizeof x->text, fmt, ap);
	va_end(ap);
}

static void classify_xid(struct findings *f, const struct health_policy *p, const struct page_view_gpu *g,
                         const struct page_view_xid *x, int64_t wall_ms)
{
	if (x->last_s <= 0 && !x->undated)
		return;
	struct health_ruling r;
	int64_t age_ms = x->undated ? 0 : wall_ms - (int64_t)(x->last_s * 1000);
	char ago[NUM_TEXT_BYTES];
	health_policy_rule(p, x->code, x->count, age_ms, &r);
	if (x->undated) {
		find(f, r.action, g, r.reason, "XID %" PRId32 ", %s (no time given)", x->code,
		     r.row ? r.row->text : "a code without a rule");
		return;
	}
	num_format_duration_ms(ago, age_ms > 0 ? age_ms / 1000 * 1000 : 0);
	if (x->code == XID_CODE_OTHER)
		find(f, r.action, g, r.reason, "XID with another code, %s ago", ago);
	else
		find(f, r.action, g, r.reason, "XID %" PRId32 ", %s (%" PRIu64 " in total, the last %s ago)", x->code,
		     r.row ? r.row->text : "a code without a rule", x->count, ago);
}

static int worst_first(const void *a, const void *b)
{
	const struct health_finding *x = a, *y = b;
	if (x->action != y->action)
		return x->action > y->action ? -1 : 1;
	int32_t i = x->gpu ? x->gpu->device.index : -1, k = y->gpu ? y->gpu->device.index : -1;
	return i != k ? (i > k) - (i < k) : strcmp(x->text, y->text);
}

size_t health_classify(const struct health_policy *p, const struct page_view *v, int64_t wall_ms,
                       struct health_finding *ret_findings, size_t max)
{
	struct findings f = {.items = ret_findings, .max = max};
	size_t n_conditions;
	const struct health_condition *conditions = health_condition_table(&n_conditions);
	const struct health_condition *is_lost = &conditions[HEALTH_GPU_LOST];
	const struct health_condition *is_missing = &conditions[HEALTH_GPU_MISSING];
	int64_t lost = v->lost; // lost GPUs that the page does not name
	for (size_t i = 0; i < v->n; i++) {
		if (!v->gpus[i].lost)
			continue;
		find(&f, is_lost->action, &v->gpus[i], is_lost->reason, "%s", is_lost->text);
		lost--;
	}
	if (lost > 0)
		find(&f, is_lost->action, NULL, is_lost->reason, "%" PRId64 " GPU%s not respond", lost,
		     lost == 1 ? " does" : "s do");
	if (v->missing > 0)
		find(&f, is_missing->action, NULL, is_missing->reason, "%" PRId64 " GPU%s gone", v->missing,
		     v->missing == 1 ? " is" : "s are");
	for (size_t i = 0; i < v->n; i++) {
		const struct page_view_gpu *g = &v->gpus[i];
		for (size_t k = 0; k < g->n_xids; k++)
			classify_xid(&f, p, g, &g->xids[k], wall_ms);
		for (size_t k = 0; k < n_conditions; k++) {
			double value;
			if (conditions[k].family && page_view_get(g, conditions[k].family, &value) &&
			    health_condition_holds(&conditions[k], value))
				find(&f, conditions[k].action, g, conditions[k].reason, "%s", conditions[k].text);
		}
	}
	if (f.n > 1)
		qsort(f.items, f.n, sizeof *f.items, worst_first);
	return f.n;
}
