// SPDX-License-Identifier: Apache-2.0
// `gpuscale-exporter check`: judges a page of metrics by the rules of exporter/health_policy.h, and reports the health
// of the GPUs of one page, with an exit code for node-problem-detector.
#include "exporter/cmd/exporter_cmd.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/base.h"
#include "base/json/json_write.h"
#include "base/print.h"

// ---- the findings ----

struct findings {
	struct health_finding *items;
	size_t n, max;
};

__attribute__((format(printf, 5, 6))) static void find(struct findings *f, enum health_action action,
                                                       const struct page_view_gpu *gpu, const char *reason,
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
	const struct health_condition *is_lost = &health_conditions[HEALTH_GPU_LOST];
	const struct health_condition *is_missing = &health_conditions[HEALTH_GPU_MISSING];
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
		for (size_t k = 0; k < health_n_conditions; k++) {
			const struct health_condition *c = &health_conditions[k];
			double value;
			if (c->family && page_view_get(g, c->family, &value) && health_condition_holds(c, value))
				find(&f, c->action, g, c->reason, "%s", c->text);
		}
	}
	if (f.n > 1)
		qsort(f.items, f.n, sizeof *f.items, worst_first);
	return f.n;
}

// ---- the report ----

static const char *const states[] = {
        [0] = "ok", [HEALTH_CHECK_PROBLEM] = "problem", [HEALTH_CHECK_UNKNOWN] = "unknown"};

// Writes why the page does not show the health of the GPUs, or "".
static void find_doubt(const struct page_view *v, const struct err *why, struct buf *out)
{
	if (!v)
		buf_puts(out, why->msg);
	else if (v->has_up && !v->up)
		buf_puts(out, "the exporter cannot read the GPUs");
	else if (v->dropped || (v->has_age && v->age_s * 1000 > HEALTH_STALE_MS)) {
		char age[NUM_TEXT_BYTES];
		num_format_duration_ms(age, (int64_t)v->age_s * 1000); // at most PAGE_VIEW_AGE_MAX_S
		print_to(out, "the last sample is %s old", age);
	} else if (v->n == 0 && v->lost == 0 && v->missing == 0)
		buf_puts(out, "the page lists no GPU");
}

static void put_gap(const struct page_view *v, enum page_known kind, struct buf *out)
{
	static const char *const names[PAGE_KNOWN__COUNT] = {"XIDs", "ECC errors", "memory repairs"};
	size_t n = v ? v->unknown[kind] : 0;
	if (n > 0 && n < page_view_count(v))
		print_to(out, "%s of %zu GPU%s unknown", names[kind], n, n == 1 ? "" : "s");
	else if (n > 0)
		print_to(out, "%s unknown", names[kind]);
}

static void put_gpu(const struct page_view_gpu *g, struct buf *out)
{
	if (!g)
		return;
	print_to(out, "GPU %" PRId32, g->device.index);
	if (g->device.mig_id[0])
		print_to(out, " instance %s", g->device.mig_id);
	buf_puts(out, ": ");
}

// One line, the worst finding first, because node-problem-detector keeps only 80 bytes of it.
static void put_text(const struct exporter_options *o, const struct page_view *v, int code, const char *doubt,
                     const char *gaps, const struct health_finding *f, size_t n, struct buf *out)
{
	if (code == HEALTH_CHECK_UNKNOWN) {
		print_to(out, "unknown: %s\n", doubt);
		return;
	}
	size_t problems = 0;
	while (problems < n && f[problems].action >= (enum health_action)o->fail_on)
		problems++;
	size_t gpus = page_view_count(v);
	if (problems == 0)
		print_to(out, "%zu GPU%s %s", gpus, gpus == 1 ? "" : "s",
		         gaps[0] ? "without a known problem" : "healthy");
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i > 0 || problems == 0 ? "; " : "");
		put_gpu(f[i].gpu, out);
		print_to(out, "%s: %s", f[i].text, health_action_name(f[i].action));
	}
	print_to(out, "%s%s\n", gaps[0] ? "; " : "", gaps);
}

static void put_json(const struct exporter_options *o, const struct page_view *v, int code, const char *doubt,
                     const struct health_finding *f, size_t n, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_format(&w, "{status:%s", states[code]);
	if (code == HEALTH_CHECK_UNKNOWN)
		json_write_format(&w, "message:%s", doubt);
	json_write_format(&w, "gpus:%zu,unknown:[", v ? page_view_count(v) : 0);
	for (int k = 0; v && k < PAGE_KNOWN__COUNT; k++) {
		struct buf gap;
		buf_init(&gap, HEALTH_TEXT_BYTES);
		put_gap(v, (enum page_known)k, &gap);
		if (gap.len > 0)
			json_write_str(&w, buf_str(&gap));
		buf_done(&gap);
	}
	json_write_format(&w, "],findings:[");
	for (size_t i = 0; i < n; i++) {
		const struct device *d = f[i].gpu ? &f[i].gpu->device : NULL;
		json_write_format(&w, "{reason:%s,action:%s,problem:%i,message:%s", f[i].reason,
		                  health_action_name(f[i].action), f[i].action >= (enum health_action)o->fail_on,
		                  f[i].text);
		if (d)
			json_write_member_i64(&w, "gpu", d->index);
		else
			json_write_member_null(&w, "gpu");
		json_write_format(&w, "uuid:%s,pods:%s}", d ? d->uuid : NULL, f[i].gpu ? f[i].gpu->pods : NULL);
	}
	json_write_format(&w, "]}");
	buf_putc(out, '\n');
}

int health_check_run(const struct exporter_options *o, const struct page_view *v, const struct err *why,
                     int64_t wall_ms, struct buf *out, struct buf *ret_errors, struct err *e)
{
	struct health_policy *p = malloc(sizeof *p);
	struct health_finding *f = calloc(HEALTH_FINDINGS_MAX, sizeof *f);
	struct buf doubt, gaps;
	int code = HEALTH_CHECK_UNKNOWN;
	buf_init(&doubt, 4096);
	buf_init(&gaps, 4096);
	if (!p || !f) {
		err_no_memory(e);
		goto done;
	}
	health_policy_init(p);
	p->since_ms = o->since_ms;
	if (o->xid_policy && health_policy_read(p, o->xid_policy, ret_errors, e) < 0)
		goto done;
	find_doubt(v, why, &doubt);
	for (int k = 0; k < PAGE_KNOWN__COUNT; k++) {
		if (gaps.len > 0 && v && v->unknown[k] > 0)
			buf_puts(&gaps, "; ");
		put_gap(v, (enum page_known)k, &gaps);
	}
	size_t n = v ? health_classify(p, v, wall_ms, f, HEALTH_FINDINGS_MAX) : 0;
	if (n > 0 && f[0].action >= (enum health_action)o->fail_on)
		code = HEALTH_CHECK_PROBLEM; // a known problem stays a problem, even if other data is missing
	else if (doubt.len == 0)
		code = 0;
	if (o->output == OUTPUT_JSON)
		put_json(o, v, code, buf_str(&doubt), f, n, out);
	else
		put_text(o, v, code, buf_str(&doubt), buf_str(&gaps), f, n, out);
done:
	buf_done(&doubt);
	buf_done(&gaps);
	free(p);
	free(f);
	return code;
}
