// SPDX-License-Identifier: Apache-2.0
// Time zones from the IANA database as it is installed: TZif files (RFC 8536) of version 2 or later, and the rule at
// their end (POSIX TZ) that applies after the last listed transition.
#ifndef GPUSCALE_BASE_TZ_TZFILE_H
#define GPUSCALE_BASE_TZ_TZFILE_H

#include "base/tz/tz_table.h"

struct arena;
struct err;

#define TZFILE_DIR            "/usr/share/zoneinfo" // unless $TZDIR says otherwise
#define TZFILE_BYTES_MAX      65536
#define TZFILE_NAME_BYTES_MAX 64
#define TZFILE_TIMES_MAX      2000 // transitions listed in a file
#define TZFILE_FIRST_YEAR     1970 // earlier transitions are left out
#define TZFILE_LAST_YEAR      2100 // up to here the rule is written out; later its last offset stays

// The table of a TZif file, in `a`. name is for messages. -1 and *e: ERR_INPUT (not such a file, cut short, leap
// seconds, times that do not rise, offsets of more than 26 h, a rule that cannot be read), ERR_LIMIT, ERR_INTERNAL.
int tzfile_parse(const char *name, const void *data, size_t len, struct arena *a, struct tz_table *ret, struct err *e);

// Writes the transitions of a POSIX TZ rule ("CET-1CEST,M3.5.0,M10.5.0/3") from the year first_year on to
// TZFILE_LAST_YEAR: at most max. The offset before them is *ret_offset_s. Returns how many, or -1 when it cannot be
// read.
int tzfile_rule(const char *rule, int first_year, int64_t *ret_at_s, int32_t *ret_offset_s_list, int max,
                int32_t *ret_offset_s);

// Reads the zone called `name` ("Europe/Zurich") from folder `dir` (NULL: $TZDIR, else TZFILE_DIR). "UTC" needs no
// file: its table has no transitions. -1 and *e: ERR_NOT_FOUND with the nearest name, ERR_INPUT for what cannot be a
// name, ERR_IO, and as tzfile_parse.
int tzfile_load(const char *dir, const char *name, struct arena *a, struct tz_table *ret, struct err *e);

#endif
