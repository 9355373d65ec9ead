// SPDX-License-Identifier: Apache-2.0
// Pools from files have no status, so the record of their spending is a file in the state directory.
#include "controller/pool/pool_spending_file.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "base/process/log.h"
#include "controller/pool/pool_spending.h"
#include "controller/pool/pools_private.h"
#include "controller/status/state_dir.h"
#include "controller/status/state_file.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"

#define TEMPORARY_BYTES 4 // ".tmp" while the file is being written

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

// ---- reading ----

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

// ---- writing ----

static void put_body(const struct pool *pool, int64_t now_ms, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "apiVersion", POLICY_API_VERSION);
	json_write_member_str(&w, "kind", POOL_KIND);
	json_write_key(&w, "metadata");
	json_write_object_begin(&w);
	json_write_member_str(&w, "name", pool->name);
	json_write_object_end(&w);
	json_write_key(&w, "status");
	json_write_object_begin(&w);
	pool_spending_write(pool, now_ms, &w);
	json_write_object_end(&w);
	json_write_object_end(&w);
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
	int rc = body.failed || text.failed ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
	if (rc == 0)
		state_dir_put(dir, slot, name, buf_str(&text), text.len, fn, arg);
	buf_done(&text);
	buf_done(&body);
	return rc;
}
