// SPDX-License-Identifier: Apache-2.0
#include "cli/run/plan_pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/run/plan_objects.h"
#include "controller/pool/pool_seat.h"
#include "controller/pool/pools.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/load/pool_set.h"

#define REPORT_MAX (1024 * 1024)

static int decide_item(struct plan_pool_item *it, struct pool_seat *seat, struct decision *d, int64_t now_ms,
                       struct buf *text)
{
	const struct pool_tick tick = {.policy = it->policy,
	                               .existing_replicas = it->status_replicas,
	                               .unacked = -1,
	                               .dry_run = true,
	                               .now_ms = now_ms,
	                               .now_mono_ms = now_ms};
	pool_seat_decide(seat, &tick, d, text);
	if (text->len > 0)
		it->pool = strdup(buf_str(text));
	return text->len > 0 && !it->pool ? -1 : 0;
}

static int share(struct pools *pools, struct plan_pool_item *items, struct pool_seat **seats, size_t n, int64_t now_ms,
                 struct err *e)
{
	for (size_t i = 0; i < n; i++)
		seats[i] = pool_seat_new(pools, items[i].policy->namespace_name, items[i].policy->name, items[i].key,
		                         items[i].policy->label_lines, NULL);
	// A pool is shared once each member has reported what it wants and has. So each reports first, and is decided
	// then.
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < n; i++) {
			struct decision copy, *d = round == 0 ? &copy : items[i].decision;
			struct buf text;
			if (!items[i].decision)
				continue;
			copy = *items[i].decision;
			buf_init(&text, POOL_TEXT_BYTES_MAX);
			free(items[i].pool);
			items[i].pool = NULL;
			int rc = decide_item(&items[i], seats[i], d, now_ms, &text);
			buf_done(&text);
			if (rc < 0)
				return err_set(e, ERR_INTERNAL, "out of memory");
		}
	return 0;
}

static int put_objects(struct pools *pools, struct plan_objects *objects, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < objects->n_pools; i++) {
		rc = pools_put_object(pools, objects->pools[i], e);
		objects->pools[i] = NULL;
	}
	return rc;
}

static int read_pools(struct pools *pools, const char *const *paths, size_t n_paths, struct err *e)
{
	struct pool_set set;
	struct buf report;
	buf_init(&report, REPORT_MAX);
	int rc = pool_set_load(&set, paths, n_paths, false, &report, e);
	if (rc == 0 && set.n_errors + pool_set_check(&set, NULL, 0, &report) > 0)
		rc = err_set(e, ERR_INPUT, "a pool is invalid; the decisions are those without pools");
	print_notes(&report);
	if (rc == 0)
		rc = pools_put_files(pools, &set, e);
	else
		pool_set_done(&set);
	buf_done(&report);
	return rc;
}

int plan_pools_share(struct plan_objects *objects, const char *const *paths, size_t n_paths,
                     struct plan_pool_item *items, size_t n, int64_t now_ms, struct err *e)
{
	struct pools *pools = pools_new(&(struct pools_options){0});
	struct pool_seat **seats = calloc(n ? n : 1, sizeof *seats);
	int rc = pools && seats ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0)
		rc = objects ? put_objects(pools, objects, e) : read_pools(pools, paths, n_paths, e);
	if (rc == 0 && pools_count(pools) > 0)
		rc = share(pools, items, seats, n, now_ms, e);
	for (size_t i = 0; seats && i < n; i++)
		pool_seat_free(seats[i]);
	free(seats);
	pools_free(pools);
	return rc;
}
