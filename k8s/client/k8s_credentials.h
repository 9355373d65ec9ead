// SPDX-License-Identifier: Apache-2.0
// The current credentials of a config: reads a token file again, and runs a credential plugin again, in time.
#ifndef GPUSCALE_K8S_CLIENT_K8S_CREDENTIALS_H
#define GPUSCALE_K8S_CLIENT_K8S_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct err;
struct event_base;
struct http_request;
struct k8s_config;
struct k8s_credentials;

#define K8S_TOKEN_FILE_REREAD_MS 60000 // as client-go; the kubelet rewrites the file long before the token expires
#define K8S_EXEC_REFRESH_MS      60000 // this long before expiry, or 1/5 of the credential's life if that is shorter

// Called from the loop when a refresh that k8s_credentials_ensure started is complete. error NULL: call
// k8s_credentials_ensure again; the credentials are ready.
typedef void k8s_credentials_fn(void *arg, const struct err *error);

// Creates the credentials of a config, which is not copied and must outlive them. Returns NULL and *e.
struct k8s_credentials *k8s_credentials_new(struct event_base *loop, const struct clock *clock,
                                            const struct k8s_config *config, k8s_credentials_fn *fn, void *arg,
                                            struct err *e);
// Frees the credentials and overwrites them in memory. Kills a running plugin; fn is not called.
void k8s_credentials_free(struct k8s_credentials *c);

enum k8s_ready { K8S_READY_FAILED = -1, K8S_READY_LATER, K8S_READY_NOW };
// Returns K8S_READY_NOW when the credentials are valid; K8S_READY_LATER when fn will be called from
// the loop; K8S_READY_FAILED and *e for a token file that cannot be read or a plugin that cannot be started. When a
// token file cannot be read again, the last token stays in use.
enum k8s_ready k8s_credentials_ensure(struct k8s_credentials *c, struct err *e);

// Sets the token, else user and password, and the TLS settings of a request; they are valid until the next
// k8s_credentials_ensure or until the loop runs. Returns their generation, which grows with every new credential.
uint64_t k8s_credentials_apply(const struct k8s_credentials *c, struct http_request *request);

// Reports that the server replied 401 to credentials of that generation. Returns true when k8s_credentials_ensure
// obtains newer ones (or has already); false when they cannot be refreshed.
bool k8s_credentials_reject(struct k8s_credentials *c, uint64_t generation);

#endif
