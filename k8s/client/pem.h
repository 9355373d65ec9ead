// SPDX-License-Identifier: Apache-2.0
// Decodes the base64 fields of kubeconfig files (certificate-authority-data and others).
#ifndef GPUSCALE_K8S_CLIENT_PEM_H
#define GPUSCALE_K8S_CLIENT_PEM_H

#include <stddef.h>

struct arena;
struct err;

// Decodes base64 text[0..len), skipping blanks and line ends, to NUL-terminated PEM in `a`. Returns 0, or -1 and *e:
// ERR_INPUT when it is not base64 or not PEM, ERR_LIMIT, ERR_INTERNAL. The message never contains the data.
int pem_from_base64(struct arena *a, const char *text, size_t len, const char **ret_pem, struct err *e);

#endif
