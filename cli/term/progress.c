// SPDX-License-Identifier: Apache-2.0
#include "cli/term/progress.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"

#define BAR_CELLS      30
#define DETAIL_BYTES   32
#define LINE_BYTES_MAX 4096

static void show(struct progress *p, const char *detail)
{
	static const char full[] = "##############################";
	_Static_assert(sizeof full == BAR_CELLS + 1, "one mark per cell");
	int64_t now_ms = clock_real_mono_us() / 1000;
	bool is_tty = isatty(STDERR_FILENO);
	p->started_ms = p->started_ms ? p->started_ms : now_ms;
	int64_t since_ms = p->shown_ms ? p->shown_ms
	                   : is_tty    ? p->started_ms - PROGRESS_REDRAW_MS + p->delay_ms
	                               : p->started_ms;
	if (now_ms - since_ms < (is_tty ? PROGRESS_REDRAW_MS : PROGRESS_LINE_MS))
		return;
	p->shown_ms = now_ms;
	struct buf line = BUF(LINE_BYTES_MAX);
	char shown[DETAIL_BYTES];
	long long seconds = (now_ms - p->started_ms) / 1000;
	size_t percent = p->total ? p->done * 100 / p->total : 0;
	text_show(shown, sizeof shown, detail, strlen(detail));
	if (is_tty && p->total)
		print_to(&line, "%s [%-*.*s] %3zu%% %s", p->what, BAR_CELLS, (int)(p->done * BAR_CELLS / p->total),
		         full, percent, shown);
	else if (is_tty)
		print_to(&line, "%s, %lld s", p->what, seconds);
	else if (p->total)
		print_to(&line, "%s: %zu %% after %lld s\n", p->what, percent, seconds);
	else
		print_to(&line, "%s: not complete after %lld s\n", p->what, seconds);
	if (is_tty)
		print_clear_line();
	print_notes(&line);
	buf_done(&line);
}

void progress_show(struct progress *p, size_t done, size_t total, const char *detail)
{
	p->done = done;
	p->total = total;
	if (total > 0)
		show(p, detail);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	show(arg, "");
}

void progress_watch(struct progress *p, struct event_base *loop)
{
	const struct timeval second = {1, 0};
	p->started_ms = clock_real_mono_us() / 1000;
	p->timer = event_new(loop, -1, EV_PERSIST, on_second, p);
	if (p->timer)
		event_add(p->timer, &second);
}

void progress_clear(struct progress *p)
{
	if (p->shown_ms && isatty(STDERR_FILENO))
		print_clear_line();
	if (p->timer)
		event_free(p->timer);
	*p = (struct progress){.what = p->what, .delay_ms = p->delay_ms};
}
