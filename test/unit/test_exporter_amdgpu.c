// SPDX-License-Identifier: Apache-2.0
// AMD GPUs from a made-up /sys, and the choice of a backend.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "exporter/backend.h"
#include "exporter/cmd/exporter_options.h"
#include "exporter/xid.h"
#include "test/support/nvml_fixture.h"
#include "test/support/tree.h"

#define CARD  "class/drm/card0/device/"
#define HWMON CARD "hwmon/hwmon3/"

static int setup(void **state)
{
	static struct tree t;
	tree_make(&t);
	tree_write(&t, CARD "uevent", "DRIVER=amdgpu\nPCI_ID=1002:740F\nPCI_SLOT_NAME=0000:63:00.0\n");
	tree_write(&t, CARD "unique_id", "8a3b5c7d9e0f1122\n");
	tree_write(&t, CARD "gpu_busy_percent", "73\n");
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	tree_remove(*state);
	return 0;
}

static struct backend *open_amdgpu(const struct tree *t)
{
	struct err e;
	struct backend *b = backend_amdgpu_new(&(struct backend_config){.sysfs_root = t->root}, &e);
	assert_non_null(b);
	if (b->ops->open(b, &e) < 0)
		fail_msg("%s", e.msg);
	return b;
}

static void end(struct backend *b)
{
	b->ops->close(b);
	b->ops->destroy(b);
}

static void every_file_has_its_field_and_unit(void **state)
{
	const struct tree *t = *state;
	static const struct {
		const char *file, *text;
		enum field field;
		double want; // -1: no sample
	} cases[] = {
	        {CARD "gpu_busy_percent", "73\n", FIELD_GPU_UTIL, 73},
	        {CARD "mem_busy_percent", "41", FIELD_MEM_COPY_UTIL, 41},
	        {CARD "pcie_replay_count", "7\n", FIELD_PCIE_REPLAY, 7},
	        {HWMON "power1_input", "250000000\n", FIELD_POWER_USAGE, 250},
	        {HWMON "power1_average", "187500000\n", FIELD_POWER_USAGE, 187.5}, // goes before input
	        {HWMON "power1_cap", "300000000\n", FIELD_POWER_LIMIT, 300},
	        {HWMON "power1_cap", "300000000\n", FIELD_ENFORCED_POWER_LIMIT, 300},
	        {HWMON "freq1_input", "1700000000\n", FIELD_SM_CLOCK, 1700},
	        {HWMON "freq2_input", "1600400000\n", FIELD_MEM_CLOCK, 1600},
	        {HWMON "pwm1", "255\n", FIELD_FAN_SPEED, 100},
	        {HWMON "pwm1", "-1\n", FIELD_FAN_SPEED, -1},
	        {HWMON "pwm1", "fast\n", FIELD_FAN_SPEED, -1},
	        {HWMON "pwm1", "", FIELD_FAN_SPEED, -1},
	        {HWMON "temp1_input", "48600\n", FIELD_GPU_TEMP, 49}, // no labels: the only one
	        {HWMON "temp2_label", "junction\n", FIELD_GPU_TEMP, -1},
	        {HWMON "temp2_input", "57000\n", FIELD_GPU_TEMP, 57},
	        {HWMON "temp1_label", "edge\n", FIELD_GPU_TEMP, 49},
	        {HWMON "temp1_input", "511000\n", FIELD_GPU_TEMP, 57}, // not believed: the next sensor
	        {HWMON "temp3_label", "mem\n", FIELD_MEMORY_TEMP, -1},
	        {HWMON "temp3_input", "61000\n", FIELD_MEMORY_TEMP, 61},
	        {CARD "ras/umc_err_count", "ue: 1\nce: 12\n", FIELD_ECC_DBE_VOL, 1},
	        {CARD "ras/umc_err_count", "ue: 1\nce: 12\n", FIELD_ECC_SBE_VOL, 12},
	        {CARD "ras/umc_err_count", "ue: x\n", FIELD_ECC_DBE_VOL, -1},
	        {CARD "mem_info_vram_total", "68702699520\n", FIELD_FB_TOTAL, 65520},
	        {CARD "mem_info_vram_total", "68702699520\n", FIELD_FB_USED, -1},
	        {CARD "mem_info_vram_used", "17175674880\n", FIELD_FB_USED, 16380},
	        {CARD "mem_info_vram_used", "17175674880\n", FIELD_FB_FREE, 49140},
	        {CARD "mem_info_vram_used", "17175674880\n", FIELD_FB_USED_PERCENT, 0.25},
	        {CARD "mem_info_vram_used", "68702699521\n", FIELD_FB_USED, -1}, // more than there is
	        {CARD "current_link_speed", "16.0 GT/s PCIe\n", FIELD_PCIE_LINK_GEN, 4},
	        {CARD "current_link_speed", "2.5 GT/s PCIe\n", FIELD_PCIE_LINK_GEN, 1},
	        {CARD "current_link_speed", "Unknown\n", FIELD_PCIE_LINK_GEN, -1},
	        {CARD "current_link_width", "16\n", FIELD_PCIE_LINK_WIDTH, 16},
	        {CARD "gpu_busy_percent", "7 3\n", FIELD_GPU_UTIL, -1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tree_write(t, cases[i].file, cases[i].text);
		struct backend *b = open_amdgpu(t);
		struct device_sample s[DEVICES_MAX];
		struct err e;
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		if (sample_has(&s[0], cases[i].field) != (cases[i].want >= 0))
			fail_msg("%s = %s: sample %d", cases[i].file, cases[i].text, sample_has(&s[0], cases[i].field));
		if (cases[i].want >= 0)
			assert_float_equal(sample_get(&s[0], cases[i].field), cases[i].want, 1e-9);
		end(b);
	}
}

static void only_cards_of_the_driver_are_taken(void **state)
{
	const struct tree *t = *state;
	tree_write(t, "class/drm/card1/device/uevent", "DRIVER=ast\nPCI_SLOT_NAME=0000:c4:00.0\n");
	tree_write(t, "class/drm/card2/device/uevent", "PCI_ID=1002:0001\n");
	tree_write(t, "class/drm/card0-DP-1/status", "connected\n");
	tree_write(t, "class/drm/card3/device/uevent", "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:83:00.0\n");
	tree_write(t, "class/drm/card3/device/product_name", "AMD Radeon PRO W7900\n");
	tree_write(t, "module/amdgpu/version", "6.10.5\n");
	struct backend *b = open_amdgpu(t);
	const struct device *d = b->devices;
	size_t n = b->n;
	assert_int_equal(n, 2);
	assert_string_equal(d[0].uuid, "GPU-8a3b5c7d9e0f1122");
	assert_string_equal(d[0].model, "AMD GPU 1002:740F");
	assert_string_equal(d[0].pci_bus_id, "0000:63:00.0");
	assert_string_equal(d[0].node, "card0");
	assert_int_equal(d[1].index, 1);
	assert_string_equal(d[1].uuid, "PCI-0000:83:00.0");
	assert_string_equal(d[1].model, "AMD Radeon PRO W7900");
	assert_string_equal(d[1].node, "card3");
	assert_string_equal(b->driver_version, "6.10.5");
	end(b);
	struct err e;
	b = backend_amdgpu_new(&(struct backend_config){.sysfs_root = "/nonexistent"}, &e);
	assert_int_equal(b->ops->open(b, &e), -1);
	assert_string_equal(e.msg, "found no GPU of the driver amdgpu under /nonexistent/class/drm");
	b->ops->destroy(b);
}

static void card_that_goes_is_lost_then_gone_and_may_come_back(void **state)
{
	const struct tree *t = *state;
	static const char uevent[] = "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:83:00.0\n";
	tree_write(t, "class/drm/card1/device/uevent", uevent);
	tree_write(t, "class/drm/card1/device/gpu_busy_percent", "1\n");
	struct backend *b = open_amdgpu(t);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(s[0].lost || s[1].lost);
	tree_delete(t, "class/drm/card1");
	assert_int_equal(b->ops->sample(b, 1000, 0, s, &e), 0);
	assert_true(!s[0].lost && s[1].lost);
	assert_int_equal(b->ops->sample(b, 10000, 0, s, &e), 0);
	assert_int_equal(b->n, 1);
	tree_write(t, "class/drm/card1/device/uevent", uevent);
	tree_write(t, "class/drm/card1/device/gpu_busy_percent", "1\n");
	assert_int_equal(b->ops->sample(b, 20000, 0, s, &e), 0);
	assert_int_equal(b->n, 2);
	tree_delete(t, "class");
	assert_int_equal(b->ops->sample(b, 30000, 0, s, &e), -1);
	assert_string_equal(e.msg, "every GPU of the driver amdgpu is gone");
	end(b);
}

// Opens nvml, amdgpu, intel in that order; the name of the one that opened, or the error.
static const char *choose(const char *nvml, const struct tree *t, struct err *e)
{
	struct xid_store *xids = xid_store_new(e);
	const struct backend_config config = {.nvml_library = nvml, .xids = xids, .sysfs_root = t->root};
	struct backend *b = backend_registry_find("auto")->make(&config, e);
	assert_string_equal(backend_name(b), "auto");
	const char *chosen = e->msg;
	if (b->ops->open(b, e) == 0) {
		struct device_sample s[DEVICES_MAX];
		assert_int_equal(b->ops->sample(b, 0, 0, s, e), 0);
		assert_non_null(b->devices);
		chosen = backend_name(b);
		b->ops->close(b);
	}
	b->ops->destroy(b);
	xid_store_free(xids);
	return chosen;
}

static void auto_takes_nvml_then_amdgpu_then_intel(void **state)
{
	const struct tree *t = *state;
	static const char none[] = "/nonexistent/libnvidia-ml.so.1";
	struct nvml_fixture *f;
	struct err e;
	assert_int_equal(nvml_fixture_setup((void **)&f), 0);
	tree_write(t, "class/drm/card9/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n");
	assert_string_equal(choose(f->library[LIB_WHOLE], t, &e), "nvml");
	assert_string_equal(choose(none, t, &e), "amdgpu");
	tree_delete(t, "class/drm/card0");
	assert_string_equal(choose(none, t, &e), "intel");
	// A node of NVIDIA's whose driver is late: its graphics chip must not replace it.
	tree_write(t, "bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
	tree_write(t, "bus/pci/devices/0000:03:00.0/class", "0x040300\n"); // a sound device is not enough
	assert_string_equal(choose(none, t, &e), "intel");
	tree_write(t, "bus/pci/devices/0000:03:00.0/class", "0x030200\n");
	assert_non_null(strstr(choose(none, t, &e), "cannot load NVML"));
	assert_null(strstr(e.msg, "i915"));
	tree_delete(t, "bus");
	tree_delete(t, "class");
	assert_non_null(strstr(choose(none, t, &e), "cannot load NVML"));
	assert_non_null(strstr(e.msg, "no GPU of the driver amdgpu"));
	assert_non_null(strstr(e.msg, "no GPU of the driver xe or i915"));
	nvml_fixture_teardown((void **)&f);
}

static void cards_with_the_same_id_are_identified_by_their_slot(void **state)
{
	const struct tree *t = *state;
	struct device_sample s[DEVICES_MAX];
	struct err e;
	tree_write(t, "class/drm/card1/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:64:00.0\n");
	tree_write(t, "class/drm/card1/device/unique_id", "8a3b5c7d9e0f1122\n");
	tree_write(t, "class/drm/card1/device/gpu_busy_percent", "101\n"); // nothing a device can have: lost
	struct backend *b = open_amdgpu(t);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(b->ops->sample(b, round * 20000, 0, s, &e), 0);
		const struct device *d = b->devices;
		assert_int_equal(b->n, 2);
		assert_string_equal(d[0].uuid, "GPU-8a3b5c7d9e0f1122");
		assert_string_equal(d[1].uuid, "PCI-0000:64:00.0-card1");
		assert_false(s[0].lost);
		assert_true(s[1].lost);
	}
	b->ops->close(b);
	b->ops->destroy(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(every_file_has_its_field_and_unit),
	        TEST(only_cards_of_the_driver_are_taken),
	        TEST(card_that_goes_is_lost_then_gone_and_may_come_back),
	        TEST(auto_takes_nvml_then_amdgpu_then_intel),
	        TEST(cards_with_the_same_id_are_identified_by_their_slot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
