// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_parse.h"

#include <strings.h>

#include "base/base.h"
#include "base/http/http_text.h"

static int refuse(int status, const char *why, const char **ret_why)
{
	*ret_why = why;
	return status;
}

// "GET /path?query HTTP/1.1", NUL-terminated. Exactly one space between the parts.
static int parse_request_line(char *line, struct http_head *head, int *ret_minor, const char **ret_why)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;
	if (!version)
		return refuse(400, "malformed request line", ret_why);
	*target++ = '\0';
	*version++ = '\0';
	if (!http_is_token(line, strlen(line)))
		return refuse(400, "malformed method", ret_why);
	head->method = line;
	if (strncmp(version, "HTTP/", 5) != 0 || strlen(version) != 8 || version[6] != '.')
		return refuse(400, "malformed HTTP version", ret_why);
	if (version[5] != '1' || (version[7] != '0' && version[7] != '1'))
		return refuse(505, "only HTTP/1.0 and HTTP/1.1 are supported", ret_why);
	*ret_minor = version[7] - '0';

	for (const char *p = target; *p; p++) {
		if (*p <= 0x20 || *p >= 0x7f)
			return refuse(400, "malformed request target", ret_why);
	}
	// Every server must accept the absolute form that proxies use, and its authority takes precedence over the Host
	// header (RFC 9112, 3.2.2); an empty one is invalid (RFC 9110, 4.2.1). It moves one byte to the front to make
	// room for its terminator.
	if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
		char *authority = strstr(target, "://") + 3;
		size_t len = strcspn(authority, "/?");
		target = authority + len;
		if (len == 0 || *target != '/')
			return refuse(400, "malformed request target", ret_why);
		memmove(authority - 1, authority, len);
		authority[len - 1] = '\0';
		head->host = authority - 1;
	}
	if (*target != '/' && strcmp(target, "*") != 0)
		return refuse(400, "malformed request target", ret_why);
	char *query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	head->query = query;
	if (http_percent_decode(target, strlen(target), false) < 0)
		return refuse(400, "malformed percent escape in the path", ret_why);
	head->path = target;
	return 0;
}

static bool list_has(const char *value, const char *word)
{
	size_t n = strlen(word);
	while (*value) {
		value += strspn(value, " \t,");
		size_t len = strcspn(value, " \t,");
		if (len == n && strncasecmp(value, word, n) == 0)
			return true;
		value += len;
	}
	return false;
}

static int parse_content_length(const char *value, uint64_t *ret_length)
{
	uint64_t length = 0;
	size_t n = strspn(value, "0123456789");
	if (n == 0 || n > 15 || value[n] != '\0')
		return -1;
	for (size_t i = 0; i < n; i++)
		length = length * 10 + (uint64_t)(value[i] - '0');
	*ret_length = length;
	return 0;
}

// The connection and the body, as the header fields describe them. Two statements about the body's length are refused:
// that is how requests are smuggled.
static int apply_fields(struct http_head *head, int minor, const char **ret_why)
{
	bool has_length = false, has_host = false;
	head->is_http10 = minor == 0;
	head->keep_alive = minor == 1;
	for (size_t i = 0; i < head->n_fields; i++) {
		const char *name = head->fields[i].name, *value = head->fields[i].value;
		if (strcasecmp(name, "Host") == 0) {
			if (has_host)
				return refuse(400, "more than one Host header", ret_why);
			has_host = true;
			if (!head->host)
				head->host = value;
		} else if (strcasecmp(name, "Connection") == 0) {
			if (list_has(value, "close"))
				head->keep_alive = false;
			else if (minor == 0 && list_has(value, "keep-alive"))
				head->keep_alive = true;
		} else if (strcasecmp(name, "Content-Length") == 0) {
			if (has_length || parse_content_length(value, &head->content_length) < 0)
				return refuse(400, "malformed or repeated Content-Length", ret_why);
			has_length = true;
		} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
			if (head->chunked || minor == 0)
				return refuse(400, "Transfer-Encoding repeated or in HTTP/1.0", ret_why);
			if (strcasecmp(value, "chunked") != 0)
				return refuse(501, "only the chunked Transfer-Encoding is supported", ret_why);
			head->chunked = true;
		} else if (strcasecmp(name, "Expect") == 0) {
			head->expects_continue = minor == 1 && strcasecmp(value, "100-continue") == 0;
		}
	}
	if (minor == 1 && !has_host)
		return refuse(400, "no Host header", ret_why);
	if (head->chunked && has_length)
		return refuse(400, "both Content-Length and Transfer-Encoding", ret_why);
	return 0;
}

static int parse_field(char *line, struct http_head *head, const char **ret_why)
{
	if (head->n_fields == HTTP_PARSE_FIELDS_MAX)
		return refuse(431, "too many headers", ret_why);
	char *colon = strchr(line, ':');
	// A name that contains spaces is not a token; this also rejects folded lines and "Name :".
	if (!colon || !http_is_token(line, (size_t)(colon - line)))
		return refuse(400, "malformed header", ret_why);
	*colon = '\0';
	char *value = colon + 1 + strspn(colon + 1, " \t");
	size_t n = strlen(value);
	while (n && (value[n - 1] == ' ' || value[n - 1] == '\t'))
		value[--n] = '\0';
	if (!http_is_field_value(value, n))
		return refuse(400, "control character in a header", ret_why);
	head->fields[head->n_fields++] = (struct http_field){.name = line, .value = value};
	return 0;
}

int http_head_parse(char *text, size_t len, struct http_head *ret_head, const char **ret_why)
{
	*ret_head = (struct http_head){.method = "", .path = ""};
	*ret_why = "";
	text[len] = '\0';
	if (memchr(text, '\0', len))
		return refuse(400, "NUL byte in the headers", ret_why);
	int minor = 0, line_no = 0, status;
	for (char *line = text, *end; *line; line = end + 2, line_no++) {
		end = strchr(line, '\r');
		if (!end || end[1] != '\n')
			return refuse(400, "a header line must end with CR LF", ret_why);
		*end = '\0';
		if (strchr(line, '\n'))
			return refuse(400, "a header line must end with CR LF", ret_why);
		if (line_no > 0 && line == end)
			break; // the empty line
		status = line_no == 0 ? parse_request_line(line, ret_head, &minor, ret_why)
		                      : parse_field(line, ret_head, ret_why);
		if (status)
			return status;
	}
	if (line_no == 0)
		return refuse(400, "empty request", ret_why);
	return apply_fields(ret_head, minor, ret_why);
}

const char *http_head_field(const struct http_head *head, const char *name)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		if (strcasecmp(head->fields[i].name, name) == 0)
			return head->fields[i].value;
	}
	return NULL;
}

static int end_chunk_line(struct http_chunks *c)
{
	bool is_empty = c->line_bytes == 0;
	c->line_bytes = 0;
	switch (c->state) {
	case HTTP_CHUNK_DATA_END:
		c->state = HTTP_CHUNK_SIZE;
		return 0;
	case HTTP_CHUNK_TRAILER:
		c->state = is_empty ? HTTP_CHUNK_DONE : HTTP_CHUNK_TRAILER;
		return 0;
	default:
		if (c->digits == 0)
			return 400;
		c->digits = 0;
		c->state = c->left ? HTTP_CHUNK_DATA : HTTP_CHUNK_TRAILER;
		return 0;
	}
}

// One byte outside the data.
static int chunk_char(struct http_chunks *c, char ch)
{
	int digit = c->state == HTTP_CHUNK_SIZE ? num_hex_digit(ch) : -1;
	bool is_end = c->after_cr && ch == '\n';
	if ((c->after_cr || ch == '\n') && !is_end)
		return 400;
	c->after_cr = ch == '\r';
	if (is_end)
		return end_chunk_line(c);
	if (c->after_cr)
		return 0;
	if (digit >= 0) {
		c->left = c->left * 16 + (uint64_t)digit;
		return ++c->digits > 8 ? 413 : 0;
	}
	if (c->state == HTTP_CHUNK_EXTENSION || c->state == HTTP_CHUNK_TRAILER) { // read over; nothing here uses them
		c->line_bytes++;
		return ++c->extra_bytes > HTTP_PARSE_TRAILER_BYTES_MAX ? 400 : 0;
	}
	if (c->digits == 0 || (ch != ';' && ch != ' ' && ch != '\t'))
		return 400;
	c->state = HTTP_CHUNK_EXTENSION;
	return 0;
}

int http_chunks_feed(struct http_chunks *c, const char *data, size_t len, size_t *ret_used, struct buf *out)
{
	size_t i = 0;
	int status = 0;
	while (i < len && status == 0 && c->state != HTTP_CHUNK_DONE) {
		if (c->state == HTTP_CHUNK_DATA) {
			size_t n = len - i < c->left ? len - i : (size_t)c->left;
			if (buf_put(out, data + i, n) < 0)
				status = 500; // there is room under the limit, so memory has ended
			i += n;
			c->left -= n;
			if (c->left == 0)
				c->state = HTTP_CHUNK_DATA_END;
		} else {
			status = chunk_char(c, data[i++]);
			if (c->state == HTTP_CHUNK_DATA && c->left > out->max - out->len)
				status = 413; // at the announcement, not after reading up to the limit
		}
	}
	*ret_used = i;
	return status;
}
