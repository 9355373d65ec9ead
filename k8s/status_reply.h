// SPDX-License-Identifier: Apache-2.0
// Status objects of kind Failure, for servers that speak as the API server does.
#ifndef GPUSCALE_K8S_STATUS_REPLY_H
#define GPUSCALE_K8S_STATUS_REPLY_H

struct buf;

// Appends the Status of an HTTP status from 400 on, with the reason that belongs to it ("NotFound").
void k8s_status_write(struct buf *out, int http_status, const char *message);

#endif
