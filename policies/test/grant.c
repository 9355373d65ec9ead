// SPDX-License-Identifier: Apache-2.0
#include "policies/test/grant.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "policies/explain/explain_pool.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"
#include "policies/pool/pool_grant.h"
#include "policies/test/grant_line.h"
#include "policies/test/step.h"

#define GRANT_ARENA_MAX (16 * 1024 * 1024) // memory for one line
#define MESSAGE_MAX     1024

struct grant {
	const struct gpu_pool *pool;
	bool explain;
	unsigned long long n_lines;
	struct arena line; // memory for the current line
};

struct grant *grant_new(const struct gpu_pool *pool, bool explain)
{
	struct grant *g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->pool = pool;
	g->explain = explain;
	arena_init(&g->line, GRANT_ARENA_MAX);
	return g;
}

void grant_free(struct grant *g)
{
	if (!g)
		return;
	arena_done(&g->line);
	free(g);
}

static void put_message(struct json_writer *w, const struct gpu_pool *pool, int32_t asked,
                        const struct pool_grant *grant, const struct pool_total *total)
{
	struct buf text;
	buf_init(&text, MESSAGE_MAX);
	explain_pool_grant(&text, pool->name, pool->gpus, asked, grant, total);
	json_write_member_str(w, "message", buf_str(&text));
	buf_done(&text);
}

static void put_month(struct json_writer *w, const struct grant_line *line)
{
	json_write_member_f64(w, "budgetPerHour", (double)line->request.budget_micro / 1e6);
	if (line->month.spent_micro == POOL_SPENT_UNKNOWN || line->rate_micro == POOL_SPENT_UNKNOWN)
		return;
	json_write_member_f64(w, "monthEnd", (double)pool_month_projection(&line->month, line->rate_micro) / 1e6);
}

static void put_grants(struct grant *g, const struct grant_line *line, const struct pool_grant *grants,
                       const struct pool_total *total, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "grants");
	json_write_array_begin(&w);
	for (size_t i = 0; i < line->request.n_members; i++) {
		json_write_object_begin(&w);
		json_write_member_str(&w, "name", line->names[i]);
		json_write_member_i64(&w, "replicas", grants[i].replicas);
		json_write_member_str(&w, "reason", pool_reason_info(grants[i].reason)->name);
		if (g->explain)
			put_message(&w, g->pool, line->request.members[i].asked, &grants[i], total);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_member_i64(&w, "usedGPUs", total->used_gpus);
	if (g->pool->has_per_month)
		put_month(&w, line);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

int grant_answer(struct grant *g, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct grant_line parsed;
	struct pool_total total;
	arena_reset(&g->line);
	int rc = grant_line_parse(g->pool, line, len, ++g->n_lines, &g->line, &parsed, e);
	size_t n = rc == 0 ? parsed.request.n_members : 0;
	struct pool_grant *grants = rc == 0 ? arena_calloc(&g->line, n ? n : 1, sizeof *grants) : NULL;
	if (rc == 0 && !grants)
		rc = err_set(e, ERR_LIMIT, "the line does not fit into the memory allowed");
	if (rc < 0) {
		struct err of_line = *e;
		err_wrap(&of_line, "line %llu", g->n_lines);
		step_put_error(out, of_line.msg);
		return -1;
	}
	pool_allocate(&parsed.request, grants, &total);
	put_grants(g, &parsed, grants, &total, out);
	return 0;
}
