// SPDX-License-Identifier: Apache-2.0
// The scripted NVML of test/fake/nvml for one test: its script, its three variants, the scripted DCGM, an empty XID
// store.
#ifndef GPUSCALE_TEST_SUPPORT_NVML_FIXTURE_H
#define GPUSCALE_TEST_SUPPORT_NVML_FIXTURE_H

#include <limits.h>

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
// Replaces the script in one step, as the library may read it at any time.
void nvml_fixture_play(const struct nvml_fixture *f, const char *text);

#endif
