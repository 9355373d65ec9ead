// SPDX-License-Identifier: Apache-2.0
// Text of a server: for one-line messages, as errors and times.
#include "promql/promql_decoder.h"

#include <math.h>

#include "base/base.h"

// "1435781451.781", without going through a double. false: it is written in another way.
static bool parse_plain_time(const char *text, size_t len, int64_t *ret_ms)
{
	int64_t s = 0, ms = 0, unit = 100;
	size_t i = 0;
	for (; i < len && i < 12 && text[i] >= '0' && text[i] <= '9'; i++)
		s = s * 10 + (text[i] - '0');
	if (i == 0 || (i < len && text[i] != '.') || len - i > 4)
		return false;
	for (i++; i < len; i++, unit /= 10) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		ms += (text[i] - '0') * unit;
	}
	*ret_ms = s * 1000 + ms;
	return true;
}

int promql_time_parse(const char *text, size_t len, int64_t *ret_ms)
{
	double seconds;
	if (parse_plain_time(text, len, ret_ms))
		return 0;
	// 2^53 ms is past the year 285000; beyond it a double no longer represents whole milliseconds.
	if (num_parse_f64(text, len, &seconds, NULL) < 0 || fabs(seconds) > 9007199254740.0)
		return -1;
	*ret_ms = llround(seconds * 1000.0);
	return 0;
}

// errorType of an error body -> kind. A type that is not here is a refusal.
// clang-format off
static const struct {
	const char *type;
	enum err_kind kind;
} kinds[] = {
	{"bad_data",          ERR_REJECTED},
	{"execution",         ERR_REJECTED},
	{"timeout",           ERR_TIMEOUT},
	{"canceled",          ERR_SERVER}, // the server gave up, not we
	{"internal",          ERR_SERVER},
	{"unavailable",       ERR_SERVER},
	{"not_found",         ERR_NOT_FOUND},
	{"too_many_requests", ERR_THROTTLED}, // Mimir
};
// clang-format on

int promql_api_error_set(struct err *e, const char *type, const char *text)
{
	enum err_kind kind = ERR_REJECTED;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].type, type) == 0)
			kind = kinds[i].kind;
	char type_line[PROMQL_NAME_BYTES], text_line[PROMQL_TEXT_BYTES];
	promql_text_show(type_line, sizeof type_line, type, strlen(type));
	promql_text_show(text_line, sizeof text_line, text, strlen(text));
	return err_set(e, kind, "query failed (%s): %s", type_line[0] ? type_line : "no errorType",
	               text_line[0] ? text_line : "the server gave no reason");
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *promql_text_show(char *out, size_t cap, const char *text, size_t len)
{
	while (len > 0 && is_blank(text[0])) {
		text++;
		len--;
	}
	while (len > 0 && is_blank(text[len - 1]))
		len--;
	text_show(out, cap, text, len);
	return out;
}

const char *promql_text_first_line(char *out, size_t cap, const char *text, size_t len)
{
	size_t start = 0;
	while (start < len && is_blank(text[start]))
		start++;
	const char *end = start < len ? memchr(text + start, '\n', len - start) : NULL;
	return promql_text_show(out, cap, text + start, end ? (size_t)(end - (text + start)) : len - start);
}
