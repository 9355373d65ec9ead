// SPDX-License-Identifier: Apache-2.0
#include "policies/test/line_fields.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "base/text.h"

#define SHOWN_BYTES 80

int line_fields_unknown(const char *what, const char *word, const char *const *names, size_t n, struct err *e)
{
	char shown[SHOWN_BYTES];
	const char *close = num_closest_name(word, names, n);
	text_show(shown, sizeof shown, word, strlen(word));
	return close ? err_set(e, ERR_INPUT, "unknown %s \"%s\", did you mean \"%s\"?", what, shown, close)
	             : err_set(e, ERR_INPUT, "unknown %s \"%s\"", what, shown);
}

int line_fields_sort(const cJSON *object, const char *what, const char *const *names, size_t n,
                     const cJSON **ret_values, struct err *e)
{
	bool seen[LINE_FIELDS_MAX] = {false};
	assert(n <= LINE_FIELDS_MAX);
	for (const cJSON *c = object->child; c; c = c->next) {
		size_t k = 0;
		while (k < n && strcmp(names[k], c->string) != 0)
			k++;
		if (k == n)
			return line_fields_unknown(what, c->string, names, n, e);
		if (seen[k])
			return err_set(e, ERR_INPUT, "%s is given twice", names[k]);
		seen[k] = true;
		ret_values[k] = cJSON_IsNull(c) ? NULL : c;
	}
	return 0;
}

int line_fields_whole(const cJSON *const *values, const char *const *names, const struct line_whole *list, size_t n,
                      struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct line_whole *w = &list[i];
		const cJSON *item = values[w->key];
		double v = item ? item->valuedouble : 0;
		if (!item)
			continue;
		if (!cJSON_IsNumber(item) || !(v >= w->least && v <= w->most) || v != trunc(v))
			return err_set(e, ERR_INPUT, "%s must be a whole number from %.0f to %.0f", names[w->key],
			               w->least, w->most);
		*w->value = (int32_t)v;
	}
	return 0;
}

int line_fields_number(const cJSON *item, const char *name, double least, double most, double *value, struct err *e)
{
	if (!item)
		return 0;
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most))
		return err_set(e, ERR_INPUT, "%s must be a number from %g to %g", name, least, most);
	*value = item->valuedouble;
	return 0;
}

int line_fields_no_memory(struct err *e)
{
	return err_set(e, ERR_LIMIT, "the line does not fit into the memory allowed");
}

void line_fields_put_error(struct buf *out, const char *msg)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "error", msg);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}
