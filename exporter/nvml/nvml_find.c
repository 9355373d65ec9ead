// SPDX-License-Identifier: Apache-2.0
// Loads NVML, and finds the GPUs and MIG instances that it lists, in the order of the exposition: each GPU, then its
// instances.
#include "exporter/nvml/nvml.h"

#include <limits.h>

#include "base/base.h"
#include "base/process/log.h"
#include "exporter/backend.h"

#define MIG_PER_GPU_MAX 64 // more are not believed
#define LOST_MAX        64 // likewise, GPUs without a handle

int nvml_api_load(struct nvml_api *api, const char *library, struct err *e)
{
	static const struct backend_symbol symbols[] = {
#define REQUIRED                             false
#define OPTIONAL                             true
#define SYMBOL(ret, member, need, args, ...) {offsetof(struct nvml_api, member), need, {__VA_ARGS__}},
	        NVML_FUNCTIONS(SYMBOL)};
	return backend_load_library(api, sizeof *api, "NVML", library, symbols, sizeof symbols / sizeof symbols[0], e);
}

const char *nvml_api_error(const struct nvml_api *api, nvml_return r, char *scratch, size_t size)
{
	const char *text = api->error_string ? api->error_string(r) : NULL;
	if (text)
		return text;
	snprintf(scratch, size, "error %d", r);
	return scratch;
}

int nvml_fail(const struct nvml_api *api, struct err *e, const char *what, nvml_return r)
{
	char scratch[32];
	enum err_kind kind = r == NVML_NO_PERMISSION ? ERR_AUTH : r == NVML_DRIVER_NOT_LOADED ? ERR_NOT_FOUND : ERR_IO;
	return err_set_code(e, kind, r, "%s: %s", what, nvml_api_error(api, r, scratch, sizeof scratch));
}

static void describe(const struct nvml_api *api, nvml_device h, unsigned index, struct device *d)
{
	struct nvml_pci pci = {.bus_id = ""};
	unsigned minor = NVML_VALUE_NOT_AVAILABLE;
	d->index = (int32_t)index;
	if (!api->name || api->name(h, d->model, sizeof d->model) != NVML_SUCCESS)
		d->model[0] = '\0';
	d->model[sizeof d->model - 1] = '\0';
	if (api->minor && api->minor(h, &minor) == NVML_SUCCESS && minor != NVML_VALUE_NOT_AVAILABLE)
		snprintf(d->node, sizeof d->node, "nvidia%u", minor);
	if (api->pci && api->pci(h, &pci) == NVML_SUCCESS)
		snprintf(d->pci_bus_id, sizeof d->pci_bus_id, "%.*s", (int)sizeof pci.bus_id - 1, pci.bus_id);
}

// Writes the profile of the GPU instance: "1g.10gb" from a name that ends in "MIG 1g.10gb" or, for a part of the
// instance's slices, "MIG 1c.3g.40gb". Without such a name it is derived from the slices and the memory.
static void find_profile(const struct nvml_api *api, nvml_device mig, char *out, size_t size)
{
	char name[NVML_NAME_BYTES] = "";
	struct nvml_attributes a = {0};
	const char *at = NULL;
	if (api->name && api->name(mig, name, sizeof name) == NVML_SUCCESS) {
		name[sizeof name - 1] = '\0';
		at = strstr(name, "MIG ");
	}
	if (at) {
		at += strlen("MIG ");
		size_t slices = strspn(at, "0123456789");
		if (slices && strncmp(at + slices, "c.", 2) == 0)
			at += slices + 2;
		snprintf(out, size, "%s", at);
	} else if (api->attributes && api->attributes(mig, &a) == NVML_SUCCESS) {
		snprintf(out, size, "%ug.%llugb", a.gpu_slices, (a.memory_mib + 512) / 1024);
	}
}

static bool has_instance(const struct nvml_found *f, size_t gpu, int instance)
{
	for (size_t i = gpu + 1; i < f->n; i++)
		if (f->handles[i].instance == instance)
			return true;
	return false;
}

static void add_instances(const struct nvml_api *api, struct log *log, struct nvml_found *f, size_t gpu)
{
	unsigned current = 0, pending = 0, max = 0;
	nvml_device h = f->handles[gpu].gpu;
	if (!api->mig_mode || !api->mig_count_max || !api->mig_handle || !api->gpu_instance_id ||
	    api->mig_mode(h, &current, &pending) != NVML_SUCCESS || !current ||
	    api->mig_count_max(h, &max) != NVML_SUCCESS)
		return;
	for (unsigned k = 0; k < max && k < MIG_PER_GPU_MAX; k++) {
		nvml_device mig = NULL;
		unsigned id = NVML_VALUE_NOT_AVAILABLE;
		// Ids are small; an invalid one must not look like a whole GPU.
		if (api->mig_handle(h, k, &mig) != NVML_SUCCESS || api->gpu_instance_id(mig, &id) != NVML_SUCCESS ||
		    id > INT_MAX || has_instance(f, gpu, (int)id))
			continue;
		if (f->n == DEVICES_MAX) {
			LOG(log, LOG_WARNING, "Too many MIG instances, some skipped", LOG_I("ceiling", DEVICES_MAX));
			return;
		}
		struct device *d = &f->devices[f->n];
		*d = f->devices[gpu];
		if (api->uuid(mig, d->mig_uuid, sizeof d->mig_uuid) != NVML_SUCCESS)
			d->mig_uuid[0] = '\0';
		d->mig_uuid[sizeof d->mig_uuid - 1] = '\0';
		snprintf(d->mig_id, sizeof d->mig_id, "%u", id);
		find_profile(api, mig, d->mig_profile, sizeof d->mig_profile);
		f->handles[f->n++] = (struct nvml_handle){.gpu = h, .device = mig, .instance = (int)id};
	}
}

bool nvml_found_has(const struct nvml_found *f, const char *uuid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->handles[i].instance == NVML_WHOLE_GPU && strcmp(f->devices[i].uuid, uuid) == 0)
			return true;
	return false;
}

int nvml_find(const struct nvml_api *api, struct log *log, struct nvml_found *ret_found, struct err *e)
{
	struct nvml_found *f = ret_found;
	unsigned count = 0, lost = 0;
	f->n = 0;
	nvml_return r = api->count(&count);
	if (r != NVML_SUCCESS)
		return nvml_fail(api, e, "cannot count GPUs", r);
	if (count == 0)
		return err_set(e, ERR_NOT_FOUND, "NVML found no GPU on this node");
	nvml_return last = NVML_SUCCESS;
	for (unsigned index = 0; index < count; index++) {
		// The same applies to devices without a handle: the library's count alone must not keep this loop
		// running.
		if (f->n == DEVICES_MAX || index == DEVICES_MAX) {
			LOG(log, LOG_WARNING, "Too many GPUs, some skipped", LOG_I("gpus", count),
			    LOG_I("ceiling", DEVICES_MAX));
			break;
		}
		size_t at = f->n;
		struct device *d = &f->devices[at];
		nvml_device h = NULL;
		*d = (struct device){.index = 0};
		r = api->handle_by_index(index, &h);
		if (r == NVML_SUCCESS)
			r = api->uuid(h, d->uuid, sizeof d->uuid);
		d->uuid[sizeof d->uuid - 1] = '\0';
		// The UUID identifies a GPU across rounds: two devices with one UUID would share their counters.
		if (r == NVML_SUCCESS && (!d->uuid[0] || nvml_found_has(f, d->uuid)))
			r = NVML_UNKNOWN;
		if (nvml_result_is_fatal(r))
			return nvml_fail(api, e, "no GPU answers", r);
		if (r != NVML_SUCCESS) {
			char scratch[32];
			last = r;
			if (r == NVML_NO_PERMISSION || lost == LOST_MAX)
				continue; // NVML also counts the GPUs of other containers
			lost++;
			LOG(log, LOG_WARNING, "GPU has no NVML handle, listed as lost", LOG_I("gpu", index),
			    LOG_S("err", nvml_api_error(api, r, scratch, sizeof scratch)));
			*d = (struct device){.index = (int32_t)index};
			f->handles[f->n++] = (struct nvml_handle){.instance = NVML_WHOLE_GPU};
			continue;
		}
		describe(api, h, index, d);
		f->handles[at] = (struct nvml_handle){.gpu = h, .device = h, .instance = NVML_WHOLE_GPU};
		f->n++;
		add_instances(api, log, f, at);
	}
	return f->n ? 0 : nvml_fail(api, e, "no GPU answers", last);
}

void nvml_found_insert(struct nvml_found *f, const struct nvml_found *from, size_t k)
{
	size_t count = 1, at = 0;
	while (k + count < from->n && device_is_instance(from->devices, k + count))
		count++;
	if (f->n + count > DEVICES_MAX)
		return;
	while (at < f->n && f->devices[at].index < from->devices[k].index)
		at++;
	if (at < f->n && f->devices[at].index == from->devices[k].index && !f->handles[at].gpu) {
		f->n--;
		memmove(&f->devices[at], &f->devices[at + 1], (f->n - at) * sizeof f->devices[0]);
		memmove(&f->handles[at], &f->handles[at + 1], (f->n - at) * sizeof f->handles[0]);
	}
	memmove(&f->devices[at + count], &f->devices[at], (f->n - at) * sizeof f->devices[0]);
	memmove(&f->handles[at + count], &f->handles[at], (f->n - at) * sizeof f->handles[0]);
	memcpy(&f->devices[at], &from->devices[k], count * sizeof f->devices[0]);
	memcpy(&f->handles[at], &from->handles[k], count * sizeof f->handles[0]);
	f->n += count;
}

bool nvml_found_equal(const struct nvml_found *a, const struct nvml_found *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct nvml_handle *x = &a->handles[i], *y = &b->handles[i];
		if (x->device != y->device || x->instance != y->instance ||
		    a->devices[i].index != b->devices[i].index || !device_is_same(&a->devices[i], &b->devices[i]) ||
		    strcmp(a->devices[i].mig_uuid, b->devices[i].mig_uuid) != 0)
			return false;
	}
	return true;
}
