// SPDX-License-Identifier: Apache-2.0
// -o yaml: what JSON becomes, and that no string changes its meaning on the way.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/yaml_out.h"
#include "base/schema/doc.h"

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

static void reader_gets_back_the_string_that_was_written(void **state)
{
	(void)state;
	static const char *const rows[] = {"",
	                                   "plain",
	                                   "yes",
	                                   "1e3",
	                                   " a ",
	                                   "a\nb\tc\r",
	                                   "\x1b[31m\x07",
	                                   "\x7f",
	                                   "\xc2\x85",
	                                   "x\xc2\x9b",
	                                   "a\xe2\x80\xa8---\xe2\x80\xa9z",
	                                   "\xef\xbb\xbf",
	                                   "\xef\xbf\xbf",
	                                   "\xf0\x9f\xbf\xbe \xf4\x8f\xbf\xbf",
	                                   "\xf0\x9f\x98\x80",
	                                   "'\"\\",
	                                   "{{ x }}",
	                                   "# no comment"};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf b;
		struct arena a;
		struct doc_file doc;
		struct err e;
		buf_init(&b, 4096);
		arena_init(&a, 1 << 20);
		buf_puts(&b, "{");
		yaml_put_string(&b, rows[i]);
		buf_puts(&b, ": ");
		yaml_put_string(&b, rows[i]);
		buf_puts(&b, "}");
		if (doc_parse_yaml(&a, "f", buf_str(&b), b.len, &doc, &e) < 0)
			fail_msg("row %zu: %s", i, e.msg);
		assert_string_equal(doc.roots[0]->child->key, rows[i]);
		assert_string_equal(doc.roots[0]->child->text, rows[i]);
		for (size_t k = 0; k < b.len; k++)
			assert_true((unsigned char)b.data[k] >= ' ' && b.data[k] != 0x7f);
		arena_done(&a);
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
	        cmocka_unit_test(reader_gets_back_the_string_that_was_written),
	        cmocka_unit_test(bad_json_and_a_full_buffer_are_errors),
	};
	return cmocka_run_group_tests_name("yaml_out", tests, NULL, NULL);
}
