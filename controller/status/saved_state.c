// SPDX-License-Identifier: Apache-2.0
#include "controller/status/saved_state.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "controller/status/state_file.h"
#include "controller/status/status_doc.h"
#include "policies/engine/decide.h"
#include "policies/schema/binding.h"

static void clock_now(const struct state_dir *dir, const struct clock *clock, struct state_clock *ret_clock)
{
	ret_clock->offset_ms = clock_wall_ms(clock) - clock_boot_ms(clock);
	snprintf(ret_clock->boot_id, sizeof ret_clock->boot_id, "%s", state_dir_boot_id(dir));
}

// Within one boot, the boot clock shows by how much the wall clock was set since the file was written. Times from
// before the last boot are used unchanged.
static int64_t step_since_ms(const struct state_dir *dir, const struct clock *clock, const struct state_clock *then)
{
	struct state_clock now;
	clock_now(dir, clock, &now);
	if (!now.boot_id[0] || strcmp(now.boot_id, then->boot_id) != 0)
		return 0;
	int64_t step_ms = now.offset_ms - then->offset_ms;
	return step_ms > DECIDE_CLOCK_BACK_MS || step_ms < -DECIDE_CLOCK_BACK_MS ? step_ms : 0;
}

static int read_text(struct state_dir *dir, const struct clock *clock, const struct buf *text,
                     const struct binding *binding, void *state, struct status_record *record, int64_t now_ms,
                     struct err *e)
{
	struct state_file file;
	if (state_file_read(buf_str(text), text->len, binding, &file, e) < 0)
		return -1;
	int64_t step_ms = step_since_ms(dir, clock, &file.clock);
	const struct binding alone = {.policy = binding->policy}; // the file has the status of one binding
	if (status_doc_read(file.json, file.json_len, &alone, state, record, now_ms - step_ms, e) < 0)
		return -1;
	decide_clock_was_set(binding->policy, state, step_ms);
	status_record_clock_was_set(record, step_ms);
	return 1;
}

int saved_state_read(struct state_dir *dir, const struct clock *clock, const struct binding *binding, void *state,
                     struct status_record *record, int64_t now_ms, struct err *e)
{
	char name[STATE_FILE_NAME_BYTES];
	struct buf text;
	if (state_file_name(name, binding, e) < 0)
		return 0; // the name is too long, so no file exists; the error is reported when the state is saved
	buf_init(&text, STATE_FILE_BYTES_MAX);
	int rc = state_dir_read(dir, name, &text, e);
	if (rc > 0)
		rc = read_text(dir, clock, &text, binding, state, record, now_ms, e);
	buf_done(&text);
	if (rc >= 0)
		return rc;
	if (e->kind != ERR_CONFLICT) // the policy had state before
		decide_record_last_scale(binding->policy, state, now_ms);
	return err_wrap(e, "%.255s", name);
}

int saved_state_put(struct state_dir *dir, const struct clock *clock, struct state_slot *slot,
                    const struct binding *binding, const char *status, state_written_fn *fn, void *arg, struct err *e)
{
	char name[STATE_FILE_NAME_BYTES];
	struct state_clock now;
	struct buf text;
	clock_now(dir, clock, &now);
	buf_init(&text, STATE_FILE_BYTES_MAX);
	state_file_write(&text, binding, &now, status);
	int rc = state_file_name(name, binding, e);
	if (rc == 0 && text.failed)
		rc = err_set(e, ERR_LIMIT, "the state has more than %d bytes", STATE_FILE_BYTES_MAX);
	if (rc == 0)
		state_dir_put(dir, slot, name, buf_str(&text), text.len, fn, arg);
	buf_done(&text);
	return rc;
}

void saved_state_forget(struct state_dir *dir, const struct binding *binding)
{
	char name[STATE_FILE_NAME_BYTES];
	struct err unused;
	if (state_file_name(name, binding, &unused) == 0)
		state_dir_remove(dir, name);
}
