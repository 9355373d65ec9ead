// SPDX-License-Identifier: Apache-2.0
#include "controller/source/trigger_credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/json/json_span.h"
#include "base/must.h"
#include "controller/status/state_text.h"
#include "k8s/client/object_name.h"
#include "promql/promql_config.h"

#define BIT(parameter)  (1u << (parameter))
#define TEXT_BYTES      (TRIGGER_SECRET_BYTES_MAX / 3 * 4 + 8) // base64
#define PARAMETERS_MAX  64                                     // of one TriggerAuthentication
#define PARAMETER_BYTES 64
#define MODE_SEPARATORS ", \t"

static const char *const parameter_names[TRIGGER_PARAMETER__COUNT] = {
        [TRIGGER_BEARER_TOKEN] = "bearerToken",
        [TRIGGER_USERNAME] = "username",
        [TRIGGER_PASSWORD] = "password",
        [TRIGGER_CA] = "ca",
        [TRIGGER_CERT] = "cert",
        [TRIGGER_KEY] = "key",
        [TRIGGER_HEADER] = "customAuthHeader",
        [TRIGGER_HEADER_VALUE] = "customAuthValue",
};

static const struct {
	const char *name;
	unsigned wanted, optional;
} modes[] = {
        {"bearer", BIT(TRIGGER_BEARER_TOKEN), BIT(TRIGGER_CA)},
        {"basic", BIT(TRIGGER_USERNAME) | BIT(TRIGGER_PASSWORD), BIT(TRIGGER_CA)},
        {"tls", BIT(TRIGGER_CERT) | BIT(TRIGGER_KEY), BIT(TRIGGER_CA)},
        {"custom", BIT(TRIGGER_HEADER) | BIT(TRIGGER_HEADER_VALUE), BIT(TRIGGER_CA)},
};

static int take_mode(struct trigger_credentials *c, const char *text, size_t len, struct err *e)
{
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (strlen(modes[i].name) != len || strncmp(modes[i].name, text, len) != 0)
			continue;
		c->wanted |= modes[i].wanted;
		c->optional |= modes[i].optional;
		return 0;
	}
	return err_set(e, ERR_UNSUPPORTED,
	               "not supported: authModes \"%.*s\"; bearer, basic, tls and custom are supported",
	               (int)(len < 64 ? len : 64), text);
}

int trigger_credentials_init(struct trigger_credentials *c, const char *text, struct err *e)
{
	*c = (struct trigger_credentials){0};
	for (const char *at = text + strspn(text, MODE_SEPARATORS); *at;) {
		size_t len = strcspn(at, MODE_SEPARATORS);
		if (take_mode(c, at, len, e) < 0)
			return -1;
		at += len;
		at += strspn(at, MODE_SEPARATORS);
	}
	return c->wanted ? 0 : take_mode(c, "", 0, e);
}

static void forget(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void trigger_credentials_done(struct trigger_credentials *c)
{
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		forget(&c->values[i].value);
	forget(&c->header);
}

// ---- the TriggerAuthentication ----

static int parameter_of(struct json_span text)
{
	char name[PARAMETER_BYTES];
	if (json_span_text(text, name, sizeof name) < 0)
		return -1;
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		if (strcmp(parameter_names[i], name) == 0)
			return i;
	return -1;
}

static int take_reference(struct trigger_credentials *c, struct json_span ref, struct err *e)
{
	int i = parameter_of(json_span_get(ref, "parameter"));
	if (i < 0 || !((c->wanted | c->optional) & BIT(i)))
		return 0;
	struct trigger_value *v = &c->values[i];
	if (json_span_text(json_span_get(ref, "name"), v->secret, sizeof v->secret) < 0 ||
	    json_span_text(json_span_get(ref, "key"), v->key, sizeof v->key) < 0 || !k8s_name_is_valid(v->secret) ||
	    !v->key[0])
		return err_set(e, ERR_INPUT,
		               "secretTargetRef of the parameter %s needs the name and the key of a Secret",
		               parameter_names[i]);
	return 0;
}

int trigger_credentials_refer(struct trigger_credentials *c, const char *json, size_t len, struct err *e)
{
	const struct json_span object = {json, len}, spec = json_span_get(object, "spec");
	struct json_span_iter it = {.rest = json_span_get(spec, "secretTargetRef")};
	if (!json_span_is_whole(object) || json_span_kind(spec) != '{')
		return err_set(e, ERR_INPUT, "has no spec");
	for (int n = 0; json_span_next(&it); n++) {
		if (n == PARAMETERS_MAX)
			return err_set(e, ERR_LIMIT, "has more than %d parameters", PARAMETERS_MAX);
		if (take_reference(c, it.value, e) < 0)
			return -1;
	}
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		if ((c->wanted & BIT(i)) && !c->values[i].secret[0])
			return err_set(e, ERR_UNSUPPORTED,
			               "has no secretTargetRef of the parameter %s; other ways are not supported",
			               parameter_names[i]);
	return 0;
}

const char *trigger_credentials_missing(const struct trigger_credentials *c)
{
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		if (c->values[i].secret[0] && !c->values[i].value)
			return c->values[i].secret;
	return NULL;
}

// ---- the Secret ----

static char *decode(struct json_span text, char *scratch)
{
	char *value = NULL;
	size_t n = 0;
	if (json_span_text(text, scratch, TEXT_BYTES) > 0) {
		value = must_alloc(calloc(1, TRIGGER_SECRET_BYTES_MAX + 1));
		n = state_text_read(scratch, value, TRIGGER_SECRET_BYTES_MAX);
		while (n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r')) // what editors and `echo` add
			value[--n] = '\0';
	}
	explicit_bzero(scratch, TEXT_BYTES);
	if (value && (n == 0 || strlen(value) != n))
		forget(&value);
	return value;
}

int trigger_credentials_read(struct trigger_credentials *c, const char *name, const char *json, size_t len,
                             struct err *e)
{
	const struct json_span object = {json, len}, data = json_span_get(object, "data");
	char *scratch = must_alloc(malloc(TEXT_BYTES));
	int rc = 0;
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT && rc == 0; i++) {
		struct trigger_value *v = &c->values[i];
		if (v->value || strcmp(v->secret, name) != 0)
			continue;
		v->value = decode(json_span_get(data, v->key), scratch);
		if (!v->value)
			rc = err_set(e, ERR_INPUT, "Secret %s has no text of up to %zu bytes under the key %s", name,
			             TRIGGER_SECRET_BYTES_MAX, v->key);
	}
	free(scratch);
	return rc;
}

// ---- use ----

int trigger_credentials_use(struct trigger_credentials *c, struct promql_credentials *ret, struct err *e)
{
	const struct trigger_value *v = c->values;
	forget(&c->header);
	if (c->wanted & BIT(TRIGGER_HEADER)) {
		size_t size = strlen(v[TRIGGER_HEADER].value) + strlen(v[TRIGGER_HEADER_VALUE].value) + sizeof ": ";
		c->header = must_alloc(malloc(size));
		snprintf(c->header, size, "%s: %s", v[TRIGGER_HEADER].value, v[TRIGGER_HEADER_VALUE].value);
	}
	*ret = (struct promql_credentials){.bearer_token = v[TRIGGER_BEARER_TOKEN].value,
	                                   .basic_user = v[TRIGGER_USERNAME].value,
	                                   .basic_password = v[TRIGGER_PASSWORD].value,
	                                   .header = c->header,
	                                   .ca_pem = v[TRIGGER_CA].value,
	                                   .cert_pem = v[TRIGGER_CERT].value,
	                                   .key_pem = v[TRIGGER_KEY].value};
	if (ret->bearer_token && ret->basic_user)
		return err_set(e, ERR_UNSUPPORTED, "not supported: authModes with both bearer and basic");
	return 0;
}

uint64_t trigger_credentials_print(const struct trigger_credentials *c)
{
	uint64_t h = HASH_START;
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		h = hash_text(h, c->values[i].value ? c->values[i].value : "");
	return h ? h : 1;
}
