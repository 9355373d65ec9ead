// SPDX-License-Identifier: Apache-2.0
// The functions of DCGM's client library that the exporter calls. The library is loaded at run time. Prototypes and
// layouts are gpuscale's own notation of the documented interface (DCGM API reference), which is the same in libdcgm
// 3 and 4.
#ifndef GPUSCALE_EXPORTER_DCGM_DCGM_API_H
#define GPUSCALE_EXPORTER_DCGM_DCGM_API_H

#include <stddef.h>
#include <stdint.h>

typedef int dcgm_return; // 0 = success; below 0 = an error
typedef uintptr_t dcgm_handle, dcgm_field_group, dcgm_gpu_group;
enum {
	DCGM_OK = 0,
	DCGM_BAD_PARAM = -1,
	DCGM_UNKNOWN_FIELD = -13,
	DCGM_NO_DATA = -14,
	DCGM_GPU_IS_LOST = -18,
	DCGM_RESET_REQUIRED = -19,
	DCGM_CONNECTION_NOT_VALID = -21
};

#define DCGM_GPUS_MAX          64 // the library's limit is 32
#define DCGM_ALL_GPUS          ((dcgm_gpu_group)0x7fffffff)
#define DCGM_ENTITY_NONE       0
#define DCGM_ENTITY_GPU        1
#define DCGM_LIVE_DATA         1u // read from the driver, not from the host engine's memory
#define DCGM_TEXT_BYTES        256
#define DCGM_INT64_BLANK       INT64_C(0x7ffffffffffffff0) // this and above: no value
#define DCGM_DOUBLE_BLANK      140737488355328.0
#define DCGM_TEXT_BLANK        "<<<NULL>>>"
#define DCGM_FIELD_DRIVER      1
#define DCGM_FIELD_NAME        50
#define DCGM_FIELD_NVML_INDEX  52
#define DCGM_FIELD_UUID        54
#define DCGM_FIELD_MINOR       55
#define DCGM_FIELD_PCI_BUS_ID  57
#define DCGM_FIELD_PROF_FIRST  1001
#define DCGM_FIELD_TYPE_INT64  'i'
#define DCGM_FIELD_TYPE_DOUBLE 'd'
#define DCGM_FIELD_TYPE_TEXT   's'

struct dcgm_connect {
	unsigned version, persist, timeout_ms, is_unix_socket;
};
#define DCGM_CONNECT_VERSION ((unsigned)sizeof(struct dcgm_connect) | 2u << 24)
_Static_assert(sizeof(struct dcgm_connect) == 16, "dcgmConnectV2Params_v2");

struct dcgm_entity {
	int group;
	unsigned id;
};
_Static_assert(sizeof(struct dcgm_entity) == 8, "dcgmGroupEntityPair_t");

struct dcgm_value {
	unsigned version;
	int entity_group;
	unsigned entity_id;
	unsigned short field_id, field_type;
	dcgm_return status;
	unsigned unused;
	int64_t time_us;
	union {
		int64_t i64;
		double dbl;
		char text[DCGM_TEXT_BYTES];
		char blob[4096];
	} value;
};
_Static_assert(sizeof(struct dcgm_value) == 4128, "dcgmFieldValue_v2");
_Static_assert(offsetof(struct dcgm_value, field_id) == 12, "dcgmFieldValue_v2.fieldId");
_Static_assert(offsetof(struct dcgm_value, time_us) == 24, "dcgmFieldValue_v2.ts");
_Static_assert(offsetof(struct dcgm_value, value) == 32, "dcgmFieldValue_v2.value");

// The functions: result, member of struct dcgm_api, arguments, name.
// clang-format off
#define DCGM_FUNCTIONS(F) \
	F(dcgm_return, init, (void), "dcgmInit") \
	F(dcgm_return, shutdown, (void), "dcgmShutdown") \
	F(const char *, error_string, (dcgm_return), "errorString") \
	F(dcgm_return, connect, (const char *address, struct dcgm_connect *, dcgm_handle *), "dcgmConnect_v2") \
	F(dcgm_return, disconnect, (dcgm_handle), "dcgmDisconnect") \
	F(dcgm_return, all_devices, (dcgm_handle, unsigned *gpus, int *n), "dcgmGetAllDevices") \
	F(dcgm_return, field_group_create, (dcgm_handle, int n, const unsigned short *fields, const char *name, dcgm_field_group *), "dcgmFieldGroupCreate") \
	F(dcgm_return, field_group_destroy, (dcgm_handle, dcgm_field_group), "dcgmFieldGroupDestroy") \
	F(dcgm_return, watch, (dcgm_handle, dcgm_gpu_group, dcgm_field_group, long long period_us, double keep_s, int keep_samples), "dcgmWatchFields") \
	F(dcgm_return, update, (dcgm_handle, int wait), "dcgmUpdateAllFields") \
	F(dcgm_return, latest, (dcgm_handle, const struct dcgm_entity *, unsigned n, const unsigned short *fields, unsigned n_fields, unsigned flags, struct dcgm_value *values), "dcgmEntitiesGetLatestValues")
// clang-format on

struct dcgm_api {
	void *library;
#define MEMBER(ret, member, args, name) ret(*member) args;
	DCGM_FUNCTIONS(MEMBER)
#undef MEMBER
};

#endif
