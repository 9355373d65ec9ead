// SPDX-License-Identifier: Apache-2.0
// Files of /sys that hold whatever the input says, read as a card of amdgpu and as one of i915: what comes of them are
// values that a device can have, and a page that a reader takes.
//   the files follow each other in the order of `files`, with a byte 0xff between two; one without bytes is not there
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/backend.h"
#include "exporter/device.h"
#include "exporter/page/render_page.h"
#include "exporter/xid.h"
#include "test/fuzz/page_check.h"

#define CARD  "class/drm/card0/"
#define HWMON CARD "device/hwmon/hwmon2/"

static const char *const files[] = {
        CARD "device/uevent",
        CARD "device/unique_id",
        CARD "device/product_name",
        CARD "device/gpu_busy_percent",
        CARD "device/mem_busy_percent",
        CARD "device/pcie_replay_count",
        CARD "device/mem_info_vram_total",
        CARD "device/mem_info_vram_used",
        CARD "device/ras/umc_err_count",
        CARD "device/current_link_speed",
        CARD "device/max_link_speed",
        CARD "device/current_link_width",
        CARD "device/max_link_width",
        HWMON "temp1_input",
        HWMON "temp1_label",
        HWMON "temp2_input",
        HWMON "temp2_label",
        HWMON "temp1_crit",
        HWMON "power1_average",
        HWMON "power1_input",
        HWMON "power1_cap",
        HWMON "freq1_input",
        HWMON "pwm1",
        HWMON "energy1_input",
        CARD "gt/gt0/rps_act_freq_mhz",
        CARD "gt_act_freq_mhz",
        CARD "gt/gt0/rc6_residency_ms",
        CARD "lmem_total_bytes",
        CARD "lmem_avail_bytes",
        "module/amdgpu/version",
};
#define FILES (sizeof files / sizeof files[0])

// One tree for all inputs of the process; it ends with the process.
static char root[64];

static void path_of(size_t i, char *out, size_t size)
{
	assert(snprintf(out, size, "%s/%s", root, files[i]) < (int)size);
}

static void remove_tree(void)
{
	char path[256];
	for (size_t i = 0; i < FILES; i++) {
		path_of(i, path, sizeof path);
		unlink(path);
	}
	for (size_t i = 0; i < FILES; i++) { // then the folders, from the innermost one
		path_of(i, path, sizeof path);
		for (char *slash; (slash = strrchr(path, '/')) && (size_t)(slash - path) >= strlen(root);) {
			*slash = '\0';
			rmdir(path);
		}
	}
}

static void make_tree(void)
{
	char path[256];
	snprintf(root, sizeof root, "/tmp/gpuscale-fuzz-sysfs-XXXXXX");
	assert(mkdtemp(root));
	atexit(remove_tree);
	for (size_t i = 0; i < FILES; i++) {
		path_of(i, path, sizeof path);
		for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
			*p = '\0';
			assert(mkdir(path, 0700) == 0 || errno == EEXIST);
			*p = '/';
		}
	}
}

static void write_files(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < FILES; i++) {
		char path[256];
		const uint8_t *stop = size ? memchr(data, 0xff, size) : NULL;
		size_t len = stop ? (size_t)(stop - data) : size;
		path_of(i, path, sizeof path);
		unlink(path);
		int fd = len ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
		assert(!len || (fd >= 0 && write(fd, data, len) == (ssize_t)len));
		if (fd >= 0)
			close(fd);
		data += len + (stop != NULL);
		size -= len + (stop != NULL);
	}
}

static void play(struct backend *b, struct device_sample *samples)
{
	struct err e;
	struct buf page;
	struct render_page renderer;
	size_t n = 0;
	struct device_history *history = device_history_new(3000, 1000, &e);
	struct xid_store *xids = xid_store_new(&e);
	assert(b && history && xids);
	buf_init(&page, RENDER_PAGE_BYTES_MAX);
	bool open = b->ops->open(b, &e) == 0;
	for (int round = 0; open && round < 2; round++) {
		assert(b->ops->sample(b, round * 1000, 0, samples, &e) == 0);
		const struct device *devices = b->devices;
		n = b->n;
		assert(n == 1);
		for (enum field f = 0; f < FIELD__COUNT; f++)
			assert(!sample_has(&samples[0], f) || family_is_plausible(f, sample_get(&samples[0], f)));
		assert(samples[0].lost == (sample_count(&samples[0]) == 0));
		device_history_add(history, round * 1000, devices, samples, n);
		const struct render_page_options o = {
		        .hostname_label = "Hostname", .hostname = devices[0].model, .xids = xids};
		const struct sampler_round r = {.devices = devices,
		                                .samples = samples,
		                                .n = n,
		                                .driver_version = b->driver_version,
		                                .history = history};
		buf_reset(&page);
		render_page_init(&renderer, &o);
		render_page_round(&renderer, &r, &page);
		render_page_done(&renderer);
		assert(!page.failed);
		page_check(buf_str(&page), page.len);
	}
	if (open)
		b->ops->close(b);
	b->ops->destroy(b);
	buf_done(&page);
	xid_store_free(xids);
	device_history_free(history);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;
	struct device_sample *samples = calloc(DEVICES_MAX, sizeof *samples);
	assert(samples);
	if (!root[0])
		make_tree();
	write_files(data, size);
	play(backend_amdgpu_new(&(struct backend_config){.sysfs_root = root}, &e), samples);
	play(backend_intel_new(&(struct backend_config){.sysfs_root = root}, &e), samples);
	free(samples);
	return 0;
}
