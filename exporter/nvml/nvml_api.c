// SPDX-License-Identifier: Apache-2.0
#include "exporter/nvml/nvml_api.h"

#include <dlfcn.h>

#include "base/base.h"
#include "base/file_open.h"

#define NAMES_MAX 3

struct symbol {
	size_t offset;
	bool required;
	const char *names[NAMES_MAX]; // newest first
};

static const struct symbol symbols[] = {
#define REQUIRED                             true
#define OPTIONAL                             false
#define SYMBOL(ret, member, need, args, ...) {offsetof(struct nvml_api, member), need, {__VA_ARGS__}},
        NVML_FUNCTIONS(SYMBOL)};

int nvml_api_load(struct nvml_api *api, const char *library, struct err *e)
{
	*api = (struct nvml_api){0};
	if (strchr(library, '/') && file_check_regular(library, e) < 0)
		return err_wrap(e, "cannot load NVML");
	api->library = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (!api->library)
		return err_set(e, ERR_NOT_FOUND, "cannot load NVML: %s", dlerror());
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		const struct symbol *s = &symbols[i];
		void *found = NULL;
		for (size_t k = 0; k < NAMES_MAX && s->names[k] && !found; k++)
			found = dlsym(api->library, s->names[k]);
		if (!found && s->required) {
			nvml_api_unload(api);
			return err_set(e, ERR_PROTOCOL, "%s has no function %s: is it NVML?", library, s->names[0]);
		}
		// ISO C does not convert void * to a function pointer; POSIX guarantees equal representations.
		memcpy((char *)api + s->offset, &found, sizeof found);
	}
	return 0;
}

void nvml_api_unload(struct nvml_api *api)
{
	if (api->library)
		dlclose(api->library);
	*api = (struct nvml_api){0};
}

const char *nvml_api_error(const struct nvml_api *api, nvml_return r, char *scratch, size_t size)
{
	const char *text = api->error_string ? api->error_string(r) : NULL;
	if (text)
		return text;
	snprintf(scratch, size, "error %d", r);
	return scratch;
}
