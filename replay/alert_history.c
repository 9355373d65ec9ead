// SPDX-License-Identifier: Apache-2.0
// Reads what promtool prints about the expectations of alert_test_file.c: every transition of an alert fails one.
//     expr: "..", time: 6m15s,
//         exp: nil
//         got: {alertname="A", alertstate="firing"} 1E+00, {alertname="B", alertstate="pending"} -1E+00
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "replay/alert_labels.h"
#include "replay/alert_replay.h"

#define LAST_GOT     "{} 4.2E+01" // the answer to the last expectation
#define SHOWN_BYTES  400
#define LABELS_BYTES 16384

// The order in which the transitions of one evaluation are applied: what is pending and fires is one interval.
enum transition { FIRES, PENDING_ENDS, FIRING_ENDS, PENDS, TRANSITION__COUNT };

struct sample {
	struct alert_label alert, severity; // name NULL: absent
	enum transition transition;
	struct buf labels; // the others, as in struct alert_interval
};

struct reader {
	struct alert_replay *r;
	struct sample sample;
	size_t *open; // the intervals that last; heap
	size_t n_open, cap_open;
	int64_t now_ms;
	bool is_whole;
};

void alert_replay_init(struct alert_replay *r)
{
	*r = (struct alert_replay){0};
	arena_init(&r->arena, ALERT_OUTPUT_BYTES_MAX);
}

void alert_replay_done(struct alert_replay *r)
{
	arena_done(&r->arena);
	free(r->intervals);
	free(r->breaches);
	r->intervals = NULL;
	r->breaches = NULL;
}

// ---- one sample ----

static bool is_value(const struct alert_label *l, const char *value)
{
	return strlen(value) == l->value_len && (l->value_len == 0 || memcmp(l->value, value, l->value_len) == 0);
}

static void add_label(struct buf *out, const struct alert_label *l)
{
	buf_puts(out, out->len > 0 ? ", " : "{");
	buf_put(out, l->name, l->name_len);
	buf_puts(out, "=\"");
	buf_put(out, l->value, l->value_len);
	buf_putc(out, '"');
}

// Reads "{..} 1E+00". Returns false where the text has another form; otherwise *at is behind it.
static bool read_sample(struct sample *s, const char **at, const char *end)
{
	struct alert_label l;
	bool fires = false, pends = false;
	const char *p = *at;
	s->alert = s->severity = (struct alert_label){0};
	buf_reset(&s->labels);
	if (p == end || *p++ != '{')
		return false;
	while (alert_labels_next(&p, end, &l)) {
		if (alert_label_is(&l, "alertname"))
			s->alert = l;
		else if (alert_label_is(&l, "severity"))
			s->severity = l;
		else if (alert_label_is(&l, "alertstate")) {
			fires = is_value(&l, "firing");
			pends = is_value(&l, "pending");
		} else if (!alert_label_is(&l, "__name__"))
			add_label(&s->labels, &l);
	}
	if (s->labels.len > 0)
		buf_putc(&s->labels, '}');
	if (!p || !s->alert.name || fires == pends || s->labels.failed || end - p < 2 || *p++ != ' ')
		return false;
	bool is_end = *p == '-';
	s->transition = fires ? (is_end ? FIRING_ENDS : FIRES) : is_end ? PENDING_ENDS : PENDS;
	while (p < end && *p != ',' && *p != '\n')
		p++;
	*at = p;
	return true;
}

// ---- intervals ----

// Returns the position among the intervals that last, or n_open.
static size_t find_open(const struct reader *rd)
{
	const struct sample *s = &rd->sample;
	for (size_t i = 0; i < rd->n_open; i++) {
		const struct alert_interval *x = &rd->r->intervals[rd->open[i]];
		if (is_value(&s->alert, x->alert) && strcmp(x->labels, buf_str(&s->labels)) == 0 &&
		    is_value(&s->severity, x->severity))
			return i;
	}
	return rd->n_open;
}

static bool grow(void **items, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return true;
	size_t wanted = *cap ? 2 * *cap : 64;
	void *grown = realloc(*items, wanted * size);
	if (!grown)
		return false;
	*items = grown;
	*cap = wanted;
	return true;
}

static int open_interval(struct reader *rd, bool fires, struct err *e)
{
	struct alert_replay *r = rd->r;
	const struct sample *s = &rd->sample;
	if (r->n_intervals == ALERT_INTERVALS_MAX)
		return err_set(e, ERR_LIMIT, "the alerts were active more than %d times", ALERT_INTERVALS_MAX);
	struct alert_interval x = {
	        .alert = arena_strndup(&r->arena, s->alert.value, s->alert.value_len),
	        .severity = s->severity.name ? arena_strndup(&r->arena, s->severity.value, s->severity.value_len) : "",
	        .labels = arena_strdup(&r->arena, buf_str(&s->labels)),
	        .pending_ms = fires ? ALERT_NEVER : rd->now_ms,
	        .firing_ms = fires ? rd->now_ms : ALERT_NEVER,
	        .resolved_ms = ALERT_NEVER};
	if (!x.alert || !x.severity || !x.labels ||
	    !grow((void **)&r->intervals, r->n_intervals, &r->cap_intervals, sizeof x) ||
	    !grow((void **)&rd->open, rd->n_open, &rd->cap_open, sizeof *rd->open))
		return err_set(e, ERR_INTERNAL, "out of memory");
	rd->open[rd->n_open++] = r->n_intervals;
	r->intervals[r->n_intervals++] = x;
	return 0;
}

static int apply(struct reader *rd, struct err *e)
{
	size_t i = find_open(rd);
	enum transition t = rd->sample.transition;
	struct alert_interval *x = i < rd->n_open ? &rd->r->intervals[rd->open[i]] : NULL;
	if (t == FIRES && x) {
		x->firing_ms = rd->now_ms;
		return 0;
	}
	if (t == FIRES || t == PENDS)
		return x ? 0 : open_interval(rd, t == FIRES, e);
	if (x && (t == FIRING_ENDS) == (x->firing_ms != ALERT_NEVER)) {
		x->resolved_ms = rd->now_ms;
		rd->open[i] = rd->open[--rd->n_open];
	}
	return 0;
}

// ---- lines ----

static bool starts_with(const char *at, const char *end, const char *text)
{
	size_t n = strlen(text);
	return (size_t)(end - at) >= n && memcmp(at, text, n) == 0;
}

// Of "expr: "..", time: 6m15s,".
static bool read_time(struct reader *rd, const char *at, const char *end)
{
	static const char mark[] = "\", time: ";
	int64_t ms;
	for (const char *p = end; p > at; p--) {
		if (!starts_with(p - 1, end, mark))
			continue;
		const char *from = p - 1 + strlen(mark), *comma = memchr(from, ',', (size_t)(end - from));
		if (!comma || num_parse_duration_ms(from, (size_t)(comma - from), &ms, NULL) < 0 ||
		    ms > rd->r->end_ms - rd->r->start_ms || rd->r->start_ms + ms < rd->now_ms)
			return false;
		rd->now_ms = rd->r->start_ms + ms;
		return true;
	}
	return false;
}

static int read_transitions(struct reader *rd, const char *from, const char *end, struct err *e)
{
	for (int t = 0; t < TRANSITION__COUNT; t++) {
		const char *at = from;
		while (at < end && read_sample(&rd->sample, &at, end)) {
			if (rd->sample.transition == (enum transition)t && apply(rd, e) < 0)
				return -1;
			while (at < end && (*at == ',' || *at == ' '))
				at++;
		}
		if (at < end)
			return err_set(e, ERR_UNSUPPORTED,
			               "not supported: this version of promtool reports alerts in an unknown format");
	}
	return 0;
}

static int read_line(struct reader *rd, const char *at, const char *end, struct err *e)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (starts_with(at, end, "expr: ")) {
		if (!read_time(rd, at, end))
			return err_set(e, ERR_UNSUPPORTED,
			               "not supported: this version of promtool reports times in an unknown format");
	} else if (starts_with(at, end, "got: ")) {
		at += strlen("got: ");
		if (starts_with(at, end, LAST_GOT))
			rd->is_whole = true;
		else if (!starts_with(at, end, "nil"))
			return read_transitions(rd, at, end, e);
	}
	return 0;
}

// Reports the message that promtool printed instead of results, shortened.
static int refuse(const char *text, size_t len, struct err *e)
{
	char shown[SHOWN_BYTES];
	text_show(shown, sizeof shown, text, len);
	return err_set(e, ERR_INPUT, "promtool did not evaluate the rules: %s", shown[0] ? shown : "no output");
}

int alert_replay_read(struct alert_replay *r, const char *text, size_t len, struct err *e)
{
	struct reader rd = {.r = r, .now_ms = r->start_ms};
	int rc = 0;
	buf_init(&rd.sample.labels, LABELS_BYTES);
	for (size_t at = 0; at < len && rc == 0;) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t end = nl ? (size_t)(nl - text) : len;
		rc = read_line(&rd, text + at, text + end, e);
		at = end + 1;
	}
	if (rc == 0 && !rd.is_whole)
		rc = refuse(text, len, e);
	buf_done(&rd.sample.labels);
	free(rd.open);
	return rc;
}
