// SPDX-License-Identifier: Apache-2.0
// Every parser of base/num.h on the same bytes. What is accepted must be in range and come back from its own text.
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct err *e)
{
	assert(e->kind == ERR_INPUT || e->kind == ERR_LIMIT);
	assert(e->msg[0] && strlen(e->msg) < ERR_MSG_BYTES - 1); // never cut
	for (const char *p = e->msg; *p; p += utf8_char_len(p, strlen(p)))
		assert((unsigned char)*p >= ' ' && *p != 0x7f && utf8_char_len(p, strlen(p)) > 0);
}

static void check_f64(double v)
{
	char text[NUM_TEXT_BYTES];
	size_t n = num_format_f64(text, v);
	double again = 0;
	assert(n < NUM_TEXT_BYTES && strlen(text) == n);
	assert(num_parse_sample(text, n, &again, NULL) == 0);
	assert(isnan(v) ? isnan(again) != 0 : again == v && signbit(again) == signbit(v));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	struct err e;
	char text[NUM_TEXT_BYTES];
	int64_t i = 0, again = 0;
	double f = 0, q = 0;

	err_clear(&e);
	if (num_parse_i64(s, size, INT64_MIN, INT64_MAX, &i, &e) < 0)
		check_error(&e);
	if (num_parse_i64(s, size, -5, 70, &i, &e) == 0)
		assert(i >= -5 && i <= 70);
	else
		check_error(&e);
	if (num_parse_f64(s, size, &f, &e) == 0) {
		assert(isfinite(f));
		check_f64(f);
		assert(num_parse_quantity(s, size, &q, &e) == 0 && q == f); // every plain number is a quantity
	} else {
		check_error(&e);
	}
	if (num_parse_sample(s, size, &f, &e) == 0)
		check_f64(f);
	else
		check_error(&e);
	if (num_parse_quantity(s, size, &q, &e) == 0)
		assert(isfinite(q));
	else
		check_error(&e);
	if (num_parse_duration_ms(s, size, &i, &e) == 0) {
		assert(i >= 0 && i <= NUM_DURATION_MS_MAX);
		assert(num_parse_duration_ms(text, num_format_duration_ms(text, i), &again, NULL) == 0 && again == i);
	} else {
		check_error(&e);
	}
	if (num_parse_flag_duration_ms(s, size, &i, &e) == 0)
		assert(i >= 0 && i <= NUM_DURATION_MS_MAX);
	else
		check_error(&e);
	if (num_parse_rfc3339_ms(s, size, &i, &e) == 0) {
		assert(i >= 0);
		assert(num_parse_rfc3339_ms(text, num_format_rfc3339_ms(text, i), &again, NULL) == 0 && again == i);
	} else {
		check_error(&e);
	}
	if (size >= sizeof f) { // any double, and any time, also those that no text would give
		memcpy(&f, data, sizeof f);
		memcpy(&i, data, sizeof i);
		check_f64(f);
		assert(num_format_rfc3339_ms(text, i) < NUM_TEXT_BYTES);
		assert(num_format_duration_ms(text, i) < NUM_TEXT_BYTES);
	}
	static const char *const names[] = {"minReplicas", "maxReplicas", "interval", "a", ""};
	char *word = calloc(size + 1, 1);
	assert(word);
	if (size)
		memcpy(word, data, size);
	num_closest_name(word, names, sizeof names / sizeof names[0]);
	free(word);
	return 0;
}
