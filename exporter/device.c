// SPDX-License-Identifier: Apache-2.0
#include "exporter/device.h"

void sample_check(struct device_sample *s)
{
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		if (!s->valid[f])
			continue;
		double v = sample_get(s, f);
		if (!family_is_plausible(f, v)) {
			s->valid[f] = false;
			s->implausible++;
		} else if (v > 1 && family_of(f)->kind == FIELD_DOUBLE && strcmp(family_of(f)->unit, "0-1") == 0) {
			s->value[f].f = 1;
		}
	}
}
