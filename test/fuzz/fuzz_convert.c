// SPDX-License-Identifier: Apache-2.0
// Other autoscalers' objects: whatever is in a file, what convert prints is YAML.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "cli/convert.h"

#define INPUT_MAX (16 * 1024) // texts beyond convert's own ceiling end the command

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct doc_file file, result;
	struct err e;
	arena_init(&a, 64 * 1024 * 1024);
	if (size <= INPUT_MAX && doc_parse_yaml(&a, "fuzz", (const char *)data, size, &file, &e) == 0) {
		for (size_t i = 0; i < file.n_roots && i < 8; i++) {
			struct conversion *c = arena_calloc(&a, 1, sizeof *c);
			struct buf out;
			assert(c);
			c->arena = &a;
			c->kind = convert_get(file.roots[i], "kind", "");
			c->api_version = convert_get(file.roots[i], "apiVersion", "");
			c->name = convert_get(doc_get(file.roots[i], "metadata"), "name", NULL);
			c->namespace_name = convert_get(doc_get(file.roots[i], "metadata"), "namespace", NULL);
			if (!convert_hpa(c, file.roots[i]) && !convert_keda(c, file.roots[i]) &&
			    !convert_wpa(c, file.roots[i]))
				continue;
			buf_init(&out, 16 * 1024 * 1024);
			convert_write(&out, c);
			assert(!out.failed);
			if (doc_parse_yaml(&a, "result", buf_str(&out), out.len, &result, &e) < 0)
				assert(e.kind == ERR_LIMIT || e.kind == ERR_INTERNAL);
			buf_done(&out);
		}
	}
	arena_done(&a);
	return 0;
}
