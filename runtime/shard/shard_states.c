// SPDX-License-Identifier: Apache-2.0
// The states of one shard of this process, and what is reported about its lease.
#include <event2/event.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "runtime/shard/shards_private.h"

_Static_assert(ERR__COUNT <= 32, "logged_kinds has one bit per error kind");

int64_t shards_now_ms(const struct shards *s)
{
	return clock_boot_ms(s->options.clock);
}

void shards_poll_in(struct shards *s, int64_t wait_ms)
{
	timer_start(s->poll, wait_ms);
}

void shards_report(struct shards *s, bool *has_error, const struct err *error)
{
	*has_error = error != NULL;
	bool was_good = !s->error[0], is_good = !s->list_has_error && !s->member_has_error && !s->watch_has_error;
	for (int32_t k = 0; k < s->options.n_shards; k++)
		is_good = is_good && !s->shards[k].has_error;
	if (error)
		snprintf(s->error, sizeof s->error, "%s", error->msg);
	else if (is_good)
		s->error[0] = '\0';
	// One line per kind for all leases, because they have the same cause. A timeout must not hide a missing right.
	uint32_t kind_bit = error ? UINT32_C(1) << error->kind : 0;
	bool is_new = (kind_bit & ~s->logged_kinds) != 0;
	s->logged_kinds = s->error[0] ? s->logged_kinds | kind_bit : 0;
	if (is_new)
		LOG(s->options.log, LOG_ERROR, "Cannot read or write leases; retrying",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else if (!was_good && is_good)
		LOG(s->options.log, LOG_INFO, "Lease access recovered", LOG_S("namespace", s->namespace_name));
}

void shards_check_stopped(struct shards *s)
{
	if (!s->is_stopping || !s->is_member_gone)
		return;
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		if (s->shards[k].state != SHARD_AWAY)
			return;
	}
	timer_start(s->stopped, 0);
}

void shards_report_loss(struct shards *s, struct shard *shard, const char *why)
{
	s->term++;
	s->lost++;
	LOG(s->options.log, LOG_INFO, "Lost shard", LOG_I("shard", shard->index), LOG_S("why", why));
	s->options.callbacks.on_lost(s->options.arg, shard->index);
}

void shard_release(struct shard *shard)
{
	shard->state = SHARD_RELEASING;
	evtimer_del(shard->leave);
	lease_release(shard->lease);
}

void shards_leave(struct shards *s, struct shard *shard, const char *why)
{
	if (shard->state == SHARD_TAKEN) {
		shard_release(shard);
	} else if (shard->state == SHARD_OWNED) {
		shard->state = SHARD_LEAVING;
		timer_start(shard->leave, lease_write_timeout_ms(&s->options.timing));
		shards_report_loss(s, shard, why);
	}
}

void shards_own(struct shards *s, struct shard *shard)
{
	shard->state = SHARD_OWNED;
	s->gained++;
	LOG(s->options.log, LOG_INFO, "Acquired shard", LOG_I("shard", shard->index),
	    LOG_I("shards", s->options.n_shards), LOG_S("identity", s->identity));
	s->options.callbacks.on_gained(s->options.arg, shard->index);
}

void shards_drained(struct shards *s, int32_t index)
{
	if (s && index >= 0 && index < s->options.n_shards && s->shards[index].state == SHARD_LEAVING)
		shard_release(&s->shards[index]);
}
