// SPDX-License-Identifier: Apache-2.0
// -o yaml: what JSON becomes, and that no string changes its meaning on the way.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/yaml_out.h"

static void json_becomes_block_yaml(void **state)
{
	(void)state;
	static const struct {
		const char *json, *yaml;
	} rows[] = {
	        {"{\"a\":1,\"b\":[1,{\"c\":\"x\",\"d\":null}],\"e\":[],\"f\":{}}",
	         "a: 1\nb:\n- 1\n- c: x\n  d: null\ne: []\nf: {}\n"},
	        {"[[1,2],[]]", "- - 1\n  - 2\n- []\n"},
	        {"\"true\"", "\"true\"\n"},
	        {"{\"no\":\"No\"}", "\"no\": \"No\"\n"},
	        {"{\"v\":\"0.7\",\"t\":\"2026-01-05T09:00:00Z\"}", "v: \"0.7\"\nt: \"2026-01-05T09:00:00Z\"\n"},
	        {"{\"m\":\"a: b\",\"n\":\"- x\",\"s\":\"two words\"}", "m: \"a: b\"\n\"n\": \"- x\"\ns: two words\n"},
	        {"{\"m\":\"line\\nbreak \\\"q\\\"\"}", "m: \"line\\nbreak \\\"q\\\"\"\n"},
	        {"{\"u\":0.65,\"i\":12,\"b\":true,\"e\":\"\",\"t\":\"ends \"}",
	         "u: 0.65\ni: 12\nb: true\ne: \"\"\nt: \"ends \"\n"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf b;
		buf_init(&b, 4096);
		assert_int_equal(yaml_from_json(&b, rows[i].json, strlen(rows[i].json)), 0);
		assert_string_equal(buf_str(&b), rows[i].yaml);
		buf_done(&b);
	}
}

static void bad_json_and_a_full_buffer_are_errors(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4);
	assert_int_equal(yaml_from_json(&b, "{", 1), -1);
	assert_int_equal(yaml_from_json(&b, "{\"key\":\"value\"}", 15), -1);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(json_becomes_block_yaml),
	        cmocka_unit_test(bad_json_and_a_full_buffer_are_errors),
	};
	return cmocka_run_group_tests_name("yaml_out", tests, NULL, NULL);
}
