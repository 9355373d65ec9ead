// SPDX-License-Identifier: Apache-2.0
// What the state of a GPU asks for, as tables: XID codes and conditions, each with an action. The built-in XID table
// follows NVIDIA's catalogue and common practice; a file replaces single rows.
#ifndef GPUSCALE_EXPORTER_HEALTH_POLICY_H
#define GPUSCALE_EXPORTER_HEALTH_POLICY_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct view;
struct view_gpu;

#define HEALTH_SINCE_MS       (60 * 60 * 1000) // default
#define HEALTH_ROWS_MAX       256
#define HEALTH_TEXT_BYTES     96
#define HEALTH_FINDINGS_MAX   512
#define HEALTH_FILE_BYTES_MAX (64 * 1024)

// In rising order of what has to be done.
enum health_action {
	HEALTH_IGNORE,       // the application's own, or the echo of another error
	HEALTH_WATCH,        // note it
	HEALTH_RESTART_APP,  // what ran on it has failed
	HEALTH_RESET_IDLE,   // reset the GPU once nothing uses it
	HEALTH_DRAIN,        // move the work away
	HEALTH_DRAIN_RESET,  // and reset the GPU
	HEALTH_DRAIN_REBOOT, // and reboot the node
	HEALTH_REPLACE,      // and replace the hardware
	HEALTH_ACTION__COUNT
};
// "drain-reset". NULL for none of them, from text.
const char *health_action_name(enum health_action a);
enum health_action health_action_find(const char *name); // HEALTH_ACTION__COUNT when there is none

struct health_xid {
	int32_t code;
	enum health_action action;
	uint64_t min_count; // fewer of these are only watched
	char text[HEALTH_TEXT_BYTES];
};

struct health_policy {
	struct health_xid xids[HEALTH_ROWS_MAX];
	size_t n;
	int64_t since_ms;                // XIDs older than this are history
	enum health_action other_action; // codes without a row
};

void health_policy_init(struct health_policy *p);
// Reads rows `CODE, action[, min count[, text]]` over the table; `other` as the code is for those without a row. `#`
// begins a comment. ret_errors gets a line "path:line: .." for every fault; then -1 and ERR_INPUT, as for a file that
// cannot be read.
int health_policy_read(struct health_policy *p, const char *path, struct buf *ret_errors, struct err *e);
// The same from text[0..len).
int health_policy_parse(struct health_policy *p, const char *name, const char *text, size_t len, struct buf *ret_errors,
                        struct err *e);

struct health_finding {
	enum health_action action;
	const struct view_gpu *gpu; // NULL: the node
	char reason[32];            // CamelCase, for machines: "XID79", "RowRemapFailure"
	char text[160];
};

// What there is to say about the page at wall_ms, the worst first. Writes at most max and returns how many.
size_t health_judge(const struct health_policy *p, const struct view *v, int64_t wall_ms,
                    struct health_finding *ret_findings, size_t max);

#endif
