// SPDX-License-Identifier: Apache-2.0
// The base64 fields of kubeconfig files (certificate-authority-data and the like).
#ifndef GPUSCALE_K8S_PEM_H
#define GPUSCALE_K8S_PEM_H

#include <stddef.h>

struct arena;
struct err;

// Base64 text (blanks and line ends inside are skipped) to NUL-terminated PEM in `a`. ERR_INPUT when it is no base64,
// or when what it holds is no PEM; the message never shows the data.
int pem_from_base64(struct arena *a, const char *text, size_t len, const char **ret_pem, struct err *e);

#endif
