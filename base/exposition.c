// SPDX-License-Identifier: Apache-2.0
#include "base/exposition.h"

#include <math.h>

#include "base/base.h"

static const char *const type_names[] = {
        [METRIC_COUNTER] = "counter",
        [METRIC_GAUGE] = "gauge",
        [METRIC_HISTOGRAM] = "histogram",
        [METRIC_UNTYPED] = "untyped",
};
_Static_assert(sizeof type_names / sizeof type_names[0] == METRIC_TYPE__COUNT, "one name per metric type");

const char *metric_type_name(enum metric_type t)
{
	assert(t < METRIC_TYPE__COUNT);
	return type_names[t];
}

static bool is_name(const char *name, bool colon)
{
	for (const char *p = name; *p; p++) {
		bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' || (colon && *p == ':');
		if (!letter && (p == name || *p < '0' || *p > '9'))
			return false;
	}
	return *name != '\0';
}

bool exposition_is_metric_name(const char *name)
{
	return is_name(name, true);
}

bool exposition_is_label_name(const char *name)
{
	return is_name(name, false);
}

// Prometheus refuses a scrape with invalid UTF-8 in it, so bytes that are none are replaced. What it stores is shown on
// terminals and dashboards: unsafe characters become visible.
static void put_escaped(struct buf *b, const char *s, bool quotes)
{
	size_t len = strlen(s), from = 0;
	for (size_t i = 0, n = 1; i < len; i += n, n = 1) {
		if ((s[i] >= ' ' && s[i] <= '~' && s[i] != '\\' && s[i] != '"') || s[i] == '\t')
			continue;
		char shown[TEXT_CHAR_BYTES + 1] = "\\";
		const char *text = shown;
		if (s[i] == '\\')
			text = "\\\\";
		else if (s[i] == '\n')
			text = "\\n";
		else if (s[i] == '"')
			text = quotes ? "\\\"" : "\"";
		else if (utf8_char_len(s + i, len - i) == 0)
			text = UTF8_REPLACEMENT;
		else
			text_show_char(s + i, len - i, shown + 1, &n);
		if (text == shown && shown[1] != '\\')
			continue;
		buf_put(b, s + from, i - from);
		buf_puts(b, text);
		from = i + n;
	}
	buf_put(b, s + from, len - from);
}

void exposition_label_value(struct buf *b, const char *value)
{
	put_escaped(b, value, true);
}

void exposition_family(struct buf *b, const char *name, const char *help, enum metric_type type)
{
	if (!exposition_is_metric_name(name)) {
		b->failed = true;
		return;
	}
	buf_printf(b, "# HELP %s ", name);
	put_escaped(b, help, false);
	buf_printf(b, "\n# TYPE %s %s\n", name, metric_type_name(type));
}

static void put_label(struct buf *b, const char *name, const char *value, bool first)
{
	if (!exposition_is_label_name(name)) {
		b->failed = true;
		return;
	}
	buf_putc(b, first ? '{' : ',');
	buf_puts(b, name);
	buf_puts(b, "=\"");
	put_escaped(b, value, true);
	buf_putc(b, '"');
}

// name, suffix and labels, then le when there is one, and the space before the value.
static void put_series(struct buf *b, const char *name, const char *suffix, const struct exposition_label *labels,
                       size_t n, const char *le)
{
	if (!exposition_is_metric_name(name)) {
		b->failed = true;
		return;
	}
	buf_puts(b, name);
	buf_puts(b, suffix);
	for (size_t i = 0; i < n; i++)
		put_label(b, labels[i].name, labels[i].value, i == 0);
	if (le)
		put_label(b, "le", le, n == 0);
	buf_puts(b, n || le ? "} " : " ");
}

static void put_f64(struct buf *b, double v)
{
	char text[NUM_TEXT_BYTES];
	buf_put(b, text, num_format_f64(text, v));
	buf_putc(b, '\n');
}

void exposition_sample_f64(struct buf *b, const char *name, const struct exposition_label *labels, size_t n, double v)
{
	put_series(b, name, "", labels, n, NULL);
	put_f64(b, v);
}

void exposition_sample_i64(struct buf *b, const char *name, const struct exposition_label *labels, size_t n, int64_t v)
{
	put_series(b, name, "", labels, n, NULL);
	buf_printf(b, "%lld\n", (long long)v);
}

void exposition_histogram_observe(struct exposition_histogram *h, double value)
{
	assert(h->n <= EXPOSITION_BUCKETS_MAX);
	if (isnan(value))
		return;
	size_t i = 0;
	while (i < h->n && value > h->upper[i])
		i++;
	h->count[i]++;
	h->sum += value;
}

void exposition_sample_histogram(struct buf *b, const char *name, const struct exposition_label *labels, size_t n,
                                 const struct exposition_histogram *h)
{
	assert(h->n <= EXPOSITION_BUCKETS_MAX);
	uint64_t total = 0;
	for (size_t i = 0; i <= h->n; i++) {
		char le[NUM_TEXT_BYTES];
		num_format_f64(le, i < h->n ? h->upper[i] : INFINITY);
		total += h->count[i];
		put_series(b, name, "_bucket", labels, n, le);
		buf_printf(b, "%llu\n", (unsigned long long)total);
	}
	put_series(b, name, "_sum", labels, n, NULL);
	put_f64(b, h->sum);
	put_series(b, name, "_count", labels, n, NULL);
	buf_printf(b, "%llu\n", (unsigned long long)total);
}
