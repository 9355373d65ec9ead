// SPDX-License-Identifier: Apache-2.0
// A TriggerAuthentication and a Secret of any bytes: the first line is the modes, then the one, a line "--", the other.
// Values stay below their limit, and what is used is complete.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "controller/source/trigger_auth.h"
#include "promql/promql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

static void use(struct trigger_credentials *c)
{
	struct promql_credentials used;
	struct err e;
	for (int i = 0; i < TRIGGER_PARAMETER__COUNT; i++)
		require(!c->values[i].value ||
		                (c->values[i].value[0] && strlen(c->values[i].value) <= TRIGGER_SECRET_BYTES_MAX),
		        "a value is text below its limit");
	require(trigger_credentials_print(c) != 0, "a fingerprint is not 0");
	if (trigger_credentials_use(c, &used, &e) < 0)
		return;
	require(used.bearer_token || used.basic_user || used.header || used.cert_pem, "something is used");
	require(!used.basic_user == !used.basic_password && !used.cert_pem == !used.key_pem, "it is complete");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	require(text != NULL, "memory");
	memcpy(text, data, size);
	text[size] = '\0';
	char *json = strchr(text, '\n');
	struct trigger_credentials c;
	struct err e;
	if (json)
		*json++ = '\0';
	int rc = trigger_credentials_init(&c, text, &e);
	char *secret = json ? strstr(json, "\n--\n") : NULL;
	size_t end = (size_t)(text + size - (json ? json : text));
	if (rc == 0 && json)
		rc = trigger_credentials_refer(&c, json, secret ? (size_t)(secret - json) : end, &e);
	for (int i = 0; rc == 0 && secret && i < TRIGGER_PARAMETER__COUNT && trigger_credentials_missing(&c); i++) {
		const char *at = secret + strlen("\n--\n");
		rc = trigger_credentials_read(&c, trigger_credentials_missing(&c), at, (size_t)(text + size - at), &e);
	}
	if (rc == 0 && json && !trigger_credentials_missing(&c))
		use(&c);
	trigger_credentials_done(&c);
	free(text);
	return 0;
}
