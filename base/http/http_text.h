// SPDX-License-Identifier: Apache-2.0
// Small texts of HTTP that both ends need: tokens, percent escapes, Retry-After. Pure; no allocation.
#ifndef GPUSCALE_BASE_HTTP_HTTP_TEXT_H
#define GPUSCALE_BASE_HTTP_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_RETRY_AFTER_MAX_MS (3600 * 1000)

// A method or field name: one or more token characters (RFC 9110, 5.6.2).
bool http_is_token(const char *s, size_t len);
// A field value: no control characters but the tab (RFC 9110, 5.5).
bool http_is_field_value(const char *s, size_t len);
// A credential that fits a header line: visible ASCII only, at least one byte.
bool http_is_credential(const char *s, size_t len);

// Reads a Retry-After value: whole seconds or an HTTP-date, relative to now_s (seconds since the epoch). Returns ms in
// [0, HTTP_RETRY_AFTER_MAX_MS]; 0 for the past and for anything unreadable (RFC 9110, 10.2.3).
int64_t http_parse_retry_after_ms(const char *s, size_t len, int64_t now_s);

// Parses an HTTP-date (RFC 9110, 5.6.7). Returns seconds since the epoch, or 0 when the date is invalid.
int64_t http_parse_date_s(const char *s, size_t len);

// Decodes %XX in place, and '+' as a space when plus_is_blank. Returns the new length, -1 for a broken escape or one
// that means NUL. The text is NUL-terminated again.
ptrdiff_t http_percent_decode(char *s, size_t len, bool plus_is_blank);

// The usual phrase of a status code ("Not Found"), "Status" for an unknown one.
const char *http_status_phrase(int status);

#endif
