// SPDX-License-Identifier: Apache-2.0
#include "base/tz/tzfile.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"

#define HEADER_BYTES   44
#define TYPES_MAX      256
#define RULE_BYTES_MAX 128
#define RULE_TIMES_MAX (2 * (TZFILE_LAST_YEAR - TZFILE_FIRST_YEAR + 1))
#define EPOCH_MARGIN_S (4 * TZ_OFFSET_MAX_S) // so that local times of the first days find their way

struct reader {
	const char *name;
	const unsigned char *p;
	size_t left;
};

static int fail(const struct reader *r, const char *what, struct err *e)
{
	return err_set(e, ERR_INPUT, "time zone file %s: %s", r->name, what);
}

static int64_t big_endian(const unsigned char *p, int bytes)
{
	uint64_t v = p[0] & 0x80 ? ~UINT64_C(0) : 0; // two's complement
	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	int64_t r;
	memcpy(&r, &v, sizeof r);
	return r;
}

static const unsigned char *take(struct reader *r, size_t n)
{
	if (n > r->left)
		return NULL;
	const unsigned char *p = r->p;
	r->p += n;
	r->left -= n;
	return p;
}

struct counts {
	int version;
	size_t isutc, isstd, leap, time, type, chars;
};

// RFC 8536, section 3.1.
static int read_header(struct reader *r, struct counts *ret, struct err *e)
{
	const unsigned char *p = take(r, HEADER_BYTES);
	if (!p || memcmp(p, "TZif", 4) != 0)
		return fail(r, "is not a TZif file", e);
	size_t *const counts[] = {&ret->isutc, &ret->isstd, &ret->leap, &ret->time, &ret->type, &ret->chars};
	ret->version = p[4];
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		int64_t n = big_endian(p + 20 + 4 * i, 4);
		if (n < 0 || n > TZFILE_BYTES_MAX)
			return fail(r, "has a count that cannot be", e);
		*counts[i] = (size_t)n;
	}
	return 0;
}

static size_t body_bytes(const struct counts *n, size_t time_bytes)
{
	return n->time * (time_bytes + 1) + n->type * 6 + n->chars + n->leap * (time_bytes + 4) + n->isstd + n->isutc;
}

struct building {
	int64_t at_s[TZFILE_TIMES_MAX + RULE_TIMES_MAX];
	int32_t offset_s[TZFILE_TIMES_MAX + RULE_TIMES_MAX];
	size_t n;
	int32_t first_offset_s;
};

static int32_t last_offset(const struct building *b)
{
	return b->n == 0 ? b->first_offset_s : b->offset_s[b->n - 1];
}

// A transition that changes the offset; what only changes the name of the time is none.
static void put(struct building *b, int64_t at_s, int32_t offset_s)
{
	if (at_s < -EPOCH_MARGIN_S) {
		b->first_offset_s = offset_s;
		b->n = 0;
		return;
	}
	if (offset_s == last_offset(b))
		return;
	b->at_s[b->n] = at_s;
	b->offset_s[b->n++] = offset_s;
}

// RFC 8536, section 3.2, with 64-bit times.
static int read_body(struct reader *r, const struct counts *n, struct building *b, struct err *e)
{
	if (n->leap > 0)
		return fail(r, "counts leap seconds (a \"right/\" zone): use the one without", e);
	if (n->type == 0 || n->type > TYPES_MAX)
		return fail(r, "has no local time type, or too many", e);
	if (n->time > TZFILE_TIMES_MAX)
		return err_set(e, ERR_LIMIT, "time zone file %s: %zu transitions are more than the ceiling of %d",
		               r->name, n->time, TZFILE_TIMES_MAX);
	const unsigned char *times = take(r, n->time * 8), *indexes = take(r, n->time), *types = take(r, n->type * 6);
	if (!times || !indexes || !types || !take(r, n->chars + n->isstd + n->isutc))
		return fail(r, "is cut short", e);
	int32_t offsets[TYPES_MAX] = {0};
	for (size_t i = 0; i < n->type; i++) {
		int64_t offset_s = big_endian(types + 6 * i, 4);
		if (offset_s < -TZ_OFFSET_MAX_S || offset_s > TZ_OFFSET_MAX_S)
			return fail(r, "is more than 26 hours off UTC", e);
		offsets[i] = (int32_t)offset_s;
	}
	b->first_offset_s = offsets[0];
	for (size_t i = 0; i < n->time; i++) {
		if (indexes[i] >= n->type)
			return fail(r, "names a local time type that it does not have", e);
		if (i > 0 && big_endian(times + 8 * i, 8) <= big_endian(times + 8 * i - 8, 8))
			return fail(r, "has transitions that do not rise", e);
		put(b, big_endian(times + 8 * i, 8), offsets[indexes[i]]);
	}
	return 0;
}

// "\n<rule>\n"; an empty rule: nothing is known after the last transition.
static int read_rule(struct reader *r, struct building *b, struct err *e)
{
	const unsigned char *p = take(r, 1);
	const unsigned char *end = p && *p == '\n' ? memchr(r->p, '\n', r->left) : NULL;
	size_t len = end ? (size_t)(end - r->p) : 0;
	if (!end || len > RULE_BYTES_MAX || memchr(r->p, '\0', len))
		return fail(r, "has no rule at its end", e);
	if (len == 0)
		return 0;
	char rule[RULE_BYTES_MAX + 1];
	memcpy(rule, r->p, len);
	rule[len] = '\0';
	int64_t at_s[RULE_TIMES_MAX];
	int32_t offset_s[RULE_TIMES_MAX], first_offset_s;
	int n = tzfile_rule(rule, TZFILE_FIRST_YEAR, at_s, offset_s, RULE_TIMES_MAX, &first_offset_s);
	if (n < 0)
		return fail(r, "has a rule at its end that cannot be read", e);
	if (b->n == 0 && n == 0)
		b->first_offset_s = first_offset_s;
	int64_t after_s = b->n > 0 ? b->at_s[b->n - 1] : INT64_MIN;
	for (int i = 0; i < n; i++)
		if (at_s[i] > after_s)
			put(b, at_s[i], offset_s[i]);
	return 0;
}

static int keep(const struct reader *r, const struct building *b, struct arena *a, struct tz_table *ret, struct err *e)
{
	int64_t *at_s = arena_calloc(a, b->n, sizeof *at_s);
	int32_t *offset_s = arena_calloc(a, b->n, sizeof *offset_s);
	if (!at_s || !offset_s)
		return err_set(e, ERR_INTERNAL, "time zone file %s: out of memory", r->name);
	if (b->n > 0) {
		memcpy(at_s, b->at_s, b->n * sizeof *at_s);
		memcpy(offset_s, b->offset_s, b->n * sizeof *offset_s);
	}
	*ret = (struct tz_table){at_s, offset_s, b->n, b->first_offset_s};
	return 0;
}

int tzfile_parse(const char *name, const void *data, size_t len, struct arena *a, struct tz_table *ret, struct err *e)
{
	struct reader r = {name, data, len};
	struct counts n;
	if (len > TZFILE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "time zone file %s has more than the ceiling of %d bytes", name,
		               TZFILE_BYTES_MAX);
	if (read_header(&r, &n, e) < 0)
		return -1;
	if (n.version < '2')
		return fail(&r, "is of version 1, with 32-bit times: install a current tzdata", e);
	// The block for readers of version 1 comes first.
	if (!take(&r, body_bytes(&n, 4)))
		return fail(&r, "is cut short", e);
	struct building b = {.n = 0};
	if (read_header(&r, &n, e) < 0 || read_body(&r, &n, &b, e) < 0 || read_rule(&r, &b, e) < 0)
		return -1;
	return keep(&r, &b, a, ret, e);
}
