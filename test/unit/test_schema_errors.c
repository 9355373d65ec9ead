// SPDX-License-Identifier: Apache-2.0
// Goal of this test: for everything that can be wrong in a file there is one exact line: place, path, what, fix.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "test/support/sample_schema.h"

// A document that is right but for x.
#define SPEC(x)    "spec:\n  maxReplicas: 2\n  signals: [{name: q, value: 1}]\n  " x "\n"
#define SIGNALS(x) "spec:\n  maxReplicas: 2\n  signals:\n  - " x "\n"

struct row {
	const char *what, *text, *want;
};
static const struct row rows[] = {
        {"an empty document", "", "t: must be a map, found nothing\n"},
        {"a document that is a list", "- a\n", "t:1:1: must be a map, found a list\n"},
        {"a document that is a word", "hello\n", "t:1:1: must be a map, found hello\n"},
        {"a map where text is due", "metadata: {name: {a: b}}\n" SPEC(""),
         "t:1:18: metadata.name: must be text, found a map\n"},
        {"text where a map is due", "metadata: llama\n" SPEC(""), "t:1:11: metadata: must be a map, found llama\n"},
        {"a list where a map is due",
         "metadata:\n"
         "- name\n" SPEC(""),
         "t:2:1: metadata: must be a map, found a list\n"},
        {"a map where a list is due", "spec: {maxReplicas: 2, signals: {name: q}}",
         "t:1:33: spec.signals: must be a list, found a map\n"},
        {"text where a list is due", SPEC("tags: a, b"), "t:4:9: spec.tags: must be a list, found a, b\n"},
        {"a map where text is due in a list", SPEC("tags: [a, {b: c}]"),
         "t:4:13: spec.tags[1]: must be text, found a map\n"},
        {"text where a map is due in a list", SIGNALS("q"), "t:4:5: spec.signals[0]: must be a map, found q\n"},
        {"nothing where a map is due in a list",
         "spec: {maxReplicas: 2, signals: [{name: q, value: 1}, ~, {name: r, value: 1}, ]}",
         "t:1:55: spec.signals[1]: is empty: fill it in or remove it\n"},
        {"nothing in a list of text",
         SPEC("tags:\n"
              "  - a\n"
              "  -\n"
              "  - ~"),
         "t:6:4: spec.tags[1]: is empty: fill it in or remove it\n"
         "t:7:5: spec.tags[2]: is empty: fill it in or remove it\n"},
        {"a misspelt field", SPEC("minReplica: 1"),
         "t:4:3: spec.minReplica: unknown field: did you mean minReplicas?\n"},
        {"a field in the wrong case", SPEC("dryrun: true"),
         "t:4:3: spec.dryrun: unknown field: did you mean dryRun?\n"},
        {"a field unlike any other", SPEC("flux: 1"),
         "t:4:3: spec.flux: unknown field: known here are minReplicas, maxReplicas, step, dryRun, interval, "
         "periodSeconds, tags, zones, signals, extra\n"},
        {"a misspelt field in a list", SIGNALS("{name: q, value: 1, windw: {duration: 1m}}"),
         "t:4:25: spec.signals[0].windw: unknown field: did you mean window?\n"},
        {"a misspelt field at the top", "Spec: {}\n" SPEC(""), "t:1:1: Spec: unknown field: did you mean spec?\n"},
        {"an unknown field of a small object", SIGNALS("{name: q, value: 1, window: {aggregate: Max}}"),
         "t:4:34: spec.signals[0].window.aggregate: unknown field: known here are duration, minSamples\n"},
        {"a key with control characters", "\"a\\nb\\e[1m\": 1\n" SPEC(""),
         "t:1:1: a\\nb\\x1b[1m: unknown field: known here are metadata, spec\n"},
        {"a very long key",
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx: 1\n" SPEC(""),
         "t:1:1: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...: unknown field: known here are metadata, "
         "spec\n"},
        {"a field that is not supported yet", SPEC("forecast: {name: x}"),
         "t:4:3: spec.forecast: not supported yet: remove it\n"},
        {"a field that is not supported yet, of the wrong kind", SPEC("forecast: 1"),
         "t:4:3: spec.forecast: not supported yet: remove it\n"},
        {"a required object that is missing", "metadata: {name: a}\n",
         "t:1:1: spec: required, but missing: add it (object)\n"},
        {"a required object that is empty", "spec:\n", "t:1:1: spec: required, but empty: add it (object)\n"},
        {"a required field that is missing",
         "spec:\n"
         "  signals: [{name: q, value: 1}]\n",
         "t:1:1: spec.maxReplicas: required, but missing: add it (integer)\n"},
        {"a required field that is empty",
         "spec:\n"
         "  maxReplicas:\n"
         "  signals: [{name: q, value: 1}]\n",
         "t:2:3: spec.maxReplicas: required, but empty: add it (integer)\n"},
        {"a required field missing in a list", SIGNALS("{value: 1}"),
         "t:4:5: spec.signals[0].name: required, but missing: add it (string)\n"},
        {"several required fields missing", "spec: {}\n",
         "t:1:1: spec.maxReplicas: required, but missing: add it (integer)\n"},
        {"a number where text is due", "metadata: {name: 12}\n" SPEC(""),
         "t:1:18: metadata.name: must be text, found the number 12: write \"12\"\n"},
        {"a float where text is due", "metadata: {name: 1e10}\n" SPEC(""),
         "t:1:18: metadata.name: must be text, found the number 1e10: write \"1e10\"\n"},
        {"hexadecimal where text is due", "metadata: {name: 0x1F}\n" SPEC(""),
         "t:1:18: metadata.name: must be text, found the number 0x1F: write \"0x1F\"\n"},
        {"a boolean where text is due", "metadata: {name: yes}\n" SPEC(""),
         "t:1:18: metadata.name: must be text, found the boolean yes: write \"yes\"\n"},
        {"the word off where text is due", SPEC("tags: [on, OFF, y]"),
         "t:4:10: spec.tags[0]: must be text, found the boolean on: write \"on\"\n"
         "t:4:14: spec.tags[1]: must be text, found the boolean OFF: write \"OFF\"\n"
         "t:4:19: spec.tags[2]: must be text, found the boolean y: write \"y\"\n"},
        {"text that is too long",
         "metadata: {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n" SPEC(""),
         "t:1:18: metadata.name: must be at most 63 bytes long, is 64\n"},
        {"text that must not be empty", SIGNALS("{name: '', value: 1}"),
         "t:4:12: spec.signals[0].name: must not be empty\n"},
        {"text that is too long for a range of two ends", SIGNALS("{name: a-name-longer-than-twenty, value: 1}"),
         "t:4:12: spec.signals[0].name: must be between 1 and 20 bytes long, is 25\n"},
        {"text with a zero byte", "metadata: {name: \"a\\0b\"}\n" SPEC(""),
         "t:1:18: metadata.name: holds the character \\0: remove it\n"},
        {"text where a number is due", SPEC("minReplicas: many"),
         "t:4:16: spec.minReplicas: must be a whole number, found many\n"},
        {"a quoted number", SPEC("minReplicas: \"4\""),
         "t:4:16: spec.minReplicas: must be a whole number, found \"4\": write 4 without quotes\n"},
        {"quoted text where a number is due", SPEC("minReplicas: \"four\""),
         "t:4:16: spec.minReplicas: must be a whole number, found \"four\"\n"},
        {"a whole number with a point", SPEC("minReplicas: 4.0"),
         "t:4:16: spec.minReplicas: must be a whole number, found 4.0: write 4\n"},
        {"a number between two", SPEC("minReplicas: 4.5"),
         "t:4:16: spec.minReplicas: must be a whole number, found 4.5: write 4 or 5\n"},
        {"a negative number between two", SPEC("step: -0.5"),
         "t:4:9: spec.step: must be a whole number, found -0.5: write -1 or 0\n"},
        {"a whole number with an exponent", SPEC("minReplicas: 1e2"),
         "t:4:16: spec.minReplicas: must be a whole number, found 1e2: write 100\n"},
        {"an octal number", SPEC("minReplicas: 010"),
         "t:4:16: spec.minReplicas: must be a whole number, found 010, which YAML may read as octal: write 10\n"},
        {"zero twice", SPEC("minReplicas: 00"),
         "t:4:16: spec.minReplicas: must be a whole number, found 00, which YAML may read as octal: write 0\n"},
        {"a number between minus one and nothing", SPEC("step: -0.25"),
         "t:4:9: spec.step: must be a whole number, found -0.25: write -1 or 0\n"},
        {"hexadecimal", SPEC("minReplicas: 0x10"), "t:4:16: spec.minReplicas: must be a whole number, found 0x10\n"},
        {"below the range", SPEC("minReplicas: -1"), "t:4:16: spec.minReplicas: must be between 0 and 1000, is -1\n"},
        {"above the range", SPEC("minReplicas: 1001"),
         "t:4:16: spec.minReplicas: must be between 0 and 1000, is 1001\n"},
        {"past 32 bits", SPEC("step: 2147483648"),
         "t:4:9: spec.step: must be between -2147483648 and 2147483647, is 2147483648\n"},
        {"past 64 bits", SPEC("step: -99999999999999999999999"),
         "t:4:9: spec.step: must be between -2147483648 and 2147483647, is -99999999999999999999999\n"},
        {"below a range with one end", SIGNALS("{name: q, value: 1, window: {minSamples: 0}}"),
         "t:4:46: spec.signals[0].window.minSamples: must be at least 1, is 0\n"},
        {"past 32 bits where the range has one end", SIGNALS("{name: q, value: 1, window: {minSamples: 3000000000}}"),
         "t:4:46: spec.signals[0].window.minSamples: must be between 1 and 2147483647, is 3000000000\n"},
        {"true where a number is due", SPEC("minReplicas: true"),
         "t:4:16: spec.minReplicas: must be a whole number, found true\n"},
        {"a list where a number is due", SPEC("minReplicas: [1]"),
         "t:4:16: spec.minReplicas: must be a whole number, found a list\n"},
        {"yes", SPEC("dryRun: yes"), "t:4:11: spec.dryRun: must be true or false, found yes: write true\n"},
        {"Off", SPEC("dryRun: Off"), "t:4:11: spec.dryRun: must be true or false, found Off: write false\n"},
        {"True", SPEC("dryRun: True"), "t:4:11: spec.dryRun: must be true or false, found True: write true\n"},
        {"quoted true", SPEC("dryRun: \"true\""),
         "t:4:11: spec.dryRun: must be true or false, found \"true\": write true without quotes\n"},
        {"1", SPEC("dryRun: 1"), "t:4:11: spec.dryRun: must be true or false, found 1\n"},
        {"an unquoted float", SIGNALS("{name: q, value: 0.7}"),
         "t:4:22: spec.signals[0].value: must be a quantity, found the unquoted float 0.7: write \"0.7\"\n"},
        {"an unquoted float with exponent", SIGNALS("{name: q, value: 1e3}"),
         "t:4:22: spec.signals[0].value: must be a quantity, found the unquoted float 1e3: write \"1e3\"\n"},
        {"an unquoted float out of range, the form first", SIGNALS("{name: q, value: 1, tolerance: 1.5}"),
         "t:4:36: spec.signals[0].tolerance: must be a quantity, found the unquoted float 1.5: write \"1.5\"\n"},
        {"a quantity out of range", SIGNALS("{name: q, value: 1, tolerance: \"1.5\"}"),
         "t:4:36: spec.signals[0].tolerance: must be between 0 and 1, is \"1.5\"\n"},
        {"a quantity below a range of one end", SIGNALS("{name: q, value: -1, tolerance: 0}"),
         "t:4:22: spec.signals[0].value: must be at least 0, is -1\n"},
        {"a quantity with an unknown suffix", SIGNALS("{name: q, value: 5X}"),
         "t:4:22: spec.signals[0].value: must be a quantity such as \"0.7\", 700m or 8, found 5X\n"},
        {"a quantity in K", SIGNALS("{name: q, value: 5K}"),
         "t:4:22: spec.signals[0].value: must be a quantity such as \"0.7\", 700m or 8, found 5K: write k for 1000, Ki "
         "for 1024\n"},
        {"a quantity in percent", SIGNALS("{name: q, value: 70%}"),
         "t:4:22: spec.signals[0].value: must be a quantity such as \"0.7\", 700m or 8, found 70%\n"},
        {"not a number", SIGNALS("{name: q, value: .nan}"),
         "t:4:22: spec.signals[0].value: must be a quantity such as \"0.7\", 700m or 8, found .nan\n"},
        {"infinity", SIGNALS("{name: q, value: \"Inf\"}"),
         "t:4:22: spec.signals[0].value: must be a quantity such as \"0.7\", 700m or 8, found \"Inf\"\n"},
        {"an octal quantity", SIGNALS("{name: q, value: 0100}"),
         "t:4:22: spec.signals[0].value: must be a quantity such as \"0.7\", 700m or 8, found 0100, which YAML may "
         "read as octal: write 100\n"},
        {"an empty quantity", SIGNALS("{name: q, value: \"\"}"),
         "t:4:22: spec.signals[0].value: must be a quantity such as \"0.7\", 700m or 8, found \"\"\n"},
        {"a duration without unit", SPEC("interval: 15"),
         "t:4:13: spec.interval: must be a duration such as 90s or 1h30m, found 15: write 15s\n"},
        {"a quoted duration without unit", SPEC("interval: \"15\""),
         "t:4:13: spec.interval: must be a duration such as 90s or 1h30m, found \"15\": write 15s\n"},
        {"a float duration", SPEC("interval: 0.5"),
         "t:4:13: spec.interval: must be a duration such as 90s or 1h30m, found 0.5: write 500ms\n"},
        {"a duration with a fraction", SPEC("interval: 1.5h"),
         "t:4:13: spec.interval: must be a duration such as 90s or 1h30m, found 1.5h\n"},
        {"a duration in words", SPEC("interval: 5 minutes"),
         "t:4:13: spec.interval: must be a duration such as 90s or 1h30m, found 5 minutes\n"},
        {"a duration below a range with one end", SPEC("interval: 500ms"),
         "t:4:13: spec.interval: must be at least 1s, is 500ms\n"},
        {"a duration out of range", SIGNALS("{name: q, value: 1, window: {duration: 2h}}"),
         "t:4:44: spec.signals[0].window.duration: must be between 1s and 1h, is 2h\n"},
        {"zero without a unit is a number to the API server", SIGNALS("{name: q, value: 1, window: {duration: 0}}"),
         "t:4:44: spec.signals[0].window.duration: must be a duration such as 90s or 1h30m, found 0: write 0s\n"},
        {"a negative duration", SPEC("interval: -15s"),
         "t:4:13: spec.interval: must be a duration such as 90s or 1h30m, found -15s\n"},
        {"seconds with a unit", SPEC("periodSeconds: 5m"),
         "t:4:18: spec.periodSeconds: must be a whole number of seconds, found 5m: write 300\n"},
        {"seconds with a fraction", SPEC("periodSeconds: 1500ms"),
         "t:4:18: spec.periodSeconds: must be a whole number of seconds, found 1500ms\n"},
        {"seconds out of range", SPEC("periodSeconds: 1801"),
         "t:4:18: spec.periodSeconds: must be between 1 and 1800 seconds, is 1801\n"},
        {"seconds in quotes", SPEC("periodSeconds: \"60\""),
         "t:4:18: spec.periodSeconds: must be a whole number of seconds, found \"60\": write 60 without quotes\n"},
        {"a choice in the wrong case", SIGNALS("{name: q, value: 1, type: value}"),
         "t:4:31: spec.signals[0].type: must be one of Value, AverageValue, Pods, found value: did you mean Value?\n"},
        {"a misspelt choice", SIGNALS("{name: q, value: 1, type: AvrageValue}"),
         "t:4:31: spec.signals[0].type: must be one of Value, AverageValue, Pods, found AvrageValue: did you mean "
         "AverageValue?\n"},
        {"a choice that is none", SIGNALS("{name: q, value: 1, type: Median}"),
         "t:4:31: spec.signals[0].type: must be one of Value, AverageValue, Pods, found Median\n"},
        {"a number for a choice", SIGNALS("{name: q, value: 1, type: 3}"),
         "t:4:31: spec.signals[0].type: must be one of Value, AverageValue, Pods, found 3\n"},
        {"a list for a choice", SIGNALS("{name: q, value: 1, type: [Pods]}"),
         "t:4:31: spec.signals[0].type: must be one of Value, AverageValue, Pods, found a list\n"},
        {"too few elements", "spec: {maxReplicas: 2, signals: []}",
         "t:1:33: spec.signals: must have at least 1 element, has 0\n"},
        {"too many elements", SPEC("tags: [a, b, c, d, e, f]"),
         "t:4:9: spec.tags: has 6 elements, at most 4 are allowed\n"},
        {"every bad element is named",
         SIGNALS("{name: 1, value: 1}\n"
                 "  - {name: b, value: 0.5}\n"
                 "  - {name: c, value: 1}\n"
                 "  - {name: d, value: x}"),
         "t:4:12: spec.signals[0].name: must be text, found the number 1: write \"1\"\n"
         "t:5:22: spec.signals[1].value: must be a quantity, found the unquoted float 0.5: write \"0.5\"\n"
         "t:7:22: spec.signals[3].value: must be a quantity such as \"0.7\", 700m or 8, found x\n"},
        {"a bad element of a list of text", SPEC("tags: [a, 1, b, true]"),
         "t:4:13: spec.tags[1]: must be text, found the number 1: write \"1\"\n"
         "t:4:19: spec.tags[3]: must be text, found the boolean true: write \"true\"\n"},
        {"a rule at a field", SPEC("minReplicas: 3"),
         "t:4:16: spec.minReplicas: must not be above maxReplicas: lower it\n"},
        {"a rule at a field that was not written", SPEC("interval: 2m"),
         "t:1:1: spec.periodSeconds: must not be below interval: raise it\n"},
        {"a rule at a field written as null",
         SPEC("interval: 2m\n"
              "  periodSeconds:"),
         "t:5:3: spec.periodSeconds: must not be below interval: raise it\n"},
        {"a rule at an element", "spec: {maxReplicas: 2, signals: [{name: q, value: 1}, {name: q, value: 2}]}",
         "t:1:55: spec.signals[1]: has the name of the one before: rename it\n"},
        {"a rule inside an element",
         SIGNALS("{name: q, value: 1, tolerance: 1}\n"
                 "  - {name: r, value: 0}"),
         "t:5:5: spec.signals[1].tolerance: must not be above value: lower it\n"},
        {"a rule for the whole object",
         "spec:\n"
         "  maxReplicas: 2\n"
         "  signals: [{name: s0, value: 1}, {name: s1, value: 1}, {name: s2, value: 1}, {name: s3, value: 1}, {name: "
         "s4, value: 1}, {name: s5, value: 1}, {name: s6, value: 1}, {name: s7, value: 1}, {name: s8, value: 1}, "
         "{name: s9, value: 1}, {name: s10, value: 1}, {name: s11, value: 1}, {name: s12, value: 1}]\n",
         "t:1:1: spec: 13 signals are bad luck: add one\n"},
        {"rules wait until every field is right",
         SPEC("minReplicas: 3\n"
              "  step: x"),
         "t:5:9: spec.step: must be a whole number, found x\n"},
        {"all errors at once, in the order of the file",
         "metadata: {nam: a}\n"
         "spec:\n"
         "  signals:\n"
         "  - {value: 0.7, name: 7}\n"
         "  - {name: b, value: 1, window: {duration: 5}}\n"
         "  interval: 15\n"
         "  minReplicas: \"1\"\n",
         "t:1:12: metadata.nam: unknown field: did you mean name?\n"
         "t:2:1: spec.maxReplicas: required, but missing: add it (integer)\n"
         "t:4:13: spec.signals[0].value: must be a quantity, found the unquoted float 0.7: write \"0.7\"\n"
         "t:4:24: spec.signals[0].name: must be text, found the number 7: write \"7\"\n"
         "t:5:44: spec.signals[1].window.duration: must be a duration such as 90s or 1h30m, found 5: write 5s\n"
         "t:6:13: spec.interval: must be a duration such as 90s or 1h30m, found 15: write 15s\n"
         "t:7:16: spec.minReplicas: must be a whole number, found \"1\": write 1 without quotes\n"},
        {"a value that is cut",
         "spec: {maxReplicas: 2, signals: [{name: q, value: 1}], step: "
         "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
         "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
         "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz}",
         "t:1:62: spec.step: must be a whole number, found zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz...\n"},
        {"a value with control characters",
         "spec: {maxReplicas: 2, signals: [{name: q, value: 1}], step: \"a\\n\\e[31mb\\u202e\"}",
         "t:1:62: spec.step: must be a whole number, found \"a\\n\\x1b[31mb\\u202e\"\n"},
        {"a value with multibyte characters at the cut",
         "spec: {maxReplicas: 2, signals: [{name: q, value: 1}], step: "
         "\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
         "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
         "\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
         "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251"
         "\303\251\303\251\303\251\303\251\303\251\303\251}",
         "t:1:62: spec.step: must be a whole number, found "
         "\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303"
         "\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251\303\251...\n"},
};

static void every_fault_has_its_line(void **state)
{
	int n_wrong = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *row = &rows[i];
		struct arena a;
		struct doc_file file;
		struct err e;
		struct sample value = {.name = NULL};
		struct schema_errors errors;
		struct buf printed;
		err_clear(&e);
		arena_init(&a, 1 << 20);
		buf_init(&printed, 1 << 20);
		schema_errors_init(&errors, "t");
		if (doc_parse_yaml(&a, "t", row->text, strlen(row->text), &file, &e) < 0)
			fail_msg("%s: %s", row->what, e.msg);
		const struct doc_node *root = file.n_roots ? file.roots[0] : NULL;
		assert_int_equal(schema_decode(&sample_schema, root, &value, &a, &errors, ""), -1);
		schema_errors_print(&errors, &printed);
		if (strcmp(buf_str(&printed), row->want) != 0) {
			print_error("%s:\n%s\n got: %swant: %s\n", row->what, row->text, buf_str(&printed), row->want);
			n_wrong++;
		}
		buf_done(&printed);
		arena_done(&a);
	}
	assert_int_equal(n_wrong, 0);
}

static void place_inside_a_text_is_marked_below_it(void **state)
{
	static const struct {
		const char *doc, *want; // offset and length of what is wrong: those of "XY" in the text
	} cases[] = {
	        {"a: 1 + XY", "t:1:8: a: bad\n    1 + XY\n        ^^\n"},
	        {"a: '1 + XY'", "t:1:9: a: bad\n    1 + XY\n        ^^\n"},
	        {"a: '\xc3\xa9\xc3\xa9 XY'", "t:1:10: a: bad\n    \xc3\xa9\xc3\xa9 XY\n       ^^\n"},
	        {"a: \"\\x07 XY\"", "t:1:7: a: bad\n    \\x07 XY\n         ^^\n"},
	        {"a: |\n  1 +\n  XY\n", "t:1:4: a: bad\n    1 +\\nXY\\n\n         ^^\n"},
	        {"a: 0123456789012345678901234567890123456789012345678901234567890123456789XY tail tail tail tail tail "
	         "tail",
	         "t:1:74: a: bad\n    "
	         "234567890123456789012345678901234567890123456789XY tail tail tail tail tail tail\n    "
	         "                                                ^^\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena a;
		struct doc_file file;
		struct err e;
		struct schema_errors errors;
		struct buf out;
		arena_init(&a, 1 << 20);
		buf_init(&out, 4096);
		if (doc_parse_yaml(&a, "t", cases[i].doc, strlen(cases[i].doc), &file, &e) < 0)
			fail_msg("%s", e.msg);
		const struct doc_node *node = doc_get(file.roots[0], "a");
		schema_errors_init(&errors, "t");
		schema_report_text(&errors, node, "a", (size_t)(strstr(node->text, "XY") - node->text), 2, "%s", "bad");
		schema_errors_print(&errors, &out);
		assert_string_equal(buf_str(&out), cases[i].want);
		buf_done(&out);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(place_inside_a_text_is_marked_below_it),
	                                   cmocka_unit_test(every_fault_has_its_line)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
