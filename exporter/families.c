// SPDX-License-Identifier: Apache-2.0
#include "exporter/families.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/num.h"

static const struct family families[] = {
#define ROW(field, name, name_4_9, factor, id, type, kind, scope, unit, window, accumulates, help)                     \
	[field] = {name, name_4_9, factor, id, METRIC_##type, FIELD_##kind, FAMILY_##scope, unit, window, accumulates, help},
        FAMILIES(ROW)
#undef ROW
};
_Static_assert(sizeof families / sizeof families[0] == FIELD__COUNT, "one row per field");

const struct family *family_of(enum field f)
{
	assert(f >= 0 && f < FIELD__COUNT);
	return &families[f];
}

bool family_is_plausible(enum field f, double v)
{
	static const struct {
		const char *unit;
		double min, max;
	} ranges[] = {{"%", 0, 100},         {"C", -100, 200}, {"W", 0, 1e6},          {"MHz", 0, 1e6},
	              {"0-15", 0, 15},       {"0-1", 0, 1.1},  {"0/1", 0, 1},          {"lanes", 0, 256},
	              {"generation", 0, 32}, {"B/s", 0, 1e13}, {"code", 0, INT32_MAX}, {"MiB", 0, 1e9}};
	double min = 0, max = 9e18; // must fit 64 bits
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		if (strcmp(families[f].unit, ranges[i].unit) == 0) {
			min = ranges[i].min;
			max = ranges[i].max;
		}
	if (f == FIELD_FAN_SPEED)
		max = 1000;          // relative to the requested speed, which can exceed 100 %
	return v >= min && v <= max; // false for NaN
}

enum field family_find(const char *name)
{
	for (int f = 0; f < FIELD__COUNT; f++)
		if (strcmp(families[f].name, name) == 0)
			return (enum field)f;
	return FIELD__COUNT;
}

enum field family_find_id(int dcgm_id)
{
	for (int f = 0; f < FIELD__COUNT; f++)
		if (families[f].dcgm_id == dcgm_id && dcgm_id != 0)
			return (enum field)f;
	return FIELD__COUNT;
}

const char *family_closest_name(const char *name)
{
	const char *names[FIELD__COUNT];
	for (int f = 0; f < FIELD__COUNT; f++)
		names[f] = families[f].name;
	return num_closest_name(name, names, FIELD__COUNT);
}
