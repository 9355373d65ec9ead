// SPDX-License-Identifier: Apache-2.0
// make demo: the closed loop on one machine, every link a real process, watched for a minute: a live table, a summary,
// a picture. Exit 0 when the loop closed: at least one scale-up and one scale-down were seen. The trace uses the
// clock: where the machine was too busy to follow, it is watched for longer, DEMO_LONGER times at most.
#include <argp.h>
#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "test/support/demo/picture.h"
#include "test/support/demo/watch.h"
#include "test/support/demo/world.h"

#define DEMO_SECONDS_MAX 3600
#define DEMO_LONGER      5
#define DEMO_SVG_MAX     (4 * 1024 * 1024)
#define DEMO_FLAP_MS     10000 // a scale that undoes the one before within this time counts as a flap
// As in examples/demo: the policy's marks, and how fast the trace is played.
#define DEMO_HIGH_RATIO 0.8
#define DEMO_LOW_RATIO  0.4

struct demo {
	struct world_options options;
	int seconds;
	double time_scale;
	struct world world;
	struct event_base *loop;
	struct watch *watch;
	struct clock clock;
	int64_t started_ms;
	struct picture_row *rows;
	size_t n;
	int32_t last_spec; // -1: not seen yet
	int64_t last_scale_ms;
	int last_direction;
	int ups, downs, flaps, above, held, errors;
	bool interrupted, failed, longer;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct demo *d = state->input;
	int64_t v;
	struct err e;
	switch (key) {
	case 'b':
		d->options.bin_dir = arg;
		return 0;
	case 'c':
		d->options.config_dir = arg;
		return 0;
	case 'w':
		d->options.work_dir = arg;
		return 0;
	case 'k':
		d->options.kubeconfig = arg;
		return 0;
	case 'x':
		d->options.context = arg;
		return 0;
	case 's':
		if (num_parse_i64(arg, strlen(arg), 5, DEMO_SECONDS_MAX, &v, &e) < 0)
			argp_error(state, "--seconds: %s", e.msg);
		d->seconds = (int)v;
		return 0;
	case 't':
		if (num_parse_f64(arg, strlen(arg), &d->time_scale, &e) < 0)
			argp_error(state, "--time-scale: %s", e.msg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// ---- the table ----

static void bar(char *out, size_t width, double ratio)
{
	size_t full = ratio <= 0 ? 0 : ratio >= 1 ? width : (size_t)(ratio * (double)width + 0.5);
	for (size_t i = 0; i < width; i++)
		out[i] = i < full ? '#' : '.';
	out[width] = '\0';
}

static void print_row(struct demo *d, int64_t t_ms, const struct watch_row *r)
{
	static const char *const colours[] = {"\033[32m", "\033[36m", "\033[33m", ""};
	char gauge[11], replicas[32];
	bar(gauge, 10, r->utilization_ratio);
	snprintf(replicas, sizeof replicas, "%d/%d", r->ready, r->spec);
	int colour = strcmp(r->action, "ScaleUp") == 0     ? 0
	             : strcmp(r->action, "ScaleDown") == 0 ? 1
	             : strcmp(r->action, "Hold") == 0      ? 2
	                                                   : 3;
	bool tty = isatty(STDOUT_FILENO);
	printf("%3d/%ds  %7.0f  %s %3.0f%%  %7s  %7d  %s%-9s  %-21s%s  %s\n", (int)((t_ms + 500) / 1000), d->seconds,
	       r->demand, gauge, 100 * r->utilization_ratio, replicas, r->desired, tty ? colours[colour] : "",
	       r->action, r->reason, tty && colours[colour][0] ? "\033[0m" : "", r->message);
	fflush(stdout);
}

static void count_scale(struct demo *d, int64_t t_ms, int32_t spec)
{
	int direction = d->last_spec < 0 || spec == d->last_spec ? 0 : spec > d->last_spec ? 1 : -1;
	d->last_spec = spec;
	if (direction == 0)
		return;
	if (direction > 0)
		d->ups++;
	else
		d->downs++;
	if (d->last_direction == -direction && t_ms - d->last_scale_ms < DEMO_FLAP_MS)
		d->flaps++;
	d->last_direction = direction;
	d->last_scale_ms = t_ms;
}

static void on_row(void *arg, const struct watch_row *row, const struct err *error)
{
	struct demo *d = arg;
	int64_t t_ms = clock_mono_ms(&d->clock) - d->started_ms;
	if (error) {
		d->errors++;
		printf("%3d/%ds  %s\n", (int)((t_ms + 500) / 1000), d->seconds, error->msg);
		return;
	}
	if (row->spec == 0 && d->last_spec < 0)
		return; // the target has not been read yet
	count_scale(d, t_ms, row->spec);
	d->above += row->utilization_ratio > DEMO_HIGH_RATIO;
	d->held += strcmp(row->action, "Hold") == 0;
	d->rows[d->n++] = (struct picture_row){
	        .time_s = (double)t_ms / 1000,
	        .demand = row->demand,
	        .utilization_ratio = row->utilization_ratio,
	        .spec_replicas = row->spec,
	        .ready_replicas = row->ready,
	};
	print_row(d, t_ms, row);
}

static bool loop_closed(const struct demo *d)
{
	return d->ups > 0 && d->downs > 0;
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct demo *d = arg;
	struct err e;
	if (!process_all_alive(&d->world.processes, &e)) {
		fprintf(stderr, "demo: %s\n", e.msg);
		d->failed = true;
		event_base_loopbreak(d->loop);
		return;
	}
	int64_t seconds = (int64_t)d->seconds * (loop_closed(d) ? 1 : DEMO_LONGER),
	        t_ms = clock_mono_ms(&d->clock) - d->started_ms;
	if (t_ms >= seconds * 1000 || d->n >= (size_t)seconds + 1) {
		event_base_loopbreak(d->loop);
		return;
	}
	if (t_ms >= (int64_t)d->seconds * 1000 && !d->longer) {
		d->longer = true;
		fprintf(stderr, "demo: no scale-up and scale-down yet: going on, for %d s at most\n",
		        d->seconds * (DEMO_LONGER - 1));
	}
	watch_read(d->watch, on_row, d);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct demo *d = arg;
	d->interrupted = true;
	event_base_loopbreak(d->loop);
}

// ---- the end ----

static int write_picture(const struct demo *d, char *path, size_t size, struct err *e)
{
	char titles[3][128];
	snprintf(titles[0], sizeof titles[0], "Demand: %.0f hours of an LLM service, played %g times faster",
	         d->seconds * d->time_scale / 3600, d->time_scale);
	snprintf(titles[1], sizeof titles[1], "Utilisation: above the high watermark in %d of %zu seconds", d->above,
	         d->n);
	snprintf(titles[2], sizeof titles[2], "Replicas: %d scale-ups, %d scale-downs, %d flaps", d->ups, d->downs,
	         d->flaps);
	const struct picture picture = {.rows = d->rows,
	                                .n = d->n,
	                                .high_ratio = DEMO_HIGH_RATIO,
	                                .low_ratio = DEMO_LOW_RATIO,
	                                .titles = {titles[0], titles[1], titles[2]}};
	struct buf svg;
	buf_init(&svg, DEMO_SVG_MAX);
	picture_put(&svg, &picture);
	snprintf(path, size, "%s/timeline.svg", d->options.work_dir);
	int rc = svg.failed ? err_set(e, ERR_INTERNAL, "the picture is too large, or memory is exhausted") : 0;
	FILE *f = rc == 0 ? fopen(path, "we") : NULL;
	if (rc == 0 && (!f || fwrite(buf_str(&svg), 1, svg.len, f) != svg.len))
		rc = err_set(e, ERR_IO, "cannot write %s", path);
	if (f && fclose(f) != 0)
		rc = err_set(e, ERR_IO, "cannot write %s", path);
	buf_done(&svg);
	return rc;
}

static int summarize(const struct demo *d)
{
	char path[WORLD_PATH_BYTES + 32];
	struct err e;
	printf("\nsummary: %d scale-ups, %d scale-downs, %d flaps, %.1f hours of the trace above the high watermark, "
	       "held %d s, "
	       "%d failed reads\n",
	       d->ups, d->downs, d->flaps, d->above * d->time_scale / 3600, d->held, d->errors);
	if (write_picture(d, path, sizeof path, &e) < 0) {
		fprintf(stderr, "demo: %s\n", e.msg);
		return 1;
	}
	printf("picture: %s\nlogs:    %s/*.log\n", path, d->options.work_dir);
	if (!d->interrupted && !loop_closed(d)) {
		fputs("demo: the loop did not close: a scale-up and a scale-down were expected\n", stderr);
		return 1;
	}
	return 0;
}

static int watch_run(struct demo *d)
{
	struct err e;
	struct watch_options o = {.loop = d->loop,
	                          .exporter_url = d->world.exporter_url,
	                          .controller_url = d->world.controller_url,
	                          .kubeconfig = d->world.kubeconfig[0] ? d->world.kubeconfig : NULL,
	                          .context = d->options.context,
	                          .namespace_name = WORLD_NAMESPACE,
	                          .deployment = WORLD_DEPLOYMENT,
	                          .replicas_path = d->world.replicas_path};
	d->watch = watch_new(&o, &e);
	if (!d->watch) {
		fprintf(stderr, "demo: %s\n", e.msg);
		return 1;
	}
	printf("\n    time   demand  utilisation       ready/  desired  action     reason                 why\n"
	       "         requests/s                  asked\n");
	struct event *tick = event_new(d->loop, -1, EV_PERSIST, on_second, d);
	if (!tick)
		return 1;
	event_add(tick, &(struct timeval){1, 0});
	d->started_ms = clock_mono_ms(&d->clock);
	event_base_dispatch(d->loop);
	event_free(tick);
	watch_free(d->watch);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"bin", 'b', "DIR", 0, "where the programs are", 0},
	        {"config", 'c', "DIR", 0, "policy.yaml, mock.yaml and the trace", 0},
	        {"work", 'w', "DIR", 0, "logs, data, picture", 0},
	        {"kubeconfig", 'k', "FILE", 0, "use this cluster instead of the fake API server", 0},
	        {"context", 'x', "NAME", 0, "context of the kubeconfig", 0},
	        {"seconds", 's', "N", 0, "how long to watch (default 60)", 0},
	        {"time-scale", 't', "X", 0, "seconds of the trace per second (as in mock.yaml)", 0},
	        {0}};
	const struct argp argp = {options, parse, "", "The closed loop on one machine.", NULL, NULL, NULL};
	struct demo d = {.seconds = 60, .time_scale = 1800, .last_spec = -1, .options = {.ready_after = "2"}};
	argp_parse(&argp, argc, argv, 0, NULL, &d);
	if (!d.options.bin_dir || !d.options.config_dir || !d.options.work_dir) {
		fputs("demo: --bin, --config and --work are needed; `make demo` gives them\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	clock_init_real(&d.clock);
	d.rows = calloc((size_t)d.seconds * DEMO_LONGER + 2, sizeof *d.rows);
	d.loop = event_base_new();
	struct event *on_int = d.loop ? evsignal_new(d.loop, SIGINT, on_signal, &d) : NULL;
	struct event *on_term = d.loop ? evsignal_new(d.loop, SIGTERM, on_signal, &d) : NULL;
	if (!d.rows || !on_int || !on_term) {
		fputs("demo: out of memory\n", stderr);
		return 1;
	}
	event_add(on_int, NULL);
	event_add(on_term, NULL);

	struct err e;
	fputs("starting:\n", stderr);
	int code = 1;
	if (world_start(&d.world, &d.options, &e) < 0)
		fprintf(stderr, "demo: %s\n", e.msg);
	else
		code = watch_run(&d);
	if (code == 0 && !d.failed && d.n > 0) {
		code = summarize(&d);
	} else if (code == 0 && !d.failed && !d.interrupted) {
		fputs("demo: nothing was seen of it\n", stderr);
		code = 1;
	}
	world_stop(&d.world);
	event_free(on_int);
	event_free(on_term);
	event_base_free(d.loop);
	free(d.rows);
	return d.interrupted ? 130 : d.failed ? 1 : code;
}
