// SPDX-License-Identifier: Apache-2.0
#include "policies/lint/lint_names.h"

#include <string.h>

#include "base/dcgm_names.h"
#include "base/exposition.h"
#include "base/gpu_families.h"
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

// Whether the string, without its quotes, contains only names, with '|' between them if `is_regex`.
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

// What the exporter serves: names of dcgm-exporter up to 4.8; base/dcgm_names.h has those of 4.9.
static const struct {
	const char *name;
	int dcgm_id;
	enum metric_type type;
	const char *unit;
} families[] = {
#define ROW(field, name, name_4_9, factor, id, type, kind, scope, unit, ...) {name, id, METRIC_##type, unit},
        FAMILIES(ROW)
#undef ROW
};

// Fields of DCGM that dcgm-exporter serves when its counters file names them.
static const struct {
	const char *name;
	enum lint_kind kind;
} fields[] = {
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

// A rate stays a rate when dcgm-exporter types it a counter, as NVLINK_BANDWIDTH_TOTAL.
static enum lint_kind kind_of_family(enum metric_type type, const char *unit)
{
	static const struct {
		const char *unit;
		enum lint_kind kind;
	} units[] = {{"B/s", LINT_RATE},  {"1000 KiB/s", LINT_RATE}, {"C", LINT_DEGREES}, {"W", LINT_WATTS},
	             {"%", LINT_PERCENT}, {"0-1", LINT_RATIO},       {"code", LINT_CODE}};
	for (size_t i = 0; i < COUNT_OF(units); i++)
		if (strcmp(units[i].unit, unit) == 0)
			return units[i].kind;
	return type == METRIC_COUNTER ? LINT_COUNTER : LINT_GAUGE;
}

static enum lint_kind kind_of(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(families); i++)
		if (families[i].dcgm_id && strcmp(families[i].name, name) == 0)
			return kind_of_family(families[i].type, families[i].unit);
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return fields[i].kind;
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
	const char *names[COUNT_OF(families) + COUNT_OF(fields)];
	size_t n = 0;
	for (size_t i = 0; i < COUNT_OF(families); i++)
		if (families[i].dcgm_id)
			names[n++] = families[i].name;
	for (size_t i = 0; i < COUNT_OF(fields); i++)
		names[n++] = fields[i].name;
	if (!*ret_meant)
		*ret_meant = num_closest_name(name, names, n);
	return true;
}
