// SPDX-License-Identifier: Apache-2.0
#include "exporter/dcgm/dcgm_api.h"

#include <dlfcn.h>
#include <string.h>

#include "base/err.h"
#include "base/file_open.h"

static const struct {
	size_t offset;
	const char *name;
} symbols[] = {
        {offsetof(struct dcgm_api, init), "dcgmInit"},
        {offsetof(struct dcgm_api, shutdown), "dcgmShutdown"},
        {offsetof(struct dcgm_api, error_string), "errorString"},
        {offsetof(struct dcgm_api, connect), "dcgmConnect_v2"},
        {offsetof(struct dcgm_api, disconnect), "dcgmDisconnect"},
        {offsetof(struct dcgm_api, all_devices), "dcgmGetAllDevices"},
        {offsetof(struct dcgm_api, field_group_create), "dcgmFieldGroupCreate"},
        {offsetof(struct dcgm_api, field_group_destroy), "dcgmFieldGroupDestroy"},
        {offsetof(struct dcgm_api, watch), "dcgmWatchFields"},
        {offsetof(struct dcgm_api, update), "dcgmUpdateAllFields"},
        {offsetof(struct dcgm_api, latest), "dcgmEntitiesGetLatestValues"},
};

int dcgm_api_load(struct dcgm_api *api, const char *library, struct err *e)
{
	static const char *const names[] = {"libdcgm.so.4", "libdcgm.so.3"};
	*api = (struct dcgm_api){0};
	if (library && strchr(library, '/') && file_check_regular(library, e) < 0)
		return err_wrap(e, "cannot load DCGM");
	for (size_t i = 0; i < sizeof names / sizeof names[0] && !api->library; i++)
		api->library = dlopen(library ? library : names[i], RTLD_LAZY | RTLD_LOCAL);
	if (!api->library)
		return err_set(e, ERR_NOT_FOUND, "cannot load DCGM: %s", dlerror());
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		void *found = dlsym(api->library, symbols[i].name);
		if (!found) {
			dcgm_api_unload(api);
			return err_set(e, ERR_PROTOCOL, "%s has no function %s: is it DCGM?",
			               library ? library : "libdcgm", symbols[i].name);
		}
		// ISO C does not convert void * to a function pointer; POSIX guarantees equal representations.
		memcpy((char *)api + symbols[i].offset, &found, sizeof found);
	}
	return 0;
}

void dcgm_api_unload(struct dcgm_api *api)
{
	if (api->library)
		dlclose(api->library);
	*api = (struct dcgm_api){0};
}

const char *dcgm_api_error(const struct dcgm_api *api, dcgm_return r)
{
	const char *text = api->error_string(r);
	return text ? text : "unknown error";
}
