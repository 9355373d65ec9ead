// SPDX-License-Identifier: Apache-2.0
// Goal of this test: JSON from an API server becomes the tree a file would have given, without positions; what is no
// JSON, or costs more than its ceiling, is refused in one line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"

#define ARENA_MAX_BYTES ((size_t)64 * 1024 * 1024)

// {key=value, ...}, [..], ~, plain text, 'quoted text'.
static void dump(const struct doc_node *n, struct buf *out)
{
	size_t n_children = 0;
	assert_int_equal(n->line, 0);
	assert_int_equal(n->col, 0);
	assert_int_equal(n->text_len, strlen(n->text));
	switch (n->kind) {
	case DOC_NULL:
		buf_puts(out, "~");
		break;
	case DOC_SCALAR:
		buf_printf(out, n->quoted ? "'%s'" : "%s", n->text);
		break;
	case DOC_SEQ:
	case DOC_MAP:
		buf_putc(out, n->kind == DOC_SEQ ? '[' : '{');
		for (const struct doc_node *c = n->child; c; c = c->next, n_children++) {
			assert_non_null(c->key);
			assert_true(n->kind == DOC_MAP || c->key[0] == '\0');
			buf_printf(out, "%s%s%s", n_children ? ", " : "", c->key, n->kind == DOC_MAP ? "=" : "");
			dump(c, out);
		}
		buf_putc(out, n->kind == DOC_SEQ ? ']' : '}');
		break;
	case DOC_KIND__COUNT:
		fail();
	}
	assert_int_equal(n->n_children, n_children);
}

static int parse(struct arena *a, const char *text, size_t len, struct doc_node **ret_root, struct err *e)
{
	char *exact = malloc(len ? len : 1); // exact size: the text has no terminator
	assert_non_null(exact);
	memcpy(exact, text, len);
	err_clear(e);
	int rc = doc_from_json(a, exact, len, ret_root, e);
	free(exact);
	return rc;
}

static void json_becomes_a_tree(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} rows[] = {
	        {"{}", "{}"},
	        {" [ ] ", "[]"},
	        {"null", "~"},
	        {"\"x\"", "'x'"},
	        {"{\"a\":1,\"b\":[true,false,null,\"x\\u00e9\\n\"],\"c\":{\"d\":{}}}",
	         "{a=1, b=[true, false, ~, 'x\xc3\xa9\n'], c={d={}}}"},
	        {"{\"true\":\"true\",\"n\":\"8\"}", "{true='true', n='8'}"},
	        {"[0,-1,0.7,1e3,5.0,1e300,-0.5e-2,2147483648]", "[0, -1, 0.7, 1000, 5, 1e+300, -0.005, 2147483648]"},
	        {"{\"\":1,\"A\":2,\"a\":3}", "{=1, A=2, a=3}"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct arena a;
		struct doc_node *root;
		struct err e;
		struct buf out;
		arena_init(&a, ARENA_MAX_BYTES);
		buf_init(&out, 65536);
		if (parse(&a, rows[i].text, strlen(rows[i].text), &root, &e) < 0)
			fail_msg("%s: %s", rows[i].text, e.msg);
		dump(root, &out);
		assert_string_equal(buf_str(&out), rows[i].want);
		buf_done(&out);
		arena_done(&a);
	}
}

static void malformed_json_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum err_kind kind;
		const char *says;
	} rows[] = {
	        {"", ERR_PROTOCOL, "ends early"},
	        {"{", ERR_PROTOCOL, "JSON 1:2"},
	        {"a: 1", ERR_PROTOCOL, "JSON 1:1"},
	        {"{'a':1}", ERR_PROTOCOL, "double quotes"},
	        {"{\"a\":1}x", ERR_PROTOCOL, "nothing after the end"},
	        {"{\"a\":\"\\u0000\"}", ERR_PROTOCOL, "\\u0000"},
	        {"{\"a\":1,\"b\":2,\"a\":3}", ERR_INPUT, "member \"a\" is here a second time"},
	        {"[{\"x\":{\"k\":[],\"k\":{}}}]", ERR_INPUT, "member \"k\" is here a second time"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct arena a;
		struct doc_node *root;
		struct err e;
		arena_init(&a, ARENA_MAX_BYTES);
		assert_int_equal(parse(&a, rows[i].text, strlen(rows[i].text), &root, &e), -1);
		assert_null(root);
		if (e.kind != rows[i].kind || !strstr(e.msg, rows[i].says))
			fail_msg("%s: %d %s", rows[i].text, e.kind, e.msg);
		arena_done(&a);
	}
}

static void repeat(struct buf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_puts(b, s);
}

// The row's text is `before` n times, middle, `after` n times.
static void ceilings_are_stated(void **state)
{
	(void)state;
	static const struct {
		const char *before, *middle, *after;
		size_t n;
		size_t arena_bytes;
		const char *says; // NULL: accepted
	} rows[] = {
	        {"[", "1", "]", DOC_DEPTH_MAX, ARENA_MAX_BYTES, NULL},
	        {"[", "1", "]", DOC_DEPTH_MAX + 1, ARENA_MAX_BYTES, "nested 33 deep, the ceiling is 32"},
	        {"[", "1", "]", 65, ARENA_MAX_BYTES, "deeper than the ceiling of 64"},
	        {" ", "1", "", DOC_BYTES_MAX - 1, ARENA_MAX_BYTES, NULL},
	        {" ", "1", "", DOC_BYTES_MAX, ARENA_MAX_BYTES, "JSON of 1048577 bytes, the ceiling is 1048576"},
	        {"[", "\"text\"", "]", 8, 512, "needs more than the 512 bytes"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf b;
		struct arena a;
		struct doc_node *root;
		struct err e;
		buf_init(&b, (size_t)4 * 1024 * 1024);
		arena_init(&a, rows[i].arena_bytes);
		repeat(&b, rows[i].before, rows[i].n);
		buf_puts(&b, rows[i].middle);
		repeat(&b, rows[i].after, rows[i].n);
		int rc = parse(&a, buf_str(&b), b.len, &root, &e);
		if ((rc == 0) != !rows[i].says || (rc < 0 && (e.kind != ERR_LIMIT || !strstr(e.msg, rows[i].says))))
			fail_msg("row %zu: %s", i, e.msg);
		arena_done(&a);
		buf_done(&b);
	}
}

static void too_many_values_are_refused(void **state)
{
	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		struct buf b;
		struct arena a;
		struct doc_node *root;
		struct err e;
		buf_init(&b, (size_t)4 * 1024 * 1024);
		arena_init(&a, ARENA_MAX_BYTES);
		buf_puts(&b, "[1");
		repeat(&b, ",1", DOC_NODES_MAX - 2 + extra); // and the array itself
		buf_puts(&b, "]");
		int rc = parse(&a, buf_str(&b), b.len, &root, &e);
		assert_int_equal(rc, extra ? -1 : 0);
		if (extra)
			assert_non_null(strstr(e.msg, "100001 values up to here, the ceiling is 100000"));
		arena_done(&a);
		buf_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(json_becomes_a_tree),
	        cmocka_unit_test(malformed_json_is_refused),
	        cmocka_unit_test(ceilings_are_stated),
	        cmocka_unit_test(too_many_values_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
