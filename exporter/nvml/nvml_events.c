// SPDX-License-Identifier: Apache-2.0
#include "exporter/nvml/nvml_events.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "exporter/device.h"
#include "exporter/nvml/nvml_find.h"
#include "exporter/xid.h"

struct nvml_events {
	const struct nvml_api *api;
	size_t n;
	nvml_device gpus[DEVICES_MAX];
	char uuids[DEVICES_MAX][DEVICE_UUID_BYTES];
	bool covered[DEVICES_MAX];
	struct xid_store *xids;
	struct clock clock;
	nvml_event_set set;
	pthread_t thread;
	atomic_bool stop;
};

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static void count(struct nvml_events *ev, const struct nvml_event *event)
{
	if (!(event->type & NVML_EVENT_XID))
		return;
	for (size_t i = 0; i < ev->n; i++) {
		if (ev->gpus[i] != event->device)
			continue;
		int32_t code = event->data <= INT32_MAX ? (int32_t)event->data : XID_CODE_OTHER;
		xid_store_count(ev->xids, ev->uuids[i], code, clock_wall_ms(&ev->clock));
		return;
	}
}

static void *run(void *arg)
{
	struct nvml_events *ev = arg;
	while (!atomic_load(&ev->stop)) {
		struct nvml_event event = {0};
		nvml_return r = ev->api->event_wait(ev->set, &event, NVML_EVENTS_WAIT_MS);
		if (r == NVML_SUCCESS)
			count(ev, &event);
		else if (r != NVML_TIMEOUT)
			pause_ms(NVML_EVENTS_WAIT_MS); // a lost GPU makes every wait return immediately
	}
	return NULL;
}

bool nvml_events_match(const struct nvml_events *ev, const struct nvml_found *found)
{
	size_t k = 0;
	for (size_t i = 0; i < found->n; i++) {
		if (found->handles[i].instance != NVML_WHOLE_GPU || !found->handles[i].gpu)
			continue;
		if (k == ev->n || ev->gpus[k] != found->handles[i].gpu ||
		    strcmp(ev->uuids[k], found->devices[i].uuid) != 0)
			return false;
		k++;
	}
	return k == ev->n;
}

struct nvml_events *nvml_events_new(const struct nvml_api *api, const struct nvml_found *found, struct xid_store *xids,
                                    struct err *e)
{
	if (!api->event_set_create || !api->event_set_free || !api->register_events || !api->event_wait) {
		err_set(e, ERR_UNSUPPORTED, "the library lacks event functions");
		return NULL;
	}
	struct nvml_events *ev = alloc_zeroed(sizeof *ev, e);
	if (!ev)
		return NULL;
	ev->api = api;
	ev->xids = xids;
	clock_init_real(&ev->clock);
	atomic_init(&ev->stop, false);
	char scratch[32];
	nvml_return r = api->event_set_create(&ev->set);
	if (r != NVML_SUCCESS) {
		err_set(e, ERR_UNSUPPORTED, "cannot create an event set: %s",
		        nvml_api_error(api, r, scratch, sizeof scratch));
		free(ev);
		return NULL;
	}
	size_t registered = 0;
	for (size_t i = 0; i < found->n; i++) {
		if (found->handles[i].instance != NVML_WHOLE_GPU || !found->handles[i].gpu)
			continue;
		ev->gpus[ev->n] = found->handles[i].gpu;
		snprintf(ev->uuids[ev->n], sizeof ev->uuids[ev->n], "%s", found->devices[i].uuid);
		ev->covered[ev->n] = api->register_events(ev->gpus[ev->n], NVML_EVENT_XID, ev->set) == NVML_SUCCESS;
		registered += ev->covered[ev->n++];
	}
	// Signals are handled by the main loop.
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = registered ? pthread_create(&ev->thread, NULL, run, ev) : 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (registered && rc == 0) {
		// Only now: a counter at 0 means that XIDs would be counted.
		for (size_t i = 0; i < ev->n; i++)
			if (ev->covered[i])
				xid_store_add_gpu(xids, ev->uuids[i]);
		return ev;
	}
	if (registered)
		err_set_code(e, ERR_INTERNAL, rc, "cannot start the event thread: %s", strerror(rc));
	else
		err_set(e, ERR_UNSUPPORTED, "no GPU reports XID events");
	api->event_set_free(ev->set);
	free(ev);
	return NULL;
}

bool nvml_events_cover(const struct nvml_events *ev, const char *uuid)
{
	for (size_t i = 0; ev && i < ev->n; i++)
		if (strcmp(ev->uuids[i], uuid) == 0)
			return ev->covered[i];
	return false;
}

void nvml_events_free(struct nvml_events *ev)
{
	if (!ev)
		return;
	atomic_store(&ev->stop, true);
	pthread_join(ev->thread, NULL);
	ev->api->event_set_free(ev->set);
	free(ev);
}
