// SPDX-License-Identifier: Apache-2.0
// Arbitrary documents under a schema that has every type. Beyond "does not crash": what is accepted keeps every range
// of the table, what is refused has errors that stand on one line each, and the answer is the same the second time.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "test/support/sample_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static void check_value(const struct sample *s)
{
	require(s->name && strlen(s->name) <= 63);
	require(s->min_replicas >= 0 && s->min_replicas <= s->max_replicas);
	require(s->max_replicas >= 1 && s->max_replicas <= 1000);
	require(s->interval_ms >= 1000 && s->interval_ms <= s->period_ms);
	require(s->period_ms >= 1000 && s->period_ms <= 1800000 && s->period_ms % 1000 == 0);
	require(s->n_tags <= 4 && s->n_zones <= SCHEMA_LIST_ITEMS_MAX && s->n_signals <= 16 && s->n_signals != 13);
	require(s->extra_set == (s->extra != NULL));
	size_t bytes = 0;
	for (size_t i = 0; i < s->n_tags; i++)
		bytes += strlen(s->tags[i]);
	for (size_t i = 0; i < s->n_zones; i++)
		bytes += strlen(s->zones[i]);
	for (size_t i = 0; i < s->n_signals; i++) {
		const struct sample_signal *signal = &s->signals[i];
		bytes += strlen(signal->name);
		require(strlen(signal->name) >= 1 && strlen(signal->name) <= 20);
		require(signal->tolerance_ratio >= 0 && signal->tolerance_ratio <= 1);
		require(signal->value >= signal->tolerance_ratio);
		require(signal->kind >= 0 && signal->kind < 3);
		require(signal->window.duration_ms >= 1000 && signal->window.duration_ms <= 3600000);
		require(signal->window.min_samples >= 1);
	}
	require(bytes < DOC_BYTES_MAX);
}

static void check_errors(const struct schema_errors *errors, const char *printed)
{
	size_t n_lines = 0;
	for (const char *p = printed; *p; p++) {
		n_lines += *p == '\n';
		require(*p == '\n' || ((unsigned char)*p >= 0x20 && *p != 0x7f));
	}
	require(n_lines == errors->n + (errors->dropped > 0));
	for (size_t i = 0; i < errors->n; i++)
		require(errors->items[i].message[0] && errors->items[i].line > 0 && errors->items[i].col > 0);
}

// Decodes into a fresh arena and prints the errors to out. Returns schema_decode's result.
static int decode(const struct doc_node *root, struct buf *out)
{
	struct arena a;
	static struct schema_errors errors;
	struct sample value;
	arena_init(&a, (size_t)16 * 1024 * 1024);
	memset(&value, 0, sizeof value);
	schema_errors_init(&errors, "fuzz");
	int rc = schema_decode(&sample_schema, root, &value, &a, &errors, "");
	schema_errors_print(&errors, out);
	require((rc == 0) == (errors.n == 0));
	if (rc == 0)
		check_value(&value);
	check_errors(&errors, buf_str(out));
	arena_done(&a);
	return rc;
}

// Any scalar of the document is also a path a client might ask `explain` about.
static void explain(const char *path)
{
	struct buf out;
	struct err e;
	buf_init(&out, 65536);
	err_clear(&e);
	require((schema_explain(&sample_schema, path, &out, &e) == 0) == (e.kind == ERR_NONE));
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 65536)
		return 0;
	struct arena a;
	struct doc_file file;
	struct err e;
	arena_init(&a, (size_t)64 * 1024 * 1024);
	err_clear(&e);
	if (doc_parse_yaml(&a, "fuzz", (const char *)data, size, &file, &e) == 0) {
		for (size_t i = 0; i < file.n_roots && i < 8; i++) {
			struct buf first, second;
			buf_init(&first, 1 << 20);
			buf_init(&second, 1 << 20);
			int rc = decode(file.roots[i], &first);
			require(decode(file.roots[i], &second) == rc);
			require(strcmp(buf_str(&first), buf_str(&second)) == 0);
			buf_done(&first);
			buf_done(&second);
			explain(file.roots[i]->text);
		}
	}
	arena_done(&a);
	return 0;
}
