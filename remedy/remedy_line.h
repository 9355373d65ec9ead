// SPDX-License-Identifier: Apache-2.0
// One line of `gpuscale remediate --replay`: an event, telemetry, the state of a node, or a tick, as JSON
// (docs/remediation.md).
#ifndef GPUSCALE_REMEDY_REMEDY_LINE_H
#define GPUSCALE_REMEDY_REMEDY_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

#define REMEDY_LINE_BYTES_MAX (1024 * 1024)
#define REMEDY_LINE_ARENA_MAX (32 * 1024 * 1024)

enum remedy_line_type {
	REMEDY_LINE_EVENT,
	REMEDY_LINE_TELEMETRY,
	REMEDY_LINE_NODE,
	REMEDY_LINE_TICK,
	REMEDY_LINE_TYPE__COUNT
};

struct remedy_line_pod {
	const char *name;
	const char **gpus;
	size_t n_gpus;
	bool pinned, refused;
	int64_t until_ms;
};

// The fields of a line; which of them a type takes is checked.
struct remedy_line {
	int64_t time_ms;
	int type; // enum remedy_line_type
	const char *node;
	// event
	const char *gpu, *condition;
	int32_t xid;
	int64_t value, at_ms;
	bool has_gpu, has_condition, has_xid, has_value, has_at;
	// telemetry
	bool present, has_present;
	// telemetry and node
	const char **gpus;
	size_t n_gpus;
	bool has_gpus;
	// node
	bool deleted, dra, cordoned, ready;
	bool has_deleted, has_dra, has_cordoned, has_ready;
	const char **taints;
	size_t n_taints;
	bool has_taints;
	struct remedy_line_pod *pods;
	size_t n_pods;
	bool has_pods;
	const char *record;
	bool has_record;
};

// Reads text[0..len), a line without its end. What it finds lives in `a`. -1 and *e (ERR_INPUT, ERR_PROTOCOL,
// ERR_LIMIT): the message names the field and the fix.
int remedy_line_parse(const char *text, size_t len, struct arena *a, struct remedy_line *ret_line, struct err *e);

#endif
