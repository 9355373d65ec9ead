// SPDX-License-Identifier: Apache-2.0
// The table of the mock script's fields (base/schema.h).
#ifndef GPUSCALE_EXPORTER_MOCK_SCHEMA_H
#define GPUSCALE_EXPORTER_MOCK_SCHEMA_H

#include "base/schema.h"
#include "exporter/mock_script.h"

// A series given as a map.
struct mock_series_map {
	struct mock_sine sine;
};

extern const struct schema mock_script_schema; // struct mock_script
extern const struct schema mock_series_schema; // struct mock_series_map

#endif
