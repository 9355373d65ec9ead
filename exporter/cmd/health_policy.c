// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd/health_policy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "exporter/cmd/page_view.h"

void health_policy_init(struct health_policy *p)
{
	memset(p, 0, sizeof *p);
	const struct health_xid *table = health_xid_table(&p->n);
	assert(p->n <= HEALTH_ROWS_MAX);
	memcpy(p->xids, table, p->n * sizeof *table);
	p->since_ms = HEALTH_SINCE_MS;
	p->other_action = HEALTH_WATCH;
}

static struct health_xid *row_of(struct health_policy *p, int32_t code)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->xids[i].code == code)
			return &p->xids[i];
	return NULL;
}

// ---- the file ----

// Removes the text before the next comma from `*rest` and trims it; "" at the end. The last column may contain
// commas.
static char *cut_column(char **rest, bool last)
{
	char *begin = *rest + strspn(*rest, " \t");
	char *comma = last ? NULL : strchr(begin, ',');
	char *end = comma ? comma : begin + strlen(begin);
	*rest = comma ? comma + 1 : end;
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	*end = '\0';
	return begin;
}

// Returns NULL, or what is wrong with the line.
static const char *take_line(struct health_policy *p, char *line)
{
	char *code = cut_column(&line, false), *action = cut_column(&line, false);
	char *count = cut_column(&line, false), *text = cut_column(&line, true);
	int64_t number = 0, min_count = 1;
	bool other = strcmp(code, "other") == 0;
	enum health_action a = health_action_find(action);
	if (!other && num_parse_i64(code, strlen(code), 0, INT32_MAX, &number, NULL) < 0)
		return "the first column must be an XID, or other";
	if (a == HEALTH_ACTION__COUNT)
		return "the second column must be ignore, watch, restart-app, reset-idle, drain, drain-reset, "
		       "drain-reboot or replace";
	if (count[0] && num_parse_i64(count, strlen(count), 1, 1000000, &min_count, NULL) < 0)
		return "the third column must be the minimum count, 1 to 1000000";
	if (other) {
		p->other_action = a;
		return NULL;
	}
	struct health_xid *row = row_of(p, (int32_t)number);
	if (!row && p->n == HEALTH_ROWS_MAX)
		return "too many rows";
	if (!row) {
		row = &p->xids[p->n++];
		*row = (struct health_xid){.code = (int32_t)number, .text = "from the policy file"};
	}
	row->action = a;
	row->min_count = (uint64_t)min_count;
	if (text[0])
		text_show(row->text, sizeof row->text, text, strlen(text));
	return NULL;
}

int health_policy_parse(struct health_policy *p, const char *name, const char *text, size_t len, struct buf *ret_errors,
                        struct err *e)
{
	char line[512];
	int faults = 0, number = 0;
	if (len > HEALTH_FILE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s: %zu bytes, the ceiling is %d", name, len, HEALTH_FILE_BYTES_MAX);
	const char *end = text + len;
	for (const char *at = text, *stop; at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		size_t n = (size_t)(stop - at);
		const char *why = NULL;
		number++;
		if (n >= sizeof line || memchr(at, '\0', n)) {
			why = "not a line of text";
		} else {
			memcpy(line, at, n);
			line[n] = '\0';
			const char *first = line + strspn(line, " \t\r");
			if (*first && *first != '#')
				why = take_line(p, line);
		}
		if (why) {
			faults++;
			buf_printf(ret_errors, "%s:%d: %s\n", name, number, why);
		}
	}
	return faults ? err_set(e, ERR_INPUT, "%s: %d error%s", name, faults, faults == 1 ? "" : "s") : 0;
}

int health_policy_read(struct health_policy *p, const char *path, struct buf *ret_errors, struct err *e)
{
	struct buf text;
	buf_init(&text, HEALTH_FILE_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = health_policy_parse(p, path, buf_str(&text), text.len, ret_errors, e);
	buf_done(&text);
	return rc;
}

// ---- judging ----

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

static void judge_xid(struct findings *f, const struct health_policy *p, const struct page_view_gpu *g,
                      const struct page_view_xid *x, int64_t wall_ms)
{
	int64_t age_ms = wall_ms - (int64_t)(x->last_s * 1000);
	if (x->count == 0 || x->last_s <= 0 || age_ms > p->since_ms)
		return;
	age_ms = age_ms > 0 ? age_ms / 1000 * 1000 : 0;
	char ago[NUM_TEXT_BYTES], reason[32];
	num_format_duration_ms(ago, age_ms);
	if (x->code == XID_CODE_OTHER) {
		find(f, p->other_action, g, "XIDOther", "XID with another code, %s ago", ago);
		return;
	}
	const struct health_xid *row = NULL;
	for (size_t i = 0; i < p->n && !row; i++)
		row = p->xids[i].code == x->code ? &p->xids[i] : NULL;
	enum health_action action = !row ? p->other_action : x->count < row->min_count ? HEALTH_WATCH : row->action;
	snprintf(reason, sizeof reason, "XID%" PRId32, x->code);
	find(f, action, g, reason, "XID %" PRId32 ", %s (%" PRIu64 " in total, the last %s ago)", x->code,
	     row ? row->text : "a code without a rule", x->count, ago);
}

static int worst_first(const void *a, const void *b)
{
	const struct health_finding *x = a, *y = b;
	if (x->action != y->action)
		return x->action > y->action ? -1 : 1;
	int32_t i = x->gpu ? x->gpu->device.index : -1, k = y->gpu ? y->gpu->device.index : -1;
	return i != k ? (i > k) - (i < k) : strcmp(x->text, y->text);
}

size_t health_judge(const struct health_policy *p, const struct page_view *v, int64_t wall_ms,
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
			judge_xid(&f, p, g, &g->xids[k], wall_ms);
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
