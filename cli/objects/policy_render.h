// SPDX-License-Identifier: Apache-2.0
// Prints GPUAutoscalers as tables and documents for `get` and `top`, and decisions for `plan`.
#ifndef GPUSCALE_CLI_OBJECTS_POLICY_RENDER_H
#define GPUSCALE_CLI_OBJECTS_POLICY_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/table.h"
#include "policies/explain/explain.h"

struct buf;
struct decided;
struct json_writer;
struct policy_view;
struct policy_views;
struct price_book;

// Prepares a table for policy_render_rows(): [NAMESPACE] NAME TARGET MIN MAX CURRENT DESIRED REASON [READY MODE
// SIGNALS LAST SCALE GPUS COST/H] AGE. The last two are of policies with spec.gpus; prices as in policy_gpu_micro().
void policy_render_table(struct table *t, bool wide, bool with_namespace);
// Adds a row for each target of the policy.
void policy_render_rows(struct table *t, const struct policy_view *p, const struct price_book *prices,
                        bool with_namespace, int64_t now_ms);
// Returns the colour of a reason, a mode, a state of a signal or a type of an Event.
enum table_tone policy_render_tone(const char *word);
// Returns a number of a status, rounded for people, in *out: three digits are enough. A text that is not a number is
// returned as it is; NULL: "<none>".
const char *policy_render_number(struct table_text *out, const char *number);
// Prints all policies in `format`: a table, the objects as a List (`is_single`: the object itself), or their names. For
// OUTPUT_YAML, the result is JSON, which the caller converts.
void policy_render_list(struct buf *out, const struct policy_views *v, const struct price_book *prices,
                        enum output_format format, bool is_single, bool with_namespace, int64_t now_ms);
// Prints signals against their targets, most loaded first: policies ordered by their most loaded signal, then
// signals. For OUTPUT_YAML, the result is JSON, which the caller converts.
void policy_render_top(struct buf *out, const struct policy_views *v, const struct price_book *prices,
                       enum output_format format, bool with_namespace, bool with_head, int64_t now_ms);
// Writes the object as the server stores it, without managedFields.
void policy_render_object(struct json_writer *w, const struct policy_view *p);
// `gpuscale plan`: a row per decision, then the trace of each.
// Appends the tables of n decisions. `wide`: with ready replicas, the range and the message of each decision.
void plan_render(struct buf *out, const struct decided *items, size_t n, bool wide);

#endif
