// SPDX-License-Identifier: Apache-2.0
#include "controller/status/decision_history.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"

struct entry {
	char *key;  // namespace/name, the name as of binding_format()
	char *json; // one object
};

struct decision_history {
	struct entry ring[HISTORY_MAX];
	size_t first, n;
};

struct decision_history *decision_history_new(void)
{
	return calloc(1, sizeof(struct decision_history));
}

static void entry_done(struct entry *e)
{
	free(e->key);
	free(e->json);
	*e = (struct entry){0};
}

void decision_history_free(struct decision_history *h)
{
	for (size_t i = 0; h && i < HISTORY_MAX; i++)
		entry_done(&h->ring[i]);
	free(h);
}

void decision_history_add(struct decision_history *h, const char *key, const struct decided *d)
{
	struct buf json;
	buf_init(&json, HISTORY_BYTES_MAX);
	struct json_writer w;
	json_write_init(&w, &json, 0);
	explain_decision_json(&w, d);
	char none[1];
	size_t name_at = strlen(d->policy->namespace_name) + 1;
	size_t name_size = binding_format(none, sizeof none, d->policy->name, key) + 1;
	char *id = malloc(name_at + name_size);
	if (json.failed || !id) { // without memory the history lacks this decision
		buf_done(&json);
		free(id);
		return;
	}
	snprintf(id, name_at + 1, "%s/", d->policy->namespace_name);
	binding_format(id + name_at, name_size, d->policy->name, key);
	size_t at = (h->first + h->n) % HISTORY_MAX;
	if (h->n == HISTORY_MAX) {
		entry_done(&h->ring[h->first]);
		h->first = (h->first + 1) % HISTORY_MAX;
	} else {
		h->n++;
	}
	h->ring[at] = (struct entry){id, json.data};
}

// policy: NAMESPACE/NAME, and perhaps a key.
static bool is_of(const struct entry *e, const char *policy)
{
	size_t n = strlen(policy);
	return strchr(policy, '/') && strncmp(e->key, policy, n) == 0 && (e->key[n] == '\0' || e->key[n] == '/');
}

void decision_history_write(const struct decision_history *h, struct json_writer *w, const char *policy)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct entry *e = &h->ring[(h->first + i) % HISTORY_MAX];
		if (!policy || is_of(e, policy))
			json_write_raw(w, e->json);
	}
}
