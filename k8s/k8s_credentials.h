// SPDX-License-Identifier: Apache-2.0
// What one config's requests carry right now: keeps a token file re-read and a credential plugin's answer fresh.
#ifndef GPUSCALE_K8S_K8S_CREDENTIALS_H
#define GPUSCALE_K8S_K8S_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct err;
struct event_base;
struct http_tls;
struct k8s_config;
struct k8s_credentials;

#define K8S_TOKEN_FILE_REREAD_MS 60000 // as client-go; the kubelet rewrites the file long before the token expires
#define K8S_EXEC_REFRESH_MS      60000 // this long before expiry, or 1/5 of the credential's life if that is shorter

// A refresh that k8s_credentials_ensure started has ended; error NULL: ask again, it is ready.
typedef void k8s_credentials_fn(void *arg, const struct err *error);

// config is not copied and must outlive it.
struct k8s_credentials *k8s_credentials_new(struct event_base *loop, const struct clock *clock,
                                            const struct k8s_config *config, k8s_credentials_fn *fn, void *arg,
                                            struct err *e);
// Kills a running plugin; fn is not called. Overwrites what it knew.
void k8s_credentials_free(struct k8s_credentials *c);

enum k8s_ready { K8S_READY_FAILED = -1, K8S_READY_LATER, K8S_READY_NOW };
// NOW: k8s_credentials_get gives usable ones. LATER: fn will be called, from the loop. FAILED: *e says why (an
// unreadable token file; a plugin that cannot be started). A token that was read once outlives a failed re-read.
enum k8s_ready k8s_credentials_ensure(struct k8s_credentials *c, struct err *e);

struct k8s_credentials_view {                            // borrowed until the next call of ensure or the loop
	const char *token, *basic_user, *basic_password; // NULL = none
	const struct http_tls *tls;
	uint64_t generation; // grows with every new credential
};
void k8s_credentials_get(const struct k8s_credentials *c, struct k8s_credentials_view *ret_view);

// The server answered 401 to credentials of that generation. True: the next ensure brings newer ones (or already has);
// false: there is nothing to refresh.
bool k8s_credentials_reject(struct k8s_credentials *c, uint64_t generation);
// How often new credentials were obtained after the first.
uint64_t k8s_credentials_refreshes(const struct k8s_credentials *c);

#endif
