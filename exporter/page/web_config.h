// SPDX-License-Identifier: Apache-2.0
// Prometheus's web configuration file: TLS, basic auth with bcrypt, a rate limit. It is checked strictly, and every
// error is reported at once. Prometheus: exporter-toolkit, docs/web-configuration.md.
#ifndef GPUSCALE_EXPORTER_PAGE_WEB_CONFIG_H
#define GPUSCALE_EXPORTER_PAGE_WEB_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/http/http_server.h"

struct buf;
struct err;

#define WEB_CONFIG_USERS_MAX  64
#define WEB_CONFIG_MEMORY_MAX (4 * 1024 * 1024) // while the file is decoded; a fraction of it is kept
#define WEB_CONFIG_USER_BYTES 128
#define WEB_CONFIG_HASH_BYTES 60 // length of a bcrypt hash: "$2y$10$", 22 characters of salt, 31 of digest
#define WEB_CONFIG_COST_MAX   12 // 2^12 rounds take about 0.2 s, which block all other replies

struct web_user {
	char name[WEB_CONFIG_USER_BYTES];
	char hash[WEB_CONFIG_HASH_BYTES + 1];
};

struct web_config {
	// NULL: no TLS. Relative paths in the file are relative to its folder.
	const char *cert_file, *key_file, *client_ca_file;
	enum http_client_auth client_auth;
	int32_t tls_min_minor, tls_max_minor; // 2 = TLS 1.2, 3 = TLS 1.3
	struct web_user users[WEB_CONFIG_USERS_MAX];
	size_t n_users;           // 0: no basic auth
	int64_t rate_interval_ms; // one request per address in this time; 0: no limit
	int32_t rate_burst;
	bool no_document;   // the file is empty or contains only comments
	struct arena arena; // memory of the paths
};

// Decodes text[0..len), which messages call `name`. Returns -1 and fills `e` with ERR_INPUT (with one line for each
// error in `ret_errors`, see schema_errors_print) or ERR_LIMIT; there is nothing to free then.
int web_config_parse(struct web_config *c, const char *name, const char *text, size_t len, struct buf *ret_errors,
                     struct err *e);
// Reads the same from the file at `path`; also fails with ERR_NOT_FOUND and ERR_IO.
int web_config_read(struct web_config *c, const char *path, struct buf *ret_errors, struct err *e);
void web_config_done(struct web_config *c);

#endif
