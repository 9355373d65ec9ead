// SPDX-License-Identifier: Apache-2.0
// The offsets of a time zone over time, as plain data: read by base/tz/tzfile.c, searched by the decision core.
#ifndef GPUSCALE_BASE_TZ_TZ_TABLE_H
#define GPUSCALE_BASE_TZ_TZ_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define TZ_OFFSET_MAX_S 93600 // 26 h: the most that any zone lies off UTC, either way. RFC 8536, section 3.2

struct tz_table {
	const int64_t *at_s;     // transitions: seconds since the epoch, UTC, rising
	const int32_t *offset_s; // seconds east of UTC from at_s[i] on
	size_t n;
	int32_t first_offset_s; // before at_s[0]
};

#endif
