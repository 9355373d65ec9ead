// SPDX-License-Identifier: Apache-2.0
#include "policies/test/spread_line.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "base/text.h"
#include "policies/spread/spread.h"
#include "policies/test/line_fields.h"

#define CAPACITY_LEAST  1e-9
#define STARTUP_S_MAX   (7 * 24 * 3600.0)
#define SHOWN_BYTES     80
#define VARIANT_EXAMPLE "{\"name\": \"h100\", \"capacity\": 30, \"price\": 4, \"max\": 8}"
#define LINE_EXAMPLE    "{\"units\": 120, \"variants\": [" VARIANT_EXAMPLE "]}"

enum variant_key {
	KEY_NAME,
	KEY_CAPACITY,
	KEY_PRICE,
	KEY_CURRENT,
	KEY_READY,
	KEY_MIN,
	KEY_MAX,
	KEY_FIT,
	KEY_STARTUP,
	KEY__COUNT
};
static const char *const key_names[] = {"name", "capacity", "price", "current",       "ready",
                                        "min",  "max",      "fit",   "startupSeconds"};
_Static_assert(sizeof key_names / sizeof key_names[0] == KEY__COUNT, "one name per key");

enum root_key { ROOT_UNITS, ROOT_VARIANTS, ROOT_SWITCH_COST, ROOT__COUNT };
static const char *const root_names[] = {"units", "variants", "switchCost"};
_Static_assert(sizeof root_names / sizeof root_names[0] == ROOT__COUNT, "one name per key");

struct spread_line {
	struct spread_request request;
	struct spread_variant variants[SPREAD_VARIANTS_MAX];
	const char *names[SPREAD_VARIANTS_MAX]; // pointers into the tree
};

static int check_name(const cJSON *item, const struct spread_line *line, struct err *e)
{
	if (!item || !cJSON_IsString(item) || !item->valuestring[0])
		return err_set(e, ERR_INPUT, "name must be a string: the name of the variant");
	size_t len = strlen(item->valuestring);
	if (len > SPREAD_NAME_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "name has %zu bytes, the limit is %d", len, SPREAD_NAME_BYTES_MAX);
	for (size_t i = 0; i < line->request.n_variants; i++)
		if (strcmp(line->names[i], item->valuestring) == 0) {
			char shown[SHOWN_BYTES];
			text_show(shown, sizeof shown, item->valuestring, len);
			return err_set(e, ERR_INPUT, "name \"%s\" is given twice", shown);
		}
	return 0;
}

static int read_variant(const cJSON *item, struct spread_line *line, struct err *e)
{
	const cJSON *v[KEY__COUNT] = {NULL};
	struct spread_variant variant = {.max = SPREAD_REPLICAS_MAX, .fit = SPREAD_REPLICAS_MAX};
	double startup_s = 0;
	int32_t ready = 0;
	if (!cJSON_IsObject(item))
		return err_set(e, ERR_INPUT, "must be an object: " VARIANT_EXAMPLE);
	if (line_fields_sort(item, "field", key_names, KEY__COUNT, v, e) < 0 || check_name(v[KEY_NAME], line, e) < 0)
		return -1;
	if (!v[KEY_CAPACITY])
		return err_set(e, ERR_INPUT, "capacity is missing: the units that one replica serves");
	const struct line_whole whole[] = {
	        {KEY_CURRENT, 0, SPREAD_REPLICAS_MAX, &variant.current},
	        {KEY_READY, 0, SPREAD_REPLICAS_MAX, &ready},
	        {KEY_MIN, 0, SPREAD_REPLICAS_MAX, &variant.min},
	        {KEY_MAX, 0, SPREAD_REPLICAS_MAX, &variant.max},
	        {KEY_FIT, 0, SPREAD_REPLICAS_MAX, &variant.fit},
	};
	if (line_fields_whole(v, key_names, whole, sizeof whole / sizeof whole[0], e) < 0 ||
	    line_fields_number(v[KEY_CAPACITY], "capacity", CAPACITY_LEAST, SPREAD_NUMBER_MAX, &variant.capacity, e) <
	            0 ||
	    line_fields_number(v[KEY_PRICE], "price", 0, SPREAD_NUMBER_MAX, &variant.price, e) < 0 ||
	    line_fields_number(v[KEY_STARTUP], "startupSeconds", 0, STARTUP_S_MAX, &startup_s, e) < 0)
		return -1;
	if (variant.min > variant.max)
		return err_set(e, ERR_INPUT, "min is %d, larger than max, which is %d: lower min or raise max",
		               variant.min, variant.max);
	size_t i = line->request.n_variants++;
	line->variants[i] = variant;
	line->names[i] = v[KEY_NAME]->valuestring;
	return 0;
}

static int read_tree(const cJSON *root, struct spread_line *line, struct err *e)
{
	const cJSON *v[ROOT__COUNT] = {NULL};
	if (!cJSON_IsObject(root))
		return err_set(e, ERR_INPUT, "a line must be an object: " LINE_EXAMPLE);
	if (line_fields_sort(root, "field", root_names, ROOT__COUNT, v, e) < 0)
		return -1;
	if (!v[ROOT_UNITS])
		return err_set(e, ERR_INPUT, "units is missing: what all variants together must serve");
	if (line_fields_number(v[ROOT_UNITS], "units", 0, SPREAD_NUMBER_MAX, &line->request.units, e) < 0 ||
	    line_fields_number(v[ROOT_SWITCH_COST], "switchCost", 0, SPREAD_NUMBER_MAX, &line->request.switch_cost, e) <
	            0)
		return -1;
	const cJSON *list = v[ROOT_VARIANTS];
	if (!list || !cJSON_IsArray(list))
		return err_set(e, ERR_INPUT, "variants must be a list: " LINE_EXAMPLE);
	int n = cJSON_GetArraySize(list);
	if (n > SPREAD_VARIANTS_MAX)
		return err_set(e, ERR_LIMIT, "variants has %d items, the limit is %d", n, SPREAD_VARIANTS_MAX);
	size_t i = 0;
	for (const cJSON *c = list->child; c; c = c->next, i++)
		if (read_variant(c, line, e) < 0)
			return err_wrap(e, "variants[%zu]", i);
	line->request.variants = line->variants;
	return 0;
}

static void put_shares(const struct spread_line *line, struct buf *out)
{
	struct spread_share shares[SPREAD_VARIANTS_MAX];
	struct spread_total total;
	struct json_writer w;
	spread(&line->request, shares, &total);
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_member_array(&w, "variants");
	for (size_t i = 0; i < line->request.n_variants; i++) {
		json_write_object_begin(&w);
		json_write_member_str(&w, "name", line->names[i]);
		json_write_member_i64(&w, "replicas", shares[i].replicas);
		json_write_member_str(&w, "reason", spread_reason_name(shares[i].reason));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_member_f64(&w, "units", total.units);
	json_write_member_f64(&w, "cost", total.cost);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

int spread_line_answer(const char *line, size_t len, unsigned long long line_number, struct buf *out, struct err *e)
{
	struct spread_line parsed = {0};
	cJSON *root = NULL;
	int rc = -1;
	if (len > SPREAD_LINE_BYTES_MAX)
		err_set(e, ERR_LIMIT, "the line has %zu bytes, the limit is %d", len, SPREAD_LINE_BYTES_MAX);
	else
		root = json_read(line, len, e);
	if (root)
		rc = read_tree(root, &parsed, e);
	if (rc == 0) {
		put_shares(&parsed, out);
	} else {
		struct err of_line = *e;
		err_wrap(&of_line, "line %llu", line_number);
		line_fields_put_error(out, of_line.msg);
	}
	cJSON_Delete(root);
	return rc;
}
