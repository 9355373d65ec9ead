// SPDX-License-Identifier: Apache-2.0
// The means that Kubernetes gives a pod to reach the API server: the address in the environment, and a folder with a
// token and the certificate of the authority.
#ifndef GPUSCALE_BASE_HTTP_SERVICE_ACCOUNT_H
#define GPUSCALE_BASE_HTTP_SERVICE_ACCOUNT_H

#include <stddef.h>

struct err;

#define SERVICE_ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_FILE_BYTES_MAX   (64 * 1024)

// Writes the URL of the API server ("https://HOST:PORT") to out[0..size). Returns 0, or -1 and *e: ERR_NOT_FOUND
// outside of a cluster (KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set), ERR_INPUT for an invalid
// address, ERR_LIMIT when the URL does not fit.
int service_account_server(char *out, size_t size, struct err *e);

// Reads the file of a bearer token, without the spaces at its end. The caller frees *ret_token, a single line. Returns
// 0, or -1 and *e: the errors of buf_read_file(), ERR_AUTH when the file is empty or contains spaces, ERR_INTERNAL.
int token_file_read(const char *path, char **ret_token, struct err *e);

#endif
