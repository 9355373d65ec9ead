// SPDX-License-Identifier: Apache-2.0
#include "test/support/decoded_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/schema/policy_schema.h"

#define ARENA_MAX_BYTES   ((size_t)16 * 1024 * 1024)
#define PRINTED_MAX_BYTES 65536

void decoded_policy_init(struct decoded_policy *d, const char *text)
{
	struct arena tree;
	struct doc_file file;
	struct err e;
	err_clear(&e);
	memset(d, 0, sizeof *d);
	arena_init(&tree, ARENA_MAX_BYTES);
	arena_init(&d->arena, ARENA_MAX_BYTES);
	if (doc_parse_yaml(&tree, "p.yaml", text, strlen(text), &file, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(file.n_roots, 1);
	schema_errors_init(&d->errors, "p.yaml");
	struct policy_document document = {0};
	d->rc = policy_decode(file.roots[0], &document, &d->arena, &d->errors);
	d->policy = document.policy;
	d->target = document.target;
	arena_done(&tree);
	buf_init(&d->printed, PRINTED_MAX_BYTES);
	schema_errors_print(&d->errors, &d->printed);
}

void decoded_policy_done(struct decoded_policy *d)
{
	buf_done(&d->printed);
	arena_done(&d->arena);
}
