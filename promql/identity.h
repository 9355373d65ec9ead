// SPDX-License-Identifier: Apache-2.0
// The workload identity of a cloud: how the controller's own pod gets a token for a managed Prometheus. This file has
// the requests for tokens and their responses; promql/promql_detect.c sends them. Private to promql/.
//
// Google: the metadata server. Amazon: STS for the role of the service account (IRSA), or the credentials endpoint of
// EKS Pod Identity and ECS. Azure: the token endpoint, for the federated token of the service account. The places come
// from the environment variables that each cloud sets in a pod, as in its own SDKs.
#ifndef GPUSCALE_PROMQL_IDENTITY_H
#define GPUSCALE_PROMQL_IDENTITY_H

#include "base/buf.h"
#include "promql/promql_config.h"

struct err;

#define IDENTITY_ANSWER_BYTES_MAX (64 * 1024)
#define IDENTITY_LIFETIME_MIN_MS  1000
#define IDENTITY_LIFETIME_MAX_MS  (7 * 24 * 3600 * 1000LL)

// A request for a token. Zeroed, then filled by identity_request_fill; identity_request_done wipes it.
struct identity_request {
	const char *method; // "GET" or "POST"
	char url[2048 + 256];
	const char *headers[3]; // NULL-terminated
	struct buf header;      // text of a header, which may be a secret
	struct buf body;        // empty with "GET"
};

// The content of the response: a bearer token, or with .key_id the three parts of Amazon's credentials. Owned texts.
struct identity_token {
	char *secret;
	char *key_id, *session; // NULL: a bearer token
	int64_t lifetime_ms;
};

// Checks what `kind` needs at start. `region`: of Amazon, NULL: $AWS_REGION. Writes it to ret_scope (as in struct
// http_aws; "" for the others). Returns 0, or -1 and *e (ERR_INPUT).
int identity_check(enum promql_identity kind, const char *region, char ret_scope[PROMQL_REGION_MAX + 16],
                   struct err *e);
// Fills the request for a token; reads the token files. Returns 0, or -1 and *e: ERR_INPUT for a missing variable, an
// unsafe endpoint or an unusable file, ERR_NOT_FOUND, ERR_IO, ERR_LIMIT.
int identity_request_fill(struct identity_request *r, enum promql_identity kind, const char *region, struct err *e);
void identity_request_done(struct identity_request *r);
// Reads a response with status 200. Returns 0, or -1 and *e (ERR_PROTOCOL, ERR_LIMIT), which never quotes it.
int identity_answer_read(enum promql_identity kind, const char *body, size_t len, int64_t now_wall_ms,
                         struct identity_token *ret_token, struct err *e);
void identity_token_done(struct identity_token *t);

#endif
