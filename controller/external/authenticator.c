// SPDX-License-Identifier: Apache-2.0
// Authenticates requests of the external metrics API by certificate, header or token.
#include "base/base.h"
#include "controller/external/external_metrics_server.h"

#include <openssl/x509.h>
#include <strings.h>

#include "base/http/http_server.h"
#include "base/http/http_server_peer.h"
#include "base/http/http_text.h"
#include "k8s/server/k8s_user.h"
#include "k8s/server/request_header.h"

#define EXTRA_KEY_BYTES_MAX 1024

struct authenticator {
	struct arena arena;
	struct request_header_config config;
	X509_STORE *proxy, *client; // NULL: none
};

static int make_trust(const char *pem, const char *key, X509_STORE **ret_trust, struct err *e)
{
	if (!pem)
		return 0;
	*ret_trust = tls_trust_new(pem, strlen(pem), e);
	return *ret_trust ? 0 : err_wrap(e, "%s", key);
}

struct authenticator *authenticator_new(const char *json, size_t len, struct err *e)
{
	struct authenticator *a = must_alloc(calloc(1, sizeof *a));
	arena_init(&a->arena, REQUEST_HEADER_BYTES_MAX);
	if (request_header_read(json, len, &a->arena, &a->config, e) < 0 ||
	    make_trust(a->config.proxy_ca_pem, "requestheader-client-ca-file", &a->proxy, e) < 0 ||
	    make_trust(a->config.client_ca_pem, "client-ca-file", &a->client, e) < 0) {
		authenticator_free(a);
		return NULL;
	}
	return a;
}

void authenticator_free(struct authenticator *a)
{
	if (!a)
		return;
	X509_STORE_free(a->proxy);
	X509_STORE_free(a->client);
	arena_done(&a->arena);
	free(a);
}

// ---- the aggregation layer ----

// Returns the first header of the list that is not empty. Of a repeated header the first counts.
static const char *first_value(const struct http_exchange *x, const struct request_header_list *headers)
{
	for (size_t i = 0; i < headers->n; i++) {
		const char *value = http_exchange_header(x, headers->items[i]);
		if (value && value[0])
			return value;
	}
	return "";
}

static int add_groups(const struct http_exchange *x, const struct request_header_list *headers, struct k8s_user *u,
                      struct err *e)
{
	const char *name, *value;
	for (size_t k = 0; k < headers->n; k++)
		for (size_t i = 0; http_exchange_header_at(x, i, &name, &value); i++)
			if (value[0] && strcasecmp(name, headers->items[k]) == 0 && k8s_user_add_group(u, value, e) < 0)
				return -1;
	return 0;
}

// The header's name contains the key: in lower case, with percent escapes for characters that a name cannot hold.
static int add_extra(struct k8s_user *u, const char *key, const char *value, struct err *e)
{
	char text[EXTRA_KEY_BYTES_MAX + 1];
	size_t len = strlen(key);
	if (len == 0)
		return 0;
	if (len > EXTRA_KEY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "an extra key of %zu bytes, the ceiling is %d", len, EXTRA_KEY_BYTES_MAX);
	for (size_t i = 0; i <= len; i++)
		text[i] = (char)(key[i] >= 'A' && key[i] <= 'Z' ? key[i] + 32 : key[i]);
	char decoded[EXTRA_KEY_BYTES_MAX + 1];
	memcpy(decoded, text, len + 1);
	bool broken = http_percent_decode(decoded, len, false) < 0;
	return k8s_user_add_extra(u, broken ? text : decoded, value, e);
}

static int add_extras(const struct http_exchange *x, const struct request_header_list *prefixes, struct k8s_user *u,
                      struct err *e)
{
	const char *name, *value;
	for (size_t k = 0; k < prefixes->n; k++) {
		size_t len = strlen(prefixes->items[k]);
		for (size_t i = 0; http_exchange_header_at(x, i, &name, &value); i++)
			if (strncasecmp(name, prefixes->items[k], len) == 0 && add_extra(u, name + len, value, e) < 0)
				return -1;
	}
	return 0;
}

static bool is_allowed_name(const struct request_header_list *names, const char *name)
{
	return names->n == 0 || text_is_one_of(name, (const char *const *)names->items, names->n);
}

// *ret_user NULL: the client is not the aggregation layer, or it names no user. Returns -1 when it names a user that
// exceeds a limit; the request then has no user at all, not the user of the client certificate.
static int from_headers(const struct authenticator *a, const struct http_exchange *x, struct k8s_user **ret_user,
                        struct err *e)
{
	struct tls_subject peer;
	*ret_user = NULL;
	if (!a->proxy || http_exchange_verify_peer(x, a->proxy, &peer, e) != TLS_PEER_TRUSTED)
		return 0;
	if (!is_allowed_name(&a->config.allowed_names, peer.common_name)) {
		err_set(e, ERR_AUTH,
		        "the client's certificate: its common name is not one of requestheader-allowed-names");
		return 0;
	}
	const char *name = first_value(x, &a->config.name_headers);
	if (!name[0])
		return 0;
	struct k8s_user *u = k8s_user_new(name, first_value(x, &a->config.uid_headers), e);
	if (u && add_groups(x, &a->config.group_headers, u, e) == 0 &&
	    add_extras(x, &a->config.extra_prefixes, u, e) == 0) {
		*ret_user = u;
		return 0;
	}
	k8s_user_unref(u);
	return -1;
}

// ---- client certificates ----

static struct k8s_user *from_certificate(const struct authenticator *a, const struct http_exchange *x, struct err *e)
{
	struct tls_subject peer;
	if (!a->client || http_exchange_verify_peer(x, a->client, &peer, e) != TLS_PEER_TRUSTED || !peer.common_name[0])
		return NULL;
	struct k8s_user *u = k8s_user_new(peer.common_name, "", e);
	for (size_t i = 0; u && i < peer.n_organizations; i++) {
		if (k8s_user_add_group(u, peer.organizations[i], e) < 0) {
			k8s_user_unref(u);
			return NULL;
		}
	}
	return u;
}

// ---- all of it ----

static const char *token_of(const struct http_exchange *x)
{
	static const char scheme[] = "Bearer ";
	const char *header = http_exchange_header(x, "Authorization");
	if (!header || strncasecmp(header, scheme, sizeof scheme - 1) != 0)
		return NULL;
	header += sizeof scheme - 1;
	header += strspn(header, " ");
	return http_is_credential(header, strlen(header)) ? header : NULL;
}

enum identity authenticator_identify(const struct authenticator *a, const struct http_exchange *x,
                                     struct k8s_user **ret_user, const char **ret_token, struct err *e)
{
	err_clear(e);
	*ret_user = NULL;
	struct k8s_user *u = NULL;
	if (a && from_headers(a, x, &u, e) < 0)
		return IDENTITY_NONE;
	if (!u && a)
		u = from_certificate(a, x, e);
	if (u && k8s_user_add_group(u, K8S_GROUP_AUTHENTICATED, e) < 0) {
		k8s_user_unref(u);
		return IDENTITY_NONE;
	}
	*ret_user = u;
	if (u)
		return IDENTITY_USER;
	*ret_token = token_of(x);
	return *ret_token ? IDENTITY_TOKEN : IDENTITY_NONE;
}
