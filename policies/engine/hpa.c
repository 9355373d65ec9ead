// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/hpa.h"

#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

bool hpa_is_within(double ratio, double up_tolerance, double down_tolerance)
{
	// Written as the HPA writes it: a NaN ratio (0 wanted of 0 replicas) is outside.
	return 1.0 - down_tolerance <= ratio && ratio <= 1.0 + up_tolerance;
}

static int32_t sign_of(int32_t from, int32_t to)
{
	return to > from ? 1 : to < from ? -1 : 0;
}

void hpa_outside(double ratio, double wanted, int32_t spec, struct proposal *ret_proposal)
{
	int32_t n = replicas_from_whole(ceil(wanted));
	bool is_above = ratio > 1.0;
	// The result may be spec: the signal keeps its direction, and its sustain timer continues.
	ret_proposal->replicas = is_above ? i32_max(n, spec) : i32_min(n, spec);
	ret_proposal->reason = is_above ? REASON_ABOVE_TARGET : REASON_BELOW_TARGET;
	ret_proposal->direction = is_above ? 1 : -1;
}

static struct proposal within(int32_t spec, struct proposal p)
{
	p.replicas = spec;
	p.reason = REASON_WITHIN_TOLERANCE;
	p.direction = 0;
	return p;
}

static struct proposal propose_value(const struct policy_target *target, double up_tolerance, double down_tolerance,
                                     double value, const struct replica_counts *counts)
{
	struct proposal p = {.compared = value, .limit = target->value, .replicas = counts->spec};
	double ratio = value / target->value;
	if (counts->spec == 0) {
		p.replicas = replicas_from_whole(ceil(ratio));
		p.direction = sign_of(0, p.replicas);
		p.reason = p.replicas > 0 ? REASON_ABOVE_TARGET : REASON_WITHIN_TOLERANCE;
		return p;
	}
	if (counts->ready == 0) {
		p.reason = REASON_NO_READY_REPLICAS;
		return p;
	}
	if (hpa_is_within(ratio, up_tolerance, down_tolerance))
		return within(counts->spec, p);
	hpa_outside(ratio, ratio * (double)counts->ready, counts->spec, &p);
	return p;
}

static struct proposal propose_average(const struct policy_target *target, double up_tolerance, double down_tolerance,
                                       double value, const struct replica_counts *counts)
{
	double ratio = value / (target->value * (double)counts->status);
	struct proposal p = {
	        .compared = counts->status > 0 ? value / (double)counts->status : value,
	        .limit = target->value,
	};
	if (hpa_is_within(ratio, up_tolerance, down_tolerance))
		return within(counts->spec, p);
	hpa_outside(ratio, value / target->value, counts->spec, &p);
	return p;
}

struct proposal hpa_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                            double value, const struct replica_counts *counts)
{
	if (target->type == TARGET_REPLICAS) {
		struct proposal p = {
		        .replicas = replicas_from_whole(ceil(value)),
		        .reason = REASON_REPLICAS_REQUESTED,
		        .compared = value,
		        .limit = value,
		};
		p.direction = sign_of(counts->spec, p.replicas);
		return p;
	}
	if (target->type == TARGET_AVERAGE_VALUE)
		return propose_average(target, up_tolerance, down_tolerance, value, counts);
	return propose_value(target, up_tolerance, down_tolerance, value, counts);
}
