// SPDX-License-Identifier: Apache-2.0
// Arbitrary documents as a policy. Beyond "does not crash": what is accepted keeps the rules of the table, and the
// engine can decide with it.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/observation.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define ARENA_BYTES_MAX ((size_t)16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_policy(const struct policy_document *document)
{
	const struct policy *p = &document->policy;
	const struct scale_target *t = &document->target;
	require(p->name && p->namespace_name && t->name && t->kind && t->api_version);
	require(p->min_replicas >= (p->idle.set ? 0 : 1) && p->idle.activation.index < p->n_signals &&
	        p->min_replicas <= p->max_replicas && p->max_replicas <= POLICY_REPLICAS_MAX);
	require(p->replica_multiple >= 1 && p->interval_ms >= 100);
	require(p->n_signals >= 1 && p->n_signals <= POLICY_SIGNALS_MAX);
	require(p->scale_up.n_rates >= 1 && p->scale_down.n_rates >= 1);
	for (size_t i = 0; i < p->n_signals; i++) {
		const struct policy_signal *s = &p->signals[i];
		require(s->name && (!s->query) == (p->formulas >> i & 1) &&
		        s->target.set + s->watermarks.set ==
		                !(p->inputs >> i & 1 && !s->target.set && !s->watermarks.set) &&
		        s->stale_after_ms >= 1000);
		require(!s->target.set || s->target.type == TARGET_REPLICAS || s->target.value > 0);
		require(!s->watermarks.set || (s->watermarks.low >= 0 && s->watermarks.low < s->watermarks.high));
	}
}

// One tick of a fresh engine as of now_ms, with the same value from each signal.
static void check_decides_at(const struct policy *p, void *state, int64_t now_ms, double value)
{
	struct obs_series series = {"", value, now_ms};
	struct obs_signal seen[POLICY_SIGNALS_MAX];
	struct decision d;
	for (size_t i = 0; i < p->n_signals; i++)
		seen[i] = (struct obs_signal){OBS_OK, NULL, &series, 1, 0};
	struct observation o = {.spec_replicas = p->min_replicas,
	                        .status_replicas = p->min_replicas,
	                        .ready_replicas = p->min_replicas,
	                        .signals = seen,
	                        .n_signals = p->n_signals};
	decide_state_init(p, state);
	decide(p, &o, now_ms, state, &d);
	bool is_within = d.desired >= d.min_replicas && d.desired <= d.max_replicas;
	require(is_within ||
	        (p->paused && d.desired == p->min_replicas)); // paused: where it is, whatever a schedule says
}

static void check_decides(const struct policy *p)
{
	// The first and the last moment a schedule knows of, a leap day; a value no query should give.
	static const int64_t moments_ms[] = {0, 1709164800000, 253402300799000};
	static const double values[] = {5, 1e308};
	void *state = malloc(decide_state_bytes(p));
	require(state != NULL);
	for (size_t i = 0; i < sizeof moments_ms / sizeof moments_ms[0]; i++)
		for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
			check_decides_at(p, state, moments_ms[i], values[k]);
	free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena tree, a;
	arena_init(&tree, ARENA_BYTES_MAX);
	arena_init(&a, ARENA_BYTES_MAX);
	struct doc_file file;
	struct err e;
	if (doc_parse_yaml(&tree, "fuzz", (const char *)data, size, &file, &e) == 0 && file.n_roots > 0) {
		struct schema_errors errors;
		struct policy_document document;
		memset(&document, 0, sizeof document);
		schema_errors_init(&errors, "fuzz");
		int rc = policy_decode(file.roots[0], &document, &a, &errors);
		require((rc == 0) == (errors.n == 0));
		arena_done(&tree);
		arena_init(&tree, ARENA_BYTES_MAX);
		if (rc == 0) {
			check_policy(&document);
			check_decides(&document.policy);
		}
	}
	arena_done(&tree);
	arena_done(&a);
	return 0;
}
