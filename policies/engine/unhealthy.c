// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/unhealthy.h"

#include "policies/engine/number.h"

void unhealthy_init(struct unhealthy *u)
{
	*u = (struct unhealthy){.fewer_since_ms = TIME_NONE, .added = -1};
}

void unhealthy_record_scale(struct unhealthy *u, int32_t replicas)
{
	if (u->added < 0)
		return;
	u->replacements = i32_max(i32_min(i32_from_i64((int64_t)replicas - u->wanted), u->added), 0);
}

void unhealthy_adopt_scale(struct unhealthy *u, int32_t change)
{
	if (u->added < 0)
		u->unrecorded = change;
}
