// SPDX-License-Identifier: Apache-2.0
#include "exporter/health_policy.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/print.h"
#include "exporter/device.h"
#include "exporter/xid.h"

static void consider(struct health_verdict *v, enum health_action action, const char *reason)
{
	if (action <= v->action)
		return;
	v->action = action;
	snprintf(v->reason, sizeof v->reason, "%s", reason);
}

void health_verdict_of(const struct health_policy *p, const struct device_sample *sample, const struct xid_count *xids,
                       size_t n, int64_t wall_ms, struct health_verdict *ret)
{
	const struct health_condition *lost = &health_conditions[HEALTH_GPU_LOST];
	*ret = (struct health_verdict){.action = HEALTH_IGNORE, .reason = "Healthy"};
	if (sample->lost)
		consider(ret, lost->action, lost->reason);
	for (size_t i = 0; i < health_n_conditions; i++) {
		const struct health_condition *c = &health_conditions[i];
		enum field f = c->family ? family_find(c->family) : FIELD__COUNT;
		if (f != FIELD__COUNT && sample_has(sample, f) && health_condition_holds(c, sample_get(sample, f)))
			consider(ret, c->action, c->reason);
	}
	for (size_t i = 0; i < n; i++) {
		struct health_ruling r;
		if (xids[i].last_wall_ms == 0)
			continue;
		health_policy_rule(p, xids[i].code, xids[i].count, wall_ms - xids[i].last_wall_ms, &r);
		consider(ret, r.action, r.reason);
	}
}

void health_policy_init(struct health_policy *p)
{
	memset(p, 0, sizeof *p);
	p->n = health_n_xids;
	assert(p->n <= HEALTH_ROWS_MAX);
	memcpy(p->xids, health_xids, p->n * sizeof *p->xids);
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
			print_to(ret_errors, "%s:%d: %s\n", name, number, why);
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

void health_policy_rule(const struct health_policy *p, int32_t code, uint64_t count, int64_t age_ms,
                        struct health_ruling *ret)
{
	*ret = (struct health_ruling){.action = HEALTH_IGNORE, .reason = "XIDOther"};
	if (code != XID_CODE_OTHER)
		snprintf(ret->reason, sizeof ret->reason, "XID%" PRId32, code);
	for (size_t i = 0; i < p->n && !ret->row; i++)
		ret->row = p->xids[i].code == code ? &p->xids[i] : NULL;
	if (count > 0 && age_ms <= p->since_ms)
		ret->action = !ret->row                     ? p->other_action
		              : count < ret->row->min_count ? HEALTH_WATCH
		                                            : ret->row->action;
}
