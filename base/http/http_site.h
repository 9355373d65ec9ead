// SPDX-License-Identifier: Apache-2.0
// Decides which browser requests a server on a private address accepts. A web site cannot read from such a server
// directly, but it can point one of its own DNS names at the address (DNS rebinding), and it can send a POST on behalf
// of its visitor (cross-site request forgery). Against DNS rebinding, the server responds only to names that no site
// can own. Against forgery, requests that change something need a header that no form can send, and their Origin and
// Sec-Fetch-Site headers must not name another site.
#ifndef GPUSCALE_BASE_HTTP_HTTP_SITE_H
#define GPUSCALE_BASE_HTTP_HTTP_SITE_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct http_site;

#define HTTP_SITE_NAMES_MAX      64
#define HTTP_SITE_NAME_BYTES_MAX 253
#define HTTP_SITE_HEADER         "X-Gpuscale-Request" // required on requests that change something; any value

// Creates a site that accepts IP addresses, "localhost" and `names`: host names without a port, separated by commas;
// "*.example.com" matches every name below example.com. NULL and "" add none. Returns NULL and *e (ERR_USAGE,
// ERR_LIMIT) for an invalid name. Release it with free().
struct http_site *http_site_new(const char *names, struct err *e);
// Also accepts this machine's host name, which a scraper may use. Ignores a host name that is not a valid DNS name.
void http_site_add_own_name(struct http_site *s);

// Returns whether the site accepts `host`, the value of a Host header with or without a port.
bool http_site_has_host(const struct http_site *s, const char *host);
// Checks a request by its method, its host, and its headers Origin, Sec-Fetch-Site and HTTP_SITE_HEADER; host, origin,
// fetch_site and own_header are NULL when missing. Returns 0 when the request is permitted, else the status of the
// refusal (421, 403), and writes its text to why[0..size).
int http_site_classify(const struct http_site *s, const char *method, const char *host, const char *origin,
                       const char *fetch_site, const char *own_header, char *why, size_t size);

#endif
