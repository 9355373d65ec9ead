// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a file becomes the tree its author meant, with true positions, or one line that says where and
// what to change; nothing from outside costs more than its ceiling.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"

#define ARENA_MAX_BYTES ((size_t)64 * 1024 * 1024)

// One line per document: {key@line:col=value, ...}, [..], ~, plain text, 'quoted text'; values carry @line:col too.
static void dump(const struct doc_node *n, struct buf *out)
{
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
		for (const struct doc_node *c = n->child; c; c = c->next) {
			if (c != n->child)
				buf_puts(out, ", ");
			assert_non_null(c->key);
			if (n->kind == DOC_MAP)
				buf_printf(out, "%s@%d:%d=", c->key, c->key_line, c->key_col);
			dump(c, out);
		}
		buf_putc(out, n->kind == DOC_SEQ ? ']' : '}');
		break;
	case DOC_KIND__COUNT:
		fail();
	}
	buf_printf(out, "@%d:%d", n->line, n->col);
}

struct good_row {
	const char *what, *text, *want;
};
static const struct good_row good_rows[] = {
        {"an empty file has no documents", "", ""},
        {"a comment alone has no documents", "# nothing\n", ""},
        {"empty documents are left out", "---\n---\na: 1\n---\n...\n", "{a@3:1=1@3:4}@3:1\n"},
        {"block map", "a: 1\nbc:   two words\n", "{a@1:1=1@1:4, bc@2:1=two words@2:7}@1:1\n"},
        {"nested block map and list", "a:\n  b:\n  - 1\n  - c: 2\n",
         "{a@1:1={b@2:3=[1@3:5, {c@4:5=2@4:8}@4:5]@3:3}@2:3}@1:1\n"},
        {"every way to write nothing", "a:\nb: ~\nc: null\nd: ''\n",
         "{a@1:1=~@1:3, b@2:1=~@2:4, c@3:1=~@3:4, d@4:1=''@4:4}@1:1\n"},
        {"a key alone stands for its missing value", "? a", "{a@1:3=~@1:3}@1:1\n"},
        {"quoted null is text", "a: \"null\"\nb: '~'\n", "{a@1:1='null'@1:4, b@2:1='~'@2:4}@1:1\n"},
        {"quotes are remembered", "a: \"1\"\nb: '1'\nc: 1\n", "{a@1:1='1'@1:4, b@2:1='1'@2:4, c@3:1=1@3:4}@1:1\n"},
        {"a block of text counts as quoted", "a: |\n  1\n  2\n", "{a@1:1='1\n2\n'@1:4}@1:1\n"},
        {"a folded block", "a: >-\n  1\n  2\n", "{a@1:1='1 2'@1:4}@1:1\n"},
        {"flow style, nested", "{a: [1, {b: [x, []]}], c: {}}\n",
         "{a@1:2=[1@1:6, {b@1:10=[x@1:14, []@1:17]@1:13}@1:9]@1:5, c@1:24={}@1:27}@1:1\n"},
        {"JSON", "{\"a\":{\"b\":[1,true,null,\"x\\u00e9\\n\\\"\\/\"]}}",
         "{a@1:2={b@1:7=[1@1:12, true@1:14, ~@1:19, 'x\xc3\xa9\n\"/'@1:24]@1:11}@1:6}@1:1\n"},
        {"JSON indented with tabs", "{\n\t\"a\":\t1,\n\t\"b\": [\n\t\t2\n\t]\n}\n",
         "{a@2:2=1@2:7, b@3:2=[2@4:3]@3:7}@1:1\n"},
        {"JSON in several documents", "{\"a\":1}\n---\n{\"a\":2}\n", "{a@1:2=1@1:6}@1:1\n{a@3:2=2@3:6}@3:1\n"},
        {"columns count characters, not bytes", "\xc3\xa9: \xe2\x82\xac\n", "{\xc3\xa9@1:1=\xe2\x82\xac@1:4}@1:1\n"},
        {"byte order mark",
         "\xef\xbb\xbf"
         "a: 1\n",
         "{a@1:1=1@1:4}@1:1\n"},
        {"Windows line ends", "a: 1\r\nb: 2\r\n", "{a@1:1=1@1:4, b@2:1=2@2:4}@1:1\n"},
        {"a tab before a comment", "a: 1\t# x\n", "{a@1:1=1@1:4}@1:1\n"},
        {"the same key in two maps", "- {a: 1}\n- {a: 2}\n", "[{a@1:4=1@1:7}@1:3, {a@2:4=2@2:7}@2:3]@1:1\n"},
        {"keys that differ in case", "{a: 1, A: 2}", "{a@1:2=1@1:5, A@1:8=2@1:11}@1:1\n"},
        {"a document of one word", "hello", "hello@1:1\n"},
        {"PromQL with braces, colons and quotes", "q: sum(a:b{c=\"d\"}) > 0\n",
         "{q@1:1=sum(a:b{c=\"d\"}) > 0@1:4}@1:1\n"},
        {"YAML 1.2 directive", "%YAML 1.2\n---\na: 1\n", "{a@3:1=1@3:4}@3:1\n"},
};

static void good_text_becomes_a_tree_with_positions(void **state)
{
	for (size_t i = 0; i < sizeof good_rows / sizeof good_rows[0]; i++) {
		const struct good_row *row = &good_rows[i];
		struct arena a;
		struct doc_file file;
		struct err e;
		struct buf out;
		err_clear(&e);
		arena_init(&a, ARENA_MAX_BYTES);
		buf_init(&out, 65536);
		if (doc_parse_yaml(&a, "t.yaml", row->text, strlen(row->text), &file, &e) < 0)
			fail_msg("%s: %s", row->what, e.msg);
		for (size_t r = 0; r < file.n_roots; r++) {
			assert_null(file.roots[r]->next);
			dump(file.roots[r], &out);
			buf_putc(&out, '\n');
		}
		if (strcmp(buf_str(&out), row->want) != 0)
			fail_msg("%s:\n got %s\nwant %s", row->what, buf_str(&out), row->want);
		buf_done(&out);
		arena_done(&a);
	}
}

struct bad_row {
	const char *text, *want;
};
static const struct bad_row bad_rows[] = {
        {"a: 1\nb: 2\na: 3\n", "3:1: key \"a\" is here a second time, first at 1:1: remove one of them"},
        {"{a: 1, b: {c: 1, c: 2}}", "1:18: key \"c\" is here a second time, first at 1:12: remove one of them"},
        {"a: 1\n'a': 3\n", "2:1: key \"a\" is here a second time, first at 1:1: remove one of them"},
        {"b: 1\na: 1\na: 2\nb: 2\n", "3:1: key \"a\" is here a second time, first at 2:1: remove one of them"},
        {"a: &x 1\n", "1:4: anchors are not supported: remove &x and write the value out where it is needed"},
        {"a: &x {b: 1}\n", "1:4: anchors are not supported: remove &x and write the value out where it is needed"},
        {"&x a: 1\n", "1:1: anchors are not supported: remove &x and write the value out where it is needed"},
        {"a: *x\n", "1:4: aliases (*) are not supported: write the value out here"},
        {"<<: {a: 1}\n", "1:1: merging with << is not supported: write the keys out here"},
        {"a: !!str 1\n", "1:4: tags are not supported: put the value in quotes instead of !!str"},
        {"a: !!int 1\n", "1:4: tags are not supported: remove !!int"},
        {"a: !mine [1]\n", "1:4: tags are not supported: remove !mine"},
        {"a: !x!foo b\n", "1:4: tags (!) are not supported: remove it, or put the value in quotes"},
        {"? [a]\n: b\n", "1:3: a key must be text, found a list: put text that begins with { or [ in quotes"},
        {"{{a: 1}: 2}\n", "1:2: a key must be text, found a map: put text that begins with { or [ in quotes; of a Helm "
                          "template, read what `helm template` makes of it"},
        {"?\n: 1\n", "1:2: the key before ':' is missing: write key: value"},
        {"\"a\\0b\": 1\n", "1:1: a key cannot hold the character \\0: remove it"},
        {"a:\n\t- 1\n", "2:1: a tab cannot indent: use spaces"},
        {"a:\n  b: 1\n  \tc: 2\n", "3:3: a tab cannot indent: use spaces"},
        {"a: |\n\tfoo\n", "2:1: a tab cannot indent: use spaces"},
        {"a: \"foo\nb: 1\n", "1:4: this quoted text is never closed: add the closing quote"},
        {"a: 'foo\n", "1:4: this quoted text is never closed: add the closing quote"},
        {"a: 'foo\n---\n", "1:4: this quoted text is never closed: add the closing quote"},
        {"a: {b: 1\n", "1:4: this '{' is never closed: add '}', or the file was cut off"},
        {"{\"a\": [1, 2", "1:7: this '[' is never closed: add ']', or the file was cut off"},
        {"a: [1, 2\nb: 3\n", "2:2: ',' or ']' is missing before this"},
        {"{\"a\": 1 \"b\": 2}", "1:12: ',' or '}' is missing before this"},
        {"a: b: c\n",
         "1:5: ':' is not expected here: check the indentation and the ':' of the line before, or put text "
         "that holds ': ' in quotes"},
        {"a\nb: 1\n",
         "2:2: ':' is not expected here: check the indentation and the ':' of the line before, or put text "
         "that holds ': ' in quotes"},
        {"a: - b\n", "1:4: '- ' is not expected here: start the list on a line of its own"},
        {"- a\nb: 1\n", "2:1: '- ' is expected here: check the indentation"},
        {"a: 1\n- b\n", "2:1: a key is expected here: check the indentation, and put the whole value in quotes if it "
                        "begins with a quote"},
        {"a: \"x\" y\n", "1:8: a key is expected here: check the indentation, and put the whole value in quotes if it "
                         "begins with a quote"},
        {"a: @foo\n", "1:4: a value cannot begin with this character: put it in quotes"},
        {"a: }\n", "1:4: a value is expected here: put text that begins with one of ,[]{} in quotes"},
        {"a: *\n", "1:4: a value cannot begin with & or *: put it in quotes"},
        {"a: \"\\q\"\n", "1:5: unknown escape in double quotes: write \\\\ for a backslash, or use single quotes"},
        {"{\"a\": \"\\ud83d\\ude00\"}",
         "1:10: this escape is not a character of its own (half of a pair): write the character itself"},
        {"%FOO bar\n---\na: 1\n", "1:1: unknown % directive: remove the line"},
        {"%YAML 3.0\n---\na: 1\n", "1:1: only YAML 1.1 and 1.2 are read: remove the %YAML line"},
        {"\"a\" \"b\"\n", "1:5: text after the end of the document: write --- between documents, or key: value on each "
                          "line"},
        {"a: 1\nb: \xff\n", "2:4: byte 0xff is not valid UTF-8: save the file as UTF-8"},
        {"a: \xc3\n", "1:4: byte 0xc3 is not valid UTF-8: save the file as UTF-8"},
        {"a: \xc0\xaf\n", "1:4: byte 0xc0 is not valid UTF-8: save the file as UTF-8"},
        {"a: \xed\xa0\x80\n", "1:4: byte 0xed is not valid UTF-8: save the file as UTF-8"},
        {"a: 1\r\nb: \x1b[1m\n", "2:4: control character 0x1b is not allowed: remove it, or write \\x1b in double "
                                 "quotes"},
        {"a: \xef\xbb\xbf", "1:4: invisible character U+FEFF: remove it"},
        {"\xff\xfe"
         "a",
         "1:1: the text is UTF-16: save it as UTF-8"},
};

static void bad_text_is_one_line_with_place_and_fix(void **state)
{
	int n_wrong = 0;
	for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
		const struct bad_row *row = &bad_rows[i];
		struct arena a;
		struct doc_file file;
		struct err e;
		char want[ERR_MSG_BYTES];
		err_clear(&e);
		arena_init(&a, ARENA_MAX_BYTES);
		snprintf(want, sizeof want, "t.yaml:%s", row->want);
		if (doc_parse_yaml(&a, "t.yaml", row->text, strlen(row->text), &file, &e) == 0)
			fail_msg("accepted: %s", row->text);
		if (strcmp(e.msg, want) != 0)
			print_error("of: %s\n got %s\nwant %s\n", row->text, e.msg, want), n_wrong++;
		assert_int_equal(e.kind, ERR_INPUT);
		assert_int_equal(file.n_roots, 0);
		arena_done(&a);
	}
	assert_int_equal(n_wrong, 0);
}

// text repeated n times, between head and tail.
static char *repeat(const char *head, const char *text, size_t n, const char *tail)
{
	struct buf b;
	buf_init(&b, 4 * DOC_BYTES_MAX);
	assert_int_equal(buf_puts(&b, head), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_puts(&b, text), 0);
	assert_int_equal(buf_puts(&b, tail), 0);
	return b.data;
}

static enum err_kind parse_alone(const char *text, size_t arena_bytes, char *ret_msg)
{
	struct arena a;
	struct doc_file file;
	struct err e;
	err_clear(&e);
	arena_init(&a, arena_bytes);
	int rc = doc_parse_yaml(&a, "t", text, strlen(text), &file, &e);
	assert_int_equal(rc, e.kind == ERR_NONE ? 0 : -1);
	snprintf(ret_msg, ERR_MSG_BYTES, "%s", e.msg);
	arena_done(&a);
	return e.kind;
}

static const struct good_row anchor_rows[] = {
        {"an alias is a copy", "a: &x {b: [1, '2']}\nc: *x\n",
         "{a@1:1={b@1:8=[1@1:12, '2'@1:15]@1:11}@1:4, c@2:1={b@1:8=[1@1:12, '2'@1:15]@1:11}@1:4}@1:1"},
        {"a merge keeps the own keys", "a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n",
         "{a@1:1={b@1:8=1@1:11, c@1:14=2@1:17}@1:4, d@2:1={c@2:13=3@2:16, b@1:8=1@1:11}@2:4}@1:1"},
        {"the earlier map of a list wins", "- &x {a: 1, b: 1}\n- &y {b: 2, c: 2}\n- {<<: [*x, *y], d: 4}\n",
         "[{a@1:7=1@1:10, b@1:13=1@1:16}@1:3, {b@2:7=2@2:10, c@2:13=2@2:16}@2:3, {d@3:18=4@3:21, a@1:7=1@1:10, "
         "b@1:13=1@1:16, c@2:13=2@2:16}@3:3]@1:1"},
        {"a merge alone", "a: &x {b: 1}\nc:\n  <<: *x\n", "{a@1:1={b@1:8=1@1:11}@1:4, c@2:1={b@1:8=1@1:11}@3:3}@1:1"},
        {"the last anchor of a name", "a: &x 1\nb: &x 2\nc: *x\n", "{a@1:1=1@1:4, b@2:1=2@2:4, c@3:1=2@2:4}@1:1"},
        {"a quoted << is a key", "'<<': 1\n", "{<<@1:1=1@1:7}@1:1"},
};

static void anchors_are_copied_where_they_are_wanted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof anchor_rows / sizeof anchor_rows[0]; i++) {
		const struct good_row *row = &anchor_rows[i];
		struct arena a;
		struct doc_file file;
		struct err e;
		struct buf out;
		arena_init(&a, ARENA_MAX_BYTES);
		buf_init(&out, 65536);
		if (doc_parse_yaml_anchors(&a, "t.yaml", row->text, strlen(row->text), &file, &e) < 0)
			fail_msg("%s: %s", row->what, e.msg);
		for (size_t r = 0; r < file.n_roots; r++)
			dump(file.roots[r], &out);
		if (strcmp(buf_str(&out), row->want) != 0)
			fail_msg("%s:\n got %s\nwant %s", row->what, buf_str(&out), row->want);
		buf_done(&out);
		arena_done(&a);
	}
}

static void expect_anchor_fault(const char *text, enum err_kind kind, const char *want)
{
	struct arena a;
	struct doc_file file;
	struct err e;
	err_clear(&e);
	arena_init(&a, ARENA_MAX_BYTES);
	assert_int_equal(doc_parse_yaml_anchors(&a, "t.yaml", text, strlen(text), &file, &e), -1);
	if (e.kind != kind || !strstr(e.msg, want))
		fail_msg("%.40s: %s", text, e.msg);
	assert_int_equal(file.n_roots, 0);
	arena_done(&a);
}

// Ten lists, each with ten aliases of the one before: written out, they would be ten thousand million values.
static void anchors_expand_within_the_limits(void **state)
{
	(void)state;
	struct buf bomb, many, deep;
	buf_init(&bomb, 65536);
	buf_puts(&bomb, "- &a0 [x]\n");
	for (int i = 1; i <= 10; i++)
		buf_printf(&bomb, "- &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i - 1,
		           i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	expect_anchor_fault(buf_str(&bomb), ERR_LIMIT, "100001 values up to here, the ceiling is 100000");
	buf_init(&many, 65536);
	for (int i = 0; i <= DOC_ANCHORS_MAX; i++)
		buf_printf(&many, "- &a%d x\n", i);
	expect_anchor_fault(buf_str(&many), ERR_LIMIT, "more than 256 anchors in one document");
	buf_init(&deep, 65536);
	buf_puts(&deep, "- &a0 [x]\n");
	for (int i = 1; i <= DOC_DEPTH_MAX; i++)
		buf_printf(&deep, "- &a%d [*a%d]\n", i, i - 1);
	expect_anchor_fault(buf_str(&deep), ERR_LIMIT, "nested 33 deep, the ceiling is 32");
	buf_done(&bomb);
	buf_done(&many);
	buf_done(&deep);
	expect_anchor_fault("a: &x [*x]\n", ERR_INPUT, "there is no complete value with the anchor &x before *x");
	expect_anchor_fault("a: *x\n", ERR_INPUT, "there is no complete value with the anchor &x before *x");
	expect_anchor_fault("a: &x 1\n---\nb: *x\n", ERR_INPUT, "there is no complete value");
	expect_anchor_fault("&x a: 1\n", ERR_INPUT, "anchors are not supported");
	expect_anchor_fault("a: &x 1\n*x : 2\n", ERR_INPUT, "a key must be text, found the alias *x");
	expect_anchor_fault("a: &x 1\nb: {<<: *x}\n", ERR_INPUT, "<< must name a map");
	expect_anchor_fault("a: &x [1]\nb: {<<: *x}\n", ERR_INPUT, "<< must name a map");
	expect_anchor_fault("{<<: {a: 1}, <<: {b: 1}}\n", ERR_INPUT, "key \"<<\" is here a second time");
}

static void expect_limit(char *text, size_t arena_bytes, const char *want)
{
	char msg[ERR_MSG_BYTES];
	assert_int_equal(parse_alone(text, arena_bytes, msg), ERR_LIMIT);
	assert_string_equal(msg, want);
	free(text);
}

static void expect_accepted(char *text)
{
	char msg[ERR_MSG_BYTES];
	if (parse_alone(text, ARENA_MAX_BYTES, msg) != ERR_NONE)
		fail_msg("%s", msg);
	free(text);
}

static void every_ceiling_states_both_numbers(void **state)
{
	expect_accepted(repeat("", "[", 32, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"));
	expect_limit(repeat("", "[", 33, "]"), ARENA_MAX_BYTES,
	             "t:1:33: nested 33 deep, the ceiling is 32: flatten it");
	expect_accepted(repeat("[", "1,", 99999, "]"));
	expect_limit(repeat("[", "1,", 100000, "]"), ARENA_MAX_BYTES,
	             "t:1:200000: 100001 values up to here, the ceiling is 100000: split the file");
	expect_accepted(repeat("", "--- 1\n", 1024, ""));
	expect_limit(repeat("", "--- 1\n", 1025, ""), ARENA_MAX_BYTES,
	             "t:1025:5: 1025 documents up to here, the ceiling is 1024: split the file");
	expect_accepted(repeat("", "#", DOC_BYTES_MAX, ""));
	expect_limit(repeat("#", "#", DOC_BYTES_MAX, ""), ARENA_MAX_BYTES,
	             "t:1:1: 1048577 bytes, the ceiling is 1048576: split the file");
	char msg[ERR_MSG_BYTES];
	assert_int_equal(parse_alone("a: [1, 2, 3, 4, 5]", 512, msg), ERR_LIMIT);
	assert_non_null(strstr(msg, "needs more than the 512 bytes set aside"));
}

// A map of 50000 keys would take 1.25e9 comparisons done pair by pair; the runner's timeout would see it.
static void duplicates_are_found_in_a_large_map(void **state)
{
	struct buf b;
	buf_init(&b, DOC_BYTES_MAX);
	for (int i = 0; i < 50000; i++)
		assert_int_equal(buf_printf(&b, "key%d: %d\n", i, i), 0);
	assert_int_equal(buf_puts(&b, "key777: 1\n"), 0);
	char msg[ERR_MSG_BYTES];
	assert_int_equal(parse_alone(b.data, ARENA_MAX_BYTES, msg), ERR_INPUT);
	assert_string_equal(msg, "t:50001:1: key \"key777\" is here a second time, first at 778:1: remove one of them");
	buf_done(&b);
}

static void text_from_the_file_is_cut_and_visible_in_messages(void **state)
{
	char msg[ERR_MSG_BYTES];
	assert_int_equal(parse_alone("{\"a\\nb\\e\\u202e\": 1, \"a\\nb\\e\\u202e\": 2}", ARENA_MAX_BYTES, msg),
	                 ERR_INPUT);
	assert_string_equal(
	        msg, "t:1:21: key \"a\\nb\\x1b\\u202e\" is here a second time, first at 1:2: remove one of them");
	char *text = repeat("a: &", "long", 100, " 1");
	assert_int_equal(parse_alone(text, ARENA_MAX_BYTES, msg), ERR_INPUT);
	assert_non_null(strstr(msg, "longlong... and write"));
	assert_true(strlen(msg) < 200);
	free(text);
}

static void truncation_anywhere_is_an_error_or_a_shorter_document(void **state)
{
	const char *whole = "{\"a\": {\"b\": [1, \"two\", {\"c\": \"\xc3\xa9\"}]}}";
	for (size_t len = 0; len < strlen(whole); len++) {
		struct arena a;
		struct doc_file file;
		struct err e;
		err_clear(&e);
		arena_init(&a, ARENA_MAX_BYTES);
		int rc = doc_parse_yaml(&a, "t", whole, len, &file, &e);
		assert_int_equal(rc, len == 0 ? 0 : -1);
		assert_int_equal(file.n_roots, 0);
		arena_done(&a);
	}
}

static void files_are_read_and_their_faults_named(void **state)
{
	char path[] = "/tmp/gpuscale-test-doc-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a: [\n", 5), 5);
	struct arena a;
	struct doc_file file;
	struct err e;
	char want[ERR_MSG_BYTES];
	arena_init(&a, ARENA_MAX_BYTES);
	assert_int_equal(doc_read_yaml(&a, path, false, &file, &e), -1);
	snprintf(want, sizeof want, "%s:1:4: this '[' is never closed: add ']', or the file was cut off", path);
	assert_string_equal(e.msg, want);
	assert_int_equal(write(fd, "1]\n", 3), 3);
	assert_int_equal(doc_read_yaml(&a, path, false, &file, NULL), 0);
	assert_string_equal(file.name, path);
	assert_int_equal(file.n_roots, 1);
	assert_int_equal(ftruncate(fd, 2 * DOC_BYTES_MAX), 0);
	assert_int_equal(doc_read_yaml(&a, path, false, &file, &e), -1);
	snprintf(want, sizeof want, "%s: 2097152 bytes, the ceiling is 1048576: split the file", path);
	assert_string_equal(e.msg, want);
	assert_int_equal(e.kind, ERR_LIMIT);
	close(fd);
	unlink(path);
	assert_int_equal(doc_read_yaml(&a, path, false, &file, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_int_equal(doc_read_yaml(&a, "/tmp", false, &file, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT); // a folder
	arena_done(&a);
}

static void standard_input_is_read_under_a_name_of_its_own(void **state)
{
	int pipe_fds[2], saved = dup(STDIN_FILENO);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(write(pipe_fds[1], "a: 1\na: 2\n", 10), 10);
	close(pipe_fds[1]);
	dup2(pipe_fds[0], STDIN_FILENO);
	close(pipe_fds[0]);
	struct arena a;
	struct doc_file file;
	struct err e;
	arena_init(&a, ARENA_MAX_BYTES);
	int rc = doc_read_yaml(&a, "-", false, &file, &e);
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
	assert_int_equal(rc, -1);
	assert_string_equal(e.msg, "<stdin>:2:1: key \"a\" is here a second time, first at 1:1: remove one of them");
	arena_done(&a);
}

static void lookup_takes_what_is_not_there_calmly(void **state)
{
	struct arena a;
	struct doc_file file;
	const char *text = "a: {b: x, c: [1], n: }\n";
	arena_init(&a, ARENA_MAX_BYTES);
	assert_int_equal(doc_parse_yaml(&a, "t", text, strlen(text), &file, NULL), 0);
	const struct doc_node *at = doc_get(file.roots[0], "a");
	assert_non_null(at);
	assert_string_equal(doc_get_text(at, "b", "none"), "x");
	assert_string_equal(doc_get_text(at, "c", "none"), "none");
	assert_string_equal(doc_get_text(at, "n", "none"), "none");
	assert_string_equal(doc_get_text(at, "z", "none"), "none");
	assert_null(doc_get(NULL, "a"));
	assert_null(doc_get(doc_get(at, "b"), "a"));
	assert_null(doc_get(doc_get(at, "c"), "a"));
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(good_text_becomes_a_tree_with_positions),
	        cmocka_unit_test(bad_text_is_one_line_with_place_and_fix),
	        cmocka_unit_test(anchors_are_copied_where_they_are_wanted),
	        cmocka_unit_test(anchors_expand_within_the_limits),
	        cmocka_unit_test(every_ceiling_states_both_numbers),
	        cmocka_unit_test(duplicates_are_found_in_a_large_map),
	        cmocka_unit_test(text_from_the_file_is_cut_and_visible_in_messages),
	        cmocka_unit_test(truncation_anywhere_is_an_error_or_a_shorter_document),
	        cmocka_unit_test(files_are_read_and_their_faults_named),
	        cmocka_unit_test(standard_input_is_read_under_a_name_of_its_own),
	        cmocka_unit_test(lookup_takes_what_is_not_there_calmly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
