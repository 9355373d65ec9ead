// SPDX-License-Identifier: Apache-2.0
// Whom the external metrics API believes, and so who a request comes from: the aggregation layer, which shows a
// certificate of its own authority and says in headers who the user is; a client certificate; a bearer token, which is
// for somebody else to judge. Kubernetes: apiserver's DelegatingAuthenticatorConfig, in this order.
#ifndef GPUSCALE_CONTROLLER_AUTHORITIES_H
#define GPUSCALE_CONTROLLER_AUTHORITIES_H

#include <stddef.h>

struct authorities;
struct err;
struct http_exchange;
struct k8s_user;

// Of the JSON of ConfigMap kube-system/extension-apiserver-authentication. NULL and *e when it cannot be used.
struct authorities *authorities_new(const char *json, size_t len, struct err *e);
void authorities_free(struct authorities *a); // NULL is fine

enum identity {
	IDENTITY_NONE, // nothing that is believed; *e says what was wrong with what was shown, kind ERR_NONE if nothing
	               // was
	IDENTITY_USER, // *ret_user is the caller's reference, in system:authenticated
	IDENTITY_TOKEN, // *ret_token lives until the reply
};
// a NULL: no authority is known, so only tokens count. Headers that name a user count only with a certificate of the
// aggregation layer's authority and one of its common names.
enum identity authorities_identify(const struct authorities *a, const struct http_exchange *x,
                                   struct k8s_user **ret_user, const char **ret_token, struct err *e);

#endif
