// SPDX-License-Identifier: Apache-2.0
// Goal of this test: whatever the rows of a cost report stand for, they add up to allocated GPU-seconds times price, to
// the cent; and no GPU is dropped because it has no price.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "insight/gpu_cost.h"
#include "insight/gpu_use_query.h"
#include "policies/engine/policy.h"
#include "policies/load/policy_ref.h"
#include "policies/price/price_book.h"

#define ROUNDS      3000
#define USES_MAX    40
#define MODELS      6 // the last has no price
#define GROUPINGS   4
#define EXACT_CENTS ((gpu_money)36000000000)

static const char *const names[MODELS] = {"m0", "m1", "m2", "m3", "m4", "m5"};
static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *seed >> 16;
}

static int64_t sum_cents(const struct gpu_cost *c, enum gpu_amount a)
{
	int64_t sum = 0;
	for (size_t i = 0; i < c->n; i++)
		sum += c->rows[i].cents[a];
	return sum;
}

// Each price is one that a day's list might have, 0 and 1000 among them.
static void fill_book(struct price_book *b, struct price_model *models, const char **one_name, uint64_t *seed)
{
	*b = (struct price_book){.models = models, .n_models = MODELS - 1, .has_electricity = true};
	b->electricity.per_kwh = (double)(next(seed) % 1000) / 1000;
	for (size_t i = 0; i < MODELS - 1; i++) {
		one_name[i] = names[i];
		models[i] = (struct price_model){.names = &one_name[i], .n_names = 1};
		models[i].per_gpu_hour = i == 0 ? 0 : i == 1 ? PRICE_MAX : (double)(next(seed) % 20000) / 1000;
	}
	b->has_assumed = next(seed) % 2;
	b->assumed_per_gpu_hour = 3.673;
}

static void rows_add_up_to_gpu_seconds_times_price_under_any_grouping(void **state)
{
	(void)state;
	uint64_t seed = 7;
	for (int round = 0; round < ROUNDS; round++) {
		struct price_book book;
		struct price_model models[MODELS];
		const char *one_name[MODELS];
		struct price_discount discount = {.percent = (double)(next(&seed) % 101)};
		const struct price_discount *d = next(&seed) % 2 ? &discount : NULL;
		struct gpu_use uses[USES_MAX] = {0};
		size_t n = next(&seed) % (USES_MAX + 1);
		gpu_money exact = 0, idle = 0;
		int64_t allocated = 0;
		fill_book(&book, models, one_name, &seed);
		for (size_t i = 0; i < n; i++) {
			struct gpu_use *u = &uses[i];
			bool is_priced;
			u->model = names[next(&seed) % MODELS];
			u->milli[GPU_ALLOCATED] = (int64_t)(next(&seed) % (round % 2 ? 100000 : 1000000000000));
			u->milli[GPU_IDLE] = (int64_t)(next(&seed) % (uint64_t)(u->milli[GPU_ALLOCATED] + 1));
			int64_t micro = price_book_micro(&book, u->model, d, &is_priced);
			exact += (gpu_money)u->milli[GPU_ALLOCATED] * micro;
			idle += (gpu_money)u->milli[GPU_IDLE] * micro;
			allocated += u->milli[GPU_ALLOCATED];
		}
		for (size_t grouping = 1; grouping <= GROUPINGS; grouping++) {
			struct gpu_cost c;
			gpu_cost_init(&c, &book, d);
			for (size_t i = 0; i < n; i++)
				gpu_cost_add(&c, keys[grouping == 1 ? 0 : next(&seed) % (2 * grouping)], &uses[i]);
			gpu_cost_close(&c);
			assert_false(c.failed);
			assert_true(sum_cents(&c, COST_TOTAL) == (int64_t)((exact + EXACT_CENTS / 2) / EXACT_CENTS));
			assert_true(sum_cents(&c, COST_IDLE) == (int64_t)((idle + EXACT_CENTS / 2) / EXACT_CENTS));
			assert_int_equal(c.total.cents[COST_TOTAL], sum_cents(&c, COST_TOTAL));
			assert_int_equal(c.total.milli[GPU_ALLOCATED], allocated);
			for (size_t i = 0; i < c.n; i++) {
				gpu_money off = c.rows[i].exact[COST_TOTAL] - c.rows[i].cents[COST_TOTAL] * EXACT_CENTS;
				assert_true(off > -EXACT_CENTS && off < EXACT_CENTS);
				assert_true(i == 0 || strcmp(c.rows[i - 1].key, c.rows[i].key) != 0);
			}
			gpu_cost_done(&c);
		}
	}
}

static void model_without_price_is_counted_and_named(void **state)
{
	(void)state;
	static const struct price_book book = {0};
	const struct gpu_use a = {
	        .model = "NVIDIA X", .namespace_name = "ns", .part = "p", .milli = {[GPU_ALLOCATED] = 3600000}};
	const struct gpu_use b = {
	        .model = "NVIDIA Y", .namespace_name = "ns", .part = "p", .milli = {[GPU_ALLOCATED] = 1000}};
	struct gpu_cost c;
	gpu_cost_init(&c, &book, NULL);
	gpu_cost_add(&c, "ns", &a);
	gpu_cost_add(&c, "ns", &b);
	gpu_cost_add(&c, "ns", &a);
	gpu_cost_close(&c);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.total.milli[GPU_ALLOCATED], 7201000);
	assert_int_equal(c.total.cents[COST_TOTAL], 0);
	assert_int_equal(c.n_unpriced, 2);
	assert_string_equal(c.unpriced[0].model, "NVIDIA X");
	assert_int_equal(c.unpriced[0].milli, 7200000);
	gpu_cost_done(&c);
}

// A p4d.24xlarge: 8 GPUs of 32.77 / 8 an hour for a year cost 287,065 (reference: the cost formula of the chapter on
// observability, with the price of the machine).
static void year_of_eight_gpus_costs_what_the_machine_costs(void **state)
{
	(void)state;
	const char *one = "NVIDIA A100-SXM4-40GB";
	struct price_model m = {.names = &one, .n_names = 1, .per_gpu_hour = 32.77 / 8};
	struct price_book book = {.models = &m, .n_models = 1, .has_electricity = true, .electricity.per_kwh = 0.12};
	struct gpu_use u = {.model = one,
	                    .namespace_name = "ns",
	                    .part = "p",
	                    .milli = {[GPU_ALLOCATED] = INT64_C(8) * 8760 * 3600000}};
	u.milli[GPU_ENERGY] = INT64_C(400) * 3600 * 1000; // 400 W for an hour: 0.048 of electricity
	struct gpu_cost c;
	gpu_cost_init(&c, &book, NULL);
	gpu_cost_add(&c, "ns", &u);
	gpu_cost_close(&c);
	assert_int_equal(c.total.cents[COST_TOTAL], 28706520);
	assert_int_equal(c.total.cents[COST_ELECTRICITY], 5);
	gpu_cost_done(&c);
}

static void use_is_gathered_per_pod_and_model(void **state)
{
	(void)state;
	struct gpu_use_set s;
	struct err e;
	gpu_use_init(&s);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < 1000; i++) {
			char pod[16];
			snprintf(pod, sizeof pod, "p%d", i);
			assert_int_equal(gpu_use_add(&s, "m", "ns", pod, GPU_ALLOCATED, 60, &e), 0);
			assert_int_equal(gpu_use_add(&s, "m", "ns", pod, GPU_IDLE, 60.0004, &e), 0);
			assert_int_equal(gpu_use_add(&s, "m", "ns", pod, GPU_MEASURED, 60.001, &e), 0);
		}
	assert_int_equal(HASH_COUNT(s.rows), 1000);
	gpu_use_close(&s);
	for (const struct gpu_use *u = s.rows; u; u = u->hh.next) {
		assert_int_equal(u->milli[GPU_ALLOCATED], 120000);
		assert_int_equal(u->milli[GPU_MEASURED], 120000);
		assert_int_equal(u->milli[GPU_IDLE], 120000);
	}
	assert_int_equal(gpu_use_add(&s, "m", "ns", "p", GPU_IDLE, 0.0 / 0.0, &e), -1);
	assert_int_equal(e.kind, ERR_PROTOCOL);
	assert_int_equal(gpu_use_add(&s, "m", "ns", "p", GPU_IDLE, -1, &e), -1);
	assert_int_equal(HASH_COUNT(s.rows), 1000);
	gpu_use_done(&s);
}

static void pod_belongs_to_the_policy_with_the_longest_target(void **state)
{
	(void)state;
#define POLICY(p, k, n)                                                                                                \
	p = {.policy = {.namespace_name = "ns"},                                                                       \
	     .target = {.kind = (k), .name = (n)},                                                                     \
	     .binding = {&p.policy, &p.target, NULL},                                                                  \
	     .bindings = &p.binding,                                                                                   \
	     .n_bindings = 1 }
	static const struct policy_ref POLICY(web, "Deployment", "web"), POLICY(web_a, "Deployment", "web-a"),
	        POLICY(db, "StatefulSet", "db"), POLICY(group, "LeaderWorkerSet", "llm");
	static const struct scale_target two[] = {{"", "LeaderWorkerSet", "llm-b", NULL},
	                                          {"", "Deployment", "router", NULL}};
	struct policy_ref group_b = {.policy = {.namespace_name = "ns"}};
	const struct binding bindings[] = {
	        {.policy = &group_b.policy, .target = &two[0], .key = "LeaderWorkerSet/llm-b"},
	        {.policy = &group_b.policy, .target = &two[1], .key = "Deployment/router"}};
	group_b.bindings = bindings;
	group_b.n_bindings = 2;
	const struct policy *const policies[] = {&web.policy, &web_a.policy, &db.policy, &group.policy,
	                                         &group_b.policy};
	const struct {
		const char *namespace_name, *pod;
		const struct policy *policy;
	} rows[] = {
	        {"ns", "web-6d4cf56db6-abcde", &web.policy},
	        {"ns", "web-a-6d4cf56db6-abcde", &web_a.policy},
	        {"other", "web-6d4cf56db6-abcde", NULL},
	        {"ns", "web-6d4cf56db6", NULL},
	        {"ns", "web-6d4cf56db6-abcdef", NULL},
	        {"ns", "web", NULL},
	        {"ns", "db-12", &db.policy},
	        {"ns", "db-12-abcde", NULL},
	        {"ns", "db-", NULL},
	        {"ns", "llm-0-1", &group.policy},
	        {"ns", "llm-b-0-1", &group_b.policy},
	        {"ns", "router-6d4cf56db6-abcde", &group_b.policy},
	        {"ns", "llm-", NULL},
	        {"ns", "", NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_ptr_equal(pod_policy_find(policies, 5, rows[i].namespace_name, rows[i].pod), rows[i].policy);
}

static void label_has_the_name_that_kube_state_metrics_gives_it(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 1024);
	gpu_label_name(&out, "app.kubernetes.io/cost-center");
	assert_string_equal(buf_str(&out), "label_app_kubernetes_io_cost_center");
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rows_add_up_to_gpu_seconds_times_price_under_any_grouping),
	        cmocka_unit_test(model_without_price_is_counted_and_named),
	        cmocka_unit_test(year_of_eight_gpus_costs_what_the_machine_costs),
	        cmocka_unit_test(use_is_gathered_per_pod_and_model),
	        cmocka_unit_test(pod_belongs_to_the_policy_with_the_longest_target),
	        cmocka_unit_test(label_has_the_name_that_kube_state_metrics_gives_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
