// SPDX-License-Identifier: Apache-2.0
// The state of a lease. Include it only from lease.c and from tests.
#ifndef GPUSCALE_K8S_LEASE_LEASE_PRIVATE_H
#define GPUSCALE_K8S_LEASE_LEASE_PRIVATE_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/lease/lease.h"

enum lease_request { REQUEST_NONE, REQUEST_GET, REQUEST_CREATE, REQUEST_UPDATE, REQUEST_RELEASE };

struct lease {
	struct lease_options options;
	struct lease_state state;
	char namespace_name[LEASE_NAME_BYTES], name[LEASE_NAME_BYTES];
	struct buf object; // the JSON of the lease in the last reply
	enum lease_request request;
	bool is_wanted, is_releasing, is_freed;
	bool is_leading_reported; // on_gained was called
	bool must_read;           // the record is outdated: read before writing
	int64_t act_at_ms;        // boot clock: when to read or renew next
	int64_t asked_ms;         // boot clock: when the last request was made
	int release_asks;         // requests sent to release it
	int64_t release_until_ms; // boot clock: no such request is sent from then on
	struct event timer, expiry;
	char error[ERR_MSG_BYTES]; // as last reported; "": none
};

#endif
