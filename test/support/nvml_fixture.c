// SPDX-License-Identifier: Apache-2.0
#include "test/support/nvml_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "exporter/backend.h"
#include "exporter/xid.h"

// The libraries lie beside this program's folder in the build tree.
static void find_libraries(struct nvml_fixture *f)
{
	static const char *const names[] = {"fake-nvml/libnvidia-ml.so.1", "fake-nvml-old/libnvidia-ml.so.1",
	                                    "fake-nvml-empty/libnvidia-ml.so.1", "fake-dcgm/libdcgm.so.4"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(n > 0);
	self[n] = '\0';
	for (int up = 0; up < 2; up++)
		*strrchr(self, '/') = '\0';
	for (int i = 0; i < LIB__COUNT; i++)
		assert_true(snprintf(f->library[i], PATH_MAX, "%s/%s", self, names[i]) < PATH_MAX);
}

void nvml_fixture_play(const struct nvml_fixture *f, const char *text)
{
	char temp[40];
	snprintf(temp, sizeof temp, "%s.new", f->script);
	FILE *out = fopen(temp, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(rename(temp, f->script), 0);
}

int nvml_fixture_setup(void **state)
{
	struct nvml_fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	snprintf(f->script, sizeof f->script, "/tmp/gpuscale-nvml-XXXXXX");
	int fd = mkstemp(f->script);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(setenv("FAKE_NVML_SCRIPT", f->script, 1), 0);
	find_libraries(f);
	f->xids = xid_store_new(NULL);
	*state = f;
	return 0;
}

int nvml_fixture_teardown(void **state)
{
	struct nvml_fixture *f = *state;
	unlink(f->script);
	xid_store_free(f->xids);
	free(f);
	return 0;
}

struct backend *nvml_fixture_open(struct nvml_fixture *f, int library)
{
	struct err e;
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[library], .xids = f->xids}, &e);
	assert_non_null(b);
	if (b->ops->open(b, &e) < 0)
		fail_msg("%s", e.msg);
	return b;
}

void nvml_fixture_close(struct backend *b)
{
	b->ops->close(b);
	b->ops->destroy(b);
}

const char *nvml_fixture_show(const struct device_sample *s, enum field f, char *out, size_t size)
{
	if (!sample_has(s, f))
		snprintf(out, size, "-");
	else if (family_of(f)->kind == FIELD_DOUBLE)
		snprintf(out, size, "%g", s->value[f].f);
	else
		snprintf(out, size, "%lld", (long long)s->value[f].i);
	return out;
}
