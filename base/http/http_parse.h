// SPDX-License-Identifier: Apache-2.0
// The server's reader of requests: head and chunked body (RFC 9112). Pure functions over bytes, strict where leniency
// lets two readers disagree about where a request ends.
#ifndef GPUSCALE_BASE_HTTP_HTTP_PARSE_H
#define GPUSCALE_BASE_HTTP_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define HTTP_PARSE_FIELDS_MAX        320 // the aggregation layer sends a field for each group of a user
#define HTTP_PARSE_TRAILER_BYTES_MAX (8 * 1024)

struct http_field {
	const char *name, *value; // value without spaces around it
};

struct http_head {
	const char *method;
	const char *path;  // decoded
	const char *query; // as sent, without '?'; NULL if there is none
	const char *host;  // from an absolute target, else from the Host header; NULL if neither is present
	struct http_field fields[HTTP_PARSE_FIELDS_MAX];
	size_t n_fields;
	bool is_http10; // HTTP/1.0: knows no chunked reply
	bool keep_alive;
	bool chunked;
	bool expects_continue;
	uint64_t content_length; // 0 if none
};

// Reads a whole head, text[0..len), ending with an empty line; text[len] must be writable. Changes the text: the result
// points into it. Returns 0, or the status of the response (400, 414, 501, 505) and *ret_why.
int http_head_parse(char *text, size_t len, struct http_head *ret_head, const char **ret_why);

// The value of the first field of that name (any case), or NULL.
const char *http_head_field(const struct http_head *head, const char *name);

enum http_chunk_state {
	HTTP_CHUNK_SIZE,
	HTTP_CHUNK_EXTENSION, // behind the size
	HTTP_CHUNK_DATA,
	HTTP_CHUNK_DATA_END, // the line end behind the data
	HTTP_CHUNK_TRAILER,
	HTTP_CHUNK_DONE
};

struct http_chunks { // zero it to begin
	enum http_chunk_state state;
	bool after_cr;
	uint64_t left;      // bytes of this chunk still to come
	size_t digits;      // digits of its size
	size_t line_bytes;  // bytes of this extension or trailer line
	size_t extra_bytes; // bytes of all extensions and trailers
};

// Decodes the next piece onto out (its max is the limit of the body). *ret_used is how much of data was eaten: less
// than len only at the body's end. Returns 0 while more must come or state is HTTP_CHUNK_DONE, else the status of
// the response (400, 413, 500).
int http_chunks_feed(struct http_chunks *c, const char *data, size_t len, size_t *ret_used, struct buf *out);

#endif
