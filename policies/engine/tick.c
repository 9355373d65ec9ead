// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/tick.h"

void tick_set_proposal(struct tick *t, const struct trace_entry *entry)
{
	t->decision->driver = tick_trace(t, entry);
	t->decision->reason = entry->reason;
	t->wanted = entry->after;
}
