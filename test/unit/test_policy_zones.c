// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the time zones that schedules name reach the engine with the policy, each read once per policy; a
// zone that is not known is an error at its place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/tz/tz_table.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"
#include "policies/load/file_set.h"

#define PATH_BYTES 128

static char dir[64];

static void put(const char *name, const void *data, size_t n)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(data, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
}

// No transition, one local time type, and a rule.
static void put_zone(const char *name, const char *rule)
{
	static const char header[44] = {'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 4};
	static const char body[6 + 4];
	char file[256];
	size_t n = 0;
	for (int i = 0; i < 2; i++) {
		memcpy(file + n, header, sizeof header);
		memcpy(file + n + sizeof header, body, sizeof body);
		n += sizeof header + sizeof body;
	}
	n += (size_t)snprintf(file + n, sizeof file - n, "\n%s\n", rule);
	put(name, file, n);
}

static int set_up(void **state)
{
	snprintf(dir, sizeof dir, "%s", "/tmp/gpuscale-zones-XXXXXX");
	char path[PATH_BYTES];
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof path, "%s/Europe", dir);
	if (mkdir(path, 0700) < 0)
		return -1;
	put_zone("Europe/Zurich", "CET-1CEST,M3.5.0,M10.5.0/3");
	return setenv("TZDIR", dir, 1);
}

static int tear_down(void **state)
{
	static const char *const names[] = {"/p.yaml", "/Europe/Zurich", "/Europe", ""};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char path[PATH_BYTES];
		snprintf(path, sizeof path, "%s%s", dir, names[i]);
		remove(path);
	}
	return unsetenv("TZDIR");
}

// Loads a policy with these schedules; ret_report is freed by the caller.
static void load(const char *schedules, struct file_set *ret_set, struct buf *ret_report)
{
	char text[2048], path[PATH_BYTES];
	int n = snprintf(text, sizeof text,
	                 "apiVersion: gpuscale.dev/v1alpha1\n"
	                 "kind: GPUAutoscaler\n"
	                 "metadata: {name: llama}\n"
	                 "spec:\n"
	                 "  scaleTargetRef: {name: llama}\n"
	                 "  maxReplicas: 8\n"
	                 "  signals: [{name: load, query: load, target: {value: 10}}]\n"
	                 "  schedules:\n%s",
	                 schedules);
	put("p.yaml", text, (size_t)n);
	snprintf(path, sizeof path, "%s/p.yaml", dir);
	const char *const paths[] = {path};
	struct err e;
	err_clear(&e);
	buf_init(ret_report, 65536);
	if (file_set_load(ret_set, paths, 1, NULL, ret_report, &e) < 0)
		fail_msg("%s", e.msg);
}

static void zones_reach_the_engine(void **state)
{
	struct file_set set;
	struct buf report;
	load("  - {name: a, start: \"0 8 * * *\", end: \"0 12 * * *\", timeZone: Europe/Zurich, replicas: 2}\n"
	     "  - {name: b, start: \"0 14 * * *\", end: \"0 20 * * *\", timeZone: Europe/Zurich, replicas: 3}\n"
	     "  - {name: c, start: \"0 23 * * *\", end: \"30 23 * * *\", replicas: 4}\n",
	     &set, &report);
	assert_string_equal(buf_str(&report), "");
	assert_int_equal(set.n_policies, 1);
	const struct policy *p = set.policies[0];
	assert_non_null(p->schedules[0].zone);
	assert_ptr_equal(p->schedules[0].zone, p->schedules[1].zone);
	assert_true(p->schedules[0].zone->n > 100);
	assert_true(!p->schedules[2].zone || p->schedules[2].zone->n == 0); // UTC
	int64_t until;
	assert_int_equal(schedule_at(p, INT64_C(1767596400) * 1000, &until), 0); // 2026-01-05T07:00:00Z
	assert_int_equal(schedule_at(p, INT64_C(1767596399) * 1000, &until), -1);
	assert_int_equal(schedule_at(p, INT64_C(1783317600) * 1000, &until), 0); // 2026-07-06T06:00:00Z
	assert_int_equal(schedule_at(p, INT64_C(1767654000) * 1000, &until), 2); // 2026-01-05T23:00:00Z
	file_set_done(&set);
	buf_done(&report);
}

static void unknown_zone_is_an_error_at_its_place(void **state)
{
	struct file_set set;
	struct buf report;
	load("  - {name: a, start: \"0 8 * * *\", end: \"0 12 * * *\", timeZone: Europe/Zurch, replicas: 2}\n"
	     "  - {name: b, start: \"0 8 * * *\", end: \"0 25 * * *\", timeZone: ../p.yaml, replicas: 2}\n",
	     &set, &report);
	assert_int_equal(set.n_errors, 3);
	assert_int_equal(set.n_policies, 0);
	assert_non_null(strstr(buf_str(&report), ":9:64: spec.schedules[0].timeZone: unknown time zone "
	                                         "\"Europe/Zurch\", did you mean Europe/Zurich?"));
	assert_non_null(strstr(buf_str(&report), "spec.schedules[1].timeZone: \"../p.yaml\" is not the name of a time "
	                                         "zone: write it as in Europe/Zurich, or UTC"));
	assert_non_null(strstr(buf_str(&report), "spec.schedules[1].end: hour, the second field"));
	file_set_done(&set);
	buf_done(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(zones_reach_the_engine),
	        cmocka_unit_test(unknown_zone_is_an_error_at_its_place),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
