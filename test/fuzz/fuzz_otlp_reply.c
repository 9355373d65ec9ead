// SPDX-License-Identifier: Apache-2.0
// What an OTLP endpoint replies, as any bytes: a bounded text for a log on one line, and never a negative count.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "exporter/otlp/otlp_push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The first byte chooses the status, the rest is the body.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int statuses[] = {200, 202, 400, 429, 500, 503};
	char why[OTLP_WHY_BYTES];
	struct otlp_delivery d = {0};
	if (size == 0)
		return 0;
	int status = statuses[data[0] % (sizeof statuses / sizeof statuses[0])];
	enum otlp_outcome outcome = otlp_delivery_take(&d, status, (const char *)data + 1, size - 1, NULL, why);
	assert(strlen(why) < sizeof why && !strpbrk(why, "\n\r\033"));
	assert((outcome == OTLP_ACCEPTED) == (why[0] == '\0'));
	assert(outcome != OTLP_PARTIAL || d.rejected > 0);
	assert((status < 300) == (outcome == OTLP_ACCEPTED || outcome == OTLP_PARTIAL));
	return 0;
}
