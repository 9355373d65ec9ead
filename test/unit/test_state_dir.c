// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the directory has the newest version of each file once its callback has run, belongs to one
// process at a time, and never has more files than its ceiling.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/status/state_dir.h"
#include "test/support/loop.h"

#define PATIENCE_MS 60000

struct fixture {
	struct event_base *loop;
	struct state_dir *dir;
	char path[64];
	int n, n_failed;
	char error[512];
};

static void on_written(void *arg, const struct err *error)
{
	struct fixture *f = arg;
	f->n++;
	f->n_failed += error != NULL;
	snprintf(f->error, sizeof f->error, "%s", error ? error->msg : "");
}

static void open_dir(struct fixture *f)
{
	struct err e;
	f->dir = state_dir_open(f->path, f->loop, &e);
	if (!f->dir)
		fail_msg("%s", e.msg);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	snprintf(f->path, sizeof f->path, "/tmp/gpuscale-state-XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->loop = event_base_new();
	open_dir(f);
	*state = f;
	return 0;
}

static void remove_all(const char *path)
{
	char file[512];
	DIR *d = opendir(path);
	for (const struct dirent *f; d && (f = readdir(d));) {
		snprintf(file, sizeof file, "%s/%.255s", path, f->d_name);
		unlink(file);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	state_dir_close(f->dir);
	event_base_free(f->loop);
	chmod(f->path, 0700);
	remove_all(f->path);
	free(f);
	return 0;
}

static void put(struct fixture *f, struct state_slot *slot, const char *name, const char *text)
{
	state_dir_put(f->dir, slot, name, text, strlen(text), on_written, f);
}

static void assert_file(struct fixture *f, const char *name, const char *want)
{
	struct buf text;
	struct err e;
	buf_init(&text, 1000);
	assert_int_equal(state_dir_read(f->dir, name, &text, &e), want ? 1 : 0);
	assert_string_equal(buf_str(&text), want ? want : "");
	buf_done(&text);
}

static void file_is_written_when_the_callback_runs(void **state)
{
	struct fixture *f = *state;
	struct state_slot slot = {0};
	assert_file(f, "a_b.state", NULL);
	put(f, &slot, "a_b.state", "one");
	assert_file(f, "a_b.state", "one"); // waits for the write
	assert_true(test_loop_until(f->loop, &f->n, 1, PATIENCE_MS));
	assert_int_equal(f->n_failed, 0);
	for (int i = 0; i < 200; i++)
		put(f, &slot, "a_b.state", i == 199 ? "last" : "before"); // the newest only, in the end
	state_dir_drain(f->dir);
	assert_file(f, "a_b.state", "last");
	assert_true(f->n >= 2 && f->n <= 201 && f->n_failed == 0);
	state_slot_cancel(&slot);
	state_dir_close(f->dir);
	open_dir(f);
	assert_file(f, "a_b.state", "last");
}

static void canceled_slot_is_written_and_not_called(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 200; i++) {
		struct state_slot slot = {0};
		put(f, &slot, "a_b.state", i == 199 ? "last" : "before");
		state_slot_cancel(&slot);
	}
	state_dir_drain(f->dir);
	assert_int_equal(f->n, 0);
	assert_file(f, "a_b.state", "last");
	state_dir_remove(f->dir, "a_b.state");
	state_dir_remove(f->dir, "never.state");
	assert_file(f, "a_b.state", NULL);
}

static void closing_writes_the_queued_files(void **state)
{
	struct fixture *f = *state;
	struct state_slot slots[300] = {0};
	char name[32];
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "a_%d.state", i);
		put(f, &slots[i], name, name);
	}
	for (int i = 0; i < 300; i++)
		state_slot_cancel(&slots[i]);
	state_dir_close(f->dir);
	open_dir(f);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "a_%d.state", i);
		assert_file(f, name, name);
	}
}

static void folder_is_used_by_one_process_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct err e;
	char want[64];
	snprintf(want, sizeof want, "(pid %ld)", (long)getpid());
	assert_null(state_dir_open(f->path, f->loop, &e)); // uses an open file of its own, like another process
	assert_int_equal(e.kind, ERR_CONFLICT);
	assert_non_null(strstr(e.msg, want));
	assert_null(state_dir_open("/dev/null/none", f->loop, &e));
	assert_int_equal(e.kind, ERR_IO);
	assert_null(state_dir_open("/dev/null", f->loop, &e));
	assert_int_equal(e.kind, ERR_IO);
}

static void half_written_file_is_removed(void **state)
{
	struct fixture *f = *state;
	char path[512];
	state_dir_close(f->dir);
	snprintf(path, sizeof path, "%s/a_b.state.tmp", f->path);
	FILE *half = fopen(path, "w");
	assert_non_null(half);
	fputs("ha", half);
	fclose(half);
	open_dir(f);
	assert_int_equal(access(path, F_OK), -1);
}

static void no_more_files_than_the_ceiling(void **state)
{
	struct fixture *f = *state;
	struct state_slot slot = {0};
	char path[512];
	state_dir_close(f->dir);
	for (int i = 0; i < STATE_DIR_FILES_MAX; i++) {
		snprintf(path, sizeof path, "%s/a_%d.state", f->path, i);
		FILE *one = fopen(path, "w");
		assert_non_null(one);
		fclose(one);
	}
	open_dir(f);
	put(f, &slot, "b_new.state", "new");
	state_dir_drain(f->dir);
	assert_int_equal(f->n_failed, 1);
	assert_non_null(strstr(f->error, "at most 20000 files"));
	put(f, &slot, "a_7.state", "there already");
	state_dir_drain(f->dir);
	assert_int_equal(f->n_failed, 1);
	state_dir_remove(f->dir, "a_8.state");
	put(f, &slot, "b_new.state", "new");
	state_dir_drain(f->dir);
	assert_int_equal(f->n_failed, 1);
	assert_file(f, "b_new.state", "new");
	state_slot_cancel(&slot);
}

// Another user may write in the directory, such as that of an emptyDir.
static void link_leads_to_no_other_file(void **state)
{
	struct fixture *f = *state;
	struct state_slot slot = {0};
	struct buf text;
	struct err e;
	char other[128], path[128];
	snprintf(other, sizeof other, "%s/other", f->path);
	snprintf(path, sizeof path, "%s/a.state.tmp", f->path);
	FILE *out = fopen(other, "w");
	assert_non_null(out);
	assert_true(fputs("secret", out) >= 0 && fclose(out) == 0);
	assert_int_equal(link(other, path), 0);
	put(f, &slot, "a.state", "new");
	assert_true(test_loop_until(f->loop, &f->n, 1, PATIENCE_MS));
	assert_int_equal(f->n_failed, 0);
	assert_file(f, "a.state", "new");
	assert_file(f, "other", "secret");
	snprintf(path, sizeof path, "%s/b.state", f->path);
	assert_int_equal(symlink(other, path), 0);
	buf_init(&text, 100);
	assert_int_equal(state_dir_read(f->dir, "b.state", &text, &e), -1);
	assert_non_null(strstr(e.msg, "symbolic link"));
	assert_string_equal(buf_str(&text), "");
	buf_done(&text);
	state_slot_cancel(&slot);
}

static void file_that_cannot_be_written_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct state_slot slot = {0};
	char path[512];
	snprintf(path, sizeof path, "%s/a_b.state", f->path);
	assert_int_equal(mkdir(path, 0700), 0); // a directory of that name blocks the write, also for root
	put(f, &slot, "a_b.state", "one");
	assert_true(test_loop_until(f->loop, &f->n, 1, PATIENCE_MS));
	assert_int_equal(f->n_failed, 1);
	assert_non_null(strstr(f->error, "cannot rename"));
	assert_non_null(strstr(f->error, f->path));
	rmdir(path);
	put(f, &slot, "a_b.state", "two");
	assert_true(test_loop_until(f->loop, &f->n, 2, PATIENCE_MS));
	assert_int_equal(f->n_failed, 1);
	state_slot_cancel(&slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(file_is_written_when_the_callback_runs, setup, teardown),
	        cmocka_unit_test_setup_teardown(canceled_slot_is_written_and_not_called, setup, teardown),
	        cmocka_unit_test_setup_teardown(closing_writes_the_queued_files, setup, teardown),
	        cmocka_unit_test_setup_teardown(folder_is_used_by_one_process_at_a_time, setup, teardown),
	        cmocka_unit_test_setup_teardown(half_written_file_is_removed, setup, teardown),
	        cmocka_unit_test_setup_teardown(no_more_files_than_the_ceiling, setup, teardown),
	        cmocka_unit_test_setup_teardown(link_leads_to_no_other_file, setup, teardown),
	        cmocka_unit_test_setup_teardown(file_that_cannot_be_written_is_an_error, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
