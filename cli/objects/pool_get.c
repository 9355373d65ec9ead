// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/pool_get.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/term/commands.h"
#include "cli/term/output.h"
#include "cli/term/table.h"
#include "controller/status/status_schema.h"
#include "runtime/connections.h"

#define OUTPUT_MAX ((size_t)256 * 1024 * 1024)
#define NONE       "<none>"

struct pool_view {
	struct pool_status status;
	bool has_status;
};

// ---- statuses ----

// Returns the statuses of the pools, of which the caller frees the array; NULL when memory is exhausted. One that
// cannot be decoded counts as absent: no number is better than a wrong one.
static struct pool_view *read_statuses(struct policy_views *v)
{
	struct schema_errors *errors = malloc(2 * sizeof *errors);
	struct pool_view *pools = calloc(v->n ? v->n : 1, sizeof *pools);
	for (size_t i = 0; errors && pools && i < v->n; i++) {
		const struct doc_node *status = doc_get(v->items[i].root, "status");
		schema_errors_init(&errors[0], NULL);
		schema_errors_init(&errors[1], NULL);
		pools[i].has_status = status && status->kind == DOC_MAP &&
		                      schema_decode_tolerant(pool_status_schema(), status, &pools[i].status, &v->arena,
		                                             &errors[0], &errors[1], "status") == 0;
	}
	if (!errors) {
		free(pools);
		pools = NULL;
	}
	free(errors);
	return pools;
}

// ---- tables ----

// An amount that is absent without `is_known`.
static void money_cell(struct table *t, bool is_known, double money)
{
	if (is_known)
		table_cell(t, "%.2f", money);
	else
		table_cell(t, NONE);
}

static void put_pools(struct buf *out, const struct policy_views *v, const struct pool_view *pools, bool wide,
                      int64_t now_ms)
{
	static const char *const heads[] = {"NAME",    "GPUS",      "USED",   "MEMBERS",   "LIMITED",
	                                    "+COST/H", "+PER-HOUR", "+SPENT", "PROJECTED", "+PER-MONTH",
	                                    "AGE",     "+MESSAGE",  NULL};
	struct table t;
	table_init_wide(&t, heads, wide);
	for (size_t i = 0; i < v->n; i++) {
		const struct pool_view *p = &pools[i];
		const struct doc_node *spec = doc_get(v->items[i].root, "spec"), *budget = doc_get(spec, "budget");
		const struct pool_status *s = &p->status;
		const struct pool_status_spending *spending = &s->spending;
		bool is_known = spending->since_ms > 0;
		char age[TABLE_AGE_BYTES];
		table_text(&t, v->items[i].name);
		table_text(&t, doc_get_text(spec, "gpus", NULL));
		table_number(&t, p->has_status, s->used_gpus, "<unknown>");
		table_number(&t, p->has_status, s->member_count, "<unknown>");
		table_number(&t, p->has_status, s->limited_count, "<unknown>");
		money_cell(&t, is_known, spending->per_hour);
		table_text(&t, doc_get_text(budget, "perHour", NULL));
		money_cell(&t, is_known, spending->spent);
		money_cell(&t, is_known, spending->projected);
		table_text(&t, doc_get_text(budget, "perMonth", NULL));
		table_cell(&t, "%s", table_age(age, v->items[i].created_ms, now_ms));
		table_text(&t, s->message);
	}
	table_finish(&t, out, 0, true);
}

static void put_members(struct buf *out, const struct policy_views *v, const struct pool_view *pools, bool wide)
{
	static const char *const heads[] = {"POOL", "MEMBER", "REQUESTED", "GRANTED",
	                                    "GPUS", "REASON", "+MESSAGE",  NULL};
	struct table t;
	bool any = false;
	table_init_wide(&t, heads, wide);
	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < pools[i].status.n_members; k++) {
			const struct pool_status_member *m = &pools[i].status.members[k];
			any = true;
			table_text(&t, v->items[i].name);
			table_text(&t, m->name);
			table_cell(&t, "%d", m->requested);
			table_cell(&t, "%d", m->granted);
			table_cell(&t, "%d", m->gpus);
			policy_render_state(&t, m->reason);
			table_text(&t, m->message);
		}
	if (any)
		buf_putc(out, '\n');
	if (any)
		table_finish(&t, out, 0, true);
	else
		table_done(&t);
}

// ---- the command ----

int pool_get(struct connections *session, const struct policy_scope *scope, enum output_format format)
{
	struct policy_views v;
	struct pool_view *pools = NULL;
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	int code = policy_fetch_named(session, scope, "gpuscale get", &v);
	bool is_table = format == OUTPUT_TABLE || format == OUTPUT_WIDE;
	int64_t now_ms = clock_wall_ms(&session->clock);
	if (v.n > 0 || (output_is_document(format) && code == EXIT_OK)) {
		if (!is_table) {
			policy_render_list(&out, &v, NULL, format, scope->n_names == 1, false, now_ms);
		} else if ((pools = read_statuses(&v))) {
			put_pools(&out, &v, pools, format == OUTPUT_WIDE, now_ms);
			put_members(&out, &v, pools, format == OUTPUT_WIDE);
		} else {
			out.failed = true;
		}
		if (output_print("gpuscale get", &out, format) < 0)
			code = EXIT_FAILED;
	} else if (code == EXIT_OK) {
		policy_fetch_say_none(scope);
	}
	free(pools);
	buf_done(&out);
	policy_views_done(&v);
	return code;
}
