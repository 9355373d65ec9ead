// SPDX-License-Identifier: Apache-2.0
// GPUs of AMD and Intel through their kernel drivers (amdgpu, i915, xe) under /sys/class/drm. A vendor is a list of
// drivers and a function that reads one card.
#include <math.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/process/log.h"
#include "exporter/backend.h"

#define BYTES_PER_MIB  1048576
#define SENSORS_MAX    8
#define CELSIUS_PER_MC 1e-3
#define CELSIUS_MAX    200 // above: the sensor does not exist
#define WATTS_PER_UW   1e-6
#define MHZ_PER_HZ     1e-6
#define PERCENT_OF_255 (100.0 / 255)
#define UJ_PER_MJ      1000
#define RESCAN_MS      10000
#define CARDS_MAX      128 // highest cardN probed
#define HWMON_MAX      256 // highest hwmonN probed
#define DRIVERS_MAX    3
#define COUNT(a)       (sizeof(a) / sizeof((a)[0]))

struct sysfs_card {
	char card[SYSFS_PATH_BYTES];   // .../class/drm/card0
	char device[SYSFS_PATH_BYTES]; // .../class/drm/card0/device
	char hwmon[SYSFS_PATH_BYTES];  // .../device/hwmon/hwmon3, "" if there is none
	char driver[32];               // "amdgpu"
	// Counters at the last reading, for rates; what_ms 0: not read yet.
	int64_t energy_uj, energy_ms;
	int64_t idle_ms, idle_at_ms;
};

struct sysfs_vendor {
	const char *name; // name of the backend
	const char *drivers[DRIVERS_MAX];
	const char *maker; // prefix of the model name if the card has none
	void (*read)(struct sysfs_card *c, int64_t mono_ms, struct device_sample *s);
};

// ---- files ----

static bool join(char out[SYSFS_PATH_BYTES], const char *dir, const char *name)
{
	return snprintf(out, SYSFS_PATH_BYTES, "%s/%s", dir, name) < SYSFS_PATH_BYTES;
}

static bool read_i64(const char *dir, const char *name, int64_t *ret_value)
{
	char text[SYSFS_TEXT_BYTES];
	return sysfs_read_text(dir, name, text) &&
	       num_parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, ret_value, NULL) == 0;
}

// Copies the value of the line "key=value" of a text such as uevent to `out`. False if the line is missing or does
// not fit.
static bool find_key(const char *text, const char *key, char *out, size_t size)
{
	size_t key_len = strlen(key);
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		if (len > key_len && line[key_len] == '=' && strncmp(line, key, key_len) == 0) {
			size_t value_len = len - key_len - 1;
			if (value_len == 0 || value_len >= size)
				return false;
			memcpy(out, line + key_len + 1, value_len);
			out[value_len] = '\0';
			return true;
		}
		line += len + (line[len] == '\n');
	}
	return false;
}

// Finds the first directory dir/prefixN with N from 0 to max - 1. False if there is none.
static bool find_dir(const char *dir, const char *prefix, int max, char out[SYSFS_PATH_BYTES])
{
	struct stat st;
	for (int i = 0; i < max; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s%d", prefix, i);
		if (join(out, dir, name) && stat(out, &st) == 0)
			return true;
	}
	return false;
}

// ---- readings that are common to the kernel drivers ----

// A file with one number: value = number x scale. A negative number has no value.
struct sysfs_row {
	enum field field;
	const char *file;
	double scale;
};

// Reads each row whose field has no value yet: several rows of one field are tried in order.
static void read_rows(const char *dir, const struct sysfs_row *rows, size_t n, struct device_sample *s)
{
	for (size_t i = 0; i < n; i++) {
		int64_t v;
		if (sample_has(s, rows[i].field) || !read_i64(dir, rows[i].file, &v) || v < 0)
			continue;
		sample_offer(s, rows[i].field, (double)v * rows[i].scale); // 65535 and similar: there is no value
	}
}

// Converts "16.0 GT/s PCIe" to 4; 0: unknown.
static int link_generation(const char *text)
{
	static const double speeds[] = {2.5, 5, 8, 16, 32, 64};
	double speed = 0;
	int generation = COUNT(speeds);
	if (num_parse_f64(text, strcspn(text, " "), &speed, NULL) < 0)
		return 0;
	while (generation > 0 && speed != speeds[generation - 1])
		generation--;
	return generation;
}

// Reads the current and the highest PCIe generation and number of lanes from current_link_speed and similar files.
// Kernel: drivers/pci/pci-sysfs.c.
static void read_link(const char *device_dir, struct device_sample *s)
{
	static const struct {
		enum field field;
		const char *file;
	} speeds[] = {{FIELD_PCIE_LINK_GEN, "current_link_speed"}, {FIELD_PCIE_MAX_LINK_GEN, "max_link_speed"}};
	static const struct sysfs_row widths[] = {{FIELD_PCIE_LINK_WIDTH, "current_link_width", 1},
	                                          {FIELD_PCIE_MAX_LINK_WIDTH, "max_link_width", 1}};
	char text[SYSFS_TEXT_BYTES];
	for (size_t i = 0; i < COUNT(speeds); i++) {
		int generation = sysfs_read_text(device_dir, speeds[i].file, text) ? link_generation(text) : 0;
		if (generation)
			sample_set_i64(s, speeds[i].field, generation);
	}
	read_rows(device_dir, widths, COUNT(widths), s);
}

static void read_sensor(const char *hwmon, int sensor, enum field f, struct device_sample *s)
{
	char name[32];
	int64_t v;
	snprintf(name, sizeof name, "temp%d_input", sensor);
	if (read_i64(hwmon, name, &v) && v > 0 && (double)v * CELSIUS_PER_MC < CELSIUS_MAX)
		sample_set_i64(s, f, llround((double)v * CELSIUS_PER_MC));
}

// Reads the temperatures in hwmon by their labels: the first of `gpu_labels` that exists is GPU_TEMP, the first of
// `memory_labels` MEMORY_TEMP; both lists end with NULL. Without any labels, temp1 is GPU_TEMP.
static void read_temperatures(const char *hwmon, const char *const *gpu_labels, const char *const *memory_labels,
                              struct device_sample *s)
{
	char labels[SENSORS_MAX][SYSFS_TEXT_BYTES];
	bool any = false;
	for (int i = 0; i < SENSORS_MAX; i++) {
		char name[32];
		snprintf(name, sizeof name, "temp%d_label", i + 1);
		any |= sysfs_read_text(hwmon, name, labels[i]);
	}
	if (!any) {
		read_sensor(hwmon, 1, FIELD_GPU_TEMP, s);
		return;
	}
	for (int memory = 0; memory < 2; memory++) {
		enum field f = memory ? FIELD_MEMORY_TEMP : FIELD_GPU_TEMP;
		for (const char *const *expected = memory ? memory_labels : gpu_labels; *expected; expected++)
			for (int i = 0; i < SENSORS_MAX && !sample_has(s, f); i++)
				if (strcmp(labels[i], *expected) == 0)
					read_sensor(hwmon, i + 1, f, s);
	}
}

// Sets FB_USED, FB_FREE and FB_USED_PERCENT if `total` and one of `used` and `free` (bytes) are known; -1 means
// unknown.
static void set_memory(struct device_sample *s, int64_t total, int64_t used, int64_t free)
{
	if (total <= 0)
		return;
	if (used < 0 && free >= 0 && free <= total)
		used = total - free;
	sample_set_i64(s, FIELD_FB_TOTAL, total / BYTES_PER_MIB);
	if (used < 0 || used > total)
		return;
	sample_set_i64(s, FIELD_FB_USED, used / BYTES_PER_MIB);
	sample_set_i64(s, FIELD_FB_FREE, (total - used) / BYTES_PER_MIB);
	sample_set_f64(s, FIELD_FB_USED_PERCENT, (double)used / (double)total);
}

// ---- AMD: the driver amdgpu ----

// Files and units: Linux, Documentation/gpu/amdgpu (thermal, driver-misc, ras) and Documentation/hwmon.
static const struct sysfs_row amd_device_rows[] = {
        {FIELD_GPU_UTIL, "gpu_busy_percent", 1},
        {FIELD_MEM_COPY_UTIL, "mem_busy_percent", 1},
        {FIELD_PCIE_REPLAY, "pcie_replay_count", 1},
};
static const struct sysfs_row amd_hwmon_rows[] = {
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
	read_rows(c->device, amd_device_rows, COUNT(amd_device_rows), s);
	read_i64(c->device, "mem_info_vram_total", &total);
	read_i64(c->device, "mem_info_vram_used", &used);
	set_memory(s, total, used, -1);
	read_ecc(c->device, s);
	if (c->hwmon[0]) {
		read_rows(c->hwmon, amd_hwmon_rows, COUNT(amd_hwmon_rows), s);
		read_temperatures(c->hwmon, gpu_labels, memory_labels, s);
	}
	if (sample_count(s) > 0)
		read_link(c->device, s); // from PCI, valid even for a dead card
}

static const struct sysfs_vendor amdgpu_vendor = {
        .name = "amdgpu", .drivers = {"amdgpu"}, .maker = "AMD", .read = amdgpu_read};

// ---- Intel: the drivers i915 and xe ----

// Files and units: Linux, Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon, sysfs-driver-intel-xe-hwmon,
// Documentation/gpu/xe.

// The actual clock before the requested one, of the first GT of the first tile, which does the computing.
static const struct sysfs_row intel_card_rows[] = {
        {FIELD_SM_CLOCK, "gt/gt0/rps_act_freq_mhz", 1},
        {FIELD_SM_CLOCK, "gt_act_freq_mhz", 1},
        {FIELD_SM_CLOCK, "device/tile0/gt0/freq0/act_freq", 1},
        {FIELD_SM_CLOCK, "gt_cur_freq_mhz", 1},
        {FIELD_SM_CLOCK, "device/tile0/gt0/freq0/cur_freq", 1},
        {FIELD_MAX_SM_CLOCK, "gt/gt0/rps_RP0_freq_mhz", 1},
        {FIELD_MAX_SM_CLOCK, "gt_RP0_freq_mhz", 1},
        {FIELD_MAX_SM_CLOCK, "device/tile0/gt0/freq0/rp0_freq", 1},
};
static const struct sysfs_row intel_hwmon_rows[] = {
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
		if (read_i64(dir, files[i], ret_value))
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
	read_rows(c->card, intel_card_rows, COUNT(intel_card_rows), s);
	read_utilization(c, mono_ms, s);
	if (!read_i64(c->card, "lmem_total_bytes", &total))
		read_i64(c->device, "tile0/physical_vram_size_bytes", &total);
	read_i64(c->card, "lmem_avail_bytes", &free);
	set_memory(s, total, -1, free);
	if (c->hwmon[0]) {
		read_rows(c->hwmon, intel_hwmon_rows, COUNT(intel_hwmon_rows), s);
		read_energy(c, mono_ms, s);
		read_temperatures(c->hwmon, gpu_labels, memory_labels, s);
	}
	if (sample_count(s) > 0)
		read_link(c->device, s);
}

static const struct sysfs_vendor intel_vendor = {
        .name = "intel", .drivers = {"xe", "i915"}, .maker = "Intel", .read = intel_read};

// ---- the backend ----

struct sysfs {
	struct backend base;
	struct backend_ops ops; // with the name of the vendor
	const struct sysfs_vendor *vendor;
	char driver_version[64];
	bool has_times;
	int64_t rescan_at_ms;
	struct device devices[DEVICES_MAX]; // base.n
	struct sysfs_card cards[DEVICES_MAX];
};

static bool is_our_driver(const struct sysfs_vendor *v, const char *driver)
{
	for (size_t i = 0; i < DRIVERS_MAX && v->drivers[i]; i++)
		if (strcmp(v->drivers[i], driver) == 0)
			return true;
	return false;
}

// Fills `c` and `d` for cardN. False if there is no such card or it belongs to another vendor.
static bool probe(const struct sysfs *m, int number, struct sysfs_card *c, struct device *d)
{
	char uevent[SYSFS_TEXT_BYTES], text[SYSFS_TEXT_BYTES], id[32] = "";
	*c = (struct sysfs_card){.energy_ms = 0};
	*d = (struct device){.index = 0};
	if (snprintf(c->card, sizeof c->card, "%s/class/drm/card%d", m->base.config.sysfs_root, number) >=
	            (int)sizeof c->card ||
	    snprintf(c->device, sizeof c->device, "%s/device", c->card) >= (int)sizeof c->device)
		return false;
	if (!sysfs_read_text(c->device, "uevent", uevent) || !find_key(uevent, "DRIVER", c->driver, sizeof c->driver) ||
	    !is_our_driver(m->vendor, c->driver))
		return false;
	char hwmon[SYSFS_PATH_BYTES];
	if (snprintf(hwmon, sizeof hwmon, "%s/hwmon", c->device) >= (int)sizeof hwmon ||
	    !find_dir(hwmon, "hwmon", HWMON_MAX, c->hwmon))
		c->hwmon[0] = '\0';
	snprintf(d->node, sizeof d->node, "card%d", number);
	if (!find_key(uevent, "PCI_SLOT_NAME", d->pci_bus_id, sizeof d->pci_bus_id))
		d->pci_bus_id[0] = '\0';
	find_key(uevent, "PCI_ID", id, sizeof id);
	if (sysfs_read_text(c->device, "unique_id", text))
		snprintf(d->uuid, sizeof d->uuid, "GPU-%.64s", text);
	else
		snprintf(d->uuid, sizeof d->uuid, "PCI-%s", d->pci_bus_id[0] ? d->pci_bus_id : d->node);
	if (sysfs_read_text(c->device, "product_name", text))
		snprintf(d->model, sizeof d->model, "%.80s", text);
	else
		snprintf(d->model, sizeof d->model, "%s GPU %s", m->vendor->maker, id);
	return true;
}

// Lists the cards; known cards keep their counters.
static void scan(struct sysfs *m)
{
	struct sysfs_card c;
	struct device d;
	size_t n = 0;
	bool changed = false;
	for (int number = 0; number < CARDS_MAX && n < DEVICES_MAX; number++) {
		if (!probe(m, number, &c, &d))
			continue;
		d.index = (int32_t)n;
		// The UUID identifies a card across rounds; if several cards have the same id (0, or partitions of
		// one board), the slot does.
		for (size_t i = 0; i < n; i++)
			if (strcmp(m->devices[i].uuid, d.uuid) == 0)
				snprintf(d.uuid, sizeof d.uuid, "PCI-%s-%s", d.pci_bus_id, d.node);
		if (n < m->base.n && device_is_same(&m->devices[n], &d) && strcmp(m->cards[n].hwmon, c.hwmon) == 0) {
			n++;
			continue;
		}
		changed = true;
		m->devices[n] = d;
		m->cards[n++] = c;
	}
	if (m->has_times && (changed || n != m->base.n))
		LOG(m->base.config.log, LOG_INFO, "GPUs changed", LOG_I("before", (int64_t)m->base.n),
		    LOG_I("now", (int64_t)n));
	m->base.n = n;
}

static int sysfs_open(struct backend *b, struct err *e)
{
	struct sysfs *m = (struct sysfs *)b;
	char dir[SYSFS_PATH_BYTES], text[SYSFS_TEXT_BYTES];
	m->base.n = 0;
	m->has_times = false;
	scan(m);
	if (m->base.n == 0)
		return err_set(e, ERR_NOT_FOUND, "found no GPU of the driver %s%s%s under %s/class/drm",
		               m->vendor->drivers[0], m->vendor->drivers[1] ? " or " : "",
		               m->vendor->drivers[1] ? m->vendor->drivers[1] : "", m->base.config.sysfs_root);
	// Drivers in the kernel tree seldom have their own version.
	snprintf(dir, sizeof dir, "%s/module/%s", m->base.config.sysfs_root, m->cards[0].driver);
	m->driver_version[0] = '\0';
	if (sysfs_read_text(dir, "version", text))
		snprintf(m->driver_version, sizeof m->driver_version, "%.60s", text);
	return 0;
}

static int sysfs_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                        struct err *e)
{
	struct sysfs *m = (struct sysfs *)b;
	if (!m->has_times || mono_ms >= m->rescan_at_ms) {
		if (m->has_times)
			scan(m);
		m->has_times = true;
		m->rescan_at_ms = mono_ms + RESCAN_MS;
	}
	if (m->base.n == 0)
		return err_set(e, ERR_NOT_FOUND, "every GPU of the driver %s is gone", m->vendor->drivers[0]);
	for (size_t i = 0; i < m->base.n; i++) {
		samples[i] = (struct device_sample){.lost = false};
		m->vendor->read(&m->cards[i], mono_ms, &samples[i]);
		sample_check(&samples[i]); // a card without a plausible value is lost
		samples[i].lost = sample_count(&samples[i]) == 0;
	}
	return 0;
}

static void sysfs_close(struct backend *b)
{
	b->n = 0; // nothing is kept open
}

static struct backend *sysfs_new(const struct sysfs_vendor *vendor, const struct backend_config *config, struct err *e)
{
	struct sysfs *m = backend_alloc(sizeof *m, NULL, config, e);
	if (!m)
		return NULL;
	m->ops = (struct backend_ops){.name = vendor->name,
	                              .first_rounds = 2, // power and utilization may be rates
	                              .open = sysfs_open,
	                              .sample = sysfs_sample,
	                              .close = sysfs_close,
	                              .destroy = backend_free};
	m->base.ops = &m->ops;
	m->base.devices = m->devices;
	m->base.driver_version = m->driver_version;
	m->vendor = vendor;
	return &m->base;
}

struct backend *backend_amdgpu_new(const struct backend_config *config, struct err *e)
{
	return sysfs_new(&amdgpu_vendor, config, e);
}

struct backend *backend_intel_new(const struct backend_config *config, struct err *e)
{
	return sysfs_new(&intel_vendor, config, e);
}
