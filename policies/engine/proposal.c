// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/proposal.h"

#include <math.h>
#include <stdbool.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/source.h"

// ---- targets ----

static bool is_within(double ratio, double up_tolerance, double down_tolerance)
{
	// Written as the HPA writes it: a NaN ratio (0 wanted of 0 replicas) is outside.
	return 1.0 - down_tolerance <= ratio && ratio <= 1.0 + up_tolerance;
}

static int32_t sign_of(int32_t from, int32_t to)
{
	return to > from ? 1 : to < from ? -1 : 0;
}

// Sets replicas, reason and direction of a proposal for a ratio outside the tolerance: ceil(wanted), at least 0, at
// least spec for a ratio above 1, and at most spec for any other.
static void outside(double ratio, double wanted, int32_t spec, struct proposal *ret_proposal)
{
	int32_t n = replicas_from_whole(ceil(wanted));
	bool is_above = ratio > 1.0;
	// The result may be spec: the signal keeps its direction, and its sustain timer continues.
	ret_proposal->replicas = is_above ? i32_max(n, spec) : i32_min(n, spec);
	ret_proposal->reason = is_above ? REASON_ABOVE_TARGET : REASON_BELOW_TARGET;
	ret_proposal->direction = is_above ? 1 : -1;
}

static struct proposal stay(int32_t spec, enum reason reason, struct proposal p)
{
	p.replicas = spec;
	p.reason = reason;
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
	if (is_within(ratio, up_tolerance, down_tolerance))
		return stay(counts->spec, REASON_WITHIN_TOLERANCE, p);
	outside(ratio, ratio * (double)counts->ready, counts->spec, &p);
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
	if (is_within(ratio, up_tolerance, down_tolerance))
		return stay(counts->spec, REASON_WITHIN_TOLERANCE, p);
	outside(ratio, value / target->value, counts->spec, &p);
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

struct proposal pods_propose(const struct policy_target *target, double up_tolerance, double down_tolerance,
                             struct pod_groups *pods, const struct replica_counts *counts)
{
	double n = (double)pods->n_samples, total = pods->total;
	double ratio = total / n / target->value;
	struct proposal p = {.compared = total / n, .limit = target->value};
	// Divides the total, because the HPA computes in whole milli-units: a quotient that is whole there must not
	// exceed it here by a rounding error, as ceil(ratio * pods) could.
	if (pods->n_missing == 0 && !(pods->n_pending > 0 && ratio > 1)) {
		if (is_within(ratio, up_tolerance, down_tolerance))
			return stay(counts->spec, REASON_WITHIN_TOLERANCE, p);
		outside(ratio, total / target->value, counts->spec, &p);
		return p;
	}
	int64_t filled = ratio != 1 ? pods->n_missing : 0;
	if (ratio > 1)
		filled += pods->n_pending;
	pods->n_filled = i32_from_i64(filled);
	pods->filled_with = ratio < 1 ? target->value : 0;
	n += (double)filled;
	p.compared = (total + pods->filled_with * (double)filled) / n;
	double wanted = total / target->value + (ratio < 1 ? (double)filled : 0);
	// Without load the share does not depend on the target, and must not by a rounding error. Pinned by prop_guards
	// "throttled_replicas_never_lower_a_proposal" with PROP_SEED=2.
	double refilled = total < 0 || total > 0 ? p.compared / target->value : (double)filled / n;
	if (is_within(refilled, up_tolerance, down_tolerance))
		return stay(counts->spec, REASON_WITHIN_TOLERANCE, p);
	if ((ratio < 1 && refilled > 1) || (ratio > 1 && refilled < 1))
		return stay(counts->spec, REASON_PODS_INCONCLUSIVE, p);
	outside(refilled, wanted, counts->spec, &p);
	return p;
}

// ---- watermarks ----

struct proposal watermark_propose(const struct policy_watermarks *marks, int32_t multiple, double value,
                                  const struct replica_counts *counts)
{
	double high = marks->high * (1 + marks->tolerance_ratio), low = marks->low * (1 - marks->tolerance_ratio);
	struct proposal p = {.replicas = counts->spec, .compared = value, .limit = high};
	if (counts->ready == 0) {
		p.reason = REASON_NO_READY_REPLICAS;
		return p;
	}
	double ready = (double)counts->ready;
	double usage = marks->algorithm == WATERMARK_AVERAGE ? value / ready : value;
	p.compared = usage;
	if (usage > high) {
		int32_t n = replicas_from_whole(ceil(ready * usage / marks->high));
		p.replicas = i32_max(i32_from_i64(multiple_up(n, multiple)), counts->spec);
		p.reason = REASON_ABOVE_HIGH_WATERMARK;
		p.direction = 1;
	} else if (usage < low) {
		int32_t n = i32_max(1, replicas_from_whole(floor(ready * usage / marks->low)));
		p.replicas = i32_min(i32_from_i64(multiple_up(n, multiple)), counts->spec);
		p.limit = low;
		p.reason = REASON_BELOW_LOW_WATERMARK;
		p.direction = -1;
	} else {
		p.reason = REASON_INSIDE_WATERMARKS;
	}
	return p;
}
