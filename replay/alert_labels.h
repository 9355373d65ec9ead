// SPDX-License-Identifier: Apache-2.0
// Labels as PromQL writes them: {a="x", b="y"}. Values are compared as they are written, between their quotes.
#ifndef GPUSCALE_REPLAY_ALERT_LABELS_H
#define GPUSCALE_REPLAY_ALERT_LABELS_H

#include <stdbool.h>
#include <stddef.h>

struct alert_label {
	const char *name, *value; // not NUL-terminated; the value without its quotes
	size_t name_len, value_len;
};

// Reads the next label of the list at *at, which ends before `end`: call it first with *at behind the opening brace.
// Returns false at the closing brace, which it passes, and where the text has another form; then *at is NULL.
bool alert_labels_next(const char **at, const char *end, struct alert_label *ret);
// Returns whether `list`, "{..}" or "", has the label `l`.
bool alert_labels_have(const char *list, const struct alert_label *l);
bool alert_label_is(const struct alert_label *l, const char *name);

#endif
