// SPDX-License-Identifier: Apache-2.0
#include "test/integration/contract/contract_world.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json/json_read.h"
#include "base/num.h"

// ---- asking ----

void contract_ask_ok(struct contract *c, const char *method, const char *path, const char *type, const char *body,
                     struct outcome *o)
{
	harness_request(&c->h, method, path, type, body, o);
	if (o->is_error)
		fail_msg("%s %s: %s", method, path, o->error.msg);
}

void contract_ask_refused(struct contract *c, const char *method, const char *path, const char *type, const char *body,
                          int status, const char *says)
{
	struct outcome o;
	harness_request(&c->h, method, path, type, body, &o);
	if (!o.is_error || o.error.code != status || !strstr(o.error.msg, says))
		fail_msg("%s %s: wanted %d with \"%s\", got %d %s", method, path, status, says, o.error.code,
		         o.is_error ? o.error.msg : o.body);
}

const char *contract_path_to(char out[PATH_BYTES], const char *collection, const char *name, const char *suffix)
{
	snprintf(out, PATH_BYTES, "%s/%s%s", collection, name, suffix);
	return out;
}

void contract_new_name(struct contract *c, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "contract-%s-%d", c->id, c->n_names++);
}

void contract_create(struct contract *c, const char *collection, const char *name, const char *body, struct outcome *o)
{
	contract_ask_ok(c, "POST", collection, JSON, body, o);
	assert_true(c->n_made < (int)(sizeof c->made / sizeof c->made[0]));
	contract_path_to(c->made[c->n_made++], collection, name, "");
}

void contract_create_gpua(struct contract *c, const char *name, const char *label, struct outcome *o)
{
	char body[BODY_BYTES];
	snprintf(body, sizeof body,
	         "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"%s\","
	         "\"labels\":{\"run\":\"%s\"}},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":"
	         "\"Deployment\",\"name\":\"web\"},\"minReplicas\":1,\"maxReplicas\":4,\"signals\":[{\"name\":\"q\","
	         "\"query\":\"up\",\"target\":{\"type\":\"Value\",\"value\":\"1\"}}]},\"status\":{\"desiredReplicas\":"
	         "9}}",
	         name, label);
	contract_create(c, GPUAS, name, body, o);
}

// ---- reading ----

void contract_metadata_of(const cJSON *object, const char *key, char *out, size_t size)
{
	const cJSON *item = json_get(json_get(object, "metadata"), key);
	if (cJSON_IsNumber(item))
		snprintf(out, size, "%d", item->valueint);
	else
		snprintf(out, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

cJSON *contract_tree_of(const struct outcome *o)
{
	struct err e = {0};
	cJSON *root = json_read(o->body, strlen(o->body), &e);
	if (!root)
		fail_msg("%s in %.300s", e.msg, o->body);
	return root;
}

void contract_version_of(const struct outcome *o, char out[NAME_BYTES])
{
	cJSON *root = contract_tree_of(o);
	contract_metadata_of(root, "resourceVersion", out, NAME_BYTES);
	cJSON_Delete(root);
	assert_true(out[0] != '\0');
}

int contract_generation_of(const struct outcome *o)
{
	int64_t n = -1;
	cJSON *root = contract_tree_of(o);
	json_get_i64(json_get(root, "metadata"), "generation", 0, 1000, &n, NULL);
	cJSON_Delete(root);
	return (int)n;
}

int64_t contract_number_of(const char *version)
{
	int64_t n = 0;
	assert_int_equal(num_parse_i64(version, strlen(version), 0, INT64_MAX, &n, NULL), 0);
	return n;
}

int contract_setup(void **state)
{
	static struct contract contract;
	struct contract *c = &contract;
	if (harness_start_kubeconfig(&c->h, &c->arena, "CONTRACT_KUBECONFIG") < 0)
		return -1;
	snprintf(c->id, sizeof c->id, "%u", (unsigned)getpid());
	*state = c;
	return 0;
}

int contract_teardown(void **state)
{
	struct contract *c = *state;
	struct outcome o;
	for (int i = 0; i < c->n_made; i++)
		harness_request(&c->h, "DELETE", c->made[i], NULL, NULL, &o);
	harness_stop(&c->h);
	arena_done(&c->arena);
	return 0;
}
