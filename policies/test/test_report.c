// SPDX-License-Identifier: Apache-2.0
#include "policies/test/test_report.h"

#include "base/base.h"
#include "base/print.h"
#include "policies/explain/explain.h"
#include "policies/test/scenario.h"

#define LINE_BYTES (2 * RENDER_SENTENCE_BYTES)

void test_report_coloured(struct buf *out, const struct test_style *style, const char *colour, const char *text)
{
	buf_printf(out, "%s%s%s", style->colour ? colour : "", text, style->colour ? "\033[0m" : "");
}

static void put_diff(struct buf *out, const struct test_style *style, const char *file,
                     const struct scenario_finding *f, const char *at)
{
	print_to(out, "  --- expected  %s:%d\n  +++ decided   at %s\n", file, f->line, at);
	for (size_t i = 0; i < f->n_fields; i++) {
		const struct scenario_field *x = &f->fields[i];
		char line[LINE_BYTES], clean[LINE_BYTES];
		for (int side = x->equal ? 1 : 0; side < 2; side++) {
			text_show(clean, sizeof clean, side ? x->actual : x->expected,
			          strlen(side ? x->actual : x->expected));
			snprintf(line, sizeof line, "  %c%s: %s", x->equal ? ' ' : side ? '+' : '-', x->name, clean);
			if (x->equal)
				buf_puts(out, line);
			else
				test_report_coloured(out, style, side ? TEST_GREEN : TEST_RED, line);
			buf_putc(out, '\n');
		}
	}
}

static void put_sentence(struct buf *out, const char *file, const struct scenario_finding *f, const char *at)
{
	const char *separator = "";
	print_to(out, "  %s:%d: at %s: ", file, f->line, at);
	for (size_t i = 0; i < f->n_fields; i++) {
		const struct scenario_field *x = &f->fields[i];
		if (x->equal)
			continue;
		print_to(out, "%sexpected %s %s, got %s", separator, x->name, x->expected, x->actual);
		separator = "; ";
	}
	buf_putc(out, '\n');
}

void test_report_findings(struct buf *out, const struct test_style *style, const char *file,
                          const struct scenario_result *result)
{
	for (size_t i = 0; i < result->n; i++) {
		const struct scenario_finding *f = &result->findings[i];
		char at[NUM_TEXT_BYTES];
		num_format_duration_ms(at, f->at_ms);
		if (f->law)
			print_to(out, "  %s:%d: at %s: %s: %s\n", file, f->line, at, f->law, f->why);
		else if (style->diff)
			put_diff(out, style, file, f, at);
		else
			put_sentence(out, file, f, at);
		buf_puts(out, f->trace);
	}
	if (result->dropped)
		print_to(out, "  and %zu more\n", result->dropped);
}
