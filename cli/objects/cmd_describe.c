// SPDX-License-Identifier: Apache-2.0
// gpuscale describe [NAME..]: the details of GPUAutoscalers, with their Events.
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/kube_session.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/objects/policy_events.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "policies/schema/policy_schema.h"

#define DESCRIBE_OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define EVENTS_PAGES_MAX    200

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct policy_scope *scope = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = scope;
		return 0;
	case ARGP_KEY_ARG:
		policy_scope_add(scope, arg, state);
		return 0;
	case ARGP_KEY_END:
		policy_scope_check(scope, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int take_page(void *arg, const char *json, size_t len, struct err *e)
{
	return policy_events_add_page(arg, json, len, e);
}

static void start_over(void *arg)
{
	policy_events_init(arg);
}

// The server sorts Events by name, so the latest may be on any page: all pages are read.
static int fetch_events(struct kube_session *session, const struct policy_view *p, struct policy_events *events,
                        struct err *e)
{
	char path[POLICY_PATH_BYTES_MAX], selector[POLICY_PATH_BYTES_MAX];
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/events", p->namespace_name);
	snprintf(selector, sizeof selector,
	         "fieldSelector=involvedObject.kind%%3D" POLICY_KIND "%%2CinvolvedObject.name%%3D%s", p->name);
	const struct kube_pages pages = {.path = path,
	                                 .selector = selector,
	                                 .what = "Events",
	                                 .pages_max = EVENTS_PAGES_MAX,
	                                 .page = take_page,
	                                 .restart = start_over,
	                                 .arg = events};
	policy_events_init(events);
	return kube_pages_fetch(session, &pages, e);
}

static void describe(struct buf *out, struct kube_session *session, const struct policy_view *p)
{
	struct err e;
	struct policy_events events;
	err_clear(&e);
	int rc = fetch_events(session, p, &events, &e);
	policy_render_describe(out, p, rc < 0 ? NULL : &events, e.msg, clock_wall_ms(&session->clock));
}

int cmd_describe(int argc, char **argv)
{
	static const struct argp_option options[] = {{0}};
	static const struct argp_child children[] = {{&policy_scope_argp, 0, NULL, 0}, {0}};
	const struct argp argp = {
	        options,    parse,
	        "[NAME..]", "Describe GPUAutoscalers: mode, signals, conditions, the last decisions and Events.",
	        children,   NULL,
	        NULL};
	struct policy_scope scope = {0};
	args_parse(&argp, argc, argv, &scope);
	struct kube_session session;
	int code = policy_fetch_open(&session, &scope, "gpuscale describe");
	if (code != EXIT_OK)
		return code;
	struct policy_views v;
	code = policy_fetch_named(&session, &scope, "gpuscale describe", &v);
	struct buf out;
	buf_init(&out, DESCRIBE_OUTPUT_MAX);
	for (size_t i = 0; i < v.n; i++) {
		if (i > 0)
			buf_puts(&out, "\n\n");
		describe(&out, &session, &v.items[i]);
	}
	if (v.n == 0 && code == EXIT_OK)
		policy_fetch_say_none(&scope);
	if (print_out(&out) < 0)
		code = EXIT_FAILED;
	buf_done(&out);
	policy_views_done(&v);
	kube_session_close(&session);
	return code;
}
