// SPDX-License-Identifier: Apache-2.0
// A GPU and one sample of it. A field without a value is absent, never 0.
#ifndef GPUSCALE_EXPORTER_DEVICE_H
#define GPUSCALE_EXPORTER_DEVICE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "exporter/families.h"

struct err;

#define DEVICES_MAX          192 // room for 16 GPUs with 7 instances each
#define DEVICE_UUID_BYTES    96
#define DEVICE_MODEL_BYTES   96
#define DEVICE_PCI_BYTES     32
#define DEVICE_NODE_BYTES    16
#define DEVICE_PROFILE_BYTES 32
#define OWNER_NAME_BYTES     254 // Kubernetes names have at most 253 bytes

// The properties that do not change while the device exists. An empty text omits the label.
struct device {
	int32_t index;                          // label gpu
	char uuid[DEVICE_UUID_BYTES];           // label UUID; "": a lost GPU that was never read
	char pci_bus_id[DEVICE_PCI_BYTES];      // label pci_bus_id, "00000000:04:00.0"
	char node[DEVICE_NODE_BYTES];           // label device, "nvidia0"
	char model[DEVICE_MODEL_BYTES];         // label modelName
	char mig_profile[DEVICE_PROFILE_BYTES]; // label GPU_I_PROFILE, "1g.10gb"
	char mig_id[DEVICE_NODE_BYTES];         // label GPU_I_ID
	char mig_uuid[DEVICE_UUID_BYTES];       // "MIG-..", by which a pod uses the instance; uuid is the GPU's
};

// True if `a` and `b` are the same GPU or instance, regardless of their position in a list.
static inline bool device_is_same(const struct device *a, const struct device *b)
{
	return strcmp(a->uuid, b->uuid) == 0 && strcmp(a->mig_id, b->mig_id) == 0;
}

// True if devices[i] is a MIG instance of the GPU before it. Lists contain each GPU before its instances, which carry
// the UUID of the GPU.
static inline bool device_is_instance(const struct device *devices, size_t i)
{
	return i > 0 && devices[i].mig_id[0] && strcmp(devices[i].uuid, devices[i - 1].uuid) == 0;
}

// A pod that uses a device. An empty text omits the label. Valid as long as what it comes from: a map of pods, a mock.
struct pod_share {
	const char *namespace_, *pod;
	const char *container; // "" when several containers of the pod use the device
	int32_t replica;       // the lowest replica that the pod uses; -1: the device is not shared
};

struct device_sample {
	bool lost;                // the device does not respond; no field is valid
	bool valid[FIELD__COUNT]; // the field has a value
	union {
		int64_t i; // FIELD_INT
		double f;  // FIELD_DOUBLE
	} value[FIELD__COUNT];
	uint32_t implausible;   // values that were dropped, because no device can have them
	struct pod_share owner; // of the mock; pod NULL, or all texts empty: not known
};

static inline bool sample_has(const struct device_sample *s, enum field f)
{
	return s->valid[f];
}

// True if one of samples[0..n) has a value of the field.
static inline bool samples_have(const struct device_sample *samples, size_t n, enum field f)
{
	for (size_t i = 0; i < n; i++)
		if (samples[i].valid[f])
			return true;
	return false;
}

// The number of valid fields.
static inline size_t sample_count(const struct device_sample *s)
{
	size_t n = 0;
	for (int f = 0; f < FIELD__COUNT; f++)
		n += s->valid[f];
	return n;
}

static inline void sample_set_i64(struct device_sample *s, enum field f, int64_t v)
{
	assert(family_of(f)->kind == FIELD_INT);
	s->value[f].i = v;
	s->valid[f] = true;
}

static inline void sample_set_f64(struct device_sample *s, enum field f, double v)
{
	assert(family_of(f)->kind == FIELD_DOUBLE);
	s->value[f].f = v;
	s->valid[f] = true;
}

// Sets a field of any kind. A field with FIELD_INT is rounded; `v` must then be within 64 bits.
void sample_set(struct device_sample *s, enum field f, double v);

// The value of a valid field of any kind, as a double.
static inline double sample_get(const struct device_sample *s, enum field f)
{
	assert(s->valid[f]);
	return family_of(f)->kind == FIELD_INT ? (double)s->value[f].i : s->value[f].f;
}

// Drops each value that no device can have (family_is_plausible), counts it in `implausible`, and limits shares to 1:
// the counters behind a share are not read at the same instant, so it may be slightly above.
void sample_check(struct device_sample *s);

// Sets a field of any kind, like sample_set() and then sample_check() for this field.
void sample_offer(struct device_sample *s, enum field f, double v);

// Adds the valid fields of `from` to `s`, and its count of implausible values.
void sample_add(struct device_sample *s, const struct device_sample *from);

static inline void sample_drop(struct device_sample *s, enum field f)
{
	s->valid[f] = false;
}

// ---- the history of each device ----

struct device_history;

#define DEVICE_HISTORY_SAMPLES_MAX 600 // readings of one field and device: limits window / interval
#define DEVICE_HISTORY_DEVICES_MAX                                                                                     \
	(DEVICES_MAX + 64) // further devices replace the one that has been missing for longest

// The statistics of the readings in a window.
struct window {
	double min, max;
	// Each reading is weighted with the time since the previous one, which is exact for readings that are means
	// themselves. The mean of POWER_USAGE is energy by time if the device has an energy counter.
	double avg;
};

// `window_ms` 0 disables the windows; everything else works. Returns NULL and fills `e` with ERR_LIMIT
// (DEVICE_HISTORY_SAMPLES_MAX) or ERR_INTERNAL.
struct device_history *device_history_new(int64_t window_ms, int64_t interval_ms, struct err *e);
void device_history_free(struct device_history *h);
// Adds the round at `t_ms`. Counters that the driver resets are continued: their values in `samples` are changed.
void device_history_add(struct device_history *h, int64_t t_ms, const struct device *devices,
                        struct device_sample *samples, size_t n);
// Reads the window of field `f` of device `i` of the last round. False if no window is kept for this field or the
// last round had no value.
bool device_history_window(const struct device_history *h, size_t i, enum field f, struct window *ret_window);
// The number of GPUs (not MIG instances) that were found earlier and are missing from the last round. `all_gone`
// means that there was no last round.
size_t device_history_missing(const struct device_history *h, bool all_gone);
int64_t device_history_window_ms(const struct device_history *h);

#endif
