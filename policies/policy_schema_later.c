// SPDX-License-Identifier: Apache-2.0
// Fields of the format whose stages do not exist yet: known to `explain`, refused by `check`. Their values go nowhere.
#include "policies/policy_schema_private.h"

#define LATER(field_name, field_type, text)                                                                            \
	{                                                                                                              \
		.name = (field_name), .type = (field_type), .doc = (text), FIELD_LATER                                 \
	}
#define LATER_SCHEMA(path, text, list)                                                                                 \
	{                                                                                                              \
		.name = "GPUAutoscaler.spec." path, .doc = (text), .fields = (list), .n_fields = COUNT_OF(list)        \
	}

static const struct schema_field schedule_fields[] = {
        LATER("name", SCHEMA_STRING, "Name of the window."),
        LATER("start", SCHEMA_STRING, "When it begins: a cron expression."),
        LATER("end", SCHEMA_STRING, "When it ends: a cron expression."),
        LATER("timeZone", SCHEMA_STRING, "IANA name of the time zone of both."),
        LATER("minReplicas", SCHEMA_INT32, "minReplicas inside the window."),
        LATER("maxReplicas", SCHEMA_INT32, "maxReplicas inside the window."),
};
const struct schema policy_schema_schedule =
        LATER_SCHEMA("schedules[]", "Other bounds in a window of time; the latest matching one wins.", schedule_fields);
