// SPDX-License-Identifier: Apache-2.0
#include "cli/term/price_option.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/term/commands.h"
#include "policies/price/price_book.h"

#define REPORT_MAX ((size_t)1024 * 1024)

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
	struct buf report;
	struct err e;
	buf_init(&report, REPORT_MAX);
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
	struct arena a;
	struct buf report;
	struct price_book book;
	struct err e;
	arena_init(&a, PRICE_OPTION_ARENA_MAX);
	buf_init(&report, REPORT_MAX);
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
