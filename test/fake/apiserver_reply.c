// SPDX-License-Identifier: Apache-2.0
// Replies of the fake API server, shaped as the real one's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http_server.h"
#include "test/fake/apiserver_private.h"

void fake_reply_json(struct http_exchange *x, int status, cJSON *root)
{
	char *text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	if (text)
		http_exchange_reply(x, status, "application/json", text, strlen(text));
	else
		http_exchange_reply_text(x, 500, "out of memory\n");
	cJSON_free(text);
}

void fake_reply_status(struct http_exchange *x, int code, const char *reason, const char *message,
                       const struct fake_path *details)
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
	fake_reply_json(x, code, root);
}

// deployments.apps "web", pods "x"
static void write_resource(char *out, size_t size, const struct fake_path *p)
{
	snprintf(out, size, "%s%s%s \"%s\"", p->plural, p->group[0] ? "." : "", p->group, p->name);
}

void fake_reply_not_found(struct http_exchange *x, const struct fake_path *p)
{
	char resource[700], message[800];
	struct fake_path named = *p;
	char plural[300];
	if (strcmp(p->group, "apps") == 0 &&
	    p->subresource[0]) { // its built-in kinds name the subresource, others do not
		snprintf(plural, sizeof plural, "%s/%s", p->plural, p->subresource);
		named.plural = plural;
	}
	write_resource(resource, sizeof resource, &named);
	snprintf(message, sizeof message, "%s not found", resource);
	fake_reply_status(x, 404, "NotFound", message, &named);
}

void fake_reply_conflict(struct http_exchange *x, const struct fake_path *p)
{
	char resource[700], message[900];
	write_resource(resource, sizeof resource, p);
	snprintf(message, sizeof message,
	         "Operation cannot be fulfilled on %s: the object has been modified; please apply your changes to the "
	         "latest "
	         "version and try again",
	         resource);
	fake_reply_status(x, 409, "Conflict", message, p);
}

void fake_reply_no_resource(struct http_exchange *x)
{
	fake_reply_status(x, 404, "NotFound", "the server could not find the requested resource", NULL);
}

void fake_reply_bad_method(struct http_exchange *x)
{
	fake_reply_status(x, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
	                  NULL);
}
