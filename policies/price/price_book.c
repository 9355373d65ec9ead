// SPDX-License-Identifier: Apache-2.0
#include "policies/price/price_book.h"

#include <math.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/policy_schema_private.h"

int64_t price_micro(double money)
{
	return (int64_t)floor(money * 1e6 + 0.5);
}

// How closely the pattern matches: 0 = not at all, an equal name more than any pattern.
static size_t closeness(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);
	if (strcmp(pattern, name) == 0)
		return SIZE_MAX;
	if (len == 0 || pattern[len - 1] != '*' || strncmp(pattern, name, len - 1) != 0)
		return 0;
	return len;
}

const struct price_model *price_book_find(const struct price_book *book, const char *model_name)
{
	const struct price_model *found = NULL;
	size_t best = 0;
	for (size_t i = 0; i < book->n_models; i++)
		for (size_t k = 0; k < book->models[i].n_names; k++) {
			size_t c = closeness(book->models[i].names[k], model_name);
			if (c > best) {
				best = c;
				found = &book->models[i];
			}
		}
	return found;
}

const struct price_model *price_book_named(const struct price_book *book, const char *name)
{
	for (size_t i = 0; i < book->n_models; i++)
		if (strcmp(book->models[i].name, name) == 0)
			return &book->models[i];
	return price_book_find(book, name);
}

const struct price_discount *price_book_discount(const struct price_book *book, const char *name)
{
	for (size_t i = 0; i < book->n_discounts; i++)
		if (strcmp(book->discounts[i].name, name) == 0)
			return &book->discounts[i];
	return NULL;
}

int64_t price_book_micro(const struct price_book *book, const char *model_name, const struct price_discount *discount,
                         bool *ret_is_priced)
{
	const struct price_model *m = price_book_find(book, model_name);
	double price = m ? m->per_gpu_hour : book->has_assumed ? book->assumed_per_gpu_hour : 0;
	*ret_is_priced = m != NULL;
	return price_micro(discount ? price * (1 - discount->percent / 100) : price);
}

const char *const price_basis_names[] = {"none", "assumed", "listed"};
_Static_assert(sizeof price_basis_names / sizeof price_basis_names[0] == PRICE_BASIS__COUNT, "one name per basis");

int64_t policy_gpu_micro(const struct price_book *book, const char *model, enum price_basis *ret_basis)
{
	*ret_basis = PRICE_NONE;
	if (!book || !model || !model[0])
		return 0;
	const struct price_model *m = price_book_named(book, model);
	if (m || book->has_assumed)
		*ret_basis = m ? PRICE_LISTED : PRICE_ASSUMED;
	return m ? price_micro(m->per_gpu_hour) : book->has_assumed ? price_micro(book->assumed_per_gpu_hour) : 0;
}

static double price_of(const struct scale_variant *v, const struct price_book *book)
{
	enum price_basis basis;
	if (v->price_set)
		return v->price_per_hour;
	double micro = (double)policy_gpu_micro(book, v->gpus.model, &basis);
	return basis == PRICE_NONE ? NAN : micro / 1e6 * v->gpus.per_replica;
}

void variant_prices(const struct scale_variants *variants, const struct price_book *book, double *ret_prices)
{
	double dearest = 0; // unit
	for (size_t i = 0; i < variants->n; i++) {
		ret_prices[i] = price_of(&variants->items[i], book);
		dearest = fmax(dearest, ret_prices[i] / variants->items[i].capacity); // fmax() ignores NaN
	}
	for (size_t i = 0; i < variants->n; i++)
		if (isnan(ret_prices[i]))
			ret_prices[i] = dearest * variants->items[i].capacity;
}

#define SOURCE_BYTES_MAX 256
#define NAME_BYTES_MAX   128
#define DATE_TEXT        "must be a date as in 2025-11-16"

#define SOURCE_DOC "Where the price was published: provider, and region or kind of machine."
#define AS_OF_DOC  "Day on which it was published there, as in 2025-11-16."

// ---- checks ----

static bool is_date(const char *text)
{
	char stamp[32];
	int64_t ms;
	struct err e;
	if (strlen(text) != 10)
		return false;
	int n = snprintf(stamp, sizeof stamp, "%sT00:00:00Z", text);
	return num_parse_rfc3339_ms(stamp, (size_t)n, &ms, &e) == 0;
}

// A '*' is permitted at the end only, so that the closest of several patterns is the longest.
static bool is_pattern(const char *text)
{
	const char *star = strchr(text, '*');
	return text[0] != '\0' && (!star || star[1] == '\0');
}

static void check_model(const void *value, struct fault_list *l)
{
	const struct price_model *m = value;
	if (!is_date(m->as_of))
		fault_add(l, "asOf", -1, DATE_TEXT);
	for (size_t i = 0; i < m->n_names; i++)
		if (!is_pattern(m->names[i]))
			fault_add(l, "names", (int32_t)i,
			          "must be a model name, or the start of model names and one '*' at the end, as in "
			          "NVIDIA L40*");
}

static void check_discount(const void *value, struct fault_list *l)
{
	const struct price_discount *d = value;
	if (!is_date(d->as_of))
		fault_add(l, "asOf", -1, DATE_TEXT);
}

static void check_electricity(const void *value, struct fault_list *l)
{
	const struct price_book *b = value;
	if (!is_date(b->electricity.as_of))
		fault_add(l, "asOf", -1, DATE_TEXT);
}

struct claim {
	const char *name;
	size_t model;
};

static int by_name(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->model > y->model) - (x->model < y->model);
}

// Sets is_twice[i] if a name of model `i` stands in an earlier model, or twice in its own. By sorting: a file of the
// largest legal size must not delay the controller, which reads the file again when it changes.
static void find_claimed_twice(const struct price_book *b, bool *is_twice)
{
	struct claim claims[PRICE_BOOK_MODELS_MAX * PRICE_BOOK_NAMES_MAX];
	size_t n = 0;
	for (size_t i = 0; i < b->n_models; i++)
		for (size_t k = 0; k < b->models[i].n_names; k++)
			claims[n++] = (struct claim){.name = b->models[i].names[k], .model = i};
	qsort(claims, n, sizeof *claims, by_name);
	for (size_t c = 1; c < n; c++)
		if (strcmp(claims[c - 1].name, claims[c].name) == 0)
			is_twice[claims[c].model] = true;
}

static void check_book(const void *value, struct fault_list *l)
{
	const struct price_book *b = value;
	bool is_code = strlen(b->currency) == 3, is_twice[PRICE_BOOK_MODELS_MAX] = {false};
	find_claimed_twice(b, is_twice);
	for (const char *c = b->currency; *c; c++)
		is_code = is_code && *c >= 'A' && *c <= 'Z';
	if (!is_code)
		fault_add(l, "currency", -1, "must be three capital letters (ISO 4217), as in USD or EUR");
	for (size_t i = 0; i < b->n_models; i++) {
		if (is_twice[i])
			fault_add(l, "models", (int32_t)i,
			          "has a name that is listed before: keep each name at one price");
		for (size_t k = 0; k < i; k++)
			if (strcmp(b->models[k].name, b->models[i].name) == 0) {
				fault_add(l, "models", (int32_t)i, "has the name of an earlier model: rename one");
				break;
			}
	}
	for (size_t i = 0; i < b->n_discounts; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(b->discounts[k].name, b->discounts[i].name) == 0) {
				fault_add(l, "discounts", (int32_t)i,
				          "has the name of an earlier discount: rename one");
				break;
			}
}

// ---- the table ----

// clang-format off
static const struct schema_field model_fields[] = {
	{ROW("name", STRING),         FIELD(struct price_model, name),           REQUIRED, RANGE(1, NAME_BYTES_MAX),       DOC("Short name of the model, as in H100-SXM.")},
	{ROW("names", STRING_LIST),   FIELD_LIST(struct price_model, names, n_names), REQUIRED, ITEMS(1, PRICE_BOOK_NAMES_MAX), DOC("Names under which the exporter and dcgm-exporter report the model, in the label modelName. A name that ends in '*' matches every name that starts like it. An equal name takes precedence over a pattern, and a longer pattern over a shorter one.")},
	{ROW("perGPUHour", QUANTITY), FIELD(struct price_model, per_gpu_hour),   REQUIRED, RANGE(0, PRICE_MAX),            DOC("Price on demand of one GPU for one hour: that of the machine divided by its GPUs.")},
	{ROW("source", STRING),       FIELD(struct price_model, source),         REQUIRED, RANGE(1, SOURCE_BYTES_MAX),     DOC(SOURCE_DOC)},
	{ROW("asOf", STRING),         FIELD(struct price_model, as_of),          REQUIRED, RANGE(1, 32),                   DOC(AS_OF_DOC)},
};
static const struct schema_field discount_fields[] = {
	{ROW("name", STRING),         FIELD(struct price_discount, name),        REQUIRED, RANGE(1, NAME_BYTES_MAX),       DOC("Name for --discount: 1-year, spot.")},
	{ROW("percent", QUANTITY),    FIELD(struct price_discount, percent),     REQUIRED, RANGE(0, 100),                  DOC("Part of the price on demand that is not paid: 37 leaves 63 %.")},
	{ROW("source", STRING),       FIELD(struct price_discount, source),      REQUIRED, RANGE(1, SOURCE_BYTES_MAX),     DOC("Where the discount was published.")},
	{ROW("asOf", STRING),         FIELD(struct price_discount, as_of),       REQUIRED, RANGE(1, 32),                   DOC(AS_OF_DOC)},
};
static const struct schema_field electricity_fields[] = {
	{ROW("perKWh", QUANTITY),     FIELD(struct price_book, electricity.per_kwh), REQUIRED, RANGE(0, PRICE_ELECTRICITY_MAX), DOC("Price of one kWh.")},
	{ROW("gramsCO2PerKWh", QUANTITY), FIELD_SET(struct price_book, electricity.grams_co2_per_kwh, electricity.has_grams_co2), OPTIONAL, RANGE(0, PRICE_GRAMS_CO2_MAX), DOC("Grams of CO2 equivalent that the grid emits for one kWh; reports then show the CO2.")},
	{ROW("source", STRING),       FIELD(struct price_book, electricity.source),  REQUIRED, RANGE(1, SOURCE_BYTES_MAX), DOC("Where the price comes from.")},
	{ROW("asOf", STRING),         FIELD(struct price_book, electricity.as_of),   REQUIRED, RANGE(1, 32),               DOC("Day from which it applies, as in 2025-11-16.")},
};
static const struct schema model = {SCHEMA(PRICE_BOOK_KIND ".models[]", struct price_model, model_fields), VALIDATE(check_model), DOC("The price of one model of GPU.")};
static const struct schema discount = {SCHEMA(PRICE_BOOK_KIND ".discounts[]", struct price_discount, discount_fields), VALIDATE(check_discount), DOC("What a commitment, or spot capacity, takes off every price.")};
static const struct schema electricity = {SCHEMA(PRICE_BOOK_KIND ".electricity", struct price_book, electricity_fields), VALIDATE(check_electricity), DOC("The price of electricity, for GPUs on premises.")};
// clang-format on

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {PRICE_BOOK_KIND, NULL};

// clang-format off
static const struct schema_field book_fields[] = {
	{ROW("apiVersion", ENUM),            FIELD(struct price_book, api_version), REQUIRED, ONE_OF(api_versions), DOC("Version of this format.")},
	{ROW("kind", ENUM),                  FIELD(struct price_book, kind),        REQUIRED, ONE_OF(kinds),        DOC("What this document is.")},
	{ROW("currency", STRING),            FIELD(struct price_book, currency),    REQUIRED, RANGE(1, 8), .pattern = "^[A-Z]{3}$", DOC("Currency of all prices: three capital letters (ISO 4217), as in USD.")},
	{ROW("models", LIST),                FIELD_LIST(struct price_book, models, n_models), REQUIRED, ITEMS(1, PRICE_BOOK_MODELS_MAX), CHILD(model), DOC("The prices, one per model of GPU.")},
	{ROW("assumedPerGPUHour", QUANTITY), FIELD_SET(struct price_book, assumed_per_gpu_hour, has_assumed), OPTIONAL, RANGE(0, PRICE_MAX), DOC("Price of GPUs that no model matches. Reports still name them. Without it, they count as 0.")},
	{ROW("discounts", LIST),             FIELD_LIST(struct price_book, discounts, n_discounts), OPTIONAL, ITEMS(0, PRICE_BOOK_DISCOUNTS_MAX), CHILD(discount), DOC("Discounts on every price, for commitments or spot capacity.")},
	{ROW("electricity", OBJECT),         .offset = 0, .set_offset = offsetof(struct price_book, has_electricity), OPTIONAL, CHILD(electricity), DOC("The price of electricity, for GPUs on premises.")},
};
const struct schema price_schema = {SCHEMA(PRICE_BOOK_KIND, struct price_book, book_fields), VALIDATE(check_book), DOC("What one GPU of each model costs per hour.")};
// clang-format on

int price_book_decode(const struct doc_node *node, struct price_book *book, struct arena *a,
                      struct schema_errors *errors)
{
	return schema_decode(&price_schema, node, book, a, errors, "");
}

// ---- files ----

int price_book_read(const char *path, struct arena *a, struct price_book *ret_book, struct buf *report, struct err *e)
{
	const char *name = path ? path : "prices.yaml";
	struct doc_file doc;
	*ret_book = (struct price_book){0};
	size_t len;
	const char *text = price_shipped_text(&len);
	if ((path ? doc_read_yaml(a, path, false, &doc, e) : doc_parse_yaml(a, name, text, len, &doc, e)) < 0)
		return -1;
	if (doc.n_roots != 1)
		return err_set(e, ERR_INPUT,
		               "%s: expected one document, of kind " PRICE_BOOK_KIND
		               ", found %zu: keep other documents in files of their own",
		               name, doc.n_roots);
	struct schema_errors *errors = malloc(sizeof *errors);
	if (!errors)
		return err_no_memory(e);
	schema_errors_init(errors, name);
	int rc = price_book_decode(doc.roots[0], ret_book, a, errors);
	if (rc < 0) {
		err_set(e, ERR_INPUT, "%s: %zu %s", name, errors->n + errors->dropped,
		        errors->n + errors->dropped == 1 ? "error" : "errors");
		schema_errors_print(errors, report);
	}
	free(errors);
	return rc;
}

// The text of prices.yaml is compiled into the program, relative to the folder that make runs in; scripts/prices.mk has
// the dependency.
__asm__(".section .rodata\n"
        ".global price_shipped_begin, price_shipped_end\n"
        "price_shipped_begin:\n"
        ".incbin \"policies/price/prices.yaml\"\n"
        "price_shipped_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char price_shipped_begin[], price_shipped_end[];

const char *price_shipped_text(size_t *ret_len)
{
	*ret_len = (size_t)((uintptr_t)price_shipped_end - (uintptr_t)price_shipped_begin);
	return price_shipped_begin;
}
