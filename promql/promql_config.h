// SPDX-License-Identifier: Apache-2.0
// The server that a promql client queries, and how.
#ifndef GPUSCALE_PROMQL_PROMQL_CONFIG_H
#define GPUSCALE_PROMQL_PROMQL_CONFIG_H

#include "base/http/http_client.h"

struct clock;
struct promql_budget;

#define PROMQL_SECRET_BYTES_MAX (16 * 1024) // token or password file
#define PROMQL_SECRET_AGE_MS    60000       // after which a token or password file is read again
#define PROMQL_TIMEOUT_MS       10000

#define PROMQL_VERSION_BYTES 32
#define PROMQL_LOOKBACK_MS   300000 // the lookback of an instant query by default

// The kind of server. Their responses are alike, but some need different parameters (promql_detect.c).
enum promql_kind {
	PROMQL_KIND_PROMETHEUS,
	PROMQL_KIND_THANOS,
	PROMQL_KIND_MIMIR,
	PROMQL_KIND_VICTORIAMETRICS,
	PROMQL_KIND_AUTO, // detected before the first query: /api/v1/status/buildinfo
	PROMQL_KIND__COUNT
};
extern const char *const promql_kind_names[]; // "Prometheus", ..; NULL-terminated

// The cloud whose workload identity is used (promql/identity.h).
enum promql_identity {
	PROMQL_IDENTITY_NONE,
	PROMQL_IDENTITY_GOOGLE,
	PROMQL_IDENTITY_AMAZON,
	PROMQL_IDENTITY_AZURE,
	PROMQL_IDENTITY__COUNT
};
extern const char *const promql_identity_names[]; // "None", "Google", ..; NULL-terminated
#define PROMQL_REGION_MAX 40

// Credentials that replace those of a client. A bearer token or a basic user with its password.
struct promql_credentials {
	const char *bearer_token;
	const char *basic_user, *basic_password;
	const char *header;                      // "Name: value", sent as well; NULL: none
	const char *ca_pem, *cert_pem, *key_pem; // ca_pem NULL: the CAs of the options
};

struct promql_options {
	struct http_client *http;      // not owned
	const char *url;               // base, "http://127.0.0.1:9090" or with a path prefix; trailing '/' allowed
	const char *bearer_token;      // or
	const char *bearer_token_file; // re-read every minute and after a 401; or
	const char *basic_user, *basic_password_file; // re-read likewise; or
	enum promql_identity identity;                // at most one of the four ways
	const char *region;                           // with Amazon; NULL: $AWS_REGION
	const char *const *headers;                   // extra "Name: value" (X-Scope-OrgID, ...), NULL-terminated
	struct http_tls tls;
	enum promql_kind kind;
	bool use_get;                 // GET instead of POST: for gateways that allow nothing else
	int64_t timeout_ms;           // per query; 0: 10 s. Also sent as the server's own `timeout`
	size_t max_body_bytes;        // size of a response, which is decoded as it arrives; 0: HTTP_BODY_BYTES_MAX
	const struct clock *clock;    // not owned; NULL: the system clock
	struct promql_budget *budget; // memory shared with other clients; not owned; NULL: the client's own
};

#endif
