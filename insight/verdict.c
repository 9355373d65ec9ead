// SPDX-License-Identifier: Apache-2.0
// Thresholds: the decision tree of docs/diagnosis.md. A term about a missing measure is false, so that a verdict
// never rests on absent data; the order of the rows makes the table total.
#include "insight/verdict.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#define TERMS(...) {__VA_ARGS__}, sizeof((struct verdict_term[]){__VA_ARGS__}) / sizeof(struct verdict_term)

// clang-format off
static const struct verdict_row rows[] = {
	{VERDICT_HARDWARE,      TERMS({MEASURE_XID, OP_ABOVE, 0})},
	{VERDICT_HARDWARE,      TERMS({MEASURE_ECC, OP_ABOVE, 0})},
	{VERDICT_HARDWARE,      TERMS({MEASURE_REMAP, OP_ABOVE, 0})},
	{VERDICT_FABRIC,        TERMS({MEASURE_NVLINK, OP_ABOVE, 0})},
	{VERDICT_FABRIC,        TERMS({MEASURE_PCIE_REPLAY, OP_ABOVE, 1})},
	{VERDICT_FABRIC,        TERMS({MEASURE_NIC_ERRORS, OP_ABOVE, 0})},
	{VERDICT_FABRIC,        TERMS({MEASURE_NIC_DROPS, OP_ABOVE, 1})},
	{VERDICT_THROTTLED,     TERMS({MEASURE_THROTTLED, OP_ABOVE, 0.05})},
	{VERDICT_THROTTLED,     TERMS({MEASURE_THERMAL, OP_ABOVE, 0.05})},
	{VERDICT_OOM,           TERMS({MEASURE_OOM, OP_ABOVE, 0})},
	{VERDICT_LOADING,       TERMS({MEASURE_LOADING, OP_ABOVE, 0})},
	{VERDICT_IDLE,          TERMS({MEASURE_BUSY_LONG, OP_BELOW, 0.05})},
	{VERDICT_WAITING,       TERMS({MEASURE_BUSY, OP_BELOW, 0.05})},
	{VERDICT_HUNG,          TERMS({MEASURE_BUSY, OP_ABOVE, 0.95}, {MEASURE_DRAM, OP_BELOW, 0.02}, {MEASURE_TENSOR, OP_BELOW, 0.01})},
	{VERDICT_SLOW_LINK,     TERMS({MEASURE_LINK, OP_BELOW, 0.99})},
	{VERDICT_SLOW_CLOCK,    TERMS({MEASURE_CLOCK, OP_BELOW, 0.9})},
	{VERDICT_COMMUNICATION, TERMS({MEASURE_COLLECTIVE, OP_ABOVE, 0.2})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_PCIE_RX, OP_ABOVE, 2e9})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_PCIE_SHARE, OP_ABOVE, 0.5})},
	{VERDICT_STORAGE,       TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_DISK_WAIT, OP_ABOVE, 0.2})},
	{VERDICT_STORAGE,       TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_NODE_IOWAIT, OP_ABOVE, 0.2})},
	{VERDICT_STORAGE,       TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_NODE_NETWORK, OP_ABOVE, 0.8})},
	{VERDICT_PREPROCESSING, TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_CPU, OP_ABOVE, 0.8})},
	{VERDICT_PREPROCESSING, TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_CPU_THROTTLED, OP_ABOVE, 0.25})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_DATA_WAIT, OP_ABOVE, 0.2})},
	{VERDICT_LOADER,        TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_SWING, OP_AT_LEAST, 0.5}, {MEASURE_PCIE_PEAK, OP_ABOVE, 0.5})},
	{VERDICT_SAWTOOTH,      TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_SWING, OP_AT_LEAST, 0.5})},
	{VERDICT_FAKE_LOAD,     TERMS({MEASURE_SM, OP_BELOW, 0.3}, {MEASURE_BUSY, OP_AT_LEAST, 0.5})},
	{VERDICT_UNDERFILLED,   TERMS({MEASURE_SM, OP_BELOW, 0.3})},
	{VERDICT_NO_TENSOR,     TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_TENSOR, OP_BELOW, 0.01})},
	{VERDICT_MISALIGNED,    TERMS({MEASURE_SM, OP_BELOW, 0.7}, {MEASURE_TENSOR, OP_BELOW, 0.1})},
	{VERDICT_HALF_FILLED,   TERMS({MEASURE_SM, OP_BELOW, 0.7})},
	// Well tuned matrix kernels run at a low occupancy, so a busy tensor pipe clears the suspicion.
	{VERDICT_SMALL_KERNELS, TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_OCCUPANCY, OP_BELOW, 0.2}, {MEASURE_TENSOR, OP_NOT_AT_LEAST, 0.5})},
	// 0.8 is about what memory can reach; without tensor work, three quarters of that are the limit.
	{VERDICT_MEMORY_BOUND,  TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_DRAM, OP_AT_LEAST, 0.8})},
	{VERDICT_MEMORY_BOUND,  TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_DRAM, OP_AT_LEAST, 0.6}, {MEASURE_TENSOR, OP_BELOW, 0.3})},
	{VERDICT_COMPUTE_BOUND, TERMS({MEASURE_SM, OP_AT_LEAST, 0.7}, {MEASURE_DRAM, OP_BELOW, 0.5})},
	{VERDICT_BALANCED,      TERMS({MEASURE_SM, OP_AT_LEAST, 0.7})},
	// Without SM activity. An idle H100 draws 18 % of its limit, and one that only copies draws 55 %.
	{VERDICT_SAWTOOTH,      TERMS({MEASURE_BUSY, OP_BELOW, 0.9}, {MEASURE_SWING, OP_AT_LEAST, 0.5})},
	{VERDICT_FAKE_LOAD,     TERMS({MEASURE_BUSY, OP_AT_LEAST, 0.9}, {MEASURE_POWER, OP_BELOW, 0.35})},
	{VERDICT_UNMEASURED,    .n_terms = 0},
};
static const char *const op_signs[] = {[OP_END] = "", [OP_ABOVE] = ">", [OP_BELOW] = "<", [OP_AT_LEAST] = ">=", [OP_NOT_AT_LEAST] = ">="};
static const char *const level_names[] = {"ok", "advice", "fault"};
// clang-format on
_Static_assert(sizeof level_names / sizeof *level_names == LEVEL__COUNT, "one name per level");

const struct verdict_row *verdict_rows(size_t *ret_n)
{
	*ret_n = sizeof rows / sizeof rows[0];
	return rows;
}

const char *verdict_level_name(enum verdict_level level)
{
	return level_names[level];
}

const char *verdict_op_sign(enum term_op op)
{
	return op_signs[op];
}

// A comparison with NaN is false.
static bool term_holds(const struct verdict_term *t, double value)
{
	switch (t->op) {
	case OP_ABOVE:
		return value > t->limit;
	case OP_BELOW:
		return value < t->limit;
	case OP_AT_LEAST:
		return value >= t->limit;
	case OP_NOT_AT_LEAST:
		return !(value >= t->limit);
	case OP_END:
		break;
	}
	return false;
}

const struct verdict_row *verdict_decide(const double *values)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		size_t k = 0;
		while (k < rows[i].n_terms && term_holds(&rows[i].terms[k], values[rows[i].terms[k].measure]))
			k++;
		if (k == rows[i].n_terms)
			return &rows[i];
	}
	assert(false && "the last row has no terms");
	return NULL;
}

double verdict_lost_ratio(enum verdict v, const double *values)
{
	double lost = 0;
	switch (verdict_info(v)->loss) {
	case LOSS_NONE:
		return 0;
	case LOSS_ALL:
		return 1;
	case LOSS_SM:
		lost = 1 - values[MEASURE_SM];
		break;
	case LOSS_CLOCK:
		lost = 1 - values[MEASURE_CLOCK];
		break;
	}
	if (isnan(lost))
		return NAN;
	return fmin(fmax(lost, 0), 1);
}

size_t verdict_evidence(const struct verdict_row *row, const double *values, enum verdict_measure *out)
{
	static const enum verdict_measure common[] = {MEASURE_BUSY, MEASURE_SM, MEASURE_TENSOR, MEASURE_DRAM};
	enum verdict_measure wanted[VERDICT_TERMS_MAX + sizeof common / sizeof common[0]];
	size_t n = 0, n_wanted = 0;
	for (size_t i = 0; i < row->n_terms; i++)
		wanted[n_wanted++] = row->terms[i].measure;
	for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
		wanted[n_wanted++] = common[i];
	for (size_t i = 0; i < n_wanted && n < VERDICT_EVIDENCE_MAX; i++) {
		size_t k = 0;
		while (k < n && out[k] != wanted[i])
			k++;
		if (k == n && !isnan(values[wanted[i]]))
			out[n++] = wanted[i];
	}
	return n;
}
