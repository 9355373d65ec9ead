// SPDX-License-Identifier: Apache-2.0
// GPUAutoscalers as tables and documents: what `get`, `top` and `describe` print.
#ifndef GPUSCALE_CLI_POLICY_RENDER_H
#define GPUSCALE_CLI_POLICY_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/render.h"

struct buf;
struct cJSON;
struct policy_view;
struct policy_views;
struct table;

// An empty table for rows of policy_render_row: [NAMESPACE] NAME TARGET MIN MAX CURRENT DESIRED REASON [READY MODE
// SIGNALS LAST SCALE] AGE.
void policy_render_table(struct table *t, bool wide, bool with_namespace);
void policy_render_row(struct table *t, const struct policy_view *p, bool wide, bool with_namespace, int64_t now_ms);
// All of them in `format`: a table, the objects as a List (`is_single`: the one object itself), or their names.
void policy_render_list(struct buf *out, const struct policy_views *v, enum output_format format, bool is_single,
                        bool with_namespace, int64_t now_ms);
// Signals against what they are held to, most loaded first: policies by their most loaded signal, signals within.
void policy_render_top(struct buf *out, const struct policy_views *v, bool with_namespace, bool with_head,
                       int64_t now_ms);
// One policy at length; events: an EventList, NULL when it could not be read, then events_fault says why.
void policy_render_describe(struct buf *out, const struct policy_view *p, const struct cJSON *events,
                            const char *events_fault, int64_t now_ms);

#endif
