// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of a lease. Include it only from those files.
#ifndef GPUSCALE_K8S_LEASE_LEASE_PRIVATE_H
#define GPUSCALE_K8S_LEASE_LEASE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/lease/lease.h"

struct event;

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
	struct event *timer, *expiry;
	char error[ERR_MSG_BYTES]; // as last reported; "": none
};

// ---- lease.c ----

int64_t lease_now_ms(const struct lease *l);
// Performs the next action, or sets the timer for it.
void lease_act(struct lease *l);
// Sets the timer; INT64_MAX: no timer.
void lease_act_at(struct lease *l, int64_t at_ms);
// Calls on_error when the error differs from the last report; NULL: requests succeed.
void lease_report(struct lease *l, const struct err *error);
// Returns the delay in ms before the next attempt after this error: a retry period, or the Retry-After up to a limit.
int64_t lease_wait_after(const struct lease *l, const struct err *error);
// Sends a request. A failure to send it is handled like an error reply.
void lease_ask(struct lease *l, enum lease_request request, const char *method, const struct buf *body);
void lease_send_write(struct lease *l, enum lease_request request);

// ---- lease_release.c: releases the lease, with retries ----

void lease_release_start(struct lease *l);
// Performs the next step when its time has come.
void lease_release_continue(struct lease *l);
// A request failed, of whatever type.
void lease_release_failed(struct lease *l, const struct err *error);
// The release has completed, successfully or not.
void lease_released(struct lease *l);

#endif
