// SPDX-License-Identifier: Apache-2.0
// gpuscale takeover: moves the ScaledObjects of a cluster from KEDA's operator to gpuscale, and back. Every step first
// reads what the cluster has, so that a run that was killed is repeated from the start.
#include <time.h>

#include "base/alloc.h"
#include "cli/objects/kube_pages.h"
#include "cli/term/cli.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/source/policy_object.h"
#include "controller/status/status_doc.h"
#include "k8s/cache/autoscaler_object.h"
#include "k8s/lease/lease_record.h"
#include "policies/convert/convert.h"
#include "policies/load/policy_ref.h"

#define ANNOTATION      "gpuscale.dev/keda-replicas" // of the Deployment: its replicas before
#define PATH_BYTES      1024
#define BODY_BYTES_MAX  ((size_t)4 * 1024 * 1024)
#define FAULT_BYTES_MAX 4096
#define PAGES_MAX       200
#define POLL_MS         500
#define REPLICAS_MAX    100 // of an operator

struct takeover_args {
	struct kube_options kube;
	bool dry_run, apply, back, leave_unsupported, authenticates;
	const char *keda_namespace, *keda_deployment;
	int64_t timeout_ms;
};

struct takeover {
	const struct takeover_args *args;
	struct connections session;
	int64_t until_mono_ms;
	int64_t replicas, status_replicas, saved_replicas; // of the Deployment; saved: -1: no annotation
	size_t n_objects, n_unsupported, n_without_hpa;
	size_t n_unclaimed;  // supported objects whose status still names an HPA of KEDA
	size_t n_not_acting; // supported objects on which gpuscale does not act
	bool deletes;        // list_hpas() deletes what it finds
	bool reports;        // list_objects() prints what is not supported, or not acted on
};

static void check(void *options, struct argp_state *state)
{
	const struct takeover_args *a = options;
	if (a->dry_run == a->apply)
		print_usage(state, "say either --dry-run or --apply");
	if (!k8s_name_is_valid(a->keda_namespace) || !k8s_name_is_valid(a->keda_deployment))
		print_usage(state, "--keda-namespace, --keda-deployment: expected the name of an object");
}

// clang-format off
#define FLAGS_OF struct takeover_args
static const struct flag_set command = {
	.args = "",
	.about = "Move all ScaledObjects from KEDA's operator to `gpuscale run --scaled-objects`, which must run already: scale the "
	         "operator to 0, wait until it has stopped, delete the HorizontalPodAutoscalers that it created, and wait until "
	         "gpuscale acts. No scale changes, and at no time do both act. With --back: scale the operator up again and wait until it has "
	         "created its HorizontalPodAutoscalers. Run it again if it was interrupted."
	         "\vExit status: 0 done, 1 failed or unfinished, 2 wrong usage.",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_SWITCH(1, 0, "dry-run", dry_run, "print what would be done, change nothing"),
		FLAG_SWITCH(1, 0, "apply", apply, "do it"),
		FLAG_SWITCH(1, 0, "back", back, "return the ScaledObjects to KEDA's operator"),
		FLAG_SWITCH(1, 0, "scaled-object-authentication", authenticates, "the controller runs with this flag, too"),
		FLAG_SWITCH(1, 0, "leave-unsupported", leave_unsupported, "go on although some ScaledObjects are not supported, and nothing scales them afterwards"),
		FLAG_TEXT(1, 0, "keda-namespace", "NAME", keda_namespace, "namespace of KEDA's operator (default keda)"),
		FLAG_TEXT(1, 0, "keda-deployment", "NAME", keda_deployment, "Deployment of KEDA's operator (default keda-operator)"),
		FLAG_DURATION(1, 0, "timeout", timeout_ms, 1000, 3600000, "give up waiting after this time (default 2m)"),
		FLAG_INCLUDE(&kube_flags, kube, 0),
		FLAG_END}};
// clang-format on

// ---- requests ----

static void deployment_path(const struct takeover *t, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "/apis/apps/v1/namespaces/%s/deployments/%s", t->args->keda_namespace,
	         t->args->keda_deployment);
}

static int read_deployment(struct takeover *t, struct err *e)
{
	char path[PATH_BYTES], saved[NUM_TEXT_BYTES];
	struct buf body = BUF(BODY_BYTES_MAX);
	deployment_path(t, path);
	int rc = kube_request(&t->session, "GET", path, NULL, NULL, &body, e);
	const struct json_span o = {buf_str(&body), body.len};
	t->replicas = 1; // the default of the API server
	t->status_replicas = 0;
	t->saved_replicas = -1;
	json_span_i64(json_span_path(o, (const char *const[]){"spec", "replicas", NULL}), 0, INT32_MAX, &t->replicas);
	json_span_i64(json_span_path(o, (const char *const[]){"status", "replicas", NULL}), 0, INT32_MAX,
	              &t->status_replicas);
	int n = json_span_text(json_span_path(o, (const char *const[]){"metadata", "annotations", ANNOTATION, NULL}),
	                       saved, sizeof saved);
	if (n > 0 && num_parse_i64(saved, (size_t)n, 1, REPLICAS_MAX, &t->saved_replicas, NULL) < 0)
		t->saved_replicas = -1;
	buf_done(&body);
	return rc < 0 ? err_wrap(e, "Deployment %s/%s", t->args->keda_namespace, t->args->keda_deployment) : 0;
}

// Sets the replicas and the annotation in one write, so that a kill leaves both or neither. saved < 0 removes it.
static int scale_deployment(struct takeover *t, int64_t replicas, int64_t saved, struct err *e)
{
	char path[PATH_BYTES], text[NUM_TEXT_BYTES + 2] = "null", body[PATH_BYTES];
	deployment_path(t, path);
	if (saved >= 0)
		snprintf(text, sizeof text, "\"%lld\"", (long long)saved);
	snprintf(body, sizeof body,
	         "{\"metadata\":{\"annotations\":{\"" ANNOTATION "\":%s}},\"spec\":{\"replicas\":%lld}}", text,
	         (long long)replicas);
	if (kube_request(&t->session, "PATCH", path, "application/merge-patch+json", body, NULL, e) < 0)
		return err_wrap(e, "Deployment %s/%s", t->args->keda_namespace, t->args->keda_deployment);
	print_line("scaled deployment %s/%s from %lld to %lld\n", t->args->keda_namespace, t->args->keda_deployment,
	           (long long)t->replicas, (long long)replicas);
	return 0;
}

// Reads the Lease of the operator; an absent one has no holder.
static int read_lease(struct takeover *t, struct lease_record *ret_record, struct err *e)
{
	char path[PATH_BYTES];
	struct buf body = BUF(LEASE_OBJECT_BYTES_MAX);
	snprintf(path, sizeof path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases/" KEDA_LEASE,
	         t->args->keda_namespace);
	*ret_record = (struct lease_record){0};
	int rc = kube_request(&t->session, "GET", path, NULL, NULL, &body, e);
	if (rc == 0)
		rc = lease_record_decode(buf_str(&body), body.len, ret_record, e);
	else if (e->kind == ERR_NOT_FOUND)
		rc = 0;
	buf_done(&body);
	return rc;
}

// ---- ScaledObjects ----

// The controller knows its sources, this command does not.
static const char *any_source(void *arg, const struct convert_server *server, const char **ret_why)
{
	const struct takeover *t = arg;
	if (server->authentication && !t->args->authenticates) {
		*ret_why = "not supported: authentication, unless the controller runs with "
		           "--scaled-object-authentication and so does this command";
		return NULL;
	}
	return "default";
}

static int on_scaled_object(void *arg, struct json_span object, struct err *e)
{
	struct takeover *t = arg;
	const struct convert_live live = {.source_of = any_source, .arg = t};
	struct autoscaler_object o;
	struct buf faults = BUF(FAULT_BYTES_MAX), state = BUF(SCALED_OBJECT_BYTES_MAX);
	if (!autoscaler_decode(AUTOSCALER_SCALED_OBJECT, object.text, object.len, &o))
		return err_set(e, ERR_PROTOCOL, "a ScaledObject has no name");
	t->n_objects++;
	struct policy_ref *body = must_alloc(policy_ref_new());
	bool is_supported = scaled_object_decode(object.text, object.len, &live, body, &faults) == 0;
	bool has_hpa = json_span_kind(json_span_path(object, (const char *const[]){"status", "hpaName", NULL})) == '"';
	bool acts = scaled_object_doc_read(&state, object.text, object.len) && !has_hpa;
	bool is_paused = is_supported && body->origin->is_paused;
	t->n_unclaimed += is_supported && has_hpa;
	t->n_unsupported += !is_supported;
	t->n_not_acting += is_supported && !acts;
	t->n_without_hpa += !has_hpa && !is_paused;
	if (t->reports && !is_supported)
		print_line("not supported: %s/%s: %s\n", o.namespace_name, o.name, buf_str(&faults));
	buf_done(&faults);
	buf_done(&state);
	policy_ref_release(body);
	return 0;
}

static void forget_objects(void *arg)
{
	struct takeover *t = arg;
	t->n_objects = t->n_unsupported = t->n_unclaimed = t->n_not_acting = t->n_without_hpa = 0;
}

static int list_objects(struct takeover *t, struct err *e)
{
	static const struct kube_pages objects = {"ScaledObjects", PAGES_MAX, on_scaled_object, forget_objects};
	const struct autoscaler_kind_info *kind = &autoscaler_kinds[AUTOSCALER_SCALED_OBJECT];
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "/apis/%s/%s", kind->group_version, kind->plural);
	forget_objects(t);
	return kube_pages_fetch(&t->session, &objects, path, "", t, e);
}

// ---- the HorizontalPodAutoscalers of KEDA ----

static int delete_hpa(struct takeover *t, const struct autoscaler_object *o, struct json_span object, struct err *e)
{
	char path[PATH_BYTES], uid[128], body[PATH_BYTES];
	json_span_text(json_span_path(object, (const char *const[]){"metadata", "uid", NULL}), uid, sizeof uid);
	if (uid[strspn(uid, "0123456789abcdefABCDEF-")] != '\0')
		return err_set(e, ERR_PROTOCOL, "the uid of HorizontalPodAutoscaler %s/%s is invalid",
		               o->namespace_name, o->name);
	snprintf(path, sizeof path, "/apis/autoscaling/v1/namespaces/%s/horizontalpodautoscalers/%s", o->namespace_name,
	         o->name);
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"%s\"}}", uid);
	if (kube_request(&t->session, "DELETE", path, "application/json", body, NULL, e) < 0 &&
	    e->kind != ERR_NOT_FOUND)
		return err_wrap(e, "HorizontalPodAutoscaler %s/%s", o->namespace_name, o->name);
	print_line("deleted horizontalpodautoscaler %s/%s\n", o->namespace_name, o->name);
	return 0;
}

static int on_hpa(void *arg, struct json_span object, struct err *e)
{
	struct takeover *t = arg;
	struct autoscaler_object o;
	if (!autoscaler_decode(AUTOSCALER_HPA, object.text, object.len, &o) || !o.scaled_object[0])
		return 0;
	if (t->deletes)
		return delete_hpa(t, &o, object, e);
	if (t->reports)
		print_line("would delete horizontalpodautoscaler %s/%s\n", o.namespace_name, o.name);
	return 0;
}

static int list_hpas(struct takeover *t, bool deletes, struct err *e)
{
	static const struct kube_pages hpas = {"HorizontalPodAutoscalers", PAGES_MAX, on_hpa, NULL};
	t->deletes = deletes;
	return kube_pages_fetch(&t->session, &hpas, "/apis/autoscaling/v1/horizontalpodautoscalers", "", t, e);
}

// ---- steps ----

// Sleeps before the next attempt. Returns -1 and *e after the timeout.
static int wait_again(const struct takeover *t, const char *what, struct err *e)
{
	if (clock_mono_ms(&t->session.clock) >= t->until_mono_ms)
		return err_set(e, ERR_TIMEOUT, "%s; run the command again", what);
	nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
	return 0;
}

// The operator has stopped when it has no pod, and its Lease is free or was not renewed for its duration.
static int await_stop(struct takeover *t, struct err *e)
{
	struct lease_record record, before = {0};
	int64_t since_ms = clock_mono_ms(&t->session.clock);
	for (;;) {
		if (read_deployment(t, e) < 0 || read_lease(t, &record, e) < 0)
			return -1;
		int64_t now_ms = clock_mono_ms(&t->session.clock);
		if (strcmp(record.renew_stamp, before.renew_stamp) != 0)
			since_ms = now_ms;
		before = record;
		bool is_free = !record.holder[0] || now_ms - since_ms > record.duration_ms;
		if (t->replicas == 0 && t->status_replicas == 0 && is_free)
			return 0;
		if (wait_again(t, "KEDA's operator has not stopped", e) < 0)
			return -1;
	}
}

// Waits until `count`, which list_objects() sets, is 0.
static int await_zero(struct takeover *t, const size_t *count, struct err *e)
{
	for (;;) {
		if (list_objects(t, e) < 0)
			return -1;
		if (*count == 0)
			return 0;
		if (wait_again(t, "gpuscale does not act on all ScaledObjects: is it running with --scaled-objects?",
		               e) < 0)
			return -1;
	}
}

static int take(struct takeover *t, struct err *e)
{
	if (t->n_unsupported && !t->args->leave_unsupported)
		return err_set(e, ERR_UNSUPPORTED,
		               "%zu of %zu ScaledObjects are not supported: nothing would scale them; "
		               "--leave-unsupported goes on all the same",
		               t->n_unsupported, t->n_objects);
	if (t->replicas > 0 && scale_deployment(t, 0, t->replicas, e) < 0)
		return -1;
	if (await_stop(t, e) < 0)
		return -1;
	print_line("KEDA's operator has stopped\n");
	// gpuscale removes the name of the HPA from a status: until it has, it may not be running.
	t->reports = false;
	if (await_zero(t, &t->n_unclaimed, e) < 0 || list_hpas(t, true, e) < 0 ||
	    await_zero(t, &t->n_not_acting, e) < 0)
		return -1;
	print_line("gpuscale acts on %zu ScaledObjects\n", t->n_objects - t->n_unsupported);
	return 0;
}

static int give(struct takeover *t, struct err *e)
{
	struct lease_record record;
	int64_t replicas = t->saved_replicas > 0 ? t->saved_replicas : 1;
	if (t->replicas == 0 && scale_deployment(t, replicas, -1, e) < 0)
		return -1;
	t->reports = false;
	for (;;) {
		if (read_lease(t, &record, e) < 0 || list_objects(t, e) < 0)
			return -1;
		if (record.holder[0] && t->n_without_hpa == 0)
			break;
		if (wait_again(t, "KEDA's operator has not created all HorizontalPodAutoscalers", e) < 0)
			return -1;
	}
	print_line("KEDA's operator acts on %zu ScaledObjects\n", t->n_objects);
	return 0;
}

static int plan(struct takeover *t, struct err *e)
{
	int64_t to = t->args->back ? (t->saved_replicas > 0 ? t->saved_replicas : 1) : 0;
	if (t->args->back ? t->replicas == 0 : t->replicas > 0)
		print_line("would scale deployment %s/%s from %lld to %lld\n", t->args->keda_namespace,
		           t->args->keda_deployment, (long long)t->replicas, (long long)to);
	if (!t->args->back && list_hpas(t, false, e) < 0)
		return -1;
	print_line("%s would act on %zu of %zu ScaledObjects\n", t->args->back ? "KEDA's operator" : "gpuscale",
	           t->n_objects - (t->args->back ? 0 : t->n_unsupported), t->n_objects);
	return 0;
}

int cmd_takeover(int argc, char **argv)
{
	struct takeover_args args = {
	        .keda_namespace = KEDA_NAMESPACE, .keda_deployment = "keda-operator", .timeout_ms = 120000};
	struct takeover t = {.args = &args};
	struct err e;
	args_parse(&command, argc, argv, &args);
	if (connections_open(&t.session, NULL, &args.kube, NULL, NULL, &e) < 0)
		return command_failed("gpuscale takeover", &e);
	t.until_mono_ms = clock_mono_ms(&t.session.clock) + args.timeout_ms;
	t.reports = !args.back;
	int rc = read_deployment(&t, &e);
	if (rc == 0)
		rc = list_objects(&t, &e);
	if (rc == 0)
		rc = args.dry_run ? plan(&t, &e) : args.back ? give(&t, &e) : take(&t, &e);
	connections_close(&t.session);
	if (rc < 0)
		return command_failed("gpuscale takeover", &e);
	return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}
