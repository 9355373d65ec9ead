// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a TZif file becomes its table of offsets, each way in which it can be broken is refused, and a
// zone that does not exist is answered with the one that was meant.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tz/tzfile.h"

#define FILE_MAX 2048

struct file {
	unsigned char data[FILE_MAX];
	size_t len;
};

static void put(struct file *f, const void *data, size_t n)
{
	assert_true(f->len + n <= sizeof f->data);
	memcpy(f->data + f->len, data, n);
	f->len += n;
}

static void put_int(struct file *f, int64_t v, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--) {
		unsigned char c = (unsigned char)((uint64_t)v >> (8 * i));
		put(f, &c, 1);
	}
}

struct shape {
	char version;
	int32_t times, types, chars, leaps;
	int64_t at_s[4];
	int index[4];
	int32_t offset_s[4];
	const char *rule; // with its line ends
};

static void header(struct file *f, char version, int32_t leaps, int32_t times, int32_t types, int32_t chars)
{
	static const unsigned char reserved[15];
	put(f, "TZif", 4);
	put(f, &version, 1);
	put(f, reserved, sizeof reserved);
	put_int(f, 0, 4);
	put_int(f, 0, 4);
	put_int(f, leaps, 4);
	put_int(f, times, 4);
	put_int(f, types, 4);
	put_int(f, chars, 4);
}

static void build(struct file *f, const struct shape *s)
{
	static const unsigned char one_type[6 + 4];
	f->len = 0;
	header(f, s->version, 0, 0, 1, 4); // for readers of version 1
	put(f, one_type, sizeof one_type);
	header(f, s->version, s->leaps, s->times, s->types, s->chars);
	for (int i = 0; i < s->times; i++)
		put_int(f, s->at_s[i], 8);
	for (int i = 0; i < s->times; i++)
		put_int(f, s->index[i], 1);
	for (int i = 0; i < s->types; i++) {
		put_int(f, s->offset_s[i], 4);
		put_int(f, 0, 2);
	}
	for (int i = 0; i < s->chars; i++)
		put_int(f, 0, 1);
	put(f, s->rule, strlen(s->rule));
}

static const struct shape good = {
        .version = '2',
        .times = 3,
        .types = 2,
        .chars = 4,
        .at_s = {-5000000000, 1000000000, 1010000000},
        .index = {0, 1, 0},
        .offset_s = {3600, 7200},
        .rule = "\n\n",
};

static int parse(const struct file *f, struct arena *a, struct tz_table *ret, struct err *e)
{
	// in a block of its own size, so that a read past the end is seen
	void *copy = malloc(f->len ? f->len : 1);
	assert_non_null(copy);
	memcpy(copy, f->data, f->len);
	err_clear(e);
	int rc = tzfile_parse("Test/Zone", copy, f->len, a, ret, e);
	free(copy);
	return rc;
}

static void listed_transitions_are_kept(void **state)
{
	struct file f;
	struct arena a;
	struct tz_table t;
	struct err e;
	arena_init(&a, 1 << 20);
	build(&f, &good);
	assert_int_equal(parse(&f, &a, &t, &e), 0);
	assert_int_equal(t.n, 2); // that of 1811 is only the offset before
	assert_int_equal(t.first_offset_s, 3600);
	assert_true(t.at_s[0] == 1000000000 && t.offset_s[0] == 7200);
	assert_true(t.at_s[1] == 1010000000 && t.offset_s[1] == 3600);
	arena_done(&a);
}

static void posix_rule_applies_after_the_last_transition(void **state)
{
	struct file f;
	struct arena a;
	struct tz_table t;
	struct err e;
	arena_init(&a, 1 << 20);
	struct shape s = good;
	s.rule = "\nCET-1CEST,M3.5.0,M10.5.0/3\n";
	build(&f, &s);
	assert_int_equal(parse(&f, &a, &t, &e), 0);
	assert_true(t.n > 150 && t.n < 300);
	assert_true(t.at_s[2] == 1017536400 && t.offset_s[2] == 7200);             // 2002-03-31T01:00:00Z
	assert_true(t.at_s[t.n - 1] == 4128627600 && t.offset_s[t.n - 1] == 3600); // 2100-10-31T01:00:00Z
	for (size_t i = 1; i < t.n; i++)
		assert_true(t.at_s[i] > t.at_s[i - 1] && t.offset_s[i] != t.offset_s[i - 1]);
	arena_done(&a);
}

static void broken_files_are_refused(void **state)
{
	struct {
		struct shape s;
		const char *message;
	} rows[16];
	size_t n = 0;
#define ROW(change, text)                                                                                              \
	do {                                                                                                           \
		rows[n].s = good;                                                                                      \
		change;                                                                                                \
		rows[n++].message = text;                                                                              \
	} while (0)
	ROW(rows[n].s.version = '\0', "is of version 1");
	ROW(rows[n].s.leaps = 1, "counts leap seconds");
	ROW(rows[n].s.index[1] = 2, "names a local time type that it does not have");
	ROW(rows[n].s.at_s[2] = 1000000000, "transitions that do not rise");
	ROW(rows[n].s.offset_s[1] = 93601, "more than 26 hours");
	ROW(rows[n].s.offset_s[1] = -93601, "more than 26 hours");
	ROW(rows[n].s.types = 0, "has no local time type");
	ROW(rows[n].s.rule = "", "has no rule at its end");
	ROW(rows[n].s.rule = "\nCET-1", "has no rule at its end");
	ROW(rows[n].s.rule = "CET-1\n", "has no rule at its end");
	ROW(rows[n].s.rule = "\nnonsense\n", "cannot be read");
#undef ROW
	for (size_t i = 0; i < n; i++) {
		struct file f;
		struct arena a;
		struct tz_table t;
		struct err e;
		arena_init(&a, 1 << 20);
		build(&f, &rows[i].s);
		if (parse(&f, &a, &t, &e) == 0 || !strstr(e.msg, rows[i].message) || !strstr(e.msg, "Test/Zone"))
			fail_msg("row %zu: want \"%s\", got \"%s\"", i, rows[i].message, e.msg);
		arena_done(&a);
	}
}

static void every_shorter_file_is_refused(void **state)
{
	struct file f;
	build(&f, &good);
	for (size_t whole = f.len, len = 0; len < whole; len++) {
		struct arena a;
		struct tz_table t;
		struct err e;
		arena_init(&a, 1 << 20);
		f.len = len;
		assert_int_equal(parse(&f, &a, &t, &e), -1);
		assert_int_equal(e.kind, ERR_INPUT);
		arena_done(&a);
	}
	struct arena a;
	struct tz_table t;
	struct err e;
	arena_init(&a, 1 << 20);
	static const unsigned char huge[TZFILE_BYTES_MAX + 1];
	assert_int_equal(tzfile_parse("Test/Zone", huge, sizeof huge, &a, &t, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	arena_done(&a);
}

// ---- a database of our own ----

static char dir[64];

static void put_file(const char *name, const struct file *f)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(f->data, 1, f->len, out), f->len);
	assert_int_equal(fclose(out), 0);
}

static int set_up(void **state)
{
	snprintf(dir, sizeof dir, "%s", "/tmp/gpuscale-test-tz.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	char path[128];
	snprintf(path, sizeof path, "%s/Europe", dir);
	if (mkdir(path, 0700) < 0)
		return -1;
	struct file f;
	build(&f, &good);
	put_file("Europe/Zurich", &f);
	put_file("Europe/Vienna", &f);
	put_file("zone.tab", &f);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"/Europe/Zurich", "/Europe/Vienna", "/zone.tab", "/Europe", ""};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s%s", dir, names[i]);
		if (remove(path) < 0)
			return -1;
	}
	return 0;
}

static void zones_are_found_by_name(void **state)
{
	static const struct {
		const char *name;
		enum err_kind kind;
		const char *message;
	} rows[] = {
	        {"Europe/Zurich", ERR_NONE, ""},
	        {"UTC", ERR_NONE, ""},
	        {"Europe/Zürich", ERR_INPUT, "is not the name of a time zone"},
	        {"Europe/Zurch", ERR_NOT_FOUND, "unknown time zone \"Europe/Zurch\", did you mean Europe/Zurich?"},
	        {"europe/zurich", ERR_NOT_FOUND, "did you mean Europe/Zurich?"},
	        {"Europe/Wien", ERR_NOT_FOUND, "did you mean Europe/Vienna?"},
	        {"Mars/Olympus", ERR_NOT_FOUND,
	         "unknown time zone \"Mars/Olympus\": write it as in Europe/Zurich, or UTC"},
	        {"Europe", ERR_NOT_FOUND, "unknown time zone \"Europe\""},
	        {"", ERR_INPUT, "is not the name"},
	        {"../zone.tab", ERR_INPUT, "is not the name"},
	        {"Europe/../zone.tab", ERR_INPUT, "is not the name"},
	        {"/etc/passwd", ERR_INPUT, "is not the name"},
	        {"Europe//Zurich", ERR_INPUT, "is not the name"},
	        {"Europe/", ERR_INPUT, "is not the name"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct arena a;
		struct tz_table t;
		struct err e;
		err_clear(&e);
		arena_init(&a, 1 << 20);
		int rc = tzfile_load(dir, rows[i].name, &a, &t, &e);
		if ((rc == 0) != (rows[i].kind == ERR_NONE) || e.kind != rows[i].kind ||
		    !strstr(e.msg, rows[i].message))
			fail_msg("%s: %s", rows[i].name, e.msg);
		arena_done(&a);
	}
	struct arena a;
	struct tz_table t;
	struct err e;
	arena_init(&a, 1 << 20);
	assert_int_equal(tzfile_load("/nowhere/at/all", "Europe/Zurich", &a, &t, &e), -1);
	assert_non_null(strstr(e.msg, "there is no time zone database in /nowhere/at/all"));
	arena_done(&a);
}

// Where the machine has the database: two well-known zones.
static void installed_database_is_read(void **state)
{
	static const struct {
		const char *name;
		int64_t at_s;
		int32_t before_s, after_s;
	} rows[] = {
	        {"Europe/Zurich", 1774746000, 3600, 7200},        // 2026-03-29T01:00:00Z
	        {"Europe/Zurich", 3668374800, 3600, 7200},        // 2086-03-31T01:00:00Z, by the rule
	        {"America/New_York", 1772953200, -18000, -14400}, // 2026-03-08T07:00:00Z
	};
	if (access(TZFILE_DIR "/Europe/Zurich", R_OK) < 0)
		skip();
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct arena a;
		struct tz_table t;
		struct err e;
		arena_init(&a, 1 << 20);
		if (tzfile_load(TZFILE_DIR, rows[i].name, &a, &t, &e) < 0)
			fail_msg("%s", e.msg);
		size_t k = 1;
		while (k < t.n && t.at_s[k] != rows[i].at_s)
			k++;
		if (k == t.n)
			fail_msg("%s: no transition at %lld", rows[i].name, (long long)rows[i].at_s);
		assert_int_equal(t.offset_s[k - 1], rows[i].before_s);
		assert_int_equal(t.offset_s[k], rows[i].after_s);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(listed_transitions_are_kept),
	        cmocka_unit_test(posix_rule_applies_after_the_last_transition),
	        cmocka_unit_test(broken_files_are_refused),
	        cmocka_unit_test(every_shorter_file_is_refused),
	        cmocka_unit_test_setup_teardown(zones_are_found_by_name, set_up, tear_down),
	        cmocka_unit_test(installed_database_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
