// SPDX-License-Identifier: Apache-2.0
// Numbers as Kubernetes quantities, in their canonical form: "700m", "1500", "2k", "-1250u".
// Kubernetes: apimachinery resource.Quantity, CanonicalizeBytes.
#ifndef GPUSCALE_K8S_QUANTITY_H
#define GPUSCALE_K8S_QUANTITY_H

#include <stddef.h>

struct err;

#define QUANTITY_BYTES 40
// Beyond it a reader that counts in thousandths, as the HPA does, overflows its 64 bits.
#define QUANTITY_MAX 9e15

// value to the nearest billionth, the finest a quantity can say. Returns the length; -1 and *e (ERR_INPUT) for what is
// not a finite number, (ERR_LIMIT) beyond +-QUANTITY_MAX.
int quantity_format(char out[QUANTITY_BYTES], double value, struct err *e);

#endif
