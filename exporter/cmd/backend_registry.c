// SPDX-License-Identifier: Apache-2.0
#include "exporter/cmd/backend_registry.h"

#include <string.h>

#include "base/buf.h"
#include "base/print.h"
#include "exporter/cmd/backend_auto.h"
#include "exporter/dcgm/backend_dcgm.h"
#include "exporter/mock/backend_mock.h"
#include "exporter/nvml/backend_nvml.h"
#include "exporter/sysfs/backend_sysfs.h"

static struct backend *make_auto(const struct backend_config *config, struct err *e);

// The first probed row must be NVIDIA's (backend_auto.h).
// clang-format off
static const struct backend_row rows[] = {
	// name    help                                          make                probed         scripted
	{"auto",   "chosen by the GPUs of the node",            make_auto,          .probed = false},
	{"nvml",   "NVIDIA GPUs through NVML",                   backend_nvml_new,   .probed = true},
	{"dcgm",   "NVIDIA GPUs through nv-hostengine",          backend_dcgm_new,   .probed = false},
	{"amdgpu", "AMD GPUs through sysfs",                     backend_amdgpu_new, .probed = true},
	{"intel",  "Intel GPUs through sysfs",                   backend_intel_new,  .probed = true},
	{"mock",   "simulated GPUs",                             backend_mock_new,   .probed = false, .scripted = true},
};
// clang-format on
#define ROWS (sizeof rows / sizeof rows[0])
_Static_assert(ROWS <= BACKEND_CANDIDATES_MAX, "every row can be a candidate of auto");

const struct backend_row *backend_registry_find(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

void backend_registry_put_names(struct buf *out, const char *separator, const char *last)
{
	for (size_t i = 0; i < ROWS; i++)
		print_to(out, "%s%s", i == 0 ? "" : i + 1 == ROWS ? last : separator, rows[i].name);
}

void backend_registry_put_help(struct buf *out)
{
	for (size_t i = 0; i < ROWS; i++)
		print_to(out, "%s%s: %s", i == 0 ? "" : "; ", rows[i].name, rows[i].help);
}

static struct backend *make_auto(const struct backend_config *config, struct err *e)
{
	struct backend *candidates[ROWS], *b = NULL;
	size_t n = 0;
	bool complete = true;
	for (size_t i = 0; complete && i < ROWS; i++) {
		if (!rows[i].probed)
			continue;
		candidates[n] = rows[i].make(config, e);
		complete = candidates[n] != NULL;
		n += complete;
	}
	struct backend_config profiling_config = *config;
	profiling_config.dcgm_profiling_only = true;
	struct backend *profiling = complete ? backend_dcgm_new(&profiling_config, e) : NULL;
	if (profiling)
		b = backend_auto_new(candidates, n, profiling, config->sysfs_root, config->log, e);
	if (!b && profiling)
		profiling->ops->destroy(profiling);
	for (size_t i = 0; !b && i < n; i++)
		candidates[i]->ops->destroy(candidates[i]);
	return b;
}
