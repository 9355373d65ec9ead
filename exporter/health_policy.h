// SPDX-License-Identifier: Apache-2.0
// The health rules for XID codes, each with an action. They start with the built-in table (base/health_table.h); a file
// replaces individual rows.
#ifndef GPUSCALE_EXPORTER_HEALTH_POLICY_H
#define GPUSCALE_EXPORTER_HEALTH_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "base/health_table.h"

struct buf;
struct device_sample;
struct err;
struct xid_count;

#define HEALTH_PROBLEM        HEALTH_DRAIN // the mildest action that is treated as a problem, unless --fail-on names another
#define HEALTH_ROWS_MAX       256
#define HEALTH_REASON_BYTES   32
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

// The ruling on one XID of a GPU.
struct health_ruling {
	enum health_action action;        // HEALTH_IGNORE: nothing to report
	char reason[HEALTH_REASON_BYTES]; // "XID79"; "XIDOther" for XID_CODE_OTHER
	const struct health_xid *row;     // NULL: the code has no row
};
// Judges an XID that occurred `count` times, the last time `age_ms` ago. `code` may be XID_CODE_OTHER.
void health_policy_rule(const struct health_policy *p, int32_t code, uint64_t count, int64_t age_ms,
                        struct health_ruling *ret);

// ---- the verdict of one GPU ----

// The worst finding about a sample, by the rules that `check` and remediation use.
struct health_verdict {
	enum health_action action;        // HEALTH_IGNORE without a finding
	char reason[HEALTH_REASON_BYTES]; // CamelCase: "XID79", "RowRemapFailure"; "Healthy" without a finding
};

// Judges the GPU of `sample`, whose XIDs are xids[0..n), at `wall_ms`. Of several findings with the same action, the
// first row of the table of conditions wins, then the XID that occurred first.
void health_verdict_of(const struct health_policy *p, const struct device_sample *sample, const struct xid_count *xids,
                       size_t n, int64_t wall_ms, struct health_verdict *ret);

#endif
