// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/metrics_table.h"

#include <assert.h>

#include "base/buf.h"

#define L(...)                                                                                                         \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
#define NONE L(0)
#define ROW_OF(id, name_, type_, unit_, labels_, help_)                                                                \
	[FAMILY_##id] = {.name = name_, .type = METRIC_##type_, .unit = unit_, .labels = labels_, .help = help_},

static const struct metric_family families[FAMILY__COUNT] = {METRIC_FAMILIES(ROW_OF)};

const struct metric_family *metric_family_of(enum metric_family_id id)
{
	return &families[id];
}

// Returns the number of labels.
static size_t count_labels(enum metric_family_id id)
{
	size_t n = 0;
	while (n < FAMILY_LABELS_MAX && families[id].labels[n])
		n++;
	return n;
}

void metric_family_begin(struct buf *out, enum metric_family_id id)
{
	exposition_family(out, families[id].name, families[id].help, families[id].type);
}

static size_t take_labels(enum metric_family_id id, const char *const *values, struct exposition_label *ret_labels)
{
	size_t n = count_labels(id);
	assert(n == 0 || values);
	for (size_t i = 0; i < n; i++)
		ret_labels[i] = (struct exposition_label){families[id].labels[i], values[i]};
	return n;
}

void metric_family_f64(struct buf *out, enum metric_family_id id, const char *const *values, double v)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_f64(out, families[id].name, labels, take_labels(id, values, labels), v);
}

void metric_family_i64(struct buf *out, enum metric_family_id id, const char *const *values, int64_t v)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_i64(out, families[id].name, labels, take_labels(id, values, labels), v);
}

void metric_family_histogram(struct buf *out, enum metric_family_id id, const char *const *values,
                             const struct exposition_histogram *h)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_histogram(out, families[id].name, labels, take_labels(id, values, labels), h);
}

void metric_family_single(struct buf *out, enum metric_family_id id, double v)
{
	assert(count_labels(id) == 0);
	metric_family_begin(out, id);
	metric_family_f64(out, id, NULL, v);
}

void metric_family_label_text(struct buf *out, enum metric_family_id id, const char *const *values, size_t n)
{
	assert(n <= count_labels(id));
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(out, ',');
		buf_puts(out, families[id].labels[i]);
		buf_puts(out, "=\"");
		exposition_label_value(out, values[i]);
		buf_putc(out, '"');
	}
}

void metric_family_page(struct buf *out)
{
	buf_puts(out, "| name | type | labels | unit | what |\n|---|---|---|---|---|\n");
	for (int id = 0; id < FAMILY__COUNT; id++) {
		const struct metric_family *f = &families[id];
		buf_printf(out, "| `%s` | %s | ", f->name, metric_type_name(f->type));
		size_t n = count_labels((enum metric_family_id)id);
		for (size_t i = 0; i < n; i++)
			buf_printf(out, "%s`%s`", i ? ", " : "", f->labels[i]);
		buf_printf(out, " | %s | %s |\n", f->unit, f->help);
	}
}
