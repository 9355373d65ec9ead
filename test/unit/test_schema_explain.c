// SPDX-License-Identifier: Apache-2.0
// Goal of this test: `explain` prints all there is to know of a field from the table alone, laid out for 80 columns.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema/schema.h"
#include "test/support/sample_schema.h"

struct row {
	const char *path, *want;
};
static const struct row rows[] = {
        {"", "KIND:      Sample\n"
             "\n"
             "An object with everything in it.\n"
             "\n"
             "FIELDS:\n"
             "  metadata  <object>  What Kubernetes calls it.\n"
             "  spec      <object>  (required) What is wanted.\n"},
        {"sample.spec", "KIND:      Sample\n"
                        "FIELD:     spec <object>\n"
                        "REQUIRED:  yes\n"
                        "\n"
                        "What is wanted.\n"
                        "\n"
                        "FIELDS:\n"
                        "  minReplicas    <integer>          Fewest replicas.\n"
                        "  maxReplicas    <integer>          (required) Most replicas, which bounds what\n"
                        "                                    a mistake can cost; there is no default on\n"
                        "                                    purpose, because only the owner of the\n"
                        "                                    workload knows it.\n"
                        "  step           <integer>          Any whole number.\n"
                        "  dryRun         <boolean>          Decide, but write nothing.\n"
                        "  interval       <duration>         Time between decisions.\n"
                        "  periodSeconds  <integer seconds>  Length of the rate period.\n"
                        "  tags           <list of string>   Words for people.\n"
                        "  zones          <list of string>   Where it may run.\n"
                        "  signals        <list of object>   What is measured.\n"
                        "  forecast       <object>           (not supported yet) Looks ahead.\n"
                        "  extra          <any>              Free form.\n"},
        {"spec.maxReplicas", "KIND:      Sample\n"
                             "FIELD:     spec.maxReplicas <integer>\n"
                             "REQUIRED:  yes\n"
                             "RANGE:     between 1 and 1000\n"
                             "\n"
                             "Most replicas, which bounds what a mistake can cost; there is no default on\n"
                             "purpose, because only the owner of the workload knows it. Raise it slowly.\n"},
        {"spec.signals", "KIND:      Sample\n"
                         "FIELD:     spec.signals <list of object>\n"
                         "ELEMENTS:  1 to 16\n"
                         "\n"
                         "What is measured. At least one.\n"
                         "\n"
                         "FIELDS:\n"
                         "  name       <string>    (required) What the signal is called in messages.\n"
                         "  value      <quantity>  Where it should be.\n"
                         "  tolerance  <quantity>  Distance from the value, as a ratio, at which nothing\n"
                         "                         is done.\n"
                         "  type       <enum>      How the value becomes replicas.\n"
                         "  window     <object>    The samples a decision looks at.\n"},
        {"SAMPLE.spec.signals[3].window.duration", "KIND:      Sample\n"
                                                   "FIELD:     spec.signals[].window.duration <duration>\n"
                                                   "DEFAULT:   2m\n"
                                                   "RANGE:     between 1s and 1h\n"
                                                   "\n"
                                                   "How far back to look. Longer windows are calmer and later.\n"},
        {"spec.signals.type", "KIND:      Sample\n"
                              "FIELD:     spec.signals[].type <enum>\n"
                              "DEFAULT:   AverageValue\n"
                              "CHOICES:   Value, AverageValue, Pods\n"
                              "\n"
                              "How the value becomes replicas.\n"},
        {"spec.signals[].tolerance", "KIND:      Sample\n"
                                     "FIELD:     spec.signals[].tolerance <quantity>\n"
                                     "DEFAULT:   \"0.1\"\n"
                                     "RANGE:     between 0 and 1\n"
                                     "\n"
                                     "Distance from the value, as a ratio, at which nothing is done.\n"},
        {"spec.forecast", "KIND:      Sample\n"
                          "FIELD:     spec.forecast <object>\n"
                          "STATUS:    not supported yet: writing it is an error\n"
                          "\n"
                          "Looks ahead.\n"
                          "\n"
                          "FIELDS:\n"
                          "  name  <string>  Name of the object.\n"},
        {"spec.periodSeconds", "KIND:      Sample\n"
                               "FIELD:     spec.periodSeconds <integer seconds>\n"
                               "DEFAULT:   60\n"
                               "RANGE:     between 1 and 1800 seconds\n"
                               "\n"
                               "Length of the rate period.\n"},
        {"spec.signals.window", "KIND:      Sample\n"
                                "FIELD:     spec.signals[].window <object>\n"
                                "\n"
                                "The samples a decision looks at.\n"
                                "\n"
                                "FIELDS:\n"
                                "  duration    <duration>  How far back to look.\n"
                                "  minSamples  <integer>   Fewest samples a window needs to count.\n"},
};

static void field_is_explained(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf out;
		struct err e;
		err_clear(&e);
		buf_init(&out, 65536);
		if (schema_explain(&sample_schema, rows[i].path, &out, &e) < 0)
			fail_msg("%s: %s", rows[i].path, e.msg);
		assert_string_equal(buf_str(&out), rows[i].want);
		for (const char *line = buf_str(&out); *line; line += strcspn(line, "\n") + 1)
			assert_in_range(strcspn(line, "\n"), 0, 80);
		buf_done(&out);
	}
}

static const struct row bad_rows[] = {
        {"spec.minReplica", "no field spec.minReplica: Sample.spec has minReplicas, did you mean that?"},
        {"spec.flux", "no field spec.flux: Sample.spec has minReplicas, maxReplicas, step, dryRun, interval, "
                      "periodSeconds, tags, zones, signals, extra"},
        {"spec.step.x.y", "no field spec.step.x.y: a part of it is a plain value, which has no fields of its own"},
        {"Samples", "no field Samples: Sample has metadata, spec"},
        {"spec.\033[1m", "no field spec.\\x1b[1m: Sample.spec has minReplicas, maxReplicas, step, dryRun, interval, "
                         "periodSeconds, tags, zones, signals, extra"},
};

static void unknown_field_is_answered_with_the_known_ones(void **state)
{
	for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
		struct buf out;
		struct err e;
		err_clear(&e);
		buf_init(&out, 65536);
		assert_int_equal(schema_explain(&sample_schema, bad_rows[i].path, &out, &e), -1);
		assert_int_equal(e.kind, ERR_NOT_FOUND);
		assert_string_equal(e.msg, bad_rows[i].want);
		assert_string_equal(buf_str(&out), "");
		buf_done(&out);
	}
}

static void full_buffer_is_an_error(void **state)
{
	struct buf out;
	struct err e;
	buf_init(&out, 20);
	assert_int_equal(schema_explain(&sample_schema, "spec", &out, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(field_is_explained),
	        cmocka_unit_test(unknown_field_is_answered_with_the_known_ones),
	        cmocka_unit_test(full_buffer_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
