// SPDX-License-Identifier: Apache-2.0
// A page in gzip (RFC 1952) made of two parts: a front that many replies share, compressed once, and a tail that is new
// each time. One gzip member, whose checksum is combined from both.
#ifndef GPUSCALE_EXPORTER_GZIP_PAGE_H
#define GPUSCALE_EXPORTER_GZIP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/buf.h"

struct err;

struct gzip_page {
	z_stream stream; // kept: its 64 KiB are set up once
	bool open;
	struct buf front; // header and compressed front
	uLong crc;
	size_t front_len; // uncompressed
};

// max_bytes: ceiling on the compressed front.
void gzip_page_init(struct gzip_page *g, size_t max_bytes);
void gzip_page_done(struct gzip_page *g);
// Compresses text[0..len) as the front of the pages to come.
int gzip_page_set_front(struct gzip_page *g, const char *text, size_t len, struct err *e);
// Appends the page: the front, then tail[0..len).
int gzip_page_finish(struct gzip_page *g, const char *tail, size_t len, struct buf *out, struct err *e);

#endif
