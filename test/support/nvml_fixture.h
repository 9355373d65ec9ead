// SPDX-License-Identifier: Apache-2.0
// The scripted NVML of test/fake/nvml for one test: its script, its three variants, the scripted DCGM, an empty XID
// store.
#ifndef GPUSCALE_TEST_SUPPORT_NVML_FIXTURE_H
#define GPUSCALE_TEST_SUPPORT_NVML_FIXTURE_H

#include <limits.h>
#include <stddef.h>

#include "exporter/device.h"

struct backend;
struct xid_store;

enum { LIB_WHOLE, LIB_OLD, LIB_EMPTY, LIB_DCGM, LIB__COUNT };

struct nvml_fixture {
	char script[32]; // what FAKE_NVML_SCRIPT names
	char library[LIB__COUNT][PATH_MAX];
	struct xid_store *xids;
};

// cmocka's setup and teardown; *state is the fixture.
int nvml_fixture_setup(void **state);
int nvml_fixture_teardown(void **state);
// The NVML backend with this library, opened; fails the test when it does not open. Without a log.
struct backend *nvml_fixture_open(struct nvml_fixture *f, int library);
void nvml_fixture_close(struct backend *b);
// The value of a field as text, or "-".
const char *nvml_fixture_show(const struct device_sample *s, enum field f, char *out, size_t size);
#define assert_field(s, f, want)                                                                                       \
	do {                                                                                                           \
		char got_[64];                                                                                         \
		if (strcmp(nvml_fixture_show(s, f, got_, sizeof got_), want) != 0)                                     \
			fail_msg("%s: got %s, want %s", family_of(f)->name, got_, want);                               \
	} while (0)
// Replaces the script in one step, as the library may read it at any time.
void nvml_fixture_play(const struct nvml_fixture *f, const char *text);

#endif
