// SPDX-License-Identifier: Apache-2.0
// Verifies the certificate that a TLS client presented against CA certificates that the handler chooses. For servers
// that accept several authorities with different meanings, and clients without a certificate
// (HTTP_CLIENT_AUTH_REQUEST): the handshake proves that the client has the key, and the handler determines the owner.
#ifndef GPUSCALE_BASE_HTTP_HTTP_SERVER_PEER_H
#define GPUSCALE_BASE_HTTP_HTTP_SERVER_PEER_H

#include <openssl/types.h>
#include <stddef.h>

struct err;
struct http_exchange;

#define TLS_TRUST_BYTES_MAX           (1024 * 1024)
#define TLS_TRUST_CERTS_MAX           256
#define TLS_SUBJECT_NAME_BYTES        257 // with the terminator
#define TLS_SUBJECT_ORGANIZATIONS_MAX 32

// Every certificate of the PEM text is trusted to sign, root or not. NULL and *e (ERR_TLS, ERR_LIMIT) when there is
// none, or one that cannot be read. Release it with X509_STORE_free().
X509_STORE *tls_trust_new(const char *pem, size_t len, struct err *e);

// The names in a certificate's subject, in UTF-8.
struct tls_subject {
	char common_name[TLS_SUBJECT_NAME_BYTES]; // the last one; "" if none
	char organizations[TLS_SUBJECT_ORGANIZATIONS_MAX][TLS_SUBJECT_NAME_BYTES];
	size_t n_organizations;
};

enum tls_peer {
	TLS_PEER_NONE,    // no certificate was shown, or the connection is not one of TLS, or it is gone
	TLS_PEER_REFUSED, // not signed by one of `trust`, not valid now, not for clients, or names past the ceilings;
	                  // *e says why
	TLS_PEER_TRUSTED, // *ret_subject is filled
};
enum tls_peer http_exchange_verify_peer(const struct http_exchange *x, X509_STORE *trust,
                                        struct tls_subject *ret_subject, struct err *e);

#endif
