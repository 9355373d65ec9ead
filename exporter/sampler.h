// SPDX-License-Identifier: Apache-2.0
// The thread that reads the devices. It alone calls the backend, so a driver that is slow or hangs stops nothing else:
// each round is rendered into a buffer of its own and swapped in under a lock, and a scrape copies what is there.
#ifndef GPUSCALE_EXPORTER_SAMPLER_H
#define GPUSCALE_EXPORTER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exposition.h"
#include "exporter/render.h"

struct backend;
struct buf;
struct clock;
struct err;
struct log;
struct sampler;
struct xid_store;

#define SAMPLER_INTERVAL_MIN_MS 100
#define SAMPLER_INTERVAL_MAX_MS 10000
#define SAMPLER_WINDOW_MS       15000 // default
#define SAMPLER_WINDOW_MAX_MS   600000
#define SAMPLER_RELEASE_MAX_MS  600000
#define SAMPLER_READY_INTERVALS 3     // ready = a round ended within this many intervals
#define SAMPLER_RETRY_MIN_MS    1000  // a backend that does not open is tried again after this, doubling
#define SAMPLER_RETRY_MAX_MS    60000 // up to this

struct sampler_options {
	struct backend *backend;   // not owned
	struct xid_store *xids;    // not owned
	const struct clock *clock; // not owned
	struct log *log;           // not owned, may be NULL
	int64_t interval_ms;
	// Readings older than this are no longer served: frozen values must not pass for fresh ones.
	// 0: 10 intervals, at least 30 s.
	int64_t drop_after_ms;
	int64_t window_ms;            // of the minimum, maximum and mean families; 0: none
	struct render_options render; // driver_version and history are filled by the sampler
};

struct sampler_status {
	const char *backend;     // name of the one at work
	bool up;                 // devices were found and the last round could read them
	bool ready;              // up, and the last round ended within SAMPLER_READY_INTERVALS intervals
	bool dropped;            // the readings are older than drop_after_ms and left out
	int64_t age_ms;          // since the end of the last good round; -1: there was none
	size_t devices;          // GPUs found, without MIG instances
	size_t lost;             // of these, not answering
	size_t missing;          // GPUs that were found once and are not any more
	bool released;           // every handle is closed, as sampler_release asked
	int64_t release_left_ms; // until the devices are opened again
	uint64_t samples;        // rounds that could read
	uint64_t errors;         // rounds or openings that failed
	uint64_t texts;          // how often sampler_read's text has changed, but for `dropped`
	bool read_ok;            // the last attempt to open or read the devices that ended
	double read_seconds;     // how long it took, without rendering; -1: none ended yet
	char message[256];       // why it is not up, "" otherwise
	struct exposition_histogram collect_seconds; // of a round, with its rendering
};

struct sampler *sampler_new(const struct sampler_options *options, struct err *e);
int sampler_start(struct sampler *s, struct err *e);
// Ends the thread. False when it did not end within timeout_ms (a call into a driver hangs): then neither the sampler
// nor the backend may be freed.
bool sampler_stop(struct sampler *s, int64_t timeout_ms);
void sampler_free(struct sampler *s);

// Closes every handle on the devices, so that a GPU can be reset, unbound or split, and opens them again for_ms after
// that (at most SAMPLER_RELEASE_MAX_MS). Comes back at once: sampler_read tells in status.released when they are
// closed, which a driver call under way puts off. Asking again sets a new end, 0 ends it now. XID events that happen
// meanwhile are not seen. Any thread.
void sampler_release(struct sampler *s, int64_t for_ms);

// Without a thread: opens, plays the rounds of 0, interval, .. at_ms in virtual time, keeps the last one.
int sampler_run_once(struct sampler *s, int64_t at_ms, struct err *e);
// Appends the last round's text, unless dropped, and tells how things stand. Any thread.
void sampler_read(struct sampler *s, struct buf *out, struct sampler_status *ret_status);

#endif
