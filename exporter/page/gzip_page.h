// SPDX-License-Identifier: Apache-2.0
// A gzip page (RFC 1952) in two parts: a front that is compressed once and shared by many replies, and a tail that is
// new in each reply. Both form one gzip member, whose checksum is combined from the two.
#ifndef GPUSCALE_EXPORTER_PAGE_GZIP_PAGE_H
#define GPUSCALE_EXPORTER_PAGE_GZIP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/buf.h"

struct err;

struct gzip_page {
	z_stream stream; // kept, so that its 64 KiB are allocated once
	bool open;
	struct buf front; // header and compressed front
	uLong crc;
	size_t front_len; // uncompressed
};

// Prepares `g`. `max_bytes` is the limit on the compressed front.
void gzip_page_init(struct gzip_page *g, size_t max_bytes);
void gzip_page_done(struct gzip_page *g);
// Compresses text[0..len) as the front of the following pages.
int gzip_page_set_front(struct gzip_page *g, const char *text, size_t len, struct err *e);
// Appends the front and the compressed tail[0..len) to `out`.
int gzip_page_finish(struct gzip_page *g, const char *tail, size_t len, struct buf *out, struct err *e);

#endif
