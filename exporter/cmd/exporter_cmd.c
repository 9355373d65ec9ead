// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd/exporter_cmd.h"

#include <event2/event.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/print.h"
#include "exporter/http_call.h"

#define POLL_MS 20
// Rates and shares of time need a previous round.
#define ROUNDS 2

void exporter_cmd_default_url(char *out, size_t size, const char *listen)
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
		                ? err_set(f->e, ERR_LIMIT, "the page exceeds the ceiling of %zu bytes", f->out->max)
		                : 0;
	event_base_loopbreak(f->loop);
}

static int fetch(struct exporter_cmd *c, struct buf *out, struct err *e)
{
	struct fetching f = {.loop = c->loop, .out = out, .e = e, .rc = -1};
	struct http_call *m =
	        http_call_new(c->loop, c->from, c->options->ca_file, EXPORTER_CMD_TIMEOUT_MS, on_fetched, &f, e);
	if (!m)
		return -1;
	if (http_call_start(m, NULL, e) == 0)
		event_base_dispatch(c->loop);
	http_call_free(m);
	return f.rc < 0 ? err_wrap(e, "%s", c->from) : 0;
}

// Reads from the sampler, which runs in its own thread: a driver that hangs delays the command only up to the
// timeout.
static int sample(struct exporter_cmd *c, struct buf *out, struct err *e)
{
	const struct self_metrics self = {.scrapes = 0};
	struct sampler_status st;
	int64_t until_ms = clock_mono_ms(c->clock) + EXPORTER_CMD_TIMEOUT_MS;
	for (;;) {
		sampler_read(c->sampler, NULL, &st);
		if (st.samples >= ROUNDS || (!st.up && st.errors > 0))
			break;
		if (clock_mono_ms(c->clock) >= until_ms)
			return err_set(e, ERR_TIMEOUT, "the driver provided no sample within %d ms",
			               EXPORTER_CMD_TIMEOUT_MS);
		event_base_loop(c->loop, EVLOOP_NONBLOCK); // requests of the mock
		clock_pause_ms(POLL_MS);
	}
	if (!st.up)
		return err_set(e, ERR_NOT_FOUND, "%s", st.message);
	sampler_read(c->sampler, out, &st);
	self_metrics_render(out, &self, &st, NULL, NULL, NULL);
	return out->failed ? err_set(e, ERR_LIMIT, "the page exceeds the ceiling of %zu bytes", out->max) : 0;
}

struct page_view *exporter_cmd_read(struct exporter_cmd *c, struct buf *out, struct err *e)
{
	int rc;
	buf_reset(out);
	if (c->sampler)
		rc = sample(c, out, e);
	else if (strstr(c->from, "://"))
		rc = fetch(c, out, e);
	else
		rc = buf_read_argument(out, c->from, e);
	if (rc < 0)
		return NULL;
	struct page_view *v = page_view_new(buf_str(out), out->len, e);
	if (!v && c->from)
		err_wrap(e, "%s", c->from);
	return v;
}

// ---- running ----

static int print(const struct buf *out, struct err *e)
{
	if (out->failed)
		return err_set(e, ERR_LIMIT, "the output exceeds the ceiling of %zu bytes", out->max);
	if (print_out(out) < 0)
		return err_set(e, ERR_IO, "cannot write to standard output");
	return 0;
}

static int run_check(struct exporter_cmd *c, struct page_view *v, struct buf *page, struct buf *out, struct err *e)
{
	struct err why = {.kind = ERR_NONE};
	if (!v)
		v = exporter_cmd_read(c, page, &why);
	int code = health_check_run(c->options, v, &why, clock_wall_ms(c->clock), out, c->ret_errors, e);
	page_view_free(v);
	if (e->kind == ERR_NONE && print(out, e) < 0)
		code = HEALTH_CHECK_UNKNOWN;
	return code;
}

static int run_table(struct exporter_cmd *c, struct page_view *v, struct buf *page, struct buf *out, struct err *e)
{
	int64_t watch_ms = c->options->watch_ms;
	bool is_table = c->options->output <= OUTPUT_WIDE, had_head = false;
	bool clear = watch_ms && is_table && isatty(STDOUT_FILENO);
	for (int64_t i = 0; c->options->count == 0 || i < c->options->count; i++) {
		if (i > 0)
			clock_pause_ms(watch_ms);
		if (!v && !(v = exporter_cmd_read(c, page, e)) && (!watch_ms || !err_kind_info(e->kind)->retryable))
			return err_kind_info(e->kind)->exit_code;
		buf_reset(out);
		if (v)
			gpu_table_put(c->options, v, clock_wall_ms(c->clock), !had_head, out);
		else if (is_table)
			print_to(out, "%s\n", e->msg); // a live table waits until the exporter is back
		else
			print_error("gpuscale-exporter top: %s\n", e->msg); // kept out of the document
		had_head |= v != NULL;
		page_view_free(v);
		v = NULL;
		if (clear)
			print_clear_screen();
		if (print(out, e) < 0)
			return err_kind_info(e->kind)->exit_code;
		err_clear(e);
		if (!watch_ms)
			break;
	}
	return 0;
}

int exporter_cmd_run(struct exporter_cmd *c, struct page_view *first, struct err *e)
{
	struct buf page, out;
	buf_init(&page, EXPORTER_CMD_PAGE_BYTES_MAX);
	buf_init(&out, EXPORTER_CMD_PAGE_BYTES_MAX);
	int code = c->options->command == COMMAND_CHECK ? run_check(c, first, &page, &out, e)
	                                                : run_table(c, first, &page, &out, e);
	buf_done(&page);
	buf_done(&out);
	return code;
}
