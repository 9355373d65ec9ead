// SPDX-License-Identifier: Apache-2.0
#include "exporter/health_verdict.h"

#include <stdbool.h>
#include <stdio.h>

#include "exporter/device.h"
#include "exporter/xid.h"

static void consider(struct health_verdict *v, enum health_action action, const char *reason)
{
	if (action <= v->action)
		return;
	v->action = action;
	snprintf(v->reason, sizeof v->reason, "%s", reason);
}

static bool holds(const struct health_condition *c, const struct device_sample *sample)
{
	enum field f = c->family ? family_find(c->family) : FIELD__COUNT;
	return f != FIELD__COUNT && sample_has(sample, f) && health_condition_holds(c, sample_get(sample, f));
}

void health_verdict_of(const struct health_policy *p, const struct device_sample *sample, const struct xid_count *xids,
                       size_t n, int64_t wall_ms, struct health_verdict *ret)
{
	size_t n_conditions;
	const struct health_condition *conditions = health_condition_table(&n_conditions);
	*ret = (struct health_verdict){.action = HEALTH_IGNORE, .reason = "Healthy"};
	if (sample->lost)
		consider(ret, conditions[HEALTH_GPU_LOST].action, conditions[HEALTH_GPU_LOST].reason);
	for (size_t i = 0; i < n_conditions; i++)
		if (holds(&conditions[i], sample))
			consider(ret, conditions[i].action, conditions[i].reason);
	for (size_t i = 0; i < n; i++) {
		struct health_ruling r;
		if (xids[i].last_wall_ms == 0)
			continue;
		health_policy_rule(p, xids[i].code, xids[i].count, wall_ms - xids[i].last_wall_ms, &r);
		consider(ret, r.action, r.reason);
	}
}
