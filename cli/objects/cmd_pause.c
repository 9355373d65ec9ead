// SPDX-License-Identifier: Apache-2.0
// gpuscale pause NAME.., gpuscale resume NAME..: by annotation, so that the manifest in version control stays as it is.
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "policies/schema/policy_schema.h"

#define PATCH_BYTES_MAX  4096
#define REASON_BYTES_MAX 256

struct pause_args {
	struct policy_scope scope;
	const char *command;
	bool pause; // else resume
	bool all;
	const char *reason;
};

static void check(void *options, struct argp_state *state)
{
	const struct pause_args *a = options;
	if (a->scope.n_names == 0 && !a->all)
		print_usage(state, "name at least one GPUAutoscaler, or say --all");
	if (a->scope.n_names && a->all)
		print_usage(state, "names and --all cannot be used together");
}

// clang-format off
#define FLAGS_OF struct pause_args
static const struct flag flags[] = {
	FLAG_TEXT_MAX(1, 0, "reason", "TEXT", reason, REASON_BYTES_MAX, "the reason, for other users (annotation " POLICY_ANNOTATION_REASON ")"), // of pause
	FLAG_SWITCH(1, 0, "all", all, "all of the namespace, or with -A of the cluster"),
	FLAG_ARGUMENTS(scope, policy_scope_add),
	FLAG_INCLUDE(&policy_scope_flags, scope, 0),
	FLAG_END};
// clang-format on

static int patch(struct connections *session, const struct policy_view *p, const struct pause_args *a, struct err *e)
{
	char path[POLICY_PATH_BYTES_MAX];
	struct policy_scope where = {.namespace_name = p->namespace_name};
	struct buf body = BUF(PATCH_BYTES_MAX);
	if (policy_path(&where, p->name, path, e) < 0)
		return -1;
	struct json_writer w = JSON_WRITER(&body, 0);
	// null removes an annotation
	json_write_format(&w,
	                  "{metadata:{annotations:{" POLICY_ANNOTATION_PAUSED ":%s," POLICY_ANNOTATION_REASON ":%s}}}",
	                  a->pause ? "true" : NULL, a->pause ? a->reason : NULL);
	int rc = kube_request(session, "PATCH", path, "application/merge-patch+json", buf_str(&body), NULL, e);
	buf_done(&body);
	return rc < 0 ? policy_fetch_explain(e, OBJECT_POLICY, p->name) : 0;
}

static void say(const struct policy_view *p, const struct pause_args *a, const char *what)
{
	print_line("gpuautoscaler." CRD_GROUP "/%s %s", p->name, what);
	if (p->status.current_set)
		print_line(" at %d replicas", p->status.current);
	if (a->pause && a->reason)
		print_line(": %s", a->reason);
	print_line("\n");
}

static int pause_one(struct connections *session, const struct policy_view *p, const struct pause_args *a,
                     struct err *e)
{
	bool same_reason = !a->reason || (p->paused_reason && strcmp(a->reason, p->paused_reason) == 0);
	if (p->paused_annotation && same_reason) {
		say(p, a, "was paused already");
		return 0;
	}
	if (patch(session, p, a, e) < 0)
		return -1;
	say(p, a, p->paused_annotation || p->paused_spec ? "stays paused" : "was active, is paused now");
	return 0;
}

static int resume_one(struct connections *session, const struct policy_view *p, const struct pause_args *a,
                      struct err *e)
{
	bool has_any = p->paused_annotation || p->paused_reason;
	if (has_any && patch(session, p, a, e) < 0)
		return -1;
	if (p->paused_spec)
		return err_set(e, ERR_REJECTED,
		               "stays paused because spec.paused is true: change it in the manifest, or run kubectl "
		               "-n %s patch gpua %s --type merge -p '{\"spec\":{\"paused\":false}}'",
		               p->namespace_name, p->name);
	say(p, a, p->paused_annotation ? "was paused, is active now" : "was active already");
	return 0;
}

static int change_all(void *arg, struct connections *session, struct policy_views *v, struct buf *out)
{
	const struct pause_args *a = arg;
	int code = EXIT_OK;
	for (size_t i = 0; i < v->n; i++) {
		struct err e = {0};
		const struct policy_view *p = &v->items[i];
		if ((a->pause ? pause_one(session, p, a, &e) : resume_one(session, p, a, &e)) == 0)
			continue;
		print_error("%s: %s/%s: %s\n", a->command, p->namespace_name, p->name, e.msg);
		code = EXIT_FAILED;
	}
	return code;
}

int cmd_pause(int argc, char **argv)
{
	static const struct flag_set command = {
	        .flags = flags,
	        .check = check,
	        .args = "NAME..",
	        .about = "Keep the replicas of GPUAutoscalers as they are until `gpuscale resume`: sets the "
	                 "annotation " POLICY_ANNOTATION_PAUSED
	                 ". Prints the mode before and after; pausing a paused policy has no effect."};
	struct pause_args args = {.command = "gpuscale pause", .pause = true};
	args_parse(&command, argc, argv, &args);
	return policy_fetch_run(&args.scope, args.command, OUTPUT_TEXT, change_all, &args);
}

int cmd_resume(int argc, char **argv)
{
	static const struct flag_set command = {
	        .flags = flags + 1,
	        .check = check,
	        .args = "NAME..",
	        .about = "Let paused GPUAutoscalers scale again: removes the annotation " POLICY_ANNOTATION_PAUSED
	                 ". A policy with spec.paused: true stays paused, which is an error."};
	struct pause_args args = {.command = "gpuscale resume"};
	args_parse(&command, argc, argv, &args);
	return policy_fetch_run(&args.scope, args.command, OUTPUT_TEXT, change_all, &args);
}
