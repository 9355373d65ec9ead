// SPDX-License-Identifier: Apache-2.0
#include "controller/remedy/leak_replace.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/exposition.h"
#include "base/hash.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "controller/remedy/leak_choice.h"
#include "controller/remedy/leak_feed.h"
#include "controller/remedy/node_pods.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/scale.h"
#include "k8s/events/event_recorder.h"

#define HOUR_MS        3600000.0
#define GIB            1073741824.0
#define PATH_BYTES     700
#define BODY_BYTES_MAX 2048
#define UID_BYTES      64
#define SPACE_BYTES    64
#define TEXT_BYTES     400
#define PODS_BYTES_MAX ((size_t)1024 * 1024) // of the list of one pod

struct leak_replacer {
	struct leak_replace_options options;
	struct leak_feed *feed;
	struct event timer;
	bool is_closing, is_broken;
	// The round in progress.
	size_t at; // the finding in turn
	char space[SPACE_BYTES], uid[UID_BYTES];
	struct leak_facts facts;

	uint64_t reported[LEAK_PODS_TRIED]; // the last reports, which are not repeated
	size_t n_leaking;
	uint64_t n_rounds, n_bad_rounds, n_replaced, n_refused;
};

static void try_next(struct leak_replacer *r);

static const struct leak_finding *finding(const struct leak_replacer *r)
{
	size_t n;
	return &leak_feed_findings(r->feed, &n)[r->at];
}

static void end_round(struct leak_replacer *r)
{
	r->n_rounds++;
	if (!r->is_closing)
		timer_start(&r->timer, r->options.every_ms);
}

// ---- reports ----

static void describe(const struct leak_finding *f, char out[TEXT_BYTES])
{
	snprintf(out, TEXT_BYTES, "%s memory grows by %.2f GiB per hour and reaches its limit in %.1f h", f->memory,
	         f->bytes_per_hour / GIB, f->hours_to_limit);
}

// Returns whether the outcome is new: a hold, and the plan of a dry run, are the same in every round.
static bool is_news(struct leak_replacer *r, const char *what)
{
	uint64_t key = hash_text(hash_text(hash_text(HASH_START, finding(r)->pod), r->uid), what);
	bool is_new = key != r->reported[r->at];
	r->reported[r->at] = key;
	return is_new;
}

static void report_hold(struct leak_replacer *r, const char *why)
{
	char text[TEXT_BYTES];
	describe(finding(r), text);
	if (is_news(r, why))
		LOG(r->options.log, LOG_WARNING, "Leaking pod is not replaced", LOG_S("pod", finding(r)->pod),
		    LOG_S("reason", why), LOG_S("evidence", text));
}

static void report_replaced(struct leak_replacer *r)
{
	const struct leak_finding *f = finding(r);
	const struct event_object object = {"v1", "Pod", r->space, strchr(f->pod, '/') + 1, r->uid};
	char text[TEXT_BYTES], message[TEXT_BYTES + 64];
	describe(f, text);
	if (!is_news(r, "evicted"))
		return;
	r->n_replaced++;
	snprintf(message, sizeof message, "%s%s", r->options.acts ? "" : "dry run: would evict the pod: ", text);
	LOG(r->options.log, LOG_WARNING, r->options.acts ? "Evicted leaking pod" : "Would evict leaking pod",
	    LOG_S("pod", f->pod), LOG_S("evidence", text));
	event_recorder_record(r->options.recorder, &object, "Warning", "LeakingPodEvicted", message);
}

// The next finding, after one that is not replaced.
static void skip(struct leak_replacer *r, const char *why, const struct err *error)
{
	if (why)
		report_hold(r, why);
	else if (error && error->kind != ERR_CANCELED)
		report_hold(r, error->msg);
	r->at++;
	try_next(r);
}

// ---- one pod ----

static void on_evicted(void *arg, const struct http_response *response, const struct err *error)
{
	struct leak_replacer *r = arg;
	if (response) {
		report_replaced(r);
		end_round(r);
		return;
	}
	r->n_refused += error->kind == ERR_THROTTLED;
	skip(r, error->kind == ERR_THROTTLED ? "a PodDisruptionBudget refused the eviction" : NULL, error);
}

static void evict(struct leak_replacer *r)
{
	struct buf path, body;
	struct err e;
	buf_init(&path, BODY_BYTES_MAX);
	buf_init(&body, BODY_BYTES_MAX);
	int rc = node_pods_eviction(finding(r)->pod, r->uid, &path, &body);
	if (rc == 0) {
		const struct k8s_request_options o = {.method = "POST",
		                                      .path = buf_str(&path),
		                                      .content_type = "application/json",
		                                      .body = body.data,
		                                      .body_len = body.len,
		                                      .max_attempts = 1, // the next round decides again
		                                      .done = on_evicted,
		                                      .arg = r};
		rc = k8s_request_with(r->options.k8s, &o, NULL, &e);
	} else {
		err_set(&e, ERR_LIMIT, "the eviction does not fit");
	}
	buf_done(&path);
	buf_done(&body);
	if (rc < 0)
		skip(r, NULL, &e);
}

static void on_replicas(void *arg, const struct pod_counts *counts, const struct err *error)
{
	struct leak_replacer *r = arg;
	if (!counts || r->is_closing) {
		skip(r, NULL, error);
		return;
	}
	r->facts.counts = *counts;
	enum leak_choice choice = leak_choose(&r->facts);
	if (choice != LEAK_REPLACE || !r->options.may_act(r->options.arg)) {
		skip(r, leak_choice_text(choice), NULL);
	} else if (r->options.acts) {
		evict(r);
	} else {
		report_replaced(r);
		end_round(r);
	}
}

static void on_scale(void *arg, const struct scale *scale, const struct err *error)
{
	struct leak_replacer *r = arg;
	struct err e;
	if (!scale || r->is_closing) {
		skip(r, NULL, error);
		return;
	}
	r->facts.replicas = scale->spec_replicas;
	if (pods_list(r->options.k8s, r->space, scale->selector, NULL, on_replicas, r, &e) < 0)
		skip(r, NULL, &e);
}

// Reads the pod from the list of this one pod. Returns LEAK_REPLACE if its replicas have to be read.
static enum leak_choice read_pod(struct leak_replacer *r, const struct http_response *response, struct err *e)
{
	struct node_pod *pods = NULL;
	struct arena a;
	size_t n = 0;
	enum leak_choice choice = LEAK_CHOICE__COUNT;
	arena_init(&a, PODS_BYTES_MAX);
	err_set(e, ERR_NOT_FOUND, "the pod is gone");
	if (node_pods_read(response->body, response->body_len, &a, &pods, &n, e) == 0 && n == 1 &&
	    strcmp(pods[0].name, finding(r)->pod) == 0) {
		r->facts = (struct leak_facts){.uses_gpus = pods[0].uses_gpus,
		                               .is_pinned = pods[0].is_pinned,
		                               .waits_for_checkpoint = pods[0].wait_ms > 0};
		leak_owner_read(response->body, response->body_len, &r->facts.owner);
		snprintf(r->uid, sizeof r->uid, "%s", pods[0].uid);
		choice = leak_choose_pod(&r->facts);
	}
	arena_done(&a);
	return choice;
}

static void on_pod(void *arg, const struct http_response *response, const struct err *error)
{
	struct leak_replacer *r = arg;
	struct err e;
	if (!response || r->is_closing) {
		skip(r, NULL, error);
		return;
	}
	enum leak_choice choice = read_pod(r, response, &e);
	if (choice != LEAK_REPLACE) {
		skip(r, choice == LEAK_CHOICE__COUNT ? NULL : leak_choice_text(choice), &e);
		return;
	}
	const struct scale_ref ref = {"apps/v1", r->facts.owner.kind, r->space, r->facts.owner.name};
	if (scale_get(r->options.k8s, &ref, on_scale, r, &e) < 0)
		skip(r, NULL, &e);
}

static void try_next(struct leak_replacer *r)
{
	char path[PATH_BYTES];
	struct err e;
	size_t n;
	leak_feed_findings(r->feed, &n);
	if (r->is_closing || r->at >= n || r->at >= LEAK_PODS_TRIED || !r->options.may_act(r->options.arg)) {
		end_round(r);
		return;
	}
	const char *pod = finding(r)->pod, *slash = strchr(pod, '/');
	r->uid[0] = '\0';
	snprintf(r->space, sizeof r->space, "%.*s", (int)(slash - pod), pod);
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods?fieldSelector=metadata.name%%3D%s", r->space,
	         slash + 1);
	const struct k8s_request_options o = {
	        .method = "GET", .path = path, .verb = "LIST", .max_attempts = 1, .done = on_pod, .arg = r};
	if (k8s_request_with(r->options.k8s, &o, NULL, &e) < 0)
		skip(r, NULL, &e);
}

// ---- rounds ----

static void on_findings(void *arg, const struct err *error)
{
	struct leak_replacer *r = arg;
	if (r->is_closing)
		return;
	r->n_bad_rounds += error != NULL;
	if (error && !r->is_broken)
		LOG(r->options.log, LOG_ERROR, "No history of memory; replacing no leaking pod",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else if (!error && r->is_broken)
		LOG(r->options.log, LOG_INFO, "History of memory is available again", LOG_B("acts", r->options.acts));
	r->is_broken = error != NULL;
	leak_feed_findings(r->feed, &r->n_leaking);
	r->at = 0;
	try_next(r);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct leak_replacer *r = arg;
	(void)fd;
	(void)what;
	if (r->options.may_act(r->options.arg))
		leak_feed_start(r->feed, clock_wall_ms(r->options.clock));
	else
		timer_start(&r->timer, r->options.every_ms);
}

struct leak_replacer *leak_replacer_new(const struct leak_replace_options *options, struct err *e)
{
	struct leak_replacer *r = calloc(1, sizeof *r);
	if (!r) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	r->options = *options;
	const struct leak_feed_options feed = {.source = options->source,
	                                       .within_hours = (double)options->within_ms / HOUR_MS,
	                                       .done = on_findings,
	                                       .arg = r};
	r->feed = leak_feed_new(&feed, e);
	if (!r->feed) {
		free(r);
		return NULL;
	}
	evtimer_assign(&r->timer, options->loop, on_timer, r);
	timer_start(&r->timer, 0);
	return r;
}

void leak_replacer_stop(struct leak_replacer *r)
{
	if (!r)
		return;
	r->is_closing = true;
	event_del(&r->timer);
}

void leak_replacer_free(struct leak_replacer *r)
{
	if (!r)
		return;
	leak_feed_free(r->feed);
	free(r);
}

static void put(struct buf *out, const char *name, const char *help, enum metric_type type, uint64_t value)
{
	exposition_family(out, name, help, type);
	exposition_sample_i64(out, name, NULL, 0, (int64_t)value);
}

void leak_replacer_put_metrics(const struct leak_replacer *r, struct buf *out)
{
	put(out, "gpuscale_remediation_leaking_pods",
	    "Pods that reach a limit of memory within --replace-leaking, in the last round.", METRIC_GAUGE,
	    r->n_leaking);
	put(out, "gpuscale_remediation_leak_rounds_total", "Searches for leaking pods since the start.", METRIC_COUNTER,
	    r->n_rounds);
	put(out, "gpuscale_remediation_leak_rounds_without_data_total",
	    "Searches for leaking pods in which a query failed, so no answer was used.", METRIC_COUNTER,
	    r->n_bad_rounds);
	put(out, "gpuscale_remediation_leaking_pods_evicted_total",
	    "Leaking pods that were evicted; in a dry run, those that would have been.", METRIC_COUNTER, r->n_replaced);
	put(out, "gpuscale_remediation_leaking_pods_refused_total",
	    "Evictions of leaking pods that a PodDisruptionBudget refused.", METRIC_COUNTER, r->n_refused);
}
