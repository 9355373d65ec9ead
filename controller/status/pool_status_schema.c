// SPDX-License-Identifier: Apache-2.0
#include "controller/status/pool_status_schema.h"

#include "controller/status/status_rows.h"
#include "policies/pool/pool_month.h"

#define MEMBER    struct pool_status_member
#define STATUS    struct pool_status
#define SPENDING  struct pool_status_spending
#define DAY       struct pool_status_day
#define MONEY_MAX 1e12

static const struct schema_field member_fields[] = {
        // clang-format off
	FIELD(MEMBER, "name", SCHEMA_STRING, name, "The policy, as namespace/name.", .required = true, .min = 1, .max = POOL_STATUS_NAME_BYTES),
	FIELD(MEMBER, "requested", SCHEMA_INT32, requested, "Replicas that the policy asks for.", .min = 0),
	FIELD(MEMBER, "granted", SCHEMA_INT32, granted, "Replicas that the pool grants.", .min = 0),
	FIELD(MEMBER, "gpus", SCHEMA_INT32, gpus, "GPUs that the member counts for: the largest of granted, current and pending replicas.", .min = 0),
	FIELD(MEMBER, "reason", SCHEMA_STRING, reason, "Why, in one word.", .max = 63),
	FIELD(MEMBER, "message", SCHEMA_STRING, message, "Why, in one sentence.", .max = POOL_STATUS_SENTENCE_BYTES),
        // clang-format on
};

OBJECT(member_schema, "GPUPool.status.members[]", MEMBER, member_fields, "What one member asked for and got.");

static const struct schema_field day_fields[] = {
        // clang-format off
	FIELD(DAY, "start", SCHEMA_TIME_MS, start_ms, "When the day starts, UTC.", .required = true, .min = 0),
	FIELD(DAY, "spent", SCHEMA_QUANTITY, spent, "What the recorded part of the day cost.", .required = true, .min = 0, .max = MONEY_MAX),
        // clang-format on
};

OBJECT(day_schema, "GPUPool.status.spending.days[]", DAY, day_fields, "What one day cost.");

static const struct schema_field spending_fields[] = {
        // clang-format off
	FIELD(SPENDING, "since", SCHEMA_TIME_MS, since_ms, "When the record starts.", .required = true, .min = 0),
	FIELD(SPENDING, "until", SCHEMA_TIME_MS, until_ms, "The end of the time that was counted.", .required = true, .min = 0),
	FIELD(SPENDING, "spent", SCHEMA_QUANTITY, spent, "What the members cost in the calendar month of `until` (UTC), as far as it was recorded: price x GPUs x time.", .required = true, .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "assumed", SCHEMA_QUANTITY, assumed, "The part of spent that counts for times without a controller, at the larger of the costs before and after.", .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "perHour", SCHEMA_QUANTITY, per_hour, "What the members cost per hour at `until`.", .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "projected", SCHEMA_QUANTITY, projected, "What the month will have cost at its end, if the rest costs as much per hour as the last seven days.", .min = 0, .max = MONEY_MAX),
	LIST(SPENDING, "days", days, n_days, "What the last days cost, the current one first.", POOL_LEDGER_DAYS, day_schema, .list_key = "start"),
        // clang-format on
};

OBJECT(spending_schema, "GPUPool.status.spending", SPENDING, spending_fields,
       "What a pool with a budget has spent, in the currency of its prices.");

static const struct schema_field status_fields[] = {
        // clang-format off
	FIELD(STATUS, "observedGeneration", SCHEMA_INT64, observed_generation, "metadata.generation of the version that is in force.", .min = 0),
	FIELD(STATUS, "lastUpdateTime", SCHEMA_TIME_MS, updated_ms, "When this status was written.", .min = 0),
	FIELD(STATUS, "gpus", SCHEMA_INT64, gpus, "The cap in force.", .min = 0),
	FIELD(STATUS, "usedGPUs", SCHEMA_INT64, used_gpus, "GPUs that the members count for.", .min = 0),
	FIELD(STATUS, "memberCount", SCHEMA_INT32, member_count, "Policies that belong to the pool.", .min = 0),
	FIELD(STATUS, "limitedCount", SCHEMA_INT32, limited_count, "Members that got less than they asked for.", .min = 0),
	FIELD(STATUS, "message", SCHEMA_STRING, message, "The state of the pool in one sentence.", .max = POOL_STATUS_SENTENCE_BYTES),
	FIELD(STATUS, "spending", SCHEMA_OBJECT, spending, "What a pool with a budget has spent, in the currency of its prices.", .child = &spending_schema),
	LIST(STATUS, "members", members, n_members, "The members, in the order of their names.", POOL_STATUS_MEMBERS_MAX, member_schema, .list_key = "name"),
        // clang-format on
};

OBJECT(schema, "GPUPool.status", STATUS, status_fields,
       "The cap, what is used, and what each member asked for and got. Written by the controller only.");

const struct schema *pool_status_schema(void)
{
	return &schema;
}

const struct schema *pool_spending_schema(void)
{
	return &spending_schema;
}
