// SPDX-License-Identifier: Apache-2.0
#include "exporter/mock/mock_faults.h"

#include <math.h>
#include <stdbool.h>

#include "exporter/device.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FIELD(parent, key, kind, member, ...)                                                                          \
	{                                                                                                              \
		.name = key, .type = kind, .offset = offsetof(parent, member), .set_offset = SCHEMA_NO_OFFSET,         \
		.count_offset = SCHEMA_NO_OFFSET, __VA_ARGS__                                                          \
	}
// The fields of struct mock_fault, the first member of every fault.
#define SHARED_FIELDS(parent, for_doc)                                                                                 \
	FIELD(parent, "at", SCHEMA_DURATION_MS, fault.at_ms, .doc = "Time since start.", .required = true),            \
	        FIELD(parent, "for", SCHEMA_DURATION_MS, fault.for_ms, .doc = for_doc),                                \
	        FIELD(parent, "gpu", SCHEMA_INT32, fault.gpu, .doc = "The GPU's number.", .required = true, .min = 0,  \
	              .max = 63)
#define HOW_LONG "How long; left out: for ever."
#define SCHEMA_OF(list, parent, fields_of, text)                                                                       \
	{                                                                                                              \
		.name = list "[]", .doc = text, .struct_size = sizeof(parent), .fields = fields_of,                    \
		.n_fields = COUNT(fields_of)                                                                           \
	}

// ---- fields ----

static const char *const throttle_reasons[] = {"thermal", "power", "hw", "power-brake", NULL};
_Static_assert(COUNT(throttle_reasons) == THROTTLE__COUNT + 1, "one name per reason");
static const char *const ecc_kinds[] = {"corrected", "uncorrectable", NULL};

static const struct schema_field throttle_fields[] = {
        SHARED_FIELDS(struct mock_throttle, HOW_LONG),
        FIELD(struct mock_throttle, "reason", SCHEMA_ENUM, reason, .doc = "Why the clock is low.",
              .default_text = "thermal", .enum_names = throttle_reasons),
        FIELD(struct mock_throttle, "clockPercent", SCHEMA_QUANTITY, clock_percent,
              .doc = "SM clock, of the healthy one.", .default_text = "72", .min = 1, .max = 100),
};
static const struct schema_field ecc_fields[] = {
        SHARED_FIELDS(struct mock_ecc, "Time over which the errors are spread; left out: all at once."),
        FIELD(struct mock_ecc, "kind", SCHEMA_ENUM, kind, .doc = "Whether the errors are corrected.",
              .default_text = "corrected", .enum_names = ecc_kinds),
        FIELD(struct mock_ecc, "count", SCHEMA_INT32, count, .doc = "Number of errors.", .default_text = "1", .min = 1,
              .max = 1000000000),
};
static const struct schema_field leak_fields[] = {
        SHARED_FIELDS(struct mock_leak, HOW_LONG),
        FIELD(struct mock_leak, "mibPerHour", SCHEMA_QUANTITY, mib_per_hour,
              .doc = "Growth of the used memory, until none is free.", .required = true, .min = 0.001, .max = 1e9),
};
static const struct schema_field straggler_fields[] = {
        SHARED_FIELDS(struct mock_straggler, HOW_LONG),
        FIELD(struct mock_straggler, "slowerPercent", SCHEMA_QUANTITY, slower_percent,
              .doc = "By how much clock, activity and power above idle are lower.", .default_text = "15", .min = 0.1,
              .max = 99),
};
static const struct schema_field hang_fields[] = {
        SHARED_FIELDS(struct mock_hang, HOW_LONG),
};
static const struct schema_field downtrain_fields[] = {
        SHARED_FIELDS(struct mock_downtrain, HOW_LONG),
        FIELD(struct mock_downtrain, "generation", SCHEMA_INT32, generation, .doc = "PCIe generation of the link.",
              .default_text = "1", .min = 1, .max = 7),
        FIELD(struct mock_downtrain, "lanes", SCHEMA_INT32, lanes, .doc = "Lanes of the link.", .default_text = "16",
              .min = 1, .max = 32),
};
const struct schema mock_fault_schemas[FAULT__COUNT] = {
        [FAULT_THROTTLES] = SCHEMA_OF("throttles", struct mock_throttle, throttle_fields,
                                      "A time during which the clock of a GPU is reduced."),
        [FAULT_ECC] = SCHEMA_OF("ecc", struct mock_ecc, ecc_fields, "Memory errors of a GPU."),
        [FAULT_LEAKS] = SCHEMA_OF("leaks", struct mock_leak, leak_fields, "GPU memory that a process does not free."),
        [FAULT_STRAGGLERS] = SCHEMA_OF("stragglers", struct mock_straggler, straggler_fields,
                                       "A GPU that works slower than the others, without a reason that it reports."),
        [FAULT_HANGS] = SCHEMA_OF("hangs", struct mock_hang, hang_fields,
                                  "A kernel that waits without end, such as a collective without its peer."),
        [FAULT_DOWNTRAINS] = SCHEMA_OF("downtrains", struct mock_downtrain, downtrain_fields,
                                       "A PCIe link that runs below its maximum."),
};

// ---- what all faults share ----

static const struct {
	const char *list;
	size_t items, count, size;
} kinds[] = {
        {"throttles", offsetof(struct mock_faults, throttles), offsetof(struct mock_faults, n_throttles),
         sizeof(struct mock_throttle)},
        {"ecc", offsetof(struct mock_faults, ecc), offsetof(struct mock_faults, n_ecc), sizeof(struct mock_ecc)},
        {"leaks", offsetof(struct mock_faults, leaks), offsetof(struct mock_faults, n_leaks), sizeof(struct mock_leak)},
        {"stragglers", offsetof(struct mock_faults, stragglers), offsetof(struct mock_faults, n_stragglers),
         sizeof(struct mock_straggler)},
        {"hangs", offsetof(struct mock_faults, hangs), offsetof(struct mock_faults, n_hangs), sizeof(struct mock_hang)},
        {"downtrains", offsetof(struct mock_faults, downtrains), offsetof(struct mock_faults, n_downtrains),
         sizeof(struct mock_downtrain)},
};
_Static_assert(COUNT(kinds) == FAULT__COUNT, "one row per kind");
_Static_assert(offsetof(struct mock_throttle, fault) == 0 && offsetof(struct mock_ecc, fault) == 0 &&
                       offsetof(struct mock_leak, fault) == 0 && offsetof(struct mock_straggler, fault) == 0 &&
                       offsetof(struct mock_hang, fault) == 0 && offsetof(struct mock_downtrain, fault) == 0,
               "a fault begins with what all faults share");

void mock_faults_for_each(const struct mock_faults *f,
                          void (*fn)(void *arg, const char *list, size_t i, const struct mock_fault *fault), void *arg)
{
	for (size_t k = 0; k < COUNT(kinds); k++) {
		const char *items = *(char *const *)((const char *)f + kinds[k].items);
		size_t n = *(const size_t *)((const char *)f + kinds[k].count);
		for (size_t i = 0; i < n; i++)
			fn(arg, kinds[k].list, i, (const struct mock_fault *)(items + i * kinds[k].size));
	}
}

// The time for which the fault has lasted; 0 before it starts. It stays at for_ms afterwards.
static int64_t lasted_ms(const struct mock_fault *f, int64_t t_ms)
{
	int64_t ms = t_ms > f->at_ms ? t_ms - f->at_ms : 0;
	return f->for_ms && ms > f->for_ms ? f->for_ms : ms;
}

static bool is_active(const struct mock_fault *f, int64_t t_ms)
{
	return t_ms >= f->at_ms && (f->for_ms == 0 || t_ms - f->at_ms < f->for_ms);
}

// ---- changes of a sample ----

static void set(struct device_sample *s, enum field f, double v)
{
	if (!sample_has(s, f))
		return;
	if (family_of(f)->kind == FIELD_DOUBLE)
		sample_set_f64(s, f, v);
	else
		sample_set_i64(s, f, llround(v));
}

static void add(struct device_sample *s, enum field f, double v)
{
	if (sample_has(s, f))
		set(s, f, sample_get(s, f) + v);
}

static void scale(struct device_sample *s, const enum field *fields, size_t n, double factor)
{
	for (size_t i = 0; i < n; i++)
		if (sample_has(s, fields[i]))
			set(s, fields[i], sample_get(s, fields[i]) * factor);
}

static void apply_throttle(const struct mock_throttle *t, int64_t t_ms, struct device_sample *s)
{
	static const struct {
		int64_t bit;
		enum field violation;
	} rows[] = {
	        [THROTTLE_THERMAL] = {0x20, FIELD_THERMAL_VIOLATION},
	        [THROTTLE_POWER] = {0x04, FIELD_POWER_VIOLATION},
	        [THROTTLE_HW] = {0x08 | 0x40, FIELD_THERMAL_VIOLATION},
	        [THROTTLE_POWER_BRAKE] = {0x08 | 0x80, FIELD_POWER_VIOLATION},
	};
	static const enum field clocks[] = {FIELD_SM_CLOCK};
	add(s, rows[t->reason].violation, (double)lasted_ms(&t->fault, t_ms) * 1e6);
	if (!is_active(&t->fault, t_ms))
		return;
	scale(s, clocks, 1, t->clock_percent / 100);
	if (sample_has(s, FIELD_CLOCKS_EVENT_REASONS))
		sample_set_i64(s, FIELD_CLOCKS_EVENT_REASONS,
		               s->value[FIELD_CLOCKS_EVENT_REASONS].i | rows[t->reason].bit);
	if ((t->reason == THROTTLE_THERMAL || t->reason == THROTTLE_HW) && sample_has(s, FIELD_SLOWDOWN_TEMP))
		set(s, FIELD_GPU_TEMP, sample_get(s, FIELD_SLOWDOWN_TEMP) + 1);
}

static void apply_ecc(const struct mock_ecc *x, int64_t t_ms, struct device_sample *s)
{
	static const enum field fields[][2] = {{FIELD_ECC_SBE_VOL, FIELD_ECC_SBE_AGG},
	                                       {FIELD_ECC_DBE_VOL, FIELD_ECC_DBE_AGG}};
	double n = t_ms < x->fault.at_ms ? 0
	           : x->fault.for_ms
	                   ? floor((double)x->count * (double)lasted_ms(&x->fault, t_ms) / (double)x->fault.for_ms)
	                   : x->count;
	add(s, fields[x->kind][0], n);
	add(s, fields[x->kind][1], n);
}

static void apply_leak(const struct mock_leak *l, int64_t t_ms, struct device_sample *s)
{
	if (!sample_has(s, FIELD_FB_USED) || !sample_has(s, FIELD_FB_FREE))
		return;
	double used = sample_get(s, FIELD_FB_USED), free_mib = sample_get(s, FIELD_FB_FREE);
	double leaked = fmin(free_mib, l->mib_per_hour * (double)lasted_ms(&l->fault, t_ms) / 3600e3);
	set(s, FIELD_FB_USED, used + leaked);
	set(s, FIELD_FB_FREE, free_mib - leaked);
	set(s, FIELD_FB_USED_PERCENT, used + free_mib > 0 ? (used + leaked) / (used + free_mib) : 0);
}

// The readings that follow the rate of work.
static const enum field work[] = {FIELD_SM_CLOCK,           FIELD_SM_ACTIVE,        FIELD_SM_OCCUPANCY,
                                  FIELD_PIPE_TENSOR_ACTIVE, FIELD_DRAM_ACTIVE,      FIELD_PIPE_FP64_ACTIVE,
                                  FIELD_PIPE_FP32_ACTIVE,   FIELD_PIPE_FP16_ACTIVE, FIELD_PIPE_TENSOR_HMMA_ACTIVE,
                                  FIELD_PIPE_INT_ACTIVE};
static const enum field traffic[] = {FIELD_MEM_COPY_UTIL,   FIELD_PCIE_TX_BYTES,   FIELD_PCIE_RX_BYTES,
                                     FIELD_NVLINK_TX_BYTES, FIELD_NVLINK_RX_BYTES, FIELD_NVLINK_BANDWIDTH_TOTAL};
static const enum field power[] = {FIELD_POWER_USAGE, FIELD_POWER_USAGE_INSTANT};

static void scale_power_above_idle(struct device_sample *s, double idle_watts, double factor)
{
	for (size_t i = 0; i < COUNT(power); i++)
		if (sample_has(s, power[i]) && sample_get(s, power[i]) > idle_watts)
			set(s, power[i], idle_watts + (sample_get(s, power[i]) - idle_watts) * factor);
}

static void apply_straggler(const struct mock_straggler *x, double idle_watts, struct device_sample *s)
{
	double factor = 1 - x->slower_percent / 100;
	scale(s, work, COUNT(work), factor);
	scale(s, traffic, COUNT(traffic), factor);
	scale_power_above_idle(s, idle_watts, factor);
}

// One kernel spins on a few SMs: the driver reports a busy GPU that moves no data and draws little power.
#define HUNG_SM_ACTIVE    0.1
#define HUNG_SM_OCCUPANCY 0.02
#define HUNG_POWER_RATIO  0.15
static void apply_hang(double idle_watts, struct device_sample *s)
{
	scale(s, &work[1], COUNT(work) - 1, 0); // all but the clock
	scale(s, traffic, COUNT(traffic), 0);
	set(s, FIELD_GPU_UTIL, 100);
	set(s, FIELD_GR_ENGINE_ACTIVE, 1);
	set(s, FIELD_SM_ACTIVE, HUNG_SM_ACTIVE);
	set(s, FIELD_SM_OCCUPANCY, HUNG_SM_OCCUPANCY);
	if (!sample_has(s, FIELD_POWER_LIMIT))
		return;
	double limit = sample_get(s, FIELD_POWER_LIMIT);
	for (size_t i = 0; i < COUNT(power); i++)
		set(s, power[i], idle_watts + (limit - idle_watts) * HUNG_POWER_RATIO);
}

// Bytes a second of a lane double with each generation; 0.25 GB/s is the first.
static void apply_downtrain(const struct mock_downtrain *x, struct device_sample *s)
{
	static const enum field rates[] = {FIELD_PCIE_TX_BYTES, FIELD_PCIE_RX_BYTES};
	double most = 0.25e9 * pow(2, x->generation - 1) * x->lanes;
	set(s, FIELD_PCIE_LINK_GEN, x->generation);
	set(s, FIELD_PCIE_LINK_WIDTH, x->lanes);
	for (size_t i = 0; i < COUNT(rates); i++)
		if (sample_has(s, rates[i]) && sample_get(s, rates[i]) > most)
			set(s, rates[i], most);
}

void mock_faults_apply(const struct mock_faults *f, int32_t gpu, double idle_watts, int64_t t_ms,
                       struct device_sample *s)
{
	for (size_t i = 0; i < f->n_stragglers; i++)
		if (f->stragglers[i].fault.gpu == gpu && is_active(&f->stragglers[i].fault, t_ms))
			apply_straggler(&f->stragglers[i], idle_watts, s);
	for (size_t i = 0; i < f->n_hangs; i++)
		if (f->hangs[i].fault.gpu == gpu && is_active(&f->hangs[i].fault, t_ms))
			apply_hang(idle_watts, s);
	for (size_t i = 0; i < f->n_throttles; i++)
		if (f->throttles[i].fault.gpu == gpu)
			apply_throttle(&f->throttles[i], t_ms, s);
	for (size_t i = 0; i < f->n_ecc; i++)
		if (f->ecc[i].fault.gpu == gpu)
			apply_ecc(&f->ecc[i], t_ms, s);
	for (size_t i = 0; i < f->n_leaks; i++)
		if (f->leaks[i].fault.gpu == gpu && is_active(&f->leaks[i].fault, t_ms))
			apply_leak(&f->leaks[i], t_ms, s);
	for (size_t i = 0; i < f->n_downtrains; i++)
		if (f->downtrains[i].fault.gpu == gpu && is_active(&f->downtrains[i].fault, t_ms))
			apply_downtrain(&f->downtrains[i], s);
}
