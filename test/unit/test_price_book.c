// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a PriceBook is decoded as it stands, every mistake in it is reported with its place and its fix,
// the closest name decides, and the shipped prices are those of the recording rules.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/price/price_book.h"

#define RULES "manifests/monitoring/rules/gpu-cost.yaml"
#define HEAD  "apiVersion: gpuscale.dev/v1alpha1\nkind: PriceBook\ncurrency: EUR\nmodels:\n"
#define L4    "- {name: L4, names: [NVIDIA L4], perGPUHour: '0.888', source: s, asOf: 2025-11-16}\n"

struct decoded {
	struct arena a;
	struct schema_errors errors;
	struct price_book book;
	struct buf report;
};

static void decode(struct decoded *d, const char *text)
{
	struct doc_file doc;
	struct err e;
	*d = (struct decoded){0};
	arena_init(&d->a, 1 << 20);
	buf_init(&d->report, 1 << 16);
	schema_errors_init(&d->errors, "p.yaml");
	assert_int_equal(doc_parse_yaml(&d->a, "p.yaml", text, strlen(text), &doc, &e), 0);
	int rc = price_book_decode(doc.roots[0], &d->book, &d->a, &d->errors);
	assert_int_equal(rc, d->errors.n ? -1 : 0);
	schema_errors_print(&d->errors, &d->report);
}

static void done(struct decoded *d)
{
	buf_done(&d->report);
	arena_done(&d->a);
}

static void every_field_arrives(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d, HEAD L4 "assumedPerGPUHour: '2.5'\n"
	                   "discounts: [{name: spot, percent: 70, source: s, asOf: 2025-11-16}]\n"
	                   "electricity: {perKWh: '0.12', source: s, asOf: '2025-11-16'}\n");
	assert_string_equal(buf_str(&d.report), "");
	assert_string_equal(d.book.currency, "EUR");
	assert_int_equal(d.book.n_models, 1);
	assert_string_equal(d.book.models[0].as_of, "2025-11-16");
	assert_true(d.book.has_electricity && d.book.has_assumed);
	assert_int_equal(price_micro(d.book.electricity.per_kwh), 120000);
	bool is_priced;
	assert_int_equal(price_book_micro(&d.book, "NVIDIA L4", NULL, &is_priced), 888000);
	assert_true(is_priced);
	assert_int_equal(price_book_micro(&d.book, "NVIDIA X", NULL, &is_priced), 2500000);
	assert_false(is_priced);
	const struct price_discount *spot = price_book_discount(&d.book, "spot");
	assert_int_equal(price_book_micro(&d.book, "NVIDIA L4", spot, &is_priced), 266400);
	assert_null(price_book_discount(&d.book, "1-year"));
	done(&d);
}

static void model_without_price_counts_as_zero_when_none_is_assumed(void **state)
{
	(void)state;
	struct decoded d;
	bool is_priced = true;
	decode(&d, HEAD L4);
	assert_int_equal(price_book_micro(&d.book, "NVIDIA L40S", NULL, &is_priced), 0);
	assert_false(is_priced);
	done(&d);
}

static void closest_name_decides_in_any_order(void **state)
{
	(void)state;
	static const char *const books[] = {
	        HEAD "- {name: all, names: ['NVIDIA *'], perGPUHour: 1, source: s, asOf: 2025-01-01}\n"
	             "- {name: L40, names: ['NVIDIA L40*'], perGPUHour: 2, source: s, asOf: 2025-01-01}\n"
	             "- {name: L40S, names: [NVIDIA L40S], perGPUHour: 3, source: s, asOf: 2025-01-01}\n",
	        HEAD "- {name: L40S, names: [NVIDIA L40S], perGPUHour: 3, source: s, asOf: 2025-01-01}\n"
	             "- {name: L40, names: ['NVIDIA L40*'], perGPUHour: 2, source: s, asOf: 2025-01-01}\n"
	             "- {name: all, names: ['NVIDIA *'], perGPUHour: 1, source: s, asOf: 2025-01-01}\n",
	};
	for (size_t i = 0; i < 2; i++) {
		struct decoded d;
		bool is_priced;
		decode(&d, books[i]);
		assert_string_equal(buf_str(&d.report), "");
		assert_int_equal(price_book_micro(&d.book, "NVIDIA L40S", NULL, &is_priced), 3000000);
		assert_int_equal(price_book_micro(&d.book, "NVIDIA L40", NULL, &is_priced), 2000000);
		assert_int_equal(price_book_micro(&d.book, "NVIDIA L4", NULL, &is_priced), 1000000);
		assert_null(price_book_find(&d.book, "Tesla T4"));
		done(&d);
	}
}

static void every_mistake_is_reported_with_place_and_fix(void **state)
{
	(void)state;
	static const struct {
		const char *text, *report;
	} rows[] = {
	        {"apiVersion: gpuscale.dev/v1alpha1\nkind: PriceBook\nmodels:\n" L4,
	         "currency: required, but missing: add it"},
	        {"apiVersion: gpuscale.dev/v1alpha1\nkind: PriceBook\ncurrency: usd\nmodels:\n" L4,
	         "p.yaml:3:11: currency: must be three capital letters (ISO 4217), as in USD or EUR"},
	        {HEAD "- {name: a, names: [a], perGPUHour: -1, source: s, asOf: 2025-01-01}\n",
	         "models[0].perGPUHour: must be between 0 and 1000"},
	        {HEAD "- {name: a, names: [a], perGPUHour: 5505, source: s, asOf: 2025-01-01}\n",
	         "models[0].perGPUHour: must be between 0 and 1000"},
	        {HEAD "- {name: a, names: [a], perGPUHour: 1, source: s, asOf: yesterday}\n",
	         "models[0].asOf: must be a date as in 2025-11-16"},
	        {HEAD "- {name: a, names: [a], perGPUHour: 1, asOf: 2025-01-01}\n",
	         "models[0].source: required, but missing: add it"},
	        {HEAD "- {name: a, names: ['a*b'], perGPUHour: 1, source: s, asOf: 2025-01-01}\n",
	         "models[0].names[0]: must be a model name, or the start of model names and one '*' at the end"},
	        {HEAD "- {name: a, names: [], perGPUHour: 1, source: s, asOf: 2025-01-01}\n", "models[0].names: "},
	        {HEAD L4 "- {name: b, names: [x, NVIDIA L4], perGPUHour: 1, source: s, asOf: 2025-01-01}\n",
	         "p.yaml:6:3: models[1]: has a name that is listed before: keep each name at one price"},
	        {HEAD L4 "- {name: L4, names: [x], perGPUHour: 1, source: s, asOf: 2025-01-01}\n",
	         "models[1]: has the name of an earlier model: rename one"},
	        {HEAD L4 "discounts: [{name: d, percent: 101, source: s, asOf: 2025-11-16}]\n",
	         "discounts[0].percent: must be between 0 and 100"},
	        {HEAD L4 "electricity: {perKWh: -1, source: s, asOf: 2025-11-16}\n",
	         "electricity.perKWh: must be between 0 and 100"},
	        {HEAD L4 "assumedPerGPUHour: -0.5\n", "assumedPerGPUHour: must be"},
	        {HEAD L4 "electricty: {}\n", "electricity"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct decoded d;
		decode(&d, rows[i].text);
		if (!strstr(buf_str(&d.report), rows[i].report))
			fail_msg("row %zu: expected \"%s\", found \"%s\"", i, rows[i].report, buf_str(&d.report));
		done(&d);
	}
}

// ---- the shipped prices ----

static double vector_value(const struct doc_node *rule)
{
	const char *expr = doc_get_text(rule, "expr", "");
	double v = -1;
	assert_int_equal(strncmp(expr, "vector(", 7), 0);
	assert_int_equal(num_parse_f64(expr + 7, strcspn(expr + 7, ")"), &v, NULL), 0);
	return v;
}

static void shipped_prices_equal_those_of_the_recording_rules(void **state)
{
	(void)state;
	struct arena a;
	struct price_book book;
	struct buf report;
	struct doc_file doc;
	struct err e;
	arena_init(&a, 1 << 22);
	buf_init(&report, 1 << 16);
	assert_int_equal(price_book_read(NULL, &a, &book, &report, &e), 0);
	assert_string_equal(book.currency, "USD");
	assert_int_equal(doc_read_yaml(&a, RULES, false, &doc, &e), 0);
	const struct doc_node *rules = doc_get(doc_get(doc.roots[0], "groups")->child, "rules");
	size_t n_rules = 0, n_names = 0;
	bool has_default = false;
	for (const struct doc_node *r = rules->child; r; r = r->next) {
		const char *record = doc_get_text(r, "record", "");
		if (strcmp(record, "gpu:price_default:usd_per_hour") == 0) {
			has_default = true;
			assert_int_equal(price_micro(vector_value(r)), price_micro(book.assumed_per_gpu_hour));
		}
		if (strcmp(record, "gpu:price:usd_per_hour") != 0)
			continue;
		const struct doc_node *labels = doc_get(r, "labels");
		const char *name = doc_get_text(labels, "modelName", "");
		const struct price_model *m = price_book_find(&book, name);
		if (!m)
			fail_msg("%s has no price in prices.yaml", name);
		assert_int_equal(price_micro(vector_value(r)), price_micro(m->per_gpu_hour));
		assert_string_equal(doc_get_text(labels, "provider", ""), m->source);
		assert_string_equal(doc_get_text(labels, "as_of", ""), m->as_of);
		n_rules++;
	}
	for (size_t i = 0; i < book.n_models; i++)
		n_names += book.models[i].n_names;
	assert_int_equal(n_rules, n_names); // names are unique in the book, and a rule that records one twice fails
	assert_true(has_default);
	buf_done(&report);
	arena_done(&a);
}

static void shipped_prices_have_the_models_that_users_have(void **state)
{
	(void)state;
	static const char *const names[] = {"NVIDIA A100-SXM4-40GB",
	                                    "NVIDIA A100-SXM4-80GB",
	                                    "NVIDIA H100 80GB HBM3",
	                                    "NVIDIA H100 PCIe",
	                                    "NVIDIA H200",
	                                    "NVIDIA B200",
	                                    "NVIDIA L4",
	                                    "NVIDIA L40S",
	                                    "NVIDIA A10",
	                                    "Tesla T4",
	                                    "Tesla V100-SXM2-16GB"};
	struct arena a;
	struct price_book book;
	struct buf report;
	struct err e;
	arena_init(&a, 1 << 22);
	buf_init(&report, 1 << 16);
	assert_int_equal(price_book_read(NULL, &a, &book, &report, &e), 0);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!price_book_find(&book, names[i]))
			fail_msg("%s has no price", names[i]);
	buf_done(&report);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_field_arrives),
	        cmocka_unit_test(model_without_price_counts_as_zero_when_none_is_assumed),
	        cmocka_unit_test(closest_name_decides_in_any_order),
	        cmocka_unit_test(every_mistake_is_reported_with_place_and_fix),
	        cmocka_unit_test(shipped_prices_equal_those_of_the_recording_rules),
	        cmocka_unit_test(shipped_prices_have_the_models_that_users_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
