// SPDX-License-Identifier: Apache-2.0
// Releases a Lease: retried while the lease is valid, because the next holder would have to wait until it expires.
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/lease/lease_private.h"

#define RELEASE_ASKS_MAX 8 // including those that read the result of an earlier one

void lease_released(struct lease *l)
{
	l->is_releasing = false;
	l->must_read = true;
	lease_state_drop(&l->state);
	buf_done(&l->object);
	lease_act_at(l, INT64_MAX);
	if (l->options.callbacks.on_released)
		l->options.callbacks.on_released(l->options.arg);
}

void lease_release_start(struct lease *l)
{
	l->is_releasing = true;
	l->release_asks = 0;
	l->act_at_ms = lease_now_ms(l);
	l->release_until_ms =
	        l->state.is_held ? l->state.valid_until_ms : l->act_at_ms + l->options.timing.renew_deadline_ms;
}

void lease_release_failed(struct lease *l, const struct err *error)
{
	bool is_gone = error->code == 404 && error->kind == ERR_NOT_FOUND;
	bool is_outdated =
	        error->kind == ERR_CONFLICT; // its labels were changed, it was taken over, or our own request wrote it
	l->must_read = true;
	lease_report(l, is_gone || is_outdated ? NULL : error);
	if (is_gone)
		lease_state_observe(&l->state, NULL, lease_now_ms(l));
	if (is_gone || !err_kind_info(error->kind)->retryable) {
		lease_released(l);
		return;
	}
	l->act_at_ms = is_outdated ? lease_now_ms(l) : l->asked_ms + lease_wait_after(l, error);
	lease_act(l);
}

void lease_release_continue(struct lease *l)
{
	int64_t now = lease_now_ms(l);
	if (now < l->act_at_ms && l->act_at_ms < l->release_until_ms) {
		lease_act_at(l, l->act_at_ms);
		return;
	}
	// A lease that was created and is not valid yet must not become free earlier: see lease_state_trying.
	bool is_own = l->object.len > 0 && lease_state_is_own(&l->state) && now >= l->state.valid_from_ms;
	if (now >= l->release_until_ms || l->act_at_ms >= l->release_until_ms || l->release_asks++ == RELEASE_ASKS_MAX)
		lease_released(l); // the lease expires by itself
	else if (l->options.is_deleted_at_end)
		lease_ask(l, REQUEST_RELEASE, "DELETE", NULL);
	else if (l->must_read && l->state.tried_stamp[0])
		lease_ask(l, REQUEST_GET, "GET", NULL);
	else if (is_own)
		lease_send_write(l, REQUEST_RELEASE);
	else
		lease_released(l); // the lease is not ours
}
