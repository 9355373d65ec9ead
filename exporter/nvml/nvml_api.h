// SPDX-License-Identifier: Apache-2.0
// The functions of NVIDIA's management library that the exporter calls. The library is loaded at run time, and every
// function is optional. Prototypes and layouts are gpuscale's own notation of the documented binary interface (NVML
// API reference; sizes checked against nvml.h 13.3.29 on x86-64).
#ifndef GPUSCALE_EXPORTER_NVML_NVML_API_H
#define GPUSCALE_EXPORTER_NVML_NVML_API_H

#include <stddef.h>

struct err;

typedef int nvml_return; // 0 = success
enum {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_LIB_RM_VERSION_MISMATCH = 18,
	NVML_UNKNOWN = 999
};

#define NVML_VALUE_NOT_AVAILABLE  0xffffffffu // "no value", although the function succeeds
#define NVML_NAME_BYTES           96
#define NVML_DRIVER_BYTES         80
#define NVML_TEMPERATURE_GPU      0
#define NVML_THRESHOLD_SHUTDOWN   0
#define NVML_THRESHOLD_SLOWDOWN   1
#define NVML_CLOCK_SM             1
#define NVML_CLOCK_MEM            2
#define NVML_CLOCK_VIDEO          3
#define NVML_MEMORY_ERROR_SINGLE  0
#define NVML_MEMORY_ERROR_DOUBLE  1
#define NVML_ECC_VOLATILE         0
#define NVML_ECC_AGGREGATE        1
#define NVML_VIRTUALIZATION_GUEST 2 // the device is a virtual GPU
#define NVML_EVENT_XID            0x8ULL
#define NVML_SCOPE_ALL_LINKS      0xffffffffu // scope_id: sum of all NVLinks
#define NVML_VALUE_DOUBLE         0
#define NVML_VALUE_UINT           1
#define NVML_VALUE_ULONG          2
#define NVML_VALUE_ULONGLONG      3
#define NVML_VALUE_SLONGLONG      4
#define NVML_VALUE_SINT           5

// Fields of nvmlDeviceGetFieldValues.
enum {
	NVML_FIELD_RETIRED_SBE = 29,
	NVML_FIELD_RETIRED_DBE = 30,
	NVML_FIELD_RETIRED_PENDING = 31,
	NVML_FIELD_NVLINK_CRC_FLIT = 38,
	NVML_FIELD_NVLINK_CRC_DATA = 45,
	NVML_FIELD_NVLINK_REPLAY = 52,
	NVML_FIELD_NVLINK_RECOVERY = 59,
	NVML_FIELD_VIOLATION_POWER = 74, // .. 81, ns
	NVML_FIELD_VIOLATION_THERMAL = 75,
	NVML_FIELD_VIOLATION_SYNC_BOOST = 76,
	NVML_FIELD_VIOLATION_BOARD_LIMIT = 77,
	NVML_FIELD_VIOLATION_LOW_UTIL = 78,
	NVML_FIELD_VIOLATION_RELIABILITY = 79,
	NVML_FIELD_VIOLATION_APP_CLOCKS = 80,
	NVML_FIELD_VIOLATION_BASE_CLOCKS = 81,
	NVML_FIELD_MEMORY_TEMP = 82,
	NVML_FIELD_NVLINK_DATA_TX = 138, // KiB
	NVML_FIELD_NVLINK_DATA_RX = 139,
	NVML_FIELD_POWER_INSTANT = 186, // mW
	NVML_FIELD_RECOVERY_ACTION = 230
};

typedef struct nvml_device *nvml_device; // opaque handles
typedef struct nvml_event_set *nvml_event_set;

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");
_Static_assert(offsetof(struct nvml_pci, bus_id) == 36, "nvmlPciInfo_t.busId");

struct nvml_utilization {
	unsigned gpu, memory; // %
};
_Static_assert(sizeof(struct nvml_utilization) == 8, "nvmlUtilization_t");

struct nvml_memory {
	unsigned long long total, free, used; // bytes; `used` includes the memory reserved by the driver
};
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(offsetof(struct nvml_memory_v2, total) == 8, "nvmlMemory_v2_t.total");
_Static_assert(offsetof(struct nvml_memory_v2, used) == 32, "nvmlMemory_v2_t.used");
#define NVML_MEMORY_V2_VERSION ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)
_Static_assert(NVML_MEMORY_V2_VERSION == 0x2000028, "nvmlMemory_v2");

struct nvml_bar1 {
	unsigned long long total, free, used; // bytes
};
_Static_assert(sizeof(struct nvml_bar1) == 24, "nvmlBAR1Memory_t");

// Attributes of a MIG device; those of its compute instance if there are several.
struct nvml_attributes {
	unsigned multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines, gpu_slices,
	        compute_slices;
	unsigned long long memory_mib;
};
_Static_assert(sizeof(struct nvml_attributes) == 40, "nvmlDeviceAttributes_t");
_Static_assert(offsetof(struct nvml_attributes, memory_mib) == 32, "nvmlDeviceAttributes_t.memorySizeMB");

#define NVML_LICENSE_FEATURES_MAX 3
#define NVML_LICENSE_TEXT_BYTES   128
struct nvml_license_feature {
	int code;
	unsigned state; // not 0: licensed
	char info[NVML_LICENSE_TEXT_BYTES], product[NVML_LICENSE_TEXT_BYTES];
	unsigned enabled;
	struct {
		unsigned year;
		unsigned short month, day, hour, minute, second;
		unsigned char status;
	} expiry;
};
struct nvml_licenses {
	int supported;
	unsigned n;
	struct nvml_license_feature features[NVML_LICENSE_FEATURES_MAX];
};
_Static_assert(sizeof(struct nvml_license_feature) == 284, "nvmlGridLicensableFeature_t");
_Static_assert(sizeof(struct nvml_licenses) == 860, "nvmlGridLicensableFeatures_t");

union nvml_value {
	double d;
	int si;
	unsigned ui;
	unsigned long ul;
	unsigned long long ull;
	long long sll;
};
struct nvml_field_value {
	unsigned field_id, scope_id;
	long long timestamp_us, latency_us;
	int value_type;
	nvml_return result;
	union nvml_value value;
};
_Static_assert(sizeof(struct nvml_field_value) == 40, "nvmlFieldValue_t");
_Static_assert(offsetof(struct nvml_field_value, value_type) == 24, "nvmlFieldValue_t.valueType");
_Static_assert(offsetof(struct nvml_field_value, value) == 32, "nvmlFieldValue_t.value");

struct nvml_event {
	nvml_device device;
	unsigned long long type, data; // data: the XID code
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_event) == 32, "nvmlEventData_t");
_Static_assert(offsetof(struct nvml_event, data) == 16, "nvmlEventData_t.eventData");

// Layout of the second and third variant of the process lists; the first variant has a different one.
struct nvml_process_info {
	unsigned pid;
	unsigned long long memory_bytes; // or NVML_MEMORY_NOT_AVAILABLE
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process_info) == 24, "nvmlProcessInfo_t");
_Static_assert(offsetof(struct nvml_process_info, gpu_instance) == 16, "nvmlProcessInfo_t.gpuInstanceId");
#define NVML_MEMORY_NOT_AVAILABLE 0xffffffffffffffffULL
#define NVML_NO_INSTANCE          0xffffffffu

// ---- GPM: profiling numbers as differences of two samples ----
typedef struct nvml_gpm_sample *nvml_gpm_sample;
#define NVML_GPM_VERSION     1 // a plain number here, without the structure size
#define NVML_GPM_METRICS_MAX 333

struct nvml_gpm_support {
	unsigned version, supported;
};
_Static_assert(sizeof(struct nvml_gpm_support) == 8, "nvmlGpmSupport_t");

struct nvml_gpm_metric {
	unsigned id;
	nvml_return result;
	double value;
	struct {
		const char *short_name, *long_name, *unit;
	} info;
};
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvmlGpmMetric_t");
_Static_assert(offsetof(struct nvml_gpm_metric, value) == 8, "nvmlGpmMetric_t.value");

// The library may write every entry, regardless of `n`; older libraries know fewer.
struct nvml_gpm_metrics {
	unsigned version, n;
	nvml_gpm_sample sample1, sample2;
	struct nvml_gpm_metric metrics[NVML_GPM_METRICS_MAX];
};
_Static_assert(sizeof(struct nvml_gpm_metrics) == 13344, "nvmlGpmMetricsGet_t");
_Static_assert(offsetof(struct nvml_gpm_metrics, metrics) == 24, "nvmlGpmMetricsGet_t.metrics");

// The functions: result, member of struct nvml_api, whether the library must have it, arguments, and the names of its
// variants, newest first. All variants in a row have the same arguments; memory and memory_v2 differ, so they have two
// rows.
// clang-format off
#define NVML_FUNCTIONS(F) \
	F(nvml_return, init, REQUIRED, (void), "nvmlInit_v2", "nvmlInit") \
	F(nvml_return, shutdown, OPTIONAL, (void), "nvmlShutdown") \
	F(nvml_return, driver_version, OPTIONAL, (char *version, unsigned length), "nvmlSystemGetDriverVersion") \
	F(const char *, error_string, OPTIONAL, (nvml_return), "nvmlErrorString") \
	F(nvml_return, count, REQUIRED, (unsigned *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") \
	F(nvml_return, handle_by_index, REQUIRED, (unsigned index, nvml_device *), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex") \
	F(nvml_return, uuid, REQUIRED, (nvml_device, char *uuid, unsigned length), "nvmlDeviceGetUUID") \
	F(nvml_return, name, OPTIONAL, (nvml_device, char *name, unsigned length), "nvmlDeviceGetName") \
	F(nvml_return, minor, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetMinorNumber") \
	F(nvml_return, pci, OPTIONAL, (nvml_device, struct nvml_pci *), "nvmlDeviceGetPciInfo_v3") \
	F(nvml_return, utilization, OPTIONAL, (nvml_device, struct nvml_utilization *), "nvmlDeviceGetUtilizationRates") \
	F(nvml_return, encoder, OPTIONAL, (nvml_device, unsigned *percent, unsigned *period_us), "nvmlDeviceGetEncoderUtilization") \
	F(nvml_return, decoder, OPTIONAL, (nvml_device, unsigned *percent, unsigned *period_us), "nvmlDeviceGetDecoderUtilization") \
	F(nvml_return, memory, OPTIONAL, (nvml_device, struct nvml_memory *), "nvmlDeviceGetMemoryInfo") \
	F(nvml_return, memory_v2, OPTIONAL, (nvml_device, struct nvml_memory_v2 *), "nvmlDeviceGetMemoryInfo_v2") \
	F(nvml_return, power, OPTIONAL, (nvml_device, unsigned *milliwatts), "nvmlDeviceGetPowerUsage") \
	F(nvml_return, power_limit, OPTIONAL, (nvml_device, unsigned *milliwatts), "nvmlDeviceGetPowerManagementLimit") \
	F(nvml_return, power_limit_default, OPTIONAL, (nvml_device, unsigned *milliwatts), "nvmlDeviceGetPowerManagementDefaultLimit") \
	F(nvml_return, power_limit_enforced, OPTIONAL, (nvml_device, unsigned *milliwatts), "nvmlDeviceGetEnforcedPowerLimit") \
	F(nvml_return, power_limit_range, OPTIONAL, (nvml_device, unsigned *min_milliwatts, unsigned *max_milliwatts), "nvmlDeviceGetPowerManagementLimitConstraints") \
	F(nvml_return, energy, OPTIONAL, (nvml_device, unsigned long long *millijoules), "nvmlDeviceGetTotalEnergyConsumption") \
	F(nvml_return, temperature, OPTIONAL, (nvml_device, int sensor, unsigned *celsius), "nvmlDeviceGetTemperature") \
	F(nvml_return, threshold, OPTIONAL, (nvml_device, int threshold, unsigned *celsius), "nvmlDeviceGetTemperatureThreshold") \
	F(nvml_return, clock, OPTIONAL, (nvml_device, int clock, unsigned *mhz), "nvmlDeviceGetClockInfo") \
	F(nvml_return, max_clock, OPTIONAL, (nvml_device, int clock, unsigned *mhz), "nvmlDeviceGetMaxClockInfo") \
	F(nvml_return, pstate, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetPerformanceState") \
	F(nvml_return, fan_speed, OPTIONAL, (nvml_device, unsigned *percent), "nvmlDeviceGetFanSpeed") \
	F(nvml_return, event_reasons, OPTIONAL, (nvml_device, unsigned long long *bits), "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons") \
	F(nvml_return, pcie_replay, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetPcieReplayCounter") \
	F(nvml_return, link_gen, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetCurrPcieLinkGeneration") \
	F(nvml_return, link_width, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetCurrPcieLinkWidth") \
	F(nvml_return, max_link_gen, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetMaxPcieLinkGeneration") \
	F(nvml_return, max_link_width, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetMaxPcieLinkWidth") \
	F(nvml_return, bar1, OPTIONAL, (nvml_device, struct nvml_bar1 *), "nvmlDeviceGetBAR1MemoryInfo") \
	F(nvml_return, virtualization, OPTIONAL, (nvml_device, int *mode), "nvmlDeviceGetVirtualizationMode") \
	F(nvml_return, licenses, OPTIONAL, (nvml_device, struct nvml_licenses *), "nvmlDeviceGetGridLicensableFeatures_v4") \
	F(nvml_return, remapped_rows, OPTIONAL, (nvml_device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failed), "nvmlDeviceGetRemappedRows") \
	F(nvml_return, ecc_errors, OPTIONAL, (nvml_device, int error, int counter, unsigned long long *), "nvmlDeviceGetTotalEccErrors") \
	F(nvml_return, field_values, OPTIONAL, (nvml_device, int n, struct nvml_field_value *), "nvmlDeviceGetFieldValues") \
	F(nvml_return, compute_processes, OPTIONAL, (nvml_device, unsigned *n, struct nvml_process_info *), "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2") \
	F(nvml_return, graphics_processes, OPTIONAL, (nvml_device, unsigned *n, struct nvml_process_info *), "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2") \
	F(nvml_return, mig_mode, OPTIONAL, (nvml_device, unsigned *current, unsigned *pending), "nvmlDeviceGetMigMode") \
	F(nvml_return, mig_count_max, OPTIONAL, (nvml_device, unsigned *), "nvmlDeviceGetMaxMigDeviceCount") \
	F(nvml_return, mig_handle, OPTIONAL, (nvml_device, unsigned index, nvml_device *), "nvmlDeviceGetMigDeviceHandleByIndex") \
	F(nvml_return, gpu_instance_id, OPTIONAL, (nvml_device mig, unsigned *), "nvmlDeviceGetGpuInstanceId") \
	F(nvml_return, attributes, OPTIONAL, (nvml_device mig, struct nvml_attributes *), "nvmlDeviceGetAttributes_v2") \
	F(nvml_return, gpm_support, OPTIONAL, (nvml_device, struct nvml_gpm_support *), "nvmlGpmQueryDeviceSupport") \
	F(nvml_return, gpm_sample_alloc, OPTIONAL, (nvml_gpm_sample *), "nvmlGpmSampleAlloc") \
	F(nvml_return, gpm_sample_free, OPTIONAL, (nvml_gpm_sample), "nvmlGpmSampleFree") \
	F(nvml_return, gpm_sample_get, OPTIONAL, (nvml_device, nvml_gpm_sample), "nvmlGpmSampleGet") \
	F(nvml_return, gpm_mig_sample_get, OPTIONAL, (nvml_device gpu, unsigned gpu_instance, nvml_gpm_sample), "nvmlGpmMigSampleGet") \
	F(nvml_return, gpm_metrics_get, OPTIONAL, (struct nvml_gpm_metrics *), "nvmlGpmMetricsGet") \
	F(nvml_return, event_set_create, OPTIONAL, (nvml_event_set *), "nvmlEventSetCreate") \
	F(nvml_return, event_set_free, OPTIONAL, (nvml_event_set), "nvmlEventSetFree") \
	F(nvml_return, register_events, OPTIONAL, (nvml_device, unsigned long long mask, nvml_event_set), "nvmlDeviceRegisterEvents") \
	F(nvml_return, event_wait, OPTIONAL, (nvml_event_set, struct nvml_event *, unsigned timeout_ms), "nvmlEventSetWait_v2")
// clang-format on

// A pointer is NULL if the library lacks the function.
struct nvml_api {
	void *library;
#define MEMBER(ret, member, need, args, ...) ret(*member) args;
	NVML_FUNCTIONS(MEMBER)
#undef MEMBER
};

#endif
