// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/keda_watch.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "k8s/cache/informer.h"
#include "k8s/client/k8s_client.h"
#include "k8s/lease/lease_record.h"

#define DURATION_MIN_MS 1000
#define DURATION_MAX_MS 600000 // a longer leaseDurationSeconds is treated as this
#define TEXT_BYTES      512

struct keda_watch {
	struct keda_watch_options options;
	struct informer *informer;
	struct informer_item lease; // wanted
	struct event *expiry;       // fires when the Lease was not renewed
	enum keda_state state;
	bool has_error;                  // logged
	char renewed[LEASE_STAMP_BYTES]; // renewTime at the last change
	char key[INFORMER_KEY_BYTES], text[TEXT_BYTES];
};

static void set_state(struct keda_watch *w, enum keda_state state)
{
	if (state == w->state)
		return;
	w->state = state;
	if (state != KEDA_UNREADABLE)
		LOG(w->options.log, LOG_INFO,
		    state == KEDA_RUNS ? "KEDA's operator runs; ScaledObjects are left to it"
		                       : "KEDA's operator does not run; acting on ScaledObjects",
		    LOG_S("lease", w->key));
	w->options.on_change(w->options.arg);
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
	set_state(arg, KEDA_STOPPED);
}

// The stamps come from another machine, so a Lease counts as renewed when its stamp changes.
static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct keda_watch *w = arg;
	struct lease_record record;
	struct err e;
	if (!item)
		return; // another Lease of the namespace
	if (lease_item_decode(json, len, &record, &e) < 0) {
		LOG(w->options.log, LOG_ERROR, "Cannot read the Lease of KEDA's operator", LOG_S("err", e.msg));
		return;
	}
	if (!record.holder[0]) {
		event_del(w->expiry);
		set_state(w, KEDA_STOPPED);
		return;
	}
	if (w->state != KEDA_UNKNOWN && w->state != KEDA_UNREADABLE && strcmp(record.renew_stamp, w->renewed) == 0)
		return;
	int64_t ms = record.duration_ms < DURATION_MIN_MS   ? DURATION_MIN_MS
	             : record.duration_ms > DURATION_MAX_MS ? DURATION_MAX_MS
	                                                    : record.duration_ms;
	snprintf(w->renewed, sizeof w->renewed, "%s", record.renew_stamp);
	snprintf(w->text, sizeof w->text, "KEDA's operator (Lease %.200s, held by %.200s)", w->key, record.holder);
	timer_start(w->expiry, ms);
	set_state(w, KEDA_RUNS);
}

static void on_absent(void *arg, struct informer_item *item)
{
	struct keda_watch *w = arg;
	event_del(w->expiry);
	set_state(w, KEDA_STOPPED);
}

static void on_error(void *arg, const char *namespace_name, const struct err *error)
{
	struct keda_watch *w = arg;
	if (error && !w->has_error)
		LOG(w->options.log, LOG_ERROR, "Cannot watch the Lease of KEDA's operator", LOG_S("lease", w->key),
		    LOG_S("err", error->msg));
	w->has_error = error != NULL;
	if (error && (w->state == KEDA_UNKNOWN || w->state == KEDA_UNREADABLE)) { // later, the last state stays
		snprintf(w->text, sizeof w->text, "KEDA's operator, whose Lease %.200s cannot be read (%.200s),",
		         w->key, error->msg);
		set_state(w, KEDA_UNREADABLE);
	}
}

struct keda_watch *keda_watch_new(const struct keda_watch_options *options, struct err *e)
{
	struct keda_watch *w = err_calloc(sizeof *w, e);
	if (!w)
		return NULL;
	w->options = *options;
	snprintf(w->key, sizeof w->key, "%s/" KEDA_LEASE, options->namespace_name);
	snprintf(w->text, sizeof w->text, "KEDA's operator (Lease %.200s)", w->key);
	w->expiry = evtimer_new(k8s_client_loop(options->client), on_expiry, w);
	w->informer = informer_new(
	        &(struct informer_options){
	                .client = options->client,
	                .group_path = "/apis/coordination.k8s.io/v1",
	                .plural = "leases",
	                .callbacks = {.on_object = on_object, .on_absent = on_absent, .on_error = on_error},
	                .arg = w},
	        e);
	if (!w->expiry)
		err_no_memory(e);
	if (w->expiry && w->informer && informer_put(w->informer, &w->lease, w->key, NULL, e) == 0)
		return w;
	keda_watch_free(w);
	return NULL;
}

void keda_watch_free(struct keda_watch *w)
{
	if (!w)
		return;
	informer_remove(&w->lease);
	informer_free(w->informer);
	if (w->expiry)
		event_free(w->expiry);
	free(w);
}

enum keda_state keda_watch_state(const struct keda_watch *w)
{
	return w->state;
}

const char *keda_watch_text(const struct keda_watch *w)
{
	return w->text;
}
