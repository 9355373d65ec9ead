// SPDX-License-Identifier: Apache-2.0
// The metrics of a GPU as the exporter serves them: the families of base/gpu_families.h. Backends fill samples by enum
// field; the renderer, the mock script, the counters file and the commands use this table.
#ifndef GPUSCALE_EXPORTER_FAMILIES_H
#define GPUSCALE_EXPORTER_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exposition.h"
#include "base/gpu_families.h"

// clang-format off
#define ROW(field, ...) field,
enum field { FAMILIES(ROW) FIELD__COUNT };
#undef ROW
// clang-format on

enum field_kind { FIELD_INT, FIELD_DOUBLE };

// The scope of a family. No family is a figure of a time slice: the pods that share a GPU all have its series.
enum family_scope {
	FAMILY_WHOLE, // a GPU that is not divided; what an exporter serves for a MIG instance, or for its GPU, means
	              // nothing
	FAMILY_CARD,  // a GPU, divided or not; dcgm-exporter repeats it for each instance
	FAMILY_EACH,  // a GPU, and each instance
};

struct family {
	const char *name;     // "DCGM_FI_DEV_GPU_UTIL"
	const char *name_4_9; // name in dcgm-exporter 4.9; NULL: the same
	double factor_4_9;    // value under name_4_9 = factor_4_9 * value under `name`
	int dcgm_id;          // DCGM field id; 0: a family of gpuscale's
	enum metric_type type;
	enum field_kind kind; // the value is printed with %d or %f
	enum family_scope scope;
	const char *unit; // for people
	// "gpu_util": the minimum, maximum and mean over the window are served as gpuscale_gpu_gpu_util_window_*.
	const char *window;
	bool accumulates; // the driver resets this counter; the sampler continues it (device_history.c)
	const char *help;
};

// The row of `f`. Never NULL.
const struct family *family_of(enum field f);
// True if a device can have the value `v`: a finite number of at least 0 (only temperatures may be negative) and, by
// its unit, at most 100 %, performance state 15, a share of 1.1, a million watts and so on. Drivers and files report
// other values (all bits set, 65535) when they have none. The sampler leaves out what is not plausible, whatever the
// backend.
bool family_is_plausible(enum field f, double v);
// The field of the family called `name`, or FIELD__COUNT.
enum field family_find(const char *name);
// The field with this DCGM id, or FIELD__COUNT.
enum field family_find_id(int dcgm_id);
// The family name closest to `name`, or NULL.
const char *family_closest_name(const char *name);

// ---- names ----

// The names of dcgm-exporter up to 4.8, those of dcgm-exporter 4.9 (DCGM 4.7), or those of OpenTelemetry's semantic
// conventions for hardware as Prometheus writes them. The 4.9 names and the conventions use base units, so that a name
// comes with a factor for the value.

enum naming { NAMING_LEGACY, NAMING_4_9, NAMING_OTEL, NAMING__COUNT };

#define NAMING_HELP_BYTES 512
// The version of the semantic conventions that the rows follow.
#define NAMING_SEMCONV_VERSION "1.40.0"
#define NAMING_SCHEMA_URL      "https://opentelemetry.io/schemas/" NAMING_SEMCONV_VERSION

enum otel_instrument { OTEL_GAUGE, OTEL_COUNTER, OTEL_UP_DOWN_COUNTER };

#define OTEL_ATTRIBUTES_MAX 2
// A metric of the semantic conventions: the GPU's own metric, or that of a part of it.
struct otel_metric {
	const char *name;       // "hw.gpu.utilization"; NULL: the conventions have no such metric
	const char *prometheus; // "hw_gpu_utilization_ratio", its name in Prometheus
	double factor;          // value of the metric = factor * value of the family
	enum otel_instrument instrument;
	const char *unit; // UCUM: "1", "By", "W"
	const char *help;
	struct otel_attribute {
		const char *key, *label, *value; // NULL key: none; `label` is the key in Prometheus
	} attributes[OTEL_ATTRIBUTES_MAX];
};

// A family under one naming.
struct naming_family {
	const char *name;
	double factor; // factor of the value; 1: the value is unchanged
	enum metric_type type;
	const struct otel_metric
	        *otel; // its attributes distinguish the fields that share `name`; NULL: `name` has one field
};

// The family of `f` under `n`. A family of gpuscale's has one name. With NAMING_OTEL, a family that the conventions do
// not have keeps its name of 4.9. The texts are valid forever.
struct naming_family naming_family_of(enum naming n, enum field f);
// Writes the help text of `nf`, the family of `f`, to out[0..size): `help` in the unit of the naming.
void naming_write_help(char *out, size_t size, const struct naming_family *nf, enum field f, const char *help);
// The metric of `f` in the semantic conventions, or NULL.
const struct otel_metric *naming_otel_of(enum field f);
// Finds the family called `name` in the legacy or the 4.9 naming, and the factor of that name. FIELD__COUNT: there is
// none.
enum field naming_find(const char *name, double *ret_factor);

#endif
