// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/process/process.h"

static int written_data = 1;
static const char *const relocated[] = {"one", "two"};

static void digest(unsigned char *ret_bytes)
{
	unsigned length = 0;
	assert_int_equal(EVP_Digest("gpuscale", 8, ret_bytes, &length, EVP_sha256(), NULL), 1);
	assert_int_equal(length, 32);
}

static void everything_works_as_before(void **state)
{
	(void)state;
	unsigned char before[EVP_MAX_MD_SIZE], after[EVP_MAX_MD_SIZE];
	digest(before);
	written_data = 42;
	char *heap = strdup("kept");
	process_trim();
	process_trim();
	digest(after);
	assert_memory_equal(before, after, 32);
	assert_int_equal(written_data, 42);
	assert_string_equal(relocated[1], "two");
	assert_string_equal(heap, "kept");
	free(heap);
}

// What the libraries of this program touched while they were loaded is not resident any more.
static void resident_memory_shrinks(void **state)
{
	(void)state;
	unsigned char bytes[EVP_MAX_MD_SIZE];
	digest(bytes);
	struct process_stat before, after;
	process_stat_read(&before);
	process_trim();
	process_stat_read(&after);
	assert_true(after.resident_bytes < before.resident_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(everything_works_as_before),
	        cmocka_unit_test(resident_memory_shrinks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
