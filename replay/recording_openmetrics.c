// SPDX-License-Identifier: Apache-2.0
// Reads a recording from OpenMetrics text with timestamps, and chooses the reader of a file.
#include <math.h>

#include "base/base.h"
#include "base/csv_text.h"
#include "replay/recording.h"

#define SHOWN_BYTES    80
#define EOF_LINE       "# EOF"        // the last line
#define TIME_MAX_S     253402300799.0 // 9999-12-31T23:59:59Z
#define SAMPLES_MAX    4000000        // samples in all series together
#define LABELS_MAX     32             // labels of one series
#define LOOKBACK_STEPS 2              // a cell of a grid has a sample that is at most this many steps old

struct sample {
	int64_t time_ms;
	double value;
};

struct series {
	struct sample *samples; // in the order of time; heap
	size_t n, cap;
};

struct span {
	const char *at;
	size_t len;
};

struct label {
	struct span name, value; // the value with its quotes
};

struct parser {
	struct recording *r;
	struct series series[RECORDING_COLUMNS_MAX]; // one per column
	size_t n_samples;
	size_t line; // its number
	size_t last; // column of the line before
	bool ended;
};

// ---- lines ----

static bool is_text(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static void show(char out[SHOWN_BYTES], struct span s)
{
	text_show(out, SHOWN_BYTES, s.at, s.len);
}

static bool is_name_char(char c, bool is_first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
	       (!is_first && c >= '0' && c <= '9');
}

static struct span take_name(struct span *rest)
{
	struct span name = {rest->at, 0};
	while (name.len < rest->len && is_name_char(name.at[name.len], name.len == 0))
		name.len++;
	rest->at += name.len;
	rest->len -= name.len;
	return name;
}

static bool take_char(struct span *rest, char c)
{
	if (rest->len == 0 || rest->at[0] != c)
		return false;
	rest->at++;
	rest->len--;
	return true;
}

// The word up to the next space, and the spaces in front of it.
static struct span take_word(struct span *rest)
{
	while (take_char(rest, ' ') || take_char(rest, '\t')) {
	}
	struct span word = {rest->at, 0};
	while (word.len < rest->len && word.at[word.len] != ' ' && word.at[word.len] != '\t')
		word.len++;
	rest->at += word.len;
	rest->len -= word.len;
	return word;
}

// ---- series ----

static bool take_value(struct span *rest, struct span *ret)
{
	*ret = (struct span){rest->at, 0};
	if (!take_char(rest, '"'))
		return false;
	while (rest->len > 0 && rest->at[0] != '"') {
		size_t n = rest->at[0] == '\\' ? 2 : 1;
		if (n > rest->len)
			return false;
		rest->at += n;
		rest->len -= n;
	}
	if (!take_char(rest, '"'))
		return false;
	ret->len = (size_t)(rest->at - ret->at);
	return true;
}

static int compare_spans(struct span a, struct span b)
{
	int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int take_labels(struct span *rest, struct label labels[LABELS_MAX], size_t *ret_n, struct err *e)
{
	*ret_n = 0;
	while (!take_char(rest, '}')) {
		struct label l;
		if (*ret_n > 0 && !take_char(rest, ','))
			return err_set(e, ERR_INPUT, "expected a comma or } after a label");
		if (*ret_n > 0 && take_char(rest, '}'))
			return 0;
		if (*ret_n == LABELS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d labels", LABELS_MAX);
		l.name = take_name(rest);
		if (l.name.len == 0 || !take_char(rest, '=') || !take_value(rest, &l.value))
			return err_set(e, ERR_INPUT, "expected labels such as {pod=\"a\",namespace=\"b\"}");
		size_t i = (*ret_n)++;
		for (; i > 0 && compare_spans(labels[i - 1].name, l.name) > 0; i--)
			labels[i] = labels[i - 1];
		labels[i] = l;
	}
	return 0;
}

static bool put(char *out, size_t *len, const char *text, size_t n)
{
	if (*len + n >= RECORDING_NAME_BYTES)
		return false;
	memcpy(out + *len, text, n);
	*len += n;
	return true;
}

// Writes NAME{LABELS} with the labels in the order of their names; NAME without labels.
static int write_name(struct span metric, const struct label *labels, size_t n, char out[RECORDING_NAME_BYTES],
                      struct err *e)
{
	size_t len = 0;
	bool fits = put(out, &len, metric.at, metric.len) && (n == 0 || put(out, &len, "{", 1));
	for (size_t i = 0; i < n; i++)
		fits = fits && (i == 0 || put(out, &len, ",", 1)) &&
		       put(out, &len, labels[i].name.at, labels[i].name.len) && put(out, &len, "=", 1) &&
		       put(out, &len, labels[i].value.at, labels[i].value.len);
	fits = fits && (n == 0 || put(out, &len, "}", 1));
	if (!fits)
		return err_set(e, ERR_LIMIT, "the series has a name of more than %d bytes: drop labels",
		               RECORDING_NAME_BYTES - 1);
	out[len] = '\0';
	return 0;
}

// Returns the column of the series, which is added if it is new, or -1 and *e.
static int column_of(struct parser *p, const char *name, struct err *e)
{
	struct recording *r = p->r;
	for (size_t i = 0; i < r->n_columns; i++) {
		size_t column = (p->last + i) % r->n_columns; // files are mostly in the order of series
		if (strcmp(r->names[column], name) == 0) {
			p->last = column;
			return (int)column;
		}
	}
	if (r->n_columns == RECORDING_COLUMNS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d series: keep those that the policy needs",
		               RECORDING_COLUMNS_MAX);
	memcpy(r->names[r->n_columns], name, strlen(name) + 1);
	p->last = r->n_columns++;
	return (int)p->last;
}

static int add_sample(struct series *series, struct sample s, struct parser *p, struct err *e)
{
	if (series->n > 0 && s.time_ms <= series->samples[series->n - 1].time_ms)
		return s.time_ms == series->samples[series->n - 1].time_ms
		               ? err_set(e, ERR_INPUT,
		                         "the series already has a sample at this time: remove one of the two")
		               : err_set(e, ERR_INPUT, "the time of the series goes back by %.3f s: sort its samples",
		                         (double)(series->samples[series->n - 1].time_ms - s.time_ms) / 1000);
	if (p->n_samples == SAMPLES_MAX)
		return err_set(e, ERR_LIMIT,
		               "more than %d samples: use a longer step, a shorter period or fewer series",
		               SAMPLES_MAX);
	if (alloc_reserve(&series->samples, series->n, &series->cap, sizeof *series->samples, 256) < 0)
		return err_no_memory(e);
	series->samples[series->n++] = s;
	p->n_samples++;
	return 0;
}

static int read_sample(struct span rest, struct sample *ret, struct err *e)
{
	char shown[SHOWN_BYTES];
	double s;
	struct span value = take_word(&rest), time = take_word(&rest);
	if (num_parse_sample(value.at, value.len, &ret->value, NULL) < 0 || isinf(ret->value)) {
		show(shown, value);
		return err_set(e, ERR_INPUT, "expected a finite number, or NaN for missing data, got \"%s\"", shown);
	}
	if (time.len == 0 || time.at[0] == '#')
		return err_set(e, ERR_INPUT,
		               "the sample has no timestamp: a recording needs the time of each sample, in seconds");
	if (num_parse_f64(time.at, time.len, &s, NULL) < 0 || !(s >= 0 && s <= TIME_MAX_S)) {
		show(shown, time);
		return err_set(e, ERR_INPUT, "expected a time in seconds since 1970, got \"%s\"", shown);
	}
	ret->time_ms = llround(s * 1000);
	struct span more = take_word(&rest);
	if (more.len > 0 && more.at[0] != '#') { // an exemplar
		show(shown, more);
		return err_set(e, ERR_INPUT, "expected the end of the line after the time, got \"%s\"", shown);
	}
	return 0;
}

static int read_line(struct parser *p, struct span line, struct err *e)
{
	struct label labels[LABELS_MAX];
	char name[RECORDING_NAME_BYTES];
	struct sample sample;
	size_t n_labels = 0;
	if (p->ended)
		return err_set(e, ERR_INPUT, "expected nothing after \"%s\"", EOF_LINE);
	if (line.len > 0 && line.at[0] == '#') {
		p->ended = is_text(line, EOF_LINE);
		return 0;
	}
	struct span metric = take_name(&line);
	if (metric.len == 0) {
		char shown[SHOWN_BYTES];
		show(shown, line);
		return err_set(e, ERR_INPUT, "expected a sample such as queue{pod=\"a\"} 12 1767225600, got \"%s\"",
		               shown);
	}
	if (take_char(&line, '{') && take_labels(&line, labels, &n_labels, e) < 0)
		return -1;
	if (write_name(metric, labels, n_labels, name, e) < 0 || read_sample(line, &sample, e) < 0)
		return -1;
	int column = column_of(p, name, e);
	return column < 0 ? -1 : add_sample(&p->series[column], sample, p, e);
}

// ---- rows ----

// Fills rows of `times`: each cell is the newest sample of its series that is at most lookback_ms old.
static void fill(struct parser *p, int64_t lookback_ms)
{
	struct recording *r = p->r;
	for (size_t column = 0; column < r->n_columns; column++) {
		const struct series *s = &p->series[column];
		size_t next = 0;
		for (size_t row = 0; row < r->n_rows; row++) {
			while (next < s->n && s->samples[next].time_ms <= r->time_ms[row])
				next++;
			bool has_data = next > 0 && r->time_ms[row] - s->samples[next - 1].time_ms <= lookback_ms;
			r->values[row * r->n_columns + column] = has_data ? s->samples[next - 1].value : NAN;
		}
	}
}

// Returns the series with the most samples.
static const struct series *densest(const struct parser *p)
{
	const struct series *best = &p->series[0];
	for (size_t i = 1; i < p->r->n_columns; i++)
		if (p->series[i].n > best->n)
			best = &p->series[i];
	return best;
}

// Returns whether every time of every series is a time of `all`.
static bool has_all_times(const struct parser *p, const struct series *all)
{
	for (size_t column = 0; column < p->r->n_columns; column++) {
		const struct series *s = &p->series[column];
		size_t at = 0;
		for (size_t i = 0; i < s->n; i++) {
			while (at < all->n && all->samples[at].time_ms < s->samples[i].time_ms)
				at++;
			if (at == all->n || all->samples[at].time_ms != s->samples[i].time_ms)
				return false;
		}
	}
	return true;
}

static int make_rows(struct parser *p, struct err *e)
{
	struct recording *r = p->r;
	const struct series *all = densest(p);
	if (all->n < 2)
		return err_set(e, ERR_INPUT,
		               "no series with two samples: expected at least two, since a step needs two times");
	int64_t first = INT64_MAX, last = 0;
	for (size_t i = 0; i < r->n_columns; i++) {
		const struct series *s = &p->series[i];
		first = s->samples[0].time_ms < first ? s->samples[0].time_ms : first;
		last = s->samples[s->n - 1].time_ms > last ? s->samples[s->n - 1].time_ms : last;
	}
	if (recording_check_span(last - first, e) < 0)
		return -1;
	int64_t *times = calloc(all->n, sizeof *times);
	if (!times)
		return err_no_memory(e);
	for (size_t i = 0; i < all->n; i++)
		times[i] = all->samples[i].time_ms;
	r->step_ms = recording_usual_step_ms(times, all->n);
	free(times);
	bool exact = has_all_times(p, all);
	int64_t n = exact ? (int64_t)all->n : (last - first) / r->step_ms + 1;
	if (n > RECORDING_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "%lld rows, the ceiling is %d: use a longer step or a shorter period",
		               (long long)n, RECORDING_ROWS_MAX);
	if (recording_alloc(r, (size_t)n, e) < 0)
		return -1;
	for (size_t i = 0; i < (size_t)n; i++)
		r->time_ms[i] = exact ? all->samples[i].time_ms : first + (int64_t)i * r->step_ms;
	r->n_rows = (size_t)n;
	fill(p, exact ? 0 : LOOKBACK_STEPS * r->step_ms);
	return r->n_rows < 2 ? err_set(e, ERR_INPUT, "one row of data: expected at least two") : 0;
}

static int read_all(struct parser *p, const char *text, size_t len, struct err *e)
{
	size_t next;
	for (size_t at = 0; at < len; at += next) {
		p->line++;
		struct csv_line line = csv_line_at(text + at, len - at, &next);
		if (read_line(p, (struct span){line.at, (size_t)(line.end - line.at)}, e) < 0)
			return -1;
	}
	if (!p->ended)
		return err_set(e, ERR_INPUT, "expected \"%s\" as the last line: the file is incomplete", EOF_LINE);
	if (p->r->n_columns == 0)
		return err_set(e, ERR_INPUT, "the file has no samples");
	return make_rows(p, e);
}

// Reads OpenMetrics text with timestamps, as `promtool tsdb dump-openmetrics` writes it, into the zeroed *ret: one
// column per series, called NAME{LABELS} with the labels in the order of their names. When one series has a sample at
// every time of the file, the rows are these times. Otherwise the rows are one usual step of the densest series apart,
// and a cell has the newest sample that is at most two steps old. Returns 0, or -1 and *e ("FILE:LINE: ..."): ERR_INPUT
// (no "# EOF", a sample without a timestamp, a value that is infinite or not a number, a time that does not grow within
// its series, fewer than two times), ERR_LIMIT, ERR_INTERNAL.
static int parse_openmetrics(const char *text, size_t len, const char *file, struct recording *ret, struct err *e)
{
	struct parser *p = calloc(1, sizeof *p);
	if (!p)
		return err_no_memory(e);
	p->r = ret;
	int rc = read_all(p, text, len, e) < 0 ? err_wrap(e, "%s:%zu", file, p->line) : 0;
	for (size_t i = 0; i < RECORDING_COLUMNS_MAX; i++)
		free(p->series[i].samples);
	free(p);
	return rc;
}

// ---- the format of a file ----

static bool is_openmetrics(const char *text, size_t len)
{
	if (len > 0 && text[0] == '#')
		return true;
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	size_t n = strlen(EOF_LINE);
	return len > n && text[len - n - 1] == '\n' && memcmp(text + len - n, EOF_LINE, n) == 0;
}

int recording_parse(const char *text, size_t len, const char *file, struct recording *ret, struct err *e)
{
	memset(ret, 0, sizeof *ret);
	if (is_openmetrics(text, len)) {
		ret->format = RECORDING_OPENMETRICS;
		return parse_openmetrics(text, len, file, ret, e);
	}
	return recording_csv_parse(text, len, file, ret, e);
}
