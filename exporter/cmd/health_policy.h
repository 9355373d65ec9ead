// SPDX-License-Identifier: Apache-2.0
// The health rules: XID codes and conditions, each with an action. Starts with the
// built-in table (base/health_table.h); a file replaces individual rows.
#ifndef GPUSCALE_EXPORTER_CMD_HEALTH_POLICY_H
#define GPUSCALE_EXPORTER_CMD_HEALTH_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "base/health_table.h"

struct buf;
struct err;
struct page_view;
struct page_view_gpu;

#define HEALTH_ROWS_MAX       256
#define HEALTH_FINDINGS_MAX   512
#define HEALTH_FILE_BYTES_MAX (64 * 1024)

struct health_policy {
	struct health_xid xids[HEALTH_ROWS_MAX];
	size_t n;
	int64_t since_ms;                // XIDs older than this are ignored
	enum health_action other_action; // codes without a row
};

void health_policy_init(struct health_policy *p);
// Reads rows `CODE, action[, min count[, text]]` that override the table; the code `other` sets the action of codes
// without a row. `#` starts a comment. `ret_errors` receives a line "path:line: .." for each error; the function then
// returns -1 with ERR_INPUT. It also fails if the file cannot be read.
int health_policy_read(struct health_policy *p, const char *path, struct buf *ret_errors, struct err *e);
// Parses the same from text[0..len), which messages call `name`.
int health_policy_parse(struct health_policy *p, const char *name, const char *text, size_t len, struct buf *ret_errors,
                        struct err *e);

struct health_finding {
	enum health_action action;
	const struct page_view_gpu *gpu; // NULL: the node
	char reason[32];                 // CamelCase, for machines: "XID79", "RowRemapFailure"
	char text[160];
};

// Writes the findings about the page `v` at `wall_ms` to `ret_findings`, worst first; at most `max`. Returns their
// number.
size_t health_judge(const struct health_policy *p, const struct page_view *v, int64_t wall_ms,
                    struct health_finding *ret_findings, size_t max);

#endif
