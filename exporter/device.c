// SPDX-License-Identifier: Apache-2.0
#include "exporter/device.h"

#include <math.h>

void sample_set(struct device_sample *s, enum field f, double v)
{
	if (family_of(f)->kind == FIELD_DOUBLE)
		sample_set_f64(s, f, v);
	else
		sample_set_i64(s, f, llround(v));
}

static double limit_share(enum field f, double v)
{
	return v > 1 && strcmp(family_of(f)->unit, "0-1") == 0 ? 1 : v;
}

void sample_offer(struct device_sample *s, enum field f, double v)
{
	if (family_is_plausible(f, v))
		sample_set(s, f, limit_share(f, v));
	else
		s->implausible++;
}

void sample_add(struct device_sample *s, const struct device_sample *from)
{
	s->implausible += from->implausible;
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		if (!sample_has(from, f))
			continue;
		s->valid[f] = true;
		s->value[f] = from->value[f];
	}
}

void sample_check(struct device_sample *s)
{
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		if (!s->valid[f])
			continue;
		double v = sample_get(s, f);
		if (!family_is_plausible(f, v)) {
			s->valid[f] = false;
			s->implausible++;
		} else if (family_of(f)->kind == FIELD_DOUBLE) {
			s->value[f].f = limit_share(f, v);
		}
	}
}
