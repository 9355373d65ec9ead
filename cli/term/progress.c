// SPDX-License-Identifier: Apache-2.0
#include "cli/term/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"

#define BAR_CELLS      30
#define DETAIL_BYTES   32
#define LINE_BYTES_MAX 4096

void progress_line(const char *fmt, ...)
{
	struct buf text;
	va_list ap;
	buf_init(&text, LINE_BYTES_MAX);
	va_start(ap, fmt);
	print_vto(&text, fmt, ap);
	va_end(ap);
	print_clear_line();
	print_notes(&text);
	buf_done(&text);
}

void progress_show(struct progress *p, size_t done, size_t total, const char *detail)
{
	static const char full[] = "##############################";
	_Static_assert(sizeof full == BAR_CELLS + 1, "one mark per cell");
	if (total == 0 || !isatty(STDERR_FILENO))
		return;
	int64_t now_ms = clock_real_mono_us() / 1000;
	if (p->drawn_ms && now_ms - p->drawn_ms < PROGRESS_REDRAW_MS)
		return;
	p->drawn_ms = now_ms;
	char shown[DETAIL_BYTES];
	text_show(shown, sizeof shown, detail, strlen(detail));
	int cells = (int)(done * BAR_CELLS / total);
	progress_line("%s [%-*.*s] %3zu%% %s", p->what, BAR_CELLS, cells, full, done * 100 / total, shown);
}

void progress_clear(struct progress *p)
{
	if (p->drawn_ms)
		print_clear_line();
	p->drawn_ms = 0;
}
