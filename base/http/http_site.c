// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_site.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"

#define NAME_BYTES (HTTP_SITE_NAME_BYTES_MAX + 1)

struct http_site {
	char names[HTTP_SITE_NAMES_MAX][NAME_BYTES]; // "name", or ".example.com" for every name below it
	size_t n;
};

// ---- names ----

// Labels of 1 to 63 letters, digits, '-' and '_', separated by dots.
static bool is_name(const char *s, size_t len)
{
	size_t label = 0;
	for (size_t i = 0; i < len; i++) {
		bool is_valid = isalnum((unsigned char)s[i]) || s[i] == '-' || s[i] == '_';
		if (s[i] == '.' ? label == 0 : !is_valid || label == 63)
			return false;
		label = s[i] == '.' ? 0 : label + 1;
	}
	return label > 0 && len <= HTTP_SITE_NAME_BYTES_MAX;
}

static int add(struct http_site *s, const char *text, size_t len, struct err *e)
{
	char shown[2 * NAME_BYTES];
	size_t star = len > 2 && text[0] == '*' && text[1] == '.';
	if (!is_name(text + 2 * star, len - 2 * star)) {
		text_show(shown, sizeof shown, text, len);
		return err_set(e, ERR_USAGE,
		               "expected a host name without a port such as gpuscale.example.com or *.example.com, "
		               "got \"%s\"",
		               shown);
	}
	if (s->n == HTTP_SITE_NAMES_MAX)
		return err_set(e, ERR_LIMIT, "expected at most %d host names", HTTP_SITE_NAMES_MAX);
	memcpy(s->names[s->n], text + star, len - star);
	s->names[s->n++][len - star] = '\0';
	return 0;
}

struct http_site *http_site_new(const char *names, struct err *e)
{
	struct http_site *s = err_calloc(sizeof *s, e);
	for (const char *p = s ? names : NULL; p && *p;) {
		size_t len = strcspn(p, ",");
		if (len > 0 && add(s, p, len, e) < 0) {
			free(s);
			return NULL;
		}
		p += len + (p[len] == ',');
	}
	return s;
}

void http_site_add_own_name(struct http_site *s)
{
	char name[NAME_BYTES];
	struct err ignored;
	if (gethostname(name, sizeof name) < 0)
		return;
	name[sizeof name - 1] = '\0';
	add(s, name, strlen(name), &ignored);
}

// ---- hosts ----

static bool is_ip_address(const char *host, size_t len)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr ignored;
	bool is_v6 = len > 2 && host[0] == '[' && host[len - 1] == ']';
	if (is_v6)
		host++, len -= 2;
	if (len >= sizeof text)
		return false;
	memcpy(text, host, len);
	text[len] = '\0';
	return inet_pton(is_v6 ? AF_INET6 : AF_INET, text, &ignored) == 1;
}

static bool is_listed(const char *listed, const char *host, size_t len)
{
	size_t n = strlen(listed);
	if (listed[0] == '.')
		return len > n && strncasecmp(host + len - n, listed, n) == 0;
	return len == n && strncasecmp(host, listed, n) == 0;
}

bool http_site_has_host(const struct http_site *s, const char *host)
{
	const char *colon = strrchr(host, ':'), *bracket = strrchr(host, ']');
	if (colon && bracket && colon < bracket)
		colon = NULL;
	size_t len = colon ? (size_t)(colon - host) : strlen(host);
	if (colon && strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return false;
	if (is_ip_address(host, len))
		return true;
	if (len > 0 && host[len - 1] == '.') // a name may end with the dot of the root
		len--;
	if (!is_name(host, len))
		return false;
	if (is_listed("localhost", host, len))
		return true;
	for (size_t i = 0; i < s->n; i++)
		if (is_listed(s->names[i], host, len))
			return true;
	return false;
}

// ---- requests ----

static bool is_safe(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0;
}

// Returns whether the origin is the server itself, such as "https://host:8080". "null", which sandboxed pages and
// redirects send, is not.
static bool is_own_origin(const char *origin, const char *host)
{
	const char *authority = strstr(origin, "://");
	return authority && host && strcasecmp(authority + 3, host) == 0;
}

int http_site_classify(const struct http_site *s, const char *method, const char *host, const char *origin,
                       const char *fetch_site, const char *own_header, char *why, size_t size)
{
	char shown[128];
	// A request without a Host header does not come from a browser (HTTP/1.0).
	if (host && !http_site_has_host(s, host)) {
		text_show(shown, sizeof shown, host, strlen(host));
		snprintf(
		        why, size,
		        "expected an IP address, localhost or a name of --allowed-hosts in the Host header, got \"%s\"",
		        shown);
		return 421;
	}
	if (is_safe(method))
		return 0;
	if (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0) {
		snprintf(why, size, "a request of another site cannot change anything here (Sec-Fetch-Site)");
		return 403;
	}
	if (origin && !is_own_origin(origin, host)) {
		snprintf(why, size, "a request of another site cannot change anything here (Origin)");
		return 403;
	}
	if (!own_header || !own_header[0]) {
		snprintf(why, size,
		         "expected the header " HTTP_SITE_HEADER ", such as: curl -H '" HTTP_SITE_HEADER
		         ": yes' -X %.16s ..",
		         method);
		return 403;
	}
	return 0;
}
