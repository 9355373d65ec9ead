// SPDX-License-Identifier: Apache-2.0
#include "controller/tick/unacked_write.h"

#include "base/err.h"

void unacked_write_clear(struct unacked_write *u)
{
	*u = (struct unacked_write){.before = -1, .to = -1};
}

void unacked_write_of_past(struct unacked_write *u, int32_t before)
{
	*u = (struct unacked_write){.before = before, .to = -1};
}

bool unacked_write_is_possible(const struct err *error)
{
	switch (error->kind) {
	case ERR_CONFLICT: // possibly with the first attempt, whose answer was lost
	case ERR_UNREACHABLE:
	case ERR_TIMEOUT:
	case ERR_SERVER:
	case ERR_PROTOCOL:
	case ERR_LIMIT:
		return true;
	default:
		return false;
	}
}

void unacked_write_failed(struct unacked_write *u, const struct err *error, int32_t from, int32_t to,
                          int64_t now_mono_ms)
{
	if (unacked_write_is_possible(error)) // else refused: an earlier open write stays open
		*u = (struct unacked_write){.before = from, .to = to, .until_ms = now_mono_ms + UNACKED_WRITE_MS};
}

bool unacked_write_is_open(const struct unacked_write *u)
{
	return u->before >= 0;
}

bool unacked_write_found(struct unacked_write *u, int32_t replicas, int64_t now_mono_ms, int32_t *ret_from)
{
	int32_t before = u->before, to = u->to;
	if (before < 0 || (replicas == before && to >= 0 && now_mono_ms < u->until_ms))
		return false; // no write is open, or it may still take effect
	unacked_write_clear(u);
	*ret_from = before;
	return replicas != before && (to < 0 || replicas == to);
}
