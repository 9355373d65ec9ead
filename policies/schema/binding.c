// SPDX-License-Identifier: Apache-2.0
#include "policies/schema/binding.h"

#include <stdio.h>
#include <string.h>

bool scale_target_equals(const struct scale_target *a, const struct scale_target *b)
{
	return strcmp(a->api_version, b->api_version) == 0 && strcmp(a->kind, b->kind) == 0 &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->path ? a->path : "", b->path ? b->path : "") == 0;
}

int binding_key_compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

size_t binding_format(char *out, size_t size, const char *name, const char *key)
{
	return (size_t)snprintf(out, size, "%s%s%s", name, key ? "/" : "", key ? key : "");
}
