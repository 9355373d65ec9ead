// SPDX-License-Identifier: Apache-2.0
#include "controller/status/pool_status_schema.h"

#include "base/schema/schema.h"
#include "policies/pool/pool_ledger.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define FIELD(type_, key, kind, member, text, ...)                                                                     \
	{                                                                                                              \
		.name = key, .type = kind, .doc = text, .offset = offsetof(type_, member),                             \
		.set_offset = SCHEMA_NO_OFFSET, .count_offset = SCHEMA_NO_OFFSET, __VA_ARGS__                          \
	}
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

static const struct schema member_schema = {
        .name = "GPUPool.status.members[]",
        .doc = "What one member asked for and got.",
        .struct_size = sizeof(MEMBER),
        .fields = member_fields,
        .n_fields = N(member_fields),
};

static const struct schema_field day_fields[] = {
        // clang-format off
	FIELD(DAY, "start", SCHEMA_TIME_MS, start_ms, "When the day starts, UTC.", .required = true, .min = 0),
	FIELD(DAY, "spent", SCHEMA_QUANTITY, spent, "What the recorded part of the day cost.", .required = true, .min = 0, .max = MONEY_MAX),
        // clang-format on
};

static const struct schema day_schema = {
        .name = "GPUPool.status.spending.days[]",
        .doc = "What one day cost.",
        .struct_size = sizeof(DAY),
        .fields = day_fields,
        .n_fields = N(day_fields),
};

static const struct schema_field spending_fields[] = {
        // clang-format off
	FIELD(SPENDING, "since", SCHEMA_TIME_MS, since_ms, "When the record starts.", .required = true, .min = 0),
	FIELD(SPENDING, "until", SCHEMA_TIME_MS, until_ms, "The end of the time that was counted.", .required = true, .min = 0),
	FIELD(SPENDING, "spent", SCHEMA_QUANTITY, spent, "What the members cost in the calendar month of `until` (UTC), as far as it was recorded: price x GPUs x time.", .required = true, .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "assumed", SCHEMA_QUANTITY, assumed, "The part of spent that counts for times without a controller, at the larger of the costs before and after.", .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "perHour", SCHEMA_QUANTITY, per_hour, "What the members cost per hour at `until`.", .min = 0, .max = MONEY_MAX),
	FIELD(SPENDING, "projected", SCHEMA_QUANTITY, projected, "What the month will have cost at its end, if the rest costs as much per hour as the last seven days.", .min = 0, .max = MONEY_MAX),
	{.name = "days", .type = SCHEMA_LIST, .doc = "What the last days cost, the current one first.", .offset = offsetof(SPENDING, days), .set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(SPENDING, n_days), .max_items = POOL_LEDGER_DAYS, .list_key = "start", .child = &day_schema},
        // clang-format on
};

static const struct schema spending_schema = {
        .name = "GPUPool.status.spending",
        .doc = "What a pool with a budget has spent, in the currency of its prices.",
        .struct_size = sizeof(SPENDING),
        .fields = spending_fields,
        .n_fields = N(spending_fields),
};

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
	{.name = "members", .type = SCHEMA_LIST, .doc = "The members, in the order of their names.", .offset = offsetof(STATUS, members), .set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(STATUS, n_members), .max_items = POOL_STATUS_MEMBERS_MAX, .list_key = "name", .child = &member_schema},
        // clang-format on
};

static const struct schema schema = {
        .name = "GPUPool.status",
        .doc = "The cap, what is used, and what each member asked for and got. Written by the controller only.",
        .struct_size = sizeof(STATUS),
        .fields = status_fields,
        .n_fields = N(status_fields),
};

const struct schema *pool_status_schema(void)
{
	return &schema;
}

const struct schema *pool_spending_schema(void)
{
	return &spending_schema;
}
