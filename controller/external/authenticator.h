// SPDX-License-Identifier: Apache-2.0
// Authenticates requests of the external metrics API: the aggregation layer presents a certificate of its own CA and
// names the user in headers; a client presents a certificate of the client CA, or a bearer token, which the API server
// has to review. Kubernetes: apiserver's DelegatingAuthenticatorConfig, in this order.
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_AUTHENTICATOR_H
#define GPUSCALE_CONTROLLER_EXTERNAL_AUTHENTICATOR_H

#include <stddef.h>

struct authenticator;
struct err;
struct http_exchange;
struct k8s_user;

// json: ConfigMap kube-system/extension-apiserver-authentication. Returns NULL and *e when it cannot be used.
struct authenticator *authenticator_new(const char *json, size_t len, struct err *e);
void authenticator_free(struct authenticator *a); // NULL is fine

enum identity {
	IDENTITY_NONE,  // not authenticated; *e: why the credentials were refused, kind ERR_NONE without credentials
	IDENTITY_USER,  // *ret_user is the caller's reference, in system:authenticated
	IDENTITY_TOKEN, // *ret_token lives until the reply
};
// a NULL: no authority is known, so only tokens count. Headers that name a user count only with a certificate of the
// aggregation layer's authority and one of its common names.
enum identity authenticator_identify(const struct authenticator *a, const struct http_exchange *x,
                                     struct k8s_user **ret_user, const char **ret_token, struct err *e);

#endif
