// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/render_window.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/exposition.h"
#include "base/num.h"
#include "exporter/csv_counters.h"
#include "exporter/device_history.h"

#define NAME_BYTES 96
#define HELP_BYTES 192

static const struct {
	const char *suffix, *help;
	size_t offset; // in struct window
	bool is_mean;
} statistics[] = {{"min", "Least", offsetof(struct window, min), false},
                  {"max", "Greatest", offsetof(struct window, max), false},
                  {"avg", "Mean", offsetof(struct window, avg), true}};

static bool is_chosen(const struct csv_counters *c, enum field f)
{
	for (size_t i = 0; c && i < c->n; i++)
		if (c->rows[i].field == f)
			return true;
	return !c;
}

static void put_family(struct buf *out, enum field f, size_t statistic, const struct label_blocks *blocks,
                       const struct device_history *history)
{
	const struct family *fam = family_of(f);
	char name[NAME_BYTES], help[HELP_BYTES], span[NUM_TEXT_BYTES];
	bool opened = false;
	snprintf(name, sizeof name, "gpuscale_gpu_%s_window_%s", fam->window, statistics[statistic].suffix);
	num_format_duration_ms(span, device_history_window_ms(history));
	snprintf(help, sizeof help, "%s %s over the last %s (%s).", statistics[statistic].help, fam->name, span,
	         fam->unit);
	for (size_t k = 0; k < blocks->n; k++) {
		struct window w;
		if (!device_history_window(history, blocks->device[k], f, &w))
			continue;
		if (!opened)
			exposition_family(out, name, help, METRIC_GAUGE);
		opened = true;
		const double *v = (const double *)(const void *)((const char *)&w + statistics[statistic].offset);
		buf_puts(out, name);
		buf_putc(out, '{');
		buf_put(out, blocks->text + blocks->start[k], blocks->start[k + 1] - blocks->start[k]);
		// The format of the family; a mean of integers is not an integer.
		if (fam->kind == FIELD_INT && !statistics[statistic].is_mean)
			buf_printf(out, "} %.0f\n", *v);
		else
			buf_printf(out, "} %f\n", *v);
	}
}

void render_window_families(struct buf *out, const struct csv_counters *counters, const struct label_blocks *blocks,
                            const struct device_history *history)
{
	if (device_history_window_ms(history) == 0)
		return;
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		if (!family_of(f)->window || !is_chosen(counters, f))
			continue;
		for (size_t k = 0; k < sizeof statistics / sizeof statistics[0]; k++)
			put_family(out, f, k, blocks, history);
	}
}
