// SPDX-License-Identifier: Apache-2.0
// gpuscale describe [NAME..]: the details of GPUAutoscalers, with their Events.
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_events.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "policies/schema/policy_schema.h"
#include "runtime/connections.h"

#define DESCRIBE_OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define EVENTS_PAGES_MAX    200

struct describe_args {
	struct policy_scope scope;
	enum output_format output;
};

// clang-format off
#define FLAGS_OF struct describe_args
static const struct flag_set command = {
	.args = "[NAME..]",
	.about = "Describe GPUAutoscalers, or with `so` the ScaledObjects of KEDA on which the controller acts: mode, signals, "
	         "conditions, the last decisions and Events.",
	.flags = (const struct flag[]){
		FLAG_OUTPUT(1, output, OUTPUT_SET(TEXT) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML) | OUTPUT_SET(NAME), "text, json, yaml or name (default text)"),
		FLAG_ARGUMENTS(scope, policy_scope_add),
		FLAG_INCLUDE(&policy_scope_flags, scope, 0),
		FLAG_END}};
// clang-format on

static void start_over(void *arg)
{
	policy_events_init(arg);
}

// The server sorts Events by name, so the latest may be on any page: all pages are read.
static int fetch_events(struct connections *session, const char *kind, const struct policy_view *p,
                        struct policy_events *events, struct err *e)
{
	char path[POLICY_PATH_BYTES_MAX], selector[POLICY_PATH_BYTES_MAX];
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/events", p->namespace_name);
	snprintf(selector, sizeof selector, "fieldSelector=involvedObject.kind%%3D%s%%2CinvolvedObject.name%%3D%s",
	         kind, p->name);
	const struct kube_pages pages = {.path = path,
	                                 .selector = selector,
	                                 .what = "Events",
	                                 .pages_max = EVENTS_PAGES_MAX,
	                                 .item = policy_events_add,
	                                 .restart = start_over,
	                                 .arg = events};
	policy_events_init(events);
	return kube_pages_fetch(session, &pages, e);
}

static void describe_all(struct buf *out, struct connections *session, const struct policy_views *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct err e;
		struct policy_events events;
		err_clear(&e);
		int rc = fetch_events(session, object_kind_info(v->kind)->kind, &v->items[i], &events, &e);
		buf_puts(out, i > 0 ? "\n\n" : "");
		policy_render_describe(out, &v->items[i], rc < 0 ? NULL : &events, e.msg,
		                       clock_wall_ms(&session->clock));
	}
}

// A List of the objects, each with its Events; "eventsError" where these cannot be read.
static void write_all(struct buf *out, struct connections *session, const struct policy_views *v)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_array(&w, "items");
	for (size_t i = 0; i < v->n; i++) {
		struct err e;
		struct policy_events events;
		err_clear(&e);
		json_write_object_begin(&w);
		json_write_key(&w, "object");
		policy_render_object(&w, &v->items[i]);
		if (fetch_events(session, object_kind_info(v->kind)->kind, &v->items[i], &events, &e) == 0)
			policy_events_write(&events, &w);
		else
			json_write_member_text(&w, "eventsError", e.msg);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

int cmd_describe(int argc, char **argv)
{
	struct describe_args args = {.output = OUTPUT_TEXT,
	                             .scope.kinds = 1U << OBJECT_POLICY | 1U << OBJECT_SCALED_OBJECT};
	args_parse(&command, argc, argv, &args);
	struct connections session;
	int code = policy_fetch_open(&session, &args.scope, "gpuscale describe");
	if (code != EXIT_OK)
		return code;
	struct policy_views v;
	code = policy_fetch_named(&session, &args.scope, "gpuscale describe", &v);
	struct buf out;
	buf_init(&out, DESCRIBE_OUTPUT_MAX);
	bool is_document = output_is_document(args.output);
	if (v.n == 0 && code == EXIT_OK && !is_document)
		policy_fetch_say_none(&args.scope);
	else if (is_document && (v.n > 0 || code == EXIT_OK))
		write_all(&out, &session, &v);
	else if (args.output == OUTPUT_NAME)
		policy_render_list(&out, &v, NULL, OUTPUT_NAME, false, false, 0);
	else
		describe_all(&out, &session, &v);
	if (output_print("gpuscale describe", &out, out.len ? args.output : OUTPUT_TEXT) < 0)
		code = EXIT_FAILED;
	buf_done(&out);
	policy_views_done(&v);
	connections_close(&session);
	return code;
}
