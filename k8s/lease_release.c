// SPDX-License-Identifier: Apache-2.0
// Giving up a Lease: tried again while it is still ours, for who comes next has to wait until it is over otherwise.
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/lease_private.h"

#define RELEASE_ASKS_MAX 8 // requests that this may take, those that look what became of another included

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

void lease_release_begin(struct lease *l)
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
	bool is_outdated = error->kind == ERR_CONFLICT; // labelled meanwhile, taken, or written by a request of ours
	l->must_read = true;
	lease_report(l, is_gone || is_outdated ? NULL : error);
	if (is_gone)
		lease_state_saw(&l->state, NULL, lease_now_ms(l));
	if (is_gone || !err_kind_info(error->kind)->retryable) {
		lease_released(l);
		return;
	}
	l->act_at_ms = is_outdated ? lease_now_ms(l) : l->asked_ms + lease_wait_after(l, error);
	lease_act(l);
}

void lease_release_go_on(struct lease *l)
{
	int64_t now = lease_now_ms(l);
	if (now < l->act_at_ms && l->act_at_ms < l->release_until_ms) {
		lease_act_at(l, l->act_at_ms);
		return;
	}
	// One that was made and is not ours yet must not be free for others before: see lease_state_trying().
	bool is_own = l->object.len > 0 && lease_state_is_own(&l->state) && now >= l->state.valid_from_ms;
	if (now >= l->release_until_ms || l->act_at_ms >= l->release_until_ms || l->release_asks++ == RELEASE_ASKS_MAX)
		lease_released(l); // it runs out
	else if (l->options.is_deleted_at_end)
		lease_ask(l, REQUEST_RELEASE, "DELETE", NULL);
	else if (l->must_read && l->state.tried_stamp[0])
		lease_ask(l, REQUEST_GET, "GET", NULL);
	else if (is_own)
		lease_send_write(l, REQUEST_RELEASE);
	else
		lease_released(l); // nothing of ours is there
}
