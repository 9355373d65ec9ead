// SPDX-License-Identifier: Apache-2.0
// Formats numbers as Kubernetes quantities in canonical form: "700m", "1500", "2k", "-1250u".
// Kubernetes: apimachinery resource.Quantity, CanonicalizeBytes.
#ifndef GPUSCALE_K8S_SERVER_QUANTITY_H
#define GPUSCALE_K8S_SERVER_QUANTITY_H

#include <stddef.h>

struct err;

#define QUANTITY_BYTES 40
// Above it, a reader that counts in thousandths, as the HPA does, overflows 64 bits.
#define QUANTITY_MAX 9e15

// Formats value to out, rounded to a billionth, the smallest unit of a quantity. Returns the length, or -1 and *e:
// ERR_INPUT when value is not finite, ERR_LIMIT beyond +-QUANTITY_MAX.
int quantity_format(char out[QUANTITY_BYTES], double value, struct err *e);

#endif
