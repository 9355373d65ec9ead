// SPDX-License-Identifier: Apache-2.0
#include "controller/unsure_write.h"

#include "base/err.h"

void unsure_write_clear(struct unsure_write *u)
{
	*u = (struct unsure_write){.before = -1, .to = -1};
}

void unsure_write_of_past(struct unsure_write *u, int32_t before)
{
	*u = (struct unsure_write){.before = before, .to = -1};
}

void unsure_write_failed(struct unsure_write *u, const struct err *error, int32_t from, int32_t to, int64_t now_ms)
{
	switch (error->kind) {
	case ERR_CONFLICT: // perhaps with our own first attempt, whose answer was lost
	case ERR_UNREACHABLE:
	case ERR_TIMEOUT:
	case ERR_SERVER:
	case ERR_PROTOCOL:
	case ERR_LIMIT:
		*u = (struct unsure_write){.before = from, .to = to, .until_ms = now_ms + UNSURE_WRITE_MS};
		return;
	default:
		return; // it was refused: what was open before is open still
	}
}

bool unsure_write_is_open(const struct unsure_write *u)
{
	return u->before >= 0;
}

bool unsure_write_found(struct unsure_write *u, int32_t replicas, int64_t now_ms, int32_t *ret_from)
{
	int32_t before = u->before, to = u->to;
	if (before < 0 || (replicas == before && to >= 0 && now_ms < u->until_ms))
		return false; // nothing to find out, or it may still come
	unsure_write_clear(u);
	*ret_from = before;
	return replicas != before && (to < 0 || replicas == to);
}
