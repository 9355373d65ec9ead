// SPDX-License-Identifier: Apache-2.0
// Reads AMD GPUs of the amdgpu driver. Files and units: Linux, Documentation/gpu/amdgpu (thermal, driver-misc, ras)
// and Documentation/hwmon.
#include <string.h>

#include "base/num.h"
#include "exporter/sysfs/backend_sysfs.h"
#include "exporter/sysfs/sysfs.h"

#define WATTS_PER_UW   1e-6
#define MHZ_PER_HZ     1e-6
#define PERCENT_OF_255 (100.0 / 255)
#define COUNT(a)       (sizeof(a) / sizeof((a)[0]))

static const struct sysfs_row device_rows[] = {
        {FIELD_GPU_UTIL, "gpu_busy_percent", 1},
        {FIELD_MEM_COPY_UTIL, "mem_busy_percent", 1},
        {FIELD_PCIE_REPLAY, "pcie_replay_count", 1},
};
static const struct sysfs_row hwmon_rows[] = {
        {FIELD_POWER_USAGE, "power1_average", WATTS_PER_UW},
        {FIELD_POWER_USAGE, "power1_input", WATTS_PER_UW}, // newer boards lack the average
        {FIELD_POWER_USAGE_INSTANT, "power1_input", WATTS_PER_UW},
        {FIELD_POWER_LIMIT, "power1_cap", WATTS_PER_UW},
        {FIELD_ENFORCED_POWER_LIMIT, "power1_cap", WATTS_PER_UW},
        {FIELD_POWER_LIMIT_MIN, "power1_cap_min", WATTS_PER_UW},
        {FIELD_POWER_LIMIT_MAX, "power1_cap_max", WATTS_PER_UW},
        {FIELD_POWER_LIMIT_DEFAULT, "power1_cap_default", WATTS_PER_UW},
        {FIELD_SM_CLOCK, "freq1_input", MHZ_PER_HZ},
        {FIELD_MEM_CLOCK, "freq2_input", MHZ_PER_HZ},
        {FIELD_FAN_SPEED, "pwm1", PERCENT_OF_255},
        {FIELD_SHUTDOWN_TEMP, "temp1_emergency", 1e-3},
        {FIELD_SLOWDOWN_TEMP, "temp1_crit", 1e-3},
};

static void read_ecc(const char *device, struct device_sample *s)
{
	static const struct {
		const char *key;
		enum field field;
	} rows[] = {{"ue: ", FIELD_ECC_DBE_VOL}, {"ce: ", FIELD_ECC_SBE_VOL}};
	char text[SYSFS_TEXT_BYTES];
	if (!sysfs_read_text(device, "ras/umc_err_count", text))
		return;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *at = strstr(text, rows[i].key);
		int64_t n;
		if (!at)
			continue;
		at += strlen(rows[i].key);
		if (num_parse_i64(at, strcspn(at, "\n"), 0, INT64_MAX, &n, NULL) == 0)
			sample_set_i64(s, rows[i].field, n);
	}
}

static void amdgpu_read(struct sysfs_card *c, int64_t mono_ms, struct device_sample *s)
{
	// On cards with several sensors, the edge of the die is closest to nvidia-smi's GPU temperature; newer cards
	// have only the hot spot.
	static const char *const gpu_labels[] = {"edge", "junction", NULL};
	static const char *const memory_labels[] = {"mem", NULL};
	int64_t total = -1, used = -1;
	sysfs_read_rows(c->device, device_rows, COUNT(device_rows), s);
	sysfs_read_i64(c->device, "mem_info_vram_total", &total);
	sysfs_read_i64(c->device, "mem_info_vram_used", &used);
	sysfs_set_memory(s, total, used, -1);
	read_ecc(c->device, s);
	if (c->hwmon[0]) {
		sysfs_read_rows(c->hwmon, hwmon_rows, COUNT(hwmon_rows), s);
		sysfs_read_temperatures(c->hwmon, gpu_labels, memory_labels, s);
	}
	if (sample_count(s) > 0)
		sysfs_read_link(c->device, s); // from PCI, valid even for a dead card
}

const struct sysfs_vendor amdgpu_vendor = {
        .name = "amdgpu", .drivers = {"amdgpu"}, .maker = "AMD", .read = amdgpu_read};
