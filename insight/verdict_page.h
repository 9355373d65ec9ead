// SPDX-License-Identifier: Apache-2.0
// The table of verdicts as a page of documentation.
#ifndef GPUSCALE_INSIGHT_VERDICT_PAGE_H
#define GPUSCALE_INSIGHT_VERDICT_PAGE_H

struct buf;

// Appends a table of contents and a section per verdict in Markdown: condition, meaning, evidence, action, cost.
void verdict_page_print(struct buf *out);

#endif
