// SPDX-License-Identifier: Apache-2.0
// What the files of a lease share; nobody else includes this.
#ifndef GPUSCALE_K8S_LEASE_PRIVATE_H
#define GPUSCALE_K8S_LEASE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/lease.h"

struct event;

enum lease_request { REQUEST_NONE, REQUEST_GET, REQUEST_CREATE, REQUEST_UPDATE, REQUEST_RELEASE };

struct lease {
	struct lease_options options;
	struct lease_state state;
	char namespace_name[LEASE_NAME_BYTES], name[LEASE_NAME_BYTES];
	struct buf object; // the server's text of it, as the last reply had it
	enum lease_request request;
	bool is_wanted, is_releasing, is_freed;
	bool is_told;             // on_gained was called
	bool must_read;           // what we know is out of date: read before writing
	int64_t act_at_ms;        // boot clock: when to look or renew next
	int64_t asked_ms;         // boot clock: when the last request was made
	int release_asks;         // requests made to give it up
	int64_t release_until_ms; // boot clock: nothing is sent for that from then on
	struct event *timer, *expiry;
	char error[ERR_MSG_BYTES]; // as last reported, "" none
};

// ---- lease.c ----

int64_t lease_now_ms(const struct lease *l);
// Does what is due, or sets the timer for it.
void lease_act(struct lease *l);
// Sets the timer; INT64_MAX: nothing is due.
void lease_act_at(struct lease *l, int64_t at_ms);
// on_error, when there is something new; NULL: it works.
void lease_report(struct lease *l, const struct err *error);
// How long after this error to try again: a retry period, or what the server asked for within reason.
int64_t lease_wait_after(const struct lease *l, const struct err *error);
// Sends a request; what fails before it is sent is dealt with.
void lease_ask(struct lease *l, enum lease_request request, const char *method, const struct buf *body);
void lease_send_write(struct lease *l, enum lease_request request);

// ---- lease_release.c: the lease is given up, as soon and as surely as that can be ----

void lease_release_begin(struct lease *l);
// The next step, when it is due.
void lease_release_go_on(struct lease *l);
// A request failed, whatever it was about.
void lease_release_failed(struct lease *l, const struct err *error);
// It has ended, well or not.
void lease_released(struct lease *l);

#endif
