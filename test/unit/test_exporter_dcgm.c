// SPDX-License-Identifier: Apache-2.0
// The DCGM backend against the scripted library of test/fake/dcgm.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "exporter/backend.h"
#include "exporter/xid.h"
#include "test/support/nvml_fixture.h"

#define ADDRESS "localhost:5555"
#define UUID0   "GPU-00000000-0000-0000-0000-000000000000"

static struct backend *make(struct nvml_fixture *f, const char *address)
{
	struct err e;
	struct backend *b = backend_dcgm_new(&(struct backend_config){.dcgm_library = f->library[LIB_DCGM],
	                                                              .dcgm_address = address,
	                                                              .interval_ms = 1000,
	                                                              .xids = f->xids},
	                                     &e);
	assert_non_null(b);
	return b;
}

static struct backend *open_dcgm(struct nvml_fixture *f)
{
	struct err e;
	struct backend *b = make(f, ADDRESS);
	if (b->ops->open(b, &e) < 0)
		fail_msg("%s", e.msg);
	return b;
}

static void end(struct backend *b)
{
	b->ops->close(b);
	b->ops->destroy(b);
}

static void every_field_with_an_id_arrives(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = open_dcgm(f);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	for (enum field k = 0; k < FIELD__COUNT; k++) {
		const struct family *fam = family_of(k);
		assert_int_equal(sample_has(&s[1], k), fam->dcgm_id != 0);
		if (!fam->dcgm_id)
			continue;
		// The scripted library answers with the id and the GPU; doubles in thousandths.
		bool is_double = fam->kind == FIELD_DOUBLE;
		double want = (10000 + fam->dcgm_id) / (is_double || fam->dcgm_id > 1000 ? 1000.0 : 1);
		if (fabs(sample_get(&s[1], k) - (is_double ? want : round(want))) > 1e-9)
			fail_msg("%s: %g", fam->name, sample_get(&s[1], k));
	}
	const struct device *d = b->devices;
	size_t n = b->n;
	assert_int_equal(n, 2);
	assert_string_equal(d[0].uuid, UUID0);
	assert_string_equal(d[0].pci_bus_id, ""); // "<<<NULL>>>" is never shown
	assert_string_equal(d[1].pci_bus_id, "00000000:07:00.0");
	assert_string_equal(d[1].node, "nvidia1");
	assert_string_equal(d[1].model, "NVIDIA Fake 100");
	assert_string_equal(b->driver_version, "535.161.08");
	end(b);
}

static void blank_and_failed_values_give_no_sample(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = open_dcgm(f);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	nvml_fixture_play(f, "blank 203 0 1\nblank 155 0 1\nfail field1002 0 14\nfail field150 0 6\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(sample_has(&s[0], FIELD_GPU_UTIL) || sample_has(&s[0], FIELD_POWER_USAGE));
	assert_false(sample_has(&s[0], FIELD_SM_ACTIVE) || sample_has(&s[0], FIELD_GPU_TEMP));
	assert_true(sample_has(&s[0], FIELD_FB_USED) && sample_has(&s[1], FIELD_GPU_UTIL));
	end(b);
}

static void version_that_lacks_fields_gives_the_others(void **state)
{
	struct nvml_fixture *f = *state;
	nvml_fixture_play(f, "unknown 157 * 1\nunknown 254 * 1\nunknown 1016 * 1\n");
	struct backend *b = open_dcgm(f);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(sample_has(&s[0], FIELD_POWER_USAGE_INSTANT) || sample_has(&s[0], FIELD_FB_USED_PERCENT));
	assert_false(sample_has(&s[0], FIELD_PIPE_INT_ACTIVE));
	assert_true(sample_has(&s[0], FIELD_POWER_USAGE) && sample_has(&s[0], FIELD_SM_ACTIVE));
	end(b);
}

static void other_families_are_served_without_profiling(void **state)
{
	struct nvml_fixture *f = *state;
	nvml_fixture_play(f, "fail watchProfiling * 33\n");
	struct backend *b = open_dcgm(f);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(sample_has(&s[0], FIELD_SM_ACTIVE));
	assert_true(sample_has(&s[0], FIELD_GPU_UTIL));
	end(b);
}

static void unusable_library_names_its_fault(void **state)
{
	struct nvml_fixture *f = *state;
	const struct {
		const char *library, *script, *in_message;
	} cases[] = {
	        {"/nonexistent/libdcgm.so.4", "", "cannot load DCGM: /nonexistent/libdcgm.so.4"},
	        {f->library[LIB_EMPTY], "", "has no function dcgmInit: is it DCGM?"},
	        {f->library[LIB_DCGM], "fail dcgmInit * 7\n", "DCGM failed to start: Some DCGM error"},
	        {f->library[LIB_DCGM], "fail dcgmConnect_v2 * 21\n",
	         "cannot reach nv-hostengine at localhost:5555: The connection is not valid"},
	        {f->library[LIB_DCGM], "fail dcgmGetAllDevices * 3\n", "cannot list GPUs"},
	        {f->library[LIB_DCGM], "set gpus * 0\n", "DCGM found 0 GPUs"},
	        {f->library[LIB_DCGM], "fail field54 1 6\n", "reports no UUID for GPU 1"},
	        {f->library[LIB_DCGM], "fail watch * 3\n", "DCGM cannot watch fields"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct err e;
		struct backend *b = backend_dcgm_new(&(struct backend_config){.dcgm_library = cases[i].library,
		                                                              .dcgm_address = ADDRESS,
		                                                              .interval_ms = 1000,
		                                                              .xids = f->xids},
		                                     &e);
		nvml_fixture_play(f, cases[i].script);
		assert_int_equal(b->ops->open(b, &e), -1);
		if (!strstr(e.msg, cases[i].in_message))
			fail_msg("message \"%s\" lacks \"%s\"", e.msg, cases[i].in_message);
		nvml_fixture_play(f, "");
		if (cases[i].library == f->library[LIB_DCGM]) {
			assert_int_equal(b->ops->open(b, &e), 0); // nothing of the failure stays
			b->ops->close(b);
		}
		b->ops->destroy(b);
	}
	static const char *const addresses[] = {"unix:///run/hostengine.sock", "/run/hostengine.sock", "10.0.0.1"};
	for (size_t i = 0; i < 3; i++) {
		struct err e;
		struct backend *b = make(f, addresses[i]); // the scripted library checks the form
		assert_int_equal(b->ops->open(b, &e), 0);
		end(b);
	}
}

static uint64_t xids_of(struct nvml_fixture *f, int32_t code)
{
	struct xid_count c[XID_CODES_MAX + 1];
	size_t n = xid_store_read(f->xids, UUID0, c);
	for (size_t i = 0; i < n; i++)
		if (c[i].code == code)
			return c[i].count;
	return 0;
}

static void xid_is_counted_once_by_its_stamp(void **state)
{
	struct nvml_fixture *f = *state;
	struct device_sample s[DEVICES_MAX];
	struct err e;
	static const struct {
		const char *script;
		uint64_t n48, n31;
	} steps[] = {
	        {"set 230 0 48\ntime 230 0 5\n", 0, 0},                                         // from before
	        {"set 230 0 48\ntime 230 0 5\n", 0, 0}, {"set 230 0 48\ntime 230 0 6\n", 1, 0}, // the same code again
	        {"set 230 0 31\ntime 230 0 9\n", 1, 1}, {"blank 230 0 1\n", 1, 1},
	        {"set 230 0 31\ntime 230 0 9\n", 1, 1}, {"set 230 0 31\ntime 230 0 10\n", 1, 2},
	};
	struct backend *b = NULL;
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		nvml_fixture_play(f, steps[i].script);
		if (!b)
			b = open_dcgm(f);
		assert_int_equal(b->ops->sample(b, 0, 1000, s, &e), 0);
		assert_int_equal(xids_of(f, 48), steps[i].n48);
		assert_int_equal(xids_of(f, 31), steps[i].n31);
	}
	assert_int_equal(s[0].value[FIELD_XID_ERRORS].i, 31);
	end(b);
}

static void xid_is_absent_without_its_field(void **state)
{
	struct nvml_fixture *f = *state;
	struct device_sample s[DEVICES_MAX];
	struct xid_count c[XID_CODES_MAX + 1];
	struct err e;
	static const struct {
		const char *script;
		bool told;
	} cases[] = {
	        {"blank 230 0 1\n", true},       // watched, and there was none
	        {"fail field230 0 14\n", true},  // no data yet
	        {"fail field230 0 6\n", false},  // not supported
	        {"fail field230 0 16\n", false}, // not watched
	        {"fail field230 0 17\n", false}, // not allowed
	        {"unknown 230 * 1\n", false},    // a version without it
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		xid_store_free(f->xids);
		f->xids = xid_store_new(&e);
		nvml_fixture_play(f, cases[i].script);
		struct backend *b = open_dcgm(f);
		assert_int_equal(b->ops->sample(b, 0, 1000, s, &e), 0);
		if (sample_has(&s[0], FIELD_XID_ERRORS) != cases[i].told)
			fail_msg("%s: field", cases[i].script);
		if ((xid_store_read(f->xids, UUID0, c) > 0) != cases[i].told)
			fail_msg("%s: counters", cases[i].script);
		end(b);
	}
}

static void numbers_that_are_none_give_no_sample(void **state)
{
	struct nvml_fixture *f = *state;
	struct device_sample s[DEVICES_MAX];
	struct err e;
	for (int kind = 1; kind <= 7; kind++) {
		char script[256];
		snprintf(script, sizeof script,
		         "odd 203 0 %d\nodd 155 0 %d\nodd 156 0 %d\nodd 230 0 %d\nodd 1002 0 %d\n", kind, kind, kind,
		         kind, kind);
		nvml_fixture_play(f, script);
		struct backend *b = open_dcgm(f);
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		assert_int_equal(b->ops->sample(b, 1000, 1000, s, &e), 0);
		static const enum field fields[] = {FIELD_GPU_UTIL, FIELD_POWER_USAGE, FIELD_TOTAL_ENERGY,
		                                    FIELD_SM_ACTIVE};
		for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
			if (sample_has(&s[0], fields[i]))
				fail_msg("odd %d: %s is %g", kind, family_of(fields[i])->name,
				         sample_get(&s[0], fields[i]));
		assert_true(sample_has(&s[0], FIELD_GPU_TEMP) && sample_has(&s[1], FIELD_GPU_UTIL));
		assert_int_equal(xids_of(f, 48), 0);
		end(b);
	}
}

static void lost_gpus_differ_from_a_lost_engine(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = open_dcgm(f);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	nvml_fixture_play(f, "fail dcgmEntitiesGetLatestValues 0 18\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_true(s[0].lost && !s[1].lost);
	nvml_fixture_play(f, "fail field203 1 19\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_true(!s[0].lost && s[1].lost);
	assert_int_equal(sample_count(&s[1]), 0);
	nvml_fixture_play(f, "fail dcgmEntitiesGetLatestValues * 21\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), -1);
	assert_string_equal(e.msg, "DCGM is gone: The connection is not valid");
	end(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nvml_fixture_setup, nvml_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(every_field_with_an_id_arrives),
	        TEST(blank_and_failed_values_give_no_sample),
	        TEST(version_that_lacks_fields_gives_the_others),
	        TEST(other_families_are_served_without_profiling),
	        TEST(unusable_library_names_its_fault),
	        TEST(xid_is_counted_once_by_its_stamp),
	        TEST(xid_is_absent_without_its_field),
	        TEST(numbers_that_are_none_give_no_sample),
	        TEST(lost_gpus_differ_from_a_lost_engine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
