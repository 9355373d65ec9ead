// SPDX-License-Identifier: Apache-2.0
// Status objects of failures, for servers that reply like the API server.
#ifndef GPUSCALE_K8S_SERVER_STATUS_REPLY_H
#define GPUSCALE_K8S_SERVER_STATUS_REPLY_H

struct buf;

// Appends the Status for an HTTP status of at least 400, with its reason ("NotFound").
void k8s_status_write(struct buf *out, int http_status, const char *message);

#endif
