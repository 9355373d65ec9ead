// SPDX-License-Identifier: Apache-2.0
// A library that answers with the input: texts without an end, counts beyond everything, numbers of every type, success
// without a word. What comes of it is a page that a reader takes, of values that a device can have; and a library that
// succeeds and writes nothing gives no value at all.
//   byte 0    bit 0: the library writes nothing; the functions take the following bytes in the order of the calls,
//             one for the result, then what they write; at the end of the input they are not supported
#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/cmd/page_view.h"
#include "exporter/device.h"
#include "exporter/nvml/nvml.h"
#include "exporter/page/page.h"
#include "exporter/page/render_page.h"
#include "exporter/xid.h"
#include "test/fuzz/page_check.h"

#define GPUS_MAX 4
#define ROUNDS   3

static struct {
	const uint8_t *p, *end;
	bool silent;
} in;

static unsigned byte(void)
{
	return in.p < in.end ? *in.p++ : 0xff;
}

// The result of a call, and what it writes when it succeeds: all of `size` bytes, the last of them too.
static nvml_return answer(void *out, size_t size)
{
	static const nvml_return results[] = {NVML_NOT_SUPPORTED,    NVML_NO_PERMISSION, NVML_INVALID_ARGUMENT,
	                                      NVML_UNKNOWN,          NVML_GPU_IS_LOST,   NVML_FUNCTION_NOT_FOUND,
	                                      NVML_DRIVER_NOT_LOADED};
	if (in.silent)
		return NVML_SUCCESS;
	if (in.p == in.end)
		return NVML_NOT_SUPPORTED;
	unsigned r = byte();
	if (r >= 0xf0)
		return results[r % (sizeof results / sizeof results[0])];
	size_t left = (size_t)(in.end - in.p), n = size < left ? size : left;
	if (r >= 0xe0) // success without a word
		return NVML_SUCCESS;
	if (r >= 0xc0) {
		memset(out, (int)(r - 0xc0) * 8 + 7, size); // 07 .. ff: no terminator, all bits set
		return NVML_SUCCESS;
	}
	if (n)
		memcpy(out, in.p, n);
	in.p += n;
	return NVML_SUCCESS;
}

static nvml_return text(char *out, unsigned length)
{
	unsigned n = 0;
	if (in.silent)
		return NVML_SUCCESS;
	if (byte() >= 0xe0)
		return answer(out, length);
	while (n < length && in.p < in.end) {
		out[n] = (char)*in.p++;
		if (!out[n++])
			return NVML_SUCCESS;
	}
	return n ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

static nvml_return count(unsigned *n)
{
	static const unsigned counts[] = {2, 1, 3, 0, GPUS_MAX, DEVICES_MAX + 1, UINT_MAX, INT_MAX};
	*n = in.silent ? 2 : counts[byte() % (sizeof counts / sizeof counts[0])];
	return NVML_SUCCESS;
}

static nvml_return handle(unsigned index, nvml_device *d)
{
	if (index >= GPUS_MAX)
		return NVML_GPU_IS_LOST;
	*d = (nvml_device)(uintptr_t)(index + 1);
	return NVML_SUCCESS;
}

static nvml_return uuid(nvml_device d, char *out, unsigned length)
{
	if (in.silent) { // or there would be nothing to read
		snprintf(out, length, "GPU-%u", (unsigned)(uintptr_t)d);
		return NVML_SUCCESS;
	}
	return text(out, length);
}

static nvml_return of_text(nvml_device d, char *out, unsigned length)
{
	(void)d;
	return text(out, length);
}

#define OF_OUT(name, type)                                                                                             \
	static nvml_return name(nvml_device d, type *out)                                                              \
	{                                                                                                              \
		(void)d;                                                                                               \
		return answer(out, sizeof *out);                                                                       \
	}
OF_OUT(of_pci, struct nvml_pci)
OF_OUT(of_utilization, struct nvml_utilization)
OF_OUT(of_memory, struct nvml_memory)
OF_OUT(of_memory_v2, struct nvml_memory_v2)
OF_OUT(of_bar1, struct nvml_bar1)
OF_OUT(of_licenses, struct nvml_licenses)
OF_OUT(of_unsigned, unsigned)
OF_OUT(of_int, int)
OF_OUT(of_u64, unsigned long long)
OF_OUT(of_gpm_support, struct nvml_gpm_support)

static nvml_return of_two(nvml_device d, unsigned *a, unsigned *b)
{
	(void)d;
	nvml_return r = answer(a, sizeof *a);
	return r == NVML_SUCCESS ? answer(b, sizeof *b) : r;
}

static nvml_return of_rows(nvml_device d, unsigned *a, unsigned *b, unsigned *c, unsigned *e)
{
	nvml_return r = of_two(d, a, b);
	return r == NVML_SUCCESS ? of_two(d, c, e) : r;
}

static nvml_return of_selector(nvml_device d, int selector, unsigned *out)
{
	(void)selector;
	return of_unsigned(d, out);
}

static nvml_return of_ecc(nvml_device d, int error, int counter, unsigned long long *out)
{
	(void)error, (void)counter;
	return of_u64(d, out);
}

static nvml_return of_fields(nvml_device d, int n, struct nvml_field_value *values)
{
	(void)d;
	for (int i = 0; i < n && !in.silent && in.p < in.end; i++) {
		unsigned kind = byte();
		if (kind >= 0xe0)
			continue;
		values[i].result = kind >= 0xc0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
		values[i].value_type = (int)(kind % 8);
		answer(&values[i].value, sizeof values[i].value);
	}
	return NVML_SUCCESS;
}

static nvml_return of_processes(nvml_device d, unsigned *n, struct nvml_process_info *infos)
{
	(void)d;
	if (in.silent)
		return NVML_SUCCESS;
	unsigned room = *n, wanted = byte();
	*n = wanted >= 0xf0 ? UINT_MAX : wanted >= 0xe0 ? room : wanted % 8;
	for (unsigned i = 0; i < *n && i < room && in.p < in.end; i++)
		answer(&infos[i], sizeof infos[i]);
	return NVML_SUCCESS;
}

static nvml_return of_mig(nvml_device d, unsigned index, nvml_device *mig)
{
	*mig = (nvml_device)((uintptr_t)d * 1000 + index);
	return in.silent || byte() >= 0x40 ? NVML_NOT_FOUND : NVML_SUCCESS;
}

static nvml_return of_attributes(nvml_device d, struct nvml_attributes *a)
{
	(void)d;
	return answer(a, sizeof *a);
}

static nvml_return gpm_alloc(nvml_gpm_sample *out)
{
	*out = (nvml_gpm_sample)(void *)malloc(1);
	return *out ? NVML_SUCCESS : NVML_UNKNOWN;
}

static nvml_return gpm_free(nvml_gpm_sample sample)
{
	free((void *)sample);
	return NVML_SUCCESS;
}

static nvml_return gpm_get(nvml_device d, nvml_gpm_sample sample)
{
	(void)d, (void)sample;
	return !in.silent && byte() >= 0xf0 ? NVML_UNKNOWN : NVML_SUCCESS;
}

static nvml_return gpm_mig_get(nvml_device d, unsigned instance, nvml_gpm_sample sample)
{
	(void)instance;
	return gpm_get(d, sample);
}

static nvml_return gpm_metrics(struct nvml_gpm_metrics *m)
{
	assert(m->n <= NVML_GPM_METRICS_MAX);
	for (unsigned i = 0; i < m->n && !in.silent && in.p < in.end; i++) {
		unsigned kind = byte();
		if (kind >= 0xe0)
			continue;
		m->metrics[i].result = kind >= 0xc0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
		answer(&m->metrics[i].value, sizeof m->metrics[i].value);
	}
	return NVML_SUCCESS;
}

static const struct nvml_api api = {.count = count,
                                    .handle_by_index = handle,
                                    .uuid = uuid,
                                    .name = of_text,
                                    .minor = of_unsigned,
                                    .pci = of_pci,
                                    .utilization = of_utilization,
                                    .encoder = of_two,
                                    .decoder = of_two,
                                    .memory = of_memory,
                                    .memory_v2 = of_memory_v2,
                                    .power = of_unsigned,
                                    .power_limit = of_unsigned,
                                    .power_limit_default = of_unsigned,
                                    .power_limit_enforced = of_unsigned,
                                    .power_limit_range = of_two,
                                    .energy = of_u64,
                                    .temperature = of_selector,
                                    .threshold = of_selector,
                                    .clock = of_selector,
                                    .max_clock = of_selector,
                                    .pstate = of_unsigned,
                                    .fan_speed = of_unsigned,
                                    .event_reasons = of_u64,
                                    .pcie_replay = of_unsigned,
                                    .link_gen = of_unsigned,
                                    .link_width = of_unsigned,
                                    .max_link_gen = of_unsigned,
                                    .max_link_width = of_unsigned,
                                    .bar1 = of_bar1,
                                    .virtualization = of_int,
                                    .licenses = of_licenses,
                                    .remapped_rows = of_rows,
                                    .ecc_errors = of_ecc,
                                    .field_values = of_fields,
                                    .compute_processes = of_processes,
                                    .graphics_processes = of_processes,
                                    .mig_mode = of_two,
                                    .mig_count_max = of_unsigned,
                                    .mig_handle = of_mig,
                                    .gpu_instance_id = of_unsigned,
                                    .attributes = of_attributes,
                                    .gpm_support = of_gpm_support,
                                    .gpm_sample_alloc = gpm_alloc,
                                    .gpm_sample_free = gpm_free,
                                    .gpm_sample_get = gpm_get,
                                    .gpm_mig_sample_get = gpm_mig_get,
                                    .gpm_metrics_get = gpm_metrics};

static void check_found(const struct nvml_found *f)
{
	assert(f->n > 0 && f->n <= DEVICES_MAX);
	for (size_t i = 0; i < f->n; i++) {
		const struct device *d = &f->devices[i];
		assert(!d->uuid[0] == !f->handles[i].gpu); // listed as lost
		assert(memchr(d->uuid, 0, sizeof d->uuid) && memchr(d->model, 0, sizeof d->model));
		assert(memchr(d->pci_bus_id, 0, sizeof d->pci_bus_id) && memchr(d->node, 0, sizeof d->node));
		assert(memchr(d->mig_uuid, 0, sizeof d->mig_uuid) && memchr(d->mig_id, 0, sizeof d->mig_id));
		assert(memchr(d->mig_profile, 0, sizeof d->mig_profile));
		assert(!d->mig_id[0] == (f->handles[i].instance == NVML_WHOLE_GPU));
		for (size_t k = 0; k < i; k++)
			assert(!d->uuid[0] || !device_is_same(d, &f->devices[k]));
	}
}

static void read_one(const struct nvml_found *f, size_t i, struct nvml_reader *reader, struct nvml_gpm *gpm,
                     int64_t t_ms, struct device_sample *s)
{
	const struct nvml_handle *h = &f->handles[i];
	*s = (struct device_sample){.lost = !h->gpu};
	if (s->lost)
		return;
	nvml_return r = h->instance == NVML_WHOLE_GPU ? nvml_read_device(&api, h->gpu, reader, t_ms, s)
	                                              : nvml_read_memory(&api, h->device, s);
	if (r == NVML_SUCCESS)
		nvml_gpm_read(&api, h->gpu, h->instance, gpm, t_ms, s);
	else
		*s = (struct device_sample){.lost = true};
	for (enum field k = 0; k < FIELD__COUNT; k++)
		assert(!sample_has(s, k) || family_is_plausible(k, sample_get(s, k)));
	assert(!in.silent || sample_count(s) == 0);
}

static void check_pages(const struct nvml_found *f, const struct device_sample *samples, struct device_history *history,
                        struct xid_store *xids, const char *driver)
{
	struct buf page, other;
	buf_init(&page, RENDER_PAGE_BYTES_MAX);
	buf_init(&other, 2 * RENDER_PAGE_BYTES_MAX);
	const struct render_page_options o = {.hostname_label = "Hostname", .hostname = driver, .xids = xids};
	const struct sampler_round round = {
	        .devices = f->devices, .samples = samples, .n = f->n, .driver_version = driver, .history = history};
	struct render_page renderer;
	render_page_init(&renderer, &o);
	render_page_round(&renderer, &round, &page);
	render_page_done(&renderer);
	bool opened = false;
	for (size_t i = 0; i < f->n; i++) {
		if (f->handles[i].instance == NVML_WHOLE_GPU)
			nvml_processes_render(&api, f->handles[i].gpu, &f->devices[i], "/nonexistent", &page, &opened);
	}
	assert(!page.failed);
	page_check(buf_str(&page), page.len);
	struct err e;
	struct page_view *v = page_view_new(buf_str(&page), page.len, &e);
	assert(v && v->n >= f->n);
	page_view_free(v);
	openmetrics_convert(&other, buf_str(&page), page.len);
	assert(!other.failed && other.data[other.len - 1] == '\n');
	buf_done(&page);
	buf_done(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {.kind = ERR_NONE};
	in.p = data;
	in.end = data + size;
	in.silent = byte() & 1;
	struct nvml_found *f = calloc(1, sizeof *f);
	struct nvml_reader *readers = calloc(DEVICES_MAX, sizeof *readers);
	struct nvml_gpm *gpms = calloc(DEVICES_MAX, sizeof *gpms);
	struct device_sample *samples = calloc(DEVICES_MAX, sizeof *samples);
	struct device_history *history = device_history_new(3000, 1000, &e);
	struct xid_store *xids = xid_store_new(&e);
	assert(f && readers && gpms && samples && history && xids);
	if (nvml_find(&api, NULL, f, &e) < 0) {
		assert(e.kind != ERR_NONE && e.msg[0] && !in.silent);
		f->n = 0;
	} else {
		check_found(f);
	}
	for (int64_t round = 0; round < ROUNDS && f->n; round++) {
		for (size_t i = 0; i < f->n; i++)
			read_one(f, i, &readers[i], &gpms[i], round * 1000, &samples[i]);
		device_history_add(history, round * 1000, f->devices, samples, f->n);
		xid_store_count(xids, f->devices[0].uuid, (int32_t)byte(), 1700000000000);
	}
	if (f->n)
		check_pages(f, samples, history, xids, f->devices[0].model);
	for (size_t i = 0; i < f->n; i++)
		nvml_gpm_done(&api, &gpms[i]);
	xid_store_free(xids);
	device_history_free(history);
	free(samples);
	free(gpms);
	free(readers);
	free(f);
	return 0;
}
