// SPDX-License-Identifier: Apache-2.0
// Renderings of a decision and its trace: sentence, JSON, YAML, tables. The only place where a trace becomes text.
#ifndef GPUSCALE_POLICIES_EXPLAIN_EXPLAIN_H
#define GPUSCALE_POLICIES_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct decision;
struct json_writer;
struct policy;
struct pool_grant;
struct pool_total;
struct scale_target;
struct trace_entry;

#define RENDER_SENTENCE_BYTES 384

// The formats of -o; each command supports some of them (cli/term/output.h).
enum output_format {
	OUTPUT_TABLE,
	OUTPUT_WIDE,
	OUTPUT_TEXT,
	OUTPUT_JSON,
	OUTPUT_YAML,
	OUTPUT_NAME,
	OUTPUT_CSV,
	OUTPUT_SVG,
	OUTPUT_SARIF,
	OUTPUT_GITHUB,
	OUTPUT_HTML,
	OUTPUT__COUNT
};
extern const char *const output_format_names[OUTPUT__COUNT + 1]; // NULL-terminated

// One variant of a policy that has several, as of its last decision.
struct decided_variant {
	const char *name;
	const struct scale_target *target;
	int32_t current, ready, desired; // replicas; ready -1: unknown
	double capacity, price_per_hour; // of one replica
	const char *reason;              // one word
	const char *detail;              // why the target could not be read; NULL: it was
};

// A decision, with the policy and the details of the observation.
struct decided {
	const struct policy *policy;
	const struct scale_target *target; // for lists; NULL where only sentences are written
	const struct decision *decision;
	// One per signal: the error message of the source, for {detail}; then one for the stage capacity. The array and
	// its entries may be NULL.
	const char *const *details;
	const char *pool;    // why the pool of the policy grants what it does, for {pool}; NULL: it limited nothing
	const char *victims; // the pods that the scale-down removes, or why they are unknown, for {victims}; NULL: none
	const struct decided_variant *variants; // for {variants}
	size_t n_variants;                      // 0: the policy has none
};

// Writes the sentence of one trace entry, from the template of its reason; what a signal proposes is followed by the
// replicas that are starting. `out` has RENDER_SENTENCE_BYTES.
void explain_sentence(const struct decided *d, const struct trace_entry *t, char *out);
// Writes the sentence of the entry that explains the decision.
void explain_message(const struct decided *d, char *out);
// Writes the sentence that explains the state of a signal. Returns false, with "" in `out`, when the trace has none.
bool explain_signal(const struct decided *d, size_t signal, char *out);
// Writes the member `variants`: a list with the replicas of each variant and the reason.
void explain_variants_json(struct json_writer *w, const struct decided *d);
// Writes the decision as an item of a DecisionList.
void explain_decision_json(struct json_writer *w, const struct decided *d);
// Appends the trace as aligned lines, indented by `indent` spaces.
void explain_trace(struct buf *out, const struct decided *d, int indent);
// Appends a whole DecisionList as JSON, or the names of its policies; for OUTPUT_YAML, the caller converts the JSON.
// cli/objects/policy_render.h has the tables.
void explain_list(struct buf *out, const struct decided *items, size_t n, enum output_format format);

// ---- the grant of a member of a pool, as a sentence ----

// Appends "pool h100 uses 32 of 32 GPUs". `gpus` is the cap.
void explain_pool_reason(struct buf *out, const char *pool_name, int64_t gpus, const struct pool_grant *grant,
                         const struct pool_total *total);
// Appends "requested 12, granted 8: pool h100 uses 32 of 32 GPUs". `asked` is the wish of the member, `gpus` the cap.
void explain_pool_grant(struct buf *out, const char *pool_name, int64_t gpus, int32_t asked,
                        const struct pool_grant *grant, const struct pool_total *total);

#endif
