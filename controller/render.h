// SPDX-License-Identifier: Apache-2.0
// Renderings of a decision and its trace: sentence, JSON, YAML, tables. The only place where a trace becomes text.
#ifndef GPUSCALE_CONTROLLER_RENDER_H
#define GPUSCALE_CONTROLLER_RENDER_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct decision;
struct json_writer;
struct obs_signal;
struct policy;
struct trace_entry;

#define RENDER_SENTENCE_BYTES 384

enum output_format { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME, OUTPUT__COUNT };
extern const char *const output_format_names[OUTPUT__COUNT + 1]; // NULL-terminated

// A decision with what it was made for. signals: what was observed, for {detail}; may be NULL.
struct decided {
	const struct policy *policy;
	const struct decision *decision;
	const char *const *details; // one per signal: the source's own words about a failure; NULL or entries NULL
};

// The sentence of one trace entry, from its reason's template. out has RENDER_SENTENCE_BYTES.
void render_sentence(const struct decided *d, const struct trace_entry *t, char *out);
// The sentence that explains the decision best.
void render_message(const struct decided *d, char *out);
// What the trace says about the state a signal is in. False, and out is "": nothing.
bool render_signal(const struct decided *d, size_t signal, char *out);
// One DecisionList item (DESIGN section 7).
void render_decision_json(struct json_writer *w, const struct decided *d);
// The trace as aligned lines, each `indent` blanks in.
void render_trace(struct buf *out, const struct decided *d, int indent);
// A whole DecisionList in `format`; for tables also the trace of each.
void render_list(struct buf *out, const struct decided *items, size_t n, enum output_format format);

#endif
