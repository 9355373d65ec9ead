// SPDX-License-Identifier: Apache-2.0
// The counters file: whatever it holds, rows are fields once each with a type and a help, and every remark is a line.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/csv_counters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct csv_counters c;
	struct buf remarks;
	struct err e;
	buf_init(&remarks, 1024 * 1024);
	if (csv_counters_parse(&c, "f", (const char *)data, size, &remarks, &e) == 0) {
		bool seen[FIELD__COUNT] = {false};
		assert(c.n > 0 && c.n <= FIELD__COUNT);
		for (size_t i = 0; i < c.n; i++) {
			assert(!seen[c.rows[i].field]);
			seen[c.rows[i].field] = true;
			assert(c.rows[i].help[0]);
			assert(c.rows[i].type == METRIC_GAUGE || c.rows[i].type == METRIC_COUNTER);
		}
		assert((c.skipped == 0) == (remarks.len == 0));
		csv_counters_done(&c);
	}
	for (const char *p = buf_str(&remarks), *end; *p; p = end + 1) {
		assert(strncmp(p, "f:", 2) == 0);
		end = strchr(p, '\n');
		assert(end);
	}
	buf_done(&remarks);
	return 0;
}
