// SPDX-License-Identifier: Apache-2.0
// A file of its own, because it is libcurl's date parser: a program that only serves does not need libcurl.
#include "base/http/http_text.h"

#include <curl/curl.h>
#include <string.h>

#define DATE_BYTES_MAX 64

int64_t http_parse_date_s(const char *s, size_t len)
{
	char text[DATE_BYTES_MAX];
	// curl_getdate alone would also accept "1" or "Monday"; every HTTP-date form contains spaces and colons.
	if (len >= sizeof text || memchr(s, '\0', len) || !memchr(s, ':', len) || !memchr(s, ' ', len))
		return 0;
	memcpy(text, s, len);
	text[len] = '\0';
	time_t when = curl_getdate(text, NULL);
	return when > 0 ? (int64_t)when : 0;
}

int64_t http_parse_retry_after_ms(const char *s, size_t len, int64_t now_s)
{
	while (len && (s[0] == ' ' || s[0] == '\t'))
		s++, len--;
	while (len && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	int64_t seconds = 0;
	size_t digits = 0;
	for (; digits < len && s[digits] >= '0' && s[digits] <= '9'; digits++) {
		if (seconds < HTTP_RETRY_AFTER_MAX_MS) // past the limit the exact value does not matter
			seconds = seconds * 10 + (s[digits] - '0');
	}
	if (digits < len) {
		int64_t when_s = http_parse_date_s(s, len);
		seconds = when_s > 0 ? when_s - now_s : 0;
	}
	if (seconds <= 0)
		return 0;
	return seconds > HTTP_RETRY_AFTER_MAX_MS / 1000 ? HTTP_RETRY_AFTER_MAX_MS : seconds * 1000;
}
