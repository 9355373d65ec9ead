// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "exporter/cmd_view.h"
#include "exporter/mock_fetch.h"
#include "exporter/render.h"
#include "exporter/sampler.h"
#include "exporter/self_metrics.h"

#define POLL_MS 20
// The first round has nothing to compare with: what is a rate or a share of time comes with the second.
#define ROUNDS 2

void cmd_default_url(char *out, size_t size, const char *listen)
{
	const char *colon = strrchr(listen, ':');
	int host = colon ? (int)(colon - listen) : 0;
	bool any = host == 0 || strncmp(listen, "0.0.0.0:", 8) == 0 || strncmp(listen, "[::]:", 5) == 0;
	snprintf(out, size, "http://%.*s:%s/metrics", any ? 9 : host, any ? "127.0.0.1" : listen,
	         colon ? colon + 1 : "9400");
}

// ---- pages ----

struct fetching {
	struct event_base *loop;
	struct buf *out;
	struct err *e;
	int rc;
};

static void on_fetched(void *arg, int status, const char *body, size_t len, const struct err *error)
{
	struct fetching *f = arg;
	if (error)
		*f->e = *error;
	else if (status != 200)
		err_set_code(f->e, err_kind_of_http_status(status), status, "status %d", status);
	else
		f->rc = buf_put(f->out, body, len) < 0
		                ? err_set(f->e, ERR_LIMIT, "the page passes the ceiling of %zu bytes", f->out->max)
		                : 0;
	event_base_loopbreak(f->loop);
}

static int fetch(struct cmd *c, struct buf *out, struct err *e)
{
	struct fetching f = {.loop = c->loop, .out = out, .e = e, .rc = -1};
	struct mock_fetch *m = mock_fetch_new(c->loop, c->from, c->options->ca_file, CMD_TIMEOUT_MS, on_fetched, &f, e);
	if (!m)
		return -1;
	if (mock_fetch_start(m, NULL, e) == 0)
		event_base_dispatch(c->loop);
	mock_fetch_free(m);
	return f.rc < 0 ? err_wrap(e, "%s", c->from) : 0;
}

static int read_stdin(struct buf *out, struct err *e)
{
	char chunk[4096];
	size_t n;
	while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0)
		if (buf_put(out, chunk, n) < 0)
			return err_set(e, ERR_LIMIT, "standard input passes the ceiling of %zu bytes", out->max);
	return ferror(stdin) ? err_set(e, ERR_IO, "cannot read standard input") : 0;
}

static void pause_ms(int64_t ms)
{
	const struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};
	nanosleep(&t, NULL);
}

// A sampler of its own runs in its thread: a driver that hangs is waited for, but not for ever.
static int sample(struct cmd *c, struct buf *out, struct err *e)
{
	const struct self_metrics self = {.scrapes = 0};
	struct sampler_status st;
	int64_t until_ms = clock_mono_ms(c->clock) + CMD_TIMEOUT_MS;
	for (;;) {
		sampler_read(c->sampler, NULL, &st);
		if (st.samples >= ROUNDS || (!st.up && st.errors > 0))
			break;
		if (clock_mono_ms(c->clock) >= until_ms)
			return err_set(e, ERR_TIMEOUT, "the driver gives no sample within %d ms", CMD_TIMEOUT_MS);
		event_base_loop(c->loop, EVLOOP_NONBLOCK); // what the mock asks of others
		pause_ms(POLL_MS);
	}
	if (!st.up)
		return err_set(e, ERR_NOT_FOUND, "%s", st.message);
	sampler_read(c->sampler, out, &st);
	self_metrics_render_state(out, &st);
	self_metrics_render_runtime(out, &self, &st);
	return out->failed ? err_set(e, ERR_LIMIT, "the page passes the ceiling of %zu bytes", out->max) : 0;
}

struct view *cmd_read(struct cmd *c, struct buf *out, struct err *e)
{
	int rc;
	buf_reset(out);
	if (c->sampler)
		rc = sample(c, out, e);
	else if (strcmp(c->from, "-") == 0)
		rc = read_stdin(out, e);
	else if (strstr(c->from, "://"))
		rc = fetch(c, out, e);
	else
		rc = buf_read_file(out, c->from, e);
	if (rc < 0)
		return NULL;
	struct view *v = view_new(buf_str(out), out->len, e);
	if (!v && c->from)
		err_wrap(e, "%s", c->from);
	return v;
}

// ---- running ----

static int print(const struct buf *out, struct err *e)
{
	if (out->failed)
		return err_set(e, ERR_LIMIT, "the output passes the ceiling of %zu bytes", out->max);
	if (fwrite(buf_str(out), 1, out->len, stdout) != out->len || fflush(stdout) != 0)
		return err_set(e, ERR_IO, "cannot write to standard output");
	return 0;
}

static int exit_code_of(const struct err *e)
{
	return err_kind_info(e->kind)->exit_code;
}

static int run_check(struct cmd *c, struct view *v, struct buf *page, struct buf *out, struct err *e)
{
	struct err why = {.kind = ERR_NONE};
	if (!v)
		v = cmd_read(c, page, &why);
	int code = cmd_check(c, v, &why, out, e);
	view_free(v);
	if (e->kind == ERR_NONE && print(out, e) < 0)
		code = CMD_CHECK_UNKNOWN;
	return code;
}

static int run_table(struct cmd *c, struct view *v, struct buf *page, struct buf *out, struct err *e)
{
	int64_t watch_ms = c->options->watch_ms;
	bool clear = watch_ms && isatty(STDOUT_FILENO);
	for (int64_t i = 0; c->options->count == 0 || i < c->options->count; i++) {
		if (i > 0)
			pause_ms(watch_ms);
		if (!v && !(v = cmd_read(c, page, e)) && (!watch_ms || !err_kind_info(e->kind)->retryable))
			return exit_code_of(e);
		buf_reset(out);
		if (clear)
			buf_puts(out, "\033[H\033[2J");
		if (v)
			cmd_table(c->options, v, out);
		else
			buf_printf(out, "%s\n", e->msg); // a live table waits for the exporter to come back
		view_free(v);
		v = NULL;
		if (print(out, e) < 0)
			return exit_code_of(e);
		err_clear(e);
		if (!watch_ms)
			break;
	}
	return 0;
}

int cmd_run(struct cmd *c, struct view *first, struct err *e)
{
	struct buf page, out;
	buf_init(&page, CMD_PAGE_BYTES_MAX);
	buf_init(&out, CMD_PAGE_BYTES_MAX);
	int code = c->options->command == COMMAND_CHECK ? run_check(c, first, &page, &out, e)
	                                                : run_table(c, first, &page, &out, e);
	buf_done(&page);
	buf_done(&out);
	return code;
}
