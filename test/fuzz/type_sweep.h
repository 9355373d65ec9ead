// SPDX-License-Identifier: Apache-2.0
// Wrong types on purpose: what random bytes rarely make of a whole answer, and a broken or hostile server easily does.
#ifndef GPUSCALE_TEST_TYPE_SWEEP_H
#define GPUSCALE_TEST_TYPE_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#define TYPE_SWEEP_BYTES_MAX  ((size_t)24 * 1024) // larger inputs are not swept
#define TYPE_SWEEP_VALUES_MAX 200                 // values looked at in one input

// Calls feed once for every (value of the input, other value): each JSON value in data[0..len), wherever it begins, and
// the first document of a YAML file, has each of its values in turn replaced by one of every other type, wrapped in a
// list and in a map, and taken from its key. The bytes given to feed are its own only for the call. Returns the number
// of calls: 0 for an input that is neither JSON nor YAML.
size_t type_sweep(const uint8_t *data, size_t len, int (*feed)(const uint8_t *data, size_t len));

#endif
