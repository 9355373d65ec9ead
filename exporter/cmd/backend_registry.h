// SPDX-License-Identifier: Apache-2.0
// The backends of --backend: one table, from which its help text, its error message and its choice come. To add a
// backend, write a folder with a backend_new_fn and add a row to backend_registry.c.
#ifndef GPUSCALE_EXPORTER_CMD_BACKEND_REGISTRY_H
#define GPUSCALE_EXPORTER_CMD_BACKEND_REGISTRY_H

#include <stdbool.h>

#include "exporter/backend.h"

struct buf;

struct backend_row {
	const char *name; // as on the command line
	const char *help; // where its readings come from
	backend_new_fn *make;
	bool probed;   // `auto` tries it, in the order of the table
	bool scripted; // plays --mock-script in virtual time, so that --at applies
};

// The row called `name`, or NULL.
const struct backend_row *backend_registry_find(const char *name);
// Appends every name to `out`: `separator` stands between two names, `last` before the last one.
void backend_registry_put_names(struct buf *out, const char *separator, const char *last);
// Appends "name: help" of every row to `out`, separated by "; ".
void backend_registry_put_help(struct buf *out);

#endif
