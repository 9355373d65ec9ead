// SPDX-License-Identifier: Apache-2.0
// A small libdcgm.so.4 in the way of test/fake/nvml: it answers from FAKE_NVML_SCRIPT (../nvml/script.h). Results are
// written without their minus sign. Its own lines:
//   set ID GPU VALUE       the value of a field; of doubles in thousandths. Default: the id, and GPU x 10000
//   time ID GPU US         its stamp (default 1)
//   fail fieldID GPU N     the status of a field is -N
//   odd ID GPU N           a number that is none: 1 NaN, 2 and 3 infinities, 4 and 5 far beyond, 6 below 0, 7 of no
//   type unknown ID * 1         a field that this version does not know
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/dcgm/dcgm_api.h"
#include "exporter/families.h"
#include "test/fake/nvml/script.h"

#define HANDLE     ((dcgm_handle)77)
#define GROUPS_MAX 8

struct group {
	bool used;
	bool watched;
	int n;
	unsigned short fields[FIELD__COUNT];
};
static struct group groups[GROUPS_MAX];

static dcgm_return start(struct script *s, const char *function)
{
	return -begin(s, function, ANY_GPU);
}

static int64_t number_of(const struct script *s, const char *verb, unsigned id, int gpu, int64_t fallback)
{
	char name[16];
	snprintf(name, sizeof name, "%u", id);
	return lookup(s, verb, name, gpu, fallback);
}

dcgm_return dcgmInit(void);
dcgm_return dcgmInit(void)
{
	struct script s;
	return start(&s, "dcgmInit");
}

dcgm_return dcgmShutdown(void);
dcgm_return dcgmShutdown(void)
{
	memset(groups, 0, sizeof groups);
	return DCGM_OK;
}

const char *errorString(dcgm_return r);
const char *errorString(dcgm_return r)
{
	return r == DCGM_CONNECTION_NOT_VALID ? "The connection is not valid" : "Some DCGM error";
}

dcgm_return dcgmConnect_v2(const char *address, struct dcgm_connect *c, dcgm_handle *h);
dcgm_return dcgmConnect_v2(const char *address, struct dcgm_connect *c, dcgm_handle *h)
{
	struct script s;
	dcgm_return r = start(&s, "dcgmConnect_v2");
	if (c->version != DCGM_CONNECT_VERSION || c->is_unix_socket != (address[0] == '/'))
		return DCGM_BAD_PARAM;
	*h = HANDLE;
	return r;
}

dcgm_return dcgmDisconnect(dcgm_handle h);
dcgm_return dcgmDisconnect(dcgm_handle h)
{
	return h == HANDLE ? DCGM_OK : DCGM_BAD_PARAM;
}

dcgm_return dcgmGetAllDevices(dcgm_handle h, unsigned *gpus, int *n);
dcgm_return dcgmGetAllDevices(dcgm_handle h, unsigned *gpus, int *n)
{
	struct script s;
	dcgm_return r = start(&s, "dcgmGetAllDevices");
	*n = (int)lookup(&s, "set", "gpus", ANY_GPU, 2);
	for (int i = 0; i < *n; i++)
		gpus[i] = (unsigned)i;
	return h == HANDLE ? r : DCGM_BAD_PARAM;
}

dcgm_return dcgmFieldGroupCreate(dcgm_handle h, int n, const unsigned short *fields, const char *name,
                                 dcgm_field_group *g);
dcgm_return dcgmFieldGroupCreate(dcgm_handle h, int n, const unsigned short *fields, const char *name,
                                 dcgm_field_group *g)
{
	struct script s;
	dcgm_return r = start(&s, "dcgmFieldGroupCreate");
	if (h != HANDLE || n <= 0 || n > FIELD__COUNT || !name[0])
		return DCGM_BAD_PARAM;
	for (int i = 0; i < n; i++)
		if (number_of(&s, "unknown", fields[i], ANY_GPU, 0))
			return DCGM_UNKNOWN_FIELD;
	for (size_t i = 0; i < GROUPS_MAX; i++) {
		if (groups[i].used)
			continue;
		groups[i] = (struct group){.used = true, .n = n};
		memcpy(groups[i].fields, fields, (size_t)n * sizeof *fields);
		*g = i + 1;
		return r;
	}
	return DCGM_BAD_PARAM; // groups are never destroyed
}

dcgm_return dcgmFieldGroupDestroy(dcgm_handle h, dcgm_field_group g);
dcgm_return dcgmFieldGroupDestroy(dcgm_handle h, dcgm_field_group g)
{
	if (h != HANDLE || g == 0 || g > GROUPS_MAX || !groups[g - 1].used)
		return DCGM_BAD_PARAM;
	groups[g - 1] = (struct group){.used = false};
	return DCGM_OK;
}

dcgm_return dcgmWatchFields(dcgm_handle h, dcgm_gpu_group gpus, dcgm_field_group g, long long period_us, double keep_s,
                            int keep_samples);
dcgm_return dcgmWatchFields(dcgm_handle h, dcgm_gpu_group gpus, dcgm_field_group g, long long period_us, double keep_s,
                            int keep_samples)
{
	struct script s;
	if (h != HANDLE || gpus != DCGM_ALL_GPUS || g == 0 || g > GROUPS_MAX || !groups[g - 1].used ||
	    period_us < 100000 || keep_s <= 0 || keep_samples < 1)
		return DCGM_BAD_PARAM;
	dcgm_return r = start(&s, groups[g - 1].fields[0] >= DCGM_FIELD_PROF_FIRST ? "watchProfiling" : "watch");
	groups[g - 1].watched = r == DCGM_OK;
	return r;
}

dcgm_return dcgmUpdateAllFields(dcgm_handle h, int wait);
dcgm_return dcgmUpdateAllFields(dcgm_handle h, int wait)
{
	(void)wait;
	return h == HANDLE ? DCGM_OK : DCGM_BAD_PARAM;
}

static bool is_watched(unsigned short field)
{
	for (size_t i = 0; i < GROUPS_MAX; i++)
		for (int k = 0; groups[i].watched && k < groups[i].n; k++)
			if (groups[i].fields[k] == field)
				return true;
	return false;
}

static void fill_text(struct dcgm_value *v, int gpu)
{
	v->field_type = DCGM_FIELD_TYPE_TEXT;
	switch (v->field_id) {
	case DCGM_FIELD_DRIVER:
		snprintf(v->value.text, DCGM_TEXT_BYTES, "535.161.08");
		break;
	case DCGM_FIELD_NAME:
		snprintf(v->value.text, DCGM_TEXT_BYTES, "NVIDIA Fake 100");
		break;
	case DCGM_FIELD_UUID:
		snprintf(v->value.text, DCGM_TEXT_BYTES, "GPU-00000000-0000-0000-0000-%012d", gpu);
		break;
	default:
		snprintf(v->value.text, DCGM_TEXT_BYTES, "%s", gpu ? "00000000:07:00.0" : DCGM_TEXT_BLANK);
	}
}

static void make_odd(struct dcgm_value *v, int64_t kind)
{
	static const double doubles[] = {0, NAN, INFINITY, -INFINITY, 1e300, -1e300, -1};
	if (kind == 7)
		v->field_type = 'x';
	else if (kind == 6 && v->field_type == DCGM_FIELD_TYPE_INT64)
		v->value.i64 = INT64_MIN;
	else if (kind > 0 && kind < 7) {
		v->field_type = DCGM_FIELD_TYPE_DOUBLE; // also where a whole number was asked for
		v->value.dbl = doubles[kind];
	}
}

static void fill(const struct script *s, struct dcgm_value *v, int gpu, bool live)
{
	char name[24];
	snprintf(name, sizeof name, "field%u", v->field_id);
	v->status = (dcgm_return)-lookup(s, "fail", name, gpu, 0);
	v->time_us = number_of(s, "time", v->field_id, gpu, 1);
	if (v->field_id == DCGM_FIELD_DRIVER || v->field_id == DCGM_FIELD_NAME || v->field_id == DCGM_FIELD_UUID ||
	    v->field_id == DCGM_FIELD_PCI_BUS_ID) {
		fill_text(v, gpu);
		return;
	}
	if (v->field_id == DCGM_FIELD_MINOR || v->field_id == DCGM_FIELD_NVML_INDEX) {
		v->field_type = DCGM_FIELD_TYPE_INT64;
		v->value.i64 = gpu;
		return;
	}
	if (!live && !is_watched(v->field_id))
		v->status = -16; // NOT_WATCHED
	int64_t number = number_of(s, "set", v->field_id, gpu, v->field_id + 10000 * gpu);
	bool is_double = v->field_id >= DCGM_FIELD_PROF_FIRST || v->field_id == 155 || v->field_id == 157 ||
	                 v->field_id == 254 || (v->field_id >= 160 && v->field_id <= 164);
	v->field_type = is_double ? DCGM_FIELD_TYPE_DOUBLE : DCGM_FIELD_TYPE_INT64;
	if (number_of(s, "blank", v->field_id, gpu, 0))
		number = INT64_MAX;
	if (is_double)
		v->value.dbl = number == INT64_MAX ? DCGM_DOUBLE_BLANK : (double)number / 1000;
	else
		v->value.i64 = number == INT64_MAX ? DCGM_INT64_BLANK + 2 : number;
	make_odd(v, number_of(s, "odd", v->field_id, gpu, 0));
}

dcgm_return dcgmEntitiesGetLatestValues(dcgm_handle h, const struct dcgm_entity *entities, unsigned n,
                                        const unsigned short *fields, unsigned n_fields, unsigned flags,
                                        struct dcgm_value *values);
dcgm_return dcgmEntitiesGetLatestValues(dcgm_handle h, const struct dcgm_entity *entities, unsigned n,
                                        const unsigned short *fields, unsigned n_fields, unsigned flags,
                                        struct dcgm_value *values)
{
	struct script s;
	dcgm_return r = -begin(&s, "dcgmEntitiesGetLatestValues", (int)entities[0].id);
	for (unsigned i = 0; i < n * n_fields; i++) {
		const struct dcgm_entity *entity = &entities[i / n_fields];
		values[i] = (struct dcgm_value){
		        .entity_group = entity->group, .entity_id = entity->id, .field_id = fields[i % n_fields]};
		fill(&s, &values[i], (int)entity->id, flags & DCGM_LIVE_DATA);
	}
	return h == HANDLE ? r : DCGM_BAD_PARAM;
}
