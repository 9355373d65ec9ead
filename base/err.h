// SPDX-License-Identifier: Apache-2.0
// Errors are values: a function that can fail returns 0 or -1 and fills a caller-owned struct err.
// `kind` drives retry, exit code and condition through one table; `msg` is for people and names the place and the fix.
#ifndef GPUSCALE_BASE_ERR_H
#define GPUSCALE_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ERR_MSG_BYTES 512

enum err_kind {
	ERR_NONE = 0,
	ERR_USAGE,     // wrong flags or arguments; exit 2
	ERR_INPUT,     // a file or reply whose content is invalid
	ERR_LIMIT,     // a named limit was exceeded; msg states both numbers
	ERR_TOO_LARGE, // a reply exceeds its memory or series limit; the queries that shared the request may be retried
	               // alone
	ERR_IO,        // file system, local sockets
	ERR_UNREACHABLE, // name does not resolve, connection refused or broken
	ERR_TIMEOUT,     // the deadline passed
	ERR_TLS,         // certificate or handshake
	ERR_AUTH,        // 401, 403, no credentials
	ERR_NOT_FOUND,   // 404, 410
	ERR_CONFLICT,    // 409
	ERR_THROTTLED,   // 429
	ERR_SERVER,      // 5xx
	ERR_PROTOCOL,    // the peer's response does not follow the protocol
	ERR_REJECTED,    // any other 4xx: the peer understood and refused
	ERR_UNSUPPORTED, // a named feature that does not exist yet or here
	ERR_CANCELED,    // canceled by this process (shutdown)
	ERR_INTERNAL,    // out of memory and the like
	ERR__COUNT
};

struct err {
	enum err_kind kind;
	int code; // HTTP status, errno or curl code that `kind` derives from; 0 if none. For ERR_TOO_LARGE: the series
	          // limit that was exceeded, else 0
	int64_t retry_after_ms; // the delay that the peer requested; 0 if none
	char msg[ERR_MSG_BYTES];
};

// One row per kind: the CamelCase name used in logs, metrics and conditions, whether trying again can help,
// and the exit code of a command that ends with it.
struct err_kind_info {
	const char *name;
	bool retryable;
	int exit_code;
};

// The row of `kind`. Never NULL.
const struct err_kind_info *err_kind_info(enum err_kind kind);

// Makes *e empty (kind ERR_NONE, msg "").
void err_clear(struct err *e);

// Fills *e; always returns -1, so that `return err_set(...)` reads well. e may be NULL. A message that is too long is
// cut, between characters; characters that could harm a terminal or a log are escaped (base/text.h).
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// As err_set, with `code` kept in addition to the kind.
int err_set_code(struct err *e, enum err_kind kind, int code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
// Fills *e with ERR_INTERNAL and "out of memory"; returns -1.
int err_no_memory(struct err *e);
// Returns `size` zeroed bytes, which the caller frees; NULL and *e as above.
void *err_calloc(size_t size, struct err *e) __attribute__((malloc));

// Puts "context: " in front of msg, cutting at the end when the buffer is full; returns -1. e may be NULL.
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Kind of an HTTP status that is not 2xx: 401/403 AUTH, 404/410 NOT_FOUND, 409 CONFLICT, 429 THROTTLED,
// 408/504 TIMEOUT, other 5xx SERVER, other 4xx REJECTED, anything else PROTOCOL.
enum err_kind err_kind_of_http_status(int status);

#endif
