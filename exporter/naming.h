// SPDX-License-Identifier: Apache-2.0
// Which names the metrics of a GPU have: those of dcgm-exporter up to 4.8, those of dcgm-exporter 4.9 (DCGM 4.7), or
// those of OpenTelemetry's semantic conventions for hardware as Prometheus writes them. The 4.9 names and the
// conventions use base units, so that a name comes with a factor for the value.
#ifndef GPUSCALE_EXPORTER_NAMING_H
#define GPUSCALE_EXPORTER_NAMING_H

#include <stddef.h>

#include "exporter/families.h"

enum naming { NAMING_LEGACY, NAMING_4_9, NAMING_OTEL, NAMING__COUNT };

#define NAMING_NAME_BYTES 96
#define NAMING_HELP_BYTES 512
// The version of the semantic conventions that the rows follow.
#define NAMING_SEMCONV_VERSION "1.40.0"
#define NAMING_SCHEMA_URL      "https://opentelemetry.io/schemas/" NAMING_SEMCONV_VERSION

enum otel_instrument { OTEL_GAUGE, OTEL_COUNTER, OTEL_UP_DOWN_COUNTER };

#define OTEL_ATTRIBUTES_MAX 2
// A metric of the semantic conventions: the GPU's own metric, or that of a part of it.
struct otel_metric {
	const char *name; // "hw.gpu.utilization"; NULL: the conventions have no such metric
	enum otel_instrument instrument;
	const char *unit; // UCUM: "1", "By", "W"
	const char *help;
	struct otel_attribute {
		const char *key, *value; // NULL key: none
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
// not have keeps its name of 4.9. The texts are valid forever, except that `name` contains the name of a metric of the
// conventions.
struct naming_family naming_family_of(enum naming n, enum field f, char name[NAMING_NAME_BYTES]);
// Writes the help text of `nf`, the family of `f`, to out[0..size): `help` in the unit of the naming.
void naming_write_help(char *out, size_t size, const struct naming_family *nf, enum field f, const char *help);
// The metric of `f` in the semantic conventions, or NULL, and *ret_factor for its value.
const struct otel_metric *naming_otel_of(enum field f, double *ret_factor);
// Writes the name that Prometheus gives to the metric `m`, and to the attribute `key`.
void naming_prometheus_name(const struct otel_metric *m, char out[NAMING_NAME_BYTES]);
void naming_label_name(const char *key, char out[NAMING_NAME_BYTES]);
// Finds the family called `name` in the legacy or the 4.9 naming, and the factor of that name. FIELD__COUNT: there is
// none.
enum field naming_find(const char *name, double *ret_factor);

#endif
