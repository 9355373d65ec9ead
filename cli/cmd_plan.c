// SPDX-License-Identifier: Apache-2.0
// gpuscale plan: one decision per policy, made exactly as `run` makes its first one, and nothing written.
#include <argp.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "controller/connections.h"
#include "controller/observe.h"
#include "controller/options.h"
#include "controller/policy_set.h"
#include "controller/refill.h"
#include "controller/render.h"
#include "policies/decide.h"
#include "policies/decision.h"

#define PLAN_OUTPUT_MAX (256 * 1024 * 1024)
#define PLAN_REPORT_MAX (16 * 1024 * 1024)

struct plan_args {
	struct prometheus_options prometheus;
	struct kube_options kube;
	struct path_options files;
	int32_t replicas; // -1: ask the cluster
	enum output_format output;
	bool exit_code;
};

struct plan;
struct plan_item {
	struct plan *plan;
	const struct policy *policy;
	void *state;
	struct refill_call refill;
	struct observation_call observation;
	struct decision decision;
	bool decided;
	struct err error;
};

struct plan {
	struct connections connections;
	struct observe_sources sources;
	struct plan_item *items;
	size_t n, n_done;
	int64_t now_ms;
	struct event *progress;
};

enum { KEY_REPLICAS = 0x500, KEY_EXIT_CODE };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct plan_args *a = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->prometheus;
		state->child_inputs[1] = &a->kube;
		return 0;
	case 'f':
		path_options_add(&a->files, arg, state);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"; policies are named by -f", arg);
		return 0;
	case KEY_REPLICAS:
		a->replicas = (int32_t)option_i64("--replicas", arg, 0, POLICY_REPLICAS_MAX, state);
		return 0;
	case 'o':
		a->output = (enum output_format)option_choice("-o", arg, output_format_names, state);
		return 0;
	case KEY_EXIT_CODE:
		a->exit_code = true;
		return 0;
	case ARGP_KEY_END:
		if (a->files.n == 0)
			argp_error(state, "name the policies: -f FILE|DIR");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void item_done(struct plan_item *it)
{
	if (++it->plan->n_done == it->plan->n)
		event_base_loopbreak(it->plan->connections.loop);
}

static void on_refilled(void *arg, bool ok, const struct err *error)
{
	(void)ok; // without history the windows say so in the trace
	(void)error;
	struct plan_item *it = arg;
	decide(it->policy, &it->observation.observation, it->plan->now_ms, it->state, &it->decision);
	it->decided = true;
	item_done(it);
}

static void on_observed(void *arg, struct observation_call *c)
{
	struct plan_item *it = arg;
	it->error = c->error;
	if (c->error.kind != ERR_NONE)
		item_done(it);
	else if (refill_is_needed(it->policy))
		refill_start(&it->refill, it->plan->connections.promql, it->policy, it->state,
		             observation_ready(&c->observation), it->plan->now_ms, on_refilled, it);
	else
		on_refilled(it, true, NULL);
}

static void on_progress(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	const struct plan *p = arg;
	fprintf(stderr, "\r%zu of %zu policies answered", p->n_done, p->n);
}

static void ask_all(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		observe_start(&p->items[i].observation, &p->sources, p->items[i].policy, p->now_ms, on_observed,
		              &p->items[i]);
	if (isatty(STDERR_FILENO)) {
		p->progress = event_new(p->connections.loop, -1, EV_PERSIST, on_progress, p);
		struct timeval second = {1, 0};
		if (p->progress)
			event_add(p->progress, &second);
	}
	if (p->n_done < p->n)
		event_base_dispatch(p->connections.loop);
	if (p->progress)
		fputs("\r\033[K", stderr);
}

static int print(const struct plan *p, enum output_format format)
{
	struct decided *list = calloc(p->n ? p->n : 1, sizeof *list);
	struct buf out;
	buf_init(&out, PLAN_OUTPUT_MAX);
	size_t n = 0;
	int rc = 0;
	for (size_t i = 0; list && i < p->n; i++) {
		const struct plan_item *it = &p->items[i];
		if (it->decided) {
			list[n++] = (struct decided){it->policy, &it->decision, it->observation.details};
			if (!it->observation.pods_known)
				fprintf(stderr, "gpuscale plan: %s/%s: cannot count ready pods: %s\n",
				        it->policy->namespace_name, it->policy->name, it->observation.pods_error.msg);
		} else {
			fprintf(stderr, "gpuscale plan: %s/%s: %s\n", it->policy->namespace_name, it->policy->name,
			        it->error.msg);
			rc = -1;
		}
	}
	if (!list)
		rc = -1;
	else if (n || format == OUTPUT_JSON || format == OUTPUT_YAML)
		render_list(&out, list, n, format);
	if (out.failed || fwrite(buf_str(&out), 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		rc = -1;
	buf_done(&out);
	free(list);
	return rc;
}

// It holds because it cannot see: that nothing is wanted is then no finding.
static bool is_blind(const struct decision *d)
{
	bool misses = d->reason == REASON_ALL_SIGNALS_MISSING;
	for (size_t i = 0; i < d->n_signals; i++)
		misses = misses || d->signals[i].state == SIGNAL_MISSING;
	return misses && d->action == ACTION_HOLD;
}

// What --exit-code makes of plans that were made. Who is blind is said.
static int code_of_changes(const struct plan *p)
{
	int code = EXIT_OK;
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_item *it = &p->items[i];
		struct decided decided = {it->policy, &it->decision, it->observation.details};
		char message[RENDER_SENTENCE_BYTES];
		if (is_blind(&it->decision)) {
			render_message(&decided, message);
			fprintf(stderr, "gpuscale plan: %s/%s holds for want of data: %s\n", it->policy->namespace_name,
			        it->policy->name, message);
			code = EXIT_FAILED;
		} else if (it->decision.desired != it->decision.current && code == EXIT_OK) {
			code = EXIT_CHANGES;
		}
	}
	return code;
}

static int plan_run(struct plan *p, const struct policy_set *set, const struct plan_args *args)
{
	int code = EXIT_FAILED;
	p->n = set->n_policies;
	p->items = calloc(p->n ? p->n : 1, sizeof *p->items);
	bool complete = p->items != NULL;
	for (size_t i = 0; complete && i < p->n; i++) {
		struct plan_item *it = &p->items[i];
		it->plan = p;
		it->policy = set->policies[i];
		it->state = calloc(1, decide_state_bytes(it->policy));
		complete = it->state != NULL;
		if (complete)
			decide_state_init(it->policy, it->state);
	}
	if (complete) {
		ask_all(p);
		code = print(p, args->output) < 0 ? EXIT_FAILED : EXIT_OK;
		if (code == EXIT_OK && args->exit_code)
			code = code_of_changes(p);
	} else {
		fputs("gpuscale plan: out of memory\n", stderr);
	}
	connections_cancel(&p->connections);
	for (size_t i = 0; p->items && i < p->n; i++) {
		observe_release(&p->items[i].observation);
		free(p->items[i].state);
	}
	if (p->progress)
		event_free(p->progress);
	free(p->items);
	return code;
}

int cmd_plan(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"filename", 'f', "FILE|DIR", 0, "policy file or folder, - for standard input (repeatable)", 1},
	        {"replicas", KEY_REPLICAS, "N", 0, "take the target to have N ready replicas; no cluster is asked", 1},
	        {"output", 'o', "FORMAT", 0, "table, wide, json, yaml or name (default table)", 1},
	        {"exit-code", KEY_EXIT_CODE, 0, 0,
	         "exit 3 when a change is wanted (a hold is none), 1 when a policy holds for want of data", 1},
	        {0}};
	static const struct argp_child children[] = {{&prometheus_argp, 0, NULL, 0}, {&kube_argp, 0, NULL, 0}, {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "",
	        "Show what each policy would do now, and why, stage by stage. Nothing is written."
	        "\vExit status: 0 done, 1 failed, 2 wrong usage, 3 changes wanted (with --exit-code).",
	        children,
	        NULL,
	        NULL};
	struct plan_args args = {.replicas = -1};
	prometheus_options_init(&args.prometheus);
	args_parse(&argp, argc, argv, &args);

	struct err e;
	struct buf report;
	struct policy_set set;
	buf_init(&report, PLAN_REPORT_MAX);
	int code = EXIT_FAILED;
	if (policy_set_load(&set, args.files.paths, args.files.n, NULL, &report, &e) < 0) {
		fprintf(stderr, "gpuscale plan: %s\n", e.msg);
		buf_done(&report);
		return EXIT_FAILED;
	}
	fputs(buf_str(&report), stderr);
	if (set.n_policies == 0) {
		if (set.n_errors == 0)
			fprintf(stderr, "gpuscale plan: no policies found in %s%s\n", args.files.paths[0],
			        args.files.n > 1 ? " and the others" : "");
		goto out;
	}
	struct plan plan = {0};
	if (connections_open(&plan.connections, &args.prometheus, args.replicas < 0 ? &args.kube : NULL, NULL, &e) <
	    0) {
		fprintf(stderr, "gpuscale plan: %s\n", e.msg);
		if (args.replicas < 0 && e.kind != ERR_USAGE)
			fputs("Without a cluster, say how many replicas there are: --replicas N\n", stderr);
		code = err_kind_info(e.kind)->exit_code;
		goto out;
	}
	plan.sources = (struct observe_sources){
	        .queries = plan.connections.queries, .k8s = plan.connections.k8s, .given_replicas = args.replicas};
	plan.now_ms = clock_wall_ms(&plan.connections.clock);
	code = plan_run(&plan, &set, &args);
	if (set.n_errors)
		code = EXIT_FAILED; // what was good was planned; the rest is not forgotten
	connections_close(&plan.connections);
out:
	policy_set_done(&set);
	buf_done(&report);
	return code;
}
