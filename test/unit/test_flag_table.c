// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a flag is stored in the member that its row names, and the flags of an included set in its own
// options. Errors of usage are tested by golden/run-command-line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/options/flag_table.h"

enum colour { RED, GREEN, BLUE };
static const char *const colours[] = {"red", "green", "blue", NULL};

struct inner {
	double ratio;
	const char *list[3];
	size_t n_list;
	int n_checked; // with the ratio that was given
};

struct outer {
	const char *text, *argument;
	bool on;
	int32_t small;
	int64_t wide, after_ms;
	enum colour colour;
	struct inner inner;
	char taken[8];
	double ratio_at_check;
};

static void take(void *to, char *arg, struct argp_state *state)
{
	(void)state;
	strncpy(to, arg ? arg : "none", 7);
}

static void check_inner(void *options, struct argp_state *state)
{
	struct inner *inner = options;
	(void)state;
	inner->n_checked += inner->ratio > 0 ? 1 : 0;
}

static void check_outer(void *options, struct argp_state *state)
{
	struct outer *o = options;
	(void)state;
	o->ratio_at_check = o->inner.n_checked == 1 ? o->inner.ratio : 0; // after the check of the included set
}

// clang-format off
#define FLAGS_OF struct inner
static const struct flag_set inner_flags = {.check = check_inner, .flags = (const struct flag[]){
	FLAG_F64(1, 0, "ratio", "X", ratio, 0, 1, "a ratio"),
	FLAG_LIST(1, 0, "item", "NAME", list, n_list, 3, "", "an item"),
	FLAG_END}};
#undef FLAGS_OF
#define FLAGS_OF struct outer
static const struct flag_set outer_flags = {.args = "[X]", .about = "", .check = check_outer, .flags = (const struct flag[]){
	FLAG_TEXT(1, 't', "text", "TEXT", text, "a text"),
	FLAG_SWITCH(1, 0, "on", on, "a switch"),
	FLAG_I32(1, 0, "small", "N", small, -5, 5, "a number"),
	FLAG_I64(1, 'w', "wide", "N", wide, 0, INT64_MAX, "a number"),
	FLAG_DURATION(1, 0, "after", after_ms, 0, 60000, "a duration"),
	FLAG_CHOICE(1, 0, "colour", "NAME", colour, colours, 1U << RED | 1U << BLUE, "a choice"),
	FLAG_CALL(1 | FLAG_OPTIONAL, 0, "taken", "TEXT", taken, take, "a function"),
	FLAG_ARGUMENT(argument),
	FLAG_INCLUDE(&inner_flags, inner, 0),
	FLAG_END}};
// clang-format on

static void parse(struct outer *o, const char *line)
{
	static char words[256]; // options point into it
	char *argv[32];
	int argc = 0;
	*o = (struct outer){.small = 1};
	strncpy(words, line, sizeof words - 1);
	for (char *word = words, *end; word && argc < 31; word = end) {
		end = strchr(word, ' ');
		if (end)
			*end++ = '\0';
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	struct flag_parser p;
	flag_parser_init(&p, &outer_flags, NULL, o);
	flag_parser_run(&p, argc, argv);
}

static void every_type_is_stored_in_its_member(void **state)
{
	(void)state;
	struct outer o;
	parse(&o, "x --text=a -w 9223372036854775807 --small -5 --on --after 1m --colour Blue --taken=b what");
	assert_string_equal(o.text, "a");
	assert_true(o.wide == INT64_MAX);
	assert_int_equal(o.small, -5);
	assert_true(o.on);
	assert_int_equal(o.after_ms, 60000);
	assert_int_equal(o.colour, BLUE);
	assert_string_equal(o.taken, "b");
	assert_string_equal(o.argument, "what");
}

static void flags_that_are_not_given_keep_their_defaults(void **state)
{
	(void)state;
	struct outer o;
	parse(&o, "x --taken");
	assert_null(o.text);
	assert_null(o.argument);
	assert_false(o.on);
	assert_int_equal(o.small, 1);
	assert_string_equal(o.taken, "none");
	assert_int_equal(o.inner.n_list, 0);
}

static void included_set_has_options_and_a_check_of_its_own(void **state)
{
	(void)state;
	struct outer o;
	parse(&o, "x --item a --ratio=0.5 --item b");
	assert_int_equal(o.inner.n_list, 2);
	assert_string_equal(o.inner.list[0], "a");
	assert_string_equal(o.inner.list[1], "b");
	assert_null(o.inner.list[2]);
	assert_int_equal(o.inner.n_checked, 1);
	assert_true(o.ratio_at_check == 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_type_is_stored_in_its_member),
	        cmocka_unit_test(flags_that_are_not_given_keep_their_defaults),
	        cmocka_unit_test(included_set_has_options_and_a_check_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
