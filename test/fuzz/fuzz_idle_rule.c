// SPDX-License-Identifier: Apache-2.0
// Rules about idle GPUs, from files and objects, with the status that an earlier process or any client with the right
// wrote: any bytes are decoded or rejected with a place, and what is accepted keeps within its ceilings and has a next
// step. Each line is also taken for the labels of a series that Prometheus returns.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/idle/idle_rules_private.h"
#include "controller/idle/idle_status_schema.h"
#include "policies/schema/policy_schema_private.h"
#include "promql/promql.h"
#include "test/support/manual_clock.h"

#define ARENA_BYTES_MAX ((size_t)64 << 20)
#define NOW_MS          INT64_C(1767603600000)
#define SERIES_MAX      64

static void check_rule(const struct idle_rule *r)
{
	assert(r->n_namespaces <= IDLE_RULE_NAMESPACES_MAX && strlen(r->source) <= 63);
	for (size_t i = 0; i < r->n_namespaces; i++) {
		assert(policy_schema_is_dns_name(r->namespaces[i], false));
		assert(idle_rule_covers(r, r->namespaces[i]));
	}
	assert(r->after_ms >= 60000 && r->interval_ms >= 10000 && r->grace_ms >= 10000);
	assert(idle_lookback_ms(r) >= 2 * r->after_ms && r->replicas >= 0 && r->max_per_hour >= 1);
	assert(r->action == IDLE_REPORT || r->action == IDLE_SCALE);
	for (int i = 0; i < IDLE_ASK__COUNT; i++) {
		struct buf query;
		buf_init(&query, PROMQL_QUERY_BYTES_MAX);
		struct err e = {0};
		if (idle_query(&query, (enum idle_ask)i, r, i % 2 ? "job=\"a/b\"" : NULL, &e) < 0)
			abort();
		assert(!query.failed && query.len > 0);
		buf_done(&query);
	}
}

static void check_files(const char *text, size_t size, struct schema_errors *errors)
{
	struct arena a;
	struct doc_file doc;
	struct err e;
	arena_init(&a, ARENA_BYTES_MAX);
	if (doc_parse_yaml(&a, "rule.yaml", text, size, &doc, &e) == 0)
		for (size_t i = 0; i < doc.n_roots; i++) {
			struct idle_rule rule = {0};
			schema_errors_init(errors, "rule.yaml");
			int rc = idle_rule_decode(doc.roots[i], &rule, &a, errors);
			assert((rc == 0) == (errors->n + errors->dropped == 0));
			if (rc != 0)
				continue;
			assert(policy_schema_is_dns_name(rule.name, true));
			check_rule(&rule);
		}
	arena_done(&a);
}

// Decodes the spec of an object into *ret_rule, which lives in `memory`. Returns -1 when there is no valid rule.
static int read_object(const char *json, size_t size, struct idle_rule *ret_rule, struct arena *memory,
                       struct schema_errors *errors)
{
	struct schema_errors *unknown = errors + 1;
	struct arena tree;
	struct doc_node *root;
	struct err e;
	int rc = -1;
	arena_init(&tree, ARENA_BYTES_MAX);
	if (doc_from_json(&tree, json, size, &root, &e) == 0 && doc_get(root, "spec")) {
		schema_errors_init(errors, "");
		schema_errors_init(unknown, "");
		rc = idle_rule_decode_spec(doc_get(root, "spec"), ret_rule, memory, errors, unknown);
		assert((rc == 0) == (errors->n + errors->dropped == 0));
	}
	arena_done(&tree);
	return rc;
}

static void check_record(const struct idle_record *r, const struct idle_rule *rule)
{
	assert(r->namespace_name[0] && r->kind[0] && r->name[0] && r->replicas >= 0 && isfinite(r->gpus));
	assert((int)r->state >= 0 && r->state < IDLE_STATE__COUNT);
	assert(r->since_ms <= NOW_MS && r->warned_ms <= NOW_MS && r->changed_ms <= NOW_MS);
	for (int is_up = 0; is_up < 2; is_up++) {
		const struct idle_facts facts = {.exists = true,
		                                 .replicas = is_up ? rule->replicas + 1 : rule->replicas,
		                                 .former = -1,
		                                 .is_recorded = r->is_recorded};
		enum idle_step step = idle_record_next(rule, r, &facts, NOW_MS);
		// A record without an idle workload never leads to a scale.
		assert(r->found || (step != IDLE_STEP_SCALE && step != IDLE_STEP_RECORD));
	}
}

static void check_status(const char *json, size_t size, const struct idle_rule *rule)
{
	struct clock clock;
	struct idle_rules all = {.options = {.clock = &clock}};
	struct idle_entry *e = calloc(1, sizeof *e);
	assert(e);
	clock_init_manual(&clock, NOW_MS);
	e->all = &all;
	idle_status_read(e, json, size);
	assert(e->n <= IDLE_RECORDS_MAX && e->last_scale_ms <= NOW_MS);
	for (size_t i = 0; i < e->n; i++)
		check_record(&e->records[i], rule);
	free(e->records);
	free(e);
}

static void check_answers(char *text, const struct idle_rule *rule)
{
	static const double values[] = {1, 0.5, 0, -1, NAN, 1e300, 1767603000, 1767607200};
	struct obs_series series[SERIES_MAX];
	const struct obs_series alive = {.pod = "", .value = 1, .time_ms = NOW_MS};
	struct idle_workloads w;
	struct err e;
	char *rest = text;
	size_t n = 0;
	for (char *line; n < SERIES_MAX && (line = strsep(&rest, "\n")); n++)
		series[n] = (struct obs_series){line, values[n % (sizeof values / sizeof values[0])], NOW_MS};
	const struct idle_answer answers[IDLE_ASK__COUNT] = {
	        [IDLE_ASK_ALIVE] = {.state = OBS_OK, .series = &alive, .n_series = 1},
	        [IDLE_ASK_COUNT] = {.state = OBS_OK, .series = series, .n_series = n},
	        [IDLE_ASK_BUSY] = {.state = OBS_OK, .series = series, .n_series = n},
	        [IDLE_ASK_SEEN] = {.state = OBS_OK, .series = series, .n_series = n},
	};
	int rc = idle_workloads_read(&w, answers, rule, NULL, NOW_MS, &e);
	assert(rc == 0 || e.kind == ERR_PROTOCOL);
	for (size_t i = 0; rc == 0 && i < w.n; i++) {
		const struct idle_workload *one = &w.items[i];
		assert(one->namespace_name[0] && one->kind[0] && one->name && one->n_pods >= 1 && one->gpus > 0);
		assert(idle_rule_covers(rule, one->namespace_name));
		assert(one->since_ms >= NOW_MS - idle_lookback_ms(rule) && one->since_ms <= NOW_MS);
	}
	idle_workloads_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct idle_rule rule = {.after_ms = 3600000, .interval_ms = 300000, .grace_ms = 3600000, .max_per_hour = 4};
	struct idle_rule of_object = {0};
	struct schema_errors *errors = malloc(2 * sizeof *errors);
	struct arena memory;
	char *text = malloc(size + 1);
	assert(errors && text);
	memcpy(text, data, size);
	text[size] = '\0';
	arena_init(&memory, ARENA_BYTES_MAX);
	check_files(text, size, errors);
	if (read_object(text, size, &of_object, &memory, errors) == 0) {
		check_rule(&of_object);
		rule = of_object;
	}
	rule.action = IDLE_SCALE;
	check_status(text, size, &rule);
	check_answers(text, &rule);
	arena_done(&memory);
	free(text);
	free(errors);
	return 0;
}
