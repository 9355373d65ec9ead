// SPDX-License-Identifier: Apache-2.0
#include "exporter/sysfs/sysfs.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"

#define BYTES_PER_MIB  1048576
#define SENSORS_MAX    8
#define CELSIUS_PER_MC 1e-3
#define CELSIUS_MAX    200 // above: the sensor does not exist

void sysfs_read_rows(const char *dir, const struct sysfs_row *rows, size_t n, struct device_sample *s)
{
	for (size_t i = 0; i < n; i++) {
		int64_t v;
		if (sample_has(s, rows[i].field) || !sysfs_read_i64(dir, rows[i].file, &v) || v < 0)
			continue;
		double scaled = (double)v * rows[i].scale;
		if (!family_is_plausible(rows[i].field, scaled)) {
			s->implausible++; // 65535 and similar: the firmware has no value
			continue;
		}
		sample_set(s, rows[i].field, scaled);
	}
}

// Converts "16.0 GT/s PCIe" to 4.
static int link_generation(const char *text)
{
	static const struct {
		const char *speed;
		int generation;
	} rows[] = {{"2.5", 1}, {"5.0", 2},  {"5", 2},  {"8.0", 3},  {"8", 3}, {"16.0", 4},
	            {"16", 4},  {"32.0", 5}, {"32", 5}, {"64.0", 6}, {"64", 6}};
	size_t len = strcspn(text, " ");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strlen(rows[i].speed) == len && strncmp(rows[i].speed, text, len) == 0)
			return rows[i].generation;
	return 0;
}

void sysfs_read_link(const char *device_dir, struct device_sample *s)
{
	static const struct {
		enum field field;
		const char *file;
	} speeds[] = {{FIELD_PCIE_LINK_GEN, "current_link_speed"}, {FIELD_PCIE_MAX_LINK_GEN, "max_link_speed"}};
	static const struct sysfs_row widths[] = {{FIELD_PCIE_LINK_WIDTH, "current_link_width", 1},
	                                          {FIELD_PCIE_MAX_LINK_WIDTH, "max_link_width", 1}};
	char text[SYSFS_TEXT_BYTES];
	for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
		int generation = sysfs_read_text(device_dir, speeds[i].file, text) ? link_generation(text) : 0;
		if (generation)
			sample_set_i64(s, speeds[i].field, generation);
	}
	sysfs_read_rows(device_dir, widths, sizeof widths / sizeof widths[0], s);
}

static void read_sensor(const char *hwmon, int sensor, enum field f, struct device_sample *s)
{
	char name[32];
	int64_t v;
	snprintf(name, sizeof name, "temp%d_input", sensor);
	if (sysfs_read_i64(hwmon, name, &v) && v > 0 && (double)v * CELSIUS_PER_MC < CELSIUS_MAX)
		sample_set_i64(s, f, llround((double)v * CELSIUS_PER_MC));
}

void sysfs_read_temperatures(const char *hwmon, const char *const *gpu_labels, const char *const *memory_labels,
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

void sysfs_set_memory(struct device_sample *s, int64_t total, int64_t used, int64_t free)
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

// Joins two parts of a path. False if the result does not fit.
static bool join(char out[SYSFS_PATH_BYTES], const char *dir, const char *name)
{
	return snprintf(out, SYSFS_PATH_BYTES, "%s/%s", dir, name) < SYSFS_PATH_BYTES;
}

bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES])
{
	char path[SYSFS_PATH_BYTES];
	out[0] = '\0';
	if (!join(path, dir, name))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, out, SYSFS_TEXT_BYTES - 1);
	close(fd);
	size_t len = n > 0 ? (size_t)n : 0;
	while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == ' ' || out[len - 1] == '\t'))
		len--;
	out[len] = '\0';
	return len > 0;
}

bool sysfs_read_i64(const char *dir, const char *name, int64_t *ret_value)
{
	char text[SYSFS_TEXT_BYTES];
	return sysfs_read_text(dir, name, text) &&
	       num_parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, ret_value, NULL) == 0;
}

bool sysfs_find_key(const char *text, const char *key, char *out, size_t size)
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

static bool exists(const char *dir, const char *name)
{
	char path[SYSFS_PATH_BYTES];
	struct stat st;
	return join(path, dir, name) && stat(path, &st) == 0;
}

bool sysfs_find_dir(const char *dir, const char *prefix, int max, char out[SYSFS_PATH_BYTES])
{
	for (int i = 0; i < max; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s%d", prefix, i);
		if (exists(dir, name))
			return join(out, dir, name);
	}
	return false;
}
