// SPDX-License-Identifier: Apache-2.0
// TLS of the HTTP server.
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "base/file_open.h"
#include "base/http/http_server_internal.h"

#define PEM_BYTES_MAX (1024 * 1024)

static int tls_failed(SSL_CTX *ctx, const char *what, const char *file, struct err *e)
{
	char reason[160];
	unsigned long code = ERR_peek_error();
	ERR_error_string_n(code, reason, sizeof reason);
	ERR_clear_error();
	SSL_CTX_free(ctx);
	return err_set(e, ERR_TLS, "TLS server: %s %s: %s", what, file, code ? reason : "unusable");
}

static int accept_any(int ok, X509_STORE_CTX *store)
{
	return 1;
}

static void ask_client(SSL_CTX *ctx, enum http_client_auth auth)
{
	static const struct {
		int mode;
		SSL_verify_cb verify;
	} kinds[] = {
	        [HTTP_CLIENT_AUTH_NONE] = {SSL_VERIFY_NONE, NULL},
	        [HTTP_CLIENT_AUTH_REQUEST] = {SSL_VERIFY_PEER, accept_any},
	        [HTTP_CLIENT_AUTH_REQUIRE_ANY] = {SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, accept_any},
	        [HTTP_CLIENT_AUTH_VERIFY_IF_GIVEN] = {SSL_VERIFY_PEER, NULL},
	        [HTTP_CLIENT_AUTH_REQUIRE] = {SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL},
	};
	_Static_assert(sizeof kinds / sizeof kinds[0] == HTTP_CLIENT_AUTH__COUNT, "one row per kind");
	SSL_CTX_set_verify(ctx, kinds[auth].mode, kinds[auth].verify);
	if (kinds[auth].mode == SSL_VERIFY_NONE)
		return;
	// Without it a resumed session from elsewhere would be refused, and one from here not re-checked.
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(ctx, 0);
}

// An encrypted key cannot be used: without this OpenSSL would ask for its password on the terminal.
static int no_password(char *buf, int size, int is_write, void *arg)
{
	return 0;
}

static BIO *bio_of(const char *text)
{
	size_t len = strlen(text);
	return len <= PEM_BYTES_MAX ? BIO_new_mem_buf(text, (int)len) : NULL;
}

static int use_cert_pem(SSL_CTX *ctx, const char *pem)
{
	BIO *bio = bio_of(pem);
	X509 *cert = bio ? PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL) : NULL;
	int ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1;
	X509_free(cert);
	while (ok && (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)))
		if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
			X509_free(cert);
			ok = 0;
		}
	BIO_free(bio);
	if (ok)
		ERR_clear_error(); // of the end of the text
	return ok;
}

static int use_key_pem(SSL_CTX *ctx, const char *pem)
{
	BIO *bio = bio_of(pem);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
	int ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;
	EVP_PKEY_free(key);
	BIO_free(bio);
	return ok;
}

// OpenSSL opens the files itself, and would block on a named pipe without a writer.
static int check_files(const struct http_server_options *o, struct err *e)
{
	const char *const files[] = {o->tls_cert_pem ? NULL : o->tls_cert_file, o->tls_key_pem ? NULL : o->tls_key_file,
	                             o->tls_client_ca_file};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (files[i] && file_check_regular(files[i], e) < 0)
			return err_wrap(e, "TLS server");
	return 0;
}

// The certificate with its chain and the key, from the text where there is one, else from the files.
static int use_pair(SSL_CTX *ctx, const struct http_server_options *o, struct err *e)
{
	const char *cert = o->tls_cert_pem ? "(in memory)" : o->tls_cert_file;
	const char *key = o->tls_key_pem ? "(in memory)" : o->tls_key_file;
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	if ((o->tls_cert_pem ? use_cert_pem(ctx, o->tls_cert_pem)
	                     : SSL_CTX_use_certificate_chain_file(ctx, o->tls_cert_file)) != 1)
		return tls_failed(ctx, "cannot use the certificate file", cert, e);
	if ((o->tls_key_pem ? use_key_pem(ctx, o->tls_key_pem)
	                    : SSL_CTX_use_PrivateKey_file(ctx, o->tls_key_file, SSL_FILETYPE_PEM)) != 1)
		return tls_failed(ctx, "cannot use the key file", key, e);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return tls_failed(ctx, "the certificate does not belong to the key file", key, e);
	return 0;
}

int http_server_tls_new(const struct http_server_options *options, SSL_CTX **ret_ctx, struct err *e)
{
	const char *ca = options->tls_client_ca_file;
	bool has_cert = options->tls_cert_file || options->tls_cert_pem;
	bool has_key = options->tls_key_file || options->tls_key_pem;
	*ret_ctx = NULL;
	if (!has_cert && !has_key && !ca)
		return 0;
	if (!has_cert || !has_key)
		return err_set(e, ERR_USAGE, "TLS server: a certificate file and its key file are both needed");
	ERR_clear_error();
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx)
		return err_set(e, ERR_INTERNAL, "TLS server: out of memory");
	SSL_CTX_set_min_proto_version(ctx, options->tls_min_minor == 3 ? TLS1_3_VERSION : TLS1_2_VERSION);
	SSL_CTX_set_max_proto_version(ctx, options->tls_max_minor == 2 ? TLS1_2_VERSION : TLS1_3_VERSION);
	// A client that closes without saying so is an ordinary end here: bodies have a stated length.
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	if (check_files(options, e) < 0) {
		SSL_CTX_free(ctx);
		return -1;
	}
	if (use_pair(ctx, options, e) < 0)
		return -1;
	if (ca) {
		STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca);
		if (!names || SSL_CTX_load_verify_locations(ctx, ca, NULL) != 1) {
			sk_X509_NAME_pop_free(names, X509_NAME_free);
			return tls_failed(ctx, "cannot use the client CA file", ca, e);
		}
		SSL_CTX_set_client_CA_list(ctx, names);
	}
	enum http_client_auth auth = options->tls_client_auth;
	if (auth == HTTP_CLIENT_AUTH_DEFAULT)
		auth = ca ? HTTP_CLIENT_AUTH_REQUIRE : HTTP_CLIENT_AUTH_NONE;
	ask_client(ctx, auth);
	*ret_ctx = ctx;
	return 0;
}

int http_server_set_tls(struct http_server *s, const struct http_server_options *options, struct err *e)
{
	SSL_CTX *ctx;
	if (http_server_tls_new(options, &ctx, e) < 0)
		return -1;
	SSL_CTX_free(s->tls); // connections hold it on their own
	s->tls = ctx;
	return 0;
}

bool http_server_tls_is_on(struct bufferevent *bev)
{
	return bufferevent_openssl_get_ssl(bev) != NULL;
}

struct bufferevent *http_server_tls_accept(SSL_CTX *ctx, struct event_base *loop, evutil_socket_t fd)
{
	SSL *ssl = SSL_new(ctx);
	if (!ssl)
		return NULL;
	struct bufferevent *bev =
	        bufferevent_openssl_socket_new(loop, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!bev) {
		SSL_free(ssl);
		return NULL;
	}
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

void http_server_tls_goodbye(struct bufferevent *bev)
{
	SSL *ssl = bufferevent_openssl_get_ssl(bev);
	if (!ssl || !SSL_is_init_finished(ssl))
		return;
	SSL_shutdown(ssl); // sends close_notify if the socket takes it; we do not wait for the answer
	ERR_clear_error();
}
