// SPDX-License-Identifier: Apache-2.0
// The groups and the alerts of Prometheus rule files. promtool evaluates their expressions.
#ifndef GPUSCALE_REPLAY_ALERT_RULES_H
#define GPUSCALE_REPLAY_ALERT_RULES_H

#include <stddef.h>

struct arena;
struct err;

#define ALERT_RULE_FILES_MAX 64
#define ALERT_GROUPS_MAX     1024
#define ALERT_RULES_MAX      4096

struct alert_rule {
	const char *name;
	const char *severity; // the label, "" without one; of the first rule of this name
};

struct alert_rules {
	const char *files[ALERT_RULE_FILES_MAX];   // absolute paths
	const char *groups[ALERT_GROUPS_MAX];      // in the order of the files
	struct alert_rule alerts[ALERT_RULES_MAX]; // each name once
	size_t n_files, n_groups, n_alerts;
};

// Reads the rule file at `path` and adds its groups and alerts to `r`, which starts zeroed; the texts are in `a`.
// Returns 0, or -1 and *e: the errors of doc_read_yaml, ERR_INPUT for a file without groups or whose path promtool
// would read as a pattern, ERR_LIMIT.
int alert_rules_add(struct alert_rules *r, struct arena *a, const char *path, struct err *e);

#endif
