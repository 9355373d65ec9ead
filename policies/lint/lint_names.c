// SPDX-License-Identifier: Apache-2.0
#include "policies/lint/lint_names.h"

#include <string.h>

#include "base/dcgm_names.h"
#include "base/num.h"
#include "promql/lexer.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"

static bool next_alternative(struct lint_metric_names *r, const char **ret_name, size_t *ret_len)
{
	if (r->rest >= r->end)
		return false;
	size_t len = strspn(r->rest, NAME_CHARACTERS);
	*ret_name = r->rest;
	*ret_len = len;
	r->rest += len + 1; // behind the '|' or the quote
	return true;
}

// Whether the string, without its quotes, holds nothing but names, with '|' between them if `is_regex`.
static bool holds_names(const char *s, size_t len, bool is_regex)
{
	const char *end = s + len;
	for (;; s++) {
		size_t n = strspn(s, NAME_CHARACTERS);
		s += n;
		if (n == 0 || s > end || (s < end && (!is_regex || *s != '|')))
			return false;
		if (s == end)
			return true;
	}
}

// A quoted name of a label ({"a.b"="c"}) is followed by an operator, a quoted name of a metric is not.
static bool is_label(const char *behind)
{
	struct promql_token t = promql_next(&behind);
	return promql_token_is_sign(&t, '=') || promql_token_is_sign(&t, '!');
}

// Reads a string inside braces: the value of a matcher, or a name.
static void read_string(struct lint_metric_names *r, const struct promql_token *t)
{
	bool is_name = r->is_start ? !is_label(r->next) : r->is_name_label && r->is_equal;
	if (is_name && !t->is_open && t->len > 2 && holds_names(t->start + 1, t->len - 2, r->is_regex)) {
		r->rest = t->start + 1;
		r->end = t->start + t->len - 1;
	}
}

static void read_in_braces(struct lint_metric_names *r, const struct promql_token *t)
{
	static const char *const label[] = {"__name__", NULL};
	bool was_start = r->is_start;
	r->is_start = promql_token_is_sign(t, ',');
	if (r->is_start || was_start)
		r->is_name_label = r->is_equal = r->is_regex = false;
	if (promql_token_is_sign(t, '}'))
		r->in_braces = false;
	else if (t->kind == PROMQL_TOKEN_NAME)
		r->is_name_label = was_start && promql_token_is_word(t, label);
	else if (promql_token_is_sign(t, '='))
		r->is_equal = true;
	else if (promql_token_is_sign(t, '!'))
		r->is_name_label = false;
	else if (promql_token_is_sign(t, '~'))
		r->is_regex = true;
	if (t->kind == PROMQL_TOKEN_STRING) {
		r->is_start = was_start;
		read_string(r, t);
		r->is_start = false;
	}
}

bool lint_metric_names_next(struct lint_metric_names *r, const char **ret_name, size_t *ret_len)
{
	while (!next_alternative(r, ret_name, ret_len)) {
		struct promql_token t = promql_next(&r->next);
		if (t.kind == PROMQL_TOKEN_END)
			return false;
		if (r->in_braces) {
			read_in_braces(r, &t);
		} else if (promql_token_is_sign(&t, '{')) {
			r->in_braces = r->is_start = true;
		} else if (t.kind == PROMQL_TOKEN_NAME) {
			*ret_name = t.start;
			*ret_len = t.len;
			return true;
		}
	}
	return true;
}

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

// Names of dcgm-exporter up to 4.8; base/dcgm_names.h has those of 4.9. test_lint holds it against the exporter's own
// table. Violations, ECC, energy and link errors only grow; NVLINK_BANDWIDTH_TOTAL is typed a counter and is a rate all
// the same.
static const struct {
	const char *name;
	enum lint_kind kind;
} table[] = {
        {"DCGM_FI_DEV_SM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MEM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_VIDEO_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MAX_SM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MAX_MEM_CLOCK", LINT_GAUGE},
        {"DCGM_FI_DEV_MEMORY_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_GPU_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_SLOWDOWN_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_SHUTDOWN_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_POWER_USAGE", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_USAGE_INSTANT", LINT_WATTS},
        {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", LINT_COUNTER},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", LINT_WATTS},
        {"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", LINT_WATTS},
        {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", LINT_WATTS},
        {"DCGM_FI_DEV_PSTATE", LINT_GAUGE},
        {"DCGM_FI_DEV_FAN_SPEED", LINT_PERCENT},
        {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", LINT_COUNTER},
        {"DCGM_FI_DEV_PCIE_MAX_LINK_GEN", LINT_GAUGE},
        {"DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", LINT_GAUGE},
        {"DCGM_FI_DEV_PCIE_LINK_GEN", LINT_GAUGE},
        {"DCGM_FI_DEV_PCIE_LINK_WIDTH", LINT_GAUGE},
        {"DCGM_FI_DEV_GPU_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_MEM_COPY_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_ENC_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_DEC_UTIL", LINT_PERCENT},
        {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", LINT_GAUGE},
        {"DCGM_FI_DEV_XID_ERRORS", LINT_CODE},
        {"DCGM_FI_DEV_POWER_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_THERMAL_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_LOW_UTIL_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_RELIABILITY_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", LINT_COUNTER},
        {"DCGM_FI_DEV_FB_TOTAL", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_FREE", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_USED", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_RESERVED", LINT_GAUGE},
        {"DCGM_FI_DEV_FB_USED_PERCENT", LINT_RATIO},
        {"DCGM_FI_DEV_BAR1_TOTAL", LINT_GAUGE},
        {"DCGM_FI_DEV_BAR1_USED", LINT_GAUGE},
        {"DCGM_FI_DEV_BAR1_FREE", LINT_GAUGE},
        {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_RETIRED_SBE", LINT_COUNTER},
        {"DCGM_FI_DEV_RETIRED_DBE", LINT_COUNTER},
        {"DCGM_FI_DEV_RETIRED_PENDING", LINT_COUNTER},
        {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", LINT_COUNTER},
        {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", LINT_COUNTER},
        {"DCGM_FI_DEV_ROW_REMAP_FAILURE", LINT_GAUGE},
        {"DCGM_FI_DEV_ROW_REMAP_PENDING", LINT_GAUGE},
        {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", LINT_COUNTER},
        {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", LINT_RATE},
        {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", LINT_GAUGE},
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_SM_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_SM_OCCUPANCY", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_DRAM_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PCIE_TX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_PCIE_RX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_NVLINK_TX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_NVLINK_RX_BYTES", LINT_RATE},
        {"DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", LINT_RATIO},
        {"DCGM_FI_PROF_PIPE_INT_ACTIVE", LINT_RATIO},
        // Fields of DCGM that dcgm-exporter serves when its counters file names them.
        {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", LINT_GAUGE},
        {"DCGM_FI_DEV_GPU_MAX_OP_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_MEM_MAX_OP_TEMP", LINT_DEGREES},
        {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT", LINT_RATE},
        {"DCGM_FI_DEV_PCIE_RX_THROUGHPUT", LINT_RATE},
        {"DCGM_FI_DRIVER_VERSION", LINT_GAUGE},
        {"DCGM_FI_SYSTEM_DRIVER_VERSION", LINT_GAUGE},
        {"DCGM_FI_PROCESS_NAME", LINT_GAUGE},
        {"DCGM_FI_NVML_VERSION", LINT_GAUGE},
        {"DCGM_FI_CUDA_DRIVER_VERSION", LINT_GAUGE},
        {"DCGM_FI_DEV_NAME", LINT_GAUGE},
        {"DCGM_FI_DEV_SERIAL", LINT_GAUGE},
        {"DCGM_FI_DEV_BRAND", LINT_GAUGE},
        {"DCGM_FI_DEV_COUNT", LINT_GAUGE},
        {"DCGM_FI_DEV_VBIOS_VERSION", LINT_GAUGE},
        {"DCGM_FI_DEV_OEM_INFOROM_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_ECC_INFOROM_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_POWER_INFOROM_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_INFOROM_IMAGE_VER", LINT_GAUGE},
        {"DCGM_FI_DEV_COMPUTE_MODE", LINT_GAUGE},
        {"DCGM_FI_DEV_PERSISTENCE_MODE", LINT_GAUGE},
        {"DCGM_FI_DEV_MIG_MODE", LINT_GAUGE},
        {"DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", LINT_RATE},
};

// Fields with a lane or link number at their end: NVLINK_BANDWIDTH_L0, PROF_NVLINK_L3_TX_BYTES, ...
static bool is_numbered(const char *name)
{
	return strncmp(name, "DCGM_FI_DEV_NVLINK_", 19) == 0 || strncmp(name, "DCGM_FI_PROF_NVLINK_L", 21) == 0 ||
	       strncmp(name, "DCGM_FI_DEV_ECC_", 16) == 0 || strncmp(name, "DCGM_FI_PROF_C2C_", 17) == 0;
}

// Names that are often written but never existed, and the name that is meant.
static const struct {
	const char *wrong, *right;
} often_wrong[] = {
        {"DCGM_FI_DEV_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES"},
        {"DCGM_FI_DEV_PCIE_RX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES"},
        {"DCGM_FI_DEV_SM_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"},
        {"DCGM_FI_DEV_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"},
        {"DCGM_FI_DEV_GPU_UTILIZATION", "DCGM_FI_DEV_GPU_UTIL"},
        {"DCGM_FI_DEV_MEMORY_USED", "DCGM_FI_DEV_FB_USED"},
        {"DCGM_FI_DEV_MEM_USED", "DCGM_FI_DEV_FB_USED"},
        {"DCGM_FI_DEV_TEMPERATURE", "DCGM_FI_DEV_GPU_TEMP"},
        {"DCGM_FI_DEV_POWER", "DCGM_FI_DEV_POWER_USAGE"},
};

static enum lint_kind kind_of(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].kind;
	return LINT_KIND__COUNT;
}

enum lint_kind lint_name_kind(const char *name)
{
	enum lint_kind kind = kind_of(name);
	const struct dcgm_name *renamed = dcgm_name_find(name, strlen(name), true);
	if (kind == LINT_KIND__COUNT && renamed) {
		kind = kind_of(renamed->legacy);
		if (kind == LINT_PERCENT && renamed->factor < 1)
			kind = LINT_RATIO;
	}
	return kind;
}

bool lint_name_is_unknown(const char *name, const char **ret_meant)
{
	if (strncmp(name, "DCGM_FI_", 8) != 0 || lint_name_kind(name) != LINT_KIND__COUNT || is_numbered(name))
		return false;
	*ret_meant = NULL;
	for (size_t i = 0; i < COUNT_OF(often_wrong); i++)
		if (strcmp(often_wrong[i].wrong, name) == 0)
			*ret_meant = often_wrong[i].right;
	const char *names[COUNT_OF(table)];
	for (size_t i = 0; i < COUNT_OF(table); i++)
		names[i] = table[i].name;
	if (!*ret_meant)
		*ret_meant = num_closest_name(name, names, COUNT_OF(table));
	return true;
}
