// SPDX-License-Identifier: Apache-2.0
// The spans of many ticks as one request of OTLP in JSON, compressed with gzip (RFC 1952) while it grows: spans repeat
// each other, so that their text is ten times as large. The memory is bounded, and a batch that is full takes no more.
#ifndef GPUSCALE_CONTROLLER_SPAN_BATCH_H
#define GPUSCALE_CONTROLLER_SPAN_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "base/otlp/otlp_json.h"

struct err;

#define SPAN_BATCH_FULL_BYTES     (20 * 1024)  // compressed: a batch of this size takes no more
#define SPAN_BATCH_USUAL_BYTES    (24 * 1024)  // to reserve for a batch that is full
#define SPAN_BATCH_TICK_BYTES_MAX (64 * 1024)  // the spans of one tick, before the compression
#define SPAN_BATCH_BYTES_MAX      (100 * 1024) // of a batch to which such a tick was added that cannot be compressed

struct span_batch {
	struct otlp_envelope envelope;
	z_stream stream; // kept, so that its memory is allocated once
	struct json_writer writer;
	struct buf text; // of the tick that is being added; the caller fills it
	struct buf out;  // compressed so far; empty: no spans
	size_t n_spans;
};

// Prepares an empty batch. The strings of `envelope` are not copied. Returns -1 and *e (ERR_INTERNAL) without memory;
// span_batch_done() is fine then, too.
int span_batch_init(struct span_batch *b, const struct otlp_envelope *envelope, struct err *e);
void span_batch_done(struct span_batch *b);
// True if the batch takes no more until it was taken.
bool span_batch_is_full(const struct span_batch *b);
// Adds the `n` spans in b->text, which have commas between them, and empties b->text. Returns false if the batch is
// full or the text is above its ceiling; the batch is unchanged then.
bool span_batch_add(struct span_batch *b, size_t n);
// Ends the request and exchanges its bytes for those of `body`, which is of the same size. The batch is empty
// afterwards. Returns the number of spans in the request; there must be one.
size_t span_batch_take(struct span_batch *b, struct buf *body);

#endif
