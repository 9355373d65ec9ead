// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_text.h"

#include <ctype.h>

#include "base/base.h"
#include "base/http/http_client.h"

bool http_is_token(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)s[i]) && (s[i] == '\0' || !strchr("!#$%&'*+-.^_`|~", s[i])))
			return false;
	}
	return len > 0;
}

bool http_is_field_value(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool http_is_credential(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] <= 0x20 || s[i] >= 0x7f)
			return false;
	}
	return len > 0;
}

ptrdiff_t http_percent_decode(char *s, size_t len, bool plus_is_blank)
{
	size_t out = 0;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];
		if (c == '%') {
			int hi = i + 2 < len ? num_hex_digit(s[i + 1]) : -1;
			int lo = i + 2 < len ? num_hex_digit(s[i + 2]) : -1;
			if (hi < 0 || lo < 0 || hi + lo == 0)
				return -1;
			c = (char)(hi * 16 + lo);
			i += 2;
		} else if (c == '+' && plus_is_blank) {
			c = ' ';
		}
		s[out++] = c;
	}
	s[out] = '\0';
	return (ptrdiff_t)out;
}

int http_append_urlencoded(struct buf *out, const char *s)
{
	static const char hex[] = "0123456789ABCDEF";
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
			buf_putc(out, *s);
		} else {
			const char escape[3] = {'%', hex[c >> 4], hex[c & 15]};
			buf_put(out, escape, sizeof escape);
		}
	}
	return out->failed ? -1 : 0;
}

const char *http_status_phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} table[] = {
	        {100, "Continue"},
	        {200, "OK"},
	        {201, "Created"},
	        {202, "Accepted"},
	        {204, "No Content"},
	        {301, "Moved Permanently"},
	        {302, "Found"},
	        {304, "Not Modified"},
	        {307, "Temporary Redirect"},
	        {308, "Permanent Redirect"},
	        {400, "Bad Request"},
	        {401, "Unauthorized"},
	        {403, "Forbidden"},
	        {404, "Not Found"},
	        {405, "Method Not Allowed"},
	        {406, "Not Acceptable"},
	        {408, "Request Timeout"},
	        {409, "Conflict"},
	        {410, "Gone"},
	        {411, "Length Required"},
	        {413, "Content Too Large"},
	        {414, "URI Too Long"},
	        {415, "Unsupported Media Type"},
	        {417, "Expectation Failed"},
	        {421, "Misdirected Request"},
	        {422, "Unprocessable Content"},
	        {429, "Too Many Requests"},
	        {431, "Request Header Fields Too Large"},
	        {500, "Internal Server Error"},
	        {501, "Not Implemented"},
	        {502, "Bad Gateway"},
	        {503, "Service Unavailable"},
	        {504, "Gateway Timeout"},
	        {505, "HTTP Version Not Supported"},
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		if (table[i].status == status)
			return table[i].phrase;
	}
	return "Status";
}
