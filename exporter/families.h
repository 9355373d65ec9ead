// SPDX-License-Identifier: Apache-2.0
// The one table of what the exporter can say about a GPU: dcgm-exporter's legacy names, with their ids, types and
// units. Backends fill readings by enum field; the renderer, the mock script and the documentation follow this table.
#ifndef GPUSCALE_EXPORTER_FAMILIES_H
#define GPUSCALE_EXPORTER_FAMILIES_H

#include <stddef.h>

#include "base/exposition.h"

// In the order of the exposition.
enum field {
	FIELD_SM_CLOCK,
	FIELD_MEM_CLOCK,
	FIELD_MEMORY_TEMP,
	FIELD_GPU_TEMP,
	FIELD_POWER_USAGE,
	FIELD_TOTAL_ENERGY,
	FIELD_POWER_LIMIT,
	FIELD_PCIE_REPLAY,
	FIELD_GPU_UTIL,
	FIELD_MEM_COPY_UTIL,
	FIELD_ENC_UTIL,
	FIELD_DEC_UTIL,
	FIELD_CLOCKS_EVENT_REASONS,
	FIELD_XID_ERRORS,
	FIELD_FB_TOTAL,
	FIELD_FB_FREE,
	FIELD_FB_USED,
	FIELD_FB_RESERVED,
	FIELD_ECC_SBE_VOL,
	FIELD_ECC_DBE_VOL,
	FIELD_ECC_SBE_AGG,
	FIELD_ECC_DBE_AGG,
	FIELD_GR_ENGINE_ACTIVE,
	FIELD_SM_ACTIVE,
	FIELD_SM_OCCUPANCY,
	FIELD_PIPE_TENSOR_ACTIVE,
	FIELD_DRAM_ACTIVE,
	FIELD_PCIE_TX_BYTES,
	FIELD_PCIE_RX_BYTES,
	FIELD__COUNT
};

enum field_kind { FIELD_INT, FIELD_DOUBLE };

struct family {
	const char *name; // "DCGM_FI_DEV_GPU_UTIL"
	int dcgm_id;      // DCGM field id
	enum metric_type type;
	enum field_kind kind; // how the value is written: %d or %f
	const char *unit;     // for people
	const char *help;
};

// The row of `f`. Never NULL.
const struct family *family_of(enum field f);
// The field called name, or FIELD__COUNT.
enum field family_find(const char *name);
// The table's name nearest to a misspelt one, or NULL.
const char *family_closest_name(const char *name);

#endif
