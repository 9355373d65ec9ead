// SPDX-License-Identifier: Apache-2.0
// What a pool has spent. The next process continues the record: of an object, from its status; of a pool from a file,
// which has no status, from a file in the state directory.
#include <math.h>

#include "base/base.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "base/process/log.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/pool/pools.h"
#include "controller/status/state_dir.h"
#include "controller/status/status_schema.h"
#include "policies/pool/pool_allocate.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"

#define SPENDING_BYTES_MAX ((size_t)64 * 1024)
#define TEMPORARY_BYTES    4 // ".tmp" while a file is being written
#define MONEY_BYTES        48
#define DAY_MS             INT64_C(86400000)

// ---- counting ----

double pool_cost_micro(const struct pool *p)
{
	double micro = 0;
	for (size_t i = 0; i < p->n; i++)
		micro += (double)pool_held(&p->members[i]) * p->members[i].gpus_per_replica *
		         (double)p->members[i].price_micro;
	return micro;
}

void pool_spending_count(struct pool *p, int64_t now_ms)
{
	if (!p->spec->has_budget)
		p->ledger = (struct pool_ledger){0};
	else if ((p->valid || !p->object) && !p->unknown) // else its prices or replicas are not known
		pool_ledger_count(&p->ledger, now_ms, pool_cost_micro(p));
}

static int64_t whole(double micro)
{
	return micro < (double)POOL_COST_MAX_MICRO ? (int64_t)ceil(micro) : POOL_COST_MAX_MICRO;
}

int64_t pool_spent(const struct pool *p, int64_t now_ms, int64_t *ret_since_ms)
{
	struct pool_ledger l = p->ledger;
	*ret_since_ms = l.since_ms;
	if (l.since_ms <= 0)
		return POOL_SPENT_UNKNOWN;
	pool_ledger_count(&l, now_ms, l.rate_micro);
	*ret_since_ms = l.since_ms;
	return whole(l.spent_micro);
}

int64_t pool_projected(const struct pool *p, int64_t now_ms)
{
	struct pool_month month = {0};
	pool_month_at(&month, now_ms);
	month.spent_micro = pool_spent(p, now_ms, &month.since_ms);
	return pool_month_projection(&month, whole(pool_ledger_rate_micro(&p->ledger)));
}

// ---- the status ----

// As a quantity with `digits` decimals.
static void put_money(struct json_writer *w, const char *key, double micro, int digits)
{
	char text[MONEY_BYTES];
	snprintf(text, sizeof text, "%.*f", digits, micro / 1e6);
	json_write_member_str(w, key, text);
}

void pool_spending_write(const struct pool *p, int64_t now_ms, struct json_writer *w)
{
	const struct pool_ledger *l = &p->ledger;
	if (l->since_ms <= 0) {
		json_write_member_null(w, "spending");
		return;
	}
	json_write_format(w, "spending:{since:%jd,until:%jd", l->since_ms, l->until_ms);
	put_money(w, "spent", l->spent_micro, 6);
	put_money(w, "assumed", l->assumed_micro, 6);
	put_money(w, "perHour", l->rate_micro, 6);
	put_money(w, "projected", (double)pool_projected(p, now_ms), 2);
	json_write_member_array(w, "days");
	for (int k = 0; k < POOL_LEDGER_DAYS; k++) {
		int64_t start_ms = (l->until_ms / DAY_MS - k) * DAY_MS;
		if (start_ms + DAY_MS <= l->since_ms)
			break;
		json_write_format(w, "{start:%jd", start_ms);
		put_money(w, "spent", l->day_micro[k], 6);
		json_write_object_end(w);
	}
	json_write_format(w, "]}");
}

static bool to_ledger(const struct pool_status_spending *s, struct pool_ledger *ret)
{
	*ret = (struct pool_ledger){.since_ms = s->since_ms,
	                            .until_ms = s->until_ms,
	                            .rate_micro = s->per_hour * 1e6,
	                            .spent_micro = s->spent * 1e6,
	                            .assumed_micro = s->assumed * 1e6};
	for (size_t i = 0; i < s->n_days; i++) {
		int64_t k = s->until_ms / DAY_MS - s->days[i].start_ms / DAY_MS;
		if (k >= 0 && k < POOL_LEDGER_DAYS)
			ret->day_micro[k] = s->days[i].spent * 1e6;
	}
	return ret->since_ms > 0 && ret->until_ms >= ret->since_ms;
}

bool pool_spending_read(const char *json, size_t len, struct pool_ledger *ret)
{
	const struct json_span object = {json, len};
	struct json_span text = json_span_get(json_span_get(object, "status"), "spending");
	struct pool_status_spending spending = {0};
	struct arena a;
	struct doc_node *root;
	struct err e;
	if (json_span_kind(text) != '{')
		return false;
	struct schema_errors *errors = must_alloc(malloc(2 * sizeof *errors));
	schema_errors_init(&errors[0], NULL);
	schema_errors_init(&errors[1], NULL);
	arena_init(&a, SPENDING_BYTES_MAX);
	bool is_read =
	        doc_from_json(&a, text.text, text.len, &root, &e) == 0 &&
	        schema_decode_tolerant(&pool_spending_schema, root, &spending, &a, &errors[0], &errors[1], "") == 0 &&
	        to_ledger(&spending, ret);
	arena_done(&a);
	free(errors);
	return is_read;
}

// ---- the record of a pool from a file ----

// The name of a policy's file never ends with this suffix.
static int name_of(const struct pool *pool, char out[STATE_FILE_NAME_BYTES], struct err *e)
{
	int n = snprintf(out, STATE_FILE_NAME_BYTES, "%s.pool", pool->name);
	if (n > 0 && n + TEMPORARY_BYTES < STATE_FILE_NAME_BYTES)
		return 0;
	return err_set(e, ERR_LIMIT, "the name of the pool is too long for a file: use a shorter name");
}

static bool is_recorded(const struct pool *pool)
{
	return !pool->object && pool->spec && pool->spec->has_budget;
}

// Returns 1, 0 without a file, or -1 and *e.
static int read_record(struct pool *pool, struct state_dir *dir, struct err *e)
{
	char name[STATE_FILE_NAME_BYTES];
	struct buf text;
	struct pool_ledger ledger;
	size_t body;
	if (name_of(pool, name, e) < 0)
		return -1;
	buf_init(&text, STATE_FILE_BYTES_MAX);
	int rc = state_dir_read(dir, name, &text, e);
	if (rc > 0 && state_file_unseal(buf_str(&text), text.len, &body, e) < 0)
		rc = -1;
	if (rc > 0 && !pool_spending_read(buf_str(&text) + body, text.len - body, &ledger))
		rc = err_set(e, ERR_PROTOCOL, "%s: expected a record of spending", name);
	if (rc > 0) {
		pool->ledger = ledger;
		pool_invalidate(pool);
	}
	buf_done(&text);
	return rc;
}

void pool_spending_files_read(struct pools *p, struct state_dir *dir, struct log *log)
{
	for (struct pool *pool = p->by_name; pool; pool = pool->hh.next) {
		struct err e = {0};
		if (!is_recorded(pool) || pool->ledger.since_ms > 0)
			continue;
		if (!dir)
			LOG(log, LOG_WARNING, "Spending of a pool is not recorded", LOG_S("pool", pool->name),
			    LOG_S("fix", "set --state-dir, or create the pool as an object"));
		else if (read_record(pool, dir, &e) < 0)
			LOG(log, LOG_WARNING, "Cannot use recorded spending; the record starts again",
			    LOG_S("pool", pool->name), LOG_S("err", e.msg));
	}
}

static void put_body(const struct pool *pool, int64_t now_ms, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{apiVersion:%s,kind:%s,metadata:{name:%s},status:{", POLICY_API_VERSION, POOL_KIND,
	                  pool->name);
	pool_spending_write(pool, now_ms, &w);
	json_write_format(&w, "}}");
	buf_putc(out, '\n');
}

int pool_spending_file_write(const struct pool *pool, struct state_dir *dir, struct state_slot *slot, int64_t now_ms,
                             state_written_fn *fn, void *arg, struct err *e)
{
	char name[STATE_FILE_NAME_BYTES];
	struct buf body, text;
	if (name_of(pool, name, e) < 0)
		return -1;
	buf_init(&body, STATE_FILE_BYTES_MAX);
	buf_init(&text, STATE_FILE_BYTES_MAX);
	put_body(pool, now_ms, &body);
	state_file_seal(&text, buf_str(&body), body.len);
	int rc = body.failed || text.failed ? err_no_memory(e) : 0;
	if (rc == 0)
		state_dir_put(dir, slot, name, buf_str(&text), text.len, fn, arg);
	buf_done(&text);
	buf_done(&body);
	return rc;
}
