// SPDX-License-Identifier: Apache-2.0
#include "exporter/apiserver/pod_labels.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"

static bool is_small_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_capital(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_key(const char *s)
{
	size_t len = strlen(s);
	for (size_t i = 0; i < len; i++)
		if (!is_small_or_digit(s[i]) && !is_capital(s[i]) && !strchr("-_./", s[i]))
			return false;
	return len <= POD_LABEL_KEY_BYTES_MAX;
}

static void write_name(char out[POD_LABEL_NAME_BYTES], const char *key)
{
	size_t n = sizeof "label_" - 1;
	memcpy(out, "label_", n);
	for (size_t i = 0; key[i]; i++) {
		if (i > 0 && is_capital(key[i]) && is_small_or_digit(key[i - 1]))
			out[n++] = '_';
		out[n++] = is_capital(key[i]) ? (char)(key[i] - 'A' + 'a') : is_small_or_digit(key[i]) ? key[i] : '_';
	}
	out[n] = '\0';
}

static int add(struct pod_labels *l, const char *key, struct err *e)
{
	if (!is_key(key))
		return err_set(e, ERR_INPUT, "\"%.100s\" is not a valid key of a label", key);
	if (l->n == POD_LABELS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d labels", POD_LABELS_MAX);
	write_name(l->names[l->n], key);
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->names[i], l->names[l->n]) == 0)
			return err_set(e, ERR_INPUT, "\"%.100s\" and \"%.100s\" are both %.100s", l->keys[i], key,
			               l->names[i]);
	l->keys[l->n++] = key;
	return 0;
}

int pod_labels_parse(struct pod_labels *l, char *list, struct err *e)
{
	l->n = 0;
	while (list) {
		char *key = list, *comma = strchr(list, ',');
		list = comma ? comma + 1 : NULL;
		if (comma)
			*comma = '\0';
		if (key[0] && add(l, key, e) < 0)
			return -1;
	}
	return 0;
}
