// SPDX-License-Identifier: Apache-2.0
// Goal of this test: an arena hands out zeroed, aligned, separate memory up to its ceiling, and a steady tick costs no
// allocation.
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "test/support/alloc_count.h"

#define STEP alignof(max_align_t)

static void memory_is_zeroed_aligned_and_separate(void **state)
{
	struct arena a;
	unsigned char *p[500];
	arena_init(&a, 10 * 1024 * 1024);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 500; i++) {
			size_t size = i * 7 % 300;
			p[i] = arena_alloc(&a, size);
			assert_non_null(p[i]);
			assert_int_equal((uintptr_t)p[i] % STEP, 0);
			for (size_t k = 0; k < size; k++)
				assert_int_equal(p[i][k], 0);
			memset(p[i], (int)(i % 255 + 1), size);
		}
		for (size_t i = 0; i < 500; i++)
			for (size_t k = 0; k < i * 7 % 300; k++)
				assert_int_equal(p[i][k], i % 255 + 1);
		arena_reset(&a);
	}
	arena_done(&a);
}

static void ceiling_is_reached_but_not_passed(void **state)
{
	struct arena a;
	arena_init(&a, 100 * STEP);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100; i++)
			assert_non_null(arena_alloc(&a, 1));
		assert_int_equal(a.used_bytes, 100 * STEP);
		assert_null(arena_alloc(&a, 1));
		assert_null(arena_alloc(&a, 0));
		assert_null(arena_strdup(&a, ""));
		assert_null(arena_printf(&a, "x"));
		assert_int_equal(a.used_bytes, 100 * STEP);
		arena_reset(&a);
		assert_int_equal(a.used_bytes, 0);
	}
	assert_null(arena_alloc(&a, 100 * STEP + 1));
	assert_non_null(arena_alloc(&a, 100 * STEP));
	arena_done(&a);
}

static void sizes_that_overflow_give_null(void **state)
{
	struct arena a;
	arena_init(&a, SIZE_MAX);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - STEP));
	assert_null(arena_calloc(&a, SIZE_MAX / 2, 3));
	assert_null(arena_strndup(&a, "", SIZE_MAX));
	assert_int_equal(a.used_bytes, 0);
	assert_non_null(arena_calloc(&a, 0, 3));
	assert_non_null(arena_calloc(&a, 3, 0));
	arena_done(&a);
}

static void text_is_copied(void **state)
{
	struct arena a;
	arena_init(&a, 100000);
	char source[] = "source";
	char *copy = arena_strdup(&a, source), *part = arena_strndup(&a, source, 3);
	source[0] = 'x';
	assert_string_equal(copy, "source");
	assert_string_equal(part, "sou");
	assert_string_equal(arena_strndup(&a, NULL, 0), "");
	assert_string_equal(arena_printf(&a, "%s-%d", copy, 7), "source-7");
	char *wide = arena_printf(&a, "%5000d", 1);
	assert_int_equal(strlen(wide), 5000);
	arena_done(&a);
}

static void tick(struct arena *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_non_null(arena_alloc(a, 100 + i % 50));
	assert_non_null(arena_alloc(a, n * 64));
}

static void steady_tick_allocates_nothing(void **state)
{
	if (!alloc_count_works())
		skip();
	struct arena a;
	arena_init(&a, 64 * 1024 * 1024);
	tick(&a, 1000); // learns how much is needed
	arena_reset(&a);
	tick(&a, 1000); // gets it in one piece
	size_t before = alloc_count;
	for (int i = 0; i < 100; i++) {
		arena_reset(&a);
		tick(&a, 1000);
		arena_reset(&a);
		tick(&a, 10);
	}
	assert_int_equal(alloc_count, before);
	arena_done(&a);
}

static void tick_takes_few_allocations(void **state)
{
	if (!alloc_count_works())
		skip();
	struct arena a;
	arena_init(&a, 64 * 1024 * 1024);
	size_t before = alloc_count;
	for (int i = 0; i < 100000; i++)
		assert_non_null(arena_alloc(&a, 64));
	assert_in_range(alloc_count - before, 1, 20);
	arena_done(&a);
}

// A tick whose largest piece grows a little every time must not leave a block behind each time.
static void slow_growth_does_not_pile_up_blocks(void **state)
{
	struct arena a;
	arena_init(&a, 1024 * 1024);
	for (size_t n = 1; n < 2000; n++) {
		assert_non_null(arena_alloc(&a, 4096 + n * STEP));
		assert_non_null(a.first);
		assert_ptr_equal(a.first, a.current); // one block
		arena_reset(&a);
		assert_non_null(arena_alloc(&a, 4096 + n * STEP));
		assert_non_null(arena_alloc(&a, 4 * STEP)); // may need a second one
		arena_reset(&a);
	}
	arena_done(&a);
}

static void done_leaves_an_arena_that_can_be_used_again(void **state)
{
	struct arena a;
	arena_init(&a, 1000);
	arena_done(&a);
	arena_reset(&a);
	assert_non_null(arena_alloc(&a, 1000 - STEP));
	arena_done(&a);
	assert_int_equal(a.max_bytes, 1000);
	assert_non_null(arena_alloc(&a, 10));
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(memory_is_zeroed_aligned_and_separate),
	        cmocka_unit_test(ceiling_is_reached_but_not_passed),
	        cmocka_unit_test(sizes_that_overflow_give_null),
	        cmocka_unit_test(text_is_copied),
	        cmocka_unit_test(steady_tick_allocates_nothing),
	        cmocka_unit_test(tick_takes_few_allocations),
	        cmocka_unit_test(slow_growth_does_not_pile_up_blocks),
	        cmocka_unit_test(done_leaves_an_arena_that_can_be_used_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
