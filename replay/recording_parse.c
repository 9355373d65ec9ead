// SPDX-License-Identifier: Apache-2.0
// Chooses the reader of a file: OpenMetrics or CSV.
#include <string.h>

#include "replay/recording.h"
#include "replay/recording_csv.h"
#include "replay/recording_openmetrics.h"

int recording_parse(const char *text, size_t len, const char *file, struct recording *ret, struct err *e)
{
	memset(ret, 0, sizeof *ret);
	if (recording_is_openmetrics(text, len)) {
		ret->format = RECORDING_OPENMETRICS;
		return recording_openmetrics_parse(text, len, file, ret, e);
	}
	return recording_csv_parse(text, len, file, ret, e);
}
