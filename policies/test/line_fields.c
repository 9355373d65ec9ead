// SPDX-License-Identifier: Apache-2.0
#include "policies/test/line_fields.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

#define SHOWN_BYTES 80

int line_fields_sort(const cJSON *object, const char *const *names, size_t n, const cJSON **ret_values, struct err *e)
{
	bool seen[LINE_FIELDS_MAX] = {false};
	assert(n <= LINE_FIELDS_MAX);
	for (const cJSON *c = object->child; c; c = c->next) {
		size_t k = 0;
		while (k < n && strcmp(names[k], c->string) != 0)
			k++;
		if (k == n) {
			char shown[SHOWN_BYTES];
			const char *close = num_closest_name(c->string, names, n);
			text_show(shown, sizeof shown, c->string, strlen(c->string));
			return close ? err_set(e, ERR_INPUT, "unknown field \"%s\", did you mean \"%s\"?", shown, close)
			             : err_set(e, ERR_INPUT, "unknown field \"%s\"", shown);
		}
		if (seen[k])
			return err_set(e, ERR_INPUT, "%s is given twice", names[k]);
		seen[k] = true;
		ret_values[k] = cJSON_IsNull(c) ? NULL : c;
	}
	return 0;
}

int line_fields_whole(const cJSON *item, const char *name, double least, double most, int32_t *value, struct err *e)
{
	if (!item)
		return 0;
	double v = item->valuedouble;
	if (!cJSON_IsNumber(item) || !(v >= least && v <= most) || v != trunc(v))
		return err_set(e, ERR_INPUT, "%s must be a whole number from %.0f to %.0f", name, least, most);
	*value = (int32_t)v;
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
