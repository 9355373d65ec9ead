// SPDX-License-Identifier: Apache-2.0
// What the remediation agent reads from a Node, and the PATCH that changes its taint and its annotation together.
#ifndef GPUSCALE_CONTROLLER_REMEDY_NODE_VIEW_H
#define GPUSCALE_CONTROLLER_REMEDY_NODE_VIEW_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

#define NODE_ANNOTATION    "gpuscale.dev/remediation"
#define NODE_TAINT         "gpuscale.dev/failing-gpu"
#define NODE_VERSION_BYTES 64
#define NODE_UID_BYTES     64
#define NODE_TAINTS_MAX    (16 * 1024) // bytes of the taints of others

struct node_view {
	char uid[NODE_UID_BYTES], version[NODE_VERSION_BYTES]; // resourceVersion
	bool is_ready, is_cordoned;
	bool has_gpus;      // the node has GPUs or other accelerators
	bool is_tainted;    // by the agent
	char *other_taints; // JSON objects separated by commas, as the API server sent them; owned; "" = none
	char *record;       // text of the annotation; owned; NULL = none
};

// Decodes the Node json[0..len). *ret_view is to be freed with node_view_done(). Returns -1 and *e (ERR_PROTOCOL,
// ERR_LIMIT), after which there is nothing to free.
int node_view_read(const char *json, size_t len, struct node_view *ret_view, struct err *e);
void node_view_done(struct node_view *v);

// Appends a merge patch of the node to `out`: the annotation becomes `record`, and the taint of the agent, with the
// value `fault`, is set or removed. The patch holds the resourceVersion, so the API server refuses it when the node has
// changed since.
void node_view_patch(const struct node_view *v, const char *record, bool is_tainted, const char *fault,
                     struct buf *out);

#endif
