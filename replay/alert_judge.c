// SPDX-License-Identifier: Apache-2.0
// Compares the times at which alerts fired with the marks of the recording.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "replay/alert_labels.h"
#include "replay/alert_replay.h"
#include "replay/recording.h"

bool alert_replay_is_mark(const char *name)
{
	return strncmp(name, ALERT_MARK, strlen(ALERT_MARK)) == 0 &&
	       (name[strlen(ALERT_MARK)] == '{' || name[strlen(ALERT_MARK)] == '\0');
}

// The labels of a mark, "{..}".
static const char *labels_of(const char *mark)
{
	return mark + strlen(ALERT_MARK);
}

static const char *alert_of(struct alert_replay *r, const char *mark)
{
	struct alert_label l;
	const char *labels = labels_of(mark);
	if (labels[0] != '{')
		return NULL;
	for (const char *at = labels + 1, *end = labels + strlen(labels); alert_labels_next(&at, end, &l);)
		if (alert_label_is(&l, "alertname"))
			return arena_strndup(&r->arena, l.value, l.value_len);
	return NULL;
}

// ---- breaches ----

static int add_breach(struct alert_replay *r, const struct alert_breach *b, struct err *e)
{
	if (r->n_breaches == ALERT_BREACHES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d marked times", ALERT_BREACHES_MAX);
	if (r->n_breaches == r->cap_breaches) {
		size_t cap = r->cap_breaches ? 2 * r->cap_breaches : 64;
		struct alert_breach *grown = realloc(r->breaches, cap * sizeof *grown);
		if (!grown)
			return err_set(e, ERR_INTERNAL, "out of memory");
		r->breaches = grown;
		r->cap_breaches = cap;
	}
	r->breaches[r->n_breaches++] = *b;
	return 0;
}

static int find_breaches(struct alert_replay *r, const struct recording *recording, int column, const char *alert,
                         struct err *e)
{
	struct alert_breach b = {.alert = alert, .detected_ms = ALERT_NEVER};
	bool is_on = false;
	b.mark = arena_strdup(&r->arena, recording->names[column]);
	if (!b.mark)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t row = 0; row < recording->n_rows; row++) {
		double value = recording_value(recording, row, column);
		if (!(value > 0) == !is_on)
			continue;
		is_on = !is_on;
		if (is_on)
			b.onset_ms = recording->time_ms[row];
		b.end_ms = recording->time_ms[row];
		if (!is_on && add_breach(r, &b, e) < 0)
			return -1;
	}
	b.end_ms = r->end_ms;
	return is_on ? add_breach(r, &b, e) : 0;
}

// ---- matching ----

static bool concerns(const struct alert_breach *b, const struct alert_interval *x)
{
	struct alert_label l;
	const char *labels = labels_of(b->mark);
	if (strcmp(b->alert, x->alert) != 0)
		return false;
	for (const char *at = labels + 1, *end = labels + strlen(labels); alert_labels_next(&at, end, &l);)
		if (!alert_label_is(&l, "alertname") && !alert_labels_have(x->labels, &l))
			return false;
	return true;
}

static void judge(struct alert_replay *r, struct alert_breach *b, struct alert_interval *x)
{
	// An alert reads the end of the breach one evaluation later.
	int64_t end_ms = b->end_ms + r->interval_ms;
	if (x->firing_ms == ALERT_NEVER || x->firing_ms > end_ms)
		return;
	if (x->firing_ms >= b->onset_ms)
		x->is_genuine = true;
	else if (x->resolved_ms != ALERT_NEVER && x->resolved_ms <= b->onset_ms)
		return; // it was over before
	int64_t at_ms = x->firing_ms > b->onset_ms ? x->firing_ms : b->onset_ms;
	if (b->detected_ms == ALERT_NEVER || at_ms < b->detected_ms)
		b->detected_ms = at_ms;
}

static void mark_judged(struct alert_replay *r, const char *alert)
{
	for (size_t i = 0; i < r->n_intervals; i++)
		if (strcmp(r->intervals[i].alert, alert) == 0)
			r->intervals[i].is_judged = true;
}

int alert_replay_judge(struct alert_replay *r, const struct recording *recording, struct err *e)
{
	for (size_t i = 0; i < recording->n_columns; i++) {
		if (!alert_replay_is_mark(recording->names[i]))
			continue;
		const char *alert = alert_of(r, recording->names[i]);
		if (!alert)
			return err_set(e, ERR_INPUT,
			               "column \"%.80s\": expected the alert, as in " ALERT_MARK
			               "{alertname=\"GpuTemperatureCritical\"}",
			               recording->names[i]);
		mark_judged(r, alert);
		if (find_breaches(r, recording, (int)i, alert, e) < 0)
			return -1;
	}
	for (size_t b = 0; b < r->n_breaches; b++)
		for (size_t i = 0; i < r->n_intervals; i++)
			if (concerns(&r->breaches[b], &r->intervals[i]))
				judge(r, &r->breaches[b], &r->intervals[i]);
	return 0;
}

// ---- sums ----

void alert_replay_summarize(const struct alert_replay *r, const char *alert, struct alert_summary *ret)
{
	double sum_s = 0;
	*ret = (struct alert_summary){.mean_detect_s = NAN, .max_detect_s = NAN};
	for (size_t i = 0; i < r->n_intervals; i++) {
		const struct alert_interval *x = &r->intervals[i];
		if (alert && strcmp(x->alert, alert) != 0)
			continue;
		if (x->firing_ms == ALERT_NEVER) {
			ret->n_pending++;
			continue;
		}
		ret->n_firing++;
		ret->n_false += x->is_judged && !x->is_genuine;
		ret->firing_ms += (x->resolved_ms == ALERT_NEVER ? r->end_ms : x->resolved_ms) - x->firing_ms;
	}
	for (size_t i = 0; i < r->n_breaches; i++) {
		const struct alert_breach *b = &r->breaches[i];
		if (alert && strcmp(b->alert, alert) != 0)
			continue;
		ret->n_breaches++;
		if (b->detected_ms == ALERT_NEVER) {
			ret->n_missed++;
			continue;
		}
		double s = (double)(b->detected_ms - b->onset_ms) / 1000;
		sum_s += s;
		ret->max_detect_s = fmax(s, isnan(ret->max_detect_s) ? s : ret->max_detect_s);
	}
	if (ret->n_breaches > ret->n_missed)
		ret->mean_detect_s = sum_s / (double)(ret->n_breaches - ret->n_missed);
}
