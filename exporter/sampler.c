// SPDX-License-Identifier: Apache-2.0
#include "exporter/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "exporter/backend.h"

#define DROP_INTERVALS   10
#define DROP_MIN_MS      30000
#define ONCE_APART_MS    150
#define COUNT_BYTES_MAX  64
#define COUNT_PATH_BYTES 4096

static const double collect_buckets[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};

struct sampler {
	struct sampler_options options;
	pthread_t thread;
	bool thread_made;

	// Used only by the thread (or by sampler_run_once).
	bool open;
	int64_t retry_ms;
	int64_t start_ms; // mono_ms of virtual time 0
	struct device_history *history;
	struct buf back;
	struct device_sample samples[DEVICES_MAX];
	size_t n_last; // devices of the last successful round
	struct device last[DEVICES_MAX];
	char last_error[ERR_MSG_BYTES]; // last logged error
	struct sampler_status next;     // published together with the page of the round, so that both always agree
	size_t most;                    // highest number of GPUs, as in options.count_file

	pthread_mutex_t lock; // protects the members below
	pthread_cond_t wake;
	bool stop, done;
	bool release_asked;
	int64_t release_for_ms;   // requested duration
	int64_t release_until_ms; // mono_ms, while released
	struct buf front;
	int64_t published_ms; // mono_ms of the last successful round
	struct sampler_status status;
};

// The highest number of GPUs that this node ever had, in a file, so that a GPU that disappears between two starts is
// missing.

static void read_count(struct sampler *s)
{
	struct buf text;
	struct err e;
	const char *path = s->options.count_file;
	if (!path)
		return;
	buf_init(&text, COUNT_BYTES_MAX);
	int rc = buf_read_file(&text, path, &e);
	if (rc == 0) {
		int64_t n = 0;
		rc = num_parse_i64(buf_str(&text), strcspn(buf_str(&text), "\n"), 0, DEVICES_MAX, &n, &e);
		s->most = (size_t)n;
	}
	if (rc < 0 && e.kind != ERR_NOT_FOUND)
		LOG(s->options.log, LOG_WARNING, "GPU count file not valid, starting anew", LOG_S("file", path),
		    LOG_S("err", e.msg));
	buf_done(&text);
}

// The file is replaced as a whole, so that a crash leaves the previous number.
static int write_count(const struct sampler *s)
{
	char fresh[COUNT_PATH_BYTES], text[COUNT_BYTES_MAX];
	if (snprintf(fresh, sizeof fresh, "%s.new", s->options.count_file) >= (int)sizeof fresh) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int len = snprintf(text, sizeof text, "%zu\n", s->most);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -1;
	bool ok = write(fd, text, (size_t)len) == len;
	return close(fd) == 0 && ok ? rename(fresh, s->options.count_file) : -1;
}

// Returns how many GPUs are missing when `n` are found, those that do not respond included. Replaces the file when `n`
// is a new maximum.
static size_t count_missing(struct sampler *s, size_t n)
{
	if (!s->options.count_file || n == s->most)
		return 0;
	if (n < s->most)
		return s->most - n;
	s->most = n;
	if (!s->options.keeps_count && write_count(s) < 0)
		LOG(s->options.log, LOG_WARNING, "GPU count file not written", LOG_S("file", s->options.count_file),
		    LOG_S("err", strerror(errno)));
	return 0;
}

// Counts the GPUs for the next status. MIG instances are not counted.
static void count_devices(struct sampler *s, const struct device *devices, size_t n)
{
	struct sampler_status *st = &s->next;
	st->devices = st->lost = 0;
	st->missing = device_history_missing(s->history, !s->open);
	for (size_t i = 0; i < n; i++) {
		if (device_is_instance(devices, i))
			continue;
		st->devices++;
		st->lost += s->samples[i].lost;
	}
	// While nothing can be read, such as before the driver is loaded, the number of GPUs is not known.
	size_t missing = s->open && n > 0 ? count_missing(s, st->devices) : 0;
	st->missing = missing > st->missing ? missing : st->missing;
}

// Swaps the rendered round and its status in. `seconds` below 0 means that only the state changed.
static void publish(struct sampler *s, bool up, double seconds, const char *message)
{
	struct sampler_status *st = &s->next;
	st->up = up;
	st->samples += up;
	if (up)
		st->age_ms = 0;
	if (seconds >= 0)
		exposition_histogram_observe(&st->collect_seconds, seconds);
	snprintf(st->message, sizeof st->message, "%s", message);
	pthread_mutex_lock(&s->lock);
	struct buf front = s->front;
	s->front = s->back;
	s->back = front;
	s->status = *st;
	if (up)
		s->published_ms = clock_mono_ms(s->options.clock);
	pthread_mutex_unlock(&s->lock);
}

static void render(struct sampler *s, const struct device *devices, size_t n, const struct device_history *history)
{
	const struct sampler_round round = {.devices = devices,
	                                    .samples = s->samples,
	                                    .n = n,
	                                    .driver_version = s->options.backend->driver_version,
	                                    .wall_ms = clock_wall_ms(s->options.clock),
	                                    .history = history};
	s->options.render(s->options.render_arg, &round, &s->back);
}

// Publishes that the devices cannot be read. The GPUs of the last successful round are listed as lost, with their XID
// counters, which remain valid.
static void publish_down(struct sampler *s, const char *message)
{
	for (size_t i = 0; i < s->n_last; i++)
		s->samples[i] = (struct device_sample){.lost = true};
	buf_reset(&s->back);
	if (s->n_last)
		render(s, s->last, s->n_last, NULL);
	count_devices(s, s->last, s->open ? s->n_last : 0);
	publish(s, false, -1, message);
}

static void publish_failure(struct sampler *s, const struct err *e)
{
	s->next.errors++;
	publish_down(s, e->msg);
	if (strcmp(s->last_error, e->msg) != 0)
		LOG(s->options.log, LOG_WARNING, "Reading GPUs failed, retrying",
		    LOG_S("backend", backend_name(s->options.backend)), LOG_S("err", e->msg));
	snprintf(s->last_error, sizeof s->last_error, "%s", e->msg);
}

static double now_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

// Records the duration and the outcome of a call to the backend that started at `start_s`.
static void note_read(struct sampler *s, bool ok, double start_s)
{
	s->next.read_ok = ok;
	s->next.read_seconds = now_s() - start_s;
}

static int open_backend(struct sampler *s, struct err *e)
{
	struct backend *b = s->options.backend;
	double start_s = now_s();
	if (b->ops->open(b, e) < 0) {
		note_read(s, false, start_s);
		return -1;
	}
	s->open = true;
	assert(b->n <= DEVICES_MAX);
	LOG(s->options.log, LOG_INFO, "GPUs found", LOG_S("backend", backend_name(b)), LOG_I("devices", (int64_t)b->n),
	    LOG_S("model", b->n ? b->devices[0].model : ""), LOG_S("driverVersion", b->driver_version));
	s->last_error[0] = '\0';
	return 0;
}

static int sample_round(struct sampler *s, int64_t t_ms, struct err *e)
{
	struct backend *b = s->options.backend;
	double start_s = now_s();
	int rc = b->ops->sample(b, t_ms, clock_wall_ms(s->options.clock), s->samples, e);
	note_read(s, rc == 0, start_s);
	if (rc < 0)
		return -1;
	size_t n = s->n_last = b->n;
	memcpy(s->last, b->devices, n * sizeof *s->last);
	for (size_t i = 0; i < n; i++) {
		sample_check(&s->samples[i]);
		s->next.implausible += s->samples[i].implausible;
	}
	device_history_add(s->history, t_ms, b->devices, s->samples, n);
	buf_reset(&s->back);
	render(s, b->devices, n, s->history);
	if (b->ops->render_extra)
		b->ops->render_extra(b, &s->back);
	if (s->back.failed)
		return err_set(e, ERR_LIMIT, "the metrics of %zu GPUs exceed the ceiling of %zu bytes", n,
		               s->options.text_bytes_max);
	count_devices(s, b->devices, n);
	publish(s, true, now_s() - start_s, "");
	return 0;
}

static void close_backend(struct sampler *s)
{
	if (s->open)
		s->options.backend->ops->close(s->options.backend);
	s->open = false;
}

// Performs one step of the thread. Returns the time until the next one.
static int64_t step(struct sampler *s)
{
	struct err e = {.kind = ERR_NONE};
	int64_t now_ms = clock_mono_ms(s->options.clock);
	if (!s->open && open_backend(s, &e) < 0) {
		publish_failure(s, &e);
		int64_t wait_ms = s->retry_ms;
		s->retry_ms = s->retry_ms * 2 < SAMPLER_RETRY_MAX_MS ? s->retry_ms * 2 : SAMPLER_RETRY_MAX_MS;
		return wait_ms;
	}
	if (sample_round(s, now_ms - s->start_ms, &e) < 0) {
		publish_failure(s, &e);
		close_backend(s);
		return s->retry_ms;
	}
	s->retry_ms = SAMPLER_RETRY_MIN_MS;
	// Rounds stay on the grid of the start time: a slow round skips steps and never shifts or accumulates them.
	int64_t after_ms = clock_mono_ms(s->options.clock) - s->start_ms;
	return s->options.interval_ms - after_ms % s->options.interval_ms;
}

static struct timespec after(int64_t wait_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t ns = until.tv_nsec + wait_ms % 1000 * 1000000;
	until.tv_sec += (time_t)(wait_ms / 1000 + ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	return until;
}

// Closes the devices and sleeps until the release ends. The lock is held on entry and on return.
static void stay_released_locked(struct sampler *s)
{
	pthread_mutex_unlock(&s->lock);
	close_backend(s);
	publish_down(s, "the GPUs are released");
	LOG(s->options.log, LOG_INFO, "GPUs released", LOG_S("backend", backend_name(s->options.backend)));
	pthread_mutex_lock(&s->lock);
	s->status.released = true;
	int64_t now_ms = clock_mono_ms(s->options.clock);
	while (!s->stop && (s->release_asked || s->release_until_ms > now_ms)) {
		// The time starts when the devices are closed, which may take long.
		if (s->release_asked)
			s->release_until_ms = now_ms + s->release_for_ms;
		s->release_asked = false;
		const struct timespec until = after(s->release_until_ms - now_ms);
		if (s->release_until_ms > now_ms)
			pthread_cond_timedwait(&s->wake, &s->lock, &until);
		now_ms = clock_mono_ms(s->options.clock);
	}
	s->status.released = false;
	s->retry_ms = SAMPLER_RETRY_MIN_MS;
}

static void *run(void *arg)
{
	struct sampler *s = arg;
	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		if (s->release_asked) {
			stay_released_locked(s);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		const struct timespec until = after(step(s));
		pthread_mutex_lock(&s->lock);
		while (!s->stop && !s->release_asked && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
			; // spurious wakeup
	}
	pthread_mutex_unlock(&s->lock);
	close_backend(s);
	pthread_mutex_lock(&s->lock);
	s->done = true;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void sampler_release(struct sampler *s, int64_t for_ms)
{
	pthread_mutex_lock(&s->lock);
	s->release_asked = for_ms > 0 || s->status.released;
	s->release_for_ms = for_ms < SAMPLER_RELEASE_MAX_MS ? for_ms : SAMPLER_RELEASE_MAX_MS;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

struct sampler *sampler_new(const struct sampler_options *options, struct err *e)
{
	struct sampler *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->options = *options;
	read_count(s);
	s->history = device_history_new(options->window_ms, options->interval_ms, e);
	if (!s->history) {
		free(s);
		return NULL;
	}
	int64_t drop_ms = options->interval_ms * DROP_INTERVALS;
	if (!s->options.drop_after_ms)
		s->options.drop_after_ms = drop_ms > DROP_MIN_MS ? drop_ms : DROP_MIN_MS;
	buf_init(&s->back, options->text_bytes_max);
	buf_init(&s->front, options->text_bytes_max);
	s->retry_ms = SAMPLER_RETRY_MIN_MS;
	s->start_ms = clock_mono_ms(options->clock);
	s->next.age_ms = -1;
	s->next.read_seconds = -1;
	snprintf(s->next.message, sizeof s->next.message, "starting");
	struct exposition_histogram *h = &s->next.collect_seconds;
	h->n = sizeof collect_buckets / sizeof collect_buckets[0];
	_Static_assert(sizeof collect_buckets / sizeof collect_buckets[0] <= EXPOSITION_BUCKETS_MAX, "buckets fit");
	memcpy(h->upper, collect_buckets, sizeof collect_buckets);
	s->status = s->next;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	return s;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	buf_done(&s->back);
	buf_done(&s->front);
	device_history_free(s->history);
	free(s);
}

int sampler_start(struct sampler *s, struct err *e)
{
	// Signals are handled by the main loop.
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		return err_set_code(e, ERR_INTERNAL, rc, "cannot start the sampler thread: %s", strerror(rc));
	s->thread_made = true;
	return 0;
}

bool sampler_stop(struct sampler *s, int64_t timeout_ms)
{
	if (!s->thread_made)
		return true;
	const struct timespec until = after(timeout_ms);
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->wake);
	int rc = 0;
	while (!s->done && rc == 0)
		rc = pthread_cond_timedwait(&s->wake, &s->lock, &until);
	bool done = s->done;
	pthread_mutex_unlock(&s->lock);
	if (!done)
		return false;
	pthread_join(s->thread, NULL);
	s->thread_made = false;
	return true;
}

int sampler_run_once(struct sampler *s, int64_t at_ms, struct err *e)
{
	int rc = open_backend(s, e);
	for (int64_t t_ms = 0; rc == 0 && t_ms < at_ms; t_ms += s->options.interval_ms)
		rc = sample_round(s, t_ms, e);
	// A real device has no virtual time: its first rounds are separated by real time.
	for (int i = 1; rc == 0 && i < s->options.backend->ops->first_rounds; i++) {
		rc = sample_round(s, at_ms, e);
		clock_pause_ms(ONCE_APART_MS);
		at_ms += ONCE_APART_MS;
	}
	if (rc == 0)
		rc = sample_round(s, at_ms, e);
	if (rc < 0)
		publish_failure(s, e);
	close_backend(s);
	return rc;
}

void sampler_read(struct sampler *s, struct buf *out, struct sampler_status *ret_status)
{
	int64_t now_ms = clock_mono_ms(s->options.clock);
	pthread_mutex_lock(&s->lock);
	struct sampler_status *st = &s->status;
	if (st->age_ms >= 0)
		st->age_ms = now_ms > s->published_ms ? now_ms - s->published_ms : 0;
	st->ready = st->up && st->age_ms <= SAMPLER_READY_INTERVALS * s->options.interval_ms;
	st->release_left_ms = st->released && s->release_until_ms > now_ms ? s->release_until_ms - now_ms : 0;
	st->dropped = st->up && st->age_ms > s->options.drop_after_ms;
	*ret_status = *st;
	ret_status->backend = backend_name(s->options.backend);
	if (out && !st->dropped)
		buf_put(out, buf_str(&s->front), s->front.len);
	pthread_mutex_unlock(&s->lock);
}
