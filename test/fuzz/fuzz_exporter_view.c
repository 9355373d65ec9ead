// SPDX-License-Identifier: Apache-2.0
// A page of metrics from elsewhere, read back, judged and shown; the same bytes as a policy file.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/cmd/exporter_cmd.h"

static void show(const struct page_view *v)
{
	struct buf out;
	buf_init(&out, 64 * 1024 * 1024);
	for (int command = COMMAND_TOP; command <= COMMAND_LIST; command++) {
		for (int output = 0; output < OUTPUT__COUNT; output++) {
			const struct exporter_options o = {.command = (enum exporter_command)command,
			                                   .output = (enum exporter_output)output};
			gpu_table_put(&o, v, 1767225600123, true, &out);
		}
	}
	assert(!out.failed);
	buf_done(&out);
}

// Whatever the page contains, these numbers are valid.
static void check_view(const struct page_view *v)
{
	assert(v->n <= DEVICES_MAX && v->lost >= 0 && v->missing >= 0);
	assert(!v->has_age || (v->age_s >= 0 && v->age_s <= PAGE_VIEW_AGE_MAX_S));
	for (size_t i = 0; i < v->n; i++) {
		const struct page_view_gpu *g = &v->gpus[i];
		assert(g->n_xids <= XID_CODES_MAX + 1 && g->device.index >= -1);
		for (size_t k = 0; k < g->n_xids; k++)
			assert(g->xids[k].last_s >= 0 && g->xids[k].last_s < 1e15);
		for (int f = 0; f < FIELD__COUNT; f++)
			assert(!g->has[f] || isfinite(g->value[f]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct health_policy p;
	struct buf errors;
	struct err e = {.kind = ERR_NONE};
	buf_init(&errors, 1024 * 1024);
	health_policy_init(&p);
	int rc = health_policy_parse(&p, "f", (const char *)data, size, &errors, &e);
	assert((rc == 0) == (e.kind == ERR_NONE));
	assert(p.n <= HEALTH_ROWS_MAX);
	buf_done(&errors);
	e.kind = ERR_NONE;
	struct page_view *v = page_view_new((const char *)data, size, &e);
	if (!v) {
		assert(e.kind != ERR_NONE && e.msg[0]);
		return 0;
	}
	assert(size == 0 || data[size - 1] == '\n'); // what was cut off is refused
	check_view(v);
	struct health_finding *f = calloc(HEALTH_FINDINGS_MAX, sizeof *f);
	if (!f)
		abort();
	size_t n = health_classify(&p, v, INT64_C(1700000000000), f, HEALTH_FINDINGS_MAX);
	assert(n <= HEALTH_FINDINGS_MAX);
	for (size_t i = 0; i < n; i++)
		assert(f[i].action > HEALTH_IGNORE && (i == 0 || f[i - 1].action >= f[i].action));
	free(f);
	show(v);
	page_view_free(v);
	return 0;
}
