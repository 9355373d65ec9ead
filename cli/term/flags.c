// SPDX-License-Identifier: Apache-2.0
#include "cli/term/flags.h"

#include <argp.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/term/commands.h"
#include "policies/load/file_set.h"
#include "policies/price/price_book.h"

static const char *const comparisons[] = {">", ">=", "<", "<="};
_Static_assert(sizeof comparisons / sizeof *comparisons == FAIL_COMPARISON__COUNT, "one sign per comparison");

#define NAMES_BYTES 256

static int parse_limit(const char *text, const struct fail_metric *metric, double *ret, struct err *e)
{
	size_t len = strlen(text);
	int64_t ms;
	if (len > 1 && text[len - 1] == '%' && metric->unit == FAIL_PERCENT)
		len--;
	if (num_parse_f64(text, len, ret, NULL) == 0)
		return 0;
	if (metric->unit == FAIL_SECONDS && num_parse_flag_duration_ms(text, len, &ms, NULL) == 0) {
		*ret = (double)ms / 1000;
		return 0;
	}
	return err_set(e, ERR_USAGE, "\"%s\" is not a limit for %s: expected a number%s", text, metric->name,
	               metric->unit == FAIL_PERCENT   ? ", such as 5%"
	               : metric->unit == FAIL_SECONDS ? " of seconds, or a duration such as 30s"
	                                              : "");
}

int fail_on_parse(const char *text, const struct fail_metric *metrics, size_t n, struct fail_on *ret, struct err *e)
{
	size_t len = strcspn(text, " <>=");
	const char *sign = text + len + strspn(text + len, " ");
	size_t sign_len = strspn(sign, "<>=");
	size_t metric = 0, comparison = 0;
	while (metric < n && (strlen(metrics[metric].name) != len || memcmp(metrics[metric].name, text, len) != 0))
		metric++;
	while (comparison < FAIL_COMPARISON__COUNT &&
	       (strlen(comparisons[comparison]) != sign_len || memcmp(comparisons[comparison], sign, sign_len) != 0))
		comparison++;
	if (metric == n) {
		char names[NAMES_BYTES];
		size_t names_len = 0;
		for (size_t i = 0; i < n && names_len < sizeof names; i++)
			names_len += (size_t)snprintf(names + names_len, sizeof names - names_len, "%s%s",
			                              i ? ", " : "", metrics[i].name);
		return err_set(e, ERR_USAGE, "\"%s\": the metrics are %s", text, names);
	}
	*ret = (struct fail_on){text, metric, FAIL_ABOVE, 0};
	if (!sign[0] && metrics[metric].unit == FAIL_COUNT)
		return 0;
	if (comparison == FAIL_COMPARISON__COUNT)
		return err_set(e, ERR_USAGE, "\"%s\": expected METRIC > NUMBER, such as '%s > 5'", text,
		               metrics[metric].name);
	ret->comparison = (enum fail_comparison)comparison;
	const char *limit = sign + sign_len;
	return parse_limit(limit + strspn(limit, " "), &metrics[metric], &ret->limit, e);
}

bool fail_on_is_met(const struct fail_on *f, double value)
{
	const bool is_met[FAIL_COMPARISON__COUNT] = {[FAIL_ABOVE] = value > f->limit,
	                                             [FAIL_AT_LEAST] = value >= f->limit,
	                                             [FAIL_BELOW] = value < f->limit,
	                                             [FAIL_AT_MOST] = value <= f->limit};
	return is_met[f->comparison]; // NaN meets none
}

void fail_on_add(void *options, char *text, struct argp_state *state)
{
	struct fail_options *o = options;
	struct err e;
	if (o->n == FAIL_ON_MAX)
		print_usage(state, "--fail-on: more than %d conditions", FAIL_ON_MAX);
	if (fail_on_parse(text, o->metrics, o->n_metrics, &o->items[o->n++], &e) < 0)
		print_usage(state, "--fail-on: %s", e.msg);
}

int fail_on_check(const struct fail_options *o, const char *who, const double *values)
{
	int code = EXIT_OK;
	for (size_t i = 0; i < o->n; i++) {
		const struct fail_on *f = &o->items[i];
		if (!fail_on_is_met(f, values[f->metric]))
			continue;
		print_error("%s: --fail-on '%s': the value is %.4g\n", who, f->text, values[f->metric]);
		code = EXIT_CHANGES;
	}
	return code;
}
// ---- prices ----

static int choose(struct price_option *o, const struct price_book *book, double *ret_price, struct err *e)
{
	const struct price_model *m = NULL;
	if (!o->model && book->n_models != 1)
		return err_set(e, ERR_INPUT, "%s has prices of %zu models: choose one with --gpu-model", o->prices,
		               book->n_models);
	m = o->model ? price_book_named(book, o->model) : &book->models[0];
	if (!m)
		return err_set(e, ERR_NOT_FOUND, "--gpu-model: no price for \"%s\" in %s: add the model to it",
		               o->model, o->prices ? o->prices : "the shipped prices (gpuscale cost --print-prices)");
	*ret_price = m->per_gpu_hour;
	snprintf(o->currency, sizeof o->currency, "%s", book->currency);
	return 0;
}

int price_option_read(const char *path, struct arena *a, struct price_book *ret_book, const char *command)
{
	struct buf report = BUF(REPORT_MAX);
	struct err e;
	int rc = price_book_read(path, a, ret_book, &report, &e);
	print_notes(&report);
	if (rc < 0)
		print_error("%s: --prices: %s\n", command, e.msg);
	buf_done(&report);
	return rc;
}

double price_option_get(struct price_option *o, double price, struct argp_state *state)
{
	if (!o->prices && !o->model)
		return price;
	if (!isnan(price))
		print_usage(state, "--price cannot be used with --prices or --gpu-model");
	struct arena a = ARENA(PRICE_OPTION_ARENA_MAX);
	struct buf report = BUF(REPORT_MAX);
	struct price_book book;
	struct err e;
	int rc = price_book_read(o->prices, &a, &book, &report, &e);
	if (rc == 0)
		rc = choose(o, &book, &price, &e);
	print_notes(&report);
	buf_done(&report);
	arena_done(&a);
	if (rc < 0) {
		print_error("%s: %s\n", state->name, e.msg);
		exit(EXIT_FAILED);
	}
	return price;
}

// ---- files ----

int path_options_load(const struct path_options *files, const char *command, struct file_set *ret_set)
{
	struct buf report = BUF(REPORT_MAX);
	struct err e;
	int rc = file_set_load(ret_set, files->paths, files->n, NULL, &report, &e);
	if (rc == 0)
		print_notes(&report);
	else
		print_error("%s: %s\n", command, e.msg);
	buf_done(&report);
	return rc;
}
