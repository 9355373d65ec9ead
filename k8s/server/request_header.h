// SPDX-License-Identifier: Apache-2.0
// Decodes the ConfigMap kube-system/extension-apiserver-authentication: which clients a server behind the aggregation
// layer trusts. Kubernetes: apiserver/pkg/server/options/authentication.go,
// headerrequest.RequestHeaderAuthRequestController.
#ifndef GPUSCALE_K8S_SERVER_REQUEST_HEADER_H
#define GPUSCALE_K8S_SERVER_REQUEST_HEADER_H

#include <stddef.h>

#include "base/arena.h"

struct err;

#define REQUEST_HEADER_NAMESPACE "kube-system"
#define REQUEST_HEADER_CONFIGMAP "extension-apiserver-authentication"
#define REQUEST_HEADER_BYTES_MAX (4 * 1024 * 1024)
#define REQUEST_HEADER_NAMES_MAX 64

struct request_header_list {
	const char *items[REQUEST_HEADER_NAMES_MAX];
	size_t n;
};

// Allocated in an arena.
struct request_header_config {
	const char *client_ca_pem;                 // CA of ordinary client certificates; NULL: none
	const char *proxy_ca_pem;                  // CA of clients that may name the user in headers; NULL: none may
	struct request_header_list allowed_names;  // their common names; empty: any
	struct request_header_list name_headers;   // "X-Remote-User"
	struct request_header_list uid_headers;    // since Kubernetes 1.32
	struct request_header_list group_headers;  // "X-Remote-Group"
	struct request_header_list extra_prefixes; // "X-Remote-Extra-"
};

// Decodes the JSON of the ConfigMap into the arena. Returns 0, or -1 and *e when it is not that ConfigMap or a member
// is invalid.
int request_header_read(const char *text, size_t len, struct arena *arena, struct request_header_config *ret_config,
                        struct err *e);

#endif
