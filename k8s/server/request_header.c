// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/request_header.h"

#include <string.h>

#include "base/err.h"
#include "base/http/http_text.h"
#include "base/json/json_read.h"

static int keep(struct arena *arena, const char *text, const char **ret_copy, struct err *e)
{
	*ret_copy = arena_strdup(arena, text);
	return *ret_copy ? 0 : err_set(e, ERR_LIMIT, "more than %d bytes", REQUEST_HEADER_BYTES_MAX);
}

// Returns the string of a key of `data`; "" when it is absent; NULL and *e when it is not a string. An empty list of
// allowed names permits any name, so an invalid value must not be mistaken for one.
static const char *text_of(const cJSON *data, const char *key, struct err *e)
{
	const cJSON *item = json_get(data, key);
	if (!item)
		return "";
	if (cJSON_IsString(item))
		return item->valuestring;
	err_set(e, ERR_PROTOCOL, "%s is not a string", key);
	return NULL;
}

// Copies the string of a key of `data`; absent or blank: *ret_text stays NULL.
static int read_text(const cJSON *data, const char *key, struct arena *arena, const char **ret_text, struct err *e)
{
	const char *text = text_of(data, key, e);
	*ret_text = NULL;
	if (!text)
		return -1;
	if (!text[strspn(text, " \t\r\n")])
		return 0;
	return keep(arena, text, ret_text, e);
}

static int add_item(struct request_header_list *l, const cJSON *item, bool is_header, struct arena *arena,
                    struct err *e)
{
	const char *text = cJSON_IsString(item) ? item->valuestring : "";
	if (!text[0] || (is_header && !http_is_token(text, strlen(text))))
		return err_set(e, ERR_INPUT, "item %zu is not a %s", l->n, is_header ? "header's name" : "name");
	if (l->n == REQUEST_HEADER_NAMES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d items", REQUEST_HEADER_NAMES_MAX);
	return keep(arena, text, &l->items[l->n++], e);
}

// Parses a key whose string is a JSON array of strings; absent: an empty list.
static int read_list(const cJSON *data, const char *key, bool is_header, struct arena *arena,
                     struct request_header_list *ret_list, struct err *e)
{
	const char *text = text_of(data, key, e);
	ret_list->n = 0;
	if (!text)
		return -1;
	if (!text[0])
		return 0;
	cJSON *list = json_read(text, strlen(text), e);
	if (!list)
		return err_wrap(e, "%s", key);
	int rc = cJSON_IsArray(list) || cJSON_IsNull(list) ? 0 : err_set(e, ERR_INPUT, "not a list");
	const cJSON *item;
	if (rc == 0)
		cJSON_ArrayForEach(item, list)
		{
			rc = add_item(ret_list, item, is_header, arena, e);
			if (rc < 0)
				break;
		}
	cJSON_Delete(list);
	return rc < 0 ? err_wrap(e, "%s", key) : 0;
}

static int read_config(const cJSON *root, struct arena *arena, struct request_header_config *c, struct err *e)
{
	const cJSON *metadata = json_get(root, "metadata"), *data = json_get(root, "data");
	if (strcmp(json_get_str(metadata, "name", ""), REQUEST_HEADER_CONFIGMAP) != 0 ||
	    strcmp(json_get_str(metadata, "namespace", ""), REQUEST_HEADER_NAMESPACE) != 0)
		return err_set(e, ERR_PROTOCOL, "the reply is a different object");
	if (!json_may_be(data, cJSON_IsObject))
		return err_set(e, ERR_PROTOCOL, "data is not a map");
	if (read_text(data, "client-ca-file", arena, &c->client_ca_pem, e) < 0 ||
	    read_text(data, "requestheader-client-ca-file", arena, &c->proxy_ca_pem, e) < 0 ||
	    read_list(data, "requestheader-allowed-names", false, arena, &c->allowed_names, e) < 0 ||
	    read_list(data, "requestheader-username-headers", true, arena, &c->name_headers, e) < 0 ||
	    read_list(data, "requestheader-uid-headers", true, arena, &c->uid_headers, e) < 0 ||
	    read_list(data, "requestheader-group-headers", true, arena, &c->group_headers, e) < 0 ||
	    read_list(data, "requestheader-extra-headers-prefix", true, arena, &c->extra_prefixes, e) < 0)
		return -1;
	return 0;
}

int request_header_read(const char *text, size_t len, struct arena *arena, struct request_header_config *ret_config,
                        struct err *e)
{
	memset(ret_config, 0, sizeof *ret_config);
	cJSON *root = json_read(text, len, e);
	int rc = root ? read_config(root, arena, ret_config, e) : -1;
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "ConfigMap %s/%s", REQUEST_HEADER_NAMESPACE, REQUEST_HEADER_CONFIGMAP) : 0;
}
