// SPDX-License-Identifier: Apache-2.0
// Reads Intel GPUs of the i915 and xe drivers. Files and units: Linux,
// Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon, sysfs-driver-intel-xe-hwmon, Documentation/gpu/xe.

#include "exporter/sysfs/backend_sysfs.h"
#include "exporter/sysfs/sysfs.h"

#define WATTS_PER_UW 1e-6
#define UJ_PER_MJ    1000
#define COUNT(a)     (sizeof(a) / sizeof((a)[0]))

// The actual clock before the requested one, of the first GT of the first tile, which does the computing.
static const struct sysfs_row card_rows[] = {
        {FIELD_SM_CLOCK, "gt/gt0/rps_act_freq_mhz", 1},
        {FIELD_SM_CLOCK, "gt_act_freq_mhz", 1},
        {FIELD_SM_CLOCK, "device/tile0/gt0/freq0/act_freq", 1},
        {FIELD_SM_CLOCK, "gt_cur_freq_mhz", 1},
        {FIELD_SM_CLOCK, "device/tile0/gt0/freq0/cur_freq", 1},
        {FIELD_MAX_SM_CLOCK, "gt/gt0/rps_RP0_freq_mhz", 1},
        {FIELD_MAX_SM_CLOCK, "gt_RP0_freq_mhz", 1},
        {FIELD_MAX_SM_CLOCK, "device/tile0/gt0/freq0/rp0_freq", 1},
};
static const struct sysfs_row hwmon_rows[] = {
        {FIELD_POWER_LIMIT, "power1_max", WATTS_PER_UW},
        {FIELD_POWER_LIMIT_DEFAULT, "power1_rated_max", WATTS_PER_UW},
        {FIELD_SHUTDOWN_TEMP, "temp1_emergency", 1e-3},
        {FIELD_SLOWDOWN_TEMP, "temp1_crit", 1e-3},
};
// Milliseconds that the first GT was asleep.
static const char *const idle_files[] = {"gt/gt0/rc6_residency_ms", "power/rc6_residency_ms",
                                         "device/tile0/gt0/gtidle/idle_residency_ms"};
static const char *const energy_files[] = {"energy1_input", "energy2_input"};

static bool read_first(const char *dir, const char *const *files, size_t n, int64_t *ret_value)
{
	for (size_t i = 0; i < n; i++)
		if (sysfs_read_i64(dir, files[i], ret_value))
			return true;
	return false;
}

// The driver counts energy (uJ); power is its rate.
static void read_energy(struct sysfs_card *c, int64_t mono_ms, struct device_sample *s)
{
	int64_t uj;
	if (!read_first(c->hwmon, energy_files, COUNT(energy_files), &uj) || uj < 0)
		return;
	sample_set_i64(s, FIELD_TOTAL_ENERGY, uj / UJ_PER_MJ);
	int64_t dt_ms = mono_ms - c->energy_ms;
	if (c->energy_ms && dt_ms > 0 && uj >= c->energy_uj)
		sample_set_f64(s, FIELD_POWER_USAGE, (double)(uj - c->energy_uj) / (double)dt_ms / 1000);
	c->energy_uj = uj;
	c->energy_ms = mono_ms;
}

// Utilization is the share of time that the GT was awake: it sleeps when no engine has work.
static void read_utilization(struct sysfs_card *c, int64_t mono_ms, struct device_sample *s)
{
	int64_t idle_ms;
	if (!read_first(c->card, idle_files, COUNT(idle_files), &idle_ms) || idle_ms < 0)
		return;
	int64_t dt_ms = mono_ms - c->idle_at_ms, slept_ms = idle_ms - c->idle_ms;
	// Slightly more sleep than time is rounding; much more is not a counter of this time and does not show the
	// load.
	if (c->idle_at_ms && dt_ms > 0 && slept_ms >= 0 && slept_ms / 2 <= dt_ms)
		sample_set_i64(s, FIELD_GPU_UTIL, slept_ms >= dt_ms ? 0 : (dt_ms - slept_ms) * 100 / dt_ms);
	c->idle_ms = idle_ms;
	c->idle_at_ms = mono_ms;
}

static void intel_read(struct sysfs_card *c, int64_t mono_ms, struct device_sample *s)
{
	static const char *const gpu_labels[] = {"pkg", NULL};
	static const char *const memory_labels[] = {"vram", NULL};
	int64_t total = -1, free = -1;
	mono_ms += 1; // 0 stands for "nothing read yet"
	sysfs_read_rows(c->card, card_rows, COUNT(card_rows), s);
	read_utilization(c, mono_ms, s);
	if (!sysfs_read_i64(c->card, "lmem_total_bytes", &total))
		sysfs_read_i64(c->device, "tile0/physical_vram_size_bytes", &total);
	sysfs_read_i64(c->card, "lmem_avail_bytes", &free);
	sysfs_set_memory(s, total, -1, free);
	if (c->hwmon[0]) {
		sysfs_read_rows(c->hwmon, hwmon_rows, COUNT(hwmon_rows), s);
		read_energy(c, mono_ms, s);
		sysfs_read_temperatures(c->hwmon, gpu_labels, memory_labels, s);
	}
	if (sample_count(s) > 0)
		sysfs_read_link(c->device, s);
}

const struct sysfs_vendor intel_vendor = {
        .name = "intel", .drivers = {"xe", "i915"}, .maker = "Intel", .read = intel_read};
