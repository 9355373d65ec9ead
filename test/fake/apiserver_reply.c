// SPDX-License-Identifier: Apache-2.0
// Replies of the fake API server, shaped as the real one's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/http_server.h"
#include "test/fake/apiserver_private.h"
#include "test/support/http_stream.h"

void fake_reply_text(struct fake_request *r, int status, const char *content_type, const char *text, size_t len)
{
	if (r->lose_reply)
		http_exchange_abort(r->x);
	else
		http_exchange_reply(r->x, status, content_type, text, len);
}

void fake_reply_json(struct fake_request *r, int status, cJSON *root)
{
	char *text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	if (!text)
		abort(); // a test server has no better answer to the end of memory
	fake_reply_text(r, status, "application/json", text, strlen(text));
	cJSON_free(text);
}

// ---- objects ----

void fake_put_group_version(struct buf *b, const struct fake_kind *kind)
{
	buf_printf(b, "%s%s%s", kind->group, kind->group[0] ? "/" : "", kind->version);
}

void fake_put_object(struct buf *b, const struct fake_kind *kind, const struct fake_text *text)
{
	buf_printf(b, "{\"kind\":\"%s\",\"apiVersion\":\"", kind->kind);
	fake_put_group_version(b, kind);
	buf_puts(b, text->len > 2 ? "\"," : "\"");
	buf_put(b, text->data + 1, text->len - 1);
}

void fake_reply_object(struct fake_request *r, int status, const struct fake_kind *kind, const struct fake_text *text)
{
	struct buf b;
	buf_init(&b, FAKE_REPLY_BYTES_MAX);
	fake_put_object(&b, kind, text);
	fake_reply_text(r, status, "application/json", buf_str(&b), b.len);
	buf_done(&b);
}

// ---- Status ----

cJSON *fake_status(int code, const char *reason, const char *message, const struct fake_path *details)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddStringToObject(root, "kind", "Status");
	cJSON_AddStringToObject(root, "apiVersion", "v1");
	cJSON_AddObjectToObject(root, "metadata");
	cJSON_AddStringToObject(root, "status", "Failure");
	cJSON_AddStringToObject(root, "message", message);
	if (reason[0])
		cJSON_AddStringToObject(root, "reason", reason);
	cJSON *d = cJSON_AddObjectToObject(root, "details");
	if (details) {
		if (details->name[0])
			cJSON_AddStringToObject(d, "name", details->name);
		if (details->group[0])
			cJSON_AddStringToObject(d, "group", details->group);
		cJSON_AddStringToObject(d, "kind", details->plural);
	}
	cJSON_AddNumberToObject(root, "code", code);
	return root;
}

void fake_reply_status(struct fake_request *r, int code, const char *reason, const char *message,
                       const struct fake_path *details)
{
	fake_reply_json(r, code, fake_status(code, reason, message, details));
}

void fake_resource_text(const struct fake_path *p, const char *name, char *out, size_t size)
{
	int n = snprintf(out, size, "%s%s%s", p->plural, p->group[0] ? "." : "", p->group);
	if (name[0] && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, " \"%s\"", name);
}

void fake_reply_not_found(struct fake_request *r)
{
	char resource[700], message[800], plural[300];
	const struct fake_path *p = &r->path;
	struct fake_path named = *p;
	if (strcmp(p->group, "apps") == 0 && p->subresource[0]) {
		// its built-in kinds name the subresource, others do not
		snprintf(plural, sizeof plural, "%s/%s", p->plural, p->subresource);
		named.plural = plural;
	}
	fake_resource_text(&named, p->name, resource, sizeof resource);
	snprintf(message, sizeof message, "%s not found", resource);
	fake_reply_status(r, 404, "NotFound", message, &named);
}

void fake_reply_conflict(struct fake_request *r)
{
	char resource[700], message[900];
	fake_count_conflict(r);
	fake_resource_text(&r->path, r->path.name, resource, sizeof resource);
	snprintf(message, sizeof message,
	         "Operation cannot be fulfilled on %s: the object has been modified; please apply your changes to the "
	         "latest version and try again",
	         resource);
	fake_reply_status(r, 409, "Conflict", message, &r->path);
}

void fake_forbidden_text(const struct fake_request *r, char *out, size_t size)
{
	const struct fake_path *p = &r->path;
	char resource[700], where[300];
	if (!p->plural[0]) {
		snprintf(out, size, "forbidden: User \"viewer\" cannot %s path \"%.300s\"", r->verb,
		         http_exchange_path(r->x));
		return;
	}
	fake_resource_text(p, p->name, resource, sizeof resource);
	if (p->ns[0])
		snprintf(where, sizeof where, "in the namespace \"%.200s\"", p->ns);
	else
		snprintf(where, sizeof where, "at the cluster scope");
	snprintf(out, size,
	         "%s is forbidden: User \"viewer\" cannot %s resource \"%.100s%s%.100s\" in API group \"%.100s\" %s",
	         resource, r->verb, p->plural, p->subresource[0] ? "/" : "", p->subresource, p->group, where);
}

void fake_reply_forbidden(struct fake_request *r)
{
	char message[1500];
	fake_forbidden_text(r, message, sizeof message);
	fake_reply_status(r, 403, "Forbidden", message, &r->path);
}

void fake_reply_no_resource(struct fake_request *r)
{
	fake_reply_status(r, 404, "NotFound", "the server could not find the requested resource", NULL);
}

void fake_reply_no_page(struct fake_request *r)
{
	static const char text[] = "404 page not found\n";
	fake_reply_text(r, 404, "text/plain; charset=utf-8", text, sizeof text - 1);
}

void fake_reply_bad_method(struct fake_request *r)
{
	fake_reply_status(r, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
	                  NULL);
}
