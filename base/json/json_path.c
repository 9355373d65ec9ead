// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_path.h"

#include "base/base.h"

#define NAME_CHARS  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define VALUE_CHARS NAME_CHARS ".*"

struct step {
	char member[JSON_PATH_NAME_MAX + 1], key[JSON_PATH_NAME_MAX + 1],
	        value[JSON_PATH_NAME_MAX + 1]; // key "": no item
};

// Copies the characters of *p that are in `chars` to `out`. Returns false when they are none, or too many.
static bool take(const char **p, const char *chars, char out[JSON_PATH_NAME_MAX + 1])
{
	size_t n = strspn(*p, chars);
	if (n == 0 || n > JSON_PATH_NAME_MAX)
		return false;
	memcpy(out, *p, n);
	out[n] = '\0';
	*p += n;
	return true;
}

// Reads the step at *p, with the dot after it. Returns false when it is invalid.
static bool next_step(const char **p, struct step *s)
{
	*s = (struct step){{0}, {0}, {0}};
	if (!take(p, NAME_CHARS, s->member))
		return false;
	if (**p == '[') {
		++*p;
		if (!take(p, NAME_CHARS, s->key) || *(*p)++ != '=' || !take(p, VALUE_CHARS, s->value) || *(*p)++ != ']')
			return false;
	}
	if (**p == '.')
		return *++*p != '\0';
	return **p == '\0';
}

bool json_path_is_valid(const char *path)
{
	const char *p = path;
	struct step s;
	int steps = 0;
	bool is_valid = strlen(path) <= JSON_PATH_BYTES_MAX;
	do
		is_valid = is_valid && next_step(&p, &s) && !strchr(s.value, '*') && ++steps <= JSON_PATH_STEPS_MAX;
	while (is_valid && *p);
	return is_valid;
}

// Returns the item of a list, and its index; absent when there is none.
static struct json_span find_item(struct json_span list, const struct step *s, size_t *ret_index)
{
	struct json_span_iter it = {.rest = list};
	if (json_span_kind(list) == '[')
		for (*ret_index = 0; json_span_next(&it); ++*ret_index)
			if (json_span_is(json_span_get(it.value, s->key), s->value))
				return it.value;
	return (struct json_span){NULL, 0};
}

int json_path_find(struct json_span object, const char *path, struct json_span *ret_value, struct buf *pointer,
                   struct err *e)
{
	const char *p = path;
	struct json_span at = object;
	struct step s;
	while (*p) {
		const char *from = p;
		size_t index = 0;
		if (!next_step(&p, &s))
			return err_set(e, ERR_INPUT, "%.80s is not a path", path);
		if (json_span_kind(at) != '{')
			return err_set(e, ERR_INPUT, "%.*s is not a map", (int)(from > path ? from - path - 1 : 0),
			               path);
		at = json_span_get(at, s.member);
		if (pointer)
			buf_printf(pointer, "/%s", s.member);
		if (!s.key[0])
			continue;
		at = find_item(at, &s, &index);
		if (!at.text)
			return err_set(e, ERR_INPUT, "%.*s has no item whose %s is %s",
			               (int)(from - path + (int)strlen(s.member)), path, s.key, s.value);
		if (pointer)
			buf_printf(pointer, "/%zu", index);
	}
	*ret_value = at;
	return 0;
}

bool json_path_match(const char *pattern, const char *path, char ret_item[JSON_PATH_NAME_MAX + 1])
{
	const char *star = strchr(pattern, '*');
	size_t before = star ? (size_t)(star - pattern) : strlen(pattern);
	ret_item[0] = '\0';
	if (strncmp(pattern, path, before) != 0)
		return false;
	path += before;
	if (star && !take(&path, NAME_CHARS ".", ret_item))
		return false;
	return strcmp(star ? star + 1 : "", path) == 0;
}
