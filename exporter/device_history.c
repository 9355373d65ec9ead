// SPDX-License-Identifier: Apache-2.0
// The history of each device: its last readings within the window, in rings of fixed size; the offsets of its
// counters, so that they continue when the driver resets them; and whether it was ever found. No I/O, no clock.
#include "exporter/device.h"

#include <math.h>

#include "base/base.h"

#define GAP_INTERVALS 3 // a reading is weighted with at most this many intervals; the time before that is unknown

struct counter {
	bool seen;
	int64_t last, offset; // last raw value; sum of the values before each reset
};

// One device. Ring entry k of row r: values[r * capacity + k]; NaN: no reading.
struct track {
	struct device device;
	bool is_gpu;
	uint64_t seen; // number of the last round that contained the device
	struct counter counters[FIELD__COUNT];
	size_t n, head; // entries used, and the index of the next one
	int64_t *t_ms;
	double *values;
};

struct device_history {
	int64_t window_ms, interval_ms;
	size_t capacity;          // entries of a ring
	size_t n_rows;            // rings of a device
	int row_of[FIELD__COUNT]; // -1: no ring
	uint64_t round;
	size_t n_tracks;
	struct track *tracks[DEVICE_HISTORY_DEVICES_MAX];
	size_t n_current;
	struct track *current[DEVICES_MAX]; // devices of the last round; NULL: out of memory, or no UUID
};

struct device_history *device_history_new(int64_t window_ms, int64_t interval_ms, struct err *e)
{
	if (window_ms / interval_ms > DEVICE_HISTORY_SAMPLES_MAX) {
		char window[NUM_TEXT_BYTES], interval[NUM_TEXT_BYTES];
		num_format_duration_ms(window, window_ms);
		num_format_duration_ms(interval, interval_ms);
		err_set(e, ERR_LIMIT, "a window of %s at an interval of %s has %d samples, the ceiling is %d", window,
		        interval, (int)(window_ms / interval_ms), DEVICE_HISTORY_SAMPLES_MAX);
		return NULL;
	}
	struct device_history *h = err_calloc(sizeof *h, e);
	if (!h)
		return NULL;
	h->window_ms = window_ms;
	h->interval_ms = interval_ms;
	// One more for the reading at the edge of the window, and one for rounds that come slightly early.
	h->capacity = (size_t)(window_ms / interval_ms) + 2;
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		bool ring = window_ms > 0 && (family_of(f)->window || f == FIELD_TOTAL_ENERGY);
		h->row_of[f] = ring ? (int)h->n_rows++ : -1;
	}
	return h;
}

static void track_free(struct track *t)
{
	if (!t)
		return;
	free(t->t_ms);
	free(t->values);
	free(t);
}

void device_history_free(struct device_history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n_tracks; i++)
		track_free(h->tracks[i]);
	free(h);
}

static struct track *track_new(const struct device_history *h, const struct device *d, bool is_gpu)
{
	struct track *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->device = *d;
	t->is_gpu = is_gpu;
	if (h->n_rows == 0)
		return t;
	t->t_ms = calloc(h->capacity, sizeof *t->t_ms);
	t->values = calloc(h->capacity * h->n_rows, sizeof *t->values);
	if (t->t_ms && t->values)
		return t;
	track_free(t);
	return NULL;
}

static struct track *find_or_add(struct device_history *h, const struct device *d, bool is_gpu)
{
	size_t oldest = 0;
	for (size_t i = 0; i < h->n_tracks; i++) {
		if (device_is_same(&h->tracks[i]->device, d))
			return h->tracks[i];
		if (h->tracks[i]->seen < h->tracks[oldest]->seen)
			oldest = i;
	}
	struct track *t = track_new(h, d, is_gpu);
	if (!t)
		return NULL;
	if (h->n_tracks < DEVICE_HISTORY_DEVICES_MAX) {
		h->tracks[h->n_tracks++] = t;
		return t;
	}
	// There are more tracks than devices, so the oldest track is not part of this round.
	track_free(h->tracks[oldest]);
	h->tracks[oldest] = t;
	return t;
}

static void carry_on(struct track *t, struct device_sample *s)
{
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		if (!family_of(f)->accumulates || !sample_has(s, f))
			continue;
		struct counter *c = &t->counters[f];
		int64_t v = s->value[f].i;
		if (v < 0) { // invalid: no reading
			sample_drop(s, f);
			continue;
		}
		if (c->seen && v < c->last)
			c->offset = c->offset > INT64_MAX - c->last ? 0 : c->offset + c->last;
		c->seen = true;
		c->last = v;
		// An absurd value must not overflow: the counter then starts over, as a counter may.
		if (c->offset > INT64_MAX - v)
			c->offset = 0;
		s->value[f].i = v + c->offset;
	}
}

static void remember(const struct device_history *h, struct track *t, int64_t t_ms, const struct device_sample *s)
{
	if (h->n_rows == 0)
		return;
	t->t_ms[t->head] = t_ms;
	for (enum field f = 0; f < FIELD__COUNT; f++)
		if (h->row_of[f] >= 0)
			t->values[(size_t)h->row_of[f] * h->capacity + t->head] =
			        sample_has(s, f) ? sample_get(s, f) : NAN;
	t->head = (t->head + 1) % h->capacity;
	if (t->n < h->capacity)
		t->n++;
}

void device_history_add(struct device_history *h, int64_t t_ms, const struct device *devices,
                        struct device_sample *samples, size_t n)
{
	assert(n <= DEVICES_MAX);
	h->round++;
	for (size_t i = 0; i < n; i++) {
		struct track *t = i < h->n_current ? h->current[i] : NULL;
		if (!devices[i].uuid[0])
			t = NULL; // a lost GPU that was never read: nothing identifies it
		else if (!t || !device_is_same(&t->device, &devices[i]))
			t = find_or_add(h, &devices[i], !device_is_instance(devices, i));
		h->current[i] = t;
		if (!t)
			continue;
		t->seen = h->round;
		carry_on(t, &samples[i]);
		remember(h, t, t_ms, &samples[i]);
	}
	h->n_current = n;
}

// Returns the entry `k` steps before the newest one.
static size_t entry(const struct device_history *h, const struct track *t, size_t k)
{
	return (t->head + h->capacity - 1 - k) % h->capacity;
}

// Mean power in W between the newest reading of the energy counter (mJ) and the oldest one within the window.
static bool energy_mean(const struct device_history *h, const struct track *t, double *ret_watts)
{
	const double *mj = t->values + (size_t)h->row_of[FIELD_TOTAL_ENERGY] * h->capacity;
	size_t newest = entry(h, t, 0), oldest = newest;
	for (size_t k = 1; k < t->n; k++) {
		size_t at = entry(h, t, k);
		if (t->t_ms[at] < t->t_ms[newest] - h->window_ms || isnan(mj[at]))
			break;
		oldest = at;
	}
	int64_t dt_ms = t->t_ms[newest] - t->t_ms[oldest];
	if (isnan(mj[newest]) || dt_ms <= 0)
		return false;
	*ret_watts = (mj[newest] - mj[oldest]) / (double)dt_ms;
	return true;
}

bool device_history_window(const struct device_history *h, size_t i, enum field f, struct window *ret_window)
{
	const struct track *t = i < h->n_current ? h->current[i] : NULL;
	if (!t || !family_of(f)->window || h->row_of[f] < 0 || t->n == 0)
		return false;
	const double *values = t->values + (size_t)h->row_of[f] * h->capacity;
	size_t newest = entry(h, t, 0);
	if (isnan(values[newest]))
		return false;
	struct window w = {.min = values[newest], .max = values[newest]};
	double sum = 0, weight = 0;
	for (size_t k = 0; k < t->n; k++) {
		size_t at = entry(h, t, k);
		// A reading covers the time before it, so one at the very edge is outside.
		if (t->t_ms[at] <= t->t_ms[newest] - h->window_ms)
			break;
		double v = values[at];
		if (isnan(v))
			continue;
		int64_t span_ms = h->interval_ms;
		if (k + 1 < t->n) {
			int64_t apart_ms = t->t_ms[at] - t->t_ms[entry(h, t, k + 1)];
			if (apart_ms > 0 && apart_ms <= GAP_INTERVALS * h->interval_ms)
				span_ms = apart_ms;
		}
		w.min = v < w.min ? v : w.min;
		w.max = v > w.max ? v : w.max;
		sum += v * (double)span_ms;
		weight += (double)span_ms;
	}
	w.avg = sum / weight;
	double watts;
	if (f == FIELD_POWER_USAGE && energy_mean(h, t, &watts))
		w.avg = watts;
	*ret_window = w;
	return true;
}

size_t device_history_missing(const struct device_history *h, bool all_gone)
{
	size_t n = 0;
	for (size_t i = 0; i < h->n_tracks; i++)
		n += h->tracks[i]->is_gpu && (all_gone || h->tracks[i]->seen != h->round);
	return n;
}

int64_t device_history_window_ms(const struct device_history *h)
{
	return h->window_ms;
}
