// SPDX-License-Identifier: Apache-2.0
// A small libnvidia-ml.so.1 that answers from a text file, so that the exporter's NVML backend can be shown every
// behaviour of a driver. The file is named by FAKE_NVML_SCRIPT and read again for every call: a test changes what the
// driver says by replacing it. Lines, later ones win, GPU is a number or *:
//   devices N                 how many GPUs (default 2)
//   set NAME GPU VALUE        a reading, see `defaults`
//   fail FUNCTION GPU RESULT  the function returns RESULT (GPU * for functions without one)
//   sleep FUNCTION GPU MS     the function answers later; a changed file ends the wait
//   xid NUMBER GPU CODE       an event, handed out once, in the order of NUMBER (from 1)
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exporter/nvml_api.h"

#define SCRIPT_BYTES_MAX 8192
#define WORDS_MAX        4
#define GPUS_MAX         64
#define SLEEP_MAX_MS     60000
#define STEP_MS          10
#define ANY_GPU          (-1)

static const struct {
	const char *name;
	int64_t value;
} defaults[] = {
        {"util_gpu", 42},
        {"util_mem", 21},
        {"enc", 3},
        {"dec", 4},
        {"mem_total_mib", 1000},
        {"mem_used_mib", 300},
        {"mem_reserved_mib", 50},
        {"power_mw", 123456},
        {"limit_mw", 700000},
        {"energy_mj", 987654321},
        {"temp", 55},
        {"mem_temp", 60},
        {"sm_clock", 1980},
        {"mem_clock", 3201},
        {"reasons", 4},
        {"replay", 1},
        {"sbe_vol", 5},
        {"dbe_vol", 6},
        {"sbe_agg", 7},
        {"dbe_agg", 8},
};

struct script {
	char text[SCRIPT_BYTES_MAX + 1];
};

static void script_read(struct script *s)
{
	s->text[0] = '\0';
	const char *path = getenv("FAKE_NVML_SCRIPT");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	size_t len = 0;
	ssize_t n;
	while (len < SCRIPT_BYTES_MAX && (n = read(fd, s->text + len, SCRIPT_BYTES_MAX - len)) > 0)
		len += (size_t)n;
	s->text[len] = '\0';
	close(fd);
}

struct words {
	const char *at[WORDS_MAX];
	size_t len[WORDS_MAX];
	size_t n;
};

// The words of the next line; NULL at the end.
static const char *next_line(const char *p, struct words *w)
{
	if (!*p)
		return NULL;
	w->n = 0;
	while (*p && *p != '\n') {
		if (isspace((unsigned char)*p)) {
			p++;
			continue;
		}
		size_t len = strcspn(p, " \t\n");
		if (w->n < WORDS_MAX) {
			w->at[w->n] = p;
			w->len[w->n++] = len;
		}
		p += len;
	}
	return *p ? p + 1 : p;
}

static bool word_is(const struct words *w, size_t i, const char *text)
{
	return i < w->n && w->len[i] == strlen(text) && memcmp(w->at[i], text, w->len[i]) == 0;
}

static int64_t word_number(const struct words *w, size_t i)
{
	int64_t v = 0;
	for (size_t k = 0; i < w->n && k < w->len[i] && isdigit((unsigned char)w->at[i][k]); k++)
		v = v * 10 + (w->at[i][k] - '0');
	return v;
}

// Last line "verb name gpu value" that fits; fallback when none does.
static int64_t lookup(const struct script *s, const char *verb, const char *name, int gpu, int64_t fallback)
{
	struct words w;
	for (const char *p = s->text; (p = next_line(p, &w));) {
		if (w.n < 4 || !word_is(&w, 0, verb) || !word_is(&w, 1, name))
			continue;
		if (word_is(&w, 2, "*") || (gpu != ANY_GPU && word_number(&w, 2) == gpu))
			fallback = word_number(&w, 3);
	}
	return fallback;
}

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

// Every function begins here: waits and fails as the script says.
static nvml_return begin(struct script *s, const char *function, int gpu)
{
	script_read(s);
	for (int64_t waited = 0; waited < SLEEP_MAX_MS && waited < lookup(s, "sleep", function, gpu, 0);
	     waited += STEP_MS) {
		pause_ms(STEP_MS);
		script_read(s);
	}
	return (nvml_return)lookup(s, "fail", function, gpu, NVML_SUCCESS);
}

static int64_t reading(const struct script *s, const char *name, int gpu)
{
	for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
		if (strcmp(defaults[i].name, name) == 0)
			return lookup(s, "set", name, gpu, defaults[i].value);
	abort(); // a mistake in this file
}

// A handle is the address of an element.
static const char handles[GPUS_MAX];

static int index_of(nvml_device d)
{
	return (int)((const char *)d - handles);
}

nvml_return nvmlInit_v2(void);
nvml_return nvmlInit_v2(void)
{
	struct script s;
	return begin(&s, "nvmlInit_v2", ANY_GPU);
}

nvml_return nvmlShutdown(void);
nvml_return nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvml_return r);
const char *nvmlErrorString(nvml_return r)
{
	return r == NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded" : r == NVML_GPU_IS_LOST ? "GPU is lost" : "Some error";
}

nvml_return nvmlSystemGetDriverVersion(char *version, unsigned length);
nvml_return nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	snprintf(version, length, "580.65.06");
	return NVML_SUCCESS;
}

nvml_return nvmlDeviceGetCount_v2(unsigned *count);
nvml_return nvmlDeviceGetCount_v2(unsigned *count)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetCount_v2", ANY_GPU);
	struct words w;
	*count = 2;
	for (const char *p = s.text; (p = next_line(p, &w));)
		if (w.n >= 2 && word_is(&w, 0, "devices"))
			*count = (unsigned)word_number(&w, 1) % (GPUS_MAX + 1);
	return r;
}

nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *d);
nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *d)
{
	struct script s;
	*d = (nvml_device)(uintptr_t)(handles + index);
	return begin(&s, "nvmlDeviceGetHandleByIndex_v2", (int)index);
}

nvml_return nvmlDeviceGetUUID(nvml_device d, char *uuid, unsigned length);
nvml_return nvmlDeviceGetUUID(nvml_device d, char *uuid, unsigned length)
{
	struct script s;
	snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012d", index_of(d));
	return begin(&s, "nvmlDeviceGetUUID", index_of(d));
}

nvml_return nvmlDeviceGetName(nvml_device d, char *name, unsigned length);
nvml_return nvmlDeviceGetName(nvml_device d, char *name, unsigned length)
{
	struct script s;
	snprintf(name, length, "NVIDIA Fake 9000");
	return begin(&s, "nvmlDeviceGetName", index_of(d));
}

nvml_return nvmlDeviceGetMinorNumber(nvml_device d, unsigned *minor);
nvml_return nvmlDeviceGetMinorNumber(nvml_device d, unsigned *minor)
{
	struct script s;
	*minor = (unsigned)index_of(d);
	return begin(&s, "nvmlDeviceGetMinorNumber", index_of(d));
}

nvml_return nvmlDeviceGetPciInfo_v3(nvml_device d, struct nvml_pci *pci);
nvml_return nvmlDeviceGetPciInfo_v3(nvml_device d, struct nvml_pci *pci)
{
	struct script s;
	snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", (unsigned)index_of(d) + 4);
	return begin(&s, "nvmlDeviceGetPciInfo_v3", index_of(d));
}

nvml_return nvmlDeviceGetUtilizationRates(nvml_device d, struct nvml_utilization *u);
nvml_return nvmlDeviceGetUtilizationRates(nvml_device d, struct nvml_utilization *u)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetUtilizationRates", index_of(d));
	u->gpu = (unsigned)reading(&s, "util_gpu", index_of(d));
	u->memory = (unsigned)reading(&s, "util_mem", index_of(d));
	return r;
}

// A function that gives one number: `type` is what it points at.
#define ONE_NUMBER(function, type, key)                                                                                \
	nvml_return function(nvml_device d, type *value);                                                              \
	nvml_return function(nvml_device d, type *value)                                                               \
	{                                                                                                              \
		struct script s;                                                                                       \
		nvml_return r = begin(&s, #function, index_of(d));                                                     \
		*value = (type)reading(&s, key, index_of(d));                                                          \
		return r;                                                                                              \
	}
ONE_NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power_mw")
ONE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "limit_mw")
ONE_NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, "limit_mw")
ONE_NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy_mj")
ONE_NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "reasons")
ONE_NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "reasons")
ONE_NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "replay")

#define CODEC(function, key)                                                                                           \
	nvml_return function(nvml_device d, unsigned *percent, unsigned *period_us);                                   \
	nvml_return function(nvml_device d, unsigned *percent, unsigned *period_us)                                    \
	{                                                                                                              \
		struct script s;                                                                                       \
		nvml_return r = begin(&s, #function, index_of(d));                                                     \
		*percent = (unsigned)reading(&s, key, index_of(d));                                                    \
		*period_us = 167000;                                                                                   \
		return r;                                                                                              \
	}
CODEC(nvmlDeviceGetEncoderUtilization, "enc")
CODEC(nvmlDeviceGetDecoderUtilization, "dec")

static unsigned long long bytes(const struct script *s, const char *name, int gpu)
{
	return (unsigned long long)reading(s, name, gpu) * 1048576;
}

nvml_return nvmlDeviceGetMemoryInfo(nvml_device d, struct nvml_memory *m);
nvml_return nvmlDeviceGetMemoryInfo(nvml_device d, struct nvml_memory *m)
{
	struct script s;
	int gpu = index_of(d);
	nvml_return r = begin(&s, "nvmlDeviceGetMemoryInfo", gpu);
	m->total = bytes(&s, "mem_total_mib", gpu);
	m->used = bytes(&s, "mem_used_mib", gpu) + bytes(&s, "mem_reserved_mib", gpu);
	m->free = m->total - m->used;
	return r;
}

nvml_return nvmlDeviceGetMemoryInfo_v2(nvml_device d, struct nvml_memory_v2 *m);
nvml_return nvmlDeviceGetMemoryInfo_v2(nvml_device d, struct nvml_memory_v2 *m)
{
	struct script s;
	int gpu = index_of(d);
	nvml_return r = begin(&s, "nvmlDeviceGetMemoryInfo_v2", gpu);
	if (m->version != NVML_MEMORY_V2_VERSION)
		return 25; // ARGUMENT_VERSION_MISMATCH
	m->total = bytes(&s, "mem_total_mib", gpu);
	m->used = bytes(&s, "mem_used_mib", gpu);
	m->reserved = bytes(&s, "mem_reserved_mib", gpu);
	m->free = m->total - m->used - m->reserved;
	return r;
}

nvml_return nvmlDeviceGetTemperature(nvml_device d, int sensor, unsigned *celsius);
nvml_return nvmlDeviceGetTemperature(nvml_device d, int sensor, unsigned *celsius)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetTemperature", index_of(d));
	*celsius = (unsigned)reading(&s, "temp", index_of(d));
	return sensor == NVML_TEMPERATURE_GPU ? r : 2; // INVALID_ARGUMENT
}

nvml_return nvmlDeviceGetClockInfo(nvml_device d, int clock, unsigned *mhz);
nvml_return nvmlDeviceGetClockInfo(nvml_device d, int clock, unsigned *mhz)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetClockInfo", index_of(d));
	*mhz = (unsigned)reading(&s, clock == NVML_CLOCK_MEM ? "mem_clock" : "sm_clock", index_of(d));
	return clock == NVML_CLOCK_MEM || clock == NVML_CLOCK_SM ? r : 2;
}

nvml_return nvmlDeviceGetTotalEccErrors(nvml_device d, int error, int counter, unsigned long long *n);
nvml_return nvmlDeviceGetTotalEccErrors(nvml_device d, int error, int counter, unsigned long long *n)
{
	static const char *const names[2][2] = {{"sbe_vol", "sbe_agg"}, {"dbe_vol", "dbe_agg"}};
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetTotalEccErrors", index_of(d));
	*n = (unsigned long long)reading(&s, names[error != 0][counter != 0], index_of(d));
	return r;
}

nvml_return nvmlDeviceGetFieldValues(nvml_device d, int n, struct nvml_field_value *values);
nvml_return nvmlDeviceGetFieldValues(nvml_device d, int n, struct nvml_field_value *values)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceGetFieldValues", index_of(d));
	for (int i = 0; i < n; i++) {
		bool known = values[i].field_id == NVML_FIELD_MEMORY_TEMP;
		values[i].result = known ? (nvml_return)lookup(&s, "fail", "field82", index_of(d), NVML_SUCCESS)
		                         : NVML_NOT_SUPPORTED;
		values[i].value_type = NVML_VALUE_UINT;
		values[i].value.ui = (unsigned)reading(&s, "mem_temp", index_of(d));
	}
	return r;
}

// ---- events: a set remembers the number of the last one it handed out, and who registered ----
struct nvml_event_set {
	int64_t last;
	bool registered[GPUS_MAX];
};

nvml_return nvmlEventSetCreate(nvml_event_set *set);
nvml_return nvmlEventSetCreate(nvml_event_set *set)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlEventSetCreate", ANY_GPU);
	*set = r == NVML_SUCCESS ? calloc(1, sizeof **set) : NULL;
	return r;
}

nvml_return nvmlEventSetFree(nvml_event_set set);
nvml_return nvmlEventSetFree(nvml_event_set set)
{
	free(set);
	return NVML_SUCCESS;
}

nvml_return nvmlDeviceRegisterEvents(nvml_device d, unsigned long long mask, nvml_event_set set);
nvml_return nvmlDeviceRegisterEvents(nvml_device d, unsigned long long mask, nvml_event_set set)
{
	struct script s;
	nvml_return r = begin(&s, "nvmlDeviceRegisterEvents", index_of(d));
	set->registered[index_of(d)] = r == NVML_SUCCESS && (mask & NVML_EVENT_XID);
	return r;
}

nvml_return nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms);
nvml_return nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms)
{
	for (unsigned waited = 0;; waited += STEP_MS) {
		struct script s;
		nvml_return r = begin(&s, "nvmlEventSetWait_v2", ANY_GPU);
		if (r != NVML_SUCCESS)
			return r;
		struct words w;
		for (const char *p = s.text; (p = next_line(p, &w));) {
			if (w.n < 4 || !word_is(&w, 0, "xid") || word_number(&w, 1) != set->last + 1)
				continue;
			set->last++;
			int64_t gpu = word_number(&w, 2);
			if (gpu >= GPUS_MAX || !set->registered[gpu])
				continue;
			*event = (struct nvml_event){.device = (nvml_device)(uintptr_t)(handles + gpu),
			                             .type = NVML_EVENT_XID,
			                             .data = (unsigned long long)word_number(&w, 3)};
			return NVML_SUCCESS;
		}
		if (waited >= timeout_ms)
			return NVML_TIMEOUT;
		pause_ms(STEP_MS);
	}
}
