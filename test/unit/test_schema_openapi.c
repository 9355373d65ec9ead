// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the API server's schema of a table says for every type what the decoder takes, and no more than
// OpenAPI can say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "test/support/sample_schema.h"

#define QUANTITY "([0-9]+(\\\\.[0-9]*)?|\\\\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$"
#define DURATION                                                                                                       \
	"{\"type\":\"string\",\"pattern\":\"^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?("         \
	"[0-9]+ms)?)$\",\"minLength\":1"
#define INT_OR_STRING "\"x-kubernetes-int-or-string\":true,\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]"

struct row {
	const char *path; // names of properties; "[]" goes into items
	const char *want; // without its description
};
static const struct row rows[] = {
        {"spec minReplicas",
         "{\"type\":\"integer\",\"format\":\"int32\",\"minimum\":0,\"maximum\":1000,\"default\":1}"},
        {"spec maxReplicas", "{\"type\":\"integer\",\"format\":\"int32\",\"minimum\":1,\"maximum\":1000}"},
        {"spec step", "{\"type\":\"integer\",\"format\":\"int32\"}"},
        {"spec dryRun", "{\"type\":\"boolean\"}"},
        {"spec interval", DURATION ",\"default\":\"15s\"}"},
        {"spec periodSeconds",
         "{\"type\":\"integer\",\"format\":\"int32\",\"minimum\":1,\"maximum\":1800,\"default\":60}"},
        {"spec tags", "{\"type\":\"array\",\"maxItems\":4,\"x-kubernetes-list-type\":\"atomic\",\"items\":{\"type\":"
                      "\"string\"}}"},
        {"spec zones", "{\"type\":\"array\",\"maxItems\":256,\"x-kubernetes-list-type\":\"atomic\",\"items\":{"
                       "\"type\":\"string\"}}"},
        {"spec extra", "{\"x-kubernetes-preserve-unknown-fields\":true}"},
        {"spec signals [] name", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":20}"},
        {"spec signals [] value", "{" INT_OR_STRING ",\"pattern\":\"^[+]?" QUANTITY "\",\"minimum\":0}"},
        {"spec signals [] tolerance",
         "{" INT_OR_STRING ",\"pattern\":\"^[+]?" QUANTITY "\",\"minimum\":0,\"maximum\":1,\"default\":\"0.1\"}"},
        {"spec signals [] type",
         "{\"type\":\"string\",\"enum\":[\"Value\",\"AverageValue\",\"Pods\"],\"default\":\"AverageValue\"}"},
        {"spec signals [] window duration", DURATION ",\"default\":\"2m\"}"},
        {"metadata name", "{\"type\":\"string\",\"maxLength\":63,\"default\":\"unnamed\"}"},
};

static const cJSON *step(const cJSON *at, const char *name)
{
	return strcmp(name, "[]") == 0 ? json_get(at, "items") : json_get(json_get(at, "properties"), name);
}

static const cJSON *find(const cJSON *at, const char *path)
{
	char name[64];
	while (at && *path) {
		size_t n = strcspn(path, " ");
		memcpy(name, path, n);
		name[n] = '\0';
		at = step(at, name);
		path += n + (path[n] == ' ');
	}
	return at;
}

static cJSON *sample_tree(void)
{
	struct buf out;
	struct json_writer w;
	buf_init(&out, 65536);
	json_write_init(&w, &out, 0);
	schema_openapi(&sample_schema, false, &w);
	assert_false(out.failed);
	cJSON *tree = json_read(buf_str(&out), out.len, NULL);
	assert_non_null(tree);
	buf_done(&out);
	return tree;
}

static void every_type_is_described(void **state)
{
	(void)state;
	cJSON *tree = sample_tree();
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const cJSON *found = find(tree, rows[i].path);
		if (!found)
			fail_msg("%s is not there", rows[i].path);
		cJSON *copy = cJSON_Duplicate(found, 1);
		assert_true(strlen(json_get_str(copy, "description", "")) > 0);
		cJSON_DeleteItemFromObject(copy, "description");
		char *text = cJSON_PrintUnformatted(copy);
		assert_string_equal(text, rows[i].want);
		cJSON_free(text);
		cJSON_Delete(copy);
	}
	cJSON_Delete(tree);
}

static void required_fields_are_required_in_the_schema(void **state)
{
	(void)state;
	cJSON *tree = sample_tree();
	static const struct {
		const char *path, *want;
	} required[] = {{"", "[\"spec\"]"}, {"spec", "[\"maxReplicas\"]"}, {"spec signals []", "[\"name\"]"}};
	for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
		char *text = cJSON_PrintUnformatted(json_get(find(tree, required[i].path), "required"));
		assert_non_null(text);
		assert_string_equal(text, required[i].want);
		cJSON_free(text);
	}
	assert_null(json_get(find(tree, "metadata"), "required"));
	cJSON_Delete(tree);
}

static void lists_say_their_ends(void **state)
{
	(void)state;
	cJSON *tree = sample_tree();
	const cJSON *list = find(tree, "spec signals");
	assert_int_equal(json_get(list, "minItems")->valueint, 1);
	assert_int_equal(json_get(list, "maxItems")->valueint, 16);
	assert_string_equal(json_get_str(list, "x-kubernetes-list-type", ""), "atomic");
	assert_string_equal(json_get_str(json_get(list, "items"), "description", ""), "One measurement.");
	cJSON_Delete(tree);
}

// The API server drops them, as it drops unknown fields.
static void unsupported_fields_are_left_out(void **state)
{
	(void)state;
	cJSON *tree = sample_tree();
	assert_null(find(tree, "spec forecast"));
	cJSON_Delete(tree);
}

static const struct schema_field special_fields[] = {
        {.name = "generation",
         .type = SCHEMA_INT64,
         .doc = "g",
         .set_offset = SCHEMA_NO_OFFSET,
         .default_text = "0",
         .min = 0,
         .max = 1e300},
        {.name = "when", .type = SCHEMA_TIME_MS, .doc = "w", .set_offset = SCHEMA_NO_OFFSET},
        {.name = "word",
         .type = SCHEMA_STRING,
         .doc = "x",
         .set_offset = SCHEMA_NO_OFFSET,
         .pattern = "^[a-z]+$",
         .max = 8},
        // Being written means something of its own: a default would write it.
        {.name = "asked", .type = SCHEMA_BOOL, .doc = "a", .set_offset = 0, .default_text = "false"},
        {.name = "signed",
         .type = SCHEMA_QUANTITY,
         .doc = "s",
         .set_offset = SCHEMA_NO_OFFSET,
         .min = -1e300,
         .max = 1e300},
        {.name = "rows",
         .type = SCHEMA_LIST,
         .doc = "r",
         .set_offset = SCHEMA_NO_OFFSET,
         .list_key = "name",
         .child = &sample_signal},
};
static const struct schema_rule special_rules[] = {{"self.when != ''", "must be"}};
static const struct schema special = {.rules = special_rules,
                                      .n_rules = 1,
                                      .name = "Special",
                                      .doc = "d",
                                      .fields = special_fields,
                                      .n_fields = sizeof special_fields / sizeof special_fields[0]};

static void keys_patterns_and_signs(void **state)
{
	(void)state;
	struct buf out;
	struct json_writer w;
	buf_init(&out, 65536);
	json_write_init(&w, &out, 0);
	schema_openapi(&special, true, &w);
	static const char *const parts[] = {
	        "{\"description\":\"d\",\"type\":\"object\",\"x-kubernetes-validations\":[{\"rule\":\"self.when != "
	        "''\",\"message\":\"must be\"}],\"properties\":{",
	        "\"generation\":{\"description\":\"g\",\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,"
	        "\"default\":0}",
	        "\"when\":{\"description\":\"w\",\"type\":\"string\",\"format\":\"date-time\"}",
	        "\"word\":{\"description\":\"x\",\"type\":\"string\",\"pattern\":\"^[a-z]+$\",\"maxLength\":8}",
	        "\"asked\":{\"description\":\"a\",\"type\":\"boolean\"}",
	        "\"signed\":{\"description\":\"s\"," INT_OR_STRING ",\"pattern\":\"^[+-]?" QUANTITY "\"}",
	        "\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"name\"]",
	};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (!strstr(buf_str(&out), parts[i]))
			fail_msg("%s\nis not in\n%s", parts[i], buf_str(&out));
	buf_done(&out);
}

static const struct schema opaque = {.name = "Opaque",
                                     .doc = "d",
                                     .is_opaque = true,
                                     .fields = special_fields + 4,
                                     .n_fields = sizeof special_fields / sizeof special_fields[0] - 4};

static void opaque_object_lists_its_fields_in_its_description(void **state)
{
	(void)state;
	struct buf out;
	struct json_writer w;
	buf_init(&out, 65536);
	json_write_init(&w, &out, 0);
	schema_openapi(&opaque, true, &w);
	cJSON *tree = json_read(buf_str(&out), out.len, NULL);
	assert_non_null(tree);
	const char *text = json_get_str(tree, "description", "");
	assert_ptr_equal(strstr(text, "d\nsigned: s\nrows: r\nrows[].name: "), text);
	cJSON_DeleteItemFromObject(tree, "description");
	char *rest = cJSON_PrintUnformatted(tree);
	assert_string_equal(rest, "{\"type\":\"object\",\"x-kubernetes-map-type\":\"atomic\","
	                          "\"x-kubernetes-preserve-unknown-fields\":true}");
	cJSON_free(rest);
	cJSON_Delete(tree);
	buf_done(&out);
}

struct moment {
	int64_t generation, when_ms;
};
static const struct schema_field moment_fields[] = {
        {.name = "generation",
         .type = SCHEMA_INT64,
         .doc = "g",
         .offset = offsetof(struct moment, generation),
         .set_offset = SCHEMA_NO_OFFSET},
        {.name = "when",
         .type = SCHEMA_TIME_MS,
         .doc = "w",
         .offset = offsetof(struct moment, when_ms),
         .set_offset = SCHEMA_NO_OFFSET},
};
static const struct schema moment = {
        .name = "Moment", .doc = "d", .struct_size = sizeof(struct moment), .fields = moment_fields, .n_fields = 2};

static void large_numbers_and_times_are_decoded(void **state)
{
	(void)state;
	static const struct {
		const char *json, *fault; // NULL: good
		int64_t generation, when_ms;
	} moments[] = {
	        {"{\"generation\":9007199254740992,\"when\":\"2026-01-05T09:00:00.250Z\"}", NULL, 9007199254740992,
	         1767603600250},
	        {"{\"generation\":-3000000000}", NULL, -3000000000, 0},
	        {"{\"generation\":1e17}", "generation: must be a whole number", 0, 0},
	        {"{\"generation\":\"3\"}", "generation: must be a whole number, found \"3\": write 3", 0, 0},
	        {"{\"when\":\"yesterday\"}", "when: must be a time such as 2026-01-05T09:00:00Z", 0, 0},
	        {"{\"when\":[]}", "when: must be a time", 0, 0},
	};
	for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
		struct arena a;
		struct doc_node *root;
		struct schema_errors errors;
		struct buf printed;
		struct moment got = {0};
		arena_init(&a, 65536);
		buf_init(&printed, 65536);
		schema_errors_init(&errors, NULL);
		assert_int_equal(doc_from_json(&a, moments[i].json, strlen(moments[i].json), &root, NULL), 0);
		int rc = schema_decode(&moment, root, &got, &a, &errors, "");
		schema_errors_print(&errors, &printed);
		if ((rc == 0) != !moments[i].fault || (rc < 0 && !strstr(buf_str(&printed), moments[i].fault)))
			fail_msg("%s: %s", moments[i].json, buf_str(&printed));
		assert_int_equal(got.generation, moments[i].generation);
		assert_int_equal(got.when_ms, moments[i].when_ms);
		buf_done(&printed);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_type_is_described),
	        cmocka_unit_test(required_fields_are_required_in_the_schema),
	        cmocka_unit_test(lists_say_their_ends),
	        cmocka_unit_test(unsupported_fields_are_left_out),
	        cmocka_unit_test(keys_patterns_and_signs),
	        cmocka_unit_test(large_numbers_and_times_are_decoded),
	        cmocka_unit_test(opaque_object_lists_its_fields_in_its_description),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
