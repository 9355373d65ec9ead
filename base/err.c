// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct err_kind_info kinds[] = {
        [ERR_NONE] = {"None", false, 0},
        [ERR_USAGE] = {"Usage", false, 2},
        [ERR_INPUT] = {"Input", false, 1},
        [ERR_LIMIT] = {"Limit", false, 1},
        [ERR_TOO_LARGE] = {"TooLarge", false, 1},
        [ERR_IO] = {"IO", true, 1},
        [ERR_UNREACHABLE] = {"Unreachable", true, 1},
        [ERR_TIMEOUT] = {"Timeout", true, 1},
        [ERR_TLS] = {"TLS", false, 1},
        [ERR_AUTH] = {"Auth", false, 1},
        [ERR_NOT_FOUND] = {"NotFound", false, 1},
        [ERR_CONFLICT] = {"Conflict", true, 1},
        [ERR_THROTTLED] = {"Throttled", true, 1},
        [ERR_SERVER] = {"Server", true, 1},
        [ERR_PROTOCOL] = {"Protocol", false, 1},
        [ERR_REJECTED] = {"Rejected", false, 1},
        [ERR_UNSUPPORTED] = {"Unsupported", false, 1},
        [ERR_CANCELED] = {"Canceled", false, 1},
        [ERR_INTERNAL] = {"Internal", false, 1},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == ERR__COUNT, "one row per error kind");

const struct err_kind_info *err_kind_info(enum err_kind kind)
{
	assert(kind >= 0 && kind < ERR__COUNT);
	return &kinds[kind];
}

void err_clear(struct err *e)
{
	if (e)
		*e = (struct err){.kind = ERR_NONE};
}

// A text that printf cut at the buffer's end (wanted: the length it returned) must not stop inside a UTF-8 character.
static void end_at_character(char msg[static ERR_MSG_BYTES], int wanted)
{
	if (wanted < ERR_MSG_BYTES)
		return;
	size_t len = strlen(msg), last = len;
	while (last > 0 && len - last < 4 && ((unsigned char)msg[last - 1] & 0xc0) == 0x80)
		last--;
	if (last > 0 && (unsigned char)msg[last - 1] >= 0xc0 && utf8_char_len(msg + last - 1, len - last + 1) == 0)
		msg[last - 1] = '\0';
}

// Messages quote what came from outside (names of files, texts of servers), and end on terminals and in logs.
static void make_printable(char msg[static ERR_MSG_BYTES])
{
	const char *p = msg;
	while (*p >= ' ' && *p <= '~')
		p++;
	if (!*p)
		return;
	char raw[ERR_MSG_BYTES];
	memcpy(raw, msg, sizeof raw);
	text_show(msg, ERR_MSG_BYTES, raw, strlen(raw));
}

__attribute__((format(printf, 4, 0))) static int err_vset(struct err *e, enum err_kind kind, int code, const char *fmt,
                                                          va_list ap)
{
	if (!e)
		return -1;
	// Formatted aside: an argument may be e->msg itself.
	char msg[ERR_MSG_BYTES] = "";
	end_at_character(msg, vsnprintf(msg, sizeof msg, fmt, ap));
	make_printable(msg);
	e->kind = kind;
	e->code = code;
	e->retry_after_ms = 0;
	memcpy(e->msg, msg, sizeof msg);
	return -1;
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	err_vset(e, kind, 0, fmt, ap);
	va_end(ap);
	return -1;
}

int err_set_code(struct err *e, enum err_kind kind, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	err_vset(e, kind, code, fmt, ap);
	va_end(ap);
	return -1;
}

int err_no_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "out of memory");
}

void *err_calloc(size_t size, struct err *e)
{
	void *p = calloc(1, size);
	if (!p)
		err_no_memory(e);
	return p;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -1;
	char msg[ERR_MSG_BYTES] = "";
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	size_t used = n < 0 ? 0 : (size_t)n < sizeof msg ? (size_t)n : sizeof msg - 1;
	n = snprintf(msg + used, sizeof msg - used, ": %s", e->msg);
	end_at_character(msg, n < 0 ? n : n + (int)used);
	make_printable(msg);
	memcpy(e->msg, msg, sizeof msg);
	return -1;
}

enum err_kind err_kind_of_http_status(int status)
{
	switch (status) {
	case 401:
	case 403:
		return ERR_AUTH;
	case 404:
	case 410:
		return ERR_NOT_FOUND;
	case 408:
	case 504:
		return ERR_TIMEOUT;
	case 409:
		return ERR_CONFLICT;
	case 429:
		return ERR_THROTTLED;
	default:
		if (status >= 500 && status < 600)
			return ERR_SERVER;
		if (status >= 400 && status < 500)
			return ERR_REJECTED;
		return ERR_PROTOCOL;
	}
}
