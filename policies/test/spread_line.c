// SPDX-License-Identifier: Apache-2.0
// The allocator of variants as a filter.
#include <cjson/cJSON.h>

#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "policies/spread/spread.h"
#include "policies/test/filters.h"
#include "policies/test/line_fields.h"

#define CAPACITY_LEAST  1e-9
#define STARTUP_S_MAX   (7 * 24 * 3600.0)
#define VARIANT_EXAMPLE "{\"name\": \"h100\", \"capacity\": 30, \"price\": 4, \"max\": 8}"
#define LINE_EXAMPLE    "{\"units\": 120, \"variants\": [" VARIANT_EXAMPLE "]}"

struct spread_line {
	struct spread_request request;
	struct spread_variant variants[SPREAD_VARIANTS_MAX];
	const char *names[SPREAD_VARIANTS_MAX]; // pointers into the tree
};

// A variant with what is only checked.
struct variant_line {
	struct spread_variant variant;
	double startup_s;
	int32_t ready;
};

#define VARIANT(member) offsetof(struct variant_line, variant.member)
static const struct line_field variant_fields[] = {
        {.name = "name"},
        {"capacity", LINE_NUMBER, CAPACITY_LEAST, SPREAD_NUMBER_MAX, VARIANT(capacity)},
        {"price", LINE_NUMBER, 0, SPREAD_NUMBER_MAX, VARIANT(price)},
        {"current", LINE_WHOLE, 0, SPREAD_REPLICAS_MAX, VARIANT(current)},
        {"ready", LINE_WHOLE, 0, SPREAD_REPLICAS_MAX, offsetof(struct variant_line, ready)},
        {"min", LINE_WHOLE, 0, SPREAD_REPLICAS_MAX, VARIANT(min)},
        {"max", LINE_WHOLE, 0, SPREAD_REPLICAS_MAX, VARIANT(max)},
        {"fit", LINE_WHOLE, 0, SPREAD_REPLICAS_MAX, VARIANT(fit)},
        {"startupSeconds", LINE_NUMBER, 0, STARTUP_S_MAX, offsetof(struct variant_line, startup_s)},
};
#define REQUEST(member) offsetof(struct spread_line, request.member)
static const struct line_field root_fields[] = {
        {"units", LINE_NUMBER, 0, SPREAD_NUMBER_MAX, REQUEST(units)},
        {.name = "variants"},
        {"switchCost", LINE_NUMBER, 0, SPREAD_NUMBER_MAX, REQUEST(switch_cost)},
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
			char shown[LINE_SHOWN_BYTES];
			text_show(shown, sizeof shown, item->valuestring, len);
			return err_set(e, ERR_INPUT, "name \"%s\" is given twice", shown);
		}
	return 0;
}

static int read_variant(const cJSON *item, struct spread_line *line, struct err *e)
{
	struct variant_line v = {.variant = {.max = SPREAD_REPLICAS_MAX, .fit = SPREAD_REPLICAS_MAX}};
	const cJSON *name = line_field_of(item, "name");
	if (!cJSON_IsObject(item))
		return err_set(e, ERR_INPUT, "must be an object: " VARIANT_EXAMPLE);
	if (line_fields_check(item, "field", LINE_FIELDS(variant_fields), e) < 0 || check_name(name, line, e) < 0)
		return -1;
	if (!line_field_of(item, "capacity"))
		return err_set(e, ERR_INPUT, "capacity is missing: the units that one replica serves");
	if (line_fields_numbers(item, "", LINE_FIELDS(variant_fields), &v, e) < 0)
		return -1;
	if (v.variant.min > v.variant.max)
		return err_set(e, ERR_INPUT, "min is %d, larger than max, which is %d: lower min or raise max",
		               v.variant.min, v.variant.max);
	size_t i = line->request.n_variants++;
	line->variants[i] = v.variant;
	line->names[i] = name->valuestring;
	return 0;
}

static int read_tree(const cJSON *root, struct spread_line *line, struct err *e)
{
	const cJSON *list = line_field_of(root, "variants");
	if (!cJSON_IsObject(root))
		return err_set(e, ERR_INPUT, "a line must be an object: " LINE_EXAMPLE);
	if (line_fields_check(root, "field", LINE_FIELDS(root_fields), e) < 0)
		return -1;
	if (!line_field_of(root, "units"))
		return err_set(e, ERR_INPUT, "units is missing: what all variants together must serve");
	if (line_fields_numbers(root, "", LINE_FIELDS(root_fields), line, e) < 0)
		return -1;
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
	json_write_format(&w, "{variants:[");
	for (size_t i = 0; i < line->request.n_variants; i++)
		json_write_format(&w, "{name:%s,replicas:%d,reason:%s}", line->names[i], shares[i].replicas,
		                  spread_reason_names[shares[i].reason]);
	json_write_format(&w, "],units:%g,cost:%g}", total.units, total.cost);
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
