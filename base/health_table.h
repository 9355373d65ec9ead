// SPDX-License-Identifier: Apache-2.0
// The one table of GPU faults: what an XID or a lasting condition means, and the action for it. The exporter's `check`
// and the planner of remediation (remedy/plan) read it. Every function is pure.
#ifndef GPUSCALE_BASE_HEALTH_TABLE_H
#define GPUSCALE_BASE_HEALTH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEALTH_SINCE_MS   (60 * 60 * 1000) // an older XID is not evidence of a fault that still exists
#define HEALTH_STALE_MS   300000           // an older sample does not show the health of a GPU
#define HEALTH_TEXT_BYTES 96

// In increasing order of severity.
enum health_action {
	HEALTH_IGNORE,       // caused by the application, or a consequence of another error
	HEALTH_WATCH,        // only report it
	HEALTH_RESTART_APP,  // the work on the GPU has failed
	HEALTH_RESET_IDLE,   // reset the GPU once nothing uses it
	HEALTH_DRAIN,        // move the work away
	HEALTH_DRAIN_RESET,  // and reset the GPU
	HEALTH_DRAIN_REBOOT, // and reboot the node
	HEALTH_REPLACE,      // and replace the hardware
	HEALTH_ACTION__COUNT
};
// The name of an action, such as "drain-reset", and the action called `name`; HEALTH_ACTION__COUNT if there is none.
const char *health_action_name(enum health_action a);
enum health_action health_action_find(const char *name);

struct health_xid {
	int32_t code;
	enum health_action action;
	uint64_t min_count; // fewer occurrences are only watched
	char text[HEALTH_TEXT_BYTES];
};
// The rows of the built-in table: NVIDIA's catalogue, with the common practice of device plugins, node monitors and
// cloud providers as actions.
extern const struct health_xid health_xids[];
extern const size_t health_n_xids;

enum health_compare { HEALTH_IS, HEALTH_ABOVE, HEALTH_HAS_BITS };
// A condition that lasts: the value of a family, compared with a constant. Several rows may share a reason.
struct health_condition {
	const char *family; // NULL: derived from the list of GPUs
	enum health_compare compare;
	double value;
	enum health_action action;
	const char *reason; // CamelCase, for machines
	const char *text;
};
// The family of the row about heat that lasts: no exporter serves it, the agent of remediation derives it on request.
#define HEALTH_HEAT "sustained_heat"
// The rows of the conditions; the first two are these.
enum { HEALTH_GPU_LOST, HEALTH_GPU_MISSING };
extern const struct health_condition health_conditions[];
extern const size_t health_n_conditions;
// Returns whether the condition `c` exists when its family has this value.
bool health_condition_holds(const struct health_condition *c, double value);

#endif
