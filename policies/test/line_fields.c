// SPDX-License-Identifier: Apache-2.0
#include "policies/test/line_fields.h"

#include <math.h>

#include "base/base.h"
#include "base/json/json_write.h"

#define LINE_FIELDS_MAX 16

int line_fields_unknown(const char *what, const char *word, const char *const *names, size_t n, struct err *e)
{
	char shown[LINE_SHOWN_BYTES];
	const char *close = num_closest_name(word, names, n);
	text_show(shown, sizeof shown, word, strlen(word));
	return close ? err_set(e, ERR_INPUT, "unknown %s \"%s\", did you mean \"%s\"?", what, shown, close)
	             : err_set(e, ERR_INPUT, "unknown %s \"%s\"", what, shown);
}

const cJSON *line_field_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	return cJSON_IsNull(item) ? NULL : item;
}

int line_fields_check(const cJSON *object, const char *what, const struct line_field *fields, size_t n, struct err *e)
{
	const char *names[LINE_FIELDS_MAX];
	bool seen[LINE_FIELDS_MAX] = {false};
	assert(n <= LINE_FIELDS_MAX);
	for (size_t k = 0; k < n; k++)
		names[k] = fields[k].name;
	for (const cJSON *c = object->child; c; c = c->next) {
		size_t k = 0;
		while (k < n && strcmp(names[k], c->string) != 0)
			k++;
		if (k == n)
			return line_fields_unknown(what, c->string, names, n, e);
		if (seen[k])
			return err_set(e, ERR_INPUT, "%s is given twice", names[k]);
		seen[k] = true;
	}
	return 0;
}

static int read_number(const cJSON *item, const char *prefix, const struct line_field *f, void *ret, struct err *e)
{
	double v = item->valuedouble;
	bool is_whole = f->type == LINE_WHOLE, is_valid = cJSON_IsNumber(item) && v >= f->least && v <= f->most;
	if (is_whole && !(is_valid && v == trunc(v)))
		return err_set(e, ERR_INPUT, "%s%s must be a whole number from %.0f to %.0f", prefix, f->name, f->least,
		               f->most);
	if (!is_valid)
		return err_set(e, ERR_INPUT, "%s%s must be a number from %g to %g", prefix, f->name, f->least, f->most);
	unsigned char *at = (unsigned char *)ret + f->offset;
	if (is_whole)
		memcpy(at, &(int32_t){(int32_t)v}, sizeof(int32_t));
	else
		memcpy(at, &v, sizeof v);
	return 0;
}

int line_fields_numbers(const cJSON *object, const char *prefix, const struct line_field *fields, size_t n, void *ret,
                        struct err *e)
{
	for (int type = LINE_WHOLE; type <= LINE_NUMBER; type++)
		for (size_t i = 0; i < n; i++) {
			const cJSON *item = (int)fields[i].type == type ? line_field_of(object, fields[i].name) : NULL;
			if (item && read_number(item, prefix, &fields[i], ret, e) < 0)
				return -1;
		}
	return 0;
}

static const char *name_of(const void *item)
{
	const char *name;
	memcpy(&name, item, sizeof name);
	return name;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(name_of(a), name_of(b));
}

bool line_fields_sort_names(void *items, size_t n, size_t size, char shown[LINE_SHOWN_BYTES])
{
	const unsigned char *item = items;
	if (n > 1)
		qsort(items, n, size, compare_names);
	for (size_t i = 1; i < n; i++, item += size)
		if (compare_names(item, item + size) == 0) {
			text_show(shown, LINE_SHOWN_BYTES, name_of(item), strlen(name_of(item)));
			return true;
		}
	return false;
}

int line_fields_no_memory(struct err *e)
{
	return err_set(e, ERR_LIMIT, "the line does not fit into the memory allowed");
}

void line_fields_put_error(struct buf *out, const char *msg)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{error:%s}", msg);
	buf_putc(out, '\n');
}
