// SPDX-License-Identifier: Apache-2.0
// Samples GPUs through a running nv-hostengine, for fields that NVML lacks: profiling fields before Hopper. DCGM
// watches the fields, and the backend reads the latest values. MIG instances are not read.
#include "base/base.h"
#include "base/process/log.h"
#include "exporter/backend.h"
#include "exporter/dcgm/dcgm_api.h"
#include "exporter/xid.h"

#define CONNECT_TIMEOUT_MS 3000
#define KEEP_S             30.0 // history kept by the host engine: as little as possible
#define KEEP_SAMPLES       2
#define UNIX_PREFIX        "unix://"
#define GROUP_NAME         "gpuscale-exporter"

// ---- the library ----

// Loads `library`; NULL selects libdcgm.so.4, else libdcgm.so.3. Fails if it cannot be loaded or a function is missing:
// unlike those of NVML, all of them exist since DCGM 2.
static int dcgm_api_load(struct dcgm_api *api, const char *library, struct err *e)
{
	static const struct backend_symbol symbols[] = {
#define SYMBOL(ret, member, args, name) {offsetof(struct dcgm_api, member), false, {name}},
	        DCGM_FUNCTIONS(SYMBOL)};
	size_t n = sizeof symbols / sizeof symbols[0];
	int rc = backend_load_library(api, sizeof *api, "DCGM", library ? library : "libdcgm.so.4", symbols, n, e);
	if (rc < 0 && !library && e->kind == ERR_NOT_FOUND)
		rc = backend_load_library(api, sizeof *api, "DCGM", "libdcgm.so.3", symbols, n, e);
	return rc;
}

static const char *dcgm_api_error(const struct dcgm_api *api, dcgm_return r)
{
	const char *text = api->error_string(r);
	return text ? text : "unknown error";
}

struct dcgm {
	struct backend base;
	struct dcgm_api api;
	bool inited, connected;
	dcgm_handle handle;
	char driver_version[DCGM_TEXT_BYTES];
	struct device devices[DCGM_GPUS_MAX]; // base.n
	unsigned ids[DCGM_GPUS_MAX];
	int64_t xid_time_us[DCGM_GPUS_MAX]; // time of the last XID read; -1: not read yet
	size_t n_fields;
	unsigned short fields[FIELD__COUNT];
	struct dcgm_value *values; // values of one device, while open
};
_Static_assert(DCGM_GPUS_MAX <= DEVICES_MAX, "every GPU has a place");

static int dcgm_fail(const struct dcgm *m, struct err *e, const char *what, dcgm_return r)
{
	return err_set_code(e, ERR_UNREACHABLE, r, "%s: %s", what, dcgm_api_error(&m->api, r));
}

static void dcgm_close(struct backend *b)
{
	struct dcgm *m = (struct dcgm *)b;
	// The host engine deletes the watches and groups of a closed connection.
	if (m->connected)
		m->api.disconnect(m->handle);
	if (m->inited)
		m->api.shutdown();
	m->connected = m->inited = false;
	backend_unload_library(&m->api, sizeof m->api);
	free(m->values);
	m->values = NULL;
	b->n = 0;
}

static int connect_to(struct dcgm *m, struct err *e)
{
	struct dcgm_connect c = {.version = DCGM_CONNECT_VERSION, .timeout_ms = CONNECT_TIMEOUT_MS};
	const char *address = m->base.config.dcgm_address;
	if (strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		address += strlen(UNIX_PREFIX);
	c.is_unix_socket = address[0] == '/';
	dcgm_return r = m->api.init();
	if (r != DCGM_OK)
		return dcgm_fail(m, e, "DCGM failed to start", r);
	m->inited = true;
	r = m->api.connect(address, &c, &m->handle);
	if (r != DCGM_OK) {
		err_set_code(e, ERR_UNREACHABLE, r, "cannot reach nv-hostengine at %s: %s", m->base.config.dcgm_address,
		             dcgm_api_error(&m->api, r));
		return -1;
	}
	m->connected = true;
	return 0;
}

// ---- what the GPUs are ----
static bool read_live(struct dcgm *m, struct dcgm_entity entity, unsigned short field, unsigned short type,
                      struct dcgm_value *ret_value)
{
	*ret_value = (struct dcgm_value){.status = DCGM_BAD_PARAM};
	return m->api.latest(m->handle, &entity, 1, &field, 1, DCGM_LIVE_DATA, ret_value) == DCGM_OK &&
	       ret_value->status == DCGM_OK && ret_value->field_type == type;
}

// Reads the text of one field of an entity; "" if there is none.
static void read_text(struct dcgm *m, struct dcgm_entity entity, unsigned short field, char *out, size_t size)
{
	struct dcgm_value v;
	out[0] = '\0';
	if (!read_live(m, entity, field, DCGM_FIELD_TYPE_TEXT, &v))
		return;
	v.value.text[DCGM_TEXT_BYTES - 1] = '\0';
	if (strcmp(v.value.text, DCGM_TEXT_BLANK) != 0)
		snprintf(out, size, "%s", v.value.text);
}

static bool read_number(struct dcgm *m, struct dcgm_entity entity, unsigned short field, int64_t *ret_value)
{
	struct dcgm_value v;
	if (!read_live(m, entity, field, DCGM_FIELD_TYPE_INT64, &v) || v.value.i64 >= DCGM_INT64_BLANK ||
	    v.value.i64 < 0)
		return false;
	*ret_value = v.value.i64;
	return true;
}

static int find_devices(struct dcgm *m, struct err *e)
{
	int n = 0;
	dcgm_return r = m->api.all_devices(m->handle, m->ids, &n);
	if (r != DCGM_OK)
		return dcgm_fail(m, e, "cannot list GPUs", r);
	if (n <= 0 || n > DCGM_GPUS_MAX)
		return err_set(e, ERR_NOT_FOUND, "DCGM found %d GPUs on this node", n);
	for (int i = 0; i < n; i++) {
		const struct dcgm_entity gpu = {DCGM_ENTITY_GPU, m->ids[i]};
		struct device *d = &m->devices[i];
		int64_t number;
		*d = (struct device){.index = (int32_t)m->ids[i]};
		if (read_number(m, gpu, DCGM_FIELD_NVML_INDEX, &number) && number <= INT32_MAX)
			d->index = (int32_t)number;
		if (read_number(m, gpu, DCGM_FIELD_MINOR, &number) && number <= INT32_MAX)
			snprintf(d->node, sizeof d->node, "nvidia%d", (int)number);
		read_text(m, gpu, DCGM_FIELD_UUID, d->uuid, sizeof d->uuid);
		read_text(m, gpu, DCGM_FIELD_NAME, d->model, sizeof d->model);
		read_text(m, gpu, DCGM_FIELD_PCI_BUS_ID, d->pci_bus_id, sizeof d->pci_bus_id);
		if (!d->uuid[0])
			return err_set(e, ERR_PROTOCOL, "DCGM reports no UUID for GPU %u", m->ids[i]);
		for (int k = 0; k < i; k++)
			if (strcmp(m->devices[k].uuid, d->uuid) == 0)
				return err_set(e, ERR_PROTOCOL, "DCGM reports the same UUID for GPU %u and GPU %u",
				               m->ids[k], m->ids[i]);
		m->xid_time_us[i] = -1;
	}
	m->base.n = (size_t)n;
	m->base.devices = m->devices;
	m->base.driver_version = m->driver_version;
	read_text(m, (struct dcgm_entity){DCGM_ENTITY_NONE, 0}, DCGM_FIELD_DRIVER, m->driver_version,
	          sizeof m->driver_version);
	return 0;
}

// ---- which fields ----
static bool is_known(struct dcgm *m, unsigned short field)
{
	dcgm_field_group g;
	if (m->api.field_group_create(m->handle, 1, &field, GROUP_NAME "-probe", &g) != DCGM_OK)
		return false;
	m->api.field_group_destroy(m->handle, g);
	return true;
}

// Watches the families from `first` to `last` (DCGM ids). Older versions reject the whole group for one unknown
// field; those fields are then left out.
static dcgm_return watch_range(struct dcgm *m, int first, int last, const char *name)
{
	unsigned short fields[FIELD__COUNT];
	int n = 0;
	for (enum field f = 0; f < FIELD__COUNT; f++) {
		int id = family_of(f)->dcgm_id;
		if (id >= first && id <= last)
			fields[n++] = (unsigned short)id;
	}
	dcgm_field_group g;
	dcgm_return r = m->api.field_group_create(m->handle, n, fields, name, &g);
	if (r != DCGM_OK) {
		int known = 0;
		for (int i = 0; i < n; i++)
			if (is_known(m, fields[i]))
				fields[known++] = fields[i];
		n = known;
		r = n ? m->api.field_group_create(m->handle, n, fields, name, &g) : r;
	}
	if (r == DCGM_OK)
		r = m->api.watch(m->handle, DCGM_ALL_GPUS, g, m->base.config.interval_ms * 1000, KEEP_S, KEEP_SAMPLES);
	if (r != DCGM_OK)
		return r;
	memcpy(m->fields + m->n_fields, fields, (size_t)n * sizeof fields[0]);
	m->n_fields += (size_t)n;
	return DCGM_OK;
}

static int watch_fields(struct dcgm *m, struct err *e)
{
	m->n_fields = 0;
	dcgm_return r =
	        m->base.config.dcgm_profiling_only ? DCGM_OK : watch_range(m, 1, DCGM_FIELD_PROF_FIRST - 1, GROUP_NAME);
	if (r != DCGM_OK)
		return dcgm_fail(m, e, "DCGM cannot watch fields", r);
	// GPUs without profiling reject this watch; the other fields are still useful.
	r = watch_range(m, DCGM_FIELD_PROF_FIRST, UINT16_MAX, GROUP_NAME "-profiling");
	if (r != DCGM_OK && m->base.config.dcgm_profiling_only)
		return dcgm_fail(m, e, "DCGM cannot watch profiling fields", r);
	if (r != DCGM_OK)
		LOG(m->base.config.log, LOG_WARNING, "Profiling fields not available",
		    LOG_S("err", dcgm_api_error(&m->api, r)));
	m->api.update(m->handle, 1); // so that the first round has values
	return 0;
}

static int dcgm_open(struct backend *b, struct err *e)
{
	struct dcgm *m = (struct dcgm *)b;
	if (dcgm_api_load(&m->api, m->base.config.dcgm_library, e) < 0)
		return -1;
	m->values = calloc(FIELD__COUNT, sizeof *m->values);
	int rc = m->values ? connect_to(m, e) : err_no_memory(e);
	if (rc == 0)
		rc = find_devices(m, e);
	if (rc == 0)
		rc = watch_fields(m, e);
	if (rc < 0)
		dcgm_close(b);
	return rc;
}

// ---- a round ----
static void take_value(const struct dcgm_value *v, struct device_sample *s)
{
	enum field f = family_find_id(v->field_id);
	if (f == FIELD__COUNT)
		return;
	double number;
	if (v->field_type == DCGM_FIELD_TYPE_INT64 && v->value.i64 < DCGM_INT64_BLANK) {
		number = (double)v->value.i64;
		if (family_of(f)->kind == FIELD_INT && v->value.i64 >= 0) {
			sample_set_i64(s, f, v->value.i64);
			return;
		}
	} else if (v->field_type == DCGM_FIELD_TYPE_DOUBLE && v->value.dbl < DCGM_DOUBLE_BLANK) {
		number = v->value.dbl;
	} else {
		return;
	}
	// Only temperatures may be negative. Other negative values, and NaN, are dropped.
	bool cold = (f == FIELD_GPU_TEMP || f == FIELD_MEMORY_TEMP) && number < 0 && number > -100;
	if (!cold && !(number >= 0 && number < 9e18))
		return;
	sample_set(s, f, number);
}

// The host engine stamps each XID. XIDs from before the first round are not counted.
static void count_xid(struct dcgm *m, size_t i, const struct dcgm_value *v, int64_t wall_ms)
{
	bool none = v->status != DCGM_OK || v->field_type != DCGM_FIELD_TYPE_INT64 || v->value.i64 <= 0 ||
	            v->value.i64 >= DCGM_INT64_BLANK;
	int64_t time_us = none ? 0 : v->time_us;
	if (!none && m->xid_time_us[i] >= 0 && time_us != m->xid_time_us[i])
		xid_store_count(m->base.config.xids, m->devices[i].uuid,
		                v->value.i64 <= INT32_MAX ? (int32_t)v->value.i64 : XID_CODE_OTHER, wall_ms);
	if (!none || m->xid_time_us[i] < 0)
		m->xid_time_us[i] = time_us;
}

static int sample_device(struct dcgm *m, size_t i, int64_t wall_ms, struct device_sample *s, struct err *e)
{
	const struct dcgm_entity gpu = {DCGM_ENTITY_GPU, m->ids[i]};
	for (size_t k = 0; k < m->n_fields; k++)
		m->values[k].status = DCGM_BAD_PARAM; // so that a missing reply is not the value of another GPU
	dcgm_return r = m->api.latest(m->handle, &gpu, 1, m->fields, (unsigned)m->n_fields, 0, m->values);
	if (r == DCGM_GPU_IS_LOST || r == DCGM_RESET_REQUIRED) {
		s->lost = true;
		return 0;
	}
	if (r != DCGM_OK)
		return dcgm_fail(m, e, "DCGM is gone", r);
	bool tells_xids = false;
	for (size_t k = 0; k < m->n_fields; k++) {
		const struct dcgm_value *v = &m->values[k];
		if (v->status == DCGM_GPU_IS_LOST || v->status == DCGM_RESET_REQUIRED) {
			*s = (struct device_sample){.lost = true};
			return 0;
		}
		if (v->status == DCGM_OK)
			take_value(v, s);
		if (family_find_id(v->field_id) != FIELD_XID_ERRORS)
			continue;
		tells_xids = v->status == DCGM_OK || v->status == DCGM_NO_DATA;
		if (tells_xids)
			xid_store_add_gpu(m->base.config.xids, m->devices[i].uuid);
		count_xid(m, i, v, wall_ms);
	}
	// DCGM leaves the field blank until the first XID; here 0 means that none occurred. If the field is not
	// watched or not permitted, the value is unknown.
	if (tells_xids && !sample_has(s, FIELD_XID_ERRORS))
		sample_set_i64(s, FIELD_XID_ERRORS, xid_store_last(m->base.config.xids, m->devices[i].uuid));
	return 0;
}

static int dcgm_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                       struct err *e)
{
	struct dcgm *m = (struct dcgm *)b;
	for (size_t i = 0; i < b->n; i++) {
		samples[i] = (struct device_sample){.lost = false};
		if (sample_device(m, i, wall_ms, &samples[i], e) < 0)
			return -1;
	}
	return 0;
}

static const struct backend_ops ops = {
        .name = "dcgm", .open = dcgm_open, .sample = dcgm_sample, .close = dcgm_close, .destroy = backend_free};

struct backend *backend_dcgm_new(const struct backend_config *config, struct err *e)
{
	return backend_alloc(sizeof(struct dcgm), &ops, config, e);
}
