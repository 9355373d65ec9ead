// SPDX-License-Identifier: Apache-2.0
// Goal of this test: bytes become the base64 text of RFC 4648 and come back, and text that is not base64 gives nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "base/text.h"

static void examples_of_the_rfc(void **state)
{
	static const char *const rows[][2] = {{"", ""},
	                                      {"f", "Zg=="},
	                                      {"fo", "Zm8="},
	                                      {"foo", "Zm9v"},
	                                      {"foob", "Zm9vYg=="},
	                                      {"fooba", "Zm9vYmE="},
	                                      {"foobar", "Zm9vYmFy"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[TEXT_BASE64_BYTES(8)], back[8];
		size_t n = strlen(rows[i][0]);
		EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)rows[i][0], (int)n);
		assert_string_equal(text, rows[i][1]);
		assert_int_equal(text_from_base64(text, back, sizeof back), n);
		assert_memory_equal(back, rows[i][0], n);
	}
}

static void every_byte_survives(void **state)
{
	unsigned char bytes[259], back[259];
	char text[TEXT_BASE64_BYTES(sizeof bytes)];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 37);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		EVP_EncodeBlock((unsigned char *)text, bytes, (int)n);
		assert_int_equal(strlen(text) + 1, TEXT_BASE64_BYTES(n));
		assert_int_equal(text_from_base64(text, back, sizeof back), n);
		assert_memory_equal(back, bytes, n);
		assert_int_equal(text_from_base64(text, back, n > 0 ? n - 1 : 0), 0);
	}
}

static void other_text_gives_nothing(void **state)
{
	static const char *const rows[] = {
	        "Z", "Zg", "Zg=", "Zm9", "Zm9v!A==", "Z===", "=Zg=", "Zg==Zg==", "Zm 9v", "===="};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char back[16];
		if (text_from_base64(rows[i], back, sizeof back) != 0)
			fail_msg("\"%s\" was decoded", rows[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(examples_of_the_rfc),
	        cmocka_unit_test(every_byte_survives),
	        cmocka_unit_test(other_text_gives_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
