// SPDX-License-Identifier: Apache-2.0
// gpuscale describe [NAME..]: all that is known of GPUAutoscalers, with their Events.
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_read.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/kube_session.h"
#include "cli/policy_fetch.h"
#include "cli/policy_render.h"
#include "cli/policy_view.h"
#include "policies/policy_schema.h"

#define DESCRIBE_OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define EVENTS_MAX          500

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

// The Events of one object; NULL and *e when they cannot be had. Caller frees.
static cJSON *fetch_events(struct kube_session *session, const struct policy_view *p, struct err *e)
{
	char path[2 * POLICY_PATH_BYTES_MAX];
	snprintf(path, sizeof path,
	         "/api/v1/namespaces/%s/events?limit=%d&fieldSelector=involvedObject.kind%%3D" POLICY_KIND
	         "%%2CinvolvedObject.name%%3D%s",
	         p->namespace_name, EVENTS_MAX, p->name);
	struct buf body;
	buf_init(&body, JSON_BYTES_MAX);
	cJSON *events = NULL;
	if (kube_session_request(session, "GET", path, NULL, NULL, &body, e) == 0)
		events = json_read(buf_str(&body), body.len, e);
	if (events && !cJSON_IsArray(json_get(events, "items"))) { // not the same as none
		cJSON_Delete(events);
		events = NULL;
		err_set(e, ERR_PROTOCOL, "the server answered with something that is no list of Events");
	}
	buf_done(&body);
	return events;
}

static void describe(struct buf *out, struct kube_session *session, const struct policy_view *p)
{
	struct err e;
	err_clear(&e);
	cJSON *events = fetch_events(session, p, &e);
	policy_render_describe(out, p, events, e.msg, clock_wall_ms(&session->clock));
	cJSON_Delete(events);
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
	if (out.failed || fputs(buf_str(&out), stdout) < 0 || fflush(stdout) != 0)
		code = EXIT_FAILED;
	buf_done(&out);
	policy_views_done(&v);
	kube_session_close(&session);
	return code;
}
