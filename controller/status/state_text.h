// SPDX-License-Identifier: Apache-2.0
// Bytes as text in a JSON document: base64 (RFC 4648, section 4).
#ifndef GPUSCALE_CONTROLLER_STATUS_STATE_TEXT_H
#define GPUSCALE_CONTROLLER_STATUS_STATE_TEXT_H

#include <stddef.h>

// Returns the size of the text of n bytes, with its terminator.
#define STATE_TEXT_BYTES(n) (((n) + 2) / 3 * 4 + 1)

// Writes the text of bytes[0..n) to ret_text, which has room for STATE_TEXT_BYTES(n).
void state_text_write(const void *bytes, size_t n, char *ret_text);
// Decodes `text` to at most `max` bytes at ret_bytes, and returns their number; 0 when it is not base64 or too long.
size_t state_text_read(const char *text, void *ret_bytes, size_t max);

#endif
