// SPDX-License-Identifier: Apache-2.0
// The names of the kinds of objects on the command line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/term/object_kind.h"

static void kind_has_every_name_that_kubectl_takes(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		enum object_kind kind;
	} rows[] = {
	        {"gpua", OBJECT_POLICY},
	        {"GPUAutoscaler", OBJECT_POLICY},
	        {"gpuautoscalers.gpuscale.dev", OBJECT_POLICY},
	        {"pool", OBJECT_POOL},
	        {"Pools", OBJECT_POOL},
	        {"gpup", OBJECT_POOL},
	        {"gpupool.gpuscale.dev", OBJECT_POOL},
	        {"remediation", OBJECT_REMEDIATION},
	        {"p", OBJECT_KIND__COUNT},
	        {"", OBJECT_KIND__COUNT},
	        {".gpuscale.dev", OBJECT_KIND__COUNT},
	        {"gpupools.example.com", OBJECT_KIND__COUNT},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (object_kind_find(rows[i].word, strlen(rows[i].word)) != rows[i].kind)
			fail_msg("%s", rows[i].word);
	for (enum object_kind k = 0; k < OBJECT_KIND__COUNT; k++) {
		const struct object_kind_info *info = object_kind_info(k);
		const char *const names[] = {info->kind, info->plural, info->singular, info->short_name};
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
			if (names[i])
				assert_int_equal(object_kind_find(names[i], strlen(names[i])), k);
	}
}

static void similar_name_is_suggested(void **state)
{
	(void)state;
	assert_string_equal(object_kind_closest("poool", 5), "pool");
	assert_string_equal(object_kind_closest("gpupol/h100", 6), "gpupool");
	assert_null(object_kind_closest("serving", 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(kind_has_every_name_that_kubectl_takes),
	        cmocka_unit_test(similar_name_is_suggested),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
