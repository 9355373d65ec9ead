// SPDX-License-Identifier: Apache-2.0
// The thread that reads the devices. Only this thread calls the backend, so a driver that is slow or hangs blocks
// nothing else. A callback renders each round into a private buffer, which the sampler then swaps in under a lock; a
// scrape copies the text of the last round.
#ifndef GPUSCALE_EXPORTER_SAMPLER_H
#define GPUSCALE_EXPORTER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exposition.h"
#include "exporter/device.h"

struct backend;
struct buf;
struct clock;
struct device_history;
struct err;
struct log;
struct sampler;

#define SAMPLER_INTERVAL_MIN_MS 100
#define SAMPLER_INTERVAL_MAX_MS 10000
#define SAMPLER_WINDOW_MS       15000 // default
#define SAMPLER_WINDOW_MAX_MS   600000
#define SAMPLER_RELEASE_MAX_MS  600000
#define SAMPLER_READY_INTERVALS 3     // the sampler is ready if a round completed within this many intervals
#define SAMPLER_RETRY_MIN_MS    1000  // delay before the first retry of a backend that failed to open; it doubles
#define SAMPLER_RETRY_MAX_MS    60000 // up to this delay

// One round, as the render callback receives it.
struct sampler_round {
	const struct device *devices;
	const struct device_sample *samples; // one per device
	size_t n;
	const char *driver_version;           // "" if unknown
	int64_t wall_ms;                      // time of the round
	const struct device_history *history; // NULL if the devices could not be read
};

// Appends the text of `round` to `out`. Runs in the sampler thread, or in sampler_run_once(). `round` is valid only
// during the call.
typedef void sampler_render_fn(void *arg, const struct sampler_round *round, struct buf *out);

struct sampler_options {
	struct backend *backend;   // not owned
	const struct clock *clock; // not owned
	struct log *log;           // not owned; may be NULL
	int64_t interval_ms;
	// Readings older than this are left out of the page, so that a stale value is never taken for a current one.
	// 0 stands for 10 intervals, but at least 30 s.
	int64_t drop_after_ms;
	// The file with the highest number of GPUs that this node ever had, which need not exist yet; not owned. NULL:
	// GPUs that disappeared before the start are not missing.
	const char *count_file;
	bool keeps_count;          // the file is never written
	int64_t window_ms;         // length of the windows in the device history; 0 disables them
	sampler_render_fn *render; // required
	void *render_arg;          // not owned
	size_t text_bytes_max;     // limit on the text of a round
};

struct sampler_status {
	const char *backend;     // name of the backend in use
	bool up;                 // devices were found and the last round could read them
	bool ready;              // up, and the last round completed within SAMPLER_READY_INTERVALS intervals
	bool dropped;            // the readings are older than drop_after_ms and omitted
	int64_t age_ms;          // since the last successful round; -1: none yet
	size_t devices;          // GPUs found, without MIG instances
	size_t lost;             // GPUs that do not respond
	size_t missing;          // GPUs that were found earlier, or before the start, and are missing now
	bool released;           // every handle is closed after sampler_release()
	int64_t release_left_ms; // until the devices are opened again
	uint64_t samples;        // successful rounds
	uint64_t errors;         // failed rounds and failed attempts to open the backend
	uint64_t implausible;    // values that no device can have, which were left out
	bool read_ok;            // the last completed attempt to open or read the devices succeeded
	double read_seconds;     // its duration, without rendering; -1: none completed yet
	char message[256];       // why it is not up, "" otherwise
	struct exposition_histogram collect_seconds; // duration of a round, including rendering
};

// Copies `options`; `render` is required. Returns NULL and fills `e` on failure.
struct sampler *sampler_new(const struct sampler_options *options, struct err *e);
// Starts the thread. Returns -1 and fills `e` on failure.
int sampler_start(struct sampler *s, struct err *e);
// Stops the thread. Returns false if it did not stop within `timeout_ms` because a driver call hangs: then neither
// the sampler nor the backend may be freed.
bool sampler_stop(struct sampler *s, int64_t timeout_ms);
void sampler_free(struct sampler *s);

// Closes every handle on the devices, so that a GPU can be reset, unbound or split, and reopens them `for_ms` later
// (at most SAMPLER_RELEASE_MAX_MS). Returns immediately; `released` of sampler_read() is true once the handles are
// closed, which a driver call in progress delays. Another call replaces the remaining time; 0 ends the release. XID
// events in the meantime are lost. Any thread.
void sampler_release(struct sampler *s, int64_t for_ms);

// Without a thread: opens the backend, plays the rounds 0, interval, .. `at_ms` in virtual time and keeps the last
// one. Returns -1 and fills `e` if a round fails.
int sampler_run_once(struct sampler *s, int64_t at_ms, struct err *e);
// Appends the text of the last round to `out`, unless it is dropped, and fills `ret_status`. `out` may be NULL. Any
// thread.
void sampler_read(struct sampler *s, struct buf *out, struct sampler_status *ret_status);

#endif
