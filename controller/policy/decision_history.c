// SPDX-License-Identifier: Apache-2.0
// The last decisions that differed from the one before, rendered once, for /debug/decisions. A ring with a limit on
// entries and bytes.
#include "base/base.h"
#include "controller/policy/policy_report.h"

#include "base/json/json_write.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"

struct entry {
	char *key;  // "NAMESPACE/NAME", or "NAMESPACE/NAME/KEY" for one of several bindings
	char *json; // one object
};

struct decision_history {
	struct entry ring[HISTORY_MAX];
	size_t first, n;
};

struct decision_history *decision_history_new(void)
{
	return must_alloc(calloc(1, sizeof(struct decision_history)));
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
	struct buf id, json;
	struct json_writer w;
	buf_init(&id, HISTORY_BYTES_MAX);
	buf_init(&json, HISTORY_BYTES_MAX);
	json_write_init(&w, &json, 0);
	explain_decision_json(&w, d);
	buf_printf(&id, "%s/%s%s%s", d->policy->namespace_name, d->policy->name, key ? "/" : "", key ? key : "");
	if (id.failed || json.failed) { // without memory the history lacks this decision
		buf_done(&id);
		buf_done(&json);
		return;
	}
	size_t at = (h->first + h->n) % HISTORY_MAX;
	if (h->n == HISTORY_MAX) {
		entry_done(&h->ring[h->first]);
		h->first = (h->first + 1) % HISTORY_MAX;
	} else {
		h->n++;
	}
	h->ring[at] = (struct entry){id.data, json.data};
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
