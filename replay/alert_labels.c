// SPDX-License-Identifier: Apache-2.0
#include "replay/alert_labels.h"

#include <string.h>

static bool is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c);
}

bool alert_labels_next(const char **at, const char *end, struct alert_label *ret)
{
	const char *p = *at;
	*at = NULL;
	while (p < end && is_one_of(*p, ", "))
		p++;
	if (p == end)
		return false;
	if (*p == '}') {
		*at = p + 1;
		return false;
	}
	ret->name = p;
	while (p < end && !is_one_of(*p, "={}, "))
		p++;
	ret->name_len = (size_t)(p - ret->name);
	if (ret->name_len == 0 || end - p < 2 || p[0] != '=' || p[1] != '"')
		return false;
	ret->value = p += 2;
	while (p < end && *p != '"')
		p += *p == '\\' && end - p > 1 ? 2 : 1;
	if (p == end)
		return false;
	ret->value_len = (size_t)(p - ret->value);
	*at = p + 1;
	return true;
}

bool alert_labels_have(const char *list, const struct alert_label *l)
{
	struct alert_label other;
	if (list[0] != '{')
		return false;
	for (const char *at = list + 1, *end = list + strlen(list); alert_labels_next(&at, end, &other);)
		if (other.name_len == l->name_len && memcmp(other.name, l->name, l->name_len) == 0)
			return other.value_len == l->value_len && memcmp(other.value, l->value, l->value_len) == 0;
	return false;
}

bool alert_label_is(const struct alert_label *l, const char *name)
{
	return strlen(name) == l->name_len && memcmp(l->name, name, l->name_len) == 0;
}
