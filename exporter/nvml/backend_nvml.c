// SPDX-License-Identifier: Apache-2.0
// Samples the devices of NVML and follows them as they come and go. A lost device does not affect the others. Created
// and destroyed MIG instances are found by periodic rescans. While a GPU stays lost, the library is restarted from
// time to time, because NVML recovers a GPU that was reset only then.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "exporter/backend.h"
#include "exporter/nvml/nvml.h"
#include "exporter/xid.h"

#define RESCAN_MS      10000
#define REOPEN_MIN_MS  30000
#define REOPEN_MAX_MS  600000
#define NVML_KNOWN_MAX 64
#define EVENTS_WAIT_MS 500 // longest wait in the driver, which bounds nvml_events_free()

// ---- XID events, counted in a thread of their own, so that none is lost between two samples ----

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

static void *run_events(void *arg)
{
	struct nvml_events *ev = arg;
	while (!atomic_load(&ev->stop)) {
		struct nvml_event event = {0};
		nvml_return r = ev->api->event_wait(ev->set, &event, EVENTS_WAIT_MS);
		if (r == NVML_SUCCESS)
			count(ev, &event);
		else if (r != NVML_TIMEOUT)
			clock_pause_ms(EVENTS_WAIT_MS); // a lost GPU makes every wait return immediately
	}
	return NULL;
}

// True if `ev` covers exactly the GPUs of `found`. MIG instances are ignored.
static bool nvml_events_match(const struct nvml_events *ev, const struct nvml_found *found)
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

// Registers every GPU of `found` that supports XID events, adds its counters to `xids` and starts the thread. Returns
// NULL and fills `e` if the library has no events or no GPU supports them.
static struct nvml_events *nvml_events_new(const struct nvml_api *api, const struct nvml_found *found,
                                           struct xid_store *xids, struct err *e)
{
	if (!api->event_set_create || !api->event_set_free || !api->register_events || !api->event_wait) {
		err_set(e, ERR_UNSUPPORTED, "the library lacks event functions");
		return NULL;
	}
	struct nvml_events *ev = err_calloc(sizeof *ev, e);
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
	int rc = registered ? pthread_create(&ev->thread, NULL, run_events, ev) : 0;
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

// True if XID events of the GPU `uuid` are reported. `ev` may be NULL.
static bool nvml_events_cover(const struct nvml_events *ev, const char *uuid)
{
	for (size_t i = 0; ev && i < ev->n; i++)
		if (strcmp(ev->uuids[i], uuid) == 0)
			return ev->covered[i];
	return false;
}

static void nvml_events_free(struct nvml_events *ev)
{
	if (!ev)
		return;
	atomic_store(&ev->stop, true);
	pthread_join(ev->thread, NULL);
	ev->api->event_set_free(ev->set);
	free(ev);
}

// ---- the backend ----

struct nvml_state {
	bool was_lost; // so that each transition is logged once
	struct nvml_reader reader;
	struct nvml_gpm gpm;
};

struct nvml {
	struct backend base;
	struct nvml_api api;
	struct nvml_events *events; // NULL while closed or if the library has no events
	char driver_version[NVML_DRIVER_BYTES];
	struct nvml_found found, spare;
	struct nvml_state states[DEVICES_MAX];
	size_t n_known; // every GPU found so far; rescans look for the missing ones
	struct device known[NVML_KNOWN_MAX];
	bool gpm_reported;               // the reason why there are no profiling fields was logged
	bool has_times;                  // rescan_at_ms and reopen_at_ms are set
	int64_t rescan_at_ms;            // time of the next rescan
	int64_t reopen_at_ms, reopen_ms; // time of the next restart while a GPU is lost, and the pause after that
};

// ---- opening and closing ----
static void close_events(struct nvml *m)
{
	nvml_events_free(m->events);
	m->events = NULL;
}

static void open_events(struct nvml *m)
{
	struct err e;
	m->events = nvml_events_new(&m->api, &m->found, m->base.config.xids, &e);
	if (!m->events)
		LOG(m->base.config.log, LOG_WARNING, "XID events not available", LOG_S("err", e.msg));
}

static void remember_gpus(struct nvml *m)
{
	for (size_t i = 0; i < m->found.n; i++) {
		const struct nvml_handle *h = &m->found.handles[i];
		size_t k = 0;
		if (h->instance != NVML_WHOLE_GPU || !h->gpu)
			continue;
		while (k < m->n_known && strcmp(m->known[k].uuid, m->found.devices[i].uuid) != 0)
			k++;
		if (k < NVML_KNOWN_MAX)
			m->known[k] = m->found.devices[i];
		m->n_known += k == m->n_known && k < NVML_KNOWN_MAX;
	}
}

// Names the GPUs without a handle that had one earlier, so that they keep their labels and XID counters.
static void name_lost(const struct nvml *m, struct nvml_found *f)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < m->n_known && !f->handles[i].gpu && !f->devices[i].uuid[0]; k++)
			if (m->known[k].index == f->devices[i].index && !nvml_found_has(f, m->known[k].uuid))
				f->devices[i] = m->known[k];
}

// True if a GPU is lost, with or without a handle, or was found earlier and is missing.
static bool is_any_gone(const struct nvml *m)
{
	for (size_t i = 0; i < m->found.n; i++)
		if (m->states[i].was_lost && m->found.handles[i].instance == NVML_WHOLE_GPU)
			return true;
	for (size_t k = 0; k < m->n_known; k++)
		if (!nvml_found_has(&m->found, m->known[k].uuid))
			return true;
	return false;
}

static void nvml_close(struct backend *b)
{
	struct nvml *m = (struct nvml *)b;
	close_events(m);
	for (size_t i = 0; i < m->found.n; i++) {
		nvml_gpm_done(&m->api, &m->states[i].gpm);
		m->states[i] = (struct nvml_state){.was_lost = false};
	}
	m->gpm_reported = false;
	if (m->api.shutdown)
		m->api.shutdown();
	backend_unload_library(&m->api, sizeof m->api);
	m->found.n = 0;
	m->has_times = false;
}

static int nvml_open(struct backend *b, struct err *e)
{
	struct nvml *m = (struct nvml *)b;
	if (nvml_api_load(&m->api, m->base.config.nvml_library, e) < 0)
		return -1;
	nvml_return r = m->api.init();
	if (r != NVML_SUCCESS) {
		nvml_fail(&m->api, e, "NVML failed to start", r);
		backend_unload_library(&m->api, sizeof m->api);
		return -1;
	}
	if (!m->api.driver_version ||
	    m->api.driver_version(m->driver_version, sizeof m->driver_version) != NVML_SUCCESS)
		m->driver_version[0] = '\0';
	m->driver_version[sizeof m->driver_version - 1] = '\0';
	if (nvml_find(&m->api, m->base.config.log, &m->found, e) < 0) {
		nvml_close(b);
		return -1;
	}
	name_lost(m, &m->found);
	b->devices = m->found.devices;
	b->n = m->found.n;
	b->driver_version = m->driver_version;
	remember_gpus(m);
	open_events(m);
	return 0;
}

// ---- devices that come and go ----
// Makes m->spare the current list. A device that stays keeps its state.
static void adopt(struct nvml *m)
{
	struct nvml_state *old = malloc(m->found.n * sizeof *old);
	if (!old)
		return; // keep the current list; the next rescan tries again
	memcpy(old, m->states, m->found.n * sizeof *old);
	for (size_t i = 0; i < m->spare.n; i++) {
		m->states[i] = (struct nvml_state){.was_lost = false};
		for (size_t k = 0; k < m->found.n; k++) {
			if (m->found.handles[k].device != m->spare.handles[i].device ||
			    !device_is_same(&m->found.devices[k], &m->spare.devices[i]))
				continue;
			m->states[i] = old[k];
			old[k] = (struct nvml_state){.was_lost = false};
		}
	}
	for (size_t k = 0; k < m->found.n; k++)
		nvml_gpm_done(&m->api, &old[k].gpm);
	free(old);
	LOG(m->base.config.log, LOG_INFO, "GPUs or MIG instances changed", LOG_I("before", (int64_t)m->found.n),
	    LOG_I("now", (int64_t)m->spare.n));
	m->found = m->spare;
	m->base.n = m->found.n;
	if (m->events && !nvml_events_match(m->events, &m->found))
		close_events(m);
	if (!m->events)
		open_events(m);
	remember_gpus(m);
}

static int rescan(struct nvml *m, struct err *e)
{
	if (nvml_find(&m->api, NULL, &m->spare, e) < 0) {
		// all GPUs are lost at once: keep them listed as lost
		if (nvml_result_is_lost(e->code))
			return 0;
		return -1;
	}
	// A lost GPU may have no handle. It stays on the list, with its instances, until the next restart.
	for (size_t i = 0; i < m->found.n; i++)
		if (m->states[i].was_lost && m->found.handles[i].instance == NVML_WHOLE_GPU &&
		    m->found.handles[i].gpu && !nvml_found_has(&m->spare, m->found.devices[i].uuid))
			nvml_found_insert(&m->spare, &m->found, i);
	name_lost(m, &m->spare);
	if (!nvml_found_equal(&m->found, &m->spare))
		adopt(m);
	return 0;
}

// NVML keeps reporting a GPU as lost after its reset, until the library restarts. A restart discards the history of
// the other GPUs, so the pauses grow for a GPU that never recovers.
static int start_over(struct nvml *m, int64_t mono_ms, struct err *e)
{
	int64_t wait_ms = m->reopen_ms * 2 < REOPEN_MAX_MS ? m->reopen_ms * 2 : REOPEN_MAX_MS;
	LOG(m->base.config.log, LOG_INFO, "Restarting NVML to recover a lost GPU", LOG_I("nextMs", wait_ms));
	nvml_close(&m->base);
	if (nvml_open(&m->base, e) < 0)
		return -1;
	m->has_times = true;
	m->rescan_at_ms = mono_ms + RESCAN_MS;
	m->reopen_at_ms = mono_ms + wait_ms;
	m->reopen_ms = wait_ms;
	return 0;
}

// ---- a round ----
// Profiling fields are optional: a GPU without them is healthy.
static void sample_profiling(struct nvml *m, size_t i, int64_t mono_ms, struct device_sample *s)
{
	const struct nvml_handle *h = &m->found.handles[i];
	nvml_return r = nvml_gpm_read(&m->api, h->gpu, h->instance, &m->states[i].gpm, mono_ms, s);
	bool split = i + 1 < m->found.n && device_is_instance(m->found.devices, i + 1);
	if (r == NVML_SUCCESS || r == NVML_NOT_SUPPORTED || r == NVML_FUNCTION_NOT_FOUND || split || m->gpm_reported)
		return;
	char scratch[32];
	LOG(m->base.config.log, LOG_WARNING, "Profiling fields not available", LOG_S("uuid", m->found.devices[i].uuid),
	    LOG_S("err", nvml_api_error(&m->api, r, scratch, sizeof scratch)));
	m->gpm_reported = true;
}

static void mark_lost(struct nvml *m, size_t i, nvml_return r, struct device_sample *s)
{
	char scratch[32];
	if (!m->states[i].was_lost)
		LOG(m->base.config.log, LOG_ERROR, "GPU lost", LOG_S("uuid", m->found.devices[i].uuid),
		    LOG_S("migId", m->found.devices[i].mig_id),
		    LOG_S("err", nvml_api_error(&m->api, r, scratch, sizeof scratch)));
	*s = (struct device_sample){.lost = true};
	m->states[i].was_lost = true;
}

static nvml_return read_instance(struct nvml *m, size_t i, int64_t mono_ms, struct device_sample *s)
{
	nvml_return r = nvml_read_memory(&m->api, m->found.handles[i].device, s);
	if (r == NVML_SUCCESS || r == NVML_NOT_SUPPORTED || r == NVML_NO_PERMISSION)
		sample_profiling(m, i, mono_ms, s);
	if (sample_count(s) > 0 || nvml_result_is_fatal(r))
		return nvml_result_is_fatal(r) ? r : NVML_SUCCESS;
	m->rescan_at_ms = mono_ms; // the instance was probably destroyed
	return NVML_GPU_IS_LOST;
}

// The value 0 means that no XID occurred; without events that is unknown.
static void set_xid(struct nvml *m, const char *uuid, struct device_sample *s)
{
	int32_t last = xid_store_last(m->base.config.xids, uuid);
	if (last != 0 || nvml_events_cover(m->events, uuid))
		sample_set_i64(s, FIELD_XID_ERRORS, last);
}

// Returns NVML_SUCCESS, or a result that affects the whole library.
static nvml_return sample_device(struct nvml *m, size_t i, int64_t mono_ms, struct device_sample *s)
{
	const struct nvml_handle *h = &m->found.handles[i];
	bool instance = h->instance != NVML_WHOLE_GPU;
	nvml_return r = instance ? read_instance(m, i, mono_ms, s)
	                         : nvml_read_device(&m->api, h->gpu, &m->states[i].reader, mono_ms, s);
	if (nvml_result_is_fatal(r))
		return r;
	if (r != NVML_SUCCESS) {
		mark_lost(m, i, r, s);
		return NVML_SUCCESS;
	}
	if (m->states[i].was_lost)
		LOG(m->base.config.log, LOG_INFO, "GPU recovered", LOG_S("uuid", m->found.devices[i].uuid),
		    LOG_S("migId", m->found.devices[i].mig_id));
	m->states[i].was_lost = false;
	if (!instance) {
		sample_profiling(m, i, mono_ms, s);
		set_xid(m, m->found.devices[i].uuid, s);
	}
	return NVML_SUCCESS;
}

static int scan_devices(struct nvml *m, int64_t mono_ms, struct err *e)
{
	bool lost = is_any_gone(m);
	if (!m->has_times || mono_ms < m->rescan_at_ms - RESCAN_MS) {
		m->has_times = true;
		m->rescan_at_ms = mono_ms + RESCAN_MS;
		m->reopen_ms = REOPEN_MIN_MS / 2;
		m->reopen_at_ms = INT64_MAX;
	}
	if (!lost && m->reopen_at_ms != INT64_MAX) {
		m->reopen_ms = REOPEN_MIN_MS / 2;
		m->reopen_at_ms = INT64_MAX;
	} else if (lost && m->reopen_at_ms == INT64_MAX) {
		m->reopen_at_ms = mono_ms + REOPEN_MIN_MS;
	} else if (lost && mono_ms >= m->reopen_at_ms) {
		return start_over(m, mono_ms, e);
	}
	if (mono_ms < m->rescan_at_ms)
		return 0;
	m->rescan_at_ms = mono_ms + RESCAN_MS;
	return rescan(m, e);
}

static int nvml_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                       struct err *e)
{
	struct nvml *m = (struct nvml *)b;
	if (scan_devices(m, mono_ms, e) < 0)
		return -1;
	bool gpu_lost = false;
	for (size_t i = 0; i < m->found.n; i++) {
		bool instance = m->found.handles[i].instance != NVML_WHOLE_GPU;
		samples[i] = (struct device_sample){.lost = instance && gpu_lost};
		if (samples[i].lost)
			continue; // handled with its GPU
		if (!m->found.handles[i].gpu) {
			samples[i].lost = gpu_lost = m->states[i].was_lost = true;
			continue;
		}
		nvml_return r = sample_device(m, i, mono_ms, &samples[i]);
		if (r != NVML_SUCCESS)
			return nvml_fail(&m->api, e, "the driver is gone", r);
		if (!instance)
			gpu_lost = samples[i].lost;
	}
	return 0;
}

// Processes are read while rendering, in the sampler thread like everything here; nothing is kept between rounds.
static void nvml_render_extra(struct backend *b, struct buf *out)
{
	struct nvml *m = (struct nvml *)b;
	bool opened = false;
	for (size_t i = 0; m->base.config.proc_root && i < m->found.n; i++)
		if (m->found.handles[i].instance == NVML_WHOLE_GPU && !m->states[i].was_lost)
			nvml_processes_render(&m->api, m->found.handles[i].gpu, &m->found.devices[i],
			                      m->base.config.proc_root, out, &opened);
}

static const struct backend_ops ops = {.name = "nvml",
                                       .first_rounds = 2, // rates and profiling fields need a previous sample
                                       .open = nvml_open,
                                       .sample = nvml_sample,
                                       .render_extra = nvml_render_extra,
                                       .close = nvml_close,
                                       .destroy = backend_free};

struct backend *backend_nvml_new(const struct backend_config *config, struct err *e)
{
	return backend_alloc(sizeof(struct nvml), &ops, config, e);
}
