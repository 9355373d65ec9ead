// SPDX-License-Identifier: Apache-2.0
#include "policies/schema/binding.h"

#include <stdio.h>
#include <string.h>

size_t binding_targets(const struct binding *b)
{
	return b->variants ? b->variants->n : 1;
}

const struct scale_target *binding_target(const struct binding *b, size_t index)
{
	return b->variants ? &b->variants->items[index].target : b->target;
}

bool scale_target_equals(const struct scale_target *a, const struct scale_target *b)
{
	return strcmp(a->api_version, b->api_version) == 0 && strcmp(a->kind, b->kind) == 0 &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->path ? a->path : "", b->path ? b->path : "") == 0;
}

bool binding_has_same_targets(const struct binding *a, const struct binding *b)
{
	size_t n = binding_targets(a);
	bool is_same = n == binding_targets(b);
	for (size_t i = 0; is_same && i < n; i++)
		is_same = scale_target_equals(binding_target(a, i), binding_target(b, i));
	return is_same;
}

int binding_key_compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

size_t binding_format(char *out, size_t size, const char *name, const char *key)
{
	return (size_t)snprintf(out, size, "%s%s%s", name, key ? "/" : "", key ? key : "");
}
