// SPDX-License-Identifier: Apache-2.0
// Goal: expressions that select devices are decided as the scheduler decides them, or not at all.
#include "k8s/capacity/device_selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expressions_are_decided_or_unknown(void **state)
{
	static const char attributes[] =
	        "{\"type\":{\"string\":\"gpu\"},\"memoryGiB\":{\"int\":80},\"ecc\":{\"bool\":true},"
	        "\"driverVersion\":{\"version\":\"570.1.0\"},\"example.dev/rack\":{\"string\":\"r1\"}}";
	static const char capacity[] = "{\"memory\":{\"value\":\"80Gi\"}}";
	const struct device_facts device = {.driver = "gpu.nvidia.com",
	                                    .attributes = {attributes, sizeof attributes - 1},
	                                    .capacity = {capacity, sizeof capacity - 1}};
#define A "device.attributes['gpu.nvidia.com']"
#define C "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity("
	// clang-format off
	static const struct {
		const char *expression;
		enum device_match wanted;
	} rows[] = {
		{"device.driver == \"gpu.nvidia.com\"", DEVICE_MATCH_YES},
		{"device.driver == 'gpu.amd.com'", DEVICE_MATCH_NO},
		{"device.driver != 'gpu.amd.com'", DEVICE_MATCH_YES},
		{"device.driver == 'gpu.nvidia.com' && " A ".type == 'gpu'", DEVICE_MATCH_YES},
		{"device.driver == 'gpu.nvidia.com' && " A "['type'] == 'mig'", DEVICE_MATCH_NO},
		{"device.driver == 'x' && device.attributes['x'].type == 'gpu'", DEVICE_MATCH_NO},
		{"device.attributes['x'].type == 'gpu' && device.driver == 'x'", DEVICE_MATCH_NO},
		{"device.driver == 'gpu.nvidia.com' || " A ".gone == 1", DEVICE_MATCH_YES},
		{A ".gone == 'x'", DEVICE_MATCH_UNKNOWN},
		{"!(" A ".gone == 'x')", DEVICE_MATCH_UNKNOWN},
		{"device.attributes['example.dev'].rack in ['r0', 'r1']", DEVICE_MATCH_YES},
		{"device.attributes['example.dev'].rack in []", DEVICE_MATCH_NO},
		{"device.attributes['example.dev'].type == 'gpu'", DEVICE_MATCH_UNKNOWN},
		{A ".memoryGiB >= 80", DEVICE_MATCH_YES},
		{A ".memoryGiB > 80", DEVICE_MATCH_NO},
		{A ".memoryGiB < 81", DEVICE_MATCH_YES},
		{A ".memoryGiB == '80'", DEVICE_MATCH_UNKNOWN},
		{A ".ecc", DEVICE_MATCH_YES},
		{"!" A ".ecc", DEVICE_MATCH_NO},
		{A ".ecc == true", DEVICE_MATCH_YES},
		{A ".type", DEVICE_MATCH_UNKNOWN},
		{A ".type > 'a'", DEVICE_MATCH_UNKNOWN},
		{A ".driverVersion == '570.1.0'", DEVICE_MATCH_UNKNOWN},
		{C "'40Gi')) >= 0", DEVICE_MATCH_YES},
		{C "'80Gi')) > 0", DEVICE_MATCH_NO},
		{C "'much')) > 0", DEVICE_MATCH_UNKNOWN},
		{"(device.driver == 'a' || device.driver == 'gpu.nvidia.com') && !(" A ".type == 'mig')", DEVICE_MATCH_YES},
		{"true", DEVICE_MATCH_YES},
		{"false || true && false", DEVICE_MATCH_NO},
		{"", DEVICE_MATCH_UNKNOWN},
		{"device", DEVICE_MATCH_UNKNOWN},
		{"device.driver == 'gpu.nvidia.com' extra", DEVICE_MATCH_UNKNOWN},
		{"device.driver.startsWith('gpu')", DEVICE_MATCH_UNKNOWN},
		{"device.driver == 'gpu.nvidia.com' && cel.bind(x, 1, true)", DEVICE_MATCH_UNKNOWN},
		{"device.driver == 'gpu\\.nvidia.com'", DEVICE_MATCH_UNKNOWN},
		{"device.driver == 'gpu", DEVICE_MATCH_UNKNOWN},
		{"((true)", DEVICE_MATCH_UNKNOWN},
		{"!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!true", DEVICE_MATCH_UNKNOWN},
	};
	// clang-format on
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		enum device_match got = device_selector_match(rows[i].expression, &device);
		if (got != rows[i].wanted)
			fail_msg("%s: %d, wanted %d", rows[i].expression, (int)got, (int)rows[i].wanted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(expressions_are_decided_or_unknown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
