// SPDX-License-Identifier: Apache-2.0
#include "exporter/backend.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file_open.h"

void backend_unload_library(void *api, size_t size)
{
	void *library;
	memcpy(&library, api, sizeof library);
	if (library)
		dlclose(library);
	memset(api, 0, size);
}

int backend_load_library(void *api, size_t size, const char *maker, const char *library,
                         const struct backend_symbol *symbols, size_t n, struct err *e)
{
	memset(api, 0, size);
	if (strchr(library, '/') && file_check_regular(library, e) < 0)
		return err_wrap(e, "cannot load %s", maker);
	void *loaded = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (!loaded)
		return err_set(e, ERR_NOT_FOUND, "cannot load %s: %s", maker, dlerror());
	memcpy(api, &loaded, sizeof loaded);
	for (size_t i = 0; i < n; i++) {
		void *found = NULL;
		for (size_t k = 0; k < BACKEND_VARIANTS_MAX && symbols[i].names[k] && !found; k++)
			found = dlsym(loaded, symbols[i].names[k]);
		if (!found && !symbols[i].optional) {
			backend_unload_library(api, size);
			return err_set(e, ERR_PROTOCOL, "%s has no function %s: is it %s?", library,
			               symbols[i].names[0], maker);
		}
		// ISO C does not convert void * to a function pointer; POSIX guarantees equal representations.
		memcpy((char *)api + symbols[i].offset, &found, sizeof found);
	}
	return 0;
}

bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES])
{
	char path[SYSFS_PATH_BYTES];
	out[0] = '\0';
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, out, SYSFS_TEXT_BYTES - 1);
	close(fd);
	size_t len = n > 0 ? (size_t)n : 0;
	while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == ' ' || out[len - 1] == '\t'))
		len--;
	out[len] = '\0';
	return len > 0;
}
