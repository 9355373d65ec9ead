// SPDX-License-Identifier: Apache-2.0
// Escapes text for XML, SVG and HTML: as character data and in quoted attribute values.
#ifndef GPUSCALE_BASE_XML_TEXT_H
#define GPUSCALE_BASE_XML_TEXT_H

#include <stddef.h>

struct buf;

// Appends s[0..len). Markup characters become references; a byte that is not valid UTF-8, and a character that XML 1.0
// does not permit (control characters, U+FFFE, U+FFFF), become U+FFFD. Characters that are invisible or reorder the
// text around them (base/text.h) become visible: \u202e.
void xml_put_textn(struct buf *out, const char *s, size_t len);
void xml_put_text(struct buf *out, const char *s);

#endif
