// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_read.h"

#include <math.h>

#include "base/base.h"
#include "base/json/json_scan.h"

// cJSON accepts text that is not JSON (leading zeros, control characters and invalid UTF-8 in strings, \u0000 as the
// end of a string) and recurses as deep as the text nests, so the text is checked before cJSON parses it.
static int check(const char *text, size_t len, struct err *e)
{
	struct json_scan s;
	json_scan_init(&s, 0, NULL, NULL);
	int rc = json_scan_feed(&s, text, len, e) < 0 ? -1 : json_scan_finish(&s, e);
	json_scan_done(&s);
	return rc;
}

cJSON *json_read(const char *text, size_t len, struct err *e)
{
	if (len > JSON_BYTES_MAX) {
		err_set(e, ERR_LIMIT, "JSON of %zu bytes is larger than the ceiling of %d bytes", len, JSON_BYTES_MAX);
		return NULL;
	}
	if (check(text, len, e) < 0)
		return NULL;
	cJSON *tree = cJSON_ParseWithLengthOpts(text, len, NULL, 0);
	if (!tree)
		err_set(e, ERR_INTERNAL, "JSON of %zu bytes: out of memory", len);
	return tree;
}

const cJSON *json_get(const cJSON *o, const char *key)
{
	return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

bool json_may_be(const cJSON *item, cJSON_bool (*is_shape)(const cJSON *item))
{
	return !item || cJSON_IsNull(item) || is_shape(item);
}

const char *json_get_str(const cJSON *o, const char *key, const char *fallback)
{
	const cJSON *item = json_get(o, key);
	return cJSON_IsString(item) ? item->valuestring : fallback;
}

int json_get_i64(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t *ret_value, struct err *e)
{
	const double exact_max = 9007199254740992.0; // 2^53: beyond it a double skips whole numbers
	const cJSON *item = json_get(o, key);
	if (!item || cJSON_IsNull(item))
		return 0;
	if (!cJSON_IsNumber(item))
		return err_set(e, ERR_PROTOCOL, "%s is not a number: expected a whole number from %lld to %lld", key,
		               (long long)min, (long long)max);
	double v = item->valuedouble;
	if (!(fabs(v) < exact_max) || v != trunc(v) || (int64_t)v < min || (int64_t)v > max)
		return err_set(e, ERR_PROTOCOL, "%s is %g: expected a whole number from %lld to %lld", key, v,
		               (long long)min, (long long)max);
	*ret_value = (int64_t)v;
	return 1;
}

int json_get_text(const cJSON *o, const char *key, char *out, size_t size, struct err *e)
{
	const cJSON *item = json_get(o, key);
	out[0] = '\0';
	if (!item || cJSON_IsNull(item))
		return 0;
	if (!cJSON_IsString(item))
		return err_set(e, ERR_PROTOCOL, "%s is not a string", key);
	size_t len = strlen(item->valuestring);
	if (len >= size)
		return err_set(e, ERR_LIMIT, "%s has %zu bytes, the ceiling is %zu", key, len, size - 1);
	memcpy(out, item->valuestring, len + 1);
	return 0;
}
