// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/object_name.h"

#include <string.h>

bool k8s_name_is_valid(const char *text)
{
	size_t len = strlen(text);
	return len > 0 && len <= 253 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == len &&
	       strspn(text, ".") != len;
}
