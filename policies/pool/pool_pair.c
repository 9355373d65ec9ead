// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/pool_pair.h"

#include "policies/engine/number.h"
#include "policies/pool/pool_request.h"

// A ratio is kept to within one replica of either member, so that one of the two can always move next: with bounds of
// exactly 1:1 neither could leave 2:2. In thousandths, with of and to as whole replicas:
//   min * to - max(min, 1000) < 1000 * of < max * to + max(max, 1000)

static int64_t slack(int64_t ratio_milli)
{
	return i64_max(ratio_milli, 1000);
}

static int32_t limited(int64_t v)
{
	return v < 0 ? 0 : v > POOL_REPLICAS_MAX ? POOL_REPLICAS_MAX : (int32_t)v;
}

// The smallest n with n * step > v.
static int64_t above(int64_t v, int64_t step)
{
	return v < 0 ? 0 : v / step + 1;
}

int32_t pool_pair_of_min(const struct pool_ratio *r, int64_t to)
{
	return limited(above(r->min_milli * to - slack(r->min_milli), 1000));
}

int32_t pool_pair_of_max(const struct pool_ratio *r, int64_t to)
{
	return limited((r->max_milli * to + slack(r->max_milli) - 1) / 1000);
}

int32_t pool_pair_to_min(const struct pool_ratio *r, int64_t of)
{
	return limited(above(1000 * of - slack(r->max_milli), r->max_milli));
}

int32_t pool_pair_to_max(const struct pool_ratio *r, int64_t of)
{
	return r->min_milli == 0 ? POOL_REPLICAS_MAX : limited((1000 * of + slack(r->min_milli) - 1) / r->min_milli);
}
